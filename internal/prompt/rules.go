package prompt

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// ruleFiles are the names a folder's rules may have; the first that exists is
// taken.
var ruleFiles = []string{"AGENTS.md", "CLAUDE.md"}

// FindRules collects the rules that hold in dir: home's first, then those of
// each folder from the repository's root down to dir. The root is the nearest
// folder at or above dir with a .git in it, else dir itself. A file that
// cannot be read is reported and left out.
func FindRules(home, dir string, read func(path string) ([]byte, error), exists func(path string) bool) ([]Rule, error) {
	var (
		rules []Rule
		errs  []error
	)
	add := func(folder string, names ...string) {
		for _, name := range names {
			path := filepath.Join(folder, name)
			text, err := read(path)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				errs = append(errs, err)
				continue
			}
			rules = append(rules, Rule{Path: path, Text: string(text)})
			return
		}
	}
	if home != "" {
		add(home, ruleFiles[0])
	}
	for _, folder := range foldersDown(dir, exists) {
		add(folder, ruleFiles...)
	}
	return rules, errors.Join(errs...)
}

// foldersDown lists the folders from the repository's root to dir.
func foldersDown(dir string, exists func(string) bool) []string {
	var up []string
	for d := dir; ; d = filepath.Dir(d) {
		up = append(up, d)
		if exists(filepath.Join(d, ".git")) {
			break
		}
		if d == filepath.Dir(d) {
			return []string{dir}
		}
	}
	for i, j := 0, len(up)-1; i < j; i, j = i+1, j-1 {
		up[i], up[j] = up[j], up[i]
	}
	return up
}
