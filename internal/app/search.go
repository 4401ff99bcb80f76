package app

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"coder/internal/config"
	"coder/internal/core/event"
	"coder/internal/core/secret"
	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
	"coder/internal/record/store/jsonl"
	"coder/internal/report/fulltext"
	"coder/internal/report/ship"
	"coder/internal/report/telemetry"
	"coder/internal/report/usage"
)

const (
	workspacesDir = "workspaces" // in CODER_HOME: a file for each, with its path
	maxWorkspaces = 10_000
	maxPathLen    = 16 << 10

	maxParallelSearches = 4 // sessions to read at the same time
)

// searchCacheDir is the folder in CODER_HOME for search documents.
var searchCacheDir = filepath.Join("cache", "search")

// registerWorkspace records that this workspace has sessions. If that
// fails, a search from elsewhere does not find them.
func (a *Archive) registerWorkspace() {
	if a.Home == "" || a.Options.Ephemeral {
		return
	}
	path := filepath.Join(a.Home, workspacesDir, shortHash(a.Root))
	if _, err := os.Lstat(path); err == nil {
		return
	}
	if os.MkdirAll(filepath.Dir(path), 0o700) == nil {
		_ = atomicfile.WriteCache(path, []byte(a.Root+"\n"), 0o600)
	}
}

func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:12])
}

// FindSessionsDir returns the folder whose sessions a command in dir means: the nearest,
// dir or one above it, that has sessions and contains file, if one is named. Folders
// above count only if this user has worked in them. If there is none, it returns dir.
func FindSessionsDir(env Env, dir, file string) string {
	home := coderHome(env)
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		_, err := os.Lstat(filepath.Join(home, workspacesDir, shortHash(at)))
		known := at == filepath.Clean(dir) || home != "" && err == nil
		if within, err := filepath.Rel(at, file); known && hasUsedSession(at) &&
			(file == "" || err == nil && filepath.IsLocal(within)) {
			return at
		}
		if at == filepath.Dir(at) {
			return dir
		}
	}
}

// hasUsedSession reports whether a folder has a session in which something was asked.
func hasUsedSession(root string) bool {
	store := &Store{root: root, dir: filepath.Join(root, ".coder")}
	return slices.ContainsFunc(sessionIDs(root), func(id string) bool { return !store.IsUnused(id) })
}

// HasSession reports whether a workspace has a session with that id.
func HasSession(root, id string) bool { return slices.Contains(sessionIDs(root), id) }

// Workspaces returns the known folders with sessions, and this one. It skips unreadable entries.
func (s *Settings) Workspaces() []string {
	list := []string{s.Root}
	if s.Home == "" {
		return list
	}
	entries, _ := fs.ReadDir(repofile.NewRoot(s.Home), workspacesDir)
	for _, e := range entries[:min(len(entries), maxWorkspaces)] {
		text, err := repofile.ReadOwn(filepath.Join(s.Home, workspacesDir, e.Name()), maxPathLen)
		root := strings.TrimSuffix(string(text), "\n")
		if err == nil && filepath.IsAbs(root) && shortHash(root) == e.Name() && !slices.Contains(list, root) {
			list = append(list, root)
		}
	}
	return list
}

// SearchSessions finds words in the sessions of all projects, the newest first.
func (a *Archive) SearchSessions(ctx context.Context, words []string) ([]fulltext.Result, error) {
	type kept struct{ root, id string }
	var all []kept
	for _, root := range a.Workspaces() {
		for _, id := range sessionIDs(root) {
			all = append(all, kept{root, id})
		}
	}
	found := make([]*fulltext.Result, len(all))
	unread := make([]string, len(all))
	next := make(chan int)
	var crew sync.WaitGroup
	var grown atomic.Bool // documents were added
	for range maxParallelSearches {
		crew.Go(func() {
			for i := range next {
				p := all[i]
				doc, anew := a.searchDocument(ctx, p.root, p.id)
				if anew {
					grown.Store(true)
				}
				unread[i] = doc.Damage
				if hit, ok := doc.Find(words); ok {
					found[i] = &fulltext.Result{Project: p.root, Session: p.id, Head: doc.Head, Hit: hit}
				}
			}
		})
	}
	for i := range all {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	crew.Wait()
	for _, damage := range unread {
		if damage != "" {
			a.warn(damage)
		}
	}
	list := []fulltext.Result{}
	for _, f := range found {
		if f != nil {
			list = append(list, *f)
		}
	}
	slices.SortStableFunc(list, func(a, b fulltext.Result) int {
		return cmp.Or(b.Updated.Compare(a.Updated), strings.Compare(b.Session, a.Session))
	})
	if a.Home != "" && grown.Load() {
		limitDirSize(filepath.Join(a.Home, searchCacheDir), int64(a.Config.Storage.CacheBytes),
			func(string) bool { return false })
	}
	return list, ctx.Err()
}

// Usage adds up the usage of models in the sessions of all projects.
func (a *Archive) Usage(ctx context.Context, t *usage.Tally) error {
	for _, root := range a.Workspaces() {
		s := a.workspaceStore(root)
		for _, id := range sessionIDs(root) {
			for r, err := range s.readRecords(ctx, id, usage.MayContainUsage) {
				if err != nil {
					a.warn(err.Error()) // use the readable part
					break
				}
				t.Add(root, id, r)
			}
		}
	}
	return ctx.Err()
}

// shipCursorsDir is where the cursors of shipped audit logs are, in the user's folder.
const shipCursorsDir = "ship"

// ShipRecords sends the records of all audit logs that it has not sent before: to "syslog", to "otlp", or to a file.
func (a *Archive) ShipRecords(ctx context.Context, to string) (records, sessions int, err error) {
	if a.Home == "" {
		return 0, 0, inputErrorf("no folder for the cursor: set HOME or CODER_HOME")
	}
	o := ship.Options{Dir: filepath.Join(a.Home, shipCursorsDir), To: to, Projects: func(yield func(ship.Project) bool) {
		for _, root := range a.Workspaces() {
			s := a.workspaceStore(root)
			p := ship.Project{Root: root, Sessions: sessionIDs(root), LogPath: s.LogPath}
			p.Read = func(ctx context.Context, id string, l event.Log) iter.Seq2[event.Record, error] {
				return s.readRecords(ctx, id, nil, l)
			}
			if !yield(p) {
				return
			}
		}
	}}
	switch {
	case to == "otlp":
		o.Collector, err = a.newOTLPReceiver()
	case to != "syslog" && !strings.HasPrefix(to, "syslog:") && !filepath.IsAbs(to):
		o.To = filepath.Join(a.Env.Dir, to)
	}
	if err != nil {
		return 0, 0, err
	}
	return ship.Ship(ctx, o)
}

// newOTLPReceiver returns the user's collector for audit logs.
func (a *Archive) newOTLPReceiver() (c ship.Collector, err error) {
	if !a.isPermitted(func(l config.ManagedLimits) *bool { return l.Telemetry }) {
		return c, configErrorf("telemetry is not allowed by managed settings")
	}
	target, resource, complaint := telemetry.LogTarget(a.Env.Getenv, Version)
	if target == nil {
		return c, inputErrorf("%s",
			cmp.Or(complaint, "--to otlp needs OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_LOGS_ENDPOINT"))
	}
	return ship.Collector{Target: *target, Resource: resource, Version: Version}, nil
}

// sessionIDs returns the sessions with logs in a workspace. It ignores links, which may lead anywhere.
func sessionIDs(root string) (ids []string) {
	for _, dir := range []string{".coder", filepath.Join(".coder", "log")} {
		if info, err := os.Lstat(filepath.Join(root, dir)); err != nil || !info.IsDir() {
			return nil
		}
	}
	entries, _ := fs.ReadDir(repofile.NewRoot(root), ".coder/log")
	for _, e := range entries {
		if e.IsDir() && IsSessionID(e.Name()) {
			ids = append(ids, e.Name())
		}
	}
	return ids
}

// searchDocument returns a session's search document: the cached one, or a new one if the logs have changed.
func (a *Archive) searchDocument(ctx context.Context, root, id string) (doc fulltext.Document, anew bool) {
	stamp, ok := logStamp(filepath.Join(root, ".coder", "log", id))
	if !ok {
		return doc, false
	}
	name := filepath.Join(searchCacheDir, shortHash(root+"\x00"+id))
	if a.Home != "" {
		if text, err := repofile.ReadOwn(filepath.Join(a.Home, name), 4*fulltext.MaxText); err == nil {
			if doc, ok := fulltext.Decode(text); ok && doc.Stamp == stamp {
				return doc, false
			}
		}
	}
	s := a.workspaceStore(root)
	s.warn = func(string) {} // the search reports damage itself
	doc = fulltext.Build(stamp, func(yield func(event.Record, error) bool) {
		for r, err := range s.Logs.Read(ctx, id, 0) {
			r.Event = maskFileNames(r.Event, secret.ShapeConcealer().Text)
			if !yield(r, err) {
				return
			}
		}
	})
	doc.Damage = strings.Join(s.UnreadSessions(), "; ")
	if path := filepath.Join(a.Home, name); a.Home != "" && ctx.Err() == nil &&
		os.MkdirAll(filepath.Dir(path), 0o700) == nil {
		_ = atomicfile.WriteCache(path, doc.Encode(), 0o600) // without it, the next search is slower
	}
	return doc, true
}

// logStamp returns a stamp that changes with a session's logs.
// It rejects a log that is a link or not a regular file.
func logStamp(dir string) (stamp string, ok bool) {
	for _, l := range event.AllLogs {
		info, err := os.Lstat(jsonl.Path(dir, l))
		switch {
		case err != nil:
			stamp += "- "
		case info.Mode()&fs.ModeType != 0:
			return "", false
		default:
			stamp += fmt.Sprintf("%d@%d ", info.Size(), info.ModTime().UnixNano())
		}
	}
	return stamp, true
}
