// Package secret tells what usually holds keys: files by their names, known
// places of a home and of the system, variables of an environment. Such a thing
// is never read without the person's leave, neither by the model, nor by the
// commands it runs, nor by the program on its own account.
package secret

import (
	_ "embed"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"coder/internal/core/lists"

	"github.com/bmatcuk/doublestar/v4"
)

//go:embed data/names.txt
var namesText string

// nameLists are the lists of names, ready to be asked of every file of a workspace.
type nameLists struct {
	exact   map[string]bool
	globs   [][3]string // how a name begins, goes on and ends
	paths   []string
	samples []string
	// folders are secret whole, the key files of public ones are there for
	// everybody, and bulky ones are not looked through.
	folders, public, bulky map[string]bool
}

var names = sync.OnceValue(func() *nameLists {
	text := lists.Sections(namesText)
	l := &nameLists{
		exact: make(map[string]bool), paths: text["paths"], samples: text["samples"],
		folders: setOfNames(text["folders"]), public: setOfNames(text["public"]), bulky: setOfNames(text["bulky"]),
	}
	for _, name := range text["names"] {
		begin, end, ok := strings.Cut(name, "*")
		if !ok {
			l.exact[name] = true
			continue
		}
		glob := [3]string{begin, "", end}
		if within, last, ok := strings.Cut(end, "*"); ok {
			glob[1], glob[2] = within, last
		}
		l.globs = append(l.globs, glob)
	}
	return l
})

func setOfNames(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// Is reports whether a file usually holds keys, or is a record of sessions of another
// project. A relative path is one below the workspace, whose own settings, unlike the
// person's, hold none. Case does not count: on some file systems .ENV is .env.
func Is(file string) bool {
	place := strings.ToLower(Direct(filepath.ToSlash(file)))
	for strings.HasPrefix(place, "../") { // it lies beside the workspace
		if place = place[len("../"):]; !strings.HasPrefix(place, "../") {
			place = "/" + place
		}
	}
	if place == ".coder/config.json" || isSample(place) {
		return false
	}
	return named(path.Base(place)) || ended(place) || known(place) || path.IsAbs(place) && InRecords(place)
}

// Direct is the path behind detours by way of /proc: the root and the working
// directory of a process lead back to where one was.
func Direct(file string) string {
	for file = path.Clean(file); ; {
		rest, ok := strings.CutPrefix(file, "/proc/")
		if !ok {
			return file
		}
		_, rest, _ = strings.Cut(strings.Replace(rest, "/task/", "", 1), "/")
		inner, isRoot := strings.CutPrefix(rest, "root")
		if !isRoot || inner != "" && inner[0] != '/' {
			return file
		}
		file = path.Clean("/" + inner)
	}
}

// named reports whether a file's own name is that of a secret, or of what an
// editor or a person kept of one. It is asked of every file of a workspace.
func named(name string) bool {
	if matches(name) {
		return true
	}
	original := copied(name)
	return original != name && (matches(original) || matches(strings.TrimPrefix(original, ".")))
}

// copied is the name of the file that another is a copy of, as far as its name
// tells.
func copied(name string) string {
	switch n := len(name); {
	case n > 2 && name[0] == '#' && name[n-1] == '#':
		return name[1 : n-1]
	case n > 1 && name[n-1] == '~':
		return name[:n-1]
	case strings.HasPrefix(name, ".#"):
		return name[2:]
	}
	switch end := path.Ext(name); end {
	case ".bak", ".old", ".orig", ".save", ".backup", ".copy", ".swp", ".swo", ".swn", ".tmp":
		return strings.TrimSuffix(name, end)
	}
	return name
}

func matches(name string) bool {
	l := names()
	return l.exact[name] || slices.ContainsFunc(l.globs, func(g [3]string) bool {
		rest, ok := strings.CutPrefix(name, g[0])
		return ok && strings.HasSuffix(rest, g[2]) && strings.Contains(rest[:len(rest)-len(g[2])], g[1])
	})
}

// isSample reports whether a path ends as those do that are like secrets and hold
// none.
func isSample(place string) bool {
	return slices.ContainsFunc(names().samples, func(end string) bool {
		return strings.HasSuffix(place, end) && (!strings.Contains(end, "/") || len(place) == len(end) || place[len(place)-len(end)-1] == '/')
	})
}

func ended(place string) bool {
	if !strings.Contains(place, "/") {
		return false
	}
	return slices.ContainsFunc(names().paths, func(pattern string) bool {
		if !path.IsAbs(pattern) {
			pattern = "**/" + pattern
		}
		ok, err := doublestar.Match(pattern, place)
		return err == nil && ok
	})
}

// InTree reports whether something in a workspace is to be hidden from commands
// by its name, given from there. Keys that lie where tests and packages keep
// theirs are no secrets: commands need them, and everybody has them.
func InTree(rel string, dir bool) bool {
	name := strings.ToLower(path.Base(rel))
	if dir {
		return names().folders[name]
	}
	if !named(name) && !ended(strings.ToLower(rel)) || !Is(rel) {
		return false
	}
	return !IsKeyFile(rel) || !slices.ContainsFunc(strings.Split(path.Dir(rel), "/"), func(part string) bool { return names().public[strings.ToLower(part)] })
}

// Bulky reports whether a folder of a workspace holds what was installed or
// made, by the thousand: nobody keeps a secret there, and it is not looked
// through.
func Bulky(rel string) bool { return names().bulky[path.Base(rel)] }

// IsKeyFile reports whether a file's name says that it may hold a key, or else
// something public such as a certificate: only its content tells.
func IsKeyFile(file string) bool {
	switch strings.ToLower(path.Ext(file)) {
	case ".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".ppk":
		return true
	}
	return strings.HasPrefix(strings.ToLower(path.Base(file)), "id_")
}

// IsPublic reports whether the beginning of what a name says may be a key is
// something else: certificates and public keys are not secret.
func IsPublic(name string, head []byte) bool {
	text := string(head)
	switch strings.ToLower(path.Ext(name)) {
	case ".pem", ".key":
		return !strings.Contains(text, "PRIVATE KEY") && (strings.Contains(text, "BEGIN CERTIFICATE") || strings.Contains(text, "BEGIN PUBLIC KEY"))
	}
	return false
}
