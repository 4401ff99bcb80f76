package rulefile

import (
	"path/filepath"
	"strings"
)

// readWithImports reads a file and the files that it imports by @path,
// maxImportDepth levels deep. Without trust it imports nothing.
func (s *searcher) readWithImports(root, file string, deep int) []Rule {
	rule, ok := s.readOnce(root, file)
	if !ok {
		return nil
	}
	rules := []Rule{rule}
	if deep == maxImportDepth || root != "" && !s.trusted {
		return rules
	}
	for _, name := range importPaths(rule.Text) {
		at, within, ok := s.resolveImport(root, file, name)
		if ok {
			rules = append(rules, s.readNamed(within, at, deep+1)...)
		}
	}
	return rules
}

// readNamed reads a file that another file names, unless that is refused.
func (s *searcher) readNamed(root, file string, deep int) []Rule {
	if s.Refused != nil && !s.seen[file] {
		if err := s.Refused(file); err != nil {
			s.seen[file] = true
			s.errs = append(s.errs, err)
			return nil
		}
	}
	return s.readWithImports(root, file, deep)
}

// importableHomeDirs are the folders of a home that rules may import from.
var importableHomeDirs = []string{".claude", ".coder", ".codex", ".gemini", ".agents"}

// resolveImport finds the file of an import: in the project, or in one of the home's folders for rules.
func (s *searcher) resolveImport(root, from, name string) (file, within string, ok bool) {
	inHome, tilde := strings.CutPrefix(name, "~/")
	switch {
	case tilde:
		file = filepath.Join(s.home, filepath.FromSlash(inHome))
	case filepath.IsAbs(name):
		file = filepath.Clean(name)
	default:
		file = filepath.Join(filepath.Dir(from), filepath.FromSlash(name))
	}
	if s.root != "" && isBelow(s.root, file) {
		return file, s.root, root != "" // the user's own rules import no project file
	}
	for _, folder := range importableHomeDirs {
		if s.home != "" && isBelow(filepath.Join(s.home, folder), file) {
			return file, "", true
		}
	}
	return "", "", false
}

func isBelow(dir, file string) bool {
	rel, err := filepath.Rel(dir, file)
	return err == nil && filepath.IsLocal(rel)
}

// isTextFile reports whether a name is a text file's.
func isTextFile(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".md", ".mdc", ".markdown", ".txt", ".rst":
		return true
	}
	return false
}

// importPaths returns the paths that a text imports: words that begin with @ and name a text file, outside code.
func importPaths(text string) (names []string) {
	fenced := ""
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if fence := fenceMarker(trimmed); fence != "" && (fenced == "" || fenced == fence) {
			if fenced == "" {
				fenced = fence
			} else {
				fenced = ""
			}
			continue
		}
		if fenced != "" {
			continue
		}
		for i, part := range strings.Split(trimmed, "`") {
			if i%2 == 1 { // a code span
				continue
			}
			for word := range strings.FieldsSeq(part) {
				name, found := strings.CutPrefix(strings.TrimLeft(word, "(["), "@")
				if name = strings.TrimRight(name, ".,;:!?)]"); found && isTextFile(name) {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

// fenceMarker returns the sign at the start of a line that begins or ends a code block.
func fenceMarker(line string) string {
	for _, fence := range []string{"```", "~~~"} {
		if strings.HasPrefix(line, fence) {
			return fence
		}
	}
	return ""
}
