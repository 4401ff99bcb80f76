package jsonl_test

import (
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"coder/internal/core/event"
	"coder/internal/host/disk"
	"coder/internal/record/store/jsonl"
)

// folderDisk is the disk of the system that notes the folders that are synced. The first sync may fail.
type folderDisk struct {
	disk.Disk
	mu     sync.Mutex // guards the fields below
	fails  bool
	synced []string // their names, in order
}

func (d *folderDisk) Sync(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.synced = append(d.synced, filepath.Base(path))
	if d.fails {
		d.fails = false
		return syscall.EIO
	}
	return d.Disk.Sync(path)
}

// TestFoldersAreSyncedAhead begins the sync of a new session's folders before a record needs it. The record waits for
// it, syncs no folder twice, and syncs again what failed.
func TestFoldersAreSyncedAhead(t *testing.T) {
	for _, c := range []struct {
		name  string
		fails bool
		want  []string
	}{
		{"works", false, []string{"a", "log", "data", "project"}},
		{"fails once", true, []string{"a", "a", "log", "data", "project"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			project := filepath.Join(t.TempDir(), "project")
			if err := disk.MkdirAll(disk.System, filepath.Join(project, "data"), 0o700); err != nil {
				t.Fatal(err)
			}
			d := &folderDisk{Disk: disk.System, fails: c.fails}
			s := jsonl.Open(filepath.Join(project, "data", "log"), jsonl.Options{Disk: d})
			release, err := s.Claim(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			note := event.Record{Seq: 1, Session: "a", Event: event.TaskStarted{TaskID: "t"}}
			if err := s.Append(t.Context(), 0, note); err != nil {
				t.Fatal(err)
			}
			for _, session := range []string{"a", "a", "another"} { // the second time and elsewhere it begins nothing
				s.SyncAhead(session)
			}
			end := event.Record{Seq: 2, Session: "a", Event: event.TaskCompleted{TaskID: "t"}}
			if err := s.Append(t.Context(), 1, end); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(d.synced, c.want) {
				t.Errorf("synced %q, want %q", d.synced, c.want)
			}
			if err := release(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
