package app

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestWhatTheFilesOfOtherAgentsForbidIsCounted(t *testing.T) {
	const pushes = `"permission": {"bash": {"git push *": "deny"}}`
	for _, tt := range []struct {
		name, text   string
		rules, hooks int
		setting      string
	}{
		{".claude/settings.json",
			`{"permissions": {"allow": ["Bash(ls)"], "deny": ["Read(.env)", "Bash(rm -rf:*)"],` +
				` "ask": ["Bash(git push:*)"]}}`, 3, 0,
			`"permission": {"bash": {"rm -rf *": "deny"}}`},
		{".claude/settings.local.json",
			`{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "x"}, {"command": "y"}]}],` +
				` "Stop": [{"hooks": [{"command": "z"}]}]}}`, 0, 3,
			`"hooks": {"PreToolUse": […]}`},
		{".claude/settings.json",
			`{"permissions": {"allow": ["Bash"], "deny": []}, "hooks": {}, "model": "deny"}`, 0, 0, "",
		},
		{".cursor/cli.json",
			`{"permissions": {"deny": ["Shell(git push --force)", "Write(x)"]}}`, 2, 0,
			`"permission": {"bash": {"git push --force": "deny"}}`,
		},
		{".cursor/hooks.json",
			`{"version": 1, "hooks": {"beforeShellExecution": [{"command": "./audit"}], "stop": [{"command": "a"}]}}`, 0, 2,
			`"hooks": {"PreToolUse": […]}`,
		},
		{".gemini/settings.json",
			`{"excludeTools": ["run_shell_command(rm)"], "coreTools": ["ReadFileTool"], ` +
				`"tools": {"exclude": ["a", "b"], "core": ["c"]}, "context": {"exclude": ["d"]}}`, 5, 0, pushes,
		},
		{".gemini/settings.json",
			"{ // why\n \"excludeTools\": [\"a\", /* \"b\", */ \"http://c\", // d\n ],\n}", 2, 0, pushes,
		},
		{".codex/config.toml",
			"model = \"x\"\napproval_policy = \"untrusted\"\n sandbox_mode= \"read-only\"\n# approval_policy = 1\n",
			2, 0, pushes,
		},
		{".codex/rules/default.rules",
			`prefix_rule(pattern=["git", "push"], decision="forbidden")` + "\n" +
				`prefix_rule(pattern=["ls"], decision = "allow")`, 1, 0, pushes,
		},
		{"opencode.json",
			`{"permission": {"edit": "deny", "bash": {"git push": "ask", "ls": "allow"}}}`, 2, 0, pushes,
		},
		{"opencode.jsonc", `{"permission": "ask", /* x */}`, 1, 0, pushes},
		{"opencode.json", `{"permission": "allow", "agent": {"deny": "deny"}}`, 0, 0, ""},
		{"opencode.json", `["deny"`, 0, 0, ""},
		{".claude/settings.json", `[[["deny"]]]`, 0, 0, ""},
		{".claude/settings.json",
			`{"permissions": {"deny": ["Bash(\u001b[2J)", "Bash(` + strings.Repeat("x", 99) + `)"]}}`, 2, 0, pushes,
		},
		{".claude/settings.json", `{"permissions": {"deny": [7, null, {"a": 1}]}}`, 3, 0, pushes},
	} {
		var g restrictions
		some := g.countFile(tt.name, []byte(tt.text))
		same := g.rules == tt.rules && g.hooks == tt.hooks && some == (tt.setting != "")
		if !same || some && g.equivalentSetting() != tt.setting {
			t.Errorf("%s %s: %d rules, %d hooks, %v, %s", tt.name, tt.text, g.rules, g.hooks, some, g.equivalentSetting())
		}
		if setting := g.equivalentSetting(); g.rules > 0 && !json.Valid([]byte("{"+setting+"}")) {
			t.Errorf("%s is no setting", setting)
		}
	}
}
