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

// showRecap shows the last exchange of the session as it was seen: the user's message, the model's replies
// and calls, and the turn's usage and result.
func (t *terminal) showRecap(ctx context.Context) error {
	var last turnHistory
	var rewound []turnHistory // the state before each rewind
	replaced := ""            // the task in which a message replaced all others
	t.pastMessages = nil
	for r, err := range t.app.Store().Logs.Read(ctx, t.session().ID, 0, event.LogConversation) {
		if err != nil {
			return err
		}
		switch e := r.Event.(type) {
		case event.ContextReplaced:
			if replaced = ""; e.Reason == event.ReplaceModeSwitched {
				replaced = r.Task
			}
		case event.MessageAdded:
			if event.IsUserMessage(r) && r.Task == replaced { // not typed by the user
				replaced = ""
				continue
			}
			if event.IsUserMessage(r) {
				t.pastMessages = append(t.pastMessages, e.Message.Text())
			}
			last.addMessage(r, e)
		case event.ContextRewound:
			if e.IsUndo && len(rewound) > 0 {
				last, rewound = rewound[len(rewound)-1], rewound[:len(rewound)-1]
			} else if !e.IsUndo {
				rewound = append(rewound, last)
				i := len(last)
				for i > 0 && last[i-1].seq >= e.ToSeq {
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
	records, err := t.turnRecords(ctx, shown.task)
	if err != nil {
		return err
	}
	if len(records) > 0 {
		if e, ok := records[0].Event.(event.TaskCreated); ok {
			shown.prompt = cmp.Or(e.TypedCommand(), shown.prompt)
		}
	}
	said := userTextLines(shown.prompt)
	if shown.calls > maxRecapCalls {
		said = append(said, span(ink.Dim, t.invocation.printer.T("%d tool calls", shown.calls)))
	}
	var calls [][]event.Record
	if shown.calls > 0 || shown.answers == 0 { // otherwise the answer is the output of the user's command
		calls = lastCallRecords(records, shown.task)
	}
	err = t.face.PrintLines(said...)
	brief, bang := shown.answers > 0 && !shown.open, strings.HasPrefix(strings.TrimSpace(shown.prompt), "!")
	for i, answer := range shown.said {
		words := event.IsUserMessage(answer)
		if i < len(shown.said)-1 && !words && shown.calls > maxRecapCalls &&
			(len(calls) == 0 || answer.Seq < calls[0][0].Seq) {
			continue // its calls are not shown either
		}
		n := len(calls)
		if later := slices.IndexFunc(calls, func(call []event.Record) bool { return call[0].Seq > answer.Seq }); later >= 0 {
			n = later
		}
		if err == nil {
			err = t.showCalls(ctx, shown.task, calls[:n], brief)
		}
		switch e, _ := answer.Event.(event.MessageAdded); {
		case err != nil:
		case words:
			err = t.face.PrintLines(append([][]ink.Span{nil}, userTextLines(e.Message.Text())...)...)
		default:
			err = t.face.ShowAnswer(e, bang)
		}
		calls = calls[n:]
	}
	if err == nil {
		err = t.showCalls(ctx, shown.task, calls, brief)
	}
	if err == nil && (shown.open || shown.answers+shown.calls == 0) && wasStopped(records, shown.task) {
		err = t.face.PrintLines(span(ink.Warn, t.invocation.printer.T("[interrupted]")))
	}
	if err == nil {
		err = t.showTurnEnd(ctx, records, shown.calls > 0)
	}
	return err
}

// userTextLines returns lines of the user's text as they are shown again.
func userTextLines(words string) (said [][]ink.Span) {
	for i, line := range strings.Split(strings.TrimSpace(sanitize.Text(sanitize.Mask(words))), "\n") {
		mark := "> "
		if i > 0 {
			mark = "  "
		}
		said = append(said, append(span(ink.Good, mark), span(ink.Plain, line)...))
	}
	return said
}

// wasStopped reports whether a turn was stopped.
func wasStopped(records []event.Record, task string) bool {
	return slices.ContainsFunc(records, func(r event.Record) bool {
		_, is := r.Event.(event.TaskCanceled)
		return is && r.Task == task
	})
}

// showTurnEnd shows the usage and result of these records' turn, or otherwise the state of the edits.
func (t *terminal) showTurnEnd(ctx context.Context, records []event.Record, called bool) error {
	line := turnLine{t.invocation.printer, t.separator()}
	turns := t.app.NewTurnTracker()
	for _, r := range records {
		if turn, ended := turns.Add(ctx, r); ended {
			turn.LastCheck = t.host.Inside().LastCheck()
			return t.face.PrintLines(line.format(turn))
		}
	}
	_, cutOff := t.session().UnfinishedTask()
	// the passed check may belong to an earlier turn
	if said, role := line.checkState(t.host.Inside().LastCheck()); called && !cutOff && said != "" && role != ink.Good {
		return t.face.PrintLines(span(role, said))
	}
	return nil
}

// turnRecords returns the records since the beginning of a turn.
func (t *terminal) turnRecords(ctx context.Context, task string) (all []event.Record, err error) {
	begun := uint64(0)
	for r, err := range t.app.Store().Logs.Read(ctx, t.session().ID, 0, event.LogDomain) {
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

// maxRecapCalls is the most calls of a turn shown again, and maxRecapLines the most lines of a call's
// output or changes.
const (
	maxRecapCalls = 10
	maxRecapLines = 16
)

// lastCallRecords returns the records of a turn's last calls and how each ended, of its questions to the
// user, and of its failure. What is still open is asked separately, and so is what was open once and
// runs again.
func lastCallRecords(records []event.Record, task string) (ended [][]event.Record) {
	begun := make(map[string]event.Record) // calls and questions to the user
	for _, r := range records {
		if r.Task != task {
			continue
		}
		switch e := r.Event.(type) {
		case event.ToolCallRequested:
			ended = slices.DeleteFunc(ended, func(call []event.Record) bool { return isUnfinishedCall(call, e.CallID) })
			begun[e.CallID] = r
		case event.ToolCallCompleted:
			if _, ok := begun[e.CallID]; ok {
				ended = append(ended, []event.Record{begun[e.CallID], r})
			} else {
				ended = append(ended, []event.Record{r})
			}
		case event.InteractionRequested:
			if e.Purpose != uip.PurposeConfirmRiskyAction && e.Author != event.ActorRecovery {
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
	return ended[max(0, len(ended)-maxRecapCalls):]
}

// isUnfinishedCall reports whether a call has no recorded end.
func isUnfinishedCall(call []event.Record, id string) bool {
	e, ok := call[len(call)-1].Event.(event.ToolCallCompleted)
	return ok && e.CallID == id && e.OutcomeUnknown
}

// showCalls shows a turn's calls and how each ended; brief leaves out most of their output and
// changes, unless they failed.
func (t *terminal) showCalls(ctx context.Context, task string, calls [][]event.Record, brief bool) error {
	if len(calls) == 0 {
		return nil
	}
	sink := t.face.Sink()
	if brief {
		sink = &outcomeSink{Sink: sink}
	}
	out := newCallSink(sink)
	for _, call := range calls {
		if asked, ok := call[0].Event.(event.InteractionRequested); ok {
			given, _ := call[1].Event.(event.InteractionResponded)
			if err := t.face.ShowQuestion(asked.Request, describeResponse(t.invocation.printer, asked.Request,
				given.Response)); err != nil {
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
	return t.face.Sink().Emit(ctx, event.Record{Task: task, Event: event.StateChanged{}})
}

// outcomeSink forwards calls and results: of long output only that of failures.
type outcomeSink struct {
	event.Sink
	pendingOutput []event.Record // output of an unfinished call
}

func (o *outcomeSink) Emit(ctx context.Context, r event.Record) error {
	switch e := r.Event.(type) {
	case event.ToolOutput:
		o.pendingOutput = append(o.pendingOutput, r)
		return nil
	case event.ToolFinished:
		printed := o.pendingOutput
		o.pendingOutput = nil
		if !e.Failed && strings.Count(display.Blocks{e.Content}.PlainText(), "\n") > maxRecapLines {
			e.Content = nil
			r.Event = e
		}
		lines := 0
		for _, p := range printed {
			lines += strings.Count(p.Event.(event.ToolOutput).Text, "\n")
		}
		if !e.Failed && lines > maxRecapLines {
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

// turnHistory is a session's conversation by turn.
type turnHistory []struct {
	seq     uint64
	task    string
	prompt  string
	calls   int
	open    bool           // it ended with calls
	answers int            // replies with text
	said    []event.Record // the replies, and the user's messages during the turn
}

// addMessage adds a message. The first of a turn is the user's; those of subagents do not count.
func (x *turnHistory) addMessage(r event.Record, e event.MessageAdded) {
	text := strings.TrimSpace(e.Message.Text())
	n := len(*x)
	switch {
	case event.IsUserMessage(r) && (n == 0 || (*x)[n-1].task != r.Task) && text != "":
		*x = append(*x, turnHistory{{seq: r.Seq, task: r.Task, prompt: e.Message.Text()}}...)
	case event.IsUserMessage(r) && text != "":
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
