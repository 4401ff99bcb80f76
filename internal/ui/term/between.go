package term

import (
	"strings"
	"time"
)

// PendingOutput is content that will be in the stream later and can be shown before.
type PendingOutput struct {
	// Word is the beginning of an unfinished word.
	Word string
	// Table is the rows of an unfinished table, as whole lines: the widths of its columns are not final.
	Table string
	// LinesAbove is the number of lines printed above the table since it began, which must stay visible.
	LinesAbove int
	// Waiting is whole lines that arrived meanwhile and wait for the end of a paragraph, so as not to split
	// it. Newest is the last item of it.
	Waiting, WaitingNewest string
}

// drawBetween calls draw between the paragraphs of a reply: now, or when the current one ends. Content that
// does not fit in the live block waits only for a moment.
func (r *Renderer) drawBetween(draw func()) {
	if !r.inParagraph() || r.options.ShowImmediately {
		before := r.page.lineCount()
		draw()
		r.linesAbove += r.page.lineCount() - before
		return
	}
	r.deferred = append(r.deferred, draw)
	stream, section, last, later := r.page, r.section, r.lastCall, r.deferred
	r.page, r.section, r.deferred = &page{palette: stream.palette}, sectionNone, nil
	var all strings.Builder
	for _, draw := range later {
		draw()
		r.newest = r.page.takeText()
		all.WriteString(r.newest)
	}
	r.waitingText, r.newest = strings.TrimRight(all.String(), "\n"), strings.Trim(r.newest, "\n")
	r.page, r.section, r.lastCall, r.deferred = stream, section, last, later
	switch {
	case r.options.Room == nil || strings.Count(r.waitingText, "\n") < r.options.Room():
	case r.options.Now == nil:
		r.drawDeferred()
	case r.breakDeadline.IsZero():
		r.breakDeadline = r.options.Now().Add(breakDelay)
	}
}

// breakDelay is how long an answer taller than its room waits for the end of the line that it would break.
const breakDelay = 2 * time.Second

// FlushOverdue prints what has waited long enough.
func (r *Renderer) FlushOverdue() error {
	r.mu.Lock()
	due := r.isOverdue()
	r.mu.Unlock()
	if !due {
		return nil
	}
	return r.write(func() {})
}

func (r *Renderer) isOverdue() bool {
	return !r.breakDeadline.IsZero() && !r.options.Now().Before(r.breakDeadline)
}

// inParagraph reports whether a paragraph or a block of code is arriving: text printed now would split it.
func (r *Renderer) inParagraph() bool {
	if p := &r.reply.text; p.titleShown {
		return !p.markdown.AtParagraphEnd()
	}
	p := &r.reply.thought
	return p.titleShown && !(p.plain.hasOutput && p.plain.pendingNewlines > 0)
}

// flushIfBetween prints what waits, if no paragraph that it may wait for is arriving.
func (r *Renderer) flushIfBetween() {
	if len(r.deferred) > 0 && (!r.inParagraph() || r.isOverdue()) {
		r.drawDeferred()
	}
}

func (r *Renderer) drawDeferred() {
	later := r.deferred
	r.deferred, r.waitingText, r.newest, r.breakDeadline = nil, "", "", time.Time{}
	for _, draw := range later {
		draw()
	}
}
