package tool_test

import (
	"testing"

	"coder/internal/tool"
)

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 matches", 1: "1 match", 2: "2 matches"} {
		if got := tool.FormatCount(n, "match", "matches"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
