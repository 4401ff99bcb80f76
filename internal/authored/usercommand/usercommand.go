// Package usercommand finds the commands people have written as Markdown files and
// turns one, with its arguments, into text for the model. The file a/b.md is
// the command /a:b.
//
// It runs nothing and reads no file but its own: shell commands and files that
// a command asks for are handed to the caller as [Segment]s, who gets their
// results past the gate and puts them in with [Fill]. Only the author of the
// file can ask for them; arguments and results are plain text.
package usercommand

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode"

	"coder/internal/authored/frontmatter"
)

// Limits of what is read.
const (
	maxCommands = 500 // in each root
	maxDepth    = 6   // folders below a root
	maxEntries  = 5000
	maxBytes    = 256 << 10
)

// Root is a folder of commands. Files must not lead out of it; [repofile.Root]
// is such a file system.
type Root struct {
	Path  string // for people
	Files fs.FS
}

// Command is what is known of a command before it is used.
type Command struct {
	Name         string // without the slash: "a:b"
	Description  string
	Hint         string // what its arguments are
	AllowedTools []string
	Model        string
	Path         string // for people

	root Root
	file string
}

// Warning says what is wrong with a file, or with all of a root.
type Warning struct{ Path, Reason string }

func (w Warning) String() string { return w.Path + ": " + w.Reason }

// ErrNotFound reports that there is no such command.
var ErrNotFound = errors.New("no such command")

// Catalogue is the commands of several roots. It is safe for concurrent use.
type Catalogue struct {
	roots []Root

	mu       sync.Mutex // guards the fields below
	scanned  bool
	commands []Command
	warnings []Warning
}

// New returns the catalogue of roots, strongest first. Nothing is read yet.
func New(roots ...Root) *Catalogue { return &Catalogue{roots: roots} }

// List is all commands by name, and what was wrong with others.
func (c *Catalogue) List() ([]Command, []Warning) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.scanned {
		c.scan()
	}
	return slices.Clone(c.commands), slices.Clone(c.warnings)
}

// Refresh forgets what was found, so that the roots are looked at again.
func (c *Catalogue) Refresh() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scanned, c.commands, c.warnings = false, nil, nil
}

// Find returns the command of that name, with or without its slash.
func (c *Catalogue) Find(name string) (Command, bool) {
	name = strings.TrimPrefix(strings.TrimSpace(name), "/")
	commands, _ := c.List()
	i := slices.IndexFunc(commands, func(x Command) bool { return x.Name == name })
	if i < 0 {
		return Command{}, false
	}
	return commands[i], true
}

// Expand reads the command of that name and puts args into it.
func (c *Catalogue) Expand(name, args string) (Command, []Segment, error) {
	cmd, ok := c.Find(name)
	if !ok {
		return Command{}, nil, fmt.Errorf("%w: %q", ErrNotFound, name)
	}
	text, cut, err := frontmatter.Read(cmd.root.Files, cmd.file, maxBytes)
	if err == nil && cut {
		err = fmt.Errorf("longer than %d bytes", maxBytes)
	}
	if err != nil {
		return cmd, nil, fmt.Errorf("read command /%s: %w", cmd.Name, err)
	}
	f, err := frontmatter.Parse(text)
	if err != nil {
		return cmd, nil, fmt.Errorf("read command /%s: %w", cmd.Name, err)
	}
	return cmd, Expand(f.Body, args), nil
}

func (c *Catalogue) scan() {
	c.scanned = true
	seen := make(map[string]bool)
	for _, root := range c.roots {
		for _, file := range c.files(root) {
			cmd, ok := c.look(root, file)
			if ok && !seen[cmd.Name] {
				seen[cmd.Name] = true
				c.commands = append(c.commands, cmd)
			}
		}
	}
	slices.SortFunc(c.commands, func(a, b Command) int { return strings.Compare(a.Name, b.Name) })
}

func (c *Catalogue) warn(p, format string, args ...any) {
	c.warnings = append(c.warnings, Warning{p, fmt.Sprintf(format, args...)})
}

// files lists the Markdown files below root. A root that does not exist is not
// worth a word.
func (c *Catalogue) files(root Root) []string {
	var found []string
	entries := 0
	err := fs.WalkDir(root.Files, ".", func(p string, d fs.DirEntry, err error) error {
		entries++
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			c.warn(root.Path+"/"+p, "%v", err)
			return nil
		case p != "." && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir() && strings.Count(p, "/") >= maxDepth:
			return fs.SkipDir
		case len(found) == maxCommands || entries > maxEntries:
			c.warn(root.Path, "only the first %d commands are read", len(found))
			return fs.SkipAll
		case !d.IsDir() && strings.EqualFold(path.Ext(p), ".md"):
			found = append(found, p)
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.warn(root.Path, "%v", err)
	}
	return found
}

// look reads the header of a command.
func (c *Catalogue) look(root Root, file string) (Command, bool) {
	where := root.Path + "/" + file
	name := strings.ReplaceAll(strings.TrimSuffix(file, path.Ext(file)), "/", ":")
	if !validName(name) {
		c.warn(where, "left out: %q cannot be typed as a command", name)
		return Command{}, false
	}
	text, cut, err := frontmatter.Read(root.Files, file, maxBytes)
	if err == nil && cut {
		err = fmt.Errorf("longer than %d bytes", maxBytes)
	}
	var f frontmatter.File
	if err == nil {
		f, err = frontmatter.Parse(text)
	}
	if err != nil {
		c.warn(where, "left out: %v", err)
		return Command{}, false
	}
	for _, p := range f.Problems {
		c.warn(where, "%s", p)
	}
	return Command{
		Name: name, Description: describe(f), Hint: hint(f), AllowedTools: f.Fields["allowed-tools"].Words(),
		Model: f.Text("model"), Path: where, root: root, file: file,
	}, true
}

// hint is the argument hint. Unquoted, "[issue] [priority]" reads as a list.
func hint(f frontmatter.File) string {
	v := f.Fields["argument-hint"]
	if v.List != nil {
		return "[" + strings.Join(v.List, ", ") + "]"
	}
	return v.Text
}

// describe is the description, or else the first line of the body.
func describe(f frontmatter.File) string {
	if d := strings.TrimSpace(f.Text("description")); d != "" {
		return d
	}
	line, _, _ := strings.Cut(strings.TrimSpace(f.Body), "\n")
	runes := []rune(strings.TrimSpace(strings.TrimLeft(line, "# ")))
	const limit = 80
	if len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return string(runes)
}

// validName reports whether a command can be typed by this name.
func validName(name string) bool {
	for part := range strings.SplitSeq(name, ":") {
		if part == "" || strings.IndexFunc(part, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.", r)
		}) >= 0 {
			return false
		}
	}
	return true
}
