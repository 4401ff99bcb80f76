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
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/host/stdio"
	"coder/internal/model/meter"
	"coder/internal/model/provider"
	"coder/internal/policy/confine"
	"coder/internal/record/session"
	"coder/internal/serve"
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
		{usageErrorf("no"), 2},
		{fmt.Errorf("in a round: %w", toolrun.ErrDeniedAndStopped), 30},
		{&provider.Error{Kind: provider.ErrAuth}, 41},
		{inputErrorf("empty"), 42},
		{&orchestrator.CommandError{Text: "unknown"}, 42},
		{fmt.Errorf("x: %w", session.ErrNotFound), 42},
		{&app.Error{Kind: app.KindConfig, Err: errors.New("bad")}, 52},
		{&app.Error{Kind: app.KindUntrusted, Err: errors.New("who knows")}, 55},
		{&app.Error{Kind: app.KindInput, Err: errors.New("empty")}, 42},
		{fmt.Errorf("run it: %w", confine.ErrUnavailable), 44},
		{fmt.Errorf("ask: %w", uip.ErrAnswerPending), ExitPending},
		{toolrun.ErrStoppedByHook, ExitDenied},
		{orchestrator.ErrPromptDenied, ExitDenied},
		{&event.NewerFormatError{}, ExitInput},
		{serve.Refusal("no"), ExitInput},
		{&orchestrator.AttachError{}, ExitInput},
		{context.DeadlineExceeded, ExitInterrupted},
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

// All help is complete: each command and flag is in it once, and each command shows an example
// that parses as a call of itself.
func TestEveryFlagAndCommandIsInTheHelp(t *testing.T) {
	var all strings.Builder
	if err := writeAllHelp(&all, 0, nil); err != nil {
		t.Fatal(err)
	}
	commands := make(map[string]*subcommand)
	for _, s := range subcommands() {
		commands[s.name] = &s
		var help strings.Builder
		if err := writeHelp(&help, 0, nil, &s); err != nil {
			t.Fatal(err)
		}
		for _, u := range s.usages {
			line := strings.TrimRight("  coder "+s.name+" "+u.args, " ")
			if strings.Count("\n"+all.String(), "\n"+line) < 1 || !strings.Contains("\n"+help.String(), "\n"+line) {
				t.Errorf("%q is not in the help", line)
			}
		}
		if len(commandExamples[s.name]) == 0 {
			t.Errorf("coder %s has no example", s.name)
		}
		for _, line := range commandExamples[s.name] {
			if !strings.Contains(help.String(), line) || !strings.Contains(line, "coder "+s.name) {
				t.Errorf("the example %q of %s is not in its help", line, s.name)
			}
		}
	}
	for _, g := range commandGroups {
		for name := range strings.FieldsSeq(g.args) {
			if commands[name] == nil || strings.Count(all.String(), commands[name].usages[0].description) != 1 {
				t.Errorf("%s is a group's, and no command once in the help", name)
			}
		}
	}
	for _, o := range allFlags() {
		pages := []string{all.String()}
		if o.command != "" {
			pages = nil
			for of := range strings.SplitSeq(o.command, ", ") {
				name, _, _ := strings.Cut(of, " ")
				var help strings.Builder
				if err := writeHelp(&help, 0, nil, commands[name]); err != nil {
					t.Fatal(err)
				}
				pages = append(pages, help.String())
			}
		}
		for _, page := range pages {
			if o.help == "" || strings.Count(page, "  "+flagUsage(o)+"  ")+strings.Count(page, "  "+flagUsage(o)+"\n") != 1 {
				t.Errorf("--%s is not once in its help, or without words", o.long)
			}
		}
	}
}

func TestExamplesParse(t *testing.T) {
	for name, lines := range commandExamples {
		for _, line := range lines {
			line, _, _ = strings.Cut(line, " | ")
			line, _, _ = strings.Cut(line, " < ")
			line, _, _ = strings.Cut(strings.TrimSuffix(strings.TrimPrefix(line, `eval "$(`), `)"`), " > ")
			args := strings.Fields(strings.NewReplacer("'rm -rf build'", "rm", `"fix the tests"`, "fix", `"use the other table"`, "no").Replace(line))
			if f, err := parseFlags(args[1:]); name != "fleet" && (err != nil || f.command == nil || f.command.name != name) {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
}

// The first screen of the help fits on a small terminal.
func TestTheHelpIsOneScreen(t *testing.T) {
	for _, lang := range []string{i18n.English, i18n.Chinese} {
		var help strings.Builder
		if err := writeHelp(&help, 0, i18n.For(lang), nil); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(help.String(), "\n"); n > 45 {
			t.Errorf("%s: %d lines", lang, n)
		}
		for line := range strings.Lines(help.String()) {
			if ink.Width(strings.TrimSuffix(line, "\n")) > 80 {
				t.Errorf("%s: more than 80 columns: %q", lang, line)
			}
		}
	}
	if len(firstCommands) != 12 || len(firstFlags) != 12 || len(firstExamples) != 5 {
		t.Error("the first screen has 5 examples, 12 commands and 12 flags")
	}
}

func TestTheManualIsASCIIAndEscaped(t *testing.T) {
	for _, lang := range []string{i18n.English, i18n.Chinese} {
		page := renderManual(i18n.For(lang))
		for line := range strings.Lines(page) {
			if strings.ContainsFunc(line, func(r rune) bool { return r > 126 }) {
				t.Errorf("%s: %q", lang, line)
			}
		}
		for _, o := range allFlags() {
			if !strings.Contains(page, escapeRoff("--"+o.long)) {
				t.Errorf("%s: --%s is not in the manual", lang, o.long)
			}
		}
	}
	if got := escapeRoff(".a-'b' \\ …"); got != `\&.a\-\(aqb\(aq \e \[u2026]` {
		t.Error(got)
	}
}

func TestEveryFlagParses(t *testing.T) {
	for _, o := range allOptions() {
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
		{"fix the tests", "fix the tests"},
		{"-- why is this slow", "why is this slow"},
		{"-p config file is broken", "config file is broken"},
		{"policy check rm -- -rf /", "check rm -rf / command=policy"},
		{"policy revoke 3", "revoke 3 command=policy"},
		{"audit verify", "verify command=audit"},
		{"policy revoke", "revoke command=policy"},
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
		for _, s := range [][2]string{{"command", command}, {"model", f.Model}, {"resume", f.session.ResumeID}} {
			if s[1] != "" {
				got += " " + s[0] + "=" + s[1]
			}
		}
		if f.session.ContinueLast {
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
		"completion tcsh": "use one of bash, zsh, fish, powershell (to send it as a prompt: coder -- completion tcsh)", "config file": "use one of show, list, get, set, unset, path, schema", "golden rule": "use one of save, run, list",
		"policy chek ls": "did you mean policy check? (to send it as a prompt: coder -- policy chek ls)", "policy chk ls": "did you mean policy check?", "golden rnu x": "did you mean golden run?",
		"mpc list": "did you mean mcp list? (to send it as a prompt: coder -- mpc list)", "polcy check ls": "did you mean policy check?", "plugins add ./x": "did you mean plugin add?", "audits verify": "did you mean audit verify?",
		"session list": "did you mean sessions? (to send it as a prompt: coder -- session list)", "login openai": "did you mean setup?", "login": "did you mean setup?", "sesions list": "did you mean sessions?", "stauts": "in a session, use /status", "exec ls": "did you mean -p?", "resume": "did you mean -r?",
		"model gpt-5":     "in a session, use /model gpt-5 (to send it as a prompt: coder -- model gpt-5)",
		"models pull a b": "usage: coder models",
		"reset":           "coder help all lists them", "plugin install ./x": "use one of add, list, update, remove", "mcp update a": "use one of add",
		"tests": "did you mean tasks?", "DOCTOR": "did you mean doctor?", "Sesions": "did you mean sessions?",
		"status": "in a session, use /status (to send it as a prompt: coder -- status)", "undo": "in a session, use /undo", "upgrade": "did you mean update?", "sessions lsit": "use one of rename, tag, archive, unarchive, delete", "doctor now": "usage: coder doctor [--json] (to send it as a prompt: coder -- doctor now)", "version x": "usage: coder version [--json] (",
		"stats": "did you mean usage?", "yolo": "in a session, use /yolo", "clear": "in a session, use /clear", "build": "in a session, use /build", "profiles": "coder help all lists them", "policy revoke 1 2": "usage: coder policy revoke N|all (to send it as a prompt: coder -- policy revoke 1 2)", "mcp remove a b": "usage: coder mcp remove NAME", "plugin add . x": "usage: coder plugin add PATH",
		"config file is broken, why": "unknown command: config file", "export the data to csv": "usage: coder export", "why is this slow": "usage: coder why FILE[:LINE]", "watch out for races": "usage: coder watch", "trust me on this": "usage: coder trust",
		"completion of the form is broken": "unknown command: completion of", "golden rule is broken": "unknown command: golden rule", "policy text is wrong": "did you mean policy test?", "fleet sumbit all of it": "did you mean fleet submit?", "help me with it": "usage: coder help",

		"-- completion tcsh": "", "-p completion tcsh": "", "sesions list all of them": "", "model tests are slow": "", "session list is slow": "", "upgrade the readme": "", "-- update the readme": "", "polish check of the form": "", "lint": "", "docs": "", "hello": "", "hey": "", "fix the tests": "",
		"plugin add": "", "config set ui.lang zh-CN": "", "sessions delete x": "", "/diff": "", "/mcp": "", "/help": "", "!diff": "", "@show": "", "fix": "", "refactor": "", "why": "", "go": "", "-- sesions": "", "-p sesions": "", "status of the build": "", "yolo mode is broken": "", "clear the cache": "", "help setup": "", "-- status": "", "-p undo": "", "sessions lsit --help": "",
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
		if !app.IsSessionID(id) {
			t.Errorf("%q is not valid", id)
		}
	}
	for _, bad := range []string{"", ".", "..", "a/b", "a b", "ä", strings.Repeat("x", 129), "-\x00"} {
		if app.IsSessionID(bad) {
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
	if got, want := wrapColumns("  --flag VALUE  one two three four five six seven eight nine\n", 50), "  --flag VALUE  one two three four five six seven\n                eight nine\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
