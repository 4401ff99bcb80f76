package prompt

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
)

// ruleFiles are the names a folder's rules may have; the first that can be read
// is taken.
var ruleFiles = []string{"AGENTS.md", "CLAUDE.md"}

// ErrNotText reports a file of rules that is something else.
var ErrNotText = errors.New("it is not text")

// Finder looks for rules. Read gives the beginning of the file at path; a root
// is the folder that the file must not lead out of, "" for the person's own.
type Finder struct {
	Read   func(root, path string) ([]byte, error)
	Exists func(path string) bool
}

// Find collects the rules that hold in dir: home's first, then those of each
// folder from the repository's root down to dir. The root is the nearest folder
// at or above dir with a .git in it, else dir itself. A file that cannot be
// read is left out and reported, each in an error of its own.
func (f Finder) Find(home, dir string) (rules []Rule, bad []error) {
	add := func(root, folder string, names ...string) {
		for _, name := range names {
			rule, err := f.Rule(root, filepath.Join(folder, name))
			switch {
			case err == nil:
				rules = append(rules, rule)
				return
			case !errors.Is(err, fs.ErrNotExist):
				bad = append(bad, err)
			}
		}
	}
	if home != "" {
		add("", home, ruleFiles[0])
	}
	folders := f.foldersDown(dir)
	for _, folder := range folders {
		add(folders[0], folder, ruleFiles...)
	}
	return rules, bad
}

// Rule reads one file of rules.
func (f Finder) Rule(root, path string) (Rule, error) {
	text, err := f.Read(root, path)
	if err == nil && bytes.IndexByte(text, 0) >= 0 {
		err = &fs.PathError{Op: "read", Path: path, Err: ErrNotText}
	}
	if err != nil {
		return Rule{}, err
	}
	return Rule{Path: path, Text: string(bytes.ToValidUTF8(text, []byte("\uFFFD")))}, nil
}

// foldersDown lists the folders from the repository's root to dir.
func (f Finder) foldersDown(dir string) []string {
	var up []string
	for d := dir; ; d = filepath.Dir(d) {
		up = append(up, d)
		if f.Exists(filepath.Join(d, ".git")) {
			break
		}
		if d == filepath.Dir(d) {
			return []string{dir}
		}
	}
	slices.Reverse(up)
	return up
}
