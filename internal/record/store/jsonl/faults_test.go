package jsonl_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"coder/internal/core/event"
	"coder/internal/host/authkey"
	"coder/internal/host/disk"
	"coder/internal/record/session"
	"coder/internal/record/store/jsonl"
	"coder/testkit/eventtest"
	"coder/testkit/faultdisk"
	"coder/testkit/sessiontest"
)

// lockless is a file system without locks.
func lockless() *faultdisk.Disk { return &faultdisk.Disk{What: "lock", Err: syscall.ENOTSUP} }

func TestStoreWithoutLocks(t *testing.T) {
	eventtest.TestStore(t, func(t *testing.T) event.Store {
		return jsonl.Open(t.TempDir(), jsonl.Options{Fsync: jsonl.FsyncNever, Disk: lockless(), OnRepair: noRepair(t)})
	})
}

// A file stands for the lock, and holds nobody up whose owner is no more.
func TestAnOwnerThatIsGoneBlocksNobody(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Skip("this machine has no name")
	}
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Skip(err)
	}
	for name, c := range map[string]struct {
		note string
		free bool
	}{
		"ended":                   {fmt.Sprintf(`{"pid":%d,"host":%q}`, dead.Process.Pid, host), true},
		"another with its number": {fmt.Sprintf(`{"pid":%d,"host":%q,"born":"1"}`, os.Getpid(), host), true},
		"alive":                   {fmt.Sprintf(`{"pid":%d,"host":%q}`, os.Getpid(), host), false},
		"on another machine":      {`{"pid":1,"host":"elsewhere"}`, false},
		"nobody knows who":        {"garbage", false},
	} {
		dir := t.TempDir()
		pendingWrite(t, filepath.Join(dir, "a", "owner"), c.note)
		release, err := jsonl.Open(dir, jsonl.Options{Disk: lockless()}).Claim(t.Context(), "a")
		var claimed *event.ClaimedError
		if c.free != (err == nil) || err != nil && !errors.As(err, &claimed) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err == nil {
			if err := release(); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(filepath.Join(dir, "a", "owner")); err == nil {
				t.Errorf("%s: the file is left", name)
			}
		}
	}
}

// held is a disk whose locks somebody holds until they were asked for so often.
type held struct {
	disk.Disk
	asked, until int
}

func (d *held) Lock(f disk.File) error {
	if d.asked++; d.asked < d.until {
		return disk.ErrLocked
	}
	return d.Disk.Lock(f)
}

// What a killed process had just started may hold its lock a little longer. The
// lock of one that lives is asked for once.
func TestALockThatOutlivesItsProcessIsWaitedFor(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Skip("this machine has no name")
	}
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Skip(err)
	}
	for pid, asked := range map[int]int{dead.Process.Pid: 3, os.Getpid(): 1} {
		dir, disk := t.TempDir(), &held{Disk: disk.System, until: 3}
		pendingWrite(t, filepath.Join(dir, "a", "lock"), fmt.Sprintf(`{"pid":%d,"host":%q}`, pid, host))
		release, err := jsonl.Open(dir, jsonl.Options{Disk: disk}).Claim(t.Context(), "a")
		if free := asked == disk.until; (err == nil) != free || disk.asked != asked {
			t.Errorf("process %d: asked %d times, %v", pid, disk.asked, err)
		}
		if err == nil {
			_ = release()
		}
	}
}

// Whatever fails, and however, an Append happens whole or not at all, and the
// store takes more when it can. A disk that did not sync is not believed again.
func TestAppendOnADiskThatFails(t *testing.T) {
	batch := []event.Event{event.TaskStarted{TaskID: "t"}, event.LocalAdded{Input: "x"}, event.ToolCallRequested{CallID: "c"}, event.TaskCompleted{TaskID: "t"}}
	whole := &faultdisk.Disk{NoSync: true}
	twice := func(d *faultdisk.Disk, dir string) (errs [2]error) {
		s := jsonl.Open(dir, jsonl.Options{Disk: d})
		release, err := s.Claim(t.Context(), "a")
		if err != nil {
			return [2]error{err, err}
		}
		defer release()
		last := uint64(0)
		for i := range errs {
			errs[i] = s.Append(t.Context(), last, eventtest.Records("a", last, batch...)...)
			if errs[i] == nil {
				last += uint64(len(batch))
			}
		}
		return errs
	}
	twice(whole, t.TempDir())
	for at := 1; at <= len(whole.Log()); at++ {
		for _, short := range []bool{false, true} {
			dir := t.TempDir()
			errs := twice(&faultdisk.Disk{At: at, Err: syscall.EIO, Short: short, NoSync: true}, dir)
			acked := 0
			for _, err := range errs {
				if err == nil {
					acked += len(batch)
				}
			}
			s := jsonl.Open(dir, jsonl.Options{OnRepair: noRepair(t)})
			n := 0
			for _, err := range s.Read(t.Context(), "a", 0) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			if n != acked {
				t.Errorf("operation %d (%s) failed: %d records are there, %d were acknowledged", at, whole.Log()[at-1], n, acked)
			}
			eventtest.Claim(t, s, "a")()
		}
	}
}

// A session file that knows more than what is to replace it is kept.
func TestABetterSnapshotIsNotLost(t *testing.T) {
	message := func(text string) json.RawMessage { return json.RawMessage(`{"role":"user","content":"` + text + `"}`) }
	snap := func(at uint64, words ...string) session.Snapshot {
		s := sessiontest.Sample("a")
		s.LastSeq, s.Messages = at, nil
		for _, w := range words {
			s.Messages = append(s.Messages, message(w))
		}
		return s
	}
	for name, c := range map[string]struct {
		old, new session.Snapshot
		spared   bool
	}{
		"newer":                       {snap(7, "one"), snap(9, "one", "two"), false},
		"the same":                    {snap(7, "one"), snap(7, "one"), false},
		"shorter":                     {snap(7, "one", "two"), snap(4, "one"), true},
		"other words":                 {snap(7, "one", "two"), snap(4, "else", "where"), true},
		"made of the old one's words": {snap(7, "one", "two"), snap(6, "one", "two", "three"), false},
	} {
		dir := t.TempDir()
		if err := jsonl.OpenSessions(dir, jsonl.FsyncDecisions).Save(t.Context(), c.old); err != nil {
			t.Fatal(err)
		}
		ss := jsonl.OpenSessions(dir, jsonl.FsyncDecisions)
		for range 2 {
			if err := ss.Save(t.Context(), c.new); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := ss.Load(t.Context(), "a"); err != nil || len(got.Messages) != len(c.new.Messages) {
			t.Errorf("%s: %d messages, %v", name, len(got.Messages), err)
		}
		old, err := ss.Load(t.Context(), jsonl.PreservedID("a"))
		if c.spared != (err == nil) || c.spared && len(old.Messages) != len(c.old.Messages) {
			t.Errorf("%s: the old one: %v", name, err)
		}
	}
	dir := t.TempDir()
	pendingWrite(t, filepath.Join(dir, "a.json"), `{"session_id": "a", "precious`)
	if err := jsonl.OpenSessions(dir, jsonl.FsyncDecisions).Save(t.Context(), snap(1, "one")); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "a.json.damaged")); err != nil || !strings.Contains(string(b), "precious") {
		t.Errorf("a damaged session file: %q, %v", b, err)
	}
}

// Heads are bound to key, session and place, and a session that has none is as
// good as before.
func TestHeadsCountOnlyWhereTheyWereMade(t *testing.T) {
	root := t.TempDir()
	key, other := authkey.NewTemporary(), authkey.NewTemporary()
	open := func(dir string, k *authkey.Key) *jsonl.Store {
		return jsonl.Open(dir, jsonl.Options{Heads: &jsonl.Heads{Dir: filepath.Join(root, "heads"), Key: func() *authkey.Key { return k }}})
	}
	dir := filepath.Join(root, "log")
	s := open(dir, key)
	release := eventtest.Claim(t, s, "a")
	eventtest.Append(t, s, "a", 0, eventtest.Samples()...)
	release()
	for name, c := range map[string]struct {
		store *jsonl.Store
		want  uint64
	}{
		"ours":          {open(dir, key), uint64(len(eventtest.Samples()))},
		"another key":   {open(dir, other), 0},
		"without heads": {jsonl.Open(dir, jsonl.Options{}), 0},
	} {
		if report, err := c.store.Verify("a"); err != nil || report.Covered != c.want {
			t.Errorf("%s: %+v, %v, want %d vouched for", name, report, err, c.want)
		}
	}
	if err := os.Rename(dir, filepath.Join(root, "moved")); err != nil {
		t.Fatal(err)
	}
	if report, err := open(filepath.Join(root, "moved"), key).Verify("a"); err != nil || report.Covered != 0 {
		t.Errorf("moved: %+v, %v", report, err)
	}
}

// A mark that a session went on in memory is found by the next process, and stays
// until what was left open is settled on the disk.
func TestTheMarkOfASessionThatWentOnInMemory(t *testing.T) {
	for name, disk := range map[string]disk.Disk{"beside the logs": disk.System, "with the heads": &faultdisk.Disk{What: "open", Err: syscall.EROFS}} {
		root := t.TempDir()
		o := jsonl.Options{Heads: &jsonl.Heads{Dir: filepath.Join(root, "heads"), Key: authkey.NewTemporary}}
		s := jsonl.Open(filepath.Join(root, "log"), o)
		release := eventtest.Claim(t, s, "a")
		eventtest.Append(t, s, "a", 0, event.LocalAdded{})
		release()
		o.Disk = disk
		if err := jsonl.Open(filepath.Join(root, "log"), o).MarkInMemory("a"); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		o.Disk = nil
		last := uint64(1)
		for round, want := range []bool{true, true, false} {
			apart := false
			o.OnRepair = func(r jsonl.Repair) { apart = r.ContinuedInMemory && r.MayLackRecords() }
			s := jsonl.Open(filepath.Join(root, "log"), o)
			release := eventtest.Claim(t, s, "a")
			if apart != want {
				t.Errorf("%s, process %d: apart %v", name, round+1, apart)
			}
			if round == 1 {
				eventtest.Append(t, s, "a", last, event.TaskCompleted{})
				last++
			}
			release()
		}
	}
}

// What was there before anything was signed for is signed as found, not as written;
// what comes after it is signed as ever.
func TestASessionThatWasFoundIsNotSignedForAsWritten(t *testing.T) {
	dir, root := filepath.Join(t.TempDir(), "log"), t.TempDir()
	other := jsonl.Open(dir, jsonl.Options{})
	release := eventtest.Claim(t, other, "a")
	eventtest.Append(t, other, "a", 0, event.TaskCreated{TaskID: "t"}, event.TaskCompleted{TaskID: "t"})
	release()

	key := authkey.NewTemporary()
	o := jsonl.Options{Heads: &jsonl.Heads{Dir: filepath.Join(root, "heads"), Key: func() *authkey.Key { return key }}}
	s := jsonl.Open(dir, o)
	eventtest.Claim(t, s, "a")()
	if r, err := s.Verify("a"); err != nil || !r.Found || r.Imported != 2 || r.Covered != 2 {
		t.Errorf("found: %+v, %v", r, err)
	}
	release = eventtest.Claim(t, s, "a")
	eventtest.Append(t, s, "a", 2, event.TaskCreated{TaskID: "u"})
	release()
	if r, err := s.Verify("a"); err != nil || !r.Found || r.Imported != 2 || r.Covered != 3 {
		t.Errorf("gone on with: %+v, %v", r, err)
	}
	eventtest.Claim(t, s, "new")
	eventtest.Append(t, s, "new", 0, event.TaskCreated{TaskID: "t"}) // and the process dies
	if r, err := jsonl.Open(dir, o).Verify("new"); err != nil || r.Found || r.Covered != 1 {
		t.Errorf("begun here: %+v, %v", r, err)
	}
}

// Whoever reads a session that goes on beyond what can be read is told, and nothing is
// changed by that. A line that a process did not live to finish is no damage.
func TestReadersAreToldOfWhatTheyCannotRead(t *testing.T) {
	w := writeWhole(t, eventtest.Samples()...)
	log := w.logs[event.LogAudit]
	middle := bytes.IndexByte(log, '\n') + 1
	for name, c := range map[string]struct {
		log           []byte
		short, damage bool
	}{
		"whole":   {log, false, false},
		"torn":    {append(bytes.Clone(log), '{'), true, false},
		"damaged": {slices.Concat(log[:middle], []byte("{}\n"), log[middle:]), true, true},
	} {
		dir, last := filepath.Join(t.TempDir(), "log"), uint64(1<<63)
		w.spoil(t, dir, event.LogAudit, c.log)
		s := jsonl.Open(dir, jsonl.Options{OnRepair: noRepair(t), OnTruncated: func(_ string, n uint64) { last = n }})
		read := uint64(len(readAll(t, s)))
		if (last == read) != c.short {
			t.Errorf("%s: read %d, told %d", name, read, last)
		}
		r, err := s.Damage(t.Context(), "a")
		if err != nil || r.MayLackRecords() != c.damage || r.Last != read || !bytes.Equal(readLog(t, dir, event.LogAudit), c.log) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}
