package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"coder/internal/agent/complexity"
	"coder/internal/agent/toolrun"
	"coder/internal/authored/mention"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/tool"
)

// Reminders for the model, and their names in the record.
const (
	startReminder = "start"

	todosReminder = "This mode has a todo list: for work of several steps, write them down first and update them as you go."
	rulesReminder = "Any AGENTS.md rules in the system text apply to every request."
)

// recordInput records the user's message with everything that goes with it, including what hooks add.
func (o *Orchestrator) recordInput(ctx context.Context, st *turnState, said Input, notes []toolrun.Note) error {
	var refs []mention.Ref
	if !said.Verbatim {
		refs = mention.Find(said.MentionText())
	}
	return o.recordText(ctx, st, said, refs, notes)
}

func (o *Orchestrator) recordText(ctx context.Context, st *turnState, words Input, refs []mention.Ref,
	notes []toolrun.Note) error {
	said, err := o.composeMessage(ctx, st, words, refs)
	if err != nil {
		return err
	}
	for _, p := range words.Pictures {
		said.Message.Parts = append(said.Message.Parts, p)
	}
	for _, n := range notes {
		said.Reminders = joinReminders(said.Reminders, "A hook of "+n.Owner+" adds: "+n.Text)
	}
	return o.emit(ctx, st, ActorUser, said)
}

// composeMessage builds the message for the user's text, which names
// these files: the text itself, and what the model gets with it.
func (o *Orchestrator) composeMessage(ctx context.Context, st *turnState, words Input,
	refs []mention.Ref) (event.MessageAdded, error) {
	said := event.MessageAdded{Message: chat.TextMessage(chat.User, words.Text())}
	if o.Library == nil || o.Subtask != nil {
		return said, nil
	}
	resources, refs := o.Library.splitResources(refs)
	files, pictures, err := o.readMentions(ctx, st, words, refs)
	if err != nil {
		return said, err
	}
	given, more, err := o.readResources(ctx, st, resources)
	if err != nil {
		return said, err
	}
	said.Message.Parts = slices.Concat(said.Message.Parts, pictures, more)
	remind := func(name string, texts ...string) {
		said.ReminderNames = append(said.ReminderNames, name)
		for _, text := range texts {
			said.Reminders = joinReminders(said.Reminders, text)
		}
	}
	if !o.Conversation.HasReminder(startReminder) {
		texts := []string{rulesReminder}
		if st.settings.hasClass(tool.ClassWriteTodos) {
			texts = []string{todosReminder, rulesReminder}
		}
		remind(startReminder, texts...)
	}
	if name := event.ModeReminderPrefix + st.settings.Mode; st.settings.ModeText != "" &&
		!o.Conversation.HasReminder(name) {
		remind(name, st.settings.ModeText)
	}
	rules, names := o.unseenRules(st)
	said.ReminderNames = append(said.ReminderNames, names...)
	said.Reminders = joinReminders(joinReminders(joinReminders(said.Reminders, files), given), rules)
	return said, nil
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

// splitResources returns the names that are resources of other programs, and the remaining names.
func (l *Library) splitResources(refs []mention.Ref) (found []mention.ReadTarget, left []mention.Ref) {
	if l.Resources == nil {
		return nil, refs
	}
	for _, r := range refs {
		name := strings.ReplaceAll(strings.TrimPrefix(r.String(), "@"), `"`, "")
		if args, ok := l.Resources.ReadArgs(name); ok && len(found) < mention.MaxRefs {
			found = append(found, mention.ReadTarget{Target: mention.Target{Ref: mention.Ref{Path: name}}, Result: string(args)})
			continue
		}
		left = append(left, r)
	}
	return found, left
}

// readResources reads the resources that a message names, as the user's own calls:
// naming a resource requests it. Each reading holds the arguments for its call.
func (o *Orchestrator) readResources(ctx context.Context, st *turnState, readings []mention.ReadTarget) (text string,
	pictures []chat.Part, err error) {
	if len(readings) == 0 {
		return "", nil, nil
	}
	var (
		calls []chat.ToolCall
		of    []*mention.ReadTarget
	)
	for i := range readings {
		call := chat.ToolCall{ID: o.NewID("mention"), Name: o.Library.Resources.Tool,
			Args: json.RawMessage(readings[i].Result)}
		if err := o.Runner.CheckUnattended(ctx, o.Library.Resources.Tools, call); err != nil {
			readings[i].Note = notReadMessage(err)
			continue
		}
		calls, of = append(calls, call), append(of, &readings[i])
	}
	if len(calls) > 0 {
		if pictures, err = o.runMentionCalls(ctx, st, o.Library.Resources.Tools, calls, of); err != nil {
			return "", nil, err
		}
	}
	for i, r := range readings {
		if why := r.Failure(); why != "" {
			readings[i].Note = "not read: " + why
		}
	}
	return mention.Format(readings, 0), pictures, o.warnUnread(ctx, st, readings)
}

// startTodos starts a todo list for a complex request, if the mode has one and no earlier todo is left.
func (o *Orchestrator) startTodos(ctx context.Context, st *turnState) error {
	if !st.settings.TodoForComplex || o.Subtask != nil || o.Todos == nil || !st.settings.hasClass(tool.ClassWriteTodos) {
		return nil
	}
	if complex, _ := complexity.IsComplex(st.input); !complex {
		return nil
	}
	if slices.ContainsFunc(o.Todos(), func(t event.Todo) bool { return t.Status != event.TodoCompleted }) {
		return nil
	}
	steps := complexity.ParseSteps(st.input)
	if len(steps) == 0 {
		steps = []string{"Understand the request and the code it concerns", "Make the changes", "Check the result"}
		if isChinese(st.input) {
			steps = []string{"理解需求和相关代码", "完成修改", "检查结果"}
		}
	}
	var todos []event.Todo
	for i, s := range steps {
		todos = append(todos, event.Todo{ID: fmt.Sprint(i + 1), Content: s, Status: event.TodoPending})
	}
	return o.emit(ctx, st, ActorAgent, event.TodosChanged{Todos: todos})
}

// isChinese reports whether a text is Chinese and does not only quote
// a word: it has more Chinese characters than words in other scripts.
func isChinese(text string) bool {
	isHan := func(r rune) bool { return unicode.Is(unicode.Han, r) }
	han := 0
	for _, r := range text {
		if isHan(r) {
			han++
		}
	}
	words := strings.FieldsFunc(text, func(r rune) bool { return isHan(r) || !unicode.IsLetter(r) })
	return han > len(words)
}
