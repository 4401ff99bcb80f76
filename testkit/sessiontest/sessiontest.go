// Package sessiontest checks that a [session.Store] keeps its promises. Every
// implementation runs it.
package sessiontest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"coder/internal/record/session"
)

// TestStore exercises the stores that open returns. Each call of open must give
// an empty one.
func TestStore(t *testing.T, open func(t *testing.T) session.Store) {
	for _, c := range []struct {
		name string
		test func(*testing.T, session.Store)
	}{
		{"gives back what it was given", testRoundTrip},
		{"replaces whole", testReplace},
		{"keeps what knows more than somebody who looks on", testObserved},
		{"says what it does not have", testMissing},
		{"lists the newest first", testList},
		{"lets a reader stop", testStop},
		{"obeys a canceled context", testCanceled},
		{"never shows a mixture", testMixture},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

// Sample is a snapshot with every field set.
func Sample(id string) session.Snapshot {
	at := time.Date(2025, 11, 15, 3, 4, 5, 6000, time.UTC)
	return session.Snapshot{
		Head: session.Head{
			ID: id, Created: at, Updated: at.Add(time.Minute),
			Meta: session.Meta{Title: "tidy <up>", Agent: "main", Model: "m", Dir: "/w", Turns: 2},
		},
		Model: "m",
		Tools: []json.RawMessage{json.RawMessage(`{"type":"function","function":{"name":"bash"}}`)},
		Messages: []json.RawMessage{json.RawMessage(`{"role":"user","content":"<hi>\n"}`),
			json.RawMessage(`{"role":"assistant","content":"没有"}`)},
		Notes:   []session.Note{{Index: 1, Time: at, Task: "t1", Interrupted: true, Reminders: "be brief"}},
		Local:   []session.Local{{Before: 1, Time: at, Local: true, Input: "/help", Output: "no"}},
		LastSeq: 7,
	}
}

func save(t *testing.T, s session.Store, snap session.Snapshot) {
	t.Helper()
	if err := s.Save(context.Background(), snap); err != nil {
		t.Fatal(err)
	}
}

func expect(t *testing.T, s session.Store, want session.Snapshot) {
	t.Helper()
	got, err := s.Load(context.Background(), want.ID)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("loaded\n%+v, want\n%+v", got, want)
	}
}

func testRoundTrip(t *testing.T, s session.Store) {
	sample := reflect.ValueOf(Sample("a"))
	for i := range sample.NumField() {
		if f := sample.Type().Field(i); sample.Field(i).IsZero() && f.Tag.Get("json") != "-" {
			t.Errorf("the sample does not set %s", f.Name)
		}
	}
	save(t, s, Sample("a"))
	save(t, s, Sample("b"))
	expect(t, s, Sample("a"))
	expect(t, s, Sample("b"))
	save(t, s, session.Snapshot{Head: session.Head{ID: "empty"}})
	got, err := s.Load(context.Background(), "empty")
	if err != nil || got.ID != "empty" || len(got.Messages)+len(got.Tools)+len(got.Notes)+len(got.Local) > 0 {
		t.Errorf("loaded %+v, %v, want an empty snapshot", got, err)
	}
}

func testReplace(t *testing.T, s session.Store) {
	long := Sample("a")
	long.Messages = slices.Repeat(long.Messages, 500)
	save(t, s, long)
	expect(t, s, long)
	save(t, s, Sample("a"))
	expect(t, s, Sample("a"))
}

// testObserved has somebody who does not work in a session save it, before and
// after it was written by who does: nothing newer is replaced or put aside.
func testObserved(t *testing.T, s session.Store) {
	at := func(n uint64) session.Snapshot {
		snap := Sample("a")
		snap.LastSeq, snap.Messages = n, slices.Repeat(snap.Messages, int(n))
		return snap
	}
	look := func(n uint64) {
		snap := at(n)
		snap.Observed = true
		save(t, s, snap)
	}
	look(3)
	expect(t, s, at(3))
	save(t, s, at(5))
	for n := uint64(1); n < 5; n++ {
		look(n)
		expect(t, s, at(5))
	}
	look(7)
	expect(t, s, at(7))
	heads := 0
	for _, err := range s.List(t.Context()) {
		if heads++; err != nil {
			t.Error(err)
		}
	}
	if heads != 1 {
		t.Errorf("%d sessions, want one", heads)
	}
}

func testMissing(t *testing.T, s session.Store) {
	if _, err := s.Load(context.Background(), "none"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("load of nothing: %v, want ErrNotFound", err)
	}
	for h, err := range s.List(context.Background()) {
		t.Errorf("an empty store lists %v, %v", h, err)
	}
	if err := s.Save(context.Background(), session.Snapshot{}); err == nil {
		t.Error("a snapshot without an id was saved")
	}
}

func testList(t *testing.T, s session.Store) {
	for i, id := range []string{"b", "c", "a"} {
		snap := Sample(id)
		snap.Updated = snap.Updated.Add(time.Duration(i) * time.Hour)
		save(t, s, snap)
	}
	again := Sample("b")
	again.Updated = again.Updated.Add(time.Hour) // as new as c
	save(t, s, again)
	var got []string
	for h, err := range s.List(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		if want := Sample(h.ID).Head; h.Meta != want.Meta || !h.Created.Equal(want.Created) {
			t.Errorf("head is %+v, want %+v", h, want)
		}
		got = append(got, h.ID)
	}
	if want := []string{"a", "c", "b"}; !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
}

func testStop(t *testing.T, s session.Store) {
	save(t, s, Sample("a"))
	save(t, s, Sample("b"))
	n := 0
	for range s.List(context.Background()) {
		n++
		break
	}
	if n != 1 {
		t.Errorf("listed %d, want 1", n)
	}
}

func testCanceled(t *testing.T, s session.Store) {
	save(t, s, Sample("a"))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Save(ctx, Sample("b")); !errors.Is(err, context.Canceled) {
		t.Errorf("save: %v, want context.Canceled", err)
	}
	if _, err := s.Load(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("load: %v, want context.Canceled", err)
	}
	var last error
	for _, err := range s.List(ctx) {
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("list: %v, want context.Canceled", last)
	}
}

func testMixture(t *testing.T, s session.Store) {
	version := func(n int) session.Snapshot {
		snap := Sample("a")
		snap.Meta.Turns, snap.LastSeq = n, uint64(n)
		snap.Messages = slices.Repeat([]json.RawMessage{json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))}, 200)
		return snap
	}
	save(t, s, version(0))
	const rounds = 50
	var wg sync.WaitGroup
	defer wg.Wait()
	for w := range 2 {
		wg.Go(func() {
			for n := range rounds {
				if err := s.Save(context.Background(), version(2*n+w)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range rounds {
		got, err := s.Load(context.Background(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, version(got.Meta.Turns)) {
			t.Fatalf("a mixture: %d turns, at %d, first message %s", got.Meta.Turns, got.LastSeq, got.Messages[0])
		}
	}
}
