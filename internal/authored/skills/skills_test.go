package skills

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"coder/internal/authored/frontmatter"
	"coder/internal/host/repofile"
)

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func header(name, description string) string {
	return fmt.Sprintf("---\nname: %s\ndescription: %s\n---\n", name, description)
}

func names(skills []Skill) string {
	var list []string
	for _, s := range skills {
		list = append(list, s.Name)
	}
	return strings.Join(list, " ")
}

func TestProjectBeatsUser(t *testing.T) {
	project := fstest.MapFS{"b/SKILL.md": file(header("b", "project's b")), "z/SKILL.md": file(header("z", "zed"))}
	user := fstest.MapFS{"a/SKILL.md": file(header("a", "user's a")), "b/SKILL.md": file(header("b", "user's b"))}
	c := New(Root{Path: ".coder/skills", Files: project}, Root{Path: "~/.coder/skills", Files: user})
	skills, warnings := c.List()
	if names(skills) != "a b create-skill z" || len(warnings) != 0 {
		t.Errorf("skills are %s, warnings %v", names(skills), warnings)
	}
	if b, ok := c.Find(" b "); !ok || b.Description != "project's b" || b.Path != ".coder/skills/b/SKILL.md" {
		t.Errorf("b is %+v", b)
	}
}

func TestLenientReading(t *testing.T) {
	long := strings.Repeat("字", 1100)
	for name, tt := range map[string]struct {
		folder, text string
		want         string // the name, or "" if it is left out
		warnings     int
	}{
		"good":               {"x", header("x", "d"), "x", 0},
		"no name":            {"x", "---\ndescription: d\n---\n", "x", 0},
		"another name":       {"x", header("y", "d"), "y", 1},
		"bad name":           {"x", header("My Skill", "d"), "x", 1},
		"no good name":       {"My Skill", header("My Skill", "d"), "", 1},
		"two dashes":         {"a--b", header("a--b", "d"), "", 1},
		"no description":     {"x", "---\nname: x\n---\nbody", "", 1},
		"no header":          {"x", "# Skill", "", 1},
		"unclosed":           {"x", "---\nname: x\n", "", 1},
		"empty":              {"x", "", "", 1},
		"long description":   {"x", header("x", long), "x", 1},
		"a broken line":      {"x", "---\nname: x\ndescription: d\noops\n---\n", "x", 1},
		"not UTF-8":          {"x", header("x", "d\xff"), "x", 0},
		"folded description": {"x", "---\nname: x\ndescription: >\n  one\n  two\n---\n", "x", 0},
	} {
		c := New(Root{Path: "r", Files: fstest.MapFS{tt.folder + "/SKILL.md": file(tt.text)}})
		skills, warnings := c.List()
		want := strings.TrimSpace("create-skill " + tt.want)
		if got := names(skills); got != want || len(warnings) != tt.warnings {
			t.Errorf("%s: skills %s, warnings %v", name, got, warnings)
		}
		for _, w := range warnings {
			if !strings.HasPrefix(w.String(), "r/"+tt.folder+"/SKILL.md: ") {
				t.Errorf("%s: %s does not name the file", name, w)
			}
		}
		if s, ok := c.Find(tt.want); ok && len([]rune(s.Description)) > maxDescriptionLen {
			t.Errorf("%s: a description of %d", name, len([]rune(s.Description)))
		}
	}
}

func TestHeaderFields(t *testing.T) {
	c := New(Root{Path: "r", Files: fstest.MapFS{"x/SKILL.md": file("---\nname: x\ndescription: d\nlicense: MIT\ncompatibility: any\nallowed-tools: read, bash(git *)\n" +
		"metadata:\n  author: me\nmystery: kept\n---\n")}})
	s, _ := c.Find("x")
	if s.License != "MIT" || s.Compatibility != "any" || s.Metadata["author"] != "me" || s.Fields["mystery"].Text != "kept" ||
		strings.Join(s.AllowedTools, "|") != "read|bash(git *)" {
		t.Errorf("%+v", s)
	}
}

func TestOtherThingsInARoot(t *testing.T) {
	c := New(Root{Path: "r", Files: fstest.MapFS{
		"README.md": file("x"), ".git/SKILL.md": file(header("git", "d")), "empty/x.txt": file(""), "low/skill.md": file(header("low", "d")),
		"dir/SKILL.md/x": file(""),
	}})
	skills, warnings := c.List()
	if names(skills) != "create-skill low" || len(warnings) != 1 || !strings.Contains(warnings[0].Reason, "regular") {
		t.Errorf("skills %s, warnings %v", names(skills), warnings)
	}
}

func TestLoad(t *testing.T) {
	files := fstest.MapFS{
		"a/SKILL.md": file(header("a", "d") + "\nDo $ARGUMENTS and $ARGUMENTS.\n"), "b/SKILL.md": file(header("b", "d") + "Do it.\n"),
		"a/scripts/run.sh": file(""), "a/scripts/deep/x": file(""), "a/ref.md": file(""), "a/.hidden/x": file(""),
		"long/SKILL.md": file(header("long", "d") + strings.Repeat("x", 1<<20)),
	}
	c := New(Root{Path: "r", Files: files})
	for _, tt := range []struct{ name, args, want string }{
		{"a", " this ", "Do this and this."}, {"a", "", "Do  and ."}, {"a", "$ARGUMENTS", "Do $ARGUMENTS and $ARGUMENTS."},
		{"b", "", "Do it."}, {"b", "now", "Do it.\n\nArguments: now"},
	} {
		if got, err := c.Load(tt.name, tt.args); err != nil || got.Body != tt.want || got.Truncated {
			t.Errorf("%s %q: %q, %v", tt.name, tt.args, got.Body, err)
		}
	}
	if got, _ := c.Load("a", ""); strings.Join(got.Files, " ") != "ref.md scripts/run.sh" {
		t.Errorf("beside it lie %q", got.Files)
	}
	if got, err := c.Load("long", ""); err != nil || !got.Truncated || len(got.Body) > maxBodyBytes {
		t.Errorf("%d bytes, cut %v, %v", len(got.Body), got.Truncated, err)
	}
	if _, err := c.Load("nope", ""); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "nope") {
		t.Errorf("%v", err)
	}
	c.List()
	files["b/SKILL.md"] = file(header("b", "d") + "Changed.")
	if got, _ := c.Load("b", ""); got.Body != "Changed." {
		t.Errorf("an old body: %q", got.Body)
	}
	delete(files, "b/SKILL.md")
	if _, err := c.Load("b", ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a skill that went away: %v", err)
	}
	files["b/SKILL.md"] = file("---\nbroken")
	if _, err := c.Load("b", ""); !errors.Is(err, frontmatter.ErrUnclosed) {
		t.Errorf("a skill that broke: %v", err)
	}
}

func TestBuiltIn(t *testing.T) {
	got, err := New().Load("create-skill", "a thing for releases")
	if err != nil || !strings.Contains(got.Body, "a thing for releases") || got.Path != "" {
		t.Errorf("%v, %.100s", err, got.Body)
	}
	_, problems, _ := parseSkill(createSkillText, "create-skill")
	if len(problems) > 0 {
		t.Errorf("the built-in skill has problems: %v", problems)
	}
	own := New(Root{Path: "r", Files: fstest.MapFS{"create-skill/SKILL.md": file(header("create-skill", "mine"))}})
	if s, _ := own.Find("create-skill"); s.Description != "mine" {
		t.Errorf("the user's own is hidden: %+v", s)
	}
}

// counted counts how often files are opened.
type counted struct {
	fs.FS
	n *atomic.Int32
}

func (c counted) Open(name string) (fs.File, error) { c.n.Add(1); return c.FS.Open(name) }

func TestNothingIsReadUntilAsked(t *testing.T) {
	var n atomic.Int32
	c := New(Root{Path: "r", Files: counted{fstest.MapFS{"a/SKILL.md": file(header("a", "d"))}, &n}})
	if n.Load() != 0 {
		t.Error("files were opened before anyone asked")
	}
	c.List()
	first := n.Load()
	c.List()
	c.Find("a")
	if n.Load() != first || first == 0 {
		t.Errorf("%d openings, then %d", first, n.Load())
	}
	c.Refresh()
	c.List()
	if n.Load() != 2*first {
		t.Errorf("%d openings after a refresh, want %d", n.Load(), 2*first)
	}
	c.RefreshOlderThan(time.Hour)
	c.List()
	if n.Load() != 2*first {
		t.Errorf("%d openings: what is new is looked for again", n.Load())
	}
	c.RefreshOlderThan(-1)
	c.List()
	if n.Load() != 3*first {
		t.Errorf("%d openings: what is old is not looked for again", n.Load())
	}
}

func TestRealFolders(t *testing.T) {
	top := t.TempDir()
	root := filepath.Join(top, "skills")
	for _, dir := range []string{filepath.Join(root, "in"), filepath.Join(top, "outside")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte(header(filepath.Base(dir), "d")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"out": "../outside", "twin": "in"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	c := New(Root{Path: root, Files: repofile.NewRoot(root)}, Root{Path: "none", Files: repofile.NewRoot(filepath.Join(top, "none"))})
	skills, warnings := c.List()
	if names(skills) != "create-skill in" {
		t.Errorf("skills are %s", names(skills))
	}
	if len(warnings) != 2 || !strings.Contains(warnings[0].Path, "out") || !strings.Contains(warnings[1].Path, "twin") {
		t.Errorf("warnings are %v", warnings)
	}
}

func TestSummary(t *testing.T) {
	skills := []Skill{{Name: "a", Description: "one\n  two"}, {Name: "b", Description: strings.Repeat("字", 400)}, {Name: "c", Description: "see"}}
	if got := FormatList(skills[:1], 100); got != "- a: one two\n" {
		t.Errorf("%q", got)
	}
	got := FormatList(skills, 100)
	if !strings.HasPrefix(got, "- a: one two\n- b: 字") || len(got) > 130 || !strings.Contains(got, "…\n") {
		t.Errorf("%q", got)
	}
	if got := FormatList(skills, 20); got != "- a: one t…\n- and 2 more\n" && !strings.HasSuffix(got, "more\n") {
		t.Errorf("%q", got)
	}
	if FormatList(nil, 100) != "" {
		t.Error("no skills have a summary")
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{createSkillText, header("a", "b"), "---\nname: [x]\ndescription: {a: b}\n---\n", "---\nname:\n  a: b\n---"} {
		f.Add(s, "folder")
	}
	f.Fuzz(func(t *testing.T, text, folder string) {
		s, _, err := parseSkill(text, folder)
		if err == nil && (!IsValidName(s.Name) || s.Description == "" || len([]rune(s.Description)) > maxDescriptionLen) {
			t.Errorf("%q in %q is a skill: %+v", text, folder, s)
		}
	})
}
