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

// optionKinds maps the options for a call to the protocol's kinds.
var optionKinds = map[string]string{
	uip.OptionApprove: "allow_once", uip.OptionSession: "allow_always", uip.OptionAlwaysBelow: "allow_always",
	uip.OptionAlways: "allow_always", uip.OptionReject: "reject_once",
}

// dismissID is the id of the option that dismisses the question.
const dismissID = "dismiss"

// Interactor returns the Interactor that asks the user in the editor.
func (f *Sink) Interactor() uip.Interactor { return drive.NewInteractor(f.ask) }

// ask shows a question as the editor's permission request. A question with parts is asked part by part.
// A question that needs text is dismissed.
func (f *Sink) ask(ctx context.Context, q uip.Request) (uip.Response, error) {
	if len(q.Parts) == 0 {
		return f.selectOption(ctx, q)
	}
	all := uip.Response{AnsweredBy: answerSource}
	for _, part := range q.Parts {
		a, err := f.selectOption(ctx, part.BindToCall(cmp.Or(part.CallID(), q.CallID())))
		if err != nil {
			return all, err
		}
		if a.Dismissed {
			return uip.Response{Dismissed: true, AnsweredBy: answerSource}, nil
		}
		a.ID = part.ID
		all.Parts = append(all.Parts, a)
	}
	return all, nil
}

// answerSource names the editor in the records of its answers.
const answerSource = "acp"

func (f *Sink) selectOption(ctx context.Context, q uip.Request) (uip.Response, error) {
	risky := q.Purpose == uip.PurposeConfirmRiskyAction
	if len(q.Options) == 0 {
		return uip.Response{Dismissed: true, Comment: "the editor cannot ask for text", AnsweredBy: answerSource}, nil
	}
	call := update{
		CallID: q.CallID(), Title: q.Display.Title, ToolKind: cmp.Or(toolKinds[tool.ClassOf(q.Display.Metadata["toolName"])],
			"other"), Status: "pending", RawInput: rawJSON(q.Args),
	}
	shows := f.blockContents(q.Display.Content)
	if q.Display.Description != "" {
		shows = append(shows, textContent(q.Display.Description))
	}
	call.Content = shows
	for _, c := range shows {
		if c.Path != "" {
			call.Locations = append(call.Locations, location{Path: c.Path})
		}
	}
	var options []option
	for _, o := range q.Options {
		if risky && optionKinds[o.ID] == "" {
			continue // needs more than a choice
		}
		kind := "allow_once"
		if risky {
			kind = optionKinds[o.ID]
		}
		options = append(options, option{o.ID, cmp.Or(o.Label, o.ID), kind})
	}
	if !risky {
		options = append(options, option{dismissID, "No answer", "reject_once"})
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
		return rejection(q, refused.Message, false), nil
	case err != nil:
		return uip.Response{}, err
	case chosen.Outcome != "selected":
		return rejection(q, "", true), nil
	case chosen.Option == dismissID && !risky:
		return rejection(q, "", false), nil
	default:
		return uip.Response{Option: chosen.Option, AnsweredBy: answerSource}, nil
	}
}

// rejection returns the answer that allows nothing.
func rejection(q uip.Request, why string, stop bool) uip.Response {
	if q.Purpose != uip.PurposeConfirmRiskyAction {
		return uip.Response{Dismissed: true, AnsweredBy: answerSource}
	}
	return uip.Response{Option: uip.OptionReject, Comment: why, Stop: stop, AnsweredBy: answerSource}
}
