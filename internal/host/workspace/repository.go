package workspace

import (
	"bytes"
	"encoding/binary"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"coder/internal/host/repofile"
)

const (
	maxConfig   = 256 << 10 // bytes of git's settings that are read
	maxIncludes = 5         // depth of included settings
	maxIndex    = 64 << 20  // bytes of an index that are read
)

// GitSettings names the user's git files with global ignore rules.
type GitSettings struct {
	Home    string   // the expansion of ~/
	Configs []string // settings that may name a file of ignore rules; the last that does decides
	Ignore  string   // the default of that file
}

// UseGitSettings also applies the ignore rules of the user's git settings. Call it before any search.
func (w *Workspace) UseGitSettings(g GitSettings) {
	w.gitSettings = g
	for _, a := range w.added {
		a.gitSettings = g
	}
}

// outerRules is what applies to a tree because of its location.
type outerRules struct {
	rules      *rules
	ignoreCase bool   // the repository ignores case
	indexDir   string // directory of the work tree's index
	prefix     string // path from the work tree's top to the tree
}

// readOuterRules are read once: ignored files must not appear during the session, because undo would
// consider them new. If the rules ignore all of the requested tree, they do not apply.
func (w *Workspace) readOuterRules() outerRules {
	w.outerOnce.Do(func() {
		for dir, lead := w.real, ""; ; {
			if at, ok := gitDir(dir); ok {
				// A repository above the tree counts only if it belongs to this user or the tree's owner, as in git.
				if owner := ownerID(dir); lead == "" || owner >= 0 && (owner == os.Geteuid() || owner == ownerID(w.real)) {
					w.outer = w.collectRules(dir, at, lead)
					git := filepath.Join(dir, ".git")
					if info, err := os.Lstat(git); err == nil && info.Mode().IsRegular() {
						git, _ = readPointer(dir, ".git", "gitdir:")
					}
					w.outer.indexDir, w.outer.prefix = git, lead
				}
				if lead != "" && w.outer.rules.ignoresAll(".") {
					w.outer.rules = nil
				}
				return
			}
			up := filepath.Dir(dir)
			if up == dir {
				return
			}
			dir, lead = up, path.Join(filepath.Base(dir), lead)
		}
	})
	return w.outer
}

// ownerID returns the user who owns a directory, or -1 if unknown.
func ownerID(dir string) int {
	if info, err := os.Lstat(dir); err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			return int(st.Uid)
		}
	}
	return -1
}

// collectRules collects the rules of the repository at top, down to the tree, whose path from there is lead.
func (w *Workspace) collectRules(top, git, lead string) (o outerRules) {
	o.ignoreCase = ignoresCase(git)
	o.rules = w.repositoryWideRules(git, ".", lead, o.ignoreCase)
	for lead != "" {
		name := filepath.Join(top, ignoreFile)
		if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() {
			if text, err := repofile.NewRoot(top).Read(ignoreFile, maxIgnoreFile); err == nil {
				o.rules = &rules{prefix: lead, patterns: parsePatterns(text), ignoreCase: o.ignoreCase, parent: o.rules}
			}
		}
		first, rest, _ := strings.Cut(lead, "/")
		top, lead = filepath.Join(top, first), rest
	}
	return o
}

// repositoryWideRules returns the rules for a whole repository: the user's, and the repository's private ones.
func (w *Workspace) repositoryWideRules(git, dir, lead string, fold bool) *rules {
	var r *rules
	add := func(text []byte, err error) {
		if list := parsePatterns(text); err == nil && len(list) > 0 {
			r = &rules{dir: dir, prefix: lead, patterns: list, ignoreCase: fold, parent: r}
		}
	}
	name := w.gitSettings.Ignore
	for _, config := range w.gitSettings.Configs {
		w.gitSettings.findIgnoreFiles(config, 0, func(to string) { name = to })
	}
	if name != "" {
		add(repofile.ReadOwn(name, maxIgnoreFile))
	}
	add(repofile.NewRoot(git).Read("info/exclude", maxIgnoreFile))
	return r
}

// isRepository reports whether a directory of the tree is the top of a repository, or was when a survey
// first listed it.
func (w *Workspace) isRepository(dir string) bool {
	if known, ok := w.repositories.Load(dir); ok {
		return known.(bool)
	}
	_, ok := gitDir(filepath.Join(w.real, dir))
	return ok
}

// nestedRepositoryRules returns the rules for the whole repository at dir.
func (w *Workspace) nestedRepositoryRules(dir string) *rules {
	git, ok := gitDir(filepath.Join(w.real, dir))
	if !ok {
		return nil
	}
	return w.repositoryWideRules(git, dir, "", ignoresCase(git))
}

// gitDir returns the common git directory of the repository at dir.
func gitDir(dir string) (git string, ok bool) {
	git = filepath.Join(dir, ".git")
	info, err := os.Lstat(git)
	if err != nil {
		return "", false
	}
	if info.Mode().IsRegular() { // a work tree or a submodule
		if git, ok = readPointer(dir, ".git", "gitdir:"); !ok {
			return "", false
		}
	}
	if !exists(filepath.Join(git, "HEAD")) {
		return "", false
	}
	if common, ok := readPointer(git, "commondir", ""); ok {
		git = common
	}
	return git, exists(filepath.Join(git, "objects")) && exists(filepath.Join(git, "refs"))
}

// readPointer reads a file of dir that names a directory.
func readPointer(dir, name, prefix string) (to string, ok bool) {
	text, err := repofile.NewRoot(dir).Read(name, maxPath)
	if err != nil {
		return "", false
	}
	to, ok = strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), prefix)
	if to = strings.TrimSpace(to); !ok || to == "" {
		return "", false
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(dir, to)
	}
	return to, true
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// ignoresCase reports whether a repository ignores case.
func ignoresCase(git string) (fold bool) {
	text, err := repofile.NewRoot(git).Read("config", maxConfig)
	if err != nil {
		return false
	}
	eachSetting(string(text), func(section, key, value string) {
		if section == "core" && key == "ignorecase" {
			n, err := strconv.Atoi(value)
			fold = strings.EqualFold(value, "true") || strings.EqualFold(value, "yes") || strings.EqualFold(value, "on") ||
				err == nil && n != 0
		}
	})
	return fold
}

// findIgnoreFiles searches settings and their includes for the name of an ignore file.
func (g GitSettings) findIgnoreFiles(config string, depth int, found func(string)) {
	text, err := repofile.ReadOwn(config, maxConfig)
	if err != nil {
		return
	}
	eachSetting(string(text), func(section, key, value string) {
		if rest, ok := strings.CutPrefix(value, "~/"); ok {
			value = filepath.Join(g.Home, rest)
		}
		switch {
		case section == "core" && key == "excludesfile":
			found(value)
		case section == "include" && key == "path" && depth < maxIncludes:
			if !filepath.IsAbs(value) {
				value = filepath.Join(filepath.Dir(config), value)
			}
			g.findIgnoreFiles(value, depth+1, found)
		}
	})
}

// eachSetting calls each for the entries of a git settings file, with lower-case names.
func eachSetting(text string, each func(section, key, value string)) {
	section := ""
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "["); ok {
			section, line, _ = strings.Cut(rest, "]")
			section, line = strings.ToLower(strings.TrimSpace(section)), strings.TrimSpace(line)
		}
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		key, value, set := strings.Cut(line, "=")
		if value = unquoteValue(value); !set {
			value = "true"
		}
		each(section, strings.ToLower(strings.TrimSpace(key)), value)
	}
}

// unquoteValue removes quotes, escapes and a comment from a value.
func unquoteValue(value string) string {
	var b strings.Builder
	quoted, end := false, 0
	value = strings.TrimSpace(value)
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '"':
			quoted = !quoted
			end = b.Len()
		case c == '\\' && i+1 < len(value):
			i++
			b.WriteByte(value[i])
			end = b.Len()
		case !quoted && (c == '#' || c == ';'):
			return b.String()[:end]
		default:
			b.WriteByte(c)
			if quoted || c != ' ' && c != '\t' {
				end = b.Len()
			}
		}
	}
	return b.String()[:end]
}

// Git never ignores tracked files, whatever the rules say. Since an ignored file may be tracked, git's
// index is read when the first ignored file is found, and again when it has changed.

// trackedList holds the files tracked in the repository of a tree.
type trackedList struct {
	mu    sync.Mutex
	stamp os.FileInfo
	names []string // relative to the top of the repository, sorted
}

// trackedFiles returns the files tracked in the tree's repository, read on first use.
func (w *Workspace) trackedFiles() func() []string {
	return sync.OnceValue(func() []string {
		git := w.readOuterRules().indexDir
		if git == "" {
			return nil
		}
		r := &w.tracked
		r.mu.Lock()
		defer r.mu.Unlock()
		info, err := os.Lstat(filepath.Join(git, "index"))
		switch {
		case err != nil || !info.Mode().IsRegular():
			r.stamp, r.names = nil, nil
		case r.stamp == nil || !os.SameFile(r.stamp, info) || !r.stamp.ModTime().Equal(info.ModTime()) ||
			r.stamp.Size() != info.Size():
			text, err := repofile.NewRoot(git).Read("index", maxIndex)
			if r.stamp, r.names = info, nil; err == nil {
				r.names = parseIndex(text)
			}
		}
		return r.names
	})
}

// parseIndex returns the names in a git index; it omits unreadable parts.
func parseIndex(text []byte) (names []string) {
	const head, fixed = 12, 62 // bytes of the header, and of an entry before its name
	if len(text) < head || string(text[:4]) != "DIRC" {
		return nil
	}
	version, count := binary.BigEndian.Uint32(text[4:]), binary.BigEndian.Uint32(text[8:])
	if version < 2 || version > 4 {
		return nil
	}
	at, last := head, ""
	for ; count > 0 && at+fixed < len(text); count-- {
		begin := at
		at += fixed
		if version > 2 && text[begin+fixed-2]&0x40 != 0 {
			at += 2 // extended flags
		}
		if version == 4 {
			drop, size := -1, 0 // how much of the last name to drop, in git's number format
			for more := true; more; size++ {
				if size == 5 || at+size >= len(text) {
					return names
				}
				drop, more = (drop+1)<<7|int(text[at+size]&0x7f), text[at+size]&0x80 != 0
			}
			if drop > len(last) {
				return names
			}
			last, at = last[:len(last)-drop], at+size
		} else {
			last = ""
		}
		end := bytes.IndexByte(text[min(at, len(text)):], 0)
		if end < 0 {
			return names
		}
		last += string(text[at : at+end])
		if at += end + 1; version < 4 {
			at = begin + (at-1-begin+8)/8*8
		}
		names = append(names, last)
	}
	if !slices.IsSorted(names) {
		slices.Sort(names)
	}
	return names
}
