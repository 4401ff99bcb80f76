// Package textcalls lets models without native tool calls use tools. Such models write their calls as text,
// and this package turns the text into the deltas of native calls. Readers of the stream see no difference.
//
// forms.go lists the supported forms in one table; testdata
// has examples with their results. The package guarantees:
//
//  1. The division of the text into deltas does not change the result.
//  2. A call is never shown, and shown text is never a call.
//  3. A call that the model merely quotes is never a call: see docs/reference/models.md for the rule.
//  4. An incomplete call never runs; a complete but unreadable one is a call with
//     broken arguments, so that the model gets an error.
package textcalls

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"

	"coder/internal/core/chat"
	"coder/internal/core/message"
	"coder/internal/model/provider"
)

// Mode is how the model calls tools.
type Mode string

// The modes.
const (
	Native Mode = "native" // only by the API
	Auto   Mode = "auto"   // by the API; if it sends no calls, calls written as text count
	XML    Mode = "xml"    // only as text: the API gets no tools
)

// Memory saves how models call tools, across processes.
type Memory interface {
	// ToolMode returns how a model calls tools: [Native], [XML] for one that writes its calls, or "" if unknown.
	ToolMode(model string) Mode
	LearnToolMode(model string, m Mode)
}

// Wrap returns p with its tools called as mode says. An unknown mode counts as Native. In [Auto] mode,
// memory, which may be nil, stores how each model calls tools.
func Wrap(p provider.Provider, mode Mode, memory Memory) provider.Provider {
	if mode != Auto && mode != XML {
		return p
	}
	return &wrapper{next: p, mode: mode, memory: memory, models: make(map[string]modelState)}
}

type wrapper struct {
	next   provider.Provider
	mode   Mode
	memory Memory
	asks   atomic.Uint64

	mu     sync.Mutex // guards the field below
	models map[string]modelState
}

// modelState is how a model is asked, and how it was seen to answer.
type modelState struct{ askedMode, seenMode Mode }

// stateOf returns the state of a model. How it is asked does not change within a process, so that earlier
// messages stay the same, unless the server rejects tools.
func (w *wrapper) stateOf(name string) modelState {
	if w.mode == XML {
		return modelState{askedMode: XML}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	m, known := w.models[name]
	if !known && w.memory != nil {
		m.seenMode = w.memory.ToolMode(name)
		m.askedMode = m.seenMode
		w.models[name] = m
	}
	return m
}

// learn saves how a model called its tools. A model seen to
// call natively stays native even if it also writes a call.
func (w *wrapper) learn(name string, seen Mode, refused bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.models[name]
	if refused {
		m.askedMode = XML
	} else if w.mode != Auto || m.seenMode == seen || m.seenMode == Native || m.askedMode == XML {
		return
	}
	m.seenMode = seen
	w.models[name] = m
	if w.memory != nil {
		w.memory.LearnToolMode(name, seen)
	}
}

// Stream sends req in the mode for the model. If a server rejects
// tools, Stream sends req again as text and reports that once.
func (w *wrapper) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		m := w.stateOf(req.Model)
		if m.askedMode != XML && w.mode == Auto && len(req.Tools) > 0 {
			refusal, goOn := w.streamOnce(ctx, req, m, yield)
			if refusal == nil || !goOn {
				return
			}
			w.learn(req.Model, XML, true)
			m = w.stateOf(req.Model)
			why := message.Errorf("%w; from now on %s writes its calls as text", refusal, req.Model)
			if !yield(provider.Restart{Attempt: 2, MaxAttempts: 2, Err: why}, nil) {
				return
			}
		}
		if refusal, goOn := w.streamOnce(ctx, req, m, yield); goOn && refusal != nil {
			yield(nil, refusal)
		}
	}
}

// streamOnce passes on one reply. It returns an error instead if the server rejects tools.
func (w *wrapper) streamOnce(ctx context.Context, req provider.Request, m modelState,
	yield func(provider.Delta, error) bool) (refusal error, goOn bool) {
	sent := req
	if m.askedMode == XML {
		sent = textRequest(req)
	}
	f := replyFilter{sentAsText: m.askedMode == XML, yield: yield, ids: w.newIDFunc(req),
		callContext: callContext{tools: req.Tools, messages: req.Messages, acceptsAnyTool: m.askedMode == XML,
			isNative: m.seenMode == Native}}
	f.scan = &scanner{callContext: f.callContext}
	for d, err := range w.next.Stream(ctx, sent) {
		if errors.Is(err, provider.ErrNoTools) {
			return err, true
		}
		if len(req.Tools) == 0 {
			if !yield(f.markText(d), err) {
				return nil, false
			}
		} else if !f.forward(d, err) {
			return nil, false
		}
	}
	if f.usedMode != "" {
		w.learn(req.Model, f.usedMode, false)
	}
	return nil, true
}

// idMessages is how many messages an id is computed from. Each has the ids of the calls before it, so that
// ids differ as long as the conversation grows.
const idMessages = 4

// newIDFunc returns a function that makes the id of the reply's n'th call.
func (w *wrapper) newIDFunc(req provider.Request) func(n int) string {
	h := sha256.New()
	fmt.Fprintln(h, w.asks.Add(1), len(req.Messages))
	for _, m := range req.Messages[max(0, len(req.Messages)-idMessages):] {
		fmt.Fprintln(h, m.Role, m.Text())
		for _, c := range m.Calls() {
			fmt.Fprintln(h, c.ID)
		}
		for r := range chat.PartsOf[chat.ToolResult](m) {
			fmt.Fprintln(h, r.CallID, r.Text)
		}
	}
	base := hex.EncodeToString(h.Sum(nil)[:6])
	return func(n int) string { return fmt.Sprintf("text_%s_%d", base, n) }
}

// replyFilter passes on a reply and turns calls in its text into
// calls. Its methods report whether the consumer wants more.
type replyFilter struct {
	callContext
	sentAsText     bool // the request was sent as text
	yield          func(provider.Delta, error) bool
	ids            func(n int) string
	scan           *scanner
	hasNativeCalls bool // the API sends calls itself; calls in the text do not count
	usedMode       Mode // how the reply calls tools
}

func (f *replyFilter) forward(d provider.Delta, err error) bool {
	if err != nil {
		return f.emit(f.scan.abandon()) && f.yield(nil, err)
	}
	switch d := d.(type) {
	case provider.TextDelta:
		return f.emit(f.scan.feed(string(d)))
	case provider.CallDelta:
		f.hasNativeCalls, f.usedMode = true, Native
	case provider.Restart:
		f.hasNativeCalls, f.usedMode, f.scan = false, "", &scanner{callContext: f.callContext}
	case provider.Done:
		return f.finish(d)
	}
	return f.yield(d, nil)
}

func (f *replyFilter) finish(d provider.Done) bool {
	text, calls := f.scan.finish(f.hasNativeCalls)
	if !f.emit(text) {
		return false
	}
	if f.hasNativeCalls {
		calls = nil
	}
	for i, c := range calls {
		f.usedMode = XML
		if !f.yield(provider.CallDelta{Index: i, ID: f.ids(i + 1), Name: c.name, Args: c.args}, nil) {
			return false
		}
	}
	if len(calls) > 0 && d.Stop == provider.StopEnd {
		d.Stop = provider.StopTools
	}
	return f.yield(f.markText(d), nil)
}

// markText returns d; a Done delta records whether the request was sent as text.
func (f *replyFilter) markText(d provider.Delta) provider.Delta {
	if end, ok := d.(provider.Done); ok && f.sentAsText && end.Sent != nil {
		sent := *end.Sent
		sent.CallsAsText, end.Sent = true, &sent
		return end
	}
	return d
}

// RenderMessages returns messages in the form for a model that writes its calls as text.
func RenderMessages(ms []chat.Message) []chat.Message { return renderMessages(ms) }

func (f *replyFilter) emit(text string) bool {
	return text == "" || f.yield(provider.TextDelta(text), nil)
}
