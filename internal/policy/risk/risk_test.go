package risk_test

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"coder/internal/host/program"
	"coder/internal/policy/risk"
)

//go:embed testdata/commands.txt
var table string

type judged struct {
	level    string
	readOnly bool
	command  string
}

var signs = strings.NewReplacer("␤", "\n", "␍", "\r", "␛", "\x1b")

func commandVars(t testing.TB) (rows []judged) {
	for line := range strings.Lines(table) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		parts := strings.SplitN(line, " ", 3)
		if len(parts) != 3 || parts[1] != "r" && parts[1] != "-" {
			t.Fatalf("not a row: %q", line)
		}
		rows = append(rows, judged{parts[0], parts[1] == "r", signs.Replace(parts[2])})
	}
	return rows
}

func TestTheTableOfCommands(t *testing.T) {
	for _, row := range commandVars(t) {
		r := risk.Analyse(row.command, facts())
		if r.Level.String() != row.level || r.ReadOnly != row.readOnly {
			t.Errorf("%q: %v read-only=%v, want %s %v %v", row.command, r.Level, r.ReadOnly, row.level, row.readOnly, r.Findings)
		}
		if (r.Level > risk.None) != (len(r.Findings) > 0) {
			t.Errorf("%q: %v with findings %v", row.command, r.Level, r.Findings)
		}
	}
}

// TestBashIsReadAsBash: what only bash understands is judged as bash runs it, and
// differs if another shell may run it.
func TestBashIsReadAsBash(t *testing.T) {
	for _, tt := range []struct {
		command   string
		any, bash bool // it only reads
	}{
		{"ls |& cat", false, true},
		{"[[ -f go.mod && -d src ]]", false, true},
		{"[[ $x == a* || ! -e b ]] && ls", false, true},
		{"[[ (-f a) ]]", false, true},
		{"[[ $x =~ ^a ]] && ls", false, true},
		{"time { ls; }", false, true},
		{"ls &>/dev/null && pwd", true, true},
		{"sh -c '[[ -f a && -d b ]]'", false, false},
		{"[[ -v x ]]", false, false},
		{"[[ $x -gt 1 ]]", false, false},
		{"[[ $(ls) == a ]]", false, false},
		{"[[ -f a && $(rm a) ]]", false, false},
		{"ls &> log", false, false},
		{"echo @(a|b)", false, false},
		{"((x++))", false, false},
	} {
		f := facts()
		if r := risk.Analyse(tt.command, f); r.ReadOnly != tt.any {
			t.Errorf("%q in any shell: read-only=%v (%s)", tt.command, r.ReadOnly, r.Why)
		}
		f.Bash = true
		if r := risk.Analyse(tt.command, f); r.ReadOnly != tt.bash {
			t.Errorf("%q in bash: read-only=%v (%s)", tt.command, r.ReadOnly, r.Why)
		}
	}
	names := func(bash bool, command string) (all string) {
		f := facts()
		f.Bash = bash
		for _, c := range risk.Analyse(command, f).Simple {
			all += c.Name + ";"
		}
		return all
	}
	for command, want := range map[string][2]string{ // in any shell, in bash
		"make &>log rm a":           {"make;rm;", "make;"},
		"sh -c 'make &>log rm a'":   {"sh;make;rm;", "sh;make;rm;"},
		"bash -c 'make &>log rm a'": {"bash;make;", "bash;make;"},
	} {
		if got := [2]string{names(false, command), names(true, command)}; got != want {
			t.Errorf("%q runs %v, want %v", command, got, want)
		}
	}
}

func TestNoFactsMeansTheWorst(t *testing.T) {
	for command, want := range map[string]risk.Level{"echo a > anything": risk.Approve, "ls": risk.None, "rm -rf /": risk.Block} {
		if got := risk.Analyse(command, risk.Facts{}); got.Level != want {
			t.Errorf("%q: %v, want %v", command, got.Level, want)
		}
	}
	for _, command := range []string{"git status", "cd src && ls"} {
		if risk.Analyse(command, risk.Facts{}).ReadOnly {
			t.Errorf("%q counts as read-only although nothing is known", command)
		}
	}
}

// unlessIn knows how to read any repository but that in one directory.
func unlessIn(bad string) func(string) ([]program.Setting, error) {
	return func(dir string) ([]program.Setting, error) {
		if dir == bad {
			return nil, errors.New("it cannot be read safely")
		}
		return nil, nil
	}
}

func TestARepositoryThatRunsProgramsIsNotJustRead(t *testing.T) {
	f := facts()
	f.ReadGit = unlessIn(root + "/src/lib")
	for _, command := range []string{"git -C src/lib diff", "git -C src -C lib diff", "cd src/lib && git diff", "cd src; git -C lib diff"} {
		if risk.Analyse(command, f).ReadOnly {
			t.Errorf("%q counts as read-only although that repository configures filters", command)
		}
	}
	if !risk.Analyse("git diff", f).ReadOnly {
		t.Error("git diff elsewhere does not")
	}
	if !risk.Analyse("ls", f).ReadOnly {
		t.Error("ls does not")
	}
}

// TestAProjectThatChoosesProgramsIsNotAskedForTheirVersions: behind a name may
// stand a version manager that runs what a file of the project says.
func TestAProjectThatChoosesProgramsIsNotAskedForTheirVersions(t *testing.T) {
	for _, tt := range []struct {
		line, file string
		reads      bool
	}{
		{"node --version", "", true}, {"python3 -V && ls", "", true}, {"node --version", "/w/.tool-versions", false}, {"python3 -V", "/w/.python-version", false},
		{"cd src && ruby -v", "/w/.ruby-version", false}, {"cd src && node -v", "/w/src/mise.toml", false}, {"ls", "/w/.tool-versions", true}, {"npm -v", "/.tool-versions", true},
	} {
		f := risk.Facts{
			Cwd: "/w", IsInside: func(p string) bool { return p == "/w" || strings.HasPrefix(p, "/w/") },
			Exists: func(p string) bool { return p == tt.file || p == "/w/src" },
		}
		if got := risk.Analyse(tt.line, f).ReadOnly; got != tt.reads {
			t.Errorf("%s with %q: only reads: %v", tt.line, tt.file, got)
		}
	}
}

func TestAShellThatMayHaveStayedIsJudgedThere(t *testing.T) {
	f := facts()
	f.ReadGit = unlessIn(root)
	for command, want := range map[string]bool{
		"cd docs && git diff": true, "cd docs; git diff": true,
		"cd docs &>/dev/null && git diff": false, "cd docs &>/dev/null; git diff": false,
		"time cd docs; git diff": false, "nice cd docs; git diff": false, "ls | xargs; git diff": false,
	} {
		if got := risk.Analyse(command, f).ReadOnly; got != want {
			t.Errorf("%q: read-only=%v, want %v", command, got, want)
		}
	}
}

func TestWhyItIsNotReadOnly(t *testing.T) {
	f := facts()
	f.ReadGit = unlessIn(root + "/src")
	for command, want := range map[string]string{
		"ls":                         "",
		"git diff":                   "",
		"git -C src diff":            "git may run what the repository configures",
		"ls && git commit -m x":      "git commit",
		"make":                       "make",
		"./run.sh a":                 "./run.sh a",
		"ls | sort -o new.txt":       "the output goes to a file",
		"ls > new.txt":               "the output goes to a file",
		"ls &":                       "continues in the background",
		"cd / && ls":                 "it goes outside the workspace, or to an unknown place",
		"FOO=1 ls":                   "it sets FOO",
		"rm a":                       "matches dangerous command policy (rm removes files)",
		"x=1":                        "runs no known command",
		"timeout 5 npm run build":    "npm run",
		"ls '":                       "could not parse the shell syntax: what begins at line 1, column 4 is not closed",
		"touch \x1b[2Ka":             "contains control characters",
		"\x1b[2Ktouch\u202e a && ls": "contains control characters",
	} {
		if r := risk.Analyse(command, f); r.Why != want || r.ReadOnly != (want == "") {
			t.Errorf("%q: read-only=%v, why %q, want %q", command, r.ReadOnly, r.Why, want)
		}
	}
	for _, row := range commandVars(t) {
		if r := risk.Analyse(row.command, facts()); r.ReadOnly != (r.Why == "") || strings.ContainsAny(r.Why, "\x1b\n\r") {
			t.Errorf("%q: read-only=%v, why %q", row.command, r.ReadOnly, r.Why)
		}
	}
}

func TestWhatVariablesHoldMayBeRead(t *testing.T) {
	for _, command := range []string{"x=.env; cat $x", "for f in .env; do cat $f; done"} {
		if r := risk.Analyse(command, facts()); !slices.Equal(r.Reads, []string{root + "/.env"}) {
			t.Errorf("%q reads %q", command, r.Reads)
		}
	}
	for command, want := range map[string]bool{"find . -exec cat {} +": true, "ls | xargs cat": true, "ls | nice cat": false} {
		r := risk.Analyse(command, facts())
		if last := r.Simple[len(r.Simple)-1]; last.Name != "cat" || last.AddsArgs != want {
			t.Errorf("%q: %+v", command, last)
		}
	}
}

func TestEveryCommandIsFound(t *testing.T) {
	r := risk.Analyse(`A=1 env B=2 go test ./... | tee -a log && sh -c "make 'all of it'"`, facts())
	var got []string
	for _, c := range r.Simple {
		got = append(got, c.String())
	}
	want := []string{"env B=2 go test ./...", "go test ./...", "tee -a log", "sh -c make 'all of it'", "make all of it"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if !r.Simple[0].IsWrapper || r.Simple[1].IsWrapper {
		t.Error("which of them wraps another is not told")
	}
	if want := []string{root + "/log"}; !slices.Equal(r.Writes, want) {
		t.Errorf("writes %q, want %q", r.Writes, want)
	}
	if r := risk.Analyse("cd docs && wc < guide.md", facts()); !slices.Equal(r.Reads, []string{root + "/docs/guide.md"}) {
		t.Errorf("reads %q", r.Reads)
	}
}

func TestFindingsAreSafeToShow(t *testing.T) {
	r := risk.Analyse("rm \x1b[2Ka\u202eb"+strings.Repeat(" x", 5000), facts())
	for _, f := range r.Findings {
		if strings.ContainsAny(f.String(), "\x1b\u202e") || len(f.String()) > 1000 {
			t.Errorf("shown as %q", f)
		}
	}
}

// manyFunctions run one another in turn, the last one the first.
func manyFunctions(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "f%d()(f%d);", i, (i+1)%n)
	}
	return b.String()
}

func TestHugeCommandsAreNotJudgedAtLeisure(t *testing.T) {
	for _, command := range []string{
		strings.Repeat("(", 60_000), strings.Repeat("ls;", 25_000), strings.Repeat("$(", 30_000), strings.Repeat("eval ", 12_000) + "ls",
		strings.Repeat("env ", 10_000) + "ls", strings.Repeat("if ", 15_000),
		strings.Repeat("xargs ", 10_000) + "ls", strings.Repeat("find -exec xargs ", 3_000), strings.Repeat("xargs -I{} parallel {} ", 2_000),
		manyFunctions(4_000), strings.Repeat("f(){ ", 10_000), strings.Repeat("awk '{print|/", 4_000),
	} {
		if r := risk.Analyse(command, facts()); r.ReadOnly || r.Level == risk.None {
			t.Errorf("%.20q… is %v", command, r.Level)
		}
	}
	if r := risk.Analyse(strings.Repeat("ls;", 5_000)+"reboot", facts()); r.Level != risk.Block {
		t.Errorf("many commands hide the last one: %v", r.Level)
	}
}
