// Package subagent finds the available subagents: the built-in
// ones and the Markdown files that the user wrote.
//
// An agent is a way of working: a prompt, a choice of tools, a number of
// steps. It can only narrow the permissions of the agent that delegates to
// it, never extend them: see [Definition.NarrowTools] and [Definition.NarrowPolicy].
package subagent

import (
	"cmp"
	"embed"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"coder/internal/authored/frontmatter"
	"coder/internal/core/clip"
	"coder/internal/core/message"
)

// Names of the built-in agents.
const (
	AgentGeneral = "general"
	AgentExplore = "explore"
)

// Limits on reading agents and on what an agent may request.
const (
	maxAgents         = 100 // in each root
	maxBytes          = 64 << 10
	maxNameLen        = 64
	maxDescriptionLen = 1024
	// DefaultSteps is the number of steps for an agent that does not set one.
	DefaultSteps = 50
	maxSteps     = 500
)

// Root is a folder of agents, and Warning a problem in one.
// Agents in a bounded root cannot choose their model.
type (
	Root    = frontmatter.Root
	Warning = frontmatter.Warning
)

// Definition is one agent.
type Definition struct {
	Name, Description string
	ShortName         string // the name without its plugin's; empty if it has none
	LocalDescription  string // Description in the user's language
	Prompt            string
	Tools             []string // allowed tools; nil means all
	ExcludedTools     []string // excluded tools
	Model             string   // empty: the delegating agent's
	MaxSteps          int
	ReadOnly          bool   // all its calls must be read-only
	Path              string // for display; empty if built in
}

// IsCustom reports whether the agent is not built in.
func (d Definition) IsCustom() bool { return d.Path != "" }

//go:embed general.md explore.md
var builtIn embed.FS

// Catalogue lists the available agents: the custom ones by name, then the built-in ones.
type Catalogue []Definition

// Load reads the agents in roots, highest precedence first: of two agents with the same name, the one
// in the earlier root counts, and built-in agents come last. It skips unreadable agents with a warning.
func Load(roots ...Root) (Catalogue, []Warning) {
	var l loader
	for _, root := range roots {
		l.loadRoot(root)
	}
	slices.SortFunc(l.Items, func(a, b Definition) int { return strings.Compare(a.Name, b.Name) })
	for _, name := range []string{AgentGeneral, AgentExplore} {
		if d, ok := l.loadFile(Root{Files: builtIn}, name+".md"); ok {
			d.Path = ""
			l.Add(strings.ToLower(d.Name), d)
		}
	}
	return l.Items, l.Warnings
}

// Find returns the agent with that name, ignoring case, or the only one with that short name.
func (c Catalogue) Find(name string) (Definition, bool) {
	name = strings.TrimSpace(name)
	i := slices.IndexFunc(c, func(d Definition) bool { return strings.EqualFold(d.Name, name) })
	if i < 0 {
		return frontmatter.FindUnique(c, func(d Definition) bool {
			return name != "" &&
				strings.EqualFold(d.ShortName, name)
		})
	}
	return c[i], true
}

type loader struct {
	frontmatter.ScanResult[Definition]
}

// loadRoot reads the Markdown files in a folder, without subfolders. It ignores a missing folder.
func (l *loader) loadRoot(root Root) {
	for _, name := range root.OnlyNames {
		if d, ok := l.loadFile(root, name); ok {
			l.Add(strings.ToLower(d.Name), d)
		}
	}
	if root.OnlyNames != nil {
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
		if d, ok := l.loadFile(root, e.Name()); ok {
			l.Add(strings.ToLower(d.Name), d)
		}
	}
}

// loadFile parses one file.
func (l *loader) loadFile(root Root, file string) (Definition, bool) {
	where := root.Path + "/" + file
	f, err := root.Load(file, maxBytes)
	if err == nil {
		err = validate(f, file)
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
		Name: agentName(f, file), Description: clip.Truncate(description, maxDescriptionLen),
		LocalDescription: clip.Truncate(cmp.Or(strings.TrimSpace(f.Text("about")), description), maxDescriptionLen),
		Prompt:           strings.TrimSpace(f.Body), ReadOnly: isYes(f.Text("read_only")), Path: where,
	}
	if word := strings.TrimSpace(f.Text("read_only")); word != "" && !isYes(word) && !isNo(word) {
		l.Warn(where, "read_only must be yes or no, not %q; using yes", word)
		d.ReadOnly = true
	}
	d.Name, d.ShortName = root.QualifiedName(d.Name)
	l.parseSteps(&d, f)
	// tools is a list of allowed tools, or a map that switches tools on and off
	v := f.Fields["tools"]
	for _, name := range v.Items() {
		switch name = strings.TrimSpace(name); {
		case strings.ContainsAny(name, "()"):
			l.Warn(d.Path, "skipped the tool %q: a part of a tool cannot be selected", name)
			d.Tools = append(d.Tools, "") // not all tools any more
		case name != "":
			d.Tools = append(d.Tools, name)
		}
	}
	for name, word := range v.Map {
		if !isYes(word) {
			d.ExcludedTools = append(d.ExcludedTools, name)
		}
	}
	slices.Sort(d.ExcludedTools)
	name := strings.TrimSpace(f.Text("model"))
	switch {
	case name == "" || strings.EqualFold(name, "inherit"):
	case root.Plugin != "": // it names another program's model: the delegating agent's model counts
	case root.Untrusted:
		l.Warn(d.Path, "the model %q is not used: the project is not trusted", name)
	default:
		d.Model = name
	}
	return d, true
}

// validate returns an error if a file is not a valid agent.
func validate(f frontmatter.File, file string) error {
	name := agentName(f, file)
	switch {
	case !isValidName(name):
		return message.Errorf("%q is not a valid name: use letters, digits, - and _, at most %d", name, maxNameLen)
	case strings.TrimSpace(f.Body) == "":
		return errors.New("no prompt: nothing follows the header")
	case strings.TrimSpace(f.Text("description")) == "":
		return errors.New("no description: the header must say what the agent is for")
	}
	return nil
}

func agentName(f frontmatter.File, file string) string {
	if name := strings.TrimSpace(f.Text("name")); name != "" {
		return name
	}
	return strings.TrimSuffix(file, path.Ext(file))
}

func isValidName(name string) bool {
	return name != "" && len(name) <= maxNameLen && strings.IndexFunc(name, func(r rune) bool {
		return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0
}

func (l *loader) parseSteps(d *Definition, f frontmatter.File) {
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
