package app

import (
	"context"
	"errors"
	"io"
	"slices"

	"coder/internal/agent/supervisor"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/record/export"
	"coder/internal/record/session"
)

// Heads lists the sessions kept here, the newest first. A session whose process
// died before it could be saved is read from its logs.
func (h archive) Heads(ctx context.Context) ([]session.Head, error) {
	sup, err := h.shelf()
	if err != nil {
		return nil, err
	}
	all := []session.Head{}
	for head, err := range sup.Sessions.List(ctx) {
		if err != nil {
			h.warn(err.Error())
			continue
		}
		all = append(all, head)
	}
	if !h.flags.ephemeral {
		all = append(all, h.unsaved(ctx, sup, all)...)
	}
	slices.SortStableFunc(all, func(a, b session.Head) int { return b.Updated.Compare(a.Updated) })
	return all, ctx.Err()
}

// unsaved are the sessions that have logs only.
func (h archive) unsaved(ctx context.Context, sup *supervisor.Supervisor, saved []session.Head) (more []session.Head) {
	for _, id := range h.sessionIDs() {
		if slices.ContainsFunc(saved, func(s session.Head) bool { return s.ID == id }) {
			continue
		}
		snap, err := sup.Snapshot(ctx, id)
		if err != nil && !errors.Is(err, session.ErrNotFound) {
			h.warn(err.Error())
		}
		if err == nil {
			more = append(more, snap.Head)
		}
	}
	return more
}

// Write writes a session in a form.
func (h archive) Write(ctx context.Context, w io.Writer, id, format string) error {
	sup, err := h.shelf()
	if err != nil {
		return err
	}
	snap, err := sup.Snapshot(ctx, id)
	if err != nil {
		return err
	}
	if format == "json" {
		_, err := w.Write(append(jsonx.Must(snap), '\n'))
		return err
	}
	t, err := export.FromSnapshot(snap)
	if h.recorded(ctx, sup, id) {
		t, err = export.FromRecords(snap.Head, sup.Store.Read(ctx, id, 0))
	}
	if err != nil {
		return err
	}
	if format == "html" {
		return export.HTML(w, t)
	}
	return export.Markdown(w, t)
}

// recorded reports whether a session has logs.
func (h archive) recorded(ctx context.Context, sup *supervisor.Supervisor, id string) bool {
	for range sup.Store.Read(ctx, id, 0, event.Conversation) {
		return true
	}
	return false
}
