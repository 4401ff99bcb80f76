package rulefile

import (
	"path"
	"path/filepath"
	"strings"

	"coder/internal/authored/frontmatter"

	"github.com/bmatcuk/doublestar/v4"
)

// foreignFiles are the rule files of other agents that apply to every file.
var foreignFiles = []string{".cursorrules", ".windsurfrules", "GEMINI.md", ".github/copilot-instructions.md"}

// ruleDirKind is a folder of rule files whose header says when they apply.
type ruleDirKind struct {
	folder string
	suffix string
	// applies returns the patterns in a header; always means that the rule needs none.
	applies func(f frontmatter.File) (globs []string, always bool)
}

var ruleDirKinds = []ruleDirKind{
	{".cursor/rules", ".mdc", func(f frontmatter.File) ([]string, bool) {
		return fieldPatterns(f.Fields["globs"]), f.Text("alwaysApply") == "true"
	}},
	{".github/instructions", ".instructions.md", func(f frontmatter.File) ([]string, bool) {
		globs := fieldPatterns(f.Fields["applyTo"])
		for _, g := range globs {
			if g == "**" || g == "**/*" {
				return nil, true
			}
		}
		return globs, false
	}},
}

// fieldPatterns returns the file patterns in a header's field.
func fieldPatterns(v frontmatter.Value) []string {
	var globs []string
	for _, g := range v.Items() {
		if g = strings.Trim(g, `"' `); doublestar.ValidatePattern(g) && g != "" {
			globs = append(globs, g)
		}
	}
	return globs
}

// readKind reads the rules of one kind below a folder. A rule that
// the model loads on demand is named with its description.
func (s *searcher) readKind(dir string, k ruleDirKind) (always []Rule, when []conditionalRule) {
	var index strings.Builder
	base := filepath.Join(dir, filepath.FromSlash(k.folder))
	for _, name := range s.ListNames(s.root, base) {
		if !strings.HasSuffix(name, k.suffix) {
			continue
		}
		rule, ok := s.readOnce(s.root, filepath.Join(base, filepath.FromSlash(name)))
		if !ok {
			continue
		}
		f, err := frontmatter.Parse(rule.Text)
		if err == nil {
			rule.Text = strings.TrimSpace(f.Body)
		}
		globs, applies := k.applies(f)
		switch about := f.Text("description"); {
		case err != nil || applies:
			always = append(always, rule)
		case len(globs) > 0:
			when = append(when, conditionalRule{rule, dir, globs})
		case about != "":
			index.WriteString("- " + rule.Path + ": " + about + "\n")
		}
	}
	if index.Len() > 0 {
		always = append(always, Rule{Path: base, Text: "Read the file before related work:\n" + index.String()})
	}
	return always, when
}

// matches reports whether a rule applies to a file.
func (c conditionalRule) matches(file string) bool {
	rel, err := filepath.Rel(c.base, file)
	if err != nil || !filepath.IsLocal(rel) {
		return false
	}
	rel = filepath.ToSlash(rel)
	for _, g := range c.globs {
		if doublestar.MatchUnvalidated(g, rel) || !strings.Contains(g, "/") &&
			doublestar.MatchUnvalidated(g, path.Base(rel)) {
			return true
		}
	}
	return false
}

// readAiderFiles reads the files in Aider's configuration.
func (s *searcher) readAiderFiles(dir string) (rules []Rule) {
	conf, err := s.ReadRule(s.root, filepath.Join(dir, ".aider.conf.yml"))
	if err != nil {
		return nil
	}
	f, err := frontmatter.Parse("---\n" + strings.ReplaceAll(conf.Text, "\n---", "\n#") + "\n---\n")
	if err != nil {
		return nil
	}
	read := f.Fields["read"]
	names := read.List
	if read.Text != "" {
		names = []string{read.Text}
	}
	for _, name := range names {
		if isTextFile(name) && filepath.IsLocal(filepath.FromSlash(name)) {
			rules = append(rules, s.readNamed(s.root, filepath.Join(dir, filepath.FromSlash(name)), 0)...)
		}
	}
	return rules
}
