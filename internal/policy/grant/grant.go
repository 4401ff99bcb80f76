// Package grant is the gate between a verdict and a run. A tool call is prepared as a [Call],
// and a Call runs only with a [Grant] for its digest. Three things make a Grant: a policy that
// allows the call, a person's yes to a question about it, and a call of the person's own.
// Code that forgets to ask holds the zero Grant, which runs nothing.
package grant

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync/atomic"
	"unicode/utf8"

	"coder/internal/core/chat"
	"coder/internal/core/jsonx"
	"coder/internal/core/uip"
	"coder/internal/policy"
	"coder/internal/tool"
)

// A Grant runs the call of one digest, once.
type Grant struct {
	digest string
	unused *atomic.Bool
	person bool // it is a person's own yes to this very call
}

// Covers reports whether g would run c now.
func (g Grant) Covers(c *Call) bool { return g.isFor(c) && g.unused.Load() }

func (g Grant) isFor(c *Call) bool { return c != nil && g.unused != nil && g.digest == c.digest }

// ErrNone is the error of a call that has no grant.
var ErrNone = errors.New("this call is neither allowed nor approved")

// A Call is a call as its tool prepared it. Its plan is read once: the plan that was judged
// and shown is the plan in the digest.
type Call struct {
	written  chat.ToolCall
	by       tool.Tool
	tool     string
	args     json.RawMessage
	plan     tool.Plan
	digest   string
	prepared tool.Call
	verdict  policy.Verdict
}

// Prepare has t prepare the call that the model wrote, with args for its arguments.
func Prepare(ctx context.Context, t tool.Tool, written chat.ToolCall, args json.RawMessage) (*Call, error) {
	prepared, err := t.Prepare(ctx, args)
	if err != nil {
		return nil, err
	}
	spec := t.Spec()
	c := &Call{written: written, by: t, tool: spec.Name, args: spec.Named(args), plan: prepared.Plan(), prepared: prepared}
	c.digest = c.sum(args)
	return c, nil
}

// With has the same tool prepare the call that the person changed.
func (c *Call) With(ctx context.Context, changed chat.ToolCall) (*Call, error) {
	return Prepare(ctx, c.by, changed, changed.Args)
}

// Plan is what the call would do.
func (c *Call) Plan() tool.Plan { return c.plan }

// Args are the arguments by the tool's own names.
func (c *Call) Args() json.RawMessage { return c.args }

// Digest differs for any two calls that differ in their id, tool, arguments or effects.
func (c *Call) Digest() string { return c.digest }

// Case is the call as policies see it.
func (c *Call) Case() policy.Case { return policy.Case{Tool: c.tool, Call: c.written, Plan: c.plan} }

// sum is the digest. Open questions on record keep it, so its form does not change.
func (c *Call) sum(given json.RawMessage) string {
	type effect struct {
		Kind   tool.Kind // a number
		Target string
	}
	var effects []effect
	for _, e := range c.plan.Effects {
		effects = append(effects, effect{e.Kind, e.Target})
	}
	h := sha256.New()
	head := jsonx.Must(struct{ ID, Tool string }{c.written.ID, c.tool})
	rest := jsonx.Must(struct {
		Title      string
		Effects    []effect
		Confined   string
		Unconfined bool
		Sends      string
		Executable []string `json:",omitempty"`
	}{c.plan.Title, effects, c.plan.Confined, c.plan.Unconfined, c.plan.Sends, c.plan.Executable})
	h.Write(head[:len(head)-1])
	hashMember(h, "Args", c.written.Args)
	h.Write([]byte{','})
	h.Write(rest[1 : len(rest)-1])
	if !bytes.Equal(given, c.written.Args) && len(given) > 0 { // not those that the model wrote
		hashMember(h, "Read", given)
	}
	h.Write([]byte{'}'})
	return hex.EncodeToString(h.Sum(nil))
}

// hashMember hashes a further member of a JSON object whose value is a text. The text may be
// large and is not copied as a whole.
func hashMember(h hash.Hash, name string, text []byte) {
	const piece = 64 << 10
	fmt.Fprintf(h, `,%q:"`, name)
	for len(text) > 0 {
		n := min(len(text), piece)
		for n < len(text) && n > piece-utf8.UTFMax && !utf8.RuneStart(text[n]) {
			n--
		}
		quoted := jsonx.Must(string(text[:n]))
		h.Write(quoted[1 : len(quoted)-1])
		text = text[n:]
	}
	h.Write([]byte{'"'})
}

func (c *Call) grant(person bool) Grant {
	g := Grant{c.digest, new(atomic.Bool), person}
	g.unused.Store(true)
	return g
}

// Judge asks p about the call, and grants it only if p allows it.
func (c *Call) Judge(ctx context.Context, p policy.Policy) (policy.Opinion, Grant, error) {
	opinion, err := policy.Judge(ctx, p, c.Case())
	if c.verdict = opinion.Verdict; c.verdict == policy.Allow {
		return opinion, c.grant(false), err
	}
	return opinion, Grant{}, err
}

// Unjudged grants a call that is the person's own, which no policy judges. Typed says that
// they wrote this very call, rather than a hook or a check of theirs.
func (c *Call) Unjudged(typed bool) Grant { return c.grant(typed) }

// An Approval is a person's yes to the call that a question showed. The zero Approval
// grants nothing.
type Approval struct {
	shown *Call
	args  json.RawMessage
}

// Approve reads the answer a to the question q about the call. Its error says why the answer
// is no yes.
func (c *Call) Approve(q uip.Request, a uip.Response) (Approval, error) {
	switch {
	case c.verdict != policy.Ask:
		return Approval{}, errors.New("the call needed no approval")
	case q.Digest != c.digest:
		return Approval{}, errors.New("the question is for another call")
	case a.Unanswered():
		return Approval{}, errors.New("no answer")
	}
	if err := uip.Check(q, a); err != nil {
		return Approval{}, err
	}
	switch a.Option {
	case uip.Approve, uip.Session, uip.Always, uip.Below:
		return Approval{c, a.Args}, nil
	case uip.Some:
		args, err := c.reduced(a)
		if err != nil {
			return Approval{}, err
		}
		return Approval{c, args}, nil
	}
	return Approval{}, fmt.Errorf("%q does not approve the call", a.Option)
}

// reduced are the arguments that make only the hunks in the answer, or nil if it names all.
func (c *Call) reduced(a uip.Response) (json.RawMessage, error) {
	if a.Args != nil {
		return nil, errors.New("the answer has both hunks and other arguments")
	}
	taken, err := a.Hunks(c.plan.Hunks)
	if err != nil || len(taken) == c.plan.Hunks {
		return nil, err
	}
	args := make(map[string]json.RawMessage)
	if err := json.Unmarshal(c.args, &args); err != nil {
		return nil, errors.New("this call cannot be approved in part")
	}
	args[tool.OnlyHunks] = jsonx.Must(taken)
	return jsonx.Must(args), nil
}

// Args are the arguments that the person wants instead of those they were shown, or nil.
func (y Approval) Args() json.RawMessage { return y.args }

// Grant grants c if it is the call that was shown, or that call with the person's
// arguments, and policy does not deny it.
func (y Approval) Grant(c *Call) (Grant, error) {
	switch {
	case y.shown == nil || c == nil || c.written.ID != y.shown.written.ID:
		return Grant{}, ErrNone
	case y.args == nil && c.digest != y.shown.digest, y.args != nil && string(y.args) != string(c.written.Args):
		return Grant{}, errors.New("the approval is for another call")
	case c.verdict != policy.Ask && c.verdict != policy.Allow:
		return Grant{}, errors.New("policy denies the call")
	}
	return c.grant(true), nil
}

// Run runs the call if g covers it, which uses g up. The call knows from its context
// whether a person approved it.
func (c *Call) Run(ctx context.Context, out io.Writer, g Grant) (tool.Result, error) {
	if !g.isFor(c) || !g.unused.CompareAndSwap(true, false) {
		return tool.Result{}, ErrNone
	}
	return c.prepared.Run(tool.WithApproval(ctx, g.person), out)
}
