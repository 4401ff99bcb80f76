package repofile

import (
	"os"
	"path/filepath"
)

// gitReads are the files that git opens whatever it is asked: those of a
// repository, and those of its work tree.
var gitReads = []string{
	"HEAD", "config", "config.worktree", "commondir", "index", "packed-refs", "shallow",
	"info/exclude", "info/attributes", "info/grafts", "info/sparse-checkout", "objects/info/alternates",
}
var gitReadsBeside = []string{".gitignore", ".gitattributes", ".gitmodules"}

// CheckGit reports what would have git wait for ever if it were run in dir: a
// pipe, or something else that is no file, where it opens a file.
func CheckGit(dir string) error {
	for {
		git := filepath.Join(dir, ".git")
		if info, err := os.Stat(git); err == nil {
			paths := []string{git}
			if info.IsDir() {
				paths = nil
				for _, name := range gitReads {
					paths = append(paths, filepath.Join(git, name))
				}
			}
			for _, name := range gitReadsBeside {
				paths = append(paths, filepath.Join(dir, name))
			}
			for _, path := range paths {
				if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
					return named(path, ErrNotRegular)
				}
			}
			return nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return nil
		}
		dir = up
	}
}
