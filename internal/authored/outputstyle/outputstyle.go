// Package outputstyle reads output styles: texts that tell the model how to write its answers.
// Two styles come with coder; a custom style is a Markdown file, whose name is the style's.
package outputstyle

import (
	"cmp"
	_ "embed"
	"io/fs"
	"path"
	"slices"
	"strings"

	"coder/internal/authored/frontmatter"
)

// Default is the name of the style without a text.
const Default = "default"

// These limits apply to each folder.
const (
	maxStyles = 100
	maxBytes  = 16 << 10
)

// Style is an output style.
type Style struct {
	Name, About string
	Text        string // for the model
	Path        string // of its file, for display; empty if the style comes with coder
}

//go:embed concise.md
var concise string

//go:embed explain.md
var explain string

// List returns the styles that come with coder, then those in roots by name, and reports skipped files. The
// first style of a name takes precedence. A missing folder is no problem.
func List(roots ...frontmatter.Root) ([]Style, []frontmatter.Warning) {
	var found frontmatter.ScanResult[Style]
	for _, s := range []Style{
		{Name: Default, About: "answer as the model does by itself"},
		{Name: "concise", About: "answer in as few words as possible", Text: concise},
		{Name: "explain", About: "explain choices and how the code works", Text: explain},
	} {
		found.Add(s.Name, s)
	}
	own := len(found.Items)
	for _, root := range roots {
		files, _ := fs.ReadDir(root.Files, ".") // the folder may be missing
		if len(files) > maxStyles {
			found.Warn(root.Path, "only the first %d files are used", maxStyles)
			files = files[:maxStyles]
		}
		for _, f := range files {
			if !f.IsDir() && strings.EqualFold(path.Ext(f.Name()), ".md") {
				read(&found, root, f.Name())
			}
		}
	}
	slices.SortStableFunc(found.Items[own:], func(a, b Style) int { return cmp.Compare(a.Name, b.Name) })
	return found.Items, found.Warnings
}

// read adds the style in a file, unless the file is empty.
func read(found *frontmatter.ScanResult[Style], root frontmatter.Root, name string) {
	at := path.Join(root.Path, name)
	f, err := root.Load(name, maxBytes)
	if err != nil {
		found.Warn(at, "skipped: %v", err)
		return
	}
	s := Style{Name: strings.TrimSuffix(name, path.Ext(name)), About: f.Text("description"),
		Text: strings.TrimSpace(f.Body), Path: at}
	s.Name = cmp.Or(strings.TrimSpace(f.Text("name")), s.Name)
	if s.Text != "" {
		s.Name, _ = root.QualifiedName(s.Name)
		found.Add(s.Name, s)
	}
}

// Find returns the style with a name in any case.
func Find(styles []Style, name string) (Style, bool) {
	i := slices.IndexFunc(styles, func(s Style) bool { return strings.EqualFold(s.Name, name) })
	if i < 0 {
		return Style{}, false
	}
	return styles[i], true
}
