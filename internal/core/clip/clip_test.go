package clip

import "testing"

func TestTextIsCutBetweenRunes(t *testing.T) {
	for _, tt := range []struct {
		s                string
		n                int
		text, head, tail string
	}{
		{"abc", 3, "abc", "abc", "abc"},
		{"abcd", 3, "abc…", "abc", "bcd"},
		{"世界", 4, "世…", "世", "界"},
		{"世界", 2, "…", "", ""},
		{"世界", 0, "…", "", ""},
		{"世界", -5, "…", "", ""},
		{"", 0, "", "", ""},
	} {
		if text, head, tail := Truncate(tt.s, tt.n), Head(tt.s, tt.n), Tail(tt.s, tt.n); text != tt.text || head != tt.head || tail != tt.tail {
			t.Errorf("%q at %d: %q, %q, %q", tt.s, tt.n, text, head, tail)
		}
	}
}
