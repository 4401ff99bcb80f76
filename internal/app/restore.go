package app

import (
	"context"
	"fmt"
	"iter"

	"coder/internal/core/event"
	"coder/internal/record/past"
	"coder/internal/record/seal"
	"coder/internal/record/undo"
)

// restore restores the session's files to one of its records.
func (a *Session) restore(ctx context.Context, at uint64, c undo.Call) (undo.Plan, error) {
	if a.kit.files == nil {
		return undo.Plan{}, undo.ErrNotKept
	}
	goals, err := a.goals(ctx, past.Now{Keeper: a.kit.files.get(), Workspace: a.kit.project.ws}, a.id, at)
	if err != nil {
		return undo.Plan{}, err
	}
	return a.kit.restore(ctx, c, goals)
}

// PlanRestore returns what a restore of a session's files to one of its
// records would change. It does not open the session, and changes nothing.
func (a *Archive) PlanRestore(ctx context.Context, id string, at uint64, force bool) (undo.Plan, error) {
	if _, err := a.Store().Known(ctx, id); err != nil {
		return undo.Plan{}, err
	}
	kept, err := a.openPast(0)
	if err != nil {
		return undo.Plan{}, err
	}
	defer kept.Workspace.Close()
	goals, err := a.goals(ctx, kept.Now, id, at)
	if err != nil {
		return undo.Plan{}, err
	}
	return undo.Restore(ctx, kept.Keeper, undo.Call{DryRun: true, Force: force}, goals)
}

// goals returns the state at a record of all files that later calls changed.
func (a *Archive) goals(ctx context.Context, kept past.Kept, id string, at uint64) ([]undo.Goal, error) {
	then, err := momentAt(ctx, id, a.Store().sealed(ctx, id, at), at, kept)
	if err != nil {
		return nil, err
	}
	if why := a.Store().unreadOf(id); why != "" {
		return nil, inputf("%s, so files are not restored", why)
	}
	goals := make([]undo.Goal, len(then.Later))
	for i, l := range then.Later {
		goals[i] = undo.Goal{To: l.To, Known: &l.Known}
	}
	return goals, nil
}

// sealed reads a session for a restore. Its statements about files
// count only if vouched: anyone may have put a log into a repository.
func (s *Store) sealed(ctx context.Context, id string, at uint64) iter.Seq2[event.Record, error] {
	notary, doubt := seal.New(s.Key(), s.root, id), s.doubt(id)
	return func(yield func(event.Record, error) bool) {
		for r, err := range s.Logs.Read(ctx, id, 0) {
			ours := err != nil || notary.Vouches(r) && doubt == ""
			if !ours && r.Seq > at && changesFiles(r.Event) {
				err = fmt.Errorf("coder did not write record %d on this machine, so its files are not restored", r.Seq)
			}
			if e, ok := r.Event.(event.ToolCallRequested); ok && !ours {
				e.Before, e.Tree = nil, ""
				r.Event = e
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// changesFiles reports whether a record has the state of files before or after a call.
func changesFiles(e event.Event) bool {
	switch e := e.(type) {
	case event.ToolCallRequested:
		return len(e.Before) > 0 || e.Tree != ""
	case event.ToolCallCompleted:
		return len(e.Changes) > 0
	}
	return false
}
