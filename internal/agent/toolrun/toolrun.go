// Package toolrun takes the tool calls of one reply through the gate and runs
// them:
//
//	look up → prepare → judge → at most one question → record → run → record
//
// A call runs only with its [grant.Grant], which an allowing verdict or the answer to the
// question makes. Four promises hold whatever happens, cancellation included:
//
//  1. Every call gets exactly one result, delivered in the order the model asked.
//  2. Nothing runs before its request is in the audit log, and every request
//     there is followed by its completion, refusals included.
//  3. A person is asked at most once per call, and the answer binds that call
//     only. Calls of one round that need approval are put as one card.
//  4. No goroutine outlives Run.
//
// If every call of a round only reads and none has to be asked about, they run
// side by side; otherwise they run one after the other, and each is prepared
// only when those before it are done, so that it plans against what they left.
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

// Runner runs rounds of tool calls. All fields are required unless they say
// otherwise.
type Runner struct {
	Policy policy.Policy
	Memory Memory        // optional: remembers what was always allowed
	NewID  func() string // makes interaction ids
	Now    func() time.Time
	Keeper Keeper // optional: keeps what calls overwrite
	// Start, if set, saves what the session begins with: the state of all files, and of
	// the repository. It is called before every call, and has names for one of the first alone.
	Start func(ctx context.Context, readOnly bool) (tree, repository string)
	// Conceals, which may be nil, blots keys out of results. Out of records the
	// timeline does.
	Conceals *secret.Concealer
	Waiver   *Waiver // optional: lets the person go on without a record
	// Recall, if set, knows what came of calls that are not to be made again.
	Recall func(ctx context.Context, callID string) (res tool.Result, known bool, err error)
}

// A Memory remembers calls that a person said "always" to.
type Memory interface {
	// Offers say what would be remembered of a call, in words for the person, by
	// how far it would reach. The error says why nothing can be.
	Offers(policy.Case) ([]policy.Offer, error)
	Add(context.Context, policy.Case, policy.Scope) error
}

// A Keeper makes changes reversible. It is asked about every call that is not
// read-only, before its request is recorded and after it ran.
type Keeper interface {
	// Keep saves what a call with these effects would overwrite. An error
	// means that the call must not run.
	Keep(ctx context.Context, effects []tool.Effect) (tool.Kept, error)
	// Changes tells what the call did to files since k was kept.
	Changes(ctx context.Context, k tool.Kept) ([]event.FileChange, error)
}

// Hooks are people's own commands around the calls of a round.
type Hooks interface {
	// Before is asked about a call that can be made, before anything judges it.
	Before(context.Context, Round, HookedCall) (Ruling, error)
	// After is told what came of a call that ran.
	After(ctx context.Context, r Round, c HookedCall, output json.RawMessage, took time.Duration) (Ruling, error)
}

// HookedCall is a call as its tool takes it.
type HookedCall struct {
	ID, Tool string
	Args     json.RawMessage
}

// Ruling is what hooks say about something. The zero Ruling says nothing.
type Ruling struct {
	Stop    string          // why the turn is to end
	Deny    string          // why not; of what has happened, what the model is to know of it
	DenyBy  string          // the hook that said so
	Ask     string          // why the person is to be asked
	Allow   bool            // it need not be asked about, unless for a risk
	Input   json.RawMessage // other arguments of the call
	InputBy string          // whose hook put them there
	Output  json.RawMessage // what the model is told in place of what came of it
	Notes   []Note          // for the model
}

// Note is what a hook has the model told.
type Note struct {
	Whose string // the hook is
	Text  string
}

// Round is the calls of one reply and what they need.
type Round struct {
	Task, Actor string
	Set         tool.Set
	Calls       []chat.ToolCall
	Person      uip.Interactor
	Sink        event.Sink
	// Doubted is set if nobody vouches that a model asked for the calls, such as
	// those of a log that came with the workspace. They are asked about, whatever
	// policy says, unless nothing can come of them.
	Doubted bool
	// Recorded is set if the calls are taken from the record, where keys in their
	// arguments are blotted out. A call with such arguments does not run.
	Recorded bool
	// Aside, if set, is what else a person who is asked should know.
	Aside string
	// Unjudged is set if the calls are the person's own, which no policy judges.
	Unjudged bool
	Hooks    Hooks // optional
	// StopOnReject ends the round, and the turn, when a person refuses a call.
	StopOnReject bool
	// Deliver is given each outcome, in the order of Calls.
	Deliver func(context.Context, Outcome) error
}

// Outcome is one call's fate. Effects are those it was let do, but for writes that failed; nil if it never
// ran.
type Outcome struct {
	Index   int
	Tool    string // its own name, or what the model called it
	Result  chat.ToolResult
	Effects []tool.Effect
	Images  []chat.Image // for the model to look at
	Rebuild *tool.Rebuild
	Denied  bool
}

// ErrRefused ends a turn whose person refused a call and wants to stop there.
var ErrRefused = errors.New("refused")

// Denied is the error of a call refused by policy or by a person.
type Denied struct{ Why string }

func (d *Denied) Error() string { return "denied: " + d.Why }

// Run takes the calls of r through. Its error is non-nil only if the turn must
// end.
func (r *Runner) Run(ctx context.Context, round Round) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	run := &run{Runner: r, Round: round, stop: stop}
	if admitted, ok := run.allReadOnly(ctx); ok {
		run.runParallel(ctx, admitted)
	} else {
		run.runSequential(ctx, admitted)
	}
	return context.Cause(ctx)
}

// run is one Round under way.
type run struct {
	*Runner
	Round
	stop    context.CancelCauseFunc
	answers map[string]said   // to calls asked about before their turn
	rulings map[string]Ruling // of hooks, by call
}

// admission is a call that has been looked at: what it would do, what was
// thought of it, and the grant that lets it run.
type admission struct {
	call     chat.ToolCall
	tool     string // the tool's own name, or what the model called it
	prepared *grant.Call
	grant    grant.Grant
	opinion  policy.Opinion
	by       string // who decided
	err      error  // why it has no grant, or how it failed
	ran      bool
	keyless  bool // its keys are not on record
	kept     tool.Kept
	note     string // how the call was read, if it was not written for our tools
	// turnedDown is the diff of those hunks of the change that the person did not take.
	turnedDown string
}

func (a *admission) policyCase() policy.Case {
	return policy.Case{Tool: a.tool, Call: a.call, Plan: a.plan()}
}

// readOnly reports whether the call is known to change nothing.
func (a *admission) readOnly() bool {
	return a.plan().ReadOnly() || a.opinion.ReadOnly
}

func (a *admission) plan() tool.Plan {
	if a.prepared == nil {
		return tool.Plan{Title: cmp.Or(tool.About(a.err), Named(a.call.Args))}
	}
	return a.prepared.Plan()
}

// allReadOnly looks at the calls in order and reports whether they may all run
// side by side. It stops at the first that may not; what it has looked at by
// then is still valid, for nothing has run yet.
func (r *run) allReadOnly(ctx context.Context) ([]*admission, bool) {
	var as []*admission
	for _, c := range r.Calls {
		a := r.admit(ctx, c)
		as = append(as, a)
		if a.asks() || a.granted() && !a.readOnly() {
			return as, false
		}
	}
	return as, true
}

// runParallel runs calls that disturb nobody side by side. Their records, like
// their results, keep the model's order; one that is over before its turn has
// come is shown first. A call that waits for an answer in the middle is left
// open, and the round ends when the others are done.
func (r *run) runParallel(ctx context.Context, as []*admission) {
	over := make(chan int, len(as))
	all := make([]struct {
		execution
		over, shown bool
	}, len(as))
	for i, a := range as {
		if !r.open(ctx, a) {
			over <- i
			continue
		}
		perform := r.begin(ctx, a) // in the order of the calls
		go func() {                // over when it has said so, which is waited for
			all[i].execution = perform()
			over <- i
		}()
	}
	var parked error
	for next := 0; next < len(as); {
		i := <-over
		all[i].over = true
		if i > next && !errors.Is(as[i].err, uip.ErrParked) {
			r.tell(ctx, as[i], all[i].execution, r.fate(as[i], all[i].result))
			all[i].shown = true
		}
		for ; next < len(as) && all[next].over; next++ {
			if errors.Is(as[next].err, uip.ErrParked) {
				parked = as[next].err
				continue
			}
			r.deliver(ctx, r.close(ctx, next, as[next], all[next].execution, all[next].shown))
		}
	}
	if parked != nil {
		r.stop(parked)
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
		if a.asks() {
			r.approve(ctx, a, r.Calls[i+1:])
		}
		if errors.Is(a.err, uip.ErrParked) {
			r.stop(a.err)
			return // this call and those after it wait for the answer
		}
		var done execution
		if r.open(ctx, a) {
			done = r.begin(ctx, a)()
		}
		if errors.Is(a.err, uip.ErrParked) {
			r.stop(a.err)
			return // it asked a question of its own and waits in the middle
		}
		r.deliver(ctx, r.close(ctx, i, a, done, false))
	}
}

// Named is what the arguments of a call say it is about, where no tool tells.
func Named(args json.RawMessage) string {
	var about struct {
		Path    string `json:"path"`
		File    string `json:"file_path"`
		Command string `json:"command"`
		Pattern string `json:"pattern"`
		Query   string `json:"query"`
		URL     string `json:"url"`
	}
	_ = json.Unmarshal(args, &about) // what does not fit names nothing
	return cmp.Or(about.Command, about.Pattern, about.Query, about.URL, about.Path, about.File)
}

// masked refuses a call that is on record without the keys that it was made with. It
// is planned only to name what it is about.
func (r *run) masked(ctx context.Context, a *admission) *admission {
	r.prepare(ctx, a)
	return &admission{call: a.call, tool: a.tool, keyless: true, err: tool.Titled(a.plan().Title, errMasked)}
}

// errMasked is what the model is told of a call that is on record without the keys
// that it was made with.
var errMasked = errors.New("not run: the program ended before this call began, and keys in its arguments are not saved on disk. Tell the user so, and make the call again only when they want it and have told you what was masked")

// deliver hands one outcome over; if that fails the turn cannot go on.
func (r *run) deliver(ctx context.Context, out Outcome) {
	if err := r.Deliver(context.WithoutCancel(ctx), out); err != nil {
		r.stop(err)
	}
}

// ErrNeedsApproval reports a call that a person would have to be asked about.
var ErrNeedsApproval = errors.New("needs approval")
