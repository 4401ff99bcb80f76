package toolrun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"coder/internal/core/event"
	"coder/internal/tool"
)

// request saves what the call would overwrite and records its request.
func (r *run) request(ctx context.Context, a *admission) error {
	tree, repository := "", ""
	if r.Start != nil {
		tree, repository = r.Start(ctx, a.readOnly())
	}
	if err := r.keep(ctx, a); err != nil {
		return err
	}
	plan := a.plan()
	e := event.ToolCallRequested{
		CallID: a.call.ID, Tool: a.tool, Author: r.Actor, TaskID: r.Task, Input: a.call.Args,
		Timestamp: r.Now().UnixMilli(), ReadOnly: a.readOnly(), Effects: plan.Effects, Confined: plan.Confined,
		Verdict: a.verdict(), DecidedBy: a.by, Title: plan.Title, Before: a.kept.Before,
		Tree: cmp.Or(a.kept.Tree, tree), Repository: repository, Keyless: a.keyless,
	}
	if a.by == event.ActorPolicy {
		e.Unasked = a.opinion.Unasked
	}
	for _, why := range a.opinion.Reasons {
		e.Reasons = append(e.Reasons, why.String())
	}
	return r.emit(ctx, e)
}

// keep saves what an admitted call would overwrite. If that fails, the call does not run.
func (r *run) keep(ctx context.Context, a *admission) error {
	if r.Keeper == nil || !a.granted() || a.readOnly() {
		return nil
	}
	kept, err := r.Keeper.Keep(ctx, a.plan().Effects)
	var unkept *event.UnkeptError
	switch {
	case errors.As(err, &unkept):
		return err
	case err != nil:
		a.refuse(fmt.Errorf("save what %s would overwrite: %w", a.tool, err))
	default:
		a.kept = kept
	}
	return nil
}

// verdict returns the gate's verdict for the audit log.
func (a *admission) verdict() event.Verdict {
	var denied *Denied
	switch {
	case a.granted():
		return event.Allowed
	case errors.As(a.err, &denied):
		return event.Denied
	case isContext(a.err):
		return event.Cancelled
	}
	return event.Invalid
}

// execution is one call's run.
type execution struct {
	result tool.Result
	took   time.Duration
}

// begin announces an admitted call and returns the function that runs it, which stores any error in a.
func (r *run) begin(ctx context.Context, a *admission) (perform func() execution) {
	start := r.Now()
	if err := r.emit(ctx, event.ToolStarted{CallID: a.call.ID, Tool: a.tool, Title: a.plan().Title}); err != nil {
		a.err = tool.Fatal(err)
		return func() execution { return execution{} }
	}
	return func() execution {
		a.ran = true
		res, err := r.execute(ctx, a)
		if isContext(err) && ctx.Err() == nil {
			err = errors.New(err.Error()) // the tool's own time limit
		}
		a.err = err
		return execution{res, r.Now().Sub(start)}
	}
}
