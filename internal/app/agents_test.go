package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"coder/internal/agent/subagent"
	"coder/internal/core/event"
	"coder/internal/host/sandbox"
	"coder/internal/host/workspace"
	"coder/internal/record/undo"
	"coder/internal/tool"
	"coder/internal/ui/i18n"
	"coder/internal/ui/term/ink"
)

// TestWhatOtherAgentsHave is the list of tools that each built-in agent sees.
func TestWhatOtherAgentsHave(t *testing.T) {
	w := newWorkshop(t)
	env := Env{Environ: []string{"HOME=" + t.TempDir()}, Dir: w.dir, Now: time.Now}
	settings, err := Load(env, Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(env, Options{Schema: []byte(`{}`)}, settings, func(s string) { t.Error(s) })
	if err != nil {
		t.Fatal(err)
	}
	agents, unusable := a.loadAgents()
	kit := toolsOf(t, a, agents)
	defer kit.close()
	all := map[string]bool{}
	for s := range kit.baseTools.Specs() {
		all[s.Name] = true
	}
	tools := func(name string) (list []string) {
		d, ok := agents.Find(name)
		if !ok {
			t.Fatalf("there is no agent %s", name)
		}
		for s := range d.NarrowTools(kit.baseTools, isMainAgentOnly).Specs() {
			list = append(list, s.Name)
		}
		return list
	}
	const looks = "read list glob grep search_code bash git_status git_diff git_log lsp"
	if got := strings.Join(tools(subagent.AgentExplore), " "); got != looks {
		t.Errorf("explore has %s\nwant %s", got, looks)
	}
	general := tools(subagent.AgentGeneral)
	kept := strings.Fields("task todoread todowrite question exit_plan_mode structured_output")
	if len(general) != len(all)-len(kept) {
		t.Errorf("general has %v of %d tools", general, len(all))
	}
	for _, name := range kept {
		if !all[name] || strings.Contains(" "+strings.Join(general, " ")+" ", " "+name+" ") {
			t.Errorf("%s: there %v, but general has %v", name, all[name], general)
		}
	}
	if items, _ := (&subagentRunner{agents: agents, unusable: unusable}).list(); len(items) != 2 || items[0].Name != subagent.AgentGeneral || items[0].Description == "" {
		t.Errorf("listed: %+v", items)
	}
}

// TestEveryToolHasItsRow in the table of our own tools, and none has a row too many.
func TestEveryToolHasItsRow(t *testing.T) {
	w := newWorkshop(t)
	env := Env{Environ: []string{"HOME=" + t.TempDir()}, Dir: w.dir, Now: time.Now}
	settings, err := Load(env, Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(env, Options{}, settings, func(s string) { t.Error(s) })
	if err != nil {
		t.Fatal(err)
	}
	agents, _ := a.loadAgents()
	kit := toolsOf(t, a, agents)
	defer kit.close()
	for _, name := range tool.BuiltinNames() {
		one, ok := kit.baseTools.Lookup(name)
		c := tool.ClassOf(name)
		if !ok && c != tool.ClassFindTools && c != tool.ClassFinalAnswer { // which are there where they are wanted
			t.Errorf("there is no tool %s", name)
		}
		if ok && one.Spec().Class != c {
			t.Errorf("%s is of another class to those who hold it", name)
		}
	}
	for s := range kit.baseTools.Specs() {
		if !slices.Contains(tool.BuiltinNames(), s.Name) || tool.Describe(s.Name) == "" {
			t.Errorf("%s has no row, or no words for people", s.Name)
		}
	}
}

// TestWhatOthersWroteIsUndoneWithTheTurn and is checked with it.
func TestWhatOthersWroteIsUndoneWithTheTurn(t *testing.T) {
	w := newWorkshop(t)
	w.write("a.c", "old\n")
	s := w.open(`
call task {"agent": "general", "objective": "Change it"}
---
to Change it
call read {"path": "a.c"}
---
to Change it
call edit {"path": "a.c", "old_string": "old", "new_string": "new"}
call bash {"command": "echo b > b.txt"}
---
to Change it
say changed
---
say done
`)
	var notices []string
	_, err := s.RunText(t.Context(), "go", event.SinkFunc(func(_ context.Context, r event.Record) error {
		if e, ok := r.Event.(event.Notice); ok {
			notices = append(notices, e.Text)
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	w.want(map[string]string{"a.c": "new\n", "b.txt": "b\n"})
	if !slices.Equal(notices, []string{"未执行自动验证", "automatic check not run: no check found for the edits"}) {
		t.Errorf("the turn's own check did not hear of the edit: %q", notices)
	}
	if _, err := s.Undo(t.Context(), undo.Request{All: true}, event.Discard); err != nil {
		t.Fatal(err)
	}
	w.want(map[string]string{"a.c": "old\n", "b.txt": ""})
}

func TestAFileThatIsNoAgentIsToldOfOnce(t *testing.T) {
	s := newStudio(t, "", func(env *Env, _ *Options) {
		dir := filepath.Join(env.Dir, ".coder", "agents")
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "notes.md"), []byte("Some words."), 0o644)); err != nil {
			t.Fatal(err)
		}
	})
	for _, id := range []string{"one", "two"} {
		if text, _ := s.run(s.start(id), "/agents"); !strings.Contains(text, ".coder/agents/notes.md: skipped: no description") {
			t.Errorf("%s", text)
		}
	}
	if len(s.warnings) != 1 || !strings.HasPrefix(s.warnings[0], "agent .coder/agents/notes.md: skipped") {
		t.Errorf("%q", s.warnings)
	}
}

func TestWhatIsBuiltInIsListedInThePersonsLanguage(t *testing.T) {
	s := newStudio(t, "", nil)
	ss, zh := s.start("one"), i18n.For(i18n.Chinese)
	for input, want := range map[string][]string{
		"/agents": {"general  完成一项独立的工作", "explore  回答关于代码的问题；只读"},
		"/skills": {"create-skill  把反复要做的事的做法写成技能"},
		"/help":   {"/create-skill            把反复要做的事的做法写成技能"},
		"/status": {"模型"},
	} {
		done, err := ss.RunText(t.Context(), input, event.Discard)
		if err != nil {
			t.Fatal(err)
		}
		said := done.Blocks.Translate(zh.TranslateText, ink.Width)
		for _, w := range want {
			if !strings.Contains(said, w) {
				t.Errorf("%s: no %q in\n%s", input, w, said)
			}
		}
		if strings.Contains(said, " and ") {
			t.Errorf("%s:\n%s", input, said)
		}
	}
}

// toolsOf are the tools of a session in a workspace.
func toolsOf(t *testing.T, a *Workspace, agents subagent.Catalogue) *toolkit {
	ws, err := workspace.Open(a.Root)
	if err != nil {
		t.Fatal(err)
	}
	journal := new(sandbox.Journal)
	s := &Session{safety: a.newSafety(ws, journal), id: "s1"}
	kit, err := s.newToolkit(ws, journal, taskTool(agents, nil))
	if err != nil {
		t.Fatal(err)
	}
	return kit
}
