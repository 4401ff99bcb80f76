package app

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"coder/internal/agent/hooks"
	"coder/internal/authored/toml"
	"coder/internal/core/secret"
	"coder/internal/policy/mode"
	"coder/internal/policy/rule"
)

// readClaudeSettings reads the settings of Claude Code.
func readClaudeSettings(r *foreignReader) {
	for _, name := range []string{".claude/settings.json", ".claude/settings.local.json"} {
		r.readFile(name, func(text []byte) error {
			var s map[string]json.RawMessage
			if err := json.Unmarshal(text, &s); err != nil {
				return err
			}
			for _, key := range slices.Sorted(maps.Keys(s)) {
				r.addClaudeSetting(key, s[key])
			}
			return nil
		})
	}
	r.readFile(".claude.json", func(text []byte) error {
		var s struct {
			MCPServers map[string]json.RawMessage `json:"mcpServers"`
		}
		if err := json.Unmarshal(text, &s); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(s.MCPServers)) {
			var server map[string]any
			if json.Unmarshal(s.MCPServers[name], &server) == nil {
				r.addServer(name, server)
			}
		}
		return nil
	})
}

// addClaudeSetting converts one setting of Claude Code.
func (r *foreignReader) addClaudeSetting(key string, value json.RawMessage) {
	var word string
	_ = json.Unmarshal(value, &word) // leaves word empty if it is no text
	switch key {
	case "$schema":
	case "permissions":
		r.addClaudePermissions(value)
	case "hooks":
		r.addHooks(value)
	case "model":
		if strings.HasPrefix(word, "claude-") {
			r.addSetting("model "+word, "provider.preset", "anthropic", "")
			r.addSetting("model "+word, "provider.model", word, "")
		} else {
			r.addUnmatched("setting", "model "+word, "choose a model with coder setup --preset anthropic")
		}
	case "apiKeyHelper":
		r.add(ForeignEntry{Kind: "setting", Original: "apiKeyHelper " + word, Key: "provider.api_key_command", Value: word,
			Note: "runs this command for the key", Widens: true})
	case "env":
		var env map[string]string
		_ = json.Unmarshal(value, &env) // leaves env empty if it is no object
		for _, name := range slices.Sorted(maps.Keys(env)) {
			r.addUnmatched("setting", "env "+name, "set it in your shell; values are not copied")
		}
	case "outputStyle":
		switch style := strings.ToLower(word); style {
		case "default":
		case "explanatory", "learning":
			r.addSetting("outputStyle "+word, styleKey, "explain", "")
		default:
			r.addSetting("outputStyle "+word, styleKey, word, "")
		}
	case "includeCoAuthoredBy", "attribution":
		r.addUnmatched("setting", key, "set workflow.commit_trailer if you want one")
	case "enabledPlugins":
		r.addUnmatched("setting", key, "add each with coder plugin add")
	default:
		r.addUnmatched("setting", key, "no counterpart")
	}
}

func (r *foreignReader) addClaudePermissions(value json.RawMessage) {
	var p struct {
		Deny, Ask, Allow []string
		Mode             string   `json:"defaultMode"`
		Dirs             []string `json:"additionalDirectories"`
	}
	if err := json.Unmarshal(value, &p); err != nil {
		r.addUnmatched("rule", "permissions", err.Error())
		return
	}
	for _, list := range []struct {
		word  string
		rules []string
	}{{"deny", p.Deny}, {"ask", p.Ask}, {"allow", p.Allow}} {
		for _, text := range list.rules {
			r.addClaudeRule(text, list.word)
		}
	}
	switch p.Mode {
	case "", "default":
	case "plan":
		r.addSetting("defaultMode plan", "agents.default", mode.Plan, "")
	case "acceptEdits":
		r.add(ForeignEntry{Kind: "setting", Original: "defaultMode acceptEdits", Key: "agents.default", Value: mode.AutoEdit,
			Widens: true})
	default:
		r.addUnmatched("setting", "defaultMode "+p.Mode, "start coder with --mode each time")
	}
	for _, dir := range p.Dirs {
		r.addUnmatched("setting", "additionalDirectories "+dir, "start coder with --add-dir "+dir)
	}
}

// claudeToolNames maps Claude Code's tools to the names in coder's rules.
var claudeToolNames = map[string]string{
	"Bash": rule.ClassCommand, "Read": rule.ClassRead, "Grep": rule.ClassRead, "Glob": rule.ClassRead,
	"LS": rule.ClassRead, "Edit": rule.ClassWrite, "Write": rule.ClassWrite,
	"MultiEdit": rule.ClassWrite, "NotebookEdit": rule.ClassWrite, "WebFetch": rule.ClassFetch,
}

// addClaudeRule converts a rule of Claude Code.
func (r *foreignReader) addClaudeRule(text, verdict string) {
	f := ForeignEntry{Kind: "rule", Original: verdict + " " + text, Value: verdict, Widens: verdict == "allow"}
	s, err := rule.ParseSpec(text)
	name, known := claudeToolNames[s.Tool]
	if strings.HasPrefix(s.Tool, "mcp__") {
		name, known = s.Tool, true
	}
	switch {
	case err != nil:
		f.Note = "not a rule that coder understands"
	case !known:
		f.Note = "coder has no tool of that name"
	case (name == rule.ClassRead || name == rule.ClassWrite) && strings.HasPrefix(s.On, "/") &&
		!strings.HasPrefix(s.On, "//"):
		f.Note = "relative to a settings file: write it with ~/ or from the root"
	default:
		on := strings.TrimPrefix(s.On, "./")
		if strings.HasPrefix(on, "//") {
			on = on[1:]
		}
		if on == "" {
			on = "*"
		}
		f.Key = settingKey("permission."+name, on)
	}
	r.add(f)
}

// addHooks converts hooks in the form that agents share.
func (r *foreignReader) addHooks(value json.RawMessage) {
	var events map[string]json.RawMessage
	if err := json.Unmarshal(value, &events); err != nil {
		r.addUnmatched("hook", "hooks", err.Error())
		return
	}
	for _, event := range slices.Sorted(maps.Keys(events)) {
		list, skipped, err := hooks.Parse(map[string]json.RawMessage{event: events[event]}, hooks.Source{FromUser: true})
		switch {
		case err != nil || len(list) == 0:
			note := "coder has no such event"
			if err != nil {
				note = singleLine(err.Error())
			}
			r.addUnmatched("hook", event, note)
			continue
		case len(skipped) > 0:
			r.addUnmatched("hook", event, singleLine(strings.Join(skipped, "; ")))
		}
		var what []string
		for _, h := range list {
			what = append(what, h.Command)
		}
		var groups []any
		_ = json.Unmarshal(events[event], &groups) // hooks.Parse already parsed it
		r.add(ForeignEntry{Kind: "hook", Original: event + ": " + strings.Join(what, "; "), Key: "hooks." + event,
			Value: groups})
	}
}

// addServer converts an MCP server. It replaces apparent keys by variables that the user must set.
func (r *foreignReader) addServer(name string, server map[string]any) {
	f := ForeignEntry{Kind: "MCP server", Key: settingKey("mcpServers", name), Value: server}
	var unset []string
	for _, kind := range []string{"env", "headers"} {
		values, _ := server[kind].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(values)) {
			text, _ := values[key].(string)
			if strings.Contains(text, "${") || !secret.IsSecretVariable(key, text) && kind == "env" {
				continue
			}
			variable := key
			if kind == "headers" {
				variable = strings.ToUpper(name + "_" + key)
			}
			variable = strings.Map(func(c rune) rune {
				if c == '_' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' {
					return c
				}
				return '_'
			}, variable)
			values[key] = "${" + variable + "}"
			unset = append(unset, variable)
		}
	}
	command, _ := server["command"].(string)
	address, _ := server["url"].(string)
	if list, _ := server["args"].([]any); command != "" {
		for _, arg := range list {
			command += " " + fmt.Sprint(arg)
		}
	}
	f.Original = name + ": " + command + address
	if len(unset) > 0 {
		f.Note = "keys are not copied: set " + strings.Join(unset, ", ")
	}
	r.add(f)
}

// readCodexSettings reads the settings of Codex.
func readCodexSettings(r *foreignReader) {
	r.readFile(".codex/config.toml", func(text []byte) error {
		s, err := toml.Parse(string(text))
		if err != nil {
			return err
		}
		for _, key := range slices.Sorted(maps.Keys(s)) {
			r.addCodexSetting(key, s)
		}
		return nil
	})
	r.readFile(".codex/hooks.json", func(text []byte) error {
		var s struct{ Hooks json.RawMessage }
		err := json.Unmarshal(text, &s)
		if err == nil && s.Hooks != nil {
			r.addHooks(s.Hooks)
		}
		return err
	})
	r.readFile(".codex/rules/default.rules", func(text []byte) error {
		for _, m := range codexPrefixRulePattern().FindAllStringSubmatch(string(text), -1) {
			r.addCodexRule(m[1])
		}
		return nil
	})
	r.readFile(".codex/auth.json", func([]byte) error {
		r.addUnmatched("setting", "auth.json", "keys are not copied: coder setup --preset openai takes one")
		return nil
	})
}

// addCodexSetting converts one setting of Codex.
func (r *foreignReader) addCodexSetting(key string, all map[string]any) {
	word, _ := all[key].(string)
	table, _ := all[key].(map[string]any)
	switch key {
	case "model":
		if provider, _ := all["model_provider"].(string); provider == "" || provider == "openai" {
			r.addSetting("model "+word, "provider.preset", "openai", "")
		}
		r.addSetting("model "+word, "provider.model", word, "")
	case "model_provider", "model_providers":
		r.addCodexProvider(key, all)
	case "model_reasoning_effort":
		r.addSetting(key+" "+word, "provider.effort", word, "")
	case "sandbox_mode", "approval_policy":
		if word == "read-only" {
			r.addSetting(key+" "+word, "agents.default", mode.Plan, "")
		} else {
			r.addUnmatched("setting", key+" "+word, "coder asks by mode: see /mode")
		}
	case "mcp_servers":
		for _, name := range slices.Sorted(maps.Keys(table)) {
			if server, ok := table[name].(map[string]any); ok {
				r.addCodexServer(name, server)
			}
		}
	case "sandbox_workspace_write":
		if roots, ok := table["writable_roots"].([]any); ok {
			r.add(ForeignEntry{Kind: "setting", Original: "writable_roots", Key: "safety.writable", Value: roots, Widens: true})
		}
	case "projects":
		r.addUnmatched("setting", key, "trust each folder with coder trust")
	default:
		r.addUnmatched("setting", key, "no counterpart")
	}
}

// addCodexProvider converts the endpoint in use.
func (r *foreignReader) addCodexProvider(key string, all map[string]any) {
	name, _ := all["model_provider"].(string)
	if key == "model_providers" || name == "openai" {
		return // the other key names the one in use
	}
	providers, _ := all["model_providers"].(map[string]any)
	p, _ := providers[name].(map[string]any)
	address, _ := p["base_url"].(string)
	if address == "" {
		r.addUnmatched("setting", key+" "+name, "connect it with coder setup --preset NAME")
		return
	}
	r.addSetting(key+" "+name, "provider.base_url", address, "")
	if wire, _ := p["wire_api"].(string); wire == "responses" {
		r.addSetting("wire_api "+wire, "provider.kind", "responses", "")
	}
	if variable, _ := p["env_key"].(string); variable != "" {
		r.addSetting("env_key "+variable, "provider.api_key", "${"+variable+":-}", "read from "+variable+" at each start")
	}
}

// addCodexServer converts an MCP server of Codex to the form that agents share.
func (r *foreignReader) addCodexServer(name string, theirs map[string]any) {
	server := make(map[string]any)
	for _, key := range []string{"command", "args", "env", "url"} {
		if v, ok := theirs[key]; ok {
			server[key] = v
		}
	}
	if headers, ok := theirs["http_headers"]; ok {
		server["headers"] = headers
	}
	if variable, _ := theirs["bearer_token_env_var"].(string); variable != "" {
		server["headers"] = map[string]any{"Authorization": "Bearer ${" + variable + "}"}
	}
	if seconds, ok := theirs["tool_timeout_sec"].(float64); ok {
		server["timeout"] = int(seconds * 1000)
	}
	if on, ok := theirs["enabled"].(bool); ok && !on {
		server["disabled"] = true
	}
	r.addServer(name, server)
}

var (
	codexPrefixRulePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)prefix_rule\((.*?)\n?\)[ \t]*(?:\n|$)`) })
	codexPartPattern       = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?s)^\s*(?:.*,\s*)?pattern\s*=\s*\[((?:\s*"[^"\\]*"\s*,?)+)\s*\]`)
	})
	codexWordPattern    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"([^"\\]*)"`) })
	codexVerdictPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`decision\s*=\s*"(\w+)"`) })
)

// addCodexRule converts a rule about commands that begin with certain words.
func (r *foreignReader) addCodexRule(text string) {
	verdict := "allow"
	if m := codexVerdictPattern().FindStringSubmatch(text); m != nil {
		verdict = map[string]string{"forbidden": "deny", "prompt": "ask", "allow": "allow"}[m[1]]
	}
	m := codexPartPattern().FindStringSubmatch(text)
	if m == nil || verdict == "" {
		r.addUnmatched("rule", "prefix_rule("+singleLine(text)+")", "not a rule that coder understands")
		return
	}
	var words []string
	for _, w := range codexWordPattern().FindAllStringSubmatch(m[1], -1) {
		words = append(words, w[1])
	}
	line := strings.Join(words, " ")
	r.add(ForeignEntry{Kind: "rule", Original: verdict + " " + line,
		Key: settingKey("permission."+rule.ClassCommand, line+" *"), Value: verdict, Widens: verdict == "allow"})
}
