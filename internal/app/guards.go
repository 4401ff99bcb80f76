package app

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"coder/internal/host/repofile"
	"coder/internal/policy/rule"
)

// restrictionFiles are the files in which a project restricts other agents.
var restrictionFiles = []string{
	".claude/settings.json", ".claude/settings.local.json", ".cursor/cli.json", ".cursor/hooks.json",
	".gemini/settings.json", ".codex/config.toml", ".codex/hooks.json", ".codex/rules/default.rules",
	"opencode.json", "opencode.jsonc",
}

// shownRestrictionsFile records which of them were shown, by project. It has at
// most maxRestrictedProjects projects; maxRestrictionBytes limits the bytes read of a file.
const (
	shownRestrictionsFile = "guards.json"
	maxRestrictedProjects = 500
	maxRestrictionBytes   = 256 << 10
)

// restrictions counts what files for other agents forbid.
type restrictions struct {
	rules, hooks int
	firstDenied  rule.Spec // the first denied command
}

// warnRestrictions warns about files in which a project restricts other
// agents, once for each content: coder does not apply them.
func (a *Workspace) warnRestrictions() {
	if a.Replay != nil || a.Options.IgnoreConfig {
		return
	}
	texts := make(map[string][]byte)
	sum := sha256.New()
	for _, name := range restrictionFiles {
		if text, err := repofile.NewRoot(a.Project).Read(name, maxRestrictionBytes); err == nil {
			texts[name] = text
			fmt.Fprintf(sum, "%s %d %s", name, len(text), text)
		}
	}
	hash, seen := hex.EncodeToString(sum.Sum(nil)[:12]), a.factsFile(shownRestrictionsFile)
	if len(texts) == 0 || a.guards.get(seen, a.Project) == hash {
		return
	}
	a.guards.update(seen, a.Project, maxRestrictedProjects, func(shown *string) bool { *shown = hash; return true })
	var all restrictions
	var files []string
	for _, name := range restrictionFiles {
		if text, ok := texts[name]; ok && all.countFile(name, text) {
			files = append(files, name)
		}
	}
	if len(files) == 0 {
		return
	}
	a.warn(fmt.Sprintf("coder does not apply %s (rules: %d, hooks: %d). Rules for coder go in .coder/config.json: %s",
		strings.Join(files, ", "), all.rules, all.hooks, all.equivalentSetting()))
}

// equivalentSetting returns coder's setting that forbids the first of them, or a similar one.
func (g restrictions) equivalentSetting() string {
	if g.rules == 0 {
		return `"hooks": {"PreToolUse": […]}`
	}
	pattern := "git push *"
	if on := g.firstDenied.On; on != "" && len(on) <= 60 && singleLine(on) == on {
		pattern = on
	}
	var text bytes.Buffer
	to := json.NewEncoder(&text)
	to.SetEscapeHTML(false)
	_ = to.Encode(pattern) // never fails
	return `"permission": {"` + rule.ClassCommand + `": {` + strings.TrimSpace(text.String()) + `: "deny"}}`
}

var (
	codexRulePattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^\s*(approval_policy|sandbox_mode)\s*=|\bdecision\s*=\s*"(forbidden|prompt)"`)
	})
	// commentPattern also matches strings, so that it finds no comment inside them, and trailing commas.
	commentPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`"(?:[^"\\]|\\.)*"|//[^\n]*|(?s:/\*.*?\*/)|,\s*[\]}]`)
	})
)

// countFile adds what a file forbids, and reports whether it forbids anything.
func (g *restrictions) countFile(name string, text []byte) bool {
	before := g.rules + g.hooks
	if !strings.Contains(name, ".json") {
		g.rules += len(codexRulePattern().FindAll(text, -1))
		return g.rules+g.hooks > before
	}
	for range 2 { // a comment may follow a comma
		text = commentPattern().ReplaceAllFunc(text, func(s []byte) []byte {
			if s[0] == '/' {
				return nil
			}
			return bytes.TrimPrefix(s, []byte(","))
		})
	}
	var top any
	_ = json.Unmarshal(text, &top) // invalid JSON forbids nothing
	g.countSettings("", top)
	return g.rules+g.hooks > before
}

// countSettings counts the rules and hooks at a path in any agent's settings.
func (g *restrictions) countSettings(at string, value any) {
	switch v := value.(type) {
	case map[string]any:
		if _, runs := v["command"].(string); runs && at == "hooks" {
			g.hooks++
			return
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			switch {
			case at == "hooks" || at == "permission":
				g.countSettings(at, v[key])
			case at == "":
				g.countSettings(key, v[key])
			default:
				g.countSettings(at+"."+key, v[key])
			}
		}
	case []any:
		for _, one := range v {
			switch at {
			case "hooks":
				g.countSettings(at, one)
			case "permissions.deny", "permissions.ask", "excludeTools", "coreTools", "tools.exclude", "tools.core":
				g.rules++
				g.keepDenied(at, one)
			}
		}
	case string:
		if at == "permission" && (v == "deny" || v == "ask") {
			g.rules++
		}
	}
}

// shellNames are other agents' names for the shell tool.
var shellNames = []string{"Bash", "Shell", "ShellTool", "run_shell_command"}

// keepDenied stores another agent's rule if it is the first that denies a command.
func (g *restrictions) keepDenied(at string, written any) {
	text, _ := written.(string)
	s, err := rule.ParseSpec(text)
	if err == nil && g.firstDenied.On == "" && slices.Contains(shellNames, s.Tool) && strings.HasSuffix(at, "deny") {
		g.firstDenied = s
	}
}
