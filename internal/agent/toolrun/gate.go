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

// This file decides calls: how a call gets its grant, and how it loses it.

// granted reports whether the call may run now.
func (a *admission) granted() bool { return a.grant.Covers(a.prepared) }

// asks reports whether the call needs approval.
func (a *admission) asks() bool { return a.err == nil && a.opinion.Verdict == policy.Ask }

// refuse revokes the grant, for a reason.
func (a *admission) refuse(err error) { a.grant, a.err = grant.Grant{}, err }

// admit prepares c and judges it.
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

// denyByName denies a call of a tool that is switched off, with the policy's reasons.
func (r *run) denyByName(ctx context.Context, a *admission) {
	opinion, err := policy.Judge(ctx, r.Policy, a.policyCase())
	if err == nil {
		err = tool.Titled(Named(a.call.Args), &Denied{opinion.String()})
	}
	a.opinion, a.by = opinion, event.ActorPolicy
	a.refuse(err)
}

// judge applies policy, hooks and doubt to a, and grants the call if all of them allow it.
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

// on combines an opinion with the hooks' ruling: hooks make it
// stricter, or approve a call that policy only asks about.
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

// doubted returns the opinion about a call that is not vouched: it needs approval unless it is harmless.
func (r *run) doubted(c policy.Case, o policy.Opinion) policy.Opinion {
	if r.Doubted && o.Verdict == policy.Allow && !harmless(c.Plan, o) {
		o.Verdict, o.Reasons = policy.Ask, []policy.Reason{doubt}
	}
	return o
}

// doubt is the reason for approval of a call that policy would allow.
var doubt = policy.Reason{By: "record", Text: "this call is from a log that coder did not write on this machine"}

// harmless reports whether repeating a call does no harm: it
// only reads, or asks, or writes coder's own notes.
func harmless(p tool.Plan, o policy.Opinion) bool {
	return o.ReadOnly || event.Harmless(p.Effects)
}

// said is the user's decision about a call: the question, the answer, and the call as shown.
type said struct {
	question uip.Request
	answer   uip.Response
	about    *admission
}

// approve asks the user about a once, with all reasons. Later calls that need approval are
// on the same card; their answers hold if a call is still the same when its turn comes.
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
			a.refuse(lastRefusal{a.err})
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

// answerTo returns the user's answer about a: from an earlier card, or asked now.
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

// sameHunks reports whether b has the same hunks as a, regardless of their line numbers.
func (a *admission) sameHunks(b *admission) bool {
	return slices.EqualFunc(a.hunks(), b.hunks(), func(x, y display.Hunk) bool {
		_, x.Body, _ = strings.Cut(x.Body, "\n")
		_, y.Body, _ = strings.Cut(y.Body, "\n")
		return x.Head == y.Head && x.Body == y.Body
	})
}

// adapt applies changed arguments from an approval, if any,
// and reports whether policy still allows an approval.
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

// judgeAgain judges a call that the user changed with their approval.
// A denial stands; a call that needs approval already has it.
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

// grantApproved grants a if it is the call that the user approved,
// and remembers an answer with a scope beyond this call.
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

// open records the request and reports whether the call may run now. A call that changes something does
// not run without a record, unless the user permits it; if nothing can be recorded at all, the turn ends.
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
		err = r.request(ctx, a) // a record in memory is enough for a call that does not run
	}
	if err != nil {
		a.refuse(tool.Fatal(fmt.Errorf("record the call: %w", err)))
		r.stop(err)
	}
	return a.granted()
}

// execute runs the tool; a panic counts as a failure.
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

// Unasked returns nil if a call would run without approval, otherwise
// an error with the reason. Nothing runs, and nothing is recorded.
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

// Harmless reports whether a call, as prepared now, can run any number of
// times without harm: it only reads, or asks, or writes coder's own notes.
func (r *Runner) Harmless(ctx context.Context, set tool.Set, c chat.ToolCall) bool {
	a := (&run{Runner: r, Round: Round{Set: set}}).admit(ctx, c)
	return a.prepared != nil && harmless(a.plan(), a.opinion)
}
