//go:build unix

package tty

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"coder/internal/ui/cells"

	"github.com/charmbracelet/x/vt"
	"pgregory.net/rapid"
)

// watched is a terminal emulator that looks at every sequence it is sent.
type watched struct {
	fail   func(format string, args ...any)
	emu    *vt.Emulator
	floor  int // no cursor may go above this line, counted from the first ever
	writes int
	sent   strings.Builder
}

func newWatched(fail func(string, ...any), cols, rows int) *watched {
	return &watched{fail: fail, emu: vt.NewEmulator(cols, rows)}
}

func (w *watched) size() (cols, rows int) { return w.emu.Width(), w.emu.Height() }

// allowed are the only sequences a Screen sends besides links: colours, up and
// right, erase to the end, and synchronized output.
var allowed = regexp.MustCompile(`^\x1b\[(\d*A|\d*C|J|K|[\d;:]*m|\?2026[hl])$`)

func (w *watched) Write(p []byte) (int, error) {
	w.writes++
	w.sent.Write(p)
	for s := string(p); s != ""; {
		n := 1
		if s[0] == esc {
			if n = cells.EscapeLen(s); n == 0 || !allowed.MatchString(s[:n]) && !cells.IsLink(s[:n]) {
				w.fail("sent %q", s)
			}
		} else if i := strings.IndexByte(s, esc); i > 0 {
			n = i
		} else {
			n = len(s)
		}
		w.emu.WriteString(s[:n])
		if s[0] == esc && s[n-1] == 'A' && w.line() < w.floor {
			w.fail("the cursor went to line %d, above %d", w.line(), w.floor)
		}
		s = s[n:]
	}
	return len(p), nil
}

// line is the line the cursor is in, counted from the first ever.
func (w *watched) line() int { return w.emu.ScrollbackLen() + w.emu.CursorPosition().Y }

// all is every line ever shown, without blanks at the ends.
func all(emu *vt.Emulator) (lines []string) {
	for y := range emu.ScrollbackLen() {
		lines = append(lines, lineOf(emu.Width(), func(x int) string {
			if c := emu.ScrollbackCellAt(x, y); c != nil {
				return c.Content
			}
			return ""
		}))
	}
	for y := range emu.Height() {
		lines = append(lines, lineOf(emu.Width(), func(x int) string {
			if c := emu.CellAt(x, y); c != nil {
				return c.Content
			}
			return ""
		}))
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

func lineOf(width int, at func(x int) string) string {
	var b strings.Builder
	for x := range width {
		b.WriteString(at(x))
	}
	return strings.TrimRight(b.String(), " ")
}

// model says what a terminal should show: all that was printed, then the block.
type model struct {
	text          string
	rows          []string
	row, col      int
	hidden        bool
	width, height int
}

func (m *model) atStart() bool {
	plain := regexp.MustCompile(`\x1b\[[\d;]*m`).ReplaceAllString(m.text, "")
	return plain == "" || strings.HasSuffix(plain, "\n")
}

// draw writes the model into a fresh emulator, and returns the line where the
// printed text ends and the line the cursor belongs in.
func (m *model) draw() (emu *vt.Emulator, floor, line int) {
	emu = vt.NewEmulator(m.width, m.height)
	ended := strings.LastIndexByte(m.text, '\n') + 1
	emu.WriteString(strings.ReplaceAll(m.text[:ended], "\n", "\r\n") + "\x1b[0m")
	floor = emu.ScrollbackLen() + emu.CursorPosition().Y
	rows, row := m.rows, m.row
	if m.hidden {
		return emu, floor, floor
	}
	if !m.atStart() {
		open := wrapped(m.text[ended:], m.width)
		if row += len(open); len(m.rows) == 0 {
			row--
		}
		rows = append(open, rows...)
	}
	if len(rows) == 0 {
		return emu, floor, floor
	}
	most := max(1, m.height-1) // one row is left for the scrollback
	if n := len(rows) - most; n > 0 {
		first := min(n, row)
		rows, row = rows[first:first+most], row-first
	}
	emu.WriteString(strings.Join(rows, "\r\n"))
	return emu, floor, floor + row
}

// wrapped is the rows that a terminal makes of a line. The emulator breaks
// joined characters at the edge, so it is not asked.
func wrapped(line string, width int) []string {
	rows, used := []string{""}, 0
	for line = regexp.MustCompile(`\x1b\[[\d;]*m`).ReplaceAllString(line, ""); line != ""; {
		cluster, w := cells.NextCluster(line)
		line = line[len(cluster):]
		if cluster == "\t" {
			cluster = strings.Repeat(" ", min(8-used%8, max(1, width-used)))
			w = len(cluster)
		}
		if used+w > width {
			rows, used = append(rows, ""), 0
		}
		rows[len(rows)-1] += cluster
		used += w
	}
	return rows
}

func (m *model) check(t *rapid.T, w *watched) {
	t.Helper()
	emu, floor, line := m.draw()
	want, got := all(emu), all(w.emu)
	if !slices.Equal(got, want) {
		t.Fatalf("shown:\n%s\nwant:\n%s\nsent: %q", strings.Join(got, "\n"), strings.Join(want, "\n"), w.sent.String())
	}
	if w.line() != line {
		t.Fatalf("cursor in line %d, want %d", w.line(), line)
	}
	if m.atStart() && len(m.rows) > 0 && !m.hidden && w.emu.CursorPosition().X != m.col {
		t.Fatalf("cursor in column %d, want %d", w.emu.CursorPosition().X, m.col)
	}
	w.floor = floor
}

var printed = []string{
	"hello ", "world\n", "\n", "你好", "👩‍👩‍👧 family", "e\u0301\n", "🇩🇪", "\ttab\n", "\x1b[31m", "\x1b[0m", "שלום\n",
	"a line that is longer than any terminal we try here, so that it wraps several times\n", "\x1b[1mbold\x1b[0m\n", "x\ny\nz\n",
}

var shownRows = []string{"", "> ", "\x1b[32m[build]\x1b[0m x", "你好", "menu", "12345678", "abc👩‍👩‍👧", "e\u0301e\u0301"}

func TestTheScreenIsWhatWasPrintedAndTheBlock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{width: rapid.IntRange(9, 30).Draw(t, "width"), height: rapid.IntRange(2, 10).Draw(t, "height")}
		w := newWatched(t.Fatalf, m.width, m.height)
		s := NewScreen(w, w.size, ScreenOptions{})
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			before := w.writes
			if err := m.step(t, s); err != nil {
				t.Fatal(err)
			}
			if w.writes > before+1 {
				t.Fatalf("%d writes in one call", w.writes-before)
			}
			m.check(t, w)
		}
	})
}

// step does one random thing to screen and model.
func (m *model) step(t *rapid.T, s *Screen) error {
	switch rapid.IntRange(0, 9).Draw(t, "do") {
	case 0:
		m.rows, m.row, m.col = nil, 0, 0
		return s.SetLive(nil, 0, 0)
	case 1:
		rows := rapid.SliceOfN(rapid.SampledFrom(shownRows), 0, 4).Draw(t, "commit")
		if !m.atStart() {
			m.text += "\n"
		}
		for _, r := range rows {
			m.text += r + "\n"
		}
		m.rows, m.row, m.col = nil, 0, 0
		return s.Commit(rows)
	case 2:
		if !m.atStart() {
			m.text += "\n"
		}
		return s.EndLine()
	case 3:
		m.hidden = true
		return s.Hide()
	case 4:
		if !m.hidden {
			return nil
		}
		m.hidden = false
		return s.Show()
	case 5, 6:
		m.rows = rapid.SliceOfN(rapid.SampledFrom(shownRows), 1, 14).Draw(t, "rows")
		m.row = rapid.IntRange(0, len(m.rows)-1).Draw(t, "row")
		m.col = rapid.IntRange(0, min(m.width-1, cells.Width(m.rows[m.row]))).Draw(t, "col")
		return s.SetLive(m.rows, m.row, m.col)
	}
	text := rapid.SampledFrom(printed).Draw(t, "print")
	m.text += text
	return s.Print(text)
}

func TestOnlyWhatChangedIsDrawn(t *testing.T) {
	w := newWatched(t.Fatalf, 40, 10)
	s := NewScreen(w, w.size, ScreenOptions{})
	set := func(rows []string, row, col int) string {
		w.sent.Reset()
		if err := s.SetLive(rows, row, col); err != nil {
			t.Fatal(err)
		}
		return strings.TrimSuffix(strings.TrimPrefix(w.sent.String(), syncBegin), syncEnd)
	}
	set([]string{"context", "> hello"}, 1, 7)
	tests := []struct {
		name     string
		rows     []string
		row, col int
		want     string
	}{
		{"nothing", []string{"context", "> hello"}, 1, 7, ""},
		{"the cursor", []string{"context", "> hello"}, 1, 2, "\r\x1b[2C"},
		{"the last row", []string{"context", "> hellos"}, 1, 8, "\x1b[5Cs"},
		{"the first row", []string{"contexts", "> hellos"}, 1, 8, "\r\x1b[1A\x1b[7Cs\r\n\x1b[8C"},
		{"a letter", []string{"contexts", "> hellost"}, 1, 9, "t"},
		{"a letter in the middle", []string{"contexts", "> hallost"}, 1, 4, "\r\x1b[3Ca"},
		{"a letter less", []string{"contexts", "> hellos"}, 1, 8, "\r\x1b[3Cellos\x1b[K"},
		{"one more", []string{"contexts", "> hellos", "x"}, 2, 1, "\r\nx"},
		{"one less", []string{"contexts", "> hellos"}, 1, 0, "\r\x1b[J\r\x1b[1A"},
		{"none", nil, 0, 0, "\r\x1b[1A\n\x1b[J\x1b[1A\x1b[K"},
	}
	for _, tt := range tests {
		if got := set(tt.rows, tt.row, tt.col); got != tt.want {
			t.Errorf("%s: sent %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestALineThatStreamsStandsAboveTheBlock(t *testing.T) {
	w := newWatched(t.Fatalf, 20, 6)
	s := NewScreen(w, w.size, ScreenOptions{})
	steps := []struct {
		do   func() error
		want []string
	}{
		{func() error { return s.SetLive([]string{"> "}, 0, 2) }, []string{">"}},
		{func() error { return s.Print("hel") }, []string{"hel", ">"}},
		{func() error { return s.SetLive([]string{"> x"}, 0, 3) }, []string{"hel", "> x"}},
		{func() error { return s.Print("lo") }, []string{"hello", "> x"}},
		{func() error { return s.Print("\n") }, []string{"hello", "> x"}},
		{func() error { return s.Print("\x1b[0m") }, []string{"hello", "> x"}},
		{func() error { return s.Print("12345678901234567890") }, []string{"hello", "12345678901234567890", "> x"}},
		{func() error { return s.Print("\n") }, []string{"hello", "12345678901234567890", "> x"}},
		{func() error { return s.Print("open") }, []string{"hello", "12345678901234567890", "open", "> x"}},
		{s.EndLine, []string{"hello", "12345678901234567890", "open", "> x"}},
		{s.EndLine, []string{"hello", "12345678901234567890", "open", "> x"}},
		{func() error { return s.Commit([]string{"> x"}) }, []string{"hello", "12345678901234567890", "open", "> x"}},
		{func() error { return s.Print("answer\n") }, []string{"hello", "12345678901234567890", "open", "> x", "answer"}},
	}
	for i, step := range steps {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if got := all(w.emu); !slices.Equal(got, step.want) {
			t.Errorf("step %d: shown %q, want %q", i, got, step.want)
		}
	}
}

// What stood in the block and is printed leaves no rows free below it, even on a screen
// that the block fills.
func TestWhatLeavesTheBlockIsPrintedInItsPlace(t *testing.T) {
	w := newWatched(t.Fatalf, 20, 6)
	s := NewScreen(w, w.size, ScreenOptions{})
	if err := errors.Join(
		s.StreamLive("one para", "graph", []string{"", "said", "beside", "> dr"}, 3, 4),
		s.StreamLive("graph\n\nsaid\nbeside\n", "", []string{"> draft"}, 0, 7),
	); err != nil {
		t.Fatal(err)
	}
	if got, want := all(w.emu), []string{"one paragraph", "", "said", "beside", "> draft"}; !slices.Equal(got, want) || w.emu.ScrollbackLen() != 0 {
		t.Errorf("shown %q, want %q; %d lines above", got, want, w.emu.ScrollbackLen())
	}
}

// A word that goes into the next line is shown there before it has ended.
func TestWhatHasBegunMayStandBelowTheLine(t *testing.T) {
	w := newWatched(t.Fatalf, 20, 6)
	s := NewScreen(w, w.size, ScreenOptions{})
	for _, step := range []struct {
		text, begun string
		want        []string
	}{
		{"- a few words,", " bro", []string{"- a few words, bro", ">"}},
		{"", "\n  broken", []string{"- a few words,", "  broken", ">"}},
		{"\n  broken", " too", []string{"- a few words,", "  broken too", ">"}},
	} {
		if err := s.StreamLive(step.text, step.begun, []string{"> "}, 0, 2); err != nil {
			t.Fatal(err)
		}
		if got := all(w.emu); !slices.Equal(got, step.want) {
			t.Errorf("shown %q, want %q", got, step.want)
		}
	}
}

// Nothing is erased from the first cell of a terminal on: it may put all of it into its
// scrollback first.
func TestNothingIsErasedFromTheFirstCellOn(t *testing.T) {
	w := newWatched(t.Fatalf, 20, 5)
	s := NewScreen(w, w.size, ScreenOptions{})
	if err := errors.Join(s.SetLive([]string{"context", "> draft"}, 1, 7), s.Commit([]string{"context", "> draft"})); err != nil {
		t.Fatal(err)
	}
	if sent := w.sent.String(); strings.Contains(sent, "A\x1b[J") || strings.Contains(sent, "\r\x1b[J") {
		t.Errorf("sent %q", sent)
	}
}

func TestColoursGoOnAcrossTheBlock(t *testing.T) {
	w := newWatched(t.Fatalf, 20, 6)
	s := NewScreen(w, w.size, ScreenOptions{})
	s.SetLive([]string{"prompt"}, 0, 0)
	s.Print("\x1b[31mred\n")
	s.SetLive(nil, 0, 0)
	s.SetLive([]string{"prompt"}, 0, 1)
	s.Print("still red")
	colour := func(x, y int) string { return fmt.Sprint(w.emu.CellAt(x, y).Style.Fg) }
	if first, second := colour(0, 0), colour(0, 1); first != second || first == "<nil>" {
		t.Errorf("text is %v, then %v", first, second)
	}
	s.Print("\n")
	if got := colour(0, 2); got != "<nil>" {
		t.Errorf("the block is %v", got)
	}
	s.Print("\x1b[0mplain\n")
	if got := colour(0, 2); got != "<nil>" {
		t.Errorf("plain text is %v", got)
	}
}

func TestOnlyHarmlessSequencesPass(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"text", "a你\tb", "a你\tb"},
		{"line ends", "a\nb\r\nc", "a\r\nb\r\nc"},
		{"lone CR", "a\rb", "ab"},
		{"colours", "\x1b[1;31ma\x1b[m", "\x1b[1;31ma\x1b[m"},
		{"links", "\x1b]8;;http://x\x1b\\a\x1b]8;;\x1b\\", "\x1b]8;;http://x\x1b\\a\x1b]8;;\x1b\\"},
		{"moves", "\x1b[2J\x1b[H\x1b[Aa\x1b[10;10Hb\x1bM\x1b7\x1b8", "ab"},
		{"alternate screen", "\x1b[?1049ha", "a"},
		{"titles and clipboards", "\x1b]0;t\aa\x1b]52;c;eA==\x1b\\b", "ab"},
		{"bells and backspaces", "a\a\b\x00\x7fb", "ab"},
		{"8-bit controls", "a\u009b2Jb\xff", "a2Jb\uFFFD"},
		{"reset", "\x1bca", "a"},
		{"a broken sequence", "\x1b[31\nx", "\r\nx"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var whole cleaner
			if got := whole.clean(tt.in); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			for i := range len(tt.in) {
				var c cleaner
				if got := c.clean(tt.in[:i]) + c.clean(tt.in[i:]); got != tt.want {
					t.Errorf("cut at %d: got %q, want %q", i, got, tt.want)
				}
			}
		})
	}
}

func TestATallBlockShowsItsEndOrItsCursor(t *testing.T) {
	w := newWatched(t.Fatalf, 20, 4)
	s := NewScreen(w, w.size, ScreenOptions{})
	var rows []string
	for i := range 10 {
		rows = append(rows, "row "+strconv.Itoa(i))
	}
	s.Print("printed\n")
	for _, tt := range []struct {
		cursor, first int
	}{{9, 7}, {7, 7}, {3, 3}, {0, 0}, {9, 7}} {
		s.SetLive(rows, tt.cursor, 2)
		want := append([]string{"printed"}, rows[tt.first:tt.first+3]...)
		if got := all(w.emu); !slices.Equal(got, want) {
			t.Errorf("cursor in row %d: %q, want %q", tt.cursor, got, want)
		}
	}
}

func TestATerminalThatCutsLines(t *testing.T) {
	w := newWatched(t.Fatalf, 20, 8)
	s := NewScreen(w, w.size, ScreenOptions{NoReflow: true})
	s.Print("one\ntwo\n")
	s.SetLive([]string{"context: many tokens", "[build] /some/where>"}, 1, 19)
	w.emu.Resize(8, 8)
	w.floor = 2
	s.SetLive([]string{"context:", " many to", "kens", "> "}, 3, 2)
	if got, want := all(w.emu), []string{"one", "two", "context:", " many to", "kens", ">"}; !slices.Equal(got, want) {
		t.Errorf("shown %q, want %q", got, want)
	}
}

func TestRowsThatAreTooWideAreCut(t *testing.T) {
	w := newWatched(t.Fatalf, 6, 4)
	s := NewScreen(w, w.size, ScreenOptions{})
	s.SetLive([]string{"123456789", "abcde你\x1b[2J\n"}, 7, 99)
	if got, want := all(w.emu), []string{"123456", "abcde"}; !slices.Equal(got, want) {
		t.Errorf("shown %q, want %q", got, want)
	}
	if p := w.emu.CursorPosition(); p.X != 5 || p.Y != 1 {
		t.Errorf("cursor at %v", p)
	}
}

func TestShowStartsAfresh(t *testing.T) {
	w := newWatched(t.Fatalf, 20, 6)
	s := NewScreen(w, w.size, ScreenOptions{})
	s.SetLive([]string{"context", "> x"}, 1, 3)
	s.Hide()
	s.Print("printed meanwhile\n")
	w.emu.WriteString("[1]+ Stopped\r\nfg\r\n")
	s.Show()
	if got, want := all(w.emu), []string{"printed meanwhile", "[1]+ Stopped", "fg", "context", "> x"}; !slices.Equal(got, want) {
		t.Errorf("shown %q, want %q", got, want)
	}
}

func TestManyMayWrite(t *testing.T) {
	w := newWatched(t.Fatalf, 30, 5)
	s := NewScreen(w, w.size, ScreenOptions{})
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			for j := range 50 {
				fmt.Fprintf(s, "writer %d line %d\n", i, j)
				s.SetLive([]string{fmt.Sprint("> ", j)}, 0, 2)
			}
		})
	}
	writers.Wait()
	lines := all(w.emu)
	if len(lines) != 201 || !strings.HasPrefix(lines[200], "> ") {
		t.Errorf("%d lines, last %q", len(lines), lines[len(lines)-1])
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }

var errBroken = errors.New("gone")

func TestErrorsAreTold(t *testing.T) {
	s := NewScreen(broken{}, func() (int, int) { return 0, 0 }, ScreenOptions{})
	if err := s.Print("x"); !errors.Is(err, errBroken) {
		t.Errorf("Print: %v", err)
	}
	if n, err := s.Write([]byte("y")); n != 0 || !errors.Is(err, errBroken) {
		t.Errorf("Write: %d, %v", n, err)
	}
}

// What was on the screen is in the scrollback, and what somebody else wrote; the block
// stands at the top.
func TestClear(t *testing.T) {
	w := newWatched(t.Fatalf, 20, 5)
	s := NewScreen(w, w.size, ScreenOptions{})
	if err := errors.Join(s.Print("one\ntwo\nthr"), s.SetLive([]string{"context", "> draft"}, 1, 7)); err != nil {
		t.Fatal(err)
	}
	w.emu.WriteString("\r\ngarbage")
	if err := s.Clear(); err != nil {
		t.Fatal(err)
	}
	lines := all(w.emu)
	shown := lines[w.emu.ScrollbackLen():]
	if want := []string{"thr", "context", "> draft"}; !slices.Equal(shown[:3], want) || strings.Join(shown[3:], "") != "" {
		t.Errorf("the screen shows %q, want %q", shown, want)
	}
	if above := lines[:w.emu.ScrollbackLen()]; !slices.Equal(above[:2], []string{"one", "two"}) {
		t.Errorf("above is %q", above)
	}
	if at := w.emu.CursorPosition(); at.X != 7 || at.Y != 2 {
		t.Errorf("the cursor is at %v", at)
	}
}
