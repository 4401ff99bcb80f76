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
	"coder/internal/core/message"
	"coder/internal/core/sanitize"
)

// Options configures a Renderer.
type Options struct {
	Verbose    bool       // also show thinking and live output
	Translator Translator // nil means English
}

// Translator translates sentences into the user's language.
type Translator interface {
	// T translates the renderer's own sentence; its English form is the key.
	T(format string, args ...any) string
	// TranslateText translates a sentence made elsewhere, such as a notice or a reason.
	TranslateText(text string) string
}

// english is the Words that translates nothing.
type english struct{}

func (english) T(format string, args ...any) string { return fmt.Sprintf(format, args...) }
func (english) TranslateText(text string) string    { return text }

// Lengths in runes at which a line's parts are cut.
const (
	titleRunes   = 80
	summaryRunes = 200
	noticeRunes  = 1000
)

// Renderer is an [event.Sink] that writes lines for the user. Use [New].
type Renderer struct {
	options Options

	mu           sync.Mutex // guards the fields below and the order of lines
	out          io.Writer
	streams      map[stream]*strings.Builder // the unfinished last line of each stream
	tools        map[stream]string           // the tool that writes the stream
	agents       map[string]string           // the agent of each subtask
	reportedWait time.Duration               // the last wait reported for a reply
}

// stream is text that arrives in pieces: a task's thinking or a call's output.
type stream struct{ task, call string }

// New returns a Renderer that writes to w.
func New(w io.Writer, o Options) *Renderer {
	if o.Translator == nil {
		o.Translator = english{}
	}
	return &Renderer{options: o, out: w, streams: make(map[stream]*strings.Builder), tools: make(map[stream]string),
		agents: make(map[string]string)}
}

// Emit writes the lines for r, if any, in one Write.
func (r *Renderer) Emit(_ context.Context, rec event.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := r.formatLines(rec)
	if text == "" {
		return nil
	}
	if _, err := io.WriteString(r.out, text); err != nil {
		return message.Errorf("write progress: %w", err)
	}
	return nil
}

func (r *Renderer) formatLines(rec event.Record) string {
	switch e := rec.Event.(type) {
	case event.TaskCreated:
		if e.ParentID != "" {
			r.agents[rec.Task] = display.UniqueName(e.AgentID, 1, func(name string) bool {
				return slices.Contains(slices.Collect(maps.Values(r.agents)), name)
			})
		}
	case event.TaskCompleted, event.TaskFailed, event.TaskCanceled:
		delete(r.agents, rec.Task)
	case event.ToolFinished:
		return r.flush(stream{rec.Task, e.CallID}) + r.callLine(rec, e)
	case event.MessageAdded:
		text := ""
		if r.options.Verbose {
			text = r.detailLines(rec)
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
		return noticeLine(r.options.Translator.TranslateText(e.Text))
	case event.Retrying:
		delete(r.streams, stream{task: rec.Task}) // withdrawn
		words := r.options.Translator
		why := cmp.Or(words.TranslateText(e.Reason), words.T("no reply"))
		if e.Wait > 0 {
			return noticeLine(words.T("%s; %s", why, words.T("retrying in %s (attempt %d of %d)", display.FormatDuration(e.Wait),
				e.Attempt, e.MaxAttempts)))
		}
		return noticeLine(words.T("%s; %s", why, words.T("retrying (attempt %d of %d)", e.Attempt, e.MaxAttempts)))
	case event.Waiting:
		return r.waitLine(e)
	case event.Interrupted:
		return noticeLine(cmp.Or(r.options.Translator.TranslateText(e.Text), r.options.Translator.T("interrupted")))
	}
	if r.options.Verbose {
		return r.detailLines(rec)
	}
	return ""
}

// reportInterval is how much longer a wait must last before it is reported again.
const reportInterval = 10 * time.Second

// waitLine returns the line about a wait for a reply, or "" if one was printed recently.
func (r *Renderer) waitLine(e event.Waiting) string {
	if e.Waited < r.reportedWait {
		r.reportedWait = 0 // another wait
	}
	again := e.Waited >= r.reportedWait+reportInterval
	if again {
		r.reportedWait = e.Waited
	}
	words, took := r.options.Translator, display.FormatDuration(e.Waited)
	switch {
	case e.Reason == event.WaitLimit:
		return noticeLine(words.T("waiting until %s, when the provider's limit resets",
			e.Until.Local().Format("2006-01-02 15:04:05")))
	case e.Reason == event.WaitLoading && e.Waited == 0:
		return noticeLine(words.T("the server is loading the model; waiting for it"))
	case !again:
		return ""
	case e.Reason == event.WaitLoading:
		return noticeLine(words.T("the server is still loading the model (%s)", took))
	case e.Reason == event.WaitSummary:
		return noticeLine(words.T("still summarizing the conversation (%s)", took))
	case e.TotalTokens > 0:
		return noticeLine(words.T("the model has read %d of %d tokens (%s)", e.ReadTokens, e.TotalTokens, took))
	}
	return noticeLine(words.T("still waiting for the model (%s)", took))
}

// callLine returns the line about a finished call: tool, title, outcome, time. A subagent's call begins
// with its name.
func (r *Renderer) callLine(rec event.Record, e event.ToolFinished) string {
	line := "[tool] "
	if agent := r.agents[rec.Task]; agent != "" {
		line += sanitize.Line(agent, titleRunes) + " > "
	}
	line += sanitize.Line(e.Tool, titleRunes)
	if title := sanitize.Reveal(sanitize.Line(sanitize.Mask(e.Title), titleRunes)); title != "" {
		line += " " + title
	}
	say := func(text string) string {
		return display.TranslateResult(e.Title, text, r.options.Translator.T(": "), r.options.Translator.TranslateText)
	}
	what, said := say(e.Summary), e.Result.ErrorText()
	switch {
	case e.Denied:
		what = r.refusalLine(cmp.Or(e.Summary, said))
	case e.Failed && e.Summary == "" && said == "":
		what = r.options.Translator.T("failed")
	case e.Failed && e.Summary == "":
		what = r.options.Translator.T("failed: %s", say(said))
	}
	if what != "" {
		line += r.options.Translator.T(" — %s", sanitize.Line(sanitize.Mask(what), summaryRunes))
	}
	if !e.Denied {
		line += " (" + display.FormatDuration(e.Duration) + ")"
	}
	if rec.Actor == event.ActorVerifier {
		line += " · " + r.options.Translator.T("automatic check")
	}
	return line + "\n"
}

// refusalLine says once that a call was refused, however why begins.
func (r *Renderer) refusalLine(why string) string {
	why = strings.TrimPrefix(why, "denied: ")
	switch {
	case why == "denied" || why == "":
		return r.options.Translator.T("refused")
	case strings.HasPrefix(why, "refused"):
		return r.options.Translator.TranslateText(why)
	}
	return r.options.Translator.T("refused: %s", r.options.Translator.TranslateText(why))
}

func noticeLine(text string) string {
	return "coder: " + sanitize.Line(sanitize.Mask(text), noticeRunes) + "\n"
}
