package toolrun_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"coder/internal/agent/toolrun"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/policy"
	"coder/internal/tool"
)

// shown has the bench note what is shown of calls that are over, and whether the record of
// a request says that it only reads.
func (b *bench) shown() {
	sink := b.round.Sink
	b.round.Sink = event.SinkFunc(func(ctx context.Context, r event.Record) error {
		switch e := r.Event.(type) {
		case event.ToolFinished:
			b.note("shown " + e.CallID)
		case event.ToolCallRequested:
			b.note(fmt.Sprintf("reads %v, overwrites %d", e.ReadOnly, len(e.Before)))
		}
		return sink.Emit(ctx, r)
	})
}

// A call whose turn has come is on record before it is shown.
func TestTheRecordOfACallComesBeforeItsPicture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.shown()
		b.add("read", tool.Read, b.fine("read"))
		got, err := b.run(t.Context(), "read a")
		if err != nil || strings.Index(got, "completed c1") > strings.Index(got, "shown c1") || strings.Count(got, "shown c1") != 1 {
			t.Errorf("%v:\n%s", err, got)
		}
	})
}

// A call that waits for an answer is not over, and nobody is shown that it were.
func TestACallThatWaitsIsNotShownAsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.shown()
		first := make(chan struct{})
		b.add("slow", tool.Read, func(ctx context.Context, x string, out io.Writer) (tool.Result, error) {
			<-first
			return b.fine("slow")(ctx, x, out)
		})
		b.add("wait", tool.Read, func(context.Context, string, io.Writer) (tool.Result, error) {
			go func() { synctest.Wait(); close(first) }()
			return tool.Result{}, uip.ErrAnswerPending
		})
		got, err := b.run(t.Context(), "slow a", "wait b")
		if !errors.Is(err, uip.ErrAnswerPending) || strings.Contains(got, "shown c2") || !strings.Contains(got, "shown c1") {
			t.Errorf("%v:\n%s", err, got)
		}
	})
}

func TestACallThatCannotBePreparedDoesNotOnlyRead(t *testing.T) {
	b := newBench(t)
	b.shown()
	b.add("read", tool.Read, b.fine("read"))
	if got, err := b.run(t.Context(), "read bad"); err != nil || !strings.Contains(got, "reads false") {
		t.Errorf("%v:\n%s", err, got)
	}
}

func TestTheContextOfARoundEndsWithIt(t *testing.T) {
	b := newBench(t)
	var of context.Context
	b.add("read", tool.Read, func(ctx context.Context, _ string, _ io.Writer) (tool.Result, error) {
		of = ctx
		return tool.Result{}, nil
	})
	if _, err := b.run(t.Context(), "read a"); err != nil || of.Err() == nil {
		t.Errorf("%v, its context: %v", err, of.Err())
	}
}

func TestACallIsNamedByItsArguments(t *testing.T) {
	for args, want := range map[string]string{
		`{"path":"a"}`: "a", `{"file_path":"a"}`: "a", `{"command":"a","path":"b"}`: "a", `{"pattern":"a"}`: "a", `{"query":"a"}`: "a", `{"url":"a"}`: "a", `{}`: "", `[]`: "",
	} {
		if got := toolrun.CallSubject([]byte(args)); got != want {
			t.Errorf("%s: %q", args, got)
		}
	}
}

// Of hunks that are turned down the name of a file stands once, before the first.
func TestHunksOfOneFileThatAreTurnedDownStandTogether(t *testing.T) {
	b := newBench(t)
	b.tools = []tool.Tool{tool.Func[hunkArgs]{Name: "change", PlanRun: func(_ context.Context, a hunkArgs) (tool.Plan, tool.Run, error) {
		plan := tool.Plan{Effects: []tool.Effect{{Kind: tool.Write, Target: "a"}}, Hunks: 4}
		plan.Preview = display.Diff{Unified: "--- a/a\n+++ b/a\n@@ -1,1 +1,1 @@\n-1\n+A\n@@ -3,1 +3,1 @@\n-3\n+C\n--- a/b\n+++ b/b\n@@ -5,1 +5,1 @@\n-5\n+E\n@@ -7,1 +7,1 @@\n-7\n+G\n"}
		return plan, func(context.Context, io.Writer) (tool.Result, error) {
			return tool.Result{Value: map[string]any{"ok": true}}, nil
		}, nil
	}}}
	b.runner.Policy = judge(policy.Ask, lasting)
	b.round.User = uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
		return uip.Response{ID: q.ID, Author: "user", Option: uip.OptionSome, Input: "4"}, nil
	})
	got, err := b.change(t.Context(), "a")
	if err != nil || strings.Count(got, "+++ b/a") != 1 || strings.Count(got, "+++ b/b") != 1 {
		t.Errorf("%v:\n%s", err, got)
	}
}
