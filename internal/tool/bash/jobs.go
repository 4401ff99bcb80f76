//go:build unix

package bash

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"coder/internal/core/display"
	"coder/internal/core/message"
	"coder/internal/host/shell"
	"coder/internal/tool"
)

const (
	maxRunningJobs  = 16 // concurrent background jobs
	maxJobs         = 64 // remembered jobs, including ended ones
	maxUnreadOutput = 64 << 10
	maxLastLine     = 1 << 10 // bytes searched for the last line
	// firstOutputWait is how long a call that starts a job waits for its
	// first output, so that an immediate failure is noticed.
	firstOutputWait = 300 * time.Millisecond
	maxWait         = time.Minute
)

// Jobs are a session's background jobs. They end with Close. It is safe for concurrent use.
type Jobs struct {
	options Options

	mu         sync.Mutex // guards the fields below
	jobs       []*job     // oldest first
	startCount int
	closed     bool
	running    sync.WaitGroup
}

// Close stops every job and waits for all to end. No job can be started afterwards.
func (j *Jobs) Close() error {
	j.mu.Lock()
	j.closed = true
	for _, b := range j.jobs {
		b.stop()
	}
	j.mu.Unlock()
	j.running.Wait()
	return nil
}

// Stop stops a job, without waiting, and reports whether a job with that id exists.
func (j *Jobs) Stop(id string) bool {
	b, err := j.find(id)
	if err != nil {
		return false
	}
	b.stop()
	return true
}

// job is one background job.
type job struct {
	id, command string
	startTime   time.Time
	stop        context.CancelFunc
	started     chan struct{} // closed when it is running
	done        chan struct{} // closed when it has ended or failed to start

	mu       sync.Mutex // guards the fields below
	unread   []byte     // the latest unread output
	dropped  int        // dropped bytes of it
	changed  chan struct{}
	log      *outputLog
	logPath  string
	outcome  shell.Outcome
	err      error
	stopped  bool
	duration time.Duration
	waiters  int    // calls that wait for its end and report it
	reported bool   // its end was reported
	tail     []byte // the end of its output
}

// Write adds cleaned output as it comes.
func (b *job) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, _ = b.log.Write(p)
	b.unread = append(b.unread, p...)
	if over := len(b.unread) - maxUnreadOutput; over > 0 {
		b.dropped += over
		b.unread = append(b.unread[:0:0], b.unread[over:]...)
	}
	b.tail = append(b.tail, p[max(0, len(p)-maxLastLine):]...)
	b.tail = b.tail[max(0, len(b.tail)-maxLastLine):]
	select {
	case b.changed <- struct{}{}:
	default:
	}
	return len(p), nil
}

// start starts a job and returns once it has printed something, has ended or has been quiet for a moment.
func (j *Jobs) start(ctx context.Context, line tool.Line, c Confinement) (tool.Result, error) {
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	b, err := j.launch(line, c)
	if err != nil {
		return tool.Result{}, err
	}
	defer b.removeWaiter()
	select {
	case <-b.started:
		b.await(ctx, firstOutputWait)
	case <-b.done:
	case <-ctx.Done():
	}
	return j.report(b), nil
}

// launch starts a job that runs until it ends, is stopped, or the jobs are closed.
func (j *Jobs) launch(line tool.Line, c Confinement) (*job, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	running := 0
	for _, b := range j.jobs {
		if !b.hasEnded() {
			running++
		}
	}
	switch {
	case j.closed:
		return nil, errors.New("the session is ending; no new commands can start")
	case running >= maxRunningJobs:
		return nil, message.Errorf("%d commands are already running in the background; stop one first", running)
	}
	ctx, stop := context.WithCancel(context.Background()) // it outlives the call, but not coder
	j.startCount++
	command := line.Original()
	b := &job{id: fmt.Sprintf("job-%d", j.startCount), command: command, stop: stop, log: j.options.newLog(command)}
	b.started, b.done, b.changed = make(chan struct{}), make(chan struct{}), make(chan struct{}, 1)
	b.logPath, b.waiters = b.log.ensureFile(), 1
	if j.options.Now != nil {
		b.startTime = j.options.Now()
	}
	j.jobs = append(j.jobs, b)
	for i := 0; i < len(j.jobs) && len(j.jobs) > maxJobs; { // drop the oldest ended jobs
		if j.jobs[i].hasEnded() {
			j.jobs = append(j.jobs[:i:i], j.jobs[i+1:]...)
		} else {
			i++
		}
	}
	j.running.Go(func() {
		defer j.announceEnd(b)
		defer close(b.done)
		defer b.stop()
		live := newLive(b, nil, j.options.Concealer)
		spec := j.options.spec(line, c, live)
		spec.Started = func() { close(b.started) }
		out, said, err := c.run(ctx, spec)
		live.flush()
		if c.CheckAfter != nil {
			said = tool.JoinNotes(said, c.CheckAfter(context.WithoutCancel(ctx)))
		}
		if said != "" {
			_, _ = b.Write([]byte("[" + said + "]\n"))
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.log.close()
		b.outcome, b.err, b.stopped = out, err, ctx.Err() != nil
		if j.options.Now != nil {
			b.duration = j.options.Now().Sub(b.startTime)
		}
	})
	return b, nil
}

// announceEnd reports the end of a job for which no call waits.
func (j *Jobs) announceEnd(b *job) {
	j.mu.Lock()
	closed := j.closed
	j.mu.Unlock()
	b.mu.Lock()
	waits := b.waiters > 0
	end := b.end()
	b.mu.Unlock()
	if !closed && !waits && j.options.OnJobEnd != nil {
		j.options.OnJobEnd(end)
	}
}

// JobEnd is how a background job ended.
type JobEnd struct {
	Job, Command string
	Outcome      string // such as exit 0
	LastLine     string // its last line of output
	Duration     time.Duration
}

// end returns how the job ended. The caller holds mu.
func (b *job) end() JobEnd {
	e := JobEnd{Job: b.id, Command: commandTitle(b.command), Duration: b.duration}
	lines := strings.Split(strings.TrimSpace(string(b.tail)), "\n")
	e.LastLine = lines[len(lines)-1]
	switch s := b.status("", true); {
	case s.ExitCode == nil:
		e.Outcome = string(s.State)
	case s.Signal != "":
		e.Outcome = "signal " + s.Signal
	default:
		e.Outcome = fmt.Sprintf("exit %d", *s.ExitCode)
	}
	return e
}

// TakeEnds returns the unreported ends of jobs, each once.
func (j *Jobs) TakeEnds() (all []JobEnd) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, b := range j.jobs {
		if !b.hasEnded() {
			continue
		}
		b.mu.Lock()
		if !b.reported && b.waiters == 0 {
			b.reported = true
			all = append(all, b.end())
		}
		b.mu.Unlock()
	}
	return all
}

// addWaiter records that a call waits for the job and reports its status.
func (b *job) addWaiter() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiters++
}

func (b *job) removeWaiter() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiters--
}

func (b *job) hasEnded() bool {
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// await waits for output or the end, at most for the given time.
func (b *job) await(ctx context.Context, within time.Duration) {
	b.mu.Lock()
	ready := len(b.unread) > 0
	b.mu.Unlock()
	if ready || within <= 0 {
		return
	}
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case <-b.changed:
	case <-b.done:
	case <-late.C:
	case <-ctx.Done():
	}
}

// find returns the job with an id, or with only its number.
func (j *Jobs) find(id string) (*job, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var known []string
	for _, b := range j.jobs {
		if b.id == id || strings.TrimPrefix(b.id, "job-") == id {
			return b, nil
		}
		known = append(known, b.id)
	}
	if len(known) == 0 {
		return nil,
			message.Errorf("unknown job %q; no job was started in this run, and earlier jobs ended with their run", id)
	}
	return nil, message.Errorf("unknown job %q; use one of %s", id, strings.Join(known, ", "))
}

// jobResult is a job's result for the model.
type jobResult struct {
	OK bool `json:"ok"`
	jobStatus
	Output  string `json:"output"`
	LogPath string `json:"log_path,omitzero"`
}

// jobStatus is the status of a job.
type jobStatus struct {
	ID       string   `json:"id"`
	Command  string   `json:"command"`
	State    runState `json:"state"`
	Running  bool     `json:"running"`
	ExitCode *int     `json:"exit_code,omitempty"`
	Signal   string   `json:"signal,omitzero"`
	Error    string   `json:"error,omitzero"`
}

// report returns a job's status and its output since the last report.
func (j *Jobs) report(b *job) tool.Result {
	ended := b.hasEnded() // checked first, so that no final output is missed
	b.mu.Lock()
	defer b.mu.Unlock()
	r := jobResult{jobStatus: b.status(b.command, ended), LogPath: b.logPath}
	r.OK = r.State != stateNotStarted
	b.reported = b.reported || ended
	r.Output = strings.ToValidUTF8(string(b.unread), "\ufffd")
	if b.dropped > 0 {
		r.Output = fmt.Sprintf("[%d bytes left out]\n%s", b.dropped, r.Output)
	}
	if text, cut := truncateOutput(r.Output, false); cut {
		r.Output = text
	}
	b.unread, b.dropped = nil, 0
	summary := fmt.Sprintf("%s %s", b.id, r.State)
	if r.ExitCode != nil {
		summary += fmt.Sprintf(", exit %d", *r.ExitCode)
	}
	return tool.Result{Value: r, Failed: !r.OK, Summary: summary,
		Show: outputBlock(tool.ShellResult{Stdout: r.Output, Stderr: r.Error})}
}

// runState is the state of a job in a word or two.
type runState string

const (
	stateRunning    runState = "running"
	stateEnded      runState = "ended"
	stateStopped    runState = "stopped"
	stateNotStarted runState = "not started"
)

// status returns a job's status and how it ended. The caller holds mu.
func (b *job) status(command string, ended bool) jobStatus {
	s := jobStatus{ID: b.id, Command: command, State: stateEnded, Running: !ended}
	switch {
	case !ended:
		s.State = stateRunning
	case b.stopped:
		s.State = stateStopped
	case b.err != nil:
		s.State, s.Error = stateNotStarted, b.err.Error()
	default:
		code := b.outcome.ExitCode
		s.ExitCode, s.Signal = &code, b.outcome.Signal
	}
	return s
}

//go:embed jobs_list.md
var listDoc string

//go:embed job_read.md
var readDoc string

//go:embed job_stop.md
var stopDoc string

// statePlan returns the plan of a call that affects only coder's own state.
func statePlan(what, target string) tool.Plan {
	return tool.Plan{Title: target, Effects: []tool.Effect{{Kind: tool.Note, Target: target}},
		Preview: display.Text(what + " " + target)}
}

//go:embed jobs.md
var jobsDoc string

type noArgs struct{}

type listResult struct {
	OK   bool      `json:"ok"`
	Jobs []Listing `json:"jobs"`
}

// Listing is a background job in a list.
type Listing struct {
	jobStatus
	Seconds   int64  `json:"seconds,omitzero"` // since its start
	HasOutput bool   `json:"unread_output"`
	LogPath   string `json:"log_path,omitzero"`
}

func (j *Jobs) listTool() tool.Tool {
	return tool.Func[noArgs]{
		Name: "jobs_list", Doc: listDoc, Aliases: []tool.Alias{{Name: "list_jobs"}, {Name: "list_shells"}},
		Plan: func(context.Context, noArgs) (tool.Plan, error) { return statePlan("list", "background jobs"), nil },
		Do: func(context.Context, noArgs, io.Writer) (tool.Result, error) {
			list := j.List()
			return tool.Result{Value: listResult{OK: true, Jobs: list}, Summary: tool.FormatCount(len(list), "job", "jobs")}, nil
		},
	}
}

// List returns the background jobs, including ended ones, oldest first.
func (j *Jobs) List() []Listing {
	j.mu.Lock()
	defer j.mu.Unlock()
	list := []Listing{}
	for _, b := range j.jobs {
		list = append(list, b.listing(j.options.Now))
	}
	return list
}

func (b *job) listing(now func() time.Time) Listing {
	ended := b.hasEnded()
	b.mu.Lock()
	defer b.mu.Unlock()
	l := Listing{jobStatus: b.status(commandTitle(b.command), ended), HasOutput: len(b.unread) > 0, LogPath: b.logPath}
	if now != nil {
		l.Seconds = int64(now().Sub(b.startTime).Seconds())
	}
	if ended {
		l.Seconds = int64(b.duration.Seconds())
	}
	return l
}

type readArgs struct {
	ID     string `json:"id" also:"job_id bash_id shell_id job"`
	WaitMS int    `json:"wait_ms,omitzero" also:"timeout timeout_ms wait" doc:"read: wait for output, at most 60000"`
}

func (j *Jobs) readTool() tool.Tool {
	return tool.Func[readArgs]{
		Name: "job_read", Doc: readDoc, Aliases: []tool.Alias{{Dialect: tool.Sema, Name: "BashOutput"}, {Name: "read_job"},
			{Name: "job_output"}, {Name: "get_output"}},
		PlanRun: func(_ context.Context, a readArgs) (tool.Plan, tool.Run, error) {
			if a.WaitMS < 0 {
				return tool.Plan{}, nil, errors.New("wait_ms must not be negative")
			}
			b, err := j.find(a.ID)
			if err != nil {
				return tool.Plan{}, nil, err
			}
			return statePlan("read the output of", b.id), func(ctx context.Context, _ io.Writer) (tool.Result, error) {
				b.addWaiter()
				defer b.removeWaiter()
				b.await(ctx, min(time.Duration(min(a.WaitMS, 1<<31))*time.Millisecond, maxWait))
				if err := ctx.Err(); err != nil {
					return tool.Result{}, err
				}
				return j.report(b), nil
			}, nil
		},
	}
}

type stopArgs struct {
	ID string `json:"id" also:"job_id bash_id shell_id job" doc:"which job"`
}

func (j *Jobs) stopTool() tool.Tool {
	return tool.Func[stopArgs]{
		Name: "job_stop", Doc: stopDoc, Aliases: []tool.Alias{{Dialect: tool.Sema, Name: "KillShell"}, {Name: "KillBash"},
			{Name: "stop_job"}, {Name: "kill_job"}},
		PlanRun: func(_ context.Context, a stopArgs) (tool.Plan, tool.Run, error) {
			b, err := j.find(a.ID)
			if err != nil {
				return tool.Plan{}, nil, err
			}
			return statePlan("stop "+commandTitle(b.command)+",", b.id),
				func(ctx context.Context, _ io.Writer) (tool.Result, error) {
					if err := ctx.Err(); err != nil {
						return tool.Result{}, err
					}
					b.addWaiter()
					defer b.removeWaiter()
					b.stop()
					<-b.done
					return j.report(b), nil
				}, nil
		},
	}
}
