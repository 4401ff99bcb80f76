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

// subcommand is a word that, standing first, may not be a prompt.
type subcommand struct {
	name string
	// takes reports whether these can be its arguments. If they cannot, the line is
	// a prompt that begins with the same word.
	takes func(args []string) bool
	verbs []string // its first arguments, where they are fixed
	run   func(*invocation, context.Context) error
	uses  []use // how it is called, for people
}

// use is one way to call a subcommand.
type use struct{ args, about string }

// subcommands are all of them, in the order in which people are told of them.
func subcommands() []subcommand {
	none := func(args []string) bool { return len(args) == 0 }
	upTo := func(n int) func([]string) bool { return func(args []string) bool { return len(args) <= n } }
	one := func(args []string) bool { return len(args) == 1 }
	oneOf := func(words ...string) func([]string) bool {
		return func(args []string) bool { return len(args) == 0 || len(args) == 1 && slices.Contains(words, args[0]) }
	}
	// inWorkspace is what a subcommand does that works on the workspace. Called
	// without arguments it says what it needs, if it needs some.
	inWorkspace := func(needs string, run func(*invocation, context.Context, *app.App) error) func(*invocation, context.Context) error {
		return func(inv *invocation, ctx context.Context) error {
			if needs != "" && len(inv.flags.args) == 0 {
				return usagef("%s", needs)
			}
			a, err := inv.newApp(inv.warn)
			if err != nil {
				return err
			}
			return run(inv, ctx, a)
		}
	}
	return []subcommand{
		{"demo", none, nil, (*invocation).runDemo, []use{
			{"", "a whole turn on a throw-away project, played by a script"},
			{"--crash", "a session whose process is killed with kill -9, and continued: nothing lost, nothing run twice"},
		}},
		{"setup", none, nil, inWorkspace("", (*invocation).runSetup), []use{{"[--preset NAME] [--model M] [--yes]", "connect a model: finds keys and local servers, tests one, writes your settings"}}},
		{"models", none, nil, inWorkspace("", (*invocation).runModels), []use{{"[--json]", "the models that can be reached, with window and price"}}},
		{"sessions", none, nil, inWorkspace("", (*invocation).runSessions), []use{{"[--json]", "the sessions kept here, the newest first"}}},
		{"export", one, nil, inWorkspace("coder export needs the id of one session; coder sessions lists them", (*invocation).runExport), []use{{"ID [--format json|md|html|bundle|request]", "a session, to be read elsewhere, or as a bundle to be gone on with there"}}},
		{"import", one, nil, inWorkspace("coder import needs a file that coder export --format bundle wrote", (*invocation).runImport), []use{{"FILE [--session-id ID]", "take in a session from another machine: paths rewritten, nothing granted"}}},
		{"audit", func(args []string) bool {
			return len(args) <= 1 || len(args) == 2 && slices.Contains([]string{"show", "verify"}, args[0])
		}, []string{"show", "verify"}, inWorkspace("", (*invocation).runAudit), []use{{"[show|verify] [SESSION] [--json]", "what was done in a session, and whether its record is whole"}}},
		{"why", one, nil, (*invocation).runWhy, []use{{"FILE[:LINE] [--json]", "which prompt, call and approval stand behind a file or a line of it"}}},
		{"blame", one, nil, (*invocation).runBlame, []use{{"FILE [--json]", "which session or commit every line of a file comes from"}}},
		{"show", one, nil, inWorkspace("coder show needs the id of one session; coder sessions lists them", (*invocation).runShow), []use{{"SESSION [--at SEQ] [--file PATH]", "a session as of a record: conversation, todos, questions, context, files; --file prints one of these"}}},
		{"diff", func(args []string) bool { return len(args) == 2 && strings.Contains(args[1], "..") }, nil, inWorkspace("coder diff needs a session and two of its records: coder diff SESSION A..B", (*invocation).runDiff), []use{{"SESSION A..B", "what the files of a session changed between two of its records"}}},
		{"fork", one, nil, inWorkspace("coder fork needs the id of one session; coder sessions lists them", (*invocation).runFork), []use{{"SESSION [--at SEQ] [--session-id ID]", "a new session from a record of another one, with the files of then in a git worktree or a copy"}}},
		{"restore", one, nil, inWorkspace("coder restore needs the id of one session; coder sessions lists them", (*invocation).runRestore), []use{{"SESSION --at SEQ [--dry] [--force]", "bring the files of a session back to a record; --dry only shows what would change, /undo takes it back"}}},
		{"worktree", func(args []string) bool {
			return len(args) == 1 && args[0] == "list" || len(args) == 2 && args[0] == "remove"
		}, worktreeVerbs, inWorkspace("coder worktree takes list, or remove NAME", (*invocation).runWorktree), []use{
			{"list [--json]", "the folders that coder fork made"},
			{"remove NAME [--force]", "delete one with the session in it; --force also one that was worked in"},
		}},
		{"replay", one, nil, inWorkspace("coder replay needs the id of one session; coder sessions lists them", (*invocation).runReplay), []use{
			{"SESSION [--until SEQ] [--speed N] [--step]", "play a session again as it was shown; nothing is run or sent"},
			{"SESSION --verify [--json]", "run it again, confined and offline in a copy of its starting files, with the model's replies of the record, and tell the first difference"},
		}},
		{"golden", func(args []string) bool {
			return len(args) > 0 && (args[0] == "run" || len(args) == 1 && args[0] == "list" || len(args) == 3 && args[0] == "save")
		}, goldenVerbs, inWorkspace("coder golden needs a verb: save, run or list", (*invocation).runGolden), []use{
			{"save SESSION NAME", "keep a session to be run again: what the model said, the starting files and what came of it, without keys"},
			{"run [NAME ...] [--update] [--json]", "run such sessions again, offline and confined, and show what comes out otherwise; --update takes it as right"},
			{"list", "the golden sessions of this project"},
		}},
		{"context", one, nil, inWorkspace("coder context needs the id of one session; coder sessions lists them", (*invocation).runContext), []use{{"SESSION [--json]", "what filled the model's window, by source, what it cost, what was dropped, where the cache broke"}}},
		{"search", func(args []string) bool { return len(args) > 0 }, nil, (*invocation).runSearch, []use{{"WORDS [--json]", "find words in all sessions of all projects, the newest first"}}},
		{"usage", none, nil, (*invocation).runUsage, []use{{"[--since DAY|AGE] [--by day|project|model] [--json]", "what models used and cost in all projects"}}},
		{"tasks", upTo(1), nil, (*invocation).runTasks, []use{{"[--json] [--full [INTERACTION]]", "tasks and their state, with open questions; --full shows all of these"}}},
		{"respond", one, nil, inWorkspace("coder respond needs the id of one interaction; coder tasks lists them", (*invocation).runRespond), []use{{"INTERACTION --option ID [--input TEXT] [--comment TEXT]", "answer an open question"}}},
		{"watch", upTo(1), nil, inWorkspace("", (*invocation).runWatch), []use{{"[SESSION] [--from SEQ|--last]", "follow a session that another process works in"}}},
		{"web", none, nil, inWorkspace("", (*invocation).runWeb), []use{{"[--listen HOST:PORT]", "sessions in a browser: follow, answer, begin, review and replay them"}}},
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
		}, []string{"check", "test", "list", "revoke"}, inWorkspace("coder policy takes check COMMAND, list, revoke N, or test --against sessions", (*invocation).runPolicy), []use{
			{"check [--mode M] [--json] COMMAND", "what would become of a command, and why"},
			{"test --against sessions [--json]", "what today's rules would have said to past calls"},
			{"list [--json]", "what was always allowed in this project and in its sessions, when and why"},
			{"revoke N|all", "end it"},
		}},
		{"prune", none, nil, (*invocation).runPrune, []use{{"[--older-than 30d] [--yes] [--json]", "what is kept here and not used any more; --yes deletes it"}}},
		{"trust", upTo(1), nil, (*invocation).runTrust, []use{{"[DIR] [--revoke]", "trust the settings of a project"}}},
		{"config", oneOf("show", "path", "schema"), []string{"show", "path", "schema"}, (*invocation).runConfig, []use{{"[show|path|schema]", "the settings and where each came from"}}},
		{"mcp", func(args []string) bool {
			return len(args) == 1 || len(args) > 0 && (args[0] == "add" && len(args) > 2 || len(args) <= 2 && slices.Contains(mcpVerbs, args[0]))
		}, mcpVerbs, (*invocation).runMCP, []use{
			{"add NAME [--scope S] [-e K=V] -- COMMAND ARGS", "write an MCP server into your settings, or with --scope project into .mcp.json"},
			{"add NAME [--transport http|sse] [-H 'K: V'] URL", "the same for one on the web"},
			{"list [--json]", "the MCP servers there are here"},
			{"get NAME", "the settings of one"},
			{"test [NAME] [--json]", "start them and tell what they have"},
			{"login NAME", "log in with one on the web, by your browser"},
			{"logout NAME", "forget the login"},
			{"serve [--mode M]", "offer the tools of this program, and whole tasks, to another agent on stdin and stdout"},
			{"remove NAME [--scope S]", "take one out of the settings"},
		}},
		{"plugin", func(args []string) bool {
			return len(args) == 2 && (args[0] == "add" || args[0] == "remove") || len(args) == 1 && args[0] == "list"
		}, pluginVerbs, (*invocation).runPlugin, []use{
			{"add PATH [--yes]", "show what a plugin brings, and use it from now on as it is"},
			{"list [--json]", "the plugins that were added, and whether they are on"},
			{"remove NAME", "use it no more"},
		}},
		{"fleet", func(args []string) bool { return len(args) > 0 && slices.Contains(fleetVerbs, args[0]) }, fleetVerbs, (*invocation).runFleet, []use{{"up|submit|ps|answer|result|…", "many agents at work, on one machine or several; coder fleet help tells more"}}},
		{"acp", none, nil, (*invocation).runACP, []use{{"", "work in an editor that speaks the Agent Client Protocol, over stdin and stdout"}}},
		{"doctor", none, nil, (*invocation).runDoctor, []use{{"[--json]", "how everything the program needs stands, and what to do about it"}}},
		{"bug", upTo(1), nil, (*invocation).runBug, []use{{"[SESSION] [--yes]", "write versions, settings and a session into a folder, keys masked, for a bug report"}}},
		{"uninstall", none, nil, (*invocation).runUninstall, []use{{"[--data] [--yes]", "show how to remove coder and what data it left, and remove what you choose"}}},
		{"completion", oneOf(shellNames...), shellNames, (*invocation).runCompletion, []use{{"bash|zsh|fish", "a script that makes the shell complete the command line"}}},
		{"man", none, nil, (*invocation).runMan, []use{{"", "the manual page; coder man | man -l -"}}},
		{"help", upTo(1), nil, (*invocation).runHelp, []use{{"[SUBCOMMAND]", "this help, or that of a subcommand"}}},
		{"version", none, nil, (*invocation).runVersion, []use{{"[--json]", "the version, and the commit and Go that it was built from"}}},
	}
}

// Subcommands that ask about sessions, and those that ask about a file.
var (
	ofSessions = []string{"show", "diff", "fork", "restore", "replay", "context", "export", "audit", "golden", "sessions", "tasks", "respond", "watch"}
	ofFiles    = []string{"why", "blame"}
)

// lookAbove finds the sessions of the project that the program was called somewhere
// below of, where they are asked about or gone on with.
func (inv *invocation) lookAbove(fl *flags) {
	if fl.Dir != "" || inv.Dir == "" {
		return
	}
	file := ""
	switch {
	case fl.command == nil:
		if !fl.session.Resumes() || fl.driven {
			return
		}
	case fl.command.name == "golden" && app.HasGoldens(inv.Dir):
		return
	case slices.Contains(ofFiles, fl.command.name) && len(fl.args) == 1:
		file = inv.named(fl.args[0])
	case !slices.Contains(ofSessions, fl.command.name):
		return
	}
	if root := app.SessionsAbove(inv.Env.Env, inv.Dir, file); root != inv.Dir {
		fl.Dir, inv.below = root, inv.Dir
	}
}

// named is where the file is that a person names, with a line of it or not.
func (inv *invocation) named(arg string) string {
	if file, _, err := slash.SplitLine(arg); err == nil {
		arg = file
	}
	if !filepath.IsAbs(arg) {
		arg = filepath.Join(inv.Dir, arg)
	}
	return filepath.Clean(arg)
}

// mistaken says how a subcommand of the timeline is called, if the line is no prompt
// but such a call with arguments that it does not take: the first of them is a session
// or a file that there is. The subcommand may be mistyped.
func (inv *invocation) mistaken() error {
	words := inv.flags.args
	if len(words) < 2 {
		return nil
	}
	name, first := words[0], words[1]
	all := subcommands()
	is := func(s subcommand) bool { return s.name == name }
	typed := name
	if !slices.ContainsFunc(all, is) {
		name = mistyped(name, slices.Concat(ofSessions, ofFiles))
	}
	if (name == "golden" && first == "save" || name == "audit" && (first == "show" || first == "verify")) && len(words) > 2 {
		first = words[2]
	}
	there := false
	switch {
	case slices.Contains(ofSessions, name):
		there = app.HasSession(app.SessionsAbove(inv.Env.Env, inv.settings.Root, ""), first)
	case slices.Contains(ofFiles, name) || name == "import" || name == "trust":
		info, err := os.Lstat(inv.named(first))
		there = err == nil && info.IsDir() == (name == "trust")
	}
	i := slices.IndexFunc(all, is)
	if !there || i < 0 {
		return nil
	}
	if name != typed {
		return usagef("there is no subcommand %s; did you mean %s? (coder -- %s makes it a prompt)", typed, name, strings.Join(words, " "))
	}
	return usagef("it is called as coder %s (coder -- %s makes it a prompt)", name+" "+all[i].uses[0].args, strings.Join(words, " "))
}

// use is how s is called with a verb.
func (s subcommand) use(verb string) string {
	for _, u := range s.uses {
		if u.args == verb || strings.HasPrefix(u.args, verb+" ") {
			return u.args
		}
	}
	return s.uses[0].args
}

// findSubcommand tells a subcommand from a prompt by the words of a line. A word
// alone that is nearly one, or one elsewhere, is a mistake, since it would be sent to a model; so is one
// alone behind a subcommand that takes none, or none but certain words, and one that is
// nearly such a word where the line would be a call with it. What begins with a sign is for the session: /diff, !ls, @file.
func findSubcommand(words []string) (*subcommand, error) {
	if len(words) == 0 {
		return nil, nil
	}
	all, line := subcommands(), strings.Join(words, " ")
	i := slices.IndexFunc(all, func(s subcommand) bool { return s.name == words[0] })
	if i < 0 {
		return nil, noSubcommand(all, words)
	}
	s, args := &all[i], words[1:]
	thing := slices.Contains(things, s.name)
	if len(args) == 0 || s.takes(args) || len(args) <= 2 && slices.Contains(s.verbs, args[0]) { // it says itself what is wrong
		return s, nil
	}
	if thing && len(args) == 3 && slices.Contains(s.verbs, args[0]) {
		return nil, usagef("it is called as coder %s (coder -- %s makes it a prompt)", s.name+" "+s.use(args[0]), line)
	}
	near := nearest.Of(args[0], s.verbs)
	if len(args) > 1 {
		near = mistyped(args[0], s.verbs)
		called := s.takes(append([]string{near}, args[1:]...))
		ofOthers := slices.Contains(elsewhereVerbs, args[0]) || len(args) == 2 && slices.Contains(packageVerbs, args[0])
		if !called && (!thing || !ofOthers || slices.Contains(s.verbs, args[0])) {
			return nil, nil
		}
		if !called {
			near = ""
		}
	}
	switch {
	case near != "":
		return nil, usagef("there is no %s %s; did you mean %s %s? (coder -- %s makes it a prompt)", s.name, args[0], s.name, near, line)
	case len(s.verbs) > 0:
		return nil, usagef("there is no %s %s; it takes %s (coder -- %s makes it a prompt)", s.name, args[0], strings.Join(s.verbs, ", "), line)
	}
	if len(args) == 1 || thing {
		return nil, usagef("it is called as coder %s (coder -- %s makes it a prompt)", strings.TrimSpace(s.name+" "+s.uses[0].args), line)
	}
	return nil, nil
}

// noSubcommand is what is wrong with a line that begins with no subcommand, if it looks like
// the call of one: of a mistyped one, of a command of a session, or of what other programs have.
func noSubcommand(all []subcommand, words []string) error {
	first, line := words[0], strings.Join(words, " ")
	meant := func(what string) error {
		return usagef("there is no subcommand %s; did you mean %s? (coder -- %s makes it a prompt)", first, what, line)
	}
	var names []string
	for _, s := range all {
		names = append(names, s.name)
		if mistyped(first, []string{s.name}) != "" && (len(words) == 2 || len(words) == 3) && slices.Contains(s.verbs, words[1]) {
			return meant(s.name + " " + words[1])
		}
	}
	long := slices.DeleteFunc(slices.Clone(inSession), func(name string) bool { return len(name) < 6 }) // too many words are nearly one of the others
	near, alone := mistyped(first, names), len(words) == 1
	switch {
	case strings.IndexAny(first, "/!@") == 0, alone && slices.Contains(saidToModels, first):
	case len(words) > 2, len(words) == 2 && !slices.Contains(withName, first) && !slices.Contains(elsewhereVerbs, words[1]):
	case slices.Contains(inSession, first):
		return usagef("there is no subcommand %s; in a session it is /%s (coder -- %s makes it a prompt)", first, line, line)
	case slices.Contains(names, first+"s"):
		return meant(first + "s")
	case slices.Contains(elsewhere, first):
		return usagef("there is no subcommand %s; coder --help lists them (coder -- %s makes it a prompt)", first, line)
	case near != "" && (alone || slices.Contains(things, near)):
		return meant(near)
	case alone && mistyped(first, long) != "":
		return usagef("there is no subcommand %s; in a session it is /%s (coder -- %s makes it a prompt)", first, mistyped(first, long), line)
	}
	return nil
}

// saidToModels are words that make a prompt alone.
var saidToModels = []string{"go", "hi", "hey", "hello", "yes", "no", "ok", "fix", "lint", "test", "docs", "why"}

// oneWord reports whether the prompt of a new session is a single word by which a subcommand
// may be meant, and none of those that are said to people and models.
func (f *flags) oneWord() bool {
	return len(f.args) == 1 && !f.prompt && !f.session.Resumes() && !slices.Contains(saidToModels, f.args[0]) && strings.Trim(f.args[0], "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// inSession are words that are commands in a session and no subcommands, elsewhere those that
// other programs have: neither alone is anything that somebody would ask a model.
var (
	inSession = []string{"agents", "auto-edit", "build", "clear", "compact", "cost", "create-skill", "default", "diff", "exit", "init", "jobs", "keys", "mode", "model", "new", "permissions", "plan", "quit", "redo", "resume", "rewind", "skills", "status", "todos", "tools", "undo", "yolo"}
	elsewhere = []string{"account", "attach", "auth", "cache", "chat", "clean", "configure", "connect", "daemon", "continue", "debug", "detach", "env", "exec", "feedback", "gc", "history", "hook", "hooks", "info", "install", "list", "log", "login", "logout", "logs", "ls", "memory", "open", "ping", "plugins", "profile", "profiles", "provider", "providers", "proxy", "ps", "reset", "restart", "server", "serve", "session", "settings", "start", "stats", "stop", "theme", "themes", "tokens", "update", "upgrade", "usage", "whoami"}

	// withName are those that a name follows, things the subcommands that are no verbs, and
	// elsewhereVerbs what other programs do with such.
	withName       = []string{"account", "auth", "exec", "login", "logout", "mode", "model", "providers", "resume", "session", "upgrade"}
	things         = []string{"config", "fleet", "golden", "mcp", "models", "plugin", "policy", "sessions", "tasks", "worktree"}
	packageVerbs   = []string{"info", "instal", "install", "search", "uninstall", "update", "upgrade"} // with one name
	elsewhereVerbs = []string{"add", "delete", "disable", "edit", "enable", "get", "init", "list", "login", "logout", "ls", "new", "pull", "remove", "reset", "rm", "set", "show", "status", "unset", "use"}
)

// mistyped is the name that a word is within two letters of, "" if there is none.
func mistyped(word string, names []string) string {
	for off := 1; off <= 2; off++ {
		for _, name := range names {
			if len(name) > off+1 && nearest.Distance(strings.ToLower(word), name) <= off {
				return name
			}
		}
	}
	return ""
}
