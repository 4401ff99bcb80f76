package supervisor_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"coder/internal/agent/supervisor"
	"coder/internal/agent/toolrun"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/host/authkey"
	"coder/internal/host/disk"
	"coder/internal/policy"
	"coder/internal/record/store/failover"
	"coder/internal/record/store/jsonl"
	"coder/testkit/eventtest"
	"coder/testkit/faultdisk"
)

// desktop is a world whose sessions are on a disk.
type desktop struct {
	world
	dir string
}

// onDisk is one run of the program over a disk.
type onDisk struct {
	*process
	logs  *failover.Store
	told  func(jsonl.Repair) // of what was not found as it was left
	shown []event.Record     // what was acknowledged
}

func (w *desktop) on(disk disk.Disk, script string, waives bool) *onDisk {
	p := &onDisk{process: w.start(script, policy.Allow, uip.NoInteractor, -1), told: func(jsonl.Repair) {}}
	damaged := map[string]bool{}
	store := jsonl.Open(filepath.Join(w.dir, "log"), jsonl.Options{
		Disk: disk, OnRepair: func(r jsonl.Repair) { damaged[r.Session] = r.MayLackRecords(); p.told(r) },
		Heads: &jsonl.Heads{Dir: filepath.Join(w.dir, "heads"), Key: w.key},
	})
	sessions := jsonl.OpenSessions(filepath.Join(w.dir, "sessions"), jsonl.FsyncDecisions).WithDisk(disk)
	p.logs = failover.New(store, failover.Options{Mark: store.MarkInMemory})
	engine := p.engine(policy.Allow)
	p.Supervisor = supervisor.New(supervisor.Config{
		Store: p.logs, Sessions: failover.NewSessions(sessions, func(error) {}), User: uip.InteractorFunc(yes),
		Dir: "/project", NewID: w.newID, Now: time.Now, Key: w.key,
		IsDamaged: func(id string, last uint64) bool { return damaged[id] || sessions.LastSeq(id) > last },
		Engine: func(id string, spawn supervisor.SpawnFunc) (supervisor.Engine, error) {
			e, err := engine(id, spawn)
			if waives {
				e.Runner.Waiver = &toolrun.RecordWaiver{Waive: p.logs.Waive}
			}
			return e, err
		},
	})
	return p
}

// play runs two turns, as far as they go.
func (p *onDisk) play() {
	t := p.w.t
	s, err := p.StartSession(t.Context(), "s", p.sink())
	if err != nil {
		return // what cannot be opened does nothing
	}
	for _, input := range []string{"first", "second"} {
		_, _ = s.RunText(t.Context(), input, p.sink()) // how it ends is for the caller to look at
	}
	_ = s.Close()
}

func (p *onDisk) sink() event.Sink {
	return event.SinkFunc(func(_ context.Context, r event.Record) error {
		if r.Vouched = false; r.Seq > 0 {
			p.shown = append(p.shown, r)
		}
		return nil
	})
}

const diskScript = `
say I will
call write {"path":"a"}
call write {"path":"b"}
---
say then
call write {"path":"c"}
---
say done
---
call write {"path":"d"}
---
say all done
`

var diskErrors = []error{syscall.EIO, syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.EROFS}

// TestADiskThatFailsAtAnyOperation lets each operation of a session on a disk
// fail in turn, once or from then on, in each of the ways that disks fail; with
// and without a person who lets the work go on without a record. Then the session
// is taken up on a disk that works. Nothing is done twice, what was acknowledged
// as kept is there, nothing is done that is not on record unless the person said
// so, and what the model is sent is well formed.
func TestADiskThatFailsAtAnyOperation(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	whole := &faultdisk.Disk{NoSync: true}
	w := &desktop{world: world{t: t, secret: authkey.NewTemporary()}, dir: t.TempDir()}
	w.on(whole, diskScript, false).play()
	operations := len(whole.Log())
	if got := strings.Join(w.wrote, " "); got != "a b c d" {
		t.Fatalf("a disk that works: wrote %s", got)
	}
	if operations < 30 {
		t.Fatalf("only %d operations: %q", operations, whole.Log())
	}
	for at := 1; at <= operations; at++ {
		for i := range len(diskErrors) + 1<<3 {
			// Each error once, then each combination of the rest with one of them.
			kind, fault := max(i-len(diskErrors), 0), diskErrors[(at+i)%len(diskErrors)]
			f := &faultdisk.Disk{At: at, Err: fault, Ever: kind&1 != 0, Short: i%2 == 1, NoSync: true}
			w := &desktop{world: world{t: t, secret: w.secret}, dir: t.TempDir()}
			w.fails(f, kind&2 != 0, kind&4 != 0)
			if t.Failed() {
				t.Fatalf("operation %d (%s) fails with %v; ever %v, waived %v, continued %v", at, whole.Log()[at-1], fault, f.Ever, kind&2 != 0, kind&4 != 0)
			}
		}
	}
}

// fails plays a session on a disk that fails and takes it up on one that works.
func (w *desktop) fails(f *faultdisk.Disk, waives, continues bool) {
	t := w.t
	first := w.on(f, diskScript, waives)
	first.play()
	unkept := first.logs.SaveError()
	kept := w.kept()
	if unkept == nil && len(kept) < len(first.shown) {
		t.Errorf("%d records are kept of %d, and all is said to be", len(kept), len(first.shown))
	}
	n := min(len(kept), len(first.shown))
	if f.Ever && unkept != nil {
		n = max(n-1, 0) // what could be neither synced nor taken back may be there
	}
	if err := eventtest.Same(kept[:n], first.shown[:n]); err != nil {
		t.Errorf("what is kept is not what was acknowledged: %v", err)
	}
	begun := map[string]bool{}
	for _, r := range kept {
		if e, ok := r.Event.(event.ToolCallRequested); ok && e.Verdict == event.VerdictAllowed {
			begun[e.Effects[0].Target] = true
		}
	}
	for _, path := range w.wrote {
		if !begun[path] && !waives {
			t.Errorf("%s was written, and is not on record", path)
		}
	}
	if len(kept) == 0 {
		return
	}
	w.takeUp(continues)
	ran := map[string]int{}
	for _, path := range w.wrote {
		if ran[path]++; ran[path] > 1 {
			t.Errorf("%s was written twice: %v", path, w.wrote)
		}
	}
}

func (w *desktop) takeUp(continues bool) {
	t := w.t
	second := w.on(&faultdisk.Disk{NoSync: true}, "say went on\nrepeat\n", false)
	s, err := second.ResumeSession(t.Context(), "s", event.Discard)
	if err != nil {
		t.Errorf("resume: %v", err)
		return
	}
	defer s.Close()
	if continues {
		if _, err := s.Continue(t.Context(), event.Discard); err != nil && !errors.Is(err, supervisor.ErrFinished) {
			t.Errorf("continue: %v", err)
		}
	}
	if answer, err := s.RunText(t.Context(), "and now", event.Discard); err != nil || answer.Text != "went on" {
		t.Errorf("run: %+v, %v", answer, err)
	}
}

// kept are the records on the disk.
func (w *desktop) kept() (rs []event.Record) {
	for r, err := range jsonl.Open(filepath.Join(w.dir, "log"), jsonl.Options{}).Read(w.t.Context(), "s", 0) {
		if err != nil {
			w.t.Errorf("read: %v", err)
			return rs
		}
		rs = append(rs, r)
	}
	return rs
}

// yes is a person who agrees to everything.
func yes(_ context.Context, q uip.Request) (uip.Response, error) {
	return uip.Response{ID: q.ID, Author: "user", Option: uip.OptionApprove}, nil
}
