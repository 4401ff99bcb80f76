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
// The live block is seen only while the printed text is at the start of a
// line: while a line is being streamed, it waits. Nothing but text, line ends,
// tabs, colours and links gets through to the terminal, so that nothing printed
// can disturb what is already there.
//
// A Screen is safe for concurrent use. Every call is at most one write.
type Screen struct {
	w    io.Writer
	size func() (cols, rows int)
	opts ScreenOptions

	mu     sync.Mutex // guards the fields below
	text   cleaner    // what passed to the scrollback
	live   block      // what should stand below it
	shown  block      // what does, as far as it fits
	drawn  bool       // shown is on the terminal
	hidden bool       // by Hide
	plain  bool       // the colours of the printed text have been put off
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
	cols     int // the width of the terminal it was drawn for
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

// Write is [Screen.Print].
func (s *Screen) Write(p []byte) (int, error) {
	if err := s.Print(string(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// EndLine ends the printed line if one is open, so that the live block shows.
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
	s.erase()
	s.endLine()
	for _, row := range rows {
		s.print(row + "\n")
	}
	return s.flush()
}

// Hide takes the live block away until [Screen.Show]: before the terminal is
// left to somebody else, or for good.
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

// Redraw draws the live block from scratch where it stands.
func (s *Screen) Redraw() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	s.draw()
	return s.flush()
}

func (s *Screen) print(text string) {
	colours := s.text.before
	text = s.text.clean(text)
	if text == "" {
		return
	}
	s.erase()
	if s.plain {
		s.out.WriteString(colours)
		s.plain = false
	}
	s.out.WriteString(text)
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
	s.climb(min(s.above(cols), rows-1))
	s.out.WriteString("\x1b[J")
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

// draw makes the terminal show the live block, touching only rows that differ.
func (s *Screen) draw() {
	if s.hidden || s.text.open {
		return
	}
	cols, rows := s.bounds()
	// One row is left for the scrollback: some terminals, asked to clear the
	// whole screen, push what was on it into the scrollback first.
	want := s.live.fit(cols, max(1, rows-1))
	if s.drawn && (s.shown.cols != cols || len(s.shown.rows) > rows || len(want.rows) == 0) {
		s.erase()
	}
	if len(want.rows) == 0 {
		return
	}
	if !s.plain {
		s.out.WriteString(s.text.after)
		s.plain = true
	}
	at := s.paint(want, cols)
	s.move(at, want)
	s.shown, s.drawn = want, true
}

// paint writes the rows of want that are not shown yet, and returns the row the
// cursor is in; -1 if it did not move.
func (s *Screen) paint(want block, cols int) int {
	at, touched := s.shown.row, false
	for i, row := range want.rows {
		if i < len(s.shown.rows) && row == s.shown.rows[i] {
			continue
		}
		s.step(at, i)
		at, touched = i, true
		s.out.WriteString(row)
		if cells.Width(row) < cols { // else the cursor is on the last cell still
			s.out.WriteString("\x1b[K")
		}
	}
	if n := len(want.rows); n < len(s.shown.rows) {
		s.step(at, n)
		at, touched = n, true
		s.out.WriteString("\x1b[J")
	}
	if !touched {
		return -1
	}
	return at
}

// move takes the cursor from row at to its place in want.
func (s *Screen) move(at int, want block) {
	if at < 0 {
		if want.row == s.shown.row && want.col == s.shown.col {
			return
		}
		at = s.shown.row
	}
	s.step(at, want.row)
	if want.col > 0 {
		s.out.WriteString("\x1b[" + strconv.Itoa(want.col) + "C")
	}
}

// step moves the cursor to the start of another row of the block. Going down
// may make the row.
func (s *Screen) step(from, to int) {
	if to <= from {
		s.climb(from - to)
		return
	}
	s.out.WriteString("\r" + strings.Repeat("\n", to-from))
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
	fitting := make([]string, 0, min(rows, len(b.rows)-first))
	for _, row := range b.rows[first:min(first+rows, len(b.rows))] {
		row, _ = cells.Cut(row, cols)
		fitting = append(fitting, row)
	}
	b.rows, b.row = fitting, b.row-first
	return b
}
