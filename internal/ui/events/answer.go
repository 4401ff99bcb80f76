package events

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"coder/internal/core/uip"
)

// Questions are what q asks, in the form that programs know it in.
func Questions(q uip.Request) any { return questionsOf(q) }

// LeavesPlan reports whether q asks how to go on from a plan, and tells the plan.
func LeavesPlan(q uip.Request) (plan, path string, ok bool) {
	return planText(q), q.Display.Metadata["planFilePath"], leavesPlan(q)
}

// Answers is the answer to q that answers give to its questions, by their words.
func Answers(q uip.Request, answers map[string]string) uip.Response {
	a := uip.Response{ID: q.ID}
	if len(q.Parts) == 0 {
		one := answers[questionOf(q)]
		if len(answers) == 1 && one == "" { // there is but one question
			for _, only := range answers {
				one = only
			}
		}
		return choose(q, one)
	}
	for _, part := range q.Parts {
		a.Parts = append(a.Parts, choose(part, answers[questionOf(part)]))
	}
	return a
}

// choose is the answer to one question: the option of that label or id, or the
// words.
func choose(q uip.Request, answer string) uip.Response {
	for _, o := range q.Options {
		if strings.EqualFold(answer, o.Label) || strings.EqualFold(answer, labelOf(q, o)) || answer == o.ID {
			return uip.Response{ID: q.ID, Option: o.ID}
		}
	}
	return uip.Response{ID: q.ID, Input: answer, Dismissed: answer == ""}
}

// Reply is an answer in the words of Sema.
type Reply struct {
	Event string          `json:"event"`
	Data  json.RawMessage `json:"data"`
}

// errNotAsked reports an answer to something that is not open.
var errNotAsked = errors.New("no such question is open")

// Answer reads r as the answer to the question that is open, whose parts may be
// answered by one reply each, the first about the tool that it names. One that
// names another tool, or another question, is late and answers nothing. It reports
// whether q is wholly answered by now.
func (r Reply) Answer(q uip.Request, so *uip.Response) (whole bool, err error) {
	var data struct {
		Tool     string            `json:"toolName"`
		Selected string            `json:"selected"`
		Answers  map[string]string `json:"answers"`
	}
	if err := json.Unmarshal(r.Data, &data); err != nil {
		return false, fmt.Errorf("%s: its data cannot be read: %w", r.Event, err)
	}
	so.ID, so.Author = q.ID, "user"
	switch {
	case r.Event == "tool:permission:response" && q.Purpose == uip.ConfirmRiskyAction:
		i := slices.IndexFunc(partsOf(q), func(part uip.Request) bool {
			answered := slices.ContainsFunc(so.Parts, func(a uip.Response) bool { return a.ID == part.ID })
			tool := part.Display.Metadata["toolName"]
			return !answered && (data.Tool == "" || tool == "" || strings.EqualFold(data.Tool, tool))
		})
		switch {
		case i < 0:
			return false, fmt.Errorf("%s: no question about %s is open", r.Event, data.Tool)
		case len(q.Parts) == 0:
			*so = permitted(q, data.Selected)
			return true, nil
		}
		so.Parts = append(so.Parts, permitted(q.Parts[i], data.Selected))
		return len(so.Parts) == len(q.Parts), nil
	case r.Event == "plan:exit:response" && leavesPlan(q):
		*so = choose(q, cmp.Or(data.Selected, "keepPlanning"))
		return true, nil
	case r.Event == "ask:question:response" && q.Purpose != uip.ConfirmRiskyAction && !leavesPlan(q):
		if len(data.Answers) > 0 && !slices.ContainsFunc(partsOf(q), func(part uip.Request) bool { _, ok := data.Answers[questionOf(part)]; return ok }) {
			break
		}
		*so = Answers(q, data.Answers)
		return true, nil
	}
	return false, fmt.Errorf("%s: %w", r.Event, errNotAsked)
}

// permitted is Sema's word on a call: other words than its own are a no, and
// advice.
func permitted(q uip.Request, selected string) uip.Response {
	a := uip.Response{ID: q.ID, Option: uip.Reject}
	switch selected {
	case "agree":
		a.Option = uip.Approve
	case "allow":
		a.Option = uip.Approve
		for _, o := range q.Options {
			if o.ID == uip.Always {
				a.Option = uip.Always
			}
		}
	case "refuse":
		a.Stop = true
	default:
		a.Comment = selected
	}
	return a
}
