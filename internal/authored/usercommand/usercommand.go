// Package usercommand finds the commands that users wrote as Markdown files and turns one, with its
// arguments, into text for the model. The file a/b.md is the command /a:b.
//
// It runs nothing and reads only its own files: it returns a command's shell commands and files to the
// caller as [Segment]s. The caller gets their results with the usual approvals and inserts them with
// [Join]. Only the author of the file can request them; arguments and results are plain text.
package usercommand

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"

	"coder/internal/authored/frontmatter"
	"coder/internal/core/message"
)

// These limits apply to reading.
const (
	maxCommands = 500 // in each root
	maxDepth    = 6   // folders below a root
	maxEntries  = 5000
	maxBytes    = 256 << 10
)

// Root is a folder of commands, and Warning a problem there.
type (
	Root    = frontmatter.Root
	Warning = frontmatter.Warning
)

// Command is the header of a command.
type Command struct {
	Name         string // without the slash: "a:b"
	ShortName    string // Name without its plugin; empty if it has none
	Description  string
	ArgsHint     string // describes its arguments
	AllowedTools []string
	Model        string
	Path         string // for display

	root Root
	file string
}

// ErrNotFound means that the command does not exist.
var ErrNotFound = errors.New("no such command")

// Catalogue has the commands of several roots. It is safe for concurrent use.
type Catalogue struct {
	*frontmatter.Catalogue[Command]
}

// New returns the catalogue of roots in order of precedence. It reads nothing yet.
func New(roots ...Root) *Catalogue {
	return &Catalogue{frontmatter.NewCatalogue(func() scanResult {
		var all scanResult
		for _, root := range roots {
			for _, file := range listFiles(&all, root) {
				readHeader(&all, root, file)
			}
		}
		slices.SortFunc(all.Items, func(a, b Command) int { return strings.Compare(a.Name, b.Name) })
		return all
	})}
}

type scanResult = frontmatter.ScanResult[Command]

// Find returns the command with that name, with or without its slash.
func (c *Catalogue) Find(name string) (Command, bool) {
	name = strings.TrimPrefix(strings.TrimSpace(name), "/")
	commands, _ := c.List()
	i := slices.IndexFunc(commands, func(x Command) bool { return x.Name == name })
	if i < 0 {
		return Command{}, false
	}
	return commands[i], true
}

// Expand reads the command with that name and inserts args.
func (c *Catalogue) Expand(name, args string) (Command, []Segment, error) {
	cmd, ok := c.Find(name)
	if !ok {
		return Command{}, nil, message.Errorf("%w: %q", ErrNotFound, name)
	}
	f, err := cmd.root.Load(cmd.file, maxBytes)
	if err != nil {
		return cmd, nil, message.Errorf("read command /%s: %w", cmd.Name, err)
	}
	return cmd, Expand(f.Body, args), nil
}

// listFiles lists the Markdown files below root. A missing root is no problem.
func listFiles(all *scanResult, root Root) []string {
	if root.OnlyNames != nil {
		return root.OnlyNames
	}
	var names []string
	entries := 0
	err := fs.WalkDir(root.Files, ".", func(p string, d fs.DirEntry, err error) error {
		entries++
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			all.Warn(root.Path+"/"+p, "%v", err)
			return nil
		case p != "." && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir() && strings.Count(p, "/") >= maxDepth:
			return fs.SkipDir
		case len(names) == maxCommands || entries > maxEntries:
			all.Warn(root.Path, "only the first %d commands are read", len(names))
			return fs.SkipAll
		case !d.IsDir() && strings.EqualFold(path.Ext(p), ".md"):
			names = append(names, p)
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		all.Warn(root.Path, "%v", err)
	}
	return names
}

// readHeader adds the command in a file, if it is one.
func readHeader(all *scanResult, root Root, file string) {
	where := root.Path + "/" + file
	name := strings.ReplaceAll(strings.TrimSuffix(file, path.Ext(file)), "/", ":")
	if !isValidName(name) {
		all.Warn(where, "skipped: %q cannot be typed as a command", name)
		return
	}
	f, err := root.Load(file, maxBytes)
	if err != nil {
		all.Warn(where, "skipped: %v", err)
		return
	}
	for _, p := range f.Problems {
		all.Warn(where, "%s", p)
	}
	hint := f.Fields["argument-hint"]
	if hint.List != nil { // unquoted, "[issue] [priority]" reads as a list
		hint.Text = "[" + strings.Join(hint.List, ", ") + "]"
	}
	full, short := root.QualifiedName(name)
	all.Add(full, Command{
		Name: full, ShortName: short, Description: description(f), ArgsHint: hint.Text,
		AllowedTools: f.Fields["allowed-tools"].Items(),
		Model:        f.Text("model"), Path: where, root: root, file: file,
	})
}

// description returns the description, or else the first line of the body.
func description(f frontmatter.File) string {
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

// isValidName reports whether a command can be typed by this name.
func isValidName(name string) bool {
	for part := range strings.SplitSeq(name, ":") {
		if part == "" || strings.IndexFunc(part, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.", r)
		}) >= 0 {
			return false
		}
	}
	return true
}
