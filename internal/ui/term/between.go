package term

import (
	"strings"
	"time"
)

// Ahead is content that will be in the stream later and can be shown before.
type Ahead struct {
	// Begun is the beginning of an unfinished word.
	Begun string
	// Table is the rows of an unfinished table, as whole lines: the widths of its columns are not final.
	Table string
	// Above is the number of lines printed above the table since it began, which must stay visible.
	Above int
	// Aside is whole lines that arrived meanwhile and wait for the end of a paragraph, so as not to split
	// it. Newest is the last item of it.
	Aside, Newest string
}

// between calls draw between the paragraphs of a reply: now, or when the current one ends. Content that
// does not fit in the live block waits only for a moment.
func (r *Renderer) between(draw func()) {
	if !r.arriving() || r.o.AtOnce {
		before := r.page.lines()
		draw()
		r.above += r.page.lines() - before
		return
	}
	r.later = append(r.later, draw)
	stream, section, last, later := r.page, r.section, r.last, r.later
	r.page, r.section, r.later = &page{palette: stream.palette}, nothing, nil
	var all strings.Builder
	for _, draw := range later {
		draw()
		r.newest = r.page.take()
		all.WriteString(r.newest)
	}
	r.aside, r.newest = strings.TrimRight(all.String(), "\n"), strings.Trim(r.newest, "\n")
	r.page, r.section, r.last, r.later = stream, section, last, later
	switch {
	case r.o.Room == nil || strings.Count(r.aside, "\n") < r.o.Room():
	case r.o.Now == nil:
		r.putLater()
	case r.tears.IsZero():
		r.tears = r.o.Now().Add(moment)
	}
}

// moment is how long an answer taller than its room waits for the end of the line that it would break.
const moment = 2 * time.Second

// Settle prints what has waited long enough.
func (r *Renderer) Settle() error {
	r.mu.Lock()
	due := r.overdue()
	r.mu.Unlock()
	if !due {
		return nil
	}
	return r.write(func() {})
}

func (r *Renderer) overdue() bool { return !r.tears.IsZero() && !r.o.Now().Before(r.tears) }

// arriving reports whether a paragraph or a block of code is arriving: text printed now would split it.
func (r *Renderer) arriving() bool {
	if p := &r.reply.text; p.shown {
		return !p.md.Between()
	}
	p := &r.reply.thought
	return p.shown && !(p.plain.wrote && p.plain.ends > 0)
}

// putIfBetween prints what waits, if no paragraph that it may wait for is arriving.
func (r *Renderer) putIfBetween() {
	if len(r.later) > 0 && (!r.arriving() || r.overdue()) {
		r.putLater()
	}
}

func (r *Renderer) putLater() {
	later := r.later
	r.later, r.aside, r.newest, r.tears = nil, "", "", time.Time{}
	for _, draw := range later {
		draw()
	}
}
