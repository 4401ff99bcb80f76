package toolrun_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"coder/internal/agent/toolrun"
	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/policy"
	"coder/internal/tool"
)

// ruled are hooks that say one thing before every call.
type ruled struct {
	toolrun.Ruling
	err error
	n   int
}

func (h *ruled) Before(context.Context, toolrun.Round, toolrun.HookedCall) (toolrun.Ruling, error) {
	h.n++
	return h.Ruling, h.err
}

func (h *ruled) After(context.Context, toolrun.Round, toolrun.HookedCall, json.RawMessage, time.Duration) (toolrun.Ruling, error) {
	return toolrun.Ruling{}, nil
}

// decisions has the bench note of every request on record who decided, and why.
func (b *bench) decisions() {
	sink := b.round.Sink
	b.round.Sink = event.SinkFunc(func(ctx context.Context, r event.Record) error {
		switch e := r.Event.(type) {
		case event.ToolCallRequested:
			b.note(strings.TrimSpace(fmt.Sprintf("decided %s by %s %s", e.Verdict, e.DecidedBy, strings.Join(e.Reasons, ", "))))
			if e.KeysMissing || e.AutoAllowed != "" {
				b.note(fmt.Sprintf("on record keyless %v, unasked %q", e.KeysMissing, e.AutoAllowed))
			}
		case event.Notice:
			b.note("notice " + e.Text)
		}
		return sink.Emit(ctx, r)
	})
}

// asking is a person who gives one answer and counts the questions.
func (b *bench) asking(option string) *int {
	n := new(int)
	b.round.User = uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
		*n++
		return uip.Response{ID: q.ID, Author: "user", Option: option}, nil
	})
	return n
}

var (
	lasting = policy.Reason{By: "rule", Text: "asks", Lasting: true}
	risky   = policy.Reason{By: "risk", Text: "deletes"}
)

// TestWhatRunsAndWhoDecides: every way to a run, and the ways that lead to none.
func TestWhatRunsAndWhoDecides(t *testing.T) {
	hooks := func(r toolrun.Ruling) func(*bench) { return func(b *bench) { b.round.Hooks = &ruled{Ruling: r} } }
	doubted := func(b *bench) { b.round.Unvouched = true }
	allow, ask, deny := judge(policy.Allow), judge(policy.Ask, lasting), judge(policy.Deny, lasting)
	reading := policy.Func(func(context.Context, policy.Case) (policy.Opinion, error) {
		return policy.Opinion{Verdict: policy.Allow, ReadOnly: true}, nil
	})
	for name, tt := range map[string]struct {
		policy   policy.Policy
		setup    func(*bench)
		call     string // "write a" if none is given
		asked    int
		ran      bool
		decided  string
		recorded string // fields of the request, "" if they are not looked at
	}{
		"allowed":                       {policy: allow, ran: true, decided: "allow by policy"},
		"asked about":                   {policy: ask, asked: 1, ran: true, decided: "allow by user rule: asks"},
		"a read that is asked about":    {policy: ask, call: "read a", asked: 1, ran: true, decided: "allow by user rule: asks"},
		"denied":                        {policy: deny, decided: "deny by policy rule: asks"},
		"no policy":                     {decided: "deny by policy policy: none configured"},
		"no policy, a read":             {call: "read a", decided: "deny by policy policy: none configured"},
		"a policy of none":              {policy: policy.All(), decided: "deny by policy policy: none configured"},
		"an unknown verdict":            {policy: judge(7), decided: "deny by policy"},
		"an unknown verdict in all":     {policy: policy.All(judge(7)), decided: "deny by policy"},
		"the person's own":              {setup: func(b *bench) { b.round.Unjudged = true }, ran: true, decided: "allow by main"},
		"the person's own, not allowed": {policy: deny, setup: func(b *bench) { b.round.Unjudged = true }, ran: true, decided: "allow by main"},

		"hooks say nothing":              {policy: ask, setup: hooks(toolrun.Ruling{}), asked: 1, ran: true, decided: "allow by user rule: asks"},
		"hooks allow what is asked":      {policy: ask, setup: hooks(toolrun.Ruling{Allow: true}), ran: true, decided: "allow by hook rule: asks"},
		"hooks allow a risk":             {policy: judge(policy.Ask, risky), setup: hooks(toolrun.Ruling{Allow: true}), asked: 1, ran: true, decided: "allow by user risk: deletes"},
		"hooks allow what is denied":     {policy: deny, setup: hooks(toolrun.Ruling{Allow: true}), decided: "deny by policy rule: asks"},
		"hooks allow what is allowed":    {policy: allow, setup: hooks(toolrun.Ruling{Allow: true}), ran: true, decided: "allow by policy"},
		"hooks ask about what is denied": {policy: deny, setup: hooks(toolrun.Ruling{AskReason: "sure?"}), decided: "deny by policy rule: asks"},
		"hooks ask":                      {policy: allow, setup: hooks(toolrun.Ruling{AskReason: "sure?"}), asked: 1, ran: true, decided: "allow by user hook: sure?"},
		"hooks ask and allow":            {policy: ask, setup: hooks(toolrun.Ruling{AskReason: "sure?", Allow: true}), asked: 1, ran: true, decided: "allow by user rule: asks, hook: sure?"},
		"hooks deny":                     {policy: allow, setup: hooks(toolrun.Ruling{DenyReason: "no"}), decided: "deny by hook"},
		"hooks deny and allow":           {policy: allow, setup: hooks(toolrun.Ruling{DenyReason: "no", Allow: true}), decided: "deny by hook"},
		"hooks put other arguments":      {policy: allow, setup: hooks(toolrun.Ruling{Input: []byte(`{"x":"a"}`)}), call: "write b", ran: true, decided: "allow by policy"},
		"hooks put arguments off":        {policy: allow, setup: hooks(toolrun.Ruling{Input: []byte(`{"x":"bad"}`)}), decided: "invalid by"},

		"doubted":                   {policy: allow, setup: doubted, asked: 1, ran: true, decided: "allow by user record: this call is from a log that coder did not write on this machine"},
		"doubted, asked about":      {policy: ask, setup: doubted, asked: 1, ran: true, decided: "allow by user rule: asks"},
		"doubted, denied":           {policy: deny, setup: doubted, decided: "deny by policy rule: asks"},
		"doubted, a read":           {policy: allow, setup: doubted, call: "read a", ran: true, decided: "allow by policy"},
		"doubted, known to read":    {policy: reading, setup: doubted, ran: true, decided: "allow by policy"},
		"doubted, allowed by hooks": {policy: ask, setup: func(b *bench) { doubted(b); hooks(toolrun.Ruling{Allow: true})(b) }, asked: 1, ran: true, decided: "allow by user record: this call is from a log that coder did not write on this machine"},

		"let pass by a flag":           {policy: policy.AutoApprove(ask), ran: true, decided: "allow by policy rule: asks, auto-approve: allowed without approval", recorded: `keyless false, unasked "waivable"`},
		"let pass with any risk":       {policy: policy.AutoApproveRisks(ask), ran: true, decided: "allow by policy rule: asks, auto-approve: allowed without approval, risks included", recorded: `keyless false, unasked "risks"`},
		"keys are missing":             {policy: allow, setup: func(b *bench) { b.round.FromRecord = true }, call: "write ghp_01…[masked]", decided: "invalid by", recorded: `keyless true, unasked ""`},
		"on record without keys":       {policy: allow, setup: func(b *bench) { b.round.FromRecord = true }, ran: true, decided: "allow by policy"},
		"a mark that the model writes": {policy: allow, call: "write ghp_01…[masked]", ran: true, decided: "allow by policy"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.add("write", tool.Write, b.fine("write"))
			b.add("read", tool.Read, b.fine("read"))
			b.runner.Policy = tt.policy
			asked := b.asking(uip.OptionApprove)
			b.decisions()
			if tt.setup != nil {
				tt.setup(b)
			}
			call := tt.call
			if call == "" {
				call = "write a"
			}
			got, err := b.run(t.Context(), call)
			if tt.recorded != "" && lines(got, "on record") != "on record "+tt.recorded {
				t.Errorf("on record is not %s:\n%s", tt.recorded, got)
			}
			if err != nil || *asked != tt.asked || (lines(got, "run") != "") != tt.ran || lines(got, "decided") != "decided "+tt.decided {
				t.Errorf("%v, asked %d times:\n%s", err, *asked, got)
			}
		})
	}
}

func TestHooksMayEndTheTurnOrFail(t *testing.T) {
	boom := errors.New("boom")
	for name, tt := range map[string]struct {
		hooks ruled
		is    error
		fatal bool
	}{
		"stop": {ruled{Ruling: toolrun.Ruling{StopReason: "enough"}}, toolrun.ErrStoppedByHook, false},
		"fail": {ruled{err: boom}, boom, true},
	} {
		b := newBench(t)
		b.add("write", tool.Write, b.fine("write"))
		b.round.Hooks = &tt.hooks
		got, err := b.run(t.Context(), "write a")
		if !errors.Is(err, tt.is) || tool.IsFatal(err) != tt.fatal || lines(got, "run") != "" || !strings.Contains(got, "deliver c1") {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
}

// Hooks are asked once about a call, also if it is looked at twice.
func TestHooksAreAskedOnce(t *testing.T) {
	b := newBench(t)
	b.add("write", tool.Write, b.fine("write"))
	b.runner.Policy = judge(policy.Ask, lasting)
	b.asking(uip.OptionApprove)
	h := &ruled{}
	b.round.Hooks = h
	got, err := b.run(t.Context(), "write a", "write b", "write c")
	if err != nil || h.n != 3 || strings.Count(lines(got, "run"), "run") != 3 {
		t.Errorf("%v, asked %d times:\n%s", err, h.n, got)
	}
}

// A tool that is switched off is denied in the words of policy, whatever these are.
func TestASwitchedOffToolNeverRuns(t *testing.T) {
	breaks := policy.Func(func(context.Context, policy.Case) (policy.Opinion, error) {
		return policy.Opinion{}, errors.New("boom")
	})
	for name, p := range map[string]policy.Policy{"deny": judge(policy.Deny, lasting), "ask": judge(policy.Ask, lasting), "allow": judge(policy.Allow), "boom": breaks} {
		b := newBench(t)
		b.add("write", tool.Write, b.fine("write"))
		b.runner.Policy = p
		asked := b.asking(uip.OptionApprove)
		b.decisions()
		set, err := tool.NewSet(b.tools...)
		if err != nil {
			t.Fatal(err)
		}
		b.round.Tools = set.Without(func(string) bool { return true })
		b.round.Calls = []chat.ToolCall{{ID: "c1", Name: "write", Args: []byte(`{"x":"a"}`)}}
		err = b.runner.Run(t.Context(), b.round)
		got := strings.Join(b.log, "\n")
		if err != nil || *asked != 0 || lines(got, "run", "plan") != "" || !strings.Contains(got, " by policy") || name == "boom" != strings.Contains(got, "boom") {
			t.Errorf("%s: %v, asked %d times:\n%s", name, err, *asked, got)
		}
	}
}

func TestACallIsNotLookedAtWhenTheTurnHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := newBench(t)
	b.add("write", tool.Write, b.fine("write"))
	if got, err := b.run(ctx, "write a"); err != context.Canceled || lines(got, "plan", "run") != "" || !strings.Contains(got, "requested c1 cancelled") {
		t.Errorf("%v:\n%s", err, got)
	}
}

func TestAnInterruptionAtTheQuestionRunsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := newBench(t)
	b.add("write", tool.Write, b.fine("write"))
	b.runner.Policy = judge(policy.Ask, lasting)
	b.decisions()
	b.round.User = uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
		cancel()
		return uip.Response{ID: q.ID, Author: "user", Option: uip.OptionApprove}, nil
	})
	got, err := b.run(ctx, "write a")
	if err != context.Canceled || lines(got, "run") != "" || !strings.Contains(got, "decided cancelled by policy rule: asks") || !strings.Contains(got, "before this call began") {
		t.Errorf("%v:\n%s", err, got)
	}
}

// An interruption after the verdict and before the record runs nothing either.
func TestAnInterruptionAfterTheVerdictRunsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := newBench(t)
	b.add("write", tool.Write, b.fine("write"))
	b.runner.Policy = policy.Func(func(context.Context, policy.Case) (policy.Opinion, error) {
		cancel()
		return policy.Opinion{Verdict: policy.Allow}, nil
	})
	if got, err := b.run(ctx, "write a"); err != context.Canceled || lines(got, "run") != "" || !strings.Contains(got, "requested c1 cancelled") {
		t.Errorf("%v:\n%s", err, got)
	}
}

// A denial stays one, whatever ends the turn.
func TestAnInterruptionDoesNotTurnADenialAround(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := newBench(t)
	b.add("write", tool.Write, b.fine("write"))
	b.runner.Policy = policy.Func(func(context.Context, policy.Case) (policy.Opinion, error) {
		cancel()
		return policy.Opinion{}, nil
	})
	if got, err := b.run(ctx, "write a"); err != context.Canceled || !strings.Contains(got, "requested c1 deny") {
		t.Errorf("%v:\n%s", err, got)
	}
}

// A call that waits for its answer is no failure.
func TestAParkedCallIsNotFatal(t *testing.T) {
	b := newBench(t)
	b.add("write", tool.Write, b.fine("write"))
	b.runner.Policy, b.round.User = judge(policy.Ask, lasting), uip.PendingInteractor
	if _, err := b.run(t.Context(), "write a"); !errors.Is(err, uip.ErrAnswerPending) || tool.IsFatal(err) {
		t.Errorf("err = %v", err)
	}
}

// A broken call of the record that lacks its keys is not read as text.
func TestABrokenCallWithoutItsKeysDoesNotRun(t *testing.T) {
	b := newBench(t)
	b.add("write", tool.Write, b.fine("write"))
	b.round.FromRecord = true
	b.round.Calls = []chat.ToolCall{{ID: "c1", Name: "write", Args: []byte(`{}`), Broken: "ghp_01…[masked]"}}
	if got, err := b.run(t.Context()); err != nil || lines(got, "run") != "" || !strings.Contains(got, "keys in its arguments") {
		t.Errorf("%v:\n%s", err, got)
	}
}

// A change that cannot be made in part is not made.
func TestHunksThatCannotBePreparedAreNotMade(t *testing.T) {
	b := newBench(t)
	b.runner.Policy = askWrites
	whole := hunky(b.note, func() string { return "" })
	b.tools = []tool.Tool{failing{whole}}
	b.round.User = uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
		return uip.Response{ID: q.ID, Author: "user", Option: uip.OptionSome, Input: "1"}, nil
	})
	if got, err := b.change(t.Context(), "a b"); err != nil || lines(got, "make") != "" || !strings.Contains(got, "not in part") {
		t.Errorf("%v:\n%s", err, got)
	}
}

// failing is a tool that prepares no part of a change.
type failing struct{ tool.Tool }

func (f failing) Prepare(ctx context.Context, args json.RawMessage) (tool.Call, error) {
	if strings.Contains(string(args), tool.OnlyHunks) {
		return nil, errors.New("not in part")
	}
	return f.Tool.Prepare(ctx, args)
}

func TestAPolicyThatBreaksAtAChangeDenies(t *testing.T) {
	b := newBench(t)
	b.add("write", tool.Write, b.fine("write"))
	b.runner.Policy = policy.Func(func(_ context.Context, c policy.Case) (policy.Opinion, error) {
		if c.Plan.Title == "b" {
			return policy.Opinion{Verdict: policy.Allow}, errors.New("boom")
		}
		return policy.Opinion{Verdict: policy.Ask, Reasons: []policy.Reason{lasting}}, nil
	})
	b.decisions()
	b.round.User = uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
		return uip.Response{ID: q.ID, Author: "user", Option: uip.OptionApprove, Args: []byte(`{"x":"b"}`)}, nil
	})
	if got, err := b.run(t.Context(), "write a"); err != nil || lines(got, "run", "decided") != "decided deny by policy rule: asks" {
		t.Errorf("%v:\n%s", err, got)
	}
}

// A person is asked about work without a record only where there is none, and a record
// that was refused is tried once more, as that of a refusal.
func TestARecordIsAskedAboutOnlyWhereThereIsNone(t *testing.T) {
	for _, full := range []bool{false, true} {
		b := newBench(t)
		b.add("write", tool.Write, b.fine("write"))
		asked := b.asking(uip.OptionReject)
		b.runner.Waiver = &toolrun.RecordWaiver{Waive: func() error { return nil }}
		b.round.Unjudged = true
		if full {
			b.round.Sink = &fullDisk{bench: b}
		}
		b.decisions()
		got, err := b.run(t.Context(), "write a")
		want := "decided allow by main"
		if full {
			want += "\ndecided deny by policy"
		}
		if err != nil || (*asked == 1) != full || lines(got, "decided") != want {
			t.Errorf("full=%v: %v, asked %d times:\n%s", full, err, *asked, got)
		}
	}
}

func TestASwitchedOffToolIsNotHarmless(t *testing.T) {
	b := newBench(t)
	b.add("read", tool.Read, b.fine("read"))
	set, err := tool.NewSet(b.tools...)
	if err != nil {
		t.Fatal(err)
	}
	b.runner.Policy = policy.Func(func(context.Context, policy.Case) (policy.Opinion, error) {
		return policy.Opinion{ReadOnly: true}, nil
	})
	if b.runner.IsHarmless(t.Context(), set.Without(func(string) bool { return true }), chat.ToolCall{ID: "c1", Name: "read", Args: []byte(`{"x":"a"}`)}) {
		t.Error("it may be run again")
	}
}

func TestAQuestionThatFailsEndsTheTurn(t *testing.T) {
	boom := errors.New("boom")
	for _, calls := range [][]string{{"write a"}, {"write a", "write b"}} {
		b := newBench(t)
		b.add("write", tool.Write, b.fine("write"))
		b.runner.Policy = judge(policy.Ask, lasting)
		b.round.User = uip.InteractorFunc(func(context.Context, uip.Request) (uip.Response, error) { return uip.Response{}, boom })
		got, err := b.run(t.Context(), calls...)
		if !errors.Is(err, boom) || !tool.IsFatal(err) || lines(got, "run") != "" {
			t.Errorf("%v:\n%s", err, got)
		}
	}
}

// An answer on a card does not hold once policy has other reasons.
func TestAnAnswerOnACardHoldsForItsReasons(t *testing.T) {
	b := newBench(t)
	b.add("write", tool.Write, b.fine("write"))
	b.runner.Policy = policy.Func(func(context.Context, policy.Case) (policy.Opinion, error) {
		why := lasting
		if slices.Contains(b.log, "run write a") {
			why = risky
		}
		return policy.Opinion{Verdict: policy.Ask, Reasons: []policy.Reason{why}}, nil
	})
	asked := b.asking(uip.OptionApprove)
	if got, err := b.run(t.Context(), "write a", "write b"); err != nil || *asked != 2 {
		t.Errorf("%v, asked %d times:\n%s", err, *asked, got)
	}
}

func TestArgumentsWithMarksOfKeysAreNoYes(t *testing.T) {
	for _, x := range []string{"a", "ghp_01…[masked]"} { // as shown, or others
		b := newBench(t)
		b.add("write", tool.Write, b.fine("write"))
		b.runner.Policy = judge(policy.Ask, lasting)
		b.round.User = uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
			return uip.Response{ID: q.ID, Author: "user", Option: uip.OptionApprove, Args: []byte(`{"x":"ghp_01…[masked]"}`)}, nil
		})
		if got, err := b.run(t.Context(), "write "+x); err != nil || lines(got, "run") != "" || !strings.Contains(got, "keys in its arguments") {
			t.Errorf("%v:\n%s", err, got)
		}
	}
}

// Arguments count with every kind of yes, and what is judged then is on record.
func TestARememberedYesRunsTheArgumentsThatCameWithIt(t *testing.T) {
	b := newBench(t)
	b.add("write", tool.Write, b.fine("write"))
	b.runner.Policy = policy.Func(func(_ context.Context, c policy.Case) (policy.Opinion, error) {
		return policy.Opinion{Verdict: policy.Ask, Reasons: []policy.Reason{{By: "rule", Text: "asks for " + c.Plan.Title, Lasting: true}}}, nil
	})
	remembered := 0
	b.runner.Approvals = memory(func() { remembered++ })
	b.decisions()
	b.round.User = uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
		return uip.Response{ID: q.ID, Author: "user", Option: uip.OptionAlways, Args: []byte(`{"x":"b"}`)}, nil
	})
	got, err := b.run(t.Context(), "write a")
	if err != nil || lines(got, "run", "decided") != "decided allow by user rule: asks for b\nrun write b" || remembered != 1 {
		t.Errorf("%v, remembered %d times:\n%s", err, remembered, got)
	}
}

func TestADeniedChangeIsPolicysDoing(t *testing.T) {
	b := newBench(t)
	b.add("write", tool.Write, b.fine("write"))
	b.runner.Policy = policy.Func(func(_ context.Context, c policy.Case) (policy.Opinion, error) {
		if c.Plan.Title == "b" {
			return policy.Opinion{Reasons: []policy.Reason{risky}}, nil
		}
		return policy.Opinion{Verdict: policy.Ask, Reasons: []policy.Reason{lasting}}, nil
	})
	b.decisions()
	b.round.User = uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
		return uip.Response{ID: q.ID, Author: "user", Option: uip.OptionApprove, Args: []byte(`{"x":"b"}`)}, nil
	})
	if got, err := b.run(t.Context(), "write a"); err != nil || lines(got, "run", "decided") != "decided deny by policy risk: deletes" {
		t.Errorf("%v:\n%s", err, got)
	}
}

type forgetful struct{ memory }

func (forgetful) Add(context.Context, policy.Case, policy.Scope) error {
	return errors.New("disk full")
}

func TestAnAnswerThatCannotBeRememberedStillCounts(t *testing.T) {
	for memory, want := range map[toolrun.ApprovalStore]string{&forgetful{}: "notice could not remember the answer: disk full", &choosy{"write": {policy.ThisProject}}: ""} {
		b := newBench(t)
		b.add("write", tool.Write, b.fine("write"))
		b.runner.Policy, b.runner.Approvals = judge(policy.Ask, lasting), memory
		b.asking(uip.OptionAlways)
		b.decisions()
		if got, err := b.run(t.Context(), "write a"); err != nil || lines(got, "run") == "" || lines(got, "notice") != want {
			t.Errorf("%v:\n%s", err, got)
		}
	}
}

func TestWhatIsRecalledIsNotMadeAgain(t *testing.T) {
	b := newBench(t)
	b.add("write", tool.Write, b.fine("write"))
	b.runner.KnownResult = func(_ context.Context, id string) (tool.Result, bool, error) {
		return tool.Result{Value: map[string]any{"ok": true, "from": "record"}}, id == "c1", nil
	}
	if got, err := b.run(t.Context(), "write a", "write b"); err != nil || lines(got, "run") != "run write b" || !strings.Contains(got, `"from":"record"`) {
		t.Errorf("%v:\n%s", err, got)
	}
}

func TestHarmlessCallsOnlyReadOrTakeNotes(t *testing.T) {
	b := newBench(t)
	for name, kind := range map[string]tool.Kind{"read": tool.Read, "note": tool.Note, "write": tool.Write} {
		b.add(name, kind, b.fine(name))
	}
	set, err := tool.NewSet(b.tools...)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"read": true, "note": true, "write": false, "nope": false} {
		if got := b.runner.IsHarmless(t.Context(), set, chat.ToolCall{ID: "c1", Name: name, Args: []byte(`{"x":"a"}`)}); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Hunks that moved are the same hunks; hunks with other text are not.
func TestHunksOnACardAreToldApartByTheirText(t *testing.T) {
	for change, again := range map[string]bool{"moved": false, "text": true, "head": true} {
		for _, option := range []string{uip.OptionSome, uip.OptionApprove} {
			b := newBench(t)
			b.runner.Policy = askWrites
			b.tools = []tool.Tool{tool.Func[hunkArgs]{Name: "change", PlanRun: func(_ context.Context, a hunkArgs) (tool.Plan, tool.Run, error) {
				at, text, head := 1, "old", "f"
				if slices.Contains(b.log, "make 1") {
					switch change {
					case "moved":
						at = 5
					case "text":
						text = "other"
					case "head":
						head = "g"
					}
				}
				diff := fmt.Sprintf("--- a/%s\n+++ b/%s\n@@ -%d,1 +%d,1 @@\n-%s\n+new\n@@ -9,1 +9,1 @@\n-x\n+y\n", head, head, at, at, text)
				plan := tool.Plan{Title: "f", Effects: []tool.Effect{{Kind: tool.Write, Target: "f"}}, Preview: display.Diff{Unified: diff}, Hunks: 2}
				return plan, func(context.Context, io.Writer) (tool.Result, error) {
					b.note("make " + a.Files)
					return tool.Result{Value: map[string]any{"ok": true}}, nil
				}, nil
			}}}
			asked := 0
			b.round.User = uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
				if asked++; asked > 1 {
					return uip.Response{ID: q.ID, Author: "user", Option: uip.OptionReject}, nil
				}
				a := uip.Response{ID: q.ID, Author: "user"}
				for _, part := range q.Parts {
					a.Parts = append(a.Parts, uip.Response{ID: part.ID, Option: option, Input: "1"})
				}
				return a, nil
			})
			if got, err := b.change(t.Context(), "1", "2"); err != nil || (asked == 2) != (again && option == uip.OptionSome) {
				t.Errorf("%s, %s: %v, asked %d times:\n%s", change, option, err, asked, got)
			}
		}
	}
}

// The turn ends with the error of the record, before any other call is looked at.
func TestARecordThatFailsEndsTheTurnItself(t *testing.T) {
	full := errors.New("disk full")
	b := newBench(t)
	b.add("write", tool.Write, b.fine("write"))
	b.round.Sink = event.SinkFunc(func(_ context.Context, r event.Record) error {
		if _, ok := r.Event.(event.ToolCallRequested); ok {
			return full
		}
		return nil
	})
	if got, err := b.run(t.Context(), "write a"); err != full || lines(got, "run") != "" {
		t.Errorf("%v:\n%s", err, got)
	}
}
