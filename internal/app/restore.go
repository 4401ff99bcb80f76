package app

import (
	"context"
	"iter"

	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/record/past"
	"coder/internal/record/seal"
	"coder/internal/record/undo"
)

// restore restores the session's files to one of its records.
func (a *Session) restore(ctx context.Context, at uint64, c undo.Request) (undo.Plan, error) {
	if a.kit.fileKeeper == nil {
		return undo.Plan{}, undo.ErrNotSaved
	}
	goals, err := a.restoreGoals(ctx, past.CurrentStore{Keeper: a.kit.fileKeeper.get(), Workspace: a.kit.project.ws},
		a.id, at)
	if err != nil {
		return undo.Plan{}, err
	}
	return a.kit.restore(ctx, c, goals)
}

// PlanRestore returns what a restore of a session's files to one of its
// records would change. It does not open the session, and changes nothing.
func (a *Archive) PlanRestore(ctx context.Context, id string, at uint64, force bool) (undo.Plan, error) {
	if _, err := a.Store().CheckSession(ctx, id); err != nil {
		return undo.Plan{}, err
	}
	kept, err := a.openPastStore(0)
	if err != nil {
		return undo.Plan{}, err
	}
	defer kept.Workspace.Close()
	goals, err := a.restoreGoals(ctx, kept.CurrentStore, id, at)
	if err != nil {
		return undo.Plan{}, err
	}
	return undo.Restore(ctx, kept.Keeper, undo.Request{DryRun: true, Force: force}, goals)
}

// restoreGoals returns the state at a record of all files that later calls changed.
func (a *Archive) restoreGoals(ctx context.Context, kept past.TreeSource, id string, at uint64) ([]undo.Goal, error) {
	then, err := newMoment(ctx, id, a.Store().sealedRecords(ctx, id, at), at, kept)
	if err != nil {
		return nil, err
	}
	if why := a.Store().unreadReason(id); why != "" {
		return nil, inputErrorf("%s, so files are not restored", why)
	}
	goals := make([]undo.Goal, len(then.Later))
	for i, l := range then.Later {
		goals[i] = undo.Goal{To: l.Recorded, Expected: &l.Current}
	}
	return goals, nil
}

// sealedRecords reads a session for a restore. Its statements about files
// count only if vouched: anyone may have put a log into a repository.
func (s *Store) sealedRecords(ctx context.Context, id string, at uint64) iter.Seq2[event.Record, error] {
	notary, doubt := seal.New(s.SealKey(), s.root, id), s.doubtReason(id)
	return func(yield func(event.Record, error) bool) {
		for r, err := range s.Logs.Read(ctx, id, 0) {
			ours := err != nil || notary.HasValidSeal(r) && doubt == ""
			if !ours && r.Seq > at && hasFileStates(r.Event) {
				err = message.Errorf("coder did not write record %d on this machine, so its files are not restored",
					r.Seq)
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

// hasFileStates reports whether a record has the state of files before or after a call.
func hasFileStates(e event.Event) bool {
	switch e := e.(type) {
	case event.ToolCallRequested:
		return len(e.Before) > 0 || e.Tree != ""
	case event.ToolCallCompleted:
		return len(e.Changes) > 0
	}
	return false
}
