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
	"coder/internal/core/sanitize"
	"coder/internal/core/uip"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// These limits apply to a server's requests.
const (
	maxFields   = 20
	maxQuestion = 1000    // bytes of its text
	maxSampled  = 4 << 10 // tokens of a model's answer
	maxAsking   = 32 << 10
)

// ask asks the server's question in the current call. If nobody can answer, the response says so.
func (p *peer) ask(ctx context.Context, q uip.Request) (uip.Response, *openCall, error) {
	open, answered, err := p.calls.asking()
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
	a, err := uip.From(open.ctx).Ask(asking, q)
	if errors.Is(err, uip.ErrParked) { // the server would be gone by then
		p.tellOnce("parked", fmt.Sprintf("MCP server %s asked a question in a call: that cannot be parked", oneLine(p.Name)))
		return uip.NoAnswer(q), open, nil
	}
	return a, open, err
}

// tellUnasked warns that nobody was there to answer the server.
func (p *peer) tellUnasked() {
	p.tellOnce("unasked", fmt.Sprintf("MCP server %s asked a question, and nobody could answer: coder declined", oneLine(p.Name)))
}

// The answers to a server's requests.
const (
	accept  = "accept"
	decline = "decline"
	cancel  = "cancel"
	leave   = "leave" // keep a field as it is
)

// elicit asks the user for the server.
func (p *peer) elicit(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	q, fields, err := p.form(r.Params)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	sent := map[string]any{"mode": "form", "message": r.Params.Message, "requested_schema": r.Params.RequestedSchema}
	if r.Params.URL != "" {
		sent = map[string]any{"mode": "url", "message": r.Params.Message, "url": r.Params.URL}
	}
	if form := jsonx.Must(sent); len(form) <= maxAsking {
		q.Display.Metadata = maps.Clone(q.Display.Metadata)
		if q.Display.Metadata == nil {
			q.Display.Metadata = make(map[string]string)
		}
		q.Display.Metadata[uip.Form] = string(form)
	}
	a, _, err := p.ask(ctx, q)
	switch {
	case err != nil:
		p.tellOnce("asked", fmt.Sprintf("MCP server %s asked a question and got no answer: %s", oneLine(p.Name), oneLine(err.Error())))
		return &sdk.ElicitResult{Action: cancel}, nil
	case a.Unanswered():
		p.tellUnasked()
		return &sdk.ElicitResult{Action: cancel}, nil
	case a.Dismissed && a.Option == decline:
		return &sdk.ElicitResult{Action: decline}, nil
	case a.Dismissed:
		return &sdk.ElicitResult{Action: cancel}, nil
	}
	parts := q.Parts
	if len(parts) == 0 {
		parts = []uip.Request{q}
		a.Parts = []uip.Response{a}
	}
	if last := parts[len(parts)-1]; a.Part(last).Option != accept {
		return &sdk.ElicitResult{Action: decline}, nil
	}
	content := make(map[string]any)
	for i, f := range fields {
		if v := f.value(a.Part(parts[i])); v != nil {
			content[f.name] = v
		}
	}
	return &sdk.ElicitResult{Action: accept, Content: content}, nil
}

// form returns the question to the user: one part for each field, and at the end whether to send the answers.
func (p *peer) form(params *sdk.ElicitParams) (uip.Request, []field, error) {
	says := fmt.Sprintf("The MCP server %s asks: %s", oneLine(p.Name), sanitize.Line(params.Message, maxQuestion))
	end := uip.Request{
		Kind: uip.Select, Purpose: uip.RequestInfo, Display: uip.Display{Title: says, Metadata: map[string]string{uip.OnYes: accept, uip.OnNo: decline}},
		Options: []uip.Option{{ID: accept, Label: "agree"}, {ID: decline, Label: "decline"}},
	}
	if params.URL != "" {
		if !strings.HasPrefix(params.URL, "https://") && !strings.HasPrefix(params.URL, "http://") {
			return uip.Request{}, nil, errors.New("the address is not a web address")
		}
		end.Display.Title += fmt.Sprintf("\nopen %s in a browser, if you trust it, then agree", sanitize.Line(params.URL, 2*maxQuestion))
		return end, nil, nil
	}
	fields, err := readFields(params.RequestedSchema)
	if err != nil || len(fields) == 0 {
		return end, nil, err
	}
	q := uip.Request{Kind: uip.Composite, Purpose: uip.RequestInfo, Display: uip.Display{Title: says}}
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
	name, kind  string // kind is boolean, number, integer, string or array
	title, says string
	required    bool
	choices     []choice
	fallback    any
	pattern     string
}

// choice is one of a field's possible values.
type choice struct{ value, label string }

// readFields parses the fields of a form, required ones first.
func readFields(schema any) ([]field, error) {
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
	if json.Unmarshal(jsonx.Must(schema), &given) != nil {
		return nil, errors.New("the form cannot be read")
	}
	if len(given.Properties) > maxFields {
		return nil, fmt.Errorf("the form has more than %d fields", maxFields)
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
			name: name, kind: p.Type, title: cmp.Or(sanitize.Line(p.Title, 100), sanitize.Line(name, 100)), says: sanitize.Line(p.Description, maxQuestion),
			required: slices.Contains(given.Required, name), fallback: p.Default, pattern: p.Pattern,
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
	title := sanitize.Theirs(f.title)
	if f.says != "" {
		title += ": " + sanitize.Theirs(f.says)
	}
	q := uip.Request{Kind: uip.Input, Purpose: uip.RequestInfo, Validation: &uip.Validation{Required: true, Regex: f.allowed()}}
	hint := ""
	var labels []string
	for i, c := range f.choices {
		label := sanitize.Line(cmp.Or(c.label, c.value), 200)
		labels = append(labels, label)
		if f.kind != "array" {
			q.Kind = uip.Select
			q.Options = append(q.Options, uip.Option{ID: strconv.Itoa(i + 1), Label: label})
		}
	}
	switch f.kind {
	case "array":
		hint = fmt.Sprintf("(one or more, separated by commas: %s)", strings.Join(labels, ", "))
		q.Validation.Says = "from the listed choices"
	case "integer":
		hint, q.Validation.Says = "(a whole number)", "a whole number"
	case "number":
		hint, q.Validation.Says = "(a number)", "a number"
	default:
		if len(labels) > 0 {
			q.Validation.Says = "from the listed choices"
		}
	}
	left := ""
	switch {
	case f.fallback != nil:
		left = fmt.Sprintf("default: %s", sanitize.Line(fmt.Sprint(f.fallback), 200))
	case !f.required:
		left = "leave empty"
	}
	if left != "" {
		q.Options = append(q.Options, uip.Option{ID: leave, Label: left})
		q.Display.Metadata = map[string]string{uip.OnEnter: leave}
	}
	if q.Display.Title = title; hint != "" {
		q.Display.Title += "\n" + hint // a separate line for translation
	}
	return q
}

// allowed returns the regular expression for a typed answer.
func (f field) allowed() string {
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

// value returns the answered value, or nil if there is none.
func (f field) value(a uip.Response) any {
	if a.Option == leave || a.Option == "" && a.Input == "" {
		return f.fallback
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

// Sampling is a server's request to the model.
type Sampling struct {
	System    string
	Messages  []chat.Message
	MaxTokens int
}

// Sampled is the model's answer, and its cost.
type Sampled struct {
	Text, Model string
	Cut         bool // the answer was cut off
	Spent       []event.Event
}

// sample gets the model's answer for the server, if the user allows it.
func (p *peer) sample(ctx context.Context, r *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
	want := Sampling{System: sanitize.Text(r.Params.SystemPrompt), MaxTokens: maxSampled}
	if n := r.Params.MaxTokens; n > 0 && n < maxSampled {
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
		want.Messages = append(want.Messages, chat.Say(role, text))
		shown = append(shown, string(m.Role)+": "+text)
	}
	text := strings.Join(shown, "\n\n")
	switch {
	case len(want.Messages) == 0:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the request has no messages"}
	case len(text) > maxAsking:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("the message is longer than %d bytes", maxAsking)}
	}
	a, open, err := p.ask(ctx, uip.Request{
		Kind: uip.Confirm, Purpose: uip.ConfirmRiskyAction,
		Display: uip.Display{
			Title:       fmt.Sprintf("The MCP server %s wants the model to answer this", oneLine(p.Name)),
			Metadata:    map[string]string{uip.OwnTitle: "true"},
			Description: fmt.Sprintf("at your cost, at most %d tokens; the server gets the answer", want.MaxTokens),
			Content:     display.Text(text),
		},
		Options: []uip.Option{{ID: uip.Approve, Label: "approve", Style: uip.Primary}, {ID: uip.Reject, Label: "reject", Style: uip.Danger}},
	})
	if err == nil && a.Unanswered() {
		p.tellUnasked()
		err = errors.New("no user could answer")
	}
	if err == nil && a.Option != uip.Approve {
		err = errors.New("the user did not allow it")
	}
	if err != nil {
		return nil, &jsonrpc.Error{Code: -1, Message: err.Error()}
	}
	said, err := p.host.o.Sample(open.ctx, want)
	p.calls.spend(open, said.Spent)
	if err != nil {
		return nil, fmt.Errorf("the model did not answer: %s", clip.Text(sanitize.Text(err.Error()), 500))
	}
	stop := "endTurn"
	if said.Cut {
		stop = "maxTokens"
	}
	return &sdk.CreateMessageResult{Content: &sdk.TextContent{Text: said.Text}, Model: said.Model, Role: "assistant", StopReason: stop}, nil
}
