package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"coder/internal/core/display"
	"coder/internal/core/jsonx"
	"coder/internal/core/message"
	"coder/internal/core/uip"
	"coder/internal/tool/dialect"
	"coder/internal/ui/drive"
	"coder/internal/ui/events"
	"coder/internal/ui/streamjson"
)

// answerSource names the channel in the records of its answers.
const answerSource = "stdin"

// Update is a permission change, offered by coder or made by the program.
type Update struct {
	Type        string   `json:"type"`
	Rules       []Rule   `json:"rules,omitempty"`
	Behavior    string   `json:"behavior,omitempty"`
	Mode        string   `json:"mode,omitempty"`
	Directories []string `json:"directories,omitempty"`
	Destination string   `json:"destination,omitempty"`
}

// Rule allows, asks for or denies a tool or certain calls of it.
type Rule struct {
	Tool    string `json:"toolName"`
	Content string `json:"ruleContent,omitempty"`
}

type permissionRequest struct {
	Subtype     string          `json:"subtype"`
	Tool        string          `json:"tool_name"`
	Input       json.RawMessage `json:"input"`
	CallID      string          `json:"tool_use_id"`
	Suggestions []Update        `json:"permission_suggestions"`
	Reason      string          `json:"decision_reason,omitempty"`
	Title       string          `json:"title,omitempty"`
	Agent       string          `json:"agent_id,omitempty"`
	Diff        string          `json:"diff,omitempty"`  // for a change with several hunks
	Hunks       int             `json:"hunks,omitempty"` // number of hunks, if some can be accepted
}

type decision struct {
	Behavior  string          `json:"behavior"`
	Input     json.RawMessage `json:"updatedInput"`
	Updates   []Update        `json:"updatedPermissions"`
	Message   string          `json:"message"`
	Interrupt bool            `json:"interrupt"`
	Hunks     []int           `json:"hunks"` // with allow: the accepted hunks
}

// Interactor returns the Interactor that asks the program, if it wants to decide.
func (c *Channel) Interactor() uip.Interactor { return drive.NewInteractor(c.askDecision) }

// askDecision asks the program one question.
func (c *Channel) askDecision(ctx context.Context, q uip.Request) (uip.Response, error) {
	if !c.DecidesCalls.Load() {
		return uip.Response{}, drive.ErrGone
	}
	if q.Display.Metadata[uip.Form] != "" {
		return c.elicit(ctx, q)
	}
	request := permissionRequest{Subtype: "can_use_tool", CallID: q.CallID(), Suggestions: []Update{},
		Reason: q.Display.Description, Title: q.Display.Title}
	if q.Author != "main" {
		request.Agent = q.Author
	}
	plan, path, leaves := events.PlanExit(q)
	risky := q.Purpose == uip.PurposeConfirmRiskyAction
	switch {
	case risky:
		request.Tool, request.Input = dialect.ToExternal(q.Display.Metadata["toolName"], q.Args, c.Root)
		request.Suggestions = suggestions(q)
		if diff, ok := q.Display.Content.(display.Diff); ok && q.Display.Metadata[uip.MetaHunks] != "" {
			request.Diff, request.Hunks = diff.Unified, len(display.SplitHunks(diff.Unified))
		}
	case leaves:
		request.Tool, request.Input = "ExitPlanMode", jsonx.MustMarshal(map[string]string{"plan": plan, "planFilePath": path})
	default:
		request.Tool, request.Input = "AskUserQuestion", jsonx.MustMarshal(map[string]any{"questions": events.Questions(q)})
	}
	if len(request.Input) == 0 {
		request.Input = json.RawMessage("{}")
	}
	var d decision
	err := c.sendRequest(ctx, request, &d)
	switch {
	case errors.Is(err, streamjson.ErrTooLong):
		return q.Refusal("user", "the call is too large to show to the program that decides"), nil
	case errors.Is(err, errRefused):
		return denialResponse(q, decision{Message: err.Error()}), nil
	case err != nil:
		return uip.Response{}, err
	case d.Behavior != "allow" && d.Behavior != "deny":
		unread := message.Errorf("the answer to can_use_tool cannot be read: behavior must be allow or deny, not %q",
			d.Behavior)
		return denialResponse(q, decision{Message: unread.Error()}), c.Reply(nil, nil, unread)
	case d.Behavior != "allow":
		return denialResponse(q, d), nil
	}
	a := uip.Response{AnsweredBy: answerSource}
	switch {
	case risky:
		a.Option = uip.OptionApprove
		if len(d.Input) > 0 && !equalJSON(d.Input, request.Input) {
			a.Args = d.Input
		}
		c.applyUpdates(q, d.Updates, &a)
		if d.Hunks != nil && request.Hunks > 0 && a.Args == nil {
			a.Option, a.Input = uip.OptionSome, strings.Trim(string(jsonx.MustMarshal(d.Hunks)), "[]")
		}
		a.Comment = d.Message
	case leaves:
		a.Option = "startEditing"
	default:
		var said struct {
			Answers map[string]string `json:"answers"`
		}
		_ = json.Unmarshal(d.Input, &said) // an invalid answer dismisses the question
		a = events.ParseAnswers(q, said.Answers)
		a.AnsweredBy = answerSource
	}
	return a, nil
}

// elicit asks the program what an MCP server wants to know from the user.
func (c *Channel) elicit(ctx context.Context, q uip.Request) (uip.Response, error) {
	request := struct {
		Subtype string          `json:"subtype"`
		Server  string          `json:"mcp_server_name"`
		Message string          `json:"message"`
		Mode    string          `json:"mode"`
		URL     string          `json:"url,omitempty"`
		Schema  json.RawMessage `json:"requested_schema,omitempty"`
	}{}
	if err := json.Unmarshal([]byte(q.Display.Metadata[uip.Form]), &request); err != nil {
		return uip.Response{}, err
	}
	request.Subtype, request.Server = "elicitation", q.Display.Metadata[uip.Server]
	var d struct {
		Action  string         `json:"action"`
		Content map[string]any `json:"content"`
	}
	err := c.sendRequest(ctx, request, &d)
	switch a := (uip.Response{ID: q.ID, AnsweredBy: answerSource}); {
	case errors.Is(err, errRefused), errors.Is(err, streamjson.ErrTooLong), err == nil && d.Action != "accept":
		a.Dismissed = true
		if d.Action == "decline" {
			a.Option = d.Action
		}
		return a, nil
	case err != nil:
		return a, err
	case len(q.Parts) == 0:
		a.Option = d.Action
		return a, nil
	default:
		for _, part := range q.Parts {
			a.Parts = append(a.Parts, filled(part, d.Content))
		}
		return a, nil
	}
}

// filled returns the answer to one part of a server's form. The last part, which is no field, agrees.
func filled(part uip.Request, content map[string]any) uip.Response {
	field, isField := part.Display.Metadata[uip.Field]
	value, given := content[field]
	switch list, many := value.([]any); {
	case !isField:
		return uip.Response{ID: part.ID, Option: part.Display.Metadata[uip.MetaOnYes]}
	case !given || value == nil || many && len(list) == 0:
		return uip.Response{ID: part.ID, Option: part.Display.Metadata[uip.MetaOnEnter]}
	case many:
		var words []string
		for _, one := range list {
			words = append(words, fmt.Sprint(one))
		}
		value = strings.Join(words, ", ")
	}
	if text, ok := value.(string); ok {
		return uip.Response{ID: part.ID, Input: text}
	}
	return uip.Response{ID: part.ID, Input: string(jsonx.MustMarshal(value))} // not 1e+06
}

// denialResponse converts the program's denial.
func denialResponse(q uip.Request, d decision) uip.Response {
	a := uip.Response{AnsweredBy: answerSource, Comment: d.Message, Stop: d.Interrupt}
	_, _, leaves := events.PlanExit(q)
	switch {
	case q.Purpose == uip.PurposeConfirmRiskyAction:
		a.Option = uip.OptionReject
	case leaves:
		a.Input = cmp.Or(d.Message, "no")
	default:
		a.Dismissed = true
	}
	return a
}

// destinations maps the options to the program's words for their scope.
var destinations = map[string]string{uip.OptionSession: "session", uip.OptionAlwaysBelow: "session",
	uip.OptionAlways: "localSettings"}

// suggestions returns the approvals that would be remembered, as changes that the program may send back
// or save as its own rules. An approval that no rule can express is left out.
func suggestions(q uip.Request) []Update {
	all := []Update{}
	for _, o := range q.Options {
		if u, ok := suggestion(o); ok {
			all = append(all, u)
		}
	}
	return all
}

// suggestion converts an option to a permission change.
func suggestion(o uip.Option) (u Update, ok bool) {
	to, remembered := destinations[o.ID]
	if !remembered || len(o.Rules) == 0 {
		return u, false
	}
	u = Update{Type: "addRules", Behavior: "allow", Destination: to}
	for _, rule := range o.Rules {
		tool, on, _ := strings.Cut(rule, "(")
		tool, _ = dialect.ToExternal(tool, json.RawMessage("{}"), "")
		u.Rules = append(u.Rules, Rule{tool, strings.TrimSuffix(on, ")")})
	}
	return u, true
}

// applyUpdates applies the changes sent with an approval: a change that was offered selects its option, the
// others are made.
func (c *Channel) applyUpdates(q uip.Request, updates []Update, a *uip.Response) {
	options := make(map[string]bool)
	for _, u := range updates {
		known := false
		for _, o := range q.Options {
			if offered, ok := suggestion(o); ok && reflect.DeepEqual(u, offered) {
				options[o.ID], known = true, true
			}
		}
		if !known {
			c.ApplyUpdate(u)
		}
	}
	for _, widest := range []string{uip.OptionAlways, uip.OptionAlwaysBelow, uip.OptionSession} {
		if options[widest] && a.Args == nil { // an approval of other arguments is not remembered
			a.Option = widest
			break
		}
	}
}

// equalJSON reports whether two texts are equal as JSON.
func equalJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
