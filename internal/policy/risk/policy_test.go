package risk_test

import (
	"fmt"
	"strings"
	"testing"

	"coder/internal/host/program"
	"coder/internal/policy"
	"coder/internal/policy/risk"
	"coder/internal/tool"
)

// TestMakingAFileExecutableIsAskedAbout, in every mode that judges commands.
func TestMakingAFileExecutableIsAskedAbout(t *testing.T) {
	writes := []tool.Effect{{Kind: tool.Write, Target: "bin/git"}}
	c := policy.Case{Tool: "patch", Plan: tool.Plan{Effects: writes, Executable: []string{"bin/git"}}}
	o, err := risk.New(facts(), nil).Judge(t.Context(), c)
	if err != nil || o.Verdict != policy.Ask || o.Reasons[0].Text != "makes a file executable: bin/git" {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err := risk.Unchecked(facts()).Judge(t.Context(), c); err != nil || o.Verdict != policy.Allow {
		t.Errorf("unchecked: %+v, %v", o, err)
	}
}

func TestThePolicyJudgesByEffects(t *testing.T) {
	tests := []struct {
		effect tool.Effect
		want   policy.Verdict
	}{
		{tool.Effect{Kind: tool.Exec, Target: "go test ./..."}, policy.Allow},
		{tool.Effect{Kind: tool.Exec, Target: "rm notes.txt"}, policy.Ask},
		{tool.Effect{Kind: tool.Exec, Target: "ls && reboot"}, policy.Deny},
		{tool.Effect{Kind: tool.Exec, Target: "ls '"}, policy.Ask},
		{tool.Effect{Kind: tool.Write, Target: "src/app.py"}, policy.Allow},
		{tool.Effect{Kind: tool.Write, Target: ".gitignore"}, policy.Allow},
		{tool.Effect{Kind: tool.Write, Target: ".git/config"}, policy.Ask},
		{tool.Effect{Kind: tool.Write, Target: "sub/.GIT/hooks/pre-push"}, policy.Ask},
		{tool.Effect{Kind: tool.Write, Target: "git~1/config"}, policy.Ask},
		{tool.Effect{Kind: tool.Write, Target: "sub/.git::$INDEX_ALLOCATION/config"}, policy.Ask},
		{tool.Effect{Kind: tool.Write, Target: "x/objects/info/alternates"}, policy.Ask},
		{tool.Effect{Kind: tool.Write, Target: ".coder/config.json"}, policy.Ask},
		{tool.Effect{Kind: tool.Write, Target: "docs/../AGENTS.md"}, policy.Ask},
		{tool.Effect{Kind: tool.Write, Target: "home/.bashrc"}, policy.Ask},
		{tool.Effect{Kind: tool.Read, Target: ".git/config"}, policy.Allow},
	}
	for _, tt := range tests {
		c := policy.Case{Tool: "any", Plan: tool.Plan{Effects: []tool.Effect{{Kind: tool.Read, Target: "a"}, tt.effect}}}
		o, err := risk.New(facts(), nil).Judge(t.Context(), c)
		if err != nil || o.Verdict != tt.want {
			t.Errorf("%v: %v %v, want %v", tt.effect, o.Verdict, err, tt.want)
		}
		if tt.want == policy.Allow {
			continue
		}
		if len(o.Reasons) == 0 || o.IsWaivable() || o.Reasons[0].By != "risk" {
			t.Errorf("%v: reasons %v must be there and not be waived for good", tt.effect, o.Reasons)
		}
	}
}

func TestTheReasonNamesTheDangerousCommand(t *testing.T) {
	c := policy.Case{Plan: tool.Plan{Effects: []tool.Effect{{Kind: tool.Exec, Target: "ls; rm x"}}}}
	o, err := risk.New(facts(), nil).Judge(t.Context(), c)
	if err != nil || !strings.Contains(o.String(), "matches dangerous command policy") || !strings.Contains(o.String(), "rm x") {
		t.Errorf("%v %v", o, err)
	}
}

func TestPatternsMatchWholeCommands(t *testing.T) {
	tests := []struct {
		pattern, command string
		want             bool
	}{
		{"*", "anything at all", true},
		{"ls", "ls", true},
		{"ls", "ls -l", false},
		{"ls *", "ls", true},
		{"ls *", "ls -l", true},
		{"ls*", "lsof", true},
		{"ls *", "lsof", false},
		{"go test *", "go test ./...", true},
		{"go test *", "go build", false},
		{"go * ./...", "go vet -v ./...", true},
		{"go * ./...", "go vet -v", false},
		{"a*b*c", "axxbyyc", true},
		{"a*b*c", "ac", false},
		{"aba*ba", "aba", false},
		{"git commit -m *", "git commit -m 'x; rm y'", true},
		{"make", "'make'", true},
	}
	for _, tt := range tests {
		r := risk.Analyse(tt.command, facts())
		if got := risk.MatchPattern(tt.pattern, r.Simple[0]); got != tt.want {
			t.Errorf("%q on %q: %v, want %v", tt.pattern, tt.command, got, tt.want)
		}
	}
}

func TestTheLongestPatternWinsForEveryPart(t *testing.T) {
	ps := risk.Patterns{"*": policy.Ask, "go *": policy.Allow, "go run *": policy.Deny, "ls *": policy.Allow, "tail *": policy.Allow, "env *": policy.Allow}
	tests := []struct {
		command, pattern string
		want             policy.Verdict
	}{
		{"go test", "go *", policy.Allow},
		{"go run .", "go run *", policy.Deny},
		{"make", "*", policy.Ask},
		{"go test | tail -3", "go *", policy.Allow},
		{"go test | less", "*", policy.Ask},
		{"ls; go run .", "go run *", policy.Deny},
		{"env go run .", "go run *", policy.Deny},
		{"env make", "*", policy.Ask},
		{"sudo go test", "*", policy.Ask},
		{"go test > new.txt", "go *", policy.Allow}, // the file is judged by itself
		{"go test > /tmp/new.txt", "*", policy.Ask},
		{"ls >> $X", "*", policy.Ask},
		{"go test 2>/dev/null", "go *", policy.Allow},
		{"go test $(date)", "*", policy.Ask},
		{"$X test", "go run *", policy.Deny},
		{"ls '", "go run *", policy.Deny},
	}
	for _, tt := range tests {
		v, p, ok := ps.Verdict(risk.Analyse(tt.command, facts()))
		if !ok || v != tt.want || p != tt.pattern {
			t.Errorf("%q: %v by %q %v, want %v by %q", tt.command, v, p, ok, tt.want, tt.pattern)
		}
	}
	if v, _, ok := (risk.Patterns{"ls *": policy.Allow}).Verdict(risk.Analyse("ls; make", facts())); ok || v != policy.Deny {
		t.Errorf("without a baseline: %v %v", v, ok)
	}
}

func TestWhatOnlyReadsRunsWithTheHelpersOfARepositoryOff(t *testing.T) {
	f := facts()
	f.ReadGit = func(dir string) ([]program.Setting, error) { return []program.Setting{{Key: "in", Value: dir}}, nil }
	const diff = " --no-ext-diff --no-textconv --ignore-submodules=dirty"
	for _, tt := range []struct {
		command, runs string
		settings      int
	}{
		{"ls | wc", "ls | wc", 0},
		{"git diff > new", "git --no-pager diff" + diff + " > new", 1},
		{"git diff > new; ./x", "git diff > new; ./x", 0},
		{"make; git blame a", "make; env 'GIT_ALLOW_PROTOCOL=none' 'GIT_NO_LAZY_FETCH=1' 'GIT_TERMINAL_PROMPT=0' 'GIT_OPTIONAL_LOCKS=0' 'GIT_PAGER=cat' 'GIT_EDITOR=:' " +
			"'GIT_CONFIG_COUNT=1' 'GIT_CONFIG_KEY_0=in' 'GIT_CONFIG_VALUE_0=" + f.Cwd + "' git --no-pager blame --no-textconv a", 0},
		{"cd src && git diff -- a; git status", "cd src && git --no-pager diff" + diff + " -- a; git --no-pager status --ignore-submodules=dirty", 1},
		{`git -C src log -1 # x`, `git --no-pager -C src log` + diff + ` -1 # x`, 1},
		{"git \\\n blame a", "git --no-pager  blame --no-textconv a", 1},
		{"git com\\\nmit", "git commit", 0},
	} {
		r := risk.Analyse(tt.command, f)
		if got := r.ShellLine(); got != tt.runs {
			t.Errorf("%q runs as %q, want %q", tt.command, got, tt.runs)
		}
		env := strings.Join(r.Environ([]string{"A=b", "GIT_DIR=x"}), " ")
		if want := fmt.Sprintf("GIT_CONFIG_COUNT=%d", tt.settings); tt.settings > 0 && !strings.Contains(env, want) || tt.settings == 0 && env != "A=b GIT_DIR=x" {
			t.Errorf("%q runs in %s", tt.command, env)
		}
	}
}

func BenchmarkAnalyse(b *testing.B) {
	for name, command := range map[string]string{
		"short":  "go test ./...",
		"chain":  "cd src && git diff --stat | head -20; grep -rn 'TODO' --include='*.go' . 2>/dev/null | sort -u",
		"nested": `sudo env A=1 timeout 5 bash -c "find . -name '*.o' -exec sh -c 'rm -f \"\$1\"' _ {} \\;"`,
	} {
		b.Run(name, func(b *testing.B) {
			f := facts()
			b.ReportAllocs()
			for b.Loop() {
				risk.Analyse(command, f)
			}
		})
	}
	b.Run("table", func(b *testing.B) {
		rows, f := commandVars(b), facts()
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			risk.Analyse(rows[i%len(rows)].command, f)
			i++
		}
	})
}
