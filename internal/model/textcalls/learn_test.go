package textcalls_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/model/provider"
	"coder/internal/model/textcalls"
)

// notes is a memory that a test can look at.
type notes map[string]textcalls.Mode

func (n notes) ToolMode(model string) textcalls.Mode         { return n[model] }
func (n notes) LearnToolMode(model string, m textcalls.Mode) { n[model] = m }

// server answers with a text or a native call, or refuses tools.
type server struct {
	replies []string // "native" is a call by the API, "refuse" a refusal of requests with tools
	seen    []provider.Request
}

func (s *server) Stream(_ context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		s.seen = append(s.seen, req)
		say := s.replies[0]
		if say == "refuse" && len(req.Tools) > 0 {
			yield(nil, &provider.Error{Kind: provider.ErrNoTools, Status: 500, Err: errors.New("tools param requires --jinja flag")})
			return
		}
		s.replies = s.replies[1:]
		var d provider.Delta = provider.TextDelta(say)
		if say == "native" {
			d = provider.CallDelta{ID: "x", Name: "read", Args: `{"path":"a"}`}
		}
		_ = yield(d, nil) && yield(end(provider.StopEnd), nil)
	}
}

const (
	written = "```json\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n```"
	marked  = "Reading.\n<tool_call>{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}</tool_call>"
)

func TestWhatAModelDoesIsRemembered(t *testing.T) {
	for name, tc := range map[string]struct {
		before  textcalls.Mode
		replies []string
		after   textcalls.Mode
		asked   string // n: with tools, t: in text
		calls   string // how many each reply has
	}{
		"it writes":                         {"", []string{written, written}, textcalls.XML, "nn", "11"},
		"it wrote in an earlier session":    {textcalls.XML, []string{written, "done"}, textcalls.XML, "tt", "10"},
		"it calls":                          {"", []string{"native", "done"}, textcalls.Native, "nn", "10"},
		"it calls, and shows JSON":          {"", []string{"native", written}, textcalls.Native, "nn", "10"},
		"it calls, and writes once":         {"", []string{"native", marked}, textcalls.Native, "nn", "11"},
		"it called in an earlier session":   {textcalls.Native, []string{written, marked}, textcalls.Native, "nn", "01"},
		"it does neither":                   {"", []string{"hello"}, "", "n", "0"},
		"the server does not support tools": {"", []string{"refuse", marked}, textcalls.XML, "ntt", "01"},
		"the server takes none any more":    {textcalls.Native, []string{"refuse", written}, textcalls.XML, "ntt", "01"},
	} {
		t.Run(name, func(t *testing.T) {
			s, memory := &server{replies: tc.replies}, notes{"m": tc.before}
			w := textcalls.Wrap(s, textcalls.Auto, memory)
			var asked, calls strings.Builder
			words := 0
			for range tc.replies {
				r, err := provider.Collect(w.Stream(t.Context(), request()), func(d provider.Delta) error {
					if d, ok := d.(provider.Restart); ok {
						words++
						if !strings.Contains(d.Err.Error(), "writes its calls as text") {
							t.Errorf("said %q", d.Err)
						}
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprint(&calls, len(r.Message.Calls()))
			}
			for _, req := range s.seen {
				if len(req.Tools) > 0 {
					asked.WriteString("n")
				} else {
					asked.WriteString("t")
				}
			}
			if memory["m"] != tc.after || asked.String() != tc.asked || calls.String() != tc.calls {
				t.Errorf("remembered %q, asked %s, calls %s", memory["m"], &asked, &calls)
			}
			if refused := tc.replies[0] == "refuse"; refused != (words == 1) {
				t.Errorf("%d words to the person", words)
			}
		})
	}
}

func TestModelsAreKnownApart(t *testing.T) {
	s, memory := &server{replies: []string{written, "native"}}, notes{}
	w := textcalls.Wrap(s, textcalls.Auto, memory)
	for _, model := range []string{"a", "b"} {
		req := request()
		req.Model = model
		if _, err := collect(w, req); err != nil {
			t.Fatal(err)
		}
	}
	if memory["a"] != textcalls.XML || memory["b"] != textcalls.Native {
		t.Errorf("%v", memory)
	}
}

func TestARefusalStaysOneWhereTextIsNotWanted(t *testing.T) {
	for _, mode := range []textcalls.Mode{textcalls.Native, ""} {
		if _, err := collect(textcalls.Wrap(&server{replies: []string{"refuse"}}, mode, nil), request()); !errors.Is(err, provider.ErrNoTools) {
			t.Errorf("%q: %v", mode, err)
		}
	}
}

// A reply that calls natively does nothing else: what it writes beside that is
// not run, and markup is not shown.
func TestNativeCallsWin(t *testing.T) {
	for text, want := range map[string]string{
		marked:                    `say "Reading."`,
		"Look:\n" + written:       fmt.Sprintf("say %q", "Look:\n"+written),
		marked + "\nThen I think": `say "Reading.\nThen I think"`,
	} {
		for _, size := range []int{1, 5, 1000} {
			native := provider.CallDelta{ID: "x", Name: "bash", Args: `{"command": "ls"}`}
			for _, send := range [][]provider.Delta{
				append(said(text, size), native, end(provider.StopTools)),
				append([]provider.Delta{native}, append(said(text, size), end(provider.StopTools))...),
			} {
				r, err := collect(textcalls.Wrap(deltas{send: send}, textcalls.Auto, nil), request())
				if got := renderMessages(r); err != nil || got != want+"\nbash {\"command\": \"ls\"}" {
					t.Errorf("%q: %s, %v", text, got, err)
				}
			}
		}
	}
}

// A call that is quoted stays a quotation in the mode in which everything is text.
func TestTextModeLeavesExamplesAlone(t *testing.T) {
	for _, e := range examples(t, "testdata/texts.txt") {
		if strings.Contains(e.name, "nobody offered") {
			continue // the model is told
		}
		check(t, e, textcalls.XML, fmt.Sprintf("say %q", e.text))
	}
}

// The same call again is a call, though the conversation holds it already.
func TestARepeatedCallIsNoQuotation(t *testing.T) {
	req := request()
	first, err := collect(textcalls.Wrap(deltas{send: append(said(marked, 9), end(provider.StopEnd))}, textcalls.Auto, nil), req)
	if err != nil {
		t.Fatal(err)
	}
	req.Messages = append(req.Messages, first.Message, chat.ToolMessage(chat.ToolResult{CallID: first.Message.Calls()[0].ID, Name: "read", Text: `{"ok":false,"error":"no such file"}`}))
	again, err := collect(textcalls.Wrap(deltas{send: append(said(marked, 9), end(provider.StopEnd))}, textcalls.Auto, nil), req)
	if err != nil || len(again.Message.Calls()) != 1 {
		t.Errorf("%s, %v", renderMessages(again), err)
	}
}
