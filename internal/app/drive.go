package app

import (
	"coder/internal/policy/rule"
	"coder/internal/tool/dialect"
)

// UseModel has the next request made to another model; "" is the one that the
// settings name. Nothing of it is kept.
func (a *App) UseModel(name string) {
	if name == "" {
		a.chosen.Store(nil)
		return
	}
	a.chosen.Store(&name)
}

// UseEffort has the model think at another level from the next request on; "" is
// what the settings say. Nothing of it is kept.
func (a *App) UseEffort(level string) { a.effort.Store(&level) }

// StopJob stops a command in the background, and reports whether there is one of
// that id.
func (a *App) StopJob(id string) bool {
	jobs := a.jobs.Load()
	return jobs != nil && jobs.Stop(id)
}

// Running is the commands in the background of the session in use that have not ended.
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

// AddRules takes rules for the rest of the run.
func (a *App) AddRules(allow, deny []rule.Spec) { a.judge.AddRules(byMember(allow), byMember(deny)) }

// Ours is specs with the names of our tools where they have those of another
// agent's.
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

// ReconnectMCP starts an MCP server anew, and reports whether there is one of
// that name.
func (a *App) ReconnectMCP(name string) bool { return a.mcp != nil && a.mcp.Reconnect(name) }

// ToggleMCP switches an MCP server off or on for this run, and reports whether
// there is one of that name.
func (a *App) ToggleMCP(name string, on bool) bool { return a.mcp != nil && a.mcp.Toggle(name, on) }

// Skills are the names of the skills there are.
func (a *App) Skills() (names []string) {
	list, _ := a.library().skills.List()
	for _, s := range list {
		names = append(names, s.Name)
	}
	return names
}

// Agents are the names of the agents that work can be handed to.
func (a *App) Agents() (names, about []string) {
	agents, _ := a.loadAgents()
	for _, d := range agents {
		names, about = append(names, d.Name), append(about, d.About)
	}
	return names, about
}
