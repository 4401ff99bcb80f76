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

// The two ways out of plan mode, which are also the ids of their options.
const (
	startEditing = "startEditing"
	clearContext = "clearContextAndStart"
)

// requested tells a question by its purpose: leave for a call, the way out of
// plan mode, or anything else.
func (s *sema) requested(r event.Record, q uip.Request) error {
	s.asked[q.ID] = q
	switch {
	case q.Purpose == uip.ConfirmRiskyAction: // a card of several calls is that many questions
		for _, part := range partsOf(q) {
			if err := s.put("tool:permission:request", semaPermission{
				s.agent(r), s.toolOf(r, part), part.Display.Title, contentOf(part.Display.Content, part.Display.Description), permissionOptions(part),
			}); err != nil {
				return err
			}
		}
		return nil
	case leavesPlan(q):
		return s.put("plan:exit:request", semaPlanExit{s.agent(r), planOf(q), labels(q)})
	}
	ask := semaQuestions{Agent: s.agent(r), Questions: questionsOf(q), Metadata: q.Display.Metadata}
	return s.put("ask:question:request", ask)
}

func (s *sema) responded(r event.Record, a uip.Response) error {
	q, known := s.asked[a.ID]
	delete(s.asked, a.ID)
	switch {
	case len(q.Parts) > 0 && q.Purpose == uip.ConfirmRiskyAction:
		for _, part := range q.Parts {
			if err := s.put("tool:permission:response", semaPermitted{s.toolOf(r, part), selection(a.Part(part))}); err != nil {
				return err
			}
		}
		return nil
	case !known && semaOption[a.Option] == "":
		return nil // asked before this view was opened; it cannot say what about
	case !known, q.Purpose == uip.ConfirmRiskyAction:
		return s.put("tool:permission:response", semaPermitted{s.toolOf(r, q), selection(a)})
	case leavesPlan(q):
		if err := s.put("plan:exit:response", semaSelected{s.agent(r), a.Option}); err != nil || a.Option != clearContext {
			return err
		}
		return s.put("plan:implement", planOf(q))
	}
	return s.put("ask:question:response", semaAnswers{s.agent(r), answersOf(q, a)})
}

// partsOf are the parts of a question, or the question that has none.
func partsOf(q uip.Request) []uip.Request {
	if len(q.Parts) == 0 {
		return []uip.Request{q}
	}
	return q.Parts
}

type semaPermission struct {
	Agent   string            `json:"agentId"`
	Tool    string            `json:"toolName"`
	Title   string            `json:"title"`
	Content any               `json:"content"`
	Options map[string]string `json:"options"`
}

type semaPermitted struct {
	Tool     string `json:"toolName"`
	Selected string `json:"selected"`
}

// semaOption is Sema's word for an option of a [uip.Confirm] request.
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

// selection is the option chosen; a refusal with words is those words, which
// Sema reads as advice to the model.
func selection(a uip.Response) string {
	switch {
	case a.Option == uip.Reject && a.Comment != "":
		return a.Comment
	case semaOption[a.Option] != "":
		return semaOption[a.Option]
	}
	return a.Input
}

// toolOf is the tool that q asks about: the one that would run, whatever the model
// calls it.
func (s *sema) toolOf(r event.Record, q uip.Request) string {
	if c := s.calls[callKey{r.Task, q.CallID()}]; c != nil && q.Display.Metadata["toolName"] == "" {
		return c.name
	}
	return q.Display.Metadata["toolName"]
}

type semaPlan struct {
	Path    string `json:"planFilePath"`
	Content string `json:"planContent"`
}

type semaPlanExit struct {
	Agent string `json:"agentId"`
	semaPlan
	Options map[string]string `json:"options"`
}

type semaSelected struct {
	Agent    string `json:"agentId"`
	Selected string `json:"selected"`
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

func planOf(q uip.Request) semaPlan {
	text, _ := contentOf(q.Display.Content, q.Display.Description).(string)
	return semaPlan{q.Display.Metadata["planFilePath"], text}
}

type semaQuestions struct {
	Agent     string            `json:"agentId"`
	Questions any               `json:"questions"`
	Metadata  map[string]string `json:"metadata,omitempty"`
}

type semaQuestion struct {
	Question string       `json:"question"`
	Header   string       `json:"header"`
	Options  []semaChoice `json:"options"`
	Multi    bool         `json:"multiSelect"`
}

type semaChoice struct {
	Label       string `json:"label"`
	Description string `json:"description"`
}

type semaAnswers struct {
	Agent   string `json:"agentId"`
	Answers any    `json:"answers"`
}

// questionsOf lists what q asks: its parts, if it has any. A composite whose
// content is a JSON list carries its questions there.
func questionsOf(q uip.Request) any {
	if len(q.Parts) > 0 {
		var all []semaQuestion
		for _, part := range q.Parts {
			all = append(all, questionsOf(part).([]semaQuestion)...)
		}
		return all
	}
	if c, ok := q.Display.Content.(display.Code); ok && q.Kind == uip.Composite && startsWith(c.Source, '[') {
		return json.RawMessage(c.Source)
	}
	one := semaQuestion{Question: questionOf(q), Options: []semaChoice{}}
	if one.Header = q.Display.Metadata["header"]; one.Header == "" && q.Display.Description != "" {
		one.Header = q.Display.Title
	}
	for _, o := range q.Options {
		label := labelOf(q, o)
		_, about, _ := strings.Cut(strings.TrimPrefix(o.Label, label), " — ")
		one.Options = append(one.Options, semaChoice{Label: label, Description: about})
	}
	return []semaQuestion{one}
}

// labelOf is the label of an option, without what is said about it.
func labelOf(q uip.Request, o uip.Option) string {
	return cmp.Or(q.Display.Metadata["label"+o.ID], o.Label)
}

func questionOf(q uip.Request) string { return cmp.Or(q.Display.Description, q.Display.Title) }

// answersOf maps each question to its answer: the label chosen, or what was
// typed. The answers to a composite are typed as a JSON object.
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

// startsWith reports whether s is JSON that begins with c.
func startsWith(s string, c byte) bool {
	s = strings.TrimSpace(s)
	return s != "" && s[0] == c && json.Valid([]byte(s))
}
