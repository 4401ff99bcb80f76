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

// FindPlanted finds what git would obey when run in the workspace or in the given folders: runs are files
// that make it run programs, elsewhere those that make it use files elsewhere. Each file has a state
// that changes with its effect. Call it before and after a command that may write: creating a
// repository, bare or not, or a file that redirects git, cannot be prevented.
func FindPlanted(root, home string, dirs []string) (runs, elsewhere map[string]string) {
	l := gitScan{root: realPath(root), home: home, seen: make(map[string]bool)}
	l.runs, l.elsewhere = make(map[string]string), make(map[string]string)
	at := filepath.Join(root, ".git")
	l.ownRepo = realPath(commonDir(gitDir(at)))
	if exists(at) && !isWithin(l.ownRepo, l.root) {
		l.elsewhere[at] = l.ownRepo
	}
	for _, dir := range append([]string{root}, dirs...) {
		at := filepath.Join(dir, ".git")
		if git := gitDir(at); exists(at) {
			l.scanRepository(git, l.externalLink(at, commonDir(git)))
		}
		if isBare(dir) {
			l.scanRepository(dir, "")
		}
	}
	return l.runs, l.elsewhere
}

// gitScan is one search for what git obeys.
type gitScan struct {
	root, home      string
	ownRepo         string // the workspace's repository
	runs, elsewhere map[string]string
	seen            map[string]bool
}

// externalLink returns at if it is a link to a repository, or "" if it is no link or git obeys the same
// repository elsewhere anyway.
func (l *gitScan) externalLink(at, common string) string {
	common = realPath(common)
	rel, err := filepath.Rel(l.root, common)
	inside := err == nil && filepath.IsLocal(rel) && slices.Contains(strings.Split(rel, "/"), ".git")
	if common == filepath.Join(realPath(filepath.Dir(at)), ".git") || inside || isWithin(common, l.ownRepo) {
		return ""
	}
	return at
}

// record records that git obeys a file in some state, under the name of the link to it, if any.
func (l *gitScan) record(in map[string]string, path, via, state string) {
	if via != "" {
		path, state = via, in[via]+path+" "+state+"\n"
	}
	in[path] = state
}

// scanRepository examines one git directory, those it shares files with, and those of its submodules.
func (l *gitScan) scanRepository(git, via string) {
	if l.seen[via+"\x00"+git] {
		return
	}
	l.seen[via+"\x00"+git] = true
	common := commonDir(git)
	isTree := realPath(filepath.Dir(git)) == realPath(filepath.Join(common, "worktrees"))
	if own := filepath.Join(git, "commondir"); exists(own) && !isTree {
		l.record(l.runs, own, via, contentKey(own))
	}
	l.scanHead(git, via)
	l.scanConfig(filepath.Join(common, "config"), git, via, 0)
	trees, _ := os.ReadDir(filepath.Join(common, "worktrees"))
	for _, tree := range trees[:min(len(trees), maxModules)] {
		dir := filepath.Join(common, "worktrees", tree.Name())
		l.scanConfig(filepath.Join(dir, "config.worktree"), dir, via, 0)
	}
	for _, dir := range []string{common, git} {
		l.scanConfig(filepath.Join(dir, "config.worktree"), dir, via, 0)
	}
	hooks, _ := os.ReadDir(filepath.Join(common, "hooks"))
	for _, hook := range hooks {
		if path := filepath.Join(common, "hooks", hook.Name()); filepath.Ext(path) != ".sample" {
			l.record(l.runs, path, via, contentKey(path))
		}
	}
	attributes := filepath.Join(common, "info", "attributes")
	if text, err := readStart(attributes); selectsPrograms(text) || err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.record(l.runs, attributes, via, contentKey(attributes))
	}
	l.scanAlternates(filepath.Join(common, "objects"), via)
	for _, dir := range []string{common, git} {
		for _, module := range gitDirsBelow(filepath.Join(dir, "modules")) {
			l.scanRepository(module, via)
		}
	}
}

// scanHead checks for a branch that is a file elsewhere.
func (l *gitScan) scanHead(git, via string) {
	path := filepath.Join(git, "HEAD")
	text, err := readStart(path)
	to, isRef := strings.CutPrefix(string(text), "ref:")
	if link, readErr := os.Readlink(path); readErr == nil {
		to, isRef, err = link, true, nil
	}
	to = strings.TrimSpace(to)
	isBranch := strings.HasPrefix(to, "refs/") && filepath.IsLocal(to)
	if isRef && !isBranch || err != nil && exists(path) {
		l.record(l.elsewhere, path, via, to)
	}
}

// scanAlternates checks for object stores outside the workspace.
func (l *gitScan) scanAlternates(objects, via string) {
	path := filepath.Join(objects, "info", "alternates")
	text, err := readStart(path)
	outside := err != nil && !errors.Is(err, fs.ErrNotExist)
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			to := realPath(absPath(objects, line))
			outside = outside || !isWithin(to, l.root) && !isWithin(to, l.ownRepo)
		}
	}
	if outside {
		l.record(l.elsewhere, path, via, contentKey(path))
	}
}

// maxIncludes limits the depth of configuration includes.
const maxIncludes = 10

// scanConfig examines a configuration of a git directory and its includes, whatever their condition.
func (l *gitScan) scanConfig(path, git, via string, depth int) {
	if key := via + "\x00" + git + "\x00" + path; l.seen[key] {
		return
	} else {
		l.seen[key] = true
	}
	text, err := readStart(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil || len(text) == maxSettings || depth > maxIncludes:
		l.record(l.runs, path, via, contentKey(path)) // its effect is unknown
		return
	}
	var obeyed, moved string
	for key, value := range program.ParseSettings(text) {
		section, _, _ := strings.Cut(key, ".")
		switch {
		case section == "include" || section == "includeif":
			if rest, ok := strings.CutPrefix(value, "~/"); ok {
				value = filepath.Join(l.home, rest)
			}
			if strings.ContainsRune(value, '\\') {
				obeyed += key + "=" + value + "\n"
			} else if strings.HasSuffix(key, ".path") {
				l.scanConfig(absPath(filepath.Dir(path), value), git, via, depth+1)
			}
		case key == "core.worktree":
			if !l.mayWorkIn(git, absPath(git, value)) {
				moved += value + "\n"
			}
		case program.MayRunProgram(key, value):
			obeyed += key + "=" + value + "\n"
		}
	}
	if obeyed != "" {
		l.record(l.runs, path, via, obeyed)
	}
	if moved != "" {
		l.record(l.elsewhere, path, via, moved)
	}
}

// mayWorkIn reports whether a repository may have its work tree in a folder: beside it, where a link leads
// back to it, or, for a submodule, in the workspace.
func (l *gitScan) mayWorkIn(git, dir string) bool {
	git, dir = realPath(git), realPath(dir)
	submodule := strings.Contains(git, "/.git/modules/") || isWithin(git, filepath.Join(l.ownRepo, "modules"))
	linked := realPath(gitDir(filepath.Join(dir, ".git"))) == git
	return dir == filepath.Dir(git) || linked || submodule && isWithin(dir, l.root)
}

// selectsPrograms reports whether attributes select programs for files.
func selectsPrograms(attributes []byte) bool {
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

// isBare reports whether git treats a folder itself as a repository.
func isBare(dir string) bool {
	has := func(name string) bool { return exists(filepath.Join(dir, name)) }
	return has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

// gitDir returns a repository's git directory: .git, or the target of a .git file.
func gitDir(git string) string {
	text, err := readStart(git)
	to, ok := strings.CutPrefix(string(text), "gitdir:")
	if err != nil || !ok {
		return git
	}
	return absPath(filepath.Dir(git), strings.TrimSpace(to))
}

// commonDir returns the common directory of a git directory, or itself.
func commonDir(git string) string {
	text, err := readStart(filepath.Join(git, "commondir"))
	if err != nil {
		return git
	}
	return absPath(git, strings.TrimSpace(string(text)))
}

func absPath(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// realPath returns a path with its links resolved, as far as possible.
func realPath(path string) string {
	if at, err := filepath.EvalSymlinks(path); err == nil {
		return at
	}
	return filepath.Clean(path)
}

// maxSettings limits how much of a settings file is read.
const maxSettings = 256 << 10

// readStart reads the start of a regular file.
func readStart(path string) ([]byte, error) {
	text, _, err := repofile.NewRoot(filepath.Dir(path)).ReadHead(filepath.Base(path), maxSettings)
	return text, err
}

// contentKey returns a text that changes with the target of a path.
func contentKey(path string) string {
	text, err := readStart(path)
	info, unknown := os.Stat(path)
	if err != nil || unknown != nil || len(text) == maxSettings {
		return stateKey(path)
	}
	return fmt.Sprintf("%v %x", info.Mode(), sha256.Sum256(text))
}

// stateKey returns a text that changes with a file.
func stateKey(path string) (state string) {
	for _, describe := range []func(string) (fs.FileInfo, error){os.Lstat, os.Stat} {
		if info, err := describe(path); err == nil {
			state += fmt.Sprint(info.Size(), info.ModTime().UnixNano(), info.Mode(), " ")
		}
	}
	return state
}
