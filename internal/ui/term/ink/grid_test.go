package ink_test

import (
	"strings"
	"testing"

	"coder/internal/ui/term/ink"
)

func row(cells ...string) []ink.Cell {
	var r []ink.Cell
	for _, c := range cells {
		r = append(r, ink.Cell{{Text: c}})
	}
	return r
}

func draw(g ink.Grid, width int) string {
	var b strings.Builder
	g.Draw(width, func(l ink.Style, text string) {
		if l.Bold {
			text = "*" + text + "*"
		}
		b.WriteString(text)
	})
	return b.String()
}

func TestDraw(t *testing.T) {
	full := ink.Grid{Head: row("a", "long", "c"), Rows: [][]ink.Cell{row("世界", "x", "1"), row("y", "", "22")}, Align: []ink.Align{ink.Left, ink.Centre, ink.Right}}
	bare := ink.Grid{Rows: [][]ink.Cell{row("a", "b"), row("cc")}}
	plain := full
	plain.ASCII = true
	for _, c := range []struct {
		name  string
		g     ink.Grid
		width int
		want  string
	}{
		{"aligned", full, 0, "*a*     *long*   *c*\n────  ────  ──\n世界   x     1\ny           22"},
		{"just fits", full, 14, "*a*     *long*   *c*\n────  ────  ──\n世界   x     1\ny           22"},
		{"does not fit", full, 13, "*a*: 世界\n*long*: x\n*c*: 1\n\n*a*: y\n*c*: 22"},
		{"ASCII", plain, 0, "*a*     *long*   *c*\n----  ----  --\n世界   x     1\ny           22"},
		{"no head", bare, 0, "a   b\ncc"},
		{"no head and no room", bare, 1, "a\nb\n\ncc"},
		{"only a head", ink.Grid{Head: row("a", "b")}, 0, "*a*  *b*\n─  ─"},
		{"only a head and no room", ink.Grid{Head: row("a", "b")}, 1, "*a*  *b*"},
		{"nothing", ink.Grid{}, 0, ""},
	} {
		if got := draw(c.g, c.width); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

func TestWidth(t *testing.T) {
	for s, want := range map[string]int{"": 0, "abc": 3, "世界": 4, "👩‍💻": 2, "é": 1, "e\u0301": 1} {
		if got := ink.Width(s); got != want {
			t.Errorf("Width(%q) = %d", s, got)
		}
	}
}
