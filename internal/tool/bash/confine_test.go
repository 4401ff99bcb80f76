//go:build unix

package bash_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"coder/internal/host/workspace"
	"coder/internal/tool"
	"coder/internal/tool/bash"
)

// through confines every command by running it through a program.
func through(argv ...string) func(context.Context, tool.Line) (bash.Confinement, error) {
	return func(context.Context, tool.Line) (bash.Confinement, error) {
		return bash.Confinement{Wrapper: argv, Summary: "bounds"}, nil
	}
}

func TestACommandRunsWithinItsBoundsUnlessItWasLetOut(t *testing.T) {
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	sh := runner(bash.Options{Workspace: ws, Env: []string{"PATH=/usr/bin:/bin"}, Confine: func(_ context.Context, line tool.Line) (bash.Confinement, error) {
		if line.Original() == "never" {
			return bash.Confinement{}, errors.New("no sandbox")
		}
		return bash.Confinement{
			Wrapper: []string{"/usr/bin/env", "BOUNDS=yes"}, Summary: "writes only here",
			ExplainFailure: func(code int, stderr string) string {
				if code == 3 && strings.Contains(stderr, "no") {
					return "it tried"
				}
				return ""
			},
		}, nil
	}})
	tests := []struct {
		args, confined string
		unconfined     bool
		stdout, said   string
	}{
		{`{"command":"echo $BOUNDS"}`, "writes only here", false, "yes\n", ""},
		{`{"command":"echo $BOUNDS","unconfined":true}`, "", true, "\n", ""},
		{`{"command":"echo no >&2; exit 3"}`, "writes only here", false, "", "it tried: the sandbox may be the reason (writes only here). If the command has to do that, call bash again with unconfined: true; the user is asked, once."},
		{`{"command":"exit 3"}`, "writes only here", false, "", ""},
	}
	for _, tt := range tests {
		call, err := sh.Prepare(t.Context(), json.RawMessage(tt.args))
		if err != nil {
			t.Fatal(err)
		}
		if p := call.Plan(); p.Confined != tt.confined || p.Unconfined != tt.unconfined {
			t.Errorf("%s: confined %q, unconfined %v", tt.args, p.Confined, p.Unconfined)
		}
		res, err := call.Run(t.Context(), io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := json.Marshal(res.Value)
		var got struct{ Stdout, Sandbox string }
		if err := json.Unmarshal(text, &got); err != nil || got.Stdout != tt.stdout || got.Sandbox != tt.said {
			t.Errorf("%s: %s", tt.args, text)
		}
	}
	if _, err := sh.Prepare(t.Context(), json.RawMessage(`{"command":"never"}`)); err == nil {
		t.Error("a command that cannot be confined was planned")
	}
}

// reading is a line that runs in another form than it was written.
type reading struct{ written, runs string }

func (r *reading) Original() string              { return r.written }
func (r *reading) ShellLine() string             { return r.runs }
func (r *reading) Environ(env []string) []string { return append(env, "READ=yes") }

func TestALineIsReadOnceAndThatReadingIsJudgedConfinedAndRun(t *testing.T) {
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	var made []tool.Line
	sh := runner(bash.Options{
		Workspace: ws,
		Analyse: func(c string) tool.Line {
			made = append(made, &reading{c, strings.ReplaceAll(c, "one", "two")})
			return made[0]
		},
		Confine: func(_ context.Context, line tool.Line) (bash.Confinement, error) {
			if line != made[0] {
				t.Error("another reading is confined than was made")
			}
			return bash.Confinement{}, nil
		},
	})
	call, err := sh.Prepare(t.Context(), json.RawMessage(`{"command":"echo one $READ"}`))
	if err != nil {
		t.Fatal(err)
	}
	if e := call.Plan().Effects[0]; e.Target != "echo one $READ" || call.Plan().Line != made[0] {
		t.Errorf("the plan speaks of %q", e.Target)
	}
	res, err := call.Run(t.Context(), io.Discard)
	text, _ := json.Marshal(res.Value)
	if err != nil || !strings.Contains(string(text), `"stdout":"two yes\n"`) {
		t.Errorf("%v: %s", err, text)
	}
	if len(made) != 1 {
		t.Errorf("the line was read %d times", len(made))
	}
}

// TestACommandIsHeldWhileItRuns: it is run through what holds it, which is let go when it
// has ended, however that came.
func TestACommandIsHeldWhileItRuns(t *testing.T) {
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	held := 0
	sh := runner(bash.Options{Workspace: ws, Env: []string{"PATH=/usr/bin:/bin"}, Confine: func(context.Context, tool.Line) (bash.Confinement, error) {
		return bash.Confinement{Wrapper: []string{"/usr/bin/env"}, TightenWrapper: func() ([]string, func()) {
			held++
			return []string{"/usr/bin/env", "HELD=yes"}, func() { held-- }
		}}, nil
	}})
	for _, command := range []string{"echo $HELD", "echo $HELD; exit 3", "echo $HELD; kill $$"} {
		call, err := sh.Prepare(t.Context(), json.RawMessage(`{"command":"`+command+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		result, err := call.Run(t.Context(), io.Discard)
		if r, ok := result.Value.(tool.ShellResult); err != nil || !ok || r.Stdout != "yes\n" || held != 0 {
			t.Errorf("%s: %+v, %v, still held %d times", command, result.Value, err, held)
		}
	}
}
