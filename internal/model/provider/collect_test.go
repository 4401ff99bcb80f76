package provider_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/model/provider"
)

// stream yields deltas and then err, if there is one.
func stream(err error, ds ...provider.Delta) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		for _, d := range ds {
			if !yield(d, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

func unwatched(provider.Delta) error { return nil }

func call(i int, id, name, args string) provider.CallDelta {
	return provider.CallDelta{Index: i, ID: id, Name: name, Args: args}
}

func TestCollect(t *testing.T) {
	done := provider.Done{Stop: provider.StopTools, Usage: &chat.Usage{In: 3, Out: 4}}
	for _, tc := range []struct {
		name string
		in   []provider.Delta
		want []chat.Part
	}{
		{"text", []provider.Delta{provider.TextDelta("a"), provider.TextDelta("b"), done}, []chat.Part{chat.Text("ab")}},
		{"nothing", []provider.Delta{done}, nil},
		{"thinking", []provider.Delta{
			provider.ReasoningDelta{Text: "a", Field: "f"}, provider.ReasoningDelta{Text: "b"},
			provider.ReasoningDelta{Details: []byte(`[1]`)}, provider.ReasoningDelta{Details: []byte(`[1,2]`)}, done,
		}, []chat.Part{chat.Reasoning{Text: "ab", Field: "f", Details: []byte(`[1,2]`)}}},
		{"calls in pieces", []provider.Delta{
			call(0, "a", "f", ""), call(1, "b", "", `{"y"`), call(0, "", "", `{"x":1}`), call(1, "", "g", `:2}`), provider.CallDelta{Index: 1, Extra: []byte(`{"s":1}`)}, done,
		}, []chat.Part{
			chat.ToolCall{ID: "a", Name: "f", Args: []byte(`{"x":1}`)},
			chat.ToolCall{ID: "b", Name: "g", Args: []byte(`{"y":2}`), Extra: []byte(`{"s":1}`)},
		}},
		{"ids made up", []provider.Delta{call(0, "", "f", "{}"), call(1, "call_0", "f", "{}"), call(2, "call_0", "f", "{}"), call(3, "", "f", "{}"), done}, []chat.Part{
			chat.ToolCall{ID: "call_0", Name: "f", Args: []byte("{}")}, chat.ToolCall{ID: "call_0_1", Name: "f", Args: []byte("{}")},
			chat.ToolCall{ID: "call_0_2", Name: "f", Args: []byte("{}")}, chat.ToolCall{ID: "call_3", Name: "f", Args: []byte("{}")},
		}},
		{"arguments of all kinds", []provider.Delta{
			call(0, "0", "f", ""), call(1, "1", "f", " null "), call(2, "2", "f", `""`), call(3, "3", "f", `"{\"x\":1}"`), call(4, "4", "f", `{"x":`),
			call(5, "5", "f", `[1]`), call(6, "6", "f", `"x"`), call(7, "7", "f", " {} \n"), call(8, "8", "f", "{}{}"), call(9, "9", "f", "{}"), call(9, "", "", `{"x"`), call(9, "", "", `:1}`), call(10, "10", "f", `{}{"x":`), done,
		}, []chat.Part{
			chat.ToolCall{ID: "0", Name: "f", Args: []byte("{}")}, chat.ToolCall{ID: "1", Name: "f", Args: []byte("{}")},
			chat.ToolCall{ID: "2", Name: "f", Args: []byte("{}")}, chat.ToolCall{ID: "3", Name: "f", Args: []byte(`{"x":1}`)},
			chat.ToolCall{ID: "4", Name: "f", Args: []byte("{}"), Broken: `{"x":`}, chat.ToolCall{ID: "5", Name: "f", Args: []byte("{}"), Broken: `[1]`},
			chat.ToolCall{ID: "6", Name: "f", Args: []byte("{}"), Broken: `x`}, chat.ToolCall{ID: "7", Name: "f", Args: []byte("{}")},
			chat.ToolCall{ID: "8", Name: "f", Args: []byte("{}"), Broken: "{}{}"}, chat.ToolCall{ID: "9", Name: "f", Args: []byte(`{"x":1}`)},
			chat.ToolCall{ID: "10", Name: "f", Args: []byte("{}"), Broken: `{}{"x":`},
		}},
		{"restart", []provider.Delta{
			provider.TextDelta("old"), provider.ReasoningDelta{Text: "old", Field: "f"}, call(0, "a", "f", "{"), provider.Restart{Attempt: 2, MaxAttempts: 3}, provider.TextDelta("new"), done,
		}, []chat.Part{chat.Text("new")}},
	} {
		seen := 0
		r, err := provider.Collect(stream(nil, tc.in...), func(provider.Delta) error { seen++; return nil })
		if err != nil || r.Message.Role != chat.Assistant || !reflect.DeepEqual(r.Message.Parts, tc.want) {
			t.Errorf("%s: %v\n got %+v\nwant %+v", tc.name, err, r.Message.Parts, tc.want)
		}
		if r.Stop != provider.StopTools || r.Usage == nil || *r.Usage != *done.Usage || seen != len(tc.in) {
			t.Errorf("%s: stop %q, usage %v, %d deltas watched", tc.name, r.Stop, r.Usage, seen)
		}
	}
}

func TestCollectKeepsWhatArrived(t *testing.T) {
	half := []provider.Delta{provider.ReasoningDelta{Text: "hm", Field: "f"}, provider.TextDelta("half"), call(0, "a", "f", `{}`)}
	broke := errors.New("broke")
	for _, tc := range []struct {
		name  string
		in    iter.Seq2[provider.Delta, error]
		watch func(provider.Delta) error
		want  error
	}{
		{"the stream fails", stream(broke, half...), unwatched, broke},
		{"the stream ends", stream(nil, half...), unwatched, provider.ErrCutOff},
		{"the watcher fails", stream(nil, append(half[:3:3], provider.Done{})...), func(d provider.Delta) error {
			if _, done := d.(provider.Done); done {
				return broke
			}
			return nil
		}, broke},
	} {
		r, err := provider.Collect(tc.in, tc.watch)
		if !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.want)
		}
		if r.Message.Text() != "half" || r.Message.Reasoning() != "hm" || len(r.Message.Calls()) != 0 {
			t.Errorf("%s: %+v", tc.name, r.Message)
		}
	}
}

func TestCallsOfAFilteredReplyAreDropped(t *testing.T) {
	r, err := provider.Collect(stream(nil, provider.TextDelta("a"), call(0, "a", "f", `{"x":1}`), provider.Done{Stop: provider.StopFilter}), unwatched)
	if err != nil || r.Stop != provider.StopFilter || len(r.Message.Calls()) != 0 || r.Message.Text() != "a" {
		t.Errorf("%+v, %v", r, err)
	}
}

// The model must hear that its call did not arrive whole, so the call is kept,
// as one that cannot run. Those before it are whole.
func TestTheLastCallOfAReplyThatReachedItsLimitCannotRun(t *testing.T) {
	for args, broken := range map[string]string{`{"path":"a.txt","content":"on`: `{"path":"a.txt","content":"on`, "": "{", `{"x":1}`: `{"x":1}`} {
		r, err := provider.Collect(stream(nil, call(0, "a", "f", `{"x":1}`), call(1, "b", "g", args), provider.Done{Stop: provider.StopLength}), unwatched)
		if err != nil || r.Stop != provider.StopLength {
			t.Fatalf("%+v, %v", r, err)
		}
		calls := r.Message.Calls()
		if len(calls) != 2 || calls[0].Broken != "" || string(calls[0].Args) != `{"x":1}` || calls[1].Broken != broken || string(calls[1].Args) != "{}" {
			t.Errorf("%q: %+v", args, calls)
		}
	}
}

// However a reply is cut into deltas, it is the same reply, and its calls are
// fit to be sent back.
func FuzzCollect(f *testing.F) {
	f.Add("some text", "some thought", `{"path":"x"}`, "a", uint8(3))
	f.Add("", "", `null`, "", uint8(1))
	f.Add("x", "y", `{"a":`, "call_0", uint8(2))
	f.Add("x", "", "\"{}\"\xff", "a", uint8(1))
	f.Fuzz(func(t *testing.T, text, thought, args, id string, size uint8) {
		collect := func(size int) provider.Reply {
			var ds []provider.Delta
			for p := range pieces(thought, size) {
				ds = append(ds, provider.ReasoningDelta{Text: p, Field: "f"})
			}
			for p := range pieces(text, size) {
				ds = append(ds, provider.TextDelta(p))
			}
			ds = append(ds, call(0, id, "f", ""), call(1, id, "g", ""))
			for p := range pieces(args, size) {
				ds = append(ds, call(0, "", "", p), call(1, "", "", p))
			}
			r, err := provider.Collect(stream(nil, append(ds, provider.Done{Stop: provider.StopTools})...), unwatched)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		whole, cut := collect(len(text)+len(thought)+len(args)+1), collect(int(size)+1)
		if !reflect.DeepEqual(whole, cut) {
			t.Errorf("whole %+v, in pieces %+v", whole, cut)
		}
		calls := whole.Message.Calls()
		if len(calls) != 2 || calls[0].ID == "" || calls[0].ID == calls[1].ID {
			t.Fatalf("calls %+v", calls)
		}
		for _, c := range calls {
			if !json.Valid(c.Args) || !strings.HasPrefix(string(c.Args), "{") {
				t.Errorf("arguments %q", c.Args)
			}
		}
	})
}

// pieces cuts s into pieces of size bytes.
func pieces(s string, size int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for s != "" {
			n := min(size, len(s))
			if !yield(s[:n]) {
				return
			}
			s = s[n:]
		}
	}
}

func TestErrorTexts(t *testing.T) {
	cause := errors.New("cause")
	for _, tc := range []struct {
		e    provider.Error
		want string
	}{
		{provider.Error{Err: cause}, "cause"},
		{provider.Error{Status: 500, Err: cause}, "provider answered 500: cause"},
		{provider.Error{Kind: provider.ErrAuth}, "not authorized"},
		{provider.Error{Kind: provider.ErrAuth, Status: 401, Err: cause}, "not authorized: cause"},
		{provider.Error{Kind: provider.ErrUnreachable, Err: fmt.Errorf("in better words%.0w", provider.ErrUnreachable)}, "in better words"},
	} {
		if got := tc.e.Error(); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
		if tc.e.Kind != nil && !errors.Is(&tc.e, tc.e.Kind) || tc.e.Err != nil && !errors.Is(&tc.e, tc.e.Err) {
			t.Errorf("%q does not unwrap", tc.want)
		}
	}
}
