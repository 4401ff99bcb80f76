// Package textcalls lets models without native tool calls use tools: they write
// their calls as text, and this package makes of the text what a model with
// native calls would have sent. Whoever reads the stream sees no difference.
//
// Calls are understood in these forms, several to a reply:
//
//	<tool_use>{"name": "read", "arguments": {"path": "a.go"}}</tool_use>
//	<tool_use><name>read</name><arguments>{"path": "a.go"}</arguments></tool_use>
//	<tool_call>…</tool_call> and <tool_code>…</tool_code> with either of these
//	<function=read><parameter=path>a.go</parameter></function>
//	<invoke name="read"><parameter name="path">a.go</parameter></invoke>
//	<tool_call>read <arg_key>path</arg_key><arg_value>a.go</arg_value></tool_call>
//	<|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>{…}<|tool_call_end|>
//
// where arguments may also be called input, parameters or args, and the JSON
// may stand in a code fence of its own. Three things are promised:
//
//  1. How the text is cut into deltas does not change what is made of it.
//  2. What the model merely quotes, in a code fence or between backquotes, is
//     never a call.
//  3. A call that did not arrive whole never runs; one that arrived whole but
//     cannot be read is a call with broken arguments, so that the model is told.
package textcalls

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"sync/atomic"

	"coder/internal/core/chat"
	"coder/internal/model/provider"
)

// Mode says how tools are called.
type Mode string

// The modes.
const (
	Native Mode = "native" // by the API alone
	Auto   Mode = "auto"   // by the API; calls written as text are understood if it sends none
	XML    Mode = "xml"    // as text alone: the API never hears of tools
)

// Wrap returns p with its tools called as mode says. An unknown mode is Native.
func Wrap(p provider.Provider, mode Mode) provider.Provider {
	if mode != Auto && mode != XML {
		return p
	}
	return &wrapper{next: p, mode: mode}
}

type wrapper struct {
	next provider.Provider
	mode Mode
	asks atomic.Uint64
}

func (w *wrapper) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	sent := req
	if w.mode == XML {
		sent = asText(req)
	}
	if len(req.Tools) == 0 {
		return w.next.Stream(ctx, sent)
	}
	return func(yield func(provider.Delta, error) bool) {
		f := filter{yield: yield, ids: w.ids(req), scan: &scanner{tools: req.Tools, anyName: w.mode == XML}}
		for d, err := range w.next.Stream(ctx, sent) {
			if !f.pass(d, err) {
				return
			}
		}
	}
}

// recent is how many messages an id is made from. Each holds the ids of the
// calls before it, so that ids differ for as long as the conversation grows.
const recent = 4

// ids returns a function that makes up the id of the reply's n'th call.
func (w *wrapper) ids(req provider.Request) func(n int) string {
	h := sha256.New()
	fmt.Fprintln(h, w.asks.Add(1), len(req.Messages))
	for _, m := range req.Messages[max(0, len(req.Messages)-recent):] {
		fmt.Fprintln(h, m.Role, m.Text())
		for _, c := range m.Calls() {
			fmt.Fprintln(h, c.ID)
		}
		for r := range chat.Select[chat.ToolResult](m) {
			fmt.Fprintln(h, r.CallID, r.Text)
		}
	}
	base := hex.EncodeToString(h.Sum(nil)[:6])
	return func(n int) string { return fmt.Sprintf("text_%s_%d", base, n) }
}

// filter passes a reply on with the calls in its text turned into calls. Its
// methods report whether the consumer wants more.
type filter struct {
	yield  func(provider.Delta, error) bool
	ids    func(n int) string
	scan   *scanner
	native bool // the API sends calls itself, so that text is text
}

func (f *filter) pass(d provider.Delta, err error) bool {
	if err != nil {
		return f.say(f.scan.abandon()) && f.yield(nil, err)
	}
	switch d := d.(type) {
	case provider.TextDelta:
		if f.native {
			break
		}
		return f.say(f.scan.feed(string(d)))
	case provider.CallDelta:
		if !f.native {
			f.native = true
			if !f.say(f.scan.raw()) {
				return false
			}
		}
	case provider.Restart:
		f.native, f.scan = false, &scanner{tools: f.scan.tools, anyName: f.scan.anyName}
	case provider.Done:
		if f.native {
			break
		}
		text, calls := f.scan.finish()
		if !f.say(text) {
			return false
		}
		for i, c := range calls {
			if !f.yield(provider.CallDelta{Index: i, ID: f.ids(i + 1), Name: c.name, Args: c.args}, nil) {
				return false
			}
		}
		if len(calls) > 0 && d.Stop == provider.StopEnd {
			d.Stop = provider.StopTools
		}
		return f.yield(d, nil)
	}
	return f.yield(d, nil)
}

func (f *filter) say(text string) bool {
	return text == "" || f.yield(provider.TextDelta(text), nil)
}
