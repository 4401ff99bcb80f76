package skill_test

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/fstest"

	"coder/internal/authored/skills"
	"coder/internal/core/event"
	"coder/internal/tool"
	"coder/internal/tool/skill"
	"coder/testkit/tooltest"
)

func catalogue(files fstest.MapFS) *skills.Catalogue {
	return skills.New(skills.Root{Path: ".coder/skills", Files: files})
}

func folder() fstest.MapFS {
	return fstest.MapFS{
		"pdf/SKILL.md":    {Data: []byte("---\nname: pdf\ndescription: reads PDFs\n---\nRead $ARGUMENTS.")},
		"pdf/extra.md":    {Data: []byte("x")},
		"broken/SKILL.md": {Data: []byte("---\nname: broken\n---\n")},
	}
}

func TestSkillIsATool(t *testing.T) {
	tooltest.TestTool(t, func(t *testing.T) tooltest.Fixture {
		return tooltest.Fixture{
			Tool: skill.Skill(catalogue(folder())), Dir: t.TempDir(),
			Good: []string{`{"name":"pdf"}`, `{"action":"list"}`, `{"action":"load","name":"nope"}`},
			Bad:  []string{`{"action":"burn"}`, `{"colour":"red"}`},
		}
	})
}

func use(t *testing.T, c *skills.Catalogue, args string) (tool.Plan, tool.Result, string) {
	t.Helper()
	call, err := skill.Skill(c).Prepare(t.Context(), json.RawMessage(args))
	if err != nil {
		t.Fatal(err)
	}
	r, err := call.Run(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(r.Value)
	if err != nil {
		t.Fatal(err)
	}
	return call.Plan(), r, string(text)
}

func TestLoad(t *testing.T) {
	for _, args := range []string{
		`{"action":"load","name":"pdf","arguments":"a.pdf"}`,
		`{"name":" /pdf ","arguments":"a.pdf"}`,
		`{"skill":"pdf","args":"a.pdf"}`,
	} {
		plan, r, text := use(t, catalogue(folder()), args)
		if r.Failed || !strings.Contains(text, `"skill":"Read a.pdf."`) || !strings.Contains(text, `"files":["extra.md"]`) || !strings.Contains(text, `"dir":".coder/skills/pdf"`) {
			t.Errorf("%s: %s", args, text)
		}
		if plan.Title != "pdf" || len(plan.Effects) != 1 || plan.Effects[0].String() != "note pdf" {
			t.Errorf("%s: plan %+v", args, plan)
		}
	}
}

func TestWhatCannotBeLoadedIsSaidToBothAndEndsNothing(t *testing.T) {
	for name, why := range map[string]string{"nope": "no such skill", "broken": "no description", "../../etc": "no such skill", "": "reads PDFs"} {
		_, r, text := use(t, catalogue(folder()), `{"action":"load","name":"`+name+`"}`)
		if !r.Failed || !strings.Contains(text, why) || !strings.Contains(text, "continue without it") || !strings.Contains(text, "- pdf: reads PDFs") {
			t.Errorf("%q: %s", name, text)
		}
		if len(r.Events) != 1 {
			t.Fatalf("%q: %d facts", name, len(r.Events))
		}
		if n, ok := r.Events[0].(event.Notice); !ok || n.Level != event.LevelWarn || !strings.Contains(n.Text, "continuing without it") {
			t.Errorf("%q: %+v", name, r.Events[0])
		}
	}
	if _, _, text := use(t, catalogue(folder()), `{"name":"`+strings.Repeat("x", 5000)+`"}`); len(text) > 8000 {
		t.Errorf("a long name gives %d bytes", len(text))
	}
}

func TestASkillThatIsWrittenLaterIsFound(t *testing.T) {
	files := folder()
	c := catalogue(files)
	c.List()
	files["new/SKILL.md"] = &fstest.MapFile{Data: []byte("---\nname: new\ndescription: new\n---\nNEW")}
	if _, r, text := use(t, c, `{"name":"new"}`); r.Failed || !strings.Contains(text, "NEW") {
		t.Error(text)
	}
}

func TestList(t *testing.T) {
	for _, args := range []string{`{"action":"list"}`, `{}`} {
		_, r, text := use(t, catalogue(folder()), args)
		if r.Failed || !strings.Contains(text, "- pdf: reads PDFs") || strings.Contains(text, "broken") || r.Summary != "2 skills" {
			t.Errorf("%s: %s, %s", args, text, r.Summary)
		}
	}
}
