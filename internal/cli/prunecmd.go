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
	"coder/internal/core/message"
	"coder/internal/core/uip"
	"coder/internal/host/repofile"
	"coder/internal/record/store/jsonl"
)

// defaultPruneAge is how old things must be to be pruned by default.
const defaultPruneAge = 30 * 24 * time.Hour

// undoMargin is how long before its first record a session may have used saved content.
const undoMargin = time.Hour

// pruneItem is an item that prune would delete.
type pruneItem struct {
	Kind     string    `json:"kind"`
	Name     string    `json:"name"`
	Files    int       `json:"files"`
	Bytes    int64     `json:"bytes"`
	LastUsed time.Time `json:"lastUsed"`

	paths []string
	logs  string // lock this first
}

// sparedSession is a session that is old enough but stays.
type sparedSession struct {
	Session string `json:"session_id"`
	Reason  string `json:"why"`
}

// runPrune lists what is no longer used, and deletes it if told to.
func (inv *invocation) runPrune(ctx context.Context) error {
	fl := inv.flags
	if fl.dryRun && fl.yes {
		return usageErrorf("--dry-run only lists and --yes deletes; use one")
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
	for _, names := range [][]string{{}, {"log"}, {"sessions"}, {"runs"}, {"cache"}, {"undo"}, {"undo", "objects"},
		{"plans"}} {
		if info, err := os.Lstat(store.Path(names...)); err == nil && !info.IsDir() { // a link may lead elsewhere
			return inputErrorf("%s is not a folder: nothing in it is deleted", store.Path(names...))
		}
	}
	if keep := daysDuration(a.RetentionDays()); age < keep {
		inv.warn(fmt.Sprintf("managed settings keep sessions for %d days", a.RetentionDays()))
		age = keep
	}
	list, stay := findPrunable(ctx, store, a.Home, inv.Now(), age)
	if fl.yes {
		list, err = pruneItems(list)
	}
	return errors.Join(inv.printPruned(list, stay), err)
}

// daysDuration is how long so many days are.
func daysDuration(days int) time.Duration { return time.Duration(days) * 24 * time.Hour }

// parseAge parses a duration such as 30d, 2w or 12h.
func parseAge(text string) (time.Duration, error) {
	if text == "" {
		return defaultPruneAge, nil
	}
	for unit, length := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if n, err := strconv.Atoi(strings.TrimSuffix(text, unit)); err == nil && strings.HasSuffix(text, unit) && n >= 0 &&
			n < 100_000 {
			return time.Duration(n) * length, nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return d, nil
	}
	return 0, usageErrorf("--older-than must be a duration such as 30d, 2w or 12h, not %q", text)
}

// findPrunable lists what was last used before the given age, and sessions as old that must stay.
func findPrunable(ctx context.Context, store *app.Store, home string, now time.Time,
	age time.Duration) (list []pruneItem, stay []sparedSession) {
	before, earliest := now.Add(-age), now
	for _, id := range store.AllSessions() {
		if p := sessionPruneItem(store, home, id); p.LastUsed.Before(before) {
			why := sparedReason(ctx, store, id)
			if why == "" {
				list = append(list, p)
				continue
			}
			stay = append(stay, sparedSession{id, why})
		}
		if first := firstRecordTime(store, id); first.Before(earliest) {
			earliest = first
		}
	}
	known := store.AllSessions()
	for _, id := range store.SessionsIn("runs") {
		p := pruneItem{Kind: "runs", Name: id}
		if p.addPaths(time.Time{}, store.Path("runs", id)); !slices.Contains(known, id) && p.LastUsed.Before(before) {
			list = append(list, p)
		}
	}
	kept := earliest.Add(-undoMargin)
	if kept.After(before) {
		kept = before
	}
	undo, cache := pruneItem{Kind: "undo", Name: "old undo"}, pruneItem{Kind: "cache", Name: "old cache"}
	undo.addPaths(kept, store.Path("undo", "objects"))
	if private := store.PrivateUndo(); private != "" {
		undo.addPaths(kept, filepath.Join(private, "objects"))
	}
	cache.addPaths(before, store.Path("cache"))
	return slices.DeleteFunc(append(list, undo, cache), func(p pruneItem) bool { return len(p.paths) == 0 }), stay
}

// sessionPruneItem returns everything stored for a session.
func sessionPruneItem(store *app.Store, home, id string) pruneItem {
	p := pruneItem{Kind: "session", Name: id, logs: store.Path("log", id)}
	p.addPaths(time.Time{}, p.logs, store.Path("sessions", id+".json"), store.Path("runs", id))
	used := p.LastUsed
	plans, _ := filepath.Glob(store.Path("plans", id+"-*.md")) // an id contains no pattern characters
	if p.addPaths(time.Time{}, plans...); home != "" {
		p.addPaths(time.Time{}, (&jsonl.Heads{Dir: filepath.Join(home, "heads")}).Files(p.logs)...)
	}
	p.LastUsed = used // the session's last use, without later notes about it
	return p
}

// reasonOpenQuestion is why an idle session stays.
const reasonOpenQuestion = "a question waits for an answer"

// addPaths adds the paths completely; or, if before is set, the files below them last used before that time.
func (p *pruneItem) addPaths(before time.Time, paths ...string) {
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
			if info.ModTime().After(p.LastUsed) && d.Name() != "lock" && d.Type()&fs.ModeSymlink == 0 {
				p.LastUsed = info.ModTime()
			}
			return nil
		})
	}
}

// sparedReason returns why a session must stay, or "".
func sparedReason(ctx context.Context, store *app.Store, id string) string {
	if jsonl.InUse(store.Path("log", id)) {
		return "a process is working on it"
	}
	if jsonl.FormatOf(store.Path("log", id)) > jsonl.Format {
		return "a newer version of coder wrote it"
	}
	rows, err := readTasks(ctx, store.Logs, id, func(uip.Response) {})
	if err != nil {
		return "unreadable"
	}
	if slices.ContainsFunc(rows, func(t taskRow) bool { return len(t.OpenQuestions) > 0 }) {
		return reasonOpenQuestion
	}
	return ""
}

// firstRecordTime returns the time of a session's first record; the zero time if unknown.
func firstRecordTime(store *app.Store, id string) (first time.Time) {
	for _, l := range event.AllLogs {
		text, _, err := repofile.NewRoot(store.Path("log")).ReadHead(filepath.Join(id, filepath.Base(store.LogPath(id, l))),
			maxFirstRecord)
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

// maxFirstRecord is how much of a log is read to find its first record.
const maxFirstRecord = 1 << 20

// pruneItems deletes the listed items and returns those that are gone.
func pruneItems(list []pruneItem) (gone []pruneItem, err error) {
	for _, p := range list {
		if p.logs != "" {
			if failed := jsonl.RemoveLogs(p.logs); failed != nil {
				err = errors.Join(err, message.Errorf("prune session %s: %w", p.Name, failed))
				continue
			}
		}
		var failed error
		for _, path := range p.paths {
			failed = errors.Join(failed, os.RemoveAll(path))
		}
		if failed != nil {
			err = errors.Join(err, message.Errorf("prune %s: %w", p.Name, failed))
			continue
		}
		gone = append(gone, p)
	}
	return gone, err
}

func (inv *invocation) printPruned(list []pruneItem, stay []sparedSession) error {
	fl, words := inv.flags, inv.printer
	if list == nil {
		list = []pruneItem{}
	}
	if fl.json {
		return inv.printJSON(pruneReport{fl.yes, list, stay})
	}
	slices.SortStableFunc(list, func(a, b pruneItem) int {
		return cmp.Compare(a.LastUsed.UnixNano(),
			b.LastUsed.UnixNano())
	})
	var t display.Table
	var total int64
	for _, p := range list {
		total += p.Bytes
		name := p.Name
		if p.Kind == "undo" || p.Kind == "cache" {
			name = words.T(name)
		}
		t.Rows = append(t.Rows, display.DataCells(words.T(p.Kind), name, p.LastUsed.Local().Format("2006-01-02 15:04"),
			formatSize(p.Bytes)))
	}
	var err error
	if len(list) > 0 {
		err = inv.printBlocks(t)
	}
	var lines []string
	for _, s := range stay {
		lines = append(lines, words.T("kept session %s: %s", s.Session, words.TranslateText(s.Reason)))
	}
	text := words.T("%s would be deleted; --yes deletes it", formatSize(total))
	switch {
	case len(list) == 0 && fl.yes:
		text = words.T("nothing was deleted")
	case len(list) == 0:
		text = words.T("nothing to delete")
	case fl.yes:
		text = words.T("%s deleted", formatSize(total))
	}
	return errors.Join(err, inv.printWrapped(append(lines, text)...))
}

// formatSize formats a number of bytes for the user.
func formatSize(n int64) string {
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
	Deleted bool            `json:"deleted"`
	Items   []pruneItem     `json:"items"`
	Kept    []sparedSession `json:"kept"`
}
