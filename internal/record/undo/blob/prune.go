package blob

import (
	"cmp"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"
	"time"
)

// maxObjects limits the entries read from one directory of the store.
const maxObjects = 1 << 20

// object is a blob in the store.
type object struct {
	hash string
	size int64
	used time.Time
}

// Prune frees need bytes by removing the least recently used contents. It keeps contents for which
// pinned returns true and those just used. It returns how many bytes it freed.
func (s *Store) Prune(need int64, pinned func(hash string) bool) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.openRoot() != nil {
		return 0
	}
	all := s.listObjects()
	slices.SortFunc(all, func(a, b object) int {
		return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.hash, b.hash))
	})
	room := s.o.Quota - need - s.o.Quota/pruneFraction
	var freed int64
	for _, o := range all {
		if s.total <= room {
			break
		}
		if s.recentlyUsed[0][o.hash] || s.recentlyUsed[1][o.hash] || pinned(o.hash) {
			continue
		}
		if s.root.Remove(s.blobPath(o.hash)) == nil {
			s.total -= o.size
			freed += o.size
		}
	}
	return freed
}

// Drop removes a content.
func (s *Store) Drop(hash string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if info, ok := s.statBlob(hash); ok && info != nil && s.root.Remove(s.blobPath(hash)) == nil {
		s.total -= info.Size()
	}
}

// pruneFraction is the fraction of the quota that pruning frees in addition, so that it is rarely needed.
const pruneFraction = 16

// listObjects returns all blobs. It omits unreadable ones.
func (s *Store) listObjects() (all []object) {
	s.folders = make(map[string]bool)
	for _, dir := range readDir(s.root, objectsDir) {
		s.folders[dir.Name()] = true
		for _, d := range readDir(s.root, path.Join(objectsDir, dir.Name())) {
			info, err := d.Info()
			hash := dir.Name() + d.Name()
			if err == nil && IsHash(hash) {
				all = append(all, object{hash, info.Size(), info.ModTime()})
			}
		}
	}
	return all
}

func readDir(root *os.Root, name string) []fs.DirEntry {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	list, _ := f.ReadDir(maxObjects)
	return list
}
