package search

import (
	"bytes"
	"context"
	"regexp"
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
		{`(TODO|FIXME|XXX)\(\w+\)`, false, "TODO FIXME XXX"},
		{`\b[A-Z]{5,}_[A-Z]+\b`, false, "_"},
		{`\w+ErrShortBuffer`, false, "ErrShortBuffer"},
		{`hello`, true, "hello"},
		{`(?i)Hello`, false, "hello"},
		{`a*`, false, ""},
		{`(foo|.)`, false, ""},
		{`(foo)?bar+`, false, "ba"},
		{`(abc){2,3}`, false, "abc"},
		{`x(?i)y`, false, "x"},
		{`straße`, true, "stra"},
	} {
		m, err := newMatcher(tc.pattern, tc.fold)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range m.literals {
			got = append(got, string(l))
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("needed(%q) = %q, want %q", tc.pattern, got, tc.want)
		}
	}
}

func TestFoldingBeyondASCII(t *testing.T) {
	m, err := newMatcher("kiss", true)
	if err != nil {
		t.Fatal(err)
	}
	data := []byte("KISS\n\u212aiſſ\nno\n")
	if got := m.lines(t.Context(), data, 10); len(got) != 2 {
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
	f.Fuzz(func(t *testing.T, pattern, text string, fold bool) {
		m, err := newMatcher(pattern, fold)
		if err != nil || strings.Contains(pattern, `\A`) || strings.Contains(pattern, `\z`) || strings.Contains(pattern, "-m") {
			return // anchors of the whole text mean nothing line by line
		}
		var want []span
		at := 0
		for line := range bytes.Lines([]byte(text)) {
			end := at + len(bytes.TrimSuffix(line, []byte("\n")))
			if m.re.MatchString(text[at:end]) {
				want = append(want, span{at, end})
			}
			at += len(line)
		}
		if got := m.lines(t.Context(), []byte(text), 1<<20); !slices.Equal(got, want) {
			t.Fatalf("%q in %q: %v, want %v (literals %q)", pattern, text, got, want, m.literals)
		}
	})
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

func TestSearchWithoutLiteralsStops(t *testing.T) {
	text := strings.Repeat("some line of text\n", 50_000) + "needle"
	m := &matcher{re: regexp.MustCompile("(?m)^needle$")}
	if got := m.lines(&countdown{t.Context(), 4}, []byte(text), 10); len(got) != 0 {
		t.Errorf("it went on to the end: %v", got)
	}
}

func TestLongTextIsSearchedInWindows(t *testing.T) {
	text := strings.Repeat("some line of text\n", 20_000) + "needle"
	m := &matcher{re: regexp.MustCompile("(?m)^needle$")} // without literals
	if got := m.lines(t.Context(), []byte(text), 10); len(got) != 1 || got[0].to != len(text) {
		t.Errorf("lines = %v", got)
	}
}
