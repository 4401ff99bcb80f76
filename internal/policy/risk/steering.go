package risk

import (
	_ "embed"
	"path"
	"strings"
	"sync"

	"coder/internal/core/lists"
	"coder/internal/host/repofile"
)

// steeringText lists the files by which a project, or a user's machine, tells programs
// what to run and whom to obey later, by kind. A write to one of them outlives the
// approval of the command that wrote it, so each needs its own approval.
//
//go:embed data/steering.txt
var steeringText string

// A steeringEntry is one parsed entry.
type steeringEntry struct {
	parts       []string
	fixed       bool
	description string
}

// steeringEntries are the entries by their first part, those with a star in it separately.
var steeringEntries = sync.OnceValue(func() (all struct {
	plain map[string][]steeringEntry
	other []steeringEntry
}) {
	all.plain = make(map[string][]steeringEntry)
	for what, at := range lists.Entries(steeringText) {
		rest, fixed := strings.CutPrefix(at, "/")
		one := steeringEntry{strings.Split(rest, "/"), fixed, what}
		if strings.Contains(one.parts[0], "*") {
			all.other = append(all.other, one)
		} else {
			all.plain[one.parts[0]] = append(all.plain[one.parts[0]], one)
		}
	}
	return all
})

// ProtectedReason describes what a path belongs to if no write may reach it without approval: files that
// decide what runs or is obeyed later, or records. It returns "" for all other paths.
func ProtectedReason(p string) string {
	if repofile.CheckLayout(p, "") != nil {
		return "the repository's own files"
	}
	p = strings.ToLower(path.Clean(strings.Map(dropIgnoredRunes, strings.ReplaceAll(p, `\`, "/"))))
	if path.Base(p) == "head" { // with settings, objects and refs beside it, HEAD makes a folder a repository
		return "the repository's own files"
	}
	parts := strings.Split(strings.TrimPrefix(p, "/"), "/")
	for i := range parts {
		for _, list := range [][]steeringEntry{steeringEntries().plain[parts[i]], steeringEntries().other} {
			for _, s := range list {
				if s.covers(parts[i:]) && (!s.fixed || i == 0 && path.IsAbs(p)) {
					return s.description
				}
			}
		}
	}
	return ""
}

// covers reports whether parts lead to the entry, below it, or to a folder that contains it.
func (s steeringEntry) covers(parts []string) bool {
	for i, want := range s.parts {
		if i == len(parts) {
			return true
		}
		if ok, err := path.Match(want, parts[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

// dropIgnoredRunes drops the runes that some file systems ignore in names.
func dropIgnoredRunes(r rune) rune {
	if r >= 0x200c && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x206a && r <= 0x206f || r == 0xfeff {
		return -1
	}
	return r
}

// protectedReason is Protected for a path and for its link target.
func (f Facts) protectedReason(p string) string {
	if what := ProtectedReason(p); what != "" {
		return what
	}
	real := f.real(p)
	what := ""
	if real != p {
		what = ProtectedReason(real)
	}
	if what == "" && f.IsLinked != nil && f.IsLinked(real) {
		what = linkedReason
	}
	return what
}

// linkedReason describes a file that the user's programs find under another name.
const linkedReason = "a settings file linked from your home folder"
