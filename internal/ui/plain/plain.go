// Package plain is the face of a run without a terminal: short lines about what
// the agent does, meant for standard error beside an answer on standard output.
// One line per tool call when it is over, per notice and per retry; no colours
// and no control characters, whatever the model or a tool may have written.
package plain

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/sanitize"
)

// Options of a Renderer.
type Options struct {
	Verbose bool  // also show thinking and live output
	Words   Words // nil: English
}

// Words puts sentences into the person's language.
type Words interface {
	// T is a sentence of the renderer's own; its English form is the key.
	T(format string, args ...any) string
	// Said is a sentence made elsewhere, such as a notice or a reason.
	Said(text string) string
}

// english is the Words that changes nothing.
type english struct{}

func (english) T(format string, args ...any) string { return fmt.Sprintf(format, args...) }
func (english) Said(text string) string             { return text }

// Lengths in runes beyond which a line's parts are cut.
const (
	titleRunes   = 80
	summaryRunes = 200
	noticeRunes  = 1000
)

// Renderer is an [event.Sink] that writes lines for people. Use [New].
type Renderer struct {
	o Options

	mu      sync.Mutex // guards the fields below and the order of lines
	w       io.Writer
	streams map[stream]*strings.Builder // the unfinished last line of each
	tools   map[stream]string           // the tool whose output it is
	agents  map[string]string           // who works on a subtask
	waited  time.Duration               // for a reply, when that was last told
}

// stream is something that arrives in pieces: a task's thinking, a call's
// output.
type stream struct{ task, call string }

// New returns a Renderer that writes to w.
func New(w io.Writer, o Options) *Renderer {
	if o.Words == nil {
		o.Words = english{}
	}
	return &Renderer{o: o, w: w, streams: make(map[stream]*strings.Builder), tools: make(map[stream]string), agents: make(map[string]string)}
}

// Emit writes the lines that r gives rise to, if any, in one Write.
func (r *Renderer) Emit(_ context.Context, rec event.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := r.lines(rec)
	if text == "" {
		return nil
	}
	if _, err := io.WriteString(r.w, text); err != nil {
		return fmt.Errorf("write progress: %w", err)
	}
	return nil
}

func (r *Renderer) lines(rec event.Record) string {
	switch e := rec.Event.(type) {
	case event.TaskCreated:
		if e.ParentID != "" {
			r.agents[rec.Task] = display.Apart(e.AgentID, 1, func(name string) bool {
				return slices.Contains(slices.Collect(maps.Values(r.agents)), name)
			})
		}
	case event.TaskCompleted, event.TaskFailed, event.TaskCanceled:
		delete(r.agents, rec.Task)
	case event.ToolFinished:
		return r.flush(stream{rec.Task, e.CallID}) + r.finished(rec, e)
	case event.MessageAdded:
		text := ""
		if r.o.Verbose {
			text = r.details(rec)
		}
		// What the model says on the way to its answer: the text of a reply that
		// goes on with calls. An agent of a subtask is told by its result.
		said := strings.TrimSpace(e.Message.Text())
		if r.agents[rec.Task] == "" && e.Message.Role == chat.Assistant && len(e.Message.Calls()) > 0 {
			for line := range strings.Lines(said) {
				text += sanitize.Line(line, noticeRunes) + "\n"
			}
		}
		return text
	case event.Notice:
		return notice(r.o.Words.Said(e.Text))
	case event.Retrying:
		delete(r.streams, stream{task: rec.Task}) // void
		words := r.o.Words
		why := cmp.Or(words.Said(e.Why), words.T("no reply"))
		if e.Wait > 0 {
			return notice(words.T("%s; %s", why, words.T("retrying in %s (attempt %d of %d)", display.Duration(e.Wait), e.Attempt, e.Of)))
		}
		return notice(words.T("%s; %s", why, words.T("retrying (attempt %d of %d)", e.Attempt, e.Of)))
	case event.Waiting:
		return r.waiting(e)
	case event.Interrupted:
		return notice(cmp.Or(r.o.Words.Said(e.Text), r.o.Words.T("interrupted")))
	}
	if r.o.Verbose {
		return r.details(rec)
	}
	return ""
}

// tellEvery is how much longer something is waited for until that is told again.
const tellEvery = 10 * time.Second

// waiting is the line about a reply that is waited for, told now and then.
func (r *Renderer) waiting(e event.Waiting) string {
	if e.Waited < r.waited {
		r.waited = 0 // another one
	}
	again := e.Waited >= r.waited+tellEvery
	if again {
		r.waited = e.Waited
	}
	words, took := r.o.Words, display.Duration(e.Waited)
	switch {
	case e.Why == event.WaitLimit:
		return notice(words.T("waiting until %s, when the provider's limit resets", e.Until.Local().Format("2006-01-02 15:04:05")))
	case e.Why == event.WaitLoading && e.Waited == 0:
		return notice(words.T("the server is loading the model; waiting for it"))
	case !again:
		return ""
	case e.Why == event.WaitLoading:
		return notice(words.T("the server is still loading the model (%s)", took))
	case e.Why == event.WaitSummary:
		return notice(words.T("still summarizing the conversation (%s)", took))
	case e.Of > 0:
		return notice(words.T("the model has read %d of %d tokens (%s)", e.Read, e.Of, took))
	}
	return notice(words.T("still waiting for the model (%s)", took))
}

// finished is the one line about a call: tool, title, outcome, time. A call of
// another agent begins with who that is.
func (r *Renderer) finished(rec event.Record, e event.ToolFinished) string {
	line := "[tool] "
	if agent := r.agents[rec.Task]; agent != "" {
		line += sanitize.Line(agent, titleRunes) + " > "
	}
	line += sanitize.Line(e.Tool, titleRunes)
	if title := sanitize.Reveal(sanitize.Line(sanitize.Mask(e.Title), titleRunes)); title != "" {
		line += " " + title
	}
	say := func(text string) string { return display.SayOf(e.Title, text, r.o.Words.T(": "), r.o.Words.Said) }
	what, said := say(e.Summary), e.Result.Complaint()
	switch {
	case e.Denied:
		what = r.refusal(cmp.Or(e.Summary, said))
	case e.Failed && e.Summary == "" && said == "":
		what = r.o.Words.T("failed")
	case e.Failed && e.Summary == "":
		what = r.o.Words.T("failed: %s", say(said))
	}
	if what != "" {
		line += r.o.Words.T(" — %s", sanitize.Line(sanitize.Mask(what), summaryRunes))
	}
	if !e.Denied {
		line += " (" + display.Duration(e.Took) + ")"
	}
	if rec.Actor == event.ActorVerifier {
		line += " · " + r.o.Words.T("automatic check")
	}
	return line + "\n"
}

// refusal says once that a call was refused, however why begins.
func (r *Renderer) refusal(why string) string {
	why = strings.TrimPrefix(why, "denied: ")
	switch {
	case why == "denied" || why == "":
		return r.o.Words.T("refused")
	case strings.HasPrefix(why, "refused"):
		return r.o.Words.Said(why)
	}
	return r.o.Words.T("refused: %s", r.o.Words.Said(why))
}

func notice(text string) string {
	return "coder: " + sanitize.Line(sanitize.Mask(text), noticeRunes) + "\n"
}
