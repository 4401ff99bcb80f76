// Package queue is the work of a fleet: tasks and how they stand, the jobs that
// workers take, who may decide, and the files that belong to tasks.
//
// A task is one document, changed only by whoever read its newest state. A job is
// a message that one worker at a time has, and that comes back if that worker
// falls silent; it says only that a task is to be looked at. What is to be done is
// read from the log of the task.
package queue

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"coder/internal/core/jsonx"
	"coder/internal/core/uip"
	"coder/internal/fleet/jetstore"

	"github.com/nats-io/nats.go/jetstream"
)

// Version is that of what a fleet keeps: programs of another one do not join.
const Version = 1

// Status is where a task stands.
type Status string

// The statuses of a task.
const (
	Queued   Status = "queued"
	Running  Status = "running"
	Waiting  Status = "waiting" // for a person
	Done     Status = "done"
	Failed   Status = "failed"
	Canceled Status = "canceled"
	Aside    Status = "aside" // taken up too often without an end
)

// Ended reports whether nothing more happens to the task by itself.
func (s Status) Ended() bool { return s == Done || s == Failed || s == Canceled || s == Aside }

// Spec is what a task is to do, as it was handed in. It holds no secrets.
type Spec struct {
	Prompt      string  `json:"prompt"`
	Repo        string  `json:"repo"`
	Base        string  `json:"base,omitempty"`
	Mode        string  `json:"mode,omitempty"`
	Provider    string  `json:"provider,omitempty"`
	Model       string  `json:"model,omitempty"`
	BudgetUSD   float64 `json:"max_budget_usd,omitempty"`
	MaxSteps    int     `json:"max_steps,omitempty"`
	Script      string  `json:"script,omitempty"` // what plays the model
	MaxAttempts int     `json:"max_attempts,omitempty"`
}

// DefaultAttempts is how often a task is taken up again before it is set aside.
const DefaultAttempts = 10

// Task is one task.
type Task struct {
	ID       string       `json:"id"` // also of its session
	Spec     Spec         `json:"spec"`
	By       string       `json:"by,omitempty"`
	Status   Status       `json:"status"`
	Reason   string       `json:"reason,omitempty"` // why it stands so
	Worker   string       `json:"worker,omitempty"`
	Run      string       `json:"run,omitempty"` // the claim under which it may be changed
	Attempts int          `json:"attempts,omitempty"`
	Taken    int          `json:"taken,omitempty"`    // how often in all
	Lapsed   int          `json:"lapsed,omitempty"`   // how often because whoever had it fell silent
	Failures int          `json:"failures,omitempty"` // how often in a row the same trouble kept it from being begun
	Commit   string       `json:"base_commit,omitempty"`
	Question *uip.Request `json:"question,omitempty"` // what it waits for
	Cancel   string       `json:"cancel,omitempty"`   // who asked for that
	Result   *Result      `json:"result,omitempty"`
	CostUSD  float64      `json:"cost_usd"`
	Created  time.Time    `json:"created"`
	Updated  time.Time    `json:"updated"`
}

// Result is what came of a task.
type Result struct {
	Answer    string     `json:"answer,omitempty"`
	Branch    string     `json:"branch,omitempty"` // of the bundle; "" if no file changed
	Commit    string     `json:"commit,omitempty"`
	Patch     string     `json:"patch,omitempty"`  // names of files of the fleet
	Bundle    string     `json:"bundle,omitempty"` //
	Records   uint64     `json:"records"`
	Calls     int        `json:"calls"`
	Unknown   int        `json:"unknown"` // calls of which nobody knows whether they were done
	Refused   int        `json:"refused"`
	Check     string     `json:"check,omitempty"` // that ran last
	CheckExit int        `json:"check_exit,omitempty"`
	Verified  bool       `json:"verified"`
	Decisions []Decision `json:"decisions,omitempty"`
}

// Decision is an answer that a person gave, and how they are known.
type Decision struct {
	Interaction string `json:"interaction"`
	Title       string `json:"title"`
	Option      string `json:"option"`
	By          string `json:"by"`
	Signed      bool   `json:"signed"` // by the key that By enrolled
}

// Job says that a task is to be looked at, and may bring what it waits for.
type Job struct {
	Task    Task    `json:"task"` // as it was handed in; for an answer only its id
	Answer  *Answer `json:"answer,omitempty"`
	Version int     `json:"version"`
}

// Settings are what all members of a fleet agree on.
type Settings struct {
	Version  int           `json:"version"`
	Lease    time.Duration `json:"lease"`
	Replicas int           `json:"replicas"`
	MaxQueue int64         `json:"max_queue"`
	// Work is the folder that tasks are done in, the same on every machine: what
	// was said and decided in a task names files by their place.
	Work string `json:"work"`
}

// name begins the names of everything of a fleet.
const name = "coder"

// Protected are the subjects that only an admin may write to, and LogSubjects those
// that only workers may.
var (
	Protected   = []string{"$KV." + name + "-people.>", "$KV." + name + "-fleet.settings", "$JS.API.STREAM.PURGE.KV_" + name + "-people", "$JS.API.STREAM.PURGE." + name + "-log", "$JS.API.STREAM.MSG.DELETE.>"}
	LogSubjects = []string{name + ".log.>", name + ".session.>", "$KV." + name + "-lease.>", "$KV." + name + "-worker.>", "$KV." + name + "-fleet.>"}
)

// Queue is a fleet as one of its members sees it. Use [Open].
type Queue struct {
	Settings Settings
	Layout   jetstore.Layout
	js       jetstream.JetStream
	tasks    jetstream.KeyValue
	people   jetstream.KeyValue
	workers  jetstream.KeyValue
	fleet    jetstream.KeyValue
	jobs     jetstream.Consumer
	stream   jetstream.Stream
	files    jetstream.ObjectStore
	now      func() time.Time
}

// consumers is the name under which workers share the jobs.
const consumers = "workers"

// Provision makes what a fleet needs, and leaves alone what is there.
func Provision(ctx context.Context, js jetstream.JetStream, s Settings) error {
	s.Version = Version
	replicas := max(s.Replicas, 1)
	layout := jetstore.Layout{Name: name, Replicas: replicas, Lease: s.Lease}
	if err := jetstore.Provision(ctx, js, layout); err != nil {
		return err
	}
	for bucket, ttl := range map[string]time.Duration{"task": 0, "people": 0, "fleet": 0, "worker": 3 * reportTime} {
		_, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: name + "-" + bucket, TTL: ttl, Replicas: replicas})
		if err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
			return fmt.Errorf("make the bucket %s: %w", bucket, err)
		}
	}
	_, err := js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: name + "-file", Replicas: replicas})
	if err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
		return fmt.Errorf("make the place for files: %w", err)
	}
	stream, err := js.CreateStream(ctx, jetstream.StreamConfig{
		Name: name + "-job", Subjects: []string{name + ".job.*"}, Retention: jetstream.WorkQueuePolicy, Replicas: replicas,
		MaxMsgs: s.MaxQueue, Discard: jetstream.DiscardNew, Duplicates: 2 * time.Minute,
	})
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		stream, err = js.Stream(ctx, name+"-job")
	}
	if err != nil {
		return fmt.Errorf("make the queue: %w", err)
	}
	_, err = stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: consumers, AckPolicy: jetstream.AckExplicitPolicy, AckWait: s.Lease, MaxDeliver: -1, MaxAckPending: 1 << 20,
	})
	if err != nil && !errors.Is(err, jetstream.ErrConsumerExists) {
		return fmt.Errorf("make the queue: %w", err)
	}
	fleet, err := js.KeyValue(ctx, name+"-fleet")
	if err == nil {
		_, err = fleet.Create(ctx, "settings", jsonx.Must(s))
	}
	if err != nil && !errors.Is(err, jetstream.ErrKeyExists) {
		return fmt.Errorf("keep the settings: %w", err)
	}
	return nil
}

// Open joins the fleet that js leads to.
func Open(ctx context.Context, js jetstream.JetStream, now func() time.Time) (q *Queue, err error) {
	q = &Queue{js: js, now: now}
	buckets := map[string]*jetstream.KeyValue{"task": &q.tasks, "people": &q.people, "worker": &q.workers, "fleet": &q.fleet}
	for bucket, kv := range buckets {
		if *kv, err = js.KeyValue(ctx, name+"-"+bucket); errors.Is(err, jetstream.ErrBucketNotFound) {
			return nil, ErrNone
		} else if err != nil {
			return nil, fmt.Errorf("open the fleet: %w", err)
		}
	}
	e, err := q.fleet.Get(ctx, "settings")
	if err == nil {
		err = json.Unmarshal(e.Value(), &q.Settings)
	}
	if err != nil {
		return nil, fmt.Errorf("open the fleet: %w", err)
	}
	if q.Settings.Version != Version {
		return nil, fmt.Errorf("this fleet keeps its work in version %d, and this program knows version %d: use the same release everywhere", q.Settings.Version, Version)
	}
	q.Layout = jetstore.Layout{Name: name, Replicas: q.Settings.Replicas, Lease: q.Settings.Lease}
	if q.stream, err = js.Stream(ctx, name+"-job"); err == nil {
		q.jobs, err = q.stream.Consumer(ctx, consumers)
	}
	if err == nil {
		q.files, err = js.ObjectStore(ctx, name+"-file")
	}
	if err != nil {
		return nil, fmt.Errorf("open the fleet: %w", err)
	}
	return q, nil
}

// Reasons why something is refused.
var (
	ErrNotFound = errors.New("there is no such task; coder fleet ps lists them")
	ErrNone     = errors.New("this server holds no fleet yet; coder fleet up --url begins one there")
	ErrFull     = errors.New("the queue is full; wait until workers have taken some of it")
)

// Submit hands in a task. The job, which holds all of it, comes first: from then
// on the task is not lost, whatever becomes of the one who handed it in.
func (q *Queue) Submit(ctx context.Context, id string, spec Spec, by string) (Task, error) {
	now := q.now().UTC()
	t := Task{ID: id, Spec: spec, By: by, Status: Queued, Created: now, Updated: now}
	if err := q.publish(ctx, Job{Task: t, Version: Version}, id); err != nil {
		return t, err
	}
	_, _ = q.tasks.Create(ctx, id, jsonx.Must(t)) // a worker makes it from the job, or was faster
	return t, nil
}

// publish sends a job once, however often it is tried.
func (q *Queue) publish(ctx context.Context, j Job, once string) error {
	_, err := q.js.Publish(ctx, name+".job."+j.Task.ID, jsonx.Must(j), jetstream.WithMsgID(once))
	var api *jetstream.APIError
	const storeFailed = 10077
	if errors.As(err, &api) && api.ErrorCode == storeFailed && strings.Contains(api.Description, "maximum messages") {
		return ErrFull
	}
	switch {
	case errors.As(err, &api):
		return fmt.Errorf("hand in the task: %w", err)
	case err != nil:
		return fmt.Errorf("no receipt came for task %s, and it may have been handed in all the same; coder fleet ps tells before you try again: %w", j.Task.ID, err)
	}
	return nil
}

// Ensure is the task that a job is about, made from the job if need be.
func (q *Queue) Ensure(ctx context.Context, j Job) (Task, error) {
	t, err := q.Get(ctx, j.Task.ID)
	if errors.Is(err, ErrNotFound) && j.Answer == nil {
		if _, err := q.tasks.Create(ctx, j.Task.ID, jsonx.Must(j.Task)); err != nil && !errors.Is(err, jetstream.ErrKeyExists) {
			return t, err
		}
		return q.Get(ctx, j.Task.ID)
	}
	return t, err
}

// Get returns a task.
func (q *Queue) Get(ctx context.Context, id string) (Task, error) {
	t, _, err := q.get(ctx, id)
	return t, err
}

func (q *Queue) get(ctx context.Context, id string) (t Task, rev uint64, err error) {
	e, err := q.tasks.Get(ctx, id)
	if errors.Is(err, jetstream.ErrKeyNotFound) || errors.Is(err, jetstream.ErrInvalidKey) {
		return t, 0, fmt.Errorf("%s: %w", id, ErrNotFound)
	}
	if err == nil {
		err = json.Unmarshal(e.Value(), &t)
	}
	if err != nil {
		return t, 0, fmt.Errorf("read task %s: %w", id, err)
	}
	return t, e.Revision(), nil
}

// ErrMoved reports that a task is no longer what the caller takes it for.
var ErrMoved = errors.New("the task has moved on")

// Change changes a task: change is given its newest state, again if that is no
// longer the newest when it is to be kept.
func (q *Queue) Change(ctx context.Context, id string, change func(*Task) error) (Task, error) {
	for {
		t, rev, err := q.get(ctx, id)
		if err != nil {
			return t, err
		}
		if err := change(&t); err != nil {
			return t, err
		}
		t.Updated = q.now().UTC()
		_, err = q.tasks.Update(ctx, id, jsonx.Must(t), rev)
		if err == nil {
			return t, nil
		}
		if !errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
			return t, fmt.Errorf("keep task %s: %w", id, err)
		}
		select { // a copy that lags behind may have been read
		case <-ctx.Done():
			return t, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// List returns all tasks, the oldest first.
func (q *Queue) List(ctx context.Context) ([]Task, error) {
	all := []Task{}
	for e, err := range entries(ctx, q.tasks) {
		var t Task
		if err == nil {
			err = json.Unmarshal(e.Value(), &t)
		}
		if err != nil {
			return nil, fmt.Errorf("list the tasks: %w", err)
		}
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b Task) int { return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.ID, b.ID)) })
	return all, nil
}

// Cancel asks for the end of a task. One that nobody works on ends at once.
func (q *Queue) Cancel(ctx context.Context, id, by string) (Task, error) {
	return q.Change(ctx, id, func(t *Task) error {
		switch {
		case t.Status.Ended():
			return fmt.Errorf("task %s has ended: %s", id, t.Status)
		case t.Status != Running:
			t.Status, t.Reason, t.Question, t.Run = Canceled, "canceled by "+by, nil, ""
		}
		t.Cancel = by
		return nil
	})
}

// Next waits for a job, for at most wait; nil says that there was none.
func (q *Queue) Next(ctx context.Context, wait time.Duration) (jetstream.Msg, error) {
	batch, err := q.jobs.Fetch(1, jetstream.FetchMaxWait(wait))
	if err != nil {
		return nil, err
	}
	for {
		select {
		case m, ok := <-batch.Messages():
			if !ok {
				return nil, batch.Error()
			}
			return m, nil
		case <-ctx.Done():
			// The request ends by itself; what comes in late is handed out again.
			if m, ok := <-batch.Messages(); ok {
				return nil, m.Nak()
			}
			return nil, ctx.Err()
		}
	}
}

// Put keeps a file of the fleet.
func (q *Queue) Put(ctx context.Context, name string, r io.Reader) error {
	if _, err := q.files.Put(ctx, jetstream.ObjectMeta{Name: name}, r); err != nil {
		return fmt.Errorf("keep %s: %w", name, err)
	}
	return nil
}

// Fetch writes a file of the fleet to w.
func (q *Queue) Fetch(ctx context.Context, name string, w io.Writer) error {
	r, err := q.files.Get(ctx, name)
	if err != nil {
		return fmt.Errorf("fetch %s: %w", name, err)
	}
	defer r.Close()
	if _, err := io.Copy(w, r); err != nil {
		return fmt.Errorf("fetch %s: %w", name, err)
	}
	return nil
}

// Drop removes files of the fleet. What is not there need not be removed.
func (q *Queue) Drop(ctx context.Context, names ...string) error {
	for _, n := range names {
		if err := q.files.Delete(ctx, n); err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
			return err
		}
	}
	return nil
}

// Forget removes all that is kept of a task that has ended.
func (q *Queue) Forget(ctx context.Context, t Task) error {
	if !t.Status.Ended() {
		return ErrMoved
	}
	var names []string
	if t.Result != nil {
		names = []string{t.Result.Bundle, t.Result.Patch}
	}
	kept, err := q.files.List(ctx)
	if err != nil && !errors.Is(err, jetstream.ErrNoObjectsFound) {
		return err
	}
	for _, f := range kept {
		if strings.HasPrefix(f.Name, "checkpoint/"+t.ID+"/") {
			names = append(names, f.Name)
		}
	}
	err = q.Drop(ctx, slices.DeleteFunc(names, func(n string) bool { return n == "" })...)
	if err == nil {
		err = jetstore.Remove(ctx, q.js, q.Layout, t.ID)
	}
	if err == nil {
		err = q.tasks.Purge(ctx, t.ID)
	}
	return err
}

// entries yields what a bucket holds now.
func entries(ctx context.Context, kv jetstream.KeyValue) func(func(jetstream.KeyValueEntry, error) bool) {
	return func(yield func(jetstream.KeyValueEntry, error) bool) {
		w, err := kv.WatchAll(ctx, jetstream.IgnoreDeletes())
		if err != nil {
			yield(nil, err)
			return
		}
		defer func() { _ = w.Stop() }()
		for {
			select {
			case e := <-w.Updates():
				if e == nil {
					return
				}
				if !yield(e, nil) {
					return
				}
			case <-ctx.Done():
				yield(nil, ctx.Err())
				return
			}
		}
	}
}

// ReadJob reads a job.
func ReadJob(data []byte) (j Job, err error) {
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&j); err != nil {
		return j, fmt.Errorf("read a job: %w", err)
	}
	if j.Version != Version {
		return j, fmt.Errorf("the job is of version %d, and this program knows version %d", j.Version, Version)
	}
	return j, nil
}
