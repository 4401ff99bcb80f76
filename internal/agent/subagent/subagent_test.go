package subagent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"coder/internal/agent/subagent"
	"coder/internal/host/repofile"
	"coder/internal/policy"
	"coder/internal/tool"
)

func root(path string, files map[string]string) subagent.Root {
	m := make(fstest.MapFS)
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return subagent.Root{Path: path, Files: m}
}

func toolNames(c subagent.Catalogue) string {
	var all []string
	for _, d := range c {
		all = append(all, d.Name)
	}
	return strings.Join(all, " ")
}

func TestTheBuiltInAgents(t *testing.T) {
	c, warnings := subagent.Load()
	if len(warnings) > 0 || toolNames(c) != "general explore" {
		t.Fatalf("agents %s, warnings %v", toolNames(c), warnings)
	}
	general, _ := c.Find("General")
	explore, _ := c.Find("explore")
	if general.ReadOnly || len(general.Tools) > 0 || general.IsCustom() || general.MaxSteps != subagent.DefaultSteps {
		t.Errorf("general: %+v", general)
	}
	if !explore.ReadOnly || slices.Contains(explore.Tools, "write") || !slices.Contains(explore.Tools, "grep") || explore.IsCustom() {
		t.Errorf("explore: %+v", explore)
	}
	for _, d := range c {
		if d.LocalDescription == "" || d.LocalDescription == d.Description || len(d.LocalDescription) > 80 {
			t.Errorf("%s: people are told %q", d.Name, d.LocalDescription)
		}
	}
	if _, ok := c.Find("nobody"); ok {
		t.Error("an agent that does not exist was found")
	}
}

func TestPeoplesOwnAgents(t *testing.T) {
	c, warnings := subagent.Load(
		root("project", map[string]string{
			"reviewer.md": "---\ndescription: reviews\ntools: Read, Grep\nmodel: big\nmax_steps: 7\n---\nReview.\n",
			"explore.md":  "---\ndescription: looks\nread_only: yes\n---\nLook my way.",
			"tidy.md":     "---\nname: Tidier\ndescription: tidies\nmodel: inherit\ntools:\n  bash: off\n  read: on\n---\nTidy up.",
			"notes.txt":   "not an agent", ".hidden.md": "Hidden.",
		}),
		root("home", map[string]string{"reviewer.md": "---\ndescription: other\n---\nOther.", "writer.md": "---\ndescription: writes\n---\nWrite."}),
	)
	if len(warnings) > 0 {
		t.Errorf("warnings: %v", warnings)
	}
	if got := toolNames(c); got != "Tidier explore reviewer writer general" {
		t.Fatalf("agents: %s", got)
	}
	r, _ := c.Find("reviewer")
	if r.Prompt != "Review." || r.Description != "reviews" || r.LocalDescription != "reviews" || fmt.Sprint(r.Tools) != "[Read Grep]" || r.Model != "big" || r.MaxSteps != 7 || !r.IsCustom() {
		t.Errorf("reviewer: %+v", r)
	}
	if e, _ := c.Find("explore"); e.Prompt != "Look my way." || !e.ReadOnly || len(e.Tools) > 0 {
		t.Errorf("explore: %+v", e)
	}
	if d, _ := c.Find("tidier"); fmt.Sprint(d.ExcludedTools) != "[bash]" || d.Model != "" || len(d.Tools) > 0 {
		t.Errorf("tidier: %+v", d)
	}
}

func TestWhatIsWrongIsToldAndTheRestIsRead(t *testing.T) {
	project := root("p", map[string]string{
		"a b.md": "x", "empty.md": "---\nname: empty\n---\n \n", "open.md": "---\nname: x\n", "long.md": strings.Repeat("x", 65<<10),
		"steps.md": "---\ndescription: d\nmax_steps: many\n---\nGo.", "part.md": "---\ndescription: d\ntools: [bash(git *)]\nmodel: costly\n---\nGo.", "folder.md/x.md": "x",
		"perhaps.md": "---\ndescription: d\nread_only: maybe\n---\nGo.", "readme.md": "Only words.", "mute.md": "---\nname: mute\ndescription: \" \"\n---\nGo.",
	})
	project.Untrusted = true
	c, warnings := subagent.Load(project)
	if got := toolNames(c); got != "part perhaps steps general explore" {
		t.Errorf("agents: %s", got)
	}
	var told []string
	for _, w := range warnings {
		told = append(told, w.String())
	}
	for _, want := range []string{
		`p/a b.md: skipped: "a b" is not a valid name`, "p/empty.md: skipped: no prompt", "p/open.md: skipped: the header has no closing ---",
		"p/long.md: skipped: longer than 65536 bytes", `p/steps.md: max_steps must be a number from 1 to 500, not "many"; using 50`,
		"p/readme.md: skipped: no description", "p/mute.md: skipped: no description",
		`p/perhaps.md: read_only must be yes or no, not "maybe"; using yes`,
		`p/part.md: skipped the tool "bash(git *)"`, `p/part.md: the model "costly" is not used`,
	} {
		if !slices.ContainsFunc(told, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("nothing begins with %q in\n%s", want, strings.Join(told, "\n"))
		}
	}
	if perhaps, _ := c.Find("perhaps"); !perhaps.ReadOnly {
		t.Error("an agent that may be meant to read only writes")
	}
	part, _ := c.Find("part")
	if set := part.NarrowTools(tools(t), none); len(slices.Collect(set.Specs())) != 0 || part.Model != "" {
		t.Errorf("an agent whose one tool was left out has others: %+v", part)
	}
}

func TestAFileThatLeadsOutIsNotRead(t *testing.T) {
	dir, secret := t.TempDir(), filepath.Join(t.TempDir(), "secret.md")
	if err := os.WriteFile(secret, []byte("Secret."), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(dir, "spy.md")); err != nil {
		t.Skip("no symbolic links here")
	}
	c, warnings := subagent.Load(subagent.Root{Path: "p", Files: repofile.NewRoot(dir)}, subagent.Root{Path: "gone", Files: repofile.NewRoot(dir + "/gone")})
	if toolNames(c) != "general explore" || len(warnings) != 1 {
		t.Errorf("agents %s, warnings %v", toolNames(c), warnings)
	}
}

type args struct {
	X string `json:"x,omitzero"`
}

// tools is a set of tools with one effect each.
func tools(t *testing.T) tool.Set {
	t.Helper()
	var all []tool.Tool
	for name, kind := range map[string]tool.Kind{
		"read": tool.Read, "write": tool.Write, "bash": tool.Exec, "fetch": tool.Net, "todowrite": tool.Note, "mcp__a__x": tool.Unknown, "task": tool.Note,
	} {
		all = append(all, tool.Func[args]{
			Name: name, Aliases: []tool.Alias{{Name: name + "File"}},
			Plan: func(_ context.Context, a args) (tool.Plan, error) {
				return tool.Plan{Effects: []tool.Effect{{Kind: kind, Target: a.X}}}, nil
			},
			Do: func(context.Context, args, io.Writer) (tool.Result, error) { return tool.Result{}, nil },
		})
	}
	set, err := tool.NewSet(all...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func on(set tool.Set) string {
	var all []string
	for s := range set.Specs() {
		all = append(all, s.Name)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func TestNarrow(t *testing.T) {
	base := tools(t).Without(func(name string) bool { return name == "fetch" })
	tests := []struct {
		d    subagent.Definition
		want string
	}{
		{subagent.Definition{}, "bash mcp__a__x read todowrite write"},
		{subagent.Definition{Tools: []string{"READ", "writeFile", "fetch", "task", "nope"}}, "read write"},
		{subagent.Definition{Tools: []string{"mcp__a__*"}}, "mcp__a__x"},
		{subagent.Definition{Tools: []string{"*"}, ExcludedTools: []string{"bashFile"}}, "mcp__a__x read todowrite write"},
	}
	for _, tt := range tests {
		if got := on(tt.d.NarrowTools(base, delegates)); got != tt.want {
			t.Errorf("%v without %v: %s, want %s", tt.d.Tools, tt.d.ExcludedTools, got, tt.want)
		}
	}
}

// TestAnAgentMayNeverDoMoreThanWhoeverSentIt goes through every opinion the
// sender's policy may have.
func TestAnAgentMayNeverDoMoreThanWhoeverSentIt(t *testing.T) {
	set := tools(t)
	for _, d := range []subagent.Definition{{Name: "g"}, {Name: "r", ReadOnly: true}, {Name: "n", Tools: []string{"read"}}} {
		narrow := d.NarrowTools(set, delegates)
		for s := range set.Specs() {
			tl, _ := set.Lookup(s.Name)
			call, err := tl.Prepare(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, theirs := range []policy.Opinion{
				{Verdict: policy.Deny}, {Verdict: policy.Ask}, {Verdict: policy.Allow}, {Verdict: policy.Allow, ReadOnly: true}, {Verdict: policy.Ask, ReadOnly: true},
			} {
				parent := policy.Func(func(context.Context, policy.Case) (policy.Opinion, error) { return theirs, nil })
				got, err := d.NarrowPolicy(parent, narrow).Judge(t.Context(), policy.Case{Tool: s.Name, Plan: call.Plan()})
				if err != nil {
					t.Fatal(err)
				}
				want := theirs.Verdict
				if narrow.IsOff(s.Name) || d.ReadOnly && !call.Plan().ReadOnly() && !theirs.ReadOnly {
					want = policy.Deny
				}
				if got.Verdict != want {
					t.Errorf("%s: %s where the sender has %v (read-only %v): %v, want %v", d.Name, s.Name, theirs.Verdict, theirs.ReadOnly, got.Verdict, want)
				}
			}
		}
	}
}

func TestSystem(t *testing.T) {
	got := subagent.Definition{Name: "reviewer", Prompt: "Review."}.SystemText("Base.\n")
	if !strings.HasPrefix(got, "Base.\n\n# Your part\n\nYou are the agent reviewer.") || !strings.HasSuffix(got, "\n\nReview.\n") {
		t.Errorf("system text:\n%s", got)
	}
}

func FuzzLoad(f *testing.F) {
	for _, text := range []string{"", "Go.", "---\nname: a\ntools: [a, b(c)]\nmax_steps: 3\n---\nGo.", "---\ntools:\n  a: on\n---\nx", "---\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, _ := subagent.Load(root("p", map[string]string{"a.md": text}))
		for _, d := range c {
			if d.Name == "" || d.Prompt == "" || d.MaxSteps < 1 || d.MaxSteps > 500 {
				t.Errorf("%q gives %+v", text, d)
			}
		}
		if _, ok := c.Find(subagent.AgentGeneral); !ok {
			t.Errorf("%q took the general agent away", text)
		}
	})
}

func TestAgentsThatAProgramGives(t *testing.T) {
	given := map[string]json.RawMessage{
		"counter": json.RawMessage(`{"description":"counts","prompt":"Count.","tools":["Read"],"disallowedTools":["Bash"],"maxTurns":7,"model":"inherit"}`),
		"general": json.RawMessage(`{"description":"mine","prompt":"Mine.","maxTurns":100000,"model":"small-one"}`),
	}
	list, err := subagent.ParseDefinitions(given)
	if err != nil || len(list) != 2 || list[0].MaxSteps != 7 || list[1].MaxSteps != subagent.DefaultSteps || !list[0].IsCustom() || list[0].Model != "" || list[1].Model != "small-one" {
		t.Fatalf("%+v, %v", list, err)
	}
	all, _ := subagent.Load()
	all = all.Prepend(list)
	if d, ok := all.Find("general"); !ok || d.Prompt != "Mine." || len(all) != 3 {
		t.Errorf("%+v of %d", d, len(all))
	}
	for name, text := range map[string]string{"no prompt": `{"description":"x"}`, "a b": `{"description":"x","prompt":"x"}`, "list": `[]`} {
		if list, err := subagent.ParseDefinitions(map[string]json.RawMessage{strings.ReplaceAll(name, "no prompt", "empty"): json.RawMessage(text)}); err == nil {
			t.Errorf("%s: %+v", name, list)
		}
	}
}

func none(string) bool           { return false }
func delegates(name string) bool { return name == "task" }
