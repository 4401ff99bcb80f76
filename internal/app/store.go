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
	"coder/internal/core/message"
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
	// Supervisor reads sessions and records answers for them. It has no engine to run them.
	Supervisor *supervisor.Supervisor
	// SealKey returns the key that seals this user's records.
	SealKey func() *authkey.Key

	root, dir, home string // the workspace, its data folder, CODER_HOME
	ephemeral       bool
	language        export.Locale
	warn            func(string)
	unusableDirs    map[string]error            // data folders that must not be used
	recordWaived    atomic.Bool                 // the user lets the work continue without a record
	damagedSessions map[string]bool             // sessions that may lack records
	rules           atomic.Pointer[judge.Judge] // of the session that was opened last

	mu          sync.Mutex        // guards the fields below
	truncated   map[string]string // sessions that could not be read to their end, and why
	warningsOff bool              // suppress warnings about reading

	touchedFolders   *disk.DirSyncer // folders with names that sessions changed
	logs             *jsonl.Store
	snapshots        *jsonl.Sessions
	failoverLogs     *failover.Store    // Logs, unless nothing is saved
	failoverSessions *failover.Sessions // Sessions, unless nothing is saved
	undoStore        func() *undo.Store // opened on first use
}

var fsyncModes = map[string]jsonl.Fsync{"decisions": jsonl.FsyncDecisions, "always": jsonl.FsyncAlways,
	"never": jsonl.FsyncNever}

// dataDirNames are coder's own names in the data folder.
var dataDirNames = []string{"log", "sessions", "undo", "runs", "plans", "cache", labelsFile}

// openStore opens the workspace's stored data. Data that cannot
// be written to disk stays in memory, with a single warning.
func (a *Site) openStore() *Store {
	on := disk.System
	if a.Env.Disk != nil {
		on = a.Env.Disk
	}
	s := &Store{
		root: a.Root, dir: a.dataDir(), home: a.Home, ephemeral: a.Options.Ephemeral, language: a.Options.Language,
		warn:         a.warn,
		unusableDirs: make(map[string]error), damagedSessions: make(map[string]bool), truncated: make(map[string]string),
	}
	s.SealKey = sync.OnceValue(s.sealKey)
	s.undoStore = sync.OnceValue(func() *undo.Store {
		o := undo.StoreOptions{
			Quota: int64(a.Config.Storage.UndoBytes), NoSync: a.Config.Storage.Fsync == "never", Now: a.Env.Now,
			Private: s.PrivateUndo(),
		}
		if a.Env.Disk != nil {
			o.WrapDisk = a.Env.Disk.InRoot
		}
		if a.hasFileRules() {
			o.IsSecret = func(name string) bool {
				rules := s.rules.Load()
				return rules != nil && rules.IsConcealed(name)
			}
		}
		return undo.OpenStore(s.Path("undo"), o)
	})
	fsync := fsyncModes[a.Config.Storage.Fsync]
	s.touchedFolders = disk.NewDirSyncer(fsync == jsonl.FsyncNever)
	o := jsonl.Options{Fsync: fsync, Now: a.Env.Now, Program: "coder", Version: recordedVersion, OnRepair: s.recordRepair,
		OnTruncated: s.recordTruncated, Heads: s.headStore(a.Env.Now), DirSyncer: s.touchedFolders, Disk: on}
	s.logs, s.snapshots = jsonl.Open(s.Path("log"), o), jsonl.OpenSessions(s.Path("sessions"), fsync).WithDisk(on)
	if s.ephemeral {
		s.Logs, s.Sessions = new(mem.Store), new(mem.Sessions)
		if a.Env.WrapStore != nil {
			s.Logs = a.Env.WrapStore(s.Logs)
		}
	} else {
		s.openOnDisk(a.Env.WrapStore)
	}
	s.Supervisor = supervisor.New(supervisor.Config{
		Store: s.Logs, Sessions: s.Sessions, Dir: s.root, NewID: NewID, Now: a.Env.Now, Key: s.SealKey,
		IsDamaged: s.lacksRecords, DoubtReason: s.doubtReason, IsCopied: s.isCopied,
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

// headStore returns the store of each session's last record.
func (s *Store) headStore(now func() time.Time) *jsonl.Heads {
	if s.home == "" {
		return nil
	}
	return &jsonl.Heads{Dir: filepath.Join(s.home, "heads"), Key: s.SealKey, Now: now}
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
	for _, name := range dataDirNames {
		if dir := s.Path(name); isOutsideLink(s.root, dir) {
			s.unusableDirs[name] = message.Errorf("%s is a link that leads outside the project", dir)
			tell(s.unusableDirs[name])
		}
	}
	logs, options := event.Store(s.logs), failover.Options{Warn: tell, Mark: s.logs.MarkInMemory}
	if why := s.unusableDirs["log"]; why != nil {
		logs, options.Mark = failover.Unusable{Why: why}, nil
	}
	if wrap != nil {
		logs = wrap(logs)
	}
	snapshots := session.Store(s.snapshots)
	if why := s.unusableDirs["sessions"]; why != nil {
		snapshots = failover.UnusableSessions{Why: why}
	}
	s.failoverLogs, s.failoverSessions = failover.New(logs, options), failover.NewSessions(snapshots, tell)
	s.Logs, s.Sessions = s.failoverLogs, s.failoverSessions
}

// isOutsideLink reports whether path is a link to a place outside root, or a dangling one.
func isOutsideLink(root, path string) bool {
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

// gitignoreText lists the data that does not belong in a repository.
const gitignoreText = "# kept by coder; config.json and what people write here may be shared\nlog/\nsessions/\nruns/\nundo/\ncache/\nplans/\ntmp/\n.gitignore\n"

// writeGitignore writes the data folder's .gitignore before
// anything else. It ignores failures, which lose nothing.
func (s *Store) writeGitignore() {
	path := s.Path(".gitignore")
	if _, err := os.Lstat(path); s.ephemeral || err == nil {
		return
	}
	_ = os.Mkdir(s.dir, 0o700)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return
	}
	_, _ = f.WriteString(gitignoreText)
	_ = f.Close()
}

// RemoveEmpty removes what an empty session leaves: its folder, and
// the data folder if it has nothing else but the .gitignore.
func (s *Store) RemoveEmpty(id string) {
	if s.ephemeral || s.unusableDirs["log"] != nil {
		return
	}
	left, err := os.ReadDir(s.Path("log", id))
	something := func(e fs.DirEntry) bool { // true if it is more than an empty session's
		info, err := e.Info()
		name := e.Name()
		if link, err := os.Readlink(s.Path("log", id, name)); err == nil &&
			link == filepath.Base(jsonl.Path(s.Path("log", id), event.LogAudit)) {
			return false
		}
		return name != "lock" && (err != nil || info.Size() > 0 || !info.Mode().IsRegular())
	}
	if err != nil || slices.ContainsFunc(left, something) || jsonl.RemoveLogs(s.Path("log", id)) != nil {
		return
	}
	_ = os.Remove(s.Path("log")) // fails if there are others
	s.RemoveIfEmpty()
}

// RemoveIfEmpty removes the data folder if it has nothing but the
// .gitignore, for example after a session failed to open.
func (s *Store) RemoveIfEmpty() {
	if s.ephemeral {
		return
	}
	left, err := os.ReadDir(s.dir)
	if err != nil || len(left) != 1 || left[0].Name() != ".gitignore" {
		return
	}
	if note, err := repofile.ReadOwn(s.Path(".gitignore"), int64(len(gitignoreText))); err == nil &&
		string(note) == gitignoreText {
		_ = os.Remove(s.Path(".gitignore"))
		_ = os.Remove(s.dir)
	}
}

// Path returns a path in the data folder.
func (s *Store) Path(names ...string) string {
	return filepath.Join(append([]string{s.dir}, names...)...)
}

// LogPath returns the path of a session's log.
func (s *Store) LogPath(id string, l event.Log) string { return jsonl.Path(s.Path("log", id), l) }

// relativeDir returns a folder in the data folder, relative to the workspace, or "" if it must not be used.
func (s *Store) relativeDir(name string, below ...string) string {
	if s.ephemeral || s.unusableDirs[name] != nil {
		return ""
	}
	return filepath.Join(append([]string{".coder", name}, below...)...)
}

// UnsavedReason returns why some of the work is not saved on disk, or
// nil if all is. If saving is off, that is the reason.
func (s *Store) UnsavedReason() error {
	if s.ephemeral {
		return errors.New("nothing will be saved")
	}
	if err := cmp.Or(s.failoverLogs.SaveError(), s.failoverSessions.SaveError()); err != nil {
		return err
	}
	for _, name := range dataDirNames {
		if err := s.unusableDirs[name]; err != nil {
			return err
		}
	}
	return nil
}

// IsFullyRecorded reports whether all records so far are on disk.
func (s *Store) IsFullyRecorded() bool {
	return s.failoverLogs == nil || s.failoverLogs.SaveError() == nil
}

// answersDir is the folder in CODER_HOME for answers from other processes.
const answersDir = "answers"

// Inbox returns the box for answers from other processes.
func (s *Store) Inbox() inbox.Box {
	return inbox.Box{Dir: filepath.Join(s.home, answersDir), Key: s.SealKey()}
}

// listeningDir is the folder in which processes receive messages for their sessions from other processes.
const listeningDir = "listening"

// RemoteInbox returns the box for messages to sessions from other processes.
func (s *Store) RemoteInbox() inbox.Box {
	return inbox.Box{Dir: filepath.Join(s.home, listeningDir), Key: s.SealKey()}
}

// newWaiver lets the user continue without a record, if there is one.
func (s *Store) newWaiver() *toolrun.RecordWaiver {
	if s.failoverLogs == nil {
		return nil
	}
	return &toolrun.RecordWaiver{Waive: func() error {
		if err := s.failoverLogs.Waive(); err != nil {
			return err
		}
		s.recordWaived.Store(true)
		return nil
	}}
}

// lacksRecords reports whether a session whose last record is last had
// more records. An incomplete line after a crash was never one.
func (s *Store) lacksRecords(id string, last uint64) bool {
	if s.damagedSessions[id] {
		return true
	}
	if s.ephemeral || s.unusableDirs["sessions"] != nil {
		return false
	}
	at := s.snapshots.LastSeq(id)
	if at > last {
		s.warn(fmt.Sprintf("session %s: records %d to %d are missing from %s", id, last+1, at, s.Path("log", id)))
	}
	return at > last
}

// Verify checks a session's logs line by line, and against the signed state.
func (s *Store) Verify(id string) (audit.Report, error) {
	report, err := s.logs.Verify(id)
	if err != nil || s.IsInUse(id) {
		return report, err
	}
	// A process that has ended since has recorded its results by now.
	report.OpenCalls, err = audit.IdleCalls(s.Logs.Read(context.Background(), id, 0, event.LogAudit, event.LogDomain))
	return report, err
}

// recordRepair records that a session's logs were damaged, and warns in one line.
func (s *Store) recordRepair(r jsonl.Repair) {
	s.damagedSessions[r.Session] = r.MayLackRecords() // seals detect rewritten records
	if n := len(r.Earlier); n > 0 {
		s.warn(fmt.Sprintf("session %s: an earlier version of coder wrote records %d to %d, without checks and signatures; they grant nothing", r.Session, r.Earlier[0], r.Earlier[n-1]))
	}
	if len(r.Moved) > 0 || r.Known > 0 || r.Rewritten || r.ContinuedInMemory {
		s.warn(repairText(r))
	}
}

// DescribeDamage says from which record on a session's logs are unreadable or changed; "" if they are intact.
func (s *Store) DescribeDamage(ctx context.Context, id string) string {
	r, err := s.logs.Damage(ctx, id)
	switch {
	case s.ephemeral || s.unusableDirs["log"] != nil:
		return ""
	case err != nil:
		return err.Error()
	case r.Known > 0 && !r.Cut:
		return fmt.Sprintf("session %s: records %d to %d are missing from %s; what they did is unknown", id, r.Last+1,
			r.Known, r.File)
	case r.MayLackRecords():
		return fmt.Sprintf("session %s: %s is damaged from record %d on; what happened after that is unknown", id, r.File,
			r.Last+1)
	case r.Rewritten:
		return repairText(r)
	}
	return ""
}

// recordTruncated records that a session was read only up to record last although it continues,
// and warns once. If another process is writing the session, that may be a false alarm.
func (s *Store) recordTruncated(id string, last uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.warningsOff || s.truncated[id] != "" {
		return
	}
	if r, err := s.logs.Damage(context.Background(), id); err != nil || !r.MayLackRecords() || r.Last != last {
		return
	}
	s.truncated[id] = s.DescribeDamage(context.Background(), id)
	s.warn(s.truncated[id])
}

// suppressWarnings suppresses or enables warnings about unreadable records.
func (s *Store) suppressWarnings(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.warningsOff = on
}

// UnreadSessions describes what is missing in the sessions that could not be read to their end.
func (s *Store) UnreadSessions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Values(s.truncated))
}

// unreadReason returns why a session's records are unreadable or missing, or "".
func (s *Store) unreadReason(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.damagedSessions[id] && s.truncated[id] == "" {
		return fmt.Sprintf("session %s: some of its records are missing or were changed", id)
	}
	return s.truncated[id]
}

func repairText(r jsonl.Repair) string {
	var asides []string
	for _, a := range r.Moved {
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
		return fmt.Sprintf("session %s: %s is damaged; the records from %d on were moved to %s", r.Session, r.File,
			r.Last+1, aside)
	case r.Converted:
		return fmt.Sprintf("session %s: the line ends of %s were changed to CRLF; coder restored them and saved the CRLF file as %s", r.Session, r.File, aside)
	}
	return fmt.Sprintf("session %s continued without a record after record %d; calls that it left open are not run",
		r.Session, r.Last)
}

// IsInUse reports whether a process has a session open.
func (s *Store) IsInUse(id string) bool { return jsonl.InUse(s.Path("log", id)) }
