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

// guardFiles are the files in which a project restricts other agents.
var guardFiles = []string{
	".claude/settings.json", ".claude/settings.local.json", ".cursor/cli.json", ".cursor/hooks.json",
	".gemini/settings.json", ".codex/config.toml", ".codex/hooks.json", ".codex/rules/default.rules",
	"opencode.json", "opencode.jsonc",
}

// guardsFile records which of them were shown, by project. It has at
// most mostGuarded projects; maxGuards limits the bytes read of a file.
const (
	guardsFile  = "guards.json"
	mostGuarded = 500
	maxGuards   = 256 << 10
)

// guards counts what files for other agents forbid.
type guards struct {
	rules, hooks int
	denied       rule.Spec // the first denied command
}

// tellGuards warns about files in which a project restricts other
// agents, once for each content: coder does not apply them.
func (a *Workspace) tellGuards() {
	if a.Recorded != nil || a.Options.Bare {
		return
	}
	var all guards
	var files []string
	sum := sha256.New()
	for _, name := range guardFiles {
		text, err := repofile.Below(a.Project).Read(name, maxGuards)
		if err != nil || !all.count(name, text) {
			continue
		}
		files = append(files, name)
		fmt.Fprintf(sum, "%s %d %s", name, len(text), text)
	}
	hash, seen := hex.EncodeToString(sum.Sum(nil)[:12]), a.remembers(guardsFile)
	if len(files) == 0 || a.guards.of(seen, a.Project) == hash {
		return
	}
	a.guards.change(seen, a.Project, mostGuarded, func(shown *string) bool { *shown = hash; return true })
	a.warn(fmt.Sprintf("coder does not apply %s (rules: %d, hooks: %d). Rules for coder go in .coder/config.json: %s",
		strings.Join(files, ", "), all.rules, all.hooks, all.setting()))
}

// setting returns coder's setting that forbids the first of them, or a similar one.
func (g guards) setting() string {
	if g.rules == 0 {
		return `"hooks": {"PreToolUse": […]}`
	}
	pattern := "git push *"
	if on := g.denied.On; on != "" && len(on) <= 60 && oneLine(on) == on {
		pattern = on
	}
	var text bytes.Buffer
	to := json.NewEncoder(&text)
	to.SetEscapeHTML(false)
	_ = to.Encode(pattern) // never fails
	return `"permission": {"` + rule.Commands + `": {` + strings.TrimSpace(text.String()) + `: "deny"}}`
}

var (
	codexGuard = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^\s*(approval_policy|sandbox_mode)\s*=|\bdecision\s*=\s*"(forbidden|prompt)"`)
	})
	// comments also matches strings, so that it finds no comment inside them, and trailing commas.
	comments = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`"(?:[^"\\]|\\.)*"|//[^\n]*|(?s:/\*.*?\*/)|,\s*[\]}]`)
	})
)

// count adds what a file forbids, and reports whether it forbids anything.
func (g *guards) count(name string, text []byte) bool {
	before := g.rules + g.hooks
	if !strings.Contains(name, ".json") {
		g.rules += len(codexGuard().FindAll(text, -1))
		return g.rules+g.hooks > before
	}
	for range 2 { // a comment may follow a comma
		text = comments().ReplaceAllFunc(text, func(s []byte) []byte {
			if s[0] == '/' {
				return nil
			}
			return bytes.TrimPrefix(s, []byte(","))
		})
	}
	var top any
	_ = json.Unmarshal(text, &top) // invalid JSON forbids nothing
	g.walk("", top)
	return g.rules+g.hooks > before
}

// walk counts the rules and hooks at a path in any agent's settings.
func (g *guards) walk(at string, value any) {
	switch v := value.(type) {
	case map[string]any:
		if _, runs := v["command"].(string); runs && at == "hooks" {
			g.hooks++
			return
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			switch {
			case at == "hooks" || at == "permission":
				g.walk(at, v[key])
			case at == "":
				g.walk(key, v[key])
			default:
				g.walk(at+"."+key, v[key])
			}
		}
	case []any:
		for _, one := range v {
			switch at {
			case "hooks":
				g.walk(at, one)
			case "permissions.deny", "permissions.ask", "excludeTools", "coreTools", "tools.exclude", "tools.core":
				g.rules++
				g.keep(at, one)
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

// keep stores another agent's rule if it is the first that denies a command.
func (g *guards) keep(at string, written any) {
	text, _ := written.(string)
	s, err := rule.ParseSpec(text)
	if err == nil && g.denied.On == "" && slices.Contains(shellNames, s.Tool) && strings.HasSuffix(at, "deny") {
		g.denied = s
	}
}
