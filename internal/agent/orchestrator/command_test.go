package orchestrator

import (
	"context"
	"errors"
	"strings"
	"testing"

	"coder/internal/core/event"
)

// locals collects the commands on record.
func (b *bench) locals() *[]event.LocalAdded {
	all := new([]event.LocalAdded)
	b.onEach = func(e event.Event) {
		if l, ok := e.(event.LocalAdded); ok {
			*all = append(*all, l)
		}
	}
	return all
}

// withCommands gives the bench a few commands.
func withCommands(b *bench) *bench {
	b.Config.Commands = []Command{
		{Name: "echo", Args: "WORDS", Run: func(_ context.Context, c *CommandCall) (Outcome, error) { return Outcome{Text: "said " + c.Args}, nil }},
		{Name: "fail", Run: func(context.Context, *CommandCall) (Outcome, error) {
			return Outcome{Text: "lost"}, &CommandError{"not so"}
		}},
		{Name: "go", Run: func(context.Context, *CommandCall) (Outcome, error) {
			return Outcome{Text: "gone", Destination: &Destination{Session: "other"}}, nil
		}},
		{Name: "ask", Prompt: func(args string) string { return "Do it, " + args }},
	}
	return b
}

func TestACommandIsOnRecordAndNeverReachesTheModel(t *testing.T) {
	for _, tt := range []struct {
		input string
		want  Outcome
		err   string
	}{
		{" /echo  a b ", Outcome{Text: "said a b"}, ""},
		{"/ECHO", Outcome{Text: "said "}, ""},
		{"/go", Outcome{Text: "gone", Destination: &Destination{Session: "other"}}, ""},
		{"/fail", Outcome{Text: "lost"}, "not so"},
		{"/ecko", Outcome{}, "unknown command /ecko; did you mean /echo? /help lists the commands"},
		{"/fa", Outcome{}, "unknown command /fa; did you mean /fail? /help lists the commands"},
		{"/xxxxxxx", Outcome{}, "unknown command /xxxxxxx; /help lists the commands"},
	} {
		b := withCommands(newBench(t, ""))
		kept := b.locals()
		got, err := b.RunText(t.Context(), tt.input, b)
		if got.Text != tt.want.Text || (got.Destination == nil) != (tt.want.Destination == nil) || got.Destination != nil && *got.Destination != *tt.want.Destination {
			t.Errorf("%s: %+v", tt.input, got)
		}
		says := tt.want.Text
		if tt.err != "" {
			says = tt.err
		}
		if bad := (*CommandError)(nil); tt.err != "" && (!errors.As(err, &bad) || err.Error() != tt.err) || tt.err == "" && err != nil {
			t.Errorf("%s: %v", tt.input, err)
		}
		if len(*kept) != 1 || (*kept)[0].Input != tt.input || (*kept)[0].Output != says || (*kept)[0].Failed != (tt.err != "") {
			t.Errorf("%s: on record: %+v", tt.input, *kept)
		}
		if len(b.model.Requests()) != 0 || len(b.Conversation.Messages()) != 0 || b.saved != 1 {
			t.Errorf("%s: %d requests, %d messages, saved %d times", tt.input, len(b.model.Requests()), len(b.Conversation.Messages()), b.saved)
		}
	}
}

func TestACommandThatAsksTheModelIsATurn(t *testing.T) {
	b := withCommands(newBench(t, "say done"))
	got, err := b.RunText(t.Context(), "/ask please", b)
	if err != nil || got.Text != "done" {
		t.Fatalf("%+v, %v", got, err)
	}
	if told := b.told(0); !strings.HasSuffix(told, "Do it, please") || strings.Contains(told, "/ask") {
		t.Errorf("the model was told %q", told)
	}
	if log := b.log.String(); !strings.HasPrefix(log, "LocalAdded TaskCreated ") {
		t.Errorf("shown: %s", log)
	}
}
