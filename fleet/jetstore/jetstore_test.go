package jetstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"coder/fleet/jetstore"
	"coder/internal/core/event"
	"coder/internal/record/session"
	"coder/testkit/eventtest"
	"coder/testkit/sessiontest"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// connect starts a server of the test's own on this machine.
func connect(t testing.TB) jetstream.JetStream {
	t.Helper()
	s, err := server.NewServer(&server.Options{DontListen: true, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	c, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	js, err := jetstream.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

var places atomic.Int64

// place is an empty place for stores.
func place(t testing.TB, js jetstream.JetStream, lease time.Duration) jetstore.Layout {
	t.Helper()
	l := jetstore.Layout{Name: fmt.Sprintf("t%d", places.Add(1)), Lease: lease}
	if err := jetstore.Provision(context.Background(), js, l); err != nil {
		t.Fatal(err)
	}
	return l
}

func open(t testing.TB, js jetstream.JetStream, l jetstore.Layout, o jetstore.Options) *jetstore.Store {
	t.Helper()
	s, err := jetstore.Open(context.Background(), js, l, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStore(t *testing.T) {
	js := connect(t)
	eventtest.TestStore(t, func(t *testing.T) event.Store {
		return open(t, js, place(t, js, time.Minute), jetstore.Options{Holder: "me", Attempt: time.Hour})
	})
}

// TestSimulation plays on one server; a place that was opened is opened again.
func TestSimulation(t *testing.T) {
	js := connect(t)
	known := make(map[string]jetstore.Layout)
	eventtest.Simulate(t, true, func(dir string) event.Store {
		l, ok := known[dir]
		if !ok {
			l = place(t, js, time.Minute)
			known[dir] = l
		}
		return open(t, js, l, jetstore.Options{Attempt: time.Hour})
	})
}

func TestSessions(t *testing.T) {
	js := connect(t)
	sessiontest.TestStore(t, func(t *testing.T) session.Store {
		s, err := jetstore.OpenSessions(context.Background(), js, place(t, js, time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}

func say(words string) event.Event { return event.LocalAdded{Input: words} }

// A writer whose lease lapsed is fenced off: what it sends after another has
// claimed the session is refused, though it still believes that it holds it.
func TestALateWriterIsRefused(t *testing.T) {
	js := connect(t)
	l := place(t, js, time.Minute)
	late, next := open(t, js, l, jetstore.Options{Holder: "late"}), open(t, js, l, jetstore.Options{Holder: "next"})
	if _, err := late.Claim(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	want := eventtest.Append(t, late, "a", 0, say("1"))
	var claimed *event.ClaimedError
	if _, err := next.Claim(t.Context(), "a"); !errors.As(err, &claimed) || claimed.Holder != "late" {
		t.Fatalf("claim of what is held: %v", err)
	}
	leases, err := js.KeyValue(t.Context(), l.Name+"-lease")
	if err != nil {
		t.Fatal(err)
	}
	if err := leases.Delete(t.Context(), "a"); err != nil { // as if it had lapsed
		t.Fatal(err)
	}
	eventtest.Claim(t, next, "a")
	if err := late.Append(t.Context(), 1, eventtest.Records("a", 1, say("late"))...); !errors.Is(err, event.ErrConflict) {
		t.Errorf("a late write: %v, want ErrConflict", err)
	}
	want = append(want, eventtest.Append(t, next, "a", 1, say("2"))...)
	if err := late.Append(t.Context(), 2, eventtest.Records("a", 2, say("later"))...); !errors.Is(err, event.ErrConflict) {
		t.Errorf("a later write: %v, want ErrConflict", err)
	}
	eventtest.Expect(t, late, "a", 0, want)
}

// A lease is renewed for as long as its holder lives, and lapses after.
func TestALeaseLapsesWithItsHolder(t *testing.T) {
	js := connect(t)
	l := place(t, js, time.Second)
	holding := open(t, js, l, jetstore.Options{Holder: "first"})
	release, err := holding.Claim(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	_, lost := holding.Held("a")
	leases, err := js.KeyValue(t.Context(), l.Name+"-lease")
	if err != nil {
		t.Fatal(err)
	}
	was, err := leases.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	for { // until it was renewed
		now, err := leases.Get(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if now.Revision() > was.Revision() {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := leases.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	next := open(t, js, l, jetstore.Options{Holder: "second"})
	for { // the first may take its lease again before the second does
		_, err := next.Claim(t.Context(), "a")
		if err == nil {
			break
		}
		if err := leases.Delete(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	<-lost
	if err := release(); err != nil {
		t.Error(err)
	}
	if _, err := leases.Get(t.Context(), "a"); err != nil {
		t.Errorf("the release of a lost lease took another's: %v", err)
	}
}

// A process that joins the claim of another writes under it until the claim is
// somebody else's.
func TestJoiningAClaim(t *testing.T) {
	js := connect(t)
	l := place(t, js, time.Minute)
	holder := open(t, js, l, jetstore.Options{})
	release, err := holder.Claim(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	token, _ := holder.Held("a")
	if _, err := open(t, js, l, jetstore.Options{Token: "other"}).Claim(t.Context(), "a"); !errors.Is(err, event.ErrConflict) {
		t.Errorf("joined with the wrong token: %v", err)
	}
	kept := ""
	helper := open(t, js, l, jetstore.Options{Token: token, Checkpoint: func(context.Context, []event.Record) (string, error) { return kept, nil }})
	for range 2 { // letting go and joining again is harmless
		leave, err := helper.Claim(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if err := leave(); err != nil {
			t.Fatal(err)
		}
	}
	eventtest.Claim(t, helper, "a")
	kept = "files-1"
	eventtest.Append(t, helper, "a", 0, say("1"))
	kept = ""
	eventtest.Append(t, helper, "a", 1, say("2"))
	if tip, err := helper.Tip(t.Context(), "a"); err != nil || tip.Last != 2 || tip.Checkpoint != "files-1" {
		t.Errorf("the end is %+v, %v", tip, err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	eventtest.Claim(t, open(t, js, l, jetstore.Options{}), "a")
	if err := helper.Append(t.Context(), 2, eventtest.Records("a", 2, say("late"))...); !errors.Is(err, event.ErrConflict) {
		t.Errorf("a late write: %v, want ErrConflict", err)
	}
}

func TestWatchFromAnywhere(t *testing.T) {
	js := connect(t)
	s := open(t, js, place(t, js, time.Minute), jetstore.Options{})
	eventtest.Claim(t, s, "a.b")
	want := eventtest.Append(t, s, "a.b", 0, say("1"), say("2"))
	var got []event.Record
	for r, err := range s.Watch(t.Context(), "a.b", 1) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, r); len(got) == 3 {
			break
		}
		want = append(want, eventtest.Append(t, s, "a.b", uint64(len(want)), say("more"))...)
	}
	if err := eventtest.Same(got, want[1:4]); err != nil {
		t.Error(err)
	}
}
