// Package plain is the face of a run without a terminal: short lines about what
// the agent does, meant for standard error beside an answer on standard output.
// One line per tool call when it is over, per notice and per retry; no colours
// and no control characters, whatever the model or a tool may have written.
package plain

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"coder/internal/chat"
	"coder/internal/event"
	"coder/internal/textsafe"
)

// Options of a Renderer.
type Options struct {
	Verbose bool // also show thinking and live output
}

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
}

// stream is something that arrives in pieces: a task's thinking, a call's
// output.
type stream struct{ task, call string }

// New returns a Renderer that writes to w.
func New(w io.Writer, o Options) *Renderer {
	return &Renderer{o: o, w: w, streams: make(map[stream]*strings.Builder), tools: make(map[stream]string)}
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
	case event.ToolFinished:
		return r.flush(stream{rec.Task, e.CallID}) + finished(e)
	case event.MessageAdded:
		if r.o.Verbose {
			return r.details(rec) + said(e)
		}
		return said(e)
	case event.Notice:
		return notice(e.Text)
	case event.Retrying:
		delete(r.streams, stream{task: rec.Task}) // void
		return notice(retry(e))
	case event.Interrupted:
		return notice(or(e.Text, "interrupted"))
	}
	if r.o.Verbose {
		return r.details(rec)
	}
	return ""
}

// said is what the model says on the way to its answer: the text of a reply
// that goes on with calls.
func said(e event.MessageAdded) string {
	text := strings.TrimSpace(e.Message.Text())
	if e.Message.Role != chat.Assistant || text == "" || len(e.Message.Calls()) == 0 {
		return ""
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(textsafe.Line(line, noticeRunes) + "\n")
	}
	return b.String()
}

// finished is the one line about a call: tool, title, outcome, time.
func finished(e event.ToolFinished) string {
	line := "[tool] " + textsafe.Line(e.Tool, titleRunes)
	if title := textsafe.Line(e.Title, titleRunes); title != "" {
		line += " " + title
	}
	if what := outcome(e); what != "" {
		line += " — " + textsafe.Line(what, summaryRunes)
	}
	if !e.Denied {
		line += " (" + duration(e.Took) + ")"
	}
	return line + "\n"
}

func outcome(e event.ToolFinished) string {
	switch {
	case e.Denied:
		return refusal(or(e.Summary, complaint(e.Result)))
	case e.Failed && e.Summary == "":
		return strings.TrimSuffix("failed: "+complaint(e.Result), ": ")
	}
	return e.Summary
}

// refusal says once that a call was refused, however why begins.
func refusal(why string) string {
	why = strings.TrimPrefix(why, "denied: ")
	if why == "denied" {
		why = ""
	}
	if strings.HasPrefix(why, "refused") {
		return why
	}
	return strings.TrimSuffix("refused: "+why, ": ")
}

// complaint is the sentence in a failed result, or all of it if there is none.
func complaint(res chat.ToolResult) string {
	var r struct{ Error string }
	if json.Unmarshal([]byte(res.Text), &r) != nil || r.Error == "" {
		return res.Text
	}
	return r.Error
}

func notice(text string) string { return "coder: " + textsafe.Line(text, noticeRunes) + "\n" }

func retry(e event.Retrying) string {
	s := or(e.Why, "no reply") + "; trying again"
	if e.Wait > 0 {
		s += " in " + duration(e.Wait)
	}
	return s + fmt.Sprintf(" (attempt %d of %d)", e.Attempt, e.Of)
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// duration is d in words people read at a glance: 3 ms, 1.2 s, 2 min 5 s.
func duration(d time.Duration) string {
	switch {
	case d < time.Second-time.Millisecond/2:
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
	case d < time.Minute-50*time.Millisecond:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0") + " s"
	}
	d = d.Round(time.Second)
	return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
}
