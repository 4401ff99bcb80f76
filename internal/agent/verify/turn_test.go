package verify

import (
	"fmt"
	"strings"
	"testing"

	"coder/internal/core/event"
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
		"no tests, please":             {func(t *Turn) { t.UserText = "fix it, do not run tests" }, "you asked not to run tests"},
		"no project":                   {func(t *Turn) { t.Exists = func(string) bool { return false } }, "no check found for the edits"},
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
		"no program, run anyway":       {func(t *Turn) { t.Installed, t.Trusted = func(string) bool { return false }, true }, check},
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
	judged := func(w *Work, r tool.ShellResult, most int) string {
		said, again := w.Judge("x", r, most)
		var texts []string
		for _, e := range said {
			switch e := e.(type) {
			case event.Notice:
				texts = append(texts, string(e.Level)+": "+e.Text)
			case event.MessageAdded:
				texts = append(texts, "message")
			}
		}
		return fmt.Sprint(strings.Join(texts, ", "), " ", again)
	}
	for _, tt := range []struct {
		w    *Work
		r    tool.ShellResult
		most int
		want string
	}{
		{&w, failing, 2, "warn: x failed, fixing (1 of 2), message true"},
		{&w, failing, 2, "warn: x failed, fixing (2 of 2), message true"},
		{&w, failing, 2, "message, warn: x still fails after 2 attempts to fix it false"},
		{&w, tool.ShellResult{ExitCode: 127}, 2, "warn: best-effort, warn: x could not verify the change: the command is not installed false"},
		{&w, tool.ShellResult{}, 2, "info: verified: x passed false"},
		{new(Work), failing, 0, "message, warn: x fails, and the settings allow no repair false"},
	} {
		if got := judged(tt.w, tt.r, tt.most); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
