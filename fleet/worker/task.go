package worker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"coder/fleet/checkout"
	"coder/fleet/engine"
	"coder/fleet/jetstore"
	"coder/fleet/queue"
	"coder/internal/app"
	"coder/internal/cli"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/core/message"
	"coder/internal/core/sanitize"
	"coder/internal/core/task"
	"coder/internal/core/uip"
	"coder/internal/host/atomicfile"
	"coder/internal/host/authkey"
	"coder/internal/host/program"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Order is what a worker tells the process that runs a task. It names secrets by
// the files that hold them.
type Order struct {
	Task   queue.Task    `json:"task"`
	Run    string        `json:"run"` // the claim to write under
	Link   engine.Link   `json:"link"`
	Fleet  string        `json:"fleet"` // the folder of the fleet
	Answer *queue.Answer `json:"answer,omitempty"`
}

// Outcome is what a process that ran a task says at its end.
type Outcome struct {
	Status   queue.Status  `json:"status"` // Queued says that it has to be tried again
	Reason   string        `json:"reason,omitempty"`
	Question *uip.Request  `json:"question,omitempty"`
	Result   *queue.Result `json:"result,omitempty"`
	Commit   string        `json:"commit,omitempty"`
	CostUSD  float64       `json:"cost_usd"`
	// Attempts, if set, is how often this sort of trouble is worth another try.
	Attempts int `json:"attempts,omitempty"`
}

// beginAttempts is how often a task is tried that cannot be begun: a repository that
// cannot be cloned, a worker that may not run it, settings that are wrong.
const beginAttempts = 3

// Run does what an order says, in a process of its own, and says on stdout what
// came of it.
func Run(ctx context.Context, env cli.Env, o Order) error {
	r := &run{Order: o, env: env}
	out, err := r.run(ctx)
	if err != nil {
		out = Outcome{Status: queue.Queued, Reason: err.Error(), Attempts: out.Attempts}
	}
	text, err := json.Marshal(out)
	if err != nil {
		return err
	}
	_, err = env.Stdout.Write(text)
	return err
}

type run struct {
	Order
	dir      string // to work in, held
	env      cli.Env
	conn     *nats.Conn
	js       jetstream.JetStream
	queue    *queue.Queue
	logs     *jetstore.Store
	sessions *jetstore.Sessions
	key      *authkey.Key // of the fleet
	folder   *checkout.Folder

	deeds       map[string]bool // calls under way that may change files
	checkpoints []string        // made so far, the last one last
}

func (r *run) run(ctx context.Context) (out Outcome, err error) {
	if r.key, err = authkey.Open(r.Fleet); err != nil {
		return out, err
	}
	defer func() {
		if r.conn != nil {
			r.conn.Close()
		}
	}()
	if err := patiently(ctx, r.connect); err != nil {
		return out, err
	}
	v, err := r.look(ctx)
	if err != nil {
		return out, err
	}
	if out, settled := r.settled(v); settled {
		return out, nil
	}
	place, err := enter(r.queue.Settings.Work, r.Task.ID)
	if err != nil {
		return out, err
	}
	defer place.leave()
	r.dir = place.inside()
	if err := atomicfile.Write(filepath.Join(r.dir, taskFile), jsonx.MustMarshal(r.Task), 0o600); err != nil {
		return out, err
	}
	r.folder, err = checkout.Clone(ctx, filepath.Join(r.dir, "repo"), r.Task.Spec.Repo,
		cmp.Or(r.Task.Commit, r.Task.Spec.Base), program.NewOutside(r.env.Environ, r.dir))
	if err != nil {
		return Outcome{Attempts: beginAttempts}, err
	}
	if err := r.restore(ctx); err != nil {
		return out, err
	}
	said := ""
	if !v.task.Status.IsEnded() {
		code := 0
		if said, code, err = r.work(ctx, v); err != nil {
			return out, err
		}
		if slices.Contains(hopeless, code) {
			out.Attempts = beginAttempts
		}
		if v, err = r.look(ctx); err != nil {
			return out, err
		}
	}
	if out, settled := r.settled(v); settled {
		return out, nil
	}
	if !v.task.Status.IsEnded() {
		return out, errors.New(cmp.Or(said, "the program ended before the task finished"))
	}
	return r.end(ctx, v)
}

// connect joins the fleet.
func (r *run) connect(ctx context.Context) (err error) {
	if r.conn == nil {
		if r.conn, r.js, err = r.Link.Dial("task " + r.Task.ID); err != nil {
			return err
		}
	}
	if r.queue, err = queue.Open(ctx, r.js, r.env.Now, SealKey(r.key)); err != nil {
		return err
	}
	if r.logs, err = jetstore.Open(ctx, r.js, r.queue.Layout,
		jetstore.Options{Token: r.Run, Checkpoint: r.checkpoint}); err != nil {
		return err
	}
	r.sessions, err = jetstore.OpenSessions(ctx, r.js, r.queue.Layout)
	return err
}

func (r *run) look(ctx context.Context) (v view, err error) {
	err = patiently(ctx, func(ctx context.Context) error {
		v, err = foldLog(r.logs.Read(ctx, r.Task.ID, 0))
		return err
	})
	return v, err
}

// settled reports whether nothing can be done now: a question is open, and the
// answer to it did not come along.
func (r *run) settled(v view) (Outcome, bool) {
	if v.task.Status.IsEnded() || len(v.open) == 0 {
		return Outcome{}, false
	}
	q := v.open[0]
	out := Outcome{Status: queue.Waiting, Question: &q, CostUSD: v.cost, Commit: r.Task.Commit}
	switch a := r.Answer; {
	case a == nil:
	case a.Response.ID == q.ID && a.Question == queue.Sum(q) && a.Task == r.Task.ID:
		if err := uip.CheckResponse(q, a.Response); err == nil {
			return out, false
		}
		out.Reason = "an answer was refused: it does not fit the question"
	case a.Response.ID == q.ID:
		out.Reason = "an answer was refused: it is for another question"
	}
	return out, true
}

// restore notes what the clone is of, and brings it to where the last checkpoint
// was made.
func (r *run) restore(ctx context.Context) error {
	if r.Task.Commit == "" { // from now on, wherever it goes on, it is this one
		r.Task.Commit = r.folder.Base
		err := patiently(ctx, func(ctx context.Context) error {
			_, err := r.queue.Change(ctx, r.Task.ID, func(t *queue.Task) error {
				if t.Run != r.Run {
					return queue.ErrMoved
				}
				t.Commit = r.folder.Base
				return nil
			})
			return err
		})
		if err != nil {
			return err
		}
	}
	var bundle bytes.Buffer
	err := patiently(ctx, func(ctx context.Context) error {
		tip, err := r.logs.Tip(ctx, r.Task.ID)
		if err != nil || tip.Checkpoint == "" {
			return err
		}
		r.checkpoints = []string{tip.Checkpoint}
		bundle.Reset()
		return r.queue.Fetch(ctx, tip.Checkpoint, &bundle)
	})
	if err != nil || bundle.Len() == 0 {
		return err
	}
	file := filepath.Join(r.dir, "checkpoint")
	if err := atomicfile.Write(file, bundle.Bytes(), 0o600); err != nil {
		return err
	}
	return r.folder.Restore(ctx, file)
}

// hopeless are the exit codes that say that the task could not be begun here, and
// will not be soon: its settings or those of the worker are wrong.
var hopeless = []int{cli.ExitUsage, cli.ExitAuth, cli.ExitInput, cli.ExitSandbox, cli.ExitConfig, cli.ExitUntrusted}

// work runs the ordinary program on the task, from where its log ends, and returns
// what it complained of last, and its exit code.
func (r *run) work(ctx context.Context, v view) (said string, code int, err error) {
	env := r.env
	env.Dir = r.folder.Dir
	var complaints tail
	env.Stdin, env.Stdout, env.Stderr = strings.NewReader(""), io.Discard, &complaints
	env.IsPiped = func() bool { return false }
	env.Terminal = func() (in, out *os.File, ok bool) { return nil, nil, false }
	var here event.Store
	env.WrapStore = func(s event.Store) event.Store {
		here = s
		return s
	}
	a, err := open(env)
	if err != nil {
		return "", 0, err
	}
	seals := sealing{here: a.Store().SealKey(), fleet: r.key, root: a.Root, id: r.Task.ID}
	if v.result.Records > 0 {
		if err := bring(ctx, r.logs.Read(ctx, r.Task.ID, 0), here, r.Task.ID, seals.inward()); err != nil {
			return "", 0, err
		}
	}
	var unkept error
	env.WrapStore = func(s event.Store) event.Store {
		return &tee{Store: s, fleet: r.logs, seals: seals.outward, failed: func(err error) { unkept = err }}
	}
	if r.Answer != nil && len(v.open) > 0 {
		if a, err = open(env); err != nil {
			return "", 0, err
		}
		answer := r.Answer.Response
		answer.AnsweredBy = r.Answer.Via()
		if err := a.Store().Supervisor.Answer(ctx, r.Task.ID, answer); err != nil {
			return "", 0, message.Errorf("record the answer: %w", err)
		}
	}
	if env.Args, err = r.arguments(v); err != nil {
		return "", 0, err
	}
	code = cli.Main(env)
	if snap, err := a.Store().Supervisor.LoadSnapshot(ctx, r.Task.ID); err == nil {
		_ = r.sessions.Save(ctx, snap) // it can be made again from the log
	}
	if unkept != nil {
		return unkept.Error(), 0, nil
	}
	return sanitize.Line(fmt.Sprintf("%s (exit code %d)", complaints.last(), code), 400), code, nil
}

// open puts the program together for the folder of the task.
func open(env cli.Env) (*app.Workspace, error) {
	settings, err := app.Load(env.Env, app.Options{})
	if err != nil {
		return nil, err
	}
	return app.New(env.Env, app.Options{}, settings, func(string) {})
}

// arguments are the command line of the task.
func (r *run) arguments(v view) ([]string, error) {
	s := r.Task.Spec
	args := []string{"-p", "--on-ask", "park", "--output-format", "json"}
	add := func(flag, value string) {
		if value != "" {
			args = append(args, flag, value)
		}
	}
	add("--mode", s.Mode)
	add("--provider", s.Provider)
	add("--model", s.Model)
	if s.BudgetUSD > 0 {
		add("--max-budget-usd", strconv.FormatFloat(s.BudgetUSD, 'f', -1, 64))
	}
	if s.MaxSteps > 0 {
		add("--max-steps", strconv.Itoa(s.MaxSteps))
	}
	if s.Script != "" {
		file := filepath.Join(r.dir, "script")
		if err := atomicfile.Write(file, []byte(s.Script), 0o600); err != nil {
			return nil, err
		}
		add("--script", file)
	}
	switch {
	case v.result.Records == 0:
		return append(args, "--session-id", r.Task.ID, "--", s.Prompt), nil
	case v.task.Status == "": // it was opened, and nothing was said in it yet
		return append(args, "--resume", r.Task.ID, "--", s.Prompt), nil
	}
	return append(args, "--resume", r.Task.ID), nil
}

// checkpoint keeps the files before records are written that say what was done to
// them, or that decide something.
func (r *run) checkpoint(ctx context.Context, rs []event.Record) (string, error) {
	due := false
	for _, record := range rs {
		switch e := record.Event.(type) {
		case event.ToolCallRequested:
			if event.ChangesWorld(e) {
				if r.deeds == nil {
					r.deeds = make(map[string]bool)
				}
				r.deeds[e.CallID] = true
			}
		case event.ToolCallCompleted:
			due = due || r.deeds[e.CallID]
			delete(r.deeds, e.CallID)
		case event.InteractionRequested, event.TaskCompleted, event.TaskFailed, event.TaskCanceled:
			due = true
		}
	}
	if !due || r.folder == nil {
		return "", nil
	}
	file, err := r.folder.Checkpoint(ctx)
	if err != nil || file == "" {
		return "", err
	}
	name, err := r.keep(ctx, fmt.Sprintf("checkpoint-%d", rs[0].Seq), file)
	if err != nil {
		return "", err
	}
	r.checkpoints = append(r.checkpoints, name)
	if n := len(r.checkpoints); n > 2 { // the one before may still be the last on record
		_ = r.queue.Drop(ctx, r.checkpoints[n-3])
	}
	return name, nil
}

// keep stores a file of the task, and returns its name.
func (r *run) keep(ctx context.Context, kind, file string) (name string, err error) {
	err = patiently(ctx, func(ctx context.Context) error {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		name, err = r.queue.Put(ctx, r.Task.ID, r.Run, kind, f)
		return err
	})
	return name, err
}

// tryTime is how long one attempt to reach the engine may take.
const tryTime = 30 * time.Second

// patiently does something that needs the engine, again and again if it is away.
func patiently(ctx context.Context, do func(context.Context) error) error {
	for end := time.Now().Add(patience); ; {
		trying, stop := context.WithTimeout(ctx, tryTime)
		err := do(trying)
		stop()
		final := err == nil || errors.Is(err, event.ErrConflict) || errors.Is(err, queue.ErrMoved) ||
			errors.Is(err, queue.ErrNotFound) || errors.Is(err, fs.ErrNotExist)
		if final || ctx.Err() != nil || time.Now().After(end) {
			return err
		}
		wait(ctx, 500*time.Millisecond)
	}
}

// end makes the result of a task whose log has an end.
func (r *run) end(ctx context.Context, v view) (Outcome, error) {
	status := map[task.Status]queue.Status{task.StatusDone: queue.Done, task.StatusFailed: queue.Failed,
		task.StatusCanceled: queue.Canceled}[v.task.Status]
	out := Outcome{Status: status, Reason: v.task.Reason, CostUSD: v.cost, Commit: r.Task.Commit, Result: &v.result}
	out.Result.Decisions = v.decisions(ctx, r.queue, r.Task.ID)
	made, err := r.folder.Result(ctx, queue.Branch(r.Task.ID), sanitize.Line(r.Task.Spec.Prompt, 72))
	if err != nil {
		return out, err
	}
	if made.Branch != "" {
		out.Result.Branch, out.Result.Commit = made.Branch, made.Commit
		if out.Result.Bundle, err = r.keep(ctx, "bundle", made.Bundle); err == nil {
			out.Result.Patch, err = r.keep(ctx, "patch", made.Patch)
		}
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// tail keeps the last of what is written.
type tail struct{ text []byte }

func (t *tail) Write(b []byte) (int, error) {
	t.text = append(t.text, b...)
	if over := len(t.text) - 8<<10; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(b), nil
}

// last is the last line.
func (t *tail) last() string {
	lines := strings.Split(strings.TrimSpace(string(t.text)), "\n")
	return strings.TrimPrefix(lines[len(lines)-1], "coder: ")
}
