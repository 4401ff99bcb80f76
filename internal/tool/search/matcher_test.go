package search

import (
	"bytes"
	"context"
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
)

func TestNeeded(t *testing.T) {
	for _, tc := range []struct {
		pattern string
		fold    bool
		want    string
	}{
		{"ErrUnexpectedEOF", false, "ErrUnexpectedEOF"},
		{`func \(\w+ \*\w+\) \w+\(`, false, "func ("},
		{`(TODO|FIXME|XXX)\(\w+\)`, false, "TODO|FIXME|XXX"},
		{`(TODO|FIXME|XXX)\(gri\w+\)`, false, "[OX][DMX][EOX](gri[0-\xff]"},
		{`\b[A-Z]{5,}_[A-Z]+\b`, false, "[A-Z][A-Z][A-Z][A-Z][A-Z]"},
		{`\w+ErrShortBuffer`, false, "ErrShortBuffer"},
		{`[qz]{3,}`, false, "[qz][qz][qz]"},
		{`\d+\.\d+`, false, "[0-\xff].[0-\xff]"},
		{`Hello`, true, "[Hh][Ee][Ll][Ll][Oo]"},
		{`(?i)Hello`, false, "[Hh][Ee][Ll][Ll][Oo]"},
		{`a*`, false, ""},
		{`(foo|.)`, false, ""},
		{`(foo)?bar+`, false, "bar"},
		{`(foo|bar)x`, false, "[bf][ao][or]x"},
		{`(abc){2,3}`, false, "abcabc"},
		{`a.b`, false, "b"},
		{`x(?i)y`, false, "x[Yy]"},
		{`é+x`, false, "\xc3\xa9x"},
	} {
		m, err := newMatcher(tc.pattern, tc.fold)
		if err != nil {
			t.Fatal(err)
		}
		if m.requirement.String() != tc.want {
			t.Errorf("needed(%q) = %s, want %s", tc.pattern, m.requirement, tc.want)
		}
	}
}

// A pattern of megabytes would take minutes and all memory.
func TestAPatternHasABound(t *testing.T) {
	if _, err := newMatcher(strings.Repeat("abcdefgh", maxRegexp), false); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("err = %v", err)
	}
	if _, err := newMatcher(strings.Repeat("abcdefgh", maxRegexp/8), false); err != nil {
		t.Error(err)
	}
}

func TestFoldingBeyondASCII(t *testing.T) {
	m, err := newMatcher("kiss", true)
	if err != nil {
		t.Fatal(err)
	}
	data := []byte("KISS\n\u212aiſſ\nno\n")
	if got := m.findLines(t.Context(), data, 10); len(got) != 2 {
		t.Errorf("lines = %v", got)
	}
}

// Whatever the shortcuts, the lines are those a plain search would find.
func FuzzMatcher(f *testing.F) {
	f.Add("a+b", "aab\nb\nab", false)
	f.Add("(foo|ba[rz])x", "foox\nBARX\nbazx\r\n", true)
	f.Add("^$", "\n\na\n", false)
	f.Add(`\bk`, "\u212a\nK k\n", true)
	f.Add("x\ny", "x\ny\n", false)
	f.Add("[^a]", "a\nb\n", false)
	f.Add(`\Ax|y\z`, "x\ny", false)
	f.Add(`(?-m)^a$`, "b\na\n", false)
	f.Add(`\B[a-f]{3}\b`, "xabc\nabc\n_abc é\n", false)
	f.Add(`(a|b)*a(a|b){3}`, "abababba\nbbbbbbb\n", false)
	f.Add("[\u4e00-\u9fff]x", "中x\nx\n\xffx", false)
	f.Add("\ufffd.", "\xff.\n\ufffdx\n", true)
	f.Add("(ab|cd|efg)[0-9]+|x{4}", "ab1\nefg\nefg22\nxxxx", true)
	f.Fuzz(func(t *testing.T, pattern, text string, fold bool) {
		m, err := newMatcher(pattern, fold)
		if err != nil || strings.Contains(pattern, `\b`) || strings.Contains(pattern, `\B`) { // those of the standard library know ASCII
			return
		}
		re := wideRegexp(t, pattern, fold)
		var want []span
		at := 0
		for line := range bytes.Lines([]byte(text)) {
			end := at + len(bytes.TrimSuffix(line, []byte("\n")))
			if re.MatchString(text[at:end]) {
				want = append(want, span{at, end})
			}
			at += len(line)
		}
		if got := m.findLines(t.Context(), []byte(text), 1<<20); !slices.Equal(got, want) {
			t.Fatalf("%q in %q: %v, want %v (need %s)", pattern, text, got, want, m.requirement)
		}
		if m.finders = nil; m.requirement.score() > 0 && !(m.foldsNonASCII && hasFoldingRunes([]byte(text))) { // rare or not, it must be there
			for _, r := range m.requirement {
				m.finders = append(m.finders, newFinder(limitRun(r)))
			}
			if got := m.findLines(t.Context(), []byte(text), 1<<20); !slices.Equal(got, want) {
				t.Fatalf("%q in %q by need: %v, want %v (need %s)", pattern, text, got, want, m.requirement)
			}
			m.finders = nil
		}
		if got := m.findLines(t.Context(), []byte(text), 1<<20); !slices.Equal(got, want) {
			t.Fatalf("%q in %q by automaton: %v, want %v", pattern, text, got, want)
		}
	})
}

// wideRegexp is a pattern as the standard library matches it, with the classes
// of all scripts.
func wideRegexp(t *testing.T, pattern string, fold bool) *regexp.Regexp {
	wide, err := expandClasses(pattern)
	if err != nil {
		t.Fatal(err)
	}
	flags := "(?m)"
	if fold {
		flags = "(?mi)"
	}
	return regexp.MustCompile(flags + wide)
}

// A finder finds what a plain expression finds.
func TestFinder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, pattern := range []string{"x", "xy", "[xX][yY]", "z[ab]", "[ab]z", "[a-c]{3}", "[ab][bc][ca]d", "xxyx"} {
		re := regexp.MustCompile(pattern)
		tree, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		var a analyzer
		f := newFinder(a.analyze(tree.Simplify()).head)
		for _, byByte := range []bool{f.useByteSearch, false} {
			f.useByteSearch = byByte
			for range 300 {
				text := make([]byte, rnd.IntN(60))
				for i := range text {
					text[i] = "abcdxyXYz\n"[rnd.IntN(10)]
				}
				want := -1
				if at := re.FindIndex(text); at != nil {
					want = at[0]
				}
				if got := f.find(text); got != want {
					t.Fatalf("%s in %q: %d, want %d", pattern, text, got, want)
				}
			}
		}
	}
}

// countdown is a context that ends when it has been asked a few times.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// plain is a matcher that knows nothing of what a match needs.
func plain(t *testing.T, pattern string) *matcher {
	m, err := newMatcher(pattern, false)
	if err != nil {
		t.Fatal(err)
	}
	m.finders = nil
	return m
}

func TestSearchByAutomatonStops(t *testing.T) {
	text := strings.Repeat("some line of text\n", 50_000) + "needle"
	if got := plain(t, "^needle$").findLines(&countdown{t.Context(), 4}, []byte(text), 10); len(got) != 0 {
		t.Errorf("it went on to the end: %v", got)
	}
}

func TestLongTextIsSearchedInWindows(t *testing.T) {
	text := strings.Repeat("some line of text\n", 20_000) + "needle"
	if got := plain(t, "^needle$").findLines(t.Context(), []byte(text), 10); len(got) != 1 || got[0].to != len(text) {
		t.Errorf("lines = %v", got)
	}
}

// An automaton that needs more states than it may keep forgets and goes on.
func TestAutomatonForgets(t *testing.T) {
	m, re := plain(t, `[ab]*a[ab]{14}c`), regexp.MustCompile(`[ab]*a[ab]{14}c`)
	var text, want strings.Builder
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var line []byte
		for range 60 {
			line = append(line, "ab"[rnd.IntN(2)])
		}
		if rnd.IntN(2) == 0 {
			line = append(line, 'c')
		}
		text.Write(append(line, '\n'))
		if re.Match(line) {
			want.Write(append(line, '\n'))
		}
	}
	var got strings.Builder
	for _, l := range m.findLines(t.Context(), []byte(text.String()), 1000) {
		got.WriteString(text.String()[l.from:l.to] + "\n")
	}
	if got.String() != want.String() || got.Len() == 0 {
		t.Errorf("found %d bytes of lines, want %d", got.Len(), want.Len())
	}
	if a := m.automatons.Get().(*automaton); len(a.states) > maxStates {
		t.Errorf("%d states are kept", len(a.states))
	}
}

// String shows a need in the way of an expression.
func (n requirement) String() string {
	var alternatives []string
	for _, r := range n {
		var b strings.Builder
		for _, s := range r {
			s.print(&b)
		}
		alternatives = append(alternatives, b.String())
	}
	return strings.Join(alternatives, "|")
}

func (s byteSet) print(b *strings.Builder) {
	var all []byte
	for c := range 256 {
		if s.has(byte(c)) {
			all = append(all, byte(c))
		}
	}
	if len(all) == 1 {
		b.WriteByte(all[0])
		return
	}
	b.WriteByte('[')
	if len(all) > 4 {
		all = []byte{all[0], '-', all[len(all)-1]}
	}
	b.Write(all)
	b.WriteByte(']')
}
