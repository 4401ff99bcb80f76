// Package queue is the work of a fleet: tasks and how they stand, the jobs that
// workers take, who may decide, and the files that belong to tasks.
//
// A task is one document under the fleet's seal, changed only by a worker that read its
// newest state. Persons write requests. A job is
// a message that one worker at a time has, and that comes back if that worker
// falls silent; it says only that a task is to be looked at. What is to be done is
// read from the log of the task.
package queue

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"coder/fleet/jetstore"
	"coder/internal/core/clock"
	"coder/internal/core/jsonx"
	"coder/internal/core/message"
	"coder/internal/core/uip"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Version is that of what a fleet keeps: programs of another one do not join.
const Version = 2

// sealedSince is the version since which tasks carry a seal.
const sealedSince = 2

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
	Aside    Status = "aside"  // taken up too often without an end
	Broken   Status = "broken" // its entry cannot be read, or nobody vouches for it
)

// Ended reports whether nothing more happens to the task by itself.
func (s Status) Ended() bool {
	return s == Done || s == Failed || s == Canceled || s == Aside || s == Broken
}

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
	Question *uip.Request `json:"question,omitempty"` // question that the task waits for
	Cancel   string       `json:"cancel,omitempty"`   // who asked for that
	Result   *Result      `json:"result,omitempty"`
	CostUSD  float64      `json:"cost_usd"`
	Created  time.Time    `json:"created"`
	Updated  time.Time    `json:"updated"`
	Unsealed bool         `json:"unsealed,omitempty"` // nobody vouches for it
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
	// SealKey is the public part of the key that tasks are sealed with.
	SealKey ed25519.PublicKey `json:"seal_key"`
	// Work is the folder that tasks are done in, the same on every machine: what
	// was said and decided in a task names files by their place.
	Work string `json:"work"`
}

// name begins the names of everything of a fleet.
const name = "coder"

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
	files    jetstream.Stream
	key      ed25519.PrivateKey // that seals tasks; nil for who has none
	now      func() time.Time
}

// consumers is the name under which workers share the jobs.
const consumers = "workers"

// Provision makes what a fleet needs, whose tasks are sealed with key, and leaves alone
// what is there.
func Provision(ctx context.Context, js jetstream.JetStream, s Settings, key ed25519.PrivateKey) error {
	s.Version, s.SealKey = Version, key.Public().(ed25519.PublicKey)
	replicas := max(s.Replicas, 1)
	layout := jetstore.Layout{Name: name, Replicas: replicas, Lease: s.Lease}
	if err := jetstore.Provision(ctx, js, layout); err != nil {
		return err
	}
	for bucket, ttl := range map[string]time.Duration{"task": 0, "people": 0, "fleet": 0, "worker": 3 * reportTime} {
		c := jetstream.KeyValueConfig{Bucket: name + "-" + bucket, TTL: ttl, Replicas: replicas}
		if err := jetstore.Bucket(ctx, js, c); err != nil {
			return err
		}
	}
	if err := provisionRequests(ctx, js, replicas); err != nil {
		return err
	}
	_, err := js.CreateStream(ctx, jetstream.StreamConfig{
		Name: name + "-file", Subjects: []string{name + ".file.>"}, Replicas: replicas, MaxMsgsPerSubject: 1,
		DenyDelete: true,
	})
	if err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return message.Errorf("create the file store: %w", err)
	}
	stream, err := js.CreateStream(ctx, jetstream.StreamConfig{
		Name: name + "-job", Subjects: []string{name + ".job.*"}, Retention: jetstream.WorkQueuePolicy, Replicas: replicas,
		MaxMsgs: s.MaxQueue, Discard: jetstream.DiscardNew, Duplicates: 2 * time.Minute,
	})
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		stream, err = js.Stream(ctx, name+"-job")
	}
	if err != nil {
		return message.Errorf("create the queue: %w", err)
	}
	_, err = stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: consumers, AckPolicy: jetstream.AckExplicitPolicy, AckWait: s.Lease, MaxDeliver: -1, MaxAckPending: 1 << 20,
	})
	if err != nil && !errors.Is(err, jetstream.ErrConsumerExists) {
		return message.Errorf("create the queue: %w", err)
	}
	return agree(ctx, js, s, key)
}

// agree stores the settings of a new fleet. The fleet of an earlier release takes the
// seal key, and its tasks that have not ended a seal.
func agree(ctx context.Context, js jetstream.JetStream, s Settings, key ed25519.PrivateKey) error {
	fleet, err := js.KeyValue(ctx, name+"-fleet")
	if err == nil {
		_, err = fleet.Create(ctx, "settings", jsonx.MustMarshal(s))
	}
	if !errors.Is(err, jetstream.ErrKeyExists) {
		if err != nil {
			err = message.Errorf("save the settings: %w", err)
		}
		return err
	}
	var was Settings
	e, err := fleet.Get(ctx, "settings")
	if err == nil {
		err = json.Unmarshal(e.Value(), &was)
	}
	switch {
	case err != nil:
		return message.Errorf("read the settings: %w", err)
	case was.Version < sealedSince:
		tasks, err := js.KeyValue(ctx, name+"-task")
		if err == nil {
			err = (&Queue{js: js, tasks: tasks, key: key}).sealOld(ctx)
		}
		if err == nil {
			was.Version, was.SealKey = Version, s.SealKey
			_, err = fleet.Update(ctx, "settings", jsonx.MustMarshal(was), e.Revision())
		}
		return err
	case was.Version == Version && !was.SealKey.Equal(s.SealKey):
		return ErrOtherKey
	}
	return nil
}

// How often a fleet that does not answer is asked, with a pause: for as long as a
// cluster takes to choose another leader after a node has died, and more.
const (
	openTries = 10
	openPause = time.Second
)

// Open joins the fleet that js leads to. With the key of the fleet, and no other, its
// tasks can be changed. A fleet that does not answer is waited for, for a while.
func Open(ctx context.Context, js jetstream.JetStream, now func() time.Time, key ed25519.PrivateKey) (*Queue, error) {
	return patiently(ctx, func() (*Queue, error) { return open(ctx, js, now, key) })
}

// patiently opens again what did not answer.
func patiently(ctx context.Context, open func() (*Queue, error)) (q *Queue, err error) {
	for try := range openTries {
		if try > 0 && clock.Sleep(ctx, openPause) != nil {
			break
		}
		if q, err = open(); err == nil || ctx.Err() != nil || !away(err) {
			break
		}
	}
	return q, err
}

// away reports whether err is that of servers which do not answer now.
func away(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) ||
		errors.Is(err, nats.ErrNoResponders) ||
		errors.Is(err, jetstream.ErrNoStreamResponse)
}

func open(ctx context.Context, js jetstream.JetStream, now func() time.Time, key ed25519.PrivateKey) (q *Queue,
	err error) {
	q = &Queue{js: js, now: now, key: key}
	buckets := map[string]*jetstream.KeyValue{"task": &q.tasks, "people": &q.people, "worker": &q.workers,
		"fleet": &q.fleet}
	for bucket, kv := range buckets {
		if *kv, err = js.KeyValue(ctx, name+"-"+bucket); errors.Is(err, jetstream.ErrBucketNotFound) {
			return nil, ErrNone
		} else if err != nil {
			return nil, message.Errorf("open the fleet: %w", err)
		}
	}
	e, err := q.fleet.Get(ctx, "settings")
	if err == nil {
		err = json.Unmarshal(e.Value(), &q.Settings)
	}
	if err != nil {
		return nil, message.Errorf("open the fleet: %w", err)
	}
	if q.Settings.Version != Version {
		return nil,
			message.Errorf("this fleet uses data version %d, but this program knows version %d: use the same release everywhere",
				q.Settings.Version, Version)
	}
	if key != nil && !q.Settings.SealKey.Equal(key.Public()) {
		q.key = nil
	}
	q.Layout = jetstore.Layout{Name: name, Replicas: q.Settings.Replicas, Lease: q.Settings.Lease}
	if q.jobs, err = js.Consumer(ctx, name+"-job", consumers); err == nil {
		q.files, err = js.Stream(ctx, name+"-file")
	}
	if err != nil {
		return nil, message.Errorf("open the fleet: %w", err)
	}
	return q, nil
}

// Seals reports whether this member has the key of the fleet.
func (q *Queue) Seals() bool { return q.key != nil }

// Reasons why something is refused.
var (
	ErrNotFound = errors.New("unknown task; coder fleet ps lists the tasks")
	ErrNone     = errors.New("this server has no fleet yet; coder fleet up --url creates one")
	ErrFull     = errors.New("the queue is full; wait until workers take some tasks")
	ErrOtherKey = errors.New("the fleet folder lacks this fleet's key; copy the file key from the machine that created the fleet")
)

// Submit hands in a task. The job, which holds all of it, comes first: from then
// on the task is not lost, whatever becomes of the one who handed it in.
func (q *Queue) Submit(ctx context.Context, id string, spec Spec, by string) (Task, error) {
	now := q.now().UTC()
	t := Task{ID: id, Spec: spec, By: by, Status: Queued, Created: now, Updated: now}
	if !ValidTask(id) {
		return t, message.Errorf("%s is not a valid task id", id)
	}
	if err := q.publish(ctx, Job{Task: t, Version: Version}, id); err != nil {
		return t, err
	}
	q.list(ctx, t) // a worker makes the task from the job
	return t, nil
}

// storeFailed is the server's code for a message that a stream has no room for.
const storeFailed = 10077

// publish sends a job once, however often it is tried.
func (q *Queue) publish(ctx context.Context, j Job, once string) error {
	_, err := q.js.Publish(ctx, name+".job."+j.Task.ID, jsonx.MustMarshal(j), jetstream.WithMsgID(once))
	var api *jetstream.APIError
	if errors.As(err, &api) && api.ErrorCode == storeFailed && strings.Contains(api.Description, "maximum messages") {
		return ErrFull
	}
	switch {
	case errors.As(err, &api):
		return message.Errorf("submit the task: %w", err)
	case err != nil:
		return message.Errorf("no receipt for task %s, but it may have been submitted; check coder fleet ps before you retry: %w",
			j.Task.ID, err)
	}
	return nil
}

// Ensure is the task that a job is about, made from the job if need be. Of what the job
// says only what may be handed in counts.
func (q *Queue) Ensure(ctx context.Context, j Job) (Task, error) {
	_, _, err := q.state(ctx, j.Task.ID)
	if errors.Is(err, ErrNotFound) && j.Answer == nil {
		value, err := sealed(j.Task.fresh(q.now()), q.key)
		if err != nil {
			return j.Task, err
		}
		if _, err := q.tasks.Create(ctx, j.Task.ID, value); err != nil && !errors.Is(err, jetstream.ErrKeyExists) {
			return j.Task, err
		}
	}
	return q.Get(ctx, j.Task.ID)
}

// Get returns a task.
func (q *Queue) Get(ctx context.Context, id string) (Task, error) {
	t, _, err := q.get(ctx, id)
	return t, err
}

// get is the state of a task, or what was handed in if no worker has it yet, and
// whether somebody canceled it.
func (q *Queue) get(ctx context.Context, id string) (t Task, rev uint64, err error) {
	t, rev, err = q.state(ctx, id)
	if errors.Is(err, ErrNotFound) && ValidTask(id) {
		m, failed := q.request(ctx, requests+id)
		if failed != nil {
			return t, 0, message.Errorf("read task %s: %w", id, failed)
		}
		if m != nil {
			t, err = handedIn(id, m.Data, m.Time), nil
		}
	}
	if err != nil || t.Status.Ended() {
		return t, rev, err
	}
	m, err := q.request(ctx, requests+id+cancelEnd)
	if m != nil {
		t = t.canceled(canceler(m.Data))
	}
	return t, rev, err
}

// state is what workers wrote of a task.
func (q *Queue) state(ctx context.Context, id string) (t Task, rev uint64, err error) {
	if !ValidTask(id) {
		return t, 0, message.Errorf("%s: %w", id, ErrNotFound)
	}
	e, err := q.tasks.Get(ctx, id)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return t, 0, message.Errorf("%s: %w", id, ErrNotFound)
	}
	if err != nil {
		return t, 0, message.Errorf("read task %s: %w", id, err)
	}
	return q.read(id, e.Value(), e.Created()), e.Revision(), nil
}

// ErrMoved reports that a task is no longer what the caller takes it for.
var ErrMoved = errors.New("the task has changed")

// Change changes a task: change is given its newest state, again if that is no
// longer the newest when it is to be kept.
func (q *Queue) Change(ctx context.Context, id string, change func(*Task) error) (Task, error) {
	for {
		t, rev, err := q.get(ctx, id)
		if err != nil {
			return t, err
		}
		if t.Status == Broken || t.Unsealed {
			return t, message.Errorf("%w: %s", ErrMoved, t.Reason)
		}
		if err := change(&t); err != nil {
			return t, err
		}
		t.Updated = q.now().UTC()
		value, err := sealed(t, q.key)
		if err != nil {
			return t, err
		}
		_, err = q.tasks.Update(ctx, id, value, rev)
		if err == nil {
			return t, nil
		}
		if !errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
			return t, message.Errorf("save task %s: %w", id, err)
		}
		select { // a copy that lags behind may have been read
		case <-ctx.Done():
			return t, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// List returns all tasks, the oldest first. An entry that cannot be read is listed as
// [Broken] under its name.
func (q *Queue) List(ctx context.Context) ([]Task, error) {
	tasks, cancels, err := q.asked(ctx)
	if err != nil {
		return nil, message.Errorf("list the tasks: %w", err)
	}
	for e, err := range q.entries(ctx, "task") {
		if err != nil {
			return nil, message.Errorf("list the tasks: %w", err)
		}
		tasks[e.key] = q.read(e.key, e.value, e.at)
	}
	all := []Task{}
	for id, t := range tasks {
		if by := cancels[id]; by != "" {
			t = t.canceled(by)
		}
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b Task) int { return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.ID, b.ID)) })
	return all, nil
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

// Forget removes all that is kept of a task that has ended. Only an admin may.
func (q *Queue) Forget(ctx context.Context, t Task) error {
	if !t.Status.Ended() {
		return ErrMoved
	}
	err := q.forgetOld(ctx, t)
	if err == nil {
		err = jetstore.Remove(ctx, q.js, q.Layout, t.ID)
	}
	for subject, stream := range map[string]string{
		name + ".file." + t.ID + ".>": "-file", requests + t.ID + cancelEnd: "-request", requests + t.ID: "-request",
	} {
		if err == nil {
			err = q.purge(ctx, name+stream, subject)
		}
	}
	if err == nil {
		err = q.purge(ctx, "KV_"+name+"-task", "$KV."+name+"-task."+t.ID) // last: until then it is listed
	}
	return err
}

func (q *Queue) purge(ctx context.Context, stream, subject string) error {
	s, err := q.js.Stream(ctx, stream)
	if err == nil {
		err = s.Purge(ctx, jetstream.WithPurgeSubject(subject))
	}
	if err != nil {
		return message.Errorf("remove %s: %w", subject, err)
	}
	return nil
}

// entry is one of a bucket.
type entry struct {
	key   string
	value []byte
	at    time.Time
}

// entries yields what a bucket holds now.
func (q *Queue) entries(ctx context.Context, bucket string) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		before := "$KV." + name + "-" + bucket + "."
		for m, err := range jetstore.Walk(ctx, q.js, "KV_"+name+"-"+bucket, before+">") {
			if err == nil && m.Header.Get("KV-Operation") != "" {
				continue // a key that was deleted
			}
			e := entry{}
			if err == nil {
				e = entry{strings.TrimPrefix(m.Subject, before), m.Data, jetstore.Written(m)}
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// Streams describes the streams of the fleet.
func (q *Queue) Streams(ctx context.Context) (all []*jetstream.StreamInfo, err error) {
	for _, end := range []string{"coder-job", "coder-request", "coder-log", "coder-session", "coder-file", "KV_coder-task",
		"KV_coder-lease", "KV_coder-worker"} {
		s, err := q.js.Stream(ctx, end)
		if err != nil {
			return nil, message.Errorf("inspect the stream %s: %w", end, err)
		}
		all = append(all, s.CachedInfo())
	}
	return all, nil
}

// ErrBadJob is what a job is refused with that no worker can do, now or later.
var ErrBadJob = errors.New("skipped a job")

// ReadJob reads a job, which must be about the task of its subject.
func ReadJob(subject string, data []byte) (j Job, err error) {
	if len(data) > maxEntry || json.Unmarshal(data, &j) != nil {
		return j, message.Errorf("%w: %s contains no job", ErrBadJob, subject)
	}
	if j.Version > Version {
		return j, message.Errorf("the job has version %d, but this program knows version %d", j.Version, Version)
	}
	if id := j.Task.ID; !ValidTask(id) || subject != name+".job."+id || j.Answer != nil && j.Answer.Task != id {
		return j, message.Errorf("%w: %s contains a job of another task", ErrBadJob, subject)
	}
	return j, nil
}
