package events

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"coder/internal/core/message"
	"coder/internal/core/uip"
)

// Questions returns the questions of q in the programs' form.
func Questions(q uip.Request) any { return questionList(q) }

// PlanExit reports whether q asks to leave plan mode, and returns the plan.
func PlanExit(q uip.Request) (plan, path string, ok bool) {
	return planText(q), q.Display.Metadata["planFilePath"], isPlanExit(q)
}

// ParseAnswers converts answers, by the text of their question, to an answer to q.
func ParseAnswers(q uip.Request, answers map[string]string) uip.Response {
	a := uip.Response{ID: q.ID}
	if len(q.Parts) == 0 {
		one := answers[questionText(q)]
		if len(answers) == 1 && one == "" { // there is only one question
			for _, only := range answers {
				one = only
			}
		}
		return matchOption(q, one)
	}
	for _, part := range q.Parts {
		a.Parts = append(a.Parts, matchOption(part, answers[questionText(part)]))
	}
	return a
}

// matchOption returns the answer to one question: the option with that label or id, otherwise the text.
func matchOption(q uip.Request, answer string) uip.Response {
	for _, o := range q.Options {
		if strings.EqualFold(answer, o.Label) || strings.EqualFold(answer, shortLabel(q, o)) || answer == o.ID {
			return uip.Response{ID: q.ID, Option: o.ID}
		}
	}
	return uip.Response{ID: q.ID, Input: answer, Dismissed: answer == ""}
}

// SemaReply is an answer in Sema's form.
type SemaReply struct {
	Event string          `json:"event"`
	Data  json.RawMessage `json:"data"`
}

// errNotAsked reports an answer to a question that is not open.
var errNotAsked = errors.New("no such question is open")

// ParseAnswer reads r as an answer to the open question. Its parts may be answered by one reply each, the
// first about the tool that it names. A reply that names another tool or question is late and ignored.
// Answer reports whether q is completely answered.
func (r SemaReply) ParseAnswer(q uip.Request, so *uip.Response) (whole bool, err error) {
	var data struct {
		Tool     string            `json:"toolName"`
		Selected string            `json:"selected"`
		Answers  map[string]string `json:"answers"`
	}
	if err := json.Unmarshal(r.Data, &data); err != nil {
		return false, message.Errorf("%s: its data cannot be read: %w", r.Event, err)
	}
	so.ID, so.Author = q.ID, "user"
	switch {
	case r.Event == "tool:permission:response" && q.Purpose == uip.PurposeConfirmRiskyAction:
		i := slices.IndexFunc(questionParts(q), func(part uip.Request) bool {
			answered := slices.ContainsFunc(so.Parts, func(a uip.Response) bool { return a.ID == part.ID })
			tool := part.Display.Metadata["toolName"]
			return !answered && (data.Tool == "" || tool == "" || strings.EqualFold(data.Tool, tool))
		})
		switch {
		case i < 0:
			return false, message.Errorf("%s: no question about %s is open", r.Event, data.Tool)
		case len(q.Parts) == 0:
			*so = permissionAnswer(q, data.Selected)
			return true, nil
		}
		so.Parts = append(so.Parts, permissionAnswer(q.Parts[i], data.Selected))
		return len(so.Parts) == len(q.Parts), nil
	case r.Event == "plan:exit:response" && isPlanExit(q):
		*so = matchOption(q, cmp.Or(data.Selected, "keepPlanning"))
		return true, nil
	case r.Event == "ask:question:response" && q.Purpose != uip.PurposeConfirmRiskyAction && !isPlanExit(q):
		if len(data.Answers) > 0 && !slices.ContainsFunc(questionParts(q),
			func(part uip.Request) bool { _, ok := data.Answers[questionText(part)]; return ok }) {
			break
		}
		*so = ParseAnswers(q, data.Answers)
		return true, nil
	}
	return false, message.Errorf("%s: %w", r.Event, errNotAsked)
}

// permissionAnswer converts Sema's answer for a call: text other than its options is a refusal with advice.
func permissionAnswer(q uip.Request, selected string) uip.Response {
	a := uip.Response{ID: q.ID, Option: uip.OptionReject}
	switch selected {
	case "agree":
		a.Option = uip.OptionApprove
	case "allow":
		a.Option = uip.OptionApprove
		for _, o := range q.Options {
			if o.ID == uip.OptionAlways {
				a.Option = uip.OptionAlways
			}
		}
	case "refuse":
		a.Stop = true
	default:
		a.Comment = selected
	}
	return a
}
