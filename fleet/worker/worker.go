// Package worker takes tasks of a fleet and has them done by the ordinary program,
// each in a process and a folder of its own.
//
// The worker holds the claim on a task and renews it; the process that runs the
// task writes its log under that claim. If the worker dies, is cut off or sleeps,
// the claim lapses, the job comes back, and another worker goes on from the log and
// the last checkpoint of the files. Whatever the first one still sends is refused.
package worker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"coder/fleet/engine"
	"coder/fleet/jetstore"
	"coder/fleet/queue"
	"coder/internal/app"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/core/message"
	"coder/internal/host/program"
	"coder/internal/policy/mode"

	"github.com/nats-io/nats.go/jetstream"
)

// TaskCommand is the word by which the program is told to run one task.
const TaskCommand = "__task"

// Options are what a worker is made of.
type Options struct {
	Name    string
	Slots   int
	Fleet   string // the folder of the fleet
	Link    engine.Link
	Exe     string   // this program
	Environ []string // for the tasks
	MinFree uint64   // bytes that the disk must have left for a task to be taken
	Yolo    bool     // tasks may run unasked and unchecked: whoever runs the worker said so
	Say     func(string)
}

// Worker takes tasks. Use [New].
type Worker struct {
	Options
	queue  *queue.Queue
	logs   *jetstore.Store
	busy   atomic.Int32
	state  atomic.Pointer[string]
	engine *contact
}

// New returns a worker of the fleet that q is.
func New(ctx context.Context, js jetstream.JetStream, q *queue.Queue, o Options) (*Worker, error) {
	logs, err := jetstore.Open(ctx, js, q.Layout, jetstore.Options{Holder: o.Name, Patience: q.Settings.Lease})
	if err != nil {
		return nil, err
	}
	if err := ownFolder(q.Settings.Work); err != nil {
		return nil, message.Errorf("this fleet uses %s on every machine: %w", q.Settings.Work, err)
	}
	conn := js.Conn()
	return &Worker{Options: o, queue: q, logs: logs, engine: &contact{
		quiet: max(q.Settings.Lease/2, 3*reportGap), breaks: func() uint64 { return conn.Stats().Reconnects },
	}}, nil
}

const (
	pollTime  = 2 * time.Second // how long one request for a job waits
	reportGap = 2 * time.Second
	patience  = 30 * time.Minute // for an engine that is away
	graceTime = 20 * time.Second // for a task that is to stop
)

// Serve takes tasks until drain ends, and returns when those it took are over, or
// at once when ctx ends: others go on with them then.
func (w *Worker) Serve(ctx, drain context.Context) error {
	sweep(w.queue.Settings.Work)
	drain, leave := context.WithCancel(drain)
	defer leave()
	var slots, reports sync.WaitGroup
	reporting, done := context.WithCancel(ctx)
	reports.Go(func() { w.report(reporting, drain, leave) })
	for range w.Slots {
		slots.Go(func() {
			for drain.Err() == nil && ctx.Err() == nil {
				w.take(ctx, drain)
			}
		})
	}
	slots.Wait()
	done()
	reports.Wait()
	bye, stop := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer stop()
	_ = w.queue.Leave(bye, w.Name) // it would be forgotten anyway
	return nil
}

// report says again and again that the worker is there, and learns whether it is
// to leave.
func (w *Worker) report(ctx, drain context.Context, leave func()) {
	host, _ := os.Hostname()
	every := time.NewTicker(reportGap)
	defer every.Stop()
	away := false
	for {
		state := "ready"
		if s := w.state.Load(); s != nil && *s != "" {
			state = *s
		}
		if drain.Err() != nil {
			state = "draining"
		}
		s := queue.WorkerState{Name: w.Name, Version: app.Version, Slots: w.Slots, Busy: int(w.busy.Load()), State: state,
			PID: os.Getpid(), Host: host}
		err := w.queue.Report(ctx, s) // the next one may arrive
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && away:
			w.Say("the engine is back")
		case err != nil && !away:
			w.Say("the engine is unreachable; running work continues as far as it can")
		}
		if away = err != nil; !away {
			w.engine.heard(time.Now())
		}
		if asked, err := w.queue.Draining(ctx, w.Name); err == nil && asked {
			w.Say("stop requested: accepting no more tasks")
			leave()
		}
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

// take waits for one job and does it.
func (w *Worker) take(ctx, drain context.Context) {
	if free, err := engine.Free(w.queue.Settings.Work); err == nil && free < w.MinFree {
		text := fmt.Sprintf("accepts no tasks: %d MB left on the disk of %s", free>>20, w.queue.Settings.Work)
		w.state.Store(&text)
		wait(drain, pollTime)
		return
	}
	w.state.Store(nil)
	m, err := w.queue.Next(drain, pollTime)
	if err != nil && drain.Err() == nil {
		wait(drain, pollTime/4) // the engine is away
	}
	if m == nil {
		return
	}
	w.engine.heard(time.Now())
	w.busy.Add(1)
	defer w.busy.Add(-1)
	w.handle(ctx, m)
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// handle does one job. A job is done with, given back, or left to come back.
func (w *Worker) handle(ctx context.Context, m jetstream.Msg) {
	job, err := queue.ReadJob(m.Subject(), m.Data())
	if errors.Is(err, queue.ErrBadJob) {
		w.Say(err.Error())
		_ = m.Term()
		return
	}
	if err != nil {
		w.Say(err.Error())
		_ = m.NakWithDelay(w.queue.Settings.Lease) // for a worker that knows it
		return
	}
	again, err := w.do(ctx, job, m)
	switch {
	case again > 0:
		_ = m.NakWithDelay(again)
	case err == nil:
		acked, stop := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		_ = m.DoubleAck(acked) // if it gets lost the job comes back and finds nothing to do
		stop()
	default:
		w.Say(fmt.Sprintf("task %s: %v", job.Task.ID, err))
	}
}

var errLost = errors.New("another worker may have it now")

// do looks at a task and does what can be done. It returns when to look again, or
// an error if the job is to come back by itself.
func (w *Worker) do(ctx context.Context, job queue.Job, m jetstream.Msg) (again time.Duration, err error) {
	lease := w.queue.Settings.Lease
	t, err := w.queue.Ensure(ctx, job)
	switch {
	case errors.Is(err, queue.ErrNotFound):
		return 0, nil
	case err != nil:
		return lease / 2, nil
	case t.Status.Ended():
		return 0, nil
	}
	if job.Answer != nil {
		unsigned := w.queue.Verify(ctx, *job.Answer)
		if errors.Is(unsigned, queue.ErrUnsigned) {
			_, err := w.queue.Change(ctx, t.ID, func(t *queue.Task) error {
				t.Reason = "an answer was refused: " + unsigned.Error()
				return nil
			})
			return 0, err
		}
		if unsigned != nil {
			return lease / 2, nil
		}
	}
	if back := w.engine.since(time.Now()); t.Status == queue.Running && back < lease {
		return lease - back, nil // its worker may be alive, and has yet to say so
	}
	release, err := w.logs.Claim(ctx, t.ID)
	if err != nil {
		var claimed *event.ClaimedError
		if !errors.As(err, &claimed) {
			w.Say(fmt.Sprintf("task %s: %v", t.ID, err))
		}
		return lease / 2, nil
	}
	defer func() { _ = release() }() // it lapses by itself
	token, lost := w.logs.Held(t.ID)
	t, err = w.begin(ctx, t.ID, token)
	if err != nil || t.Status != queue.Running {
		if errors.Is(err, queue.ErrMoved) {
			return 0, nil
		}
		return 0, err
	}
	run := &attempt{w: w, task: t, token: token, lost: lost, answer: job.Answer, m: m}
	out, err := run.execute(ctx)
	if err != nil {
		return 0, err
	}
	return w.finish(ctx, t, token, lost, out)
}

// begin takes a task over, or sets it aside if that was tried too often.
func (w *Worker) begin(ctx context.Context, id, token string) (queue.Task, error) {
	return w.queue.Change(ctx, id, func(t *queue.Task) error {
		if t.Status.Ended() {
			return queue.ErrMoved
		}
		limit := t.Spec.MaxAttempts
		if limit == 0 {
			limit = queue.DefaultAttempts
		}
		if t.Cancel != "" { // its worker did not live to do it
			t.Status, t.Reason, t.Question, t.Run = queue.Canceled, "canceled by "+t.Cancel, nil, ""
			return nil
		}
		if t.Attempts >= limit {
			t.Status, t.Run = queue.Aside, ""
			t.Reason = fmt.Sprintf("started %d times without finishing; the last time: %s", t.Attempts,
				cmp.Or(t.Reason, "the worker stopped responding"))
			return nil
		}
		if t.Status == queue.Running {
			t.Lapsed++
		}
		t.Status, t.Worker, t.Run = queue.Running, w.Name, token
		t.Attempts++
		t.Taken++
		return nil
	})
}

// finish puts what came of a task on its document, for as long as it takes to
// reach the engine, unless the task is another's by now.
func (w *Worker) finish(ctx context.Context, t queue.Task, token string, lost <-chan struct{},
	out Outcome) (again time.Duration, err error) {
	deadline := time.Now().Add(patience)
	for {
		_, err = w.queue.Change(ctx, t.ID, func(t *queue.Task) error {
			if t.Run != token {
				return queue.ErrMoved
			}
			again = finish(t, out)
			return nil
		})
		switch {
		case err == nil || errors.Is(err, queue.ErrMoved) || ctx.Err() != nil || time.Now().After(deadline):
			return again, err
		}
		select {
		case <-lost:
			return 0, errLost
		case <-time.After(time.Second):
		}
	}
}

// finish writes an outcome into a task, and says when to try again.
func finish(t *queue.Task, out Outcome) (again time.Duration) {
	if out.Commit != "" {
		t.Commit = out.Commit
	}
	t.CostUSD = max(t.CostUSD, out.CostUSD)
	t.Status, t.Reason, t.Question, t.Result, t.Run = out.Status, out.Reason, out.Question, out.Result, ""
	if out.Attempts > 0 {
		t.Failures++
	} else {
		t.Failures = 0
	}
	switch {
	case t.Cancel != "" && t.Status != queue.Done && t.Status != queue.Failed:
		t.Status, t.Reason, t.Question = queue.Canceled, "canceled by "+t.Cancel, nil
	case t.Status == queue.Waiting:
		t.Attempts = 0
	case t.Status == queue.Queued && out.Attempts > 0 && t.Failures >= out.Attempts:
		t.Status = queue.Failed
	case t.Status == queue.Queued:
		return min(time.Second<<min(t.Attempts, 6), time.Minute)
	}
	return 0
}

// attempt is one process that runs a task.
type attempt struct {
	w      *Worker
	task   queue.Task
	token  string
	lost   <-chan struct{}
	answer *queue.Answer
	m      jetstream.Msg
}

// execute runs the process and returns what it says, or why there is nothing to be
// said.
func (a *attempt) execute(ctx context.Context) (Outcome, error) {
	if a.task.Spec.Mode == mode.Yolo && !a.w.Yolo {
		return Outcome{Status: queue.Queued, Attempts: beginAttempts,
			Reason: "worker " + a.w.Name + " does not run yolo tasks; coder fleet worker --allow-yolo allows them"}, nil
	}
	cmd := program.TrustedCommand(context.Background(), a.w.Exe, TaskCommand)
	cmd.Env, cmd.SysProcAttr = a.w.Environ, new(syscall.SysProcAttr)
	cmd.SysProcAttr.Setpgid = true
	dieWithUs(cmd.SysProcAttr)
	var says tail
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &said, &says, time.Second
	orders, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return Outcome{Status: queue.Queued, Reason: err.Error()}, nil
	}
	order := Order{Task: a.task, Run: a.token, Link: a.w.Link, Fleet: a.w.Fleet, Answer: a.answer}
	_, writeErr := orders.Write(append(jsonx.MustMarshal(order), '\n'))
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // it ends with the process
	kill := func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
	}
	err = a.attend(ctx, cmd, ended, kill)
	_ = orders.Close()
	if err != nil {
		return Outcome{}, err
	}
	var out Outcome
	if json.Unmarshal(said.Bytes(), &out) != nil {
		reason := fmt.Sprintf("the process that ran it ended without a message (%v)", cmd.ProcessState)
		if last := says.last(); last != "" {
			reason += ": " + last
		}
		return Outcome{Status: queue.Queued, Reason: reason}, nil
	}
	return out, writeErr
}

// attend watches over the process: it keeps the job, passes on that the task is to
// be canceled, and ends the process when the task is no longer ours.
func (a *attempt) attend(ctx context.Context, cmd *program.Cmd, ended <-chan error, kill func()) error {
	every := time.NewTicker(a.w.queue.Settings.Lease / 4)
	defer every.Stop()
	var overdue <-chan time.Time
	for {
		select {
		case <-ended:
			return nil
		case <-ctx.Done():
			kill()
			_ = a.m.NakWithDelay(time.Second)
			return ctx.Err()
		case <-a.lost:
			kill()
			return errLost
		case <-overdue:
			kill()
			return nil
		case <-every.C:
			_ = a.m.InProgress()
			if overdue != nil {
				continue
			}
			asking, stop := context.WithTimeout(ctx, a.w.queue.Settings.Lease/4)
			t, err := a.w.queue.Get(asking, a.task.ID)
			stop()
			switch {
			case err != nil: // ask again
			case t.Run != a.token:
				kill()
				return errLost
			case t.Cancel != "":
				_ = cmd.Process.Signal(syscall.SIGINT)
				overdue = time.After(graceTime)
			}
		}
	}
}

// ReadOrder reads the order of a task, and ends the process when whoever gave it
// is gone.
func ReadOrder(r io.Reader) (o Order, err error) {
	d := json.NewDecoder(r)
	if err := d.Decode(&o); err != nil {
		return o, message.Errorf("read the order: %w", err)
	}
	go func() { // it ends with the process
		_, _ = io.Copy(io.Discard, io.MultiReader(d.Buffered(), r))
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // as if the worker's death had reached it
	}()
	return o, nil
}
