package whole_test

import (
	"os"
	"path/filepath"
	"testing"

	"coder/internal/whole"
)

func TestAFileIsReplacedWholeAndNothingIsLeftBeside(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.json")
	for _, text := range []string{"first", "the second, longer one", ""} {
		if err := whole.Write(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		info, _ := os.Stat(path)
		if err != nil || string(got) != text || info.Mode().Perm() != 0o600 {
			t.Errorf("%q, %v, %v; want %q", got, info.Mode(), err, text)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
	if err := whole.Write(filepath.Join(dir, "none", "a"), nil, 0o600); err == nil {
		t.Error("a file was written into a folder that is not there")
	}
}
