package toolrun_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"coder/internal/agent/toolrun"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/secret"
	"coder/internal/core/uip"
	"coder/internal/policy"
	"coder/internal/tool"
)

var notes = []toolrun.Note{{Owner: "you", Text: "hm"}}

// hookFuncs are hooks made of two functions.
type hookFuncs struct {
	before func(toolrun.HookedCall) (toolrun.Ruling, error)
	after  toolrun.Ruling
	fails  error // after the call
}

func (h hookFuncs) Before(_ context.Context, _ toolrun.Round, c toolrun.HookedCall) (toolrun.Ruling, error) {
	if h.before == nil {
		return toolrun.Ruling{}, nil
	}
	return h.before(c)
}

func (h hookFuncs) After(
	context.Context, toolrun.Round, toolrun.HookedCall, json.RawMessage, time.Duration,
) (toolrun.Ruling, error) {
	return h.after, h.fails
}

// TestWhatARulingLeavesOfACall: which call runs, who decided, and the request to the model.
func TestWhatARulingLeavesOfACall(t *testing.T) {
	other, changed := json.RawMessage(`{"x":"b"}`), `a hook of you changed the arguments to {\"x\":\"b\"}`
	for name, tt := range map[string]struct {
		ruling            toolrun.Ruling
		ran, decided, say string
	}{
		"nothing":           {toolrun.Ruling{}, "run write a", "allow by policy", `{"ok":true,"x":"a"}`},
		"deny":              {toolrun.Ruling{DenyReason: "no"}, "", "deny by hook", `"denied: hook: no"`},
		"stop":              {toolrun.Ruling{StopReason: "enough"}, "", "deny by hook", `"denied: hook: enough"`},
		"other":             {toolrun.Ruling{Input: other, InputBy: "you"}, "run write b", "allow by policy", changed},
		"a note":            {toolrun.Ruling{Notes: notes}, "run write a", "allow by policy", "a hook of you says: hm"},
		"deny, but other":   {toolrun.Ruling{DenyReason: "no", Input: other}, "", "deny by hook", `"denied: hook: no"`},
		"stop, but other":   {toolrun.Ruling{StopReason: "enough", Input: other}, "", "deny by hook", `"denied: hook: enough"`},
		"stop, but allowed": {toolrun.Ruling{StopReason: "enough", Allow: true}, "", "deny by hook", `"denied: hook: enough"`},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.add("write", tool.Write, b.fine("write"))
			b.round.Hooks = &ruled{Ruling: tt.ruling}
			b.decisions()
			got, err := b.run(t.Context(), "write a")
			if errors.Is(err, toolrun.ErrStoppedByHook) != (tt.ruling.StopReason != "") || lines(got, "run") != tt.ran ||
				lines(got, "decided") != "decided "+tt.decided || !strings.Contains(lines(got, "deliver"), tt.say) {
				t.Errorf("%v:\n%s", err, got)
			}
		})
	}
}

// A hook that fails at a second look has not allowed the call at the first.
func TestACallWhoseHookFailedDoesNotRunAtItsTurn(t *testing.T) {
	boom := errors.New("boom")
	b := newBench(t)
	b.add("write", tool.Write, b.fine("write"))
	b.runner.Policy = policy.Func(func(_ context.Context, c policy.Case) (policy.Opinion, error) {
		if c.Plan.Title == "a" {
			return policy.Opinion{Verdict: policy.Ask, Reasons: []policy.Reason{lasting}}, nil
		}
		return policy.Opinion{Verdict: policy.Allow}, nil
	})
	b.asking(uip.OptionApprove)
	b.round.Hooks = hookFuncs{before: func(c toolrun.HookedCall) (toolrun.Ruling, error) {
		if c.ID == "c2" {
			return toolrun.Ruling{}, boom
		}
		return toolrun.Ruling{}, nil
	}}
	if got, err := b.run(t.Context(), "write a", "write b"); !errors.Is(err, boom) || lines(got, "run") != "run write a" {
		t.Errorf("%v:\n%s", err, got)
	}
}

// A hook that an interruption stopped is not what ends the turn.
func TestAHookThatIsInterruptedIsNoFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := newBench(t)
	b.add("write", tool.Write, b.fine("write"))
	b.round.Hooks = hookFuncs{before: func(toolrun.HookedCall) (toolrun.Ruling, error) {
		cancel()
		return toolrun.Ruling{}, errors.New("killed")
	}}
	got, err := b.run(ctx, "write a")
	if err != context.Canceled || lines(got, "run") != "" || !strings.Contains(got, `"error":"killed"`) {
		t.Errorf("%v:\n%s", err, got)
	}
}

type patchArgs struct {
	Patch string `json:"patch"`
}

func (b *bench) patch() tool.Tool {
	return tool.Func[patchArgs]{
		Name: "patch",
		Plan: func(context.Context, patchArgs) (tool.Plan, error) {
			return tool.Plan{Effects: []tool.Effect{{Kind: tool.Write}}}, nil
		},
		Do: func(context.Context, patchArgs, io.Writer) (tool.Result, error) {
			b.note("run patch it")
			return tool.Result{Value: map[string]any{"ok": true}}, nil
		},
	}
}

const patchLine = `{"command":"apply_patch <<'E'\n*** Begin Patch\n*** End Patch\nE"}`

// Other arguments, of hooks or of the person, can make a call one of another tool: a tool
// that is switched off runs neither way, and the call that was there before does not either.
func TestOtherArgumentsReachNoToolThatIsOff(t *testing.T) {
	for name, setup := range map[string]func(*bench){
		"hook": func(b *bench) { b.round.Hooks = &ruled{Ruling: toolrun.Ruling{Input: []byte(patchLine)}} },
		"person": func(b *bench) {
			b.runner.Policy = judge(policy.Ask, lasting)
			b.round.User = uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
				return uip.Response{ID: q.ID, Author: "user", Option: uip.OptionApprove, Args: []byte(patchLine)}, nil
			})
		},
		"model": func(b *bench) { b.round.Calls[0].Args = []byte(patchLine) },
	} {
		for _, off := range []bool{true, false} {
			b := newBench(t)
			b.add("bash", tool.Exec, b.fine("bash"))
			b.tools = append(b.tools, b.patch())
			set, err := tool.NewSet(b.tools...)
			if err != nil {
				t.Fatal(err)
			}
			b.round.Tools = set.Without(func(name string) bool { return off && name == "patch" })
			b.round.Calls = []chat.ToolCall{{ID: "c1", Name: "BASH", Args: []byte(`{"x":"a"}`)}}
			setup(b)
			err = b.runner.Run(t.Context(), b.round)
			got := strings.Join(b.log, "\n")
			want := map[bool]string{true: "", false: "run patch it"}[off]
			if err != nil || lines(got, "run") != want || strings.Contains(got, "requested c1 deny") != off {
				t.Errorf("%s, off=%v: %v\n%s", name, off, err, got)
			}
		}
	}
}

func TestWhatHooksSayAfterACall(t *testing.T) {
	boom := errors.New("boom")
	done := `deliver c1 {"ok":true,"x":"a"}`
	for name, tt := range map[string]struct {
		hooks hookFuncs
		is    error
		say   string
	}{
		"nothing":       {hookFuncs{}, nil, done},
		"fail":          {hookFuncs{fails: boom, after: toolrun.Ruling{DenyReason: "unused"}}, boom, done},
		"stop":          {hookFuncs{after: toolrun.Ruling{StopReason: "enough"}}, toolrun.ErrStoppedByHook, done},
		"other output":  {hookFuncs{after: toolrun.Ruling{Output: []byte(`{"y":1}`)}}, nil, `deliver c1 {"y":1}`},
		"other text":    {hookFuncs{after: toolrun.Ruling{Output: []byte(`"y"`)}}, nil, `deliver c1 {"ok":true,"text":"y"}`},
		"deny and note": {hookFuncs{after: toolrun.Ruling{DenyReason: "no", Notes: notes}}, nil, `"a hook says: no; a hook of you says: hm"`},
		"a note":        {hookFuncs{after: toolrun.Ruling{Notes: notes}}, nil, `"note":"a hook of you says: hm"`},
	} {
		b := newBench(t)
		b.add("write", tool.Write, b.fine("write"))
		b.round.Hooks = tt.hooks
		got, err := b.run(t.Context(), "write a")
		if !errors.Is(err, tt.is) || lines(got, "run") != "run write a" || !strings.Contains(lines(got, "deliver"), tt.say) {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
}

// A call whose start cannot be shown does not run, nor does any after a result that nobody took.
func TestACallWhoseStartFailsDoesNotRun(t *testing.T) {
	boom := errors.New("boom")
	b := newBench(t)
	b.add("write", tool.Write, b.fine("write"))
	sink := b.round.Sink
	b.round.Sink = event.SinkFunc(func(ctx context.Context, r event.Record) error {
		if _, ok := r.Event.(event.ToolStarted); ok {
			return boom
		}
		return sink.Emit(ctx, r)
	})
	if got, err := b.run(t.Context(), "write a"); !errors.Is(err, boom) || lines(got, "run") != "" {
		t.Errorf("%v:\n%s", err, got)
	}
	b = newBench(t)
	b.add("write", tool.Write, b.fine("write"))
	b.round.Deliver = func(context.Context, toolrun.Outcome) error { return boom }
	if got, err := b.run(t.Context(), "write a", "write b"); !errors.Is(err, boom) || lines(got, "run") != "run write a" {
		t.Errorf("%v:\n%s", err, got)
	}
}

// A call that waits in the middle stays open, and no call after it begins.
func TestACallThatWaitsInTheMiddleStopsThoseAfterIt(t *testing.T) {
	b := newBench(t)
	b.add("wait", tool.Write, func(context.Context, string, io.Writer) (tool.Result, error) {
		return tool.Result{}, uip.ErrAnswerPending
	})
	b.add("write", tool.Write, b.fine("write"))
	got, err := b.run(t.Context(), "wait a", "write b")
	if !errors.Is(err, uip.ErrAnswerPending) || lines(got, "requested", "run", "completed", "deliver") != "requested c1 allow" {
		t.Errorf("%v:\n%s", err, got)
	}
}

// optionsOf are the ways to answer a question, the one that counts where none is given in brackets.
func optionsOf(q uip.Request) (all []string) {
	for _, o := range q.Options {
		if o.Default {
			o.ID = "[" + o.ID + "]"
		}
		all = append(all, o.ID)
	}
	return all
}

// optionsFor runs a call with a person who says no, and gives what they could have said.
func (b *bench) optionsFor(calls ...string) (options string, asked uip.Request) {
	b.round.User = uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
		options, asked = strings.Join(optionsOf(q), " "), q
		return uip.Response{ID: q.ID, Author: "user", Option: uip.OptionReject}, nil
	})
	if got, err := b.run(b.t.Context(), calls...); err != nil || lines(got, "run") != "" {
		b.t.Errorf("%v:\n%s", err, got)
	}
	return options, asked
}

// TestTheYesesThatAQuestionOffers: nothing is remembered of risks and of keys, nor where no
// rule can be made, and no is what counts where nothing is said.
func TestTheYesesThatAQuestionOffers(t *testing.T) {
	const key = "known-0123456789"
	all := choosy{"write": {policy.ThisSession, policy.ThisProject, policy.BelowFolder}}
	for name, tt := range map[string]struct {
		reason policy.Reason
		memory toolrun.ApprovalStore
		calls  []string
		want   string
	}{
		"a rule":            {lasting, all, []string{"write a"}, "approve session always below [reject]"},
		"a risk":            {risky, all, []string{"write a"}, "approve [reject]"},
		"no memory":         {lasting, nil, []string{"write a"}, "approve [reject]"},
		"no rule":           {lasting, choosy{}, []string{"write a"}, "approve [reject]"},
		"rules and error":   {lasting, both{all}, []string{"write a"}, "approve [reject]"},
		"a key":             {lasting, all, []string{"write " + key}, "approve [reject]"},
		"the mark of a key": {lasting, all, []string{"write ghp_01…[masked]"}, "approve [reject]"},
		"two":               {lasting, all, []string{"write a", "write b"}, "approve session always below [reject]"},
		"two, no memory":    {lasting, nil, []string{"write a", "write b"}, "approve [reject]"},
		"two, no folders":   {lasting, choosy{"write": {policy.ThisSession}}, []string{"write a", "write b"}, "approve session [reject]"},
		"two, one key":      {lasting, all, []string{"write " + key, "write b"}, "approve session always below [reject]"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.add("write", tool.Write, b.fine("write"))
			b.runner.Policy, b.runner.Approvals = judge(policy.Ask, tt.reason), tt.memory
			b.runner.Concealer = secret.NewConcealer([]string{key})
			got, q := b.optionsFor(tt.calls...)
			if got != tt.want || (q.Display.Metadata[uip.MetaHasKeys] == "true") != (name == "a key") ||
				strings.Contains(q.Display.Description, "keys in it") != (name == "a key") {
				t.Errorf("offered %s, want %s: %+v", got, tt.want, q.Display)
			}
			once := slices.ContainsFunc(q.Parts, func(p uip.Request) bool {
				return strings.Join(optionsOf(p), " ") == "approve [reject]"
			})
			if once != (name == "two, one key" || name == "two, no memory") {
				t.Errorf("a part that offers nothing to remember: %v", once)
			}
		})
	}
}

// both offers rules and says that there are none.
type both struct{ choosy }

func (m both) Offers(c policy.Case) ([]policy.Offer, error) {
	offers, _ := m.choosy.Offers(c)
	return offers, errors.New("asked about every time")
}
