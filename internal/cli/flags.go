package cli

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"coder/internal/app"
	"coder/internal/core/display"
	"coder/internal/core/nearest"
	"coder/internal/core/uip"
	"coder/internal/model/provider"
	"coder/internal/policy/mode"
	"coder/internal/policy/rule"
	"coder/internal/ui/i18n"
	"coder/internal/ui/term/ink"
)

// flags is the command line, parsed.
type flags struct {
	app.Options
	session app.Which

	command *subcommand // nil if the arguments are a prompt
	args    []string
	prompt  bool // they are, whatever they look like

	help, version, print, verbose     bool
	requireVerified                   bool // work must not be left unchecked
	outputFormat, inputFormat, events string
	onAsk                             string

	// of programs that drive the session
	driven             bool // by lines on stdin
	partial, echo      bool
	decides            string   // who is asked about calls
	permissionMode     string   // in their words or ours
	mayBypass, dontAsk bool     // modes that may be gone to, or that never ask
	schema, settings   string   // texts, or files that hold them
	systemFile         string   // of the system prompt
	passedOver         []string // flags that mean nothing here

	// of subcommands
	json                   bool
	option, input, comment string   // of an answer
	answers                []string // to the parts of a question
	recordOnly             bool
	from                   int    // the first record to show
	at                     int    // the record as of which a session is shown, or forked, or restored to
	resumeAt               string // the message that a fork begins at
	force, dry, crash      bool
	file                   string // of it
	lastTurn               bool   // begin where the last turn does
	until                  int    // the last record to play
	speed                  float64
	update                 bool // what happens now is right
	except                 []uint64
	ignore                 []string
	junit                  string
	step, verify           bool // at each step wait for the person; run it again
	against, format        string
	full, revoke           bool
	olderThan              string // what prune looks for
	since, by              string // what usage adds up
	dryRun, yes, data      bool
	scope, mcpTransport    string   // of an MCP server that is added
	mcpEnv, mcpHeaders     []string // likewise
	preset                 string   // what setup connects
	listen                 string   // where web listens
}

// forMachines reports whether programs read what this run writes.
func (f *flags) forMachines() bool {
	return !f.help && (f.command != nil && f.command.name == "acp" || f.driven && !f.print || f.json || f.events != "" || f.outputFormat == "json" || f.outputFormat == "stream-json")
}

// option is one flag: its names, what its value is called, what it does.
type option struct {
	long, short, value, help string
	optional                 bool   // the value may be left out
	of                       string // the command it belongs to; "" is any
	set                      func(*flags, string) error
}

// belongs reports whether it is one of a subcommand's own.
func (o option) belongs(command string) bool {
	return slices.ContainsFunc(strings.Split(o.of, ", "), func(of string) bool { return of == command || strings.HasPrefix(of, command+" ") })
}

func options() []option {
	flag := func(long, short, help string, p func(*flags) *bool) option {
		return option{long: long, short: short, help: help, set: func(f *flags, _ string) error { *p(f) = true; return nil }}
	}
	needed := func(o option) option { // an empty value is a mistake
		set := o.set
		o.set = func(f *flags, v string) error {
			if v == "" {
				return usagef("--%s needs a value: %s", o.long, o.value)
			}
			return set(f, v)
		}
		return o
	}
	text := func(long, value, help string, p func(*flags) *string) option {
		return needed(option{long: long, value: value, help: help, set: func(f *flags, v string) error { *p(f) = v; return nil }})
	}
	several := func(long, short, value, help string, p func(*flags) *[]string) option {
		return option{long: long, short: short, value: value, help: help, set: func(f *flags, v string) error {
			*p(f) = append(*p(f), v)
			return nil
		}}
	}
	number := func(long, value, help string, p func(*flags) *int) option {
		return option{long: long, value: value, help: help, set: func(f *flags, v string) error {
			n, err := strconv.Atoi(v)
			if err != nil || n < 1 {
				return usagef("--%s must be a number above zero, not %q", long, v)
			}
			*p(f) = n
			return nil
		}}
	}
	choice := func(long, help string, p func(*flags) *string, allowed ...string) option {
		return option{long: long, value: strings.Join(allowed, "|"), help: help, set: func(f *flags, v string) error {
			if !slices.Contains(allowed, v) {
				return usagef("--%s must be one of %s, not %q", long, strings.Join(allowed, ", "), v)
			}
			*p(f) = v
			return nil
		}}
	}
	specs := func(long, help string, p func(*flags) *[]rule.Spec) option {
		return option{long: long, value: "RULES", help: help, set: func(f *flags, v string) error {
			list, err := rule.ParseSpecs(v)
			if err != nil {
				return usagef("--%s: %v", long, err)
			}
			*p(f) = append(*p(f), app.Ours(list)...)
			return nil
		}}
	}
	of := func(command string, o option) option {
		o.of = command
		return o
	}
	resume := text("resume", "ID", "go on with session ID; without ID, one chosen from a list, or the last one where there is no terminal", func(f *flags) *string { return &f.session.Resume })
	resume.short, resume.optional = "r", true
	return []option{
		flag("print", "p", "run one turn without a terminal and print the answer", func(f *flags) *bool { return &f.print }),
		choice("output-format", "what -p prints (default text)", func(f *flags) *string { return &f.outputFormat }, "text", "json", "stream-json"),
		choice("input-format", "what is read on stdin (default text); with stream-json or events a program drives the session", func(f *flags) *string { return &f.inputFormat }, "text", "stream-json", "events"),
		choice("events", "print the timeline instead, in this vocabulary", func(f *flags) *string { return &f.events }, "native", "sema", "coauthor"),
		flag("continue", "c", "go on with the last session", func(f *flags) *bool { return &f.session.Last }),
		resume,
		text("session-id", "ID", "start a new session under this id", func(f *flags) *string { return &f.session.ID }),
		flag("no-session-persistence", "", "keep nothing on disk", func(f *flags) *bool { return &f.Ephemeral }),
		text("profile", "NAME", "use this one of the profiles of the settings", func(f *flags) *string { return &f.Profile }),
		text("provider", "NAME", "the endpoint to use: a name such as openai, anthropic or ollama, or an address", func(f *flags) *string { return &f.Provider }),
		text("model", "NAME", "the model to use", func(f *flags) *string { return &f.Model }),
		number("max-steps", "N", "stop after N model replies", func(f *flags) *int { return &f.MaxSteps }),
		{long: "max-budget-usd", value: "N", help: "stop before the session costs more than N dollars", set: func(f *flags, v string) error {
			n, err := strconv.ParseFloat(v, 64)
			if err != nil || !(n > 0) || n > 1e9 {
				return usagef("--max-budget-usd wants an amount of dollars such as 0.50, not %q", v)
			}
			f.MaxBudgetUSD = n
			return nil
		}},
		flag("require-verified", "", "end with 57 if changes were left that no check passed after", func(f *flags) *bool { return &f.requireVerified }),
		{long: "wait-limit", value: "DURATION", help: "where the provider's limit is reached, wait for its end for up to DURATION, such as 2h", set: func(f *flags, v string) error {
			d, err := time.ParseDuration(v)
			if err != nil || d <= 0 {
				return usagef("--wait-limit wants a length of time such as 30m or 2h, not %q", v)
			}
			f.WaitLimit = d
			return nil
		}},
		choice("effort", "how hard the model is to think, where it lets one choose", func(f *flags) *string { return &f.Effort }, provider.Efforts...),
		text("json-schema", "FILE|JSON", "have the answer in the form of this schema", func(f *flags) *string { return &f.schema }),
		{long: "system-prompt", value: "TEXT", help: "say TEXT to the model in place of our own system prompt", set: func(f *flags, v string) error { f.SystemPrompt = v; return nil }},
		text("append-system-prompt", "TEXT", "add TEXT to the system prompt", func(f *flags) *string { return &f.AppendSystem }),
		choice("mode", "the mode to start in (default build)", func(f *flags) *string { return &f.Mode }, mode.Names()...),
		choice("permission-mode", "the same as --mode, also by the names of other agents", func(f *flags) *string { return &f.permissionMode }, append(mode.Names(), otherModes...)...),
		{long: "yolo", help: "the same as --mode yolo: everything runs unasked and unchecked", set: func(f *flags, _ string) error { f.Mode = mode.Yolo; return nil }},
		specs("allowed-tools", "let these pass where the mode would ask, such as bash(go test *),edit(src/**)", func(f *flags) *[]rule.Spec { return &f.AllowTools }),
		specs("disallowed-tools", "refuse these", func(f *flags) *[]rule.Spec { return &f.DenyTools }),
		choice("on-ask", "without a terminal: refuse what must be asked (default), keep the question for coder respond and exit 31, or wait for coder respond", func(f *flags) *string { return &f.onAsk }, "deny", "park", "wait"),
		flag("auto-approve", "", "let pass what the policy would ask about; dangerous calls are still refused", func(f *flags) *bool { return &f.AutoApprove }),
		text("cwd", "DIR", "work in DIR", func(f *flags) *string { return &f.Dir }),
		needed(several("add-dir", "", "DIR", "let the file tools use DIR too; may be given more than once", func(f *flags) *[]string { return &f.AddDirs })),
		needed(several("mcp-config", "", "FILE|JSON", "use the MCP servers of FILE too, or of this text; may be given more than once", func(f *flags) *[]string { return &f.MCPConfig })),
		flag("strict-mcp-config", "", "use no MCP servers but those of --mcp-config", func(f *flags) *bool { return &f.StrictMCP }),
		needed(several("plugin-dir", "", "DIR", "use the plugin in DIR for this run; may be given more than once", func(f *flags) *[]string { return &f.PluginDirs })),
		text("config", "FILE", "read FILE on top of the other configuration", func(f *flags) *string { return &f.ConfigFile }),
		text("script", "FILE", "let a script play the model", func(f *flags) *string { return &f.Script }),
		choice("lang", "the language to speak", func(f *flags) *string { return &f.Lang }, i18n.English, i18n.Chinese),
		flag("no-color", "", "no colours", func(f *flags) *bool { return &f.NoColor }),
		flag("include-partial-messages", "", "with stream-json: tell replies as they arrive, too", func(f *flags) *bool { return &f.partial }),
		flag("verbose", "", "show thinking and command output on stderr", func(f *flags) *bool { return &f.verbose }),
		of("demo", flag("crash", "", "show a session whose process is killed, and continued by another", func(f *flags) *bool { return &f.crash })),
		of("respond", text("option", "ID", "the option to take", func(f *flags) *string { return &f.option })),
		of("respond", text("input", "TEXT", "the answer in words", func(f *flags) *string { return &f.input })),
		of("respond", option{long: "hunks", value: "NUMBERS", help: "yes to these hunks of a change only, such as 1,3-5", set: func(f *flags, v string) error {
			f.option, f.input = uip.Some, v
			return nil
		}}),
		of("respond", text("comment", "TEXT", "a remark for the model", func(f *flags) *string { return &f.comment })),
		of("respond", option{long: "answer", value: "PART=ID", help: "the option for one part of a question that has several, some:1,3 for hunks of a change; may be given more than once", set: func(f *flags, v string) error {
			if part, option, ok := strings.Cut(v, "="); !ok || part == "" || option == "" {
				return usagef("--answer wants PART=ID, not %q", v)
			}
			f.answers = append(f.answers, v)
			return nil
		}}),
		of("respond", flag("record-only", "", "keep the answer and do not go on with the task", func(f *flags) *bool { return &f.recordOnly })),
		of("watch", number("from", "SEQ", "begin at the record of this number", func(f *flags) *int { return &f.from })),
		of("watch", flag("last", "", "begin where the last turn does", func(f *flags) *bool { return &f.lastTurn })),
		of("replay", number("until", "SEQ", "end after the record of this number", func(f *flags) *int { return &f.until })),
		of("replay", option{long: "speed", value: "N", help: "play N times as fast as it was; without it long pauses are cut short", set: func(f *flags, v string) error {
			n, err := strconv.ParseFloat(v, 64)
			if err != nil || !(n > 0) || n > 1e6 {
				return usagef("--speed wants a number above zero such as 4 or 0.5, not %q", v)
			}
			f.speed = n
			return nil
		}}),
		of("replay", flag("step", "", "wait for Enter after each step; q ends it", func(f *flags) *bool { return &f.step })),
		of("replay", flag("verify", "", "run it again, confined and offline in a copy of the starting files, and tell the first difference", func(f *flags) *bool { return &f.verify })),
		of("golden", flag("update", "", "take what happens now as what is expected", func(f *flags) *bool { return &f.update })),
		of("golden", option{long: "except", value: "SEQ", help: "save: do not compare the record of this number; may be given more than once", set: func(f *flags, v string) error {
			n, err := strconv.ParseUint(v, 10, 64)
			if err != nil || n == 0 {
				return usagef("--except wants the number of a record, not %q", v)
			}
			f.except = append(f.except, n)
			return nil
		}}),
		of("golden", option{long: "ignore", value: "PATTERN", help: "save: do not compare lines that match this regular expression; may be given more than once", set: func(f *flags, v string) error {
			if _, err := regexp.Compile(v); err != nil {
				return usagef("--ignore: %v", err)
			}
			f.ignore = append(f.ignore, v)
			return nil
		}}),
		of("golden", text("junit", "FILE", "run: also write the results to FILE as JUnit XML", func(f *flags) *string { return &f.junit })),
		of("policy test", choice("against", "what to judge again", func(f *flags) *string { return &f.against }, "sessions")),
		of("show, export, fork, restore", number("at", "SEQ", "as of the record of this number", func(f *flags) *int { return &f.at })),
		of("restore", flag("dry", "", "only show what would change", func(f *flags) *bool { return &f.dry })),
		of("restore, worktree remove", flag("force", "", "also what somebody else changed", func(f *flags) *bool { return &f.force })),
		of("show", text("file", "PATH", "print what a file of the session held", func(f *flags) *string { return &f.file })),
		of("tasks", flag("full", "", "show all of what waits for an answer", func(f *flags) *bool { return &f.full })),
		of("export", choice("format", "the form to print (default md)", func(f *flags) *string { return &f.format }, "json", "md", "html", "bundle", "request")),
		of("trust", flag("revoke", "", "end the trust in the folder", func(f *flags) *bool { return &f.revoke })),
		of("usage", text("since", "DAY|AGE", "what was used since then, such as 2026-11-01, 2w or 30d (the default)", func(f *flags) *string { return &f.since })),
		of("usage", choice("by", "what each sum is of (default day)", func(f *flags) *string { return &f.by }, "day", "project", "model")),
		of("prune", text("older-than", "AGE", "what was not used for that long, such as 30d (the default), 2w or 12h", func(f *flags) *string { return &f.olderThan })),
		of("prune", flag("dry-run", "", "only tell what would be deleted (the default)", func(f *flags) *bool { return &f.dryRun })),
		of("mcp", choice("scope", "where a server is written down (default user)", func(f *flags) *string { return &f.scope }, "user", "local", "project")),
		of("mcp", choice("transport", "how a server is reached", func(f *flags) *string { return &f.mcpTransport }, "stdio", "http", "sse")),
		of("mcp", several("env", "e", "NAME=VALUE", "a variable for the server; may be given more than once", func(f *flags) *[]string { return &f.mcpEnv })),
		of("mcp", several("header", "H", "NAME: VALUE", "a header of every request to the server; may be given more than once", func(f *flags) *[]string { return &f.mcpHeaders })),
		of("setup", text("preset", "NAME", "the endpoint to connect: a name or an address", func(f *flags) *string { return &f.preset })),
		of("web", text("listen", "HOST:PORT", "where browsers reach it (default: a free port of this machine alone); elsewhere than on this machine by TLS", func(f *flags) *string { return &f.listen })),
		of("uninstall", flag("data", "", "remove all data that coder made, in your home and in projects", func(f *flags) *bool { return &f.data })),
		of("prune, setup, plugin, bug, uninstall", flag("yes", "", "go ahead without asking", func(f *flags) *bool { return &f.yes })),
		of("tasks, sessions, worktree, audit, why, blame, context, search, replay, golden, policy, trust, prune, doctor, models, mcp, plugin, version", flag("json", "", "print JSON", func(f *flags) *bool { return &f.json })),
		flag("version", "", "print the version", func(f *flags) *bool { return &f.version }),
		flag("help", "h", "print this help", func(f *flags) *bool { return &f.help }),
	}
}

// parseFlags reads the command line. Flags may stand anywhere before "--".
func parseFlags(args []string) (*flags, error) {
	f := &flags{driven: drives(args)}
	opts := append(options(), spellings()...)
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			f.prompt = len(f.args) == 0
			f.args = append(f.args, args[i+1:]...)
			return f.finish()
		case arg == "-" || !strings.HasPrefix(arg, "-"):
			f.args = append(f.args, arg)
			continue
		}
		used, err := f.apply(opts, arg, args[i+1:])
		if err != nil {
			return nil, err
		}
		i += used
	}
	return f.finish()
}

// apply sets the flag that arg names and reports how many of rest it used up.
func (f *flags) apply(opts []option, arg string, rest []string) (used int, err error) {
	name, value, hasValue := strings.Cut(arg, "=")
	i := slices.IndexFunc(opts, func(o option) bool { return name == "--"+o.long || o.short != "" && name == "-"+o.short })
	if i < 0 && f.cluster(opts, arg) {
		return 0, nil
	}
	if i < 0 && f.driven { // programs that drive sessions learn new ones before we do
		f.passedOver = append(f.passedOver, name)
		if !hasValue && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
			return 1, nil
		}
		return 0, nil
	}
	if i < 0 {
		var names []string
		for _, o := range opts {
			names = append(names, o.long)
		}
		if long, ok := strings.CutPrefix(name, "--"); ok && nearest.Of(long, names) != "" {
			return 0, usagef("unknown flag %s; did you mean --%s?", name, nearest.Of(long, names))
		}
		return 0, usagef("unknown flag %s; coder --help lists them", name)
	}
	o := opts[i]
	switch {
	case o.value == "" && hasValue:
		return 0, usagef("%s takes no value", name)
	case o.value != "" && !hasValue && o.optional && (len(rest) == 0 || strings.HasPrefix(rest[0], "-") || !app.ValidSessionID(rest[0])):
		f.session.Last, f.session.Pick = true, true
		return 0, nil
	case o.value != "" && !hasValue:
		if len(rest) == 0 {
			return 0, usagef("%s needs a value: %s", name, o.value)
		}
		value, used = rest[0], 1
	}
	return used, o.set(f, value)
}

// cluster sets several one-letter flags written together, such as -pc, and
// reports whether arg was that.
func (f *flags) cluster(opts []option, arg string) bool {
	if len(arg) < 3 || arg[1] == '-' {
		return false
	}
	var set []option
	for _, letter := range arg[1:] {
		i := slices.IndexFunc(opts, func(o option) bool { return o.short == string(letter) && o.value == "" })
		if i < 0 {
			return false
		}
		set = append(set, opts[i])
	}
	for _, o := range set {
		_ = o.set(f, "") // a flag without a value cannot be wrong
	}
	return true
}

// finish tells a subcommand from a prompt and checks what does not go together.
func (f *flags) finish() (*flags, error) {
	if !f.print && !f.prompt && !f.driven {
		var err error
		if f.command, err = findSubcommand(f.args); err != nil {
			return nil, err
		}
		if f.command != nil {
			f.args = f.args[1:]
		}
	}
	defer func() {
		f.outputFormat, f.inputFormat = cmp.Or(f.outputFormat, "text"), cmp.Or(f.inputFormat, "text")
	}()
	if f.driven && !f.print && f.outputFormat == "" && f.events == "" {
		f.outputFormat = "stream-json"
	}
	if f.command == nil && !f.driven && f.forMachines() {
		f.print = true // a terminal shows people what it shows
	}
	switch {
	case f.events != "" && f.outputFormat != "":
		return nil, usagef("--events and --output-format both say what to print; use one")
	case f.session.Fork && !f.session.Resumes():
		return nil, usagef("--fork-session goes with --resume or --continue")
	case f.command == nil && f.at > 0 && f.session.Resumes() && !f.session.Fork:
		return nil, usagef("--at goes with --fork-session, or with coder show, fork and restore")
	case f.resumeAt != "" && !f.session.Fork:
		return nil, usagef("--resume-session-at goes with --fork-session: a session is never cut short, a new one begins at the message")
	case f.session.ID != "" && f.session.Resumes() && !f.session.Fork:
		return nil, usagef("--session-id starts a new session; it does not go with --resume or --continue")
	case f.session.ID != "" && !app.ValidSessionID(f.session.ID):
		return nil, usagef("--session-id: %q is not an id (letters, digits, dot, dash and underscore)", f.session.ID)
	case f.Ephemeral && f.session.Resumes():
		return nil, usagef("--no-session-persistence does not go with --resume or --continue")
	case f.Ephemeral && f.onAsk == "wait":
		return nil, usagef("--no-session-persistence does not go with --on-ask wait: coder respond finds questions in what is kept")
	}
	return f, f.finishDriven()
}

// usageText is the beginning of the help: of the program, or of one subcommand.
func usageText(of *subcommand) display.Blocks {
	var help display.Blocks
	var rows [][]display.Cell
	var commands []subcommand
	if of != nil {
		commands = append(commands, *of)
	} else {
		help, commands = append(help, display.Text("coder — a coding agent for the terminal\n")), subcommands()
		rows = [][]display.Cell{
			{{Text: "  coder [flags] [prompt]"}, {Text: "talk in the terminal; with a prompt, run it first and stay", Words: true}},
			{{Text: "  coder -p [flags] [prompt]"}, {Text: "run one turn; the prompt comes from the argument, stdin, or both", Words: true}},
		}
	}
	for _, s := range commands {
		for _, u := range s.uses {
			rows = append(rows, []display.Cell{{Text: strings.TrimRight("  coder "+s.name+" "+u.args, " ")}, {Text: u.about, Words: true}})
		}
	}
	return append(help, display.Table{First: 34, Rows: rows}, display.Text("\n"))
}

const exitCodes = `
Exit codes: 0 done, 1 error, 2 usage, 30 finished but a call was refused, 31 waiting for an answer,
41 not authorised by the provider, 42 bad input, 44 sandbox unavailable though required, 52 bad configuration, 53 step limit reached, 54 provider failed for good,
55 workspace not trusted, 56 done but not everything could be kept on disk, 57 done but changes were left unchecked, 58 budget used up, 130 interrupted.
`

// writeHelp tells how the program is called, or one subcommand of it, in lines of so many
// columns; 0: in any.
func writeHelp(w io.Writer, columns int, words *i18n.Printer, of *subcommand) error {
	var b strings.Builder
	b.WriteString(words.Signs(usageText(of).Translated(words.Said, ink.Width)))
	for _, o := range options() {
		if of == nil && o.of != "" || of != nil && !o.belongs(of.name) {
			continue
		}
		name := "    --" + o.long
		if o.short != "" {
			name = "-" + o.short + ", --" + o.long
		}
		switch {
		case o.optional:
			name += " [" + o.value + "]"
		case columns > 0 && len(o.value)+8 > columns: // it has no room as one word
			name += " " + strings.ReplaceAll(o.value, "|", " | ")
		case o.value != "":
			name += " " + o.value
		}
		if len(name) > 43 { // what it does stands below it
			name += "\n" + strings.Repeat(" ", 45)
		}
		fmt.Fprintf(&b, "  %-43s  %s\n", name, words.T(o.help))
	}
	if of == nil {
		fmt.Fprintf(&b, "\n%s\n", words.T("coder COMMAND --help tells the flags of a command"))
		b.WriteString(words.T(exitCodes))
	} else {
		fmt.Fprintf(&b, "\n%s\n", words.T("coder --help tells the other flags and the exit codes"))
	}
	_, err := io.WriteString(w, hung(b.String(), columns))
	return err
}

// hung breaks lines of two columns between words: what does not fit goes on below the
// second, or set in where that leaves little room.
func hung(text string, columns int) string {
	var b strings.Builder
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		w := ink.Wrap{Put: func(_ ink.Look, text string) { b.WriteString(text) }, Width: columns, Indent: ink.Hanging(line)}
		if gap := strings.LastIndex(line, "  ") + 2; gap > 1 {
			w.Indent = ink.Width(line[:gap])
			if columns > 0 && columns-w.Indent < 30 && ink.Width(line) > columns {
				w.Indent = 8
				if first := strings.TrimRight(line[:gap], " "); first != "" {
					w.Write(ink.Look{}, first)
					w.End()
					w.Indent = 8
					b.WriteByte('\n')
				}
				line = strings.Repeat(" ", w.Indent) + line[gap:]
			}
		}
		w.Write(ink.Look{}, line)
		w.End()
	}
	return b.String()
}
