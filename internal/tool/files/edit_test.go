package files

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSubstitute(t *testing.T) {
	for _, tc := range []struct {
		name, text, old, new string
		all                  bool
		want                 string
		n                    int
	}{
		{"one", "a\nb\nc\n", "b", "B", false, "a\nB\nc\n", 1},
		{"several lines", "a\nb\nc\n", "a\nb\n", "x\n", false, "x\nc\n", 1},
		{"to nothing", "a\nb\n", "b\n", "", false, "a\n", 1},
		{"all", "x x x", "x", "yy", true, "yy yy yy", 3},
		{"all, overlapping", "aaaaa", "aa", "b", true, "bba", 2},
		{"new holds old", "x", "x", "xx", true, "xx", 1},
		{"no final newline", "a\nb", "b", "c", false, "a\nc", 1},
		{"byte order mark", "\ufeffa\n", "a", "b", false, "\ufeffb\n", 1},

		{"windows: within a line", "a\r\nb\r\n", "a", "x", false, "x\r\nb\r\n", 1},
		{"windows: plain line ends match", "a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n", false, "x\r\ny\r\nz\r\nc\r\n", 1},
		{"windows: inserted lines follow", "a\r\nb\r\n", "a", "a\nx", false, "a\r\nx\r\nb\r\n", 1},
		{"windows: at the end", "a\r\nb", "b", "b\nc\n", false, "a\r\nb\r\nc\r\n", 1},
		{"windows: new written with them", "a\r\nb\r\n", "a\n", "x\r\ny\r\n", false, "x\r\ny\r\nb\r\n", 1},
		{"windows: both written with them", "a\r\nb\r\n", "a\r\n", "x\r\n", false, "x\r\nb\r\n", 1},
		{"windows: made plain on purpose", "a\r\nb\r\n", "a\r\nb\r\n", "a\nb\n", false, "a\nb\n", 1},
		{"windows: all", "a\r\na\r\n", "a\n", "b\nc\n", true, "b\r\nc\r\nb\r\nc\r\n", 2},
		{"windows: a line removed", "a\r\nb\r\nc\r\n", "\nb", "", false, "a\r\nc\r\n", 1},
		{"mixed: others stay", "a\r\nb\nc\r\nd\n", "c", "C", false, "a\r\nb\nC\r\nd\n", 1},
		{"mixed: lines given for context stay", "a\r\nb\nc\r\nd\n", "a\nb\nc\nd\n", "a\nX\nc\nd\n", false, "a\r\nX\nc\r\nd\n", 1},
		{"mixed: inserted at a plain line", "a\r\nb\nc\r\n", "b", "b\nx", false, "a\r\nb\nx\nc\r\n", 1},
		{"lone returns", "a\rb\nc\n", "b", "x", false, "a\rx\nc\n", 1},
		{"doubled returns", "a\r\r\nb\r\n", "b", "x", false, "a\r\r\nx\r\n", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, n, err := substitute(tc.text, tc.old, tc.new, tc.all)
			if got != tc.want || n != tc.n || err != nil {
				t.Errorf("substitute = %q, %d, %v, want %q", got, n, err, tc.want)
			}
		})
	}
}

func TestSubstituteRefuses(t *testing.T) {
	for _, tc := range []struct {
		name, text, old, new string
		say                  []string
	}{
		{"same", "a", "a", "a", []string{"the same"}},
		{"ambiguous", "x\ny\nx\n\nx\n", "x\n", "z\n", []string{"3 places", "lines 1, 3, 5", "replace_all"}},
		{"overlapping is ambiguous", "aaa", "aa", "b", []string{"2 places"}},
		{"ambiguous in windows text", "x\r\ny\r\nx\r\n", "x\n", "z\n", []string{"lines 1, 3"}},
		{"many", strings.Repeat("x\n", 5000), "x", "z", []string{"1000 places", "lines 1, 2", "…"}},
		{"white space", "func f() {\n\treturn 1\n}\n", "func f() {\n    return 1\n}", "x", []string{"1: func f() {", "2: \treturn 1", "only whitespace differs"}},
		{"a word is wrong", "a\nreturn compute(x, y)\nb\n", "return compute(x, z)", "x", []string{"2: return compute(x, y)"}},
		{"nothing like it", "alpha\nbeta\n", "completely different", "x", []string{"not in the file"}},
		{"empty file", "", "a", "b", []string{"not in the file"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, _, err := substitute(tc.text, tc.old, tc.new, false)
			if err == nil {
				t.Fatalf("substitute = %q", got)
			}
			for _, w := range tc.say {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not say %q", err, w)
				}
			}
		})
	}
}

func TestNearestIsBounded(t *testing.T) {
	text := strings.Repeat(strings.Repeat("x", 1000)+"\n", 2000)
	old := strings.Repeat(strings.Repeat("x", 1000)+"y\n", 100)
	_, _, err := substitute(text, old, "z", false)
	if err == nil || len(err.Error()) > 3000 || !utf8.ValidString(err.Error()) {
		t.Errorf("error of %d bytes", len(err.Error()))
	}
}

func FuzzEdit(f *testing.F) {
	f.Add("a\nb\nc\n", "b", "B", false)
	f.Add("x x x", "x", "yy", true)
	f.Add("a\r\nb\r\n", "a\nb", "c\nd", false)
	f.Add("a\r\nb\nc\r\r\n", "b\n", "x\ny\n", true)
	f.Add("aaaa", "aa", "a", true)
	f.Fuzz(func(t *testing.T, text, old, new string, all bool) {
		if old == "" {
			return
		}
		got, n, err := substitute(text, old, new, all)
		if err != nil {
			if got != "" || n != 0 || err.Error() == "" {
				t.Fatalf("error %v with %q, %d", err, got, n)
			}
			return
		}
		if n < 1 || n > 1 && !all {
			t.Fatalf("%d replacements", n)
		}
		if strings.Contains(old, "\r") || !strings.Contains(text, "\r\n") {
			if n != strings.Count(text, old) || got != strings.ReplaceAll(text, old, new) {
				t.Fatalf("substitute(%q, %q, %q) = %q, %d", text, old, new, got, n)
			}
			return
		}
		checkLines(t, text, old, new, got, n)
	})
}

// checkLines sees that, read with plain line ends, the right text was put in
// the right places, and that what is before and after them is as it was.
func checkLines(t *testing.T, text, old, new, got string, n int) {
	plain := func(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }
	if strings.Contains(plain(text), "\r") || strings.Contains(plain(new), "\r") {
		return // a return left alone may meet a newline and become a line end
	}
	if want := strings.ReplaceAll(plain(text), old, plain(new)); plain(got) != want || n != strings.Count(plain(text), old) {
		t.Fatalf("substitute(%q, %q, %q) = %q, %d", text, old, new, got, n)
	}
	first, last := strings.Index(plain(text), old), strings.LastIndex(plain(text), old)
	head, tail := rawLength(text, first), text[rawLength(text, last+len(old)):]
	if !strings.HasPrefix(got, text[:head]) || n == 1 && !strings.HasSuffix(got, tail) {
		t.Fatalf("substitute(%q, %q, %q) = %q touched other text", text, old, new, got)
	}
}

func BenchmarkEdit1MB(b *testing.B) {
	line := "the quick brown fox jumps over the lazy dog\n"
	text := strings.Repeat(line, 1<<20/len(line)) + "here\n"
	for b.Loop() {
		if _, _, err := substitute(text, "here", "there", false); err != nil {
			b.Fatal(err)
		}
	}
}

func TestSeveralEditsAreAllOrNone(t *testing.T) {
	const text = "one\r\ntwo\r\ntwo\r\n"
	then := []nextEdit{{Old: "two\n", New: "2\n", ReplaceAll: true}, {Old: "1\n2", New: "12"}}
	o, err := applyEdits(editArgs{Path: "a", Old: "one", New: "1", Then: then}, []byte(text))
	if err != nil || string(o.content) != "12\r\n2\r\n" || o.replacements != 4 {
		t.Errorf("%q, %d, %v", o.content, o.replacements, err)
	}
	for _, bad := range [][]nextEdit{{{Old: "three", New: "3"}}, {{Old: "two", New: "2"}}, {{Old: "", New: "x"}}} {
		if _, err := applyEdits(editArgs{Path: "a", Old: "one", New: "1", Then: bad}, []byte(text)); err == nil || !strings.Contains(err.Error(), "edit 2 of 2") {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

func TestAnEditOfAsManyPlacesAsExpected(t *testing.T) {
	for _, tc := range []struct {
		old      string
		expected int
		want     string
	}{
		{"two", 2, "one\nX\nX\n"}, {"one", 1, "X\ntwo\ntwo\n"}, {"two", 1, ""}, {"two", 3, ""}, {"one", 2, ""},
	} {
		o, err := applyEdits(editArgs{Path: "a", Old: tc.old, New: "X", Expected: tc.expected}, []byte("one\ntwo\ntwo\n"))
		if string(o.content) != tc.want || (err != nil) != (tc.want == "") {
			t.Errorf("%s %d times: %q, %v", tc.old, tc.expected, o.content, err)
		}
	}
}

func TestAFileOfNothingButAMarkIsEmpty(t *testing.T) {
	if o, err := applyEdits(editArgs{Path: "a", New: "x\n"}, []byte(bom)); err != nil || string(o.content) != bom+"x\n" {
		t.Errorf("%q, %v", o.content, err)
	}
}
