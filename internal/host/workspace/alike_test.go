package workspace_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"coder/internal/host/workspace"
)

func TestNamesThatMayBeMeant(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"src/main.go", "src/util/helper.ts", "README.md", "src/util/other.ts", "ab"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	for name, want := range map[string]string{
		"main.go": "src/main.go", "src/man.go": "src/main.go", "src/helper.ts": "src/util/helper.ts", "src/util/helper.js": "src/util/helper.ts",
		"Readme.MD": "README.md", "util": "src/util", "lib/src/main.go": "src/main.go", "src/main.go:12": "src/main.go", "src/main.go:1-2": "src/main.go",
		"src/main.go#L3": "src/main.go", "@src/main.go": "src/main.go", "`src/main.go`": "src/main.go", `src\main.go`: "src/main.go",
		"zzz.txt": "", "xy": "", "src/util/nothing_alike.rs": "",
	} {
		err := ws.AddSuggestion(t.Context(), name, fs.ErrNotExist)
		_, got, _ := strings.Cut(strings.TrimSuffix(err.Error(), "?"), "did you mean ")
		if got != want || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
