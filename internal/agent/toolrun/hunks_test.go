package toolrun_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/secret"
	"coder/internal/core/uip"
	"coder/internal/policy"
	"coder/internal/tool"
)

type hunkArgs struct {
	Files string `json:"files" doc:"one hunk each"`
	Only  []int  `json:"only_hunks,omitzero" hidden:"yes"`
}

// hunky is a tool that changes files, a hunk each; those that it was asked for are
// left out if already holds them.
func hunky(note func(string), already func() string) tool.Tool {
	return tool.Func[hunkArgs]{Name: "change", PlanRun: func(_ context.Context, a hunkArgs) (tool.Plan, tool.Run, error) {
		var diff, made string
		plan := tool.Plan{Title: a.Files}
		for i, f := range strings.Fields(a.Files) {
			if a.Only != nil && !slices.Contains(a.Only, i+1) || strings.Contains(already(), f) {
				continue
			}
			diff += fmt.Sprintf("--- a/%s\n+++ b/%s\n@@ -1,1 +1,1 @@\n-old %s\n+new %s\n", f, f, f, f)
			plan.Effects = append(plan.Effects, tool.Effect{Kind: tool.Write, Target: f})
			made += f
			plan.Hunks++
		}
		if a.Only != nil {
			plan.Hunks = 0
		}
		plan.Preview = display.Diff{Unified: diff}
		return plan, func(context.Context, io.Writer) (tool.Result, error) {
			note("make " + made)
			return tool.Result{Value: map[string]any{"ok": true}}, nil
		}, nil
	}}
}

func TestSomeHunksAreTaken(t *testing.T) {
	frozen := policy.Func(func(_ context.Context, c policy.Case) (policy.Opinion, error) {
		for _, e := range c.Plan.Effects {
			if e.Target == "frozen" && len(c.Plan.Effects) < 3 {
				return policy.Opinion{Verdict: policy.Deny, Reasons: []policy.Reason{{By: "rule", Text: "frozen"}}}, nil
			}
		}
		return askWrites(context.Background(), c)
	})
	tests := []struct {
		name, files string
		answer      uip.Response
		did         []string // made, and told
		not         []string
	}{
		{"two of three", "a b c", uip.Response{Option: uip.OptionSome, Input: "3, 1", Comment: "b stays"},
			[]string{"make ac\n", `"turned_down":"--- a/b\n+++ b/b\n@@ -1,1 +1,1 @@\n-old b\n+new b\n"`, "took number 1,3;", "the user says: b stays", "effects write a write c", `"only_hunks":[1,3]`}, []string{"write b"}},
		{"a range", "a b c d", uip.Response{Option: uip.OptionSome, Input: "2-4"}, []string{"make bcd\n", "took number 2,3,4;"}, nil},
		{"all of them", "a b", uip.Response{Option: uip.OptionSome, Input: "1 2"}, []string{"make ab\n"}, []string{"turned_down", "only_hunks"}},
		{"a key in what is left", "a known-0123456789", uip.Response{Option: uip.OptionSome, Input: "1"},
			[]string{"make a\n", `-old [`}, []string{"old known-0"}},
		{"judged again", "a frozen c", uip.Response{Option: uip.OptionSome, Input: "2"}, []string{"denied: rule: frozen", "requested c1 deny"}, []string{"make"}},
		{"yes and a remark", "a b", uip.Response{Option: uip.OptionApprove, Comment: "keep it short"}, []string{"make ab\n", `"note":"the user says: keep it short"`}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			b.tools = []tool.Tool{hunky(b.note, func() string { return "" })}
			b.runner.Policy, b.runner.Concealer = frozen, secret.NewConcealer([]string{"known-0123456789"})
			b.round.User = uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
				if want := fmt.Sprint(len(strings.Fields(tt.files))); q.Display.Metadata[uip.MetaHunks] != want {
					t.Errorf("the question speaks of %q hunks, want %s", q.Display.Metadata[uip.MetaHunks], want)
				}
				a := tt.answer
				a.ID, a.Author = q.ID, "user"
				return a, uip.CheckResponse(q, a)
			})
			sink := b.round.Sink
			b.round.Sink = event.SinkFunc(func(ctx context.Context, r event.Record) error {
				if e, ok := r.Event.(event.ToolCallRequested); ok {
					b.note(fmt.Sprintf("effects %v %s", strings.Trim(fmt.Sprint(e.Effects), "[]"), e.Input))
				}
				return sink.Emit(ctx, r)
			})
			got, err := b.change(t.Context(), tt.files)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.did {
				if !strings.Contains(got, want) {
					t.Errorf("%q is missing in:\n%s", want, got)
				}
			}
			for _, not := range tt.not {
				if strings.Contains(got, not) {
					t.Errorf("%q is in:\n%s", not, got)
				}
			}
		})
	}
}

// change runs calls of the tool.
func (b *bench) change(ctx context.Context, calls ...string) (string, error) {
	set, err := tool.NewSet(b.tools...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.round.Tools = set
	for i, files := range calls {
		raw, _ := json.Marshal(hunkArgs{Files: files})
		b.round.Calls = append(b.round.Calls, chat.ToolCall{ID: fmt.Sprint("c", i+1), Name: "change", Args: raw})
	}
	err = b.runner.Run(ctx, b.round)
	return strings.Join(b.log, "\n") + "\n", err
}

// Numbers count hunks that were shown: if a call before has changed which there
// are, the numbers given on a card do not hold, and it is asked about again.
func TestHunksTakenOnACardAreThoseThatWereShown(t *testing.T) {
	for _, shifts := range []bool{false, true} {
		t.Run(fmt.Sprint(shifts), func(t *testing.T) {
			b := newBench(t)
			b.runner.Policy = askWrites
			b.tools = []tool.Tool{hunky(b.note, func() string {
				if made := strings.Join(b.log, "\n"); shifts && strings.Contains(made, "make a") {
					return "c" // there is nothing left to do about it
				}
				return ""
			})}
			asked := 0
			b.round.User = uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
				asked++
				a := uip.Response{ID: q.ID, Author: "user", Option: uip.OptionReject}
				if asked == 1 {
					a.Option = ""
					a.Parts = []uip.Response{{ID: q.Parts[0].ID, Option: uip.OptionSome, Input: "1"}, {ID: q.Parts[1].ID, Option: uip.OptionSome, Input: "2"}}
				}
				return a, uip.CheckResponse(q, a)
			})
			got, err := b.change(t.Context(), "a b", "c d e")
			if err != nil {
				t.Fatal(err)
			}
			if want := map[bool]int{false: 1, true: 2}[shifts]; asked != want || strings.Contains(got, "make d") == shifts || strings.Contains(got, "make e") {
				t.Errorf("asked %d times:\n%s", asked, got)
			}
		})
	}
}

// A choice of hunks is offered only where there are several, and each is the one that is counted.
func TestHunksAreOfferedOnlyWhereTheyCanBeCounted(t *testing.T) {
	const one = "--- a/f\n+++ b/f\n@@ -1,1 +1,1 @@\n-old\n+new\n"
	two := display.Diff{Unified: one + "@@ -9,1 +9,1 @@\n-x\n+y\n"}
	for name, tt := range map[string]struct {
		preview display.Block
		hunks   int
		want    string
	}{
		"two":           {two, 2, "approve some [reject]"},
		"one":           {display.Diff{Unified: one}, 1, "approve [reject]"},
		"miscounted":    {two, 3, "approve [reject]"},
		"no difference": {display.Text("x"), 2, "approve [reject]"},
		"not in part":   {two, 0, "approve [reject]"},
	} {
		b := newBench(t)
		b.runner.Policy = judge(policy.Ask, lasting)
		b.tools = []tool.Tool{tool.Func[args]{
			Name: "change",
			Plan: func(context.Context, args) (tool.Plan, error) {
				return tool.Plan{Effects: []tool.Effect{{Kind: tool.Write, Target: "f"}}, Preview: tt.preview, Hunks: tt.hunks}, nil
			},
			Do: func(context.Context, args, io.Writer) (tool.Result, error) { return tool.Result{}, nil },
		}}
		if got, _ := b.optionsFor("change a"); got != tt.want {
			t.Errorf("%s: offered %s", name, got)
		}
	}
}
