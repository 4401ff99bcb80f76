package skills

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"coder/internal/authored/frontmatter"
	"coder/internal/core/clip"
)

// Loaded is a skill with its text.
type Loaded struct {
	Skill
	Body  string   // with the arguments inserted
	Cut   bool     // the body was too long and is cut
	Files []string // the other files in the skill's folder, relative to it
}

// Text returns the skill as text for the model.
func (l Loaded) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "<skill name=%q>\n%s\n", l.Name, l.Body)
	if l.Cut {
		b.WriteString("[the skill is longer; this is its beginning]\n")
	}
	b.WriteString("</skill>")
	if len(l.Files) > 0 {
		fmt.Fprintf(&b, "\nBeside it, in %s: %s", path.Dir(l.Path), strings.Join(l.Files, ", "))
	}
	return b.String()
}

// placeholder marks where to insert arguments.
const placeholder = "$ARGUMENTS"

// Load reads the body of a skill and inserts args: in place of $ARGUMENTS, else at the end. The error
// is [ErrNotFound] if the skill does not exist, with a text suitable for the model.
func (c *Catalogue) Load(name, args string) (Loaded, error) {
	s, ok := c.Find(name)
	if !ok {
		return Loaded{}, fmt.Errorf("%w: %q", ErrNotFound, name)
	}
	text, cut, err := s.text, false, error(nil)
	if text == "" {
		text, cut, err = frontmatter.Read(s.root.Files, s.file, bodyBytes)
	}
	var f frontmatter.File
	if err == nil {
		f, err = frontmatter.Parse(s.root.Fill(text))
	}
	if err != nil {
		return Loaded{}, fmt.Errorf("load skill %s: %w", s.Name, err)
	}
	body := strings.TrimSpace(f.Body)
	args = strings.TrimSpace(args)
	switch {
	case strings.Contains(body, placeholder):
		body = strings.ReplaceAll(body, placeholder, args)
	case args != "":
		body += "\n\nArguments: " + args
	}
	return Loaded{Skill: s, Body: body, Cut: cut, Files: s.files()}, nil
}

// files lists the files in the skill's folder, two levels deep.
func (s Skill) files() []string {
	if s.text != "" {
		return nil
	}
	var found []string
	dir := path.Dir(s.file)
	_ = fs.WalkDir(s.root.Files, dir, func(p string, d fs.DirEntry, err error) error {
		rel := strings.TrimPrefix(p, dir+"/")
		switch {
		case err != nil || p == dir:
			return nil // omit unreadable ones
		case len(found) == maxFiles:
			return fs.SkipAll
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") || strings.Count(rel, "/") > 0):
			return fs.SkipDir
		case d.Type().IsRegular() && p != s.file:
			found = append(found, rel)
		}
		return nil
	})
	return found
}

// Summary returns the list of skills for the system prompt, one line
// each, at most limit bytes. It counts the skills that do not fit.
func Summary(skills []Skill, limit int) string {
	var b strings.Builder
	for i, s := range skills {
		line := fmt.Sprintf("- %s: %s\n", s.Name, clip.Text(strings.Join(strings.Fields(s.Description), " "), limit/4))
		if b.Len()+len(line) > limit {
			fmt.Fprintf(&b, "- and %d more\n", len(skills)-i)
			break
		}
		b.WriteString(line)
	}
	return b.String()
}
