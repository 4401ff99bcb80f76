package fleetcli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"coder/internal/fleet/queue"
	"coder/internal/fleet/worker"
	"coder/internal/host/authkey"
)

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
