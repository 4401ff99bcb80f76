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
	"time"

	"coder/internal/app"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/host/repofile"
	"coder/internal/record/store/jsonl"
)

// defaultAge is how old things must be to be pruned by default.
const defaultAge = 30 * 24 * time.Hour

// undoMargin is how long before its first record a session may have used saved content.
const undoMargin = time.Hour

// pruned is an item that prune would delete.
type pruned struct {
	Kind  string    `json:"kind"`
	Name  string    `json:"name"`
	Files int       `json:"files"`
	Bytes int64     `json:"bytes"`
	Used  time.Time `json:"lastUsed"`

	paths []string
	logs  string // lock this first
}

// spared is a session that is old enough but stays.
type spared struct {
	Session string `json:"session_id"`
	Why     string `json:"why"`
}

// runPrune lists what is no longer used, and deletes it if told to.
func (inv *invocation) runPrune(ctx context.Context) error {
	fl := inv.flags
	if fl.dryRun && fl.yes {
		return usagef("--dry-run only lists and --yes deletes; use one")
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
	for _, names := range [][]string{{}, {"log"}, {"sessions"}, {"runs"}, {"cache"}, {"undo"}, {"undo", "objects"}, {"plans"}} {
		if info, err := os.Lstat(store.Dir(names...)); err == nil && !info.IsDir() { // a link may lead elsewhere
			return inputf("%s is not a folder: nothing in it is deleted", store.Dir(names...))
		}
	}
	if keep := keptFor(a.KeepDays()); age < keep {
		inv.warn(fmt.Sprintf("managed settings keep sessions for %d days", a.KeepDays()))
		age = keep
	}
	list, stay := prunable(ctx, store, a.Home, inv.Now(), age)
	if fl.yes {
		list, err = prune(list)
	}
	return errors.Join(inv.tellPruned(list, stay), err)
}

// keptFor is how long so many days are.
func keptFor(days int) time.Duration { return time.Duration(days) * 24 * time.Hour }

// parseAge parses a duration such as 30d, 2w or 12h.
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
	return 0, usagef("--older-than must be a duration such as 30d, 2w or 12h, not %q", text)
}

// prunable lists what was last used before the given age, and sessions as old that must stay.
func prunable(ctx context.Context, store *app.Store, home string, now time.Time, age time.Duration) (list []pruned, stay []spared) {
	before, earliest := now.Add(-age), now
	for _, id := range store.All() {
		if p := prunedSession(store, home, id); p.Used.Before(before) {
			why := inUse(ctx, store, id)
			if why == "" {
				list = append(list, p)
				continue
			}
			stay = append(stay, spared{id, why})
		}
		if first := began(store, id); first.Before(earliest) {
			earliest = first
		}
	}
	known := store.All()
	for _, id := range store.SessionsIn("runs") {
		p := pruned{Kind: "runs", Name: id}
		if p.add(time.Time{}, store.Dir("runs", id)); !slices.Contains(known, id) && p.Used.Before(before) {
			list = append(list, p)
		}
	}
	kept := earliest.Add(-undoMargin)
	if kept.After(before) {
		kept = before
	}
	undo, cache := pruned{Kind: "undo", Name: "old undo"}, pruned{Kind: "cache", Name: "old cache"}
	undo.add(kept, store.Dir("undo", "objects"))
	if private := store.PrivateUndo(); private != "" {
		undo.add(kept, filepath.Join(private, "objects"))
	}
	cache.add(before, store.Dir("cache"))
	return slices.DeleteFunc(append(list, undo, cache), func(p pruned) bool { return len(p.paths) == 0 }), stay
}

// prunedSession returns everything stored for a session.
func prunedSession(store *app.Store, home, id string) pruned {
	p := pruned{Kind: "session", Name: id, logs: store.Dir("log", id)}
	p.add(time.Time{}, p.logs, store.Dir("sessions", id+".json"), store.Dir("runs", id))
	used := p.Used
	plans, _ := filepath.Glob(store.Dir("plans", id+"-*.md")) // an id contains no pattern characters
	if p.add(time.Time{}, plans...); home != "" {
		p.add(time.Time{}, (&jsonl.Heads{Dir: filepath.Join(home, "heads")}).Files(p.logs)...)
	}
	p.Used = used // the session's last use, without later notes about it
	return p
}

// openQuestion is why an idle session stays.
const openQuestion = "a question waits for an answer"

// add adds the paths completely; or, if before is set, the files below them last used before that time.
func (p *pruned) add(before time.Time, paths ...string) {
	for _, root := range paths {
		if _, err := os.Lstat(root); err != nil {
			continue
		}
		if before.IsZero() {
			p.paths = append(p.paths, root)
		}
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return nil
			}
			info, err := d.Info()
			switch {
			case err != nil:
				return nil
			case before.IsZero():
			case d.Type().IsRegular() && info.ModTime().Before(before):
				p.paths = append(p.paths, path)
			default:
				return nil
			}
			p.Files, p.Bytes = p.Files+1, p.Bytes+info.Size()
			if info.ModTime().After(p.Used) && d.Name() != "lock" && d.Type()&fs.ModeSymlink == 0 {
				p.Used = info.ModTime()
			}
			return nil
		})
	}
}

// inUse returns why a session must stay, or "".
func inUse(ctx context.Context, store *app.Store, id string) string {
	if jsonl.InUse(store.Dir("log", id)) {
		return "a process is working on it"
	}
	if jsonl.FormatOf(store.Dir("log", id)) > jsonl.Format {
		return "a newer version of coder wrote it"
	}
	rows, err := tasks(ctx, store.Logs, id, func(uip.Response) {})
	if err != nil {
		return "it cannot be read"
	}
	if slices.ContainsFunc(rows, func(t taskRow) bool { return len(t.Open) > 0 }) {
		return openQuestion
	}
	return ""
}

// began returns the time of a session's first record; the zero time if unknown.
func began(store *app.Store, id string) (first time.Time) {
	for _, l := range event.Logs {
		text, _, err := repofile.Below(store.Dir("log")).Head(filepath.Join(id, filepath.Base(store.LogPath(id, l))), maxFirst)
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

// maxFirst is how much of a log is read to find its first record.
const maxFirst = 1 << 20

// prune deletes the listed items and returns those that are gone.
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
		return inv.printJSON(pruneReport{fl.yes, list, stay})
	}
	slices.SortStableFunc(list, func(a, b pruned) int { return cmp.Compare(a.Used.UnixNano(), b.Used.UnixNano()) })
	var t display.Table
	var total int64
	for _, p := range list {
		total += p.Bytes
		name := p.Name
		if p.Kind == "undo" || p.Kind == "cache" {
			name = words.T(name)
		}
		t.Rows = append(t.Rows, display.Data(words.T(p.Kind), name, p.Used.Local().Format("2006-01-02 15:04"), sizeOf(p.Bytes)))
	}
	var err error
	if len(list) > 0 {
		err = inv.show(t)
	}
	var lines []string
	for _, s := range stay {
		lines = append(lines, words.T("kept session %s: %s", s.Session, words.Said(s.Why)))
	}
	text := words.T("%s would be deleted; --yes deletes it", sizeOf(total))
	switch {
	case len(list) == 0 && fl.yes:
		text = words.T("nothing was deleted")
	case len(list) == 0:
		text = words.T("nothing to delete")
	case fl.yes:
		text = words.T("%s deleted", sizeOf(total))
	}
	return errors.Join(err, inv.tell(append(lines, text)...))
}

// sizeOf formats a number of bytes for the user.
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

// pruneReport is what was or would be deleted, in JSON output.
type pruneReport struct {
	Deleted bool     `json:"deleted"`
	Items   []pruned `json:"items"`
	Kept    []spared `json:"kept"`
}
