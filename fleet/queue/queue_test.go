package queue_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"coder/fleet/engine"
	"coder/fleet/jetstore"
	"coder/fleet/queue"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/testkit/eventtest"

	"github.com/nats-io/nats.go/jetstream"
)

// key seals the tasks of the fleets of these tests.
var key = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))

// fleet is a server of the test's own, with its folder.
func fleet(t *testing.T, s queue.Settings) (dir string, link engine.Link) {
	t.Helper()
	dir = t.TempDir()
	server, err := engine.Start(engine.ServerOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	_, js := dial(t, server.Link)
	s.Lease = time.Minute
	if err := queue.Provision(t.Context(), js, s, key); err != nil {
		t.Fatal(err)
	}
	if err := queue.Provision(t.Context(), js, s, key); err != nil {
		t.Fatalf("what is there already: %v", err)
	}
	return dir, server.Link
}

func dial(t *testing.T, l engine.Link) (close func(), js jetstream.JetStream) {
	t.Helper()
	c, js, err := l.Dial("test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c.Close, js
}

// as joins the fleet in a role.
func as(t *testing.T, dir string, l engine.Link, r engine.Role) (*queue.Queue, jetstream.JetStream) {
	t.Helper()
	l.Role, l.TokenFile = r, engine.TokenFile(dir, r)
	_, js := dial(t, l)
	q, err := queue.Open(t.Context(), js, time.Now, key)
	if err != nil {
		t.Fatalf("%s: %v", r, err)
	}
	return q, js
}

func short(t *testing.T) context.Context {
	ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	t.Cleanup(stop)
	return ctx
}

// A person hands in and answers but writes no log; a worker writes logs but lets
// nobody in; without a token nobody connects.
func TestRoles(t *testing.T) {
	dir, link := fleet(t, queue.Settings{MaxQueue: 10})
	nobody := link
	nobody.TokenFile = ""
	if c, _, err := nobody.Dial("nobody"); err == nil {
		c.Close()
		t.Error("somebody came in without a token")
	}
	public, _, _ := ed25519.GenerateKey(nil)
	for _, r := range []engine.Role{engine.Person, engine.Worker} {
		q, js := as(t, dir, link, r)
		if err := q.Enroll(short(t), "eve", public); err == nil {
			t.Errorf("a %s enrolled somebody", r)
		}
		if err := js.DeleteStream(short(t), "coder-log"); err == nil {
			t.Errorf("a %s removed the logs", r)
		}
		if _, err := q.Submit(t.Context(), "task_"+string(r), queue.Spec{Prompt: "x"}, "ann"); err != nil {
			t.Errorf("a %s hands in: %v", r, err)
		}
		logs, err := jetstore.Open(t.Context(), js, q.Layout, jetstore.Options{Patience: 300 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		release, err := logs.Claim(short(t), "a")
		if r == engine.Person && err == nil {
			t.Error("a person claimed a log")
		}
		if r == engine.Worker {
			if err != nil {
				t.Fatal(err)
			}
			eventtest.Append(t, logs, "a", 0, event.LocalAdded{Input: "x"})
			if err := release(); err != nil {
				t.Error(err)
			}
		}
	}
	for _, file := range []string{"admin.token", "worker.token", "person.token", "route.token"} {
		info, err := os.Stat(dir + "/" + file)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
	if err := os.Chmod(dir+"/admin.token", 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := link.Dial("x"); err == nil || !strings.Contains(err.Error(), "only you can read") {
		t.Errorf("a token that others can read: %v", err)
	}
}

// An answer counts only as it was signed: for this task, this question, by a key
// that is enrolled.
func TestAnswersAreSigned(t *testing.T) {
	dir, link := fleet(t, queue.Settings{MaxQueue: 10})
	q, _ := as(t, dir, link, engine.Admin)
	public, key, _ := ed25519.GenerateKey(nil)
	if err := q.Enroll(t.Context(), "ann", public); err != nil {
		t.Fatal(err)
	}
	asked := uip.Request{ID: "ui_1", Display: uip.Display{Title: "rm x?"}, Options: []uip.Option{{ID: "approve"}}}
	good := queue.Answer{Task: "t1", Question: queue.Sum(asked), Response: uip.Response{ID: "ui_1", Author: "user", Option: "approve", Comment: "fine"}, By: "ann", At: time.Unix(1700000000, 5).UTC()}
	good.Sign(key)
	if err := q.Verify(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*queue.Answer){
		"another task":     func(a *queue.Answer) { a.Task = "t2" },
		"another question": func(a *queue.Answer) { a.Question = queue.Sum(uip.Request{ID: "ui_1"}) },
		"another option":   func(a *queue.Answer) { a.Response.Option = "always" },
		"another comment":  func(a *queue.Answer) { a.Response.Comment = "" },
		"another person":   func(a *queue.Answer) { a.By = "bob" },
		"nobody":           func(a *queue.Answer) { a.By = "" },
		"another time":     func(a *queue.Answer) { a.At = a.At.Add(1) },
		"no signature":     func(a *queue.Answer) { a.Signature = nil },
	} {
		a := good
		change(&a)
		if err := q.Verify(t.Context(), a); !errors.Is(err, queue.ErrUnsigned) {
			t.Errorf("%s: %v, want ErrUnsigned", name, err)
		}
	}
	response := good.Response
	response.AnsweredBy = good.Via()
	again, ok := queue.Recorded("t1", asked, response)
	if !ok || q.Verify(t.Context(), again) != nil {
		t.Errorf("from the record: %+v, %v", again, ok)
	}
	asked.Display.Title = "rm y?"
	if other, ok := queue.Recorded("t1", asked, response); !ok || q.Verify(t.Context(), other) == nil {
		t.Error("the signature holds for another question")
	}
}

// A full queue refuses, a task that is handed in is kept by its job alone, and of
// many who change a task each builds on the one before.
func TestTasks(t *testing.T) {
	dir, link := fleet(t, queue.Settings{MaxQueue: 2})
	q, _ := as(t, dir, link, engine.Person)
	for _, id := range []string{"t1", "t2"} {
		if _, err := q.Submit(t.Context(), id, queue.Spec{Prompt: "x"}, "ann"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := q.Submit(t.Context(), "t3", queue.Spec{}, "ann"); !errors.Is(err, queue.ErrFull) {
		t.Errorf("a full queue says %v", err)
	}
	w, _ := as(t, dir, link, engine.Worker)
	m, err := w.Next(t.Context(), time.Second)
	if err != nil || m == nil {
		t.Fatal(m, err)
	}
	job, err := queue.ReadJob(m.Subject(), m.Data())
	if err != nil || job.Task.ID != "t1" {
		t.Fatalf("%+v, %v", job, err)
	}
	job.Task.ID = "t9" // as if whoever handed it in had died at once
	if task, err := w.Ensure(t.Context(), job); err != nil || task.Spec.Prompt != "x" || task.Status != queue.Queued {
		t.Errorf("%+v, %v", task, err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				if _, err := w.Change(t.Context(), "t1", func(t *queue.Task) error { t.Taken++; return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if task, err := w.Get(t.Context(), "t1"); err != nil || task.Taken != 40 {
		t.Errorf("%d changes are left of 40, %v", task.Taken, err)
	}
	if _, err := q.Get(t.Context(), "no such/task*"); !errors.Is(err, queue.ErrNotFound) {
		t.Errorf("a strange name: %v", err)
	}
}

// A program that knows another version neither joins nor takes jobs.
func TestAnotherVersion(t *testing.T) {
	dir, link := fleet(t, queue.Settings{MaxQueue: 2})
	if _, err := queue.ReadJob("coder.job.t1", []byte(`{"version":3,"task":{"id":"t1"}}`)); err == nil || !strings.Contains(err.Error(), "version 3") {
		t.Errorf("a job of another version: %v", err)
	}
	_, js := as(t, dir, link, engine.Admin)
	kv, err := js.KeyValue(t.Context(), "coder-fleet")
	if err == nil {
		_, err = kv.PutString(t.Context(), "settings", `{"version":3}`)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := queue.Open(t.Context(), js, time.Now, key); err == nil || !strings.Contains(err.Error(), "same release") {
		t.Errorf("a fleet of another version: %v", err)
	}
}
