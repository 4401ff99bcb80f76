//go:build unix

package tty

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"coder/internal/core/message"
	"coder/internal/ui/cells"
)

// Synchronized output: terminals that support it show the text between at once; others ignore it.
const (
	syncBegin = "\x1b[?2026h"
	syncEnd   = "\x1b[?2026l"
)

// Screen is the only writer to a terminal. Printed text goes once and in order into the terminal's own
// scrollback; below it is a live block, such as a prompt with the draft, which is redrawn in place.
//
// An unfinished printed line is the first part of what is redrawn, so that the live block is always
// visible; once finished it goes into the scrollback as one line, which the terminal wraps. Only text,
// newlines, tabs, colors and links reach the terminal, so that nothing printed can disturb what is
// already there.
//
// A Screen is safe for concurrent use. Every call is at most one write.
type Screen struct {
	w            io.Writer
	terminalSize func() (cols, rows int)
	options      ScreenOptions

	mu          sync.Mutex  // guards the fields below
	cleaner     cleaner     // the printed text
	line        string      // the unfinished printed line
	preview     string      // preview behind it until more is printed
	previewRows []string    // preview rows below it
	tail        growingLine // line and preview, in rows
	live        liveBlock   // the live block wanted
	shown       liveBlock   // the live block shown, as far as it fits
	isDrawn     bool        // shown is on the terminal
	isHidden    bool        // by Hide
	out         strings.Builder
}

// ScreenOptions describes behavior of the terminal that cannot be detected from here.
type ScreenOptions struct {
	// NoReflow is set if the terminal cuts lines when it gets narrower instead of wrapping them again, as
	// xterm, the Linux console and screen do.
	NoReflow bool
}

// liveBlock is rows with a cursor.
type liveBlock struct {
	rows      []string
	row, col  int
	cols      int  // the terminal width it was drawn for
	truncated bool // its first rows did not fit
}

// NewScreen returns the writer to w, a terminal whose size is read at every write. The cursor must be at
// the start of a line.
func NewScreen(w io.Writer, size func() (cols, rows int), o ScreenOptions) *Screen {
	return &Screen{w: w, terminalSize: size, options: o}
}

// Print adds text to the scrollback. The text may end anywhere, even inside a character; the next text
// continues there.
func (s *Screen) Print(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.print(text)
	return s.flush()
}

// Stream is [Screen.Print], and previews the beginning of the text to follow: in the unfinished line, or
// after a newline in the line below. The preview is not printed: the next call removes it.
func (s *Screen) Stream(text, begun string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stream(text, begun)
	return s.flush()
}

// StreamLive is [Screen.Stream] with a new live block: text that moves from the block to the scrollback
// is never shown twice.
func (s *Screen) StreamLive(text, begun string, rows []string, cursorRow, cursorCol int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = liveBlock{rows: slices.Clone(rows), row: cursorRow, col: cursorCol}
	s.stream(text, begun)
	return s.flush()
}

func (s *Screen) stream(text, begun string) {
	here, below, ends := strings.Cut(begun, "\n")
	s.preview, _ = cells.Truncate(here, maxLine)
	below, _ = cells.Truncate(below, maxLine)
	cols, _ := s.currentSize()
	if s.previewRows = nil; ends {
		s.previewRows = new(growingLine).layOut(below, "", cols)
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

// EndLine ends an unfinished printed line.
func (s *Screen) EndLine() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLine()
	return s.flush()
}

// SetLive replaces the live block. Rows wider than the terminal are cut off. If there are more rows than
// the terminal has, it shows the last ones, or those from the cursor on. No rows mean no block.
func (s *Screen) SetLive(rows []string, cursorRow, cursorCol int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = liveBlock{rows: slices.Clone(rows), row: cursorRow, col: cursorCol}
	s.draw()
	return s.flush()
}

// Commit moves rows into the scrollback in place of the live block, which is removed.
func (s *Screen) Commit(rows []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = liveBlock{}
	s.endLine()
	s.draw()
	for _, row := range rows {
		s.print(row + "\n")
	}
	return s.flush()
}

// Hide removes the live block until [Screen.Show], and with it an unfinished printed line: before
// another program uses the terminal.
func (s *Screen) Hide() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	s.isHidden = true
	return s.flush()
}

// Show draws the live block at the cursor, which is at the start of a line: the text before belongs to
// the other program.
func (s *Screen) Show() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isHidden, s.isDrawn, s.shown = false, false, liveBlock{}
	s.draw()
	return s.flush()
}

// Clear moves everything on the screen into the scrollback, whoever wrote it, and draws the live block
// from scratch at the top.
func (s *Screen) Clear() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	_, rows := s.currentSize()
	s.out.WriteString(strings.Repeat(lineEnd, rows))
	s.moveUp(rows - 1)
	s.draw()
	return s.flush()
}

// maxLine is how much of an unfinished printed line is held back, in bytes.
const maxLine = 16 << 10

func (s *Screen) print(text string) {
	text = s.cleaner.clean(text)
	if text == "" {
		return
	}
	text = s.line + text
	ended := strings.LastIndex(text, lineEnd) + len(lineEnd)
	if ended < len(lineEnd) {
		ended = 0
	}
	if len(text)-ended > maxLine {
		text += s.cleaner.resetCodes + lineEnd + s.cleaner.restoreCodes
		s.cleaner.midLine = false
		ended = len(text) - len(s.cleaner.restoreCodes)
	}
	s.line = text[ended:]
	// Whole lines go into the scrollback. A single one overwrites the first row of the block, which already
	// shows most of it.
	lines := text[:ended]
	cols, _ := s.currentSize()
	line := strings.TrimSuffix(lines, lineEnd)
	switch {
	case lines == "":
	case s.isDrawn && s.shown.cols == cols && !s.shown.truncated && !strings.ContainsAny(line, "\n\t") &&
		cells.Width(line) <= cols:
		s.repaintRow(0, line, cols)
		if s.shown.row > 0 {
			s.moveTo(0, 0)
		}
		s.out.WriteString(lineEnd)
		s.shown.rows, s.shown.row, s.shown.col = s.shown.rows[1:], 0, 0
		s.isDrawn = len(s.shown.rows) > 0
	default:
		s.erase()
		s.out.WriteString(lines)
	}
	s.draw()
}

func (s *Screen) endLine() {
	if s.cleaner.midLine {
		s.print("\n")
	}
}

// flush writes the prepared text at once.
func (s *Screen) flush() error {
	if s.out.Len() == 0 {
		return nil
	}
	text := syncBegin + s.out.String() + syncEnd
	s.out.Reset()
	if _, err := io.WriteString(s.w, text); err != nil {
		return message.Errorf("write to the screen: %w", err)
	}
	return nil
}

// erase removes the block from the terminal. The cursor is then where the block began, at the start of a
// line.
func (s *Screen) erase() {
	if !s.isDrawn {
		return
	}
	cols, rows := s.currentSize()
	above := min(s.rowsAbove(cols), rows-1)
	s.moveUp(above)
	// A terminal told to erase everything from its first row on may first move that into its scrollback, as
	// tmux does: the first row is erased separately, and last, since it may have been wrapped.
	if len(s.shown.rows) > 1 && (cols == s.shown.cols || above == rows-1) {
		s.out.WriteString("\n\x1b[J\x1b[1A\x1b[K")
	} else {
		s.out.WriteString("\x1b[J")
	}
	s.isDrawn, s.shown = false, liveBlock{}
}

// rowsAbove returns how many terminal rows the block has above its cursor. A terminal that got narrower has
// wrapped the block's rows.
func (s *Screen) rowsAbove(cols int) int {
	b := s.shown
	if cols == b.cols || s.options.NoReflow {
		return b.row
	}
	n := b.row
	for _, row := range b.rows[:b.row] {
		n += countWraps(row, cols, b.cols)
	}
	return n + countWraps(b.rows[b.row], cols, b.col)
}

// countWraps returns how often row is wrapped at cols columns before its column end. In doubt it returns one
// less: better to leave one of our rows than to erase another's.
func countWraps(row string, cols, end int) (n int) {
	used, at := 0, 0
	for row != "" && at <= end {
		if row[0] == esc {
			row = row[max(1, cells.EscapeLen(row)):]
			continue
		}
		cluster, w := cells.NextCluster(row)
		row = row[len(cluster):]
		if used+w > cols && used > 0 {
			n, used = n+1, 0
		}
		used += w
		at += w
	}
	return n
}

// draw shows the open line and the live block, writing only the differences.
func (s *Screen) draw() {
	if s.isHidden {
		return
	}
	cols, rows := s.currentSize()
	// One row is left for the scrollback: some terminals, told to clear the whole screen, first push its
	// content into the scrollback.
	want := s.fullBlock(cols).fit(cols, max(1, rows-1))
	if s.isDrawn && (s.shown.cols != cols || len(s.shown.rows) > rows || len(want.rows) == 0) {
		s.erase()
	}
	if len(want.rows) == 0 {
		return
	}
	s.shown.cols, s.shown.truncated = cols, want.truncated
	for i, row := range want.rows {
		s.repaintRow(i, row, cols)
	}
	if n := len(want.rows); n < len(s.shown.rows) {
		s.moveTo(n, 0)
		s.out.WriteString("\x1b[J")
		s.shown.rows = s.shown.rows[:n]
	}
	s.moveTo(want.row, want.col)
	s.isDrawn = true
}

// fullBlock returns the open line with the live block below it.
func (s *Screen) fullBlock(cols int) liveBlock {
	if !s.cleaner.midLine && s.preview == "" && s.previewRows == nil {
		s.tail = growingLine{}
		return s.live
	}
	rows := append(s.tail.layOut(s.line+s.preview, s.cleaner.resetCodes, cols), s.previewRows...)
	if len(s.live.rows) == 0 {
		last := len(rows) - 1
		return liveBlock{rows: rows, row: last, col: cells.Width(rows[last])}
	}
	return liveBlock{rows: append(rows, s.live.rows...), row: len(rows) + s.live.row, col: s.live.col}
}

// repaintRow changes row i of the terminal to row.
func (s *Screen) repaintRow(i int, row string, cols int) {
	was := ""
	if i < len(s.shown.rows) {
		if was = s.shown.rows[i]; was == row {
			return
		}
	}
	if cells.Width(was) >= cells.Width(row)+eraseThreshold {
		s.moveTo(i, 0)
		s.out.WriteString("\x1b[K")
		was = ""
	}
	d := diffRows(was, row)
	s.moveTo(i, d.column)
	if i == len(s.shown.rows) { // the row was just created
		s.shown.rows = append(s.shown.rows, row)
	} else {
		s.shown.rows = slices.Clone(s.shown.rows)
		s.shown.rows[i] = row
	}
	s.out.WriteString(d.text)
	if s.shown.col += d.width; s.shown.col >= cols {
		s.shown.col = unknownColumn
	} else if d.eraseRest {
		s.out.WriteString("\x1b[K")
	}
}

// eraseThreshold is how many columns shorter a row must be to be erased completely first: when a terminal
// gets narrower it may wrap a row by its former content, as tmux does, until the whole row was erased.
const eraseThreshold = 8

// unknownColumn is the column of a cursor after a full row: terminals disagree on it.
const unknownColumn = -1

// moveTo moves the cursor to a position in the block. Moving down may create rows.
func (s *Screen) moveTo(row, col int) {
	at := s.shown
	if row == at.row && col == at.col {
		return
	}
	if row != at.row || col < at.col || at.col == unknownColumn {
		if row > at.row {
			s.out.WriteString("\r" + strings.Repeat("\n", row-at.row))
		} else {
			s.moveUp(at.row - row)
		}
		at.col = 0
	}
	if col > at.col {
		s.out.WriteString("\x1b[" + strconv.Itoa(col-at.col) + "C")
	}
	s.shown.row, s.shown.col = row, col
}

// moveUp moves the cursor up, to the start of a row.
func (s *Screen) moveUp(n int) {
	s.out.WriteByte('\r')
	if n > 0 {
		s.out.WriteString("\x1b[" + strconv.Itoa(n) + "A")
	}
}

func (s *Screen) currentSize() (cols, rows int) {
	cols, rows = s.terminalSize()
	return max(1, cols), max(1, rows)
}

// fit returns the part of b that a terminal of this size can show: all columns that fit, and the last
// rows, unless the cursor is above them.
func (b liveBlock) fit(cols, rows int) liveBlock {
	b.cols = cols
	if len(b.rows) == 0 {
		return b
	}
	b.row = max(0, min(b.row, len(b.rows)-1))
	b.col = max(0, min(b.col, cols-1))
	first := min(max(0, len(b.rows)-rows), b.row)
	b.truncated = first > 0
	fitting := make([]string, 0, min(rows, len(b.rows)-first))
	for _, row := range b.rows[first:min(first+rows, len(b.rows))] {
		row, _ = cells.Truncate(row, cols)
		fitting = append(fitting, row)
	}
	b.rows, b.row = fitting, b.row-first
	return b
}
