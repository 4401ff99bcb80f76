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

// Tracer, if set, is shown in order what is made durable: "sync" of a file or of
// the names in a folder, and "name" of a file put in its place. Tests set it
// before anything is written.
var Tracer func(op, path string)

// Trace shows the Tracer one operation.
func Trace(op, path string) {
	if Tracer != nil {
		Tracer(op, path)
	}
}

// traced is a file whose syncs the Tracer sees.
type traced struct{ *os.File }

func (t traced) Sync() error {
	Trace("sync", t.Name())
	return t.File.Sync()
}

// SyncFolder makes sure of the names in a folder, on systems where that can be done.
func SyncFolder(path string) error { return SyncDirs(System, path) }

// Folders are those in which files were placed or removed, to be synced together
// and at most once each: before the record says that it is done. The nil
// Folders keeps none.
type Folders struct {
	mu    sync.Mutex
	dirs  map[string]bool
	never bool
}

// NewFolders returns Folders to be synced, or that never are.
func NewFolders(never bool) *Folders { return &Folders{dirs: make(map[string]bool), never: never} }

// Add notes that names in a folder were changed.
func (f *Folders) Add(dir string) {
	if f == nil || f.never {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dirs[filepath.Clean(dir)] = true
}

// Sync makes sure of all names that were changed so far. A folder that is gone has none.
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
