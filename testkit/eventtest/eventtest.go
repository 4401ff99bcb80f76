// Package eventtest checks that an [event.Store] keeps its promises. Every
// implementation runs it.
package eventtest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"coder/internal/core/event"
)

// TestStore exercises the stores that open returns. Each call of open must give
// an empty one.
func TestStore(t *testing.T, open func(t *testing.T) event.Store) {
	for _, c := range []struct {
		name string
		test func(*testing.T, event.Store)
	}{
		{"gives back what it was given", testRoundTrip},
		{"knows nothing of a session never written", testEmpty},
		{"keeps sessions apart", testApart},
		{"reads from anywhere", testAfter},
		{"reads the logs asked for", testLogs},
		{"lets a reader stop", testStop},
		{"shows a reader what was there when it began", testWriteWhileReading},
		{"has one writer", testClaim},
		{"lets only the writer write", testUnclaimed},
		{"refuses what does not follow", testConflict},
		{"takes all or nothing", testAllOrNothing},
		{"refuses what is not kept", testTransient},
		{"obeys a canceled context", testCanceled},
		{"lets one of many writers win", testRace},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

// Records dates and numbers events as the records of session that follow last.
func Records(session string, last uint64, events ...event.Event) []event.Record {
	rs := make([]event.Record, len(events))
	for i, e := range events {
		seq := last + 1 + uint64(i)
		rs[i] = event.Record{
			Seq: seq, Time: time.Unix(1700000000, int64(seq)*1000).UTC(), Session: session,
			Task: "t1", Actor: "main", Event: e,
		}
	}
	return rs
}

// Claim claims session until the test ends or release is called.
func Claim(t testing.TB, s event.Store, session string) (release func()) {
	t.Helper()
	free, err := s.Claim(context.Background(), session)
	if err != nil {
		t.Fatal(err)
	}
	release = func() {
		if err := free(); err != nil {
			t.Errorf("release: %v", err)
		}
	}
	t.Cleanup(release)
	return release
}

// Append adds events after last and returns their records.
func Append(t testing.TB, s event.Store, session string, last uint64, events ...event.Event) []event.Record {
	t.Helper()
	rs := Records(session, last, events...)
	if err := s.Append(context.Background(), last, rs...); err != nil {
		t.Fatal(err)
	}
	return rs
}

// Expect compares what s holds of session after some record with want.
func Expect(t testing.TB, s event.Store, session string, after uint64, want []event.Record, logs ...event.Log) {
	t.Helper()
	var got []event.Record
	for r, err := range s.Read(context.Background(), session, after, logs...) {
		if err != nil {
			t.Fatalf("read %s after %d: %v", session, after, err)
		}
		got = append(got, r)
	}
	if err := Same(got, want); err != nil {
		t.Fatalf("read %s after %d: %v", session, after, err)
	}
}

// Same reports how got and want differ, if they do.
func Same(got, want []event.Record) error {
	for i := range min(len(got), len(want)) {
		g, w := got[i], want[i]
		if !g.Time.Equal(w.Time) {
			return fmt.Errorf("record %d has time %v, want %v", w.Seq, g.Time, w.Time)
		}
		g.Time = w.Time
		if !reflect.DeepEqual(g, w) {
			return fmt.Errorf("record %d is\n%#v, want\n%#v", w.Seq, g, w)
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("%d records, want %d", len(got), len(want))
	}
	return nil
}

func testRoundTrip(t *testing.T, s event.Store) {
	Claim(t, s, "a")
	want := Append(t, s, "a", 0, Samples()...)
	for _, e := range Samples() {
		want = append(want, Append(t, s, "a", uint64(len(want)), e)...)
	}
	Expect(t, s, "a", 0, want)
	Expect(t, s, "a", 0, want)
}

func testEmpty(t *testing.T, s event.Store) {
	Expect(t, s, "never", 0, nil)
	Claim(t, s, "a")
	Expect(t, s, "a", 0, nil)
	Expect(t, s, "a", 7, nil, event.LogAudit)
	if err := s.Append(context.Background(), 0); err != nil {
		t.Errorf("appending nothing: %v", err)
	}
}

func testApart(t *testing.T, s event.Store) {
	Claim(t, s, "a")
	Claim(t, s, "b")
	a := Append(t, s, "a", 0, event.LocalAdded{Input: "1"})
	b := Append(t, s, "b", 0, event.LocalAdded{Input: "2"}, event.LocalAdded{Input: "3"})
	a = append(a, Append(t, s, "a", 1, event.LocalAdded{Input: "4"})...)
	Expect(t, s, "a", 0, a)
	Expect(t, s, "b", 0, b)
	both := append(Records("a", 2, event.LocalAdded{}), Records("b", 3, event.LocalAdded{})...)
	if err := s.Append(context.Background(), 2, both...); err == nil {
		t.Error("records of two sessions were taken at once")
	}
	Expect(t, s, "a", 0, a)
	Expect(t, s, "b", 0, b)
}

func testAfter(t *testing.T, s event.Store) {
	release := Claim(t, s, "a")
	want := Append(t, s, "a", 0, Samples()...)
	check := func() {
		t.Helper()
		for after := range len(want) {
			Expect(t, s, "a", uint64(after), want[after:])
		}
		Expect(t, s, "a", uint64(len(want)), nil)
		Expect(t, s, "a", 1<<40, nil)
	}
	check()
	release()
	check()
}

func testLogs(t *testing.T, s event.Store) {
	release := Claim(t, s, "a")
	all := Append(t, s, "a", 0, Samples()...)
	check := func() {
		t.Helper()
		for _, logs := range [][]event.Log{{event.LogDomain}, {event.LogAudit}, {event.LogConversation},
			{event.LogConversation, event.LogAudit}, {event.LogAudit, event.LogAudit}, event.AllLogs} {
			for _, after := range []uint64{0, 3, 8} {
				Expect(t, s, "a", after, only(all[after:], logs), logs...)
			}
		}
		Expect(t, s, "a", 0, nil, event.LogNone)
	}
	check()
	release()
	check()
}

func only(rs []event.Record, logs []event.Log) []event.Record {
	var kept []event.Record
	for _, r := range rs {
		for _, l := range logs {
			if event.LogOf(r.Event) == l {
				kept = append(kept, r)
				break
			}
		}
	}
	return kept
}

func testStop(t *testing.T, s event.Store) {
	Claim(t, s, "a")
	Append(t, s, "a", 0, Samples()...)
	n := 0
	for _, err := range s.Read(context.Background(), "a", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("read %d, want 2", n)
	}
}

// testWriteWhileReading also shows that reading holds no lock.
func testWriteWhileReading(t *testing.T, s event.Store) {
	Claim(t, s, "a")
	want := Append(t, s, "a", 0, Samples()...)
	var got []event.Record
	for r, err := range s.Read(context.Background(), "a", 0) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r)
		Append(t, s, "a", uint64(len(want)+len(got)-1), event.LocalAdded{})
	}
	if err := Same(got, want); err != nil {
		t.Error(err)
	}
}

func testClaim(t *testing.T, s event.Store) {
	ctx := context.Background()
	release, err := s.Claim(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Claim(ctx, "a")
	var claimed *event.ClaimedError
	if !errors.As(err, &claimed) || claimed.Session != "a" || claimed.Holder == "" {
		t.Fatalf("second claim: %v, want a ClaimedError that names session and holder", err)
	}
	Claim(t, s, "b")
	for range 2 { // letting go twice is harmless
		if err := release(); err != nil {
			t.Fatal(err)
		}
	}
	Claim(t, s, "a")
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if _, err = s.Claim(ctx, "a"); !errors.As(err, &claimed) {
		t.Errorf("a release that was used up let go of a later claim: %v", err)
	}
}

func testUnclaimed(t *testing.T, s event.Store) {
	refuse := func(last uint64) {
		t.Helper()
		err := s.Append(context.Background(), last, Records("a", last, event.LocalAdded{})...)
		if !errors.Is(err, event.ErrConflict) {
			t.Errorf("append without a claim: %v, want ErrConflict", err)
		}
	}
	refuse(0)
	release := Claim(t, s, "a")
	want := Append(t, s, "a", 0, event.LocalAdded{})
	release()
	refuse(1)
	Expect(t, s, "a", 0, want)
	Claim(t, s, "a")
	want = append(want, Append(t, s, "a", 1, event.LocalAdded{})...)
	Expect(t, s, "a", 0, want)
}

func testConflict(t *testing.T, s event.Store) {
	Claim(t, s, "a")
	want := Append(t, s, "a", 0, event.LocalAdded{}, event.LocalAdded{})
	for _, c := range []struct {
		last uint64
		rs   []event.Record
	}{
		{0, Records("a", 0, event.LocalAdded{})},
		{1, Records("a", 1, event.LocalAdded{})},
		{3, Records("a", 3, event.LocalAdded{})},
		{2, Records("a", 3, event.LocalAdded{})},
		{2, Records("a", 1, event.LocalAdded{}, event.LocalAdded{})},
		{2, append(Records("a", 2, event.LocalAdded{}), Records("a", 3, event.LocalAdded{}, event.LocalAdded{})[1])},
		{2, append(Records("a", 2, event.LocalAdded{}), Records("a", 2, event.LocalAdded{})...)},
	} {
		if err := s.Append(context.Background(), c.last, c.rs...); !errors.Is(err, event.ErrConflict) {
			t.Errorf("append of %d after %d: %v, want ErrConflict", c.rs[0].Seq, c.last, err)
		}
	}
	want = append(want, Append(t, s, "a", 2, event.LocalAdded{})...)
	Expect(t, s, "a", 0, want)
}

func testAllOrNothing(t *testing.T, s event.Store) {
	release := Claim(t, s, "a")
	want := Append(t, s, "a", 0, Samples()...)
	last := uint64(len(want))
	bad := Records("a", last, event.LocalAdded{}, event.TaskStarted{}, event.TextDelta{Text: "x"}, event.LocalAdded{})
	if err := s.Append(context.Background(), last, bad...); err == nil {
		t.Error("a batch with a transient event was taken")
	}
	Expect(t, s, "a", 0, want)
	want = append(want, Append(t, s, "a", last, Samples()...)...)
	release()
	Expect(t, s, "a", 0, want)
}

func testTransient(t *testing.T, s event.Store) {
	Claim(t, s, "a")
	for _, e := range []event.Event{event.TextDelta{Text: "x"}, event.Notice{},
		event.Unknown{Type: "Strange", Version: 1}, nil} {
		if err := s.Append(context.Background(), 0, Records("a", 0, e)...); err == nil {
			t.Errorf("%T was taken", e)
		}
	}
	Expect(t, s, "a", 0, nil)
	Append(t, s, "a", 0, event.LocalAdded{})
}

func testCanceled(t *testing.T, s event.Store) {
	Claim(t, s, "a")
	want := Append(t, s, "a", 0, event.LocalAdded{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Claim(ctx, "b"); !errors.Is(err, context.Canceled) {
		t.Errorf("claim: %v, want context.Canceled", err)
	}
	if err := s.Append(ctx, 1, Records("a", 1, event.LocalAdded{})...); !errors.Is(err, context.Canceled) {
		t.Errorf("append: %v, want context.Canceled", err)
	}
	var last error
	for _, err := range s.Read(ctx, "a", 0) {
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("read: %v, want context.Canceled", last)
	}
	Expect(t, s, "a", 0, want)
}

func testRace(t *testing.T, s event.Store) {
	Claim(t, s, "a")
	const writers, rounds = 4, 10
	for last := range uint64(rounds) {
		var wg sync.WaitGroup
		errs := make([]error, writers)
		for i := range writers {
			wg.Go(func() {
				errs[i] = s.Append(context.Background(), last, Records("a", last, event.LocalAdded{Input: fmt.Sprint(i)})...)
			})
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else if !errors.Is(err, event.ErrConflict) {
				t.Fatal(err)
			}
		}
		if won != 1 {
			t.Fatalf("%d writers won, want 1", won)
		}
	}
}
