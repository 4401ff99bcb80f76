package term

import (
	"slices"
	"strings"
	"time"

	"coder/internal/core/display"
	"coder/internal/core/sanitize"
	"coder/internal/ui/term/ink"
)

// Activity is the current activity, for the owner of the screen's bottom.
type Activity struct {
	Text  string        // in a few words; "" means nothing is
	Calls []RunningCall // running calls, in the order they began
	Todos display.Checklist
}

// TodoRows returns the list that the turn works on, an item a row, in at most most rows: from the last completed item
// before an open one.
func (d Activity) TodoRows(width, most int, o Options) []string {
	if len(d.Todos) == 0 || most < 2 {
		return nil
	}
	list := slices.Clone(d.Todos)
	if len(list) > most {
		open := slices.IndexFunc(list, func(c display.Check) bool { return c.State != display.StateCompleted })
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
			text = text[:ink.FitLen(text, room-1)] + "…"
		}
		list[i].Text = text
	}
	rows := strings.Split(strings.TrimSuffix(RenderText(display.Blocks{list}, 0, o), "\n"), "\n")
	if more > 1 {
		rows = append(rows, o.Palette.Paint(ink.Dim, o.Translator.T("%d more todos", more)))
	}
	return rows
}

// RunningCall is a running call.
type RunningCall struct {
	Name       string
	Count      string // number of lines printed, if any
	Since      time.Time
	Tail       []string // last lines of its output not in the stream
	Incomplete bool     // the last line is incomplete
}

// status is the current activity, reported on every change.
type status struct {
	show    func(Activity)
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

func (s *status) endCall(c *callView) {
	s.calls, s.changed = slices.DeleteFunc(s.calls, func(o *callView) bool { return o == c }), true
}

// reportActivity reports the activity if it has changed.
func (r *Renderer) reportActivity() {
	s := &r.status
	if s.show == nil || !s.changed {
		return
	}
	s.changed = false
	d := Activity{Text: s.text, Todos: s.todos}
	for _, c := range s.calls {
		name := c.plainName()
		count := ""
		if n := c.output.lines + c.output.skipped; n > 0 {
			count = r.linesText(n)
		}
		tail, open := c.recent.tail()
		if len(tail) == 0 && !c.task.showsOutput { // lines after the first ones, and an incomplete one, are not in the stream
			tail = slices.Clone(c.output.tail[max(0, len(c.output.tail)-maxNewestLines):])
			if open = c.output.partialLine != ""; open {
				tail = append(tail, sanitize.Mask(c.output.partialLine))
			}
		}
		d.Calls = append(d.Calls, RunningCall{Name: name, Count: count, Since: c.startTime, Tail: tail, Incomplete: open})
	}
	s.show(d)
}

// maxNewestLines is how many of those lines are shown for a model's call.
const maxNewestLines = 3

// maxRecentLines is how many lines of a running command's output are shown.
const maxRecentLines = 8

// recentOutput is the last lines of a text that arrives in pieces.
type recentOutput struct {
	lines       []string
	part        string
	overwritten string // the line that is being overwritten
}

// tail returns the lines, including an incomplete last one.
func (t *recentOutput) tail() (lines []string, open bool) {
	last := t.part
	if t.overwritten != "" {
		last = t.overwritten
	}
	if last == "" {
		return slices.Clone(t.lines), false
	}
	return append(slices.Clone(t.lines[max(0, len(t.lines)-maxRecentLines+1):]), sanitize.Mask(last)), true
}

func (t *recentOutput) write(text string) {
	t.overwritten = ""
	for text != "" {
		line, rest, ends := strings.Cut(text, "\n")
		if t.part += line; len(t.part) > maxLineBytes {
			t.part = t.part[:maxLineBytes]
		}
		if ends {
			t.lines = append(t.lines, sanitize.Mask(t.part))
			t.lines = t.lines[max(0, len(t.lines)-maxRecentLines):]
			t.part = ""
		}
		text = rest
	}
}
