// Package skills finds the skills of a user or a project and loads one on demand. A skill is a folder
// with a SKILL.md: a header that says what it is for, and a body that says how.
//
// Nothing is read before it is needed, listing reads only headers, and
// one broken skill never hides the others: it becomes a [Warning].
package skills

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"coder/internal/authored/frontmatter"
	"coder/internal/core/message"
)

// These limits apply to reading and display.
const (
	maxNameLen        = 64       // characters
	maxDescriptionLen = 1024     // characters
	maxFolders        = 500      // examined in each root
	maxHeaderBytes    = 64 << 10 // of a SKILL.md, to list it
	maxBodyBytes      = 96 << 10 // of a SKILL.md, to load it
	maxFiles          = 50       // listed with a loaded skill
)

// Root is a folder whose folders may be skills, and Warning a problem there.
type (
	Root    = frontmatter.Root
	Warning = frontmatter.Warning
)

// Skill is the header of a skill that is not loaded yet.
type Skill struct {
	Name          string
	ShortName     string // Name without its plugin; empty if it has none
	Description   string
	License       string
	Compatibility string
	AllowedTools  []string
	Metadata      map[string]string
	Fields        map[string]frontmatter.Value // the whole header, including unknown fields
	Path          string                       // of its SKILL.md, for display; empty if it is built in

	root Root
	file string // in root
	text string // of a built-in skill
}

// DisplayText returns the skill's purpose for display: from its metadata, or else its description.
func (s Skill) DisplayText() string { return cmp.Or(s.Metadata["about"], s.Description) }

// ErrNotFound means that the skill does not exist.
var ErrNotFound = errors.New("no such skill")

// Catalogue has the skills of several roots. It is safe for concurrent use.
type Catalogue struct{ *frontmatter.Catalogue[Skill] }

// New returns the catalogue of roots in order of precedence: of two skills with one name, the one in
// the earlier root counts; built-in skills come last.
func New(roots ...Root) *Catalogue {
	return &Catalogue{frontmatter.NewCatalogue(func() scanResult {
		var all scanResult
		for _, root := range roots {
			for _, folder := range skillFolders(&all, root) {
				readHeader(&all, root, folder)
			}
		}
		if s, _, err := parseSkill(createSkillText, "create-skill"); err == nil {
			s.text = createSkillText
			all.Add(s.Name, s)
		}
		slices.SortFunc(all.Items, func(a, b Skill) int { return strings.Compare(a.Name, b.Name) })
		return all
	})}
}

type scanResult = frontmatter.ScanResult[Skill]

// Find returns the skill with that name, or else the only one with that short name.
func (c *Catalogue) Find(name string) (Skill, bool) {
	name = strings.TrimSpace(name)
	skills, _ := c.List()
	i := slices.IndexFunc(skills, func(s Skill) bool { return s.Name == name })
	if i < 0 {
		return frontmatter.FindUnique(skills, func(s Skill) bool { return name != "" && s.ShortName == name })
	}
	return skills[i], true
}

// skillFolders returns the folders in root that may be skills, by name. A missing root is no problem.
func skillFolders(all *scanResult, root Root) []string {
	if root.OnlyNames != nil {
		return root.OnlyNames
	}
	entries, err := fs.ReadDir(root.Files, ".")
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			all.Warn(root.Path, "%v", err)
		}
		return nil
	}
	var names []string
	for _, e := range entries {
		if (e.IsDir() || e.Type()&fs.ModeSymlink != 0) && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	if len(names) > maxFolders {
		all.Warn(root.Path, "only the first %d of %d folders are read", maxFolders, len(names))
		names = names[:maxFolders]
	}
	return names
}

// skillFileNames are the accepted names of a skill's file.
var skillFileNames = []string{"SKILL.md", "skill.md"}

// readHeader reads the header of the skill in folder, if there is one.
func readHeader(all *scanResult, root Root, folder string) {
	for _, name := range skillFileNames {
		file := path.Join(folder, name)
		text, _, err := frontmatter.ReadFile(root.Files, file, maxHeaderBytes)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		where := root.Path + "/" + file
		if err != nil {
			all.Warn(where, "%v", err)
			return
		}
		s, problems, err := parseSkill(text, folder)
		for _, p := range problems {
			all.Warn(where, "%s", p)
		}
		if err != nil {
			all.Warn(where, "skipped: %v", err)
			return
		}
		s.Name, s.ShortName = root.QualifiedName(s.Name)
		s.Path, s.root, s.file = where, root, file
		all.Add(s.Name, s)
		return
	}
}

// parseSkill parses the text of a skill's file. It replaces a
// missing or invalid name by the folder's, if that is valid.
func parseSkill(text, folder string) (Skill, []string, error) {
	f, err := frontmatter.Parse(text)
	if err != nil {
		return Skill{}, nil, err
	}
	problems := f.Problems
	name := f.Text("name")
	switch {
	case IsValidName(name) && name != folder:
		problems = append(problems, fmt.Sprintf("the skill is named %s, but its folder is %s", name, folder))
	case !IsValidName(name) && !IsValidName(folder):
		return Skill{}, problems,
			message.Errorf("%q is not a valid name: use lower-case letters, digits and single dashes, at most %d", name,
				maxNameLen)
	case !IsValidName(name):
		if name != "" {
			problems = append(problems, fmt.Sprintf("%q is not a valid name; using the folder name %s", name, folder))
		}
		name = folder
	}
	description := strings.TrimSpace(f.Text("description"))
	if description == "" {
		return Skill{}, problems, errors.New("no description")
	}
	if runes := []rune(description); len(runes) > maxDescriptionLen {
		problems = append(problems, fmt.Sprintf("the description is cut at %d characters", maxDescriptionLen))
		description = string(runes[:maxDescriptionLen])
	}
	return Skill{
		Name: name, Description: description, License: f.Text("license"), Compatibility: f.Text("compatibility"),
		AllowedTools: f.Fields["allowed-tools"].Items(), Metadata: f.Fields["metadata"].Map, Fields: f.Fields,
	}, problems, nil
}

// IsValidName reports whether a skill may have this name: words of
// lowercase letters and digits, joined by single dashes.
func IsValidName(name string) bool {
	if name == "" || len(name) > maxNameLen {
		return false
	}
	for word := range strings.SplitSeq(name, "-") {
		if word == "" || strings.Trim(word, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			return false
		}
	}
	return true
}

//go:embed create-skill.md
var createSkillText string
