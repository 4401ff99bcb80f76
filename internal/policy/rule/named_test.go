package rule

import (
	"strings"
	"testing"

	"coder/internal/policy"
	"coder/internal/policy/risk"
)

// TestWhatGitShowsOfFilesIsKnown, whatever letters are joined and whatever else is asked for.
func TestWhatGitShowsOfFilesIsKnown(t *testing.T) {
	for line, want := range map[string]bool{
		"log -p": true, "log -wp": true, "log -bu -3": true, "log -sp": true, "log -zU9": true,
		"log --check": true, "log -O/dev/null -Rp": true, "log -L1,9:a": true,
		"show": true, "show --stat -wp": true, "show -s -ap": true, "show --stat --check": true,
		"diff --stat --check": true, "diff-tree -s -wp HEAD": true,
		"status -v": true, "status -svb": true, "status --verbose": true, "reflog -wp": true, "stash show": true,
		"log": false, "log -5": false, "log --stat": false, "log -Spassword": false,
		"log -n5 -w": false, "log --oneline --graph": false, "show --stat": false, "show -s": false,
		"diff --stat": false, "diff --name-only -w": false, "status": false, "status -sb": false,
		"status -uno": false, "branch -v": false,
	} {
		if got := showsContent(strings.Fields(line)); got != want {
			t.Errorf("git %s: %v", line, got)
		}
	}
}

func TestAWordNamesFilesInEveryForm(t *testing.T) {
	for word, want := range map[string]string{
		"a.txt": "a.txt", "@a.txt": "a.txt", "HEAD:a.txt": "HEAD:a.txt a.txt", "HEAD:": "HEAD:", "": "",
		"{a,b}.txt": "{a,b}.txt a.txt b.txt", "{a": "{a",
		"-f": "", "--file": "", "--file=a.txt": "a.txt", "-fa": "a", "-fa.txt": ".txt a.txt",
		"-xzf./a": "./a zf./a", "-f/a": "/a",
	} {
		if got := strings.Join(plainWords(word), " "); got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
}

func TestLettersOfOptionsAreFoundInOneWord(t *testing.T) {
	for word, want := range map[string]bool{
		"-p": true, "-wp": true, "-Sp": false, "--p": false, "-": false, "p": false, "-w": false,
	} {
		if got := hasCombinedFlag(word, "p", "S"); got != want {
			t.Errorf("%s: %v", word, got)
		}
	}
}

func TestALineLeavesTheWorkspaceByPathOrVariable(t *testing.T) {
	b := &Book{Root: "/w", Home: "/home/u"}
	for line, want := range map[string]bool{
		"/etc/x": true, "cat /etc/passwd": true, "cat '/etc/x'": true, "x=/etc; cat": true,
		"cat ../a": true, "cat ~/a": true,
		"echo $HOME": true, "echo ${HOME}": true, "echo $_": true, "cat a >/tmp/b": true,
		"/w/a": false, "cat /w/a": false, "cat a/b": false, "cat a 2>/dev/null": false,
		"echo $x": false, "echo $": false, "": false,
	} {
		if got := b.leavesWorkspace(line); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}

func TestASearchCoversFolders(t *testing.T) {
	for line, want := range map[string]string{
		"grep -r KEY a b": "a b hidden", "grep -r KEY": ". hidden", "grep -r": ". hidden",
		"grep KEY a": "", "grep -rf words a": "words a hidden",
		"grep -r --regexp=KEY a": "a hidden", "grep --recursive KEY a": "a hidden", "rgrep KEY a": "a hidden",
		"rg KEY a": "a", "rg --hidden KEY a": "a hidden", "rg -u KEY": ". hidden", "rg -e KEY a": "KEY a",
		"diff a b": "a b hidden", "git grep KEY": "", "git diff --no-index a b": "diff a b hidden", "cat a": "",
	} {
		words := strings.Fields(line)
		dirs, hidden := searchedFolders(risk.Command{Name: words[0], Args: words[1:]})
		if hidden && len(dirs) > 0 {
			dirs = append(dirs, "hidden")
		}
		if got := strings.Join(dirs, " "); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

func TestGitShowsTrackedSecretsBelowItsPaths(t *testing.T) {
	b := &Book{Root: "/w", Tracked: func() []string { return []string{"a/.env", "b/.env"} }}
	for line, want := range map[string]string{
		"git diff": "a/.env b/.env", "git diff -- a": "a/.env", "git diff -- b/.env": "b/.env", "git diff -- c": "",
		"git diff -- *": "a/.env b/.env", "git diff --": "a/.env b/.env", "git status": "", "cat a": "",
	} {
		words := strings.Fields(line)
		if got := strings.Join(b.shownByGit(risk.Command{Name: words[0], Args: words[1:]}), " "); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	b.Tracked = nil
	if got := b.shownByGit(risk.Command{Name: "git", Args: []string{"diff"}}); got != nil {
		t.Errorf("without a list: %q", got)
	}
}

// TestRulesAcceptTheRisksTheyName: a rule for a program and its action accepts what they send out, a rule that is the
// line accepts everything.
func TestRulesAcceptTheRisksTheyName(t *testing.T) {
	b := hiding(t, true)
	b.Lines = []string{"git push *", "curl *", "make deploy"}
	for line, want := range map[string][2]bool{
		"git push origin":          {true, false},
		"ls; git push":             {true, false},
		"git push && git fetch":    {false, false},
		"curl x.org":               {false, false},
		"make deploy":              {true, true},
		" make deploy ":            {true, true},
		"make deploy > log":        {true, false},
		"make $(cat a)":            {false, false},
		"A=1 make deploy":          {false, false},
		"PATH=/x:$PATH git push a": {false, false},
		"":                         {false, false},
	} {
		if outward, all := b.WaivedRisks("bash", b.Analyse(line)); [2]bool{outward, all} != want {
			t.Errorf("%q: sends out %v, everything %v", line, outward, all)
		}
	}
}

// TestAnUnknownLineIsNotAllowedAsAWhole, even if a rule is the line itself.
func TestAnUnknownLineIsNotAllowedAsAWhole(t *testing.T) {
	p, _ := LookupPreset("build")
	for _, tt := range []struct {
		unknown bool
		rule    string
		want    policy.Verdict
	}{
		{false, "LD_PRELOAD=x make", policy.Allow}, {true, "LD_PRELOAD=x make", policy.Ask}, {false, "make", policy.Ask},
	} {
		b := hiding(t, true)
		b.Lines = []string{tt.rule}
		r := risk.Report{Command: "LD_PRELOAD=x make", SetVars: []string{"LD_PRELOAD"}, Unknown: tt.unknown,
			Simple: []risk.Command{{Name: "make", Exact: true}}}
		if f := b.judgeLine(p, "bash", r); f.verdict != tt.want {
			t.Errorf("unknown %v, rule %q: %v", tt.unknown, tt.rule, f.verdict)
		}
	}
}

// TestADenialOfARunIsFinal, whoever wrote it.
func TestADenialOfARunIsFinal(t *testing.T) {
	for _, from := range []string{"", "/etc/coder/managed.json"} {
		f := newDenial(Spec{Tool: "bash", From: from})
		if f.verdict != policy.Deny || !f.notWaivable || !strings.Contains(f.rule, from) {
			t.Errorf("from %q: %+v", from, f)
		}
	}
}

func TestAnAddressThatCannotBeReadMatchesNoHost(t *testing.T) {
	for address, want := range map[string]bool{
		"https://x.org/a": true, "https://a.x.org": true, "https://x.org.evil": false, "://": false, "http://[": false,
	} {
		if got := matchesHost("domain:x.org", address); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
}
