package secret

import (
	_ "embed"
	"path"
	"strings"
	"sync"

	"coder/internal/core/lists"
)

//go:embed data/home.txt
var homeText string

type homeLists struct {
	harmless, shared map[string]bool
	within           map[string][]string // harmless places by the first element of their paths
	toolChains       []string
}

var home = sync.OnceValue(func() *homeLists {
	text := lists.Sections(homeText)
	l := &homeLists{
		harmless: setOfNames(text["harmless"]), shared: setOfNames(text["shared"]),
		within: make(map[string][]string), toolChains: text["tool chains"],
	}
	for _, at := range text["harmless"] {
		if top, _, deep := strings.Cut(at, "/"); deep {
			l.within[top] = append(l.within[top], at)
		}
	}
	return l
})

// Dotfile reports whether a path relative to the home is hidden from commands that the user has not
// approved: it begins with a dot and is in no harmless place.
func Dotfile(rel string) bool {
	if !strings.HasPrefix(rel, ".") || rel == "." || strings.HasPrefix(rel, "..") {
		return false
	}
	for at := rel; at != "."; at = path.Dir(at) {
		if home().harmless[at] {
			return false
		}
	}
	return true
}

// HarmlessIn returns the harmless places inside a folder of the home, relative to that folder.
func HarmlessIn(rel string) (inside []string) {
	top, _, _ := strings.Cut(rel, "/")
	for _, at := range home().within[top] {
		if below, ok := strings.CutPrefix(at, rel+"/"); ok {
			inside = append(inside, below)
		}
	}
	return inside
}

// SharedFolder reports whether many programs store files in a folder of the home.
func SharedFolder(rel string) bool { return home().shared[rel] }

// ToolChains returns the variables that name the location of a tool chain.
func ToolChains() []string { return home().toolChains }
