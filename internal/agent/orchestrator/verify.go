package orchestrator

import (
	"context"

	"coder/internal/agent/toolrun"
	"coder/internal/agent/verify"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/tool"
)

// Verification says whether and how coder checks edits.
type Verification struct {
	Enabled     bool
	MaxAttempts int
	Commands    []string
	Trusted     func() bool // whether the workspace is trusted, so tests need no approval; nil: never
	// Installed, which may be nil, reports whether a program is installed.
	Installed func(program string) bool
}

func (v Verification) trusted() bool { return v.Trusted != nil && v.Trusted() }

// Files finds the workspace's files for choosing a check.
type Files interface {
	Exists(path string) bool
	Read(path string) ([]byte, error)
	List(dir string) []string // folders end with a slash
}

// autoVerifyStep checks edits and reports whether the model should continue.
func (o *Orchestrator) autoVerifyStep(ctx context.Context, st *turnState) (again bool, err error) {
	if o.Child != nil || o.Mode == nil || len(st.work.Edited) == 0 {
		return false, nil
	}
	m, _ := o.Mode.Current()
	v := st.set.Verification
	turn := verify.Turn{
		Work: &st.work, Trusted: v.trusted(),
		Facts: verify.Facts{
			When: m.Verify, Enabled: v.Enabled, BashAllowed: st.set.offers(tool.RunsShell), MaxAttempts: v.MaxAttempts,
		},
		Input:      verify.Input{UserText: st.input, Configured: v.Commands, Installed: v.Installed},
		TurnedDown: func(command string) string { return o.turnedDown(command, m.Name) },
		Asks: func(command string) bool {
			return o.Runner.Unasked(ctx, st.set.Tools, o.checkCall(st, command)) != nil
		},
	}
	if o.Files != nil {
		turn.Exists, turn.Read, turn.List = o.Files.Exists, o.Files.Read, o.Files.List
	}
	if o.Checked != nil {
		turn.Last = o.Checked()
	}
	next := turn.Next()
	if err := o.warn(ctx, st, next.Notices...); err != nil || next.Command == "" {
		return false, err
	}
	if !next.Known {
		ran := false
		if next.Result, ran, err = o.check(ctx, st, next.Command); err != nil || !ran {
			return false, err
		}
	}
	return o.judgeCheck(ctx, st, next.Command, next.Result)
}

// checkCall returns a check's call, with the id it was already asked about under, if any.
func (o *Orchestrator) checkCall(st *turnState, command string) chat.ToolCall {
	if st.check == "" {
		st.check = o.NewID("verify")
	}
	return st.set.shellCall(st.check, map[string]string{"command": command})
}

// turnedDown returns why a check must not be asked about again in a mode, or "".
func (o *Orchestrator) turnedDown(command, mode string) string {
	switch {
	case o.Declined != nil && o.Declined(command):
		return "you declined this check before; " + uip.TrustAside
	case o.refused.command == command && o.refused.mode == mode:
		return o.refused.why
	}
	return ""
}

// refusedCheck is a check that was denied in a mode, with the reason to show instead of asking again.
type refusedCheck struct{ command, mode, why string }

// check runs a whitelisted command, through the gate unless the workspace is trusted.
func (o *Orchestrator) check(ctx context.Context, st *turnState, command string) (result tool.ShellResult, ran bool, err error) {
	call := o.checkCall(st, command)
	st.check = ""
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
			why += "; " + uip.TrustAside
		}
		if m, _ := o.Mode.Current(); outcome.Denied {
			o.refused = refusedCheck{command, m.Name, why}
		}
		return result, false, o.warn(ctx, st, verify.NotRunNotice(why)...)
	}
	return result, true, nil
}

// checkAside is shown in the approval of a check: two reasons, separated as on a card.
const checkAside = "automatic check of the edits" + "; " + uip.TrustAside

// judgeCheck reports a check's result, and returns a failure to the model while attempts are left.
func (o *Orchestrator) judgeCheck(ctx context.Context, st *turnState, command string, r tool.ShellResult) (again bool, err error) {
	said, again := st.work.Judge(command, r, st.set.Verification.MaxAttempts)
	for _, e := range said {
		if err := o.emit(ctx, st, ActorAgent, e); err != nil {
			return false, err
		}
	}
	return again, nil
}

// warn shows each sentence as a warning on its own line.
func (o *Orchestrator) warn(ctx context.Context, st *turnState, sentences ...string) error {
	for _, text := range sentences {
		if err := o.emit(ctx, st, ActorAgent, event.Notice{Level: event.Warn, Text: text}); err != nil {
			return err
		}
	}
	return nil
}
