package cli

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

	"coder/internal/app"
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
func (inv *invocation) runPrune(ctx context.Context) error {
	fl := inv.flags
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
	a, err := inv.newApp(inv.warn)
	if err != nil {
		return err
	}
	store := a.Store()
	if err := checkFolders(store); err != nil {
		return err
	}
	list, stay, err := prunable(ctx, store, a.Home, inv.Now(), age)
	if err != nil {
		return err
	}
	if fl.yes {
		list, err = prune(list)
	}
	return errors.Join(inv.tellPruned(list, stay), err)
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
func prunable(ctx context.Context, store *app.Store, home string, now time.Time, age time.Duration) (list []pruned, stay []spared, err error) {
	before := now.Add(-age)
	known := make(map[string]bool)
	earliest := now
	for _, id := range store.All() {
		known[id] = true
		p := sessionFiles(store, home, id)
		why := ""
		if p.Used.Before(before) {
			if why, err = inUse(ctx, store, id); err != nil {
				return nil, nil, err
			}
			if why == "" {
				list = append(list, p)
				continue
			}
			stay = append(stay, spared{id, why})
		}
		if began := began(store, id); began.Before(earliest) {
			earliest = began
		}
	}
	for _, id := range store.SessionsIn("runs") {
		if p := gather(prunedRuns, id, store.Dir("runs", id)); !known[id] && p.Used.Before(before) {
			list = append(list, p)
		}
	}
	kept := earliest.Add(-undoMargin)
	if kept.After(before) {
		kept = before
	}
	list = append(list, oldFiles(prunedUndo, store.Dir("undo", "objects"), kept), oldFiles(prunedCache, store.Dir("cache"), before))
	return slices.DeleteFunc(list, func(p pruned) bool { return len(p.paths) == 0 }), stay, nil
}

// sessionFiles is all that is kept of one session.
func sessionFiles(store *app.Store, home, id string) pruned {
	paths := []string{store.Dir("log", id), store.Dir("sessions", id+".json"), store.Dir("runs", id)}
	p := gather(prunedSession, id, paths...)
	also, _ := filepath.Glob(store.Dir("plans", id+"-*.md")) // an id has nothing that a pattern would heed
	if home != "" {
		also = append(also, (&jsonl.Heads{Dir: filepath.Join(home, "heads")}).Files(paths[0])...)
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
func inUse(ctx context.Context, store *app.Store, id string) (string, error) {
	if jsonl.InUse(store.Dir("log", id)) {
		return "a process works on it", nil
	}
	rows, err := tasks(ctx, store.Logs, id, func(uip.Response) {})
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
func began(store *app.Store, id string) (first time.Time) {
	for _, l := range event.Logs {
		text, _, err := repofile.Below(store.Dir("log")).Head(filepath.Join(id, l.String()+".jsonl"), maxFirst)
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
func checkFolders(store *app.Store) error {
	for _, dir := range []string{store.Dir(), store.Dir("log"), store.Dir("sessions"), store.Dir("runs"), store.Dir("cache"), store.Dir("undo"), store.Dir("undo", "objects"), store.Dir("plans")} {
		if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
			return inputf("%s is not a folder: nothing is deleted through it", dir)
		}
	}
	return nil
}

// prune deletes what is listed and returns what of it is gone.
func prune(list []pruned) (gone []pruned, err error) {
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

func (inv *invocation) tellPruned(list []pruned, stay []spared) error {
	fl, words := inv.flags, inv.words
	if list == nil {
		list = []pruned{}
	}
	if fl.json {
		_, err := fmt.Fprintf(inv.Stdout, "%s\n", jsonx.Must(map[string]any{"deleted": fl.yes, "items": list, "kept": stay}))
		return err
	}
	slices.SortStableFunc(list, func(a, b pruned) int { return cmp.Compare(a.Used.UnixNano(), b.Used.UnixNano()) })
	w := tabwriter.NewWriter(inv.Stdout, 0, 0, 2, ' ', 0)
	var total int64
	for _, p := range list {
		total += p.Bytes
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", words.T(p.Kind), p.Name, p.Used.Local().Format("2006-01-02 15:04"), sizeOf(p.Bytes))
	}
	err := w.Flush()
	for _, s := range stay {
		_, e := fmt.Fprintln(inv.Stdout, words.T("session %s stays: %s", s.Session, words.Said(s.Why)))
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
	_, e := fmt.Fprintln(inv.Stdout, text)
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
