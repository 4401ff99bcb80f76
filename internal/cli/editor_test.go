package cli

import (
	"slices"
	"testing"
	"testing/fstest"
)

func TestFilesAreFoundByTheirLetters(t *testing.T) {
	tree := fstest.MapFS{}
	for _, path := range []string{
		"main.go", "internal/ui/repl/repl.go", "internal/ui/repl/repl_test.go", "internal/ui/term/reply.go", "docs/REPLY.md",
		"node_modules/repl/index.js", ".git/repl", "文档/说明.md",
	} {
		tree[path] = &fstest.MapFile{}
	}
	for _, tt := range []struct {
		typed string
		want  []string
	}{
		{"repl", []string{"docs/REPLY.md", "internal/ui/repl/repl.go", "internal/ui/term/reply.go", "internal/ui/repl/repl_test.go"}},
		{"ply.go", []string{"internal/ui/term/reply.go"}},
		{"uirt", []string{"internal/ui/repl/repl_test.go"}},
		{"说明", []string{"文档/说明.md"}},
		{"zzz", nil},
	} {
		if got := alike(tree, tt.typed); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.typed, got, tt.want)
		}
	}
}

func TestArgumentsAreReadFromTheUsage(t *testing.T) {
	for usage, want := range map[string][]string{
		"[plan|build]": {"plan", "build"}, "[FOCUS|undo]": {"undo"}, "[tools|reconnect [SERVER]]": {"tools", "reconnect"}, "": nil, "[ID]": nil,
	} {
		if got := arguments(usage); !slices.Equal(got, want) {
			t.Errorf("%s: %q", usage, got)
		}
	}
}
