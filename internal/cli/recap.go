package cli

import (
	"context"
	"slices"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/sanitize"
	"coder/internal/ui/term/ink"
)

// recap shows the last exchange of the session: what the person said, what the answer
// was, and how what was edited has been checked.
func (t *terminal) recap(ctx context.Context) error {
	var last exchange
	var rewound []exchange // each as it was before
	for r, err := range t.app.Store().Logs.Read(ctx, t.session.ID, 0, event.Conversation) {
		if err != nil {
			return err
		}
		switch e := r.Event.(type) {
		case event.MessageAdded:
			last.add(r, e)
		case event.ContextRewound:
			if e.Undo && len(rewound) > 0 {
				last, rewound = rewound[len(rewound)-1], rewound[:len(rewound)-1]
			} else if !e.Undo {
				rewound = append(rewound, last)
				i := len(last)
				for i > 0 && last[i-1].seq >= e.To {
					i--
				}
				last = slices.Clone(last[:i])
			}
		}
	}
	if len(last) == 0 {
		return nil
	}
	shown := last[len(last)-1]
	var said [][]ink.Span
	for _, words := range append([]string{shown.prompt}, shown.also...) {
		for i, line := range strings.Split(strings.TrimSpace(sanitize.Text(sanitize.Mask(words))), "\n") {
			mark := "> "
			if i > 0 {
				mark = "  "
			}
			said = append(said, append(span(ink.Good, mark), span(ink.Plain, line)...))
		}
	}
	switch {
	case shown.calls <= recalledCalls:
	default:
		said = append(said, span(ink.Dim, t.inv.words.T("%d calls of tools", shown.calls)))
	}
	var calls [][]event.Record
	var err error
	if shown.calls > 0 || shown.answer == nil { // else the answer is that of the person's own command
		if calls, err = t.endedCalls(ctx, shown.task); err != nil {
			return err
		}
	}
	brief := shown.answer != nil && !shown.open
	after := slices.IndexFunc(calls, func(call []event.Record) bool { return call[0].Seq > shown.said })
	if after < 0 {
		after = len(calls)
	}
	if err = t.face.Tell(said...); err == nil {
		err = t.recallCalls(ctx, shown.task, calls[:after], brief)
	}
	if err == nil && shown.answer != nil {
		err = t.face.Recall(*shown.answer, strings.HasPrefix(strings.TrimSpace(shown.prompt), "!"))
	}
	if err == nil {
		err = t.recallCalls(ctx, shown.task, calls[after:], brief)
	}
	if _, cutOff := t.session.Unfinished(); err == nil && shown.calls > 0 && !cutOff {
		if said, role := (turnLine{t.inv.words, t.apart()}).standing(t.app.Checked()); said != "" && role != ink.Good { // what passed may be of an earlier turn
			err = t.face.Tell(span(role, said))
		}
	}
	return err
}

// recalledCalls is how many calls of a turn are shown again.
const recalledCalls = 10

// endedCalls are the records of the last calls of a turn and of how each of them ended,
// and of what the turn failed by. What is still open is put to the person by itself, and
// so is what was open once and is run again.
func (t *terminal) endedCalls(ctx context.Context, task string) (ended [][]event.Record, err error) {
	begun := make(map[string]event.Record)
	for r, err := range t.app.Store().Logs.Read(ctx, t.session.ID, 0, event.Domain, event.Audit) {
		if err != nil {
			return nil, err
		}
		if r.Task != task {
			continue
		}
		switch e := r.Event.(type) {
		case event.ToolCallRequested:
			ended = slices.DeleteFunc(ended, func(call []event.Record) bool { return cutOff(call, e.CallID) })
			begun[e.CallID] = r
		case event.ToolCallCompleted:
			if _, ok := begun[e.CallID]; ok {
				ended = append(ended, []event.Record{begun[e.CallID], r})
			} else {
				ended = append(ended, []event.Record{r})
			}
		case event.TaskFailed:
			ended = append(ended, []event.Record{r})
		}
	}
	return ended[max(0, len(ended)-recalledCalls):], nil
}

// cutOff reports whether records tell of a call that nobody saw the end of.
func cutOff(call []event.Record, id string) bool {
	e, ok := call[len(call)-1].Event.(event.ToolCallCompleted)
	return ok && e.CallID == id && e.Unknown
}

// recallCalls shows calls of a turn and how each of them ended; in brief without what they
// printed and changed.
func (t *terminal) recallCalls(ctx context.Context, task string, calls [][]event.Record, brief bool) error {
	if len(calls) == 0 {
		return nil
	}
	sink := t.face.Out()
	if brief {
		sink = outcomes{sink}
	}
	out := newSeen(sink)
	for _, r := range slices.Concat(calls...) {
		if err := out.Emit(ctx, r); err != nil {
			return err
		}
	}
	return t.face.Out().Emit(ctx, event.Record{Task: task, Event: event.StateChanged{}})
}

// outcomes passes on what was called and what came of it, and no more.
type outcomes struct{ event.Sink }

func (o outcomes) Emit(ctx context.Context, r event.Record) error {
	switch e := r.Event.(type) {
	case event.ToolOutput:
		return nil
	case event.ToolFinished:
		e.Show = nil
		r.Event = e
	}
	return o.Sink.Emit(ctx, r)
}

// exchange is what was said in a session, turn by turn.
type exchange []struct {
	seq    uint64
	task   string
	prompt string
	also   []string // what the person said while the turn ran
	calls  int
	open   bool                // calls were the last that came of it
	answer *event.MessageAdded // the last with words, if there is one
	said   uint64              // its record
}

// add takes in a message. The first of a turn is the person's; those of other
// agents are not part of it.
func (x *exchange) add(r event.Record, e event.MessageAdded) {
	text := strings.TrimSpace(e.Message.Text())
	n := len(*x)
	switch {
	case event.ByPerson(r) && (n == 0 || (*x)[n-1].task != r.Task) && text != "":
		*x = append(*x, exchange{{seq: r.Seq, task: r.Task, prompt: e.Message.Text()}}...)
	case event.ByPerson(r) && text != "":
		(*x)[n-1].also = append((*x)[n-1].also, e.Message.Text())
	case e.Message.Role == chat.Assistant && n > 0 && (*x)[n-1].task == r.Task:
		last := &(*x)[n-1]
		last.calls += len(e.Message.Calls())
		last.open = len(e.Message.Calls()) > 0
		if text != "" || e.Blocks != nil {
			last.answer, last.said = &e, r.Seq
		}
	}
}
