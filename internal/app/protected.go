package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"coder/internal/core/secret"
	"coder/internal/host/repofile"
	"coder/internal/host/workspace"
	"coder/internal/policy/rule"
	"coder/internal/record/undo/gitindex"
)

// protectedFiles finds what a command needs to know about the workspace's files: which ones are secret,
// frozen, or in nested repositories. The first search walks the tree; later ones only look for changes.
type protectedFiles struct {
	in     *safety
	ws     *workspace.Workspace
	found  *workspace.Named // secrets, and names that isInner accepts: one list, because both search everywhere
	frozen *workspace.Named
	index  gitIndex

	ignores []ignoreList
}

// hasFileRules reports whether there may be rules about files.
func (a *Site) hasFileRules() bool {
	restricted := slices.ContainsFunc(a.Options.DenyTools, func(s rule.Spec) bool { return s.On != "" })
	for name, rules := range a.Config.Permission.Tools {
		for pattern := range rules {
			restricted = restricted || name != rule.Commands && name != rule.Fetches && pattern != "*"
		}
	}
	return restricted
}

// ignoreFiles are several agents' lists of files hidden from tools, with gitignore patterns.
var ignoreFiles = []string{".coderignore", ".aiignore", ".cursorignore", ".geminiignore"}

// maxIgnoreFile limits the bytes read of one of them.
const maxIgnoreFile = 256 << 10

// readIgnored reads the workspace's ignore files. It warns
// about an unreadable file, so that nobody relies on it.
func (p *protectedFiles) readIgnored() {
	for _, name := range ignoreFiles {
		text, _, err := p.ws.ReadFile(name, maxIgnoreFile)
		switch {
		case err == nil:
			p.ignores = append(p.ignores, ignoreList{name, workspace.ParseIgnore(text)})
		case !errors.Is(err, fs.ErrNotExist):
			p.in.warn(fmt.Sprintf("%s hides nothing: %v", name, err))
		}
	}
}

// ignoreList is an ignore file with its patterns.
type ignoreList struct {
	name string
	list workspace.IgnoreList
}

// ignored returns a function that returns the ignore file that hides a file; nil without such files.
func (p *protectedFiles) ignored() func(file string) (by string, ok bool) {
	if len(p.ignores) == 0 {
		return nil
	}
	return func(file string) (string, bool) {
		for _, i := range p.ignores {
			if i.list.Match(file) {
				return i.name, true
			}
		}
		return "", false
	}
}

// protect finds a workspace's protected files by their names alone, without rules.
func (a *Workspace) protect(ws *workspace.Workspace) *protectedFiles {
	return newProtectedFiles(&safety{Workspace: a}, ws)
}

func newProtectedFiles(a *safety, ws *workspace.Workspace) *protectedFiles {
	p := &protectedFiles{in: a, ws: ws}
	p.readIgnored()
	restricted := a.hasFileRules() || len(p.ignores) > 0
	p.found = ws.Named(func(rel string, dir bool) bool {
		return secret.InTree(rel, dir) || isInner(rel, dir) || !dir && restricted && a.judge != nil && a.judge.Conceals(rel)
	}, func(rel string) bool { return secret.Bulky(rel) || secret.InRecords(rel) })
	p.frozen = ws.Named(func(rel string, dir bool) bool { return a.judge != nil && a.judge.IsFrozen(rel, dir) }, func(rel string) bool {
		return secret.Bulky(rel) || a.judge != nil && a.judge.IsFrozen(rel, true)
	})
	return p
}

// isInner reports whether a name marks a repository or project below the workspace.
func isInner(rel string, dir bool) bool {
	base := path.Base(rel)
	isGit := strings.EqualFold(base, ".git") || !dir && strings.EqualFold(base, "HEAD")
	return rel != base && (isGit || dir && base == ".coder")
}

// hidden lists the files that commands must not see unless
// they name them, and reports whether the list is complete.
func (p *protectedFiles) hidden(ctx context.Context) (files []string, all bool) {
	names, all, err := p.found.List(ctx)
	for _, name := range names {
		if secret.InTree(name, true) || p.conceals(name) {
			files = append(files, p.full(name))
		}
	}
	return files, all && err == nil
}

// conceals reports whether a rule hides a found name. Rules are about files.
func (p *protectedFiles) conceals(name string) bool {
	inner := isInner(name, true) || isInner(name, false)
	if p.in.judge == nil {
		return !inner
	}
	if !p.in.judge.Conceals(name) {
		return false
	}
	if !inner {
		return true
	}
	info, err := p.ws.Lstat(name)
	return err != nil || !info.IsDir()
}

func (p *protectedFiles) full(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return p.in.Root + "/" + name
}

// repositories returns the folders below the workspace that contain a repository, or may be a bare one.
func (p *protectedFiles) repositories(ctx context.Context) []string {
	return append(p.holding(ctx, ".git"), p.holding(ctx, "HEAD")...)
}

// projects returns folders that may contain a .coder folder:
// below the workspace, and others that commands can write to.
func (p *protectedFiles) projects(ctx context.Context) []string {
	dirs := p.holding(ctx, ".coder")
	for _, dir := range p.in.Config.Safety.Writable {
		dirs = append(dirs, p.in.resolve(dir))
	}
	return dirs
}

// holding lists the folders below the workspace that contain a name.
func (p *protectedFiles) holding(ctx context.Context, base string) (dirs []string) {
	names, _, _ := p.found.List(ctx)
	for _, name := range names {
		if strings.EqualFold(path.Base(name), base) && path.Dir(name) != "." {
			dirs = append(dirs, filepath.Dir(p.full(name)))
		}
	}
	return dirs
}

// errTooManyFiles reports a workspace too large to search for frozen files.
var errTooManyFiles = errors.New("too many files to check")

// frozenPaths lists what no command may write. It includes frozen folders that do not exist.
func (p *protectedFiles) frozenPaths(ctx context.Context) (paths []string, err error) {
	judge := p.in.judge
	if judge == nil || !judge.Freezes() {
		return nil, nil
	}
	names, whole, err := p.frozen.List(ctx)
	if err == nil && !whole {
		err = errTooManyFiles
	}
	for _, name := range names {
		paths = append(paths, p.full(name))
	}
	for _, pattern := range p.in.Config.Permission.Frozen {
		folder, isFolder := strings.CutSuffix(strings.TrimSuffix(pattern, "/"), "/**")
		isFolder = isFolder || strings.HasSuffix(pattern, "/")
		if !strings.ContainsAny(folder, "*?[{~") && (isFolder || strings.Contains(folder, "/")) {
			at := p.full(filepath.Clean(folder))
			if isFolder {
				at += "/"
			}
			paths = append(paths, at)
		}
	}
	denied, _ := judge.DeniedPaths(rule.Writes) // includes missing files and files outside
	for _, at := range denied {
		if rel, isFolder := strings.CutSuffix(at, "/"); judge.IsFrozen(rel, isFolder) {
			paths = append(paths, p.full(at))
		}
	}
	return paths, err
}

// denied returns the files and folders that no command may read,
// judging by their names alone, and the exceptions among them.
func (p *protectedFiles) denied() (hide, show []string) {
	if p.in.judge == nil {
		return nil, nil
	}
	hide, show = p.in.judge.DeniedPaths(rule.Reads)
	outside := func(places []string) (all []string) {
		for _, at := range places {
			if filepath.IsAbs(at) {
				all = append(all, filepath.Clean(at))
			}
		}
		return all
	}
	return outside(hide), outside(show)
}

// tracked returns the files that git tracks, by their full paths.
func (p *protectedFiles) tracked(files []string) []string { return p.index.kept(p.in.Root, files) }

// trackedSecrets returns the secret files that git tracks, by the names that rules use.
func (p *protectedFiles) trackedSecrets() (names []string) {
	files, _ := p.hidden(context.Background())
	for _, file := range p.tracked(files) {
		if rel, err := filepath.Rel(p.in.Root, file); err == nil {
			names = append(names, rel)
		}
	}
	return names
}

// gitIndex remembers which files the workspace's repository tracks. It
// rereads a changed index. An unreadable index counts as tracking every file.
type gitIndex struct {
	mu    sync.Mutex      // guards the fields below
	seen  fs.FileInfo     // the index file; nil if unknown
	top   string          // the work tree
	known map[string]bool // by path in the work tree
}

// kept returns the files that the repository tracks.
func (x *gitIndex) kept(root string, files []string) (kept []string) {
	if len(files) == 0 {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	top, dir := repofile.Repository(root)
	info, err := os.Stat(filepath.Join(dir, "index"))
	if dir == "" || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || x.seen == nil || x.top != top || !os.SameFile(x.seen, info) || !x.seen.ModTime().Equal(info.ModTime()) || x.seen.Size() != info.Size() {
		x.seen, x.top, x.known = info, top, make(map[string]bool)
	}
	names := make([]string, len(files))
	fresh := make(map[string]bool)
	for i, file := range files {
		rel, err := filepath.Rel(top, file)
		if err != nil {
			continue
		}
		names[i] = filepath.ToSlash(rel)
		if _, asked := x.known[names[i]]; !asked {
			fresh[names[i]] = false
		}
	}
	if len(fresh) > 0 {
		index := gitindex.Source{Most: maxGitIndex, Open: func() (fs.File, error) { return repofile.Below(dir).Open("index") }}
		err := index.Each("", func(e gitindex.Entry, _ int64) {
			if _, asked := fresh[string(e.Name)]; asked {
				fresh[string(e.Name)] = true
			}
		})
		maps.Copy(x.known, fresh)
		if err != nil {
			x.seen = nil
			return files
		}
	}
	for i, file := range files {
		if x.known[names[i]] {
			kept = append(kept, file)
		}
	}
	return kept
}

const maxGitIndex = 512 << 20 // bytes of an index
