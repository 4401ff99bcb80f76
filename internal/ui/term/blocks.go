package term

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/ui/term/ink"
	"coder/internal/ui/term/syntax"
)

// block shows what a tool made for people to see. Diffs and tables are shown
// whole, text and code up to the bounds of an outputBox.
func (r *Renderer) block(b display.Block) {
	switch b := b.(type) {
	case display.Text:
		r.bounded(string(b))
	case display.Code:
		r.bounded(b.Source)
	case display.Diff:
		r.page.fresh()
		drawDiff(cleaned(b.Unified), r.page.put)
	case display.Table:
		r.page.fresh()
		drawTable(b, r.width(), r.o.ASCII, r.page.put)
	}
	r.page.fresh()
}

func (r *Renderer) bounded(text string) {
	box := outputBox{put: r.page.put}
	box.write(strings.TrimRight(cleaned(text), "\n"))
	box.end(r.leftOut)
}

// drawCode puts source, cleaned, line by line.
func drawCode(c display.Code, put ink.Put) {
	scan := syntax.For(c.Lang)
	for line := range strings.Lines(c.Source) {
		scan.Line(strings.TrimSuffix(line, "\n"), put)
		put(ink.Look{}, "\n")
	}
}

func drawTable(t display.Table, width int, ascii bool, put ink.Put) {
	g := ink.Grid{Head: cells(t.Head), ASCII: ascii}
	for _, row := range t.Rows {
		g.Rows = append(g.Rows, cells(row))
	}
	g.Draw(width, put)
}

func cells(texts []string) []ink.Cell {
	var row []ink.Cell
	for _, text := range texts {
		row = append(row, ink.Cell{{Text: oneLine(text, 0)}})
	}
	return row
}

// drawDiff puts a unified diff, cleaned, with each line in its colour.
func drawDiff(unified string, put ink.Put) {
	var h hunk
	for line := range strings.Lines(unified) {
		put(ink.Look{Role: h.role(line)}, line)
	}
}

// hunk knows how many lines of a hunk are still to come, so that a deleted
// line that looks like a file name is not taken for one.
type hunk struct{ before, after int }

var hunkHead = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@`) })

// begins reports whether line is the head of a hunk, and notes its length.
func (h *hunk) begins(line string) bool {
	m := hunkHead().FindStringSubmatch(line)
	if m == nil {
		return false
	}
	h.before, h.after = length(m[1]), length(m[2])
	return true
}

// length of a hunk; one left out is 1.
func length(s string) int {
	n, err := strconv.Atoi(s)
	if s == "" || err != nil {
		return 1
	}
	return n
}

func (h *hunk) inside() bool { return h.before > 0 || h.after > 0 }

// role is the colour of the next line of a diff.
func (h *hunk) role(line string) ink.Role {
	if !h.inside() {
		h.begins(line)
		return ink.Dim
	}
	switch line[0] {
	case '+':
		h.after--
		return ink.Good
	case '-':
		h.before--
		return ink.Bad
	case '\\':
		return ink.Dim
	}
	h.before, h.after = h.before-1, h.after-1
	return ink.Plain
}

// paint shows text of the program's own, in which todos and diffs have their
// colours. Lines are broken for width, if it is not 0; those of a diff are not.
func (r *Renderer) paint(text string, width int) {
	r.page.fresh()
	var h hunk
	for line := range strings.Lines(strings.TrimRight(cleaned(text), "\n")) {
		if role, ok := h.diffRole(line); ok {
			r.page.put(ink.Look{Role: role}, line)
			continue
		}
		role, line := r.ownLine(strings.TrimSuffix(line, "\n"))
		r.page.put(ink.Look{Role: role}, fold(line, width)+"\n")
	}
	r.page.fresh()
}

// diffRole is the colour of a line if it belongs to a diff.
func (h *hunk) diffRole(line string) (ink.Role, bool) {
	switch {
	case h.inside() && strings.ContainsAny(line[:1], "+- \\\t\n"):
		return h.role(line), true
	case h.begins(line), strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "diff --git "):
		return ink.Dim, true
	}
	*h = hunk{}
	return ink.Plain, false
}

// ownLine is a line as it can be shown, and its colour: that of the todo which
// it may be.
func (r *Renderer) ownLine(line string) (ink.Role, string) {
	text := strings.TrimLeft(line, " ")
	for _, s := range []event.TodoStatus{event.TodoCompleted, event.TodoInProgress, event.TodoPending} {
		for _, mark := range []string{todoMarks[s], todoASCII[s]} {
			if what, ok := strings.CutPrefix(text, mark+" "); ok {
				if r.o.ASCII {
					mark = todoASCII[s]
				}
				return todoInk[s], line[:len(line)-len(text)] + mark + " " + what
			}
		}
	}
	return ink.Plain, line
}
