//go:build unix

package tty

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"coder/internal/ui/cells"

	"pgregory.net/rapid"
)

// reflowing is a terminal without end that wraps its lines anew when its width
// changes, and keeps the cursor on the cell it was on. Lines are as they were
// ended by the program; rows are what they wrap into.
type reflowing struct {
	fail  func(format string, args ...any)
	cols  int
	lines [][]cell
	line  int  // of the cursor
	at    int  // the cell of the line the cursor is on
	next  bool // see resize
}

// cell is a cluster with its width; the second half of a wide one is empty.
type cell struct {
	s string
	w int
}

func (r *reflowing) size() (cols, rows int) { return r.cols, 1000 }

// starts are the cells at which the rows of a line start.
func (r *reflowing) starts(line int) []int {
	starts, used := []int{0}, 0
	for i, c := range r.lines[line] {
		if c.s == "" {
			continue
		}
		if used+c.w > r.cols && used > 0 {
			starts, used = append(starts, i), 0
		}
		used += c.w
	}
	return starts
}

// resize changes the width. Terminals differ on a cursor that is then behind a
// row that is exactly full: it stays there, or goes to a row of its own.
func (r *reflowing) resize(cols int) {
	r.cols = cols
	starts := r.starts(r.line)
	line := r.lines[r.line]
	if last := starts[len(starts)-1]; r.next && r.at == len(line) && len(line)-last == cols {
		r.lines[r.line] = append(line, cell{" ", 1})
	}
}

// row is which row of its line the cursor is in, and the column there.
func (r *reflowing) row() (row, col int) {
	starts := r.starts(r.line)
	for row < len(starts)-1 && starts[row+1] <= r.at {
		row++
	}
	return row, r.at - starts[row]
}

func (r *reflowing) up() bool {
	row, col := r.row()
	if row == 0 && r.line == 0 {
		return false
	}
	if row == 0 {
		r.line--
		row = len(r.starts(r.line))
	}
	r.at = r.starts(r.line)[row-1] + col
	return true
}

func (r *reflowing) down() {
	row, col := r.row()
	if starts := r.starts(r.line); row+1 < len(starts) {
		r.at = starts[row+1] + col
		return
	}
	r.line++
	if r.line == len(r.lines) {
		r.lines = append(r.lines, nil)
	}
	r.at = col
}

func (r *reflowing) home() { _, col := r.row(); r.at -= col }

func (r *reflowing) put(s string, w int) {
	line := r.lines[r.line]
	for len(line) < r.at+w {
		line = append(line, cell{" ", 1})
	}
	line[r.at] = cell{s, w}
	for i := 1; i < w; i++ {
		line[r.at+i] = cell{}
	}
	r.lines[r.line] = line
	r.at += w
}

func (r *reflowing) eraseRow() {
	starts := r.starts(r.line)
	row, _ := r.row()
	if row+1 < len(starts) && starts[row+1] < len(r.lines[r.line]) {
		r.fail("erased a part of a line that wraps")
	}
	r.truncate()
}

func (r *reflowing) truncate() {
	r.lines[r.line] = r.lines[r.line][:min(r.at, len(r.lines[r.line]))]
}

func (r *reflowing) Write(p []byte) (int, error) {
	for s := string(p); s != ""; {
		n := 1
		switch s[0] {
		case '\r':
			r.home()
		case '\n':
			r.down()
		case esc:
			n = cells.EscapeLen(s)
			r.obey(s[:n])
		default:
			cluster, w := cells.NextCluster(s)
			n = len(cluster)
			r.put(cluster, w)
		}
		s = s[n:]
	}
	return len(p), nil
}

func (r *reflowing) obey(seq string) {
	n, _ := strconv.Atoi(strings.Trim(seq, "\x1b[ABCJKmhl?"))
	switch seq[len(seq)-1] {
	case 'A':
		for range n {
			if !r.up() {
				r.fail("up beyond the first line")
			}
		}
	case 'C':
		r.at += n
	case 'K':
		r.eraseRow()
	case 'J':
		r.truncate()
		r.lines = r.lines[:r.line+1]
	}
}

func (r *reflowing) text() (lines []string) {
	for _, l := range r.lines {
		var b strings.Builder
		for _, c := range l {
			b.WriteString(c.s)
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return trimmed(lines)
}

func trimmed(lines []string) []string {
	lines = slices.Clone(lines)
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// wrap is what an editor would make of a text at a width.
func wrap(text string, cols int) (rows []string) {
	row, used := "", 0
	for text != "" {
		cluster, w := cells.NextCluster(text)
		text = text[len(cluster):]
		if used+w > cols {
			rows, row, used = append(rows, row), "", 0
		}
		row, used = row+cluster, used+w
	}
	return append(rows, row)
}

// However the width changes while a block stands, nothing that was printed is
// touched, and nothing of an older block is left.
func TestResizingTakesNothingAway(t *testing.T) {
	drafts := []string{"> ", "> hello", "[build] /some/where> a draft 你好 that is long enough to wrap", "你好你好你好你好", "> 👩‍👩‍👧👩‍👩‍👧👩‍👩‍👧"}
	rapid.Check(t, func(t *rapid.T) {
		r := &reflowing{fail: t.Fatalf, cols: rapid.IntRange(2, 40).Draw(t, "cols"), lines: make([][]cell, 1)}
		r.next = rapid.Bool().Draw(t, "next")
		s := NewScreen(r, r.size, ScreenOptions{})
		var lines, block []string
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "do") {
			case 0:
				line := rapid.SampledFrom([]string{"printed", "", "a long printed line that wraps, 你好"}).Draw(t, "line")
				lines = append(lines, line)
				s.Print(line + "\n")
			case 1:
				r.resize(rapid.IntRange(2, 40).Draw(t, "cols"))
				continue // the program has not noticed yet
			default:
				draft := rapid.SampledFrom(drafts).Draw(t, "draft")
				block = append(wrap("context: 1 tokens", r.cols), wrap(draft, r.cols)...)
				row := rapid.IntRange(0, len(block)-1).Draw(t, "row")
				col := min(r.cols-1, rapid.IntRange(0, cells.Width(block[row])).Draw(t, "col"))
				s.SetLive(block, row, col)
			}
			checkReflowed(t, r, lines, block)
		}
	})
}

func checkReflowed(t *rapid.T, r *reflowing, lines, block []string) {
	t.Helper()
	got := r.text()
	for i, line := range trimmed(lines) {
		if !r.next && (i >= len(got) || got[i] != line) {
			t.Fatalf("printed %q, on the terminal %q", lines, got)
		}
	}
	var cut []string
	for _, row := range block {
		row, _ = cells.Truncate(row, r.cols)
		cut = append(cut, row)
	}
	if want := trimmed(append(slices.Clone(lines), cut...)); !r.next && !slices.Equal(got, want) {
		t.Fatalf("shown %q, want %q", got, want)
	}
	if !contains(got, trimmed(lines)) {
		t.Fatalf("printed %q, on the terminal %q", lines, got)
	}
}

// contains reports whether all of want are in lines, in that order; a row of
// ours that was left standing may be before each.
func contains(lines, want []string) bool {
	for _, l := range lines {
		if len(want) > 0 && strings.HasSuffix(l, want[0]) {
			want = want[1:]
		}
	}
	return len(want) == 0
}
