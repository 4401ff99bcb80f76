//go:build unix

package lsp

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// maxLook is how many files and directories of a project are looked at for
// changes.
const maxLook = 30_000

// aside are directories whose files are not written by hand.
var aside = []string{
	".git", ".hg", ".svn", ".coder", "node_modules", "vendor", "target", "dist", "build", ".venv", "venv", "__pycache__",
	".tox", ".mypy_cache", ".cache", ".idea", ".vscode",
}

// stamp tells one state of a file from another.
type stamp struct {
	size int64
	mod  time.Time
}

// snapshot is the state of a project's files.
type snapshot struct {
	files map[string]stamp
	whole bool // nothing was left out
}

// change is a file that is not as it was.
type change struct {
	path string
	kind int
}

// The kinds of change, as the protocol numbers them.
const (
	created = iota + 1
	altered
	deleted
)

// scan takes a snapshot of those files of the project that concern the server,
// and of the documents it has open.
func (s *server) scan(ctx context.Context, docs map[string]*document) snapshot {
	now := snapshot{files: make(map[string]stamp), whole: true}
	seen := 0
	_ = filepath.WalkDir(s.root, func(path string, d fs.DirEntry, err error) error {
		if seen++; seen > maxLook || ctx.Err() != nil {
			now.whole = false
			return filepath.SkipAll
		}
		switch {
		case err != nil:
			now.whole = false
		case d.IsDir() && path != s.root && slices.Contains(aside, d.Name()):
			return filepath.SkipDir
		case d.Type().IsRegular() && (s.kind.languageID(path) != "" || slices.Contains(slices.Concat(s.kind.Markers...), d.Name())):
			now.add(path, d.Info)
		}
		return nil
	})
	for path := range docs {
		now.add(path, func() (fs.FileInfo, error) { return os.Lstat(path) })
	}
	return now
}

func (n snapshot) add(path string, stat func() (fs.FileInfo, error)) {
	if info, err := stat(); err == nil {
		n.files[path] = stamp{info.Size(), info.ModTime()}
	}
}

// since lists what is not as it was before, by path. If files were left out
// nobody can tell which are new or gone.
func (n snapshot) since(before snapshot) (list []change) {
	for path, now := range n.files {
		was, ok := before.files[path]
		switch {
		case ok && was != now:
			list = append(list, change{path, altered})
		case !ok && before.whole:
			list = append(list, change{path, created})
		}
	}
	for path := range before.files {
		if _, ok := n.files[path]; !ok && n.whole {
			list = append(list, change{path, deleted})
		}
	}
	slices.SortFunc(list, func(a, b change) int { return strings.Compare(a.path, b.path) })
	return list
}
