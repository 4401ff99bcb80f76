//go:build unix

package repl

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/host/stdio"
	"coder/internal/ui/term"
)

// asking is a session that asks before it answers.
type asking struct {
	person  uip.Interactor
	content display.Block
	heard   []string
}

func (s *asking) Run(ctx context.Context, input string, out event.Sink) (string, error) {
	s.heard = append(s.heard, input)
	a, err := s.person.Ask(ctx, uip.Request{
		ID: "q", Kind: uip.Confirm, Purpose: uip.ConfirmRiskyAction, Display: uip.Display{Title: "bash rm x", Content: s.content},
		Options: []uip.Option{{ID: uip.Approve, Label: "Yes"}, {ID: uip.Reject, Label: "No"}},
	})
	if err != nil {
		return "", err
	}
	s.heard = append(s.heard, a.Option+" "+a.Comment)
	return "", out.Emit(ctx, event.Record{Event: event.MessageAdded{Message: chat.Say(chat.Assistant, "so be it")}})
}

func (s *asking) Continue(context.Context, event.Sink) (string, error) { return "", nil }
func (s *asking) SwitchMode(context.Context, string, event.Sink) error { return nil }
func (s *asking) Steer(func() []string)                                {}
func (s *asking) Change(context.Context, string, event.Sink) error     { return nil }
func (s *asking) Switches(string) string                               { return "" }
func (s *asking) Looks(string) bool                                    { return false }
func (s *asking) Look(context.Context, string, event.Sink) error       { return nil }
func (s *asking) ContextUsed() int                                     { return 7 }

func TestATerminalThatCanOnlyPrintLinesIsTalkedToInLines(t *testing.T) {
	var out bytes.Buffer
	s := &asking{}
	l := &Lines{
		In: stdio.NewReader(strings.NewReader("tidy up\nalways\nn, keep it\n\nagain\ny\n")), Printer: &out, Words: term.English{},
		Render: term.New(term.Options{Out: &out}), Dir: "/w",
		Session: func() Session { return s }, Status: func() (string, string) { return "m", "build" },
	}
	s.person = l
	if err := l.Run(t.Context(), "", false); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.heard, "|"); got != "tidy up|reject keep it|again|approve " {
		t.Errorf("heard %q", got)
	}
	for _, want := range []string{"context: 7 tokens · model: m\n[build] /w> ", "bash rm x", "answer y, n;", "so be it"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Errorf("an escape sequence was sent: %q", out.String())
	}
}

// A yes to a card that leaves something out is taken only once all of it was
// shown.
func TestAYesToWhatIsHiddenNeedsASecondLook(t *testing.T) {
	long := strings.Repeat("echo a\n", 45) + "rm -rf hidden\n" + strings.Repeat("echo b\n", 45)
	for _, tt := range []struct {
		name, typed, heard string
		shown              int
	}{
		{"yes", "go\ny\ny\n", "go|approve ", 1},
		{"view, then yes", "go\nv\ny\n", "go|approve ", 1},
		{"view twice", "go\nview\n查看\nn\n", "go|reject ", 2},
		{"no", "go\nn\n", "go|reject ", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			s := &asking{content: display.Code{Lang: "sh", Source: long}}
			l := &Lines{
				In: stdio.NewReader(strings.NewReader(tt.typed)), Printer: &out, Words: term.English{}, Render: term.New(term.Options{Out: &out}), Dir: "/w",
				Session: func() Session { return s }, Status: func() (string, string) { return "m", "build" },
			}
			s.person = l
			if err := l.Run(t.Context(), "", false); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(s.heard, "|"); got != tt.heard {
				t.Errorf("heard %q", got)
			}
			if n := strings.Count(out.String(), "rm -rf hidden"); n != tt.shown {
				t.Errorf("all of it was shown %d times, want %d:\n%s", n, tt.shown, out.String())
			}
			if !strings.Contains(out.String(), "v = view all of it") {
				t.Error("the card does not say how to see it")
			}
		})
	}
}
