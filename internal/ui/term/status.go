package term

import (
	"slices"
	"strings"
	"time"

	"coder/internal/core/display"
	"coder/internal/core/sanitize"
	"coder/internal/ui/term/ink"
)

// Doing is the current activity, for the owner of the screen's bottom.
type Doing struct {
	What  string    // in a few words; "" means nothing is
	Calls []Running // running calls, in the order they began
	Todos display.Checklist
}

// TodoRows returns the list that the turn works on, an item a row, in at most most rows: from the last completed item
// before an open one.
func (d Doing) TodoRows(width, most int, o Options) []string {
	if len(d.Todos) == 0 || most < 2 {
		return nil
	}
	list := slices.Clone(d.Todos)
	if len(list) > most {
		open := slices.IndexFunc(list, func(c display.Check) bool { return c.State != display.Completed })
		list = list[min(max(open-1, 0), len(list)-most+1):]
	}
	more := len(list) - most + 1
	if more > 1 {
		list = list[:most-1]
	}
	room := width - ink.Width("☐ ") - 1
	if o.ASCII {
		room = width - ink.Width("[ ] ") - 1
	}
	for i := range list {
		text := oneLine(list[i].Text, titleRunes)
		if ink.Width(text) > room {
			text = text[:ink.Fit(text, room-1)] + "…"
		}
		list[i].Text = text
	}
	rows := strings.Split(strings.TrimSuffix(Text(display.Blocks{list}, 0, o), "\n"), "\n")
	if more > 1 {
		rows = append(rows, o.Palette.Paint(ink.Dim, o.Words.T("%d more todos", more)))
	}
	return rows
}

// Running is a running call.
type Running struct {
	Name  string
	Count string // number of lines printed, if any
	Since time.Time
	Tail  []string // last lines of its output not in the stream
	Open  bool     // the last line is incomplete
}

// status is the current activity, reported on every change.
type status struct {
	show    func(Doing)
	text    string
	calls   []*callView // running calls
	todos   display.Checklist
	changed bool
}

func (s *status) set(text string) {
	s.changed = s.changed || text != s.text
	s.text = text
}

func (s *status) pin(list display.Checklist) {
	s.changed = s.changed || !slices.Equal(list, s.todos)
	s.todos = list
}

func (s *status) end(c *callView) {
	s.calls, s.changed = slices.DeleteFunc(s.calls, func(o *callView) bool { return o == c }), true
}

// tell reports the activity if it has changed.
func (r *Renderer) tell() {
	s := &r.status
	if s.show == nil || !s.changed {
		return
	}
	s.changed = false
	d := Doing{What: s.text, Todos: s.todos}
	for _, c := range s.calls {
		name := c.plainName()
		count := ""
		if n := c.output.lines + c.output.skipped; n > 0 {
			count = r.lines(n)
		}
		tail, open := c.recent.tail()
		if len(tail) == 0 && !c.task.live { // lines after the first ones, and an incomplete one, are not in the stream
			tail = slices.Clone(c.output.tail[max(0, len(c.output.tail)-newestLines):])
			if open = c.output.part != ""; open {
				tail = append(tail, sanitize.Mask(c.output.part))
			}
		}
		d.Calls = append(d.Calls, Running{Name: name, Count: count, Since: c.since, Tail: tail, Open: open})
	}
	s.show(d)
}

// newestLines is how many of those lines are shown for a model's call.
const newestLines = 3

// recentLines is how many lines of a running command's output are shown.
const recentLines = 8

// recent is the last lines of a text that arrives in pieces.
type recent struct {
	lines []string
	part  string
	drawn string // the line that is being overwritten
}

// tail returns the lines, including an incomplete last one.
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
