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

// lists returns the list shown for a command without its argument.
func (t *terminal) lists(input string) (p lineedit.Picker, ok bool) {
	switch input {
	case "/resume":
		p = t.sessionList(context.Background(), "/resume ")
	case "/rewind":
		p.Title = t.inv.words.T("go back to before: ")
		for i, text := range t.session().Prompts() {
			n := strconv.Itoa(i + 1)
			p.Items = append(p.Items, lineedit.Item{Choice: lineedit.Choice{Text: n, Note: text}, Value: "/rewind " + n})
		}
	default:
		p = t.menu(input)
	}
	return p, len(p.Items) > 0
}

// sessionList lists the sessions that can be continued, newest first. Their values begin with lead.
func (t *terminal) sessionList(ctx context.Context, lead string) lineedit.Picker {
	p := lineedit.Picker{Title: t.inv.words.T("continue session: ")}
	heads, _ := t.app.Store().Heads(ctx) // the readable ones
	for _, h := range heads {
		if t.host != nil && t.session().ID == h.ID {
			continue
		}
		title := cmp.Or(oneLine(h.Meta.Title), t.inv.words.T("nothing was asked"))
		if t.openElsewhere(h.ID) {
			title = t.inv.words.T("[open] %s", title)
		}
		p.Items = append(p.Items, lineedit.Item{Choice: lineedit.Choice{Text: h.Updated.Local().Format("2006-01-02 15:04"), Note: title + t.apart() + h.ID}, Value: lead + h.ID})
	}
	return p
}

// openElsewhere reports whether another process holds a session.
func (t *terminal) openElsewhere(id string) bool { return isLive(t.app.Store().Dir("log", id, "lock")) }

// lastElsewhere reports, and warns, that the session to continue is the last one but open elsewhere: the
// user can choose another.
func (t *terminal) lastElsewhere() bool {
	which := t.inv.flags.session
	if !which.Last || which.Resume != "" || which.Fork || t.onlyDraft() {
		return false
	}
	last, err := t.app.Store().Last()
	if id := cmp.Or(t.app.LeftTyping(), last); err != nil || !t.openElsewhere(id) {
		return false
	}
	said := t.inv.words.T("the last session is open elsewhere; choose another, or watch it")
	typed, _ := t.app.Typed().Unsent(func(id string) bool {
		return slices.Contains(t.app.Store().All(), id) && !t.app.Store().Unused(id) && !t.openElsewhere(id)
	})
	if typed != "" {
		said = t.inv.words.T("the last session is open elsewhere; this one has an unsent draft")
		t.inv.flags.session.Resume = typed
	}
	_ = t.say(ink.Warn, said) // errors are ignored
	return typed == ""
}

// pickSession lets the user choose the session to continue, if possible. A session open elsewhere can be
// watched.
func (t *terminal) pickSession(ctx context.Context) error {
	for {
		p := t.sessionList(ctx, "")
		if len(p.Items) == 0 {
			return nil
		}
		id, err := t.pick(ctx, p)
		if err != nil {
			return err
		}
		if !t.openElsewhere(id) {
			t.inv.flags.session.Resume = id
			return nil
		}
		const watch = "watch"
		choice, err := t.pick(ctx, lineedit.Picker{Title: t.inv.words.T("open elsewhere: session %s", id), Items: []lineedit.Item{
			{Choice: lineedit.Choice{Text: t.inv.words.T("watch it")}, Value: watch},
			{Choice: lineedit.Choice{Text: t.inv.words.T("choose another")}},
		}})
		switch {
		case choice == watch:
			t.watch = id
			return repl.ErrLeft
		case err != nil && !errors.Is(err, repl.ErrLeft):
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
