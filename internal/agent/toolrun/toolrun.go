// Package toolrun takes the tool calls in one reply through the gate and runs them:
//
//	look up → prepare → judge → at most one question → record → run → record
//
// A call runs only with its [grant.Grant], which comes from a verdict that allows it or from
// the answer to the question. Four guarantees hold in every case, including cancellation:
//
//  1. Every call gets exactly one result, delivered in the model's order.
//  2. Nothing runs before its request is in the audit log, and every request
//     there is followed by its completion, including denied requests.
//  3. The user is asked at most once per call, and the answer applies only to that
//     call. Calls in one round that need approval share one card.
//  4. No goroutine outlives Run.
//
// If all calls in a round only read and none needs approval, they run in
// parallel; otherwise they run one after the other, and each is prepared only
// when the ones before it are done, so that its plan includes their changes.
package toolrun

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/secret"
	"coder/internal/core/uip"
	"coder/internal/policy"
	"coder/internal/policy/grant"
	"coder/internal/tool"
)

// Runner runs rounds of tool calls. All fields are required unless they say otherwise.
type Runner struct {
	Policy    policy.Policy
	Approvals ApprovalStore // optional: remembers permanent approvals
	NewID     func() string // makes interaction ids
	Now       func() time.Time
	Backup    BackupStore // optional: saves what calls overwrite
	// SaveInitialState, if set, saves the session's initial state: all files and the repository.
	// It is called before every call, and returns names only for one of the first.
	SaveInitialState func(ctx context.Context, readOnly bool) (tree, repository string)
	// Concealer, which may be nil, masks keys in results. The timeline masks them in records.
	Concealer *secret.Concealer
	Waiver    *RecordWaiver // optional: lets the user continue without a record
	// KnownResult, if set, returns known results of calls that must not be repeated.
	KnownResult func(ctx context.Context, callID string) (res tool.Result, known bool, err error)
}

// ApprovalStore remembers calls that the user always allows.
type ApprovalStore interface {
	// Offers returns what could be remembered about a call, as texts
	// for the user, by scope. The error says why nothing can be.
	Offers(policy.Case) ([]policy.Offer, error)
	Add(context.Context, policy.Case, policy.Scope) error
}

// BackupStore makes changes reversible. It is called for every call that
// is not read-only, before its request is recorded and after it ran.
type BackupStore interface {
	// SaveOriginals saves what a call with these effects would overwrite. After an error, the call must not run.
	SaveOriginals(ctx context.Context, effects []tool.Effect) (tool.Snapshot, error)
	// ChangesSince returns the call's changes to files since k was saved.
	ChangesSince(ctx context.Context, k tool.Snapshot) ([]event.FileChange, error)
}

// Hooks runs the user's commands around the calls of a round.
type Hooks interface {
	// Before decides about a possible call before anything else judges it.
	Before(context.Context, Round, HookedCall) (Ruling, error)
	// After gets the outcome of a call that ran.
	After(ctx context.Context, r Round, c HookedCall, output json.RawMessage, took time.Duration) (Ruling, error)
}

// HookedCall is a call as its tool gets it.
type HookedCall struct {
	ID, Tool string
	Args     json.RawMessage
}

// Ruling is the hooks' combined decision. The zero Ruling decides nothing.
type Ruling struct {
	StopReason string          // why the turn must end
	DenyReason string          // why it is denied; after the fact, feedback for the model
	DeniedBy   string          // the hook that denied it
	AskReason  string          // why it needs approval
	Allow      bool            // it needs no approval, except for a risk
	Input      json.RawMessage // replaces the call's arguments
	InputBy    string          // the hook's owner
	Output     json.RawMessage // replaces the result for the model
	Notes      []Note          // for the model
}

// Note is a hook's text for the model.
type Note struct {
	Owner string // the hook's owner
	Text  string
}

// Round is the calls in one reply and what they need.
type Round struct {
	Task, Actor string
	Tools       tool.Set
	Calls       []chat.ToolCall
	User        uip.Interactor
	Sink        event.Sink
	// Unvouched means that the calls are not vouched as a model's, such as those from a log that
	// came with the workspace. They need approval regardless of policy, unless they are harmless.
	Unvouched bool
	// FromRecord means that the calls are from the record, where keys in
	// their arguments are masked. A call with such arguments does not run.
	FromRecord bool
	// ApprovalNote, if set, is additional text for the approval.
	ApprovalNote string
	// Unjudged means that the calls are the user's own, which policy does not judge.
	Unjudged bool
	Hooks    Hooks // optional
	// StopOnReject ends the round and the turn when the user denies a call.
	StopOnReject bool
	// Deliver gets each outcome, in the order of Calls.
	Deliver func(context.Context, Outcome) error
}

// Outcome is one call's outcome. Effects are its allowed effects, except failed writes; nil if it never ran.
type Outcome struct {
	Index         int
	Tool          string // the tool's name, or the model's name for it
	Result        chat.ToolResult
	Effects       []tool.Effect
	Images        []chat.Image // for the model to look at
	Rebuild       *tool.Rebuild
	Denied        bool
	DeniedEffects []tool.Effect // the effects that the user denied
}

// ErrDeniedAndStopped ends a turn because the user denied a call and wants to stop.
var ErrDeniedAndStopped = errors.New("refused")

// stopDenial is a denial that ends the turn: also an [ErrDeniedAndStopped].
type stopDenial struct{ error }

func (r stopDenial) Unwrap() []error { return []error{r.error, ErrDeniedAndStopped} }

// DeniedError is the error of a call denied by policy or the user.
type DeniedError struct{ Reason string }

func (d *DeniedError) Error() string { return "denied: " + d.Reason }

// Run runs the calls of a round. Its error is non-nil only if the turn must end.
func (r *Runner) Run(ctx context.Context, round Round) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	run := &run{Runner: r, Round: round, cancel: stop}
	if admitted, ok := run.admitReadOnly(ctx); ok {
		run.runParallel(ctx, admitted)
	} else {
		run.runSequential(ctx, admitted)
	}
	return context.Cause(ctx)
}

// run is one running Round.
type run struct {
	*Runner
	Round
	cancel  context.CancelCauseFunc
	answers map[string]userDecision // to calls asked about early, by call
	rulings map[string]Ruling       // hooks' rulings by call
}

// admission is an examined call: its plan, the opinion about it, and its grant.
type admission struct {
	call        chat.ToolCall
	tool        string // the tool's name, or the model's name for it
	prepared    *grant.Call
	grant       grant.Grant
	opinion     policy.Opinion
	decidedBy   string // who decided
	err         error  // why it has no grant, or how it failed
	hasRun      bool
	keysMissing bool // its keys are not in the record
	saved       tool.Snapshot
	note        string // how the call was interpreted, if it was not written for coder's tools
	// rejectedDiff is the diff of the hunks that the user did not accept.
	rejectedDiff string
}

func (a *admission) policyCase() policy.Case {
	return policy.Case{Tool: a.tool, Call: a.call, Plan: a.plan()}
}

// isReadOnly reports whether the call is known to change nothing.
func (a *admission) isReadOnly() bool {
	return a.plan().ReadOnly() || a.opinion.ReadOnly
}

func (a *admission) plan() tool.Plan {
	if a.prepared == nil {
		return tool.Plan{Title: cmp.Or(tool.ErrorTitle(a.err), CallSubject(a.call.Args))}
	}
	return a.prepared.Plan()
}

// admitReadOnly admits the calls in order and reports whether all may run in parallel. It stops
// at the first that may not; the admissions so far stay valid, because nothing has run yet.
func (r *run) admitReadOnly(ctx context.Context) ([]*admission, bool) {
	var as []*admission
	for _, c := range r.Calls {
		a := r.admit(ctx, c)
		as = append(as, a)
		if a.needsApproval() || a.isGranted() && !a.isReadOnly() {
			return as, false
		}
	}
	return as, true
}

// runParallel runs independent calls in parallel. Their records and results
// keep the model's order; a call that ends early is shown at once. A call that
// waits for an answer stays open, and the round ends when the others are done.
func (r *run) runParallel(ctx context.Context, as []*admission) {
	over := make(chan int, len(as))
	all := make([]struct {
		execution
		over, shown bool
	}, len(as))
	for i, a := range as {
		if !r.recordAndCheck(ctx, a) {
			over <- i
			continue
		}
		perform := r.start(ctx, a) // in the order of the calls
		go func() {                // ends with the send, which the loop below receives
			all[i].execution = perform()
			over <- i
		}()
	}
	var parked error
	for next := 0; next < len(as); {
		i := <-over
		all[i].over = true
		if i > next && !errors.Is(as[i].err, uip.ErrAnswerPending) {
			r.showOutcome(ctx, as[i], all[i].execution, r.determineOutcome(as[i], all[i].result))
			all[i].shown = true
		}
		for ; next < len(as) && all[next].over; next++ {
			if errors.Is(as[next].err, uip.ErrAnswerPending) {
				parked = as[next].err
				continue
			}
			r.deliver(ctx, r.completeCall(ctx, next, as[next], all[next].execution, all[next].shown))
		}
	}
	if parked != nil {
		r.cancel(parked)
	}
}

// runSequential runs calls one after the other.
func (r *run) runSequential(ctx context.Context, looked []*admission) {
	for i, c := range r.Calls {
		var a *admission
		if i < len(looked) {
			a = looked[i]
		} else {
			a = r.admit(ctx, c)
		}
		if a.needsApproval() {
			r.approve(ctx, a, r.Calls[i+1:])
		}
		if errors.Is(a.err, uip.ErrAnswerPending) {
			r.cancel(a.err)
			return // this call and the later ones wait for the answer
		}
		var done execution
		if r.recordAndCheck(ctx, a) {
			done = r.start(ctx, a)()
		}
		if errors.Is(a.err, uip.ErrAnswerPending) {
			r.cancel(a.err)
			return // the tool asked a question and waits for its answer
		}
		r.deliver(ctx, r.completeCall(ctx, i, a, done, false))
	}
}

// CallSubject returns the subject of a call from its arguments, without asking its tool.
func CallSubject(args json.RawMessage) string {
	var about struct {
		Path    string `json:"path"`
		File    string `json:"file_path"`
		Command string `json:"command"`
		Pattern string `json:"pattern"`
		Query   string `json:"query"`
		URL     string `json:"url"`
	}
	_ = json.Unmarshal(args, &about) // arguments that do not fit name nothing
	return cmp.Or(about.Command, about.Pattern, about.Query, about.URL, about.Path, about.File)
}

// denyMasked denies a call whose recorded arguments lack their keys. It prepares the call only for its title.
func (r *run) denyMasked(ctx context.Context, a *admission) *admission {
	r.prepare(ctx, a)
	return &admission{call: a.call, tool: a.tool, keysMissing: true, err: tool.WithTitle(a.plan().Title, errKeysMasked)}
}

// errKeysMasked is the model's result for a call whose recorded arguments lack their keys.
var errKeysMasked = errors.New("not run: the program ended before this call began, and keys in its arguments are not saved on disk. Tell the user so, and make the call again only when they want it and have told you what was masked")

// deliver passes one outcome on; if that fails, the turn ends.
func (r *run) deliver(ctx context.Context, out Outcome) {
	if err := r.Deliver(context.WithoutCancel(ctx), out); err != nil {
		r.cancel(err)
	}
}

// ErrNeedsApproval reports a call that needs approval.
var ErrNeedsApproval = errors.New("needs approval")
