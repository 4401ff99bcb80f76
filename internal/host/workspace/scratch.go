package workspace

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"coder/internal/core/lazy"
)

// UseScratchDir creates temporary files in a directory of the workspace instead of beside their
// destinations, on the same file system. The directory is created when first needed.
func (w *Workspace) UseScratchDir(dir string) { w.scratch.name = dir }

// scratchDir is the directory for temporary files.
type scratchDir struct {
	name string
	root atomic.Pointer[os.Root]
}

// scratchDirs returns the directories in which a draft for dir may have a name.
func (w *Workspace) scratchDirs(dir *os.Root) []*os.Root {
	main := cmp.Or(w.main, w)
	s := &main.scratch
	if s.name == "" {
		return []*os.Root{dir}
	}
	if at := s.root.Load(); at != nil {
		return []*os.Root{at, dir}
	}
	err := main.root.MkdirAll(s.name, 0o700)
	var at *os.Root
	if err == nil {
		at, err = main.root.OpenRoot(s.name)
	}
	if err != nil {
		return []*os.Root{dir}
	}
	if !s.root.CompareAndSwap(nil, at) {
		at.Close()
	}
	return []*os.Root{s.root.Load(), dir}
}

// scratchPattern matches names of temporary files: process, number, and content hash.
var scratchPattern = lazy.Regexp(`^\.coder-([0-9]+)-[0-9]+(?:-([0-9a-f]{16}))?\.tmp$`)

// IsScratch reports whether name is that of one of coder's temporary files.
func IsScratch(name string) bool {
	return strings.HasPrefix(name, scratchPrefix) && scratchPattern().MatchString(name)
}

// RemoveScratch removes temporary files left by a crash, in the scratch directory and at the given names. It
// keeps those of a running process and files of other programs. A file that may hold replaced content is
// removed only if has reports that the content is saved elsewhere; Sweep returns the others.
func (w *Workspace) RemoveScratch(names []string, has func(content io.ReadSeeker) bool) (stay []string) {
	if w.scratch.name != "" {
		list, _, _ := w.ReadDir(w.scratch.name, maxDir)
		for _, e := range list {
			names = append(names, path.Join(w.scratch.name, e.Name()))
		}
	}
	for _, name := range names {
		m := scratchPattern().FindStringSubmatch(path.Base(name))
		if m == nil || w.CheckNoLinks(name) != nil {
			continue
		}
		pid, err := strconv.Atoi(m[1])
		if err != nil || pid <= 0 || syscall.Kill(pid, 0) != syscall.ESRCH {
			continue
		}
		_ = w.withParent(name, func(dir *os.Root, base string) error {
			f, err := inspect(dir, base)
			if err != nil || f.Info == nil {
				return err
			}
			defer f.close()
			if st, ok := f.Info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
				return nil
			}
			if f.Content != nil && m[2] != "" && !hasHash(f.Content, m[2]) && !has(f.Content) {
				stay = append(stay, name)
				return nil
			}
			return dir.Remove(base)
		})
	}
	return stay
}

// hasHash reports whether content has the hash in a name.
func hasHash(content io.ReadSeeker, want string) bool {
	h := sha256.New()
	_, err := io.Copy(h, content)
	return err == nil && hex.EncodeToString(h.Sum(nil)[:8]) == want
}

// scratchCount counts the temporary files of this process.
var scratchCount atomic.Uint64

// Names of temporary files record their process and, once known, their content, so that a changed file
// is detected.
func (d *draft) newName() string {
	tail := ".tmp"
	if d.sum != nil {
		tail = "-" + hex.EncodeToString(d.sum.Sum(nil)[:8]) + tail
	}
	return fmt.Sprintf("%s%d-%d%s", scratchPrefix, os.Getpid(), scratchCount.Add(1), tail)
}

const scratchPrefix = ".coder-"
