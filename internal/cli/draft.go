package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"coder/internal/record/typed"
	"coder/internal/ui/repl"
	"coder/internal/ui/term/ink"
)

// sent, remember and unsent save typed text, remember only for Ctrl+R. An error does not stop typing.
func (t *terminal) sent(text string)     { t.app.Sent(t.session().ID, text) }
func (t *terminal) remember(text string) { _ = t.app.Typed().Add(text) }

func (t *terminal) unsent(u repl.Unsent) {
	a := u.Answer
	_ = t.app.Typed().Keep(t.session().ID, typed.Draft{Queue: u.Queue, Text: u.Draft, Pastes: u.Pastes, Question: a.Question, Given: a.Given, Answer: a.Text, Mode: a.Mode})
}

// onlyDraft reports whether the only session to continue has a draft but no message: there is no other,
// or the other is open elsewhere.
func (t *terminal) onlyDraft() bool {
	store := t.app.Store()
	last, err := store.Last()
	typed, _ := t.app.Typed().Unsent(nil)
	if typed == "" || err != nil {
		return typed != ""
	}
	return store.InUse(last) && (!slices.Contains(store.All(), typed) || store.Unused(typed))
}

func isCommand(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "/") || strings.HasPrefix(text, "!")
}

// putDraft restores the unsent text where it was typed: at the question that is about to be asked again,
// or at the prompt.
func (t *terminal) putDraft(ctx context.Context, wanted typed.Wanted) {
	draft, begun := t.app.Unsent(t.session().ID, wanted), repl.Answer{}
	if saved := t.inEditor(); saved != "" {
		draft.Text = saved
	}
	if t.session().Asks(draft.Question) {
		begun = repl.Answer{Question: draft.Question, Given: draft.Given, Text: draft.Answer, Mode: draft.Mode}
		draft.Answer = ""
	}
	asked, left := t.session().LeftCommand()
	if draft.Mode != "" && left { // no running turn that the mode could wait for
		_ = t.session().SwitchMode(ctx, draft.Mode, t.face.Out()) // SwitchMode reports its error itself
	}
	if asked != "" { // will be sent again; the answer is only for its question
		draft.Answer = ""
		draft.Text = cmp.Or(draft.Whole(), asked)
		draft.Queue = nil
	}
	parts := draft.Parts()
	if len(parts) > 1 { // text after a command would become its arguments
		typed := isCommand(draft.Text) // a typed command was not queued, and stays
		parts = slices.DeleteFunc(parts, func(text string) bool {
			drop := isCommand(text)
			if typed {
				drop = text != draft.Text
			}
			if drop {
				t.remember(text)
				_ = t.say(ink.Dim, t.inv.words.T("no longer queued: %s", oneLine(text))) // errors are ignored
			}
			return drop
		})
	}
	text := strings.Join(parts, "\n")
	for _, part := range append(parts, begun.Text) {
		t.remember(part) // in case it is discarded
	}
	t.face.Put(repl.Unsent{Draft: text, Answer: begun, Pastes: draft.Pastes})
}
