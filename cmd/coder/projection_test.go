package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// logFiles are the logs in the folders of a pattern, each once: audit.jsonl is a link.
func logFiles(dirs string) (names []string, err error) {
	all, err := filepath.Glob(filepath.Join(dirs, "*.jsonl"))
	for _, name := range all {
		if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() {
			names = append(names, name)
		}
	}
	return names, err
}

// logsOf is every byte of the logs of the sessions in a workspace.
func logsOf(t *testing.T, ws string, ids ...string) string {
	t.Helper()
	var all strings.Builder
	for _, id := range ids {
		names, err := logFiles(filepath.Join(ws, ".coder", "log", id))
		if err != nil || len(names) == 0 {
			t.Fatalf("session %s has no logs: %v", id, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all.WriteString(name + "\n" + string(text))
		}
	}
	return all.String()
}

// agentOf is the mode that a session's snapshot says it is in.
func agentOf(t *testing.T, ws, id string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(ws, ".coder", "sessions", id+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var snap struct {
		Meta struct{ Agent string }
	}
	if err := json.Unmarshal(text, &snap); err != nil {
		t.Fatal(err)
	}
	return snap.Meta.Agent
}

// TestAnExitLeavesOtherSessionsAsTheyAre has sessions in several modes, none of
// them saved since, and ends one after the other in every order.
func TestAnExitLeavesOtherSessionsAsTheyAre(t *testing.T) {
	modes := map[string]string{"one": "plan", "two": "auto-edit", "three": "build"}
	orders := [][]string{
		{"one", "two", "three"}, {"one", "three", "two"}, {"two", "one", "three"},
		{"two", "three", "one"}, {"three", "one", "two"}, {"three", "two", "one"},
	}
	for _, order := range orders {
		t.Run(strings.Join(order, " "), func(t *testing.T) {
			t.Parallel()
			p := newProgram(t)
			script := p.file("../model", "say hello\nrepeat\n")
			run := func(args ...string) {
				t.Helper()
				if _, stderr, code := p.run(append([]string{"-p", "--script", script}, args...)...); code != 0 {
					t.Fatalf("%v: exit %d: %s", args, code, stderr)
				}
			}
			for id, mode := range modes {
				run("--session-id", id, "--mode", mode, "hi")
			}
			for _, id := range order {
				var others []string
				for other := range modes {
					if other != id {
						others = append(others, other)
						if err := os.Remove(filepath.Join(p.ws, ".coder", "sessions", other+".json")); err != nil {
							t.Fatal(err)
						}
					}
				}
				before := logsOf(t, p.ws, others...)
				run("-r", id, "more")
				for _, look := range [][]string{{"sessions"}, {"export", others[0]}, {"audit", others[1]}, {"tasks"}} {
					p.run(look...)
				}
				if after := logsOf(t, p.ws, others...); after != before {
					t.Errorf("the end of %s changed the logs of others:\n%s", id, after)
				}
				for _, other := range others {
					if got := agentOf(t, p.ws, other); got != modes[other] {
						t.Errorf("after %s, %s is told to be in %s", id, other, got)
					}
				}
			}
			for id, mode := range modes {
				run("-r", id, "where are we")
				if got := agentOf(t, p.ws, id); got != mode {
					t.Errorf("%s came back as %s", id, got)
				}
			}
		})
	}
}

// TestASessionComesBackAsItWasWhateverTheClockSays writes every record anew as
// if it were made tomorrow, or long ago.
func TestASessionComesBackAsItWasWhateverTheClockSays(t *testing.T) {
	for name, by := range map[string]time.Duration{"the clock was set back": 48 * time.Hour, "it was long ago": -20 * 365 * 24 * time.Hour} {
		for _, mode := range []string{"plan", "auto-edit"} {
			t.Run(name+" "+mode, func(t *testing.T) {
				t.Parallel()
				p := newProgram(t)
				script := p.file("../model", "say hello\nrepeat\n")
				p.env = append(p.env, "CODER_TEST_CLOCK="+by.String())
				if _, stderr, code := p.run("-p", "--script", script, "--session-id", "s", "--mode", mode, "hi"); code != 0 {
					t.Fatalf("exit %d: %s", code, stderr)
				}
				p.env = p.env[:len(p.env)-1]
				if _, stderr, code := p.run("-p", "--script", script, "-r", "s", "more"); code != 0 {
					t.Fatalf("exit %d: %s", code, stderr)
				}
				if got := agentOf(t, p.ws, "s"); got != mode {
					t.Errorf("it came back as %s", got)
				}
			})
		}
	}
}
