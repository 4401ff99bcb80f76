package provider_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"coder/internal/model/provider"
)

// replies is a provider that gives a reply, or an error, to each request.
type replies func(provider.Request) ([]provider.Delta, error)

func (r replies) Stream(_ context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		list, err := r(req)
		for _, d := range list {
			if !yield(d, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

func hello(provider.Request) ([]provider.Delta, error) {
	return []provider.Delta{provider.TextDelta("hi"), provider.Done{Stop: provider.StopEnd}}, nil
}

// windows remembers what was found out, like a program does.
type windows struct {
	beside provider.Background
	kept   map[string]int
	asked  int
	by     string
}

// lookup asks as ask does, once for each model.
func (w *windows) lookup(ask func(context.Context, string) int) provider.WindowLookup {
	w.kept = make(map[string]int)
	return provider.WindowLookup{
		IsDue: func(model string, _ int) bool { _, has := w.kept[model]; return !has },
		Ask:   func(ctx context.Context, model string) int { w.asked++; return ask(ctx, model) },
		Save:  func(model string, n int) { w.kept[model] = n },
		RecordReply: func(_, by string) bool {
			was := w.by
			w.by = by
			return was != "" && was != by
		},
		Background: &w.beside,
	}
}

func deltas(ctx context.Context, p provider.Provider, model string) (all []provider.Delta, err error) {
	for d, err := range p.Stream(ctx, provider.Request{Model: model}) {
		if err != nil {
			return all, err
		}
		all = append(all, d)
	}
	return all, nil
}

func TestAServerIsAskedOnceBesideTheReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w windows
		p := provider.LearnWindows(replies(hello), w.lookup(func(_ context.Context, model string) int {
			time.Sleep(time.Second) // the reply does not wait
			return map[string]int{"small": 4096}[model]
		}))
		defer w.beside.Close()
		for i, want := range []int{2, 3, 2} {
			begin := time.Now()
			got, err := deltas(t.Context(), p, "small")
			told := slices.Contains(got, provider.Delta(provider.Window(4096)))
			if err != nil || len(got) != want || time.Since(begin) > 0 || told != (i == 1) {
				t.Errorf("request %d: %v %v after %v", i, got, err, time.Since(begin))
			}
			time.Sleep(2 * time.Second)
			synctest.Wait()
		}
		if w.asked != 1 || w.kept["small"] != 4096 {
			t.Errorf("asked %d times: %v", w.asked, w.kept)
		}
		for range 5 {
			if got, err := deltas(t.Context(), p, "silent"); err != nil || len(got) != 2 {
				t.Errorf("%v %v", got, err)
			}
			time.Sleep(2 * time.Second)
			synctest.Wait()
		}
		if n, has := w.kept["silent"]; w.asked != 2 || !has || n != 0 {
			t.Errorf("a silent server was asked %d times: %v", w.asked-1, w.kept)
		}
	})
}

func TestARequestThatCannotFitIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		var w windows
		p := provider.LearnWindows(replies(func(r provider.Request) ([]provider.Delta, error) { sent++; return hello(r) }),
			w.lookup(func(context.Context, string) int { return 4096 }))
		defer w.beside.Close()
		_, _ = deltas(t.Context(), p, "m")
		synctest.Wait()
		for _, err := range p.Stream(t.Context(), provider.Request{Model: "m", Estimate: 4000}) {
			e, ok := errors.AsType[*provider.Error](err)
			if !ok || e.Window != 4096 || !errors.Is(err, provider.ErrContextTooLong) {
				t.Error(err)
			}
		}
		if sent != 1 {
			t.Errorf("%d requests were sent", sent)
		}
	})
}

func TestASilentServerIsNotWaitedForAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w windows
		ended := 0
		ask := func(ctx context.Context, _ string) int { <-ctx.Done(); ended++; return 0 }
		p := provider.LearnWindows(replies(hello), w.lookup(ask))
		for i, model := range []string{"m", "m", "another"} { // a session after the end of another asks, too
			if got, err := deltas(t.Context(), p, model); err != nil || len(got) != 2 {
				t.Errorf("%v %v", got, err)
			}
			if i == 0 {
				continue
			}
			if err := w.beside.Close(); err != nil || ended != i {
				t.Errorf("%v: %d ended", err, ended)
			}
		}
		if _, has := w.kept["m"]; !has {
			t.Error("a server that does not answer is asked again")
		}
	})
}

func TestAComplaintAsksAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		reply func(provider.Request) ([]provider.Delta, error)
		asked int
		kept  int
	}{
		"a refusal without a figure": {refusal(0), 3, 4096}, // bounded, whatever the server does
		"a refusal with a figure":    {refusal(1024), 0, 1024},
		"another failure":            {fails, 0, 8192},
		"no complaint":               {hello, 0, 8192},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w windows
				p := provider.LearnWindows(replies(tt.reply), w.lookup(func(context.Context, string) int { return 4096 }))
				defer w.beside.Close()
				w.kept["m"] = 8192
				for range 6 {
					_, _ = deltas(t.Context(), p, "m")
					synctest.Wait()
				}
				if w.asked != tt.asked || w.kept["m"] != tt.kept {
					t.Errorf("asked %d times: %v", w.asked, w.kept)
				}
			})
		})
	}
}

func fails(provider.Request) ([]provider.Delta, error) { return nil, errors.New("no") }

func refusal(window int) func(provider.Request) ([]provider.Delta, error) {
	return func(provider.Request) ([]provider.Delta, error) {
		return nil, &provider.Error{Kind: provider.ErrContextTooLong, Window: window, Err: errors.New("too long")}
	}
}

func TestAnAnswerDoesNotReplaceARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w windows
		reply := hello
		p := provider.LearnWindows(replies(func(r provider.Request) ([]provider.Delta, error) { return reply(r) }),
			w.lookup(func(context.Context, string) int { time.Sleep(time.Second); return 131072 }))
		_, _ = deltas(t.Context(), p, "m")
		reply = refusal(1024)
		_, _ = deltas(t.Context(), p, "m")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if w.asked != 1 || w.kept["m"] != 1024 {
			t.Errorf("asked %d times: %v", w.asked, w.kept)
		}
	})
}

func TestAnotherModelAtTheAddressIsAskedAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w windows
		by := "a"
		p := provider.LearnWindows(replies(func(provider.Request) ([]provider.Delta, error) {
			return []provider.Delta{provider.Done{Stop: provider.StopEnd, Model: by}}, nil
		}), w.lookup(func(context.Context, string) int { return 4096 }))
		defer w.beside.Close()
		for i, want := range []int{1, 1, 2, 2} {
			by = []string{"a", "a", "b", "b"}[i]
			_, _ = deltas(t.Context(), p, "m")
			synctest.Wait()
			if w.asked != want {
				t.Errorf("request %d: asked %d times", i, w.asked)
			}
		}
	})
}

func TestASlowModelIsAskedAboutWhenItReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w windows
		p := provider.LearnWindows(replies(func(provider.Request) ([]provider.Delta, error) {
			return []provider.Delta{provider.Waiting{Elapsed: time.Minute}}, errors.New("gone")
		}), w.lookup(func(context.Context, string) int { return 4096 }))
		defer w.beside.Close()
		_, _ = deltas(t.Context(), p, "m")
		synctest.Wait()
		if w.asked != 0 {
			t.Error("a server that is loading its model was asked")
		}
	})
}
