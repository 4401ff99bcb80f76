package worker

import (
	"context"
	"iter"
	"slices"
	"strings"

	"coder/fleet/queue"
	"coder/internal/agent/verify"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/core/task"
	"coder/internal/core/uip"
)

// view is how a task stands by its log, which decides.
type view struct {
	task    task.Task // the last one of the person's own; zero if there is none yet
	open    []uip.Request
	asked   map[string]uip.Request
	answers []uip.Response
	answer  string // the model's last words
	calls   map[string]bool
	cost    float64
	result  queue.Result
}

// foldLog is what a log says of its task.
func foldLog(records iter.Seq2[event.Record, error]) (v view, err error) {
	var tasks task.Tasks
	var checks verify.CheckTracker
	v.asked, v.calls = make(map[string]uip.Request), make(map[string]bool)
	for r, err := range records {
		if err != nil {
			return v, err
		}
		if r.Seq != v.result.Records+1 {
			return v, message.Errorf("record %d follows record %d", r.Seq, v.result.Records)
		}
		v.result.Records = r.Seq
		if err := tasks.Add(r); err != nil {
			return v, err
		}
		checks.Add(r)
		v.add(r)
	}
	for _, t := range tasks.All() {
		if t.Parent == "" {
			v.task = t
		}
	}
	v.open = slices.DeleteFunc(v.open, func(q uip.Request) bool { return tasks.Get(q.TaskID).Status.IsEnded() })
	check := checks.Last()
	v.result.Answer, v.result.Check, v.result.CheckExit, v.result.Verified = v.answer, check.Command, check.ExitCode,
		check.HasPassed()
	return v, nil
}

func (v *view) add(r event.Record) {
	_, used, _ := event.UsageOf(r.Event)
	v.cost += used.Cost
	switch e := r.Event.(type) {
	case event.InteractionRequested:
		v.asked[e.ID], v.open = e.Request, append(v.open, e.Request)
	case event.InteractionResponded:
		v.open = slices.DeleteFunc(v.open, func(q uip.Request) bool { return q.ID == e.ID })
		v.answers = append(v.answers, e.Response)
	case event.ToolCallRequested:
		if v.result.Calls++; e.Verdict != "" && e.Verdict != event.VerdictAllowed {
			v.result.Refused++
		}
	case event.ToolCallCompleted:
		if e.OutcomeUnknown {
			v.result.Unknown++
		}
	case event.MessageAdded:
		if text := strings.TrimSpace(e.Message.Text()); e.Message.Role == chat.Assistant && text != "" {
			v.answer = text
		}
	}
}

// decisions are the answers on record, with whoever gave them.
func (v *view) decisions(ctx context.Context, q *queue.Queue, id string) (all []queue.Decision) {
	for _, r := range v.answers {
		d := queue.Decision{Interaction: r.ID, Title: v.asked[r.ID].Display.Title, Option: r.Option + r.Input, By: r.Author}
		if a, ok := queue.Recorded(id, v.asked[r.ID], r); ok {
			d.By, d.Signed = a.By, q.Verify(ctx, a) == nil
		}
		all = append(all, d)
	}
	return all
}
