//go:build unix

package repl

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/ui/lineedit"
)

// origins is a session that keeps where the pieces of its inputs came from.
type origins struct {
	talk
	heard []string
}

func (s *origins) Run(ctx context.Context, words lineedit.Draft, out event.Sink) (string, error) {
	var pieces []string
	for _, p := range words.Words() {
		if p.Text != "" {
			pieces = append(pieces, string(p.Origin)+" "+p.Text)
		}
	}
	s.heard = append(s.heard, strings.Join(pieces, " + "))
	said := fmt.Sprintf("heard %d.", len(s.heard))
	return "", out.Emit(ctx, event.Record{Event: event.MessageAdded{Message: chat.TextMessage(chat.Assistant, said)}})
}

// TestLinesOfAPasteAreNotTyped: in a terminal that prints lines each line that came
// with others counts as pasted, whole, and no later one does.
func TestLinesOfAPasteAreNotTyped(t *testing.T) {
	s := &origins{}
	d, leave := sitInLines(t, func(*LineREPL) Session { return s })
	for _, step := range []struct {
		keys  string
		heard int
	}{
		{"\x1b[200~one\rtwo\x1b[201~\r", 2}, {"by hand\r", 3}, {"\x1b[200~a single line\r\n\x1b[201~", 4},
		{"\x1b[200~single\x1b[201~ and typed\r", 5}, {"see \x1b[200~p\nq\x1b[201~ there\r", 7},
		{"\x1b[200~gone\ngone too\x1b[201~\x15typed again\r", 9}, {"\x1b[200~\n\nthree\n\x1b[201~", 10}, {"at last\r", 11},
	} {
		d.sees("/w> ")
		d.keys(step.keys)
		d.sees(fmt.Sprintf("heard %d.", step.heard))
	}
	leave()
	want := []string{
		"pasted one", "pasted two", "typed by hand", "typed a single line", "typed single and typed", "pasted see p",
		"pasted q there", "pasted gone", "typed typed again", "pasted three", "typed at last",
	}
	if got := strings.Join(s.heard, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("heard:\n%s", got)
	}
}
