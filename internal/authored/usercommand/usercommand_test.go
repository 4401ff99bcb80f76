package usercommand

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"coder/internal/host/repofile"
)

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func names(commands []Command) string {
	var list []string
	for _, c := range commands {
		list = append(list, c.Name)
	}
	return strings.Join(list, " ")
}

func TestList(t *testing.T) {
	project := fstest.MapFS{
		"fix.md":       file("---\ndescription: fix it\nargument-hint: [issue]\nallowed-tools: read, bash(git *)\nmodel: small\n---\nFix $1."),
		"git/sync.md":  file("# Bring the branch up to date\nmore"),
		"git/a/b.md":   file("x"),
		"notes.txt":    file("x"),
		".hidden/x.md": file("x"),
		"bad name.md":  file("x"),
		"broken.md":    file("---\nx"),
		"half.md":      file("---\ndescription: d\noops\n---\n"),
		"修复.md":        file("x"),
	}
	user := fstest.MapFS{"fix.md": file("the user's"), "mine.md": file("mine")}
	c := New(Root{Path: ".coder/commands", Files: project}, Root{Path: "~/.coder/commands", Files: user}, Root{Path: "none", Files: repofile.NewRoot(filepath.Join(t.TempDir(), "none"))})
	commands, warnings := c.List()
	if got := names(commands); got != "fix git:a:b git:sync half mine 修复" {
		t.Errorf("commands are %s", got)
	}
	var warned []string
	for _, w := range warnings {
		warned = append(warned, w.Path)
	}
	if want := []string{".coder/commands/bad name.md", ".coder/commands/broken.md", ".coder/commands/half.md"}; !slices.Equal(warned, want) {
		t.Errorf("warnings are %v", warnings)
	}
	fix, ok := c.Find("/fix")
	if !ok || fix.Description != "fix it" || fix.ArgsHint != "[issue]" || fix.Model != "small" || len(fix.AllowedTools) != 2 || fix.Path != ".coder/commands/fix.md" {
		t.Errorf("%+v", fix)
	}
	if sync, _ := c.Find("git:sync"); sync.Description != "Bring the branch up to date" {
		t.Errorf("%+v", sync)
	}
}

func TestExpandByName(t *testing.T) {
	files := fstest.MapFS{"a/b.md": file("---\ndescription: d\n---\n\nDo $ARGUMENTS.\n")}
	c := New(Root{Path: "r", Files: files})
	_, segments, err := c.Expand("/a:b", " this ")
	if got := Join(segments, nil); err != nil || got != "Do this." {
		t.Errorf("%q, %v", got, err)
	}
	if _, _, err := c.Expand("nope", ""); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v", err)
	}
	files["a/b.md"] = file("Changed.")
	if _, segments, _ := c.Expand("a:b", ""); Join(segments, nil) != "Changed." {
		t.Errorf("an old body: %v", segments)
	}
	files["a/b.md"] = file(strings.Repeat("x", maxBytes+1))
	if _, _, err := c.Expand("a:b", ""); err == nil {
		t.Error("a file without end is read")
	}
	delete(files, "a/b.md")
	if _, _, err := c.Expand("a:b", ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	c.Refresh()
	if commands, _ := c.List(); len(commands) != 0 {
		t.Errorf("commands are %s", names(commands))
	}
}

func TestLinksOutAreNotFollowed(t *testing.T) {
	top := t.TempDir()
	root := filepath.Join(top, "commands")
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(top, "secret.md"), []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../secret.md", filepath.Join(root, "out.md")); err != nil {
		t.Fatal(err)
	}
	commands, warnings := New(Root{Path: "r", Files: repofile.NewRoot(root)}).List()
	if len(commands) != 0 || len(warnings) != 1 {
		t.Errorf("%v, %v", commands, warnings)
	}
}

func TestArguments(t *testing.T) {
	for _, tt := range []struct{ body, args, want string }{
		{"Fix $ARGUMENTS now", "a b", "Fix a b now"},
		{"Fix $ARGUMENTS now", "", "Fix  now"},
		{"$1-$2-$3", "a b", "a-b-"},
		{"$2 $1", `"x y" z`, "z x y"},
		{"$1", "'it is'", "it is"},
		{"$1 $2", "it's fine", "it's fine"},
		{"$1|$2", `k="a b" c`, "k=a b|c"},
		{"$1|$2", `"" b`, "|b"},
		{"Plain.", "x y", "Plain.\n\nx y"},
		{"Plain.", "  ", "Plain."},
		{"", "x", "x"},
		{`Costs \$1 and $100 and $0.50`, "", "Costs $1 and $100 and $0.50"},
		{"$10", "1 2 3 4 5 6 7 8 9 ten", "ten"},
		{"$ARGUMENTS_DIR $HOME $", "x", "$ARGUMENTS_DIR $HOME $\n\nx"},
		{"$ARGUMENTS。$1", "$1 $ARGUMENTS", "$1 $ARGUMENTS。$1"},
		{"在$ARGUMENTS中", "甲", "在甲中"},
	} {
		if got := Join(Expand(tt.body, tt.args), nil); got != tt.want {
			t.Errorf("%q with %q is %q, want %q", tt.body, tt.args, got, tt.want)
		}
	}
}

func asked(segments []Segment) string {
	var list []string
	for _, s := range segments {
		switch s.Kind {
		case KindShell:
			list = append(list, "!"+s.Text)
		case KindFile:
			list = append(list, "@"+s.Text)
		}
	}
	return strings.Join(list, "|")
}

func TestSegments(t *testing.T) {
	for _, tt := range []struct{ body, args, want string }{
		{"State: !`git status -s`\nFile @src/a.go.", "", "!git status -s|@src/a.go"},
		{"!`git diff $1` and @$2", "HEAD x.go", "!git diff HEAD|@x.go"},
		{"see @a.go:12-20, (@b/c.md) @\"my file.txt\"", "", "@a.go:12-20|@b/c.md|@my file.txt"},
		{"看@甲.go，并且 @乙", "", "@甲.go|@乙"},
		{"mail me@x.org, @ alone, @., wow!`x`", "", ""},
		{"`@a` ``!`ls` `` and !``", "", ""},
		{"```sh\n!`rm x`\n@a\n```\n!`ls`", "", "!ls"},
		{"~~~\n```\n@a\n~~~\n@b", "", "@b"},
		{"````\n```\n@a\n````\n@b", "", "@b"},
		{"```\n@a\n``` not the end\n@b", "", ""},
		{`\!` + "`ls` \\@a", "", ""},
		{"!`a\nb`", "", ""},
		{"Do $ARGUMENTS", "!`rm -rf /` @secret", ""},
		{"Plain.", "!`rm -rf /` @secret", ""},
		{"open ` tick @a", "", "@a"},
	} {
		if got := asked(Expand(tt.body, tt.args)); got != tt.want {
			t.Errorf("%q with %q asks for %q, want %q", tt.body, tt.args, got, tt.want)
		}
	}
}

func TestFill(t *testing.T) {
	segments := Expand("A !`x $1` B @f C", "1")
	if got := Join(segments, nil); got != "A !`x 1` B @f C" {
		t.Errorf("unfilled: %q", got)
	}
	results := map[int]string{0: "never"}
	for i, s := range segments {
		if s.Kind == KindShell {
			results[i] = "out @g !`y` $1"
		}
	}
	if got := Join(segments, results); got != "A out @g !`y` $1 B @f C" {
		t.Errorf("filled: %q", got)
	}
}

func FuzzExpand(f *testing.F) {
	for _, s := range [][2]string{
		{"Fix $1 in @a.go with !`ls $2`", "a b"}, {"```\n!`x`\n```", "'"}, {"\\$1 $ARGUMENTS$1", "\"a"}, {"@\"x", "!`x` @y"}, {"`` ` ``!`", "\xff"}, {"~~~~\n~~~", ""},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, body, args string) {
		bare, full := Expand(body, ""), Expand(body, args)
		if a, b := countAsks(bare), countAsks(full); a != b {
			t.Errorf("the arguments %q change what %q asks for: %d, %d", args, body, a, b)
		}
		if !strings.Contains(body, "$") && !strings.HasPrefix(Join(full, nil), strings.TrimSpace(body)) {
			t.Errorf("%q became %q", body, Join(full, nil))
		}
		if strings.TrimSpace(args) != "" && !strings.Contains(body, "$") && !strings.HasSuffix(Join(full, nil), strings.TrimSpace(args)) {
			t.Errorf("%q lost %q", body, args)
		}
	})
}

func countAsks(segments []Segment) int {
	n := 0
	for _, s := range segments {
		if s.Kind != KindText {
			n++
		}
	}
	return n
}
