package app

import (
	"coder/internal/config"
	"coder/internal/policy/rule"
	"coder/internal/tool/dialect"
)

// UseModel selects the model for the next request; "" selects the one from the settings. It saves nothing.
func (a *App) UseModel(name string) {
	if name == "" {
		a.chosen.Store(nil)
		return
	}
	a.chosen.Store(&name)
}

// UseEffort selects the reasoning effort from the next request
// on; "" selects the one from the settings. It saves nothing.
func (a *App) UseEffort(level string) { a.effort.Store(&level) }

// StopJob stops a background command, and reports whether one has that id.
func (a *App) StopJob(id string) bool {
	jobs := a.jobs.Load()
	return jobs != nil && jobs.Stop(id)
}

// Running lists the current session's running background commands.
func (a *App) Running() (commands []string) {
	jobs := a.jobs.Load()
	if jobs == nil {
		return nil
	}
	for _, j := range jobs.List() {
		if j.Running {
			commands = append(commands, j.Command)
		}
	}
	return commands
}

// AddRules adds rules for the rest of the run.
func (a *App) AddRules(allow, deny []rule.Spec) { a.judge.AddRules(byMember(allow), byMember(deny)) }

// Ours returns specs with coder's tool names in place of another agent's.
func Ours(specs []rule.Spec) (all []rule.Spec) {
	for _, s := range specs {
		names := dialect.Inward(s.Tool)
		if names == nil {
			names = []string{s.Tool}
		}
		for _, name := range names {
			all = append(all, rule.Spec{Tool: name, On: s.On})
		}
	}
	return all
}

// ReconnectMCP restarts an MCP server, and reports whether one has that name.
func (a *App) ReconnectMCP(name string) bool { return a.mcp != nil && a.mcp.Reconnect(name) }

// ToggleMCP switches an MCP server off or on for this run, and reports whether one has that name.
func (a *App) ToggleMCP(name string, on bool) bool { return a.mcp != nil && a.mcp.Toggle(name, on) }

// Skills returns the names of the available skills.
func (a *App) Skills() (names []string) {
	list, _ := a.library().skills.List()
	for _, s := range list {
		names = append(names, s.Name)
	}
	return names
}

// Agents returns the names of the available subagents.
func (a *App) Agents() (names, about []string) {
	agents, _ := a.loadAgents()
	for _, d := range agents {
		names, about = append(names, d.Name), append(about, d.About)
	}
	return names, about
}

// SettingRows returns the settings in use, secrets masked.
func (a *App) SettingRows() []config.Row { return a.settings() }

// PluginLine names a plugin in use.
type PluginLine struct {
	Name    string `json:"name"`
	Path    string `json:"path"`
	Version string `json:"version,omitempty"`
}

// Plugins returns the plugins in use.
func (a *App) Plugins() []PluginLine {
	all := []PluginLine{}
	for _, p := range a.plugins {
		all = append(all, PluginLine{p.Name, p.Dir, p.Version})
	}
	return all
}
