// Package notes reads the memory that a person owns: folders of Markdown files, an
// entry each. The first line of an entry says it in short, and is its line in the index.
package notes

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"

	"coder/internal/authored/frontmatter"
	"coder/internal/core/clip"
)

// Limits of what is read, and of what is written.
const (
	MaxEntry   = 8 << 10
	maxEntries = 200 // of a folder
	maxIndex   = 4 << 10
	maxLine    = 160 // bytes of a line of the index
	maxName    = 40  // letters of a name that is made of a text
)

// Entry is something to remember.
type Entry struct {
	Name string // of its file, without .md
	Text string
	Path string // of its file, for people
	Own  bool   // it is the person's own, for all projects
}

// Line says the entry in short; more reports whether there is more of it.
func (e Entry) Line() (line string, more bool) {
	line, rest, _ := strings.Cut(e.Text, "\n")
	line = strings.TrimSpace(strings.TrimLeft(line, "#-* "))
	short := clip.Head(line, maxLine)
	return short, short != line || strings.TrimSpace(rest) != ""
}

// List reads the entries of a project and of the person, by name, and names the files that
// are left out. A folder without files is not read. The project's entry takes precedence
// over the person's of the same name.
func List(project, own frontmatter.Root) (entries []Entry, bad []frontmatter.Warning) {
	var found frontmatter.Found[Entry]
	for _, folder := range []frontmatter.Root{project, own} {
		if folder.Files == nil {
			continue
		}
		list, _ := fs.ReadDir(folder.Files, ".") // there may be none
		if len(list) > maxEntries {
			found.Warn(folder.Path, "only the first %d files are used", maxEntries)
			list = list[:maxEntries]
		}
		for _, f := range list {
			name, ok := strings.CutSuffix(f.Name(), ".md")
			if !ok || f.IsDir() {
				continue
			}
			at := path.Join(folder.Path, f.Name())
			text, cut, err := frontmatter.Read(folder.Files, f.Name(), MaxEntry)
			switch {
			case err != nil:
				found.Warn(at, "skipped: %v", err)
				continue
			case cut:
				found.Warn(at, "only the first %d bytes are used", MaxEntry)
			}
			if text = strings.TrimSpace(text); text != "" {
				found.Add(name, Entry{Name: name, Text: text, Path: at, Own: folder.Path == own.Path})
			}
		}
	}
	slices.SortStableFunc(found.Items, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	return found.Items, found.Warnings
}

// Index names the entries for the model, a line each; empty without entries.
func Index(entries []Entry) string {
	var b strings.Builder
	for i, e := range entries {
		line, more := e.Line()
		if more {
			line += " […]"
		}
		row := fmt.Sprintf("- %s: %s\n", e.Name, line)
		if b.Len()+len(row) > maxIndex {
			fmt.Fprintf(&b, "and %d more\n", len(entries)-i)
			break
		}
		b.WriteString(row)
	}
	return b.String()
}

// Name makes a name of the first words of a text. It is none of those taken.
func Name(text string, taken func(name string) bool) string {
	words := strings.FieldsFunc(strings.ToLower(Entry{Text: text}.firstLine()), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	var name string
	for _, w := range words {
		if longer := strings.TrimPrefix(name+"-"+w, "-"); len([]rune(longer)) <= maxName {
			name = longer
			continue
		}
		break
	}
	if name == "" {
		name = "note"
		if len(words) > 0 {
			name = string([]rune(words[0])[:min(maxName, len([]rune(words[0])))])
		}
	}
	for n, free := 2, name; ; n++ {
		if !taken(free) {
			return free
		}
		free = fmt.Sprintf("%s-%d", name, n)
	}
}

func (e Entry) firstLine() string { line, _ := e.Line(); return line }

// ValidName reports whether a name can be that of an entry.
func ValidName(name string) bool {
	return name != "" && len(name) <= 100 && !strings.HasPrefix(name, ".") && strings.IndexFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.", r)
	}) < 0
}
