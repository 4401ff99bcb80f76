package scripted_test

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"coder/internal/core/chat"
	"coder/internal/model/provider"
	"coder/internal/model/scripted"
	"coder/testkit/providertest"
)

func mustParse(t *testing.T, text string) scripted.Script {
	t.Helper()
	s, err := scripted.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func open(t *testing.T, text string) *scripted.Provider {
	t.Helper()
	return scripted.New(mustParse(t, text), scripted.Options{})
}

func collect(p provider.Provider, req provider.Request) (provider.Reply, error) {
	return provider.Collect(p.Stream(context.Background(), req), func(provider.Delta) error { return nil })
}

func ask(text string) provider.Request {
	return provider.Request{Messages: []chat.Message{chat.TextMessage(chat.User, text)}}
}

func TestReplies(t *testing.T) {
	tests := map[string]struct {
		script  string
		text    string
		thought string
		calls   []chat.ToolCall
		stop    provider.Stop
		usage   *chat.Usage
	}{
		"text":             {script: "say Hello there", text: "Hello there", stop: provider.StopEnd},
		"lines are joined": {script: "say a\nsay\nwait 0s\nsay  b ", text: "a\n\n b ", stop: provider.StopEnd},
		"a block is verbatim": {
			script: "say <<END\n# not a comment\n---\n  say x \n\nEND\nsay y",
			text:   "# not a comment\n---\n  say x \n\ny", stop: provider.StopEnd,
		},
		"comments, blank lines, indent, CRLF, BOM": {
			script: "\ufeff# c\r\n\r\n  say a\r\n\t# d\r\n\tsay\tb\r\n", text: "a\nb", stop: provider.StopEnd,
		},
		"empty replies are none": {script: "---\n\n---\nsay a\n---\n", text: "a", stop: provider.StopEnd},
		"a reply without words":  {script: "stop end", stop: provider.StopEnd},
		"thinking":               {script: "reason one\nsay x\nreason two", thought: "one\ntwo", text: "x", stop: provider.StopEnd},
		"a call": {
			script: `call read {"path": "a b.go"}`, stop: provider.StopTools,
			calls: []chat.ToolCall{{ID: "call_1_1", Name: "read", Args: []byte(`{"path": "a b.go"}`)}},
		},
		"calls, ids, no arguments, a block": {
			script: "say hm\ncall a\ncall b id=x9\ncall c id=y <<E\n{\"n\":\n  1}\nE\ncall d id= {\"ü\": \"" + strings.Repeat("世", 40) + "\"}",
			text:   "hm", stop: provider.StopTools,
			calls: []chat.ToolCall{
				{ID: "call_1_1", Name: "a", Args: []byte("{}")},
				{ID: "x9", Name: "b", Args: []byte("{}")},
				{ID: "y", Name: "c", Args: []byte("{\"n\":\n  1}")},
				{ID: "call_3", Name: "d", Args: []byte("{\"ü\": \"" + strings.Repeat("世", 40) + "\"}")},
			},
		},
		"broken arguments": {
			script: `call read {"path": `, stop: provider.StopTools,
			calls: []chat.ToolCall{{ID: "call_1_1", Name: "read", Args: []byte("{}"), Broken: `{"path":`}},
		},
		"stop by hand":     {script: "call read\nstop end", stop: provider.StopEnd, calls: []chat.ToolCall{{ID: "call_1_1", Name: "read", Args: []byte("{}")}}},
		"length":           {script: "say half\nstop length", text: "half", stop: provider.StopLength},
		"usage":            {script: "say x\nusage 10 2", text: "x", stop: provider.StopEnd, usage: &chat.Usage{In: 10, Out: 2}},
		"usage with cache": {script: "usage 10 2 8\nsay x", text: "x", stop: provider.StopEnd, usage: &chat.Usage{In: 10, Out: 2, Cached: 8}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r, err := collect(open(t, tt.script), ask("hi"))
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Message.Text(); got != tt.text {
				t.Errorf("text %q, want %q", got, tt.text)
			}
			if got := r.Message.Reasoning(); got != tt.thought {
				t.Errorf("thinking %q, want %q", got, tt.thought)
			}
			if got := r.Message.Calls(); !reflect.DeepEqual(got, tt.calls) {
				t.Errorf("calls %+v, want %+v", got, tt.calls)
			}
			if r.Stop != tt.stop || !reflect.DeepEqual(r.Usage, tt.usage) {
				t.Errorf("stop %q usage %v, want %q %v", r.Stop, r.Usage, tt.stop, tt.usage)
			}
		})
	}
}

func TestParseErrorsNameTheLine(t *testing.T) {
	tests := map[string]string{
		"sya hello":                             `script line 1: unknown verb "sya"`,
		"say a\n\ncall":                         "script line 3: call needs a tool name",
		"call {\"a\":1}":                        "script line 1: call needs a tool name",
		"say a\nsay <<END\nfoo":                 `script line 2: the block is not closed: no line "END" follows`,
		"usage 1":                               "script line 1: usage takes two or three numbers",
		"usage 1 -2":                            `script line 1: usage: "-2" is not a token count`,
		"usage 1 2\nusage 1 2":                  "script line 2: usage is set twice",
		"stop now":                              "script line 1: stop takes end, tools, length or filter",
		"stop end\nstop end":                    "script line 2: stop is set twice",
		"wait soon":                             "script line 1: wait takes a duration",
		"wait -1s":                              "script line 1: wait takes a duration",
		"cut twice":                             "script line 1: cut takes nothing or retry",
		"fail badly":                            "script line 1: fail takes auth",
		"fail 99":                               "script line 1: fail takes auth",
		"fail rate after=soon":                  "script line 1: fail:",
		"fail auth\nsay x":                      "script line 2: never reached: say comes after",
		"cut\ncall x":                           "script line 2: never reached: call comes after",
		"repeat 0":                              "script line 1: repeat takes",
		"repeat 2\nrepeat 2":                    "script line 2: repeat is set twice",
		"say a\nrepeat\n---\n\nsay b":           "script line 5: never reached",
		"---\n\nrepeat\n---":                    "script line 3: nothing to repeat",
		"say a\nrepeat 2\n---\nrepeat":          "script line 4: nothing to repeat",
		"say a\n---\nrepeat\n---\n---\nsay b\n": "script line 6: never reached",
		"say a\nelse\nsay b":                    "script line 2: never reached: no want",
		"else":                                  "script line 1: never reached: no want",
		"want a\nelse no\nsay b":                "script line 2: else must be alone",
		"want a\nsay b\nelse\n---\nsay c":       "script line 3: no reply follows else",
		"want a\nelse\nsay b\nrepeat":           "script line 4: repeat belongs before else",
		"say \xff":                              "script: not valid UTF-8",
	}
	for text, want := range tests {
		_, err := scripted.Parse(text)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Parse(%q): %v, want %s…", text, err, want)
		}
	}
}

func TestFailures(t *testing.T) {
	tests := map[string]struct {
		kind  error
		again bool
		after time.Duration
		says  string
	}{
		"cut":                     {kind: provider.ErrCutOff},
		"cut retry":               {kind: provider.ErrCutOff, again: true},
		"fail auth wrong key":     {kind: provider.ErrAuth, says: "wrong key"},
		"fail rate":               {kind: provider.ErrRateLimited, again: true},
		"fail rate after=2s slow": {kind: provider.ErrRateLimited, again: true, after: 2 * time.Second, says: "slow"},
		"fail overload":           {kind: provider.ErrOverloaded, again: true},
		"fail loading":            {kind: provider.ErrLoading, again: true},
		"fail context":            {kind: provider.ErrContextTooLong},
		"fail quota":              {kind: provider.ErrQuota},
		"fail model":              {kind: provider.ErrUnknownModel},
		"fail bad":                {kind: provider.ErrBadRequest},
		"fail unreachable":        {kind: provider.ErrUnreachable, again: true},
		"fail 401":                {kind: provider.ErrAuth},
		"fail 402":                {kind: provider.ErrQuota},
		"fail 404":                {kind: provider.ErrUnknownModel},
		"fail 409":                {again: true, says: "409"},
		"fail 413":                {kind: provider.ErrContextTooLong},
		"fail 422":                {kind: provider.ErrBadRequest},
		"fail 429":                {kind: provider.ErrRateLimited, again: true},
		"fail 500 out of order":   {again: true, says: "500: out of order"},
		"fail 529":                {kind: provider.ErrOverloaded, again: true},
	}
	for script, tt := range tests {
		r, err := collect(open(t, "say half\ncall read\n"+script), ask("hi"))
		var e *provider.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: error is %v", script, err)
			continue
		}
		if e.Kind != tt.kind || e.Retryable != tt.again || e.RetryAfter != tt.after || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: got %+v, %q", script, e, err)
		}
		if r.Message.Text() != "half" || r.Message.Calls() != nil {
			t.Errorf("%s: what arrived before is %+v", script, r.Message)
		}
	}
}

func TestRepliesComeInOrderUntilThereAreNone(t *testing.T) {
	p := open(t, "say one\n---\nsay two\nrepeat 2\n---\nsay three")
	for _, want := range []string{"one", "two", "two", "three"} {
		r, err := collect(p, ask("q"))
		if err != nil || r.Message.Text() != want {
			t.Fatalf("got %q, %v, want %q", r.Message.Text(), err, want)
		}
	}
	_, err := collect(p, ask("q"))
	if want := "script: the model was asked for reply 5, but the script has only 4"; err == nil || err.Error() != want {
		t.Fatalf("got %v, want %s", err, want)
	}
	if len(p.Requests()) != 5 {
		t.Errorf("saw %d requests", len(p.Requests()))
	}
}

func TestForever(t *testing.T) {
	for _, script := range []string{"say one\n---\nsay more\nrepeat", "say one\n---\nsay more\n---\nrepeat"} {
		testForever(t, open(t, script))
	}
}

func testForever(t *testing.T, p *scripted.Provider) {
	t.Helper()
	for i := range 50 {
		r, err := collect(p, ask("q"))
		if err != nil || i > 0 && r.Message.Text() != "more" {
			t.Fatalf("%d: %q, %v", i, r.Message.Text(), err)
		}
	}
}

func TestIDsDifferBetweenReplies(t *testing.T) {
	p := open(t, "call a\ncall b\nrepeat")
	ids := map[string]bool{}
	for range 3 {
		r, err := collect(p, ask("q"))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range r.Message.Calls() {
			ids[c.ID] = true
		}
	}
	if len(ids) != 6 {
		t.Errorf("six calls have the ids %v", ids)
	}
}

func TestWantLooksAtWhatIsNew(t *testing.T) {
	req := provider.Request{Messages: []chat.Message{
		chat.TextMessage(chat.User, "old question"),
		{Role: chat.Assistant, Parts: []chat.Part{chat.ToolCall{ID: "1", Name: "read"}, chat.ToolCall{ID: "2", Name: "read"}}},
		chat.ToolMessage(chat.ToolResult{CallID: "1", Text: "alpha"}),
		chat.ToolMessage(chat.ToolResult{CallID: "2", Text: "beta\ngamma"}),
		chat.TextMessage(chat.User, "steer"),
	}}
	for script, missing := range map[string]string{
		"want alpha\nwant steer\nsay ok":    "",
		"want <<E\nbeta\ngamma\nE\nsay ok":  "",
		"want alpha\n\nwant old\nsay ok":    `"old"`,
		"# c\n\nwant nothing of it\nsay ok": `script line 3: expected the model to get "nothing of it", but it got "alpha\nbeta\ngamma\nsteer"`,
	} {
		r, err := collect(open(t, script), req)
		if missing == "" && (err != nil || r.Message.Text() != "ok") {
			t.Errorf("%q: %v", script, err)
		}
		if missing != "" && (err == nil || !strings.Contains(err.Error(), missing)) {
			t.Errorf("%q: got %v, want %s", script, err, missing)
		}
	}
	long := ask(strings.Repeat("ü", 5000))
	if _, err := collect(open(t, "want x"), long); err == nil || len(err.Error()) > 2500 {
		t.Errorf("error is not bounded: %d bytes", len(err.Error()))
	}
}

func TestElseIsGivenWhereTheFirstChoiceDoesNotFit(t *testing.T) {
	const script = "want yes\nsay glad\nelse\nwant no\nwant sorry\nsay a pity\nelse\nsay what?\n---\nwant yes\nelse\nwant no\nsay x"
	for told, want := range map[string]string{"oh yes": "glad", "sorry, no": "a pity", "no": "what?", "": "what?"} {
		p := open(t, script)
		if r, err := collect(p, ask(told)); err != nil || r.Message.Text() != want {
			t.Errorf("%q is answered with %q, %v", told, r.Message.Text(), err)
		}
		if _, err := collect(p, ask("maybe")); err == nil || !strings.HasPrefix(err.Error(), `script line 11: expected the model to get "no"`) {
			t.Errorf("no choice fits, and the error is %v", err)
		}
	}
}

func TestTextComesWordByWord(t *testing.T) {
	var got []string
	p := open(t, "say one two  three")
	for d, err := range p.Stream(t.Context(), ask("q")) {
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := d.(provider.TextDelta); ok {
			got = append(got, string(d))
		}
	}
	if want := []string{"one ", "two  ", "three"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPiecesCanBeChosen(t *testing.T) {
	p := scripted.New(mustParse(t, "say abc"), scripted.Options{Pieces: func(s string) []string { return strings.Split(s, "") }})
	n := 0
	r, err := provider.Collect(p.Stream(t.Context(), ask("q")), func(provider.Delta) error { n++; return nil })
	if err != nil || r.Message.Text() != "abc" || n != 4 {
		t.Errorf("%q in %d deltas, %v", r.Message.Text(), n, err)
	}
}

func TestWaitPassesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var at time.Duration
		_, err := provider.Collect(open(t, "say a\nwait 3s\nsay b").Stream(t.Context(), ask("q")), func(provider.Delta) error {
			at = time.Since(start)
			return nil
		})
		if err != nil || at != 3*time.Second {
			t.Errorf("took %v, %v", at, err)
		}
	})
}

func TestContextEndsAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r, err := provider.Collect(open(t, "say half\nwait 1h\nsay b").Stream(ctx, ask("q")), func(provider.Delta) error { return nil })
		if err != context.DeadlineExceeded || r.Message.Text() != "half" {
			t.Errorf("%q, %v", r.Message.Text(), err)
		}
	})
}

func TestContextEndsTheStream(t *testing.T) {
	for _, script := range []string{"say a b c", "reason a b c", "call x {}", "say a\nfail 500"} {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := provider.Collect(open(t, script).Stream(ctx, ask("q")), func(provider.Delta) error { cancel(); return nil })
		if err != context.Canceled {
			t.Errorf("%s: %v", script, err)
		}
	}
}

func TestAnAskThatIsNotMadeTakesNoReply(t *testing.T) {
	p := open(t, "say one")
	p.Stream(t.Context(), ask("never read"))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := provider.Collect(p.Stream(gone, ask("q")), nil); err != context.Canceled {
		t.Fatal(err)
	}
	if len(p.Requests()) != 0 {
		t.Fatalf("saw %v", p.Requests())
	}
	if r, err := collect(p, ask("q")); err != nil || r.Message.Text() != "one" {
		t.Fatalf("%q, %v", r.Message.Text(), err)
	}
}

func TestSeenKeepsWhatWasAsked(t *testing.T) {
	p := open(t, "say one")
	req := ask("first")
	req.Model, req.Tools = "m", []provider.ToolSpec{{Name: "read"}}
	if _, err := collect(p, req); err != nil {
		t.Fatal(err)
	}
	req.Messages[0], req.Tools[0] = chat.TextMessage(chat.User, "changed"), provider.ToolSpec{}
	got := p.Requests()[0]
	if got.Model != "m" || got.Messages[0].Text() != "first" || got.Tools[0].Name != "read" {
		t.Errorf("saw %+v", got)
	}
}

func TestManyAskAtOnce(t *testing.T) {
	const n = 40
	p := open(t, "say x\ncall a\nrepeat 40")
	var (
		wg  sync.WaitGroup
		mu  sync.Mutex
		ids = map[string]bool{}
	)
	for range n {
		wg.Go(func() {
			r, err := collect(p, ask("q"))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
				return
			}
			ids[r.Message.Calls()[0].ID] = true
		})
	}
	wg.Wait()
	if len(ids) != n || len(p.Requests()) != n {
		t.Errorf("%d ids, %d requests", len(ids), len(p.Requests()))
	}
}

// everything uses each verb and form once.
const everything = `# all of it
want hello
want <<END
two
lines
END
reason hm
say one
say <<END
 indented
END_
END
say <<NOT a block
call read id=7 {"path":"x"}
call read <<END
{"a":
 1}
END
wait 1m0.5s
usage 1 2 3
stop tools
repeat 3
else
want other
say second choice
else
call read
usage 4 5
---
cut retry
---
say x
fail rate after=2s too fast
---
stop end
---
fail 500
repeat
`

func TestStringReadsBack(t *testing.T) {
	checkReadsBack(t, everything)
	s := scripted.Script{{}, {Steps: []scripted.Step{scripted.Say("END\nEND_"), scripted.Say("<<X")}}}
	checkReadsBack(t, s.String())
	if again := mustParse(t, s.String()); again[1].Steps[0] != s[1].Steps[0] || again[1].Steps[1] != s[1].Steps[1] {
		t.Errorf("reads back as %q", again)
	}
}

func checkReadsBack(t *testing.T, text string) {
	t.Helper()
	first := mustParse(t, text)
	again, err := scripted.Parse(first.String())
	if err != nil {
		t.Fatalf("%v in\n%s", err, first)
	}
	forgetLines(first)
	forgetLines(again)
	if !reflect.DeepEqual(again, first) {
		t.Errorf("reads back as\n%#v\nnot\n%#v", again, first)
	}
}

func forgetLines(s scripted.Script) {
	for i := range s {
		for r := &s[i]; r != nil; r = r.Else {
			r.Line = 0
		}
	}
}

func TestContract(t *testing.T) {
	providertest.TestProvider(t, func(t *testing.T, replies ...[]provider.Delta) provider.Provider {
		return scripted.New(scriptOf(replies...), scripted.Options{})
	})
}

// scriptOf makes a script of replies that were streamed before. A reply that
// does not end in Done breaks off after its last delta.
func scriptOf(replies ...[]provider.Delta) (s scripted.Script) {
	for _, ds := range replies {
		whole := false
		for _, d := range ds {
			_, done := d.(provider.Done)
			whole = whole || done
		}
		if !whole { // its calls are played, too, before it breaks off
			ds = append(slices.Clip(ds), provider.Done{})
		}
		reply, _ := provider.Collect(func(yield func(provider.Delta, error) bool) {
			for _, d := range ds {
				yield(d, nil)
			}
		}, func(provider.Delta) error { return nil })
		r := scripted.Reply{Stop: reply.Stop, Usage: reply.Usage}
		if thought := reply.Message.Reasoning(); thought != "" {
			r.Steps = append(r.Steps, scripted.Reason(thought))
		}
		if text := reply.Message.Text(); text != "" {
			r.Steps = append(r.Steps, scripted.Say(text))
		}
		for _, c := range reply.Message.Calls() {
			r.Steps = append(r.Steps, scripted.Call{HasID: true, ID: c.ID, Name: c.Name, Args: cmp.Or(c.Broken, string(c.Args))})
		}
		if !whole {
			r.Steps = append(r.Steps, scripted.Cut{Retry: true})
		}
		s = append(s, r)
	}
	return s
}

func FuzzParse(f *testing.F) {
	f.Add(everything)
	f.Add("say a\r\nsay <<E\r\nx\r\nE")
	f.Add("call x id= \ncall y id=3 id=4\nwant")
	f.Add("want a\nelse\nwant hello\nelse\nsay b\nelse")
	f.Add("fail 500 \n---\n---\nrepeat")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := scripted.Parse(text)
		if err != nil {
			return
		}
		checkReadsBack(t, text)
		p := scripted.New(s, scripted.Options{Sleep: func(context.Context, time.Duration) error { return nil }})
		for range min(len(s), 20) {
			_, _ = collect(p, ask("hello two\nlines"))
		}
	})
}

func TestEachConversationHasItsOwnReplies(t *testing.T) {
	p := open(t, "say main one\n---\nto count files\nsay child one\nrepeat 2\n---\nsay main two\n---\nto list names\nsay other\nrepeat\n---\nto count files\nsay child two")
	said := func(first string) string {
		t.Helper()
		r, err := collect(p, ask(first))
		if err != nil {
			t.Fatal(err)
		}
		return r.Message.Text()
	}
	var got []string
	for _, first := range []string{"please count files", "hello", "list names", "count files", "count files", "list names", "hello"} {
		got = append(got, said(first))
	}
	want := []string{"child one", "main one", "other", "child one", "child two", "other", "main two"}
	if !slices.Equal(got, want) {
		t.Errorf("said %q\nwant %q", got, want)
	}
	if _, err := collect(p, ask("count files")); err == nil || !strings.Contains(err.Error(), "asked for reply 4, but the script has only 3") {
		t.Errorf("the end of one conversation's replies: %v", err)
	}
}

func TestToInScripts(t *testing.T) {
	for script, want := range map[string]string{
		"to a\nto b\nsay x":                         "script line 2: to appears once",
		"to\nsay x":                                 "script line 1: to appears once",
		"want a\nsay x\nelse\nto b\nsay y":          "script line 4: to appears once",
		"to a\nsay x\nrepeat\n---\nto a\nsay never": "never reached",
	} {
		if _, err := scripted.Parse(script); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", script, err, want)
		}
	}
	const text = "to a b\nwant c\nsay x\nelse\nsay y\n"
	s := mustParse(t, text)
	if s[0].Conversation != "a b" || s.String() != text {
		t.Errorf("reads back as %q", s.String())
	}
}
