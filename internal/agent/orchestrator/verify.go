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
	Enabled          bool
	MaxAttempts      int
	Commands         []string
	WorkspaceTrusted func() bool // whether the workspace is trusted, so tests need no approval; nil: never
	// IsInstalled, which may be nil, reports whether a program is installed.
	IsInstalled func(program string) bool
}

func (v Verification) isWorkspaceTrusted() bool {
	return v.WorkspaceTrusted != nil && v.WorkspaceTrusted()
}

// FileFinder finds the workspace's files for choosing a check.
type FileFinder interface {
	Exists(path string) bool
	Read(path string) ([]byte, error)
	List(dir string) []string // folders end with a slash
}

// autoVerifyStep checks edits and reports whether the model should continue.
func (o *Orchestrator) autoVerifyStep(ctx context.Context, st *turnState) (again bool, err error) {
	if o.Subtask != nil || o.Mode == nil || len(st.work.EditedFiles) == 0 {
		return false, nil
	}
	m, _ := o.Mode.Current()
	v := st.settings.Verification
	turn := verify.TurnContext{
		TurnWork: &st.work, Trusted: v.isWorkspaceTrusted(),
		Conditions: verify.Conditions{
			Policy: m.Verify, Enabled: v.Enabled, BashAllowed: st.settings.hasClass(tool.ClassShell), MaxAttempts: v.MaxAttempts,
		},
		ChoiceInput:   verify.ChoiceInput{UserText: st.input, Configured: v.Commands, IsInstalled: v.IsInstalled},
		DeclineReason: func(command string) string { return o.declineReason(command, m.Name) },
		NeedsApproval: func(command string) bool {
			return o.Runner.CheckUnattended(ctx, st.settings.Tools, o.checkCall(st, command)) != nil
		},
	}
	if o.Files != nil {
		turn.FileExists, turn.ReadFile, turn.ListDir = o.Files.Exists, o.Files.Read, o.Files.List
	}
	if o.LastCheck != nil {
		turn.LastCheck = o.LastCheck()
	}
	next := turn.NextAction()
	if err := o.warn(ctx, st, next.Notices...); err != nil || next.Command == "" {
		return false, err
	}
	if !next.HasResult {
		ran := false
		if next.Result, ran, err = o.runCheck(ctx, st, next.Command); err != nil || !ran {
			return false, err
		}
	}
	return o.reportCheck(ctx, st, next.Command, next.Result)
}

// checkCall returns a check's call, with the id it was already asked about under, if any.
func (o *Orchestrator) checkCall(st *turnState, command string) chat.ToolCall {
	if st.checkCallID == "" {
		st.checkCallID = o.NewID("verify")
	}
	return st.settings.shellCall(st.checkCallID, map[string]string{"command": command})
}

// declineReason returns why a check must not be asked about again in a mode, or "".
func (o *Orchestrator) declineReason(command, mode string) string {
	switch {
	case o.IsCheckDeclined != nil && o.IsCheckDeclined(command):
		return "you declined this check before; " + uip.TrustHint
	case o.deniedCheck.command == command && o.deniedCheck.mode == mode:
		return o.deniedCheck.reason
	}
	return ""
}

// deniedCheck is a check that was denied in a mode, with the reason to show instead of asking again.
type deniedCheck struct{ command, mode, reason string }

// runCheck runs a whitelisted command, through the gate unless the workspace is trusted.
func (o *Orchestrator) runCheck(ctx context.Context, st *turnState, command string) (result tool.ShellResult, ran bool,
	err error) {
	call := o.checkCall(st, command)
	st.checkCallID = ""
	trusted := st.settings.Verification.isWorkspaceTrusted()
	var outcome toolrun.Outcome
	err = o.Runner.Run(ctx, toolrun.Round{
		Task: st.task, Actor: ActorVerifier, ApprovalNote: checkReasons, Unjudged: trusted, Tools: st.settings.Tools,
		Calls: []chat.ToolCall{call},
		User:  o.NewInteractor(st.sink), Sink: st.sink,
		Deliver: func(_ context.Context, out toolrun.Outcome) error { outcome = out; return nil },
	})
	if err != nil {
		return result, false, err
	}
	result = tool.ParseShellResult(command, outcome.Result.Text)
	if outcome.Denied || result.ExitCode < 0 {
		why := result.Error
		if !trusted {
			why += "; " + uip.TrustHint
		}
		if m, _ := o.Mode.Current(); outcome.Denied {
			o.deniedCheck = deniedCheck{command, m.Name, why}
		}
		return result, false, o.warn(ctx, st, verify.NotRunNotice(why)...)
	}
	return result, true, nil
}

// checkReasons is shown in the approval of a check: two reasons, separated as on a card.
const checkReasons = "automatic check of the edits" + "; " + uip.TrustHint

// reportCheck reports a check's result, and returns a failure to the model while attempts are left.
func (o *Orchestrator) reportCheck(ctx context.Context, st *turnState, command string, r tool.ShellResult) (again bool,
	err error) {
	said, again := st.work.EvaluateResult(command, r, st.settings.Verification.MaxAttempts)
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
		if err := o.emit(ctx, st, ActorAgent, event.Notice{Level: event.LevelWarn, Text: text}); err != nil {
			return err
		}
	}
	return nil
}
