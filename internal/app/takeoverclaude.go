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

// readClaude reads the settings of Claude Code.
func readClaude(r *foreignReader) {
	for _, name := range []string{".claude/settings.json", ".claude/settings.local.json"} {
		r.read(name, func(text []byte) error {
			var s map[string]json.RawMessage
			if err := json.Unmarshal(text, &s); err != nil {
				return err
			}
			for _, key := range slices.Sorted(maps.Keys(s)) {
				r.claudeSetting(key, s[key])
			}
			return nil
		})
	}
	r.read(".claude.json", func(text []byte) error {
		var s struct {
			MCPServers map[string]json.RawMessage `json:"mcpServers"`
		}
		if err := json.Unmarshal(text, &s); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(s.MCPServers)) {
			var server map[string]any
			if json.Unmarshal(s.MCPServers[name], &server) == nil {
				r.server(name, server)
			}
		}
		return nil
	})
}

// claudeSetting converts one setting of Claude Code.
func (r *foreignReader) claudeSetting(key string, value json.RawMessage) {
	var word string
	_ = json.Unmarshal(value, &word) // leaves word empty if it is no text
	switch key {
	case "$schema":
	case "permissions":
		r.claudePermissions(value)
	case "hooks":
		r.hooks(value)
	case "model":
		if strings.HasPrefix(word, "claude-") {
			r.set("model "+word, "provider.preset", "anthropic", "")
			r.set("model "+word, "provider.model", word, "")
		} else {
			r.none("setting", "model "+word, "choose a model with coder setup --preset anthropic")
		}
	case "apiKeyHelper":
		r.add(Found{Kind: "setting", What: "apiKeyHelper " + word, Key: "provider.api_key_command", Value: word, Note: "runs this command for the key", Wider: true})
	case "env":
		var env map[string]string
		_ = json.Unmarshal(value, &env) // leaves env empty if it is no object
		for _, name := range slices.Sorted(maps.Keys(env)) {
			r.none("setting", "env "+name, "set it in your shell; values are not copied")
		}
	case "outputStyle":
		switch style := strings.ToLower(word); style {
		case "default":
		case "explanatory", "learning":
			r.set("outputStyle "+word, styleKey, "explain", "")
		default:
			r.set("outputStyle "+word, styleKey, word, "")
		}
	case "includeCoAuthoredBy", "attribution":
		r.none("setting", key, "set workflow.commit_trailer if you want one")
	case "enabledPlugins":
		r.none("setting", key, "add each with coder plugin add")
	default:
		r.none("setting", key, "no counterpart")
	}
}

func (r *foreignReader) claudePermissions(value json.RawMessage) {
	var p struct {
		Deny, Ask, Allow []string
		Mode             string   `json:"defaultMode"`
		Dirs             []string `json:"additionalDirectories"`
	}
	if err := json.Unmarshal(value, &p); err != nil {
		r.none("rule", "permissions", err.Error())
		return
	}
	for _, list := range []struct {
		word  string
		rules []string
	}{{"deny", p.Deny}, {"ask", p.Ask}, {"allow", p.Allow}} {
		for _, text := range list.rules {
			r.rule(text, list.word)
		}
	}
	switch p.Mode {
	case "", "default":
	case "plan":
		r.set("defaultMode plan", "agents.default", mode.Plan, "")
	case "acceptEdits":
		r.add(Found{Kind: "setting", What: "defaultMode acceptEdits", Key: "agents.default", Value: mode.AutoEdit, Wider: true})
	default:
		r.none("setting", "defaultMode "+p.Mode, "start coder with --mode each time")
	}
	for _, dir := range p.Dirs {
		r.none("setting", "additionalDirectories "+dir, "start coder with --add-dir "+dir)
	}
}

// ruleTools maps Claude Code's tools to the names in coder's rules.
var ruleTools = map[string]string{
	"Bash": rule.Commands, "Read": rule.Reads, "Grep": rule.Reads, "Glob": rule.Reads, "LS": rule.Reads, "Edit": rule.Writes, "Write": rule.Writes,
	"MultiEdit": rule.Writes, "NotebookEdit": rule.Writes, "WebFetch": rule.Fetches,
}

// rule converts a rule of Claude Code.
func (r *foreignReader) rule(text, verdict string) {
	f := Found{Kind: "rule", What: verdict + " " + text, Value: verdict, Wider: verdict == "allow"}
	s, err := rule.ParseSpec(text)
	name, known := ruleTools[s.Tool]
	if strings.HasPrefix(s.Tool, "mcp__") {
		name, known = s.Tool, true
	}
	switch {
	case err != nil:
		f.Note = "not a rule that coder understands"
	case !known:
		f.Note = "coder has no tool of that name"
	case (name == rule.Reads || name == rule.Writes) && strings.HasPrefix(s.On, "/") && !strings.HasPrefix(s.On, "//"):
		f.Note = "relative to a settings file: write it with ~/ or from the root"
	default:
		on := strings.TrimPrefix(s.On, "./")
		if strings.HasPrefix(on, "//") {
			on = on[1:]
		}
		if on == "" {
			on = "*"
		}
		f.Key = keyed("permission."+name, on)
	}
	r.add(f)
}

// hooks converts hooks in the form that agents share.
func (r *foreignReader) hooks(value json.RawMessage) {
	var events map[string]json.RawMessage
	if err := json.Unmarshal(value, &events); err != nil {
		r.none("hook", "hooks", err.Error())
		return
	}
	for _, event := range slices.Sorted(maps.Keys(events)) {
		list, skipped, err := hooks.Read(map[string]json.RawMessage{event: events[event]}, hooks.Source{Own: true})
		switch {
		case err != nil || len(list) == 0:
			note := "coder has no such event"
			if err != nil {
				note = oneLine(err.Error())
			}
			r.none("hook", event, note)
			continue
		case len(skipped) > 0:
			r.none("hook", event, oneLine(strings.Join(skipped, "; ")))
		}
		var what []string
		for _, h := range list {
			what = append(what, h.Command)
		}
		var groups []any
		_ = json.Unmarshal(events[event], &groups) // hooks.Read already parsed it
		r.add(Found{Kind: "hook", What: event + ": " + strings.Join(what, "; "), Key: "hooks." + event, Value: groups})
	}
}

// server converts an MCP server. It replaces apparent keys by variables that the user must set.
func (r *foreignReader) server(name string, server map[string]any) {
	f := Found{Kind: "MCP server", Key: keyed("mcpServers", name), Value: server}
	var unset []string
	for _, kind := range []string{"env", "headers"} {
		values, _ := server[kind].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(values)) {
			text, _ := values[key].(string)
			if strings.Contains(text, "${") || !secret.Variable(key, text) && kind == "env" {
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
	f.What = name + ": " + command + address
	if len(unset) > 0 {
		f.Note = "keys are not copied: set " + strings.Join(unset, ", ")
	}
	r.add(f)
}

// readCodex reads the settings of Codex.
func readCodex(r *foreignReader) {
	r.read(".codex/config.toml", func(text []byte) error {
		s, err := toml.Parse(string(text))
		if err != nil {
			return err
		}
		for _, key := range slices.Sorted(maps.Keys(s)) {
			r.codexSetting(key, s)
		}
		return nil
	})
	r.read(".codex/hooks.json", func(text []byte) error {
		var s struct{ Hooks json.RawMessage }
		err := json.Unmarshal(text, &s)
		if err == nil && s.Hooks != nil {
			r.hooks(s.Hooks)
		}
		return err
	})
	r.read(".codex/rules/default.rules", func(text []byte) error {
		for _, m := range codexRule().FindAllStringSubmatch(string(text), -1) {
			r.codexRule(m[1])
		}
		return nil
	})
	r.read(".codex/auth.json", func([]byte) error {
		r.none("setting", "auth.json", "keys are not copied: coder setup --preset openai takes one")
		return nil
	})
}

// codexSetting converts one setting of Codex.
func (r *foreignReader) codexSetting(key string, all map[string]any) {
	word, _ := all[key].(string)
	table, _ := all[key].(map[string]any)
	switch key {
	case "model":
		if provider, _ := all["model_provider"].(string); provider == "" || provider == "openai" {
			r.set("model "+word, "provider.preset", "openai", "")
		}
		r.set("model "+word, "provider.model", word, "")
	case "model_provider", "model_providers":
		r.codexProvider(key, all)
	case "model_reasoning_effort":
		r.set(key+" "+word, "provider.effort", word, "")
	case "sandbox_mode", "approval_policy":
		if word == "read-only" {
			r.set(key+" "+word, "agents.default", mode.Plan, "")
		} else {
			r.none("setting", key+" "+word, "coder asks by mode: see /mode")
		}
	case "mcp_servers":
		for _, name := range slices.Sorted(maps.Keys(table)) {
			if server, ok := table[name].(map[string]any); ok {
				r.codexServer(name, server)
			}
		}
	case "sandbox_workspace_write":
		if roots, ok := table["writable_roots"].([]any); ok {
			r.add(Found{Kind: "setting", What: "writable_roots", Key: "safety.writable", Value: roots, Wider: true})
		}
	case "projects":
		r.none("setting", key, "trust each folder with coder trust")
	default:
		r.none("setting", key, "no counterpart")
	}
}

// codexProvider converts the endpoint in use.
func (r *foreignReader) codexProvider(key string, all map[string]any) {
	name, _ := all["model_provider"].(string)
	if key == "model_providers" || name == "openai" {
		return // the other key names the one in use
	}
	providers, _ := all["model_providers"].(map[string]any)
	p, _ := providers[name].(map[string]any)
	address, _ := p["base_url"].(string)
	if address == "" {
		r.none("setting", key+" "+name, "connect it with coder setup --preset NAME")
		return
	}
	r.set(key+" "+name, "provider.base_url", address, "")
	if wire, _ := p["wire_api"].(string); wire == "responses" {
		r.set("wire_api "+wire, "provider.kind", "responses", "")
	}
	if variable, _ := p["env_key"].(string); variable != "" {
		r.set("env_key "+variable, "provider.api_key", "${"+variable+":-}", "read from "+variable+" at each start")
	}
}

// codexServer converts an MCP server of Codex to the form that agents share.
func (r *foreignReader) codexServer(name string, theirs map[string]any) {
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
	r.server(name, server)
}

var (
	codexRule = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)prefix_rule\((.*?)\n?\)[ \t]*(?:\n|$)`) })
	codexPart = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?s)^\s*(?:.*,\s*)?pattern\s*=\s*\[((?:\s*"[^"\\]*"\s*,?)+)\s*\]`)
	})
	codexWord    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"([^"\\]*)"`) })
	codexVerdict = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`decision\s*=\s*"(\w+)"`) })
)

// codexRule converts a rule about commands that begin with certain words.
func (r *foreignReader) codexRule(text string) {
	verdict := "allow"
	if m := codexVerdict().FindStringSubmatch(text); m != nil {
		verdict = map[string]string{"forbidden": "deny", "prompt": "ask", "allow": "allow"}[m[1]]
	}
	m := codexPart().FindStringSubmatch(text)
	if m == nil || verdict == "" {
		r.none("rule", "prefix_rule("+oneLine(text)+")", "not a rule that coder understands")
		return
	}
	var words []string
	for _, w := range codexWord().FindAllStringSubmatch(m[1], -1) {
		words = append(words, w[1])
	}
	line := strings.Join(words, " ")
	r.add(Found{Kind: "rule", What: verdict + " " + line, Key: keyed("permission."+rule.Commands, line+" *"), Value: verdict, Wider: verdict == "allow"})
}
