package timeline_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"
	"time"

	"coder/internal/core/event"
	"coder/internal/record/store/jsonl"
	"coder/internal/record/store/mem"
	"coder/internal/record/timeline"
	"coder/testkit/eventtest"
)

var noon = time.Date(2025, 11, 15, 12, 0, 0, 0, time.FixedZone("x", 3600))

func clock() time.Time { return noon }

func open(t testing.TB, store event.Store, o timeline.Options) *timeline.Timeline {
	t.Helper()
	tl, err := timeline.Open(t.Context(), store, "a", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tl.Close(); err != nil {
			t.Error(err)
		}
	})
	return tl
}

// seen is a Sink that remembers.
type seen struct {
	records []event.Record
	err     error
}

func (s *seen) Emit(_ context.Context, r event.Record) error {
	s.records = append(s.records, r)
	return s.err
}

func (s *seen) String() string {
	text := ""
	for _, r := range s.records {
		text += fmt.Sprintf("%d:%T ", r.Seq, r.Event)
	}
	return text
}

func emit(t testing.TB, to event.Sink, events ...event.Event) {
	t.Helper()
	for _, e := range events {
		if err := to.Emit(context.Background(), event.Record{Event: e, Task: "t", Actor: "main"}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNumbersStoresThenShows(t *testing.T) {
	store := new(mem.Store)
	tl := open(t, store, timeline.Options{Now: clock})
	var out seen
	shown := event.Tee(event.SinkFunc(func(ctx context.Context, r event.Record) error {
		if r.Seq == 0 {
			return nil
		}
		stored := 0
		for range store.Read(ctx, "a", r.Seq-1) {
			stored++
		}
		if stored != 1 {
			t.Errorf("record %d was shown before it was stored", r.Seq)
		}
		return nil
	}), &out)
	emit(t, tl.Wrap(shown), event.TaskStarted{}, event.TextDelta{Text: "x"}, event.LocalAdded{}, event.Notice{}, event.ToolCallRequested{})
	const want = "1:event.TaskStarted 0:event.TextDelta 2:event.LocalAdded 0:event.Notice 3:event.ToolCallRequested "
	if out.String() != want {
		t.Errorf("shown %s, want %s", &out, want)
	}
	for _, r := range out.records {
		if r.Session != "a" || r.Task != "t" || r.Actor != "main" || !r.Time.Equal(noon) || r.Time.Location() != time.UTC {
			t.Errorf("record is %+v, want it filled in", r)
		}
	}
	if tl.Last() != 3 {
		t.Errorf("last is %d, want 3", tl.Last())
	}
}

func TestKeepsATimeThatIsGiven(t *testing.T) {
	tl := open(t, new(mem.Store), timeline.Options{Now: clock})
	var out seen
	early := noon.Add(-time.Hour)
	if err := tl.Wrap(&out).Emit(t.Context(), event.Record{Event: event.LocalAdded{}, Time: early, Seq: 77, Session: "other"}); err != nil {
		t.Fatal(err)
	}
	if r := out.records[0]; !r.Time.Equal(early) || r.Seq != 1 || r.Session != "a" {
		t.Errorf("record is %+v", r)
	}
}

func TestContinuesASession(t *testing.T) {
	dir := t.TempDir()
	for round := range 3 {
		var folded []event.Record
		tl, err := timeline.Open(t.Context(), jsonl.Open(dir, jsonl.Options{}), "a", timeline.Options{
			Fold: func(r event.Record) error { folded = append(folded, r); return nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(folded) != round*2 || tl.Last() != uint64(round*2) {
			t.Fatalf("round %d folded %d, last is %d", round, len(folded), tl.Last())
		}
		emit(t, tl.Wrap(event.Discard), event.LocalAdded{}, event.TaskStarted{})
		if err := tl.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// blind is a store that must not be read.
type blind struct{ mem.Store }

func (*blind) Read(context.Context, string, uint64, ...event.Log) iter.Seq2[event.Record, error] {
	return func(yield func(event.Record, error) bool) { yield(event.Record{}, errors.New("read")) }
}

func TestNewSessionReadsNothing(t *testing.T) {
	store := new(blind)
	tl := open(t, store, timeline.Options{New: true})
	emit(t, tl.Wrap(event.Discard), event.LocalAdded{})
	if err := tl.Close(); err != nil {
		t.Fatal(err)
	}
	tl = open(t, store, timeline.Options{New: true})
	err := tl.Wrap(event.Discard).Emit(t.Context(), event.Record{Event: event.LocalAdded{}})
	if !errors.Is(err, event.ErrConflict) {
		t.Errorf("a session that is not new was written as if it were: %v", err)
	}
}

func TestOpenThatFailsHoldsNothing(t *testing.T) {
	boom := errors.New("boom")
	store := new(mem.Store)
	tl := open(t, store, timeline.Options{})
	emit(t, tl.Wrap(event.Discard), event.LocalAdded{})
	var claimed *event.ClaimedError
	if _, err := timeline.Open(t.Context(), store, "a", timeline.Options{}); !errors.As(err, &claimed) {
		t.Errorf("opened twice: %v", err)
	}
	tl.Close()
	if _, err := timeline.Open(t.Context(), store, "a", timeline.Options{Fold: func(event.Record) error { return boom }}); !errors.Is(err, boom) {
		t.Errorf("open: %v, want the fold's error", err)
	}
	if _, err := timeline.Open(t.Context(), new(blind), "a", timeline.Options{}); err == nil {
		t.Error("opened a session that cannot be read")
	}
	open(t, store, timeline.Options{})
}

// full is a store that takes nothing.
type full struct {
	mem.Store
	err error
}

func (f *full) Append(ctx context.Context, last uint64, rs ...event.Record) error {
	if f.err != nil {
		return f.err
	}
	return f.Store.Append(ctx, last, rs...)
}

func TestWhatCannotBeStoredIsNotShown(t *testing.T) {
	boom := errors.New("boom")
	store := &full{err: boom}
	tl := open(t, store, timeline.Options{})
	var out seen
	err := tl.Wrap(&out).Emit(t.Context(), event.Record{Event: event.TaskStarted{}})
	if !errors.Is(err, boom) || len(out.records) != 0 {
		t.Errorf("emit: %v, shown %s", err, &out)
	}
	store.err = nil
	emit(t, tl.Wrap(&out), event.TaskStarted{})
	if out.String() != "1:event.TaskStarted " {
		t.Errorf("shown %s: a number was lost", &out)
	}
}

func TestAFactIsRecordedThoughTheTurnIsCanceled(t *testing.T) {
	store := new(mem.Store)
	tl := open(t, store, timeline.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tl.Wrap(event.Discard).Emit(ctx, event.Record{Event: event.TaskCanceled{TaskID: "t"}}); err != nil {
		t.Fatal(err)
	}
	eventtest.Expect(t, store, "a", 0, []event.Record{{Seq: 1, Session: "a", Event: event.TaskCanceled{TaskID: "t"}}})
}

func TestEmitAllIsOneStep(t *testing.T) {
	store := &full{err: errors.New("full")}
	tl := open(t, store, timeline.Options{})
	var out seen
	rs := []event.Record{{Event: event.TextDelta{}}, {Event: event.TaskStarted{}}, {Event: event.Notice{}}, {Event: event.LocalAdded{}}}
	if err := tl.EmitAll(t.Context(), &out, rs...); err == nil || len(out.records) > 0 {
		t.Errorf("%v, shown %s", err, &out)
	}
	store.err = nil
	if err := tl.EmitAll(t.Context(), &out, rs...); err != nil {
		t.Fatal(err)
	}
	if want := "0:event.TextDelta 1:event.TaskStarted 0:event.Notice 2:event.LocalAdded "; out.String() != want {
		t.Errorf("shown %s, want %s", &out, want)
	}
	if rs[1].Seq != 0 {
		t.Error("the caller's records were changed")
	}
	if err := tl.EmitAll(t.Context(), &out); err != nil {
		t.Error(err)
	}
}

func TestManyEmittersOneOrder(t *testing.T) {
	store := new(mem.Store)
	tl := open(t, store, timeline.Options{})
	var out seen
	sink := tl.Wrap(&out)
	var wg sync.WaitGroup
	const emitters, each = 8, 50
	for range emitters {
		wg.Go(func() {
			for i := range each {
				var e event.Event = event.TextDelta{}
				if i%2 == 0 {
					e = event.LocalAdded{}
				}
				if err := sink.Emit(t.Context(), event.Record{Event: e}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	var durable []event.Record
	for _, r := range out.records {
		if r.Seq != 0 {
			durable = append(durable, r)
		}
	}
	if len(durable) != emitters*each/2 {
		t.Errorf("%d durable records were shown", len(durable))
	}
	eventtest.Expect(t, store, "a", 0, durable)
}

func TestSinkThatFailsEndsTheTurnButNotTheRecord(t *testing.T) {
	store := new(mem.Store)
	tl := open(t, store, timeline.Options{})
	out := &seen{err: errors.New("pipe")}
	err := tl.EmitAll(t.Context(), out, event.Record{Event: event.LocalAdded{}}, event.Record{Event: event.TaskStarted{}})
	if !errors.Is(err, out.err) || len(out.records) != 1 {
		t.Errorf("emit: %v after %s", err, out)
	}
	for r, err := range store.Read(t.Context(), "a", 1) {
		if r.Seq != 2 || err != nil {
			t.Errorf("read %d, %v", r.Seq, err)
		}
	}
	if tl.Last() != 2 {
		t.Errorf("%d records are kept, want two", tl.Last())
	}
}

func TestCloseEndsEverything(t *testing.T) {
	store := new(mem.Store)
	tl := open(t, store, timeline.Options{})
	emit(t, tl.Wrap(event.Discard), event.TaskStarted{})
	for range 2 {
		if err := tl.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range []event.Event{event.TaskStarted{}, event.TextDelta{}} {
		if err := tl.Wrap(event.Discard).Emit(t.Context(), event.Record{Event: e}); !errors.Is(err, timeline.ErrClosed) {
			t.Errorf("emit of %T after close: %v", e, err)
		}
	}
	open(t, store, timeline.Options{})
}

func BenchmarkEmit(b *testing.B) {
	tl, err := timeline.Open(b.Context(), new(mem.Store), "a", timeline.Options{Now: clock})
	if err != nil {
		b.Fatal(err)
	}
	sink := tl.Wrap(event.Discard)
	for name, e := range map[string]event.Event{"delta": event.TextDelta{Text: "x"}, "local": event.LocalAdded{}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := sink.Emit(b.Context(), event.Record{Event: e}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
