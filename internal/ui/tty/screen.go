//go:build unix

package tty

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"coder/internal/ui/cells"
)

// Synchronized output: what stands between is shown at once by terminals that
// know it; the others take no notice.
const (
	syncBegin = "\x1b[?2026h"
	syncEnd   = "\x1b[?2026l"
)

// Screen is the one writer to a terminal. What is printed goes once and in
// order into the terminal's own scrollback; below it stands a live block, such
// as a prompt with the draft being written, which is drawn again in place.
//
// A printed line that has not ended is the first part of what is drawn in
// place, so that the live block is always seen; when it ends it goes into the
// scrollback as one line, which the terminal wraps. Nothing but text, line
// ends, tabs, colours and links gets through to the terminal, so that nothing
// printed can disturb what is already there.
//
// A Screen is safe for concurrent use. Every call is at most one write.
type Screen struct {
	w    io.Writer
	size func() (cols, rows int)
	opts ScreenOptions

	mu     sync.Mutex // guards the fields below
	text   cleaner    // what was printed
	line   string     // the printed line that has not ended
	begun  string     // what is shown behind it until more is printed
	below  []string   // and in rows below it
	tail   tail       // the same, in rows
	live   block      // what should stand below it
	shown  block      // what does, as far as it fits
	drawn  bool       // shown is on the terminal
	hidden bool       // by Hide
	out    strings.Builder
}

// ScreenOptions say what a terminal does that cannot be seen from here.
type ScreenOptions struct {
	// NoReflow says that the terminal cuts lines when it gets narrower instead
	// of wrapping them again, as xterm, the Linux console and screen do.
	NoReflow bool
}

// block is rows with a cursor among them.
type block struct {
	rows     []string
	row, col int
	cols     int  // the width of the terminal it was drawn for
	cut      bool // its first rows did not fit
}

// NewScreen makes the writer to w, a terminal whose size is asked for at every
// write. The cursor must be at the start of a line.
func NewScreen(w io.Writer, size func() (cols, rows int), o ScreenOptions) *Screen {
	return &Screen{w: w, size: size, opts: o}
}

// Print adds text to the scrollback. It may end anywhere, in the middle of a
// character too; the next text goes on there.
func (s *Screen) Print(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.print(text)
	return s.flush()
}

// Stream is [Screen.Print], and shows the beginning of what will follow: in the line that
// has not ended, and behind a line end in the one below. That is no part of the text: the
// next call takes it back.
func (s *Screen) Stream(text, begun string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stream(text, begun)
	return s.flush()
}

// StreamLive is [Screen.Stream], with the live block that belongs to it from now on: what
// stood in the block and is printed now is never seen twice.
func (s *Screen) StreamLive(text, begun string, rows []string, cursorRow, cursorCol int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = block{rows: slices.Clone(rows), row: cursorRow, col: cursorCol}
	s.stream(text, begun)
	return s.flush()
}

func (s *Screen) stream(text, begun string) {
	here, below, ends := strings.Cut(begun, "\n")
	s.begun, _ = cells.Cut(here, maxLine)
	below, _ = cells.Cut(below, maxLine)
	cols, _ := s.bounds()
	if s.below = nil; ends {
		s.below = new(tail).layOut(below, "", cols)
	}
	s.print(text)
	s.draw()
}

// Write is [Screen.Print].
func (s *Screen) Write(p []byte) (int, error) {
	if err := s.Print(string(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// EndLine ends the printed line if one is open.
func (s *Screen) EndLine() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLine()
	return s.flush()
}

// SetLive replaces the live block. Rows must fit the width of the terminal;
// what does not is cut off. If there are more rows than the terminal has, the
// last ones are seen, or those from the cursor on. No rows mean no block.
func (s *Screen) SetLive(rows []string, cursorRow, cursorCol int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = block{rows: slices.Clone(rows), row: cursorRow, col: cursorCol}
	s.draw()
	return s.flush()
}

// Commit puts rows into the scrollback in the place of the live block, which
// is no more.
func (s *Screen) Commit(rows []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = block{}
	s.endLine()
	s.draw()
	for _, row := range rows {
		s.print(row + "\n")
	}
	return s.flush()
}

// Hide takes the live block away until [Screen.Show], and with it a printed
// line that has not ended: before the terminal is left to somebody else.
func (s *Screen) Hide() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	s.hidden = true
	return s.flush()
}

// Show draws the live block where the cursor is now, at the start of a line:
// whatever was there before belongs to somebody else.
func (s *Screen) Show() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hidden, s.drawn, s.shown = false, false, block{}
	s.draw()
	return s.flush()
}

// Clear moves all that is on the screen into the scrollback, whoever wrote it, and draws
// the live block from scratch at the top.
func (s *Screen) Clear() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	_, rows := s.bounds()
	s.out.WriteString(strings.Repeat(lineEnd, rows))
	s.climb(rows - 1)
	s.draw()
	return s.flush()
}

// maxLine is how much of a printed line is kept back for its end.
const maxLine = 16 << 10

func (s *Screen) print(text string) {
	text = s.text.clean(text)
	if text == "" {
		return
	}
	text = s.line + text
	ended := strings.LastIndex(text, lineEnd) + len(lineEnd)
	if ended < len(lineEnd) {
		ended = 0
	}
	if len(text)-ended > maxLine {
		text += s.text.after + lineEnd + s.text.before
		s.text.open = false
		ended = len(text) - len(s.text.before)
	}
	s.line = text[ended:]
	// Whole lines go into the scrollback. A single one is written over the first row
	// of the block, where most of it stands already.
	lines := text[:ended]
	cols, _ := s.bounds()
	line := strings.TrimSuffix(lines, lineEnd)
	switch {
	case lines == "":
	case s.drawn && s.shown.cols == cols && !s.shown.cut && !strings.ContainsAny(line, "\n\t") && cells.Width(line) <= cols:
		s.repaint(0, line, cols)
		if s.shown.row > 0 {
			s.move(0, 0)
		}
		s.out.WriteString(lineEnd)
		s.shown.rows, s.shown.row, s.shown.col = s.shown.rows[1:], 0, 0
		s.drawn = len(s.shown.rows) > 0
	default:
		s.erase()
		s.out.WriteString(lines)
	}
	s.draw()
}

func (s *Screen) endLine() {
	if s.text.open {
		s.print("\n")
	}
}

// flush writes what has been prepared, in one piece.
func (s *Screen) flush() error {
	if s.out.Len() == 0 {
		return nil
	}
	text := syncBegin + s.out.String() + syncEnd
	s.out.Reset()
	if _, err := io.WriteString(s.w, text); err != nil {
		return fmt.Errorf("write to the screen: %w", err)
	}
	return nil
}

// erase takes the block off the terminal. The cursor is then where the block
// began, at the start of a line.
func (s *Screen) erase() {
	if !s.drawn {
		return
	}
	cols, rows := s.bounds()
	above := min(s.above(cols), rows-1)
	s.climb(above)
	// A terminal that is asked to erase all from its first row on may put that into its
	// scrollback first, as tmux does: the first row goes by itself, and last, since it may
	// have been wrapped.
	if len(s.shown.rows) > 1 && (cols == s.shown.cols || above == rows-1) {
		s.out.WriteString("\n\x1b[J\x1b[1A\x1b[K")
	} else {
		s.out.WriteString("\x1b[J")
	}
	s.drawn, s.shown = false, block{}
}

// above is how many rows of the terminal the block has above its cursor. A
// terminal that got narrower has wrapped the block's rows.
func (s *Screen) above(cols int) int {
	b := s.shown
	if cols == b.cols || s.opts.NoReflow {
		return b.row
	}
	n := b.row
	for _, row := range b.rows[:b.row] {
		n += wraps(row, cols, b.cols)
	}
	return n + wraps(b.rows[b.row], cols, b.col)
}

// wraps is how often row is wrapped at cols columns before its column end. In
// doubt it is one time less: better to leave a row of our own standing than
// to take one that is not.
func wraps(row string, cols, end int) (n int) {
	used, at := 0, 0
	for row != "" && at <= end {
		if row[0] == esc {
			row = row[max(1, cells.Escape(row)):]
			continue
		}
		cluster, w := cells.Next(row)
		row = row[len(cluster):]
		if used+w > cols && used > 0 {
			n, used = n+1, 0
		}
		used += w
		at += w
	}
	return n
}

// draw makes the terminal show the open line and the live block, touching only
// what differs.
func (s *Screen) draw() {
	if s.hidden {
		return
	}
	cols, rows := s.bounds()
	// One row is left for the scrollback: some terminals, asked to clear the
	// whole screen, push what was on it into the scrollback first.
	want := s.whole(cols).fit(cols, max(1, rows-1))
	if s.drawn && (s.shown.cols != cols || len(s.shown.rows) > rows || len(want.rows) == 0) {
		s.erase()
	}
	if len(want.rows) == 0 {
		return
	}
	s.shown.cols, s.shown.cut = cols, want.cut
	for i, row := range want.rows {
		s.repaint(i, row, cols)
	}
	if n := len(want.rows); n < len(s.shown.rows) {
		s.move(n, 0)
		s.out.WriteString("\x1b[J")
		s.shown.rows = s.shown.rows[:n]
	}
	s.move(want.row, want.col)
	s.drawn = true
}

// whole is the open line with the live block below it.
func (s *Screen) whole(cols int) block {
	if !s.text.open && s.begun == "" && s.below == nil {
		s.tail = tail{}
		return s.live
	}
	rows := append(s.tail.layOut(s.line+s.begun, s.text.after, cols), s.below...)
	if len(s.live.rows) == 0 {
		last := len(rows) - 1
		return block{rows: rows, row: last, col: cells.Width(rows[last])}
	}
	return block{rows: append(rows, s.live.rows...), row: len(rows) + s.live.row, col: s.live.col}
}

// repaint makes row i of the terminal show row.
func (s *Screen) repaint(i int, row string, cols int) {
	was := ""
	if i < len(s.shown.rows) {
		if was = s.shown.rows[i]; was == row {
			return
		}
	}
	if cells.Width(was) >= cells.Width(row)+muchShorter {
		s.move(i, 0)
		s.out.WriteString("\x1b[K")
		was = ""
	}
	d := difference(was, row)
	s.move(i, d.at)
	if i == len(s.shown.rows) { // the row was made just now
		s.shown.rows = append(s.shown.rows, row)
	} else {
		s.shown.rows = slices.Clone(s.shown.rows)
		s.shown.rows[i] = row
	}
	s.out.WriteString(d.text)
	if s.shown.col += d.width; s.shown.col >= cols {
		s.shown.col = somewhere
	} else if d.shorter {
		s.out.WriteString("\x1b[K")
	}
}

// muchShorter is by how many columns a row is shorter for which all of it is erased first:
// a terminal may wrap a row where it gets narrower by what once stood there, as tmux does,
// until the whole of it was.
const muchShorter = 8

// somewhere is the column of a cursor behind a row that is full: terminals do
// not agree on it.
const somewhere = -1

// move takes the cursor to a place in the block. Going down may make rows.
func (s *Screen) move(row, col int) {
	at := s.shown
	if row == at.row && col == at.col {
		return
	}
	if row != at.row || col < at.col || at.col == somewhere {
		if row > at.row {
			s.out.WriteString("\r" + strings.Repeat("\n", row-at.row))
		} else {
			s.climb(at.row - row)
		}
		at.col = 0
	}
	if col > at.col {
		s.out.WriteString("\x1b[" + strconv.Itoa(col-at.col) + "C")
	}
	s.shown.row, s.shown.col = row, col
}

// climb moves the cursor up, to the start of a row.
func (s *Screen) climb(n int) {
	s.out.WriteByte('\r')
	if n > 0 {
		s.out.WriteString("\x1b[" + strconv.Itoa(n) + "A")
	}
}

func (s *Screen) bounds() (cols, rows int) {
	cols, rows = s.size()
	return max(1, cols), max(1, rows)
}

// fit is the part of b that a terminal of this size can show: all columns that
// fit, and the last rows, unless the cursor is above them.
func (b block) fit(cols, rows int) block {
	b.cols = cols
	if len(b.rows) == 0 {
		return b
	}
	b.row = max(0, min(b.row, len(b.rows)-1))
	b.col = max(0, min(b.col, cols-1))
	first := min(max(0, len(b.rows)-rows), b.row)
	b.cut = first > 0
	fitting := make([]string, 0, min(rows, len(b.rows)-first))
	for _, row := range b.rows[first:min(first+rows, len(b.rows))] {
		row, _ = cells.Cut(row, cols)
		fitting = append(fitting, row)
	}
	b.rows, b.row = fitting, b.row-first
	return b
}
