// Package textcalls lets models without native tool calls use tools: they write
// their calls as text, and this package makes of the text what a model with
// native calls would have sent. Whoever reads the stream sees no difference.
//
// The forms that are understood stand in one table (forms.go), and in testdata
// with what is made of each. Four things are promised:
//
//  1. How the text is cut into deltas does not change what is made of it.
//  2. What is a call is never shown, and what is shown is never a call.
//  3. What the model merely quotes is never a call: see docs/reference/models.md for the rule.
//  4. A call that did not arrive whole never runs; one that arrived whole but
//     cannot be read is a call with broken arguments, so that the model is told.
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

// Mode says how tools are called.
type Mode string

// The modes.
const (
	Native Mode = "native" // by the API alone
	Auto   Mode = "auto"   // by the API; calls written as text are understood if it sends none
	XML    Mode = "xml"    // as text alone: the API never hears of tools
)

// Memory keeps from one process to the next how models call tools.
type Memory interface {
	// ToolMode is how a model was seen to call tools: [Native], [XML] for one that
	// writes its calls, or "" if that is not known.
	ToolMode(model string) Mode
	LearnToolMode(model string, m Mode)
}

// Wrap returns p with its tools called as mode says. An unknown mode is Native.
// In [Auto] mode what is learnt of a model is kept in memory, which may be nil.
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

// model is what is known of a model: how it is asked, and how it was seen to
// answer.
type model struct{ asked, seen Mode }

// of is what is known of a model. How it is asked does not change within a
// process, so that what came before stays as it was, unless the server refuses.
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

// learn keeps how a model called its tools. One that was seen to call natively
// does not unlearn it by writing once as well.
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

// Stream asks as the mode says. A server that takes no tools is asked again in
// text, and that is said once.
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

// once passes one reply on. A refusal of tools is returned instead.
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
	offer
	asText bool // so the request was
	yield  func(provider.Delta, error) bool
	ids    func(n int) string
	scan   *scanner
	byAPI  bool // the API sends calls itself, and those in the text are not taken
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

// signed is d, which says how the request was put if it is the end.
func (f *filter) signed(d provider.Delta) provider.Delta {
	if end, ok := d.(provider.Done); ok && f.asText && end.Sent != nil {
		sent := *end.Sent
		sent.AsText, end.Sent = true, &sent
		return end
	}
	return d
}

// Told are messages as a model is told them that writes its calls as text.
func Told(ms []chat.Message) []chat.Message { return tell(ms) }

func (f *filter) say(text string) bool {
	return text == "" || f.yield(provider.TextDelta(text), nil)
}
