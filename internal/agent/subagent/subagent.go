// Package subagent finds the agents that work can be handed to: the built-in ones
// and those that people have written as Markdown files.
//
// An agent is a way of working: a prompt, a choice of tools, a number of steps.
// It can only narrow what whoever hands it the work may do, never widen it: see
// [Definition.Narrow] and [Definition.Within].
package subagent

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"coder/internal/authored/frontmatter"
	"coder/internal/core/clip"
)

// Names of the agents that are always there.
const (
	General = "general"
	Explore = "explore"
)

// Limits of what is read and of what an agent may ask for.
const (
	maxAgents      = 100 // in each root
	maxBytes       = 64 << 10
	maxName        = 64
	maxDescription = 1024
	// DefaultSteps is how many steps an agent has that does not say.
	DefaultSteps = 50
	maxSteps     = 500
)

// Root is a folder of agents, and Warning what is wrong there. Agents of a
// bounded root may not choose their model.
type (
	Root    = frontmatter.Root
	Warning = frontmatter.Warning
)

// Definition is one agent.
type Definition struct {
	Name, Description string
	Short             string // the name without the plugin it came with; empty if it came with none
	About             string // the same in the words for people
	Prompt            string
	Tools             []string // those it has; none means all
	Without           []string // those it has not
	Model             string   // empty: that of whoever hands it the work
	MaxSteps          int
	ReadOnly          bool   // whatever it does only looks
	Path              string // for people; empty if it is built in
}

// Own reports whether a person wrote it.
func (d Definition) Own() bool { return d.Path != "" }

//go:embed general.md explore.md
var builtIn embed.FS

// Catalogue is the agents there are: people's own by name, the built-in ones
// after them.
type Catalogue []Definition

// Load reads the agents of roots, strongest first: of two agents with one name
// the one in the earlier root counts, and a built-in one comes last. What
// cannot be read is left out with a warning.
func Load(roots ...Root) (Catalogue, []Warning) {
	var l loader
	for _, root := range roots {
		l.root(root)
	}
	slices.SortFunc(l.Items, func(a, b Definition) int { return strings.Compare(a.Name, b.Name) })
	for _, name := range []string{General, Explore} {
		if d, ok := l.read(Root{Files: builtIn}, name+".md"); ok {
			d.Path = ""
			l.Add(strings.ToLower(d.Name), d)
		}
	}
	return l.Items, l.Warnings
}

// Find returns the agent of that name, in any case, or else the one that alone has
// it in short.
func (c Catalogue) Find(name string) (Definition, bool) {
	name = strings.TrimSpace(name)
	i := slices.IndexFunc(c, func(d Definition) bool { return strings.EqualFold(d.Name, name) })
	if i < 0 {
		return frontmatter.InShort(c, func(d Definition) bool { return name != "" && strings.EqualFold(d.Short, name) })
	}
	return c[i], true
}

type loader struct{ frontmatter.Found[Definition] }

// root reads the Markdown files of a folder, not those of folders in it. A
// folder that is not there is not worth a word.
func (l *loader) root(root Root) {
	for _, name := range root.Only {
		if d, ok := l.read(root, name); ok {
			l.Add(strings.ToLower(d.Name), d)
		}
	}
	if root.Only != nil {
		return
	}
	entries, err := fs.ReadDir(root.Files, ".")
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		l.Warn(root.Path, "%v", err)
		return
	}
	n := 0
	for _, e := range entries {
		if e.IsDir() || strings.HasPrefix(e.Name(), ".") || !strings.EqualFold(path.Ext(e.Name()), ".md") {
			continue
		}
		if n++; n > maxAgents {
			l.Warn(root.Path, "only the first %d agents are read", maxAgents)
			return
		}
		if d, ok := l.read(root, e.Name()); ok {
			l.Add(strings.ToLower(d.Name), d)
		}
	}
}

// read takes in one file.
func (l *loader) read(root Root, file string) (Definition, bool) {
	where := root.Path + "/" + file
	f, err := root.Load(file, maxBytes)
	if err == nil {
		err = check(f, file)
	}
	if err != nil {
		l.Warn(where, "skipped: %v", err)
		return Definition{}, false
	}
	for _, p := range f.Problems {
		l.Warn(where, "%s", p)
	}
	description := strings.TrimSpace(f.Text("description"))
	d := Definition{
		Name: nameOf(f, file), Description: clip.Text(description, maxDescription),
		About:  clip.Text(cmp.Or(strings.TrimSpace(f.Text("about")), description), maxDescription),
		Prompt: strings.TrimSpace(f.Body), ReadOnly: isYes(f.Text("read_only")), Path: where,
	}
	if word := strings.TrimSpace(f.Text("read_only")); word != "" && !isYes(word) && !isNo(word) {
		l.Warn(where, "read_only must be yes or no, not %q; using yes", word)
		d.ReadOnly = true
	}
	d.Name, d.Short = root.Named(d.Name)
	l.steps(&d, f)
	// tools is a list of those the agent has, or says which are on and off
	v := f.Fields["tools"]
	for _, name := range v.Words() {
		switch name = strings.TrimSpace(name); {
		case strings.ContainsAny(name, "()"):
			l.Warn(d.Path, "skipped the tool %q: a part of a tool cannot be selected", name)
			d.Tools = append(d.Tools, "") // no longer all of them
		case name != "":
			d.Tools = append(d.Tools, name)
		}
	}
	for name, word := range v.Map {
		if !isYes(word) {
			d.Without = append(d.Without, name)
		}
	}
	slices.Sort(d.Without)
	name := strings.TrimSpace(f.Text("model"))
	switch {
	case name == "" || strings.EqualFold(name, "inherit"):
	case root.Plugin != "": // it names one of another program's models: whoever hands it the work has chosen
	case root.Bounded:
		l.Warn(d.Path, "the model %q is not used: the project is not trusted", name)
	default:
		d.Model = name
	}
	return d, true
}

// check reports why a file is no agent.
func check(f frontmatter.File, file string) error {
	name := nameOf(f, file)
	switch {
	case !validName(name):
		return fmt.Errorf("%q is not a valid name: use letters, digits, - and _, at most %d", name, maxName)
	case strings.TrimSpace(f.Body) == "":
		return errors.New("it has no prompt: nothing follows the header")
	case strings.TrimSpace(f.Text("description")) == "":
		return errors.New("it has no description: the header must say what the agent is for")
	}
	return nil
}

func nameOf(f frontmatter.File, file string) string {
	if name := strings.TrimSpace(f.Text("name")); name != "" {
		return name
	}
	return strings.TrimSuffix(file, path.Ext(file))
}

func validName(name string) bool {
	return name != "" && len(name) <= maxName && strings.IndexFunc(name, func(r rune) bool {
		return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0
}

func (l *loader) steps(d *Definition, f frontmatter.File) {
	d.MaxSteps = DefaultSteps
	text := strings.TrimSpace(f.Text("max_steps"))
	if text == "" {
		return
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxSteps {
		l.Warn(d.Path, "max_steps must be a number from 1 to %d, not %q; using %d", maxSteps, text, DefaultSteps)
		return
	}
	d.MaxSteps = n
}

func isNo(word string) bool {
	return slices.Contains([]string{"false", "no", "off", "deny"}, strings.ToLower(strings.TrimSpace(word)))
}

func isYes(word string) bool {
	return slices.Contains([]string{"true", "yes", "on", "allow"}, strings.ToLower(strings.TrimSpace(word)))
}
