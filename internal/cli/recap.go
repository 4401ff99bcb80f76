package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/sanitize"
	"coder/internal/core/uip"
	"coder/internal/ui/term/ink"
)

// recap shows the last exchange of the session as it was seen: the user's message, the model's replies
// and calls, and the turn's usage and result.
func (t *terminal) recap(ctx context.Context) error {
	var last exchange
	var rewound []exchange // the state before each rewind
	replaced := ""         // the task in which a message replaced all others
	t.told = nil
	for r, err := range t.app.Store().Logs.Read(ctx, t.session().ID, 0, event.Conversation) {
		if err != nil {
			return err
		}
		switch e := r.Event.(type) {
		case event.ContextReplaced:
			if replaced = ""; e.Reason == event.ModeSwitched {
				replaced = r.Task
			}
		case event.MessageAdded:
			if event.ByPerson(r) && r.Task == replaced { // not typed by the user
				replaced = ""
				continue
			}
			if event.ByPerson(r) {
				t.told = append(t.told, e.Message.Text())
			}
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
	records, err := t.recordsOf(ctx, shown.task)
	if err != nil {
		return err
	}
	if len(records) > 0 {
		if e, ok := records[0].Event.(event.TaskCreated); ok {
			shown.prompt = cmp.Or(e.Command(), shown.prompt)
		}
	}
	said := typedLines(shown.prompt)
	if shown.calls > recalledCalls {
		said = append(said, span(ink.Dim, t.inv.words.T("%d tool calls", shown.calls)))
	}
	var calls [][]event.Record
	if shown.calls > 0 || shown.answers == 0 { // otherwise the answer is the output of the user's command
		calls = endedCalls(records, shown.task)
	}
	err = t.face.Tell(said...)
	brief, bang := shown.answers > 0 && !shown.open, strings.HasPrefix(strings.TrimSpace(shown.prompt), "!")
	for i, answer := range shown.said {
		words := event.ByPerson(answer)
		if i < len(shown.said)-1 && !words && shown.calls > recalledCalls && (len(calls) == 0 || answer.Seq < calls[0][0].Seq) {
			continue // its calls are not shown either
		}
		n := len(calls)
		if later := slices.IndexFunc(calls, func(call []event.Record) bool { return call[0].Seq > answer.Seq }); later >= 0 {
			n = later
		}
		if err == nil {
			err = t.recallCalls(ctx, shown.task, calls[:n], brief)
		}
		switch e, _ := answer.Event.(event.MessageAdded); {
		case err != nil:
		case words:
			err = t.face.Tell(append([][]ink.Span{nil}, typedLines(e.Message.Text())...)...)
		default:
			err = t.face.Recall(e, bang)
		}
		calls = calls[n:]
	}
	if err == nil {
		err = t.recallCalls(ctx, shown.task, calls, brief)
	}
	if err == nil && (shown.open || shown.answers+shown.calls == 0) && stopped(records, shown.task) {
		err = t.face.Tell(span(ink.Warn, t.inv.words.T("[interrupted]")))
	}
	if err == nil {
		err = t.recallEnd(ctx, records, shown.calls > 0)
	}
	return err
}

// typedLines returns lines of the user's text as they are shown again.
func typedLines(words string) (said [][]ink.Span) {
	for i, line := range strings.Split(strings.TrimSpace(sanitize.Text(sanitize.Mask(words))), "\n") {
		mark := "> "
		if i > 0 {
			mark = "  "
		}
		said = append(said, append(span(ink.Good, mark), span(ink.Plain, line)...))
	}
	return said
}

// stopped reports whether a turn was stopped.
func stopped(records []event.Record, task string) bool {
	return slices.ContainsFunc(records, func(r event.Record) bool {
		_, is := r.Event.(event.TaskCanceled)
		return is && r.Task == task
	})
}

// recallEnd shows the usage and result of these records' turn, or otherwise the state of the edits.
func (t *terminal) recallEnd(ctx context.Context, records []event.Record, called bool) error {
	line := turnLine{t.inv.words, t.apart()}
	turns := t.app.Turns()
	for _, r := range records {
		if turn, ended := turns.Add(ctx, r); ended {
			turn.Check = t.host.Inside().Checked()
			return t.face.Tell(line.of(turn))
		}
	}
	_, cutOff := t.session().Unfinished()
	if said, role := line.standing(t.host.Inside().Checked()); called && !cutOff && said != "" && role != ink.Good { // the passed check may belong to an earlier turn
		return t.face.Tell(span(role, said))
	}
	return nil
}

// recordsOf returns the records since the beginning of a turn.
func (t *terminal) recordsOf(ctx context.Context, task string) (all []event.Record, err error) {
	begun := uint64(0)
	for r, err := range t.app.Store().Logs.Read(ctx, t.session().ID, 0, event.Domain) {
		if err != nil {
			return nil, err
		}
		if e, ok := r.Event.(event.TaskCreated); ok && e.TaskID == task {
			begun = r.Seq
		}
	}
	for r, err := range t.app.Store().Logs.Read(ctx, t.session().ID, max(begun, 1)-1) {
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// recalledCalls is the most calls of a turn shown again, and recalledLines the most lines of a call's
// output or changes.
const (
	recalledCalls = 10
	recalledLines = 16
)

// endedCalls returns the records of a turn's last calls and how each ended, of its questions to the
// user, and of its failure. What is still open is asked separately, and so is what was open once and
// runs again.
func endedCalls(records []event.Record, task string) (ended [][]event.Record) {
	begun := make(map[string]event.Record) // calls and questions to the user
	for _, r := range records {
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
		case event.InteractionRequested:
			if e.Purpose != uip.ConfirmRiskyAction && e.Author != event.ActorRecovery {
				begun[e.ID] = r
			}
		case event.InteractionResponded:
			if asked, ok := begun[e.ID]; ok {
				ended = append(ended, []event.Record{asked, r})
			}
		case event.TaskFailed:
			ended = append(ended, []event.Record{r})
		}
	}
	return ended[max(0, len(ended)-recalledCalls):]
}

// cutOff reports whether a call has no recorded end.
func cutOff(call []event.Record, id string) bool {
	e, ok := call[len(call)-1].Event.(event.ToolCallCompleted)
	return ok && e.CallID == id && e.Unknown
}

// recallCalls shows a turn's calls and how each ended; brief leaves out most of their output and
// changes, unless they failed.
func (t *terminal) recallCalls(ctx context.Context, task string, calls [][]event.Record, brief bool) error {
	if len(calls) == 0 {
		return nil
	}
	sink := t.face.Out()
	if brief {
		sink = &outcomes{Sink: sink}
	}
	out := newSeen(sink)
	for _, call := range calls {
		if asked, ok := call[0].Event.(event.InteractionRequested); ok {
			given, _ := call[1].Event.(event.InteractionResponded)
			if err := t.face.RecallQuestion(asked.Request, responseWords(t.inv.words, asked.Request, given.Response)); err != nil {
				return err
			}
			continue
		}
		for _, r := range call {
			if err := out.Emit(ctx, r); err != nil {
				return err
			}
		}
	}
	return t.face.Out().Emit(ctx, event.Record{Task: task, Event: event.StateChanged{}})
}

// outcomes forwards calls and results: of long output only that of failures.
type outcomes struct {
	event.Sink
	printed []event.Record // output of an unfinished call
}

func (o *outcomes) Emit(ctx context.Context, r event.Record) error {
	switch e := r.Event.(type) {
	case event.ToolOutput:
		o.printed = append(o.printed, r)
		return nil
	case event.ToolFinished:
		printed := o.printed
		o.printed = nil
		if !e.Failed && strings.Count(display.Blocks{e.Show}.Plain(), "\n") > recalledLines {
			e.Show = nil
			r.Event = e
		}
		lines := 0
		for _, p := range printed {
			lines += strings.Count(p.Event.(event.ToolOutput).Text, "\n")
		}
		if !e.Failed && lines > recalledLines {
			break
		}
		for _, p := range printed {
			if err := o.Sink.Emit(ctx, p); err != nil {
				return err
			}
		}
	}
	return o.Sink.Emit(ctx, r)
}

// exchange is a session's conversation by turn.
type exchange []struct {
	seq     uint64
	task    string
	prompt  string
	calls   int
	open    bool           // it ended with calls
	answers int            // replies with text
	said    []event.Record // the replies, and the user's messages during the turn
}

// add adds a message. The first of a turn is the user's; those of subagents do not count.
func (x *exchange) add(r event.Record, e event.MessageAdded) {
	text := strings.TrimSpace(e.Message.Text())
	n := len(*x)
	switch {
	case event.ByPerson(r) && (n == 0 || (*x)[n-1].task != r.Task) && text != "":
		*x = append(*x, exchange{{seq: r.Seq, task: r.Task, prompt: e.Message.Text()}}...)
	case event.ByPerson(r) && text != "":
		(*x)[n-1].said = append((*x)[n-1].said, r)
	case e.Message.Role == chat.Assistant && n > 0 && (*x)[n-1].task == r.Task:
		last := &(*x)[n-1]
		last.calls += len(e.Message.Calls())
		last.open = len(e.Message.Calls()) > 0
		if text != "" || e.Blocks != nil {
			last.said, last.answers = append(last.said, r), last.answers+1
		}
	}
}
