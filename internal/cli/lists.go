package cli

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"

	"coder/internal/ui/lineedit"
	"coder/internal/ui/repl"
	"coder/internal/ui/term/ink"
)

// argumentList returns the list shown for a command without its argument.
func (t *terminal) argumentList(input string) (p lineedit.Picker, ok bool) {
	switch input {
	case "/resume":
		p = t.sessionPicker(context.Background(), "/resume ")
	case "/rewind":
		p.Title = t.invocation.printer.T("go back to before: ")
		for i, text := range t.session().Prompts() {
			n := strconv.Itoa(i + 1)
			p.Items = append(p.Items, lineedit.Item{Choice: lineedit.Choice{Text: n, Note: text}, Value: "/rewind " + n})
		}
	default:
		p = t.commandMenu(input)
	}
	return p, len(p.Items) > 0
}

// sessionPicker lists the sessions that can be continued, newest first. Their values begin with lead.
func (t *terminal) sessionPicker(ctx context.Context, lead string) lineedit.Picker {
	p := lineedit.Picker{Title: t.invocation.printer.T("continue session: ")}
	heads, _ := t.app.Store().ListHeads(ctx) // the readable ones
	for _, h := range heads {
		if t.host != nil && t.session().ID == h.ID {
			continue
		}
		title := cmp.Or(singleLine(h.Meta.Title), t.invocation.printer.T("nothing was asked"))
		if t.isOpenElsewhere(h.ID) {
			title = t.invocation.printer.T("[open] %s", title)
		}
		p.Items = append(p.Items, lineedit.Item{Choice: lineedit.Choice{Text: h.Updated.Local().Format("2006-01-02 15:04"),
			Note: title + t.separator() + h.ID}, Value: lead + h.ID})
	}
	return p
}

// isOpenElsewhere reports whether another process holds a session.
func (t *terminal) isOpenElsewhere(id string) bool {
	return isLive(t.app.Store().Path("log", id, "lock"))
}

// warnLastOpenElsewhere reports, and warns, that the session to continue is the last one but open elsewhere: the
// user can choose another.
func (t *terminal) warnLastOpenElsewhere() bool {
	which := t.invocation.flags.session
	if !which.ContinueLast || which.ResumeID != "" || which.ForkCopy || t.hasOnlyDraft() {
		return false
	}
	last, err := t.app.Store().LastSession()
	if id := cmp.Or(t.app.DraftSession(), last); err != nil || !t.isOpenElsewhere(id) {
		return false
	}
	said := t.invocation.printer.T("the last session is open elsewhere; choose another, or watch it")
	typed, _ := t.app.TypedBook().NewestDraft(func(id string) bool {
		return slices.Contains(t.app.Store().AllSessions(), id) && !t.app.Store().IsUnused(id) && !t.isOpenElsewhere(id)
	})
	if typed != "" {
		said = t.invocation.printer.T("the last session is open elsewhere; this one has an unsent draft")
		t.invocation.flags.session.ResumeID = typed
	}
	_ = t.printText(ink.Warn, said) // errors are ignored
	return typed == ""
}

// pickSession lets the user choose the session to continue, if possible. A session open elsewhere can be
// watched.
func (t *terminal) pickSession(ctx context.Context) error {
	for {
		p := t.sessionPicker(ctx, "")
		if len(p.Items) == 0 {
			return nil
		}
		id, err := t.pick(ctx, p)
		if err != nil {
			return err
		}
		if !t.isOpenElsewhere(id) {
			t.invocation.flags.session.ResumeID = id
			return nil
		}
		const watch = "watch"
		choice, err := t.pick(ctx, lineedit.Picker{Title: t.invocation.printer.T("open elsewhere: session %s", id),
			Items: []lineedit.Item{
				{Choice: lineedit.Choice{Text: t.invocation.printer.T("watch it")}, Value: watch},
				{Choice: lineedit.Choice{Text: t.invocation.printer.T("choose another")}},
			}})
		switch {
		case choice == watch:
			t.watchedSession = id
			return repl.ErrCanceled
		case err != nil && !errors.Is(err, repl.ErrCanceled):
			return err
		}
	}
}

// pick lets the user choose from a list before there is a session.
func (t *terminal) pick(ctx context.Context, p lineedit.Picker) (string, error) {
	value, err := t.face.Pick(ctx, p)
	if errors.Is(err, repl.ErrInterrupted) {
		err = &exitError{code: ExitInterrupted}
	}
	return value, err
}
