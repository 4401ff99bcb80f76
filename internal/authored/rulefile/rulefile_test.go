package rulefile

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree is a file system: paths and texts. A text "refused" cannot be read.
type tree map[string]string

func (files tree) finder(t *testing.T) Finder {
	return Finder{
		Read: func(root, path string) ([]byte, error) {
			if root != "" && !isBelow(root, path) {
				t.Errorf("%s is not below %s", path, root)
			}
			switch text, ok := files[path]; {
			case !ok:
				return nil, fs.ErrNotExist
			case text == "refused":
				return nil, &fs.PathError{Op: "read", Path: path, Err: fs.ErrPermission}
			default:
				return []byte(text), nil
			}
		},
		Exists: func(path string) bool {
			return slices.ContainsFunc(slices.Collect(maps.Keys(files)), func(f string) bool { return f == path || isBelow(path, f) })
		},
		ListNames: func(_, dir string) (names []string) {
			for _, f := range slices.Sorted(maps.Keys(files)) {
				if rel, err := filepath.Rel(dir, f); err == nil && filepath.IsLocal(rel) {
					names = append(names, rel)
				}
			}
			return names
		},
	}
}

func texts(rules []Rule) string {
	var all []string
	for _, r := range rules {
		all = append(all, strings.TrimSpace(r.Text))
	}
	return strings.Join(all, " | ")
}

func TestAnUntrustedFolderHasOneFileWithoutImports(t *testing.T) {
	files := tree{
		"/repo/.git/HEAD": "x", "/repo/AGENTS.md": "root @more.md", "/repo/CLAUDE.md": "shadowed", "/repo/more.md": "more",
		"/repo/a/CLAUDE.md": "a", "/repo/a/GEMINI.md": "gemini", "/repo/a/.cursor/rules/x.mdc": "---\nalwaysApply: true\n---\ncursor",
		"/repo/a/b/AGENTS.md": "refused", "/repo/a/c/AGENTS.md": "nested", "/above/AGENTS.md": "above", "/home/u/.coder/AGENTS.md": "own",
	}
	for _, tt := range []struct{ own, dir, want string }{
		{"/home/u/.coder/AGENTS.md", "/repo/a", "own | root @more.md | a"},
		{"", "/repo", "root @more.md"},
		{"", "/above/below", ""},
		{"", "/above", "above"},
	} {
		p := SearchScope{Dir: tt.dir}
		if tt.own != "" {
			p.UserFiles = []string{tt.own}
		}
		book, bad := files.finder(t).Find(p)
		if got := texts(book.Rules); got != tt.want || len(bad) > 0 {
			t.Errorf("%s: %q, %v; want %q", tt.dir, got, bad, tt.want)
		}
		if rules, _ := book.RulesFor("/repo/a/c/x.go"); len(rules) > 0 {
			t.Errorf("%s: nested rules apply without trust: %v", tt.dir, rules)
		}
	}
	book, bad := files.finder(t).Find(SearchScope{Dir: "/repo/a/b"})
	if len(bad) != 1 || !errors.Is(bad[0], fs.ErrPermission) || len(book.Rules) != 2 {
		t.Errorf("an unreadable file: %v, %v", book.Rules, bad)
	}
}

func TestATrustedFolderHasTheRulesOfEveryAgent(t *testing.T) {
	files := tree{
		"/repo/.git/HEAD": "x", "/repo/AGENTS.md": "agents", "/repo/CLAUDE.md": "claude @docs/style.md and `@docs/code.md`\n```\n@docs/code.md\n```\n@missing.md me@example.md",
		"/repo/CLAUDE.local.md": "local", "/repo/docs/style.md": "style @deeper.md @../CLAUDE.md", "/repo/docs/deeper.md": "deeper", "/repo/docs/code.md": "code",
		"/repo/GEMINI.md": "agents", "/repo/.windsurfrules": "windsurf", "/repo/.github/copilot-instructions.md": "copilot",
		"/repo/.cursor/rules/all.mdc": "---\nalwaysApply: true\n---\ncursor", "/repo/.cursor/rules/go.mdc": "---\nglobs: \"*.go, web/**/*.{ts,tsx}\"\n---\ngo rules",
		"/repo/.cursor/rules/ask.mdc":                      "---\ndescription: about releases\n---\nreleases",
		"/repo/.github/instructions/py.instructions.md":    "---\napplyTo: '**/*.py'\n---\npython",
		"/repo/.github/instructions/every.instructions.md": "---\napplyTo: '**'\n---\nevery",
		"/repo/.aider.conf.yml":                            "read:\n  - CONVENTIONS.md\n  - ../outside.md\n", "/repo/CONVENTIONS.md": "conventions", "/outside.md": "outside",
		"/repo/svc/CLAUDE.md": "svc", "/repo/svc/api/AGENTS.override.md": "override", "/repo/svc/api/AGENTS.md": "api",
	}
	book, bad := files.finder(t).Find(SearchScope{Dir: "/repo", Trusted: true})
	want := "windsurf | agents | copilot | conventions | cursor | Read the file before related work:\n- /repo/.cursor/rules/ask.mdc: about releases | every" +
		" | claude @docs/style.md and `@docs/code.md`\n```\n@docs/code.md\n```\n@missing.md me@example.md | style @deeper.md @../CLAUDE.md | deeper | local"
	if got := texts(book.Rules); got != want || len(bad) > 0 {
		t.Errorf("%q, %v\nwant %q", got, bad, want)
	}
	for file, want := range map[string]string{
		"/repo/main.go": "go rules", "/repo/web/a/b.tsx": "go rules", "/repo/web/a.css": "", "/repo/x/y.py": "python",
		"/repo/svc/x.txt": "svc", "/repo/svc/api/v1/x.go": "go rules | svc | override", "/elsewhere/x.go": "",
	} {
		for range 2 { // the second time from memory
			if rules, bad := book.RulesFor(file); texts(rules) != want || len(bad) > 0 {
				t.Errorf("%s: %q, %v; want %q", file, texts(rules), bad, want)
			}
		}
	}
}

// TestImportsStayInTheProjectAndTheRulesOfTheHome: a project cannot have other files of the
// home read, nor the person's own rules a file of the project.
func TestImportsStayInTheProjectAndTheRulesOfTheHome(t *testing.T) {
	files := tree{
		"/repo/.git/HEAD": "x", "/repo/AGENTS.md": "a @/etc/motd.txt @../other/x.md @~/notes.md @~/.claude/mine.md @.env @~/.ssh/id.txt",
		"/etc/motd.txt": "motd", "/other/x.md": "x", "/u/notes.md": "notes", "/u/.claude/mine.md": "mine", "/repo/.env": "env", "/u/.ssh/id.txt": "id",
		"/u/.coder/AGENTS.md": "own @/repo/AGENTS.md @extra.md", "/u/.coder/extra.md": "extra",
	}
	book, bad := files.finder(t).Find(SearchScope{UserFiles: []string{"/u/.coder/AGENTS.md"}, Home: "/u", Dir: "/repo", Trusted: true})
	want := "own @/repo/AGENTS.md @extra.md | extra | " + files["/repo/AGENTS.md"] + " | mine"
	if got := texts(book.Rules); got != want || len(bad) > 0 {
		t.Errorf("%q, %v\nwant %q", got, bad, want)
	}
}

// A file that is hidden from tools is imported by no rule file.
func TestHiddenFilesAreNotImported(t *testing.T) {
	files := tree{
		"/repo/.git/HEAD": "x", "/repo/AGENTS.md": "a @private/x.md @b.md", "/repo/b.md": "b @private/x.md", "/repo/private/x.md": "x",
		"/repo/.aider.conf.yml": "read: private/x.md", "/repo/sub/AGENTS.md": "sub @../private/x.md",
	}
	find := files.finder(t)
	find.Refused = func(path string) error {
		if isBelow("/repo/private", path) {
			return &fs.PathError{Op: "read", Path: path, Err: fs.ErrPermission}
		}
		return nil
	}
	book, bad := find.Find(SearchScope{Home: "/u", Dir: "/repo", Trusted: true})
	nested, _ := book.RulesFor("/repo/sub/a.go")
	want := files["/repo/AGENTS.md"] + " | " + files["/repo/b.md"] + " | " + files["/repo/sub/AGENTS.md"]
	if got := texts(slices.Concat(book.Rules, nested)); got != want || len(bad) != 1 || !errors.Is(bad[0], fs.ErrPermission) {
		t.Errorf("%q, %v\nwant %q", got, bad, want)
	}
}

func TestRuleFilesAreBoundedAndExcluded(t *testing.T) {
	files := tree{"/repo/.git/HEAD": "x", "/repo/AGENTS.md": "@0.md", "/repo/CLAUDE.md": "claude"}
	for i := range 9 {
		files[fmt.Sprintf("/repo/%d.md", i)] = fmt.Sprintf("%d @%d.md", i, i+1)
	}
	f := files.finder(t)
	f.Excluded = func(path string) bool { return path == "/repo/CLAUDE.md" }
	book, bad := f.Find(SearchScope{Dir: "/repo", Trusted: true})
	if got := len(book.Rules); got != 1+maxImportDepth || len(bad) > 0 {
		t.Errorf("%d files, %v: %q", got, bad, texts(book.Rules))
	}
	for i := range 2 * maxFiles {
		files[fmt.Sprintf("/repo/.cursor/rules/%d.mdc", i)] = fmt.Sprintf("---\nalwaysApply: true\n---\nrule %d", i)
	}
	book, bad = files.finder(t).Find(SearchScope{Dir: "/repo", Trusted: true})
	if len(book.Rules) > maxFiles || len(bad) != 1 || !errors.Is(bad[0], ErrTooMany) {
		t.Errorf("%d files, %v", len(book.Rules), bad)
	}
	files = tree{"/repo/.git/HEAD": "x", "/repo/AGENTS.md": "\xff\xfea\x00b\x00", "/repo/CLAUDE.md": "be\xffkind"}
	book, bad = files.finder(t).Find(SearchScope{Dir: "/repo"})
	if len(bad) != 1 || !errors.Is(bad[0], ErrNotText) || texts(book.Rules) != "be\uFFFDkind" {
		t.Errorf("%v, %v", book.Rules, bad)
	}
}
