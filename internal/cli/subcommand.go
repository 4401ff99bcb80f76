package cli

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"coder/internal/app"
	"coder/internal/core/nearest"
	"coder/internal/slash"
)

// subcommand is a first word that is a command, not a prompt.
type subcommand struct {
	name    string
	accepts func(args []string) bool // reports whether these can be its arguments
	verbs   []string                 // its possible first arguments, if fixed
	run     func(*invocation, context.Context) error
	usages  []usageLine // its usage, for the user
}

// usageLine is one way to call a subcommand.
type usageLine struct{ args, description string }

// subcommands returns all subcommands in display order.
func subcommands() []subcommand {
	none := func(args []string) bool { return len(args) == 0 }
	upTo := func(n int) func([]string) bool { return func(args []string) bool { return len(args) <= n } }
	one := func(args []string) bool { return len(args) == 1 }
	oneOf := func(words ...string) func([]string) bool {
		return func(args []string) bool { return len(args) == 0 || len(args) == 1 && slices.Contains(words, args[0]) }
	}
	// inWorkspace wraps a subcommand that works on the workspace. Called without its required arguments, it
	// says what it needs.
	inWorkspace := func(needs string, run func(*invocation, context.Context, *app.Workspace) error) func(*invocation,
		context.Context) error {
		return func(inv *invocation, ctx context.Context) error {
			if needs != "" && len(inv.flags.args) == 0 {
				return usageErrorf("%s", needs)
			}
			a, err := inv.newApp(inv.warn)
			if err != nil {
				return err
			}
			return run(inv, ctx, a)
		}
	}
	return []subcommand{
		{"demo", none, nil, (*invocation).runDemo, []usageLine{
			{"", "show a whole turn on a throw-away project; a script plays the model"},
			{"--crash", "kill a session with kill -9 and continue it: nothing is lost or run twice"},
		}},
		{"setup", none, nil, inWorkspace("", (*invocation).runSetup),
			[]usageLine{{"[--preset NAME] [--model M] [--api-key-stdin] [--yes]",
				"connect a model: choose a provider, enter its key, test it, save your settings"},
				{"--from claude|codex [--yes]",
					"show another agent's settings and their equivalents here; import them if you agree"},
				{"--undo", "make your settings what they were before --from"}}},
		{"models", none, nil, inWorkspace("", (*invocation).runModels),
			[]usageLine{{"[--json]", "list the models you can use, with window and price"}}},
		{"sessions", func(args []string) bool {
			return len(args) == 0 || len(args) > 1 && slices.Contains(sessionVerbs, args[0])
		}, sessionVerbs, inWorkspace("", (*invocation).runSessions), []usageLine{
			{"[--all] [--json]", "list the sessions of this project, newest first; --all includes archived ones"},
			{"rename ID TITLE", "give a session a title; without TITLE, its first prompt"},
			{"tag ID [TAG ...]", "set the tags of a session; none removes them"},
			{"archive ID ...", "leave sessions out of lists"},
			{"unarchive ID ...", "list archived sessions again"},
			{"[search WORDS] --from claude|codex [--all] [--json]",
				"list the sessions of another agent for this folder; coder -r ID continues one"},
			{"delete ID ... [--yes]", "delete sessions, after showing what goes"},
		}},
		{"export", one, nil, inWorkspace("coder export needs a session id; coder sessions lists the sessions",
			(*invocation).runExport), []usageLine{{"ID [--format json|md|html|bundle|request]",
			"export a session to read or share; a bundle can be continued elsewhere"}}},
		{"import", one, nil, inWorkspace("coder import needs a file that coder export --format bundle wrote",
			(*invocation).runImport), []usageLine{{"FILE [--session-id ID]",
			"import a bundle from another machine; no approvals come with it"}}},
		{"audit", func(args []string) bool {
			return len(args) <= 1 || len(args) == 2 && slices.Contains([]string{"show", "verify"}, args[0])
		}, []string{"show", "verify", "ship"}, inWorkspace("", (*invocation).runAudit), []usageLine{
			{"[show|verify] [SESSION] [--json]", "show what a session did, or verify that its record is complete"},
			{"ship --to FILE|syslog|otlp", "send the new audit records of all your sessions to a receiver"},
		}},
		{"why", one, nil, (*invocation).runWhy, []usageLine{{"FILE[:LINE] [--json]",
			"show the prompt, tool call and approval behind a file or line"}}},
		{"blame", one, nil, (*invocation).runBlame, []usageLine{{"FILE [--json]",
			"show which session or commit wrote each line of a file"}}},
		{"show", one, nil, inWorkspace("coder show needs a session id; coder sessions lists the sessions",
			(*invocation).runShow), []usageLine{{"SESSION [--at SEQ] [--file PATH]",
			"show a session at a record: conversation, todos, questions, context, files"}}},
		{"diff", func(args []string) bool { return len(args) == 2 && strings.Contains(args[1], "..") }, nil,
			inWorkspace("coder diff needs a session and two of its records: coder diff SESSION A..B", (*invocation).runDiff),
			[]usageLine{{"SESSION A..B", "show how a session's files changed between two records"}}},
		{"fork", one, nil, inWorkspace("coder fork needs a session id; coder sessions lists the sessions",
			(*invocation).runFork), []usageLine{{"SESSION [--at SEQ] [--session-id ID]",
			"start a new session from a record, with its files in a git worktree or a copy"}}},
		{"restore", one, nil, inWorkspace("coder restore needs a session id; coder sessions lists the sessions",
			(*invocation).runRestore), []usageLine{{"SESSION --at SEQ [--dry] [--force]",
			"restore a session's files to a record; /undo reverts it"}}},
		{"worktree", func(args []string) bool {
			return len(args) == 1 && args[0] == "list" || len(args) == 2 && args[0] == "remove"
		}, worktreeVerbs, inWorkspace("coder worktree takes list, or remove NAME", (*invocation).runWorktree), []usageLine{
			{"list [--json]", "list the folders created by coder fork"},
			{"remove NAME [--force]", "delete a folder and its session; --force even if it has changes"},
		}},
		{"replay", one, nil, inWorkspace("coder replay needs a session id; coder sessions lists the sessions",
			(*invocation).runReplay), []usageLine{
			{"SESSION [--until SEQ] [--speed N] [--step]", "play a session back; nothing runs and nothing is sent"},
			{"SESSION --verify [--json]",
				"run a session again offline, with the recorded replies, and show the first difference"},
		}},
		{"golden", func(args []string) bool {
			return len(args) > 0 && (args[0] == "run" || len(args) == 1 && args[0] == "list" || len(args) == 3 &&
				args[0] == "save")
		}, goldenVerbs, inWorkspace("coder golden needs a subcommand: save, run or list", (*invocation).runGolden),
			[]usageLine{
				{"save SESSION NAME", "save a session as a regression test, without keys"},
				{"run [NAME ...] [--update] [--json]", "run golden sessions offline and show differences; --update accepts them"},
				{"list", "list the golden sessions of this project"},
			}},
		{"context", one, nil, inWorkspace("coder context needs a session id; coder sessions lists the sessions",
			(*invocation).runContext), []usageLine{{"SESSION [--json]",
			"show what filled the model's window, by source, and what each part cost"}}},
		{"review", upTo(1), nil, (*invocation).runReview,
			[]usageLine{{"[RANGE|-] [--format text|json|sarif|github] [--fail-on error|warning|note|never]",
				"review the uncommitted change, a range such as main...HEAD, or a diff on stdin"}}},
		{"search", func(args []string) bool { return len(args) > 0 }, nil, (*invocation).runSearch,
			[]usageLine{{"WORDS [--json]", "search the sessions of all projects, newest first"}}},
		{"usage", none, nil, (*invocation).runUsage, []usageLine{{"[--since DAY|AGE] [--by day|project|model] [--json]",
			"show tokens and cost in all projects"}}},
		{"tasks", upTo(1), nil, (*invocation).runTasks, []usageLine{{"[--json] [--full [INTERACTION]]",
			"list tasks and open questions; --full shows whole questions"}}},
		{"respond", one, nil, inWorkspace("coder respond needs an interaction id; coder tasks lists the open questions",
			(*invocation).runRespond), []usageLine{{"INTERACTION --option ID [--input TEXT] [--comment TEXT]",
			"answer an open question"}}},
		{"watch", upTo(1), nil, inWorkspace("", (*invocation).runWatch),
			[]usageLine{{"[SESSION] [--from SEQ|--last]", "follow a session that runs in another process"}}},
		{"web", none, nil, inWorkspace("", (*invocation).runWeb),
			[]usageLine{{"[--listen HOST:PORT]", "open sessions in a browser: follow, answer, start, review, replay"}}},
		{"policy", func(args []string) bool {
			switch {
			case len(args) == 0:
				return false
			case args[0] == "check":
				return len(args) > 1
			case args[0] == "revoke":
				_, err := strconv.Atoi(args[len(args)-1])
				return len(args) == 2 && (err == nil || args[1] == "all")
			}
			return len(args) == 1 && (args[0] == "test" || args[0] == "list")
		}, []string{"check", "test", "list", "revoke"},
			inWorkspace("coder policy takes check COMMAND, list, revoke N, or test --against sessions", (*invocation).runPolicy),
			[]usageLine{
				{"check [--mode M] [--json] COMMAND", "show whether a command runs, asks or is refused, and why"},
				{"test --against sessions [--json]", "judge past calls by today's rules"},
				{"list [--json]", "list the approvals that coder remembers here"},
				{"revoke N|all", "revoke a remembered approval"},
			}},
		{"prune", none, nil, (*invocation).runPrune, []usageLine{{"[--older-than 30d] [--yes] [--json]",
			"list stored data that is no longer used; --yes deletes it"}}},
		{"trust", upTo(1), nil, (*invocation).runTrust, []usageLine{{"[DIR] [--revoke]", "trust the settings of a project"}}},
		{"config", func(args []string) bool { return len(args) == 0 || slices.Contains(configVerbs, args[0]) }, configVerbs,
			(*invocation).runConfig, []usageLine{
				{"[show|path|schema [keys]]", "show the settings and where each comes from"},
				{"list [WORDS] [--json]", "list settings with what they are for"},
				{"get KEY [--json]", "print the value of a setting"},
				{"set KEY VALUE [--project]", "save a setting in your settings, or in those of the project"},
				{"unset KEY [--project]", "remove a setting"},
			}},
		{"mcp", func(args []string) bool {
			return len(args) == 1 || len(args) > 0 && (args[0] == "add" && len(args) > 2 || len(args) <= 2 &&
				slices.Contains(mcpVerbs, args[0]))
		}, mcpVerbs, (*invocation).runMCP, []usageLine{
			{"add NAME [--scope S] [-e K=V] -- COMMAND ARGS",
				"add an MCP server to your settings, or to .mcp.json with --scope project"},
			{"add NAME [--transport http|sse] [-H 'K: V'] URL", "add an MCP server by address"},
			{"list [--json]", "list the MCP servers"},
			{"get NAME", "show the settings of a server"},
			{"test [NAME] [--json]", "start the servers and list their tools"},
			{"login NAME", "log in to a remote server in your browser"},
			{"logout NAME", "delete a saved login"},
			{"serve [--mode M]", "serve coder's tools to another agent on stdin and stdout"},
			{"remove NAME [--scope S]", "remove a server from the settings"},
		}},
		{"plugin", func(args []string) bool {
			return len(args) == 2 && (args[0] == "add" || args[0] == "remove") || len(args) == 1 && args[0] == "list" ||
				len(args) > 0 && len(args) < 3 && args[0] == "update" || len(args) > 1 && args[0] == "marketplace"
		}, pluginVerbs, (*invocation).runPlugin, []usageLine{
			{"add PATH|OWNER/REPO[@REF]|URL|NAME@MARKETPLACE [--yes]",
				"review and add a plugin; an address is fetched by git, at one commit"},
			{"update [NAME] [--yes]", "fetch plugins again, show the difference, and use it after a yes"},
			{"marketplace add PATH|OWNER/REPO|URL", "add a list of plugins, or fetch it again"},
			{"marketplace list", "list the marketplaces"},
			{"marketplace search [WORDS]", "list the plugins of your marketplaces"},
			{"list [--json]", "list the plugins and their state"},
			{"remove NAME", "remove a plugin"},
		}},
		{"fleet", func(args []string) bool { return len(args) > 0 && slices.Contains(fleetVerbs, args[0]) }, fleetVerbs,
			(*invocation).runFleet, []usageLine{{"up|submit|ps|answer|result|…",
				"run many agents on one machine or several; see coder fleet help"}}},
		{"acp", none, nil, (*invocation).runACP, []usageLine{{"",
			"serve an editor over the Agent Client Protocol on stdin and stdout"}}},
		{"doctor", none, nil, (*invocation).runDoctor, []usageLine{{"[--json]",
			"check what coder needs, and how to fix it"}}},
		{"bug", upTo(1), nil, (*invocation).runBug, []usageLine{{"[SESSION] [--yes]",
			"write versions, settings and a session to a folder for a bug report, keys masked"}}},
		{"update", none, nil, (*invocation).runUpdate, []usageLine{{"[--check] [--rollback]",
			"update coder, or show how; the replaced program stays as a backup"}}},
		{"uninstall", none, nil, (*invocation).runUninstall,
			[]usageLine{{"[--data] [--yes]", "show how to remove coder and its data, and remove what you choose"}}},
		{"completion", oneOf(shellNames...), shellNames, (*invocation).runCompletion,
			[]usageLine{{"bash|zsh|fish|powershell", "print a shell completion script"}}},
		{"events", func(args []string) bool { return len(args) == 1 && args[0] == "schema" }, []string{"schema"},
			(*invocation).runEvents,
			[]usageLine{{"schema", "print the JSON Schema of every event and of what commands print with --json"}}},
		{"man", none, nil, (*invocation).runMan, []usageLine{{"", "print the manual page; coder man | man -l -"}}},
		{"help", upTo(1), nil, (*invocation).runHelp, []usageLine{{"[COMMAND|all]",
			"show this help, all of it, or the help of a command"}}},
		{"version", none, nil, (*invocation).runVersion, []usageLine{{"[--json]",
			"print the version, commit and Go version"}}},
	}
}

// Subcommands about sessions, and those about a file.
var (
	sessionCommands = []string{"show", "diff", "fork", "restore", "replay", "context", "export", "audit", "golden",
		"sessions", "tasks", "respond", "watch"}
	fileCommands = []string{"why", "blame"}
)

// findProjectAbove finds the project above the current folder for commands about its sessions.
func (inv *invocation) findProjectAbove(fl *flags) {
	if fl.Dir != "" || inv.Dir == "" {
		return
	}
	file := ""
	switch {
	case fl.command == nil:
		if !fl.session.IsResume() || fl.isDriven {
			return
		}
	case fl.command.name == "golden" && app.HasGoldenSessions(inv.Dir):
		return
	case slices.Contains(fileCommands, fl.command.name) && len(fl.args) == 1:
		file = inv.resolveArg(fl.args[0])
	case !slices.Contains(sessionCommands, fl.command.name):
		return
	}
	if root := app.FindSessionsDir(inv.Env.Env, inv.Dir, file); root != inv.Dir {
		fl.Dir, inv.callDir = root, inv.Dir
	}
}

// resolveArg returns the path of the file that the user names, with or without a line.
func (inv *invocation) resolveArg(arg string) string {
	if file, _, err := slash.SplitLine(arg); err == nil {
		arg = file
	}
	if !filepath.IsAbs(arg) {
		arg = filepath.Join(inv.Dir, arg)
	}
	return filepath.Clean(arg)
}

// checkMistyped returns the error for a mistyped subcommand of the timeline, if its first argument is an
// existing session or file.
func (inv *invocation) checkMistyped() error {
	words := inv.flags.args
	if len(words) < 2 {
		return nil
	}
	name, first := closestName(words[0], slices.Concat(sessionCommands, fileCommands)), words[1]
	if (name == "golden" && first == "save" || name == "audit" && (first == "show" || first == "verify")) &&
		len(words) > 2 {
		first = words[2]
	}
	there := false
	switch {
	case slices.Contains(sessionCommands, name):
		there = app.HasSession(app.FindSessionsDir(inv.Env.Env, inv.settings.Root, ""), first)
	case slices.Contains(fileCommands, name):
		info, err := os.Lstat(inv.resolveArg(first))
		there = err == nil && !info.IsDir()
	}
	if !there {
		return nil
	}
	return usageErrorf("unknown command %s; did you mean %s? (to send it as a prompt: coder -- %s)", words[0], name,
		strings.Join(words, " "))
}

// usageOf returns how to call s with a verb.
func (s subcommand) usageOf(verb string) string {
	for _, u := range s.usages {
		if u.args == verb || strings.HasPrefix(u.args, verb+" ") {
			return u.args
		}
	}
	return s.usages[0].args
}

// findSubcommand returns the subcommand that the first word names, and nil for a prompt. A subcommand
// never begins a prompt: arguments that it does not accept are an error. So is a first word that looks
// like a mistyped subcommand. /diff, !ls and @file are for the session.
func findSubcommand(words []string) (*subcommand, error) {
	if len(words) == 0 {
		return nil, nil
	}
	all, line := subcommands(), strings.Join(words, " ")
	i := slices.IndexFunc(all, func(s subcommand) bool { return s.name == words[0] })
	if i < 0 {
		return nil, unknownSubcommandError(all, words)
	}
	s, args := &all[i], words[1:]
	// the command reports the error
	if len(args) == 0 || s.accepts(args) || len(args) <= 2 && slices.Contains(s.verbs, args[0]) {
		return s, nil
	}
	near := nearest.Find(args[0], s.verbs)
	if near == "" && len(args) > 1 {
		near = closestName(args[0], s.verbs)
	}
	switch {
	case slices.Contains(s.verbs, args[0]):
		return s, usageErrorf("usage: coder %s (to send it as a prompt: coder -- %s)", s.name+" "+s.usageOf(args[0]), line)
	case near != "":
		return s, usageErrorf("unknown command: %s %s; did you mean %s %s? (to send it as a prompt: coder -- %s)", s.name,
			args[0], s.name, near, line)
	case len(s.verbs) > 0:
		return s, usageErrorf("unknown command: %s %s; use one of %s (to send it as a prompt: coder -- %s)", s.name, args[0],
			strings.Join(s.verbs, ", "), line)
	}
	return s, usageErrorf("usage: coder %s (to send it as a prompt: coder -- %s)",
		strings.TrimSpace(s.name+" "+s.usages[0].args), line)
}

// unknownSubcommandError returns the error for a line without a subcommand that looks like a call of one:
// mistyped, a session's command, or another program's.
func unknownSubcommandError(all []subcommand, words []string) error {
	first, line := words[0], strings.Join(words, " ")
	meant := func(what string) error {
		return usageErrorf("unknown command %s; did you mean %s? (to send it as a prompt: coder -- %s)", first, what, line)
	}
	var names []string
	for _, s := range all {
		names = append(names, s.name)
		if closestName(first, []string{s.name}) != "" && (len(words) == 2 || len(words) == 3) &&
			slices.Contains(s.verbs, words[1]) {
			return meant(s.name + " " + words[1])
		}
	}
	// too many words resemble one of the others
	long := slices.DeleteFunc(slices.Clone(sessionOnlyCommands), func(name string) bool { return len(name) < 6 })
	near, alone := closestName(first, names), len(words) == 1
	switch {
	case strings.IndexAny(first, "/!@") == 0, alone && slices.Contains(promptWords, first):
	case counterparts[first] != "" && len(words) < 3:
		return meant(counterparts[first])
	case len(words) > 2, len(words) == 2 && !slices.Contains(namedCommands, first) &&
		!slices.Contains(foreignVerbs, words[1]):
	case slices.Contains(sessionOnlyCommands, first):
		return usageErrorf("unknown command %s; in a session, use /%s (to send it as a prompt: coder -- %s)", first,
			line, line)
	case slices.Contains(names, first+"s"):
		return meant(first + "s")
	case slices.Contains(foreignCommands, first):
		return usageErrorf("unknown command %s; coder help all lists them (to send it as a prompt: coder -- %s)", first, line)
	case near != "" && (alone || slices.Contains(nounCommands, near)):
		return meant(near)
	case alone && closestName(first, long) != "":
		return usageErrorf("unknown command %s; in a session, use /%s (to send it as a prompt: coder -- %s)", first,
			closestName(first, long), line)
	}
	return nil
}

// promptWords are single words that are prompts.
var promptWords = []string{"go", "hi", "hey", "hello", "yes", "no", "ok", "fix", "lint", "test", "docs", "why"}

// isOneWordPrompt reports whether the prompt of a new session is a single word that may be meant as a
// subcommand, and none of those that people say to models.
func (f *flags) isOneWordPrompt() bool {
	return len(f.args) == 1 && !f.forcePrompt && !f.session.IsResume() && !slices.Contains(promptWords, f.args[0]) &&
		strings.Trim(f.args[0], "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// counterparts maps other programs' subcommands to what coder has instead.
var counterparts = map[string]string{
	"auth": "setup", "configure": "setup", "connect": "setup", "login": "setup", "logout": "setup",
	"setup-token": "setup", "mcp-server": "mcp serve", "continue": "-c", "resume": "-r", "exec": "-p",
	"history": "sessions", "list": "sessions", "ls": "sessions",
	"settings": "config", "upgrade": "update", "stats": "usage",
}

// sessionOnlyCommands are commands of a session that are not subcommands, elsewhere those of other programs:
// nobody would send one of them alone to a model.
var (
	sessionOnlyCommands = []string{"agents", "auto-edit", "build", "clear", "compact", "cost", "create-skill", "default",
		"diff", "exit", "init", "jobs", "keys", "mode", "model", "new", "permissions", "plan", "quit", "redo", "resume",
		"rewind", "skills", "status", "todos", "tools", "undo", "yolo"}
	foreignCommands = []string{"account", "attach", "cache", "chat", "clean", "daemon", "debug", "detach", "env",
		"feedback", "gc", "hook", "hooks", "info", "install", "log", "logs", "memory", "open", "ping", "plugins", "profile",
		"profiles", "provider", "providers", "proxy", "ps", "reset", "restart", "server", "serve", "session", "start",
		"stop", "theme", "themes", "tokens", "usage", "whoami"}

	// namedCommands are those that a name follows, things the subcommands that are not verbs, and foreignVerbs
	// the verbs of other programs for such things.
	namedCommands = []string{"account", "auth", "exec", "login", "logout", "mode", "model", "providers", "resume",
		"session", "upgrade"}
	nounCommands = []string{"config", "fleet", "golden", "mcp", "models", "plugin", "policy", "sessions", "tasks",
		"worktree"}
	foreignVerbs = []string{"add", "delete", "disable", "edit", "enable", "get", "init", "list", "login", "logout", "ls",
		"new", "pull", "remove", "reset", "rm", "set", "show", "status", "unset", "use"}
)

// closestName returns the name that differs from a word by at most two letters, "" if none.
func closestName(word string, names []string) string {
	for off := 1; off <= 2; off++ {
		for _, name := range names {
			if len(name) > off+1 && nearest.Distance(strings.ToLower(word), name) <= off {
				return name
			}
		}
	}
	return ""
}
