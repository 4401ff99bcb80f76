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
	maxConfig   = 256 << 10 // how many bytes of git's settings are heeded
	maxIncludes = 5         // how deep settings may include others
	maxIndex    = 64 << 20  // how many bytes of an index are read
)

// GitSettings name the files in which the person tells git what is of no
// interest anywhere.
type GitSettings struct {
	Home    string   // what ~/ stands for
	Configs []string // settings that may name a file of ignore rules; the last that does decides
	Ignore  string   // that file if none does
}

// UseGitSettings has the ignore rules of the person's own git settings count as well. It
// must be called before anything is looked for.
func (w *Workspace) UseGitSettings(g GitSettings) {
	w.person = g
	for _, a := range w.added {
		a.person = g
	}
}

// outer is what holds in a tree because of where it lies.
type outer struct {
	rules *rules
	fold  bool   // the repository says that case does not matter
	git   string // where the work tree keeps its index
	lead  string // what leads from its top to the tree
}

// surroundings are read once: what was ignored does not come to light while we
// work, or undoing would take it for new. If they leave nothing of the tree,
// which was asked for, they do not count.
func (w *Workspace) surroundings() outer {
	w.looked.Do(func() {
		for dir, lead := w.real, ""; ; {
			if at, ok := gitDir(dir); ok {
				// Of a repository above the tree only one that is ours, or of whoever owns the tree, counts: git heeds
				// no other either.
				if owner := ownerOf(dir); lead == "" || owner >= 0 && (owner == os.Geteuid() || owner == ownerOf(w.real)) {
					w.outer = w.upTo(dir, at, lead)
					git := filepath.Join(dir, ".git")
					if info, err := os.Lstat(git); err == nil && info.Mode().IsRegular() {
						git, _ = pointer(dir, ".git", "gitdir:")
					}
					w.outer.git, w.outer.lead = git, lead
				}
				if lead != "" && w.outer.rules.smothers(".") {
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

// ownerOf is the user that a directory belongs to, -1 if that cannot be told.
func ownerOf(dir string) int {
	if info, err := os.Lstat(dir); err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			return int(st.Uid)
		}
	}
	return -1
}

// upTo gathers the rules of the repository at top, as far down as the tree,
// which lead leads to from there.
func (w *Workspace) upTo(top, git, lead string) (o outer) {
	o.fold = foldsCase(git)
	o.rules = w.standing(git, ".", lead, o.fold)
	for lead != "" {
		name := filepath.Join(top, ignoreFile)
		if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() {
			if text, err := repofile.Below(top).Read(ignoreFile, maxIgnoreFile); err == nil {
				o.rules = &rules{lead: lead, patterns: parsePatterns(text), fold: o.fold, above: o.rules}
			}
		}
		first, rest, _ := strings.Cut(lead, "/")
		top, lead = filepath.Join(top, first), rest
	}
	return o
}

// standing are the rules that hold in all of a repository: the person's, and
// those it keeps to itself.
func (w *Workspace) standing(git, dir, lead string, fold bool) *rules {
	var r *rules
	add := func(text []byte, err error) {
		if list := parsePatterns(text); err == nil && len(list) > 0 {
			r = &rules{dir: dir, lead: lead, patterns: list, fold: fold, above: r}
		}
	}
	name := w.person.Ignore
	for _, config := range w.person.Configs {
		w.person.read(config, 0, func(to string) { name = to })
	}
	if name != "" {
		add(repofile.Own(name, maxIgnoreFile))
	}
	add(repofile.Below(git).Read("info/exclude", maxIgnoreFile))
	return r
}

// isRepository reports whether a directory of the tree is the top of one, or
// was when a survey first listed it.
func (w *Workspace) isRepository(dir string) bool {
	if known, ok := w.repositories.Load(dir); ok {
		return known.(bool)
	}
	_, ok := gitDir(filepath.Join(w.real, dir))
	return ok
}

// repository are the rules that hold in all of the repository at dir.
func (w *Workspace) repository(dir string) *rules {
	git, ok := gitDir(filepath.Join(w.real, dir))
	if !ok {
		return nil
	}
	return w.standing(git, dir, "", foldsCase(git))
}

// gitDir is where the repository at dir keeps what all its work trees share.
func gitDir(dir string) (git string, ok bool) {
	git = filepath.Join(dir, ".git")
	info, err := os.Lstat(git)
	if err != nil {
		return "", false
	}
	if info.Mode().IsRegular() { // of a work tree or a submodule
		if git, ok = pointer(dir, ".git", "gitdir:"); !ok {
			return "", false
		}
	}
	if !exists(filepath.Join(git, "HEAD")) {
		return "", false
	}
	if common, ok := pointer(git, "commondir", ""); ok {
		git = common
	}
	return git, exists(filepath.Join(git, "objects")) && exists(filepath.Join(git, "refs"))
}

// pointer reads a file of dir that names a directory.
func pointer(dir, name, prefix string) (to string, ok bool) {
	text, err := repofile.Below(dir).Read(name, maxPath)
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

// foldsCase reports whether a repository says that case does not matter.
func foldsCase(git string) (fold bool) {
	text, err := repofile.Below(git).Read("config", maxConfig)
	if err != nil {
		return false
	}
	settings(string(text), func(section, key, value string) {
		if section == "core" && key == "ignorecase" {
			n, err := strconv.Atoi(value)
			fold = strings.EqualFold(value, "true") || strings.EqualFold(value, "yes") || strings.EqualFold(value, "on") || err == nil && n != 0
		}
	})
	return fold
}

// read looks for the name of a file of ignore rules in settings and in those
// they include.
func (g GitSettings) read(config string, depth int, found func(string)) {
	text, err := repofile.Own(config, maxConfig)
	if err != nil {
		return
	}
	settings(string(text), func(section, key, value string) {
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
			g.read(value, depth+1, found)
		}
	})
}

// settings yields what a file of git's settings says, names in lower case.
func settings(text string, each func(section, key, value string)) {
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
		if value = plainValue(value); !set {
			value = "true"
		}
		each(section, strings.ToLower(strings.TrimSpace(key)), value)
	}
}

// plainValue takes quotes, escapes and a comment from a value.
func plainValue(value string) string {
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

// Git never ignores what it has on record, whatever the rules say. So that what
// is ignored may be on record nevertheless the record, git's index, is read when
// the first ignored thing is met, and again when it changed.

// record is what git has on record in the repository that holds a tree.
type record struct {
	mu    sync.Mutex
	stamp os.FileInfo
	names []string // from the top of the repository on, in order
}

// onRecord is what git has on record in the repository that holds the tree, read
// when first asked for.
func (w *Workspace) onRecord() func() []string {
	return sync.OnceValue(func() []string {
		git := w.surroundings().git
		if git == "" {
			return nil
		}
		r := &w.record
		r.mu.Lock()
		defer r.mu.Unlock()
		info, err := os.Lstat(filepath.Join(git, "index"))
		switch {
		case err != nil || !info.Mode().IsRegular():
			r.stamp, r.names = nil, nil
		case r.stamp == nil || !os.SameFile(r.stamp, info) || !r.stamp.ModTime().Equal(info.ModTime()) || r.stamp.Size() != info.Size():
			text, err := repofile.Below(git).Read("index", maxIndex)
			if r.stamp, r.names = info, nil; err == nil {
				r.names = indexed(text)
			}
		}
		return r.names
	})
}

// indexed lists the names in an index of git; what of it cannot be read is left
// out.
func indexed(text []byte) (names []string) {
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
			at += 2 // more flags
		}
		if version == 4 {
			drop, size := -1, 0 // of the last name, a number as git packs it
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
