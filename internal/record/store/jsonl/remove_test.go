package jsonl

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"coder/internal/core/event"
	"coder/internal/host/disk"
)

func TestLogsInUseAreNotRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	if InUse(dir) {
		t.Error("what is not there is in use")
	}
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(logPath(dir, event.LogAudit), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if InUse(dir) {
		t.Error("what nobody ever claimed is in use")
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := disk.Lock(f.Fd()); err != nil {
		t.Fatal(err)
	}
	claimed := new(event.ClaimedError)
	if err := RemoveLogs(dir); !errors.As(err, &claimed) || !InUse(dir) {
		t.Errorf("while it is locked: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := RemoveLogs(dir); err != nil || InUse(dir) {
		t.Errorf("afterwards: %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if err := RemoveLogs(dir); err != nil {
		t.Errorf("again: %v", err)
	}
}
