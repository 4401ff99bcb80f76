// Package mode holds the modes of work, one value per mode: which tools are
// switched off, which permissions hold, when work is checked by itself and what
// the model is told about it. There is no other place that knows what a mode
// means.
package mode

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"coder/internal/policy"
	"coder/internal/tool"
)

// Verify says when edited work is checked without the model asking for it.
type Verify uint8

// When work is checked.
const (
	Never Verify = iota
	OnRequest
	Automatic
)

func (v Verify) String() string { return [...]string{"never", "on request", "automatic"}[v] }

// Mode is one way of working.
type Mode struct {
	Name   string
	Preset string       // the permissions that come with it
	Off    []tool.Class // of tools that are not there
	Keeps  []tool.Class // of tools that belong to it: the model is told of them even where it is told of few
	Verify Verify
	Prompt string // what the model is told
	// ReadOnly modes change nothing: whatever would, is refused, whichever
	// tool it is and whatever the rules say.
	ReadOnly bool
	switched map[string]bool // tools that the person switched on or off, by name
	// Unchecked modes run commands without policy and without risk check.
	Unchecked bool
}

// The names of the modes.
const (
	Plan     = "plan"
	Build    = "build"
	Default  = "default"
	AutoEdit = "auto-edit"
	Yolo     = "yolo"
)

// modes is the table, in the order in which people are shown it.
var modes = []Mode{
	{
		Name: Build, Preset: Build, Off: []tool.Class{tool.WritesTodos, tool.AsksPerson, tool.EndsPlan}, Verify: Automatic,
		Prompt: "Mode: build. Complete the task. Changes, and commands that are not read-only, may need approval.",
	},
	{
		Name: Plan, Preset: Plan, Off: []tool.Class{tool.EditsFile, tool.PatchesFiles, tool.Delegates, tool.ChangesGit}, Verify: Never, ReadOnly: true,
		Keeps:  []tool.Class{tool.Fetches, tool.ReadsTodos, tool.WritesTodos, tool.AsksPerson, tool.EndsPlan},
		Prompt: "Mode: plan. Read, search and think, but change nothing, whatever the message asks for: the tools that write are disabled, and each command that is not read-only needs approval. When the plan is ready, submit it with exit_plan_mode; do not ask for approval in your text.",
	},
	{
		Name: Default, Preset: Balanced, Off: []tool.Class{tool.EndsPlan}, Keeps: []tool.Class{tool.WritesTodos, tool.AsksPerson}, Verify: OnRequest,
		Prompt: "Mode: default. Read freely, and change files if the user wants it. Changes, and commands that are not read-only, may need approval.",
	},
	{
		Name: AutoEdit, Preset: AutoEdit, Off: []tool.Class{tool.EndsPlan}, Keeps: []tool.Class{tool.WritesTodos, tool.AsksPerson}, Verify: Automatic,
		Prompt: "Mode: auto-edit. Change files without asking, check your work and fix what fails. Commands that are not read-only may need approval.",
	},
	{
		Name: Yolo, Preset: Yolo, Off: []tool.Class{tool.AsksPerson, tool.EndsPlan}, Keeps: []tool.Class{tool.WritesTodos}, Verify: Automatic, Unchecked: true,
		Prompt: "Mode: yolo. Everything runs without approval, commands included. Nobody checks what you do, so be as careful as on your own machine.",
	},
}

// Presets without a mode of their own.
const (
	Strict   = "strict"
	Balanced = "balanced"
)

// Names are the modes, those people use most first.
func Names() []string {
	var all []string
	for _, m := range modes {
		all = append(all, m.Name)
	}
	return all
}

// Lookup finds a mode by its name.
func Lookup(name string) (Mode, error) {
	for _, m := range modes {
		if strings.EqualFold(m.Name, name) {
			return m, nil
		}
	}
	return Mode{}, fmt.Errorf("unknown mode %q: use one of %s", name, strings.Join(Names(), ", "))
}

// Rank says where tools of a class stand among those that the model is offered: first
// those of every mode, then those that a session starts with, then the others.
// Lists of two modes so begin alike, and so does what a provider has cached.
func Rank(c tool.Class) int {
	for _, m := range modes {
		if slices.Contains(m.Off, c) {
			if !slices.Contains(modes[0].Off, c) {
				return 1
			}
			return 2
		}
	}
	return 0
}

// Has reports whether a tool is there in this mode. What a read-only mode hides is hidden
// for good, whatever the person switched on.
func (m Mode) Has(name string) bool {
	on, said := m.switched[name]
	if said && (!on || !m.ReadOnly) {
		return on
	}
	return !slices.Contains(m.Off, tool.ClassOf(name))
}

// Judge is the switch of a mode: what is not there is refused before anyone is
// asked about it. In a read-only mode that is everything that would write, or
// that nobody can tell.
func (m Mode) Judge(_ context.Context, c policy.Case) (policy.Opinion, error) {
	if !m.Has(c.Tool) {
		return refuse("%s is disabled in %s mode", c.Tool, m.Name), nil
	}
	if !m.ReadOnly {
		return policy.Opinion{Verdict: policy.Allow}, nil
	}
	for _, e := range c.Plan.Effects {
		if e.Kind == tool.Write || e.Kind == tool.Unknown {
			return refuse("%s would make changes, and %s mode allows none", c.Tool, m.Name), nil
		}
	}
	if len(c.Plan.Effects) == 0 {
		return refuse("%s does not say what it would do, and %s mode allows no changes", c.Tool, m.Name), nil
	}
	return policy.Opinion{Verdict: policy.Allow}, nil
}

func refuse(format, tool, mode string) policy.Opinion {
	why := policy.Reason{By: "mode", Text: fmt.Sprintf(format, tool, mode), Rule: "mode " + mode}
	return policy.Opinion{Verdict: policy.Deny, Reasons: []policy.Reason{why}}
}
