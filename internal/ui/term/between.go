package term

import (
	"strings"
	"time"
)

// Ahead is what will be in the stream and can be seen before.
type Ahead struct {
	// Begun is the beginning of a word of which it is not known where it ends.
	Begun string
	// Table is whole lines, the rows of a table so far: how wide its columns are is not
	// known before its end.
	Table string
	// Above is how many lines were put above the table since it began, which are to be read.
	Above int
	// Aside is whole lines that wait for the end of a paragraph: what came meanwhile and
	// must not tear it. Newest is the last of it.
	Aside, Newest string
}

// between has draw put something between the paragraphs of a reply: at once, or when the
// one that is arriving has ended. What cannot be shown whole before waits no longer than a
// moment.
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

// moment is how long an answer that is taller than the room for it waits for the end of the
// line that it would tear.
const moment = 2 * time.Second

// Settle puts what has waited for long enough.
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

// arriving reports whether a paragraph is, or a block of code: what is put now would
// tear it.
func (r *Renderer) arriving() bool {
	if p := &r.reply.text; p.shown {
		return !p.md.Between()
	}
	p := &r.reply.thought
	return p.shown && !(p.plain.wrote && p.plain.ends > 0)
}

// putIfBetween puts what waits, if no paragraph is arriving any more, or none that it may
// wait for.
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
