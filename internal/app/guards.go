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

// guardFiles are where a project keeps what other agents may not do.
var guardFiles = []string{
	".claude/settings.json", ".claude/settings.local.json", ".cursor/cli.json", ".cursor/hooks.json",
	".gemini/settings.json", ".codex/config.toml", ".codex/hooks.json", ".codex/rules/default.rules",
	"opencode.json", "opencode.jsonc",
}

// guardsFile holds which of them were shown, by project. At most mostGuarded projects
// are remembered, and maxGuards bytes of a file read.
const (
	guardsFile  = "guards.json"
	mostGuarded = 500
	maxGuards   = 256 << 10
)

// guards are what files for other agents forbid.
type guards struct {
	rules, hooks int
	denied       rule.Spec // the first command among them
}

// tellGuards warns, once for each content, of files by which a project guards itself
// against other agents: coder does not apply them.
func (a *App) tellGuards() {
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

// setting is the setting of coder's own that forbids the first of them, or one like it.
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
	_ = to.Encode(pattern) // which never fails
	return `"permission": {"` + rule.Commands + `": {` + strings.TrimSpace(text.String()) + `: "deny"}}`
}

var (
	codexGuard = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^\s*(approval_policy|sandbox_mode)\s*=|\bdecision\s*=\s*"(forbidden|prompt)"`)
	})
	// comments also matches strings, so that nothing in them is one, and last commas.
	comments = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`"(?:[^"\\]|\\.)*"|//[^\n]*|(?s:/\*.*?\*/)|,\s*[\]}]`)
	})
)

// count adds what a file forbids, and reports whether that is anything.
func (g *guards) count(name string, text []byte) bool {
	before := g.rules + g.hooks
	if !strings.Contains(name, ".json") {
		g.rules += len(codexGuard().FindAll(text, -1))
		return g.rules+g.hooks > before
	}
	for range 2 { // a comma may stand before a comment
		text = comments().ReplaceAllFunc(text, func(s []byte) []byte {
			if s[0] == '/' {
				return nil
			}
			return bytes.TrimPrefix(s, []byte(","))
		})
	}
	var top any
	_ = json.Unmarshal(text, &top) // what is none forbids nothing
	g.walk("", top)
	return g.rules+g.hooks > before
}

// walk counts what stands at a place of settings, of whichever agent.
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

// shellNames are what other agents call the tool that runs commands.
var shellNames = []string{"Bash", "Shell", "ShellTool", "run_shell_command"}

// keep keeps a rule of theirs if it is the first that denies a command.
func (g *guards) keep(at string, written any) {
	text, _ := written.(string)
	s, err := rule.ParseSpec(text)
	if err == nil && g.denied.On == "" && slices.Contains(shellNames, s.Tool) && strings.HasSuffix(at, "deny") {
		g.denied = s
	}
}
