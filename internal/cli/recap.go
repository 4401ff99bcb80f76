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

// recap shows the last exchange of the session as it was seen: what the person said, what
// the model said and called, and what the turn took and came to.
func (t *terminal) recap(ctx context.Context) error {
	var last exchange
	var rewound []exchange // each as it was before
	replaced := ""         // the task in which a message was put in the place of all others
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
			if event.ByPerson(r) && r.Task == replaced { // nobody has typed it
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
	if shown.calls > 0 || shown.answers == 0 { // else the answer is that of the person's own command
		calls = endedCalls(records, shown.task)
	}
	err = t.face.Tell(said...)
	brief, bang := shown.answers > 0 && !shown.open, strings.HasPrefix(strings.TrimSpace(shown.prompt), "!")
	for i, answer := range shown.said {
		words := event.ByPerson(answer)
		if i < len(shown.said)-1 && !words && shown.calls > recalledCalls && (len(calls) == 0 || answer.Seq < calls[0][0].Seq) {
			continue // nor is what was called then
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

// typedLines are lines of what the person typed, as they are shown again.
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

// stopped reports whether a turn was.
func stopped(records []event.Record, task string) bool {
	return slices.ContainsFunc(records, func(r event.Record) bool {
		_, is := r.Event.(event.TaskCanceled)
		return is && r.Task == task
	})
}

// recallEnd says what the turn of these records took and came to, or else how what was
// edited stands.
func (t *terminal) recallEnd(ctx context.Context, records []event.Record, called bool) error {
	line := turnLine{t.inv.words, t.apart()}
	turns := t.app.Turns()
	for _, r := range records {
		if turn, ended := turns.Add(ctx, r); ended {
			turn.Check = t.app.Checked()
			return t.face.Tell(line.of(turn))
		}
	}
	_, cutOff := t.session().Unfinished()
	if said, role := line.standing(t.app.Checked()); called && !cutOff && said != "" && role != ink.Good { // what passed may be of an earlier turn
		return t.face.Tell(span(role, said))
	}
	return nil
}

// recordsOf are the records from the beginning of a turn on.
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

// recalledCalls is how many calls of a turn are shown again, and recalledLines how many lines
// of what one of them printed or changed.
const (
	recalledCalls = 10
	recalledLines = 16
)

// endedCalls are the records of the last calls of a turn and of how each of them ended, of
// what the person was asked besides, and of what the turn failed by. What is still open is
// put to the person by itself, and so is what was open once and is run again.
func endedCalls(records []event.Record, task string) (ended [][]event.Record) {
	begun := make(map[string]event.Record) // calls, and questions to the person
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

// cutOff reports whether records tell of a call that nobody saw the end of.
func cutOff(call []event.Record, id string) bool {
	e, ok := call[len(call)-1].Event.(event.ToolCallCompleted)
	return ok && e.CallID == id && e.Unknown
}

// recallCalls shows calls of a turn and how each of them ended; in brief without much that
// they printed or changed, unless they failed.
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

// outcomes passes on what was called and what came of it: of what is long only what failed.
type outcomes struct {
	event.Sink
	printed []event.Record // by a call that has not ended
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

// exchange is what was said in a session, turn by turn.
type exchange []struct {
	seq     uint64
	task    string
	prompt  string
	calls   int
	open    bool           // calls were the last that came of it
	answers int            // of the model, with words
	said    []event.Record // these, and what the person said while the turn ran
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
