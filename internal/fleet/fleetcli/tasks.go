package fleetcli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"coder/internal/app"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/core/sanitize"
	"coder/internal/core/uip"
	"coder/internal/fleet/checkout"
	"coder/internal/fleet/queue"
	"coder/internal/fleet/worker"
	"coder/internal/host/atomicfile"
	"coder/internal/host/authkey"
	"coder/internal/host/gitsafe"
	"coder/internal/host/repofile"
	"coder/internal/policy/mode"
	"coder/internal/ui/events"
)

// handing are the flags of submit.
type handing struct {
	spec   queue.Spec
	count  int
	script string
}

// given are the flags of the commands about a task.
type given struct {
	option, input, comment string
	parts                  []string
	all, patch, branch     bool
	listen                 string
	older                  string // what prune looks for
	yes                    bool
}

func (c *call) submitFlags(f *flag.FlagSet) {
	s := &c.handing.spec
	f.StringVar(&s.Repo, "repo", "", "")
	f.StringVar(&s.Base, "base", "", "")
	f.StringVar(&s.Mode, "mode", "", "")
	f.StringVar(&s.Provider, "provider", "", "")
	f.StringVar(&s.Model, "model", "", "")
	f.Float64Var(&s.BudgetUSD, "max-budget-usd", 0, "")
	f.IntVar(&s.MaxSteps, "max-steps", 0, "")
	f.IntVar(&s.MaxAttempts, "max-attempts", 0, "")
	f.IntVar(&c.handing.count, "count", 1, "")
	f.StringVar(&c.handing.script, "script", "", "")
}

const (
	maxPrompt = 1 << 20
	maxScript = 1 << 20
	maxCount  = 10_000
)

// submit hands in tasks.
func (c *call) submit(ctx context.Context) error {
	s := &c.handing.spec
	s.Prompt = strings.Join(c.args, " ")
	switch {
	case strings.TrimSpace(s.Prompt) == "" || s.Prompt == "-":
		return usagef(`coder fleet submit needs a task: coder fleet submit "mend the tests" --repo PATH`)
	case len(s.Prompt) > maxPrompt:
		return usagef("the task is longer than %d bytes", maxPrompt)
	case s.Repo == "":
		return usagef("coder fleet submit needs --repo, a path or an address")
	case s.Mode != "" && !slices.Contains(mode.Names(), s.Mode):
		return usagef("--mode must be one of %s, not %q", strings.Join(mode.Names(), ", "), s.Mode)
	case !(s.BudgetUSD >= 0) || s.BudgetUSD > 1e9 || s.MaxSteps < 0 || s.MaxAttempts < 0:
		return usagef("--max-budget-usd, --max-steps and --max-attempts are not negative")
	case c.handing.count < 1 || c.handing.count > maxCount:
		return usagef("--count must be from 1 to %d", maxCount)
	}
	if !strings.Contains(s.Repo, ":") || exists(s.Repo) {
		path, err := filepath.Abs(s.Repo)
		if err != nil {
			return err
		}
		if !exists(path) {
			return usagef("there is no repository %s", path)
		}
		s.Repo = path
	}
	if err := checkout.CheckRepo(s.Repo); err != nil {
		return usageError{err}
	}
	if c.handing.script != "" {
		text, err := repofile.Named(c.handing.script, maxScript)
		if err != nil {
			return fmt.Errorf("read the script: %w", err)
		}
		s.Script = string(text)
	}
	if err := c.reach(ctx); err != nil {
		return err
	}
	for range c.handing.count {
		t, err := c.Submit(ctx, app.NewID("task"), *s, c.me())
		if err != nil {
			return err
		}
		fmt.Fprintln(c.Stdout, t.ID)
	}
	return nil
}

func (c *call) psFlags(f *flag.FlagSet) { f.BoolVar(&c.given.all, "all", false, "") }

// shownEnded is how many tasks that have ended are listed unless all are asked for.
const shownEnded = 20

// ps lists the tasks.
func (c *call) ps(ctx context.Context) error {
	if err := c.reach(ctx); err != nil {
		return err
	}
	tasks, err := c.List(ctx)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(tasks)
	}
	if len(tasks) == 0 {
		c.say("there are no tasks; coder fleet submit hands one in")
		return nil
	}
	ended := 0
	for _, t := range tasks {
		if t.Status.Ended() {
			ended++
		}
	}
	for _, t := range tasks {
		if t.Status.Ended() && !c.given.all {
			if ended--; ended >= shownEnded {
				continue
			}
		}
		c.row(t)
	}
	return nil
}

func (c *call) row(t queue.Task) {
	line := fmt.Sprintf("%-18s %-9s %5s  %s", t.ID, c.words.T(string(t.Status)), age(c.Now(), t.Created), sanitize.Line(t.Spec.Prompt, 60))
	if t.CostUSD > 0 {
		line += fmt.Sprintf("  $%.4f", t.CostUSD)
	}
	fmt.Fprintln(c.Stdout, line)
	if t.Status == queue.Running {
		fmt.Fprintln(c.Stdout, "    "+c.words.T("with worker %s", oneLine(t.Worker)))
	}
	if t.Reason != "" {
		fmt.Fprintln(c.Stdout, "    "+c.words.Said(sanitize.Line(t.Reason, 300)))
	}
	if t.Result != nil && t.Result.Unknown > 0 {
		fmt.Fprintln(c.Stdout, "    "+c.words.T("calls of unknown outcome: %d", t.Result.Unknown))
	}
	if q := t.Question; q != nil {
		c.question(*q)
	}
}

// question shows what a task waits for.
func (c *call) question(q uip.Request) {
	fmt.Fprintln(c.Stdout, c.words.T("    waits for an answer: %s", sanitize.Reveal(oneLine(c.words.Said(q.Display.Title)))))
	if q.Display.Description != "" {
		fmt.Fprintln(c.Stdout, "      "+sanitize.Reveal(oneLine(c.words.Said(q.Display.Description))))
	}
	how := "--input TEXT"
	if len(q.Options) > 0 {
		var ids []string
		for _, o := range q.Options {
			ids = append(ids, o.ID)
		}
		how = "--option " + strings.Join(ids, "|")
	}
	for _, p := range q.Parts {
		fmt.Fprintln(c.Stdout, "      "+p.ID+": "+sanitize.Reveal(oneLine(p.Display.Title)))
	}
	fmt.Fprintf(c.Stdout, "      coder fleet answer %s %s\n", q.ID, how)
}

func (c *call) printJSON(v any) error {
	_, err := fmt.Fprintf(c.Stdout, "%s\n", jsonx.Must(v))
	return err
}

// listWorkers lists who works.
func (c *call) listWorkers(ctx context.Context) error {
	if err := c.reach(ctx); err != nil {
		return err
	}
	all, err := c.Workers(ctx)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(all)
	}
	for _, w := range all {
		fmt.Fprintf(c.Stdout, "%-24s %d/%d  %s  %s\n", w.Name, w.Busy, w.Slots, w.Version, c.words.Said(w.State))
	}
	return nil
}

// find is the task that an argument names: by its id or by that of its question.
func (c *call) find(ctx context.Context) (queue.Task, error) {
	id, err := c.one("task")
	if err == nil {
		err = c.reach(ctx)
	}
	if err != nil {
		return queue.Task{}, err
	}
	t, err := c.Get(ctx, id)
	if !errors.Is(err, queue.ErrNotFound) {
		return t, err
	}
	all, listErr := c.List(ctx)
	for _, t := range all {
		if t.Question != nil && t.Question.ID == id {
			return t, nil
		}
	}
	return t, cmp.Or(listErr, err)
}

// logs shows the log of a task as it is now.
func (c *call) logs(ctx context.Context) error {
	t, err := c.find(ctx)
	if err != nil {
		return err
	}
	s, err := c.store(ctx)
	if err != nil {
		return err
	}
	return c.show(ctx, s.Read(ctx, t.ID, 0), func(event.Record) {})
}

// watch shows the log of a task until it waits or ends.
func (c *call) watch(ctx context.Context) error {
	t, err := c.find(ctx)
	if err != nil {
		return err
	}
	s, err := c.store(ctx)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan queue.Task, 1)
	go func() { // it ends with ctx
		for ctx.Err() == nil {
			if t, err := c.Get(ctx, t.ID); err == nil && (t.Status.Ended() || t.Status == queue.Waiting) {
				ended <- t
				stop()
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(300 * time.Millisecond):
			}
		}
	}()
	last := uint64(0)
	err = c.show(ctx, s.Watch(ctx, t.ID, 0), func(r event.Record) { last = r.Seq })
	select {
	case t := <-ended:
		if err := c.show(context.WithoutCancel(ctx), s.Read(context.WithoutCancel(ctx), t.ID, last), func(event.Record) {}); err != nil {
			return err
		}
		if !c.json {
			c.row(t)
		}
		return nil
	default:
		return err
	}
}

// show prints records until there are no more, and tells of each.
func (c *call) show(ctx context.Context, records iter.Seq2[event.Record, error], shown func(event.Record)) error {
	out := event.SinkFunc(func(_ context.Context, r event.Record) error {
		if text := line(r); text != "" {
			_, err := fmt.Fprintf(c.Stdout, "%5d %s  %s\n", r.Seq, r.Time.Local().Format(time.TimeOnly), text)
			return err
		}
		return nil
	})
	var face event.Sink = out
	if c.json {
		face = events.New(c.Stdout, events.Native)
	}
	for r, err := range records {
		if err != nil {
			return err
		}
		if err := face.Emit(ctx, r); err != nil {
			return err
		}
		shown(r)
	}
	return nil
}

// line is a record in one line, for people.
func line(r event.Record) string {
	short := func(s string) string { return sanitize.Line(s, 160) }
	switch e := r.Event.(type) {
	case event.TaskCreated:
		return "> " + short(e.Intent)
	case event.MessageAdded:
		if text := e.Message.Text(); e.Message.Role == chat.Assistant && strings.TrimSpace(text) != "" {
			return short(text)
		}
	case event.ToolCallRequested:
		return e.Tool + " " + short(strings.Join(event.Targets(e.Effects), ", "))
	case event.ToolCallCompleted:
		switch {
		case e.Unknown:
			return e.Tool + ": unknown outcome"
		case e.IsError:
			return e.Tool + ": failed"
		}
		return fmt.Sprintf("%s: %d ms", e.Tool, e.DurationMs)
	case event.InteractionRequested:
		return "? " + short(e.Display.Title)
	case event.InteractionResponded:
		who := e.Author
		if words := strings.Fields(e.Via); len(words) > 1 {
			who = words[1]
		}
		return "= " + short(e.Option+e.Input+" "+e.Comment) + " (" + short(who) + ")"
	case event.TaskCompleted:
		return "done"
	case event.TaskFailed:
		return "failed: " + short(e.Reason)
	case event.TaskCanceled:
		return "canceled: " + short(e.Reason)
	}
	return ""
}

func (c *call) answerFlags(f *flag.FlagSet) {
	f.StringVar(&c.given.option, "option", "", "")
	f.StringVar(&c.given.input, "input", "", "")
	f.StringVar(&c.given.comment, "comment", "", "")
	f.Func("answer", "", func(v string) error {
		if part, option, ok := strings.Cut(v, "="); !ok || part == "" || option == "" {
			return fmt.Errorf("--answer wants PART=ID, not %q", v)
		}
		c.given.parts = append(c.given.parts, v)
		return nil
	})
}

// answer signs an answer and sends it.
func (c *call) answer(ctx context.Context) error {
	t, err := c.find(ctx)
	if err != nil {
		return err
	}
	q := t.Question
	if q == nil || t.Status != queue.Waiting {
		return usagef("task %s waits for no answer: it is %s", t.ID, t.Status)
	}
	r := uip.Response{ID: q.ID, TaskID: q.TaskID, Author: event.ActorUser, Option: c.given.option, Input: c.given.input, Comment: c.given.comment}
	for _, part := range c.given.parts {
		id, option, _ := strings.Cut(part, "=")
		r.Parts = append(r.Parts, uip.Response{ID: id, Option: option})
	}
	if err := uip.Check(*q, r); err != nil {
		return usageError{err}
	}
	key, err := c.personKey()
	if err != nil {
		return err
	}
	a := queue.Answer{Task: t.ID, Question: queue.Sum(*q), Response: r, By: c.me(), At: c.Now().UTC()}
	a.Sign(key)
	if err := c.Verify(ctx, a); err != nil {
		return err
	}
	if err := c.Respond(ctx, a); err != nil {
		return err
	}
	c.say("answered; a worker goes on with task %s", t.ID)
	return nil
}

// cancel ends a task.
func (c *call) cancel(ctx context.Context) error {
	t, err := c.find(ctx)
	if err == nil {
		t, err = c.Cancel(ctx, t.ID, c.me())
	}
	if err != nil {
		return err
	}
	if t.Status == queue.Canceled {
		c.say("task %s is canceled", t.ID)
	} else {
		c.say("task %s is being canceled by its worker", t.ID)
	}
	return nil
}

func (c *call) resultFlags(f *flag.FlagSet) {
	f.BoolVar(&c.given.patch, "patch", false, "")
	f.BoolVar(&c.given.branch, "branch", false, "")
}

// result shows what came of a task.
func (c *call) result(ctx context.Context) error {
	t, err := c.find(ctx)
	if err != nil {
		return err
	}
	r := t.Result
	switch {
	case c.json:
		return c.printJSON(t)
	case r == nil:
		return usagef("task %s has no result: it is %s", t.ID, t.Status)
	case (c.given.patch || c.given.branch) && r.Branch == "":
		return usagef("task %s changed no file", t.ID)
	case c.given.patch:
		return c.Fetch(ctx, r.Patch, c.Stdout)
	case c.given.branch:
		return c.fetchBranch(ctx, t)
	}
	c.row(t)
	if r.Answer != "" {
		fmt.Fprintln(c.Stdout, sanitize.Text(r.Answer))
	}
	if r.Branch != "" {
		c.say("branch %s, commit %s on %s; coder fleet result %s --patch or --branch fetches it", r.Branch, r.Commit, t.Commit, t.ID)
	} else {
		c.say("no file was changed")
	}
	switch {
	case r.Check == "":
		c.say("no check ran")
	case r.Verified:
		c.say("checked: %s (exit code %d)", oneLine(r.Check), r.CheckExit)
	default:
		c.say("not checked to the end: %s (exit code %d)", oneLine(r.Check), r.CheckExit)
	}
	c.say("records: %d, calls: %d, refused: %d, of unknown outcome: %d", r.Records, r.Calls, r.Refused, r.Unknown)
	for _, d := range r.Decisions {
		by := d.By
		if d.Signed {
			by = c.words.T("%s, signed", d.By)
		}
		fmt.Fprintf(c.Stdout, "  %s: %s (%s)\n", oneLine(c.words.Said(d.Title)), oneLine(d.Option), oneLine(by))
	}
	return nil
}

// fetchBranch brings the branch of a result into the repository here.
func (c *call) fetchBranch(ctx context.Context, t queue.Task) error {
	var bundle bytes.Buffer
	if err := c.Fetch(ctx, t.Result.Bundle, &bundle); err != nil {
		return err
	}
	file := filepath.Join(c.dir, t.ID+".bundle")
	if err := atomicfile.Write(file, bundle.Bytes(), 0o600); err != nil {
		return err
	}
	defer os.Remove(file)
	settings, err := gitsafe.Inspect(ctx, c.Dir, c.Environ)
	if err != nil {
		return err
	}
	ref := "refs/heads/" + t.Result.Branch
	cmd := exec.CommandContext(ctx, "git", "fetch", "--quiet", "--no-tags", "--", file, ref+":"+ref)
	cmd.Dir, cmd.Env = c.Dir, append(gitsafe.Environment(c.Environ, settings), "GIT_ALLOW_PROTOCOL=file")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("fetch the branch into %s: %w: %s", c.Dir, err, sanitize.Line(string(out), 300))
	}
	c.say("branch %s is here", t.Result.Branch)
	return nil
}

// verify checks logs against the seals of the fleet.
func (c *call) verify(ctx context.Context) error {
	if err := c.reach(ctx); err != nil {
		return err
	}
	tasks, err := c.List(ctx)
	if err != nil {
		return err
	}
	s, err := c.store(ctx)
	if err != nil {
		return err
	}
	key, err := authkey.Open(c.dir)
	if err != nil {
		return err
	}
	checked, bad := 0, 0
	for _, t := range tasks {
		if len(c.args) > 0 && !slices.Contains(c.args, t.ID) || len(c.args) == 0 && !t.Status.Ended() {
			continue
		}
		checked++
		n, err := worker.Verify(s.Read(ctx, t.ID, 0), key, t.ID)
		if err == nil && t.Result != nil && n < t.Result.Records {
			err = fmt.Errorf("%d records are there, and the result is of %d", n, t.Result.Records)
		}
		if err != nil {
			bad++
			fmt.Fprintln(c.Stdout, t.ID+": "+c.words.Said(err.Error()))
		}
	}
	c.say("logs checked: %d, not whole: %d", checked, bad)
	if bad > 0 {
		return errors.New("there are logs that are not whole")
	}
	return nil
}

// restore adds what the fleet lost from the logs on this machine.
func (c *call) restore(ctx context.Context) error {
	if err := c.reach(ctx); err != nil {
		return err
	}
	s, err := c.store(ctx)
	if err != nil {
		return err
	}
	fleet, err := authkey.Open(c.dir)
	if err != nil {
		return err
	}
	here, err := authkey.Open(c.home())
	if err != nil {
		return err
	}
	all, err := worker.Restore(ctx, c.Queue, s, here, fleet)
	for _, r := range all {
		line := c.words.T("%s: %d records added", r.ID, r.Added)
		if r.Err != nil {
			line += "; " + c.words.Said(oneLine(r.Err.Error()))
		}
		fmt.Fprintln(c.Stdout, line)
	}
	if err == nil && len(all) == 0 {
		c.say("the fleet has every record that this machine has")
	}
	return err
}

func (c *call) pruneFlags(f *flag.FlagSet) {
	f.StringVar(&c.given.older, "older-than", "30d", "")
	f.BoolVar(&c.given.yes, "yes", false, "")
}

// prune removes what is kept of tasks that ended long ago.
func (c *call) prune(ctx context.Context) error {
	older, err := length(c.given.older)
	if err != nil {
		return usagef("--older-than wants a length of time such as 12h or 30d, not %q", c.given.older)
	}
	if err := c.reach(ctx); err != nil {
		return err
	}
	tasks, err := c.List(ctx)
	if err != nil {
		return err
	}
	n := 0
	for _, t := range tasks {
		if !t.Status.Ended() || c.Now().Sub(t.Updated) < older {
			continue
		}
		if n++; !c.given.yes {
			c.row(t)
		} else if err := c.Forget(ctx, t); err != nil {
			return err
		}
	}
	if c.given.yes {
		c.say("tasks removed: %d", n)
	} else {
		c.say("tasks that --yes would remove: %d", n)
	}
	return nil
}

// length reads a length of time, which may be in days.
func length(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err
	}
	d, err := time.ParseDuration(s)
	if err == nil && d < 0 {
		err = errors.New("it is negative")
	}
	return d, err
}

// drain asks workers to leave.
func (c *call) drain(ctx context.Context) error {
	if len(c.args) > 1 {
		return usagef("coder fleet drain takes one worker; coder fleet workers lists them")
	}
	if err := c.reach(ctx); err != nil {
		return err
	}
	all, err := c.Workers(ctx)
	if err != nil {
		return err
	}
	asked := 0
	for _, w := range all {
		if len(c.args) == 0 || c.args[0] == w.Name {
			if err := c.Drain(ctx, w.Name); err != nil {
				return err
			}
			asked++
		}
	}
	if asked == 0 && len(c.args) == 1 {
		return usagef("there is no worker %s; coder fleet workers lists them", oneLine(c.args[0]))
	}
	c.say("workers that leave when their tasks are over: %d", asked)
	return nil
}

func (c *call) metricsFlags(f *flag.FlagSet) { f.StringVar(&c.given.listen, "listen", "", "") }

// metrics prints figures, or serves them.
func (c *call) metrics(ctx context.Context) error {
	if err := c.reach(ctx); err != nil {
		return err
	}
	if c.given.listen != "" {
		c.serving.metrics = c.given.listen
		stop := c.serveMetrics(ctx)
		<-ctx.Done()
		return stop()
	}
	text, err := c.figures(ctx)
	if err == nil {
		_, err = io.WriteString(c.Stdout, text)
	}
	return err
}

// figures are the state of the fleet as Prometheus reads it.
func (c *call) figures(ctx context.Context) (string, error) {
	tasks, err := c.List(ctx)
	if err != nil {
		return "", err
	}
	workers, err := c.Workers(ctx)
	if err != nil {
		return "", err
	}
	waiting, taken, err := c.Depth(ctx)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	metric := func(name, kind, help string) {
		fmt.Fprintf(&b, "# HELP coder_fleet_%s %s\n# TYPE coder_fleet_%[1]s %[3]s\n", name, help, kind)
	}
	value := func(name, labels string, v float64) {
		fmt.Fprintf(&b, "coder_fleet_%s%s %s\n", name, labels, strconv.FormatFloat(v, 'g', -1, 64))
	}
	byStatus := make(map[queue.Status]int)
	cost, takeovers, unknown, oldest := 0.0, 0, 0, 0.0
	for _, t := range tasks {
		byStatus[t.Status]++
		cost += t.CostUSD
		takeovers += max(t.Taken-1, 0)
		if t.Result != nil {
			unknown += t.Result.Unknown
		}
		if t.Status == queue.Waiting {
			oldest = max(oldest, c.Now().Sub(t.Updated).Seconds())
		}
	}
	metric("tasks", "gauge", "Tasks by status.")
	for _, s := range []queue.Status{queue.Queued, queue.Running, queue.Waiting, queue.Done, queue.Failed, queue.Canceled, queue.Aside} {
		value("tasks", fmt.Sprintf("{status=%q}", s), float64(byStatus[s]))
	}
	slots, busy := 0, 0
	for _, w := range workers {
		slots, busy = slots+w.Slots, busy+w.Busy
	}
	for _, m := range []struct {
		name, kind, help string
		v                float64
	}{
		{"jobs_waiting", "gauge", "Jobs that no worker has taken yet.", float64(waiting)},
		{"jobs_taken", "gauge", "Jobs that a worker has.", float64(taken)},
		{"workers", "gauge", "Workers that are there.", float64(len(workers))},
		{"slots", "gauge", "Tasks that the workers can run at a time.", float64(slots)},
		{"slots_busy", "gauge", "Tasks that they run.", float64(busy)},
		{"cost_usd_total", "counter", "What the tasks cost.", cost},
		{"takeovers_total", "counter", "Times a task was taken up again.", float64(takeovers)},
		{"unknown_calls_total", "counter", "Calls whose outcome nobody knows.", float64(unknown)},
		{"oldest_wait_seconds", "gauge", "How long a task has waited for a person.", oldest},
	} {
		metric(m.name, m.kind, m.help)
		value(m.name, "", m.v)
	}
	metric("stream_messages", "gauge", "Messages that a stream of the engine holds.")
	var bytesHeld strings.Builder
	streams := c.js.ListStreams(ctx)
	for info := range streams.Info() {
		label := fmt.Sprintf("{stream=%q}", info.Config.Name)
		value("stream_messages", label, float64(info.State.Msgs))
		fmt.Fprintf(&bytesHeld, "coder_fleet_stream_bytes%s %d\n", label, info.State.Bytes)
	}
	metric("stream_bytes", "gauge", "Bytes that a stream of the engine holds.")
	b.WriteString(bytesHeld.String())
	return b.String(), streams.Err()
}
