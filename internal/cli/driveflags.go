package cli

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"coder/internal/agent/hooks"
	"coder/internal/agent/subagent"
	"coder/internal/app"
	"coder/internal/policy/mode"
	"coder/internal/policy/rule"
)

// foreignModes are the mode names of programs written for another agent.
var foreignModes = []string{"acceptEdits", "bypassPermissions", "dontAsk", "auto"}

// isDriven reports whether the command line comes from a driving program: unknown flags must not keep it
// from working.
func isDriven(args []string) bool {
	for i, arg := range args {
		if arg == "--" {
			return false
		}
		value, joined := strings.CutPrefix(arg, "--input-format=")
		if arg == "--input-format" && i+1 < len(args) {
			value, joined = args[i+1], true
		}
		if joined && (value == "stream-json" || value == "events") {
			return true
		}
	}
	return false
}

// foreignOptions returns flags of programs written for another agent: other names of our flags, and a few
// that only such programs use. Shells do not complete them.
func foreignOptions() []option {
	list := func(long, help string, take func(*flags, []rule.Spec)) option {
		return option{long: long, value: "RULES", help: help, set: func(f *flags, v string) error {
			specs, err := rule.ParseSpecs(joinForeignSpecs(v))
			if err != nil {
				return usageErrorf("--%s: %v", long, err)
			}
			take(f, app.NormalizeSpecs(specs))
			return nil
		}}
	}
	yes := func(long, help string, p func(*flags) *bool) option {
		return option{long: long, help: help, set: func(f *flags, _ string) error { *p(f) = true; return nil }}
	}
	text := func(long, value, help string, p func(*flags) *string) option {
		return option{long: long, value: value, help: help, set: func(f *flags, v string) error { *p(f) = v; return nil }}
	}
	several := func(o option) option { o.more = isForeignSpec; return o }
	inMode := func(long, help, name string) option {
		return option{long: long, help: help, set: func(f *flags, _ string) error { f.Mode = name; return nil }}
	}
	return []option{
		text("cd", "DIR", "same as --cwd", func(f *flags) *string { return &f.Dir }),
		inMode("full-auto", "same as --mode auto-edit", mode.AutoEdit),
		inMode("dangerously-bypass-approvals-and-sandbox", "same as --yolo", mode.Yolo),
		inMode("dangerously-skip-permissions", "same as --yolo", mode.Yolo),
		text("output-schema", "FILE", "same as --json-schema", func(f *flags) *string { return &f.schema }),
		yes("ephemeral", "same as --no-session-persistence", func(f *flags) *bool { return &f.Ephemeral }),
		{long: "skip-git-repo-check", help: "coder needs no repository", set: func(*flags, string) error { return nil }},
		{long: "agents", value: "JSON", help: "define agents: {NAME: {description, prompt, tools, model}}",
			set: func(f *flags, v string) (err error) {
				var by map[string]json.RawMessage
				if err := json.Unmarshal([]byte(v), &by); err != nil {
					return usageErrorf("--agents must be a JSON object: %v", err)
				}
				if f.Driver.Agents, err = subagent.ParseDefinitions(by); err != nil {
					return usageErrorf("--agents: %v", err)
				}
				return nil
			}},
		several(list("allowedTools", "same as --allowed-tools", func(f *flags,
			s []rule.Spec) {
			f.AllowTools = append(f.AllowTools, s...)
		})),
		several(list("disallowedTools", "same as --disallowed-tools",
			func(f *flags, s []rule.Spec) { f.DenyTools = append(f.DenyTools, s...) })),
		list("tools", "offer the model only these tools; default means all", func(f *flags, s []rule.Spec) {
			if f.OnlyTools = &s; len(s) == 1 && s[0] == (rule.Spec{Tool: "default"}) {
				f.OnlyTools = nil
			}
		}),
		{long: "max-turns", value: "N", help: "same as --max-steps", set: func(f *flags, v string) (err error) {
			if f.MaxSteps, err = strconv.Atoi(v); err != nil || f.MaxSteps < 1 {
				return usageErrorf("--max-turns must be a number above zero, not %q", v)
			}
			return nil
		}},
		{long: "max-thinking-tokens", value: "N", help: "--effort as a number of tokens",
			set: func(f *flags, v string) error {
				n, err := strconv.Atoi(v)
				if err != nil {
					return usageErrorf("--max-thinking-tokens must be a number, not %q", v)
				}
				f.Effort = effortForTokens(n)
				return nil
			}},
		{long: "thinking", value: "WORD", help: "disabled is --effort none", set: func(f *flags, v string) error {
			if v == "disabled" {
				f.Effort = "none"
			}
			return nil
		}},
		text("permission-prompt-tool", "stdio", "ask the driving program for approval",
			func(f *flags) *string { return &f.approver }),
		text("system-prompt-file", "FILE", "replace the system prompt with the text of FILE",
			func(f *flags) *string { return &f.systemPromptFile }),
		text("fallback-model", "NAME", "model to use when the first one fails",
			func(f *flags) *string { return &f.FallbackModel }),
		text("settings", "FILE|JSON", "settings of another agent: permissions and hooks",
			func(f *flags) *string { return &f.settings }),
		yes("replay-user-messages", "print the messages of the driving program too",
			func(f *flags) *bool { return &f.echoMessages }),
		yes("allow-dangerously-skip-permissions", "let the driving program switch to yolo mode",
			func(f *flags) *bool { return &f.allowBypass }),
		yes("fork-session", "with -c or -r: continue in a new session", func(f *flags) *bool { return &f.session.ForkCopy }),
		text("resume-session-at", "ID", "with --fork-session: start at this message",
			func(f *flags) *string { return &f.resumeAt }),
	}
}

// foreignTools are the names of tools that Claude Code's lists of tools contain.
var foreignTools = []string{"Bash", "Edit", "Glob", "Grep", "LS", "MultiEdit", "NotebookEdit", "Read", "Skill", "Task",
	"TodoWrite", "WebFetch", "WebSearch", "Write"}

// isForeignSpec reports whether an argument can only be a further tool in a list of tools, not a prompt.
func isForeignSpec(arg string) bool {
	name, rest, scoped := strings.Cut(arg, "(")
	return (slices.Contains(foreignTools, name) || strings.HasPrefix(name, "mcp__") && !strings.Contains(name, " ")) &&
		(!scoped || strings.HasSuffix(rest, ")"))
}

// joinForeignSpecs puts commas between the tools of a list that blanks separate. Of another list, such as a
// command, no word may become a rule.
func joinForeignSpecs(list string) string {
	var specs []string
	depth, from := 0, 0
	for i, c := range list + " " {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ' ' && depth == 0:
			if spec := list[from:i]; spec != "" {
				specs = append(specs, spec)
			}
			from = i + 1
		}
	}
	if slices.ContainsFunc(specs, func(s string) bool { return !isForeignSpec(strings.TrimSuffix(s, ",")) }) {
		return list
	}
	return strings.ReplaceAll(strings.Join(specs, ","), ",,", ",")
}

// effortForTokens returns the effort level that corresponds to a number of thinking tokens.
func effortForTokens(tokens int) string {
	switch {
	case tokens <= 0:
		return "none"
	case tokens <= 4<<10:
		return "low"
	case tokens <= 16<<10:
		return "medium"
	}
	return "high"
}

// fromForeignMode translates a driving program's mode name.
func fromForeignMode(name string) (ours string, dontAsk bool) {
	switch name {
	case "dontAsk":
		return mode.Build, true
	case "auto":
		return mode.Build, false
	}
	return hooks.InternalMode(name), false
}

// checkDriven checks a driving program's flags, and translates them.
func (f *flags) checkDriven() error {
	if name := f.permissionMode; name != "" {
		if f.Mode = name; f.isDriven || slices.Contains(foreignModes, name) {
			f.Mode, f.dontAsk = fromForeignMode(name)
		}
		if name == "auto" {
			f.ignoredFlags = append(f.ignoredFlags, "--permission-mode auto (using default)")
		}
	}
	f.allowBypass = f.allowBypass || f.Mode == mode.Yolo
	switch {
	case f.approver != "" && f.approver != "stdio":
		return usageErrorf("--permission-prompt-tool must be stdio, not %q", f.approver)
	case f.approver != "" && !f.isDriven:
		return usageErrorf("--permission-prompt-tool stdio needs --input-format stream-json")
	case f.inputFormat == "events" && f.events != "sema":
		return usageErrorf("--input-format events needs --events sema")
	case f.inputFormat == "stream-json" && f.events != "":
		return usageErrorf("--input-format stream-json cannot be used with --events; use --input-format events")
	case f.inputFormat == "stream-json" && len(f.args) > 0:
		return usageErrorf("with --input-format stream-json the prompts come on stdin, not as an argument")
	case f.inputFormat == "stream-json" && !f.print && f.outputFormat != "stream-json":
		return usageErrorf("--input-format stream-json without -p needs --output-format stream-json")
	}
	return nil
}
