// Package notes reads the user's memory: folders of Markdown files, one entry each. The first line of
// an entry summarizes it, and is its line in the index.
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

// These limits apply to reading and writing.
const (
	MaxEntryBytes = 8 << 10
	maxEntries    = 200 // of a folder
	maxIndexBytes = 4 << 10
	maxLineBytes  = 160 // bytes of a line of the index
	maxNameLen    = 40  // letters of a name made from a text
)

// Entry is an entry of the memory.
type Entry struct {
	Name     string // of its file, without .md
	Text     string
	Path     string // of its file, for display
	FromUser bool   // the user's own, for all projects
}

// Summary returns the entry's summary; more reports whether the entry has more text.
func (e Entry) Summary() (line string, more bool) {
	line, rest, _ := strings.Cut(e.Text, "\n")
	line = strings.TrimSpace(strings.TrimLeft(line, "#-* "))
	short := clip.Head(line, maxLineBytes)
	return short, short != line || strings.TrimSpace(rest) != ""
}

// List reads the entries of a project and of the user, by name, and reports skipped files. It does not
// read a folder without files. A project's entry takes precedence over the user's with the same name.
func List(project, own frontmatter.Root) (entries []Entry, bad []frontmatter.Warning) {
	var found frontmatter.ScanResult[Entry]
	for _, folder := range []frontmatter.Root{project, own} {
		if folder.Files == nil {
			continue
		}
		list, _ := fs.ReadDir(folder.Files, ".") // the folder may be missing
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
			text, cut, err := frontmatter.ReadFile(folder.Files, f.Name(), MaxEntryBytes)
			switch {
			case err != nil:
				found.Warn(at, "skipped: %v", err)
				continue
			case cut:
				found.Warn(at, "only the first %d bytes are used", MaxEntryBytes)
			}
			if text = strings.TrimSpace(text); text != "" {
				found.Add(name, Entry{Name: name, Text: text, Path: at, FromUser: folder.Path == own.Path})
			}
		}
	}
	slices.SortStableFunc(found.Items, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	return found.Items, found.Warnings
}

// FormatIndex lists the entries for the model, one per line; "" without entries.
func FormatIndex(entries []Entry) string {
	var b strings.Builder
	for i, e := range entries {
		line, more := e.Summary()
		if more {
			line += " […]"
		}
		row := fmt.Sprintf("- %s: %s\n", e.Name, line)
		if b.Len()+len(row) > maxIndexBytes {
			fmt.Fprintf(&b, "and %d more\n", len(entries)-i)
			break
		}
		b.WriteString(row)
	}
	return b.String()
}

// NewName makes a name from the first words of a text. taken reports the names already in use.
func NewName(text string, taken func(name string) bool) string {
	words := strings.FieldsFunc(strings.ToLower(Entry{Text: text}.firstLine()), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	var name string
	for _, w := range words {
		if longer := strings.TrimPrefix(name+"-"+w, "-"); len([]rune(longer)) <= maxNameLen {
			name = longer
			continue
		}
		break
	}
	if name == "" {
		name = "note"
		if len(words) > 0 {
			name = string([]rune(words[0])[:min(maxNameLen, len([]rune(words[0])))])
		}
	}
	for n, free := 2, name; ; n++ {
		if !taken(free) {
			return free
		}
		free = fmt.Sprintf("%s-%d", name, n)
	}
}

func (e Entry) firstLine() string { line, _ := e.Summary(); return line }

// IsValidName reports whether an entry may have this name.
func IsValidName(name string) bool {
	return name != "" && len(name) <= 100 && !strings.HasPrefix(name, ".") && strings.IndexFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.", r)
	}) < 0
}
