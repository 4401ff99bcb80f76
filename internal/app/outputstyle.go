package app

import (
	"path/filepath"
	"strings"

	"coder/internal/authored/frontmatter"
	"coder/internal/authored/outputstyle"
	"coder/internal/authored/plugin"
	"coder/internal/core/message"
	"coder/internal/host/repofile"
	"coder/internal/policy/trust"
)

const styleKey = "ui.output_style"

// outputStyles returns the styles: coder's, a trusted project's, the user's own, Claude Code's and the plugins'.
func (a *Authored) outputStyles() ([]outputstyle.Style, []frontmatter.Warning) {
	var roots []frontmatter.Root
	const folder = "output-styles"
	if shown := ".coder/" + folder; a.Trusted == trust.Trusted {
		roots = append(roots, frontmatter.Root{Path: shown, Files: a.projectFiles(a.Root).Sub(shown)})
	}
	if home, _ := a.userDirs(); home != "" {
		dir := filepath.ToSlash(filepath.Join(home, folder))
		roots = append(roots, frontmatter.Root{Path: dir, Files: repofile.OwnDir(dir)})
	}
	roots = append(roots, a.claudeRoots(folder)...)
	return outputstyle.List(append(roots,
		a.pluginRoots(func(p plugin.Plugin) []frontmatter.Root { return p.Styles })...)...)
}

// OutputStyles returns the names of the styles, and the name of the one in use.
func (a *Authored) OutputStyles() (names []string, now string) {
	all, _ := a.outputStyles()
	for _, s := range all {
		names = append(names, s.Name)
	}
	return names, a.outputStyle().Name
}

// findStyle returns the style with a name.
func (a *Authored) findStyle(name string) (outputstyle.Style, error) {
	all, _ := a.outputStyles()
	if s, ok := outputstyle.Find(all, name); ok {
		return s, nil
	}
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	return all[0], message.Errorf("unknown output style %q: use %s", name, strings.Join(names, ", "))
}

// outputStyle returns the style in use. It reads the style once, and
// again after the user chooses another. An unknown style is the default.
func (a *Authored) outputStyle() outputstyle.Style {
	if s := a.style.Load(); s != nil {
		return *s
	}
	s := outputstyle.Style{Name: outputstyle.Default}
	if name := a.Config.UI.OutputStyle; name != s.Name {
		var err error
		if s, err = a.findStyle(name); err != nil {
			a.warn(err.Error())
		}
	}
	a.style.Store(&s)
	return s
}

// stylesFor are the output styles for commands.
type stylesFor struct{ sessionSettings }

// Styles returns the styles, the name of the one in use, and warnings about skipped files.
func (s stylesFor) Styles() (all []outputstyle.Style, now string, bad []frontmatter.Warning) {
	all, bad = s.outputStyles()
	return all, s.outputStyle().Name, bad
}
