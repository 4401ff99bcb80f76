package nearest

import (
	"slices"
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"model", "model", 0}, {"modle", "model", 1}, {"sesions", "sessions", 1}, {"kitten", "sitting", 3},
		{"größe", "grösse", 2}, {"文件", "文档", 1}, {strings.Repeat("x", 300), "x", 300},
	} {
		if got := Distance(tt.a, tt.b); got != tt.want || Distance(tt.b, tt.a) != tt.want {
			t.Errorf("%q and %q: %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

func FuzzOf(f *testing.F) {
	names := []string{"help", "model", "sessions", "auto-edit"}
	for _, word := range []string{"modle", "", "HELP", "\xff", strings.Repeat("x", 300)} {
		f.Add(word)
	}
	f.Fuzz(func(t *testing.T, word string) {
		if near := Find(word, names); near != "" && !slices.Contains(names, near) {
			t.Errorf("%q gives %q", word, near)
		}
		if len(word) <= maxLen && Distance(word, word) != 0 {
			t.Errorf("%q is not itself", word)
		}
	})
}
