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
	in *safety
	ws *workspace.Workspace
	// secrets, and names that isNestedMarker accepts: one list, because both search everywhere
	searchedNames *workspace.NameIndex
	frozenNames   *workspace.NameIndex
	index         gitIndex

	ignores []ignoreList
}

// hasFileRules reports whether there may be rules about files.
func (a *Site) hasFileRules() bool {
	restricted := slices.ContainsFunc(a.Options.DenyTools, func(s rule.Spec) bool { return s.On != "" })
	for name, rules := range a.Config.Permission.Tools {
		for pattern := range rules {
			restricted = restricted || name != rule.ClassCommand && name != rule.ClassFetch && pattern != "*"
		}
	}
	return restricted
}

// ignoreFiles are several agents' lists of files hidden from tools, with gitignore patterns.
var ignoreFiles = []string{".coderignore", ".aiignore", ".cursorignore", ".geminiignore"}

// maxIgnoreFile limits the bytes read of one of them.
const maxIgnoreFile = 256 << 10

// readIgnoreFiles reads a workspace's ignore files. It warns
// about an unreadable file, so that nobody relies on it.
func readIgnoreFiles(read func(name string, limit int64) ([]byte, error), warn func(string)) (lists []ignoreList) {
	for _, name := range ignoreFiles {
		text, err := read(name, maxIgnoreFile)
		switch {
		case err == nil:
			lists = append(lists, ignoreList{name, workspace.ParseIgnore(text)})
		case !errors.Is(err, fs.ErrNotExist):
			warn(fmt.Sprintf("%s hides nothing: %v", name, err))
		}
	}
	return lists
}

// ignoreList is an ignore file with its patterns.
type ignoreList struct {
	name string
	list workspace.IgnoreList
}

// ignoreMatcher returns a function that returns the ignore file that hides a file; nil without such files.
func ignoreMatcher(lists []ignoreList) func(file string) (by string, ok bool) {
	if len(lists) == 0 {
		return nil
	}
	return func(file string) (string, bool) {
		for _, i := range lists {
			if i.list.Match(file) {
				return i.name, true
			}
		}
		return "", false
	}
}

// newProtectedFiles finds a workspace's protected files by their names alone, without rules.
func (a *Workspace) newProtectedFiles(ws *workspace.Workspace) *protectedFiles {
	return newProtectedFiles(&safety{Workspace: a}, ws)
}

func newProtectedFiles(a *safety, ws *workspace.Workspace) *protectedFiles {
	p := &protectedFiles{in: a, ws: ws}
	p.ignores = readIgnoreFiles(func(name string, limit int64) ([]byte, error) {
		text, _, err := ws.ReadFile(name, limit)
		return text, err
	}, a.warn)
	bulky := p.skippedFolders()
	restricted := a.hasFileRules() || len(p.ignores) > 0
	p.searchedNames = ws.IndexNames(func(rel string, dir bool) bool {
		return secret.IsHiddenInTree(rel, dir) || isNestedMarker(rel, dir) || !dir && restricted && a.judge != nil &&
			a.judge.IsConcealed(rel)
	}, func(rel string) bool { return bulky(rel) || secret.IsRecordPath(rel) })
	p.frozenNames = ws.IndexNames(func(rel string, dir bool) bool { return a.judge != nil && a.judge.IsFrozen(rel, dir) },
		func(rel string) bool {
			return bulky(rel) || a.judge != nil && a.judge.IsFrozen(rel, true)
		})
	return p
}

// skippedFolders returns a function that reports whether the searches skip a folder: a bulky
// one, unless a pattern names something in it. A pattern for all of it hides it from tools alone,
// since builds need it.
func (p *protectedFiles) skippedFolders() func(rel string) bool {
	patterns := slices.Clone(p.in.Config.Permission.Frozen)
	for _, s := range p.in.Options.DenyTools {
		patterns = append(patterns, s.On)
	}
	for name, rules := range p.in.Config.Permission.Tools {
		if name != rule.ClassCommand && name != rule.ClassFetch {
			patterns = slices.AppendSeq(patterns, maps.Keys(rules))
		}
	}
	for _, i := range p.ignores {
		patterns = slices.AppendSeq(patterns, i.list.Patterns())
	}
	inside, whole := make(map[string]bool), make(map[string]bool)
	for _, pattern := range patterns {
		parts := strings.Split(strings.TrimRight(pattern, "/*"), "/")
		whole[parts[len(parts)-1]] = true
		for _, part := range parts[:len(parts)-1] {
			inside[part] = true
		}
	}
	return func(rel string) bool {
		base := path.Base(rel)
		return secret.IsBulkyFolder(rel) && (!inside[base] || whole[base])
	}
}

// isNestedMarker reports whether a name marks a repository or project below the workspace.
func isNestedMarker(rel string, dir bool) bool {
	base := path.Base(rel)
	isGit := strings.EqualFold(base, ".git") || !dir && strings.EqualFold(base, "HEAD")
	return rel != base && (isGit || dir && base == ".coder")
}

// hiddenFiles lists the files that commands must not see unless
// they name them, and reports whether the list is complete.
func (p *protectedFiles) hiddenFiles(ctx context.Context) (files []string, all bool) {
	names, all, err := p.searchedNames.List(ctx)
	for _, name := range names {
		if secret.IsHiddenInTree(name, true) || p.isHiddenByRule(name) {
			files = append(files, p.fullPath(name))
		}
	}
	return files, all && err == nil
}

// isHiddenByRule reports whether a rule hides a found name. Rules are about files.
func (p *protectedFiles) isHiddenByRule(name string) bool {
	inner := isNestedMarker(name, true) || isNestedMarker(name, false)
	if p.in.judge == nil {
		return !inner
	}
	if !p.in.judge.IsConcealed(name) {
		return false
	}
	if !inner {
		return true
	}
	info, err := p.ws.Lstat(name)
	return err != nil || !info.IsDir()
}

func (p *protectedFiles) fullPath(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return p.in.Root + "/" + name
}

// nestedRepositories returns the folders below the workspace that contain a repository, or may be a bare one.
func (p *protectedFiles) nestedRepositories(ctx context.Context) []string {
	return append(p.dirsContaining(ctx, ".git"), p.dirsContaining(ctx, "HEAD")...)
}

// projectDirs returns folders that may contain a .coder folder:
// below the workspace, and others that commands can write to.
func (p *protectedFiles) projectDirs(ctx context.Context) []string {
	dirs := p.dirsContaining(ctx, ".coder")
	for _, dir := range p.in.Config.Safety.Writable {
		dirs = append(dirs, p.in.resolvePath(dir))
	}
	return dirs
}

// dirsContaining lists the folders below the workspace that contain a name.
func (p *protectedFiles) dirsContaining(ctx context.Context, base string) (dirs []string) {
	names, _, _ := p.searchedNames.List(ctx)
	for _, name := range names {
		if strings.EqualFold(path.Base(name), base) && path.Dir(name) != "." {
			dirs = append(dirs, filepath.Dir(p.fullPath(name)))
		}
	}
	return dirs
}

// errTooManyFiles reports a workspace too large to search for frozen files.
var errTooManyFiles = errors.New("too many files to check")

// frozenPaths lists what no command may write. It includes frozen folders that do not exist.
func (p *protectedFiles) frozenPaths(ctx context.Context) (paths []string, err error) {
	judge := p.in.judge
	if judge == nil || !judge.HasFrozen() {
		return nil, nil
	}
	names, whole, err := p.frozenNames.List(ctx)
	if err == nil && !whole {
		err = errTooManyFiles
	}
	for _, name := range names {
		paths = append(paths, p.fullPath(name))
	}
	for _, pattern := range p.in.Config.Permission.Frozen {
		folder, isFolder := strings.CutSuffix(strings.TrimSuffix(pattern, "/"), "/**")
		isFolder = isFolder || strings.HasSuffix(pattern, "/")
		if !strings.ContainsAny(folder, "*?[{~") && (isFolder || strings.Contains(folder, "/")) {
			at := p.fullPath(filepath.Clean(folder))
			if isFolder {
				at += "/"
			}
			paths = append(paths, at)
		}
	}
	denied, _ := judge.DeniedPaths(rule.ClassWrite) // includes missing files and files outside
	for _, at := range denied {
		if rel, isFolder := strings.CutSuffix(at, "/"); judge.IsFrozen(rel, isFolder) {
			paths = append(paths, p.fullPath(at))
		}
	}
	return paths, err
}

// deniedPaths returns the files and folders that no command may read,
// judging by their names alone, and the exceptions among them.
func (p *protectedFiles) deniedPaths() (hide, show []string) {
	if p.in.judge == nil {
		return nil, nil
	}
	hide, show = p.in.judge.DeniedPaths(rule.ClassRead)
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

// trackedFiles returns the files that git tracks, by their full paths.
func (p *protectedFiles) trackedFiles(files []string) []string {
	return p.index.filterTracked(p.in.Root, files)
}

// trackedSecrets returns the secret files that git tracks, by the names that rules use.
func (p *protectedFiles) trackedSecrets() (names []string) {
	files, _ := p.hiddenFiles(context.Background())
	for _, file := range p.trackedFiles(files) {
		if rel, err := filepath.Rel(p.in.Root, file); err == nil {
			names = append(names, rel)
		}
	}
	return names
}

// gitIndex remembers which files the workspace's repository tracks. It
// rereads a changed index. An unreadable index counts as tracking every file.
type gitIndex struct {
	mu           sync.Mutex      // guards the fields below
	indexInfo    fs.FileInfo     // the index file; nil if unknown
	workTree     string          // the work tree
	trackedPaths map[string]bool // by path in the work tree
}

// filterTracked returns the files that the repository tracks.
func (x *gitIndex) filterTracked(root string, files []string) (kept []string) {
	if len(files) == 0 {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	top, dir := repofile.FindRepository(root)
	info, err := os.Stat(filepath.Join(dir, "index"))
	if dir == "" || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || x.indexInfo == nil || x.workTree != top || !os.SameFile(x.indexInfo, info) ||
		!x.indexInfo.ModTime().Equal(info.ModTime()) || x.indexInfo.Size() != info.Size() {
		x.indexInfo, x.workTree, x.trackedPaths = info, top, make(map[string]bool)
	}
	names := make([]string, len(files))
	fresh := make(map[string]bool)
	for i, file := range files {
		rel, err := filepath.Rel(top, file)
		if err != nil {
			continue
		}
		names[i] = filepath.ToSlash(rel)
		if _, asked := x.trackedPaths[names[i]]; !asked {
			fresh[names[i]] = false
		}
	}
	if len(fresh) > 0 {
		index := gitindex.Source{MaxBytes: maxGitIndex, Open: func() (fs.File,
			error) {
			return repofile.NewRoot(dir).Open("index")
		}}
		err := index.Each("", func(e gitindex.Entry, _ int64) {
			if _, asked := fresh[string(e.Name)]; asked {
				fresh[string(e.Name)] = true
			}
		})
		maps.Copy(x.trackedPaths, fresh)
		if err != nil {
			x.indexInfo = nil
			return files
		}
	}
	for i, file := range files {
		if x.trackedPaths[names[i]] {
			kept = append(kept, file)
		}
	}
	return kept
}

const maxGitIndex = 512 << 20 // bytes of an index
