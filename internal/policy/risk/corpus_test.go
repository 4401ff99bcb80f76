package risk_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"coder/internal/host/gitsafe"
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
		ReadGit:  func(string) ([]gitsafe.Setting, error) { return nil, nil },
		Home:     "/home/someone", Cwd: root,
	}
}

type row struct {
	ID, Command, Class, Tier string
	PlanExpect               string   `json:"plan_expect"`
	RiskExpect               string   `json:"risk_expect"`
	PlanAccept               []string `json:"plan_accept"`
	RiskAccept               []string `json:"risk_accept"`
}

// TestLabelledCommands scores a collection of labelled commands, if there is one
// beside the project.
func TestLabelledCommands(t *testing.T) {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	var data []byte
	for ; data == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		data, _ = os.ReadFile(filepath.Join(dir, "shared", "commands", "corpus.jsonl"))
	}
	if data == nil {
		t.Skip("no collection of labelled commands beside the project")
	}
	for line := range strings.Lines(string(data)) {
		var r row
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		score(t, r)
	}
}

func score(t *testing.T, r row) {
	t.Helper()
	got := risk.Analyse(r.Command, facts())
	plan := "ask"
	if got.ReadOnly {
		plan = "allow"
	}
	complain := t.Errorf
	if r.Tier == "depth" {
		complain = t.Logf
	}
	if !slices.Contains(append(r.PlanAccept, r.PlanExpect), plan) {
		complain("%s %s: plan %s, want %s: %q %v", r.ID, r.Class, plan, r.PlanExpect, r.Command, got.Findings)
	}
	if !slices.Contains(append(r.RiskAccept, r.RiskExpect), got.Level.String()) {
		complain("%s %s: risk %s, want %s: %q %v", r.ID, r.Class, got.Level, r.RiskExpect, r.Command, got.Findings)
	}
}
