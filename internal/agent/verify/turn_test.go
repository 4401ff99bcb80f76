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
func wrote(change func(*TurnContext)) TurnContext {
	t := TurnContext{
		TurnWork:   new(TurnWork),
		Conditions: Conditions{Policy: mode.VerifyAutomatic, Enabled: true, BashAllowed: true, MaxAttempts: 2},
		ChoiceInput: ChoiceInput{
			FileExists:  func(p string) bool { return p == "go.mod" },
			IsInstalled: func(string) bool { return true },
		},
		DeclineReason: func(string) string { return "" },
		NeedsApproval: func(string) bool { return true },
	}
	t.RecordWrite("a.go")
	change(&t)
	return t
}

func TestWhatTheCheckOfATurnIs(t *testing.T) {
	const check = "go test ./..."
	failed := `{"exit_code":1,"stdout":"--- FAIL"}`
	passes := LastCheck{Command: check, AnyEdits: true}
	turnedDown := func(string) string { return "no" }
	for name, tt := range map[string]struct {
		change func(*TurnContext)
		want   string // the command, or what is said
	}{
		"a check":                   {func(*TurnContext) {}, check},
		"nobody asked in this mode": {func(t *TurnContext) { t.Policy = mode.VerifyOnRequest }, ""},
		"asked for":                 {func(t *TurnContext) { t.Policy, t.UserText = mode.VerifyOnRequest, "fix it and run the tests" }, check},
		"no shell":                  {func(t *TurnContext) { t.BashAllowed = false }, string(ReasonNoBash)},
		"no tests, please":          {func(t *TurnContext) { t.UserText = "fix it, do not run tests" }, "you asked not to run tests"},
		"no project":                {func(t *TurnContext) { t.FileExists = func(string) bool { return false } }, "no check found for the edits"},
		"no project, but checked":   {func(t *TurnContext) { t.FileExists, t.LastCheck = func(string) bool { return false }, passes }, ""},
		"the model ran it":          {func(t *TurnContext) { t.RecordCommand(check, false, `{"exit_code":0}`) }, ""},
		"and wrote then":            {func(t *TurnContext) { t.RecordCommand(check, false, `{"exit_code":0}`); t.RecordWrite("b.go") }, check},
		"it failed for the model": {func(t *TurnContext) {
			t.RecordCommand(check, true, failed)
			t.LastCheck = LastCheck{Command: check, ExitCode: 1, AnyEdits: true}
		}, check + " known 1"},
		"and the model wrote then":     {func(t *TurnContext) { t.RecordCommand(check, true, failed); t.RecordWrite("b.go") }, check},
		"it stands from before":        {func(t *TurnContext) { t.LastCheck = passes }, ""},
		"which is not enough if asked": {func(t *TurnContext) { t.LastCheck, t.UserText = passes, "run the tests" }, check},
		"turned down":                  {func(t *TurnContext) { t.DeclineReason = turnedDown }, "no"},
		"turned down, but trusted":     {func(t *TurnContext) { t.DeclineReason, t.Trusted = turnedDown, true }, check},
		"turned down, but asked for":   {func(t *TurnContext) { t.DeclineReason, t.UserText = turnedDown, "run the tests" }, check},
		"turned down, now allowed": {func(t *TurnContext) {
			t.DeclineReason, t.NeedsApproval = turnedDown, func(string) bool { return false }
		}, check},
		"refused to the model":       {func(t *TurnContext) { t.TurnWork.RecordDenied("gofmt -l . && go test ./...") }, "you refused this command"},
		"refused, though trusted":    {func(t *TurnContext) { t.TurnWork.RecordDenied("go test -v ./..."); t.Trusted = true }, "you refused this command"},
		"something else was refused": {func(t *TurnContext) { t.TurnWork.RecordDenied("go vet ./...") }, check},
		"no program":                 {func(t *TurnContext) { t.IsInstalled = func(string) bool { return false } }, check + " known 127"},
		"no program, run anyway":     {func(t *TurnContext) { t.IsInstalled, t.Trusted = func(string) bool { return false }, true }, check},
	} {
		n := wrote(tt.change).NextAction()
		got := n.Command
		if n.HasResult {
			got += fmt.Sprint(" known ", n.Result.ExitCode)
		}
		if len(n.Notices) > 0 {
			got += strings.TrimPrefix(n.Notices[len(n.Notices)-1], NotRunNotice("")[1])
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestWhatACheckComesTo(t *testing.T) {
	var w TurnWork
	failing := tool.ShellResult{ExitCode: 1, Stdout: "--- FAIL: TestA"}
	judged := func(w *TurnWork, r tool.ShellResult, most int) string {
		said, again := w.EvaluateResult("x", r, most)
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
		w    *TurnWork
		r    tool.ShellResult
		most int
		want string
	}{
		{&w, failing, 2, "warn: x failed, fixing (1 of 2), message true"},
		{&w, failing, 2, "warn: x failed, fixing (2 of 2), message true"},
		{&w, failing, 2, "message, warn: x still fails after 2 attempts to fix it false"},
		{&w, tool.ShellResult{ExitCode: 127}, 2, "warn: best-effort, warn: x could not verify the change: the command is not installed false"},
		{&w, tool.ShellResult{}, 2, "info: verified: x passed false"},
		{new(TurnWork), failing, 0, "message, warn: x fails, and the settings allow no repair false"},
	} {
		if got := judged(tt.w, tt.r, tt.most); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
