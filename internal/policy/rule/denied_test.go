package rule_test

import (
	"slices"
	"strings"
	"testing"

	"coder/internal/policy"
	"coder/internal/policy/risk"
	"coder/internal/policy/rule"
	"coder/internal/tool"
)

// denying is a book with rules that deny uses of files; enforced says whether the
// machine keeps commands from them.
func denying(t *testing.T, enforced bool) *rule.Book {
	t.Helper()
	deny, err := rule.ParseSpecs("read(hush/**)")
	if err != nil {
		t.Fatal(err)
	}
	can := func() bool { return enforced }
	facts := risk.Facts{Cwd: "/w", Home: "/home/u", Bash: true}
	return &rule.Book{
		Root: "/w", Home: "/home/u", Deny: deny, EnforcesFrozen: can, HidesSecrets: can,
		UserRules: map[string]risk.Patterns{
			"read":  {"private/**": policy.Deny, "private/open.txt": policy.Allow, "~/notes/**": policy.Deny, "*.txt": policy.Ask},
			"write": {"prod/**": policy.Deny, "*.lock": policy.Deny, "mixed/**": policy.Deny, "mixed/free/**": policy.Allow},
			"bash":  {"make *": policy.Deny},
		},
		Analyse: func(line string) risk.Report { return risk.Analyse(line, facts) },
		Real: func(file string) string {
			return strings.Replace(file, "/w/link", "/w/private/x", 1)
		},
	}
}

func TestDenialsOfFilesBindCommandsInYolo(t *testing.T) {
	yolo, _ := rule.LookupPreset("yolo")
	for command, want := range map[string]policy.Verdict{
		"cat private/x": policy.Deny, "cat ./sub/../private/x | head": policy.Deny, "cp private/x /tmp": policy.Deny, "cat /w/private/x": policy.Deny,
		"cat ~/notes/a": policy.Deny, "cat hush/x": policy.Deny, "cat link": policy.Deny, "python3 -c 1 < private/x": policy.Deny, "git show HEAD:private/x": policy.Deny,
		"echo EVIL > prod/x": policy.Deny, "cp a prod/x": policy.Deny, "echo x > go.lock": policy.Deny, "tee mixed/x": policy.Deny,
		"cat private/open.txt": policy.Allow, "cat a.txt": policy.Allow, "make all": policy.Allow, "cat prod/x": policy.Allow, "echo x > other": policy.Allow,
		"echo x > mixed/free/y": policy.Allow, "python3 run.py": policy.Allow, "ls private": policy.Allow,
	} {
		for _, enforced := range []bool{true, false} {
			b := denying(t, enforced)
			plan := tool.Plan{Effects: []tool.Effect{{Kind: tool.Exec, Target: command}}}
			o, err := b.PolicyFor(yolo).Judge(t.Context(), policy.Case{Tool: "bash", Plan: plan})
			want := want
			if r := b.Analyse(command); !enforced && !r.ReadOnly {
				want = policy.Deny // as for what is frozen
			}
			if err != nil || o.Verdict != want {
				t.Errorf("%s, enforced %v: %v, %v", command, enforced, o, err)
			}
			if o.Verdict == policy.Deny && enforced && !strings.Contains(o.String(), "does not allow") && !strings.Contains(o.String(), "not allowed") {
				t.Errorf("%s: %s", command, o)
			}
		}
	}
	b := denying(t, false)
	b.UserRules["write"] = nil
	for command, want := range map[string]policy.Verdict{"python3 run.py": policy.Ask, "cat p*/x": policy.Ask, "cat a.txt": policy.Allow} {
		plan := tool.Plan{Effects: []tool.Effect{{Kind: tool.Exec, Target: command}}}
		if o, err := b.PolicyFor(yolo).Judge(t.Context(), policy.Case{Tool: "bash", Plan: plan}); err != nil || o.Verdict != want {
			t.Errorf("%s, where nothing hides: %v, %v", command, o, err)
		}
	}
}

func TestWhatIsDeniedIsFrozenAndHidden(t *testing.T) {
	b := denying(t, true)
	for file, frozen := range map[string]bool{
		"prod/x": true, "prod/deep/x": true, "a/go.lock": true, "mixed/x": true, "mixed/free/x": false, "private/x": false, "src/a.go": false,
	} {
		if b.IsFrozen(file, false) != frozen {
			t.Errorf("%s: frozen is not %v", file, frozen)
		}
	}
	for folder, frozen := range map[string]bool{"prod": true, "mixed": false, "private": false, ".": false} {
		if b.IsFrozen(folder, true) != frozen {
			t.Errorf("%s: frozen whole is not %v", folder, frozen)
		}
	}
	for file, denied := range map[string]bool{
		"private/x": true, "/w/private/x": true, "link": true, "hush/deep/x": true, "/home/u/notes/a": true, "private/open.txt": false, "a.txt": false, "prod/x": false,
	} {
		if b.IsDenied("read", file) != denied {
			t.Errorf("%s: denied is not %v", file, denied)
		}
	}
	denied, shown := b.DeniedPaths("read")
	slices.Sort(denied)
	if !slices.Equal(denied, []string{"/home/u/notes/", "hush/", "private/"}) || !slices.Equal(shown, []string{"private/open.txt"}) {
		t.Errorf("by their names: %q, shown %q", denied, shown)
	}
	if zero := new(rule.Book); zero.HasDenials("read") || zero.IsDenied("write", "x") || zero.IsFrozen("x", true) {
		t.Error("a book without rules denies")
	}
}
