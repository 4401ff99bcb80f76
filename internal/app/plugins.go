package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"coder/internal/agent/hooks"
	"coder/internal/agent/subagent"
	"coder/internal/authored/frontmatter"
	"coder/internal/authored/outputstyle"
	"coder/internal/authored/plugin"
	"coder/internal/authored/skills"
	"coder/internal/authored/usercommand"
	"coder/internal/config"
	"coder/internal/core/jsonx"
	"coder/internal/core/message"
	"coder/internal/host/lsp"
	"coder/internal/slash"
	"coder/internal/tool/mcp"
)

// pluginsDir is the folder in CODER_HOME with the book of added plugins.
const pluginsDir = "plugins"

// loadedPlugin is a plugin in this run.
type loadedPlugin struct {
	plugin.Plugin
	servers     []mcp.Server
	isUnchanged func() bool // whether the user agreed to its content; nil if named for this run
}

// PluginBook returns the book of plugins that the user added.
func (a *Extensions) PluginBook() plugin.Book {
	b := plugin.Book{Now: a.Env.Now}
	if home, _ := a.userDirs(); home != "" {
		b.Dir = filepath.Join(home, pluginsDir)
	}
	return b
}

// readPlugins reads this run's plugins: those of the command line, and added ones
// that are unchanged. An unusable added plugin is off; the others still work.
func (a *Extensions) readPlugins() error {
	if !a.isPermitted(func(l config.ManagedLimits) *bool { return l.Plugins }) {
		if len(a.Options.PluginDirs) > 0 {
			return configErrorf("plugins are not allowed by managed settings")
		}
		return nil
	}
	for _, dir := range a.Options.PluginDirs {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(a.Env.Dir, dir)
		}
		p, err := plugin.Read(dir)
		if err == nil {
			err = a.usePlugin(p, nil)
		}
		if err != nil {
			return inputErrorf("--plugin-dir %s: %v", singleLine(dir), err)
		}
	}
	book := a.PluginBook()
	added, err := book.Load()
	if err != nil {
		a.warn(err.Error())
	}
	for _, one := range added {
		if err = one.Err; err == nil {
			var mu sync.Mutex // guards one
			err = a.usePlugin(one.Plugin, func() bool {
				mu.Lock()
				defer mu.Unlock()
				return book.CheckUnchanged(&one) == nil
			})
		}
		if err != nil {
			a.warn(PluginOffNotice(one.Name, one.Dir, err))
		}
	}
	return nil
}

// PluginOffNotice says that a plugin is off, why, and what to do.
func PluginOffNotice(name, dir string, why error) string {
	text := fmt.Sprintf("the plugin %s is off: %s", name, singleLine(why.Error()))
	if errors.Is(why, plugin.ErrChanged) {
		return text + fmt.Sprintf("; to use it as it is now: coder plugin add %s", singleLine(dir))
	}
	return text + fmt.Sprintf("; coder plugin remove %s removes it", name)
}

// usePlugin adds a plugin's content to the run. What is read only on use stays in the plugin's folder.
func (a *Extensions) usePlugin(p plugin.Plugin, holds func() bool) error {
	if slices.ContainsFunc(a.plugins, func(other loadedPlugin) bool { return other.Name == p.Name }) {
		return nil // the command line's takes precedence
	}
	list, skipped, err := a.pluginHooks(p)
	if err != nil {
		return err
	}
	servers, unset, more, err := a.pluginServers(p, a.Env.Getenv, a.isWithheldVar)
	if err != nil {
		return err
	}
	kinds, _, lost := pluginLSPServers(p)
	a.servers = append(a.servers, kinds...)
	if holds == nil { // otherwise it was reported when the plugin was added
		unset = slices.Concat(unset, skipped, more, lost)
	}
	for _, s := range unset {
		a.warn(fmt.Sprintf("plugin %s: %s", p.Name, singleLine(s)))
	}
	for i := range servers {
		env := hooks.PluginEnv(p.Dir)
		maps.Copy(env, servers[i].Env)
		servers[i].Env = env
	}
	a.hooks = append(a.hooks, list...)
	a.plugins = append(a.plugins, loadedPlugin{p, servers, holds})
	return nil
}

// pluginHooks returns a plugin's hooks. The user agreed to run
// them, not to their answers: they cannot approve a call.
func (a *Extensions) pluginHooks(p plugin.Plugin) (list []hooks.Hook, skipped []string, err error) {
	if rel, err := filepath.Rel(a.Home, p.Dir); a.Home != "" && err == nil && filepath.IsLocal(rel) {
		return nil, nil, message.Errorf("it is in %s, which is hidden from commands: move it elsewhere", a.Home)
	}
	for _, by := range p.Hooks {
		some, more, err := hooks.Parse(by, hooks.Source{Plugin: p.Name, PluginRoot: p.Dir,
			HiddenPaths: []string{p.UnpinnedDir()}})
		if err != nil {
			return nil, nil, err
		}
		list, skipped = append(list, some...), append(skipped, more...)
	}
	return list, skipped, nil
}

// pluginServers returns a plugin's MCP servers, with the plugin's
// name in theirs. unset describes servers that use an unset variable.
func (a *Extensions) pluginServers(p plugin.Plugin, getenv func(string) string,
	withheld func(string) bool) (list []mcp.Server, unset, skipped []string, err error) {
	for _, text := range p.Servers {
		servers, without, err := config.ParseServers(text, func(name string) string {
			switch name {
			case "CLAUDE_PLUGIN_ROOT":
				return p.Dir
			case "CLAUDE_PROJECT_DIR":
				return a.Root
			}
			return getenv(name)
		}, withheld)
		if err != nil {
			return nil, nil, nil, message.Errorf("MCP servers: %w", err)
		}
		for _, s := range without {
			unset = append(unset, fmt.Sprintf("mcpServers.%s: %v", s.Name, s.Err))
		}
		for _, name := range slices.Sorted(maps.Keys(servers)) {
			s, err := mcp.ParseServer(strings.Join([]string{"plugin", p.Name, name}, "_"), servers[name])
			if err != nil {
				skipped = append(skipped, fmt.Sprintf("the MCP server %s is skipped: %v", name, err))
				continue
			}
			if s.TrustHints || s.Unconfined {
				skipped = append(skipped,
					fmt.Sprintf("the MCP server %s comes from a plugin: only you can set trust_hints and confined", name))
				s.TrustHints, s.Unconfined = false, false
			}
			list = append(list, s)
		}
	}
	return list, unset, skipped, nil
}

// pluginLSPServers are the language servers of a plugin, shown in lines for people. They start as any
// do: in a trusted folder, confined.
func pluginLSPServers(p plugin.Plugin) (kinds []lsp.Kind, shown, skipped []string) {
	for _, text := range p.LSP {
		var servers map[string]struct {
			Command  string            `json:"command"`
			Args     []string          `json:"args"`
			Files    map[string]string `json:"extensionToLanguage"`
			Init     json.RawMessage   `json:"initializationOptions"`
			Settings json.RawMessage   `json:"settings"`
			Env      map[string]string `json:"env"`
		}
		filled := strings.ReplaceAll(string(text), frontmatter.DirPlaceholder, p.Dir)
		if err := json.Unmarshal([]byte(filled), &servers); err != nil {
			skipped = append(skipped, fmt.Sprintf("the language servers are skipped: %v", err))
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(servers)) {
			s := servers[name]
			ours := map[string]any{"command": s.Command, "args": s.Args, "files": s.Files, "env": s.Env}
			if s.Init != nil {
				ours["init"] = s.Init
			}
			if s.Settings != nil {
				ours["settings"] = s.Settings
			}
			kind, err := lsp.ParseKind(p.Name+":"+name, jsonx.MustMarshal(ours))
			if err != nil {
				skipped = append(skipped, err.Error())
				continue
			}
			kinds = append(kinds, kind)
			line := append(append([]string{s.Command}, s.Args...), slices.Sorted(maps.Keys(s.Files))...)
			shown = append(shown, name+": "+strings.Join(line, " "))
		}
	}
	return kinds, shown, skipped
}

// isWithheldVar reports whether a file from someone else must not
// use a variable, because it holds a provider's key.
func (a *Site) isWithheldVar(name string) bool {
	value := a.Env.Getenv(name)
	return value != "" && (slices.Contains(config.KeyVariables(), name) || value == a.Config.Provider.APIKey)
}

// pluginRoots returns the plugins' folders of one kind.
func (a *Extensions) pluginRoots(of func(plugin.Plugin) []frontmatter.Root) (roots []frontmatter.Root) {
	for _, p := range a.plugins {
		roots = append(roots, of(p.Plugin)...)
	}
	return roots
}

// known reports whether a file's problem was reported when its plugin was added: the user cannot fix it.
func (a *Extensions) known(w frontmatter.Warning) bool {
	return slices.ContainsFunc(a.plugins, func(p loadedPlugin) bool {
		return p.isUnchanged != nil &&
			strings.HasPrefix(w.Path, p.Dir+"/")
	})
}

// unpinnedPaths returns the paths that a plugin's server must not see: the parts of its plugin without a pin.
func (a *Extensions) unpinnedPaths(server string) (paths []string) {
	for _, p := range a.plugins {
		if slices.ContainsFunc(p.servers, func(s mcp.Server) bool { return s.Name == server }) {
			paths = append(paths, p.UnpinnedDir())
		}
	}
	return paths
}

// isPluginUnchanged reports whether the plugin in dir is still the one that the user agreed to.
func (a *Extensions) isPluginUnchanged(dir string) bool {
	i := slices.IndexFunc(a.plugins, func(p loadedPlugin) bool { return p.Dir == dir })
	return i < 0 || a.plugins[i].isUnchanged == nil || a.plugins[i].isUnchanged()
}

// PluginContents is everything in a plugin, for display.
type PluginContents struct {
	plugin.Plugin
	Commands, Skills, Agents, Styles []slash.Item
	Hooks                            []hooks.Hook
	Servers                          []mcp.Server
	LSP                              []string // language servers
	Problems                         []string // skipped parts, and why
}

// PluginContents reads a plugin. Variables stay as written.
func (a *Extensions) PluginContents(p plugin.Plugin) (c PluginContents, err error) {
	c.Plugin = p
	list, skipped, err := a.pluginHooks(p)
	if err != nil {
		return c, err
	}
	servers, _, more, err := a.pluginServers(p, func(name string) string { return "${" + name + "}" }, nil)
	if err != nil {
		return c, err
	}
	_, shown, lost := pluginLSPServers(p)
	c.Hooks, c.Servers, c.LSP, c.Problems = list, servers, shown, slices.Concat(skipped, more, lost)
	commands, bad := usercommand.New(p.Commands...).List()
	for _, one := range commands {
		c.Commands = append(c.Commands, slash.Item{Name: one.Name, Description: one.Description})
	}
	all, worse := skills.New(p.Skills...).List()
	for _, one := range customSkills(all) {
		c.Skills = append(c.Skills, slash.Item{Name: one.Name, Description: one.DisplayText()})
	}
	agents, worst := subagent.Load(p.Agents...)
	for _, one := range agents {
		if one.IsCustom() {
			c.Agents = append(c.Agents, slash.Item{Name: one.Name, Description: one.LocalDescription})
		}
	}
	styles, last := outputstyle.List(p.Styles...)
	for _, one := range styles {
		if one.Path != "" {
			c.Styles = append(c.Styles, slash.Item{Name: one.Name, Description: one.About})
		}
	}
	for _, w := range slices.Concat(bad, worse, worst, last) {
		c.Problems = append(c.Problems, strings.TrimPrefix(w.String(), p.Dir+"/"))
	}
	for _, name := range p.Unsupported {
		c.Problems = append(c.Problems, fmt.Sprintf("%s: not used here", name))
	}
	return c, nil
}
