package secret

import (
	_ "embed"
	"path"
	"strings"
	"sync"

	"coder/internal/core/lists"
)

//go:embed data/home.txt
var homeListText string

type homePlaces struct {
	harmless, sharedFolders map[string]bool
	harmlessByFolder        map[string][]string // harmless places by the first element of their paths
	toolchainVars           []string
}

var loadHomePlaces = sync.OnceValue(func() *homePlaces {
	text := lists.Sections(homeListText)
	l := &homePlaces{
		harmless: nameSet(text["harmless"]), sharedFolders: nameSet(text["shared"]),
		harmlessByFolder: make(map[string][]string), toolchainVars: text["tool chains"],
	}
	for _, at := range text["harmless"] {
		if top, _, deep := strings.Cut(at, "/"); deep {
			l.harmlessByFolder[top] = append(l.harmlessByFolder[top], at)
		}
	}
	return l
})

// IsHiddenDotfile reports whether a path relative to the home is hidden from commands that the user has not
// approved: it begins with a dot and is in no harmless place.
func IsHiddenDotfile(rel string) bool {
	if !strings.HasPrefix(rel, ".") || rel == "." || strings.HasPrefix(rel, "..") {
		return false
	}
	for at := rel; at != "."; at = path.Dir(at) {
		if loadHomePlaces().harmless[at] {
			return false
		}
	}
	return true
}

// HarmlessPlacesIn returns the harmless places inside a folder of the home, relative to that folder.
func HarmlessPlacesIn(rel string) (inside []string) {
	top, _, _ := strings.Cut(rel, "/")
	for _, at := range loadHomePlaces().harmlessByFolder[top] {
		if below, ok := strings.CutPrefix(at, rel+"/"); ok {
			inside = append(inside, below)
		}
	}
	return inside
}

// IsSharedFolder reports whether many programs store files in a folder of the home.
func IsSharedFolder(rel string) bool { return loadHomePlaces().sharedFolders[rel] }

// ToolchainVars returns the variables that name the location of a tool chain.
func ToolchainVars() []string { return loadHomePlaces().toolchainVars }
