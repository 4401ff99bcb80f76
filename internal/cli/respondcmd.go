package cli

import (
	"coder/internal/agent/orchestrator"
	"coder/internal/agent/supervisor"
	"coder/internal/app"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"context"
	"errors"
	"fmt"
	"strings"
)

// runRespond answers a question that waits, and goes on with its task.
func (inv *invocation) runRespond(ctx context.Context) error {
	fl := inv.flags
	if len(fl.args) != 1 {
		return usagef("coder respond needs the id of one interaction; coder tasks lists them")
	}
	fl.outputFormat, fl.inputFormat = "text", "text"
	a, err := inv.newApp(inv.warn)
	if err != nil {
		return err
	}
	a, session, q, err := inv.findQuestion(ctx, a, fl.args[0])
	if err != nil {
		return err
	}
	err = inv.answer(ctx, a, session, q)
	if errors.Is(err, errElsewhere) {
		_, err := fmt.Fprintln(inv.Stdout, inv.words.T("answered; the process that asked goes on with it"))
		return err
	}
	if err != nil || fl.recordOnly {
		return err
	}
	if fl.onAsk == "" {
		fl.onAsk = "park" // whoever answers later answers the next one later too
	}
	fl.session.Resume = session
	return inv.withSession(ctx, a, inv.newOutput(), func(s *headless) error { return s.turn(ctx, "") })
}

// findQuestion finds the open question id, here or in the folder of a process
// that waits for its answer.
func (inv *invocation) findQuestion(ctx context.Context, a *app.App, id string) (in *app.App, session string, q uip.Request, err error) {
	var closed error
	rows := inv.allTasks(ctx, a.Store(), func(a uip.Response) {
		if a.ID == id {
			closed = supervisor.Closed(a)
		}
	})
	for _, row := range rows {
		for _, q := range row.Open {
			if q.ID == id {
				return a, row.Session, q, nil
			}
		}
	}
	if closed != nil {
		return nil, "", q, inputf("interaction %s: %v", id, closed)
	}
	if place, ok := a.Store().Inbox().Where(id); ok && a.Home != "" && place.Root != a.Root && place.Root != a.Options.Dir {
		there := a.Options
		there.Dir = place.Root
		settings, err := app.Load(a.Env, there)
		if err != nil {
			return nil, "", q, err
		}
		other, err := app.New(a.Env, there, settings, inv.warn)
		if err != nil {
			return nil, "", q, err
		}
		return inv.findQuestion(ctx, other, id)
	}
	return nil, "", q, inputf("no open interaction %s; it was withdrawn, never asked, or is one of another folder (--cwd DIR; coder tasks lists those that wait)", id)
}

// answer puts the answer that the flags give to q on record: by the process
// that asked, if it is still there, or else here.
func (inv *invocation) answer(ctx context.Context, a *app.App, session string, q uip.Request) error {
	fl := inv.flags
	answer := uip.Response{ID: q.ID, TaskID: q.TaskID, Author: orchestrator.ActorUser, Option: fl.option, Input: fl.input, Comment: fl.comment}
	for _, part := range fl.answers {
		id, option, _ := strings.Cut(part, "=")
		answer.Parts = append(answer.Parts, uip.Response{ID: id, Option: option})
	}
	if err := uip.Check(q, answer); err != nil {
		return inputf("%v; the options are %s", err, strings.Join(optionIDs(q), ", "))
	}
	err := a.Store().Records.Answer(ctx, session, answer)
	if claimed := (*event.ClaimedError)(nil); errors.As(err, &claimed) && a.Home != "" {
		err = handOver(ctx, a, session, q, answer)
	}
	if errors.Is(err, supervisor.ErrAnswered) || errors.Is(err, supervisor.ErrWithdrawn) {
		return inputf("%v", err)
	}
	return err
}
