package rule

import (
	"iter"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"coder/internal/policy"
	"coder/internal/policy/risk"
	"coder/internal/tool"
)

// hiding is a book over a workspace with a secret, a link to it, and another
// project beside it.
func hiding(t *testing.T, hidden bool) *Book {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "w")
	for _, name := range []string{"w/.env", "w/main.go", "other/.env", "home/.ssh/id_rsa"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(".env", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	at := func(p string) string {
		if filepath.IsAbs(p) {
			return p
		}
		return filepath.Join(root, p)
	}
	facts := risk.Facts{Cwd: root, Home: filepath.Join(dir, "home"), IsInside: func(p string) bool {
		rel, err := filepath.Rel(root, p)
		return err == nil && filepath.IsLocal(rel)
	}}
	return &Book{
		Root: root, Home: facts.Home, HidesSecrets: func() bool { return hidden },
		Analyse: func(line string) risk.Report { return risk.Analyse(line, facts) },
		Glob:    func(p string) []string { found, _ := filepath.Glob(at(p)); return found },
		Walk: func(dir string) iter.Seq[string] {
			return func(yield func(string) bool) {
				entries, _ := os.ReadDir(at(dir))
				for _, e := range entries {
					if !e.IsDir() && !yield(filepath.Join(at(dir), e.Name())) {
						return
					}
				}
			}
		},
		Real: func(p string) string {
			if real, err := filepath.EvalSymlinks(p); err == nil {
				return real
			}
			return p
		},
	}
}

func verdictIn(t *testing.T, b *Book, preset, line string) policy.Verdict {
	t.Helper()
	p, _ := LookupPreset(preset)
	o, err := b.PolicyFor(p).Judge(t.Context(), policy.Case{Tool: "bash", Plan: tool.Plan{Effects: []tool.Effect{{Kind: tool.Exec, Target: line}}}})
	if err != nil {
		t.Fatal(err)
	}
	return o.Verdict
}

func TestWhatIsAskedWhereSecretsAreHiddenAndWhereNot(t *testing.T) {
	for _, c := range []struct {
		line         string
		hidden, bare policy.Verdict
	}{
		{"cat .env", policy.Ask, policy.Ask},
		{"cat link", policy.Ask, policy.Ask},
		{"cat /proc/self/root/etc/shadow", policy.Ask, policy.Ask},
		{"grep -rn TODO .", policy.Allow, policy.Ask},
		{"rg --hidden TODO", policy.Allow, policy.Ask},
		{"cat .e*", policy.Allow, policy.Ask},
		{"x=.e; cat ${x}nv", policy.Allow, policy.Ask},
		{"for f in .e*; do cat $f; done", policy.Allow, policy.Ask},
		{"git grep --no-index KEY", policy.Ask, policy.Ask}, // what the repository configures is not known here
		{"awk 'BEGIN { ARGV[1] = \".e\" \"nv\"; ARGC = 2 } { print }'", policy.Ask, policy.Ask},
		{"jq -n 'import \"./credentials\" as $d; $d'", policy.Allow, policy.Ask},
		{"jq -f program -n", policy.Allow, policy.Ask},
		{"file -f.env", policy.Ask, policy.Ask},
		{"jq . main.go", policy.Allow, policy.Allow},
		{"cat main.go", policy.Allow, policy.Allow},
		{"ls -la", policy.Allow, policy.Allow},
		// outside the workspace nothing is hidden but known places
		{"cat ../other/.env", policy.Ask, policy.Ask},
		{"cat ../other/.e*", policy.Ask, policy.Ask},
		{"grep -r KEY ../other", policy.Ask, policy.Ask},
		{"grep -d recurse KEY ../other", policy.Ask, policy.Ask},
		{"grep --dir=recurse KEY ../other", policy.Ask, policy.Ask},
		{"grep --rec KEY ../other", policy.Ask, policy.Ask},
		{"diff -rN ../other .", policy.Ask, policy.Ask},
		{"diff ../other/main.go main.go", policy.Allow, policy.Allow},
		{"cat ../third/.coder/log/s/events.jsonl", policy.Ask, policy.Ask},
		{"x=.e; cat ../other/${x}nv", policy.Ask, policy.Ask},
		{"x=$HOME; cat $x/notes", policy.Ask, policy.Ask},
		{"cat ~/.s*/id*", policy.Ask, policy.Ask},
		{"head ~/../other/.e*", policy.Ask, policy.Ask},
	} {
		for _, preset := range []string{"build", "plan"} {
			if got := verdictIn(t, hiding(t, true), preset, c.line); got != c.hidden {
				t.Errorf("%s, hidden, in %s: %v, want %v", c.line, preset, got, c.hidden)
			}
			if got := verdictIn(t, hiding(t, false), preset, c.line); got != c.bare {
				t.Errorf("%s, not hidden, in %s: %v, want %v", c.line, preset, got, c.bare)
			}
		}
	}
}

// TestWhatIsWrittenDownIsReadFirst: in a mode where a line may write unasked it
// is asked about as if it only read; where only lines that only read can be kept
// from secrets, it counts as one from which nothing hides them.
func TestWhatIsWrittenDownIsReadFirst(t *testing.T) {
	for _, line := range []string{"cat .e* >> new", "for f in .e*; do cat $f; done | tee -a new", "x=.e; cat ${x}nv >> new", "grep -rn KEY . >> new"} {
		for name, tt := range map[string]struct {
			hidden, whole bool
			want          policy.Verdict
		}{
			"hidden": {true, true, policy.Allow}, "hidden from lines that only read": {true, false, policy.Ask}, "not hidden": {false, false, policy.Ask},
		} {
			b := hiding(t, tt.hidden)
			b.EnforcesFrozen = func() bool { return tt.whole }
			if got := verdictIn(t, b, "auto-edit", line); got != tt.want {
				t.Errorf("%s, %s: %v, want %v", line, name, got, tt.want)
			}
		}
	}
}

func TestALineNamesOnlyWhatItSays(t *testing.T) {
	b := hiding(t, true)
	env := filepath.Join(b.Root, ".env")
	for line, want := range map[string]bool{
		"cat .env": true, "cat ./.env": true, "cat link": true, "node --env-file=.env x.js": true, "curl -d @.env x": true, "test -s .env && npm start": false,
		"cat .e*": false, "x=.e; cat ${x}nv": false, "ls .env": false, "grep -r KEY .": false, "cat sub/.env": false,
	} {
		if got := slices.Contains(b.NamedFiles(b.Analyse(line)), env); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}

func TestWhatIsFrozen(t *testing.T) {
	b := &Book{Root: "/w", Frozen: []string{"tests/**", "golden/", "*.lock", "a/b.txt"}}
	for file, want := range map[string]bool{
		"tests/x": true, "tests/deep/er/x": true, "golden/y": true, "go.lock": true, "sub/x.lock": true, "a/b.txt": true, "/w/tests/x": true,
		"test/x": false, "src/tests.go": false, "a/c.txt": false, "/elsewhere/x": false,
	} {
		if got := b.IsFrozen(file, false); got != want {
			t.Errorf("%s: %v", file, got)
		}
	}
	for dir, want := range map[string]bool{"tests": true, "golden": true, "tests/deep": true, "sub": false, "a": false} {
		if got := b.IsFrozen(dir, true); got != want {
			t.Errorf("folder %s: %v", dir, got)
		}
	}
}
