package verify

import (
	"fmt"
	"slices"
	"testing"

	"coder/internal/policy/mode"
	"coder/internal/tool"
)

// wrote is a turn in a Go project that wrote a file, in a folder whose checks are asked about.
func wrote(change func(*Turn)) Turn {
	t := Turn{
		Work:  new(Work),
		Facts: Facts{When: mode.Automatic, Enabled: true, BashAllowed: true, MaxAttempts: 2},
		Input: Input{
			Exists:    func(p string) bool { return p == "go.mod" },
			Installed: func(string) bool { return true },
		},
		TurnedDown: func(string) string { return "" },
		Asks:       func(string) bool { return true },
	}
	t.Wrote("a.go")
	change(&t)
	return t
}

func TestWhatTheCheckOfATurnIs(t *testing.T) {
	const check = "go test ./..."
	failed := `{"exit_code":1,"stdout":"--- FAIL"}`
	passes := Check{Command: check, Edited: true}
	turnedDown := func(string) string { return "no" }
	for name, tt := range map[string]struct {
		change func(*Turn)
		want   string // the command, or what is said
	}{
		"a check":                      {func(*Turn) {}, check},
		"nobody asked in this mode":    {func(t *Turn) { t.When = mode.OnRequest }, ""},
		"asked for":                    {func(t *Turn) { t.When, t.UserText = mode.OnRequest, "fix it and run the tests" }, check},
		"no shell":                     {func(t *Turn) { t.BashAllowed = false }, string(NoBash)},
		"no tests, please":             {func(t *Turn) { t.UserText = "fix it, do not run tests" }, "you asked for no tests to be run"},
		"no project":                   {func(t *Turn) { t.Exists = func(string) bool { return false } }, "no check is known for what was edited"},
		"no project, but checked":      {func(t *Turn) { t.Exists, t.Last = func(string) bool { return false }, passes }, ""},
		"the model ran it":             {func(t *Turn) { t.Ran(check, false, `{"exit_code":0}`) }, ""},
		"and wrote then":               {func(t *Turn) { t.Ran(check, false, `{"exit_code":0}`); t.Wrote("b.go") }, check},
		"it failed for the model":      {func(t *Turn) { t.Ran(check, true, failed); t.Last = Check{Command: check, ExitCode: 1, Edited: true} }, check + " known 1"},
		"and the model wrote then":     {func(t *Turn) { t.Ran(check, true, failed); t.Wrote("b.go") }, check},
		"it stands from before":        {func(t *Turn) { t.Last = passes }, ""},
		"which is not enough if asked": {func(t *Turn) { t.Last, t.UserText = passes, "run the tests" }, check},
		"turned down":                  {func(t *Turn) { t.TurnedDown = turnedDown }, "no"},
		"turned down, but trusted":     {func(t *Turn) { t.TurnedDown, t.Trusted = turnedDown, true }, check},
		"turned down, but asked for":   {func(t *Turn) { t.TurnedDown, t.UserText = turnedDown, "run the tests" }, check},
		"turned down, now allowed":     {func(t *Turn) { t.TurnedDown, t.Asks = turnedDown, func(string) bool { return false } }, check},
		"no program":                   {func(t *Turn) { t.Installed = func(string) bool { return false } }, check + " known 127"},
		"no program, run all the same": {func(t *Turn) { t.Installed, t.Trusted = func(string) bool { return false }, true }, check},
	} {
		n := wrote(tt.change).Next()
		got := n.Command
		if n.Known {
			got += fmt.Sprint(" known ", n.Result.ExitCode)
		}
		if len(n.Notices) > 0 {
			got += n.Notices[len(n.Notices)-1]
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestWhatACheckComesTo(t *testing.T) {
	var w Work
	failing := tool.ShellResult{ExitCode: 1, Stdout: "--- FAIL: TestA"}
	for i, want := range []struct {
		again  bool
		notice string
	}{
		{true, "x failed; the model repairs it (attempt 1 of 2)"}, {true, "x failed; the model repairs it (attempt 2 of 2)"},
		{false, "x still fails after 2 attempts to repair it"},
	} {
		if a := w.Judge("x", failing, 2); a.Again != want.again || !slices.Equal(a.Notices, []string{want.notice}) || a.Message == "" || a.Passed {
			t.Errorf("time %d: %+v", i+1, a)
		}
	}
	if a := new(Work).Judge("x", failing, 0); a.Again || a.Notices[0] != "x fails, and the settings let nothing be repaired" {
		t.Errorf("no repairs: %+v", a)
	}
	if a := w.Judge("x", tool.ShellResult{ExitCode: 127}, 2); a.Again || a.Message != "" || a.Notices[0] != BestEffort {
		t.Errorf("not installed: %+v", a)
	}
	if a := w.Judge("x", tool.ShellResult{}, 2); !a.Passed || a.Message != "" {
		t.Errorf("passed: %+v", a)
	}
}
