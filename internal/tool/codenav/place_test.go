//go:build unix

package codenav

import (
	"strings"
	"testing"
	"unicode/utf8"

	"coder/internal/host/lsp"
)

// FuzzCandidates looks for symbols in texts: every place found is in the text,
// near the line asked for, and what is asked for stands there.
func FuzzCandidates(f *testing.F) {
	f.Add("def fun\nuse fun 😀 x.fun\n", "fun", 2, 0)
	f.Add("a\r\n\tpkg.Func(日本)\r\n", "pkg.Func", 0, 3)
	f.Add("x->y\nx::y", "x::y", 1, 1)
	f.Add("\xff\xfe fun", "fun", 1, 0)
	f.Add("aaa aa a", "aa", 0, 0)
	f.Add(". ..", ".", 0, 0)
	f.Fuzz(func(t *testing.T, text, symbol string, line, column int) {
		a := placeArgs{Path: "f", Symbol: symbol, Line: line, Column: column}
		if a.check() != nil {
			return
		}
		lines := splitLines([]byte(text))
		places, err := a.candidates(lines)
		if err != nil {
			return
		}
		if len(places) == 0 || len(places) > maxTries {
			t.Fatalf("%d places", len(places))
		}
		for _, p := range places {
			if p.Line < 0 || p.Line >= len(lines) || symbol != "" && line > 0 && abs(p.Line-(line-1)) > lineTolerance {
				t.Fatalf("place %+v of %q", p, lines)
			}
			n := lsp.RuneOffset(lines[p.Line], p.Character)
			at := 0
			for range n {
				_, size := utf8.DecodeRuneInString(lines[p.Line][at:])
				at += size
			}
			if symbol != "" && !strings.HasPrefix(lines[p.Line][at:], baseSymbol(strings.TrimSpace(symbol))) && utf8.ValidString(symbol) {
				t.Fatalf("%q is not at %+v of %q", symbol, p, lines)
			}
			if symbol == "" && (p.Line != line-1 || n != column-1) {
				t.Fatalf("%d:%d became %+v", line, column, p)
			}
		}
	})
}

func TestLastPart(t *testing.T) {
	for symbol, want := range map[string]string{
		"a": "a", "a.b": "b", "a.b.c": "c", "A::b": "b", "x->y": "y", "a#b": "b", ".": ".", "a.": "a.", "a::b.c": "c", "ns::T->f": "f",
	} {
		if got := baseSymbol(symbol); got != want {
			t.Errorf("lastPart(%q) = %q, want %q", symbol, got, want)
		}
	}
}
