package repofile

import (
	"errors"
	"slices"
	"strings"
	"unicode"
)

// ErrGit reports a name that git would use as a repository, or as a part of one.
var ErrGit = errors.New(
	"a record, golden session or bundle must not contain .git, anything in it, or a link to it: git would obey it")

// CheckLayout rejects names under which git would find a repository or a part of one, and links to them.
// Call it before creating files with names from others. Names are separated by slashes; target is a
// link's target, or "".
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

// isGit reports whether any file system treats a name as .git: by ignoring case, invisible characters,
// text after a colon, or trailing dots and spaces, or by short names.
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
