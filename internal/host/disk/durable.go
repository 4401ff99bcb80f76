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

// traced is a file that reports its syncs to the Tracer.
type traced struct{ *os.File }

func (t traced) Sync() error {
	Trace("sync", t.Name())
	return t.File.Sync()
}

// SyncFolder flushes the names in a folder to disk, on systems that support it.
func SyncFolder(path string) error { return SyncDirs(System, path) }

// Folders collects folders with added or removed files, to sync each once before the record says that
// the work is done. The nil Folders collects none.
type Folders struct {
	mu    sync.Mutex
	dirs  map[string]bool
	never bool
}

// NewFolders returns an empty Folders; with never set, it never syncs.
func NewFolders(never bool) *Folders { return &Folders{dirs: make(map[string]bool), never: never} }

// Add marks a folder as changed.
func (f *Folders) Add(dir string) {
	if f == nil || f.never {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dirs[filepath.Clean(dir)] = true
}

// Sync flushes all folders marked so far. It ignores deleted folders.
func (f *Folders) Sync() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	dirs := slices.Sorted(maps.Keys(f.dirs))
	clear(f.dirs)
	f.mu.Unlock()
	for i, dir := range dirs {
		if err := SyncFolder(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			for _, left := range dirs[i:] {
				f.Add(left)
			}
			return err
		}
	}
	return nil
}
