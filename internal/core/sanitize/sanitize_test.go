package sanitize_test

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"coder/internal/core/sanitize"
)

func TestText(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"plain text is untouched", "héllo, 世界 👩‍💻\n\tx", "héllo, 世界 👩‍💻\n\tx"},
		{"colour", "\x1b[31mred\x1b[0m", "^[[31mred^[[0m"},
		{"title sequence", "\x1b]0;pwned\a", "^[]0;pwned^G"},
		{"eight-bit controls", "a\u009b31mb", "a<U+009B>31mb"},
		{"backspace and delete", "a\b\x7f", "a^H^?"},
		{"windows line ends", "a\r\nb\r\n", "a\nb\n"},
		{"lone carriage return", "safe\rrm -rf", "safe^Mrm -rf"},
		{"carriage return last", "a\r", "a^M"},
		{"reordering", "a\u202eb\u2066c\u200f", "a<U+202E>b<U+2066>c<U+200F>"},
		{"invisible tags", "a\U000e0041b", "a<U+E0041>b"},
		{"invisible space", "rm\u200b -rf", "rm<U+200B> -rf"},
		{"byte order mark within", "a\ufeffb", "a<U+FEFF>b"},
		{"word joiner and invisible operators", "a\u2060\u2063b", "a<U+2060><U+2063>b"},
		{"fillers", "a\u3164\uffa0b", "a<U+3164><U+FFA0>b"},
		{"selectors that smuggle bytes", "a\U000e0101b", "a<U+E0101>b"},
		{"joiners are needed", "می\u200cخواهم 👩\u200d💻 ❤\ufe0f", "می\u200cخواهم 👩\u200d💻 ❤\ufe0f"},
		{"every mark of direction", "\u061c\u200e\u202a\u202b\u202c\u202d\u2067\u2068\u2069", "<U+061C><U+200E><U+202A><U+202B><U+202C><U+202D><U+2067><U+2068><U+2069>"},
		{"line separator", "a\u2028b", "a<U+2028>b"},
		{"broken UTF-8", "a\xffb", "a\ufffdb"},
		{"zero byte", "a\x00b", "a^@b"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := sanitize.Text(tc.in); got != tc.want {
				t.Errorf("Text(%q) = %q, want %q", tc.in, got, tc.want)
			}
		})
	}
}

func TestLine(t *testing.T) {
	for _, tc := range []struct {
		in    string
		limit int
		want  string
	}{
		{"go test ./...", 80, "go test ./..."},
		{"  a\n\n b\tc  ", 80, "a b c"},
		{"abcdef", 6, "abcdef"},
		{"abcdefg", 6, "abcde…"},
		{"abcd efg", 6, "abcd…"},
		{"世界世界世界", 4, "世界世…"},
		{"a\x1b[2Jb", 80, "a^[[2Jb"},
		{strings.Repeat("x", 1000), 0, strings.Repeat("x", 1000)},
		{"", 5, ""},
		{strings.Repeat(" ", 1000) + "abc", 10, "abc"},
		{"ls" + strings.Repeat(" ", 1000) + "; rm -rf /", 20, "ls…"}, // never as if that were all
		{"abc", 1, "…"},
		{"abc", math.MaxInt, "abc"},
	} {
		if got := sanitize.Line(tc.in, tc.limit); got != tc.want {
			t.Errorf("Line(%q, %d) = %q, want %q", tc.in, tc.limit, got, tc.want)
		}
	}
}

func TestLineDoesBoundedWork(t *testing.T) {
	huge := strings.Repeat("世", 10<<20)
	if n := testing.AllocsPerRun(1, func() { sanitize.Line(huge, 80) }); n > 20 {
		t.Errorf("a long title took %v allocations", n)
	}
	if got := sanitize.Line(huge, 80); utf8.RuneCountInString(got) != 80 {
		t.Errorf("cut to %d runes", utf8.RuneCountInString(got))
	}
}

func FuzzSafe(f *testing.F) {
	for _, s := range []string{"", "a\r\nb", "\x1b[31m\u009b\u202e\xff\xc3", "\ufeffa\u200b\U000e0041", strings.Repeat("世", 500)} {
		f.Add(s, 10)
	}
	f.Fuzz(func(t *testing.T, s string, limit int) {
		text, line := sanitize.Text(s), sanitize.Line(s, limit)
		for _, r := range text + line {
			if r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r != utf8.RuneError && sanitize.IsHazard(r) && r != '\n' {
				t.Fatalf("%q lets %U through", s, r)
			}
		}
		if !utf8.ValidString(text) || !utf8.ValidString(line) {
			t.Fatalf("%q gives invalid UTF-8", s)
		}
		if strings.ContainsAny(line, "\n\t") {
			t.Fatalf("Line(%q) has a line break: %q", s, line)
		}
		if limit > 0 && utf8.RuneCountInString(line) > limit {
			t.Fatalf("Line(%q, %d) is longer than it may be", s, limit)
		}
		if sanitize.Text(text) != text {
			t.Fatalf("Text(%q) is not clean: %q", s, text)
		}
	})
}
