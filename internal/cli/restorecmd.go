package cli

import (
	"context"
	"fmt"

	"coder/internal/agent/orchestrator"
	"coder/internal/app"
	"coder/internal/core/chat"
	"coder/internal/model/scripted"
	"coder/internal/slash"
)

// runRestore restores a session's files to a record, or shows what that would change. It is the
// session's /restore, without a model.
func (inv *invocation) runRestore(ctx context.Context, a *app.Workspace) error {
	fl := inv.flags
	id, err := a.Store().CheckSession(ctx, fl.args[0])
	if err != nil {
		return err
	}
	if fl.atRecord == 0 {
		return usageErrorf("coder restore needs --at SEQ; coder replay and coder web show the record numbers")
	}
	plan, err := a.PlanRestore(ctx, id, uint64(fl.atRecord), fl.force)
	if err != nil {
		return err
	}
	if fl.dryRestore || len(plan.Restored)+len(plan.Removed) == 0 {
		again := fmt.Sprintf("coder restore %s --at %d --force", id, fl.atRecord)
		return inv.printBlocks(slash.RestorePlan(plan, uint64(fl.atRecord), again))
	}
	command := fmt.Sprintf("/restore %d", fl.atRecord)
	if fl.force {
		command += " force"
	}
	a.ScriptedProvider = scripted.New(nil, scripted.Options{})
	fl.session = app.SessionChoice{ResumeID: id}
	return inv.withSession(ctx, a, inv.newOutput(a), func(s *headless) error {
		return s.runTurn(ctx, orchestrator.TextInput(chat.NewUserText(chat.OriginTyped, command)))
	})
}
