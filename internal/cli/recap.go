package cli

import (
	"context"
	"slices"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/sanitize"
	"coder/internal/ui/term/ink"
)

// recap shows the last exchange of the session: what the person said, and what
// the answer was.
func (t *terminal) recap(ctx context.Context) error {
	var last exchange
	var rewound []exchange // each as it was before
	for r, err := range t.app.Store().Logs.Read(ctx, t.session.ID, 0, event.Conversation) {
		if err != nil {
			return err
		}
		switch e := r.Event.(type) {
		case event.MessageAdded:
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
	var said [][]ink.Span
	for i, line := range strings.Split(strings.TrimSpace(sanitize.Text(sanitize.Mask(shown.prompt))), "\n") {
		mark := "> "
		if i > 0 {
			mark = "  "
		}
		said = append(said, append(span(ink.Good, mark), span(ink.Plain, line)...))
	}
	switch shown.calls {
	case 0:
	case 1:
		said = append(said, span(ink.Dim, t.inv.words.T("1 call of a tool")))
	default:
		said = append(said, span(ink.Dim, t.inv.words.T("%d calls of tools", shown.calls)))
	}
	if err := t.face.Tell(said...); err != nil || shown.answer == nil {
		return err
	}
	return t.face.Recall(*shown.answer, strings.HasPrefix(strings.TrimSpace(shown.prompt), "!"))
}

// exchange is what was said in a session, turn by turn.
type exchange []struct {
	seq    uint64
	task   string
	prompt string
	calls  int
	answer *event.MessageAdded // the last with words, if there is one
}

// add takes in a message. The first of a turn is the person's; those of other
// agents are not part of it.
func (x *exchange) add(r event.Record, e event.MessageAdded) {
	text := strings.TrimSpace(e.Message.Text())
	n := len(*x)
	switch {
	case e.Message.Role == chat.User && (n == 0 || (*x)[n-1].task != r.Task) && r.Actor == event.ActorUser && text != "":
		*x = append(*x, exchange{{seq: r.Seq, task: r.Task, prompt: e.Message.Text()}}...)
	case e.Message.Role == chat.Assistant && n > 0 && (*x)[n-1].task == r.Task:
		last := &(*x)[n-1]
		last.calls += len(e.Message.Calls())
		if text != "" || e.Blocks != nil {
			last.answer = &e
		}
	}
}
