package orchestrator

import (
	"cmp"
	"context"
	"fmt"

	"coder/internal/agent/toolrun"
	"coder/internal/agent/verify"
	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/policy/mode"
	"coder/internal/tool"
)

// Verification says whether and how edited work is checked.
type Verification struct {
	Enabled     bool
	MaxAttempts int
	Commands    []string
	Trusted     func() bool // the workspace is by now, so its tests run unasked; nil: it is not
	// Installed, which may be nil, reports whether there is a program of that name.
	Installed func(program string) bool
}

// notFound is how a shell ends that finds no program.
const notFound = 127

func (v Verification) trusted() bool { return v.Trusted != nil && v.Trusted() }

// Files is the workspace as far as choosing a check needs it.
type Files interface {
	Exists(path string) bool
	Read(path string) ([]byte, error)
	List(dir string) []string // those of folders end with a slash
}

var whens = map[mode.Verify]verify.When{mode.Never: verify.Never, mode.OnRequest: verify.Request, mode.Automatic: verify.Auto}

// autoVerifyStep checks edited work and reports whether the model should go on
// with it.
func (o *Orchestrator) autoVerifyStep(ctx context.Context, st *turnState) (again bool, err error) {
	if o.Child != nil || o.Mode == nil || len(st.edited) == 0 {
		return false, nil
	}
	m, _ := o.Mode.Current()
	v, asked := st.set.Verification, verify.AskedFor(st.input)
	if d := verify.Needed(verify.Facts{
		When: whens[m.Verify], Edited: st.edited, Asked: asked, Enabled: v.Enabled,
		BashAllowed: st.set.offers(tool.RunsShell), Attempts: st.repairs, MaxAttempts: v.MaxAttempts,
	}); !d.Run {
		if d.Why.Worth() {
			return false, o.warn(ctx, st, verify.NotRunNotice(string(d.Why))...)
		}
		return false, nil
	}
	if verify.Declined(st.input) && !asked {
		return false, o.warn(ctx, st, verify.NotRunNotice("you asked for no tests to be run")...)
	}
	in := verify.Input{UserText: st.input, Configured: st.set.Verification.Commands, Edited: st.edited, Installed: v.Installed}
	if o.Files != nil {
		in.Exists, in.Read, in.List = o.Files.Exists, o.Files.Read, o.Files.List
	}
	choice := verify.Choose(in)
	for _, refused := range choice.Refused {
		if err := o.warn(ctx, st, verify.RefusedNotice(refused)); err != nil {
			return false, err
		}
	}
	if choice.Blind {
		return false, nil
	}
	var last verify.Check
	if o.Checked != nil {
		last = o.Checked()
	}
	stands := last.Command != "" && last.Verified() && last.Untold == "" // for what is there now
	if choice.Command == "" && stands {
		return false, nil
	}
	if choice.Command == "" {
		return false, o.warn(ctx, st, verify.NotRunNotice(cmp.Or(choice.Unfit, "no check is known for what was edited"))...)
	}
	switch {
	case choice.Command == st.passed: // the model has run it itself, on what is there now
		return false, nil
	case st.failed.Command == last.Command && last.Fails(choice.Command): // whoever ran it, and nothing was done about it
		return o.judgeCheck(ctx, st, choice.Command, st.failed)
	}
	if stands && (!asked || last.Command == st.checked) && last.Stands(choice.Command) {
		return false, nil
	}
	id := st.check
	if st.check = ""; id == "" {
		id = o.NewID("verify")
	}
	call := st.set.shellCall(id, map[string]string{"command": choice.Command})
	before := o.refused
	if o.Declined != nil && o.Declined(choice.Command) {
		before = refusedCheck{choice.Command, m.Name, "you turned this check down before; " + trustAside}
	}
	if before.command == choice.Command && before.mode == m.Name && !v.trusted() && !asked && o.Runner.Unasked(ctx, st.set.Tools, call) != nil {
		return false, o.warn(ctx, st, verify.NotRunNotice(before.why)...) // the person is not asked every turn
	}
	switch lacks := verify.Missing(choice.Command, v.Installed); {
	case lacks != "" && stands && len(in.Configured) == 0: // the model has run another, which passed
		return false, nil
	case lacks != "" && !v.trusted() && o.Runner.Unasked(ctx, st.set.Tools, call) != nil: // nobody is asked for what cannot be
		return o.judgeCheck(ctx, st, choice.Command, tool.ShellResult{ExitCode: notFound, Stderr: lacks + ": command not found"})
	}
	result, ran, err := o.check(ctx, st, choice.Command, call)
	if err != nil || !ran {
		return false, err
	}
	return o.judgeCheck(ctx, st, choice.Command, result)
}

// refusedCheck is a check that was not let run in a mode, and what is said of it when it is
// not asked about again.
type refusedCheck struct{ command, mode, why string }

// check runs a command of the whitelist, through the gate unless the workspace
// is trusted.
func (o *Orchestrator) check(ctx context.Context, st *turnState, command string, call chat.ToolCall) (result tool.ShellResult, ran bool, err error) {
	trusted := st.set.Verification.trusted()
	var outcome toolrun.Outcome
	err = o.Runner.Run(ctx, toolrun.Round{
		Task: st.task, Actor: ActorVerifier, Aside: checkAside, Unjudged: trusted, Set: st.set.Tools, Calls: []chat.ToolCall{call},
		Person: o.Person(st.sink), Sink: st.sink,
		Deliver: func(_ context.Context, out toolrun.Outcome) error { outcome = out; return nil },
	})
	if err != nil {
		return result, false, err
	}
	result = tool.ReadShellResult(command, outcome.Result.Text)
	if outcome.Denied || result.ExitCode < 0 {
		why := result.Error
		if !trusted {
			why += "; " + trustAside
		}
		if m, _ := o.Mode.Current(); outcome.Denied {
			o.refused = refusedCheck{command, m.Name, why}
		}
		return result, false, o.warn(ctx, st, verify.NotRunNotice(why)...)
	}
	return result, true, nil
}

// checkAside is what a person is told who is asked about a check: two reasons, as a
// card parts them.
const checkAside = "coder's own check of what was edited, not the model's wish" + "; " + trustAside

const trustAside = "in a folder that you trust (/trust yes) checks run unasked"

// judgeCheck tells how the check went, and hands a failure back to the model
// as long as it may try again.
func (o *Orchestrator) judgeCheck(ctx context.Context, st *turnState, command string, r tool.ShellResult) (again bool, err error) {
	v := verify.Judge(r.ExitCode, r.Stdout, r.Stderr)
	switch v.Outcome {
	case verify.Passed:
		return false, o.emit(ctx, st, ActorAgent, event.Notice{Level: event.Info, Text: fmt.Sprintf("verified: %s passed", command)})
	case verify.Environment:
		return false, o.warn(ctx, st, verify.EnvironmentNotice(command, v)...)
	case verify.Failed:
		st.failed = r
	}
	if !verify.MayRepair(st.repairs, st.set.Verification.MaxAttempts) {
		still := fmt.Sprintf(display.Form(st.repairs, "%s still fails after %d attempt to repair it", "%s still fails after %d attempts to repair it"), command, st.repairs)
		if st.repairs == 0 {
			still = command + " fails, and the settings let nothing be repaired"
		}
		if err := o.emit(ctx, st, ActorAgent, event.MessageAdded{Message: chat.Say(chat.User, "[verification] "+still+" ("+v.Reason+")")}); err != nil {
			return false, err
		}
		return false, o.warn(ctx, st, still)
	}
	st.repairs++
	if err := o.warn(ctx, st, fmt.Sprintf("%s failed; the model repairs it (attempt %d of %d)", command, st.repairs, st.set.Verification.MaxAttempts)); err != nil {
		return false, err
	}
	prompt := verify.RepairPrompt(command, v, r.Stdout, r.Stderr)
	return true, o.emit(ctx, st, ActorAgent, event.MessageAdded{Message: chat.Say(chat.User, prompt)})
}

// warn says sentences, each on a line of its own.
func (o *Orchestrator) warn(ctx context.Context, st *turnState, sentences ...string) error {
	for _, text := range sentences {
		if err := o.emit(ctx, st, ActorAgent, event.Notice{Level: event.Warn, Text: text}); err != nil {
			return err
		}
	}
	return nil
}
