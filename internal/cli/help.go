package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"coder/internal/ui/i18n"
	"coder/internal/ui/term/ink"
)

// usageForms lists the ways to start the program.
var usageForms = []usageLine{
	{"[flags] [prompt]", "start a session; a prompt is its first message"},
	{"-p [flags] [prompt]", "run one turn, print the answer and exit"},
	{"COMMAND [flags]", "run a command"},
}

// firstExamples are on the help's first screen.
var firstExamples = []usageLine{
	{"coder", "start a session in this folder"},
	{`coder "fix the login test"`, "start with a prompt"},
	{"coder -c", "continue the last session"},
	{`git diff | coder -p "review this"`, "print one answer"},
	{"coder web", "follow and answer in a browser"},
}

// firstCommands and firstFlags are on the first screen, in words that fit there.
var (
	firstCommands = []usageLine{
		{"setup", "connect a model"},
		{"models", "list the models you can use"},
		{"sessions", "list the sessions of this project"},
		{"export", "export a session to read or share"},
		{"why", "show where a line of a file comes from"},
		{"tasks", "list tasks and open questions"},
		{"respond", "answer an open question"},
		{"web", "use sessions in a browser"},
		{"policy", "show and revoke what coder may do"},
		{"config", "show and change the settings"},
		{"mcp", "add and test MCP servers"},
		{"doctor", "check what coder needs"},
	}
	firstFlags = []usageLine{
		{"print", "run one turn, print the answer and exit"},
		{"continue", "continue the last session"},
		{"resume", "continue session ID, or choose one"},
		{"model", "model to use"},
		{"provider", "openai, anthropic, ollama, … or a URL"},
		{"mode", "build, plan, default, auto-edit or yolo"},
		{"allowed-tools", "allow without asking, such as 'bash(go test *)'"},
		{"auto-approve", "allow calls that need approval, except dangerous ones"},
		{"max-budget-usd", "stop before the session costs more than $N"},
		{"add-dir", "let file tools use DIR too; repeatable"},
		{"cwd", "work in DIR"},
		{"help", "print this help and exit"},
	}
)

// commandGroups groups the commands by purpose, and flagGroups the flags.
var (
	commandGroups = []usageLine{
		{"demo setup models doctor", "Start"},
		{"sessions watch web tasks respond export import prune acp", "Sessions"},
		{"why blame review search usage show diff context audit", "History"},
		{"fork restore worktree replay golden", "Go back and run again"},
		{"policy trust config mcp plugin", "Settings and permissions"},
		{"fleet", "Many machines"},
		{"completion man help version update bug uninstall events", "This program"},
	}
	flagGroups = []usageLine{
		{"print output-format input-format events json-schema include-partial-messages verbose", "Input and output"},
		{"continue resume fork-session session-id no-session-persistence bare cwd", "Session"},
		{"provider profile model fallback-model effort max-steps max-budget-usd wait-limit script", "Model and limits"},
		{"mode permission-mode yolo allowed-tools disallowed-tools tools on-ask auto-approve require-verified",
			"Permissions"},
		{"image add-dir system-prompt system-prompt-file append-system-prompt mcp-config strict-mcp-config plugin-dir",
			"Context and tools"},
		{"config set settings lang no-color version help", "Settings and screen"},
		{"permission-prompt-tool replay-user-messages allow-dangerously-skip-permissions resume-session-at allowedTools disallowedTools" +
			" max-turns max-thinking-tokens thinking dangerously-skip-permissions dangerously-bypass-approvals-and-sandbox full-auto" +
			" agents cd output-schema ephemeral skip-git-repo-check", "As in other agents"},
	}
)

// commandExamples lists calls of each command.
var commandExamples = map[string][]string{
	"demo": {"coder demo", "coder demo --crash"},
	"setup": {"coder setup", "coder setup --preset ollama --model qwen3-coder --yes",
		"coder setup --preset anthropic --api-key-stdin < key.txt", "coder setup --from claude"},
	"models": {"coder models"},
	"sessions": {"coder sessions", "coder sessions --json | jq -r '.[0].session_id'",
		"coder sessions rename ID login bug", "coder sessions archive ID", "coder sessions delete ID"},
	"export": {"coder export SESSION --format html > session.html",
		"coder export SESSION --format bundle > session.bundle"},
	"import":   {"coder import session.bundle"},
	"audit":    {"coder audit show", "coder audit verify SESSION", "coder audit ship --to audit.jsonl"},
	"why":      {"coder why login.go:42"},
	"blame":    {"coder blame login.go"},
	"show":     {"coder show SESSION --at 120", "coder show SESSION --at 120 --file login.go"},
	"diff":     {"coder diff SESSION 40..120"},
	"fork":     {"coder fork SESSION --at 120"},
	"restore":  {"coder restore SESSION --at 120 --dry", "coder restore SESSION --at 120"},
	"worktree": {"coder worktree list", "coder worktree remove NAME"},
	"replay":   {"coder replay SESSION --speed 4", "coder replay SESSION --verify"},
	"golden":   {"coder golden save SESSION login", "coder golden run --junit golden.xml"},
	"context":  {"coder context SESSION"},
	"review": {"coder review", "coder review main...HEAD --format sarif > review.sarif",
		"coder review --fail-on warning < change.diff"},
	"search": {"coder search empty password"},
	"usage":  {"coder usage --by project --since 7d"},
	"tasks":  {"coder tasks", "coder tasks --full"},
	"respond": {"coder respond INTERACTION --option approve",
		`coder respond INTERACTION --option reject --comment "use the other table"`},
	"watch":  {"coder watch", "coder watch SESSION --last"},
	"web":    {"coder web", "coder web --listen 0.0.0.0:8443"},
	"policy": {"coder policy check 'rm -rf build'", "coder policy test --against sessions", "coder policy revoke 2"},
	"prune":  {"coder prune", "coder prune --older-than 90d --yes"},
	"trust":  {"coder trust", "coder trust --revoke"},
	"config": {"coder config set ui.theme dark", "coder config list theme", "coder config schema > schema.json"},
	"mcp": {"coder mcp add files -- npx @modelcontextprotocol/server-filesystem .",
		"coder mcp add docs https://example.org/mcp", "coder mcp test"},
	"plugin": {"coder plugin add ./my-plugin", "coder plugin add owner/repo@v1.2.0", "coder plugin list"},
	"fleet":  {`coder fleet submit "fix the tests" --repo . --count 5`, "coder fleet ps"},
	"acp":    {"coder acp"},
	"doctor": {"coder doctor"},
	"completion": {`eval "$(coder completion bash)"`, "coder completion fish | source",
		"coder completion powershell | Out-String | Invoke-Expression"},
	"man":       {"coder man | man -l -"},
	"bug":       {"coder bug", "coder bug SESSION"},
	"update":    {"coder update --check", "coder update", "coder update --rollback"},
	"uninstall": {"coder uninstall"},
	"help":      {"coder help all", "coder help fork"},
	"version":   {"coder version --json"},
	"events":    {"coder events schema > coder.schema.json"},
}

// exitCodes lists the program's exit codes.
var exitCodes = []usageLine{
	{"0", "done"},
	{"1", "error"},
	{"2", "wrong usage"},
	{"30", "finished, but a call was denied"},
	{"31", "a question waits for an answer"},
	{"41", "the provider rejected the key"},
	{"42", "wrong input"},
	{"44", "the required sandbox is not available"},
	{"52", "wrong settings"},
	{"53", "step limit reached (runtime.max_steps)"},
	{"54", "the provider failed"},
	{"55", "the folder is not trusted"},
	{"56", "done, but not everything could be saved on disk"},
	{"57", "done, but the last changes did not pass a check (--require-verified) or a review (coder review)"},
	{"58", "budget used up"},
	{"130", "interrupted"},
}

// environmentVars lists the variables that the program reads, except vendors' keys.
var environmentVars = []usageLine{
	{"CODER_PROVIDER, CODER_PROFILE", "provider or profile to use"},
	{"CODER_BASE_URL, CODER_API_KEY, CODER_MODEL", "URL, key and model of the provider"},
	{"CODER_MAX_STEPS", "most model replies in a turn"},
	{"CODER_LOCAL_SERVERS", "addresses where coder looks for local servers"},
	{"CODER_HOME", "folder of your settings and of coder's own data (default ~/.coder)"},
	{"XDG_CONFIG_HOME, XDG_CACHE_HOME", "where coder finds the settings of git and the caches of tools"},
	{"NO_COLOR, CLICOLOR=0", "do not use colours"},
	{"FORCE_COLOR, CLICOLOR_FORCE", "use colours even if the output is not a terminal"},
	{"LC_ALL, LC_MESSAGES, LANG", "language of the screen"},
	{"EDITOR, VISUAL", "editor that Ctrl+G opens"},
	{"PAGER", "program that Ctrl+O gives long output; unset: it is printed"},
	{"HTTPS_PROXY, HTTP_PROXY, NO_PROXY", "proxy for requests"},
}

// runHelp prints the help's first screen, the complete help, or the help of a command.
func (inv *invocation) runHelp(context.Context) error {
	what := strings.Join(inv.flags.args, " ")
	all := subcommands()
	i := slices.IndexFunc(all, func(s subcommand) bool { return s.name == what })
	switch {
	case what == "":
		return writeHelp(inv.Stdout, inv.columns, inv.printer, nil)
	case what == "all":
		return writeAllHelp(inv.Stdout, inv.columns, inv.printer)
	case i >= 0:
		return writeHelp(inv.Stdout, inv.columns, inv.printer, &all[i])
	}
	return usageErrorf("unknown command %s; coder help all lists them (to send it as a prompt: coder -- %s)", what,
		"help "+what)
}

// writeHelp prints the first screen, or the help of a command, wrapped to columns; 0 sets no limit.
func writeHelp(w io.Writer, columns int, words *i18n.Printer, of *subcommand) error {
	p := &helpPage{printer: words}
	if of == nil {
		p.writeFirstScreen()
	} else {
		p.writeCommand(*of)
	}
	_, err := io.WriteString(w, wrapColumns(words.DisplaySigns(p.String()), columns))
	return err
}

// writeAllHelp prints every command, flag, exit code and variable.
func writeAllHelp(w io.Writer, columns int, words *i18n.Printer) error {
	p := &helpPage{printer: words}
	p.writeAll()
	_, err := io.WriteString(w, wrapColumns(words.DisplaySigns(p.String()), columns))
	return err
}

// helpPage is a page of help in two columns.
type helpPage struct {
	strings.Builder
	printer *i18n.Printer
}

func (p *helpPage) writeTitle(text string) {
	if p.Len() > 0 {
		p.WriteByte('\n')
	}
	fmt.Fprintln(p, text)
}

// writeRow writes a name and its description from column at on; a longer name gets its own line.
func (p *helpPage) writeRow(at int, name, about string) {
	if name = "  " + name; len(name)+2 > at && about != "" {
		name += "\n" + strings.Repeat(" ", at-2)
	}
	fmt.Fprintln(p, strings.TrimRight(fmt.Sprintf("%-*s  %s", at-2, name, about), " "))
}

func (p *helpPage) writeRows(at int, before string, list []usageLine) {
	for _, u := range list {
		p.writeRow(at, strings.TrimSpace(before+u.args), p.printer.T(u.description))
	}
}

func (p *helpPage) writeFirstScreen() {
	p.writeTitle(p.printer.T("coder — a coding agent for the terminal"))
	p.WriteByte('\n')
	p.writeRows(30, "coder ", usageForms)
	p.writeTitle(p.printer.T("Examples"))
	p.writeRows(38, "", firstExamples)
	p.writeTitle(p.printer.T("Commands"))
	p.writeRows(14, "", firstCommands)
	p.writeTitle(p.printer.T("Flags"))
	for _, f := range firstFlags {
		o := findOption(f.args)
		if len(o.value) > 10 { // a list, which the description contains
			o.value = "NAME"
		}
		p.writeRow(27, flagUsage(o), p.printer.T(f.description))
	}
	p.WriteByte('\n')
	fmt.Fprintln(p, p.printer.T("coder help all lists every command and flag; coder help COMMAND explains one."))
}

func (p *helpPage) writeAll() {
	p.writeTitle(p.printer.T("coder — a coding agent for the terminal"))
	p.WriteByte('\n')
	p.writeRows(34, "coder ", usageForms)
	commands := subcommands()
	for _, g := range commandGroups {
		p.writeTitle(p.printer.T(g.description))
		for name := range strings.FieldsSeq(g.args) {
			i := slices.IndexFunc(commands, func(s subcommand) bool { return s.name == name })
			p.writeRows(34, "coder "+name+" ", commands[i].usages)
		}
	}
	for _, g := range flagGroups {
		p.writeTitle(p.printer.T("Flags: %s", p.printer.T(g.description)))
		for name := range strings.FieldsSeq(g.args) {
			p.writeFlag(findOption(name))
		}
	}
	p.writeTitle(p.printer.T("Exit codes"))
	p.writeRows(8, "", exitCodes)
	p.writeTitle(p.printer.T("Environment"))
	p.writeRows(34, "", environmentVars)
	p.writeTitle(p.printer.T("coder help COMMAND lists the flags of a command."))
}

func (p *helpPage) writeCommand(s subcommand) {
	p.writeRows(34, "coder "+s.name+" ", s.usages)
	p.writeTitle(p.printer.T("Examples"))
	for _, line := range commandExamples[s.name] {
		p.writeRow(34, line, "")
	}
	if own := ownFlags(s.name); len(own) > 0 {
		p.writeTitle(p.printer.T("Flags"))
		for _, o := range own {
			p.writeFlag(o)
		}
	}
	p.writeTitle(p.printer.T("coder help all lists the other flags and the exit codes."))
}

func (p *helpPage) writeFlag(o option) { p.writeRow(34, flagUsage(o), p.printer.T(o.help)) }

// flagUsage returns a flag as written, with its value.
func flagUsage(o option) string {
	name := "    --" + o.long
	if o.short != "" {
		name = "-" + o.short + ", --" + o.long
	}
	if len(o.value) > 40 { // too long for one word
		o.value = strings.ReplaceAll(o.value, "|", " | ")
	}
	switch {
	case o.optional:
		name += " [" + o.value + "]"
	case o.value != "":
		name += " " + o.value
	}
	return name
}

// allFlags returns all flags of the command line.
func allFlags() []option { return append(allOptions(), foreignOptions()...) }

func findOption(long string) option {
	all := allFlags()
	return all[slices.IndexFunc(all, func(o option) bool { return o.long == long })]
}

// ownFlags returns the flags of one command.
func ownFlags(command string) []option {
	return slices.DeleteFunc(allOptions(), func(o option) bool { return o.command == "" || !o.isOwnOf(command) })
}

// wrapColumns wraps two-column lines between words: continuations are below the second column, or indented if
// that leaves little room.
func wrapColumns(text string, columns int) string {
	var b strings.Builder
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		w := ink.Wrap{Put: func(_ ink.Style, text string) { b.WriteString(text) }, Width: columns,
			Indent: ink.HangIndent(line)}
		if gap := strings.LastIndex(line, "  ") + 2; gap > 1 {
			w.Indent = ink.Width(line[:gap])
			if columns > 0 && columns-w.Indent < 30 && ink.Width(line) > columns {
				w.Indent = 8
				if first := strings.TrimRight(line[:gap], " "); first != "" {
					w.Write(ink.Style{}, first)
					w.End()
					w.Indent = 8
					b.WriteByte('\n')
				}
				line = strings.Repeat(" ", w.Indent) + line[gap:]
			}
		}
		w.Write(ink.Style{}, line)
		w.End()
	}
	return b.String()
}
