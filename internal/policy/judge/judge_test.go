package judge_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"coder/internal/core/chat"
	"coder/internal/host/program"
	"coder/internal/policy"
	"coder/internal/policy/judge"
	"coder/internal/policy/mode"
	"coder/internal/policy/risk"
	"coder/internal/policy/rule"
	"coder/internal/tool"
)

func newJudge(t *testing.T, name string, change func(*judge.Options)) *judge.Judge {
	t.Helper()
	state, err := mode.NewState(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	o := judge.Options{State: state, Root: t.TempDir(), Home: t.TempDir()}
	o.Launcher = program.NewOutside([]string{"PATH=" + os.Getenv("PATH")}, o.Root).WithEnv(nil)
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
	j := newJudge(t, "build", func(o *judge.Options) { o.UserRules = map[string]risk.Patterns{"bash": {"rm *": policy.Deny}} })
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
	allowAll := func(o *judge.Options) { o.UserRules = map[string]risk.Patterns{"bash": {"*": policy.Allow}} }
	unasked := func(o *judge.Options) { o.AutoApprove = true }
	fearless := func(o *judge.Options) { o.AutoApprove, o.AutoApproveRisks = true, true }
	forbidding := func(o *judge.Options) {
		o.Deny = []rule.Spec{{Tool: "bash", On: "git push *"}, {Tool: "bash", On: "make"}}
	}
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
		{"but what this run may not", "yolo", forbidding, run("git push origin"), policy.Deny},
		{"wherever it stands", "yolo", forbidding, run("cd x && if true; then make; fi"), policy.Deny},
		{"or may be meant", "yolo", forbidding, run("$x"), policy.Deny},
		{"and nothing else", "yolo", forbidding, run("rm -rf /; git status"), policy.Allow},
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
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(root, session string) (*judge.Judge, *judge.Memory) {
		j := newJudge(t, "build", func(o *judge.Options) { o.Root, o.Now = root, func() time.Time { return now } })
		m, err := j.OpenMemory(dir, session, []string{"make"})
		if err != nil {
			t.Fatal(err)
		}
		return j, m
	}
	j, m := at(root, "s1")
	concurrent, _ := at(root, "s2")
	if err := m.Add(t.Context(), run("go vet"), policy.ThisProject); err != nil {
		t.Fatal(err)
	}
	if err := m.Add(t.Context(), run("npm run lint"), policy.ThisSession); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"go vet ./...", "make", "npm run lint"} {
		if o := verdict(t, j, run(command)); o.Verdict != policy.Allow {
			t.Errorf("%s: %v", command, o.Verdict)
		}
	}
	later, latersMemory := at(root, "")
	other, _ := at(t.TempDir(), "s1")
	resumed, _ := at(root, "s1")
	if o := verdict(t, later, run("go vet ./...")); o.Verdict != policy.Allow {
		t.Errorf("a later judge forgot: %v", o.Verdict)
	}
	if o := verdict(t, concurrent, run("go vet ./...")); o.Verdict != policy.Allow {
		t.Errorf("a judge that was there already did not hear of it: %v", o.Verdict)
	}
	for _, who := range []*judge.Judge{later, concurrent} {
		if o := verdict(t, who, run("npm run lint")); o.Verdict != policy.Ask {
			t.Errorf("what was said for a session holds in another: %v", o.Verdict)
		}
	}
	if o := verdict(t, resumed, run("npm run lint")); o.Verdict != policy.Allow {
		t.Errorf("what was said for a session is asked again when it goes on: %v", o.Verdict)
	}
	for _, command := range []string{"go vet ./...", "npm run lint"} {
		if o := verdict(t, other, run(command)); o.Verdict != policy.Ask {
			t.Errorf("another project remembers %s: %v", command, o.Verdict)
		}
	}

	list, err := m.List()
	if err != nil || len(list) != 2 || list[0].String() != "commands like go vet …" || list[0].Why != "bash go vet" || !list[0].Time.Equal(now) || list[1].Scope != policy.ThisSession {
		t.Fatalf("%+v, %v", list, err)
	}
	rows := strings.Split(j.Permissions().JoinCells("|"), "\n")
	if last := rows[len(rows)-3]; !strings.HasPrefix(last, "1. always: commands like go vet …|allow|since 2026-01-0") || !strings.HasSuffix(last, "for: bash go vet") {
		t.Errorf("shown as %q", last)
	}
	for _, bad := range []string{"0", "3", "x", "-1", ""} {
		if _, err := m.Revoke(bad); err == nil {
			t.Errorf("%q was revoked", bad)
		}
	}
	if list, err := latersMemory.List(); err != nil || len(list) != 2 || list[1].Session != "s1" {
		t.Fatalf("without a session: %+v, %v", list, err)
	}
	if gone, err := latersMemory.Revoke("1"); err != nil || len(gone) != 1 {
		t.Fatalf("%+v, %v", gone, err)
	}
	for _, who := range []*judge.Judge{j, later, concurrent} {
		if o := verdict(t, who, run("go vet ./...")); o.Verdict != policy.Ask {
			t.Errorf("it was revoked and runs: %v", o.Verdict)
		}
	}
	if gone, err := latersMemory.Revoke("1"); err != nil || len(gone) != 1 || verdict(t, j, run("npm run lint")).Verdict != policy.Ask {
		t.Errorf("it was revoked elsewhere and runs: %+v, %v", gone, err)
	}
	if err := m.Add(t.Context(), run("npm run lint"), policy.ThisSession); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Revoke("all"); err != nil || verdict(t, resumed, run("npm run lint")).Verdict != policy.Ask {
		t.Errorf("all of it was revoked, %v", err)
	}

	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	if len(files) != 1 {
		t.Fatalf("files: %v", files)
	}
	if text, _ := os.ReadFile(files[0]); strings.Contains(string(text), "make") || strings.Contains(string(text), "lint") {
		t.Errorf("what the configuration lists, or what was revoked, is written down: %s", text)
	}
	if err := os.WriteFile(files[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := newJudge(t, "build", func(o *judge.Options) { o.Root = root })
	if _, err := broken.OpenMemory(dir, "", nil); err == nil || verdict(t, broken, run("go vet")).Verdict != policy.Ask {
		t.Errorf("a broken file: %v", err)
	}
}

func TestWhatIsRememberedOfSessionsIsBounded(t *testing.T) {
	dir, root := t.TempDir(), t.TempDir()
	at := func(session string, when int) (*judge.Judge, *judge.Memory) {
		j := newJudge(t, "build", func(o *judge.Options) {
			o.Root, o.Now = root, func() time.Time { return time.Unix(int64(when), 0) }
		})
		m, err := j.OpenMemory(dir, session, nil)
		if err != nil {
			t.Fatal(err)
		}
		return j, m
	}
	const sessions = 203
	for i := range sessions {
		if _, m := at(fmt.Sprint("s", i), i); m.Add(t.Context(), run("go vet"), policy.ThisSession) != nil {
			t.Fatal("not remembered")
		}
	}
	for i, want := range map[int]policy.Verdict{2: policy.Ask, 3: policy.Allow, sessions - 1: policy.Allow} {
		j, _ := at(fmt.Sprint("s", i), 0)
		if o := verdict(t, j, run("go vet")); o.Verdict != want {
			t.Errorf("session %d: %v, want %v", i, o.Verdict, want)
		}
	}
}

func fetch(address, sends string) policy.Case {
	return policy.Case{Tool: "fetch", Plan: tool.Plan{Effects: []tool.Effect{{Kind: tool.Net, Target: address}}, Sends: sends}}
}

func TestOnlyHostsThatThePersonNamedAreFetchedFromUnasked(t *testing.T) {
	for _, mode := range []string{"plan", "build", "default", "auto-edit"} {
		j := newJudge(t, mode, func(o *judge.Options) { o.Hosts = []string{"intranet", "*.corp.example"} })
		m, err := j.OpenMemory(t.TempDir(), "", nil)
		if err != nil {
			t.Fatal(err)
		}
		j.RecordInput(chat.NewUserText(chat.OriginTyped, "summarise https://docs.x.org/a for me"))
		for _, tt := range []struct {
			address, sends string
			want           policy.Verdict
		}{
			{"https://docs.x.org/b", "", policy.Allow},
			{"https://DOCS.x.org./b", "", policy.Allow},
			{"https://intranet/", "", policy.Allow},
			{"https://a.corp.example/", "", policy.Allow},
			{"https://x.org/", "", policy.Ask},
			{"https://evil.org/", "", policy.Ask},
			{"https://docs.x.org.evil.org/", "", policy.Ask},
			{"https://docs.x.org:8443/", "", policy.Ask},
			{"https://docs.x.org@evil.org/", "", policy.Ask},
			{"https://corp.example/", "", policy.Ask},
			{"https://docs.x.org/b", "a body of 3 bytes", policy.Ask},
			{"https://intranet/", "custom headers", policy.Ask},
		} {
			o := verdict(t, j, fetch(tt.address, tt.sends))
			if o.Verdict != tt.want || tt.sends != "" && o.IsWaivable() {
				t.Errorf("%s: %s sending %q: %v (%s)", mode, tt.address, tt.sends, o.Verdict, o)
			}
		}
		if err := m.Add(t.Context(), fetch("https://evil.org/", ""), policy.ThisSession); err != nil {
			t.Fatal(err)
		}
		if o := verdict(t, j, fetch("https://evil.org/other", "")); o.Verdict != policy.Allow || !j.AllowRedirect("https://evil.org/x") {
			t.Errorf("%s: asked again: %v", mode, o.Verdict)
		}
		if o := verdict(t, j, fetch("https://evil.org/other", "a body of 1 bytes")); o.Verdict != policy.Ask {
			t.Errorf("%s: a body went unasked", mode)
		}
		if err := m.Add(t.Context(), fetch("https://b.org/", "a body of 1 bytes"), policy.ThisSession); err == nil {
			t.Errorf("%s: a body was remembered", mode)
		}
		if o := verdict(t, j, run("ls")); o.Verdict != policy.Allow {
			t.Errorf("%s: %v", mode, o.Verdict)
		}
	}
	if o := verdict(t, newJudge(t, "yolo", nil), fetch("https://evil.org/", "a body of 3 bytes")); o.Verdict != policy.Allow {
		t.Errorf("yolo asks: %v", o.Verdict)
	}
}

func TestWhatSteersOthersIsAskedAboutHoweverItIsWritten(t *testing.T) {
	root := ""
	j := newJudge(t, "auto-edit", func(o *judge.Options) {
		root = o.Root
		o.UserRules = map[string]risk.Patterns{"bash": {"*": policy.Allow}}
		if err := os.MkdirAll(filepath.Join(root, ".husky"), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, target := range map[string]string{"hooks": ".husky", "soon": ".github/workflows", "notes.md": "CLAUDE.md"} {
			if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
				t.Fatal(err)
			}
		}
	})
	if _, err := j.OpenMemory(t.TempDir(), "", nil); err != nil {
		t.Fatal(err)
	}
	write := func(path string) policy.Case {
		return policy.Case{Tool: "patch", Plan: tool.Plan{Effects: []tool.Effect{{Kind: tool.Write, Target: "a.go"}, {Kind: tool.Write, Target: path}}}}
	}
	for _, c := range []policy.Case{
		write("CLAUDE.md"), write("sub/.MCP.json"), write(".husky/pre-commit"), write("hooks/pre-commit"), write("soon/ci.yml"), write("notes.md"), write(root + "/.vscode/tasks.json"),
		run("echo a > .github/workflows/ci.yml"), run("echo a >> hooks/pre-commit"), run("ls | tee soon/x"), run("touch hooks/x"), run("cp a .claude/settings.json"), run("mkdir .cursor"), run("sed -i s/a/b/ notes.md"),
	} {
		if o := verdict(t, j, c); o.Verdict != policy.Ask || o.IsWaivable() {
			t.Errorf("%v: %v (%s)", c.Plan.Effects, o.Verdict, o)
		}
	}
	for _, c := range []policy.Case{write("README.md"), write(".editorconfig"), run("echo a > new.txt"), run("make > build.log")} {
		if o := verdict(t, j, c); o.Verdict != policy.Allow {
			t.Errorf("%v: %v (%s)", c.Plan.Effects, o.Verdict, o)
		}
	}
}

func TestPermissionsShowWhatTheJudgeSays(t *testing.T) {
	j := newJudge(t, "plan", func(o *judge.Options) { o.UserRules = map[string]risk.Patterns{"read": {"*.sql": policy.Deny}} })
	rows := make(map[string]string)
	for _, r := range j.Permissions().Rows {
		rows[r[0].Text] = r[1].Text
	}
	for what, want := range map[string]string{
		"read": "allow", "write, edit, patch": "deny", "bash, read-only": "allow", "bash, other": "ask", "secret files": "ask", "your rule read(*.sql)": "deny",
	} {
		if rows[what] != want {
			t.Errorf("%s: %q, want %s", what, rows[what], want)
		}
	}
	if !j.SkipsInSearch("db/a.sql") || j.SkipsInSearch("a.go") {
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
		j := newJudge(t, "plan", func(o *judge.Options) { root, o.Launcher = o.Root, o.Launcher.WithEnv([]string{"HOME=" + o.Home}) })
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
