package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"coder/internal/event"
	"coder/internal/export"
	"coder/internal/orchestrator"
	"coder/internal/session"
	"coder/internal/show"
	"coder/internal/supervisor"
	"coder/internal/whole"
	"coder/internal/wire"
)

// sessionsShown is how many sessions a list shows.
const sessionsShown = 12

// heads lists the sessions kept here, the newest first. A session whose process
// died before it could be saved is read from its logs.
func (h *house) heads(ctx context.Context) ([]session.Head, error) {
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
func (h *house) unsaved(ctx context.Context, sup *supervisor.Supervisor, saved []session.Head) (more []session.Head) {
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

// sessions is the list for /sessions, with the one in use marked.
func (d *desk) sessions(ctx context.Context) (show.Table, error) {
	all, err := d.heads(ctx)
	if err != nil {
		return show.Table{}, err
	}
	if !slices.ContainsFunc(all, func(s session.Head) bool { return s.ID == d.session }) {
		all = slices.Insert(all, 0, session.Head{ID: d.session, Updated: d.env.Now()})
	}
	t := show.Table{Head: []string{"", "session", "last used", "turns", "title"}}
	for _, s := range all[:min(len(all), sessionsShown)] {
		mark := ""
		if s.ID == d.session {
			mark = "*"
		}
		t.Rows = append(t.Rows, append([]string{mark}, sessionRow(s)...))
	}
	if more := len(all) - sessionsShown; more > 0 {
		t.Rows = append(t.Rows, []string{"", fmt.Sprintf("and %d older", more)})
	}
	return t, nil
}

func sessionRow(s session.Head) []string {
	return []string{s.ID, s.Updated.Local().Format("2006-01-02 15:04"), strconv.Itoa(s.Meta.Turns), oneLine(s.Meta.Title)}
}

// find makes sure that there is a session to go to, and that it is free. Only an id names one: no
// number in a list, no nickname.
func (d *desk) find(ctx context.Context, id string) (here bool, err error) {
	if id == d.session {
		return true, nil
	}
	if validSessionID(id) {
		sup, err := d.shelf()
		if err != nil {
			return false, err
		}
		if known, err := sup.Exists(ctx, id); err != nil {
			return false, err
		} else if known {
			return false, free(ctx, sup, id)
		}
	}
	return false, fmt.Errorf("there is no session %s; /sessions lists them by id", oneLine(id))
}

// free makes sure that nobody else is writing the session.
func free(ctx context.Context, sup *supervisor.Supervisor, id string) error {
	release, err := sup.Store.Claim(ctx, id)
	if err != nil {
		return errors.New(message(err))
	}
	return release()
}

// formatOf is the form that the name of a file asks for.
func formatOf(path string) string {
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".json", ".html", ".md":
		return ext[1:]
	case ".htm":
		return "html"
	}
	return "md"
}

// export writes this session to a file. A file of the program's choosing is
// never written over.
func (d *desk) export(ctx context.Context, to orchestrator.Export) (string, error) {
	format, path := to.Format, to.Path
	if format == "" {
		format = formatOf(path)
	}
	chosen := path == ""
	if chosen {
		path = d.session + "." + format
	}
	at := path
	if !filepath.IsAbs(at) {
		at = filepath.Join(d.root, path)
	}
	if _, err := os.Lstat(at); chosen && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s is there already; name a file: /export %s FILE", path, format)
	}
	if info, err := os.Stat(at); err == nil && info.IsDir() {
		return "", fmt.Errorf("%s is a folder", path)
	}
	if _, err := os.Stat(filepath.Dir(at)); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("there is no folder %s", filepath.Dir(path))
	}
	var b bytes.Buffer
	if err := d.write(ctx, &b, d.session, format); err != nil {
		return "", err
	}
	return path, whole.Write(at, b.Bytes(), 0o600) // a conversation may hold anything
}

// write writes a session in a form.
func (h *house) write(ctx context.Context, w io.Writer, id, format string) error {
	sup, err := h.shelf()
	if err != nil {
		return err
	}
	snap, err := sup.Snapshot(ctx, id)
	if err != nil {
		return err
	}
	if format == "json" {
		_, err := w.Write(append(wire.Must(snap), '\n'))
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
func (h *house) recorded(ctx context.Context, sup *supervisor.Supervisor, id string) bool {
	for range sup.Store.Read(ctx, id, 0, event.Conversation) {
		return true
	}
	return false
}
