package fleetcli

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"coder/fleet/jetstore"
	"coder/fleet/queue"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/sanitize"
	"coder/internal/ui/events"
)

// log is the task that is named, and where its log is.
func (c *call) log(ctx context.Context) (queue.Task, *jetstore.Store, error) {
	t, err := c.find(ctx)
	if err != nil {
		return t, nil, err
	}
	s, err := c.store(ctx)
	return t, s, err
}

// logs shows the log of a task as it is now.
func (c *call) logs(ctx context.Context) error {
	t, s, err := c.log(ctx)
	if err != nil {
		return err
	}
	return c.show(ctx, s.Read(ctx, t.ID, 0), func(event.Record) {})
}

// watch shows the log of a task until it waits or ends.
func (c *call) watch(ctx context.Context) error {
	t, s, err := c.log(ctx)
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
		if err := c.show(context.WithoutCancel(ctx), s.Read(context.WithoutCancel(ctx), t.ID, last),
			func(event.Record) {}); err != nil {
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
		case e.OutcomeUnknown:
			return e.Tool + ": unknown outcome"
		case e.IsError:
			return e.Tool + ": failed"
		}
		return fmt.Sprintf("%s: %d ms", e.Tool, e.DurationMs)
	case event.InteractionRequested:
		return "? " + short(e.Display.Title)
	case event.InteractionResponded:
		who := e.Author
		if words := strings.Fields(e.AnsweredBy); len(words) > 1 {
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
