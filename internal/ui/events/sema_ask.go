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

// sendQuestion sends a question according to its purpose: leave for a call, the way out of plan mode, or
// any other.
func (s *sema) sendQuestion(r event.Record, q uip.Request) error {
	s.openQuestions[q.ID] = q
	switch {
	case q.Purpose == uip.PurposeConfirmRiskyAction: // a card of several calls becomes one question each
		for _, part := range questionParts(q) {
			if err := s.send("tool:permission:request", jsonObject{
				"agentId", s.agentID(r), "toolName", s.questionTool(r, part), "title", part.Display.Title,
				"content", semaContent(part.Display.Content, part.Display.Description), "options", permissionOptions(part),
			}); err != nil {
				return err
			}
		}
		return nil
	case isPlanExit(q):
		return s.send("plan:exit:request", append(append(jsonObject{"agentId", s.agentID(r)}, planObject(q)...), "options",
			optionLabels(q)))
	}
	ask := jsonObject{"agentId", s.agentID(r), "questions", questionList(q)}
	return s.send("ask:question:request", ask.withIf(len(q.Display.Metadata) > 0, "metadata", q.Display.Metadata))
}

func (s *sema) sendAnswer(r event.Record, a uip.Response) error {
	q, known := s.openQuestions[a.ID]
	delete(s.openQuestions, a.ID)
	switch {
	case len(q.Parts) > 0 && q.Purpose == uip.PurposeConfirmRiskyAction:
		for _, part := range q.Parts {
			if err := s.send("tool:permission:response", jsonObject{"toolName", s.questionTool(r, part), "selected",
				selection(a.PartAnswer(part))}); err != nil {
				return err
			}
		}
		return nil
	case !known && semaOptions[a.Option] == "":
		return nil // asked before this view opened, so its subject is unknown
	case !known, q.Purpose == uip.PurposeConfirmRiskyAction:
		return s.send("tool:permission:response", jsonObject{"toolName", s.questionTool(r, q), "selected", selection(a)})
	case isPlanExit(q):
		if err := s.send("plan:exit:response", jsonObject{"agentId", s.agentID(r), "selected", a.Option}); err != nil ||
			a.Option != clearContext {
			return err
		}
		return s.send("plan:implement", planObject(q))
	}
	return s.send("ask:question:response", jsonObject{"agentId", s.agentID(r), "answers", answerMap(q, a)})
}

// questionParts returns the parts of a question, or the question itself if it has none.
func questionParts(q uip.Request) []uip.Request {
	if len(q.Parts) == 0 {
		return []uip.Request{q}
	}
	return q.Parts
}

// semaOptions maps the options of a [uip.KindConfirm] request to Sema's words.
var semaOptions = map[string]string{uip.OptionApprove: "agree", uip.OptionAlways: "allow", uip.OptionReject: "refuse"}

func permissionOptions(q uip.Request) map[string]string {
	opts := make(map[string]string, len(q.Options))
	for _, o := range q.Options {
		if name, ok := semaOptions[o.ID]; ok {
			opts[name] = o.Label
		}
	}
	return opts
}

// selection returns the chosen option; for a refusal with a comment, the comment, which Sema reads as
// advice to the model.
func selection(a uip.Response) string {
	switch {
	case a.Option == uip.OptionReject && a.Comment != "":
		return a.Comment
	case semaOptions[a.Option] != "":
		return semaOptions[a.Option]
	}
	return a.Input
}

// questionTool returns the tool that q asks about: the one that would run, whatever the model calls it.
func (s *sema) questionTool(r event.Record, q uip.Request) string {
	if c := s.calls[callKey{r.Task, q.CallID()}]; c != nil && q.Display.Metadata["toolName"] == "" {
		return c.name
	}
	return q.Display.Metadata["toolName"]
}

func isPlanExit(q uip.Request) bool {
	_, ok := optionLabels(q)[startEditing]
	return ok && q.Purpose == uip.PurposeChooseStrategy
}

func optionLabels(q uip.Request) map[string]string {
	ls := make(map[string]string, len(q.Options))
	for _, o := range q.Options {
		ls[o.ID] = o.Label
	}
	return ls
}

func planObject(q uip.Request) jsonObject {
	return jsonObject{"planFilePath", q.Display.Metadata["planFilePath"], "planContent", planText(q)}
}

func planText(q uip.Request) string {
	text, _ := semaContent(q.Display.Content, q.Display.Description).(string)
	return text
}

// questionList lists the questions of q: its parts, if any. A composite whose content is a JSON list has
// its questions there.
func questionList(q uip.Request) any {
	if len(q.Parts) > 0 {
		var all []jsonObject
		for _, part := range q.Parts {
			all = append(all, questionList(part).([]jsonObject)...)
		}
		return all
	}
	if c, ok := q.Display.Content.(display.Code); ok && q.Kind == uip.KindComposite && startsWithByte(c.Source, '[') {
		return json.RawMessage(c.Source)
	}
	header := q.Display.Metadata["header"]
	if header == "" && q.Display.Description != "" {
		header = q.Display.Title
	}
	options := []jsonObject{}
	for _, o := range q.Options {
		label := shortLabel(q, o)
		_, about, _ := strings.Cut(strings.TrimPrefix(o.Label, label), " — ")
		options = append(options, jsonObject{"label", label, "description", about})
	}
	return []jsonObject{{"question", questionText(q), "header", header, "options", options, "multiSelect", false}}
}

// shortLabel returns an option's label without its description.
func shortLabel(q uip.Request, o uip.Option) string {
	return cmp.Or(q.Display.Metadata["label"+o.ID], o.Label)
}

func questionText(q uip.Request) string { return cmp.Or(q.Display.Description, q.Display.Title) }

// answerMap maps each question to its answer: the chosen label, or the typed text. The answers to a
// composite are typed as a JSON object.
func answerMap(q uip.Request, a uip.Response) any {
	if len(q.Parts) > 0 {
		all := make(map[string]string)
		for _, part := range q.Parts {
			maps.Copy(all, answerMap(part, a.PartAnswer(part)).(map[string]string))
		}
		return all
	}
	if q.Kind == uip.KindComposite && startsWithByte(a.Input, '{') {
		return json.RawMessage(a.Input)
	}
	answer := a.Input
	if i := slices.IndexFunc(q.Options, func(o uip.Option) bool { return o.ID == a.Option }); i >= 0 && answer == "" {
		answer = shortLabel(q, q.Options[i])
	}
	return map[string]string{questionText(q): answer}
}

// startsWithByte reports whether s is JSON that starts with c.
func startsWithByte(s string, c byte) bool {
	s = strings.TrimSpace(s)
	return s != "" && s[0] == c && json.Valid([]byte(s))
}
