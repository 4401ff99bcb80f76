package app

import (
	"coder/internal/config"
	"coder/internal/policy/rule"
	"coder/internal/tool/dialect"
)

// UseModel selects the model for the next request; "" selects the one from the settings. It saves nothing.
func (a *Models) UseModel(name string) {
	if name == "" {
		a.chosenModel.Store(nil)
		return
	}
	a.chosenModel.Store(&name)
}

// UseEffort selects the reasoning effort from the next request
// on; "" selects the one from the settings. It saves nothing.
func (a *Models) UseEffort(level string) { a.effort.Store(&level) }

// StopJob stops a background command, and reports whether one has that id.
func (a *Session) StopJob(id string) bool {
	return a.kit.jobs.Stop(id)
}

// RunningJobs lists the current session's running background commands.
func (a *Session) RunningJobs() (commands []string) {
	for _, j := range a.kit.jobs.List() {
		if j.Running {
			commands = append(commands, j.Command)
		}
	}
	return commands
}

// AddRules adds rules for the rest of the run.
func (a *Session) AddRules(allow, deny []rule.Spec) {
	a.judge.AddRules(expandGroups(allow), expandGroups(deny))
}

// NormalizeSpecs returns specs with coder's tool names in place of another agent's.
func NormalizeSpecs(specs []rule.Spec) (all []rule.Spec) {
	for _, s := range specs {
		names := dialect.FromExternal(s.Tool)
		if names == nil {
			names = []string{s.Tool}
		}
		for _, s.Tool = range names {
			all = append(all, s)
		}
	}
	return all
}

// ReconnectMCP restarts an MCP server, and reports whether one has that name.
func (a *Session) ReconnectMCP(name string) bool {
	return a.kit.mcp != nil && a.kit.mcp.Reconnect(name)
}

// SetMCPEnabled switches an MCP server off or on for this run, and reports whether one has that name.
func (a *Session) SetMCPEnabled(name string, on bool) bool {
	return a.kit.mcp != nil && a.kit.mcp.SetEnabled(name, on)
}

// Skills returns the names of the available skills.
func (a *Authored) Skills() (names []string) {
	list, _ := a.loadLibrary().skills.List()
	for _, s := range list {
		names = append(names, s.Name)
	}
	return names
}

// Agents returns the names of the available subagents.
func (a *Authored) Agents() (names, about []string) {
	agents, _ := a.loadAgents()
	for _, d := range agents {
		names, about = append(names, d.Name), append(about, d.LocalDescription)
	}
	return names, about
}

// SettingRows returns the settings in use, secrets masked.
func (a *Workspace) SettingRows() []config.Row { return a.settings() }

// PluginLine names a plugin in use.
type PluginLine struct {
	Name    string `json:"name"`
	Path    string `json:"path"`
	Version string `json:"version,omitempty"`
}

// Plugins returns the plugins in use.
func (a *Workspace) Plugins() []PluginLine {
	all := []PluginLine{}
	for _, p := range a.plugins {
		all = append(all, PluginLine{p.Name, p.Dir, p.Version})
	}
	return all
}
