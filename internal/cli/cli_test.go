package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"coder/internal/agent/orchestrator"
	"coder/internal/agent/toolrun"
	"coder/internal/app"
	"coder/internal/host/stdio"
	"coder/internal/model/meter"
	"coder/internal/model/provider"
	"coder/internal/record/session"
	"coder/internal/ui/i18n"
	"coder/internal/ui/term/ink"
)

func TestExitCodes(t *testing.T) {
	tests := []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("anything"), 1},
		{usagef("no"), 2},
		{fmt.Errorf("in a round: %w", toolrun.ErrRefused), 30},
		{&provider.Error{Kind: provider.ErrAuth}, 41},
		{inputf("empty"), 42},
		{&orchestrator.CommandError{Text: "unknown"}, 42},
		{fmt.Errorf("x: %w", session.ErrNotFound), 42},
		{&app.Error{Kind: app.BadConfig, Err: errors.New("bad")}, 52},
		{&app.Error{Kind: app.Untrusted, Err: errors.New("who knows")}, 55},
		{&app.Error{Kind: app.BadInput, Err: errors.New("empty")}, 42},
		{fmt.Errorf("%w (3)", orchestrator.ErrStepLimit), 53},
		{&provider.Error{Kind: provider.ErrBadRequest}, 54},
		{fmt.Errorf("ask the model: %w", meter.ErrBudget), 58},
		{&provider.Error{Kind: provider.ErrUnreachable}, 54},
		{context.Canceled, 130},
	}
	for _, tt := range tests {
		if got := ExitCode(tt.err); got != tt.want {
			t.Errorf("%v gives %d, want %d", tt.err, got, tt.want)
		}
	}
}

func TestEveryFlagIsInTheHelpAndParses(t *testing.T) {
	commands := make(map[string]*subcommand)
	for _, s := range subcommands() {
		commands[s.name] = &s
	}
	for _, o := range options() {
		for of := range strings.SplitSeq(o.of, ", ") {
			name, _, _ := strings.Cut(of, " ")
			var help strings.Builder
			if err := writeHelp(&help, 0, nil, commands[name]); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(help.String(), "--"+o.long) || name != "" && commands[name] == nil {
				t.Errorf("coder %s --help does not list --%s", name, o.long)
			}
		}
		args := []string{"--" + o.long}
		switch {
		case o.long == "max-steps" || o.value == "SEQ" || o.long == "max-budget-usd" || o.long == "speed":
			args = append(args, "3")
		case o.long == "wait-limit":
			args = append(args, "2h")
		case o.long == "answer":
			args = append(args, "part=approve")
		case o.long == "against":
			args = append(args, "sessions")
		case strings.Contains(o.value, "|"):
			args = append(args, strings.Split(o.value, "|")[0])
		case o.value != "":
			args = append(args, "value")
		}
		if _, err := parseFlags(append([]string{"-p"}, args...)); err != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestFlagsAndPromptsMix(t *testing.T) {
	tests := []struct {
		args string
		want string // prompt words, then what else was set
	}{
		{"-p fix the bug", "fix the bug"},
		{"-p fix --model m the bug", "fix the bug model=m"},
		{"--model=m -p x", "x model=m"},
		{"-p -c x", "x last"},
		{"-p -r s1 x", "x resume=s1"},
		{"-p --resume=s1 x", "x resume=s1"},
		{"-p x -r", "x last"},
		{"-p -r -c", " last"},
		{"-p -- --model x", "--model x"},
		{"-p config x", "config x"},
		{"config show", "show command=config"},
		{"config", " command=config"},
		{"config file is broken, why", "config file is broken, why"},
		{"export the data to csv", "export the data to csv"},
		{"demo of quicksort in go", "demo of quicksort in go"},
		{"why is this slow", "why is this slow"},
		{"policy check rm -- -rf /", "check rm -rf / command=policy"},
		{"policy for passwords", "policy for passwords"},
		{"policy revoke 3", "revoke 3 command=policy"},
		{"watch out for races", "watch out for races"},
		{"audit verify", "verify command=audit"},
		{"policy revoke", "revoke command=policy"},
		{"config show me the way", "config show me the way"},
		{"trust me on this", "trust me on this"},
		{"-- sessions", "sessions"},
		{"--model m -- config show", "config show model=m"},
		{"sesions of yoga", "sesions of yoga"},
	}
	for _, tt := range tests {
		f, err := parseFlags(strings.Fields(tt.args))
		if err != nil {
			t.Errorf("%s: %v", tt.args, err)
			continue
		}
		got := strings.Join(f.args, " ")
		command := ""
		if f.command != nil {
			command = f.command.name
		}
		for _, s := range [][2]string{{"command", command}, {"model", f.Model}, {"resume", f.session.Resume}} {
			if s[1] != "" {
				got += " " + s[0] + "=" + s[1]
			}
		}
		if f.session.Last {
			got += " last"
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.args, got, tt.want)
		}
	}
}

func TestWhatIsNearlyASubcommandIsNotSentToAModel(t *testing.T) {
	for line, want := range map[string]string{
		"sesions": "did you mean sessions?", "cofnig": "did you mean config?", "exprot": "did you mean export?",
		"config shwo": "did you mean config show?", "policy lst": "did you mean policy list?", "audit verfy x": "did you mean audit verify?",
		"completion tcsh": "it takes bash, zsh, fish (coder -- completion tcsh makes it a prompt)", "config file": "it takes show, path, schema", "golden rule": "it takes save, run, list",
		"policy chek ls": "did you mean policy check? (coder -- policy chek ls makes it a prompt)", "policy chk ls": "did you mean policy check?", "golden rnu x": "did you mean golden run?",
		"completion of the form is broken": "", "config should be shown here": "", "golden rule is broken": "", "policy text is wrong": "", "why is this slow": "", "-- completion tcsh": "", "-p completion tcsh": "",
		"mpc list": "did you mean mcp list? (coder -- mpc list makes it a prompt)", "polcy check ls": "did you mean policy check?", "plugins add ./x": "did you mean plugin add?", "audits verify": "did you mean audit verify?",
		"session list": "did you mean sessions? (coder -- session list makes it a prompt)", "login openai": "coder --help lists them", "login": "coder --help lists them", "sesions list": "did you mean sessions?", "stauts": "in a session it is /status", "lint": "", "docs": "", "hello": "", "hey": "", "exec ls": "coder --help lists them", "sesions list all of them": "",
		"model gpt-5":              "in a session it is /model gpt-5 (coder -- model gpt-5 makes it a prompt)",
		"config set ui.lang zh-CN": "there is no config set; it takes show, path, schema", "sessions delete x": "it is called as coder sessions", "models pull a b": "it is called as coder models", "config loads too late": "", "model tests are slow": "",
		"reset": "coder --help lists them", "session list is slow": "", "update readme": "", "polish check of the form": "", "plugin add": "", "plugin install ./x": "it takes add, list, remove", "mcp update a": "it takes add", "plugin update is slow": "",
		"tests": "did you mean tasks?", "DOCTOR": "did you mean doctor?", "Sesions": "did you mean sessions?", "/diff": "", "/mcp": "", "/help": "", "!diff": "", "@show": "", "fix": "", "refactor": "", "why": "", "go": "", "-- sesions": "", "-p sesions": "",
		"status": "in a session it is /status (coder -- status makes it a prompt)", "undo": "in a session it is /undo", "update": "coder --help lists them", "status of the build": "", "sessions lst": "it is called as coder sessions", "doctor now": "it is called as coder doctor [--json] (coder -- doctor now makes it a prompt)", "version x": "it is called as coder version [--json] (", "prune all files": "", "stats": "coder --help lists them", "yolo": "in a session it is /yolo", "clear": "in a session it is /clear", "build": "in a session it is /build", "profiles": "coder --help lists them", "yolo mode is broken": "", "policy revoke 1 2": "it is called as coder policy revoke N|all (coder -- policy revoke 1 2 makes it a prompt)", "mcp remove a b": "it is called as coder mcp remove NAME", "plugin add . x": "it is called as coder plugin add PATH", "mcp test of the new server fails": "", "clear the cache": "", "help setup": "", "help me with it": "", "-- status": "", "-p undo": "",
	} {
		_, err := parseFlags(strings.Fields(line))
		if (err != nil) != (want != "") || err != nil && (!strings.Contains(err.Error(), want) || ExitCode(err) != ExitUsage) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

func TestSessionIDsSortByTimeAndAreValid(t *testing.T) {
	var ids []string
	for i := range 20 {
		ids = append(ids, app.NewSessionID(time.Unix(int64(1_700_000_000+i*1000), 0)))
	}
	if !slices.IsSorted(ids) {
		t.Errorf("not sorted: %v", ids)
	}
	for _, id := range append(ids, app.NewID("task"), app.NewID("ui")) {
		if !app.ValidSessionID(id) {
			t.Errorf("%q is not valid", id)
		}
	}
	for _, bad := range []string{"", ".", "..", "a/b", "a b", "ä", strings.Repeat("x", 129), "-\x00"} {
		if app.ValidSessionID(bad) {
			t.Errorf("%q passes for an id", bad)
		}
	}
}

func FuzzReadMessages(f *testing.F) {
	f.Add(`{"type":"user","message":{"content":"hi"}}`)
	f.Add("{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}}\n\n{}")
	f.Add("not json\n")
	f.Fuzz(func(t *testing.T, in string) {
		for prompt, err := range readMessages(t.Context(), stdio.NewReader(strings.NewReader(in))) {
			if err == nil && strings.TrimSpace(prompt.Text()) == "" {
				t.Error("an empty prompt came through")
			}
			if err != nil && ExitCode(err) != ExitInput {
				t.Errorf("%v is not the caller's mistake", err)
			}
		}
	})
}

func FuzzParseFlags(f *testing.F) {
	f.Add("-p hello")
	f.Add("-r --model -c --")
	f.Fuzz(func(t *testing.T, line string) {
		if _, err := parseFlags(strings.Fields(line)); err != nil && ExitCode(err) != ExitUsage {
			t.Errorf("%q: %v is not a usage error", line, err)
		}
	})
}

// On a terminal the help is broken between words, and goes on below what it is about.
func TestHelpKeepsWordsWhole(t *testing.T) {
	commands := []*subcommand{nil}
	for _, s := range subcommands() {
		commands = append(commands, &s)
	}
	for _, lang := range []string{i18n.English, i18n.Chinese} {
		for _, of := range commands {
			var whole strings.Builder
			if err := writeHelp(&whole, 0, i18n.For(lang), of); err != nil {
				t.Fatal(err)
			}
			for _, columns := range []int{40, 80, 120} {
				var help strings.Builder
				if err := writeHelp(&help, columns, i18n.For(lang), of); err != nil {
					t.Fatal(err)
				}
				for line := range strings.Lines(help.String()) {
					if line = strings.TrimRight(line, "\n"); ink.Width(line) > columns && strings.Contains(strings.TrimSpace(line), " ") {
						t.Errorf("%s: more than %d columns: %q", lang, columns, line)
					}
				}
				if got, want := strings.Fields(help.String()), strings.Fields(whole.String()); strings.Join(got, "") != strings.Join(want, "") {
					t.Errorf("in %d columns there are other words:\n%s", columns, help.String())
				}
			}
		}
	}
	if got, want := hung("  --flag VALUE  one two three four five six seven eight nine\n", 50), "  --flag VALUE  one two three four five six seven\n                eight nine\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
