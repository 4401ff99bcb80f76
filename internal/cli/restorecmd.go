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
	id, err := a.Store().Known(ctx, fl.args[0])
	if err != nil {
		return err
	}
	if fl.at == 0 {
		return usagef("coder restore needs --at SEQ; coder replay and coder web show the record numbers")
	}
	plan, err := a.PlanRestore(ctx, id, uint64(fl.at), fl.force)
	if err != nil {
		return err
	}
	if fl.dry || len(plan.Restored)+len(plan.Removed) == 0 {
		again := fmt.Sprintf("coder restore %s --at %d --force", id, fl.at)
		return inv.show(slash.RestorePlan(plan, uint64(fl.at), again))
	}
	command := fmt.Sprintf("/restore %d", fl.at)
	if fl.force {
		command += " force"
	}
	a.Play = scripted.New(nil, scripted.Options{})
	fl.session = app.Which{Resume: id}
	return inv.withSession(ctx, a, inv.newOutput(a), func(s *headless) error { return s.turn(ctx, orchestrator.Say(chat.From(chat.Typed, command))) })
}
