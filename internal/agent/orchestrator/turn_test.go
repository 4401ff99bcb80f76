package orchestrator

import (
	"context"
	"errors"
	"strings"
	"testing"

	"coder/internal/agent/toolrun"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/model/provider"
	"coder/internal/policy"
	"coder/internal/tool"
)

func TestATurnFromPromptToAnswer(t *testing.T) {
	b := newBench(t, `
say let me look
call read {"path":"a.go"}
usage 100 20
---
say done
usage 150 5
`)
	got, err := b.RunText(t.Context(), "please look", b)
	if err != nil || got.Text != "done" {
		t.Fatalf("got %+v, %v", got, err)
	}
	b.wantLog(`TaskCreated TaskStarted StateChanged MessageAdded:system MessageAdded:user
		MessageAdded:assistant ContextUsed
		ToolCallRequested ToolStarted ToolCallCompleted ToolFinished MessageAdded:tool
		MessageAdded:assistant ContextUsed TaskCompleted StateChanged`)
	const want = "user: please look\nassistant: let me lookcall call_1_1 read\ntool: call_1_1 {\"ok\":true,\"path\":\"a.go\"}"
	if told := b.told(1); told != want {
		t.Errorf("the second request said:\n%s\nwant:\n%s", told, want)
	}
	if b.saved != 1 {
		t.Errorf("saved %d times, want once per turn", b.saved)
	}
}

func TestTheSystemTextIsRecordedWhenItChanges(t *testing.T) {
	b := newBench(t, "say one\n---\nsay two\n---\nsay three")
	for _, in := range []string{"a", "b"} {
		if _, err := b.RunTurn(t.Context(), in, b); err != nil {
			t.Fatal(err)
		}
	}
	before := b.Settings
	b.Config.Settings = func() Settings { s := before(); s.System = "be better"; return s }
	if _, err := b.RunTurn(t.Context(), "c", b); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.log.String(), "MessageAdded:system"); n != 2 {
		t.Errorf("the system text was recorded %d times, want 2", n)
	}
	if seen := b.model.Requests(); seen[1].System != "be good" || seen[2].System != "be better" || len(seen[2].Messages) != 5 {
		t.Errorf("third request: %q with %d messages", seen[2].System, len(seen[2].Messages))
	}
}

func TestPrepareTurnStateRecordsThePromptBeforeTheModelHearsIt(t *testing.T) {
	b := newBench(t, "")
	st, err := b.prepareTurnState(t.Context(), TextInput(chat.NewUserText(chat.OriginUnknown, "  hello ")), b)
	if err != nil || st.task == "" || len(st.tools) != 3 {
		t.Fatalf("state %+v, %v", st, err)
	}
	if ms := b.Conversation.Messages(); len(ms) != 1 || ms[0].Text() != "  hello " {
		t.Errorf("the conversation holds %v, want the raw prompt", ms)
	}
}

func TestChatStepTakesInOneReply(t *testing.T) {
	b := newBench(t, "call read {}\ncall write {}")
	st := b.newTurnState(b)
	if err := b.chatStep(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	if len(st.calls) != 2 || st.finalText != "" || len(b.Conversation.Messages()) != 1 {
		t.Errorf("state after one reply: %+v", st)
	}
}

func TestToolLoopStepNotesWhatWasWritten(t *testing.T) {
	b := newBench(t, `call write {"path":"a"}`+"\n"+`call read {"path":"b"}`)
	st := b.newTurnState(b)
	if err := b.chatStep(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	if err := b.toolLoopStep(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	if len(st.calls) != 0 || strings.Join(st.work.EditedFiles, " ") != "a" {
		t.Errorf("calls %v, edited %v", st.calls, st.work.EditedFiles)
	}
	b.wellFormed()
}

func TestPersistStepKeepsTheTurnsOwnError(t *testing.T) {
	b := newBench(t, "")
	st, err := b.prepareTurnState(t.Context(), TextInput(chat.NewUserText(chat.OriginUnknown, "x")), b)
	if err != nil {
		t.Fatal(err)
	}
	b.Config.Save = func(context.Context) error { return errors.New("no room") }
	if err := b.closeTurn(t.Context(), st, errBoom); !errors.Is(err, errBoom) {
		t.Errorf("err = %v, want boom", err)
	}
	if !strings.Contains(b.log.String(), "TaskFailed Notice StateChanged") {
		t.Errorf("shown: %s", &b.log)
	}
}

func TestTenStepsAndTheStepLimit(t *testing.T) {
	b := newBench(t, "call read {}\nrepeat 3\n---\nsay at last")
	if got, err := b.RunTurn(t.Context(), "go", b); err != nil || got != "at last" {
		t.Errorf("got %q, %v", got, err)
	}
	b = newBench(t, "call read {}\nrepeat")
	failed := b.failure()
	_, err := b.RunTurn(t.Context(), "loop", b)
	if !errors.Is(err, ErrStepLimit) || !strings.Contains(err.Error(), "step limit reached") {
		t.Errorf("err = %v, want ErrStepLimit", err)
	}
	if n := len(b.model.Requests()); n != 4 {
		t.Errorf("%d requests, want 4", n)
	}
	if f := failed; f.Steps != 4 || f.ErrorText != "" {
		t.Errorf("on record is %+v", f)
	}
	b.wellFormed()
}

func TestAProviderFailureEndsTheTurnAndNotTheSession(t *testing.T) {
	b := newBench(t, "fail auth bad key\n---\nsay back again")
	failed := b.failure()
	_, err := b.RunTurn(t.Context(), "one", b)
	if !errors.Is(err, provider.ErrAuth) || !strings.Contains(err.Error(), "ask the model") {
		t.Errorf("err = %v", err)
	}
	if f := failed; f.ErrorText != "not authorized: bad key" || f.Code != "unauthorized" || f.Steps != 0 {
		t.Errorf("on record is %+v", f)
	}
	if got, err := b.RunTurn(t.Context(), "two", b); err != nil || got != "back again" {
		t.Errorf("got %q, %v", got, err)
	}
	if told := b.told(1); told != "user: one\nuser: two" {
		t.Errorf("told %q", told)
	}
}

func TestAReplyCutShortIsKeptAndMarked(t *testing.T) {
	b := newBench(t, "say half an ans\ncall write {}\ncut")
	got, err := b.RunTurn(t.Context(), "go", b)
	if !errors.Is(err, provider.ErrCutOff) || got != "half an ans" {
		t.Errorf("got %q, %v", got, err)
	}
	if !strings.Contains(b.log.String(), "MessageAdded:assistant(part)") || strings.Contains(b.log.String(), "ToolCall") {
		t.Errorf("shown: %s", &b.log)
	}
}

func TestRepliesNobodyCanUse(t *testing.T) {
	for _, script := range []string{"reason only thinking", "stop length", "stop filter"} {
		b := newBench(t, script)
		if _, err := b.RunTurn(t.Context(), "go", b); !errors.Is(err, provider.ErrCutOff) {
			t.Errorf("%q: err = %v", script, err)
		}
		if strings.Contains(b.log.String(), "assistant") || strings.Contains(b.log.String(), "ToolCall") {
			t.Errorf("%q: shown %s", script, &b.log)
		}
	}
	b := newBench(t, "say so far\nstop length")
	if got, err := b.RunTurn(t.Context(), "go", b); err != nil || got != "so far" || !strings.Contains(b.log.String(), "Notice") {
		t.Errorf("got %q, %v, shown %s", got, err, &b.log)
	}
}

func TestIDsUsedBeforeAreReplaced(t *testing.T) {
	b := newBench(t, "call read id=x {}\n---\ncall read id=x {}\n---\nsay ok")
	if _, err := b.RunTurn(t.Context(), "go", b); err != nil {
		t.Fatal(err)
	}
	b.wellFormed()
}

// Interruption: what is written depends on where the turn was.

func TestInterruptWhileTheModelSpeaks(t *testing.T) {
	b := newBench(t, "say one two three four")
	ctx, cancel := context.WithCancel(t.Context())
	b.onEach = func(e event.Event) {
		if d, ok := e.(event.TextDelta); ok && strings.Contains(d.Text, "two") {
			cancel()
		}
	}
	got, err := b.RunTurn(ctx, "go", b)
	if err != context.Canceled || !strings.HasPrefix(got, "one two") || strings.Contains(got, "four") {
		t.Errorf("got %q, %v", got, err)
	}
	ms := b.Conversation.Messages()
	if last := ms[len(ms)-1]; last.Role != chat.User || last.Text() != "[Request interrupted by user]" {
		t.Errorf("the history ends with %v", last)
	}
	if !strings.HasSuffix(b.log.String(), "ContextUsed Interrupted TaskCanceled StateChanged ") {
		t.Errorf("shown: %s", &b.log)
	}
}

func TestInterruptBetweenReplyAndTools(t *testing.T) {
	b := newBench(t, "call write {}")
	ctx, cancel := context.WithCancel(t.Context())
	b.onEach = func(e event.Event) {
		if m, ok := e.(event.MessageAdded); ok && m.Message.Role == chat.Assistant {
			cancel()
		}
	}
	if _, err := b.RunTurn(ctx, "go", b); err != context.Canceled {
		t.Errorf("err = %v", err)
	}
	ms := b.Conversation.Messages()
	if last := ms[len(ms)-1]; last.Text() != "[Request interrupted by user]" || strings.Contains(b.log.String(), "ToolStarted") {
		t.Errorf("the history ends with %v; shown %s", last, &b.log)
	}
	b.wellFormed()
}

func TestInterruptDuringTheLastTool(t *testing.T) {
	b := newBench(t, `call write {"path":"1"}`+"\n"+`call write {"path":"2"}`)
	ctx, cancel := context.WithCancel(t.Context())
	b.during = func(_ context.Context, path string) error {
		if path == "2" {
			cancel()
		}
		return nil
	}
	if _, err := b.RunTurn(ctx, "go", b); err != context.Canceled {
		t.Errorf("err = %v", err)
	}
	ms := b.Conversation.Messages()
	last := ms[len(ms)-1]
	for r := range chat.PartsOf[chat.ToolResult](last) {
		if r.Text != `{"ok":true,"path":"2","interrupted":"[Request interrupted by user for tool use]"}` {
			t.Errorf("the last result is %s", r.Text)
		}
	}
	if last.Role != chat.Tool {
		t.Errorf("the history ends with a %s message", last.Role)
	}
	b.wellFormed()
}

func TestInterruptDuringTheFirstOfTwoTools(t *testing.T) {
	b := newBench(t, `call write {"path":"1"}`+"\n"+`call write {"path":"2"}`)
	ctx, cancel := context.WithCancel(t.Context())
	b.during = func(ctx context.Context, _ string) error { cancel(); return ctx.Err() }
	if _, err := b.RunTurn(ctx, "go", b); err != context.Canceled {
		t.Errorf("err = %v", err)
	}
	var cancelled int
	for _, m := range b.Conversation.Messages() {
		for r := range chat.PartsOf[chat.ToolResult](m) {
			if strings.Contains(r.Text, `"cancelled":true`) {
				cancelled++
			}
		}
	}
	if cancelled != 2 {
		t.Errorf("%d calls were told of the cancellation, want 2", cancelled)
	}
	b.wellFormed()
}

func TestATurnThatFinishedIsNotUndoneByALateInterrupt(t *testing.T) {
	b := newBench(t, "say done")
	ctx, cancel := context.WithCancel(t.Context())
	b.onEach = func(e event.Event) {
		if _, ok := e.(event.ContextUsed); ok {
			cancel()
		}
	}
	got, err := b.RunTurn(ctx, "go", b)
	if got != "done" || err != nil || !strings.Contains(b.log.String(), "TaskCompleted") {
		t.Errorf("got %q, %v, shown %s", got, err, &b.log)
	}
}

func TestRefusingMayStopTheTurn(t *testing.T) {
	b := newBench(t, "call write {}\ncall write {}\n---\nsay unreachable")
	b.Runner.Policy = policy.Func(func(context.Context, policy.Case) (policy.Opinion, error) {
		return policy.Opinion{Verdict: policy.Ask, Reasons: []policy.Reason{{By: "rule", Text: "ask", Lasting: true}}}, nil
	})
	no := uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
		return uip.Response{ID: q.ID, Author: "user", Option: uip.OptionReject}, nil
	})
	b.Config.NewInteractor = func(event.Sink) uip.Interactor { return no }
	before := b.Settings
	b.Config.Settings = func() Settings { s := before(); s.StopOnReject = true; return s }
	if _, err := b.RunTurn(t.Context(), "go", b); !errors.Is(err, toolrun.ErrDeniedAndStopped) {
		t.Errorf("err = %v", err)
	}
	if !strings.Contains(b.log.String(), "TaskCanceled") || len(b.model.Requests()) != 1 {
		t.Errorf("%d requests, shown %s", len(b.model.Requests()), &b.log)
	}
	b.wellFormed()
}

// TestWhateverFailsTheConversationStaysWellFormed breaks each event in turn.
func TestWhateverFailsTheConversationStaysWellFormed(t *testing.T) {
	for broken := 1; broken < 40; broken++ {
		b := newBench(t, "say x\ncall write {}\ncall read {}\n---\nsay done")
		n := 0
		through := b.RecordingSink
		b.Config.RecordingSink = func(out event.Sink) event.Sink {
			next := through(out)
			return event.SinkFunc(func(ctx context.Context, r event.Record) error {
				if n++; n == broken {
					return errBoom
				}
				return next.Emit(ctx, r)
			})
		}
		_, err := b.RunTurn(t.Context(), "go", b)
		if n >= broken && err == nil {
			t.Errorf("event %d broke and nobody was told", broken)
		}
		b.wellFormed()
	}
}

func TestAToolThatIsAboutToComeIsWaitedFor(t *testing.T) {
	b := newBench(t, "call mcp__late__one {}\n---\ncall read {\"path\":\"a\"}\n---\nsay done")
	before := b.Settings
	var wanted []string
	b.Config.Settings = func() Settings {
		s := before()
		s.RefreshTools = func(_ context.Context, set tool.Set, calls []chat.ToolCall) tool.Set {
			for _, c := range calls {
				wanted = append(wanted, c.Name)
			}
			return set
		}
		return s
	}
	if _, err := b.RunTurn(t.Context(), "go", b); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(wanted, " "); got != "mcp__late__one" {
		t.Errorf("waited for %q", got)
	}
}
