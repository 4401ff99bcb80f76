package term_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"coder/internal/core/event"
	"coder/internal/ui/term"
	"coder/testkit/rendertest"

	"github.com/charmbracelet/x/vt"
)

var sizes = []struct{ width, height int }{{40, 12}, {80, 24}, {120, 40}}

// Every block at every size, with and without colour, as a terminal shows it.
func TestScreens(t *testing.T) {
	for _, s := range scenes() {
		t.Run(s.name, func(t *testing.T) {
			var all bytes.Buffer
			for _, size := range sizes {
				for _, p := range []term.Palette{{}, {Level: term.Basic}} {
					fmt.Fprintf(&all, "=== %dx%d colours=%v\n", size.width, size.height, p.Level != term.None)
					all.WriteString(dump(draw(t, s, size.width, p), size.width, size.height))
				}
			}
			rendertest.Golden(t, s.name, all.Bytes())
		})
	}
}

func draw(t testing.TB, s scene, width int, p term.Palette) string {
	t.Helper()
	var b bytes.Buffer
	r := term.New(term.Options{Out: &b, Width: func() int { return width }, Palette: p, ASCII: s.ascii})
	rendertest.Play(t, r, s.records)
	for _, q := range s.cards {
		if err := r.Insert(r.Cards().Draw(q)); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// dump is what a terminal of that size shows after text was written to it, from
// the first line ever to the last. A change of look is written as its codes in
// braces; a bar of tildes stands where the visible part begins.
func dump(text string, width, height int) string {
	e := vt.NewEmulator(width, height)
	defer e.Close()
	_, _ = e.Write([]byte(strings.ReplaceAll(text, "\n", "\r\n")))
	var lines []string
	for y := range e.ScrollbackLen() {
		lines = append(lines, row(width, func(x int) (string, string) {
			c := e.ScrollbackCellAt(x, y)
			if c == nil {
				return " ", ""
			}
			return c.Content, c.Style.String()
		}))
	}
	if len(lines) > 0 {
		lines = append(lines, "~~~~")
	}
	for y := range height {
		lines = append(lines, row(width, func(x int) (string, string) {
			c := e.CellAt(x, y)
			if c == nil {
				return " ", ""
			}
			return c.Content, c.Style.String()
		}))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}

func row(width int, cell func(x int) (content, style string)) string {
	var b strings.Builder
	look := ""
	for x := range width {
		content, style := cell(x)
		if style = strings.Trim(style, "\x1b[m"); style != look {
			fmt.Fprintf(&b, "{%s}", style)
			look = style
		}
		b.WriteString(content)
	}
	return strings.TrimRight(b.String(), " ")
}

// What is copied out of the scrollback is what was written: nothing is padded or
// framed, and no line of code is broken by us, nor any word.
func TestCopiesCleanly(t *testing.T) {
	const code = "\n```go\nfunc main() { a.long(line.that, a.narrow, screen.has.to.wrap) }\n```\nhttps://example.com/an/address\n"
	const text = "A long line of words.\n\n- a\n- b\n" + code
	s := scene{records: told(event.TextDelta{Text: text}, said(text))}
	for width, want := range map[int]string{10: "A long\nline of\nwords.\n\n- a\n- b\n" + code, 200: text} {
		if got := draw(t, s, width, term.Palette{}); got != "[ANSWER]\n"+want {
			t.Errorf("at %d columns: %q", width, got)
		}
	}
}
