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

// recordSent, remember and unsent save typed text, remember only for Ctrl+R. An error does not stop typing.
func (t *terminal) recordSent(text string)    { t.app.RecordSent(t.session().ID, text) }
func (t *terminal) recordHistory(text string) { _ = t.app.TypedBook().AddSent(text) }

func (t *terminal) recordUnsent(u repl.UnsentText) {
	a := u.Answer
	_ = t.app.TypedBook().SaveDraft(t.session().ID, typed.Draft{Queue: u.Queue, Text: u.Draft, Pastes: u.Pastes,
		Question: a.Question, Answers: a.Given, Answer: a.Text, Mode: a.Mode})
}

// hasOnlyDraft reports whether the only session to continue has a draft but no message: there is no other,
// or the other is open elsewhere.
func (t *terminal) hasOnlyDraft() bool {
	store := t.app.Store()
	last, err := store.LastSession()
	typed, _ := t.app.TypedBook().NewestDraft(nil)
	if typed == "" || err != nil {
		return typed != ""
	}
	return store.IsInUse(last) && (!slices.Contains(store.AllSessions(), typed) || store.IsUnused(typed))
}

func isCommandText(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "/") || strings.HasPrefix(text, "!")
}

// restoreDraft restores the unsent text where it was typed: at the question that is about to be asked again,
// or at the prompt.
func (t *terminal) restoreDraft(ctx context.Context, wanted typed.DraftChoice) {
	draft, begun := t.app.UnsentDraft(t.session().ID, wanted), repl.Answer{}
	if saved := t.recoverEditorText(); saved != "" {
		draft.Text = saved
	}
	if t.session().WillAsk(draft.Question) {
		begun = repl.Answer{Question: draft.Question, Given: draft.Answers, Text: draft.Answer, Mode: draft.Mode}
		draft.Answer = ""
	}
	asked, left := t.session().UnfinishedCommand()
	if draft.Mode != "" && left { // no running turn that the mode could wait for
		_ = t.session().SwitchMode(ctx, draft.Mode, t.face.Sink()) // SwitchMode reports its error itself
	}
	if asked != "" { // will be sent again; the answer is only for its question
		draft.Answer = ""
		draft.Text = cmp.Or(draft.FullText(), asked)
		draft.Queue = nil
	}
	parts := draft.Parts()
	if len(parts) > 1 { // text after a command would become its arguments
		typed := isCommandText(draft.Text) // a typed command was not queued, and stays
		parts = slices.DeleteFunc(parts, func(text string) bool {
			drop := isCommandText(text)
			if typed {
				drop = text != draft.Text
			}
			if drop {
				t.recordHistory(text)
				_ = t.printText(ink.Dim, t.invocation.printer.T("no longer queued: %s", singleLine(text))) // errors are ignored
			}
			return drop
		})
	}
	text := strings.Join(parts, "\n")
	for _, part := range append(parts, begun.Text) {
		t.recordHistory(part) // in case it is discarded
	}
	t.face.RestoreUnsent(repl.UnsentText{Draft: text, Answer: begun, Pastes: draft.Pastes})
}
