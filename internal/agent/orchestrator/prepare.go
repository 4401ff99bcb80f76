package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"coder/internal/agent/toolrun"
	"coder/internal/authored/mention"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/policy/mode"
)

// Naming a file in a message is the person's own use of the two tools that
// read, so this is the one place that knows their names.
const (
	readTool = "read"
	listTool = "list"
)

// What the model is reminded of, and the names under which the record says
// that it was.
const (
	startReminder = "start"
	planReminder  = event.ModeReminder + mode.Plan

	todosText = "There is a todo list in this mode. Keep it for work of several steps: write the steps down before you begin, " +
		"and mark each as you start and finish it. Small requests need none."
	rulesText = "The rules of the user and the project (AGENTS.md), where there are any, stand in the system text. " +
		"They hold for every request of this session."
	planSeen         = "plan-seen" // the model was told of plan mode at some time
	planOverReminder = event.ModeReminder + "plan-over"
	planOverText     = "Plan mode is over: what was said about changing nothing no longer holds."

	planText = "Plan mode is on. Read, search and think, but change nothing, whatever the message asks for. " +
		"When the plan is ready, hand it over with the tool for leaving plan mode; do not ask in your text whether it is good."
)

// say puts the person's words on record, with what goes with them.
func (o *Orchestrator) say(ctx context.Context, st *turnState, input string) error {
	said, err := o.compose(ctx, st, input)
	if err != nil {
		return err
	}
	return o.emit(ctx, st, ActorUser, said)
}

// compose makes the message for what the person wrote: their own words, and
// beside them what the model gets with these.
func (o *Orchestrator) compose(ctx context.Context, st *turnState, input string) (event.MessageAdded, error) {
	return o.composeNaming(ctx, st, input, mention.Find(input))
}

// composeNaming is compose for a text that names these files.
func (o *Orchestrator) composeNaming(ctx context.Context, st *turnState, text string, refs []mention.Ref) (event.MessageAdded, error) {
	said := event.MessageAdded{Message: chat.Say(chat.User, text)}
	if o.Library == nil || o.Child != nil {
		return said, nil
	}
	files, pictures, err := o.readNamed(ctx, st, refs)
	if err != nil {
		return said, err
	}
	said.Message.Parts = append(said.Message.Parts, pictures...)
	remind := func(name string, texts ...string) {
		said.Reminded = append(said.Reminded, name)
		for _, text := range texts {
			said.Reminders = joinReminders(said.Reminders, text)
		}
	}
	if !o.Talk.Reminded(startReminder) {
		remind(startReminder, o.firstReminders(st)...)
	}
	if st.set.Mode == mode.Plan && !o.Talk.Reminded(planReminder) {
		remind(planReminder, planText)
		remind(planSeen)
	}
	if st.set.Mode != mode.Plan && o.Talk.Reminded(planSeen) && !o.Talk.Reminded(planOverReminder) {
		remind(planOverReminder, planOverText)
	}
	said.Reminders = joinReminders(said.Reminders, files)
	return said, nil
}

// firstReminders are those of the first request of a conversation.
func (o *Orchestrator) firstReminders(st *turnState) []string {
	if _, there := st.set.Tools.Lookup(todoTool); there && !st.set.Tools.Off(todoTool) {
		return []string{todosText, rulesText}
	}
	return []string{rulesText}
}

func joinReminders(all, one string) string {
	if one == "" {
		return all
	}
	one = "<reminder>\n" + one + "\n</reminder>"
	if all == "" {
		return one
	}
	return all + "\n" + one
}

// readNamed reads the files that a message names, as calls of the person's own
// through the same gate as all others. What would have to be asked about is
// not read: the message says so, and the model may ask for it.
func (o *Orchestrator) readNamed(ctx context.Context, st *turnState, refs []mention.Ref) (text string, pictures []chat.Part, err error) {
	if len(refs) == 0 || o.Library.Files == nil {
		return "", nil, nil
	}
	targets, left := mention.Resolve(o.Library.Files, refs)
	readings := make([]mention.Reading, len(targets))
	var (
		calls []chat.ToolCall
		of    []*mention.Reading // what each call reads
	)
	for i, t := range targets {
		readings[i].Target = t
		if t.Note != "" {
			continue
		}
		call := o.reading(t)
		if err := o.Runner.Unasked(ctx, st.set.Tools, call); err != nil {
			readings[i].Note = notRead(err)
			continue
		}
		calls, of = append(calls, call), append(of, &readings[i])
	}
	if err := o.tellUnread(ctx, st, readings); err != nil || len(calls) == 0 {
		return mention.Write(readings, left), nil, err
	}
	err = o.Runner.Run(ctx, toolrun.Round{
		Task: st.task, Actor: ActorUser, Set: st.set.Tools, Calls: calls, Person: o.Person(st.sink), Sink: st.sink,
		Deliver: func(_ context.Context, out toolrun.Outcome) error {
			of[out.Index].Result = out.Result.Text
			for _, img := range out.Images {
				pictures = append(pictures, img)
			}
			return nil
		},
	})
	return mention.Write(readings, left), pictures, err
}

// reading is the call that reads t.
func (o *Orchestrator) reading(t mention.Target) chat.ToolCall {
	args, name := map[string]any{"path": t.Path}, readTool
	switch {
	case t.Dir:
		name = listTool
	case t.From > 0:
		args["offset"], args["limit"] = t.From, min(t.To-t.From+1, mention.MaxLines)
	}
	return chat.ToolCall{ID: o.NewID("mention"), Name: name, Args: jsonx.Must(args)}
}

func notRead(err error) string {
	if errors.Is(err, toolrun.ErrNeedsApproval) {
		return "not read: it needs the user's approval; ask for it with the read tool if it matters"
	}
	return "not read: " + err.Error()
}

// tellUnread tells the person of the files that were named and not read.
func (o *Orchestrator) tellUnread(ctx context.Context, st *turnState, readings []mention.Reading) error {
	var missing []string
	for _, r := range readings {
		if r.Note != "" {
			missing = append(missing, fmt.Sprintf("%s: %s", r.Ref, r.Note))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return o.emit(ctx, st, ActorAgent, event.Notice{Level: event.Warn, Text: strings.Join(missing, "\n")})
}
