// Package grant is the gate between a verdict and a run. A tool call is prepared as a [Call], and a
// Call runs only with a [Grant] for its digest. Three things produce a Grant: a policy that allows the
// call, the user's approval of a question about it, and a call of the user's own. Code that forgets to
// ask has the zero Grant, which runs nothing.
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
	"coder/internal/core/message"
	"coder/internal/core/uip"
	"coder/internal/policy"
	"coder/internal/tool"
)

// A Grant permits running the call with one digest, once.
type Grant struct {
	digest string
	unused *atomic.Bool
	byUser bool // the user approved this very call
}

// Covers reports whether g permits running c now.
func (g Grant) Covers(c *Call) bool { return g.matches(c) && g.unused.Load() }

func (g Grant) matches(c *Call) bool { return c != nil && g.unused != nil && g.digest == c.digest }

// ErrNoGrant is the error for a call without a grant.
var ErrNoGrant = errors.New("this call is neither allowed nor approved")

// A Call is a call as prepared by its tool. Its plan is read once:
// the plan that was judged and shown is the plan in the digest.
type Call struct {
	original chat.ToolCall
	impl     tool.Tool
	toolName string
	args     json.RawMessage
	plan     tool.Plan
	digest   string
	prepared tool.Call
	verdict  policy.Verdict
}

// Prepare lets t prepare the call that the model wrote, with the arguments args.
func Prepare(ctx context.Context, t tool.Tool, written chat.ToolCall, args json.RawMessage) (*Call, error) {
	prepared, err := t.Prepare(ctx, args)
	if err != nil {
		return nil, err
	}
	spec := t.Spec()
	c := &Call{original: written, impl: t, toolName: spec.Name, args: spec.NormalizeArgs(args), plan: prepared.Plan(),
		prepared: prepared}
	c.digest = c.computeDigest(args)
	return c, nil
}

// PrepareChanged lets the same tool prepare the call as changed by the user.
func (c *Call) PrepareChanged(ctx context.Context, changed chat.ToolCall) (*Call, error) {
	return Prepare(ctx, c.impl, changed, changed.Args)
}

// Plan returns what the call would do.
func (c *Call) Plan() tool.Plan { return c.plan }

// Args returns the arguments under the tool's own names.
func (c *Call) Args() json.RawMessage { return c.args }

// Digest returns a hash that differs for calls with different ids, tools, arguments or effects.
func (c *Call) Digest() string { return c.digest }

// Case returns the call as policies see it.
func (c *Call) Case() policy.Case {
	return policy.Case{Tool: c.toolName, Call: c.original, Plan: c.plan}
}

// computeDigest computes the digest. Records of open questions contain it, so its format must not change.
func (c *Call) computeDigest(given json.RawMessage) string {
	type effect struct {
		Kind   tool.Kind // a number
		Target string
	}
	var effects []effect
	for _, e := range c.plan.Effects {
		effects = append(effects, effect{e.Kind, e.Target})
	}
	h := sha256.New()
	head := jsonx.MustMarshal(struct{ ID, Tool string }{c.original.ID, c.toolName})
	rest := jsonx.MustMarshal(struct {
		Title      string
		Effects    []effect
		Confined   string
		Unconfined bool
		Sends      string
		Executable []string `json:",omitempty"`
	}{c.plan.Title, effects, c.plan.Confined, c.plan.Unconfined, c.plan.Sends, c.plan.Executable})
	h.Write(head[:len(head)-1])
	hashMember(h, "Args", c.original.Args)
	h.Write([]byte{','})
	h.Write(rest[1 : len(rest)-1])
	if !bytes.Equal(given, c.original.Args) && len(given) > 0 { // other than what the model wrote
		hashMember(h, "Read", given)
	}
	h.Write([]byte{'}'})
	return hex.EncodeToString(h.Sum(nil))
}

// hashMember hashes another member of a JSON object with a string
// value. The string may be large and is not copied as a whole.
func hashMember(h hash.Hash, name string, text []byte) {
	const piece = 64 << 10
	fmt.Fprintf(h, `,%q:"`, name)
	for len(text) > 0 {
		n := min(len(text), piece)
		for n < len(text) && n > piece-utf8.UTFMax && !utf8.RuneStart(text[n]) {
			n--
		}
		quoted := jsonx.MustMarshal(string(text[:n]))
		h.Write(quoted[1 : len(quoted)-1])
		text = text[n:]
	}
	h.Write([]byte{'"'})
}

func (c *Call) newGrant(person bool) Grant {
	g := Grant{c.digest, new(atomic.Bool), person}
	g.unused.Store(true)
	return g
}

// Judge asks p about the call, and grants it if p allows it.
func (c *Call) Judge(ctx context.Context, p policy.Policy) (policy.Opinion, Grant, error) {
	opinion, err := policy.Judge(ctx, p, c.Case())
	if c.verdict = opinion.Verdict; c.verdict == policy.Allow {
		return opinion, c.newGrant(false), err
	}
	return opinion, Grant{}, err
}

// Unjudged grants a call of the user's own, which no policy judges. typed means that the user wrote
// this very call, rather than a hook or a check.
func (c *Call) Unjudged(typed bool) Grant { return c.newGrant(typed) }

// An Approval is the user's approval of the call that a question showed. The zero Approval grants nothing.
type Approval struct {
	call *Call
	args json.RawMessage
}

// Approve reads the answer a to the question q about the
// call. Its error says why the answer does not approve it.
func (c *Call) Approve(q uip.Request, a uip.Response) (Approval, error) {
	switch {
	case c.verdict != policy.Ask:
		return Approval{}, errors.New("the call needed no approval")
	case q.Digest != c.digest:
		return Approval{}, errors.New("the question is for another call")
	case a.IsUnanswered():
		return Approval{}, errors.New("no answer")
	}
	if err := uip.CheckResponse(q, a); err != nil {
		return Approval{}, err
	}
	switch a.Option {
	case uip.OptionApprove, uip.OptionSession, uip.OptionAlways, uip.OptionAlwaysBelow:
		return Approval{c, a.Args}, nil
	case uip.OptionSome:
		args, err := c.reduceArgs(a)
		if err != nil {
			return Approval{}, err
		}
		return Approval{c, args}, nil
	}
	return Approval{}, message.Errorf("%q does not approve the call", a.Option)
}

// reduceArgs returns arguments for only the hunks in the answer, or nil if it names all.
func (c *Call) reduceArgs(a uip.Response) (json.RawMessage, error) {
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
	args[tool.OnlyHunks] = jsonx.MustMarshal(taken)
	return jsonx.MustMarshal(args), nil
}

// Args returns the user's arguments in place of the shown ones, or nil.
func (y Approval) Args() json.RawMessage { return y.args }

// Grant grants c if it is the call that was shown, or that call
// with the user's arguments, and policy does not deny it.
func (y Approval) Grant(c *Call) (Grant, error) {
	switch {
	case y.call == nil || c == nil || c.original.ID != y.call.original.ID:
		return Grant{}, ErrNoGrant
	case y.args == nil && c.digest != y.call.digest, y.args != nil && string(y.args) != string(c.original.Args):
		return Grant{}, errors.New("the approval is for another call")
	case c.verdict != policy.Ask && c.verdict != policy.Allow:
		return Grant{}, errors.New("policy denies the call")
	}
	return c.newGrant(true), nil
}

// Run runs the call if g covers it, which uses up g. Its context tells the call whether the user approved it.
func (c *Call) Run(ctx context.Context, out io.Writer, g Grant) (tool.Result, error) {
	if !g.matches(c) || !g.unused.CompareAndSwap(true, false) {
		return tool.Result{}, ErrNoGrant
	}
	return c.prepared.Run(tool.WithApproval(ctx, g.byUser), out)
}
