// Package rulefile finds the instructions of a user and a project for coding agents: AGENTS.md and
// CLAUDE.md, and the rules of Cursor, Copilot, Gemini, Windsurf and Aider.
//
// Rules without a condition are in the prompt from the start. Rules of a folder below the workspace,
// and rules for certain files, apply when a turn reaches such a file ([Book.RulesFor]).
package rulefile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"coder/internal/core/message"
)

// Rule is one rule file.
type Rule struct {
	Path string
	Text string
}

// FormatRules returns rules as text for the model.
func FormatRules(rules []Rule) string {
	var b strings.Builder
	for _, r := range rules {
		fmt.Fprintf(&b, "\n<rules from=%q>\n%s\n</rules>\n", r.Path, strings.TrimSpace(r.Text))
	}
	return b.String()
}

// These errors say why a rule file is not used.
var (
	ErrNotText = errors.New("not a text file")
	ErrTooMany = message.Errorf("only the first %d rule files and %d KB are used", maxFiles, maxBytes>>10)
)

// Finder reads rule files. Read returns the beginning of the file at path; root
// is the folder that the file must not lead out of, "" for the user's own files.
// Names lists the files below a folder of the project, relative to it.
type Finder struct {
	Read      func(root, path string) ([]byte, error)
	Exists    func(path string) bool
	ListNames func(root, dir string) []string
	// Refused, which may be nil, returns why a file that a rule file or a setting names is not read.
	Refused func(path string) error
	// Excluded, which may be nil, reports whether the user excluded a file.
	Excluded func(path string) bool
}

// SearchScope says where to search.
type SearchScope struct {
	UserFiles []string // the user's own files
	Home      string   // the user's home, for imports that begin with ~/
	Dir       string   // the workspace
	Trusted   bool     // the user trusts the workspace
}

// Book has the rules of a workspace.
type Book struct {
	Rules []Rule // apply from the start, highest precedence last

	dir          string
	search       *searcher
	conditionals []conditionalRule

	mu     sync.Mutex
	nested map[string][]Rule // by folder
}

// conditionalRule is a rule for the files that match a pattern.
type conditionalRule struct {
	Rule
	base  string // the folder that the patterns are relative to
	globs []string
}

// These limits apply to rule files.
const (
	maxFiles       = 100
	maxBytes       = 256 << 10
	maxImportDepth = 5
)

// Find collects the rules that apply in a workspace: the user's own first, then those of each folder
// from the repository's root down to the workspace. Without trust that is one file per folder,
// AGENTS.md or else CLAUDE.md. Each unusable file has its own error.
func (f Finder) Find(p SearchScope) (*Book, []error) {
	s := &searcher{Finder: f, home: p.Home, trusted: p.Trusted, seen: make(map[string]bool)}
	b := &Book{dir: p.Dir, search: s}
	for _, file := range p.UserFiles {
		b.Rules = append(b.Rules, s.readWithImports("", file, 0)...)
	}
	folders := f.foldersFromRoot(p.Dir)
	s.root = folders[0]
	for _, folder := range folders {
		always, when := s.readFolder(folder)
		b.Rules, b.conditionals = append(b.Rules, always...), append(b.conditionals, when...)
	}
	return b, s.errs
}

// RulesFor returns the rules that apply to a file because of its folder or its name, besides [Book.Rules].
// It reports unusable files when it first meets them.
func (b *Book) RulesFor(file string) (rules []Rule, bad []error) {
	rel, err := filepath.Rel(b.dir, file)
	if err != nil || !filepath.IsLocal(rel) || !b.search.trusted {
		return nil, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.search.errs = nil
	for _, c := range b.conditionals {
		if c.matches(file) {
			rules = append(rules, c.Rule)
		}
	}
	folder := b.dir
	for part := range strings.SplitSeq(filepath.ToSlash(filepath.Dir(rel)), "/") {
		if folder = filepath.Join(folder, part); folder == b.dir {
			break
		}
		found, known := b.nested[folder]
		if !known {
			found = b.search.readAgentFiles(folder)
			if b.nested == nil {
				b.nested = make(map[string][]Rule)
			}
			b.nested[folder] = found
		}
		rules = append(rules, found...)
	}
	return rules, b.search.errs
}

// searcher is one search for rule files. It uses no file, and no text, twice.
type searcher struct {
	Finder
	home          string
	root          string
	trusted       bool
	seen          map[string]bool // paths and texts
	files         int
	bytes         int
	limitReported bool // the limit was reached and reported
	errs          []error
}

// These are the names of rule files in a folder.
const (
	agentsFile   = "AGENTS.md"
	overrideFile = "AGENTS.override.md"
	claudeFile   = "CLAUDE.md"
	localFile    = "CLAUDE.local.md"
)

// readFolder reads all rules of one folder of the project.
func (s *searcher) readFolder(dir string) (always []Rule, when []conditionalRule) {
	if s.trusted {
		for _, name := range foreignFiles {
			always = append(always, s.readWithImports(s.root, filepath.Join(dir, name), 0)...)
		}
		always = append(always, s.readAiderFiles(dir)...)
		for _, kind := range ruleDirKinds {
			a, w := s.readKind(dir, kind)
			always, when = append(always, a...), append(when, w...)
		}
	}
	return append(always, s.readAgentFiles(dir)...), when
}

// readAgentFiles reads AGENTS.md and CLAUDE.md of one folder; in an untrusted folder only one of them.
func (s *searcher) readAgentFiles(dir string) (rules []Rule) {
	choices := [][]string{{agentsFile, claudeFile}}
	if s.trusted {
		choices = [][]string{{claudeFile}, {overrideFile, agentsFile}, {localFile}}
	}
	for _, names := range choices {
		for _, name := range names {
			if found := s.readWithImports(s.root, filepath.Join(dir, name), 0); len(found) > 0 {
				rules = append(rules, found...)
				break
			}
		}
	}
	return rules
}

// readOnce reads one file, unless it or the same text was already read.
func (s *searcher) readOnce(root, path string) (Rule, bool) {
	if s.seen[path] || s.Excluded != nil && s.Excluded(path) {
		return Rule{}, false
	}
	if s.files == maxFiles || s.bytes >= maxBytes {
		if !s.limitReported && s.Exists(path) {
			s.limitReported = true
			s.errs = append(s.errs, &fs.PathError{Op: "read", Path: path, Err: ErrTooMany})
		}
		return Rule{}, false
	}
	rule, err := s.ReadRule(root, path)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			s.seen[path] = true
			s.errs = append(s.errs, err)
		}
		return Rule{}, false
	}
	s.seen[path] = true
	text := strings.TrimSpace(rule.Text)
	if text == "" || s.seen["text "+text] {
		return Rule{}, false
	}
	s.seen["text "+text] = true
	s.files++
	s.bytes += len(text)
	return rule, true
}

// ReadRule reads one rule file.
func (f Finder) ReadRule(root, path string) (Rule, error) {
	text, err := f.Read(root, path)
	if err == nil && bytes.IndexByte(text, 0) >= 0 {
		err = &fs.PathError{Op: "read", Path: path, Err: ErrNotText}
	}
	if err != nil {
		return Rule{}, err
	}
	return Rule{Path: path, Text: string(bytes.ToValidUTF8(text, []byte("\uFFFD")))}, nil
}

// foldersFromRoot returns the folders from the repository's root to dir.
func (f Finder) foldersFromRoot(dir string) []string {
	var up []string
	for d := dir; ; d = filepath.Dir(d) {
		up = append(up, d)
		if f.Exists(filepath.Join(d, ".git")) {
			break
		}
		if d == filepath.Dir(d) {
			return []string{dir}
		}
	}
	slices.Reverse(up)
	return up
}
