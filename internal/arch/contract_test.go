package arch

import (
	"strings"
	"testing"
)

// contract lists the strings that people's scripts, recorded sessions and other programs
// rely on: the requirement that fixes each, the package that writes it, and its text. A
// sentence that is not listed here may be reworded freely.
var contract = []struct{ requirement, pkg, text string }{
	{"R006", "agent/orchestrator", "step limit reached"},
	{"R062", "core/display", "exit=%d duration=%dms"},
	{"R062", "core/display", " (truncated)"},
	{"R062", "core/display", `"stdout:\n"`},
	{"R062", "core/display", `"stderr:\n"`},
	{"R062", "core/display", "(no output)"},
	{"R063", "ui/term", `"[COMMAND]"`},
	{"R064", "core/display", "...[output truncated for display]"},
	{"R064", "core/display", "...[error output truncated for display]"},
	{"R066", "core/display", "[output truncated]"},
	{"R068", "agent/orchestrator", "command mode denied: bash disabled by active agent "},
	{"R074", "policy/rule", " policy requires approval"},
	{"R075", "policy/risk", "matches dangerous command policy"},
	{"R103", "agent/verify", "未执行自动验证"},
	{"R104", "agent/verify", "请修复并再次验证"},
	{"R105", "agent/verify", "best-effort"},
	{"R114", "ui/repl", "context: %d tokens%smodel: %s"},
	{"R118", "ui/lineedit", `"[copy 1 line]"`},
	{"R118", "ui/lineedit", `"[copy " + strconv.Itoa(n) + " lines]"`},
	{"R135", "ui/term", `"[ANSWER]"`},
	{"R137", "ui/term", `"[tool] "`},
	{"R137", "ui/plain", `"[tool] "`},
	{"R146", "ui/term", "[Question %d/%d]"},
	{"R147", "ui/term", `" (Recommended)"`},
	{"R154", "ui/term", "Cancelled by ESC"},
	{"R154", "ui/term", "Stopped model stream and tool execution; todo state remains unchanged unless a tool had already completed."},
	{"interruption", "core/event", `"[Request interrupted by user"`},
	{"interruption", "agent/orchestrator", `" for tool use]"`},
	{"plan", "tool/plan", `"Implement the following plan:\n\n"`},
	{"R041", "host/workspace", "path outside workspace"},
}

// TestTheContractHolds finds every string of the contract in the code of its package.
func TestTheContractHolds(t *testing.T) {
	t.Parallel()
	code := make(map[string]string)
	for _, p := range list(t) {
		for _, text := range p.files {
			code[p.name] += text
		}
	}
	for _, c := range contract {
		if !strings.Contains(code[c.pkg], c.text) {
			t.Errorf("%s: internal/%s no longer contains %s", c.requirement, c.pkg, c.text)
		}
	}
}
