package secret

import (
	_ "embed"
	"path"
	"slices"
	"strings"
	"sync"

	"coder/internal/core/lists"
)

//go:embed data/programs.txt
var programListText string

// Place is a file or folder known to contain keys or the user's typed input.
type Place struct {
	Path     string   // relative to the home, or absolute; a trailing slash marks a folder
	Programs []string // the programs that cannot work without it
}

// programNeeds lists what programs need for their work: places, and variables by name, which may end in a
// star.
var programNeeds = sync.OnceValue(func() (l struct {
	places    []Place
	home      []string // places below a home, in lower case
	variables []Place
}) {
	add := func(list []Place, at string, users []string) []Place {
		if i := slices.IndexFunc(list, func(p Place) bool { return p.Path == at }); i >= 0 {
			list[i].Programs = append(list[i].Programs, users...)
			return list
		}
		return append(list, Place{at, users})
	}
	for section, entry := range lists.Entries(programListText) {
		users := strings.Fields(section)
		if name, ok := strings.CutPrefix(entry, "$"); ok {
			l.variables = add(l.variables, name, users)
			continue
		}
		if l.places = add(l.places, entry, users); !path.IsAbs(entry) {
			l.home = append(l.home, strings.ToLower(entry))
		}
	}
	return l
})

// KnownPlaces returns the known places on this operating system. coder's own files are not among them: no
// program needs these.
func KnownPlaces() []Place { return programNeeds().places }

// isKnownPlace reports whether an absolute lower-case path ends with a known place of a home, or is in one.
func isKnownPlace(place string) bool {
	if !path.IsAbs(place) {
		return false
	}
	return slices.ContainsFunc(programNeeds().home, func(p string) bool {
		if strings.HasSuffix(p, "/") {
			return strings.Contains(place+"/", "/"+p)
		}
		return strings.HasSuffix(place, "/"+p)
	})
}

// NeedsVariables reports whether program may need variables for its work.
func NeedsVariables(program string) bool {
	return slices.ContainsFunc(programNeeds().variables, func(v Place) bool {
		return slices.Contains(v.Programs,
			program)
	})
}

// NeedsVariable reports whether program needs the variable name for its work.
func NeedsVariable(program, name string) bool {
	return slices.ContainsFunc(programNeeds().variables, func(v Place) bool {
		begin, open := strings.CutSuffix(v.Path, "*")
		return slices.Contains(v.Programs, program) && (name == v.Path || open && strings.HasPrefix(name, begin))
	})
}

// IsNeededBy reports whether one of the programs needs the place for its work.
func (p Place) IsNeededBy(programs []string) bool {
	return slices.ContainsFunc(p.Programs, func(name string) bool { return slices.Contains(programs, name) })
}
