package failover_test

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"

	"coder/internal/core/event"
	"coder/internal/record/store/failover"
	"coder/internal/record/store/jsonl"
	"coder/internal/record/store/mem"
	"coder/testkit/eventtest"
)

// spoilt is a store on a disk that fails when told to.
type spoilt struct {
	mem.Store
	claims  bool // refuse claims
	reads   bool // refuse reads
	appends atomic.Int64
	room    int64 // appends that fit
}

func (s *spoilt) Claim(ctx context.Context, session string) (func() error, error) {
	if s.claims {
		return nil, syscall.EROFS
	}
	return s.Store.Claim(ctx, session)
}

func (s *spoilt) Append(ctx context.Context, last uint64, rs ...event.Record) error {
	if s.appends.Add(1) > s.room {
		return syscall.ENOSPC
	}
	return s.Store.Append(ctx, last, rs...)
}

func (s *spoilt) Read(ctx context.Context, session string, after uint64, logs ...event.Log) iter.Seq2[event.Record, error] {
	if s.reads {
		return func(yield func(event.Record, error) bool) { yield(event.Record{}, syscall.EIO) }
	}
	return s.Store.Read(ctx, session, after, logs...)
}

func noWarning(t testing.TB) failover.Options {
	return failover.Options{Warn: func(err error) { t.Errorf("warned without need: %v", err) }}
}

// waived is a store over primary whose person lets the work go on without a
// record.
func waived(t testing.TB, primary event.Store) *failover.Store {
	t.Helper()
	s := failover.New(primary, failover.Options{})
	if err := s.Waive(); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStore(t *testing.T) {
	for name, open := range map[string]func(*testing.T) event.Store{
		"healthy":             func(t *testing.T) event.Store { return failover.New(new(mem.Store), noWarning(t)) },
		"without room":        func(t *testing.T) event.Store { return waived(t, &spoilt{}) },
		"with room for a few": func(t *testing.T) event.Store { return waived(t, &spoilt{room: 3}) },
		"without claims":      func(t *testing.T) event.Store { return waived(t, &spoilt{claims: true}) },
		"on no directory":     func(t *testing.T) event.Store { return waived(t, onFile(t)) },
		"in no place":         func(t *testing.T) event.Store { return waived(t, failover.Unusable{Why: syscall.EXDEV}) },
		"on a healthy disk": func(t *testing.T) event.Store {
			return failover.New(jsonl.Open(t.TempDir(), jsonl.Options{}), noWarning(t))
		},
		"over a failed primary": func(t *testing.T) event.Store { return failover.New(waived(t, &spoilt{}), noWarning(t)) },
	} {
		t.Run(name, func(t *testing.T) { eventtest.TestStore(t, open) })
	}
}

// onFile is a store on disk whose directory cannot be made.
func onFile(t *testing.T) event.Store {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return jsonl.Open(filepath.Join(path, "log"), jsonl.Options{})
}

func TestSimulation(t *testing.T) {
	room := int64(0)
	eventtest.Simulate(t, false, func(string) event.Store {
		room = (room + 1) % 7
		return waived(t, &spoilt{room: room})
	})
}

var (
	deed    = event.ToolCallRequested{CallID: "c", Tool: "bash", Verdict: event.VerdictAllowed, Effects: []event.Effect{{Kind: event.EffectExec, Target: "rm x"}}}
	refused = event.ToolCallRequested{CallID: "c", Tool: "bash", Verdict: "deny", Effects: []event.Effect{{Kind: event.EffectExec, Target: "rm x"}}}
	reading = event.ToolCallRequested{CallID: "c", Tool: "read", Verdict: event.VerdictAllowed, ReadOnly: true}
	noting  = event.ToolCallRequested{CallID: "c", Tool: "todowrite", Verdict: event.VerdictAllowed, Effects: []event.Effect{{Kind: event.EffectNote, Target: "todos"}}}
)

func TestWarnsAndGoesOn(t *testing.T) {
	var warnings []error
	primary := &spoilt{room: 2}
	s := failover.New(primary, failover.Options{Warn: func(err error) { warnings = append(warnings, err) }})
	release := eventtest.Claim(t, s, "a")
	var want []event.Record
	for range 5 {
		want = append(want, eventtest.Append(t, s, "a", uint64(len(want)), event.LocalAdded{}, event.TaskStarted{})...)
	}
	if len(warnings) != 1 || !errors.Is(warnings[0], syscall.ENOSPC) || !errors.Is(s.SaveError(), syscall.ENOSPC) {
		t.Errorf("warnings are %v, unkept %v; want one, of a full disk", warnings, s.SaveError())
	}
	eventtest.Expect(t, s, "a", 0, want)
	eventtest.Expect(t, &primary.Store, "a", 0, want[:4])
	if got := primary.appends.Load(); got != 3 {
		t.Errorf("primary was asked %d times, want 3: what does not matter is not tried again", got)
	}
	primary.room = 100
	release()
	eventtest.Expect(t, &primary.Store, "a", 0, want)
	if s.SaveError() != nil {
		t.Errorf("unkept is %v after all was kept", s.SaveError())
	}
}

// What changes the world is refused where it cannot be kept; all else goes on.
func TestDeedsAreNotDoneFromMemory(t *testing.T) {
	for name, primary := range map[string]*spoilt{"full": {room: 1}, "not to be claimed": {claims: true}} {
		s := failover.New(primary, failover.Options{})
		eventtest.Claim(t, s, "a")
		want := eventtest.Append(t, s, "a", 0, event.LocalAdded{})
		for range 2 {
			err := s.Append(t.Context(), 1, eventtest.Records("a", 1, deed)...)
			var unkept *event.NotRecordableError
			if !errors.As(err, &unkept) {
				t.Fatalf("%s: a deed was taken into memory: %v", name, err)
			}
		}
		for _, e := range []event.Event{refused, reading, noting, event.InteractionRequested{}, event.TaskCompleted{}} {
			want = append(want, eventtest.Append(t, s, "a", uint64(len(want)), e)...)
		}
		eventtest.Expect(t, s, "a", 0, want)
	}
}

// A disk that works again gets all that it missed, before a deed is done.
func TestTheDiskIsTriedAgain(t *testing.T) {
	primary := &spoilt{room: 1}
	s := failover.New(primary, failover.Options{})
	eventtest.Claim(t, s, "a")
	want := eventtest.Append(t, s, "a", 0, event.LocalAdded{Input: "1"})
	want = append(want, eventtest.Append(t, s, "a", 1, event.LocalAdded{Input: "2"})...)
	if err := s.Append(t.Context(), 2, eventtest.Records("a", 2, deed)...); err == nil {
		t.Fatal("a deed was taken without room")
	}
	primary.room = 100
	want = append(want, eventtest.Append(t, s, "a", 2, deed)...)
	want = append(want, eventtest.Append(t, s, "a", 3, event.LocalAdded{Input: "3"})...)
	eventtest.Expect(t, &primary.Store, "a", 0, want)
	eventtest.Expect(t, s, "a", 0, want)
}

// The work goes on without a record only if a mark says so where the session
// could be resumed.
func TestWaive(t *testing.T) {
	for name, c := range map[string]struct {
		room  int64
		mark  error
		marks int
		ok    bool
	}{
		"nothing on the disk": {0, syscall.EROFS, 0, true},
		"marked":              {1, nil, 1, true},
		"it cannot be marked": {1, syscall.EROFS, 1, false},
	} {
		marks := 0
		s := failover.New(&spoilt{room: c.room}, failover.Options{Mark: func(string) error { marks++; return c.mark }})
		eventtest.Claim(t, s, "a")
		eventtest.Append(t, s, "a", 0, event.LocalAdded{})
		eventtest.Append(t, s, "a", 1, event.LocalAdded{})
		err := s.Waive()
		if (err == nil) != c.ok || marks != c.marks {
			t.Errorf("%s: waived %v, %d marks", name, err, marks)
		}
		if err := s.Append(t.Context(), 2, eventtest.Records("a", 2, deed)...); (err == nil) != c.ok {
			t.Errorf("%s: a deed: %v", name, err)
		}
	}
}

func TestAnswersAreNotFailures(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	primary := new(mem.Store)
	s := failover.New(primary, noWarning(t))
	release, err := primary.Claim(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	var claimed *event.ClaimedError
	if _, err := s.Claim(ctx, "a"); !errors.As(err, &claimed) {
		t.Errorf("claim of what another holds: %v", err)
	}
	release()
	eventtest.Claim(t, s, "a")
	if err := s.Append(ctx, 7, eventtest.Records("a", 7, event.LocalAdded{})...); !errors.Is(err, event.ErrConflict) {
		t.Errorf("stale append: %v", err)
	}
	broken := event.ToolCallRequested{Input: []byte("{")}
	s = failover.New(jsonl.Open(t.TempDir(), jsonl.Options{}), noWarning(t))
	eventtest.Claim(t, s, "a")
	if err := s.Append(ctx, 0, eventtest.Records("a", 0, broken)...); err == nil {
		t.Error("a record that cannot be written was taken")
	}
	cancel()
	if err := s.Append(ctx, 0, eventtest.Records("a", 0, event.LocalAdded{})...); !errors.Is(err, context.Canceled) {
		t.Errorf("append: %v, want context.Canceled", err)
	}
}

// A session that was written before goes on in memory, and what was written
// stays readable.
func TestResumesWhatCanOnlyBeRead(t *testing.T) {
	primary := &spoilt{room: 1}
	release := eventtest.Claim(t, primary, "a")
	want := eventtest.Append(t, primary, "a", 0, eventtest.Samples()...)
	release()
	primary.claims = true
	s := failover.New(primary, failover.Options{})
	eventtest.Claim(t, s, "a")
	eventtest.Expect(t, s, "a", 0, want)
	last := uint64(len(want))
	for _, wrong := range []uint64{0, last - 1, last + 1} {
		if err := s.Append(t.Context(), wrong, eventtest.Records("a", wrong, event.LocalAdded{})...); !errors.Is(err, event.ErrConflict) {
			t.Errorf("append after %d of %d: %v, want ErrConflict", wrong, last, err)
		}
	}
	want = append(want, eventtest.Append(t, s, "a", last, event.TaskStarted{}, event.LocalAdded{})...)
	eventtest.Expect(t, s, "a", 0, want)
	eventtest.Expect(t, s, "a", last+1, want[last+1:])
	eventtest.Expect(t, s, "a", 3, slices.DeleteFunc(want[3:], func(r event.Record) bool { return event.LogOf(r.Event) != event.LogDomain }), event.LogDomain)
}

func TestPrimaryThatCannotBeReadEither(t *testing.T) {
	primary := &spoilt{room: 1}
	s := failover.New(primary, failover.Options{})
	eventtest.Claim(t, s, "a")
	eventtest.Append(t, s, "a", 0, event.LocalAdded{})
	primary.reads = true
	more := eventtest.Append(t, s, "a", 1, event.LocalAdded{}, event.LocalAdded{})
	eventtest.Expect(t, s, "a", 1, more)
	for _, err := range s.Read(t.Context(), "a", 0) {
		if !errors.Is(err, syscall.EIO) {
			t.Errorf("read: %v, want the primary's error and no records", err)
		}
	}
}

// Should primary come to hold something after all, what was acknowledged from
// memory stands.
func TestPrimaryThatComesBackIsNotBelieved(t *testing.T) {
	primary := &spoilt{room: 1}
	s := failover.New(primary, failover.Options{})
	eventtest.Claim(t, s, "a")
	want := eventtest.Append(t, s, "a", 0, event.LocalAdded{Input: "1"})
	want = append(want, eventtest.Append(t, s, "a", 1, event.LocalAdded{Input: "2"})...)
	eventtest.Append(t, &primary.Store, "a", 1, event.LocalAdded{Input: "another 2"})
	eventtest.Expect(t, s, "a", 0, want)
}
