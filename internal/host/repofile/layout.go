package repofile

import (
	"errors"
	"slices"
	"strings"
	"unicode"
)

// ErrGit is the error of what git would take for a repository, or for a part of one.
var ErrGit = errors.New(
	"a record, golden session or bundle must not contain .git, anything in it, or a link to it: git would obey it")

// CheckLayout refuses names under which git would find a repository, or a part of
// one, and links that lead there. Whatever lays files out that somebody else named
// asks it first. Slashes part a name; a target is that of a link, or "".
func CheckLayout(name, target string) error {
	for _, p := range []string{name, target} {
		parts := strings.FieldsFunc(p, func(r rune) bool { return r == '/' || r == '\\' })
		if slices.ContainsFunc(parts, isGit) {
			return ErrGit
		}
		if n := len(parts); n > 2 && plainName(parts[n-3]) == "objects" && plainName(parts[n-2]) == "info" {
			if last := plainName(parts[n-1]); last == "alternates" || last == "http-alternates" {
				return ErrGit
			}
		}
	}
	return nil
}

// isGit reports whether some file system takes a name for .git: one that ignores
// case, or signs that are not seen, or what stands behind a colon, dots and spaces
// at the end, or one that has short names.
func isGit(name string) bool {
	name = plainName(name)
	number, short := strings.CutPrefix(name, "git~")
	return name == ".git" || short && number != "" && strings.Trim(number, "0123456789") == ""
}

func plainName(name string) string {
	name, _, _ = strings.Cut(name, ":")
	name = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Cc, unicode.Variation_Selector) {
			return -1
		}
		return r
	}, name)
	return strings.TrimRight(strings.ToLower(name), " .")
}
