package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"coder/internal/agent/inbox"
	"coder/internal/agent/supervisor"
	"coder/internal/agent/toolrun"
	"coder/internal/core/event"
	"coder/internal/host/authkey"
	"coder/internal/host/disk"
	"coder/internal/host/repofile"
	"coder/internal/policy/judge"
	"coder/internal/record/audit"
	"coder/internal/record/session"
	"coder/internal/record/store/failover"
	"coder/internal/record/store/jsonl"
	"coder/internal/record/store/mem"
	"coder/internal/record/undo"
	"coder/internal/report/export"
)

// Store is a workspace's stored data: its sessions' logs, their snapshots, and saved file contents.
type Store struct {
	Logs     event.Store
	Sessions session.Store
	// Records reads sessions and records answers for them. It has no engine to run them.
	Records *supervisor.Supervisor
	// Key returns the key that seals this user's records.
	Key func() *authkey.Key

	root, dir, home string // the workspace, its data folder, CODER_HOME
	ephemeral       bool
	speech          export.Speech
	warn            func(string)
	barred          map[string]error            // data folders that must not be used
	waived          atomic.Bool                 // the user lets the work continue without a record
	damaged         map[string]bool             // sessions that may lack records
	rules           atomic.Pointer[judge.Judge] // of the session that was opened last

	mu     sync.Mutex        // guards the fields below
	short  map[string]string // sessions that could not be read to their end, and why
	hushed bool              // suppress warnings about reading

	names     *disk.Folders // folders with names that sessions changed
	logs      *jsonl.Store
	snapshots *jsonl.Sessions
	safe      *failover.Store    // Logs, unless nothing is saved
	safeHeads *failover.Sessions // Sessions, unless nothing is saved
	contents  func() *undo.Store // opened on first use
}

var fsyncModes = map[string]jsonl.Fsync{"decisions": jsonl.Decisions, "always": jsonl.Always, "never": jsonl.Never}

// dataFolders are coder's own names in the data folder.
var dataFolders = []string{"log", "sessions", "undo", "runs", "plans", "cache", labelsFile}

// openStore opens the workspace's stored data. Data that cannot
// be written to disk stays in memory, with a single warning.
func (a *Site) openStore() *Store {
	on := disk.System
	if a.Env.Disk != nil {
		on = a.Env.Disk
	}
	s := &Store{
		root: a.Root, dir: a.data(), home: a.Home, ephemeral: a.Options.Ephemeral, speech: a.Options.Speech, warn: a.warn,
		barred: make(map[string]error), damaged: make(map[string]bool), short: make(map[string]string),
	}
	s.Key = sync.OnceValue(s.key)
	s.contents = sync.OnceValue(func() *undo.Store {
		o := undo.StoreOptions{
			Quota: int64(a.Config.Storage.UndoBytes), NoSync: a.Config.Storage.Fsync == "never", Now: a.Env.Now,
			Private: s.PrivateUndo(),
		}
		if a.Env.Disk != nil {
			o.On = a.Env.Disk.Below
		}
		if a.hasFileRules() {
			o.IsSecret = func(name string) bool {
				rules := s.rules.Load()
				return rules != nil && rules.Conceals(name)
			}
		}
		return undo.OpenStore(s.Dir("undo"), o)
	})
	fsync := fsyncModes[a.Config.Storage.Fsync]
	s.names = disk.NewFolders(fsync == jsonl.Never)
	o := jsonl.Options{Fsync: fsync, Now: a.Env.Now, Program: "coder", Version: named, Report: s.repaired, Short: s.fallsShort, Heads: s.heads(a.Env.Now), Names: s.names, Disk: on}
	s.logs, s.snapshots = jsonl.Open(s.Dir("log"), o), jsonl.OpenSessions(s.Dir("sessions"), fsync).On(on)
	if s.ephemeral {
		s.Logs, s.Sessions = new(mem.Store), new(mem.Sessions)
		if a.Env.WrapStore != nil {
			s.Logs = a.Env.WrapStore(s.Logs)
		}
	} else {
		s.openOnDisk(a.Env.WrapStore)
	}
	s.Records = supervisor.New(supervisor.Config{
		Store: s.Logs, Sessions: s.Sessions, Dir: s.root, NewID: NewID, Now: a.Env.Now, Key: s.Key, Damaged: s.hadMore, Doubt: s.doubt, Copied: s.copied,
	})
	return s
}

// PrivateUndo returns the folder for contents of files that may hold secrets, or "" without a home folder.
func (s *Store) PrivateUndo() string {
	if s.home == "" {
		return ""
	}
	return filepath.Join(s.home, "undo", shortHash(s.root))
}

// heads returns the store of each session's last record.
func (s *Store) heads(now func() time.Time) *jsonl.Heads {
	if s.home == "" {
		return nil
	}
	return &jsonl.Heads{Dir: filepath.Join(s.home, "heads"), Key: s.Key, Now: now}
}

// openOnDisk opens the logs and snapshots on disk. A folder
// that leads outside the project counts as unwritable.
func (s *Store) openOnDisk(wrap func(event.Store) event.Store) {
	var once sync.Once
	tell := func(err error) {
		once.Do(func() {
			s.warn(fmt.Sprintf("this session is not being saved: %v. Free space on that disk or give access to the folder; coder cannot (--no-session-persistence turns saving off)", err))
		})
	}
	for _, name := range dataFolders {
		if dir := s.Dir(name); leadsOut(s.root, dir) {
			s.barred[name] = fmt.Errorf("%s is a link that leads outside the project", dir)
			tell(s.barred[name])
		}
	}
	logs, options := event.Store(s.logs), failover.Options{Warn: tell, Mark: s.logs.MarkApart}
	if why := s.barred["log"]; why != nil {
		logs, options.Mark = failover.Unusable{Why: why}, nil
	}
	if wrap != nil {
		logs = wrap(logs)
	}
	snapshots := session.Store(s.snapshots)
	if why := s.barred["sessions"]; why != nil {
		snapshots = failover.UnusableSessions{Why: why}
	}
	s.safe, s.safeHeads = failover.New(logs, options), failover.NewSessions(snapshots, tell)
	s.Logs, s.Sessions = s.safe, s.safeHeads
}

// leadsOut reports whether path is a link to a place outside root, or a dangling one.
func leadsOut(root, path string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return false
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return true
	}
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		return true
	}
	inside, err := filepath.Rel(real, target)
	return err != nil || inside == ".." || strings.HasPrefix(inside, ".."+string(filepath.Separator))
}

// gitignore lists the data that does not belong in a repository.
const gitignore = "# kept by coder; config.json and what people write here may be shared\nlog/\nsessions/\nruns/\nundo/\ncache/\nplans/\ntmp/\n.gitignore\n"

// keepOutOfGit writes the data folder's .gitignore before
// anything else. It ignores failures, which lose nothing.
func (s *Store) keepOutOfGit() {
	path := s.Dir(".gitignore")
	if _, err := os.Lstat(path); s.ephemeral || err == nil {
		return
	}
	_ = os.Mkdir(s.dir, 0o700)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return
	}
	_, _ = f.WriteString(gitignore)
	_ = f.Close()
}

// Forget removes what an empty session leaves: its folder, and
// the data folder if it has nothing else but the .gitignore.
func (s *Store) Forget(id string) {
	if s.ephemeral || s.barred["log"] != nil {
		return
	}
	left, err := os.ReadDir(s.Dir("log", id))
	something := func(e fs.DirEntry) bool { // true if it is more than an empty session's
		info, err := e.Info()
		name := e.Name()
		if link, err := os.Readlink(s.Dir("log", id, name)); err == nil && link == filepath.Base(jsonl.Path(s.Dir("log", id), event.Audit)) {
			return false
		}
		return name != "lock" && (err != nil || info.Size() > 0 || !info.Mode().IsRegular())
	}
	if err != nil || slices.ContainsFunc(left, something) || jsonl.RemoveLogs(s.Dir("log", id)) != nil {
		return
	}
	_ = os.Remove(s.Dir("log")) // fails if there are others
	s.Tidy()
}

// Tidy removes the data folder if it has nothing but the
// .gitignore, for example after a session failed to open.
func (s *Store) Tidy() {
	if s.ephemeral {
		return
	}
	left, err := os.ReadDir(s.dir)
	if err != nil || len(left) != 1 || left[0].Name() != ".gitignore" {
		return
	}
	if note, err := repofile.Own(s.Dir(".gitignore"), int64(len(gitignore))); err == nil && string(note) == gitignore {
		_ = os.Remove(s.Dir(".gitignore"))
		_ = os.Remove(s.dir)
	}
}

// Dir returns a path in the data folder.
func (s *Store) Dir(names ...string) string {
	return filepath.Join(append([]string{s.dir}, names...)...)
}

// LogPath returns the path of a session's log.
func (s *Store) LogPath(id string, l event.Log) string { return jsonl.Path(s.Dir("log", id), l) }

// relative returns a folder in the data folder, relative to the workspace, or "" if it must not be used.
func (s *Store) relative(name string, below ...string) string {
	if s.ephemeral || s.barred[name] != nil {
		return ""
	}
	return filepath.Join(append([]string{".coder", name}, below...)...)
}

// Unkept returns why some of the work is not saved on disk, or
// nil if all is. If saving is off, that is the reason.
func (s *Store) Unkept() error {
	if s.ephemeral {
		return errors.New("nothing will be saved")
	}
	if err := cmp.Or(s.safe.Unkept(), s.safeHeads.Unkept()); err != nil {
		return err
	}
	for _, name := range dataFolders {
		if err := s.barred[name]; err != nil {
			return err
		}
	}
	return nil
}

// OnRecord reports whether all records so far are on disk.
func (s *Store) OnRecord() bool { return s.safe == nil || s.safe.Unkept() == nil }

// answers is the folder in CODER_HOME for answers from other processes.
const answers = "answers"

// Inbox returns the box for answers from other processes.
func (s *Store) Inbox() inbox.Box {
	return inbox.Box{Dir: filepath.Join(s.home, answers), Key: s.Key()}
}

// listening is the folder in which processes receive messages for their sessions from other processes.
const listening = "listening"

// Remote returns the box for messages to sessions from other processes.
func (s *Store) Remote() inbox.Box {
	return inbox.Box{Dir: filepath.Join(s.home, listening), Key: s.Key()}
}

// waiver lets the user continue without a record, if there is one.
func (s *Store) waiver() *toolrun.Waiver {
	if s.safe == nil {
		return nil
	}
	return &toolrun.Waiver{Waive: func() error {
		if err := s.safe.Waive(); err != nil {
			return err
		}
		s.waived.Store(true)
		return nil
	}}
}

// hadMore reports whether a session whose last record is last had
// more records. An incomplete line after a crash was never one.
func (s *Store) hadMore(id string, last uint64) bool {
	if s.damaged[id] {
		return true
	}
	if s.ephemeral || s.barred["sessions"] != nil {
		return false
	}
	at := s.snapshots.At(id)
	if at > last {
		s.warn(fmt.Sprintf("session %s: records %d to %d are missing from %s", id, last+1, at, s.Dir("log", id)))
	}
	return at > last
}

// Verify checks a session's logs line by line, and against the signed state.
func (s *Store) Verify(id string) (audit.Report, error) {
	report, err := s.logs.Verify(id)
	if err != nil || s.InUse(id) {
		return report, err
	}
	// A process that has ended since has recorded its results by now.
	report.Open, err = audit.Idle(s.Logs.Read(context.Background(), id, 0, event.Audit, event.Domain))
	return report, err
}

// repaired records that a session's logs were damaged, and warns in one line.
func (s *Store) repaired(r jsonl.Repair) {
	s.damaged[r.Session] = r.Lost() // seals detect rewritten records
	if n := len(r.Earlier); n > 0 {
		s.warn(fmt.Sprintf("session %s: an earlier version of coder wrote records %d to %d, without checks and signatures; they grant nothing", r.Session, r.Earlier[0], r.Earlier[n-1]))
	}
	if len(r.Aside) > 0 || r.Known > 0 || r.Rewritten || r.Apart {
		s.warn(repairText(r))
	}
}

// Damage says from which record on a session's logs are unreadable or changed; "" if they are intact.
func (s *Store) Damage(ctx context.Context, id string) string {
	r, err := s.logs.Damage(ctx, id)
	switch {
	case s.ephemeral || s.barred["log"] != nil:
		return ""
	case err != nil:
		return err.Error()
	case r.Known > 0 && !r.Cut:
		return fmt.Sprintf("session %s: records %d to %d are missing from %s; what they did is unknown", id, r.Last+1, r.Known, r.File)
	case r.Lost():
		return fmt.Sprintf("session %s: %s is damaged from record %d on; what happened after that is unknown", id, r.File, r.Last+1)
	case r.Rewritten:
		return repairText(r)
	}
	return ""
}

// fallsShort records that a session was read only up to record last although it continues,
// and warns once. If another process is writing the session, that may be a false alarm.
func (s *Store) fallsShort(id string, last uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hushed || s.short[id] != "" {
		return
	}
	if r, err := s.logs.Damage(context.Background(), id); err != nil || !r.Lost() || r.Last != last {
		return
	}
	s.short[id] = s.Damage(context.Background(), id)
	s.warn(s.short[id])
}

// hush suppresses or enables warnings about unreadable records.
func (s *Store) hush(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hushed = on
}

// Unread describes what is missing in the sessions that could not be read to their end.
func (s *Store) Unread() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Values(s.short))
}

// unreadOf returns why a session's records are unreadable or missing, or "".
func (s *Store) unreadOf(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.damaged[id] && s.short[id] == "" {
		return fmt.Sprintf("session %s: some of its records are missing or were changed", id)
	}
	return s.short[id]
}

func repairText(r jsonl.Repair) string {
	var asides []string
	for _, a := range r.Aside {
		asides = append(asides, a.Path)
	}
	aside := strings.Join(asides, ", ")
	switch {
	case r.Torn && r.Known == 0:
		return fmt.Sprintf("session %s: the last line of %s was incomplete; coder moved it to %s", r.Session, r.File, aside)
	case r.Known > 0 && aside == "":
		return fmt.Sprintf("session %s: records %d to %d are missing from %s", r.Session, r.Last+1, r.Known, r.File)
	case r.Known > 0:
		return fmt.Sprintf("session %s: %s is damaged; records %d to %d are missing, and what is left of them was moved to %s", r.Session, r.File, r.Last+1, r.Known, aside)
	case r.Rewritten:
		return fmt.Sprintf("session %s: %s does not match its signature; see coder audit verify %[1]s", r.Session, r.File)
	case r.Cut:
		return fmt.Sprintf("session %s: %s is damaged; the records from %d on were moved to %s", r.Session, r.File, r.Last+1, aside)
	case r.Converted:
		return fmt.Sprintf("session %s: the line ends of %s were changed to CRLF; coder restored them and saved the CRLF file as %s", r.Session, r.File, aside)
	}
	return fmt.Sprintf("session %s continued without a record after record %d; calls that it left open are not run", r.Session, r.Last)
}

// InUse reports whether a process has a session open.
func (s *Store) InUse(id string) bool { return jsonl.InUse(s.Dir("log", id)) }
