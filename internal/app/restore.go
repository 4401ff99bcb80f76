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

// restore brings the files of a session back to one of its records.
func (a *App) restore(kit *toolkit, id string) func(context.Context, uint64, undo.Call) (undo.Plan, error) {
	return func(ctx context.Context, at uint64, c undo.Call) (undo.Plan, error) {
		if kit.files == nil {
			return undo.Plan{}, undo.ErrNotKept
		}
		goals, err := a.goals(ctx, past.Now{Keeper: kit.files.get(), Workspace: kit.project.ws}, id, at)
		if err != nil {
			return undo.Plan{}, err
		}
		return kit.restore(ctx, c, goals)
	}
}

// PlanRestore tells what would become of the files of a session that are brought back
// to one of its records. The session is not opened, and nothing is changed.
func (a *App) PlanRestore(ctx context.Context, id string, at uint64, force bool) (undo.Plan, error) {
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

// goals are what the files were at a record that calls changed after it.
func (a *App) goals(ctx context.Context, kept past.Kept, id string, at uint64) ([]undo.Goal, error) {
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

// sealed reads a session to bring files back by it. What a log says of files counts if
// this user's program wrote it here: anybody may have put a log into a repository.
func (s *Store) sealed(ctx context.Context, id string, at uint64) iter.Seq2[event.Record, error] {
	notary, doubt := seal.New(s.Key(), s.root, id), s.doubt(id)
	return func(yield func(event.Record, error) bool) {
		for r, err := range s.Logs.Read(ctx, id, 0) {
			ours := err != nil || notary.Vouches(r) && doubt == ""
			if !ours && r.Seq > at && changesFiles(r.Event) {
				err = fmt.Errorf("your coder did not write record %d on this machine, so its files are not restored", r.Seq)
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

// changesFiles reports whether a record says what files were, or became.
func changesFiles(e event.Event) bool {
	switch e := e.(type) {
	case event.ToolCallRequested:
		return len(e.Before) > 0 || e.Tree != ""
	case event.ToolCallCompleted:
		return len(e.Changes) > 0
	}
	return false
}
