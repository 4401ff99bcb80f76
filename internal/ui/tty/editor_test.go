//go:build unix

package tty

import (
	"fmt"
	"strings"
	"testing"

	"coder/internal/ui/lineedit"

	"pgregory.net/rapid"
)

// The cursor on the terminal is where the next character will stand: there an
// input method opens its window. Where words are kept whole one may take it to the next
// row; it then stands before the cursor.
func TestTheNextCharacterStandsWhereTheCursorWas(t *testing.T) {
	pieces := []string{"a", "bc ", "你", "e\u0301", "👩‍👩‍👧", "한", "ש", "<", "🇩🇪 "}
	keys := []lineedit.Key{
		{Name: lineedit.Left}, {Name: lineedit.Right}, {Name: lineedit.Home}, {Name: lineedit.Up},
		{Name: lineedit.Down}, {Name: lineedit.Backspace}, lineedit.CtrlKey('j'), lineedit.CtrlKey('w'),
	}
	rapid.Check(t, func(t *rapid.T) {
		w := newWatched(t.Fatalf, rapid.IntRange(3, 24).Draw(t, "cols"), rapid.IntRange(12, 40).Draw(t, "rows"))
		s := NewScreen(w, w.size, ScreenOptions{})
		e := lineedit.Editor{Prompt: []lineedit.Span{{Text: "x: 1\n", Style: "\x1b[2m"}, {Text: "> ", Style: "\x1b[32m"}}}
		show := func() {
			rows, row, col := e.View(w.emu.Width())
			if err := s.SetLive(rows, row, col); err != nil {
				t.Fatal(err)
			}
		}
		for range rapid.IntRange(1, 15).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "do") {
			case 0:
				s.Print(rapid.SampledFrom(printed).Draw(t, "print"))
			case 1:
				e.HandleKey(rapid.SampledFrom(keys).Draw(t, "key"))
			case 2:
				e.Paste("one\rtwo")
			default:
				for _, r := range rapid.SampledFrom(pieces).Draw(t, "typed") {
					e.HandleKey(lineedit.RuneKey(r))
				}
			}
		}
		s.EndLine()
		show()
		line, col := w.line(), w.emu.CursorPosition().X
		e.HandleKey(lineedit.RuneKey('X'))
		if rows, _, _ := e.View(w.emu.Width()); len(rows) >= w.emu.Height() {
			return // parts of it are out of sight, or go out of sight now
		}
		show()
		at := func(col, line int) bool {
			c := w.emu.CellAt(col, line-w.emu.ScrollbackLen())
			return c != nil && c.Content == "X"
		}
		if w.emu.Width() >= 20 {
			lines, row, before := append(all(w.emu), "", ""), w.line(), w.emu.CursorPosition().X-1
			if !at(before, row) && !(strings.HasSuffix(strings.TrimRight(lines[row-1], " "), "X") && !strings.Contains(lines[row], "X")) {
				t.Fatalf("typed X before %d,%d of %q", row, before+1, lines)
			}
			return
		}
		// Before a wide character that did not fit there may be a cell left.
		if !at(col, line) && !(col == 0 && at(w.emu.Width()-1, line-1)) {
			t.Fatalf("typed X at %d,%d of %q", line, col, all(w.emu))
		}
	})
}

// A draft that grows as high as the screen loses its first row, not the one
// that is typed into.
func TestTheRowTypedIntoStaysInSight(t *testing.T) {
	const cols, rows = 4, 6
	w := newWatched(t.Fatalf, cols, rows)
	s := NewScreen(w, w.size, ScreenOptions{})
	e := lineedit.Editor{Prompt: []lineedit.Span{{Text: "> "}}}
	for n := range 3 * cols * rows {
		r := rune('a' + n%26)
		e.HandleKey(lineedit.RuneKey(r))
		view, row, col := e.View(cols)
		if err := s.SetLive(view, row, col); err != nil {
			t.Fatal(err)
		}
		at := w.emu.CursorPosition()
		if at.X == 0 {
			at.X, at.Y = cols, at.Y-1
		}
		if c := w.emu.CellAt(at.X-1, at.Y); c == nil || c.Content != string(r) {
			t.Fatalf("character %d, %q, is not before the cursor at %v of %q", n, r, at, all(w.emu))
		}
	}
}

// discard is a terminal that is only written to.
type discard struct{ bytes int }

func (d *discard) Write(p []byte) (int, error) { d.bytes += len(p); return len(p), nil }

func BenchmarkKeyAfterALongPaste(b *testing.B) {
	for _, size := range []int{5_000, 500_000} {
		b.Run(fmt.Sprint(size, " lines"), func(b *testing.B) {
			var d discard
			var e lineedit.Editor
			s := NewScreen(&d, func() (int, int) { return 80, 24 }, ScreenOptions{})
			e.Paste(strings.Repeat("a line\r", size))
			for b.Loop() {
				e.HandleKey(lineedit.RuneKey('x'))
				s.SetLive(e.View(80))
				e.HandleKey(lineedit.Key{Name: lineedit.Backspace})
			}
		})
	}
}

func BenchmarkPrint(b *testing.B) {
	var d discard
	s := NewScreen(&d, func() (int, int) { return 80, 24 }, ScreenOptions{})
	s.SetLive([]string{"context: 1 tokens", "[build] /w> "}, 1, 12)
	text := strings.Repeat("some words of 中文 and \x1b[31mcolour\x1b[0m\n", 100)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		s.Print(text)
	}
}

func BenchmarkDecodePaste(b *testing.B) {
	text := []byte("\x1b[200~" + strings.Repeat("a line of text\r", 5000) + "\x1b[201~")
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		var d Decoder
		for i := 0; i < len(text); i += 4096 {
			d.Feed(text[i:min(i+4096, len(text))])
		}
	}
}
