package risk_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"coder/internal/policy"
	"coder/internal/policy/risk"
	"coder/internal/tool"
)

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
		{tool.Effect{Kind: tool.Write, Target: ".coder/config.json"}, policy.Ask},
		{tool.Effect{Kind: tool.Write, Target: "docs/../AGENTS.md"}, policy.Ask},
		{tool.Effect{Kind: tool.Write, Target: "home/.bashrc"}, policy.Ask},
		{tool.Effect{Kind: tool.Read, Target: ".git/config"}, policy.Allow},
	}
	for _, tt := range tests {
		c := policy.Case{Tool: "any", Plan: tool.Plan{Effects: []tool.Effect{{Kind: tool.Read, Target: "a"}, tt.effect}}}
		o, err := risk.New(facts()).Judge(t.Context(), c)
		if err != nil || o.Verdict != tt.want {
			t.Errorf("%v: %v %v, want %v", tt.effect, o.Verdict, err, tt.want)
		}
		if tt.want == policy.Allow {
			continue
		}
		if len(o.Reasons) == 0 || o.Waivable() || o.Reasons[0].By != "risk" {
			t.Errorf("%v: reasons %v must be there and not be waived for good", tt.effect, o.Reasons)
		}
	}
}

func TestTheReasonNamesTheDangerousCommand(t *testing.T) {
	c := policy.Case{Plan: tool.Plan{Effects: []tool.Effect{{Kind: tool.Exec, Target: "ls; rm x"}}}}
	o, err := risk.New(facts()).Judge(t.Context(), c)
	if err != nil || !strings.Contains(o.String(), "matches dangerous command policy") || !strings.Contains(o.String(), "rm x") {
		t.Errorf("%v %v", o, err)
	}
}

func TestWhatAlwaysRemembers(t *testing.T) {
	tests := []struct{ command, want string }{
		{"ls -l", "ls"},
		{"go test ./... | tail -3 && go vet", "go tail"},
		{"./scripts/build.sh", "./scripts/build.sh"},
		{"make 2>/dev/null", "make"},
		{"cargo build; cargo test", "cargo"},
		{"npm test", "npm"},
		{"cp a b && sort a", "cp sort"},
		{"find . -name x | wc -l", "find wc"},
		{"f() { go build; }", "go"},
		{"[[ -f go.mod ]] && make", "[[ make"},
		{"pythonic x && nodemon5", "pythonic nodemon5"},
		{"x=1; make $x", "make"},
		{"dmesg -T | tail", "dmesg tail"},
	}
	for _, tt := range tests {
		names, err := risk.Names(risk.Analyse(tt.command, facts()))
		if err != nil || strings.Join(names, " ") != tt.want {
			t.Errorf("%q: %q %v, want %q", tt.command, names, err, tt.want)
		}
	}
	for _, command := range []string{
		"rm a", "sh x.sh", "bash -c ls", "python3 x.py", "node x.js", "env A=1 make", "xargs wc", "sudo make", "git status", "/usr/bin/git log",
		"./git", "timeout 5 make", "eval ls", "make > new.txt", "echo $(date)", "ls '", "$X", "A=1", "awk 1", "source x", "nice make", "find . -exec make ;", "npm exec make", "ssh host ls",
		"python3.12 x.py", "python3.12", "node20 x.js", "perl5.36 x.pl", "/usr/bin/ruby3.2 x.rb", "bash5 x.sh", "lua5.4 x.lua", "php8.1 x.php", "python.exe x.py",
		"bwrap ls", "gdb ./a.out", "lldb ./a.out", "strace ls", "perf stat ls", "coder", "./coder --version", "/opt/bin/coder -h", "f() { go build; }; f", "g() { ls; }; go vet && g",
		"killall -l", "pkill x", "iptables -L", "nft list ruleset", "ip a", "ifconfig", "kubectl get pods", "helm list", "terraform plan", "docker ps", "podman ps",
		"systemctl status x", "service x status", "crontab -l", "at -l", "sqlite3 a.db", "xargs wc", "awk '{ print }' a", "vim notes.txt", "nvim notes.txt",
		":(){ :|:& };:", "make SHELL=x",
	} {
		if names, err := risk.Names(risk.Analyse(command, facts())); err == nil {
			t.Errorf("%q would be remembered as %q", command, names)
		}
	}
}

func TestRememberedNamesCoverEveryPart(t *testing.T) {
	names := []string{"go", "tail", "./git"}
	for command, want := range map[string]bool{
		"go build": true, "go test | tail": true, "go test && make": false, "go test; rm x": false, "go test > new": false,
		"go test $(date)": false, "./go build": false, "git status": false, "./git status": false, "sudo go build": false, "": false,
	} {
		if got := risk.Remembered(names, risk.Analyse(command, facts())); got != want {
			t.Errorf("%q: %v, want %v", command, got, want)
		}
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
		{"go test > new.txt", "*", policy.Ask},
		{"ls >> new.txt", "*", policy.Ask},
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

func TestGuardSwitchesTheHelpersOfARepositoryOff(t *testing.T) {
	tests := []struct{ command, want string }{
		{"ls | wc", "ls | wc"},
		{"git diff > x", "git diff > x"},
		{"cd src && git diff -- a; git status", "cd src && git{off} diff{diff} -- a; git{off} status"},
		{`'git' -C src log -1 # x`, `'git'{off} -C src log{diff} -1 # x`},
	}
	reported := risk.Guard("git log", risk.Analyse("git log", facts()))
	off := strings.TrimSuffix(strings.TrimPrefix(reported, "git"), " log --no-ext-diff --no-textconv")
	for _, tt := range tests {
		want := strings.NewReplacer("{off}", off, "{diff}", " --no-ext-diff --no-textconv").Replace(tt.want)
		if got := risk.Guard(tt.command, risk.Analyse(tt.command, facts())); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestGuardedGitRunsNoHelper(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	trap := filepath.Join(dir, "trapped")
	sh(t, dir, git+` -c init.defaultBranch=main init -q . && echo a > a.x && echo '*.x diff=x' > .gitattributes && git add -A &&
		git -c user.name=n -c user.email=e commit -qm one && echo b > a.x &&
		git config core.fsmonitor 'touch trapped; false' && git config diff.external 'touch trapped; true' && git config diff.x.textconv 'touch trapped; cat'`)
	for _, command := range []string{"git status", "git diff", "git log -p -1", "git show HEAD", "git diff-files -p", "git ls-files -m"} {
		r := risk.Analyse(command, facts())
		if !r.ReadOnly {
			t.Errorf("%q is not read-only", command)
		}
		sh(t, dir, risk.Guard(command, r))
		if found, _ := filepath.Glob(trap); len(found) > 0 {
			t.Fatalf("%q ran a helper", command)
		}
	}
	sh(t, dir, "git diff")
	if found, _ := filepath.Glob(trap); len(found) == 0 {
		t.Error("the trap does not work")
	}
}

func sh(t *testing.T, dir, command string) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", command)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
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
		rows, f := commands(b), facts()
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			risk.Analyse(rows[i%len(rows)].command, f)
			i++
		}
	})
}
