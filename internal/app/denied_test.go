package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"coder/internal/policy"
	"coder/internal/policy/rule"
	"coder/internal/tool"
)

const settingsFile = "/.coder/config.json" // below the home or the project

// TestADenialHoldsFromEverySource: for each tool, in each accepted form, from the
// settings of the person, of a project, of --config and from the options of a run.
func TestADenialHoldsFromEverySource(t *testing.T) {
	calls := map[string]tool.Effect{
		"bash": {Kind: tool.Exec, Target: "sort a"}, "read": {Kind: tool.Read, Target: "a"},
		"write": {Kind: tool.Write, Target: "a"},
		"edit":  {Kind: tool.Write, Target: "a"}, "patch": {Kind: tool.Write, Target: "a"},
		"grep": {Kind: tool.Read, Target: "a"},
		"glob": {Kind: tool.Read, Target: "a"}, "list": {Kind: tool.Read, Target: "a"},
		"fetch":     {Kind: tool.Net, Target: "https://x.org/a"},
		"todowrite": {Kind: tool.Note}, "task": {Kind: tool.Unknown}, "question": {Kind: tool.Note},
		"skill":      {Kind: tool.Read, Target: "a"},
		"git_commit": {Kind: tool.Write, Target: "history of ."}, "mcp__later__tool": {Kind: tool.Unknown},
	}
	names := map[string][]string{
		"bash": {"Bash", "BASH"}, "edit": {"Edit", "MultiEdit"}, "patch": {"Edit"}, "fetch": {"WebFetch", "Fetch"},
		"todowrite": {"TodoWrite"}, "list": {"LS"}, "question": {"AskUserQuestion"},
	}
	for name, effect := range calls {
		c := policy.Case{Tool: name, Plan: tool.Plan{Effects: []tool.Effect{effect}}}
		for _, written := range append([]string{name}, names[name]...) {
			forms := []string{
				fmt.Sprintf(`{"permission": {%q: "deny"}}`, written), fmt.Sprintf(`{"permission": {%q: {"*": "deny"}}}`, written),
			}
			pattern := map[tool.Kind]string{tool.Exec: "sort *", tool.Read: "a", tool.Write: "a"}[effect.Kind]
			if pattern != "" && effect.Target != "history of ." && name != "skill" {
				forms = append(forms, fmt.Sprintf(`{"permission": {%q: {"*": "allow", %q: "deny"}}}`, written, pattern))
			}
			for _, text := range forms {
				for source, put := range map[string]func(env *Env, o *Options){
					"the person":  func(env *Env, _ *Options) { write(t, env.Getenv("HOME")+settingsFile, text) },
					"the project": func(env *Env, _ *Options) { write(t, env.Dir+settingsFile, text) },
					"--config": func(env *Env, o *Options) {
						o.ConfigFile = env.Getenv("HOME") + "/c.json"
						write(t, o.ConfigFile, text)
					},
				} {
					if o, warnings := opinion(t, c, put); o.Verdict != policy.Deny {
						t.Errorf("%s: %s: %v (%s) %q", source, text, o.Verdict, o, warnings)
					}
				}
			}
			specs, err := rule.ParseSpecs(written)
			if err != nil {
				t.Fatal(err)
			}
			if o, _ := opinion(t, c, func(_ *Env, o *Options) { o.DenyTools = NormalizeSpecs(specs) }); o.Verdict != policy.Deny {
				t.Errorf("--disallowed-tools %s: %v (%s)", written, o.Verdict, o)
			}
		}
	}
}

// opinion is what a judge says of a call under settings.
func opinion(t *testing.T, c policy.Case, change func(*Env, *Options)) (policy.Opinion, []string) {
	t.Helper()
	a, warnings, err := under(t, change)
	if err != nil {
		t.Fatal(err)
	}
	j, _, done, err := a.NewJudge()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = done() }()
	o, err := j.Judge(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return o, *warnings
}

func under(t *testing.T, change func(*Env, *Options)) (*Workspace, *[]string, error) {
	t.Helper()
	env, o := Env{Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, Dir: t.TempDir()}, Options{}
	change(&env, &o)
	warnings := new([]string)
	s, err := Load(env, o)
	if err != nil {
		return nil, nil, err
	}
	a, err := New(env, o, s, func(text string) { *warnings = append(*warnings, text) })
	return a, warnings, err
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestARuleForAMisspeltToolIsAnError(t *testing.T) {
	for written, want := range map[string]string{
		"bassh": `"bash"`, "bahs(rm *)": `"bash"`, "Wriet": `"write"`, "tod_owrite": `"todowrite"`, "fetc": `"fetch"`,
		"bash": "", "Bash": "", "MultiEdit": "", "mcp__later": "",
		"mcp__later__tool": "", "mcp__*": "", "*": "", "read*": "", "NotebookRead": "", "KillShell": "",
	} {
		specs, err := rule.ParseSpecs(written)
		if err != nil {
			t.Fatal(err)
		}
		for name, put := range map[string]func(env *Env, o *Options){
			"deny":  func(_ *Env, o *Options) { o.DenyTools = NormalizeSpecs(specs) },
			"allow": func(_ *Env, o *Options) { o.AllowTools = NormalizeSpecs(specs) },
			"settings": func(env *Env, _ *Options) {
				write(t, env.Getenv("HOME")+settingsFile, fmt.Sprintf(`{"permission": {%q: "deny"}}`, specs[0].Tool))
			},
		} {
			a, _, err := under(t, put)
			if err == nil {
				var done func() error
				if _, _, done, err = a.NewJudge(); err == nil {
					_ = done()
				}
			}
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), "did you mean "+want) {
				t.Errorf("%s %s: %v, want %s", name, written, err, want)
			}
		}
	}
	for _, text := range []string{
		`{"permission": {"bash": "forbid"}}`, `{"permission": {"bash": {"*": "no"}}}`, `{"permission": {"bash": ["deny"]}}`,
		`{"permission": {"default": "never"}}`,
	} {
		a, _, err := under(t, func(env *Env, _ *Options) { write(t, env.Getenv("HOME")+settingsFile, text) })
		if err == nil {
			_, _, _, err = a.NewJudge()
		}
		if err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}
