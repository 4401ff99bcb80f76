package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"coder/internal/app"
	"coder/internal/policy/rule"
)

// TestADenialInSettingsIsHonouredOrRefused: in each form, in theirs and in our own.
func TestADenialInSettingsIsHonouredOrRefused(t *testing.T) {
	for _, name := range []string{"bash", "Bash", "edit", "Edit", "WebFetch", "read", "mcp__later__tool", "mcp__later"} {
		every, _ := rule.ParseSpecs(name)
		some, _ := rule.ParseSpecs(name + "(a b*)")
		for text, want := range map[string][]rule.Spec{
			fmt.Sprintf(`{"permission": {%q: "deny"}}`, name):                        every,
			fmt.Sprintf(`{"permission": {%q: {"*": "deny"}}}`, name):                 every,
			fmt.Sprintf(`{"permission": {%q: {"a b*": "deny"}}}`, name):              some,
			fmt.Sprintf(`{"permission": {%q: {"x": "allow", "a b*":"deny"}}}`, name): some,
			fmt.Sprintf(`{"permissions": {"deny": [%q]}}`, name):                     every,
			fmt.Sprintf(`{"permissions": {"deny": ["%s(a b*)"]}}`, name):             some,
		} {
			inv := &invocation{flags: &flags{}}
			if err := inv.applySettings([]byte(text)); err != nil || !slices.Equal(inv.flags.DenyTools, app.NormalizeSpecs(want)) {
				t.Errorf("%s: %v, %v, want %v", text, inv.flags.DenyTools, err, app.NormalizeSpecs(want))
			}
		}
	}
	for _, text := range []string{
		`{"permission": "deny"}`, `{"permission": {"bash": "never"}}`, `{"permission": {"bash": "ask"}}`,
		`{"permission": {"bash": {"a": "no"}}}`, `{"permission": {"bash": ["deny"]}}`, `{"permission": {"bash": false}}`,
		`{"permission": ["bash"]}`, `{"Permission": {"bash": "deny"}}`, `{"permissions": {"ask": ["Bash"]}}`,
		`{"permissions": {"deny": "Bash"}}`, `{"permissions": {"Block": ["Bash"]}}`, `{"disallowedTools": ["Bash"]}`,
		`{"excludeTools": ["Bash"]}`, `{"denyRules": []}`, `{"safety": {"network": []}}`, `{"agents": {}}`,
		`{"permissions": {"deny": ["Bash(a"]}}`, `{"permission": {"ba sh": "deny"}}`, `[]`,
		`{"sandbox": {"network": {"allowedDomains": ["x"]}}}`, `{"disabledMcpjsonServers": ["x"]}`, `{"tools": {"exclude": ["bash"]}}`, `{"frozen": ["*"]}`,
		`{"readOnly": true}`, `{"maxTurns": 1}`, `{"runtime": {"max_steps": 1}}`, `{"mode": "plan"}`, `{"disableAllHooks": true}`, `{"Hooks": {}}`, `{"unheard-of": 1}`,
		`{"permissions": {"deny": ["Bash"], "deny": []}}`, `{"permissions": {"deny": ["Bash"], "Deny": []}}`, `{"permissions": {"deny": ["Bash"]}, "permissions": {}}`,
		`{"permission": {"bash": {"*": "deny", "*": "allow"}}}`, `{"hooks": {"PreToolUse": [{"matcher": "Bash", "matcher": "x"}]}}`, `{"enabledMcpjsonServers": ["only"]}`,
	} {
		inv := &invocation{flags: &flags{}}
		err := inv.applySettings([]byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), "--settings") {
			t.Errorf("%s: %v, %v", text, err, inv.flags.DenyTools)
		}
	}
}

// TestSettingsThatForbidNothingAreLeftToOthers: whoever drives another agent with them drives
// coder, too.
func TestSettingsThatForbidNothingAreLeftToOthers(t *testing.T) {
	for _, text := range []string{
		`{}`, `{"$schema": "x", "env": {"A": "b"}, "includeCoAuthoredBy": false, "statusLine": {}, "outputStyle": "x", "enabledPlugins": {}}`,
		`{"disableAllHooks": false, "fastMode": true, "unheardOf": false}`, `{"env": {"a": "1", "A": "2"}, "permissions": {"allow": ["Read"], "deny": ["Bash"]}}`,
	} {
		inv := &invocation{flags: &flags{}}
		if err := inv.applySettings([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
