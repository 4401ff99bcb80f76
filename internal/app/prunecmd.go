package app

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/core/uip"
	"coder/internal/host/repofile"
	"coder/internal/record/store/jsonl"
)

// What coder prune speaks of.
const (
	prunedSession = "session"
	prunedRuns    = "runs"
	prunedUndo    = "undo"
	prunedCache   = "cache"
)

// defaultAge is how old things must be to be pruned unless something else is
// said.
const defaultAge = 30 * 24 * time.Hour

// undoMargin is how long before its first record a session may have used a kept
// content.
const undoMargin = time.Hour

// pruned is something that prune would delete.
type pruned struct {
	Kind  string    `json:"kind"`
	Name  string    `json:"name"`
	Files int       `json:"files"`
	Bytes int64     `json:"bytes"`
	Used  time.Time `json:"lastUsed"`

	paths []string
	logs  string // to be locked first
}

// spared is a session that is old enough and stays.
type spared struct {
	Session string `json:"session_id"`
	Why     string `json:"why"`
}

// runPrune says what is kept here and no longer used, and deletes it if told to.
func runPrune(ctx context.Context, env Env, fl *flags) error {
	if len(fl.args) > 0 {
		return usagef("coder prune takes no arguments")
	}
	if fl.dryRun && fl.yes {
		return usagef("--dry-run only tells and --yes deletes; use one")
	}
	age, err := parseAge(fl.olderThan)
	if err != nil {
		return err
	}
	h, err := onShelf(env, fl)
	if err != nil {
		return err
	}
	if err := h.checkFolders(); err != nil {
		return err
	}
	list, stay, err := h.prunable(ctx, env.Now().Add(-age))
	if err != nil {
		return err
	}
	if fl.yes {
		list, err = h.prune(list)
	}
	return errors.Join(h.tellPruned(list, stay, fl), err)
}

// parseAge reads a time such as 30d, 2w or 12h.
func parseAge(text string) (time.Duration, error) {
	if text == "" {
		return defaultAge, nil
	}
	for unit, length := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if n, err := strconv.Atoi(strings.TrimSuffix(text, unit)); err == nil && strings.HasSuffix(text, unit) && n >= 0 && n < 100_000 {
			return time.Duration(n) * length, nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return d, nil
	}
	return 0, usagef("--older-than wants a time such as 30d, 2w or 12h, not %q", text)
}

// prunable lists what was last used before a time, and the sessions that were
// and stay all the same.
func (h *house) prunable(ctx context.Context, before time.Time) (list []pruned, stay []spared, err error) {
	ids := slices.Concat(sessionsUnder(h.logs(), ""), sessionsUnder(h.snapshots(), ".json"))
	slices.Sort(ids)
	known := make(map[string]bool)
	earliest := h.env.Now()
	for _, id := range slices.Compact(ids) {
		known[id] = true
		p := h.sessionFiles(id)
		why := ""
		if p.Used.Before(before) {
			if why, err = h.inUse(ctx, id); err != nil {
				return nil, nil, err
			}
			if why == "" {
				list = append(list, p)
				continue
			}
			stay = append(stay, spared{id, why})
		}
		if began := h.began(id); began.Before(earliest) {
			earliest = began
		}
	}
	for _, id := range sessionsUnder(h.runs(), "") {
		if p := gather(prunedRuns, id, filepath.Join(h.runs(), id)); !known[id] && p.Used.Before(before) {
			list = append(list, p)
		}
	}
	kept := earliest.Add(-undoMargin)
	if kept.After(before) {
		kept = before
	}
	list = append(list, oldFiles(prunedUndo, filepath.Join(h.data(), "undo", "objects"), kept), oldFiles(prunedCache, h.cache(), before))
	return slices.DeleteFunc(list, func(p pruned) bool { return len(p.paths) == 0 }), stay, nil
}

func (h *house) runs() string  { return filepath.Join(h.data(), "runs") }
func (h *house) cache() string { return filepath.Join(h.data(), "cache") }

// sessionFiles is all that is kept of one session.
func (h *house) sessionFiles(id string) pruned {
	paths := []string{filepath.Join(h.logs(), id), filepath.Join(h.snapshots(), id+".json"), filepath.Join(h.runs(), id)}
	p := gather(prunedSession, id, paths...)
	also, _ := filepath.Glob(filepath.Join(h.data(), "plans", id+"-*.md")) // an id has nothing that a pattern would heed
	if h.home != "" {
		also = append(also, (&jsonl.Heads{Dir: filepath.Join(h.home, "heads")}).Files(paths[0])...)
	}
	more := gather("", "", also...)
	p.Files, p.Bytes, p.paths = p.Files+more.Files, p.Bytes+more.Bytes, append(p.paths, more.paths...)
	p.logs = paths[0]
	return p
}

// gather adds up what lies at paths.
func gather(kind, name string, paths ...string) pruned {
	p := pruned{Kind: kind, Name: name}
	for _, path := range paths {
		if _, err := os.Lstat(path); err != nil {
			continue
		}
		p.paths = append(p.paths, path)
		_ = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return nil
			}
			if info, err := d.Info(); err == nil {
				p.Files, p.Bytes = p.Files+1, p.Bytes+info.Size()
				if info.ModTime().After(p.Used) && d.Name() != "lock" {
					p.Used = info.ModTime()
				}
			}
			return nil
		})
	}
	return p
}

// oldFiles are the files below dir that were last used before a time.
func oldFiles(kind, dir string, before time.Time) pruned {
	p := pruned{Kind: kind, Name: "old " + kind}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		info, err := d.Info()
		if err == nil && info.ModTime().Before(before) {
			p.paths = append(p.paths, path)
			p.Files, p.Bytes = p.Files+1, p.Bytes+info.Size()
			if info.ModTime().After(p.Used) {
				p.Used = info.ModTime()
			}
		}
		return nil
	})
	return p
}

// inUse says why a session must stay, or "".
func (h *house) inUse(ctx context.Context, id string) (string, error) {
	if jsonl.InUse(filepath.Join(h.logs(), id)) {
		return "a process works on it", nil
	}
	logs, _, err := h.stores()
	if err != nil {
		return "", err
	}
	rows, err := tasks(ctx, logs, id, func(uip.Response) {})
	if err != nil {
		return "it cannot be read", nil
	}
	for _, t := range rows {
		if len(t.Open) > 0 {
			return "a question waits for an answer", nil
		}
	}
	return "", nil
}

// began is when a session's first record was written; the earliest time there is
// if nobody knows.
func (h *house) began(id string) (first time.Time) {
	for _, l := range event.Logs {
		text, _, err := repofile.Below(h.logs()).Head(filepath.Join(id, l.String()+".jsonl"), maxFirst)
		line, _, _ := bytes.Cut(text, []byte("\n"))
		var r struct {
			Time time.Time `json:"createdAt"`
		}
		if err != nil || json.Unmarshal(line, &r) != nil {
			continue
		}
		if first.IsZero() || r.Time.Before(first) {
			first = r.Time
		}
	}
	return first
}

// maxFirst is how far the first record of a log is looked for.
const maxFirst = 1 << 20

// checkFolders makes sure that the folders in which things are deleted are
// folders, and not links to where they are not ours.
func (h *house) checkFolders() error {
	for _, dir := range []string{h.data(), h.logs(), h.snapshots(), h.runs(), h.cache(), filepath.Join(h.data(), "undo"), filepath.Join(h.data(), "undo", "objects"), filepath.Join(h.data(), "plans")} {
		if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
			return inputf("%s is not a folder: nothing is deleted through it", dir)
		}
	}
	return nil
}

// prune deletes what is listed and returns what of it is gone.
func (h *house) prune(list []pruned) (gone []pruned, err error) {
	for _, p := range list {
		if p.logs != "" {
			if failed := jsonl.RemoveLogs(p.logs); failed != nil {
				err = errors.Join(err, fmt.Errorf("prune session %s: %w", p.Name, failed))
				continue
			}
		}
		var failed error
		for _, path := range p.paths {
			failed = errors.Join(failed, os.RemoveAll(path))
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("prune %s: %w", p.Name, failed))
			continue
		}
		gone = append(gone, p)
	}
	return gone, err
}

func (h *house) tellPruned(list []pruned, stay []spared, fl *flags) error {
	if list == nil {
		list = []pruned{}
	}
	if fl.json {
		_, err := fmt.Fprintf(h.env.Stdout, "%s\n", jsonx.Must(map[string]any{"deleted": fl.yes, "items": list, "kept": stay}))
		return err
	}
	words := h.words()
	slices.SortStableFunc(list, func(a, b pruned) int { return cmp.Compare(a.Used.UnixNano(), b.Used.UnixNano()) })
	w := tabwriter.NewWriter(h.env.Stdout, 0, 0, 2, ' ', 0)
	var total int64
	for _, p := range list {
		total += p.Bytes
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", words.T(p.Kind), p.Name, p.Used.Local().Format("2006-01-02 15:04"), sizeOf(p.Bytes))
	}
	err := w.Flush()
	for _, s := range stay {
		_, e := fmt.Fprintln(h.env.Stdout, words.T("session %s stays: %s", s.Session, words.Said(s.Why)))
		err = errors.Join(err, e)
	}
	text := words.T("%s would be deleted; --yes deletes it", sizeOf(total))
	switch {
	case len(list) == 0 && fl.yes:
		text = words.T("nothing was deleted")
	case len(list) == 0:
		text = words.T("there is nothing to delete")
	case fl.yes:
		text = words.T("%s deleted", sizeOf(total))
	}
	_, e := fmt.Fprintln(h.env.Stdout, text)
	return errors.Join(err, e)
}

// sizeOf is a number of bytes as people read it.
func sizeOf(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	f, units := float64(n), "KMGT"
	for f >= 1<<10 && units != "" {
		f, units = f/(1<<10), units[1:]
	}
	return fmt.Sprintf("%.1f %ciB", f, "KMGT"[4-len(units)-1])
}
