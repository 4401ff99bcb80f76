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
	"coder/internal/core/message"
	"coder/internal/host/repofile"
	"coder/internal/policy/trust"
	"coder/internal/slash"
	"coder/internal/tool"
	"coder/internal/tool/delegate"
)

// isMainAgentOnly reports whether a tool is only for the main agent:
// delegation, the todo list, questions and plans for the user.
func isMainAgentOnly(name string) bool {
	return slices.Contains([]tool.Class{
		tool.ClassDelegate, tool.ClassReadTodos, tool.ClassWriteTodos, tool.ClassAskUser, tool.ClassEndPlan,
		tool.ClassFinalAnswer,
	}, tool.ClassOf(name))
}

// loadAgents reads the project's, the user's and the plugins'
// agents. It reports each problem once, even over several sessions.
func (a *Authored) loadAgents() (subagent.Catalogue, []subagent.Warning) {
	var roots []subagent.Root
	if !a.Options.IgnoreConfig {
		roots = append(roots, subagent.Root{
			Path: ".coder/agents", Files: a.projectFiles(a.Root).Sub(".coder/agents"), Untrusted: a.Trusted != trust.Trusted,
		})
	}
	if home, _ := a.userDirs(); home != "" {
		own := filepath.Join(home, "agents")
		roots = append(roots, subagent.Root{Path: filepath.ToSlash(own), Files: repofile.OwnDir(own)})
	}
	roots = append(roots, a.claudeRoots("agents")...)
	roots = append(roots, a.pluginRoots(func(p plugin.Plugin) []frontmatter.Root { return p.Agents })...)
	agents, unusable := subagent.Load(roots...)
	unusable = slices.DeleteFunc(unusable, a.known)
	for _, w := range unusable {
		if text := fmt.Sprintf("agent %s", w); !a.shownMessages[text] {
			a.shownMessages[text] = true
			a.warn(text)
		}
	}
	return agents.Prepend(a.Options.Driver.Agents), unusable
}

// taskTool returns the tool with which the model delegates.
func taskTool(agents subagent.Catalogue, run func(context.Context, delegate.Job) (delegate.Report, error)) tool.Tool {
	o := delegate.Options{Default: subagent.AgentGeneral, Spawn: run}
	for _, d := range agents {
		o.Agents = append(o.Agents, delegate.Agent{Name: d.Name, ShortName: d.ShortName, Description: d.Description,
			ReadOnly: d.ReadOnly, UserDefined: d.IsCustom()})
	}
	return delegate.Task(o)
}

// subagentRunner has a session's subagents, with the main agent's settings.
type subagentRunner struct {
	agents   subagent.Catalogue
	unusable []subagent.Warning
	settings func() orchestrator.Settings
	runner   *toolrun.Runner
	spawn    supervisor.SpawnFunc
}

// list lists the agents.
func (c *subagentRunner) list() (items []slash.Item, warnings []string) {
	for _, d := range c.agents {
		items = append(items, slash.Item{Name: d.Name, Description: d.LocalDescription, UserText: d.IsCustom()})
	}
	for _, w := range c.unusable {
		warnings = append(warnings, w.String())
	}
	return items, warnings
}

// run delegates a job to its subagent, with the main agent's current permissions at most.
func (c *subagentRunner) run(ctx context.Context, job delegate.Job) (delegate.Report, error) {
	d, ok := c.agents.Find(job.Agent)
	if !ok {
		return delegate.Report{}, message.Errorf("unknown agent %q", job.Agent)
	}
	set := c.settings()
	set.Tools = d.NarrowTools(set.Tools, isMainAgentOnly)
	set.System = d.SystemText(set.System + "\n" + set.ModeText) // a subagent gets it once, for its whole conversation
	set.Model = cmp.Or(d.Model, set.Model)
	set.MaxSteps = min(d.MaxSteps, set.MaxSteps)
	runner := *c.runner
	runner.Policy = d.NarrowPolicy(runner.Policy, set.Tools)
	r, err := c.spawn(ctx, supervisor.Subtask{
		Agent: d.Name, Title: job.Title, Objective: job.Objective, Settings: set, Runner: &runner,
	})
	return delegate.Report{TaskID: r.Task, Summary: r.Summary, InputTokens: r.Usage.In, OutputTokens: r.Usage.Out,
		WrittenFiles: r.WrittenFiles, Err: r.Err}, err
}
