package cli

import (
	"slices"
	"strings"
	"testing"
)

func TestTheNextWordIsReadFromTheUsage(t *testing.T) {
	for _, tt := range []struct {
		usage, written string
		want           []string
	}{
		{"[plan|build]", "", []string{"plan", "build"}},
		{"[plan|build]", "plan", nil},
		{"[FOCUS|undo]", "", []string{"FOCUS", "undo"}},
		{"[tools|reconnect [SERVER]|login SERVER]", "", []string{"tools", "reconnect", "login"}},
		{"[tools|reconnect [SERVER]|login SERVER]", "login", []string{"SERVER"}},
		{"[tools|reconnect [SERVER]|login SERVER]", "tools", nil},
		{"[PRESET | revoke N | revoke all]", "revoke", []string{"N", "all"}},
		{"[FORMAT] [FILE]", "md", []string{"FILE"}},
		{"[NAME [force]]", "gpt", []string{"force"}},
		{"FILE[:LINE]", "", []string{"FILE"}},
		{"", "", nil},
		{"[all] [force] [dry]", "", []string{"all", "force", "dry"}}, {"[all] [force] [dry]", "dry all", []string{"force"}},
		{"[all|#N|FILE] [force] [dry]", "", []string{"all", "#N", "FILE"}}, {"[all|#N|FILE] [force] [dry]", "all", []string{"force"}}, {"[FORMAT] [FILE]", "", []string{"FORMAT"}},
	} {
		if got := nextUsageWords(tt.usage, strings.Fields(tt.written)); !slices.Equal(got, tt.want) {
			t.Errorf("%s after %q: %q", tt.usage, tt.written, got)
		}
	}
}
