package cells

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestWidth(t *testing.T) {
	tests := []struct {
		s    string
		want int
	}{
		{"", 0}, {"abc", 3}, {"你好", 4}, {"e\u0301", 1}, {"👩‍👩‍👧", 2}, {"🇩🇪", 2}, {"한글", 4}, {"☺️", 2},
		{"\x1b[31mred\x1b[0m", 3}, {"\x1b[38;2;1;2;3m你", 2}, {"\x1b]8;;http://x\x1b\\link\x1b]8;;\a", 4},
		{"คำ", 2}, {"हिन्दी", 5}, {"বাংলা", 5}, {"มี", 1}, {"\u060012", 2}, {"a\tb\nc", 3}, {"ab\x1b[", 3}, {"\u200b", 0}, {"a\x1b", 1},
	}
	for _, tt := range tests {
		if got := Width(tt.s); got != tt.want {
			t.Errorf("Width(%q) = %d, want %d", tt.s, got, tt.want)
		}
	}
}

func TestCut(t *testing.T) {
	tests := []struct {
		s     string
		width int
		want  string
		used  int
	}{
		{"abc", 5, "abc", 3},
		{"abc", 2, "ab", 2},
		{"abc", 0, "", 0},
		{"a你b", 2, "a", 1},
		{"a你b", 3, "a你", 3},
		{"\x1b[31mabc\x1b[0m", 2, "\x1b[31mab\x1b[0m", 2},
		{"a\x1b[2Jb\x1b[Hc\nd\a", 9, "abcd", 4},
		{"a\x1b]0;title\ab", 9, "ab", 2},
		{"a\u009bHb", 9, "aHb", 3},
		{"\x1b]8;;u\x1b\\ab\x1b]8;;\x1b\\", 1, "\x1b]8;;u\x1b\\a\x1b]8;;\x1b\\", 1},
	}
	for _, tt := range tests {
		got, used := Truncate(tt.s, tt.width)
		if got != tt.want || used != tt.used {
			t.Errorf("Cut(%q, %d) = %q, %d, want %q, %d", tt.s, tt.width, got, used, tt.want, tt.used)
		}
	}
}

func TestEscape(t *testing.T) {
	tests := []struct {
		s    string
		want int
	}{
		{"\x1b", 0}, {"\x1b[", 0}, {"\x1b[3", 0}, {"\x1b[31m", 5}, {"\x1b[31mx", 5}, {"\x1b[3\n", 3},
		{"\x1b]8;;x", 0}, {"\x1b]8;;x\a", 7}, {"\x1b]8;;x\x1b", 0}, {"\x1b]8;;x\x1b\\", 8}, {"\x1b]a\x1b[m", 3},
		{"\x1b]a\nb", 3}, {"\x1b(B", 3}, {"\x1b(", 0}, {"\x1bc", 2}, {"\x1b\n", 1}, {"\x1b\x1b[m", 1}, {"\x1bPq\x1b\\", 5},
	}
	for _, tt := range tests {
		if got := EscapeLen(tt.s); got != tt.want {
			t.Errorf("Escape(%q) = %d, want %d", tt.s, got, tt.want)
		}
	}
}

func TestHarmless(t *testing.T) {
	for seq, want := range map[string]bool{
		"\x1b[m": true, "\x1b[0m": true, "\x1b[1;31m": true, "\x1b[4:3m": true, "\x1b[?1m": false, "\x1b[>4m": false,
		"\x1b[2J": false, "\x1b]8;;u\a": true, "\x1b]8;id=1;u\x1b\\": true, "\x1b]52;c;eA==\a": false, "\x1bc": false,
		"\x1b]8;;a\nb\a": false,
	} {
		if got := IsHarmless(seq); got != want {
			t.Errorf("Harmless(%q) = %v", seq, got)
		}
	}
}

func FuzzCut(f *testing.F) {
	for _, s := range []string{"abc", "a你\x1b[31mb", "\x1b]8;;\x1b", "👩‍👩‍👧\r\n", "\xff\xfe", "\u0600a"} {
		f.Add(s, 3)
	}
	f.Fuzz(func(t *testing.T, s string, width int) {
		width = min(max(width, 0), 1000)
		got, used := Truncate(s, width)
		if used > width {
			t.Errorf("Cut(%q, %d) uses %d", s, width, used)
		}
		// What is left of the text may join differently, but never grows.
		if w := Width(got); w > used {
			t.Errorf("Cut(%q, %d) = %q says %d, takes %d", s, width, got, used, w)
		}
		for rest := got; ; {
			i := strings.IndexByte(rest, esc)
			if i < 0 {
				break
			}
			n := EscapeLen(rest[i:])
			if n == 0 || !IsHarmless(rest[i:i+n]) {
				t.Fatalf("Cut(%q) lets %q through", s, rest[i:])
			}
			rest = rest[i+n:]
		}
		if strings.ContainsAny(got, "\r\n\b\t") && utf8.ValidString(got) {
			t.Errorf("Cut(%q) = %q moves the cursor", s, got)
		}
	})
}
