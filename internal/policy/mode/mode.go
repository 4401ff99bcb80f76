// Package mode defines the modes of work, one value per mode: which tools are
// off, which permissions apply, when work is checked automatically and what the
// model is told about the mode. No other package knows what a mode means.
package mode

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"coder/internal/core/message"
	"coder/internal/policy"
	"coder/internal/tool"
)

// Verify is when edits are checked automatically.
type Verify uint8

// The values of Verify.
const (
	VerifyNever Verify = iota
	VerifyOnRequest
	VerifyAutomatic
)

func (v Verify) String() string { return [...]string{"never", "on request", "automatic"}[v] }

// Mode is one mode of work.
type Mode struct {
	Name      string
	Preset    string       // the mode's own permissions
	Disabled  []tool.Class // classes of unavailable tools
	Essential []tool.Class // tool classes that are part of the mode: always described to the model, even if few are
	Verify    Verify
	Prompt    string // the mode's text for the model
	// ReadOnly modes change nothing: every call that would is denied, for any tool and under any rules.
	ReadOnly  bool
	overrides map[string]bool // tools that the user switched on or off, by name
	// Unchecked modes run commands without policy or risk check.
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

// modes is the table of modes, in display order.
var modes = []Mode{
	{
		Name: Build, Preset: Build, Disabled: []tool.Class{tool.ClassWriteTodos, tool.ClassAskUser, tool.ClassEndPlan},
		Verify: VerifyAutomatic,
		Prompt: "Mode: build. Complete the task. Changes, and commands that are not read-only, may need approval.",
	},
	{
		Name: Plan, Preset: Plan, Disabled: []tool.Class{tool.ClassEditFile, tool.ClassPatchFiles, tool.EditsNotebook,
			tool.ClassDelegate, tool.ClassChangeGit}, Verify: VerifyNever, ReadOnly: true,
		Essential: []tool.Class{tool.ClassFetch, tool.ClassReadTodos, tool.ClassWriteTodos, tool.ClassAskUser,
			tool.ClassEndPlan},
		Prompt: "Mode: plan. Read, search and think, but change nothing, whatever the message asks for: the tools that write are disabled, and each command that is not read-only needs approval. When the plan is ready, submit it with exit_plan_mode; do not ask for approval in your text.",
	},
	{
		Name: Default, Preset: Balanced, Disabled: []tool.Class{tool.ClassEndPlan},
		Essential: []tool.Class{tool.ClassWriteTodos, tool.ClassAskUser}, Verify: VerifyOnRequest,
		Prompt: "Mode: default. Read freely, and change files if the user wants it. Changes, and commands that are not read-only, may need approval.",
	},
	{
		Name: AutoEdit, Preset: AutoEdit, Disabled: []tool.Class{tool.ClassEndPlan},
		Essential: []tool.Class{tool.ClassWriteTodos, tool.ClassAskUser}, Verify: VerifyAutomatic,
		Prompt: "Mode: auto-edit. Change files without asking, check your work and fix what fails. Commands that are not read-only may need approval.",
	},
	{
		Name: Yolo, Preset: Yolo, Disabled: []tool.Class{tool.ClassAskUser, tool.ClassEndPlan},
		Essential: []tool.Class{tool.ClassWriteTodos}, Verify: VerifyAutomatic, Unchecked: true,
		Prompt: "Mode: yolo. Everything runs without approval, commands included. Nobody checks what you do, so be as careful as on your own machine.",
	},
}

// Presets without a mode of their own.
const (
	Strict   = "strict"
	Balanced = "balanced"
)

// Names returns the modes, most used first.
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
	return Mode{}, message.Errorf("unknown mode %q: use one of %s", name, strings.Join(Names(), ", "))
}

// Rank orders tools by class for the model: first tools of every mode, then tools of the initial mode, then
// the others. The tool lists of two modes then begin alike, and a provider's cache stays valid for that part.
func Rank(c tool.Class) int {
	for _, m := range modes {
		if slices.Contains(m.Disabled, c) {
			if !slices.Contains(modes[0].Disabled, c) {
				return 1
			}
			return 2
		}
	}
	return 0
}

// Has reports whether a tool is available in this mode. The
// user cannot switch on what a read-only mode hides.
func (m Mode) Has(name string) bool {
	on, said := m.overrides[name]
	if said && (!on || !m.ReadOnly) {
		return on
	}
	return !slices.Contains(m.Disabled, tool.ClassOf(name))
}

// Judge denies what the mode does not allow before the user is asked about it: unavailable tools and,
// in a read-only mode, everything that would or might write.
func (m Mode) Judge(_ context.Context, c policy.Case) (policy.Opinion, error) {
	if !m.Has(c.Tool) {
		return denial("%s is disabled in %s mode", c.Tool, m.Name), nil
	}
	if !m.ReadOnly {
		return policy.Opinion{Verdict: policy.Allow}, nil
	}
	for _, e := range c.Plan.Effects {
		if e.Kind == tool.Write || e.Kind == tool.Unknown {
			return denial("%s would make changes, and %s mode allows none", c.Tool, m.Name), nil
		}
	}
	if len(c.Plan.Effects) == 0 {
		return denial("%s does not say what it would do, and %s mode allows no changes", c.Tool, m.Name), nil
	}
	return policy.Opinion{Verdict: policy.Allow}, nil
}

func denial(format, tool, mode string) policy.Opinion {
	why := policy.Reason{By: "mode", Text: fmt.Sprintf(format, tool, mode), Rule: "mode " + mode}
	return policy.Opinion{Verdict: policy.Deny, Reasons: []policy.Reason{why}}
}
