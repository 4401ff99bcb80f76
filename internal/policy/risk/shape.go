package risk

import (
	"errors"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// dots stand in a shape for the words that do not matter: files of the
// workspace, and options that run nothing else.
const dots = "…"

// Shapes are what "always" would remember of a line: for each command that does
// more than read, what is left of it once the words are gone that can neither
// run code nor reach elsewhere. Two commands of one shape differ only in such
// words. There are none if some command is not known well enough for that: then
// only the line as it stands can be remembered. The error says why not even
// that can be.
func Shapes(r Report) ([]string, error) {
	switch {
	case r.Level > None || r.Unknown:
		return nil, errors.New("it is asked about every time")
	case r.Substituted:
		return nil, errors.New("part of it is only known when it runs")
	case r.Redirected:
		return nil, errors.New("its output goes to a file outside the project")
	case len(r.Simple) == 0:
		return nil, errors.New("it runs no command")
	}
	if len(r.Sets) > 0 {
		return nil, nil
	}
	var shapes []string
	for _, c := range r.Simple {
		if c.ReadOnly {
			continue
		}
		s, ok := r.shape(c)
		if !ok {
			return nil, nil
		}
		if !slices.Contains(shapes, s) {
			shapes = append(shapes, s)
		}
	}
	return shapes, nil
}

// Covered reports whether every command of the line that does more than read,
// and there is one, has one of the shapes that were remembered or is named by a
// person's list.
func Covered(r Report, remembered func(shape string) bool, names []string) bool {
	if r.Level > None || r.Unknown || r.Substituted || r.Redirected || len(r.Simple) == 0 || len(r.Sets) > 0 {
		return false
	}
	some := false
	for _, c := range r.Simple {
		switch {
		case slices.Contains(names, c.Name) && !forgettable(c), !c.ReadOnly && r.hasShape(c, remembered):
			some = true
		case !c.ReadOnly:
			return false
		}
	}
	return some
}

func (r Report) hasShape(c Command, remembered func(string) bool) bool {
	s, ok := r.shape(c)
	if !ok {
		return false
	}
	h, _ := habitOf(c)
	wider := strings.Replace(s, strings.Join(h.words, " "), h.within, 1)
	return remembered(s) || h.within != "" && remembered(wider) || h.within != "" && remembered(wider+" "+dots)
}

// shape is a command without the words that do not matter. It fails if the
// command is not one of those that are known.
func (r Report) shape(c Command) (string, bool) {
	h, ok := habitOf(c)
	if !ok || !c.Exact || c.local || c.Fed || c.Dir == "" || !r.facts.isInside(c.Dir) {
		return "", false
	}
	all := append([]string{c.Name}, c.Args[:len(h.words)-1]...)
	for i, word := range all {
		all[i] = quoted(word)
	}
	for _, word := range r.kept(h, c) {
		all = append(all, quoted(word))
	}
	if h.operands != keepAll {
		all = append(all, dots)
	}
	s := strings.Join(all, " ")
	if c.Dir != r.facts.Cwd {
		s += " (in " + strings.TrimPrefix(c.Dir, r.facts.Cwd+"/") + ")"
	}
	return s, true
}

// kept are the words after the known ones that matter: from the first that is
// neither an option nor an operand of the harmless kind, all of them.
func (r Report) kept(h habit, c Command) (kept []string) {
	rest := c.Args[len(h.words)-1:]
	for len(rest) > 0 {
		word := rest[0]
		if len(word) > 1 && word[0] == '-' {
			n := h.lets(rest)
			if n == 0 {
				return append(kept, rest...)
			}
			rest = rest[n:]
			continue
		}
		switch {
		case h.operands == freeWords, h.operands == freePaths && r.ordinary(c, word):
		case h.operands == freeLocal && origin(word) != "":
			kept = append(kept, origin(word))
		case h.operands == keepAll:
			kept = append(kept, word)
		default:
			return append(kept, rest...)
		}
		rest = rest[1:]
	}
	return kept
}

// ordinary reports whether a word names a file of the workspace that steers
// nothing.
func (r Report) ordinary(c Command, word string) bool {
	file, _, _ := strings.Cut(word, "::") // one test of a file
	if file == "" || file == "-" || file[0] == '@' /* a file of options */ || strings.HasPrefix(file, "~") || strings.Contains(file, "\\") {
		return false
	}
	p := file
	if !path.IsAbs(p) {
		p = path.Join(c.Dir, strings.TrimSuffix(p, "..."))
		if !strings.HasPrefix(file, ".") && packages[c.Name] {
			return false // a package of someone else's
		}
	}
	p = path.Clean(p)
	return r.facts.isInside(p) && r.facts.isInside(r.facts.real(p)) && r.facts.protected(p) == ""
}

// packages are the programs to which a word without a dot before it names a
// package rather than a folder here.
var packages = set("go staticcheck")

// origin is an address of this machine without its path; empty if it is not
// one.
func origin(word string) string {
	address := word
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.User != nil || u.Scheme != "http" && u.Scheme != "https" || strings.ContainsAny(word, "{}[]*") && !strings.Contains(word, "[::1]") {
		return ""
	}
	a, err := netip.ParseAddr(u.Hostname())
	if !strings.EqualFold(u.Hostname(), "localhost") && (err != nil || !a.IsLoopback()) {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// quoted writes a word so that where it ends can be seen.
func quoted(word string) string {
	q, err := syntax.Quote(word, syntax.LangBash)
	if err != nil {
		return "'" + word + "'"
	}
	return q
}
