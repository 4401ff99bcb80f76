package acp

import (
	"cmp"
	"context"
	"errors"

	"coder/internal/core/uip"
	"coder/internal/tool"
	"coder/internal/ui/drive"
)

// option is a possible answer, in the protocol's form.
type option struct {
	ID   string `json:"optionId"`
	Name string `json:"name"`
	Kind string `json:"kind"`
}

// kinds maps the options for a call to the protocol's kinds.
var kinds = map[string]string{
	uip.Approve: "allow_once", uip.Session: "allow_always", uip.Below: "allow_always", uip.Always: "allow_always", uip.Reject: "reject_once",
}

// dismissed is the id of the option that dismisses the question.
const dismissed = "dismiss"

// Person returns the Interactor that asks the user in the editor.
func (f *Face) Person() uip.Interactor { return drive.Asker(f.ask) }

// ask shows a question as the editor's permission request. A question with parts is asked part by part.
// A question that needs text is dismissed.
func (f *Face) ask(ctx context.Context, q uip.Request) (uip.Response, error) {
	if len(q.Parts) == 0 {
		return f.choose(ctx, q)
	}
	all := uip.Response{Via: via}
	for _, part := range q.Parts {
		a, err := f.choose(ctx, part.ForCall(cmp.Or(part.CallID(), q.CallID())))
		if err != nil {
			return all, err
		}
		if a.Dismissed {
			return uip.Response{Dismissed: true, Via: via}, nil
		}
		a.ID = part.ID
		all.Parts = append(all.Parts, a)
	}
	return all, nil
}

// via names the editor in the records of its answers.
const via = "acp"

func (f *Face) choose(ctx context.Context, q uip.Request) (uip.Response, error) {
	risky := q.Purpose == uip.ConfirmRiskyAction
	if len(q.Options) == 0 {
		return uip.Response{Dismissed: true, Comment: "the editor cannot ask for text", Via: via}, nil
	}
	call := update{
		CallID: q.CallID(), Title: q.Display.Title, Sort: cmp.Or(sorts[tool.ClassOf(q.Display.Metadata["toolName"])], "other"), Status: "pending", RawInput: raw(q.Args),
	}
	shows := f.contents(q.Display.Content)
	if q.Display.Description != "" {
		shows = append(shows, shown(q.Display.Description))
	}
	call.Content = shows
	for _, c := range shows {
		if c.Path != "" {
			call.Locations = append(call.Locations, location{Path: c.Path})
		}
	}
	var options []option
	for _, o := range q.Options {
		if risky && kinds[o.ID] == "" {
			continue // needs more than a choice
		}
		kind := "allow_once"
		if risky {
			kind = kinds[o.ID]
		}
		options = append(options, option{o.ID, cmp.Or(o.Label, o.ID), kind})
	}
	if !risky {
		options = append(options, option{dismissed, "No answer", "reject_once"})
	}
	var answer struct {
		Outcome struct {
			Outcome string `json:"outcome"`
			Option  string `json:"optionId"`
		} `json:"outcome"`
	}
	err := f.Conn.Call(ctx, "session/request_permission", struct {
		Session string   `json:"sessionId"`
		Call    update   `json:"toolCall"`
		Options []option `json:"options"`
	}{f.Session, call, options}, &answer)
	var refused *Error
	switch chosen := answer.Outcome; {
	case errors.As(err, &refused):
		return no(q, refused.Message, false), nil
	case err != nil:
		return uip.Response{}, err
	case chosen.Outcome != "selected":
		return no(q, "", true), nil
	case chosen.Option == dismissed && !risky:
		return no(q, "", false), nil
	default:
		return uip.Response{Option: chosen.Option, Via: via}, nil
	}
}

// no returns the answer that allows nothing.
func no(q uip.Request, why string, stop bool) uip.Response {
	if q.Purpose != uip.ConfirmRiskyAction {
		return uip.Response{Dismissed: true, Via: via}
	}
	return uip.Response{Option: uip.Reject, Comment: why, Stop: stop, Via: via}
}
