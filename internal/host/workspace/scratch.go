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

// KeepScratch creates temporary files in a directory of the workspace instead of beside their
// destinations, on the same file system. The directory is created when first needed.
func (w *Workspace) KeepScratch(dir string) { w.scratch.name = dir }

// scratchDir is the directory for temporary files.
type scratchDir struct {
	name string
	open atomic.Pointer[os.Root]
}

// scratchFor returns the directories in which a draft for dir may have a name.
func (w *Workspace) scratchFor(dir *os.Root) []*os.Root {
	main := cmp.Or(w.main, w)
	s := &main.scratch
	if s.name == "" {
		return []*os.Root{dir}
	}
	if at := s.open.Load(); at != nil {
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
	if !s.open.CompareAndSwap(nil, at) {
		at.Close()
	}
	return []*os.Root{s.open.Load(), dir}
}

// scratchName matches names of temporary files: process, number, and content hash.
var scratchName = lazy.Regexp(`^\.coder-([0-9]+)-[0-9]+(?:-([0-9a-f]{16}))?\.tmp$`)

// IsScratch reports whether name is that of one of coder's temporary files.
func IsScratch(name string) bool {
	return strings.HasPrefix(name, scratchPrefix) && scratchName().MatchString(name)
}

// Sweep removes temporary files left by a crash, in the scratch directory and at the given names. It
// keeps those of a running process and files of other programs. A file that may hold replaced content is
// removed only if has reports that the content is saved elsewhere; Sweep returns the others.
func (w *Workspace) Sweep(names []string, has func(content io.ReadSeeker) bool) (stay []string) {
	if w.scratch.name != "" {
		list, _, _ := w.ReadDir(w.scratch.name, maxDir)
		for _, e := range list {
			names = append(names, path.Join(w.scratch.name, e.Name()))
		}
	}
	for _, name := range names {
		m := scratchName().FindStringSubmatch(path.Base(name))
		if m == nil || w.Direct(name) != nil {
			continue
		}
		pid, err := strconv.Atoi(m[1])
		if err != nil || pid <= 0 || syscall.Kill(pid, 0) != syscall.ESRCH {
			continue
		}
		_ = w.inParent(name, func(dir *os.Root, base string) error {
			f, err := inspect(dir, base)
			if err != nil || f.Info == nil {
				return err
			}
			defer f.close()
			if st, ok := f.Info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
				return nil
			}
			if f.Content != nil && m[2] != "" && !sums(f.Content, m[2]) && !has(f.Content) {
				stay = append(stay, name)
				return nil
			}
			return dir.Remove(base)
		})
	}
	return stay
}

// sums reports whether content has the hash in a name.
func sums(content io.ReadSeeker, want string) bool {
	h := sha256.New()
	_, err := io.Copy(h, content)
	return err == nil && hex.EncodeToString(h.Sum(nil)[:8]) == want
}

// serial counts the temporary files of this process.
var serial atomic.Uint64

// Names of temporary files record their process and, once known, their content, so that a changed file
// is detected.
func (d *draft) newName() string {
	tail := ".tmp"
	if d.sum != nil {
		tail = "-" + hex.EncodeToString(d.sum.Sum(nil)[:8]) + tail
	}
	return fmt.Sprintf("%s%d-%d%s", scratchPrefix, os.Getpid(), serial.Add(1), tail)
}

const scratchPrefix = ".coder-"
