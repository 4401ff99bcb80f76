package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"coder/internal/agent/toolrun"
	"coder/internal/core/event"
	"coder/internal/record/session"
	"coder/internal/record/store/failover"
	"coder/internal/record/store/jsonl"
	"coder/internal/record/store/mem"
)

// keeping is how what is done is kept, and what became of that.
type keeping struct {
	logs     *failover.Store    // nil if nothing is to be kept
	sessions *failover.Sessions // the same
	barred   map[string]error   // folders of the data folder that must not be used
	waived   atomic.Bool        // the person lets the work go on without a record
}

var fsyncModes = map[string]jsonl.Fsync{"decisions": jsonl.Decisions, "always": jsonl.Always, "never": jsonl.Never}

// dataFolders are what the program keeps in its data folder.
var dataFolders = []string{"log", "sessions", "undo", "runs", "plans", "cache"}

// bar finds the folders that lead out of the project. They are as good as a disk
// that cannot be written.
func (h *house) bar() {
	h.keeping.barred = make(map[string]error)
	for _, name := range dataFolders {
		dir := filepath.Join(h.data(), name)
		if leadsOut(h.root, dir) {
			h.keeping.barred[name] = fmt.Errorf("%s is a link that leads out of the project", dir)
		}
	}
}

// leadsOut reports whether path is a link to a place that is not below root, or
// to none at all.
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

// dataFolder is a folder in the data folder, as seen from the workspace; "" if it
// must not be used.
func (h *house) dataFolder(name string, below ...string) string {
	if h.keeping.barred[name] != nil {
		return ""
	}
	return filepath.Join(append([]string{".coder", name}, below...)...)
}

// stores opens where sessions are kept. What cannot be written to disk is
// kept in memory, and the person is told once.
func (h *house) stores() (event.Store, session.Store, error) {
	if h.flags.ephemeral {
		return h.wrap(new(mem.Store)), new(mem.Sessions), nil
	}
	h.bar()
	var once sync.Once
	tell := func(err error) {
		once.Do(func() {
			h.warn(fmt.Sprintf("this session is not being saved: %v; make room or give access to the folder (--no-session-persistence keeps nothing on purpose)", err))
		})
	}
	for _, name := range dataFolders {
		if err := h.keeping.barred[name]; err != nil {
			tell(err)
		}
	}
	logs, options := event.Store(failover.Unusable{Why: h.keeping.barred["log"]}), failover.Options{Warn: tell}
	if h.keeping.barred["log"] == nil {
		onDisk := h.logStore()
		logs, options.Mark = onDisk, onDisk.MarkApart
	}
	sessions := session.Store(failover.UnusableSessions{Why: h.keeping.barred["sessions"]})
	h.projectedTo = func(string) uint64 { return 0 }
	if h.keeping.barred["sessions"] == nil {
		onDisk := jsonl.OpenSessions(h.snapshots(), fsyncModes[h.conf.Storage.Fsync]).On(h.disk())
		sessions, h.projectedTo = onDisk, onDisk.At
	}
	h.keeping.logs = failover.New(h.wrap(logs), options)
	h.keeping.sessions = failover.NewSessions(sessions, tell)
	return h.keeping.logs, h.keeping.sessions, nil
}

// disk is what sessions are written to.
func (h *house) disk() jsonl.Disk {
	if h.env.Disk != nil {
		return h.env.Disk
	}
	return jsonl.System
}

// unkept is why something of what was done is not kept on disk, or nil if all of
// it is. Where nothing is to be kept, that is why.
func (h *house) unkept() error {
	k := &h.keeping
	if h.flags.ephemeral {
		return errors.New("nothing is to be kept")
	}
	if k.logs == nil {
		return nil
	}
	if err := k.logs.Unkept(); err != nil {
		return err
	}
	if err := k.sessions.Unkept(); err != nil {
		return err
	}
	for _, name := range dataFolders {
		if err := k.barred[name]; err != nil {
			return err
		}
	}
	return nil
}

// waiver lets the person go on without a record, where there is one to ask.
func (h *house) waiver() *toolrun.Waiver {
	if !h.attended || h.keeping.logs == nil {
		return nil
	}
	return &toolrun.Waiver{Waive: func() error {
		if err := h.keeping.logs.Waive(); err != nil {
			return err
		}
		h.keeping.waived.Store(true)
		return nil
	}}
}

// logStore is where the logs of sessions are.
func (h *house) logStore() *jsonl.Store {
	o := jsonl.Options{Fsync: fsyncModes[h.conf.Storage.Fsync], Now: h.env.Now, Program: "coder", Report: h.repaired, Disk: h.disk()}
	if h.home != "" {
		o.Heads = &jsonl.Heads{Dir: filepath.Join(h.home, "heads"), Key: h.key, Now: h.env.Now}
	}
	return jsonl.Open(h.logs(), o)
}

// repaired takes note of a session that was not found as it was left, and tells
// of it in one line.
func (h *house) repaired(r jsonl.Repair) {
	h.damaged[r.Session] = r.Lost() // what was rewritten is known by its seals
	h.warn(repairText(r))
}

func repairText(r jsonl.Repair) string {
	var asides []string
	for _, a := range r.Aside {
		asides = append(asides, a.Path)
	}
	aside := strings.Join(asides, ", ")
	switch {
	case r.Torn && r.Known == 0:
		return fmt.Sprintf("session %s: the last line of %s had no end; it was moved to %s", r.Session, r.File, aside)
	case r.Known > 0 && aside == "":
		return fmt.Sprintf("session %s: records %d to %d are missing from %s", r.Session, r.Last+1, r.Known, r.File)
	case r.Known > 0:
		return fmt.Sprintf("session %s: %s is damaged; records %d to %d are missing, and what is left of them was moved to %s", r.Session, r.File, r.Last+1, r.Known, aside)
	case r.Rewritten:
		return fmt.Sprintf("session %s: %s is not what was signed for; coder audit verify %[1]s says more", r.Session, r.File)
	case r.Cut:
		return fmt.Sprintf("session %s: %s is damaged; the records from %d on were moved to %s", r.Session, r.File, r.Last+1, aside)
	case r.Converted:
		return fmt.Sprintf("session %s: the line ends of %s had been changed to CRLF and were changed back; as it was it is in %s", r.Session, r.File, aside)
	}
	return fmt.Sprintf("session %s went on without a record after record %d; calls that it left open are not run", r.Session, r.Last)
}
