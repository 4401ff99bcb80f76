package events

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/uip"
)

// The two ways to leave plan mode, which are also their option ids.
const (
	startEditing = "startEditing"
	clearContext = "clearContextAndStart"
)

// requested sends a question according to its purpose: leave for a call, the way out of plan mode, or
// any other.
func (s *sema) requested(r event.Record, q uip.Request) error {
	s.asked[q.ID] = q
	switch {
	case q.Purpose == uip.ConfirmRiskyAction: // a card of several calls becomes one question each
		for _, part := range partsOf(q) {
			if err := s.put("tool:permission:request", obj{
				"agentId", s.agent(r), "toolName", s.toolOf(r, part), "title", part.Display.Title,
				"content", contentOf(part.Display.Content, part.Display.Description), "options", permissionOptions(part),
			}); err != nil {
				return err
			}
		}
		return nil
	case leavesPlan(q):
		return s.put("plan:exit:request", append(append(obj{"agentId", s.agent(r)}, planOf(q)...), "options", labels(q)))
	}
	ask := obj{"agentId", s.agent(r), "questions", questionsOf(q)}
	return s.put("ask:question:request", ask.and(len(q.Display.Metadata) > 0, "metadata", q.Display.Metadata))
}

func (s *sema) responded(r event.Record, a uip.Response) error {
	q, known := s.asked[a.ID]
	delete(s.asked, a.ID)
	switch {
	case len(q.Parts) > 0 && q.Purpose == uip.ConfirmRiskyAction:
		for _, part := range q.Parts {
			if err := s.put("tool:permission:response", obj{"toolName", s.toolOf(r, part), "selected", selection(a.Part(part))}); err != nil {
				return err
			}
		}
		return nil
	case !known && semaOption[a.Option] == "":
		return nil // asked before this view opened, so its subject is unknown
	case !known, q.Purpose == uip.ConfirmRiskyAction:
		return s.put("tool:permission:response", obj{"toolName", s.toolOf(r, q), "selected", selection(a)})
	case leavesPlan(q):
		if err := s.put("plan:exit:response", obj{"agentId", s.agent(r), "selected", a.Option}); err != nil || a.Option != clearContext {
			return err
		}
		return s.put("plan:implement", planOf(q))
	}
	return s.put("ask:question:response", obj{"agentId", s.agent(r), "answers", answersOf(q, a)})
}

// partsOf returns the parts of a question, or the question itself if it has none.
func partsOf(q uip.Request) []uip.Request {
	if len(q.Parts) == 0 {
		return []uip.Request{q}
	}
	return q.Parts
}

// semaOption maps the options of a [uip.Confirm] request to Sema's words.
var semaOption = map[string]string{uip.Approve: "agree", uip.Always: "allow", uip.Reject: "refuse"}

func permissionOptions(q uip.Request) map[string]string {
	opts := make(map[string]string, len(q.Options))
	for _, o := range q.Options {
		if name, ok := semaOption[o.ID]; ok {
			opts[name] = o.Label
		}
	}
	return opts
}

// selection returns the chosen option; for a refusal with a comment, the comment, which Sema reads as
// advice to the model.
func selection(a uip.Response) string {
	switch {
	case a.Option == uip.Reject && a.Comment != "":
		return a.Comment
	case semaOption[a.Option] != "":
		return semaOption[a.Option]
	}
	return a.Input
}

// toolOf returns the tool that q asks about: the one that would run, whatever the model calls it.
func (s *sema) toolOf(r event.Record, q uip.Request) string {
	if c := s.calls[callKey{r.Task, q.CallID()}]; c != nil && q.Display.Metadata["toolName"] == "" {
		return c.name
	}
	return q.Display.Metadata["toolName"]
}

func leavesPlan(q uip.Request) bool {
	_, ok := labels(q)[startEditing]
	return ok && q.Purpose == uip.ChooseStrategy
}

func labels(q uip.Request) map[string]string {
	ls := make(map[string]string, len(q.Options))
	for _, o := range q.Options {
		ls[o.ID] = o.Label
	}
	return ls
}

func planOf(q uip.Request) obj {
	return obj{"planFilePath", q.Display.Metadata["planFilePath"], "planContent", planText(q)}
}

func planText(q uip.Request) string {
	text, _ := contentOf(q.Display.Content, q.Display.Description).(string)
	return text
}

// questionsOf lists the questions of q: its parts, if any. A composite whose content is a JSON list has
// its questions there.
func questionsOf(q uip.Request) any {
	if len(q.Parts) > 0 {
		var all []obj
		for _, part := range q.Parts {
			all = append(all, questionsOf(part).([]obj)...)
		}
		return all
	}
	if c, ok := q.Display.Content.(display.Code); ok && q.Kind == uip.Composite && startsWith(c.Source, '[') {
		return json.RawMessage(c.Source)
	}
	header := q.Display.Metadata["header"]
	if header == "" && q.Display.Description != "" {
		header = q.Display.Title
	}
	options := []obj{}
	for _, o := range q.Options {
		label := labelOf(q, o)
		_, about, _ := strings.Cut(strings.TrimPrefix(o.Label, label), " — ")
		options = append(options, obj{"label", label, "description", about})
	}
	return []obj{{"question", questionOf(q), "header", header, "options", options, "multiSelect", false}}
}

// labelOf returns an option's label without its description.
func labelOf(q uip.Request, o uip.Option) string {
	return cmp.Or(q.Display.Metadata["label"+o.ID], o.Label)
}

func questionOf(q uip.Request) string { return cmp.Or(q.Display.Description, q.Display.Title) }

// answersOf maps each question to its answer: the chosen label, or the typed text. The answers to a
// composite are typed as a JSON object.
func answersOf(q uip.Request, a uip.Response) any {
	if len(q.Parts) > 0 {
		all := make(map[string]string)
		for _, part := range q.Parts {
			maps.Copy(all, answersOf(part, a.Part(part)).(map[string]string))
		}
		return all
	}
	if q.Kind == uip.Composite && startsWith(a.Input, '{') {
		return json.RawMessage(a.Input)
	}
	answer := a.Input
	if i := slices.IndexFunc(q.Options, func(o uip.Option) bool { return o.ID == a.Option }); i >= 0 && answer == "" {
		answer = labelOf(q, q.Options[i])
	}
	return map[string]string{questionOf(q): answer}
}

// startsWith reports whether s is JSON that starts with c.
func startsWith(s string, c byte) bool {
	s = strings.TrimSpace(s)
	return s != "" && s[0] == c && json.Valid([]byte(s))
}
