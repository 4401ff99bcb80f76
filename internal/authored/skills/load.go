package skills

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"coder/internal/authored/frontmatter"
	"coder/internal/core/clip"
	"coder/internal/core/message"
)

// LoadedSkill is a skill with its text.
type LoadedSkill struct {
	Skill
	Body      string   // with the arguments inserted
	Truncated bool     // the body was too long and is cut
	Files     []string // the other files in the skill's folder, relative to it
}

// Text returns the skill as text for the model.
func (l LoadedSkill) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "<skill name=%q>\n%s\n", l.Name, l.Body)
	if l.Truncated {
		b.WriteString("[the skill is longer; this is its beginning]\n")
	}
	b.WriteString("</skill>")
	if len(l.Files) > 0 {
		fmt.Fprintf(&b, "\nBeside it, in %s: %s", path.Dir(l.Path), strings.Join(l.Files, ", "))
	}
	return b.String()
}

// argsPlaceholder marks where to insert arguments.
const argsPlaceholder = "$ARGUMENTS"

// Load reads the body of a skill and inserts args: in place of $ARGUMENTS, else at the end. The error
// is [ErrNotFound] if the skill does not exist, with a text suitable for the model.
func (c *Catalogue) Load(name, args string) (LoadedSkill, error) {
	s, ok := c.Find(name)
	if !ok {
		return LoadedSkill{}, message.Errorf("%w: %q", ErrNotFound, name)
	}
	text, cut, err := s.text, false, error(nil)
	if text == "" {
		text, cut, err = frontmatter.ReadFile(s.root.Files, s.file, maxBodyBytes)
	}
	var f frontmatter.File
	if err == nil {
		f, err = frontmatter.Parse(s.root.ExpandDir(text))
	}
	if err != nil {
		return LoadedSkill{}, message.Errorf("load skill %s: %w", s.Name, err)
	}
	body := strings.TrimSpace(f.Body)
	args = strings.TrimSpace(args)
	switch {
	case strings.Contains(body, argsPlaceholder):
		body = strings.ReplaceAll(body, argsPlaceholder, args)
	case args != "":
		body += "\n\nArguments: " + args
	}
	return LoadedSkill{Skill: s, Body: body, Truncated: cut, Files: s.listFiles()}, nil
}

// listFiles lists the files in the skill's folder, two levels deep.
func (s Skill) listFiles() []string {
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

// FormatList returns the list of skills for the system prompt, one line
// each, at most limit bytes. It counts the skills that do not fit.
func FormatList(skills []Skill, limit int) string {
	var b strings.Builder
	for i, s := range skills {
		line := fmt.Sprintf("- %s: %s\n", s.Name, clip.Truncate(strings.Join(strings.Fields(s.Description), " "), limit/4))
		if b.Len()+len(line) > limit {
			fmt.Fprintf(&b, "- and %d more\n", len(skills)-i)
			break
		}
		b.WriteString(line)
	}
	return b.String()
}
