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

	"coder/fleet/engine"
	"coder/fleet/queue"
	"coder/fleet/worker"
	"coder/internal/core/display"
	"coder/internal/host/authkey"
)

// restore adds what the fleet lost from the logs on this machine.
func (c *call) restore(ctx context.Context) error {
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
		line := c.words.T(display.Plural(int(r.Added), "%s: %d record added", "%s: %d records added"), r.ID, r.Added)
		if r.Err != nil {
			line += "; " + c.words.TranslateText(oneLine(r.Err.Error()))
		}
		fmt.Fprintln(c.Stdout, line)
	}
	if err == nil && len(all) == 0 {
		c.say("the fleet has every record that this machine has")
	}
	return err
}

func (c *call) pruneFlags(f *flag.FlagSet) {
	c.given.older = 30 * day
	f.Func("older-than", "", func(v string) (err error) {
		if c.given.older, err = length(v); err != nil {
			err = errors.New("expected a duration such as 12h or 30d")
		}
		return err
	})
	f.BoolVar(&c.given.yes, "yes", false, "")
}

// prune removes what is kept of tasks that ended long ago.
func (c *call) prune(ctx context.Context) error {
	tasks, err := c.List(ctx)
	if err != nil {
		return err
	}
	n := 0
	for _, t := range tasks {
		if !t.Status.Ended() || c.Now().Sub(t.Updated) < c.given.older {
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

const day = 24 * time.Hour

// length reads a length of time, which may be in days.
func length(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * day, err
	}
	d, err := time.ParseDuration(s)
	if err == nil && d < 0 {
		err = errors.New("must not be negative")
	}
	return d, err
}

// drain asks workers to leave.
func (c *call) drain(ctx context.Context) error {
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
		return usagef("unknown worker %s; coder fleet workers lists them", oneLine(c.args[0]))
	}
	c.say("workers that exit after their tasks: %d", asked)
	return nil
}

func (c *call) metricsFlags(f *flag.FlagSet) { f.StringVar(&c.given.listen, "listen", "", "") }

// metrics prints figures, or serves them.
func (c *call) metrics(ctx context.Context) error {
	if c.given.listen != "" {
		c.serving.metrics = c.given.listen
		stop, err := c.serveMetrics()
		if err == nil {
			<-ctx.Done()
			stop()
		}
		return err
	}
	text, err := c.figures(ctx)
	if err == nil {
		_, err = io.WriteString(c.Stdout, text)
	}
	return err
}

// figures are the state of the fleet as Prometheus reads it.
func (c *call) figures(ctx context.Context) (string, error) {
	s, err := c.Standing(ctx)
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
	metric("tasks", "gauge", "Tasks by status.")
	for _, status := range queue.Statuses {
		value("tasks", fmt.Sprintf("{status=%q}", status), float64(s.Counts[status]))
	}
	for _, m := range []struct {
		name, kind, help string
		v                float64
	}{
		{"jobs_waiting", "gauge", "Jobs that no worker has taken.", float64(s.Queue.Waiting)},
		{"jobs_taken", "gauge", "Jobs that a worker has taken.", float64(s.Queue.Taken)},
		{"workers", "gauge", "Workers in the fleet.", float64(len(s.Workers))},
		{"slots", "gauge", "Tasks that the workers can run at once.", float64(s.Slots)},
		{"slots_busy", "gauge", "Running tasks.", float64(s.Busy)},
		{"cost_usd_total", "counter", "Cost of the tasks.", s.CostUSD},
		{"takeovers_total", "counter", "Tasks taken over from a worker that stopped responding.", float64(s.Takeovers)},
		{"unknown_calls_total", "counter", "Calls with unknown outcome.", float64(s.Unknown)},
		{"oldest_wait_seconds", "gauge", "Time that a task has waited for a person.", s.OldestWait},
	} {
		metric(m.name, m.kind, m.help)
		value(m.name, "", m.v)
	}
	metric("stream_messages", "gauge", "Messages in a stream of the engine.")
	var bytesHeld strings.Builder
	streams, err := c.Streams(ctx)
	for _, info := range streams {
		label := fmt.Sprintf("{stream=%q}", info.Config.Name)
		value("stream_messages", label, float64(info.State.Msgs))
		fmt.Fprintf(&bytesHeld, "coder_fleet_stream_bytes%s %d\n", label, info.State.Bytes)
	}
	metric("stream_bytes", "gauge", "Bytes in a stream of the engine.")
	b.WriteString(bytesHeld.String())
	return b.String(), err
}

// rights prints the table of rights as a server reads it.
func (c *call) rights(context.Context) error {
	_, err := io.WriteString(c.Stdout, engine.Config())
	return err
}
