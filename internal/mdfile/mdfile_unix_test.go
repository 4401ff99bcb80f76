//go:build unix

package mdfile_test

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"coder/internal/mdfile"
)

func TestAPipeIsNotWaitedFor(t *testing.T) {
	dir := t.TempDir()
	must(t, syscall.Mkfifo(filepath.Join(dir, "a.md"), 0o600))
	if _, _, err := mdfile.Read(mdfile.Dir(dir), "a.md", 10); !errors.Is(err, mdfile.ErrNotRegular) {
		t.Errorf("a pipe was read: %v", err)
	}
}
