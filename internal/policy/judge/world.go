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

// world is what the judges of commands may ask about the file system.
type world struct {
	root, home string
	top        func() string // where root leads: the workspace was opened there and stays there
	added      []string      // folders beside the workspace that file tools write in, too
}

func newWorld(root, home string, added []string) world {
	return world{root: root, home: home, added: added, top: sync.OnceValue(func() string { return resolved(root) })}
}

func (w world) at(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(w.root, path)
}

// real is where a path leads once links are followed. What lies in the
// workspace is told by the workspace's own name, should that be a link too.
func (w world) real(path string) string {
	found, root := resolved(secret.Direct(w.at(path))), w.top()
	if rel, err := filepath.Rel(root, found); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
		return filepath.Join(w.root, rel)
	}
	return found
}

// resolved follows links as far as a path exists.
func resolved(path string) string {
	rest := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		if found, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(found, rest)
		}
		if target, err := os.Readlink(dir); err == nil { // a link to what is not there yet
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

// glob lists the files a shell pattern stands for.
func (w world) glob(pattern string) []string {
	found, _ := filepath.Glob(w.at(pattern)) // a bad pattern stands for itself
	return found
}

// maxBelow bounds how far a folder is looked through for files that a rule is
// about.
const maxBelow = 20_000

// below yields the files below a folder.
func (w world) below(dir string) iter.Seq[string] {
	return func(yield func(string) bool) {
		looked := 0
		_ = filepath.WalkDir(w.at(dir), func(name string, d fs.DirEntry, err error) error {
			looked++
			switch {
			case looked > maxBelow:
				return fs.SkipAll
			case err != nil:
				return nil // what cannot be read is not read by the command either
			case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules"):
				return fs.SkipDir
			case !d.IsDir() && !yield(name):
				return fs.SkipAll
			}
			return nil
		})
	}
}

// maxDotfiles bounds the files of a home that are looked at.
const maxDotfiles = 4000

// led returns what tells whether a link in the home, a dotfile or one in ~/.config, or
// one of some settings leads into a folder that file tools write in, and there to a path or above it. The
// home is looked at when that is first asked.
func (w world) led(settings []string) func(path string) bool {
	ends := sync.OnceValue(func() (ends []string) {
		looked := 0
		add := func(file string) {
			end := w.real(file)
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
