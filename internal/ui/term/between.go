package term

import "strings"

// Ahead is what will be in the stream and can be seen before.
type Ahead struct {
	// Begun is the beginning of a word of which it is not known where it ends.
	Begun string
	// Table is whole lines, the rows of a table so far: how wide its columns are is not
	// known before its end.
	Table string
	// Aside is whole lines that wait for the end of a paragraph: what came meanwhile and
	// must not tear it. Newest is the last of it.
	Aside, Newest string
}

// between has draw put something between the paragraphs of a reply: at once, or when the
// one that is arriving has ended, unless nothing shows all of it before.
func (r *Renderer) between(draw func()) {
	if !r.arriving() || r.o.AtOnce {
		draw()
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
	if r.o.Room != nil && strings.Count(r.aside, "\n") >= r.o.Room() {
		r.putLater()
	}
}

// arriving reports whether a paragraph is, or a block of code: what is put now would
// tear it.
func (r *Renderer) arriving() bool {
	if p := &r.reply.text; p.shown {
		return !p.md.Between()
	}
	p := &r.reply.thought
	return p.shown && !(p.plain.wrote && p.plain.ends > 0)
}

// putIfBetween puts what waits, if no paragraph is arriving any more.
func (r *Renderer) putIfBetween() {
	if len(r.later) > 0 && !r.arriving() {
		r.putLater()
	}
}

func (r *Renderer) putLater() {
	later := r.later
	r.later, r.aside, r.newest = nil, "", ""
	for _, draw := range later {
		draw()
	}
}
