// Package scripted is a provider that plays prepared replies, for tests, the
// demo, and showing a session again without a model.
// A script is text, one verb a line, replies separated by a line of
// three dashes:
//
//	# the model looks before it answers
//	want what is in a.txt
//	reason the user wants the file
//	call read {"path": "a.txt"}
//	usage 100 20
//	---
//	say It says:
//	say <<END
//	    hello
//	END
//	wait 200ms
//	stop end
//
// The verbs:
//
//	say TEXT             text of the answer; several lines are joined by newlines
//	reason TEXT          thinking, likewise
//	call NAME [id=ID] [ARGS]  a tool call; ARGS are sent as is, valid or not
//	usage IN OUT [CACHED]     token counts
//	stop end|tools|length|filter  why it stops; by default tools after a call, else end
//	wait DURATION        silence
//	cut [retry]          the stream ends here, before the reply is complete
//	fail KIND [after=DURATION] [TEXT]  the provider fails here. KIND is auth, rate,
//	                     overload, context, quota, model, tools, bad, unreachable or an HTTP status
//	to TEXT              the reply is for conversations whose first message contains
//	                     TEXT, replies without it are for the others; each sort
//	                     plays in order, like a separate script
//	want TEXT            the messages since the model's last turn must contain TEXT
//	else                 the reply below applies if a want above was not met
//	repeat [N]           the reply plays N times, or forever; alone between
//	                     separators it applies to the reply before
//
// TEXT and ARGS may be a block, verbatim: <<WORD ends the line and a line
// WORD ends the block. Lines that start with # and blank lines are ignored.
package scripted

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/clip"
	"coder/internal/core/clock"
	"coder/internal/core/message"
	"coder/internal/model/provider"
)

// Options configures how a script is played. The zero Options play it in real time.
type Options struct {
	// Sleep waits for d; nil means real time.
	Sleep func(ctx context.Context, d time.Duration) error
	// Pieces cuts text into deltas; nil means word by word.
	Pieces func(text string) []string
}

// Provider plays the replies of a script in order and records the requests. It is safe for concurrent use.
type Provider struct {
	script Script
	opt    Options

	mu            sync.Mutex // guards the fields below
	requests      []provider.Request
	requestCounts map[string]int // number of requests by conversation
}

// New returns a provider that plays s from the start.
func New(s Script, opt Options) *Provider {
	if opt.Sleep == nil {
		opt.Sleep = clock.Sleep
	}
	if opt.Pieces == nil {
		opt.Pieces = splitWords
	}
	return &Provider{script: s, opt: opt}
}

// Requests returns the requests so far, in the order they came.
func (p *Provider) Requests() []provider.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// Stream plays the next reply. A request whose context has already
// ended, or whose sequence is never read, uses no reply.
func (p *Provider) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(nil, err)
			return
		}
		asked, r, err := p.nextReply(req)
		if err != nil {
			yield(nil, err)
			return
		}
		pl := player{ctx: ctx, opt: p.opt, requestNumber: asked, yield: yield}
		for _, s := range r.Steps {
			if !pl.playStep(s) {
				return
			}
		}
		pl.send(provider.Done{Stop: r.stop(), Usage: r.Usage})
	}
}

// nextReply saves a copy of req and returns the number of requests and the reply to req: the next of its
// conversation, or the first alternative that fits.
func (p *Provider) nextReply(req provider.Request) (asked int, r Reply, err error) {
	to := "" // the conversation whose replies it gets
	if len(req.Messages) > 0 {
		first := req.Messages[0].Text()
		if i := slices.IndexFunc(p.script, func(r Reply) bool {
			return r.Conversation != "" &&
				strings.Contains(first, r.Conversation)
		}); i >= 0 {
			to = p.script[i].Conversation
		}
	}
	req.Messages = slices.Clone(req.Messages)
	req.Tools = slices.Clone(req.Tools)
	p.mu.Lock()
	p.requests = append(p.requests, req)
	if p.requestCounts == nil {
		p.requestCounts = make(map[string]int)
	}
	p.requestCounts[to]++
	asked, n := len(p.requests), p.requestCounts[to]
	p.mu.Unlock()
	own := slices.DeleteFunc(slices.Clone(p.script), func(r Reply) bool { return r.Conversation != to })
	if r, err = own.replyAt(n); err != nil {
		return asked, r, err
	}
	for err = r.check(req); err != nil && r.Else != nil; err = r.check(req) {
		r = *r.Else
	}
	return asked, r, err
}

// replyAt returns the reply to the n'th request, counted from 1.
func (s Script) replyAt(n int) (Reply, error) {
	left, total := n, 0
	for _, r := range s {
		times := cmp.Or(r.Repeat, 1)
		if times == Forever || left <= times {
			return r, nil
		}
		left -= times
		total += times
	}
	if total == 1 {
		return Reply{}, message.Errorf("script: the model was asked for reply %d, but the script has only one", n)
	}
	return Reply{}, message.Errorf("script: the model was asked for reply %d, but the script has only %d", n, total)
}

// check reports the first text of r.Want that req lacks.
func (r Reply) check(req provider.Request) error {
	var said []string // after the last message of the model
	for _, m := range slices.Backward(req.Messages) {
		if m.Role == chat.Assistant {
			break
		}
		text := m.Text()
		for res := range chat.PartsOf[chat.ToolResult](m) {
			text += res.Text
		}
		said = append(said, text)
	}
	slices.Reverse(said)
	told := strings.Join(said, "\n")
	for _, w := range r.Want {
		if !strings.Contains(told, w) {
			return message.Errorf("script line %d: expected the model to get %q, but it got %q", r.Line, w,
				clip.Truncate(told, maxShownRequest))
		}
	}
	return nil
}

// maxShownRequest limits how much of a request an error repeats.
const maxShownRequest = 2000

// splitWords splits s after each run of white space.
func splitWords(s string) []string {
	var out []string
	for s != "" {
		i := strings.IndexAny(s, " \t\n")
		if i < 0 {
			return append(out, s)
		}
		for i < len(s) && strings.IndexByte(" \t\n", s[i]) >= 0 {
			i++
		}
		out, s = append(out, s[:i]), s[i:]
	}
	return out
}
