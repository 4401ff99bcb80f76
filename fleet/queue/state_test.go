package queue_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"coder/fleet/engine"
	"coder/fleet/queue"

	"github.com/nats-io/nats.go/jetstream"
)

// A job brings what may be handed in and nothing else, and is about the task of its
// subject; without the key of the fleet nobody writes state.
func TestAJobBringsNoState(t *testing.T) {
	dir, link := fleet(t, queue.Settings{MaxQueue: 10})
	w, js := as(t, dir, link, engine.Worker)
	forged := queue.Task{ID: "t1", Spec: queue.Spec{Prompt: "x"}, Status: queue.Done, Run: "r", Attempts: 9, Worker: "w", Reason: "fine", Cancel: "eve", Result: &queue.Result{Answer: "FORGED", Verified: true}}
	task, err := w.Ensure(t.Context(), queue.Job{Task: forged})
	if err != nil || task.Status != queue.Queued || task.Result != nil || task.Attempts != 0 || task.Run+task.Worker+task.Reason+task.Cancel != "" {
		t.Errorf("%+v, %v", task, err)
	}
	for subject, job := range map[string]queue.Job{
		"coder.job.t2":         {Task: queue.Task{ID: "t1"}},
		"coder.job.a/../../..": {Task: queue.Task{ID: "a/../../.."}},
		"coder.job.-x":         {Task: queue.Task{ID: "-x"}},
		"coder.job.":           {},
		"coder.job.t3":         {Task: queue.Task{ID: "t3"}, Answer: &queue.Answer{Task: "t1"}},
	} {
		if _, err := queue.ReadJob(subject, must(json.Marshal(job))); err == nil {
			t.Errorf("%s brings a job of %q", subject, job.Task.ID)
		}
	}
	q, err := queue.Open(t.Context(), js, time.Now, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Change(t.Context(), "t1", func(t *queue.Task) error { return nil }); err == nil {
		t.Error("a task was changed without the key")
	}
}

// A cancellation is a request: it counts for a task that waits at once, and for one at
// work through its worker. Nobody takes it back.
func TestCancelIsARequest(t *testing.T) {
	dir, link := fleet(t, queue.Settings{MaxQueue: 10})
	p, pjs := as(t, dir, link, engine.Person)
	w, _ := as(t, dir, link, engine.Worker)
	for _, id := range []string{"t1", "t2"} {
		if _, err := p.Submit(t.Context(), id, queue.Spec{Prompt: "x"}, "ann"); err != nil {
			t.Fatal(err)
		}
	}
	if task, err := p.Cancel(t.Context(), "t1", "ann"); err != nil || task.Status != queue.Canceled {
		t.Errorf("%+v, %v", task, err)
	}
	if _, err := w.Ensure(t.Context(), queue.Job{Task: queue.Task{ID: "t2"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Change(t.Context(), "t2", func(t *queue.Task) error { t.Status = queue.Running; return nil }); err != nil {
		t.Fatal(err)
	}
	if task, err := p.Cancel(t.Context(), "t2", "ann"); err != nil || task.Status != queue.Running || task.Cancel != "ann" {
		t.Errorf("%+v, %v", task, err)
	}
	if _, err := pjs.Publish(t.Context(), "coder.request.t2.cancel", nil); err == nil {
		t.Error("a cancellation was taken back")
	}
	if task, err := w.Get(t.Context(), "t2"); err != nil || task.Cancel != "ann" {
		t.Errorf("its worker sees %+v, %v", task, err)
	}
	if _, err := p.Cancel(t.Context(), "t1", "bob"); err == nil {
		t.Error("what has ended was canceled")
	}
}

// A file comes back as it was stored, or not at all; a dropped one is gone for good.
func TestFilesAreWholeOrRefused(t *testing.T) {
	dir, link := fleet(t, queue.Settings{MaxQueue: 10})
	w, js := as(t, dir, link, engine.Worker)
	p, _ := as(t, dir, link, engine.Person)
	for _, size := range []int{0, 1, 512 << 10, 1300 << 10} {
		text := strings.Repeat("x", size)
		name, err := w.Put(t.Context(), "t1", "r1", fmt.Sprintf("k%d", size), strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		if err := p.Fetch(t.Context(), name, &got); err != nil || got.String() != text {
			t.Errorf("%d bytes of %d, %v", got.Len(), size, err)
		}
		if size == 0 {
			continue
		}
		if _, err := js.Publish(t.Context(), fmt.Sprintf("coder.file.t1.r1.k%d.0", size), []byte("y")); err != nil {
			t.Fatal(err)
		}
		got.Reset()
		if err := p.Fetch(t.Context(), name, &got); err == nil || got.Len() > 0 {
			t.Errorf("a file that was changed: %d bytes, %v", got.Len(), err)
		}
		if err := w.Drop(t.Context(), name); err != nil {
			t.Error(err)
		}
	}
}

// The fleet of an earlier release goes on: its tasks that have not ended get a seal,
// the others none, and its files are found.
func TestAnEarlierReleasesFleetGoesOn(t *testing.T) {
	dir, link := fleet(t, queue.Settings{MaxQueue: 10})
	_, admin := dial(t, link)
	kv, err := admin.KeyValue(t.Context(), "coder-fleet")
	if err == nil {
		_, err = kv.PutString(t.Context(), "settings", `{"version":1,"lease":60000000000,"max_queue":10,"work":"/w"}`)
	}
	if err != nil {
		t.Fatal(err)
	}
	forge(t, admin, "waits", `{"id":"waits","status":"waiting","spec":{"prompt":"x"}}`)
	forge(t, admin, "ended", `{"id":"ended","status":"done","result":{"answer":"a"}}`)
	files, err := admin.CreateObjectStore(t.Context(), jetstream.ObjectStoreConfig{Bucket: "coder-file"})
	if err == nil {
		_, err = files.PutString(t.Context(), "checkpoint/waits/r/1", strings.Repeat("old", 100_000))
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := queue.Open(t.Context(), admin, time.Now, key); err == nil {
		t.Error("a fleet was joined before its tasks were sealed")
	}
	if err := queue.Provision(t.Context(), admin, queue.Settings{Lease: time.Minute}, key); err != nil {
		t.Fatal(err)
	}
	p, _ := as(t, dir, link, engine.Person)
	if task, err := p.Get(t.Context(), "waits"); err != nil || task.Status != queue.Waiting || task.Unsealed {
		t.Errorf("%+v, %v", task, err)
	}
	if task, err := p.Get(t.Context(), "ended"); err != nil || task.Status != queue.Done || !task.Unsealed {
		t.Errorf("%+v, %v", task, err)
	}
	var got strings.Builder
	if err := p.Fetch(t.Context(), "checkpoint/waits/r/1", &got); err != nil || got.Len() != 300_000 {
		t.Errorf("%d bytes, %v", got.Len(), err)
	}
	if p.Settings.MaxQueue != 10 || p.Settings.Work != "/w" {
		t.Errorf("the settings are %+v", p.Settings)
	}
}
