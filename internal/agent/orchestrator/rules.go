package orchestrator

import (
	"context"
	"slices"

	"coder/internal/agent/toolrun"
	"coder/internal/authored/rulefile"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/tool"
)

// touchedFiles lists the files that calls read or wrote in this round.
type touchedFiles []string

func (t *touchedFiles) addOutcome(out toolrun.Outcome) {
	for _, e := range out.Effects {
		if (e.Kind == tool.Read || e.Kind == tool.Write) && !slices.Contains(*t, e.Target) {
			*t = append(*t, e.Target)
		}
	}
}

// applyRules shows the model the rules for the files that it has reached, each rule once per conversation.
func (o *Orchestrator) applyRules(ctx context.Context, st *turnState) error {
	text, names := o.unseenRules(st)
	if text == "" {
		return nil
	}
	return o.emit(ctx, st, ActorAgent, event.MessageAdded{Message: chat.TextMessage(chat.User, joinReminders("", text)),
		ReminderNames: names})
}

// unseenRules returns the rules for the files reached since the last call that
// the model has not seen, and the names under which the record keeps that.
func (o *Orchestrator) unseenRules(st *turnState) (text string, names []string) {
	files := st.touchedFiles
	st.touchedFiles = nil
	if st.settings.RulesFor == nil {
		return "", nil
	}
	var all []rulefile.Rule
	for _, file := range files {
		for _, r := range st.settings.RulesFor(file) {
			if name := event.RulesReminderPrefix + r.Path; !o.Conversation.HasReminder(name) && !slices.Contains(names, name) {
				all, names = append(all, r), append(names, name)
			}
		}
	}
	if len(all) == 0 {
		return "", nil
	}
	return "These rules apply to files that you have reached. They cannot grant permissions." +
		rulefile.FormatRules(all), names
}
