package toolrun_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"coder/internal/agent/toolrun"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/policy"
	"coder/internal/tool"
)

type args struct {
	X string `json:"x,omitzero"`
}

// bench is a runner with its surroundings and a transcript of what happened.
type bench struct {
	t      *testing.T
	runner toolrun.Runner
	round  toolrun.Round
	tools  []tool.Tool

	mu  sync.Mutex
	log []string
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t}
	n := 0
	b.runner = toolrun.Runner{
		Policy: judge(policy.Allow), Now: time.Now,
		NewID: func() string { n++; return fmt.Sprint("ui", n) },
	}
	b.round = toolrun.Round{Task: "t", Actor: "main", User: uip.NoInteractor, Sink: b, Deliver: b.deliver}
	return b
}

func judge(v policy.Verdict, rs ...policy.Reason) policy.Policy {
	return policy.Func(func(context.Context, policy.Case) (policy.Opinion, error) {
		return policy.Opinion{Verdict: v, Reasons: rs}, nil
	})
}

// add gives the bench a tool with one effect that does do.
func (b *bench) add(name string, kind tool.Kind, do func(ctx context.Context, x string, out io.Writer) (tool.Result, error)) {
	b.tools = append(b.tools, tool.Func[args]{
		Name: name,
		Plan: func(_ context.Context, a args) (tool.Plan, error) {
			if a.X == "bad" {
				return tool.Plan{}, errors.New("cannot plan that")
			}
			b.note("plan " + name + " " + a.X)
			return tool.Plan{Title: a.X, Effects: []tool.Effect{{Kind: kind, Target: a.X}}}, nil
		},
		Do: func(ctx context.Context, a args, out io.Writer) (tool.Result, error) { return do(ctx, a.X, out) },
	})
}

// fine is a tool's work that notes itself and succeeds.
func (b *bench) fine(name string) func(context.Context, string, io.Writer) (tool.Result, error) {
	return func(_ context.Context, x string, _ io.Writer) (tool.Result, error) {
		b.note("run " + name + " " + x)
		return tool.Result{Value: map[string]any{"ok": true, "x": x}, Summary: "done"}, nil
	}
}

func (b *bench) note(s string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log = append(b.log, strings.TrimSpace(s))
}

func (b *bench) Emit(_ context.Context, r event.Record) error {
	switch e := r.Event.(type) {
	case event.ToolCallRequested:
		b.note(fmt.Sprintf("requested %s %s", e.CallID, e.Verdict))
	case event.ToolCallCompleted:
		if !json.Valid(e.Output) || e.Output[0] != '{' {
			b.t.Errorf("audit output is not an object: %s", e.Output)
		}
		b.note(fmt.Sprintf("completed %s error=%v", e.CallID, e.IsError))
	case event.ToolOutput:
		b.note("output " + e.Text)
	}
	return nil
}

func (b *bench) deliver(_ context.Context, o toolrun.Outcome) error {
	b.note(fmt.Sprintf("deliver %s %s", o.Result.CallID, o.Result.Text))
	return nil
}

// run takes "tool x" calls through and returns the transcript.
func (b *bench) run(ctx context.Context, calls ...string) (string, error) {
	b.t.Helper()
	set, err := tool.NewSet(b.tools...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.round.Tools = set
	for i, c := range calls {
		name, x, _ := strings.Cut(c, " ")
		raw, _ := json.Marshal(args{x})
		b.round.Calls = append(b.round.Calls, chat.ToolCall{ID: fmt.Sprint("c", i+1), Name: name, Args: raw})
	}
	err = b.runner.Run(ctx, b.round)
	return strings.Join(b.log, "\n"), err
}

func (b *bench) want(got, want string) {
	b.t.Helper()
	if want = strings.ReplaceAll(strings.TrimSpace(want), "\t", ""); got != want {
		b.t.Errorf("happened:\n%s\n\nwant:\n%s", got, want)
	}
}

func TestACallIsRecordedBeforeItRunsAndClosedAfter(t *testing.T) {
	b := newBench(t)
	b.add("write", tool.Write, b.fine("write"))
	got, err := b.run(t.Context(), "write a")
	if err != nil {
		t.Fatal(err)
	}
	b.want(got, `
		plan write a
		requested c1 allow
		run write a
		completed c1 error=false
		deliver c1 {"ok":true,"x":"a"}`)
}

func TestWhatGoesWrongIsToldAndTheTurnGoesOn(t *testing.T) {
	tests := []struct {
		name, call, result, verdict string
		setup                       func(*bench)
	}{
		{name: "no such tool", call: "nope a", verdict: "invalid",
			result: `{"ok":false,"error":"unknown tool \"nope\"; the tools are write"}`},
		{name: "no such server", call: "mcp__gone__x a", verdict: "invalid",
			result: `{"ok":false,"error":"unknown tool \"mcp__gone__x\": no MCP server gone is in use; coder mcp list shows the servers, --mcp-config adds others"}`},
		{name: "it cannot be planned", call: "write bad", verdict: "invalid",
			result: `{"ok":false,"error":"cannot plan that"}`},
		{name: "policy denies", call: "write a", verdict: "deny",
			setup:  func(b *bench) { b.runner.Policy = judge(policy.Deny, policy.Reason{By: "rule", Text: "no"}) },
			result: `{"ok":false,"error":"denied: rule: no","denied":true}`},
		{name: "policy breaks", call: "write a", verdict: "deny",
			setup: func(b *bench) {
				b.runner.Policy = policy.Func(func(context.Context, policy.Case) (policy.Opinion, error) {
					return policy.Opinion{Verdict: policy.Allow}, errors.New("boom")
				})
			},
			result: `{"ok":false,"error":"denied: boom","denied":true}`},
		{name: "the tool fails", call: "write a", verdict: "allow",
			setup: func(b *bench) {
				b.tools = nil
				b.add("write", tool.Write, func(context.Context, string, io.Writer) (tool.Result, error) {
					return tool.Result{}, errors.New("disk on fire")
				})
			},
			result: `{"ok":false,"error":"disk on fire"}`},
		{name: "the tool panics", call: "write a", verdict: "allow",
			setup: func(b *bench) {
				b.tools = nil
				b.add("write", tool.Write, func(context.Context, string, io.Writer) (tool.Result, error) { panic("ouch") })
			},
			result: `{"ok":false,"error":"write crashed: ouch"}`},
		{name: "the tool's own time limit", call: "write a", verdict: "allow",
			setup: func(b *bench) {
				b.tools = nil
				b.add("write", tool.Write, func(context.Context, string, io.Writer) (tool.Result, error) {
					return tool.Result{}, context.DeadlineExceeded
				})
			},
			result: `{"ok":false,"error":"context deadline exceeded"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			b.add("write", tool.Write, b.fine("write"))
			if tt.setup != nil {
				tt.setup(b)
			}
			got, err := b.run(t.Context(), tt.call)
			if err != nil {
				t.Errorf("the turn ended: %v", err)
			}
			for _, line := range []string{"requested c1 " + tt.verdict, "completed c1 error=true", "deliver c1 " + tt.result} {
				if !strings.Contains(got, line) {
					t.Errorf("no %q in:\n%s", line, got)
				}
			}
			if strings.Contains(got, "run write") {
				t.Errorf("it ran:\n%s", got)
			}
		})
	}
}

func TestBrokenArgumentsNeverRun(t *testing.T) {
	b := newBench(t)
	b.add("write", tool.Write, b.fine("write"))
	b.round.Calls = []chat.ToolCall{{ID: "c0", Name: "write", Args: json.RawMessage("{}"), Broken: `{"x":`}}
	got, err := b.run(t.Context())
	if err != nil || strings.Contains(got, "run write") || !strings.Contains(got, "not a JSON object") {
		t.Errorf("%v:\n%s", err, got)
	}
}

func TestReadOnlyCallsRunSideBySideAndKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.add("read", tool.Read, func(_ context.Context, x string, _ io.Writer) (tool.Result, error) {
			wait, _ := time.ParseDuration(x)
			time.Sleep(wait)
			return tool.Result{Value: map[string]any{"ok": true, "x": x}}, nil
		})
		start := time.Now()
		got, err := b.run(t.Context(), "read 3s", "read 1s", "nope", "read 2s")
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("took %v, want as long as the longest", took)
		}
		b.want(got, `
			plan read 3s
			plan read 1s
			plan read 2s
			requested c1 allow
			requested c2 allow
			requested c3 invalid
			requested c4 allow
			completed c1 error=false
			deliver c1 {"ok":true,"x":"3s"}
			completed c2 error=false
			deliver c2 {"ok":true,"x":"1s"}
			completed c3 error=true
			deliver c3 {"ok":false,"error":"unknown tool \"nope\"; the tools are read"}
			completed c4 error=false
			deliver c4 {"ok":true,"x":"2s"}`)
	})
}

// TestAQuestionAmongReadsIsAsked: reads of which one needs approval run one after the other.
func TestAQuestionAmongReadsIsAsked(t *testing.T) {
	b := newBench(t)
	b.add("read", tool.Read, b.fine("read"))
	b.runner.Policy = policy.Func(func(_ context.Context, c policy.Case) (policy.Opinion, error) {
		if c.Plan.Effects[0].Target == "secret" {
			return policy.Opinion{Verdict: policy.Ask, Reasons: []policy.Reason{{By: "rule", Text: "secret"}}}, nil
		}
		return policy.Opinion{Verdict: policy.Allow}, nil
	})
	b.round.User = uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
		b.note("asked " + q.CallID())
		return uip.Response{ID: q.ID, Option: uip.OptionApprove, Author: "user"}, nil
	})
	got, err := b.run(t.Context(), "read a", "read secret")
	if err != nil || strings.Count(got, "asked") != 1 || !strings.Contains(got, "asked c2") {
		t.Errorf("%v\n%s", err, got)
	}
	if !strings.Contains(got, "run read a") || !strings.Contains(got, "run read secret") {
		t.Errorf("not all ran:\n%s", got)
	}
}

// What runs side by side is announced in the order in which the model called it.
func TestCallsSideBySideStartInTheirOrder(t *testing.T) {
	b := newBench(t)
	b.add("read", tool.Read, b.fine("read"))
	var started, calls []string
	for i := range 40 {
		calls = append(calls, fmt.Sprintf("read %d", i))
	}
	var mu sync.Mutex
	keep := b.round.Sink
	b.round.Sink = event.SinkFunc(func(ctx context.Context, r event.Record) error {
		if e, ok := r.Event.(event.ToolStarted); ok {
			mu.Lock()
			started = append(started, "read "+e.Title)
			mu.Unlock()
		}
		return keep.Emit(ctx, r)
	})
	if _, err := b.run(t.Context(), calls...); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(started, calls) {
		t.Errorf("started: %q", started)
	}
}

// A result is shown when it is there, whatever is still running before it.
func TestResultsAreShownWhenTheyAreThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.add("read", tool.Read, func(_ context.Context, x string, _ io.Writer) (tool.Result, error) {
			wait, _ := time.ParseDuration(x)
			time.Sleep(wait)
			return tool.Result{Value: map[string]any{"ok": true}}, nil
		})
		var shown []string
		start, keep := time.Now(), b.round.Sink
		b.round.Sink = event.SinkFunc(func(ctx context.Context, r event.Record) error {
			if e, ok := r.Event.(event.ToolFinished); ok {
				shown = append(shown, fmt.Sprint(e.Title, " after ", time.Since(start)))
			}
			return keep.Emit(ctx, r)
		})
		got, err := b.run(t.Context(), "read 3s", "read 1s", "read 2s", "read 4s")
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"1s after 1s", "2s after 2s", "3s after 3s", "4s after 4s"}; !slices.Equal(shown, want) {
			t.Errorf("shown %q, want %q", shown, want)
		}
		if i, j := strings.Index(got, "completed c1"), strings.Index(got, "completed c2"); i < 0 || i > j {
			t.Errorf("the records are not in the order of the calls:\n%s", got)
		}
	})
}

func TestOneWriteMakesTheWholeRoundSerial(t *testing.T) {
	b := newBench(t)
	b.add("read", tool.Read, b.fine("read"))
	b.add("write", tool.Write, b.fine("write"))
	got, err := b.run(t.Context(), "read a", "write b", "write c", "read d")
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, l := range strings.Split(got, "\n") {
		if strings.HasPrefix(l, "plan") || strings.HasPrefix(l, "run") {
			order = append(order, l)
		}
	}
	b.want(strings.Join(order, "\n"), `
		plan read a
		plan write b
		run read a
		run write b
		plan write c
		run write c
		plan read d
		run read d`)
}

func TestAPersonIsAskedOnceWithEveryReason(t *testing.T) {
	lasting := policy.Reason{By: "rule", Text: "writes ask", Lasting: true}
	risk := policy.Reason{By: "risk", Text: "deletes"}
	tests := []struct {
		name    string
		reasons []policy.Reason
		answer  uip.Response
		options string
		ran     bool
		result  string
		always  int
	}{
		{"yes", []policy.Reason{lasting}, uip.Response{Option: uip.OptionApprove, Author: "user"}, "approve session always reject", true, `{"ok":true,"x":"a"}`, 0},
		{"always", []policy.Reason{lasting}, uip.Response{Option: uip.OptionAlways, Author: "user"}, "approve session always reject", true, `{"ok":true,"x":"a"}`, 1},
		{"no", []policy.Reason{lasting}, uip.Response{Option: uip.OptionReject, Author: "user"}, "approve session always reject", false,
			`{"ok":false,"error":"denied: refused by the user","denied":true}`, 0},
		{"no, and why", []policy.Reason{lasting}, uip.Response{Option: uip.OptionReject, Author: "user", Comment: "use b"}, "approve session always reject", false,
			`{"ok":false,"error":"denied: refused by the user: use b","denied":true}`, 0},
		{"a risk cannot be waived for good", []policy.Reason{lasting, risk}, uip.Response{Option: uip.OptionAlways, Author: "user"}, "approve reject", false,
			`{"ok":false,"error":"denied: the answer was not accepted: unknown option \"always\"","denied":true}`, 0},
		{"nobody", []policy.Reason{lasting, risk}, uip.Response{Option: uip.OptionReject, Author: "nobody", Comment: "nobody to ask"}, "approve reject", false,
			`{"ok":false,"error":"denied: rule: writes ask; risk: deletes, and no user can answer","denied":true}`, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			b.add("write", tool.Write, b.fine("write"))
			b.runner.Policy = judge(policy.Ask, tt.reasons...)
			always, asked := 0, 0
			b.runner.Approvals = memory(func() { always++ })
			b.round.User = uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
				asked++
				var options []string
				for _, o := range q.Options {
					options = append(options, o.ID)
				}
				if got := strings.Join(options, " "); got != tt.options {
					t.Errorf("options %q, want %q", got, tt.options)
				}
				if q.CallID() != "c1" || q.Purpose != uip.PurposeConfirmRiskyAction || q.TaskID != "t" {
					t.Errorf("question %+v", q)
				}
				for _, r := range tt.reasons {
					if !strings.Contains(q.Display.Description, r.String()) {
						t.Errorf("%q does not say %q", q.Display.Description, r)
					}
				}
				a := tt.answer
				a.ID = q.ID
				return a, nil
			})
			got, err := b.run(t.Context(), "write a")
			if err != nil || asked != 1 || always != tt.always {
				t.Errorf("err %v, asked %d times, remembered %d times", err, asked, always)
			}
			if strings.Contains(got, "run write") != tt.ran || !strings.Contains(got, "deliver c1 "+tt.result) {
				t.Errorf("want ran=%v and %s in:\n%s", tt.ran, tt.result, got)
			}
		})
	}
}

func TestARefusalMayEndTheTurn(t *testing.T) {
	b := newBench(t)
	b.add("write", tool.Write, b.fine("write"))
	b.runner.Policy = judge(policy.Ask, policy.Reason{By: "rule", Text: "ask"})
	b.round.StopOnReject = true
	b.round.User = uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
		return uip.Response{ID: q.ID, Option: uip.OptionReject, Author: "user"}, nil
	})
	got, err := b.run(t.Context(), "write a", "write b")
	if !errors.Is(err, toolrun.ErrDeniedAndStopped) {
		t.Errorf("err = %v, want ErrRefused", err)
	}
	if !strings.Contains(got, `deliver c1 {"ok":false,"error":"denied: refused by the user","denied":true}`) ||
		!strings.Contains(got, `deliver c2 {"ok":false,"error":"cancelled`) {
		t.Errorf("the refused call must keep its refusal and the next be cancelled:\n%s", got)
	}
}

func TestCancellationGivesEveryCallItsResult(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := newBench(t)
	b.add("write", tool.Write, func(ctx context.Context, x string, _ io.Writer) (tool.Result, error) {
		if x == "2" {
			cancel()
			return tool.Result{}, ctx.Err()
		}
		return tool.Result{Value: map[string]any{"ok": true}}, nil
	})
	got, err := b.run(ctx, "write 1", "write 2", "write 3")
	if err != context.Canceled {
		t.Errorf("err = %v, want context.Canceled itself", err)
	}
	for i, want := range []string{`{"ok":true}`, `{"ok":false,"error":"cancelled`, `{"ok":false,"error":"cancelled`} {
		if !strings.Contains(got, fmt.Sprintf("deliver c%d %s", i+1, want)) {
			t.Errorf("call %d lacks %s in:\n%s", i+1, want, got)
		}
	}
	if n := strings.Count(got, "requested"); n != 3 || strings.Count(got, "completed") != 3 {
		t.Errorf("%d calls are on record:\n%s", n, got)
	}
}

func TestWorkThatWasDoneStaysDoneThoughCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := newBench(t)
	b.add("write", tool.Write, func(context.Context, string, io.Writer) (tool.Result, error) {
		cancel()
		return tool.Result{Value: map[string]any{"ok": true}}, nil
	})
	if got, _ := b.run(ctx, "write 1"); !strings.Contains(got, `deliver c1 {"ok":true}`) {
		t.Errorf("the finished call lost its result:\n%s", got)
	}
}

func TestNothingRunsThatCannotBeRecorded(t *testing.T) {
	full := errors.New("disk full")
	b := newBench(t)
	b.add("write", tool.Write, b.fine("write"))
	b.round.Sink = event.SinkFunc(func(ctx context.Context, r event.Record) error {
		if _, ok := r.Event.(event.ToolCallRequested); ok {
			return full
		}
		return b.Emit(ctx, r)
	})
	got, err := b.run(t.Context(), "write a", "write b")
	if !errors.Is(err, full) || strings.Contains(got, "run write") {
		t.Errorf("err %v:\n%s", err, got)
	}
	if strings.Count(got, "deliver") != 2 {
		t.Errorf("each call still gets its result:\n%s", got)
	}
}

func TestLiveOutputIsShown(t *testing.T) {
	b := newBench(t)
	b.add("bash", tool.Exec, func(_ context.Context, _ string, out io.Writer) (tool.Result, error) {
		_, err := io.WriteString(out, "hello")
		return tool.Result{Value: "just text"}, err
	})
	got, _ := b.run(t.Context(), "bash x")
	if !strings.Contains(got, "output hello") || !strings.Contains(got, `deliver c1 {"ok":true,"text":"just text"}`) {
		t.Error(got)
	}
}

func TestAResultIsBounded(t *testing.T) {
	b := newBench(t)
	b.add("read", tool.Read, func(context.Context, string, io.Writer) (tool.Result, error) {
		return tool.Result{Value: map[string]any{"ok": true, "content": strings.Repeat("é", 1<<20)}}, nil
	})
	var text string
	b.round.Deliver = func(_ context.Context, o toolrun.Outcome) error { text = o.Result.Text; return nil }
	if _, err := b.run(t.Context(), "read a"); err != nil {
		t.Fatal(err)
	}
	if len(text) > 300<<10 || !json.Valid([]byte(text)) || !strings.Contains(text, `"truncated":true`) {
		t.Errorf("%d bytes, valid %v", len(text), json.Valid([]byte(text)))
	}
}

func TestACallKnowsWhichItIsAndTellsWhatItDidBeyondItsPlan(t *testing.T) {
	b := newBench(t)
	b.add("note", tool.Note, func(ctx context.Context, _ string, _ io.Writer) (tool.Result, error) {
		b.note("I am " + tool.CallID(ctx))
		return tool.Result{Value: map[string]any{"ok": true}, Effects: []tool.Effect{{Kind: tool.Write, Target: "f"}}}, nil
	})
	b.round.Deliver = func(_ context.Context, o toolrun.Outcome) error {
		b.note(fmt.Sprint(o.Effects))
		return nil
	}
	got, err := b.run(t.Context(), "note a")
	if err != nil || tool.CallID(t.Context()) != "" {
		t.Fatal(err)
	}
	b.want(got, `
		plan note a
		requested c1 allow
		I am c1
		completed c1 error=false
		[note a write f]`)
}

func TestACallThatWaitsInTheMiddleLeavesItsNeighboursAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.add("wait", tool.Read, func(context.Context, string, io.Writer) (tool.Result, error) {
			return tool.Result{}, uip.ErrAnswerPending
		})
		b.add("slow", tool.Read, func(ctx context.Context, x string, _ io.Writer) (tool.Result, error) {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			return tool.Result{Value: map[string]any{"ok": true, "x": x}}, ctx.Err()
		})
		got, err := b.run(t.Context(), "wait a", "slow b")
		if !errors.Is(err, uip.ErrAnswerPending) {
			t.Errorf("err = %v", err)
		}
		b.want(got, `
			plan wait a
			plan slow b
			requested c1 allow
			requested c2 allow
			completed c2 error=false
			deliver c2 {"ok":true,"x":"b"}`)
	})
}

// A call that means a tool which is not there runs no other.
func TestACallOfAMeantToolThatIsMissingDoesNotRun(t *testing.T) {
	b := newBench(t)
	b.add("bash", tool.Exec, b.fine("bash"))
	b.round.Calls = []chat.ToolCall{{ID: "c0", Name: "bash", Args: []byte(patchLine)}}
	got, err := b.run(t.Context())
	if err != nil || lines(got, "run") != "" || !strings.Contains(got, `unknown tool \"bash\"`) {
		t.Errorf("%v:\n%s", err, got)
	}
}
