package toolrun_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"coder/internal/agent/toolrun"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/secret"
	"coder/internal/core/uip"
	"coder/internal/policy"
	"coder/internal/tool"
)

// memory remembers nothing but that it was told to.
type memory func()

func (memory) Offers(c policy.Case) ([]policy.Offer, error) {
	return []policy.Offer{{Scope: policy.ThisSession, What: "uses of " + c.Tool}, {Scope: policy.ThisProject, What: "uses of " + c.Tool}}, nil
}

func (m memory) Add(context.Context, policy.Case, policy.Scope) error { m(); return nil }

// askWrites asks about whatever writes.
var askWrites = policy.Func(func(_ context.Context, c policy.Case) (policy.Opinion, error) {
	if c.Plan.ReadOnly() {
		return policy.Opinion{Verdict: policy.Allow}, nil
	}
	return policy.Opinion{Verdict: policy.Ask, Reasons: []policy.Reason{{By: "rule", Text: "writes ask", Lasting: true}}}, nil
})

// lines keeps of a transcript what begins with one of the words.
func lines(transcript string, words ...string) string {
	var kept []string
	for line := range strings.SplitSeq(transcript, "\n") {
		for _, w := range words {
			if strings.HasPrefix(line, w+" ") {
				kept = append(kept, line)
			}
		}
	}
	return strings.Join(kept, "\n")
}

func TestSeveralCallsThatNeedApprovalAreOneCard(t *testing.T) {
	tests := []struct {
		name   string
		answer func(q uip.Request) uip.Response
		ran    string
	}{
		{"yes to all", func(uip.Request) uip.Response { return uip.Response{Option: uip.OptionApprove} }, "run write a\nrun read x\nrun write b"},
		{"no to all", func(uip.Request) uip.Response { return uip.Response{Option: uip.OptionReject, Comment: "not now"} }, "run read x"},
		{"one by one", func(q uip.Request) uip.Response {
			return uip.Response{Parts: []uip.Response{{ID: q.Parts[1].ID, Option: uip.OptionApprove}, {ID: q.Parts[0].ID, Option: uip.OptionReject, Comment: "keep a"}}}
		}, "run read x\nrun write b"},
		{"one of them always", func(q uip.Request) uip.Response {
			return uip.Response{Parts: []uip.Response{{ID: q.Parts[0].ID, Option: uip.OptionAlways}, {ID: q.Parts[1].ID, Option: uip.OptionReject}}}
		}, "run write a\nrun read x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			b.add("write", tool.Write, b.fine("write"))
			b.add("read", tool.Read, b.fine("read"))
			b.runner.Policy = askWrites
			b.runner.Approvals = memory(func() {})
			asked := 0
			b.round.User = uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
				asked++
				if q.Kind != uip.KindComposite || len(q.Parts) != 2 || q.Parts[0].CallID() != "c1" || q.Parts[1].CallID() != "c3" ||
					q.Parts[0].ID != q.ID+".1" || q.Parts[1].ID != q.ID+".2" || q.Display.Metadata["remembers"] != "uses of write" {
					t.Fatalf("question %+v", q)
				}
				a := tt.answer(q)
				a.ID, a.Author = q.ID, "user"
				if err := uip.CheckResponse(q, a); err != nil {
					t.Fatal(err)
				}
				return a, nil
			})
			got, err := b.run(t.Context(), "write a", "read x", "write b")
			if err != nil || asked != 1 {
				t.Errorf("err %v, asked %d times", err, asked)
			}
			if ran := lines(got, "run"); ran != tt.ran {
				t.Errorf("ran:\n%s\nwant:\n%s", ran, tt.ran)
			}
			if n := strings.Count(got, "requested"); n != 3 || strings.Count(got, "completed") != 3 {
				t.Errorf("%d calls on record in:\n%s", n, got)
			}
		})
	}
}

// choosy offers more for some tools than for others.
type choosy map[string][]policy.Scope

func (c choosy) Offers(p policy.Case) (offers []policy.Offer, err error) {
	for _, s := range c[p.Tool] {
		offers = append(offers, policy.Offer{Scope: s, What: string(s) + " " + p.Tool})
	}
	if len(offers) == 0 {
		return nil, errors.New("asked about every time")
	}
	return offers, nil
}

func (c choosy) Add(_ context.Context, p policy.Case, s policy.Scope) error {
	c["added"] = append(c["added"], s+" "+policy.Scope(p.Tool))
	return nil
}

func TestOneAnswerForACardIsRememberedWhereItCanBe(t *testing.T) {
	for option, want := range map[string]string{uip.OptionAlways: "always edit, always bash", uip.OptionSession: "session edit, session bash", uip.OptionAlwaysBelow: "below edit, session bash", uip.OptionApprove: ""} {
		b := newBench(t)
		for _, name := range []string{"edit", "bash", "risky"} {
			b.add(name, tool.Write, b.fine(name))
		}
		m := choosy{"edit": {policy.ThisSession, policy.ThisProject, policy.BelowFolder}, "bash": {policy.ThisSession, policy.ThisProject}}
		b.runner.Policy, b.runner.Approvals = askWrites, m
		b.round.User = uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
			meta := q.Display.Metadata
			if meta["remembers"] != "always edit, always bash" || meta["remembers.session"] != "session edit, session bash" || meta["remembers.below"] != "below edit, session bash" {
				t.Errorf("the card says %v", meta)
			}
			a := uip.Response{ID: q.ID, Author: "user", Option: option}
			return a, uip.CheckResponse(q, a)
		})
		got, err := b.run(t.Context(), "edit a", "bash b", "risky c")
		if err != nil || strings.Count(lines(got, "run"), "run ") != 3 {
			t.Errorf("%s: %v\n%s", option, err, got)
		}
		var added []string
		for _, s := range m["added"] {
			added = append(added, string(s))
		}
		if strings.Join(added, ", ") != want {
			t.Errorf("%s: remembered %v, want %s", option, added, want)
		}
	}
}

func TestAnAnswerOnACardHoldsOnlyForWhatWasShown(t *testing.T) {
	b := newBench(t)
	target := "before"
	b.add("write", tool.Write, func(context.Context, string, io.Writer) (tool.Result, error) {
		b.note("run write")
		target = "after" // the first call changes what the second would do
		return tool.Result{Value: map[string]any{"ok": true}}, nil
	})
	b.tools = append(b.tools, tool.Func[args]{
		Name: "follow",
		Plan: func(context.Context, args) (tool.Plan, error) {
			return tool.Plan{Title: target, Effects: []tool.Effect{{Kind: tool.Write, Target: target}}, Preview: display.Text(target)}, nil
		},
		Do: func(context.Context, args, io.Writer) (tool.Result, error) {
			b.note("run follow " + target)
			return tool.Result{Value: map[string]any{"ok": true}}, nil
		},
	})
	b.runner.Policy = askWrites
	var shown []string
	b.round.User = uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
		shown = append(shown, string(q.Kind)+" "+q.Display.Title)
		return uip.Response{ID: q.ID, Author: "user", Option: uip.OptionApprove}, nil
	})
	got, err := b.run(t.Context(), "write a", "follow x")
	if err != nil || strings.Join(shown, ", ") != "Composite 2 calls need approval, Confirm follow after" {
		t.Errorf("err %v, questions: %q", err, shown)
	}
	if ran := lines(got, "run"); ran != "run write\nrun follow after" {
		t.Errorf("ran %q", ran)
	}
}

func TestAParkedQuestionLeavesItsCallAndThoseAfterItOpen(t *testing.T) {
	b := newBench(t)
	b.add("write", tool.Write, b.fine("write"))
	b.add("read", tool.Read, b.fine("read"))
	b.runner.Policy = askWrites
	b.round.User = uip.PendingInteractor
	got, err := b.run(t.Context(), "read a", "write b", "read c")
	if !errors.Is(err, uip.ErrAnswerPending) {
		t.Errorf("err = %v", err)
	}
	if kept := lines(got, "run", "requested", "deliver"); kept != "requested c1 allow\nrun read a\ndeliver c1 {\"ok\":true,\"x\":\"a\"}" {
		t.Errorf("got:\n%s", kept)
	}
}

func TestACommandKnownToOnlyReadRunsBesideOthersAndKeepsNothing(t *testing.T) {
	b := newBench(t)
	var running, most int
	meet := make(chan struct{})
	b.add("bash", tool.Exec, func(context.Context, string, io.Writer) (tool.Result, error) {
		b.mu.Lock()
		running++
		most = max(most, running)
		if running == 2 {
			close(meet)
		}
		b.mu.Unlock()
		<-meet // each waits for the other: one after the other would never end
		return tool.Result{Value: map[string]any{"ok": true}}, nil
	})
	b.runner.Policy = policy.Func(func(context.Context, policy.Case) (policy.Opinion, error) {
		return policy.Opinion{Verdict: policy.Allow, ReadOnly: true}, nil
	})
	b.runner.Backup = broken{}
	if _, err := b.run(t.Context(), "bash ls", "bash pwd"); err != nil || most != 2 {
		t.Errorf("err %v, %d ran at once", err, most)
	}
}

// broken is a keeper that must not be asked.
type broken struct{ toolrun.BackupStore }

func (broken) SaveOriginals(context.Context, []tool.Effect) (tool.Snapshot, error) {
	panic("nothing is overwritten, so nothing is saved")
}

func TestARunningCallMayAskQuestionsOfItsOwn(t *testing.T) {
	b := newBench(t)
	b.add("question", tool.Note, func(ctx context.Context, x string, _ io.Writer) (tool.Result, error) {
		a, err := uip.InteractorFrom(ctx).Ask(ctx, uip.Request{Kind: uip.KindSelect, Options: []uip.Option{{ID: "1", Label: x}}, Parts: make([]uip.Request, 2)})
		return tool.Result{Value: map[string]any{"ok": true, "answer": a.Option}}, err
	})
	b.round.User = uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
		if q.ID == "" || q.TaskID != "t" || q.CallID() != "c1" || q.Display.Metadata["toolName"] != "question" || string(q.Args) != `{"x":"a"}` ||
			q.Parts[1].ID != q.ID+".2" || q.Parts[1].TaskID != "t" || q.Parts[1].Author != "main" {
			t.Errorf("question %+v", q)
		}
		return uip.Response{ID: q.ID, Option: "1"}, nil
	})
	if got, err := b.run(t.Context(), "question a"); err != nil || !strings.Contains(got, `"answer":"1"`) {
		t.Errorf("err %v:\n%s", err, got)
	}
}

// A call that is on record without its keys is not run, but named.
func TestACallWithoutItsKeysIsNamed(t *testing.T) {
	b := newBench(t)
	b.add("write", tool.Write, b.fine("write"))
	var titles []string
	b.round.Sink = event.SinkFunc(func(ctx context.Context, r event.Record) error {
		if e, ok := r.Event.(event.ToolFinished); ok {
			titles = append(titles, e.Title)
		}
		return b.Emit(ctx, r)
	})
	b.round.FromRecord = true
	got, err := b.run(t.Context(), "write k.txt ghp_01…[masked]")
	if err != nil || strings.Contains(got, "run write") || !strings.Contains(got, "keys in its arguments") || !slices.Equal(titles, []string{"k.txt ghp_01…[masked]"}) {
		t.Errorf("%v, titles %q:\n%s", err, titles, got)
	}
}

func TestKeysAreBlottedOutOfResults(t *testing.T) {
	b := newBench(t)
	const key = "known-0123456789"
	b.runner.Concealer = secret.NewConcealer([]string{key})
	b.add("read", tool.Read, func(_ context.Context, x string, _ io.Writer) (tool.Result, error) {
		if x == "fail" {
			return tool.Result{}, errors.New("no such thing as " + key)
		}
		return tool.Result{Value: map[string]any{"ok": true, "text": "key " + key + " and ghp_0123456789abcdefghijklmnop"}}, nil
	})
	got, _ := b.run(t.Context(), "read a", "read fail")
	if strings.Contains(got, key) || strings.Contains(got, "abcdefghij") || strings.Count(got, secret.KeyMask) < 2 || !secret.HasMask(got) {
		t.Errorf("got:\n%s", got)
	}
}
