// Package plain is the face of a non-interactive run: short lines about the agent's work on standard
// error, beside the answer on standard output. It prints one line per finished tool call, notice and
// retry, without colors or control characters, whatever the model or a tool wrote.
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

// Options configures a Renderer.
type Options struct {
	Verbose bool  // also show thinking and live output
	Words   Words // nil means English
}

// Words translates sentences into the user's language.
type Words interface {
	// T translates the renderer's own sentence; its English form is the key.
	T(format string, args ...any) string
	// Said translates a sentence made elsewhere, such as a notice or a reason.
	Said(text string) string
}

// english is the Words that translates nothing.
type english struct{}

func (english) T(format string, args ...any) string { return fmt.Sprintf(format, args...) }
func (english) Said(text string) string             { return text }

// Lengths in runes at which a line's parts are cut.
const (
	titleRunes   = 80
	summaryRunes = 200
	noticeRunes  = 1000
)

// Renderer is an [event.Sink] that writes lines for the user. Use [New].
type Renderer struct {
	o Options

	mu      sync.Mutex // guards the fields below and the order of lines
	w       io.Writer
	streams map[stream]*strings.Builder // the unfinished last line of each stream
	tools   map[stream]string           // the tool that writes the stream
	agents  map[string]string           // the agent of each subtask
	waited  time.Duration               // the last wait reported for a reply
}

// stream is text that arrives in pieces: a task's thinking or a call's output.
type stream struct{ task, call string }

// New returns a Renderer that writes to w.
func New(w io.Writer, o Options) *Renderer {
	if o.Words == nil {
		o.Words = english{}
	}
	return &Renderer{o: o, w: w, streams: make(map[stream]*strings.Builder), tools: make(map[stream]string), agents: make(map[string]string)}
}

// Emit writes the lines for r, if any, in one Write.
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
		// The text of a reply with calls comes before the answer. A subagent reports in its result.
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
		delete(r.streams, stream{task: rec.Task}) // withdrawn
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

// tellEvery is how much longer a wait must last before it is reported again.
const tellEvery = 10 * time.Second

// waiting returns the line about a wait for a reply, or "" if one was printed recently.
func (r *Renderer) waiting(e event.Waiting) string {
	if e.Waited < r.waited {
		r.waited = 0 // another wait
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

// finished returns the line about a finished call: tool, title, outcome, time. A subagent's call begins
// with its name.
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
