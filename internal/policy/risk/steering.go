package risk

import (
	_ "embed"
	"path"
	"strings"
	"sync"

	"coder/internal/core/lists"
	"coder/internal/host/repofile"
)

// steering lists the files by which a project, or a user's machine, tells programs
// what to run and whom to obey later, by kind. A write to one of them outlives the
// approval of the command that wrote it, so each needs its own approval.
//
//go:embed data/steering.txt
var steering string

// A steer is one parsed entry.
type steer struct {
	parts []string
	fixed bool
	what  string
}

// steers are the entries by their first part, those with a star in it separately.
var steers = sync.OnceValue(func() (all struct {
	plain map[string][]steer
	other []steer
}) {
	all.plain = make(map[string][]steer)
	for what, at := range lists.Entries(steering) {
		rest, fixed := strings.CutPrefix(at, "/")
		one := steer{strings.Split(rest, "/"), fixed, what}
		if strings.Contains(one.parts[0], "*") {
			all.other = append(all.other, one)
		} else {
			all.plain[one.parts[0]] = append(all.plain[one.parts[0]], one)
		}
	}
	return all
})

// Protected describes what a path belongs to if no write may reach it without approval: files that
// decide what runs or is obeyed later, or records. It returns "" for all other paths.
func Protected(p string) string {
	if repofile.CheckLayout(p, "") != nil {
		return "the repository's own files"
	}
	p = strings.ToLower(path.Clean(strings.Map(unseen, strings.ReplaceAll(p, `\`, "/"))))
	if path.Base(p) == "head" { // with settings, objects and refs beside it, HEAD makes a folder a repository
		return "the repository's own files"
	}
	parts := strings.Split(strings.TrimPrefix(p, "/"), "/")
	for i := range parts {
		for _, list := range [][]steer{steers().plain[parts[i]], steers().other} {
			for _, s := range list {
				if s.covers(parts[i:]) && (!s.fixed || i == 0 && path.IsAbs(p)) {
					return s.what
				}
			}
		}
	}
	return ""
}

// covers reports whether parts lead to the entry, below it, or to a folder that contains it.
func (s steer) covers(parts []string) bool {
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

// unseen drops the runes that some file systems ignore in names.
func unseen(r rune) rune {
	if r >= 0x200c && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x206a && r <= 0x206f || r == 0xfeff {
		return -1
	}
	return r
}

// protected is Protected for a path and for its link target.
func (f Facts) protected(p string) string {
	if what := Protected(p); what != "" {
		return what
	}
	real := f.real(p)
	what := ""
	if real != p {
		what = Protected(real)
	}
	if what == "" && f.Led != nil && f.Led(real) {
		what = led
	}
	return what
}

// led describes a file that the user's programs find under another name.
const led = "a settings file linked from your home folder"
