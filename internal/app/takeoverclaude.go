package app

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"coder/internal/agent/hooks"
	"coder/internal/authored/toml"
	"coder/internal/core/secret"
	"coder/internal/host/repofile"
	"coder/internal/model/catalogue"
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
		type servers struct {
			MCPServers map[string]json.RawMessage `json:"mcpServers"`
		}
		var s struct {
			servers
			Projects   map[string]servers
			EditorMode string
			Theme      string
		}
		if err := json.Unmarshal(text, &s); err != nil {
			return err
		}
		if s.EditorMode == "vim" {
			r.addSetting("editorMode vim", "ui.vim", true, "")
		}
		if theme, _, _ := strings.Cut(s.Theme, "-"); theme == "light" || theme == "dark" {
			r.addSetting("theme "+s.Theme, "ui.theme", theme, "")
		}
		all := maps.Clone(s.MCPServers)
		if all == nil {
			all = make(map[string]json.RawMessage)
		}
		maps.Copy(all, s.Projects[r.project].MCPServers)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			var server map[string]any
			if json.Unmarshal(all[name], &server) == nil {
				r.addServer(name, server)
			}
		}
		for _, dir := range slices.Sorted(maps.Keys(s.Projects)) {
			if names := slices.Sorted(maps.Keys(s.Projects[dir].MCPServers)); dir != r.project && len(names) > 0 {
				r.addUnmatched("MCP server", strings.Join(names, ", ")+" in "+dir, "take them over from that folder")
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
		r.addSetting("model "+word, "provider.preset", "anthropic", "")
		if name, _, _ := strings.Cut(word, "["); strings.HasPrefix(name, "claude-") {
			r.addSetting("model "+word, "provider.model", name, "")
		} else if newest := catalogue.Newest("claude-" + name + "-"); newest != "" {
			r.addSetting("model "+word, "provider.model", newest, "")
		}
	case "effortLevel":
		r.addSetting(key+" "+word, "provider.effort", word, "")
	case "statusLine":
		var line struct{ Command string }
		if _ = json.Unmarshal(value, &line); line.Command == "" { // no object has no command
			r.addUnmatched("setting", key, "no counterpart")
			return
		}
		r.addSetting(key+" "+line.Command, "ui.statusline", line.Command, "")
	case "sandbox":
		var s struct {
			Network struct{ AllowedDomains []any }
		}
		if _ = json.Unmarshal(value, &s); len(s.Network.AllowedDomains) == 0 {
			r.addUnmatched("setting", key, "coder has a sandbox of its own: see coder doctor")
			return
		}
		r.addSetting("sandbox allowedDomains", "safety.network", s.Network.AllowedDomains, "")
	case "apiKeyHelper":
		r.addSetting("apiKeyHelper "+word, "provider.preset", "anthropic", "")
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
		var on map[string]bool
		_ = json.Unmarshal(value, &on) // leaves on empty if it is no object
		for _, name := range slices.Sorted(maps.Keys(on)) {
			if on[name] {
				r.addUnmatched("plugin", name, "coder plugin add "+name)
			}
		}
	case "extraKnownMarketplaces":
		var known map[string]struct {
			Source struct{ Repo, URL, Path string }
		}
		_ = json.Unmarshal(value, &known) // leaves known empty if it is no object
		for _, name := range slices.Sorted(maps.Keys(known)) {
			s := known[name].Source
			r.addUnmatched("marketplace", name, "coder plugin marketplace add "+cmp.Or(s.Repo, s.URL, s.Path))
		}
	default:
		r.addUnmatched("setting", key, "no counterpart")
	}
}

func (r *foreignReader) addClaudePermissions(value json.RawMessage) {
	var p struct {
		Deny, Ask, Allow []string
		Mode             string   `json:"defaultMode"`
		Dirs             []string `json:"additionalDirectories"`
		NoBypass         string   `json:"disableBypassPermissionsMode"`
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
	if p.NoBypass != "" {
		r.addUnmatched("setting", "disableBypassPermissionsMode", "an administrator can forbid yolo: managed.json")
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
			note := singleLine(strings.Join(skipped, "; "))
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
	entries, _ := fs.ReadDir(repofile.OwnDir(filepath.Join(r.home, ".codex", "rules")), ".") // none if it is missing
	for _, e := range entries {
		if path.Ext(e.Name()) != ".rules" {
			continue
		}
		r.readFile(".codex/rules/"+e.Name(), func(text []byte) error {
			for _, m := range codexPrefixRulePattern().FindAllStringSubmatch(string(text), -1) {
				r.addCodexRule(m[1])
			}
			return nil
		})
	}
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
	case "model_provider":
		r.addCodexProvider(word, all)
	case "model_providers": // model_provider and the profiles name those in use
	case "profiles":
		for _, name := range slices.Sorted(maps.Keys(table)) {
			theirs, _ := table[name].(map[string]any)
			r.add(ForeignEntry{Kind: "setting", Original: "profile " + name, Key: settingKey("profiles", name),
				Value: codexProfile(theirs, all)})
		}
	case "profile":
		r.addSetting("profile "+word, "profile", word, "")
	case "model_reasoning_effort":
		r.addSetting(key+" "+word, "provider.effort", word, "")
	case "sandbox_mode":
		write, _ := all["sandbox_workspace_write"].(map[string]any)
		switch {
		case word == "read-only":
			r.addSetting(key+" "+word, "agents.default", mode.Plan, "")
		case word == "workspace-write" && all["approval_policy"] != "untrusted":
			r.add(ForeignEntry{Kind: "setting", Original: key + " " + word, Key: "agents.default", Value: mode.AutoEdit,
				Widens: true})
		case word != "workspace-write":
			r.addUnmatched("setting", key+" "+word, "start coder with --mode each time")
		}
		if word == "workspace-write" && write["network_access"] != true {
			r.addSetting("network_access false", "safety.network", false, "")
		}
	case "approval_policy":
		r.addUnmatched("setting", key+" "+word, "coder asks by mode: see /mode")
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
func (r *foreignReader) addCodexProvider(name string, all map[string]any) {
	if name == "openai" {
		return // the model's preset
	}
	settings := codexEndpoint(name, all)
	if settings["base_url"] == nil {
		r.addUnmatched("setting", "model_provider "+name, "connect it with coder setup --preset NAME")
		return
	}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		r.addSetting("model_provider "+name, "provider."+key, settings[key], "")
	}
}

// codexEndpoint returns an endpoint of Codex as settings of a provider, without keys.
func codexEndpoint(name string, all map[string]any) map[string]any {
	providers, _ := all["model_providers"].(map[string]any)
	theirs, _ := providers[name].(map[string]any)
	ours := make(map[string]any)
	for from, to := range map[string]string{"base_url": "base_url", "query_params": "query"} {
		if v, ok := theirs[from]; ok {
			ours[to] = v
		}
	}
	if theirs["wire_api"] == "responses" {
		ours["kind"] = "responses"
	}
	if variable, _ := theirs["env_key"].(string); variable != "" {
		ours["api_key"] = "${" + variable + ":-}"
	}
	headers := make(map[string]any)
	literal, _ := theirs["http_headers"].(map[string]any)
	for key, v := range literal {
		if text, _ := v.(string); !secret.IsSecretVariable(key, text) {
			headers[key] = v
		}
	}
	variables, _ := theirs["env_http_headers"].(map[string]any)
	for key, v := range variables {
		headers[key] = fmt.Sprintf("${%v:-}", v)
	}
	if len(headers) > 0 {
		ours["headers"] = headers
	}
	return ours
}

// codexProfile converts a profile of Codex.
func codexProfile(theirs, all map[string]any) map[string]any {
	name, _ := theirs["model_provider"].(string)
	ours := codexEndpoint(name, all)
	for from, to := range map[string]string{"model": "model", "model_reasoning_effort": "effort"} {
		if v, ok := theirs[from]; ok {
			ours[to] = v
		}
	}
	if name == "openai" {
		ours["preset"] = name
	}
	return ours
}

// addCodexServer converts an MCP server of Codex to the form that agents share.
func (r *foreignReader) addCodexServer(name string, theirs map[string]any) {
	server, headers := make(map[string]any), make(map[string]any)
	for _, key := range []string{"command", "args", "env", "url"} {
		if v, ok := theirs[key]; ok {
			server[key] = v
		}
	}
	literal, _ := theirs["http_headers"].(map[string]any)
	maps.Copy(headers, literal)
	variables, _ := theirs["env_http_headers"].(map[string]any)
	for key, variable := range variables {
		headers[key] = fmt.Sprintf("${%v}", variable)
	}
	if variable, _ := theirs["bearer_token_env_var"].(string); variable != "" {
		headers["Authorization"] = "Bearer ${" + variable + "}"
	}
	if len(headers) > 0 {
		server["headers"] = headers
	}
	if seconds, ok := theirs["tool_timeout_sec"].(float64); ok {
		server["timeout"] = int(seconds * 1000)
	}
	if on, ok := theirs["enabled"].(bool); ok && !on {
		server["disabled"] = true
	}
	r.addServer(name, server)
	tools := "mcp__" + name + "__"
	for _, list := range []struct{ key, verdict string }{{"enabled_tools", "ask"}, {"disabled_tools", "deny"}} {
		names, _ := theirs[list.key].([]any)
		if list.verdict == "ask" && len(names) > 0 {
			r.addCodexTool(list.key, tools+"*", "deny") // except the following
		}
		for _, one := range names {
			r.addCodexTool(list.key, tools+fmt.Sprint(one), list.verdict)
		}
	}
	if dir, ok := theirs["cwd"].(string); ok {
		r.addUnmatched("setting", "cwd "+dir+" of "+name, "coder starts servers in the project")
	}
}

// addCodexTool adds a verdict on tools of an MCP server.
func (r *foreignReader) addCodexTool(key, tool, verdict string) {
	r.add(ForeignEntry{Kind: "rule", Original: key + " " + tool, Key: settingKey("permission."+tool, "*"), Value: verdict})
}

var (
	codexPrefixRulePattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?s)prefix_rule\((.*?)\n?\)[ \t]*(?:\n|$)`)
	})
	codexPartPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\bpattern\s*=\s*\[`) })
	codexListPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[][]|,\s*\]`)
	})
	codexVerdictPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`decision\s*=\s*"(\w+)"`) })
)

// addCodexRule converts a rule about commands that begin with certain words.
func (r *foreignReader) addCodexRule(text string) {
	verdict := "allow"
	if m := codexVerdictPattern().FindStringSubmatch(text); m != nil {
		verdict = map[string]string{"forbidden": "deny", "prompt": "ask", "allow": "allow"}[m[1]]
	}
	lines := codexLines(text)
	if len(lines) == 0 || verdict == "" {
		r.addUnmatched("rule", "prefix_rule("+singleLine(text)+")", "not a rule that coder understands")
		return
	}
	for _, line := range lines {
		r.add(ForeignEntry{Kind: "rule", Original: verdict + " " + line,
			Key: settingKey("permission."+rule.ClassCommand, line+" *"), Value: verdict, Widens: verdict == "allow"})
	}
}

// maxCodexLines limits the commands that one rule names by alternatives.
const maxCodexLines = 64

// codexLines returns the beginnings of commands that a rule names: a list of words, in which a list means alternatives.
func codexLines(text string) []string {
	start := codexPartPattern().FindStringIndex(text)
	if start == nil {
		return nil
	}
	text = text[start[1]-1:]
	end, depth := 0, 0
	for _, at := range codexListPattern().FindAllStringIndex(text, -1) {
		switch part := text[at[0]:at[1]]; {
		case part == "[":
			depth++
		case strings.HasSuffix(part, "]"):
			depth--
		}
		if depth == 0 {
			end = at[1]
			break
		}
	}
	list := codexListPattern().ReplaceAllStringFunc(text[:end], func(part string) string {
		return strings.TrimPrefix(part, ",")
	})
	var words []any
	if json.Unmarshal([]byte(list), &words) != nil || len(words) == 0 {
		return nil
	}
	lines := []string{""}
	for _, w := range words {
		choices, ok := w.([]any)
		if !ok {
			choices = []any{w}
		}
		var longer []string
		for _, line := range lines {
			for _, choice := range choices {
				word, ok := choice.(string)
				if longer = append(longer, strings.TrimSpace(line+" "+word)); !ok || len(longer) > maxCodexLines {
					return nil
				}
			}
		}
		lines = longer
	}
	return lines
}
