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
	return &wrapper{next: p, mode: mode, memory: memory, models: make(map[string]model)}
}

type wrapper struct {
	next   provider.Provider
	mode   Mode
	memory Memory
	asks   atomic.Uint64

	mu     sync.Mutex // guards the field below
	models map[string]model
}

// model is how a model is asked, and how it was seen to answer.
type model struct{ asked, seen Mode }

// of returns the state of a model. How it is asked does not change within a process, so that earlier
// messages stay the same, unless the server rejects tools.
func (w *wrapper) of(name string) model {
	if w.mode == XML {
		return model{asked: XML}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	m, known := w.models[name]
	if !known && w.memory != nil {
		m.seen = w.memory.ToolMode(name)
		m.asked = m.seen
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
		m.asked = XML
	} else if w.mode != Auto || m.seen == seen || m.seen == Native || m.asked == XML {
		return
	}
	m.seen = seen
	w.models[name] = m
	if w.memory != nil {
		w.memory.LearnToolMode(name, seen)
	}
}

// Stream sends req in the mode for the model. If a server rejects
// tools, Stream sends req again as text and reports that once.
func (w *wrapper) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		m := w.of(req.Model)
		if m.asked != XML && w.mode == Auto && len(req.Tools) > 0 {
			refusal, goOn := w.once(ctx, req, m, yield)
			if refusal == nil || !goOn {
				return
			}
			w.learn(req.Model, XML, true)
			m = w.of(req.Model)
			why := fmt.Errorf("%w; from now on %s writes its calls as text", refusal, req.Model)
			if !yield(provider.Restart{Attempt: 2, Of: 2, Err: why}, nil) {
				return
			}
		}
		if refusal, goOn := w.once(ctx, req, m, yield); goOn && refusal != nil {
			yield(nil, refusal)
		}
	}
}

// once passes on one reply. It returns an error instead if the server rejects tools.
func (w *wrapper) once(ctx context.Context, req provider.Request, m model, yield func(provider.Delta, error) bool) (refusal error, goOn bool) {
	sent := req
	if m.asked == XML {
		sent = asText(req)
	}
	f := filter{asText: m.asked == XML, yield: yield, ids: w.ids(req), offer: offer{tools: req.Tools, said: req.Messages, anyName: m.asked == XML, native: m.seen == Native}}
	f.scan = &scanner{offer: f.offer}
	for d, err := range w.next.Stream(ctx, sent) {
		if errors.Is(err, provider.ErrNoTools) {
			return err, true
		}
		if len(req.Tools) == 0 {
			if !yield(f.signed(d), err) {
				return nil, false
			}
		} else if !f.pass(d, err) {
			return nil, false
		}
	}
	if f.used != "" {
		w.learn(req.Model, f.used, false)
	}
	return nil, true
}

// recent is how many messages an id is computed from. Each has the ids of the calls before it, so that
// ids differ as long as the conversation grows.
const recent = 4

// ids returns a function that makes the id of the reply's n'th call.
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

// filter passes on a reply and turns calls in its text into
// calls. Its methods report whether the consumer wants more.
type filter struct {
	offer
	asText bool // the request was sent as text
	yield  func(provider.Delta, error) bool
	ids    func(n int) string
	scan   *scanner
	byAPI  bool // the API sends calls itself; calls in the text do not count
	used   Mode // how the reply calls tools
}

func (f *filter) pass(d provider.Delta, err error) bool {
	if err != nil {
		return f.say(f.scan.abandon()) && f.yield(nil, err)
	}
	switch d := d.(type) {
	case provider.TextDelta:
		return f.say(f.scan.feed(string(d)))
	case provider.CallDelta:
		f.byAPI, f.used = true, Native
	case provider.Restart:
		f.byAPI, f.used, f.scan = false, "", &scanner{offer: f.offer}
	case provider.Done:
		return f.finish(d)
	}
	return f.yield(d, nil)
}

func (f *filter) finish(d provider.Done) bool {
	text, calls := f.scan.finish(f.byAPI)
	if !f.say(text) {
		return false
	}
	if f.byAPI {
		calls = nil
	}
	for i, c := range calls {
		f.used = XML
		if !f.yield(provider.CallDelta{Index: i, ID: f.ids(i + 1), Name: c.name, Args: c.args}, nil) {
			return false
		}
	}
	if len(calls) > 0 && d.Stop == provider.StopEnd {
		d.Stop = provider.StopTools
	}
	return f.yield(f.signed(d), nil)
}

// signed returns d; a Done delta records whether the request was sent as text.
func (f *filter) signed(d provider.Delta) provider.Delta {
	if end, ok := d.(provider.Done); ok && f.asText && end.Sent != nil {
		sent := *end.Sent
		sent.AsText, end.Sent = true, &sent
		return end
	}
	return d
}

// Told returns messages in the form for a model that writes its calls as text.
func Told(ms []chat.Message) []chat.Message { return tell(ms) }

func (f *filter) say(text string) bool {
	return text == "" || f.yield(provider.TextDelta(text), nil)
}
