package dialect_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"coder/internal/agent/toolrun"
	"coder/internal/authored/skills"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/host/codeindex"
	"coder/internal/host/lsp"
	"coder/internal/host/workspace"
	"coder/internal/policy"
	"coder/internal/tool"
	"coder/internal/tool/bash"
	"coder/internal/tool/codenav"
	"coder/internal/tool/codesearch"
	"coder/internal/tool/delegate"
	"coder/internal/tool/dialect"
	"coder/internal/tool/files"
	"coder/internal/tool/git"
	"coder/internal/tool/plan"
	"coder/internal/tool/search"
	"coder/internal/tool/skill"
	"coder/internal/tool/web"
)

// toolkit is every tool that the table speaks of, on a small workspace.
func toolkit(t *testing.T) tool.Set {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"a.txt": "one\ntwo\nthree\n", "src/b.go": "package b\n\nfunc b() {}\n",
		"n.ipynb": `{"cells": [{"cell_type": "code", "source": "a"}], "nbformat": 4}`} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.Close() })
	commands, jobs := bash.All(bash.Options{Workspace: ws, Now: time.Now})
	t.Cleanup(func() { _ = jobs.Close() })
	all := commands
	all = append(all, files.All(ws, files.Options{})...)
	all = append(all, search.All(ws, search.Options{})...)
	all = append(all, codesearch.SearchCode(ws, codeindex.New(ws, codeindex.Options{Now: time.Now}), nil))
	all = append(all, web.Fetch(web.Options{}), plan.ExitPlan(plan.ExitOptions{}))
	all = append(all, plan.Question())
	all = append(all, plan.All(convertTodos{})...)
	servers := lsp.New(lsp.Options{Root: dir})
	t.Cleanup(func() { servers.Close() })
	all = append(all, codenav.All(ws, servers))
	all = append(all, git.All(git.Options{Workspace: ws})...)
	all = append(all, skill.Skill(skills.New()))
	all = append(all, delegate.Task(delegate.Options{Agents: []delegate.Agent{{Name: "general"}, {Name: "explore"}}, Default: "general"}))
	set, err := tool.NewSet(all...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// convertTodos is an empty list.
type convertTodos struct{}

func (convertTodos) List() []event.Todo { return nil }

// judge remembers what it is asked about and lets nothing run.
type judge struct{ seen string }

func (j *judge) Judge(_ context.Context, c policy.Case) (policy.Opinion, error) {
	j.seen = strings.TrimSpace(c.Tool + " " + strings.Join(strings.Fields(c.Plan.Title), " "))
	return policy.Opinion{Verdict: policy.Deny}, nil
}

type nowhere struct{}

func (nowhere) Emit(context.Context, event.Record) error { return nil }

func TestWhatModelsSend(t *testing.T) {
	data, err := os.ReadFile("testdata/sent.txt")
	if err != nil {
		t.Fatal(err)
	}
	set, cases, agents := toolkit(t), 0, make(map[string]bool)
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		cell := strings.SplitN(line, " | ", 3)
		i := strings.LastIndex(cell[2], " | ")
		agent, name, args, want := cell[0], cell[1], cell[2][:i], cell[2][i+3:]
		call := chat.ToolCall{ID: "c", Name: name, Args: json.RawMessage(args)}
		if !strings.HasPrefix(args, "{") || !json.Valid([]byte(args)) {
			call.Args, call.Broken = json.RawMessage("{}"), strings.ReplaceAll(args, `\n`, "\n")
			if strings.HasPrefix(args, `"`) {
				call.Broken = args
			}
		}
		var j judge
		var told string
		r := toolrun.Runner{Policy: &j, NewID: func() string { return "q" }, Now: time.Now}
		err := r.Run(t.Context(), toolrun.Round{
			Task: "t", Actor: "main", Tools: set, Calls: []chat.ToolCall{call}, Sink: nowhere{},
			Deliver: func(_ context.Context, o toolrun.Outcome) error { told = o.Result.Text; return nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		if words, refused := strings.CutPrefix(want, "! "); refused {
			if j.seen != "" || !strings.Contains(strings.ReplaceAll(told, `\"`, `"`), words) {
				t.Errorf("%s\n\tis %q and told %s", line, j.seen, told)
			}
		} else if j.seen != want {
			t.Errorf("%s\n\tis %q and told %s", line, j.seen, told)
		}
		cases, agents[agent] = cases+1, true
	}
	t.Logf("%d calls of %d agents", cases, len(agents))
}

// Every row of the table leads to a tool that is there.
func TestTheTableNamesToolsThatExist(t *testing.T) {
	set := toolkit(t)
	for _, name := range dialect.Tools() {
		for _, ours := range dialect.Equivalents(name) {
			if _, ok := set.Lookup(ours); !ok {
				t.Errorf("%s is said to be %s, which is no tool", name, ours)
			}
		}
	}
}
