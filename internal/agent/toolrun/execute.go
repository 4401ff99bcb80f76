package toolrun

import (
	"cmp"
	"context"
	"errors"
	"time"

	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/tool"
)

// recordRequest saves what the call would overwrite and records its request.
func (r *run) recordRequest(ctx context.Context, a *admission) error {
	tree, repository := "", ""
	if r.SaveInitialState != nil {
		tree, repository = r.SaveInitialState(ctx, a.isReadOnly())
	}
	if err := r.saveOriginals(ctx, a); err != nil {
		return err
	}
	plan := a.plan()
	e := event.ToolCallRequested{
		CallID: a.call.ID, Tool: a.tool, Author: r.Actor, TaskID: r.Task, Input: a.call.Args,
		Timestamp: r.Now().UnixMilli(), ReadOnly: a.isReadOnly(), Effects: plan.Effects, Sandbox: plan.Confined,
		Verdict: a.auditVerdict(), DecidedBy: a.decidedBy, Title: plan.Title, Before: a.saved.Before,
		Tree: cmp.Or(a.saved.Tree, tree), Repository: repository, KeysMissing: a.keysMissing,
	}
	if a.decidedBy == event.ActorPolicy {
		e.AutoAllowed = a.opinion.Unasked
	}
	for _, why := range a.opinion.Reasons {
		e.Reasons = append(e.Reasons, why.String())
	}
	return r.emitEvent(ctx, e)
}

// saveOriginals saves what an admitted call would overwrite. If that fails, the call does not run.
func (r *run) saveOriginals(ctx context.Context, a *admission) error {
	if r.Backup == nil || !a.isGranted() || a.isReadOnly() {
		return nil
	}
	kept, err := r.Backup.SaveOriginals(ctx, a.plan().Effects)
	var unkept *event.NotRecordableError
	switch {
	case errors.As(err, &unkept):
		return err
	case err != nil:
		a.revoke(message.Errorf("save what %s would overwrite: %w", a.tool, err))
	default:
		a.saved = kept
	}
	return nil
}

// auditVerdict returns the gate's verdict for the audit log.
func (a *admission) auditVerdict() event.Verdict {
	var denied *DeniedError
	switch {
	case a.isGranted():
		return event.VerdictAllowed
	case errors.As(a.err, &denied):
		return event.VerdictDenied
	case isContextError(a.err):
		return event.VerdictCancelled
	}
	return event.VerdictInvalid
}

// execution is one call's run.
type execution struct {
	result tool.Result
	took   time.Duration
}

// start announces an admitted call and returns the function that runs it, which stores any error in a.
func (r *run) start(ctx context.Context, a *admission) (perform func() execution) {
	start := r.Now()
	if err := r.emitEvent(ctx, event.ToolStarted{CallID: a.call.ID, Tool: a.tool, Title: a.plan().Title}); err != nil {
		a.err = tool.Fatal(err)
		return func() execution { return execution{} }
	}
	return func() execution {
		a.hasRun = true
		res, err := r.execute(ctx, a)
		if isContextError(err) && ctx.Err() == nil {
			err = errors.New(err.Error()) // the tool's own time limit
		}
		a.err = err
		return execution{res, r.Now().Sub(start)}
	}
}
