package judge_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"coder/internal/judge"
	"coder/internal/policy"
	"coder/internal/policy/risk"
	"coder/internal/profile"
	"coder/internal/tool"
)

func newJudge(t *testing.T, mode string, change func(*judge.Options)) *judge.Judge {
	t.Helper()
	state, err := profile.NewState(mode, nil)
	if err != nil {
		t.Fatal(err)
	}
	o := judge.Options{State: state, Root: t.TempDir(), Home: t.TempDir()}
	if change != nil {
		change(&o)
	}
	return judge.New(o)
}

func run(command string) policy.Case {
	return policy.Case{Tool: "bash", Plan: tool.Plan{Effects: []tool.Effect{{Kind: tool.Exec, Target: command}}}}
}

func verdict(t *testing.T, j *judge.Judge, c policy.Case) policy.Opinion {
	t.Helper()
	o, err := j.Judge(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestTheReadingThatAPlanCarriesIsJudged(t *testing.T) {
	j := newJudge(t, "build", func(o *judge.Options) { o.Given = map[string]risk.Patterns{"bash": {"rm *": policy.Deny}} })
	for name, tt := range map[string]struct {
		line risk.Report
		want policy.Verdict
	}{
		"its commands":      {risk.Report{Command: "ls", Simple: []risk.Command{{Name: "rm", Args: []string{"a"}}}}, policy.Deny},
		"its findings":      {risk.Report{Command: "ls", Simple: []risk.Command{{Name: "ls"}}, Findings: []risk.Finding{{Level: risk.Block}}}, policy.Deny},
		"what it only asks": {risk.Report{Command: "ls", Simple: []risk.Command{{Name: "ls"}}}, policy.Ask},
		"not another's":     {risk.Report{Command: "rm a", Simple: []risk.Command{{Name: "rm", Args: []string{"a"}}}}, policy.Allow},
	} {
		c := run("ls")
		c.Plan.Line = tt.line
		if o := verdict(t, j, c); o.Verdict != tt.want {
			t.Errorf("%s: %v (%s), want %v", name, o.Verdict, o, tt.want)
		}
	}
}

func TestModeRulesAndRisksAreWeighedTogether(t *testing.T) {
	allowAll := func(o *judge.Options) { o.Given = map[string]risk.Patterns{"bash": {"*": policy.Allow}} }
	unasked := func(o *judge.Options) { o.Unasked = true }
	fearless := func(o *judge.Options) { o.Unasked, o.Fearless = true, true }
	write := policy.Case{Tool: "write", Plan: tool.Plan{Effects: []tool.Effect{{Kind: tool.Write, Target: "a"}}}}
	tests := []struct {
		name, mode string
		change     func(*judge.Options)
		call       policy.Case
		want       policy.Verdict
	}{
		{"a reader runs", "build", nil, run("ls"), policy.Allow},
		{"another asks", "build", nil, run("make"), policy.Ask},
		{"a rule allows it", "build", allowAll, run("make"), policy.Allow},
		{"but not the risk", "build", allowAll, run("rm a"), policy.Ask},
		{"nor what is refused", "build", allowAll, run("rm -rf /"), policy.Deny},
		{"told to go ahead it passes", "build", unasked, run("make"), policy.Allow},
		{"the risk does not", "build", unasked, run("rm a"), policy.Ask},
		{"in a container it does", "build", fearless, run("rm a"), policy.Allow},
		{"the worst never", "build", fearless, run("rm -rf /"), policy.Deny},
		{"plan changes nothing", "plan", fearless, write, policy.Deny},
		{"and asks about every command", "plan", fearless, run("make"), policy.Ask},
		{"yolo runs everything", "yolo", nil, run("rm -rf /"), policy.Allow},
		{"yolo does not leave the sandbox unasked", "yolo", nil, policy.Case{Tool: "bash", Plan: tool.Plan{Effects: run("ls").Plan.Effects, Unconfined: true}}, policy.Ask},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if o := verdict(t, newJudge(t, tt.mode, tt.change), tt.call); o.Verdict != tt.want {
				t.Errorf("%v (%s), want %v", o.Verdict, o, tt.want)
			}
		})
	}
}

func TestWhatIsRememberedHoldsForOneProjectAndLaterJudges(t *testing.T) {
	dir, root := t.TempDir(), t.TempDir()
	at := func(root string) (*judge.Judge, *judge.Memory) {
		j := newJudge(t, "build", func(o *judge.Options) { o.Root = root })
		m, err := j.Remember(dir, []string{"make"})
		if err != nil {
			t.Fatal(err)
		}
		return j, m
	}
	j, m := at(root)
	if what, err := m.Offer(run("go vet")); err != nil || what != "commands named go" {
		t.Errorf("%q, %v", what, err)
	}
	if err := m.Add(t.Context(), run("go vet")); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"go build", "make"} {
		if o := verdict(t, j, run(command)); o.Verdict != policy.Allow {
			t.Errorf("%s: %v", command, o.Verdict)
		}
	}
	later, _ := at(root)
	other, _ := at(t.TempDir())
	if o := verdict(t, later, run("go build")); o.Verdict != policy.Allow {
		t.Errorf("a later judge forgot: %v", o.Verdict)
	}
	if o := verdict(t, other, run("go build")); o.Verdict != policy.Ask {
		t.Errorf("another project remembers: %v", o.Verdict)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	if len(files) != 1 {
		t.Fatalf("files: %v", files)
	}
	if text, _ := os.ReadFile(files[0]); strings.Contains(string(text), "make") {
		t.Errorf("what the configuration lists was written down: %s", text)
	}
	if err := os.WriteFile(files[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := newJudge(t, "build", func(o *judge.Options) { o.Root = root })
	if _, err := broken.Remember(dir, nil); err == nil || verdict(t, broken, run("go build")).Verdict != policy.Ask {
		t.Errorf("a broken file: %v", err)
	}
}

func TestPermissionsShowWhatTheJudgeSays(t *testing.T) {
	j := newJudge(t, "plan", func(o *judge.Options) { o.Given = map[string]risk.Patterns{"read": {"*.sql": policy.Deny}} })
	rows := make(map[string]string)
	for _, r := range j.Permissions().Rows {
		rows[r[0]] = r[1]
	}
	for what, want := range map[string]string{
		"read": "allow", "write, edit, patch": "deny", "bash, read-only": "allow", "bash, other": "ask", "secret files": "ask", "your rule read(*.sql)": "deny",
	} {
		if rows[what] != want {
			t.Errorf("%s: %q, want %s", what, rows[what], want)
		}
	}
	if !j.Hides("db/a.sql") || j.Hides("a.go") {
		t.Error("searches do not follow the rules about files")
	}
}

// TestARepositoryIsReadUnaskedIfItsProgramsCanBeSwitchedOff asks git itself.
func TestARepositoryIsReadUnaskedIfItsProgramsCanBeSwitchedOff(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	for config, want := range map[string]policy.Verdict{
		"":                                      policy.Allow,
		"[core][filter \"lfs\"] clean = evil\n": policy.Allow,
		"[core] fsmonitor = evil\n":             policy.Allow,
		"[core\n":                               policy.Ask,
		"[core]\n\tworktree = /\n[filter\n":     policy.Ask,
		"[core]\n\tworktree = /usr\n":           policy.Ask,
	} {
		var root string
		j := newJudge(t, "plan", func(o *judge.Options) { root, o.Env = o.Root, []string{"HOME=" + o.Home} })
		if out, err := exec.Command("git", "init", "-q", root).CombinedOutput(); err != nil {
			t.Fatalf("git init: %v\n%s", err, out)
		}
		f, err := os.OpenFile(filepath.Join(root, ".git", "config"), os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString(config)
		}
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		if o := verdict(t, j, run("git status")); o.Verdict != want {
			t.Errorf("%q: %v (%s), want %v", config, o.Verdict, o, want)
		}
	}
}
