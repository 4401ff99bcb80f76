// Package delegate has the tool by which the model delegates a task to another agent. The tool selects
// the agent and reports the result; [Options.Spawn] does the work.
package delegate

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"coder/internal/core/clip"
	"coder/internal/core/display"
	"coder/internal/core/message"
	"coder/internal/core/uip"
	"coder/internal/tool"
)

//go:embed task.md
var taskDoc string

// These limits are in bytes.
const (
	maxObjective = 64 << 10
	maxSummary   = 48 << 10
	maxTitle     = 200
)

// Agent is an agent that can get a task.
type Agent struct {
	Name, Description string
	ShortName         string // the name without its plugin; empty if it has none
	ReadOnly          bool   // it only reads
	UserDefined       bool   // a user wrote it
}

// Job is a task for an agent.
type Job struct{ Agent, Title, Objective string }

// Report is the result of a job.
type Report struct {
	TaskID                    string // its id in the record
	Summary                   string // its answer, or what it had when it failed
	InputTokens, OutputTokens int    // tokens
	WrittenFiles              []string
	Err                       error // why it failed, or nil
}

// Options configures the tool.
type Options struct {
	// Agents are the available agents. The one named Default gets tasks without an agent.
	Agents  []Agent
	Default string
	// Spawn runs a job. An agent's failure is part of the report. An error, with a partial report, is for
	// what affects the caller too: an interruption, or a pending question.
	Spawn func(context.Context, Job) (Report, error)
}

type taskArgs struct {
	Agent       string `json:"agent,omitzero" also:"subagent_type subagent agent_type"`
	Objective   string `json:"objective" also:"prompt task instructions" doc:"goal, what you know, what to report"`
	Description string `json:"description,omitzero" also:"title" doc:"for the user"`
}

// Task returns the tool.
func Task(o Options) tool.Tool {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(taskDoc) + "\n\nThe agents:\n")
	for _, c := range o.Agents {
		b.WriteString("- " + c.Name)
		if c.Description != "" {
			b.WriteString(": " + c.Description)
		}
		b.WriteString("\n")
	}
	return tool.Func[taskArgs]{
		Name: "task", Doc: b.String(),
		Aliases: []tool.Alias{{Dialect: tool.Sema, Name: "Task"}, {Name: "agent"}, {Name: "subagent"},
			{Name: "dispatch_agent"}},
		Plan: func(_ context.Context, a taskArgs) (tool.Plan, error) { // each of the agent's own calls is judged
			switch {
			case strings.TrimSpace(a.Objective) == "":
				return tool.Plan{}, errors.New("the objective is empty")
			case len(a.Objective) > maxObjective:
				return tool.Plan{},
					message.Errorf("the objective is longer than %d bytes; put the material in a file and name the file", maxObjective)
			}
			p := tool.Plan{Title: a.title(), Effects: []tool.Effect{{Kind: tool.Note, Target: "subtask"}},
				Preview: display.Text(a.Objective)}
			if strings.TrimSpace(a.Agent) == "" {
				return p, nil
			}
			c, err := o.findAgent(a.Agent)
			if err != nil {
				return tool.Plan{}, err
			}
			p.Title = c.Name + ": " + p.Title
			if c.ReadOnly {
				p.Effects = []tool.Effect{{Kind: tool.Read, Target: "."}}
			}
			return p, nil
		},
		Do: func(ctx context.Context, a taskArgs, _ io.Writer) (tool.Result, error) {
			c, err := o.chooseAgent(ctx, a)
			if err != nil {
				return tool.Result{}, err
			}
			r, err := o.Spawn(ctx, Job{Agent: c.Name, Title: a.title(), Objective: a.Objective})
			if err != nil && r.TaskID == "" {
				return tool.Result{}, err
			}
			v := result{OK: r.Err == nil, Agent: c.Name, Summary: clip.Truncate(r.Summary, maxSummary), Task: r.TaskID,
				Tokens: tokens{r.InputTokens, r.OutputTokens}}
			res := tool.Result{Failed: r.Err != nil}
			if n := r.InputTokens + r.OutputTokens; n > 0 {
				res.Summary = fmt.Sprintf("%d tokens", n)
			}
			if r.Err != nil {
				v.Error = fmt.Sprintf("the agent %s did not finish: %v", c.Name, r.Err)
				res.Summary = v.Error
			}
			if v.Summary != "" {
				res.Show = display.Code{Lang: display.LangMarkdown, Source: v.Summary}
			}
			for _, path := range r.WrittenFiles {
				res.Effects = append(res.Effects, tool.Effect{Kind: tool.Write, Target: path})
			}
			res.Value = v
			return res, err
		},
	}
}

// findAgent returns the choice with a name. Other programs call the default agent general-purpose.
func (o Options) findAgent(name string) (Agent, error) {
	name = strings.TrimSpace(name)
	i := slices.IndexFunc(o.Agents, func(c Agent) bool { return strings.EqualFold(c.Name, name) })
	if i < 0 && name != "" { // by short name, if it is unique
		in := func(c Agent) bool { return strings.EqualFold(c.ShortName, name) }
		if i = slices.IndexFunc(o.Agents, in); i >= 0 && slices.ContainsFunc(o.Agents[i+1:], in) {
			i = -1
		}
	}
	if i < 0 && strings.EqualFold(name, "general-purpose") {
		i = slices.IndexFunc(o.Agents, func(c Agent) bool { return c.Name == o.Default })
	}
	if i < 0 {
		var names []string
		for _, c := range o.Agents {
			names = append(names, c.Name)
		}
		return Agent{}, message.Errorf("unknown agent %q; use one of %s", name, strings.Join(names, ", "))
	}
	return o.Agents[i], nil
}

// title returns the task in one line.
func (a taskArgs) title() string {
	line, _, _ := strings.Cut(strings.TrimSpace(cmp.Or(strings.TrimSpace(a.Description), a.Objective)), "\n")
	return clip.Truncate(strings.TrimSpace(line), maxTitle)
}

// chooseAgent returns the agent that the model named, or else the one that the user selects if several fit.
func (o Options) chooseAgent(ctx context.Context, a taskArgs) (Agent, error) {
	own := 0 // agents written by users: several may fit
	q := uip.Request{
		Kind: uip.KindSelect, Purpose: uip.PurposeAssignSubtask,
		Display: uip.Display{Title: "Which agent should do this?", Description: a.title(),
			Content: display.Text(a.Objective)},
	}
	for _, c := range o.Agents {
		if c.UserDefined {
			own++
		}
		label := c.Name
		if c.Description != "" {
			label += " — " + c.Description
		}
		q.Options = append(q.Options, uip.Option{ID: c.Name, Label: label, Default: c.Name == o.Default})
	}
	switch {
	case strings.TrimSpace(a.Agent) != "":
		return o.findAgent(a.Agent)
	case own < 2:
		return o.findAgent(o.Default)
	}
	answer, err := uip.InteractorFrom(ctx).Ask(ctx, q)
	switch {
	case err != nil:
		return Agent{}, err
	case answer.IsUnanswered():
		return o.findAgent(o.Default)
	case answer.Dismissed || answer.Option == "" && strings.TrimSpace(answer.Input) == "":
		return Agent{}, errors.New("the user chose no agent for this; do it yourself, or ask what the user wants")
	}
	return o.findAgent(cmp.Or(answer.Option, answer.Input))
}

type result struct {
	OK      bool   `json:"ok"`
	Agent   string `json:"agent"`
	Summary string `json:"summary"`
	Error   string `json:"error,omitempty"`
	Task    string `json:"task_id"`
	Tokens  tokens `json:"tokens"`
}

type tokens struct {
	Input  int `json:"input"`
	Output int `json:"output"`
}
