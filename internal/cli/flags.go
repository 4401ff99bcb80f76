package cli

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"coder/internal/app"
	"coder/internal/core/nearest"
	"coder/internal/core/uip"
	"coder/internal/model/provider"
	"coder/internal/policy/mode"
	"coder/internal/policy/rule"
	"coder/internal/ui/i18n"
)

// flags is the parsed command line.
type flags struct {
	app.Options
	session app.SessionChoice

	command     *subcommand // nil if the arguments are a prompt
	args        []string
	forcePrompt bool // the arguments are a prompt in any case

	help, version, print, verbose     bool
	requireVerified                   bool // changes must pass a check
	outputFormat, inputFormat, events string
	onAsk                             string
	images                            []string // files that go with the prompt

	// for programs that drive the session
	isDriven                      bool // by lines on stdin
	partialMessages, echoMessages bool
	approver                      string   // who decides about calls
	permissionMode                string   // in their words or ours
	allowBypass, dontAsk          bool     // allow bypass modes; never ask
	schema, settings              string   // texts, or files with them
	systemPromptFile              string   // for the system prompt
	ignoredFlags                  []string // ignored flags

	// for subcommands
	json                         bool
	option, input, comment       string   // for an answer
	answers                      []string // to the parts of a question
	recordOnly                   bool
	fromRecord                   int    // the first record to show
	atRecord                     int    // the record for show, fork and restore
	resumeAt                     string // the message before which a fork begins
	force, dryRestore, crashDemo bool
	file                         string // the file to show
	lastTurn                     bool   // begin at the last turn
	untilRecord                  int    // the last record to play
	speed                        float64
	update                       bool // accept the current behavior
	check, rollback              bool // for update
	except                       []uint64
	ignore                       []string
	junit                        string
	stepByStep, verify           bool // wait for the user at each step; run it again
	compareWith, format          string
	shipTarget                   string // where audit logs are shipped
	failOn                       string // the least severity of a finding that fails a review
	fullOutput, revoke           bool
	olderThan                    string // age for prune
	since, groupBy               string // grouping for usage
	dryRun, yes, withData        bool
	scope, mcpTransport          string   // for a new MCP server
	mcpEnv, mcpHeaders           []string // also for a new MCP server
	preset                       string   // the preset for setup
	agent                        string   // another one, whose settings or sessions are meant
	undo                         bool     // --undo
	keyFromStdin                 bool     // read its key from stdin
	all                          bool     // include archived sessions
	inProject                    bool     // config changes the project's settings
	listen                       string   // the address for web
}

// isMachineOutput reports whether programs read the output of this run.
func (f *flags) isMachineOutput() bool {
	return !f.help && (f.command != nil && f.command.name == "acp" || f.isDriven && !f.print || f.json || f.events != "" ||
		f.outputFormat == "json" || f.outputFormat == "stream-json")
}

// option is a flag: its names, the name of its value, and its description.
type option struct {
	long, short, value, help string
	optional                 bool                  // the value is optional
	more                     func(arg string) bool // whether a following argument is a further value; nil: none is
	command                  string                // the command it belongs to; "" is any
	set                      func(*flags, string) error
}

// isOwnOf reports whether the flag is one of the subcommand's own.
func (o option) isOwnOf(command string) bool {
	return slices.ContainsFunc(strings.Split(o.command, ", "),
		func(of string) bool { return of == command || strings.HasPrefix(of, command+" ") })
}

func allOptions() []option {
	flag := func(long, short, help string, p func(*flags) *bool) option {
		return option{long: long, short: short, help: help, set: func(f *flags, _ string) error { *p(f) = true; return nil }}
	}
	needed := func(o option) option { // an empty value is an error
		set := o.set
		o.set = func(f *flags, v string) error {
			if v == "" {
				return usageErrorf("--%s needs a value: %s", o.long, o.value)
			}
			return set(f, v)
		}
		return o
	}
	text := func(long, value, help string, p func(*flags) *string) option {
		return needed(option{long: long, value: value, help: help,
			set: func(f *flags, v string) error { *p(f) = v; return nil }})
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
				return usageErrorf("--%s must be a number above zero, not %q", long, v)
			}
			*p(f) = n
			return nil
		}}
	}
	choice := func(long, help string, p func(*flags) *string, allowed ...string) option {
		return option{long: long, value: strings.Join(allowed, "|"), help: help, set: func(f *flags, v string) error {
			if !slices.Contains(allowed, v) {
				return usageErrorf("--%s must be one of %s, not %q", long, strings.Join(allowed, ", "), v)
			}
			*p(f) = v
			return nil
		}}
	}
	specs := func(long, help string, p func(*flags) *[]rule.Spec) option {
		return option{long: long, value: "RULES", help: help, set: func(f *flags, v string) error {
			list, err := rule.ParseSpecs(v)
			if err != nil {
				return usageErrorf("--%s: %v", long, err)
			}
			*p(f) = append(*p(f), app.NormalizeSpecs(list)...)
			return nil
		}}
	}
	of := func(command string, o option) option {
		o.command = command
		return o
	}
	resume := text("resume", "ID", "continue session ID; without ID, choose one from a list",
		func(f *flags) *string { return &f.session.ResumeID })
	resume.short, resume.optional = "r", true
	model := text("model", "NAME", "model to use", func(f *flags) *string { return &f.Model })
	dir := text("cwd", "DIR", "work in DIR", func(f *flags) *string { return &f.Dir })
	model.short, dir.short = "m", "C"
	return []option{
		flag("print", "p", "run one turn, print the answer and exit", func(f *flags) *bool { return &f.print }),
		choice("output-format", "output of -p (default text)", func(f *flags) *string { return &f.outputFormat }, "text",
			"json", "stream-json"),
		choice("input-format", "input on stdin (default text); with stream-json or events a program drives the session",
			func(f *flags) *string { return &f.inputFormat }, "text", "stream-json", "events"),
		choice("events", "print the events of the session in this format", func(f *flags) *string { return &f.events },
			"native", "sema", "coauthor"),
		flag("continue", "c", "continue the last session", func(f *flags) *bool { return &f.session.ContinueLast }),
		resume,
		text("session-id", "ID", "use this id for the new session", func(f *flags) *string { return &f.session.NewID }),
		flag("no-session-persistence", "", "save nothing on disk", func(f *flags) *bool { return &f.Ephemeral }),
		needed(several("image", "i", "FILE", "attach an image, or another file, to the prompt; repeatable",
			func(f *flags) *[]string { return &f.images })),
		flag("bare", "", "read no settings, rules, commands, skills, agents, plugins or MCP servers of your home and the project", func(f *flags) *bool { return &f.IgnoreConfig }),
		text("profile", "NAME", "use this profile of the settings", func(f *flags) *string { return &f.Profile }),
		text("provider", "NAME", "endpoint: openai, anthropic, ollama, … or a URL",
			func(f *flags) *string { return &f.Provider }),
		needed(several("set", "s", "KEY=VALUE", "use this setting for this run; repeatable",
			func(f *flags) *[]string { return &f.Set })),
		model,
		number("max-steps", "N", "stop after N model replies", func(f *flags) *int { return &f.MaxSteps }),
		{long: "max-budget-usd", value: "N", help: "stop before the session costs more than $N",
			set: func(f *flags, v string) error {
				n, err := strconv.ParseFloat(v, 64)
				if err != nil || !(n > 0) || n > 1e9 {
					return usageErrorf("--max-budget-usd must be an amount in dollars such as 0.50, not %q", v)
				}
				f.MaxBudgetUSD = n
				return nil
			}},
		flag("require-verified", "", "exit 57 if the last changes did not pass a check",
			func(f *flags) *bool { return &f.requireVerified }),
		{long: "wait-limit", value: "DURATION", help: "wait up to DURATION, such as 2h, when the provider's limit is reached",
			set: func(f *flags, v string) error {
				d, err := time.ParseDuration(v)
				if err != nil || d <= 0 {
					return usageErrorf("--wait-limit must be a duration such as 30m or 2h, not %q", v)
				}
				f.WaitLimit = d
				return nil
			}},
		choice("effort", "reasoning effort, where the model supports it", func(f *flags) *string { return &f.Effort },
			provider.Efforts...),
		text("json-schema", "FILE|JSON", "require an answer that matches this JSON schema",
			func(f *flags) *string { return &f.schema }),
		{long: "system-prompt", value: "TEXT", help: "replace the system prompt with TEXT",
			set: func(f *flags, v string) error { f.SystemPrompt = v; return nil }},
		text("append-system-prompt", "TEXT", "append TEXT to the system prompt",
			func(f *flags) *string { return &f.AppendSystem }),
		choice("mode", "mode to start in (default build)", func(f *flags) *string { return &f.Mode }, mode.Names()...),
		choice("permission-mode", "same as --mode; also accepts the mode names of Claude Code",
			func(f *flags) *string { return &f.permissionMode }, append(mode.Names(), foreignModes...)...),
		{long: "yolo", help: "same as --mode yolo: run everything without asking or checking policy",
			set: func(f *flags, _ string) error { f.Mode = mode.Yolo; return nil }},
		specs("allowed-tools", "allow without asking, such as 'bash(go test *)'",
			func(f *flags) *[]rule.Spec { return &f.AllowTools }),
		specs("disallowed-tools", "deny these calls", func(f *flags) *[]rule.Spec { return &f.DenyTools }),
		choice("on-ask", "non-interactive runs: deny the call (default), save the question and exit 31, or wait for coder respond", func(f *flags) *string { return &f.onAsk }, "deny", "park", "wait"),
		flag("auto-approve", "", "allow calls that need approval, except dangerous ones",
			func(f *flags) *bool { return &f.AutoApprove }),
		dir,
		needed(several("add-dir", "", "DIR", "let file tools use DIR too; repeatable",
			func(f *flags) *[]string { return &f.AddDirs })),
		needed(several("mcp-config", "", "FILE|JSON", "add the MCP servers of FILE or of this JSON; repeatable",
			func(f *flags) *[]string { return &f.MCPConfig })),
		flag("strict-mcp-config", "", "use only the MCP servers of --mcp-config",
			func(f *flags) *bool { return &f.StrictMCP }),
		needed(several("plugin-dir", "", "DIR", "use the plugin in DIR for this run; repeatable",
			func(f *flags) *[]string { return &f.PluginDirs })),
		text("config", "FILE", "read FILE after the other settings", func(f *flags) *string { return &f.ConfigFile }),
		text("script", "FILE", "let a script play the model instead of a provider",
			func(f *flags) *string { return &f.Script }),
		choice("lang", "language of the screen", func(f *flags) *string { return &f.Lang }, i18n.English, i18n.Chinese),
		flag("no-color", "", "do not use colours", func(f *flags) *bool { return &f.NoColor }),
		flag("include-partial-messages", "", "with stream-json: print parts of replies as they arrive",
			func(f *flags) *bool { return &f.partialMessages }),
		flag("verbose", "", "print thinking and command output on stderr", func(f *flags) *bool { return &f.verbose }),
		of("demo", flag("crash", "", "kill the session's process and continue it in another one",
			func(f *flags) *bool { return &f.crashDemo })),
		of("respond", text("option", "ID", "id of the option to choose", func(f *flags) *string { return &f.option })),
		of("respond", text("input", "TEXT", "answer in words", func(f *flags) *string { return &f.input })),
		of("respond", option{long: "hunks", value: "NUMBERS", help: "accept only these hunks of a change, such as 1,3-5",
			set: func(f *flags, v string) error {
				f.option, f.input = uip.OptionSome, v
				return nil
			}}),
		of("respond", text("comment", "TEXT", "comment for the model", func(f *flags) *string { return &f.comment })),
		of("respond", option{long: "answer", value: "PART=ID",
			help: "answer one part of a question, such as part=approve; some:1,3 chooses hunks; repeatable",
			set: func(f *flags, v string) error {
				if part, option, ok := strings.Cut(v, "="); !ok || part == "" || option == "" {
					return usageErrorf("--answer must be PART=ID, not %q", v)
				}
				f.answers = append(f.answers, v)
				return nil
			}}),
		of("respond", flag("record-only", "", "save the answer without continuing the task",
			func(f *flags) *bool { return &f.recordOnly })),
		of("watch, setup, sessions", option{long: "from", value: "claude|codex|SEQ",
			help: "watch: start at this record; else another agent: claude or codex", set: func(f *flags, v string) error {
				if f.agent = v; slices.Contains(app.ForeignAgents(), v) {
					return nil
				}
				n, err := strconv.Atoi(v)
				if f.fromRecord = n; err != nil || n < 1 {
					return usageErrorf("--from must be a record number, claude or codex, not %q", v)
				}
				return nil
			}}),
		of("watch", flag("last", "", "start at the last turn", func(f *flags) *bool { return &f.lastTurn })),
		of("replay", number("until", "SEQ", "stop after this record", func(f *flags) *int { return &f.untilRecord })),
		of("replay", option{long: "speed", value: "N",
			help: "play at N times the original speed; the default shortens long pauses", set: func(f *flags, v string) error {
				n, err := strconv.ParseFloat(v, 64)
				if err != nil || !(n > 0) || n > 1e6 {
					return usageErrorf("--speed must be a number above zero such as 4 or 0.5, not %q", v)
				}
				f.speed = n
				return nil
			}}),
		of("replay", flag("step", "", "wait for Enter after each step; q quits",
			func(f *flags) *bool { return &f.stepByStep })),
		of("replay", flag("verify", "", "run it again offline in a copy of the starting files and show the first difference",
			func(f *flags) *bool { return &f.verify })),
		of("golden", flag("update", "", "accept the new results", func(f *flags) *bool { return &f.update })),
		of("golden", option{long: "except", value: "SEQ", help: "save: do not compare this record; repeatable",
			set: func(f *flags, v string) error {
				n, err := strconv.ParseUint(v, 10, 64)
				if err != nil || n == 0 {
					return usageErrorf("--except must be a record number, not %q", v)
				}
				f.except = append(f.except, n)
				return nil
			}}),
		of("golden", option{long: "ignore", value: "PATTERN",
			help: "save: do not compare lines that match this regular expression; repeatable",
			set: func(f *flags, v string) error {
				if _, err := regexp.Compile(v); err != nil {
					return usageErrorf("--ignore: %v", err)
				}
				f.ignore = append(f.ignore, v)
				return nil
			}}),
		of("golden", text("junit", "FILE", "run: write the results to FILE as JUnit XML too",
			func(f *flags) *string { return &f.junit })),
		of("policy test", choice("against", "what to judge", func(f *flags) *string { return &f.compareWith }, "sessions")),
		of("show, export, fork, restore", number("at", "SEQ", "use the state at this record",
			func(f *flags) *int { return &f.atRecord })),
		of("restore", flag("dry", "", "show what would change, change nothing",
			func(f *flags) *bool { return &f.dryRestore })),
		of("restore, worktree remove", flag("force", "", "include files and folders with other changes",
			func(f *flags) *bool { return &f.force })),
		of("show", text("file", "PATH", "print this file of the session", func(f *flags) *string { return &f.file })),
		of("tasks", flag("full", "", "show open questions in full", func(f *flags) *bool { return &f.fullOutput })),
		of("export, review",
			choice("format", "output format; of export: json, md (default), html, bundle, request; of review: text (default), json, sarif, github", func(f *flags) *string { return &f.format },
				"json", "md", "html", "bundle", "request", "text", "sarif", "github")),
		of("review", choice("fail-on", "exit 57 if a finding is at least this bad (default error)",
			func(f *flags) *string { return &f.failOn }, "error", "warning", "note", "never")),
		of("audit ship", text("to", "FILE|syslog|otlp",
			"receiver of the audit records; otlp uses OTEL_EXPORTER_OTLP_ENDPOINT",
			func(f *flags) *string { return &f.shipTarget })),
		of("trust", flag("revoke", "", "stop trusting the folder", func(f *flags) *bool { return &f.revoke })),
		of("usage", text("since", "DAY|AGE", "count from this day or age, such as 2026-11-01, 2w or 30d (default)",
			func(f *flags) *string { return &f.since })),
		of("usage", choice("by", "group by (default day)", func(f *flags) *string { return &f.groupBy }, "day", "project",
			"model")),
		of("prune", text("older-than", "AGE", "data unused for this long, such as 30d (default), 2w or 12h",
			func(f *flags) *string { return &f.olderThan })),
		of("prune", flag("dry-run", "", "show what would be deleted, delete nothing (default)",
			func(f *flags) *bool { return &f.dryRun })),
		of("mcp", choice("scope", "settings to write the server to (default user)",
			func(f *flags) *string { return &f.scope }, "user", "local", "project")),
		of("mcp", choice("transport", "transport of the server", func(f *flags) *string { return &f.mcpTransport }, "stdio",
			"http", "sse")),
		of("mcp", several("env", "e", "NAME=VALUE", "environment variable for the server; repeatable",
			func(f *flags) *[]string { return &f.mcpEnv })),
		of("mcp", several("header", "H", "NAME: VALUE", "header of every request to the server; repeatable",
			func(f *flags) *[]string { return &f.mcpHeaders })),
		of("setup", text("preset", "NAME", "endpoint to connect: a name or a URL",
			func(f *flags) *string { return &f.preset })),
		of("setup", flag("undo", "", "make your settings what they were before --from",
			func(f *flags) *bool { return &f.undo })),
		of("setup", flag("api-key-stdin", "", "read the API key from stdin",
			func(f *flags) *bool { return &f.keyFromStdin })),
		of("config", flag("project", "", "use the settings of the project", func(f *flags) *bool { return &f.inProject })),
		of("web", text("listen", "HOST:PORT",
			"address to listen on (default: a free port on this machine); other addresses use TLS",
			func(f *flags) *string { return &f.listen })),
		of("update", flag("check", "", "only look for a newer version", func(f *flags) *bool { return &f.check })),
		of("update", flag("rollback", "", "restore the program that the last update replaced",
			func(f *flags) *bool { return &f.rollback })),
		of("uninstall", flag("data", "", "remove all data that coder created, in your home and in projects",
			func(f *flags) *bool { return &f.withData })),
		of("sessions", flag("all", "", "include archived sessions", func(f *flags) *bool { return &f.all })),
		of("prune, setup, plugin, bug, uninstall, sessions",
			flag("yes", "", "do not ask for confirmation", func(f *flags) *bool { return &f.yes })),
		of("tasks, sessions, worktree, audit, why, blame, context, search, replay, golden, policy, trust, prune, doctor, models, mcp, plugin, version, config", flag("json", "", "print JSON", func(f *flags) *bool { return &f.json })),
		flag("version", "", "print the version and exit", func(f *flags) *bool { return &f.version }),
		flag("help", "h", "print this help and exit", func(f *flags) *bool { return &f.help }),
	}
}

// parseFlags parses the command line. Flags may be anywhere before "--".
func parseFlags(args []string) (*flags, error) {
	f := &flags{isDriven: isDriven(args)}
	opts := append(allOptions(), foreignOptions()...)
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			f.forcePrompt = len(f.args) == 0
			f.args = append(f.args, args[i+1:]...)
			return f.validate()
		case arg == "-" || !strings.HasPrefix(arg, "-"):
			f.args = append(f.args, arg)
			continue
		}
		used, err := f.applyFlag(opts, arg, args[i+1:])
		if err != nil {
			return nil, err
		}
		i += used
	}
	return f.validate()
}

// isAssignment reports whether an argument is KEY=VALUE, as -c of other programs takes.
func isAssignment(arg string) bool {
	key, value, ok := strings.Cut(arg, "=")
	return ok && key != "" && strings.Trim(key, "abcdefghijklmnopqrstuvwxyz_.") == "" && !strings.ContainsAny(value, " \n")
}

// foreignFlags maps other programs' flags to what coder has instead.
var foreignFlags = map[string]string{
	"-a": "--mode build|auto-edit|yolo", "--ask-for-approval": "--mode build|auto-edit|yolo",
	"--approval-mode": "--mode build|auto-edit|yolo", "--auto-edit": "--mode auto-edit",
	"--sandbox": "-s safety.sandbox=VALUE",
	"--config":  "-s KEY=VALUE", "--oss": "--provider ollama", "--worktree": "coder worktree", "-q": "-p", "--quiet": "-p",
	"--message": "-p", "--ide": "coder acp",
}

// applyFlag sets the flag that arg names and returns how many of rest it used.
func (f *flags) applyFlag(opts []option, arg string, rest []string) (used int, err error) {
	name, value, hasValue := strings.Cut(arg, "=")
	i := slices.IndexFunc(opts, func(o option) bool { return name == "--"+o.long || o.short != "" && name == "-"+o.short })
	if i < 0 && f.applyCluster(opts, arg) {
		return 0, nil
	}
	if i < 0 && f.isDriven { // driving programs may know newer flags than we do
		f.ignoredFlags = append(f.ignoredFlags, name)
		if !hasValue && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
			return 1, nil
		}
		return 0, nil
	}
	if i < 0 {
		if own := foreignFlags[name]; own != "" {
			return 0, usageErrorf("unknown flag %s; use %s", name, own)
		}
		var names []string
		for _, o := range opts {
			names = append(names, o.long)
		}
		if long, ok := strings.CutPrefix(name, "--"); ok && nearest.Find(long, names) != "" {
			return 0, usageErrorf("unknown flag %s; did you mean --%s?", name, nearest.Find(long, names))
		}
		return 0, usageErrorf("unknown flag %s; coder help all lists them", name)
	}
	o := opts[i]
	switch {
	case o.value == "" && hasValue:
		return 0, usageErrorf("%s takes no value", name)
	case o.value != "" && !hasValue && o.optional && (len(rest) == 0 || strings.HasPrefix(rest[0], "-") ||
		!app.IsSessionID(rest[0])):
		f.session.ContinueLast, f.session.PickSession = true, true
		return 0, nil
	case o.value != "" && !hasValue:
		if len(rest) == 0 {
			return 0, usageErrorf("%s needs a value: %s", name, o.value)
		}
		value, used = rest[0], 1
	}
	err = o.set(f, value)
	for err == nil && o.more != nil && used < len(rest) && o.more(rest[used]) {
		err = o.set(f, rest[used])
		used++
	}
	return used, err
}

// applyCluster sets several combined one-letter flags, such as -pc, and reports whether arg was that.
func (f *flags) applyCluster(opts []option, arg string) bool {
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
		_ = o.set(f, "") // a flag without a value cannot fail
	}
	return true
}

// validate distinguishes a subcommand from a prompt and checks combinations of flags.
func (f *flags) validate() (*flags, error) {
	if !f.print && !f.forcePrompt && !f.isDriven {
		var err error
		if f.command, err = findSubcommand(f.args); err != nil && !f.help {
			return nil, err
		}
		if f.command != nil {
			f.args = f.args[1:]
		}
	}
	defer func() {
		f.outputFormat, f.inputFormat = cmp.Or(f.outputFormat, "text"), cmp.Or(f.inputFormat, "text")
	}()
	if f.isDriven && !f.print && f.outputFormat == "" && f.events == "" {
		f.outputFormat = "stream-json"
	}
	if f.command == nil && !f.isDriven && f.isMachineOutput() {
		f.print = true // a terminal shows the interactive output
	}
	switch {
	case f.command == nil && f.session.ContinueLast && len(f.args) > 0 && isAssignment(f.args[0]):
		return nil, usageErrorf("-c continues the last session; for a setting use -s %s", f.args[0])
	case len(f.images) > 0 && (f.isDriven || f.command != nil || f.inputFormat == "stream-json"):
		return nil, usageErrorf("--image goes with a prompt")
	case f.events != "" && f.outputFormat != "":
		return nil, usageErrorf("--events and --output-format both set the output; use one")
	case f.session.ForkCopy && !f.session.IsResume():
		return nil, usageErrorf("--fork-session needs --resume or --continue")
	case f.command == nil && f.atRecord > 0 && f.session.IsResume() && !f.session.ForkCopy:
		return nil, usageErrorf("--at needs --fork-session, or coder show, fork or restore")
	case f.resumeAt != "" && !f.session.ForkCopy:
		return nil, usageErrorf("--resume-session-at needs --fork-session: the session stays whole, and a new one starts at the message")
	case f.session.NewID != "" && f.session.IsResume() && !f.session.ForkCopy:
		return nil, usageErrorf("--session-id starts a new session; it cannot be used with --resume or --continue")
	case f.session.NewID != "" && !app.IsSessionID(f.session.NewID):
		return nil, usageErrorf("--session-id: %q is not an id (letters, digits, dot, dash and underscore)", f.session.NewID)
	case f.Ephemeral && f.session.IsResume():
		return nil, usageErrorf("--no-session-persistence cannot be used with --resume or --continue")
	case f.Ephemeral && f.onAsk == "wait":
		return nil, usageErrorf("--no-session-persistence cannot be used with --on-ask wait: coder respond reads questions from disk")
	}
	return f, f.checkDriven()
}
