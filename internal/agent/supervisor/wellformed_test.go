package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"coder/internal/agent/orchestrator"
	"coder/internal/agent/supervisor"
	"coder/internal/agent/toolrun"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/host/authkey"
	"coder/internal/model/provider"
	"coder/internal/policy"
	"coder/internal/policy/mode"
	"coder/internal/record/store/mem"
	"coder/internal/slash"
	"coder/internal/tool"

	"pgregory.net/rapid"
)

// fate draws what happens next, from several goroutines.
type fate struct {
	mu sync.Mutex
	t  *rapid.T
}

func (f *fate) roll(what string, n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return rapid.IntRange(0, n-1).Draw(f.t, what)
}

// anyModel replies as fate has it, and checks everything it is sent.
type anyModel struct {
	fate   *fate
	cancel func()
	wrong  func(string)
	calls  int
}

func (m *anyModel) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	if why := malformed(req.Messages); why != "" {
		m.wrong(why)
	}
	return func(yield func(provider.Delta, error) bool) {
		say := func(d provider.Delta) bool { return yield(d, nil) }
		switch m.fate.roll("reply", 9) {
		case 0:
			yield(nil, &provider.Error{Kind: provider.ErrOverloaded, Err: errors.New("busy")})
			return
		case 1:
			yield(nil, &provider.Error{Kind: provider.ErrContextTooLong, Err: errors.New("too long")})
			return
		case 2: // cut off in the middle
			_ = say(provider.TextDelta("half an ans")) && yield(nil, &provider.Error{Kind: provider.ErrCutOff, Err: errors.New("cut")})
			return
		case 3: // the person stops it
			if say(provider.TextDelta("I was about to")) {
				m.cancel()
				yield(nil, context.Cause(ctx))
			}
			return
		case 4, 5:
			_ = say(provider.TextDelta(strings.Repeat("done and said ", 1+m.fate.roll("words", 40)))) && say(provider.Done{Stop: provider.StopEnd})
			return
		}
		for i := range 1 + m.fate.roll("calls", 3) {
			m.calls++
			name := []string{"look", "change", "ask", "nothing-like-it"}[m.fate.roll("tool", 4)]
			args, _ := json.Marshal(map[string]string{"path": strings.Repeat("x", 1+m.fate.roll("path", 300))})
			if !say(provider.CallDelta{Index: i, ID: fmt.Sprint("call_", m.calls%7), Name: name, Args: string(args)}) {
				return
			}
		}
		say(provider.Done{Stop: provider.StopTools})
	}
}

// malformed says what is wrong with a conversation: every call is answered
// once, right after its reply, in the order of the calls.
func malformed(ms []chat.Message) string {
	for i := 0; i < len(ms); i++ {
		calls := ms[i].Calls()
		for r := range chat.PartsOf[chat.ToolResult](ms[i]) {
			return fmt.Sprintf("message %d answers %s out of place", i, r.CallID)
		}
		for _, c := range calls {
			if i++; i >= len(ms) {
				return "the last calls are not answered"
			}
			n := 0
			for r := range chat.PartsOf[chat.ToolResult](ms[i]) {
				if n++; r.CallID != c.ID {
					return fmt.Sprintf("message %d answers %s, not %s", i, r.CallID, c.ID)
				}
			}
			if n != 1 {
				return fmt.Sprintf("message %d holds %d answers", i, n)
			}
		}
	}
	return ""
}

// anyTools read, write and ask; now and then the person stops one in the middle.
func anyTools(f *fate, cancel func()) (tool.Set, error) {
	kind := func(name string, k tool.Kind) tool.Tool {
		return tool.Func[writeArgs]{
			Name: name,
			Plan: func(_ context.Context, a writeArgs) (tool.Plan, error) {
				return tool.Plan{Title: name, Effects: []tool.Effect{{Kind: k, Target: a.Path}}}, nil
			},
			Do: func(ctx context.Context, _ writeArgs, _ io.Writer) (tool.Result, error) {
				switch f.roll("run", 6) {
				case 0:
					cancel()
					return tool.Result{}, ctx.Err()
				case 1:
					return tool.Result{}, errors.New("it broke")
				}
				if name == "ask" {
					_, err := uip.InteractorFrom(ctx).Ask(ctx, uip.Request{Kind: uip.KindInput, Purpose: uip.PurposeRequestInfo, Display: uip.Display{Title: "?"}})
					return tool.Result{Value: map[string]any{"ok": true}}, err
				}
				return tool.Result{Value: map[string]any{"ok": true, "text": strings.Repeat("line\n", 30)}}, ctx.Err()
			},
		}
	}
	return tool.NewSet(kind("look", tool.Read), kind("change", tool.Write), kind("ask", tool.Note))
}

// anyone answers as fate has it, or lets the question wait.
func anyone(f *fate, cancel func()) uip.Interactor {
	return uip.InteractorFunc(func(ctx context.Context, q uip.Request) (uip.Response, error) {
		a := uip.Response{ID: q.ID, Author: "user", Option: uip.OptionApprove, Input: "yes"}
		switch f.roll("answer", 6) {
		case 0:
			a.Option, a.Comment = uip.OptionReject, "no"
		case 1:
			return a, uip.ErrAnswerPending
		case 2:
			return uip.NoAnswer(q), nil
		case 3:
			cancel()
			return a, ctx.Err()
		}
		if q.Purpose != uip.PurposeConfirmRiskyAction {
			a.Option = ""
		}
		return a, nil
	})
}

// TestEveryConversationEverSentIsWellFormed lives a session through whatever
// can happen to it: replies of every kind, interruptions, questions that wait,
// processes that die between any two records, compaction and its undoing.
func TestEveryConversationEverSentIsWellFormed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := &fate{t: rt}
		store, sessions := new(mem.Store), new(mem.Sessions)
		ids, key := 0, authkey.NewTemporary()
		var mu sync.Mutex
		newID := func(prefix string) string {
			mu.Lock()
			defer mu.Unlock()
			ids++
			return fmt.Sprint(prefix, ids)
		}
		asks := policy.Func(func(_ context.Context, c policy.Case) (policy.Opinion, error) {
			if c.Plan.ReadOnly() || c.Tool == "ask" {
				return policy.Opinion{Verdict: policy.Allow}, nil
			}
			return policy.Opinion{Verdict: policy.Ask, Reasons: []policy.Reason{{By: "rule", Text: "asks", Lasting: true}}}, nil
		})
		for life := range 1 + f.roll("lives", 4) {
			ctx, stop := context.WithCancel(context.Background())
			cancel := func() { mu.Lock(); s := stop; mu.Unlock(); s() }
			set, err := anyTools(f, cancel)
			if err != nil {
				rt.Fatal(err)
			}
			model := &anyModel{fate: f, cancel: cancel, wrong: func(why string) { rt.Errorf("sent: %s", why) }, calls: 100 * life}
			state, err := mode.NewState("build", nil)
			if err != nil {
				rt.Fatal(err)
			}
			lives := -1
			if f.roll("dies", 2) == 0 {
				lives = f.roll("records", 40)
			}
			sup := supervisor.New(supervisor.Config{
				Store: &mortal{Store: store, lives: lives}, Sessions: sessions, User: anyone(f, cancel), Dir: "/w", NewID: newID, Now: time.Now, Key: func() *authkey.Key { return key },
				Engine: func(string, supervisor.SpawnFunc) (supervisor.Engine, error) {
					return supervisor.Engine{Engine: orchestrator.Engine{
						Provider: model, Mode: state, Commands: []slash.Command{slash.Compact(), slash.Mode()},
						Runner: &toolrun.Runner{Policy: asks, NewID: func() string { return newID("ui") }, Now: time.Now},
						Settings: func() orchestrator.Settings {
							return orchestrator.Settings{
								Model: "m", Mode: "build", System: "s", Tools: set, MaxSteps: 6, ContextLimit: 1500,
								Compaction: orchestrator.Compaction{Auto: true, Prune: f.roll("prune", 2) == 0, Threshold: 0.8, Recent: 4},
							}
						},
					}}, nil
				},
			})
			open := sup.ResumeSession
			if life == 0 {
				open = sup.StartSession
			}
			s, err := open(ctx, "s", event.Discard)
			if err != nil {
				stop()
				if life == 0 || errors.Is(err, errDead) {
					continue
				}
				break // nothing was ever recorded
			}
			for turn := range 1 + f.roll("turns", 4) {
				turnCtx, end := context.WithCancel(ctx)
				mu.Lock()
				stop = end
				mu.Unlock()
				switch f.roll("input", 5) {
				case 0:
					_, _ = s.Continue(turnCtx, event.Discard)
				case 1:
					_, _ = s.RunText(turnCtx, []string{"/compact", "/compact undo", "/mode plan", "/mode build"}[f.roll("command", 4)], event.Discard)
				default:
					_, _ = s.RunText(turnCtx, fmt.Sprintf("turn %d.%d: remember TEAL-7", life, turn), event.Discard)
				}
				end()
			}
			_ = s.Close()
			stop()
		}
	})
}
