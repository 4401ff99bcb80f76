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
	"coder/internal/core/message"
	"coder/internal/core/secret"
	"coder/internal/core/uip"
	"coder/internal/policy"
	"coder/internal/policy/grant"
	"coder/internal/tool"
)

// This file decides calls: how a call gets its grant, and how it loses it.

// isGranted reports whether the call may run now.
func (a *admission) isGranted() bool { return a.grant.Covers(a.prepared) }

// needsApproval reports whether the call needs approval.
func (a *admission) needsApproval() bool { return a.err == nil && a.opinion.Verdict == policy.Ask }

// revoke revokes the grant, for a reason.
func (a *admission) revoke(err error) { a.grant, a.err = grant.Grant{}, err }

// admit prepares c and judges it.
func (r *run) admit(ctx context.Context, c chat.ToolCall) *admission {
	a := &admission{call: c, tool: c.Name}
	if a.err = ctx.Err(); a.err != nil {
		return a
	}
	if r.FromRecord && (secret.HasMask(c.Args) || secret.HasMask(c.Broken)) {
		return r.denyMasked(ctx, a)
	}
	if off := r.prepare(ctx, a); off {
		r.denyByName(ctx, a)
	}
	if a.err != nil {
		return a
	}
	if r.Unjudged {
		a.opinion, a.decidedBy, a.grant = policy.Opinion{Verdict: policy.Allow}, r.Actor,
			a.prepared.Unjudged(r.Actor == event.ActorUser)
		return a
	}
	if ruling, ok := r.runHooksBefore(ctx, a); ok {
		r.judge(ctx, a, ruling)
	}
	return a
}

// denyByName denies a call of a tool that is switched off, with the policy's reasons.
func (r *run) denyByName(ctx context.Context, a *admission) {
	opinion, err := policy.Judge(ctx, r.Policy, a.policyCase())
	if err == nil {
		err = tool.WithTitle(CallSubject(a.call.Args), &DeniedError{opinion.String()})
	}
	a.opinion, a.decidedBy = opinion, event.ActorPolicy
	a.revoke(err)
}

// judge applies policy, hooks and doubt to a, and grants the call if all of them allow it.
func (r *run) judge(ctx context.Context, a *admission, ruling Ruling) {
	a.decidedBy = event.ActorPolicy
	var err error
	a.opinion, a.grant, err = a.prepared.Judge(ctx, policy.Func(func(ctx context.Context, c policy.Case) (policy.Opinion,
		error) {
		o, err := policy.Judge(ctx, r.Policy, c)
		if err != nil {
			return o, err
		}
		after := ruling.combine(o)
		if after.Verdict > o.Verdict {
			a.decidedBy = decidedByHook
		}
		return r.judgeUnvouched(c, after), nil
	}))
	switch {
	case err != nil:
		a.revoke(&DeniedError{err.Error()})
	case a.opinion.Verdict == policy.Deny:
		a.revoke(&DeniedError{a.opinion.String()})
	}
}

// combine combines an opinion with the hooks' ruling: hooks make it
// stricter, or approve a call that policy only asks about.
func (r Ruling) combine(o policy.Opinion) policy.Opinion {
	switch {
	case r.AskReason != "" && o.Verdict != policy.Deny:
		o.Verdict = policy.Ask
		o.Reasons = append(slices.Clip(o.Reasons), policy.Reason{By: decidedByHook, Text: r.AskReason})
	case r.Allow && o.Verdict == policy.Ask && o.IsWaivable():
		o.Verdict = policy.Allow
	}
	return o
}

// judgeUnvouched returns the opinion about a call that is not vouched: it needs approval unless it is harmless.
func (r *run) judgeUnvouched(c policy.Case, o policy.Opinion) policy.Opinion {
	if r.Unvouched && o.Verdict == policy.Allow && !isHarmless(c.Plan, o) {
		o.Verdict, o.Reasons = policy.Ask, []policy.Reason{unvouchedReason}
	}
	return o
}

// unvouchedReason is the reason for approval of a call that policy would allow.
var unvouchedReason = policy.Reason{By: "record",
	Text: "this call is from a log that coder did not write on this machine"}

// isHarmless reports whether repeating a call does no harm: it
// only reads, or asks, or writes coder's own notes.
func isHarmless(p tool.Plan, o policy.Opinion) bool {
	return o.ReadOnly || event.AreHarmless(p.Effects)
}

// userDecision is the user's decision about a call: the question, the answer, and the call as shown.
type userDecision struct {
	question uip.Request
	answer   uip.Response
	shown    *admission
}

// approve asks the user about a once, with all reasons. Later calls that need approval are
// on the same card; their answers hold if a call is still the same when its turn comes.
func (r *run) approve(ctx context.Context, a *admission, after []chat.ToolCall) {
	said, err := r.answerFor(ctx, a, after)
	switch {
	case ctx.Err() != nil:
		a.revoke(ctx.Err())
		return
	case errors.Is(err, uip.ErrAnswerPending):
		a.revoke(err)
		return
	case err != nil:
		a.revoke(tool.Fatal(message.Errorf("ask for approval: %w", err)))
		return
	}
	a.decidedBy = said.answer.Author
	approval, err := said.shown.prepared.Approve(said.question, said.answer)
	if err != nil {
		a.revoke(refusalError(said.answer, a.opinion, err))
		if r.StopOnReject || said.answer.Stop {
			a.revoke(stopDenial{a.err})
		}
		return
	}
	shown := a.policyCase()
	if r.applyChangedArgs(ctx, a, said.answer, approval.Args()) {
		r.grantApproved(ctx, a, approval, shown, policy.Scope(said.answer.Option))
	}
	if words := strings.TrimSpace(said.answer.Comment); words != "" {
		a.note = tool.JoinNotes(a.note, "the user says: "+words)
	}
}

// answerFor returns the user's answer about a: from an earlier card, or asked now.
func (r *run) answerFor(ctx context.Context, a *admission, after []chat.ToolCall) (userDecision, error) {
	if g, ok := r.answers[a.call.ID]; ok && g.shown.sameCall(a) &&
		(g.answer.Option != uip.OptionSome || g.shown.sameHunks(a)) {
		return g, nil
	}
	card := []*admission{a}
	for _, c := range after {
		if next := r.admit(ctx, c); next.needsApproval() {
			card = append(card, next)
		}
	}
	if len(card) == 1 {
		q := r.callQuestion(a)
		answer, err := r.User.Ask(ctx, q)
		return userDecision{q, answer, a}, err
	}
	q := r.combinedQuestion(card)
	all, err := r.User.Ask(ctx, q)
	if err != nil {
		return userDecision{}, err
	}
	r.answers = make(map[string]userDecision)
	for i, next := range card {
		r.answers[next.call.ID] = userDecision{q.Parts[i], all.PartAnswer(q.Parts[i]), next}
	}
	return r.answers[a.call.ID], nil
}

// sameCall reports whether b is still the call that was shown as a.
func (a *admission) sameCall(b *admission) bool {
	return a.prepared.Digest() == b.prepared.Digest() && a.opinion.String() == b.opinion.String()
}

// sameHunks reports whether b has the same hunks as a, regardless of their line numbers.
func (a *admission) sameHunks(b *admission) bool {
	return slices.EqualFunc(a.hunks(), b.hunks(), func(x, y display.Hunk) bool {
		_, x.Body, _ = strings.Cut(x.Body, "\n")
		_, y.Body, _ = strings.Cut(y.Body, "\n")
		return x.FileHeader == y.FileHeader && x.Body == y.Body
	})
}

// applyChangedArgs applies changed arguments from an approval, if any,
// and reports whether policy still allows an approval.
func (r *run) applyChangedArgs(ctx context.Context, a *admission, answer uip.Response, args json.RawMessage) bool {
	switch {
	case args == nil:
		return true
	case secret.HasMask(args):
		a.revoke(errKeysMasked)
		return false
	case answer.Option == uip.OptionSome:
		return r.prepareAccepted(ctx, a, answer, args) && r.rejudge(ctx, a)
	}
	return r.prepareChanged(ctx, a, args) && r.rejudge(ctx, a)
}

// rejudge judges a call that the user changed with their approval.
// A denial stands; a call that needs approval already has it.
func (r *run) rejudge(ctx context.Context, a *admission) bool {
	opinion, _, err := a.prepared.Judge(ctx, r.Policy)
	if err == nil {
		a.opinion = opinion
	}
	if err == nil && opinion.Verdict == policy.Deny {
		err = errors.New(opinion.String())
	}
	if err != nil {
		a.decidedBy = event.ActorPolicy
		a.revoke(&DeniedError{err.Error()})
	}
	return err == nil
}

// grantApproved grants a if it is the call that the user approved,
// and remembers an answer with a scope beyond this call.
func (r *run) grantApproved(ctx context.Context, a *admission, approval grant.Approval, shown policy.Case,
	scope policy.Scope) {
	g, err := approval.Grant(a.prepared)
	if err != nil {
		a.revoke(&DeniedError{notAcceptedPrefix + err.Error()})
		return
	}
	a.grant = g
	if !slices.Contains(scopes, scope) {
		return
	}
	if err := r.Approvals.Add(ctx, shown, scope); err != nil {
		r.notice(ctx, event.LevelWarn, fmt.Sprintf("could not remember the answer: %v", err))
	}
}

// recordAndCheck records the request and reports whether the call may run now. A call that changes something does
// not run without a record, unless the user permits it; if nothing can be recorded at all, the turn ends.
func (r *run) recordAndCheck(ctx context.Context, a *admission) bool {
	if err := ctx.Err(); err != nil && a.isGranted() {
		a.revoke(err)
	}
	if !a.isGranted() && a.err == nil {
		a.revoke(&DeniedError{grant.ErrNoGrant.Error()})
	}
	err := r.recordRequest(ctx, a)
	var unkept *event.NotRecordableError
	if errors.As(err, &unkept) && r.askContinueUnrecorded(ctx, unkept) {
		err = r.recordRequest(ctx, a)
	}
	if errors.As(err, &unkept) {
		a.decidedBy = event.ActorPolicy
		a.revoke(&DeniedError{fmt.Sprintf("%v; what is not recorded could run a second time later, or could not be undone. No call can free space, not even rm: the user has to, on the disk of .coder, or use --no-session-persistence", unkept)})
		err = r.recordRequest(ctx, a) // a record in memory is enough for a call that does not run
	}
	if err != nil {
		a.revoke(tool.Fatal(message.Errorf("record the call: %w", err)))
		r.cancel(err)
	}
	return a.isGranted()
}

// execute runs the tool; a panic counts as a failure.
func (r *run) execute(ctx context.Context, a *admission) (res tool.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			res, err = tool.Result{}, message.Errorf("%s crashed: %v", a.tool, p)
		}
	}()
	if r.KnownResult != nil {
		if res, known, err := r.KnownResult(ctx, a.call.ID); known {
			return res, err
		}
	}
	return a.prepared.Run(tool.WithCall(uip.WithInteractor(ctx, r.callInteractor(a)), a.call.ID),
		liveOutput{ctx, r, a.call.ID}, a.grant)
}

// CheckUnattended returns nil if a call would run without approval, otherwise
// an error with the reason. Nothing runs, and nothing is recorded.
func (r *Runner) CheckUnattended(ctx context.Context, set tool.Set, c chat.ToolCall) error {
	a := (&run{Runner: r, Round: Round{Tools: set}}).admit(ctx, c)
	switch {
	case a.isGranted():
		return nil
	case a.needsApproval():
		return ErrNeedsApproval
	}
	return cmp.Or(a.err, grant.ErrNoGrant)
}

// IsHarmless reports whether a call, as prepared now, can run any number of
// times without harm: it only reads, or asks, or writes coder's own notes.
func (r *Runner) IsHarmless(ctx context.Context, set tool.Set, c chat.ToolCall) bool {
	a := (&run{Runner: r, Round: Round{Tools: set}}).admit(ctx, c)
	return a.prepared != nil && isHarmless(a.plan(), a.opinion)
}
