package disk

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// Tracer, if set, receives each durability operation in order: "sync" of a file or of the names in a
// folder, and "name" when a file gets its name. Tests set it before anything is written.
var Tracer func(op, path string)

// Trace reports one operation to the Tracer.
func Trace(op, path string) {
	if Tracer != nil {
		Tracer(op, path)
	}
}

// tracedFile is a file that reports its syncs to the Tracer.
type tracedFile struct{ *os.File }

func (t tracedFile) Sync() error {
	Trace("sync", t.Name())
	return t.File.Sync()
}

// SyncDir flushes the names in a folder to disk, on systems that support it.
func SyncDir(path string) error { return SyncDirs(System, path) }

// DirSyncer collects folders with added or removed files, to sync each once before the record says that
// the work is done. The nil Folders collects none.
type DirSyncer struct {
	mu       sync.Mutex
	dirs     map[string]bool
	disabled bool
}

// NewDirSyncer returns an empty Folders; with never set, it never syncs.
func NewDirSyncer(never bool) *DirSyncer {
	return &DirSyncer{dirs: make(map[string]bool), disabled: never}
}

// Add marks a folder as changed.
func (f *DirSyncer) Add(dir string) {
	if f == nil || f.disabled {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dirs[filepath.Clean(dir)] = true
}

// Sync flushes all folders marked so far. It ignores deleted folders.
func (f *DirSyncer) Sync() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	dirs := slices.Sorted(maps.Keys(f.dirs))
	clear(f.dirs)
	f.mu.Unlock()
	for i, dir := range dirs {
		if err := SyncDir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			for _, left := range dirs[i:] {
				f.Add(left)
			}
			return err
		}
	}
	return nil
}
