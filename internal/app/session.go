package app

import (
	"cmp"
	"context"
	"errors"

	"coder/internal/agent/orchestrator"
	"coder/internal/agent/supervisor"
	"coder/internal/core/event"
)

// Which says which session to open: a new one unless it names another.
type Which struct {
	Resume string // the id of one to go on with
	Last   bool   // go on with the last one
	ID     string // of the new one, if it is to have a certain one
}

// Resumes reports whether a session is gone on with.
func (w Which) Resumes() bool { return w.Last || w.Resume != "" }

// Open opens a session.
func (a *App) Open(ctx context.Context, sup *supervisor.Supervisor, w Which, out event.Sink) (*supervisor.Session, error) {
	if m, _ := a.Modes.Current(); m.Unchecked {
		a.warn(orchestrator.YoloWarning)
	}
	switch {
	case w.Resume != "":
		return sup.Resume(ctx, w.Resume, out)
	case w.Last:
		id, err := a.Store().Last()
		if err != nil {
			return nil, err
		}
		return sup.Resume(ctx, id, out)
	case w.ID != "":
		if taken, err := sup.Exists(ctx, w.ID); err != nil {
			return nil, err
		} else if taken {
			return nil, inputf("session %s exists already; go on with it by --resume %[1]s", w.ID)
		}
	}
	return sup.Start(ctx, cmp.Or(w.ID, NewSessionID(a.Env.Now())), out)
}

// Move opens the session that the person wants to go to from another: a new one,
// or an earlier one in the mode it was in. If that fails everything is as it was.
func (a *App) Move(ctx context.Context, sup *supervisor.Supervisor, to *orchestrator.Next, from string, out event.Sink) (*supervisor.Session, error) {
	if to.New {
		s, err := sup.Start(ctx, to.Session, out)
		if err != nil {
			return nil, err
		}
		note := event.LocalAdded{Input: "/new", Output: "new session: " + to.Session + ", after " + from}
		if err := s.Note(ctx, note); err != nil {
			return nil, errors.Join(err, s.Close())
		}
		return s, nil
	}
	was, preset := a.Modes.Current()
	if err := a.Modes.Switch(cmp.Or(a.Options.Mode, a.Config.Agents.Default)); err != nil {
		return nil, err
	}
	s, err := sup.Resume(ctx, to.Session, out)
	if err != nil {
		return nil, errors.Join(err, a.Modes.Switch(was.Name), a.Modes.Preset(preset))
	}
	return s, nil
}
