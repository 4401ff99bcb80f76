package term

import (
	"slices"
	"strings"
	"time"

	"coder/internal/core/sanitize"
)

// Doing is what is going on right now, for whoever owns the bottom of the screen.
type Doing struct {
	What  string    // in a few words; "" means nothing is
	Calls []Running // the calls that run, in the order they began
}

// Running is a call that runs.
type Running struct {
	Name  string
	Count string // of the lines that it printed, if it did
	Since time.Time
	Tail  []string // the last lines of its output, where that is not in the stream
	Open  bool     // the last of them has not ended
}

// status is told when what is going on changes.
type status struct {
	show    func(Doing)
	text    string
	calls   []*callView // that run
	changed bool
}

func (s *status) set(text string) {
	s.changed = s.changed || text != s.text
	s.text = text
}

func (s *status) end(c *callView) {
	s.calls, s.changed = slices.DeleteFunc(s.calls, func(o *callView) bool { return o == c }), true
}

// tell shows what is going on if it has changed.
func (r *Renderer) tell() {
	s := &r.status
	if s.show == nil || !s.changed {
		return
	}
	s.changed = false
	d := Doing{What: s.text}
	for _, c := range s.calls {
		name := c.plainName()
		count := ""
		if n := c.output.lines + c.output.skipped; n > 0 {
			count = r.lines(n)
		}
		tail, open := c.recent.tail()
		if len(tail) == 0 && !c.task.live { // lines after the first ones, and one that has not ended, are not in the stream
			tail = slices.Clone(c.output.tail[max(0, len(c.output.tail)-newestLines):])
			if open = c.output.part != ""; open {
				tail = append(tail, sanitize.Mask(c.output.part))
			}
		}
		d.Calls = append(d.Calls, Running{Name: name, Count: count, Since: c.since, Tail: tail, Open: open})
	}
	s.show(d)
}

// newestLines is how much of that is seen of a call of the model's.
const newestLines = 3

// recentLines is how much of a command's output is seen while it runs.
const recentLines = 8

// recent is the last lines of a text that arrives in pieces.
type recent struct {
	lines []string
	part  string
	drawn string // the line being drawn over
}

// tail are the lines, and what there is of one that has not ended.
func (t *recent) tail() (lines []string, open bool) {
	last := t.part
	if t.drawn != "" {
		last = t.drawn
	}
	if last == "" {
		return slices.Clone(t.lines), false
	}
	return append(slices.Clone(t.lines[max(0, len(t.lines)-recentLines+1):]), sanitize.Mask(last)), true
}

func (t *recent) write(text string) {
	t.drawn = ""
	for text != "" {
		line, rest, ends := strings.Cut(text, "\n")
		if t.part += line; len(t.part) > lineBytes {
			t.part = t.part[:lineBytes]
		}
		if ends {
			t.lines = append(t.lines, sanitize.Mask(t.part))
			t.lines = t.lines[max(0, len(t.lines)-recentLines):]
			t.part = ""
		}
		text = rest
	}
}
