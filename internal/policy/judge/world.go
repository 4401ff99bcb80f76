package judge

import (
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"coder/internal/core/secret"
)

// fileView is the judges' view of the file system.
type fileView struct {
	root, home string
	top        func() string // the target of root: the workspace was opened there and stays there
	added      []string      // additional folders where file tools write
}

func newFileView(root, home string, added []string) fileView {
	return fileView{root: root, home: home, added: added, top: sync.OnceValue(func() string { return resolveLinks(root) })}
}

func (w fileView) abs(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(w.root, path)
}

// realPath returns a path with links resolved. A path in the workspace
// begins with the workspace's own name, even if that is a link.
func (w fileView) realPath(path string) string {
	found, root := resolveLinks(secret.ResolveProc(w.abs(path))), w.top()
	if rel, err := filepath.Rel(root, found); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
		return filepath.Join(w.root, rel)
	}
	return found
}

// resolveLinks resolves links as far as a path exists.
func resolveLinks(path string) string {
	rest := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		if found, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(found, rest)
		}
		if target, err := os.Readlink(dir); err == nil { // a link to a missing file
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(dir), target)
			}
			return filepath.Join(target, rest)
		}
		if dir == filepath.Dir(dir) {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// glob lists the files that match a shell pattern.
func (w fileView) glob(pattern string) []string {
	found, _ := filepath.Glob(w.abs(pattern)) // a bad pattern means itself
	return found
}

// maxFiles limits the search of a folder for files that a rule covers.
const maxFiles = 20_000

// walk yields the files below a folder.
func (w fileView) walk(dir string) iter.Seq[string] {
	return func(yield func(string) bool) {
		looked := 0
		_ = filepath.WalkDir(w.abs(dir), func(name string, d fs.DirEntry, err error) error {
			looked++
			switch {
			case looked > maxFiles:
				return fs.SkipAll
			case err != nil:
				return nil // the command cannot read unreadable folders either
			case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules"):
				return fs.SkipDir
			case !d.IsDir() && !yield(name):
				return fs.SkipAll
			}
			return nil
		})
	}
}

// maxDotfiles limits how many files of a home are examined.
const maxDotfiles = 4000

// newLinkTest returns a function that reports whether a path is where a link leads, or below
// that. The links are dotfiles of the home, in ~/.config or among settings, and lead
// into a folder where file tools write. The first call scans the home.
func (w fileView) newLinkTest(settings []string) func(path string) bool {
	ends := sync.OnceValue(func() (ends []string) {
		looked := 0
		add := func(file string) {
			end := w.realPath(file)
			for _, dir := range append(w.added, w.root) {
				if rel, err := filepath.Rel(dir, end); err == nil && rel != "." && filepath.IsLocal(rel) {
					ends = append(ends, end)
					break
				}
			}
		}
		var look func(dir string, deep int)
		look = func(dir string, deep int) {
			list, _ := os.ReadDir(dir)
			for _, e := range list {
				file := filepath.Join(dir, e.Name())
				isDot := dir != w.home || strings.HasPrefix(e.Name(), ".")
				switch looked++; {
				case looked > maxDotfiles:
					return
				case isDot && e.Type()&fs.ModeSymlink != 0:
					add(file)
				case e.IsDir() && deep > 0 && (dir != w.home || e.Name() == ".config"):
					look(file, deep-1)
				}
			}
		}
		if rel, err := filepath.Rel(w.root, w.home); w.home != "" && (err != nil || !filepath.IsLocal(rel)) {
			look(w.home, 2)
		}
		for _, file := range settings {
			if filepath.IsAbs(file) {
				add(file)
			}
		}
		return ends
	})
	return func(path string) bool {
		return slices.ContainsFunc(ends(), func(end string) bool {
			rel, err := filepath.Rel(end, path)
			return err == nil && filepath.IsLocal(rel)
		})
	}
}
