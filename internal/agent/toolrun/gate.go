package toolrun

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/secret"
	"coder/internal/core/uip"
	"coder/internal/policy"
	"coder/internal/policy/grant"
	"coder/internal/tool"
)

// This file decides: how a call comes by its grant, and what takes it away again.

// granted reports whether the call may run now.
func (a *admission) granted() bool { return a.grant.Covers(a.prepared) }

// asks reports whether the call needs a person's approval.
func (a *admission) asks() bool { return a.err == nil && a.opinion.Verdict == policy.Ask }

// refuse takes the grant away, for a reason.
func (a *admission) refuse(err error) { a.grant, a.err = grant.Grant{}, err }

// admit prepares c and hears what policy thinks of it.
func (r *run) admit(ctx context.Context, c chat.ToolCall) *admission {
	a := &admission{call: c, tool: c.Name}
	if a.err = ctx.Err(); a.err != nil {
		return a
	}
	if r.Recorded && (secret.Marked(c.Args) || secret.Marked(c.Broken)) {
		return r.masked(ctx, a)
	}
	if off := r.prepare(ctx, a); off {
		r.denyByName(ctx, a)
	}
	if a.err != nil {
		return a
	}
	if r.Unjudged {
		a.opinion, a.by, a.grant = policy.Opinion{Verdict: policy.Allow}, r.Actor, a.prepared.Unjudged(r.Actor == event.ActorUser)
		return a
	}
	if ruling, ok := r.consult(ctx, a); ok {
		r.judge(ctx, a, ruling)
	}
	return a
}

// denyByName refuses a call of a tool that is switched off, in the words of policy.
func (r *run) denyByName(ctx context.Context, a *admission) {
	opinion, err := policy.Judge(ctx, r.Policy, a.policyCase())
	if err == nil {
		err = tool.Titled(Named(a.call.Args), &Denied{opinion.String()})
	}
	a.opinion, a.by = opinion, event.ActorPolicy
	a.refuse(err)
}

// judge hears policy, hooks and doubt about a, and grants what all of them let pass.
func (r *run) judge(ctx context.Context, a *admission, ruling Ruling) {
	a.by = event.ActorPolicy
	var err error
	a.opinion, a.grant, err = a.prepared.Judge(ctx, policy.Func(func(ctx context.Context, c policy.Case) (policy.Opinion, error) {
		o, err := policy.Judge(ctx, r.Policy, c)
		if err != nil {
			return o, err
		}
		after := ruling.on(o)
		if after.Verdict > o.Verdict {
			a.by = byHook
		}
		return r.doubted(c, after), nil
	}))
	switch {
	case err != nil:
		a.refuse(&Denied{err.Error()})
	case a.opinion.Verdict == policy.Deny:
		a.refuse(&Denied{a.opinion.String()})
	}
}

// on is an opinion after the hooks: they make it stricter, or answer what policy merely asks.
func (r Ruling) on(o policy.Opinion) policy.Opinion {
	switch {
	case r.Ask != "" && o.Verdict != policy.Deny:
		o.Verdict = policy.Ask
		o.Reasons = append(slices.Clip(o.Reasons), policy.Reason{By: byHook, Text: r.Ask})
	case r.Allow && o.Verdict == policy.Ask && o.Waivable():
		o.Verdict = policy.Allow
	}
	return o
}

// doubted is o about a call that nobody vouches for: it is asked about, unless nothing can
// come of it.
func (r *run) doubted(c policy.Case, o policy.Opinion) policy.Opinion {
	if r.Doubted && o.Verdict == policy.Allow && !harmless(c.Plan, o) {
		o.Verdict, o.Reasons = policy.Ask, []policy.Reason{doubt}
	}
	return o
}

// doubt is why a call is asked about that policy would let pass.
var doubt = policy.Reason{By: "record", Text: "this call is from a log that your coder did not write on this machine"}

// harmless reports whether nothing can come of a call, however often it runs:
// it only reads, or asks, or writes the program's own notes.
func harmless(p tool.Plan, o policy.Opinion) bool {
	return o.ReadOnly || event.Harmless(p.Effects)
}

// said is what a person said about a call: the question, the answer, and the call as it was
// shown to them.
type said struct {
	question uip.Request
	answer   uip.Response
	about    *admission
}

// approve asks the person about a, once, with every reason on the table. If
// calls after it need approval too, they are put on the same card; an answer
// given there holds if the call, when its turn comes, is still what was shown.
func (r *run) approve(ctx context.Context, a *admission, after []chat.ToolCall) {
	said, err := r.answerTo(ctx, a, after)
	switch {
	case ctx.Err() != nil:
		a.refuse(ctx.Err())
		return
	case errors.Is(err, uip.ErrParked):
		a.refuse(err)
		return
	case err != nil:
		a.refuse(tool.Fatal(fmt.Errorf("ask for approval: %w", err)))
		return
	}
	a.by = said.answer.Author
	approval, err := said.about.prepared.Approve(said.question, said.answer)
	if err != nil {
		a.refuse(refused(said.answer, a.opinion, err))
		if r.StopOnReject || said.answer.Stop {
			a.refuse(errors.Join(a.err, ErrRefused))
		}
		return
	}
	shown := a.policyCase()
	if r.adapt(ctx, a, said.answer, approval.Args()) {
		r.grantApproved(ctx, a, approval, shown, policy.Scope(said.answer.Option))
	}
	if words := strings.TrimSpace(said.answer.Comment); words != "" {
		a.note = tool.JoinNotes(a.note, "the user says: "+words)
	}
}

// answerTo is what the person says about a: on a card from before, or now.
func (r *run) answerTo(ctx context.Context, a *admission, after []chat.ToolCall) (said, error) {
	if g, ok := r.answers[a.call.ID]; ok && g.about.same(a) && (g.answer.Option != uip.Some || g.about.sameHunks(a)) {
		return g, nil
	}
	card := []*admission{a}
	for _, c := range after {
		if next := r.admit(ctx, c); next.asks() {
			card = append(card, next)
		}
	}
	if len(card) == 1 {
		q := r.question(a)
		answer, err := r.Person.Ask(ctx, q)
		return said{q, answer, a}, err
	}
	q := r.card(card)
	all, err := r.Person.Ask(ctx, q)
	if err != nil {
		return said{}, err
	}
	r.answers = make(map[string]said)
	for i, next := range card {
		r.answers[next.call.ID] = said{q.Parts[i], all.Part(q.Parts[i]), next}
	}
	return r.answers[a.call.ID], nil
}

// same reports whether b is still the call that was shown as a.
func (a *admission) same(b *admission) bool {
	return a.prepared.Digest() == b.prepared.Digest() && a.opinion.String() == b.opinion.String()
}

// sameHunks reports whether the hunks of b are those that were shown as a's, wherever
// in the file they stand by now.
func (a *admission) sameHunks(b *admission) bool {
	return slices.EqualFunc(a.hunks(), b.hunks(), func(x, y display.Hunk) bool {
		_, x.Body, _ = strings.Cut(x.Body, "\n")
		_, y.Body, _ = strings.Cut(y.Body, "\n")
		return x.Head == y.Head && x.Body == y.Body
	})
}

// adapt makes a the call with the arguments of a yes, if there are any, and reports whether
// policy lets that call be approved.
func (r *run) adapt(ctx context.Context, a *admission, answer uip.Response, args json.RawMessage) bool {
	switch {
	case args == nil:
		return true
	case secret.Marked(args):
		a.refuse(errMasked)
		return false
	case answer.Option == uip.Some:
		return r.reduce(ctx, a, answer, args) && r.judgeAgain(ctx, a)
	}
	return r.change(ctx, a, args) && r.judgeAgain(ctx, a)
}

// judgeAgain hears what policy thinks of a call that the person changed with their
// yes: what is denied is, and what is asked about they have said yes to.
func (r *run) judgeAgain(ctx context.Context, a *admission) bool {
	opinion, _, err := a.prepared.Judge(ctx, r.Policy)
	if err == nil {
		a.opinion = opinion
	}
	if err == nil && opinion.Verdict == policy.Deny {
		err = errors.New(opinion.String())
	}
	if err != nil {
		a.by = event.ActorPolicy
		a.refuse(&Denied{err.Error()})
	}
	return err == nil
}

// grantApproved grants a if it is the call that the person approved, and remembers an answer
// that reaches further than this call.
func (r *run) grantApproved(ctx context.Context, a *admission, approval grant.Approval, shown policy.Case, scope policy.Scope) {
	g, err := approval.Grant(a.prepared)
	if err != nil {
		a.refuse(&Denied{notAccepted + err.Error()})
		return
	}
	a.grant = g
	if !slices.Contains(scopes, scope) {
		return
	}
	if err := r.Memory.Add(ctx, shown, scope); err != nil {
		r.notice(ctx, event.Warn, fmt.Sprintf("could not remember the answer: %v", err))
	}
}

// open puts the request on record and reports whether the call may run now. One
// that changes the world and cannot be put on record does not run, unless the
// person lets it; where nothing can be recorded at all the turn ends.
func (r *run) open(ctx context.Context, a *admission) bool {
	if err := ctx.Err(); err != nil && a.granted() {
		a.refuse(err)
	}
	if !a.granted() && a.err == nil {
		a.refuse(&Denied{grant.ErrNone.Error()})
	}
	err := r.request(ctx, a)
	var unkept *event.UnkeptError
	if errors.As(err, &unkept) && r.mayGoOn(ctx, unkept) {
		err = r.request(ctx, a)
	}
	if errors.As(err, &unkept) {
		a.by = event.ActorPolicy
		a.refuse(&Denied{fmt.Sprintf("%v; what is not recorded could run a second time later, or could not be undone. No call can free space, not even rm: the user has to, on the disk of .coder, or use --no-session-persistence", unkept)})
		err = r.request(ctx, a) // of what does not run a record in memory will do
	}
	if err != nil {
		a.refuse(tool.Fatal(fmt.Errorf("record the call: %w", err)))
		r.stop(err)
	}
	return a.granted()
}

// execute calls the tool; one that panics has failed like any other.
func (r *run) execute(ctx context.Context, a *admission) (res tool.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			res, err = tool.Result{}, fmt.Errorf("%s crashed: %v", a.tool, p)
		}
	}()
	if r.Recall != nil {
		if res, known, err := r.Recall(ctx, a.call.ID); known {
			return res, err
		}
	}
	return a.prepared.Run(tool.WithCall(uip.With(ctx, r.asker(a)), a.call.ID), live{ctx, r, a.call.ID}, a.grant)
}

// Unasked reports whether a call would run without anyone being asked about it;
// the error says why not. Nothing runs, and nothing is recorded.
func (r *Runner) Unasked(ctx context.Context, set tool.Set, c chat.ToolCall) error {
	a := (&run{Runner: r, Round: Round{Set: set}}).admit(ctx, c)
	switch {
	case a.granted():
		return nil
	case a.asks():
		return ErrNeedsApproval
	}
	return cmp.Or(a.err, grant.ErrNone)
}

// Harmless reports whether a call, prepared now, can be run any number of times
// without harm: it only reads, or asks, or writes the program's own notes.
func (r *Runner) Harmless(ctx context.Context, set tool.Set, c chat.ToolCall) bool {
	a := (&run{Runner: r, Round: Round{Set: set}}).admit(ctx, c)
	return a.prepared != nil && harmless(a.plan(), a.opinion)
}
