package judge

import (
	"context"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"coder/internal/gitsafe"
	"coder/internal/policy/risk"
	"coder/internal/secret"
)

// world is what the judges of commands may ask about the file system.
type world struct {
	root, home string
	env        []string // the person's, for git
}

func (w world) at(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(w.root, path)
}

func (w world) facts() risk.Facts {
	return risk.Facts{
		Exists: func(path string) bool { _, err := os.Lstat(w.at(path)); return err == nil },
		IsInside: func(path string) bool {
			rel, err := filepath.Rel(w.root, w.at(path))
			return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
		},
		ReadGit: func(dir string) ([]gitsafe.Setting, error) { return gitsafe.Look(context.Background(), dir, w.env) },
		Home:    w.home, Cwd: w.root,
	}
}

// glob lists the files a shell pattern stands for.
func (w world) glob(pattern string) []string {
	found, _ := filepath.Glob(w.at(pattern)) // a bad pattern stands for itself
	return found
}

// real is where a file lies once links are followed; of one that is not there,
// where it would.
func (w world) real(file string) string {
	file = secret.Direct(w.at(file))
	if real, err := filepath.EvalSymlinks(file); err == nil {
		return real
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(file)); err == nil {
		return filepath.Join(dir, filepath.Base(file))
	}
	return file
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
