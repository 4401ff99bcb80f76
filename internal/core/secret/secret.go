// Package secret recognises what usually contains keys: files by name, known places of the home and the
// system, environment variables. Nothing reads these without the user's approval: not the model, not the
// commands it runs, and not coder itself.
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
var nameListText string

// nameLists are the lists of names, prepared for checks of every file in a workspace.
type nameLists struct {
	exact   map[string]bool
	globs   [][3]string // prefix, infix and suffix of a name
	paths   []string
	samples []string
	// secretFolders are entirely secret, key files in public ones are not secret, and bulky ones are not searched.
	secretFolders, publicFolders, bulkyFolders map[string]bool
}

var loadNameLists = sync.OnceValue(func() *nameLists {
	text := lists.Sections(nameListText)
	l := &nameLists{
		exact: make(map[string]bool), paths: text["paths"], samples: text["samples"],
		secretFolders: nameSet(text["folders"]), publicFolders: nameSet(text["public"]), bulkyFolders: nameSet(text["bulky"]),
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

func nameSet(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// IsSecretFile reports whether a file usually contains keys, or is a session record of another project. A relative
// path is relative to the workspace, whose own settings, unlike the user's, contain no keys. It ignores
// case: on some file systems .ENV is .env.
func IsSecretFile(file string) bool {
	place := strings.ToLower(ResolveProc(filepath.ToSlash(file)))
	for strings.HasPrefix(place, "../") { // outside the workspace
		if place = place[len("../"):]; !strings.HasPrefix(place, "../") {
			place = "/" + place
		}
	}
	if place == ".coder/config.json" || isSample(place) {
		return false
	}
	return isSecretFileName(path.Base(place)) || hasSecretSuffix(place) || isKnownPlace(place) || path.IsAbs(place) &&
		IsRecordPath(place)
}

// ResolveProc returns the path without detours through /proc: the root and working directory of a process
// lead back to the same files.
func ResolveProc(file string) string {
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

// isSecretFileName reports whether a file name is that of a secret, or of an editor's or user's copy of one. It
// runs for every file of a workspace.
func isSecretFileName(name string) bool {
	if matchesName(name) {
		return true
	}
	original := originalName(name)
	return original != name && (matchesName(original) || matchesName(strings.TrimPrefix(original, ".")))
}

// originalName returns the name of the original if name looks like that of a copy.
func originalName(name string) string {
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

func matchesName(name string) bool {
	l := loadNameLists()
	return l.exact[name] || slices.ContainsFunc(l.globs, func(g [3]string) bool {
		rest, ok := strings.CutPrefix(name, g[0])
		return ok && strings.HasSuffix(rest, g[2]) && strings.Contains(rest[:len(rest)-len(g[2])], g[1])
	})
}

// isSample reports whether a path ends like a sample file that looks secret but is not.
func isSample(place string) bool {
	return slices.ContainsFunc(loadNameLists().samples, func(end string) bool {
		return strings.HasSuffix(place, end) && (!strings.Contains(end, "/") || len(place) == len(end) ||
			place[len(place)-len(end)-1] == '/')
	})
}

func hasSecretSuffix(place string) bool {
	if !strings.Contains(place, "/") {
		return false
	}
	return slices.ContainsFunc(loadNameLists().paths, func(pattern string) bool {
		if !strings.HasSuffix(place, pattern[strings.LastIndexAny(pattern, `*?[]{}\/`)+1:]) {
			return false // most paths, without a pattern match
		}
		if !path.IsAbs(pattern) {
			pattern = "**/" + pattern
		}
		ok, err := doublestar.Match(pattern, place)
		return err == nil && ok
	})
}

// IsHiddenInTree reports whether a path relative to the workspace is hidden from commands by its name. Keys in
// the usual places of tests and packages are not secret: commands need them, and they are public.
func IsHiddenInTree(rel string, dir bool) bool {
	name := strings.ToLower(path.Base(rel))
	if dir {
		return loadNameLists().secretFolders[name]
	}
	if !isSecretFileName(name) && !hasSecretSuffix(strings.ToLower(rel)) || !IsSecretFile(rel) {
		return false
	}
	return !IsKeyFile(rel) || !slices.ContainsFunc(strings.Split(path.Dir(rel), "/"),
		func(part string) bool { return loadNameLists().publicFolders[strings.ToLower(part)] })
}

// IsBulkyFolder reports whether a folder of a workspace holds thousands of installed or generated files. It is
// not searched, since nobody stores a secret there.
func IsBulkyFolder(rel string) bool { return loadNameLists().bulkyFolders[path.Base(rel)] }

// IsKeyFile reports whether a file's name suggests a key, or something public such as a certificate:
// only its content tells which.
func IsKeyFile(file string) bool {
	switch strings.ToLower(path.Ext(file)) {
	case ".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".ppk":
		return true
	}
	return strings.HasPrefix(strings.ToLower(path.Base(file)), "id_")
}

// IsPublic reports whether a possible key file is public, judging by its first bytes: certificates and
// public keys are not secret.
func IsPublic(name string, head []byte) bool {
	text := string(head)
	switch strings.ToLower(path.Ext(name)) {
	case ".pem", ".key":
		return !strings.Contains(text, "PRIVATE KEY") && (strings.Contains(text, "BEGIN CERTIFICATE") ||
			strings.Contains(text, "BEGIN PUBLIC KEY"))
	}
	return false
}
