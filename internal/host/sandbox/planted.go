package sandbox

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/host/program"
	"coder/internal/host/repofile"
)

// Planted finds what git obeys when it is run in a folder, in that of the workspace
// or in others: runs has it run programs, elsewhere has it use files elsewhere. Each
// file stands with a state that changes with what git obeys in it. Ask before and
// after a command that may write: a repository that is made, bare or not, and a file
// that sends git elsewhere, cannot be held back beforehand.
func Planted(root, home string, dirs []string) (runs, elsewhere map[string]string) {
	l := gitLook{root: real(root), home: home, seen: make(map[string]bool)}
	l.runs, l.elsewhere = make(map[string]string), make(map[string]string)
	at := filepath.Join(root, ".git")
	l.own = real(commonDir(gitDir(at)))
	if exists(at) && !within(l.own, l.root) {
		l.elsewhere[at] = l.own
	}
	for _, dir := range append([]string{root}, dirs...) {
		at := filepath.Join(dir, ".git")
		if git := gitDir(at); exists(at) {
			l.repository(git, l.through(at, commonDir(git)))
		}
		if isBare(dir) {
			l.repository(dir, "")
		}
	}
	return l.runs, l.elsewhere
}

// gitLook is one look at what git obeys.
type gitLook struct {
	root, home      string
	own             string // the repository of the workspace
	runs, elsewhere map[string]string
	seen            map[string]bool
}

// through is the name under which a repository is found that a link at some place
// leads to, "" if that is no link, or git obeys the same repository elsewhere anyway.
func (l *gitLook) through(at, common string) string {
	common = real(common)
	rel, err := filepath.Rel(l.root, common)
	inside := err == nil && filepath.IsLocal(rel) && slices.Contains(strings.Split(rel, "/"), ".git")
	if common == filepath.Join(real(filepath.Dir(at)), ".git") || inside || within(common, l.own) {
		return ""
	}
	return at
}

// found takes down that git obeys a file in some state, under the name of the link
// that leads there, if one does.
func (l *gitLook) found(in map[string]string, path, via, state string) {
	if via != "" {
		path, state = via, in[via]+path+" "+state+"\n"
	}
	in[path] = state
}

// repository looks at one git directory, at those that it shares files with, and at
// those of its submodules.
func (l *gitLook) repository(git, via string) {
	if l.seen[via+"\x00"+git] {
		return
	}
	l.seen[via+"\x00"+git] = true
	common := commonDir(git)
	isTree := real(filepath.Dir(git)) == real(filepath.Join(common, "worktrees"))
	if own := filepath.Join(git, "commondir"); exists(own) && !isTree {
		l.found(l.runs, own, via, contentOf(own))
	}
	l.head(git, via)
	l.config(filepath.Join(common, "config"), git, via, 0)
	trees, _ := os.ReadDir(filepath.Join(common, "worktrees"))
	for _, tree := range trees[:min(len(trees), maxModules)] {
		dir := filepath.Join(common, "worktrees", tree.Name())
		l.config(filepath.Join(dir, "config.worktree"), dir, via, 0)
	}
	for _, dir := range []string{common, git} {
		l.config(filepath.Join(dir, "config.worktree"), dir, via, 0)
	}
	hooks, _ := os.ReadDir(filepath.Join(common, "hooks"))
	for _, hook := range hooks {
		if path := filepath.Join(common, "hooks", hook.Name()); filepath.Ext(path) != ".sample" {
			l.found(l.runs, path, via, contentOf(path))
		}
	}
	attributes := filepath.Join(common, "info", "attributes")
	if text, err := readSome(attributes); selects(text) || err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.found(l.runs, attributes, via, contentOf(attributes))
	}
	l.alternates(filepath.Join(common, "objects"), via)
	for _, dir := range []string{common, git} {
		for _, module := range gitDirsBelow(filepath.Join(dir, "modules")) {
			l.repository(module, via)
		}
	}
}

// head looks for a branch that is a file somewhere else.
func (l *gitLook) head(git, via string) {
	path := filepath.Join(git, "HEAD")
	text, err := readSome(path)
	to, isRef := strings.CutPrefix(string(text), "ref:")
	if link, readErr := os.Readlink(path); readErr == nil {
		to, isRef, err = link, true, nil
	}
	to = strings.TrimSpace(to)
	isBranch := strings.HasPrefix(to, "refs/") && filepath.IsLocal(to)
	if isRef && !isBranch || err != nil && exists(path) {
		l.found(l.elsewhere, path, via, to)
	}
}

// alternates looks for other stores of objects, outside the workspace.
func (l *gitLook) alternates(objects, via string) {
	path := filepath.Join(objects, "info", "alternates")
	text, err := readSome(path)
	outside := err != nil && !errors.Is(err, fs.ErrNotExist)
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			to := real(absolute(objects, line))
			outside = outside || !within(to, l.root) && !within(to, l.own)
		}
	}
	if outside {
		l.found(l.elsewhere, path, via, contentOf(path))
	}
}

// maxIncludes is how deep one configuration includes another.
const maxIncludes = 10

// config looks at a configuration of a git directory, and at those it includes,
// whatever the condition.
func (l *gitLook) config(path, git, via string, depth int) {
	if key := via + "\x00" + git + "\x00" + path; l.seen[key] {
		return
	} else {
		l.seen[key] = true
	}
	text, err := readSome(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil || len(text) == maxSettings || depth > maxIncludes:
		l.found(l.runs, path, via, contentOf(path)) // it may say anything
		return
	}
	var obeyed, moved string
	for key, value := range program.Settings(text) {
		section, _, _ := strings.Cut(key, ".")
		switch {
		case section == "include" || section == "includeif":
			if rest, ok := strings.CutPrefix(value, "~/"); ok {
				value = filepath.Join(l.home, rest)
			}
			if strings.ContainsRune(value, '\\') {
				obeyed += key + "=" + value + "\n"
			} else if strings.HasSuffix(key, ".path") {
				l.config(absolute(filepath.Dir(path), value), git, via, depth+1)
			}
		case key == "core.worktree":
			if !l.worksIn(git, absolute(git, value)) {
				moved += value + "\n"
			}
		case program.Runs(key, value):
			obeyed += key + "=" + value + "\n"
		}
	}
	if obeyed != "" {
		l.found(l.runs, path, via, obeyed)
	}
	if moved != "" {
		l.found(l.elsewhere, path, via, moved)
	}
}

// worksIn reports whether the files of a repository may lie in a folder: beside it,
// where a link leads back to it, or, of a submodule, in the workspace.
func (l *gitLook) worksIn(git, dir string) bool {
	git, dir = real(git), real(dir)
	submodule := strings.Contains(git, "/.git/modules/") || within(git, filepath.Join(l.own, "modules"))
	linked := real(gitDir(filepath.Join(dir, ".git"))) == git
	return dir == filepath.Dir(git) || linked || submodule && within(dir, l.root)
}

// selects reports whether attributes choose programs for files.
func selects(attributes []byte) bool {
	for line := range bytes.Lines(attributes) {
		for _, word := range []string{"filter", "diff=", "merge="} {
			if line = bytes.TrimSpace(line); bytes.HasPrefix(line, []byte("#")) {
				continue
			}
			if bytes.Contains(line, []byte(word)) {
				return true
			}
		}
	}
	return false
}

// isBare reports whether git takes a folder itself for a repository.
func isBare(dir string) bool {
	has := func(name string) bool { return exists(filepath.Join(dir, name)) }
	return has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

// gitDir is the directory of a repository: .git, or where that file leads to.
func gitDir(git string) string {
	text, err := readSome(git)
	to, ok := strings.CutPrefix(string(text), "gitdir:")
	if err != nil || !ok {
		return git
	}
	return absolute(filepath.Dir(git), strings.TrimSpace(to))
}

// commonDir is the directory that a git directory shares with others, or itself.
func commonDir(git string) string {
	text, err := readSome(filepath.Join(git, "commondir"))
	if err != nil {
		return git
	}
	return absolute(git, strings.TrimSpace(string(text)))
}

func absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// real is a path without links, as far as that can be told.
func real(path string) string {
	if at, err := filepath.EvalSymlinks(path); err == nil {
		return at
	}
	return filepath.Clean(path)
}

// maxSettings is how much of a file with settings is looked at.
const maxSettings = 256 << 10

// readSome reads the beginning of a regular file.
func readSome(path string) ([]byte, error) {
	text, _, err := repofile.Below(filepath.Dir(path)).Head(filepath.Base(path), maxSettings)
	return text, err
}

// contentOf changes whenever what a path leads to does.
func contentOf(path string) string {
	text, err := readSome(path)
	info, unknown := os.Stat(path)
	if err != nil || unknown != nil || len(text) == maxSettings {
		return stateOf(path)
	}
	return fmt.Sprintf("%v %x", info.Mode(), sha256.Sum256(text))
}

// stateOf changes whenever a file does.
func stateOf(path string) (state string) {
	for _, describe := range []func(string) (fs.FileInfo, error){os.Lstat, os.Stat} {
		if info, err := describe(path); err == nil {
			state += fmt.Sprint(info.Size(), info.ModTime().UnixNano(), info.Mode(), " ")
		}
	}
	return state
}
