package app

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"coder/internal/agent/orchestrator"
	"coder/internal/agent/subagent"
	"coder/internal/agent/supervisor"
	"coder/internal/agent/toolrun"
	"coder/internal/authored/frontmatter"
	"coder/internal/authored/plugin"
	"coder/internal/host/repofile"
	"coder/internal/policy/trust"
	"coder/internal/slash"
	"coder/internal/tool"
	"coder/internal/tool/delegate"
)

// notForSubagents reports whether a tool is only for the main agent:
// delegation, the todo list, questions and plans for the user.
func notForSubagents(name string) bool {
	return slices.Contains([]tool.Class{
		tool.Delegates, tool.ReadsTodos, tool.WritesTodos, tool.AsksPerson, tool.EndsPlan, tool.GivesAnswer,
	}, tool.ClassOf(name))
}

// loadAgents reads the project's, the user's and the plugins'
// agents. It reports each problem once, even over several sessions.
func (a *Authored) loadAgents() (subagent.Catalogue, []subagent.Warning) {
	var roots []subagent.Root
	if !a.Options.Bare {
		roots = append(roots, subagent.Root{
			Path: ".coder/agents", Files: repofile.Below(a.Root).Sub(".coder/agents"), Bounded: a.Trusted != trust.Trusted,
		})
	}
	if home, _ := a.homes(); home != "" {
		own := filepath.Join(home, "agents")
		roots = append(roots, subagent.Root{Path: filepath.ToSlash(own), Files: repofile.OwnDir(own)})
	}
	roots = append(roots, a.claudeRoots("agents")...)
	roots = append(roots, a.pluginRoots(func(p plugin.Plugin) []frontmatter.Root { return p.Agents })...)
	agents, unusable := subagent.Load(roots...)
	unusable = slices.DeleteFunc(unusable, a.known)
	for _, w := range unusable {
		if text := fmt.Sprintf("agent %s", w); !a.told[text] {
			a.told[text] = true
			a.warn(text)
		}
	}
	return agents.With(a.Options.Driver.Agents), unusable
}

// taskTool returns the tool with which the model delegates.
func taskTool(agents subagent.Catalogue, run func(context.Context, delegate.Job) (delegate.Report, error)) tool.Tool {
	o := delegate.Options{Default: subagent.General, Spawn: run}
	for _, d := range agents {
		o.Choices = append(o.Choices, delegate.Choice{Name: d.Name, Short: d.Short, About: d.Description, ReadOnly: d.ReadOnly, Own: d.Own()})
	}
	return delegate.Task(o)
}

// crew has a session's subagents, with the main agent's settings.
type crew struct {
	agents   subagent.Catalogue
	unusable []subagent.Warning
	settings func() orchestrator.Settings
	runner   *toolrun.Runner
	spawn    supervisor.Spawn
}

// list lists the agents.
func (c *crew) list() (items []slash.Item, warnings []string) {
	for _, d := range c.agents {
		items = append(items, slash.Item{Name: d.Name, About: d.About, Authored: d.Own()})
	}
	for _, w := range c.unusable {
		warnings = append(warnings, w.String())
	}
	return items, warnings
}

// run delegates a job to its subagent, with the main agent's current permissions at most.
func (c *crew) run(ctx context.Context, job delegate.Job) (delegate.Report, error) {
	d, ok := c.agents.Find(job.Agent)
	if !ok {
		return delegate.Report{}, fmt.Errorf("unknown agent %q", job.Agent)
	}
	set := c.settings()
	set.Tools = d.Narrow(set.Tools, notForSubagents)
	set.System = d.System(set.System + "\n" + set.ModeText) // a subagent gets it once, for its whole conversation
	set.Model = cmp.Or(d.Model, set.Model)
	set.MaxSteps = min(d.MaxSteps, set.MaxSteps)
	runner := *c.runner
	runner.Policy = d.Within(runner.Policy, set.Tools)
	r, err := c.spawn(ctx, supervisor.Subtask{
		Agent: d.Name, Title: job.Title, Objective: job.Objective, Settings: set, Runner: &runner,
	})
	return delegate.Report{Task: r.Task, Summary: r.Summary, In: r.Usage.In, Out: r.Usage.Out, Wrote: r.Wrote, Err: r.Err}, err
}
