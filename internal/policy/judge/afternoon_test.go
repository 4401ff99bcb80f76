package judge_test

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"coder/internal/agent/toolrun"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/core/uip"
	"coder/internal/tool"
)

//go:embed testdata/afternoon.txt
var afternoon string

// mostQuestions is how often a person may be asked in an afternoon.
const mostQuestions = 8

// TestAnAfternoon runs an ordinary afternoon's work through the gate, with a
// person who says "always" wherever they can, and counts the questions. What
// only resembles the work stands between it and must be asked about each time,
// whatever was remembered by then.
func TestAnAfternoon(t *testing.T) {
	var edits, commands, tests, evil int
	files := make(map[string]bool)
	a := newDesk(t, "build")
	for round := range strings.SplitSeq(afternoon, "\n\n") {
		var work []chat.ToolCall
		for line := range strings.Lines(round) {
			kind, what, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch kind {
			case "edit":
				edits, files[what] = edits+1, true
				work = append(work, call("edit", what))
			case "run":
				commands++
				if strings.Contains(what, "go test") || strings.Contains(what, "pytest") {
					tests++
				}
				work = append(work, call("bash", what))
			case "evil":
				evil++
				c := call("bash", what)
				if path, ok := strings.CutPrefix(what, "edit "); ok {
					c = call("edit", path)
				}
				if before := a.asked; a.run(t, uip.OptionReject, c) != 0 || a.asked == before && !a.denied {
					t.Errorf("unasked: %s", what)
				}
				a.asked = a.questions
			}
		}
		if len(work) > 0 && a.run(t, "", work...) != len(work) {
			t.Errorf("not all of it ran:\n%s", round)
		}
		a.questions = a.asked
	}
	t.Logf("%d edits in %d files, %d commands, %d test runs: %d questions, and %d lines that only resemble them", edits, len(files), commands, tests, a.questions, evil)
	if edits < 15 || len(files) < 10 || commands < 35 || tests < 10 || evil < 30 {
		t.Errorf("not much of an afternoon: %d edits in %d files, %d commands, %d test runs, %d traps", edits, len(files), commands, tests, evil)
	}
	if a.questions > mostQuestions {
		t.Errorf("%d questions, want at most %d:\n%s", a.questions, mostQuestions, strings.Join(a.cards, "\n"))
	}
}

// desk is where a person is asked.
type desk struct {
	runner    *toolrun.Runner
	set       tool.Set
	answer    string // what they say; if empty, always where they can
	asked     int
	questions int // of the work
	denied    bool
	cards     []string
	ran       atomic.Int64
}

type one struct {
	What string `json:"what"`
}

func call(name, what string) chat.ToolCall {
	return chat.ToolCall{ID: name + what, Name: name, Args: jsonx.MustMarshal(one{what})}
}

func newDesk(t *testing.T, mode string) *desk {
	t.Helper()
	d := &desk{}
	j := newJudge(t, mode, nil)
	m, err := j.OpenMemory(t.TempDir(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	add := func(name string, kind tool.Kind) tool.Tool {
		return tool.Func[one]{
			Name: name,
			Plan: func(_ context.Context, in one) (tool.Plan, error) {
				return tool.Plan{Title: in.What, Effects: []tool.Effect{{Kind: kind, Target: in.What}}}, nil
			},
			Do: func(context.Context, one, io.Writer) (tool.Result, error) {
				d.ran.Add(1)
				return tool.Result{Value: map[string]any{"ok": true}}, nil
			},
		}
	}
	if d.set, err = tool.NewSet(add("bash", tool.Exec), add("edit", tool.Write)); err != nil {
		t.Fatal(err)
	}
	ids := 0
	d.runner = &toolrun.Runner{Policy: j, Approvals: m, Now: func() time.Time { return time.Time{} }, NewID: func() string { ids++; return fmt.Sprint("ui_", ids) }}
	return d
}

// run takes calls through the gate and tells how many ran.
func (d *desk) run(t *testing.T, answer string, calls ...chat.ToolCall) int {
	t.Helper()
	before := d.ran.Load()
	d.answer, d.denied = answer, false
	err := d.runner.Run(t.Context(), toolrun.Round{
		Task: "t", Actor: "main", Tools: d.set, Calls: calls, User: d, Sink: event.Discard,
		Deliver: func(_ context.Context, out toolrun.Outcome) error {
			d.denied = d.denied || out.Denied
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return int(d.ran.Load() - before)
}

// Ask says "always" to what may be remembered, with one answer for a whole
// card: the widest that is offered.
func (d *desk) Ask(_ context.Context, q uip.Request) (uip.Response, error) {
	d.asked++
	title := q.Display.Title
	for _, p := range q.Parts {
		title += "; " + p.Display.Title
	}
	d.cards = append(d.cards, title)
	if d.answer != "" {
		return uip.Response{ID: q.ID, Author: "user", Option: d.answer}, nil
	}
	for _, option := range []string{uip.OptionAlwaysBelow, uip.OptionAlways} {
		if slices.ContainsFunc(q.Options, func(o uip.Option) bool { return o.ID == option }) {
			return uip.Response{ID: q.ID, Author: "user", Option: option}, nil
		}
	}
	return uip.Response{ID: q.ID, Author: "user", Option: uip.OptionApprove}, nil
}
