package mcp

//lint:file-ignore SA1019 roots and sampling are on their way out, and the servers that people have use them

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/core/clip"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/core/message"
	"coder/internal/core/sanitize"
	"coder/internal/core/uip"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// These limits apply to a server's requests.
const (
	maxFields       = 20
	maxQuestion     = 1000    // bytes of its text
	maxSampleTokens = 4 << 10 // tokens of a model's answer
	maxSamplePrompt = 32 << 10
)

// ask asks the server's question in the current call. If nobody can answer, the response says so.
func (p *peer) ask(ctx context.Context, q uip.Request) (uip.Response, *openCall, error) {
	open, answered, err := p.calls.callForQuestion()
	if err != nil {
		return uip.Response{}, nil, err
	}
	defer answered()
	asking, cancel := context.WithCancel(open.ctx)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)() // the server withdrew it
	if q.Display.Metadata == nil {
		q.Display.Metadata = make(map[string]string)
	}
	q.Display.Metadata[uip.Server] = oneLine(p.Name)
	a, err := uip.InteractorFrom(open.ctx).Ask(asking, q)
	if errors.Is(err, uip.ErrAnswerPending) { // the server would be gone by then
		p.warnOnce("parked", fmt.Sprintf("MCP server %s asked a question in a call: that cannot be parked", oneLine(p.Name)))
		return uip.NoAnswer(q), open, nil
	}
	return a, open, err
}

// warnUnasked warns that nobody was there to answer the server.
func (p *peer) warnUnasked() {
	p.warnOnce("unasked", fmt.Sprintf("MCP server %s asked a question, and nobody could answer: coder declined",
		oneLine(p.Name)))
}

// The answers to a server's requests.
const (
	acceptAction  = "accept"
	declineAction = "decline"
	cancelAction  = "cancel"
	keepValue     = "leave" // keep a field as it is
)

// elicit asks the user for the server.
func (p *peer) elicit(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	q, fields, err := p.formRequest(r.Params)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	sent := map[string]any{"mode": "form", "message": r.Params.Message, "requested_schema": r.Params.RequestedSchema}
	if r.Params.URL != "" {
		sent = map[string]any{"mode": "url", "message": r.Params.Message, "url": r.Params.URL}
	}
	if form := jsonx.MapStrings(jsonx.MustMarshal(sent), sanitize.Text); len(form) <= maxSamplePrompt {
		q.Display.Metadata = maps.Clone(q.Display.Metadata)
		if q.Display.Metadata == nil {
			q.Display.Metadata = make(map[string]string)
		}
		q.Display.Metadata[uip.Form] = string(form)
	}
	a, _, err := p.ask(ctx, q)
	switch {
	case err != nil:
		p.warnOnce("asked", fmt.Sprintf("MCP server %s asked a question and got no answer: %s", oneLine(p.Name),
			oneLine(err.Error())))
		return &sdk.ElicitResult{Action: cancelAction}, nil
	case a.IsUnanswered():
		p.warnUnasked()
		return &sdk.ElicitResult{Action: cancelAction}, nil
	case a.Dismissed && a.Option == declineAction:
		return &sdk.ElicitResult{Action: declineAction}, nil
	case a.Dismissed:
		return &sdk.ElicitResult{Action: cancelAction}, nil
	}
	parts := q.Parts
	if len(parts) == 0 {
		parts = []uip.Request{q}
		a.Parts = []uip.Response{a}
	}
	if last := parts[len(parts)-1]; a.PartAnswer(last).Option != acceptAction {
		return &sdk.ElicitResult{Action: declineAction}, nil
	}
	content := make(map[string]any)
	for i, f := range fields {
		if v := f.answeredValue(a.PartAnswer(parts[i])); v != nil {
			content[f.name] = v
		}
	}
	return &sdk.ElicitResult{Action: acceptAction, Content: content}, nil
}

// formRequest returns the question to the user: one part for each field, and at the end whether to send the answers.
func (p *peer) formRequest(params *sdk.ElicitParams) (uip.Request, []field, error) {
	says := fmt.Sprintf("The MCP server %s asks: %s", oneLine(p.Name), sanitize.Line(params.Message, maxQuestion))
	end := uip.Request{
		Kind: uip.KindSelect, Purpose: uip.PurposeRequestInfo,
		Display: uip.Display{Title: says, Metadata: map[string]string{uip.MetaOnYes: acceptAction,
			uip.MetaOnNo: declineAction}},
		Options: []uip.Option{{ID: acceptAction, Label: "agree"}, {ID: declineAction, Label: "decline"}},
	}
	if params.URL != "" {
		if !strings.HasPrefix(params.URL, "https://") && !strings.HasPrefix(params.URL, "http://") {
			return uip.Request{}, nil, errors.New("the address is not a web address")
		}
		end.Display.Title += fmt.Sprintf("\nopen %s in a browser, if you trust it, then agree",
			sanitize.Line(params.URL, 2*maxQuestion))
		return end, nil, nil
	}
	fields, err := parseFields(params.RequestedSchema)
	if err != nil || len(fields) == 0 {
		return end, nil, err
	}
	q := uip.Request{Kind: uip.KindComposite, Purpose: uip.PurposeRequestInfo, Display: uip.Display{Title: says}}
	for i, f := range fields {
		part := f.question()
		part.Display.Metadata = maps.Clone(part.Display.Metadata)
		if part.Display.Metadata == nil {
			part.Display.Metadata = make(map[string]string)
		}
		part.Display.Metadata[uip.Field] = f.name
		if i == 0 {
			part.Display.Title = says + "\n" + part.Display.Title
		}
		q.Parts = append(q.Parts, part)
	}
	end.Display.Title = fmt.Sprintf("Send these answers to the MCP server %s?", oneLine(p.Name))
	end.Options[0].Label = "send"
	q.Parts = append(q.Parts, end)
	return q, fields, nil
}

// field is an item in a server's form.
type field struct {
	name, kind         string // kind is boolean, number, integer, string or array
	title, description string
	required           bool
	choices            []choice
	defaultValue       any
	pattern            string
}

// choice is one of a field's possible values.
type choice struct{ value, label string }

// parseFields parses the fields of a form, required ones first.
func parseFields(schema any) ([]field, error) {
	type option struct {
		Const any    `json:"const"`
		Title string `json:"title"`
	}
	type property struct {
		Type, Title, Description, Pattern string
		Enum                              []any
		EnumNames                         []string `json:"enumNames"`
		OneOf                             []option `json:"oneOf"`
		Default                           any
		Items                             struct {
			Enum  []any
			AnyOf []option `json:"anyOf"`
		}
	}
	var given struct {
		Properties map[string]property
		Required   []string
	}
	if json.Unmarshal(jsonx.MustMarshal(schema), &given) != nil {
		return nil, errors.New("the form cannot be read")
	}
	if len(given.Properties) > maxFields {
		return nil, message.Errorf("the form has more than %d fields", maxFields)
	}
	names := slices.Sorted(maps.Keys(given.Properties))
	rank := func(name string) int {
		if i := slices.Index(given.Required, name); i >= 0 {
			return i
		}
		return len(given.Required)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	var fields []field
	for _, name := range names {
		p := given.Properties[name]
		f := field{
			name: name, kind: p.Type, title: cmp.Or(sanitize.Line(p.Title, 100), sanitize.Line(name, 100)),
			description: sanitize.Line(p.Description, maxQuestion),
			required:    slices.Contains(given.Required, name), defaultValue: p.Default, pattern: p.Pattern,
		}
		for i, v := range slices.Concat(p.Enum, p.Items.Enum) {
			c := choice{value: fmt.Sprint(v)}
			if i < len(p.EnumNames) {
				c.label = p.EnumNames[i]
			}
			f.choices = append(f.choices, c)
		}
		for _, o := range slices.Concat(p.OneOf, p.Items.AnyOf) {
			f.choices = append(f.choices, choice{fmt.Sprint(o.Const), o.Title})
		}
		if f.kind == "boolean" {
			f.choices = []choice{{"true", "yes"}, {"false", "no"}}
		}
		fields = append(fields, f)
	}
	return fields, nil
}

// question returns the question for the field. An empty line keeps an optional field as it is.
func (f field) question() uip.Request {
	title := sanitize.ForeignText(f.title)
	if f.description != "" {
		title += ": " + sanitize.ForeignText(f.description)
	}
	q := uip.Request{Kind: uip.KindInput, Purpose: uip.PurposeRequestInfo,
		Validation: &uip.Validation{Required: true, Regex: f.answerPattern()}}
	hint := ""
	var labels []string
	for i, c := range f.choices {
		label := sanitize.Line(cmp.Or(c.label, c.value), 200)
		labels = append(labels, label)
		if f.kind != "array" {
			q.Kind = uip.KindSelect
			q.Options = append(q.Options, uip.Option{ID: strconv.Itoa(i + 1), Label: label})
		}
	}
	switch f.kind {
	case "array":
		hint = fmt.Sprintf("(one or more, separated by commas: %s)", strings.Join(labels, ", "))
		q.Validation.Description = "from the listed choices"
	case "integer":
		hint, q.Validation.Description = "(a whole number)", "a whole number"
	case "number":
		hint, q.Validation.Description = "(a number)", "a number"
	default:
		if len(labels) > 0 {
			q.Validation.Description = "from the listed choices"
		}
	}
	left := ""
	switch {
	case f.defaultValue != nil:
		left = fmt.Sprintf("default: %s", sanitize.Line(fmt.Sprint(f.defaultValue), 200))
	case !f.required:
		left = "leave empty"
	}
	if left != "" {
		q.Options = append(q.Options, uip.Option{ID: keepValue, Label: left})
		q.Display.Metadata = map[string]string{uip.MetaOnEnter: keepValue}
	}
	if q.Display.Title = title; hint != "" {
		q.Display.Title += "\n" + hint // a separate line for translation
	}
	return q
}

// answerPattern returns the regular expression for a typed answer.
func (f field) answerPattern() string {
	switch {
	case f.kind == "integer":
		return `^[+-]?[0-9]+$`
	case f.kind == "number":
		return `^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$`
	case len(f.choices) > 0:
		var words []string
		for _, c := range f.choices {
			words = append(words, regexp.QuoteMeta(c.value))
			if c.label != "" {
				words = append(words, regexp.QuoteMeta(c.label))
			}
		}
		one := "(?:" + strings.Join(words, "|") + ")"
		if f.kind == "array" {
			return `(?i)^\s*` + one + `(?:\s*,\s*` + one + `)*\s*$`
		}
		return "(?i)^" + one + "$"
	}
	if _, err := regexp.Compile(f.pattern); err != nil {
		return "" // the server checks it
	}
	return f.pattern
}

// answeredValue returns the answered value, or nil if there is none.
func (f field) answeredValue(a uip.Response) any {
	if a.Option == keepValue || a.Option == "" && a.Input == "" {
		return f.defaultValue
	}
	if n, err := strconv.Atoi(a.Option); err == nil && n >= 1 && n <= len(f.choices) {
		a.Input = f.choices[n-1].value
	}
	named := func(text string) string {
		for _, c := range f.choices {
			if text = strings.TrimSpace(text); strings.EqualFold(text, c.value) || strings.EqualFold(text, c.label) {
				return c.value
			}
		}
		return text
	}
	switch f.kind {
	case "boolean":
		return named(a.Input) == "true"
	case "integer", "number":
		n, err := strconv.ParseFloat(a.Input, 64)
		if err != nil {
			return a.Input
		}
		return n
	case "array":
		list := []any{}
		for word := range strings.SplitSeq(a.Input, ",") {
			list = append(list, named(word))
		}
		return list
	}
	if len(f.choices) > 0 {
		return named(a.Input)
	}
	return a.Input
}

// SampleRequest is a server's request to the model.
type SampleRequest struct {
	System    string
	Messages  []chat.Message
	MaxTokens int
}

// SampleResult is the model's answer, and its cost.
type SampleResult struct {
	Text, Model string
	Truncated   bool // the answer was cut off
	Costs       []event.Event
}

// sample gets the model's answer for the server, if the user allows it.
func (p *peer) sample(ctx context.Context, r *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
	want := SampleRequest{System: sanitize.Text(r.Params.SystemPrompt), MaxTokens: maxSampleTokens}
	if n := r.Params.MaxTokens; n > 0 && n < maxSampleTokens {
		want.MaxTokens = int(n)
	}
	shown := []string{}
	if want.System != "" {
		shown = append(shown, "system: "+want.System)
	}
	for _, m := range r.Params.Messages {
		text := sanitize.Text(contentText(m.Content))
		role := chat.User
		if m.Role == "assistant" {
			role = chat.Assistant
		}
		want.Messages = append(want.Messages, chat.TextMessage(role, text))
		shown = append(shown, string(m.Role)+": "+text)
	}
	text := strings.Join(shown, "\n\n")
	switch {
	case len(want.Messages) == 0:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the request has no messages"}
	case len(text) > maxSamplePrompt:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
			Message: fmt.Sprintf("the message is longer than %d bytes", maxSamplePrompt)}
	}
	a, open, err := p.ask(ctx, uip.Request{
		Kind: uip.KindConfirm, Purpose: uip.PurposeConfirmRiskyAction,
		Display: uip.Display{
			Title:       fmt.Sprintf("The MCP server %s wants the model to answer this", oneLine(p.Name)),
			Metadata:    map[string]string{uip.MetaOwnTitle: "true"},
			Description: fmt.Sprintf("at your cost, at most %d tokens; the server gets the answer", want.MaxTokens),
			Content:     display.Text(text),
		},
		Options: []uip.Option{{ID: uip.OptionApprove, Label: "approve", Style: uip.StylePrimary},
			{ID: uip.OptionReject, Label: "reject", Style: uip.StyleDanger}},
	})
	if err == nil && a.IsUnanswered() {
		p.warnUnasked()
		err = errors.New("no user could answer")
	}
	if err == nil && a.Option != uip.OptionApprove {
		err = errors.New("the user did not allow it")
	}
	if err != nil {
		return nil, &jsonrpc.Error{Code: -1, Message: err.Error()}
	}
	said, err := p.host.options.Sample(open.ctx, want)
	p.calls.addCosts(open, said.Costs)
	if err != nil {
		return nil, message.Errorf("the model did not answer: %s", clip.Truncate(sanitize.Text(err.Error()), 500))
	}
	stop := "endTurn"
	if said.Truncated {
		stop = "maxTokens"
	}
	return &sdk.CreateMessageResult{Content: &sdk.TextContent{Text: said.Text}, Model: said.Model, Role: "assistant",
		StopReason: stop}, nil
}
