package cli

import (
	"slices"
	"strconv"
	"strings"

	"coder/internal/agent/hooks"
	"coder/internal/app"
	"coder/internal/policy/mode"
	"coder/internal/policy/rule"
)

// otherModes are the mode names of programs written for another agent.
var otherModes = []string{"acceptEdits", "bypassPermissions", "dontAsk", "auto"}

// drives reports whether the command line comes from a driving program: unknown flags must not keep it
// from working.
func drives(args []string) bool {
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

// spellings returns flags of programs written for another agent: other names of our flags, and a few
// that only such programs use. Shells do not complete them.
func spellings() []option {
	list := func(long, help string, take func(*flags, []rule.Spec)) option {
		return option{long: long, value: "RULES", help: help, set: func(f *flags, v string) error {
			specs, err := rule.ParseSpecs(v)
			if err != nil {
				return usagef("--%s: %v", long, err)
			}
			take(f, app.Ours(specs))
			return nil
		}}
	}
	yes := func(long, help string, p func(*flags) *bool) option {
		return option{long: long, help: help, set: func(f *flags, _ string) error { *p(f) = true; return nil }}
	}
	text := func(long, value, help string, p func(*flags) *string) option {
		return option{long: long, value: value, help: help, set: func(f *flags, v string) error { *p(f) = v; return nil }}
	}
	return []option{
		list("allowedTools", "same as --allowed-tools", func(f *flags, s []rule.Spec) { f.AllowTools = append(f.AllowTools, s...) }),
		list("disallowedTools", "same as --disallowed-tools", func(f *flags, s []rule.Spec) { f.DenyTools = append(f.DenyTools, s...) }),
		list("tools", "offer the model only these tools; default means all", func(f *flags, s []rule.Spec) {
			if f.OnlyTools = &s; len(s) == 1 && s[0] == (rule.Spec{Tool: "default"}) {
				f.OnlyTools = nil
			}
		}),
		{long: "max-turns", value: "N", help: "same as --max-steps", set: func(f *flags, v string) (err error) {
			if f.MaxSteps, err = strconv.Atoi(v); err != nil || f.MaxSteps < 1 {
				return usagef("--max-turns must be a number above zero, not %q", v)
			}
			return nil
		}},
		{long: "max-thinking-tokens", value: "N", help: "--effort as a number of tokens", set: func(f *flags, v string) error {
			n, err := strconv.Atoi(v)
			if err != nil {
				return usagef("--max-thinking-tokens must be a number, not %q", v)
			}
			f.Effort = effortOf(n)
			return nil
		}},
		{long: "thinking", value: "WORD", help: "disabled is --effort none", set: func(f *flags, v string) error {
			if v == "disabled" {
				f.Effort = "none"
			}
			return nil
		}},
		text("permission-prompt-tool", "stdio", "ask the driving program for approval", func(f *flags) *string { return &f.decides }),
		text("system-prompt-file", "FILE", "replace the system prompt with the text of FILE", func(f *flags) *string { return &f.systemFile }),
		text("fallback-model", "NAME", "model to use when the first one fails", func(f *flags) *string { return &f.FallbackModel }),
		text("settings", "FILE|JSON", "settings of another agent: permissions and hooks", func(f *flags) *string { return &f.settings }),
		yes("replay-user-messages", "print the messages of the driving program too", func(f *flags) *bool { return &f.echo }),
		yes("allow-dangerously-skip-permissions", "let the driving program switch to yolo mode", func(f *flags) *bool { return &f.mayBypass }),
		{long: "dangerously-skip-permissions", help: "same as --yolo", set: func(f *flags, _ string) error { f.Mode = mode.Yolo; return nil }},
		yes("fork-session", "with -c or -r: continue in a new session", func(f *flags) *bool { return &f.session.Fork }),
		text("resume-session-at", "ID", "with --fork-session: start at this message", func(f *flags) *string { return &f.resumeAt }),
	}
}

// effortOf returns the effort level that corresponds to a number of thinking tokens.
func effortOf(tokens int) string {
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

// inwardMode translates a driving program's mode name.
func inwardMode(name string) (ours string, dontAsk bool) {
	switch name {
	case "dontAsk":
		return mode.Build, true
	case "auto":
		return mode.Build, false
	}
	return hooks.InwardMode(name), false
}

// finishDriven checks a driving program's flags, and translates them.
func (f *flags) finishDriven() error {
	if name := f.permissionMode; name != "" {
		if f.Mode = name; f.driven || slices.Contains(otherModes, name) {
			f.Mode, f.dontAsk = inwardMode(name)
		}
		if name == "auto" {
			f.passedOver = append(f.passedOver, "--permission-mode auto (using default)")
		}
	}
	f.mayBypass = f.mayBypass || f.Mode == mode.Yolo
	switch {
	case f.decides != "" && f.decides != "stdio":
		return usagef("--permission-prompt-tool must be stdio, not %q", f.decides)
	case f.decides != "" && !f.driven:
		return usagef("--permission-prompt-tool stdio needs --input-format stream-json")
	case f.inputFormat == "events" && f.events != "sema":
		return usagef("--input-format events needs --events sema")
	case f.inputFormat == "stream-json" && f.events != "":
		return usagef("--input-format stream-json cannot be used with --events; use --input-format events")
	case f.inputFormat == "stream-json" && len(f.args) > 0:
		return usagef("with --input-format stream-json the prompts come on stdin, not as an argument")
	case f.inputFormat == "stream-json" && !f.print && f.outputFormat != "stream-json":
		return usagef("--input-format stream-json without -p needs --output-format stream-json")
	}
	return nil
}
