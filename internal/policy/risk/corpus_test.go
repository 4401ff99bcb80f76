package risk_test

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"coder/internal/host/program"
	"coder/internal/policy/risk"
)

// files are those of the workspace that commands in tests are judged against.
var files = strings.Fields(`README.md LICENSE Makefile go.mod go.sum main.go main_test.go package.json config.yaml notes.txt out.txt
	app.log data.csv .env .gitignore Dockerfile src src/app.py src/lib src/lib/a.go internal internal/server docs docs/guide.md docs/plan.md
	scripts scripts/build.sh testdata build build/old.o tmp .coder .coder/config.json link.txt cmd cmd/tool cmd/tool/main.go .git .git/config`)

const root = "/home/someone/ws"

func facts() risk.Facts {
	return risk.Facts{
		Exists: func(p string) bool {
			rel, ok := strings.CutPrefix(p, root+"/")
			return p == root || p == "/" || p == "/etc" || p == "/tmp" || p == "/dev" || p == "/etc/hosts" || ok && slices.Contains(files, rel)
		},
		IsInside: func(p string) bool { return p == root || strings.HasPrefix(p, root+"/") },
		ReadGit:  func(string) ([]program.Setting, error) { return nil, nil },
		Home:     "/home/someone", Cwd: root,
	}
}

//go:embed testdata/labelled.jsonl
var labelled string

// TestLabelledCommands judges commands that people have labelled: what plan
// mode does with each, and its risk; the first label is the best.
func TestLabelledCommands(t *testing.T) {
	for line := range strings.Lines(labelled) {
		var want struct {
			Plan, Risk []string
			Depth      bool // seeing it takes more than the written rule
			Command    string
		}
		if err := json.Unmarshal([]byte(line), &want); err != nil {
			t.Fatal(err)
		}
		complain := t.Errorf
		if want.Depth {
			complain = t.Logf
		}
		got := risk.Analyse(want.Command, facts())
		plan := "ask"
		if got.ReadOnly {
			plan = "allow"
		}
		if !slices.Contains(want.Plan, plan) {
			complain("plan %s, want %s: %q %v", plan, want.Plan, want.Command, got.Findings)
		}
		if !slices.Contains(want.Risk, got.Level.String()) {
			complain("risk %s, want %s: %q %v", got.Level, want.Risk, want.Command, got.Findings)
		}
	}
}
