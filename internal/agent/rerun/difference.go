package rerun

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/core/event"
)

// Difference is the first thing that came out otherwise.
type Difference struct {
	Step      int    `json:"step"`   // replies of the model so far
	Record    uint64 `json:"record"` // the one on record
	What      string `json:"what"`   // request, reply, decision, question, result, files or course
	About     string `json:"about,omitempty"`
	Was       string `json:"was"`
	Is        string `json:"is"`
	Agreement int    `json:"agreed"` // how many records agreed before it
}

// differs takes note of the first difference and ends the rerun.
func (f *Follower) differs(want event.Record, what, was, is string) error {
	if f.diff == nil {
		f.diff = &Difference{Step: f.take.step(want.Seq), Record: want.Seq, What: what, About: about(want.Event), Was: was, Is: is, Agreement: f.agreed}
		f.cancel()
	}
	return errDiffers
}

// about names what a record is about.
func about(e event.Event) string {
	switch e := e.(type) {
	case event.ToolCallRequested:
		return e.Tool
	case event.ToolCallCompleted:
		return e.Tool
	}
	return ""
}

// kindOf says in a word what differs.
func kindOf(was, is event.Event, wasText, isText string) string {
	if nameOf(was) != nameOf(is) {
		return "course"
	}
	switch was := was.(type) {
	case event.MessageAdded:
		if isReply(was) {
			return "reply"
		}
		return "request"
	case event.ToolCallRequested:
		a, b := was.Verdict, is.(event.ToolCallRequested).Verdict
		if a != b || withoutFiles(wasText) != withoutFiles(isText) {
			return "decision"
		}
		return "files"
	case event.ToolCallCompleted:
		if withoutFiles(wasText) == withoutFiles(isText) {
			return "files"
		}
		return "result"
	case event.InteractionRequested, event.InteractionResponded:
		return "question"
	case event.ContextReplaced:
		return "request"
	}
	return "course"
}

// withoutFiles is what is told of a call but for the states of files.
func withoutFiles(text string) string {
	var b strings.Builder
	in := false
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, " ") {
			in = strings.HasPrefix(line, "files:") || strings.HasPrefix(line, "before:") || strings.HasPrefix(line, "saw:")
		}
		if !in {
			b.WriteString(line)
		}
	}
	return b.String()
}

// tell puts an event into words for comparing; closely, the contents of files
// have the same names on both sides.
func (f *Follower) tell(side Side, e event.Event, closely bool) string {
	if m, ok := e.(event.MessageAdded); ok && f.lesson == Settings && (m.Message.Role == chat.System || m.Message.Role == chat.User) {
		m.Reminders = ""
		if e = m; m.Message.Role == chat.System {
			e = event.MessageAdded{Message: chat.Say(chat.System, "")}
		}
	}
	files := func(s event.FileState) string { return nameFile(s, s.Hash) }
	expand := func(c event.FileChange) []event.FileChange { return []event.FileChange{c} }
	if closely && side.Kept != nil {
		files = func(s event.FileState) string { return nameFile(s, f.content(side, s)) }
		expand = func(c event.FileChange) []event.FileChange {
			if list, err := side.Kept.Expand(context.Background(), c); err == nil {
				return list
			}
			return []event.FileChange{c}
		}
	}
	if f.lesson == Settings {
		files = func(event.FileState) string { return "" }
	}
	return withoutKeys().Text(side.swap(told(e, files, expand)))
}

func nameFile(s event.FileState, hash string) string {
	switch {
	case s.Lost:
		return "(not kept)"
	case s.Hash == "":
		return "(none)"
	case s.Link != "":
		return "link to " + s.Link
	}
	return fmt.Sprintf("%s %04o", hash, s.Mode)
}

// content names what a file held, whatever name it was kept under, without what
// may differ.
func (f *Follower) content(side Side, s event.FileState) string {
	if name, ok := strings.CutPrefix(s.Hash, normalised); ok {
		return name
	}
	if !isFile(s) || s.Lost {
		return s.Hash
	}
	if name, ok := f.kept[s]; ok {
		return name
	}
	name := s.Hash
	if data, err := side.Kept.Content(context.Background(), s, maxFile); err == nil {
		if len(data) <= maxCompared && !bytes.ContainsRune(data, 0) {
			data = []byte(normal(side.swap(string(data))))
		}
		name = hash(data)
	}
	f.kept[s] = name
	return name
}

// swap puts what stands for paths in their place.
func (s Side) swap(text string) string {
	for from, to := range s.Paths {
		text = swap(text, from, to)
	}
	return text
}
