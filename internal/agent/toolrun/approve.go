package toolrun

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/core/clip"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/core/secret"
	"coder/internal/core/uip"
	"coder/internal/policy"
	"coder/internal/tool"
)

// cardAnswer is an answer to a call that was asked about before its turn.
type cardAnswer struct {
	answer uip.Response
	about  *admission // what the person was shown
}

// approve asks the person about a, once, with every reason on the table. If
// calls after it need approval too, they are put on the same card; an answer
// given there holds if the call, when its turn comes, is still what was shown.
func (r *run) approve(ctx context.Context, a *admission, after []chat.ToolCall) {
	if a.err == nil {
		a.err = ctx.Err()
	}
	if a.err != nil || a.opinion.Verdict != policy.Ask {
		return
	}
	answer, err := r.answerTo(ctx, a, after)
	switch {
	case ctx.Err() != nil:
		a.err = ctx.Err()
		return
	case errors.Is(err, uip.ErrParked):
		a.err = err
		return
	case err != nil:
		a.err = tool.Fatal(fmt.Errorf("ask for approval: %w", err))
		return
	}
	a.by = answer.Author
	switch {
	case answer.Option == uip.Approve:
		if answer.Args != nil {
			r.change(ctx, a, answer.Args)
		}
	case answer.Option == uip.Some:
		r.reduce(ctx, a, answer)
	case slices.ContainsFunc(r.offersFor(a), func(o policy.Offer) bool { return o.Scope == policy.Scope(answer.Option) }):
		if err := r.Memory.Add(ctx, a.policyCase(), policy.Scope(answer.Option)); err != nil {
			r.notice(ctx, event.Warn, fmt.Sprintf("could not remember the answer: %v", err))
		}
	default:
		a.err = refused(answer, a.opinion)
		if r.StopOnReject || answer.Stop {
			a.err = errors.Join(a.err, ErrRefused)
		}
		return
	}
	a.approved = true
	if said := strings.TrimSpace(answer.Comment); said != "" {
		a.note = tool.JoinNotes(a.note, "the user says: "+said)
	}
}

// change puts the arguments in place that the person gave with their yes. The call
// that it is then is judged again: what is denied stays so, and what is only
// asked about they have said yes to.
func (r *run) change(ctx context.Context, a *admission, args json.RawMessage) {
	if secret.Marked(args) {
		a.err = errMasked
		return
	}
	a.call.Args, a.call.Broken = args, ""
	if off := r.prepare(ctx, a); off && a.err == nil {
		a.err = &Denied{"the changed call is one of a tool that is switched off"}
	}
	if a.err != nil {
		return
	}
	a.note = tool.JoinNotes(a.note, "the user changed the arguments to "+clip.Text(string(args), 500))
	r.judgeAgain(ctx, a)
}

// reduce makes a the call that makes only those hunks of its change that the person
// took. That, too, is prepared and judged as any other.
func (r *run) reduce(ctx context.Context, a *admission, answer uip.Response) {
	all := a.hunks()
	taken, err := answer.Hunks(len(all))
	var args map[string]json.RawMessage
	t, known := r.Set.Lookup(a.tool)
	if err == nil && (!known || json.Unmarshal(a.args, &args) != nil) {
		err = errors.New("this call cannot be made in part")
	}
	if err != nil {
		a.err = &Denied{"the answer was not accepted: " + err.Error()}
		return
	}
	if len(taken) == len(all) {
		return // which is all of it
	}
	args[tool.OnlyHunks] = jsonx.Must(taken)
	a.args = jsonx.Must(args)
	a.call.Args, a.call.Broken = a.args, ""
	if a.prepared, a.err = t.Prepare(ctx, a.args); a.err != nil {
		return
	}
	var file string
	for i, h := range all {
		if slices.Contains(taken, i+1) {
			continue
		}
		if h.Head != file {
			a.turnedDown += h.Head
		}
		file = h.Head
		a.turnedDown += h.Body
	}
	a.turnedDown = r.Conceals.Text(a.turnedDown)
	a.note = tool.JoinNotes(a.note, fmt.Sprintf("of the %d hunks of this change the user took number %s; the others, shown in turned_down, were turned down and not made",
		len(all), strings.Trim(string(jsonx.Must(taken)), "[]")))
	r.judgeAgain(ctx, a)
}

// hunks are those of the change that the call would make, if it can be made in part.
func (a *admission) hunks() []display.Hunk {
	diff, ok := a.plan().Preview.(display.Diff)
	if !ok || a.plan().Hunks < 2 {
		return nil
	}
	all := display.Hunks(diff.Unified)
	if len(all) != a.plan().Hunks {
		return nil // nobody could tell which is which
	}
	return all
}

// judgeAgain hears what policy thinks of a call that the person changed with their
// yes: what is denied is, and what is asked about they have said yes to.
func (r *run) judgeAgain(ctx context.Context, a *admission) {
	opinion, err := r.Policy.Judge(ctx, a.policyCase())
	switch {
	case err != nil:
		a.err, a.by = &Denied{err.Error()}, event.ActorPolicy
	case opinion.Verdict == policy.Deny:
		a.opinion, a.err, a.by = opinion, &Denied{opinion.String()}, event.ActorPolicy
	default:
		a.opinion = opinion
	}
}

// answerTo is what the person says about a: on a card from before, or now.
func (r *run) answerTo(ctx context.Context, a *admission, after []chat.ToolCall) (uip.Response, error) {
	if g, ok := r.answers[a.call.ID]; ok && g.about.same(a) && (g.answer.Option != uip.Some || g.about.sameHunks(a)) {
		return g.answer, nil
	}
	card := []*admission{a}
	for _, c := range after {
		if next := r.admit(ctx, c); next.err == nil && next.opinion.Verdict == policy.Ask {
			card = append(card, next)
		}
	}
	if len(card) == 1 {
		return r.Person.Ask(ctx, r.question(a))
	}
	q := r.card(card)
	all, err := r.Person.Ask(ctx, q)
	if err != nil {
		return uip.Response{}, err
	}
	r.answers = make(map[string]cardAnswer)
	for i, next := range card {
		r.answers[next.call.ID] = cardAnswer{all.Part(q.Parts[i]), next}
	}
	return r.answers[a.call.ID].answer, nil
}

// same reports whether b is still the call that was shown as a.
func (a *admission) same(b *admission) bool {
	return a.tool == b.tool && reflect.DeepEqual(a.plan().Effects, b.plan().Effects) && a.opinion.String() == b.opinion.String()
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

// card puts several calls as one question with an answer for each, or one for
// all.
func (r *run) card(as []*admission) uip.Request {
	q := uip.Request{
		ID: r.NewID(), TaskID: r.Task, Author: r.Actor, Kind: uip.Composite, Purpose: uip.ConfirmRiskyAction,
		Display: uip.Display{Title: fmt.Sprintf("%d calls need approval", len(as)), Metadata: make(map[string]string)},
		Options: []uip.Option{{ID: uip.Approve, Label: "Yes to all, this once", Style: uip.Danger}},
	}
	what := make(map[policy.Scope][]string)
	note := func(s policy.Scope, text string) {
		if !slices.Contains(what[s], text) {
			what[s] = append(what[s], text)
		}
	}
	folders := false
	for i, a := range as {
		part := r.question(a)
		part.ID = fmt.Sprintf("%s.%d", q.ID, i+1)
		q.Parts = append(q.Parts, part)
		offers := r.offersFor(a)
		below := slices.ContainsFunc(offers, func(o policy.Offer) bool { return o.Scope == policy.BelowFolder })
		folders = folders || below
		for _, o := range offers {
			note(o.Scope, o.What)
			if o.Scope == policy.ThisSession && !below {
				note(policy.BelowFolder, o.What) // no folder, so as far as the session
			}
		}
	}
	for _, s := range scopes {
		if all := strings.Join(what[s], ", "); all != "" && (s != policy.BelowFolder || folders) {
			offer(&q, policy.Offer{Scope: s, What: all}, "Yes to all, and where it can be ")
		}
	}
	q.Options = append(q.Options, uip.Option{ID: uip.Reject, Label: "No to all", Style: uip.Plain, Default: true})
	return q
}

func (r *run) question(a *admission) uip.Request {
	q := uip.Request{
		ID: r.NewID(), TaskID: r.Task, Author: r.Actor,
		Kind: uip.Confirm, Purpose: uip.ConfirmRiskyAction,
		Display: uip.Display{
			Title:       strings.TrimSpace(a.tool + " " + a.plan().Title),
			Description: tool.JoinNotes(a.opinion.String(), r.Aside),
			Content:     a.plan().Preview,
			Metadata:    map[string]string{"toolCallId": a.call.ID, "toolName": a.tool},
		},
		Options: []uip.Option{{ID: uip.Approve, Label: "Yes, this once", Style: uip.Danger}},
		Digest:  a.digest(), Args: a.args,
	}
	if r.keyed(a) {
		q.Display.Metadata[uip.Keyed] = "true"
		q.Display.Description = tool.JoinNotes(q.Display.Description, keysAside)
	}
	if n := len(a.hunks()); n > 0 {
		q.Options = append(q.Options, uip.Option{ID: uip.Some, Label: fmt.Sprintf("Yes to some of the %d hunks, this once", n)})
		q.Display.Metadata[uip.Hunks] = strconv.Itoa(n)
	}
	for _, o := range r.offersFor(a) {
		offer(&q, o, "Yes, and ")
	}
	q.Options = append(q.Options, uip.Option{ID: uip.Reject, Label: "No", Style: uip.Plain, Default: true})
	return q
}

// keyed reports whether a call has keys in its arguments, which are not kept on disk.
func (r *run) keyed(a *admission) bool { return !bytes.Equal(r.Conceals.JSON(a.args), a.args) }

// keysAside is what a person is told who is asked about such a call.
const keysAside = "the keys in it are not kept on disk: it can only be approved while the program that asks is running, at a terminal or with --on-ask wait"

// digest tells the prepared call apart from every other: an answer given to it
// must not hold for one with other arguments, or that would do something else.
func (a *admission) digest() string {
	plan := a.plan()
	type effect struct { // by number, as questions that are still open have it
		Kind   tool.Kind
		Target string
	}
	var effects []effect
	for _, e := range plan.Effects {
		effects = append(effects, effect{e.Kind, e.Target})
	}
	sum := sha256.Sum256(jsonx.Must(struct {
		ID, Tool, Args, Title string
		Effects               []effect
		Confined              string
		Unconfined            bool
		Sends                 string
		Executable            []string `json:",omitempty"` // questions that are still open have none
	}{a.call.ID, a.tool, string(a.call.Args), plan.Title, effects, plan.Confined, plan.Unconfined, plan.Sends, plan.Executable}))
	return hex.EncodeToString(sum[:])
}

// scopes are how far an answer may reach, the nearest first.
var scopes = []policy.Scope{policy.ThisSession, policy.ThisProject, policy.BelowFolder}

// offer adds a way to say yes that is remembered. What is remembered also
// stands by itself, for whoever draws the question.
func offer(q *uip.Request, o policy.Offer, yes string) {
	label := map[policy.Scope]string{
		policy.ThisSession: "always in this session: ", policy.ThisProject: "always in this project: ", policy.BelowFolder: "always in this session: ",
	}[o.Scope]
	q.Options = append(q.Options, uip.Option{ID: string(o.Scope), Label: yes + label + o.What, Rules: o.Rules})
	q.Remember(string(o.Scope), o.What, o.Each)
}

// offersFor are the ways to say yes that are remembered, if there are any.
func (r *run) offersFor(a *admission) []policy.Offer {
	if !a.opinion.Waivable() || r.Memory == nil || r.keyed(a) || secret.Marked(a.args) {
		return nil
	}
	offers, err := r.Memory.Offers(a.policyCase())
	if err != nil {
		return nil
	}
	return offers
}

// asker lets a running call put questions of its own. They belong to the call.
func (r *run) asker(a *admission) uip.Interactor {
	return uip.Func(func(ctx context.Context, q uip.Request) (uip.Response, error) {
		q.ID, q.TaskID, q.Author, q.Digest = cmp.Or(q.ID, r.NewID()), r.Task, r.Actor, a.digest()
		for i := range q.Parts {
			q.Parts[i].ID = cmp.Or(q.Parts[i].ID, fmt.Sprintf("%s.%d", q.ID, i+1))
			q.Parts[i].TaskID, q.Parts[i].Author = r.Task, r.Actor
		}
		q = q.ForCall(a.call.ID)
		q.Display.Metadata["toolName"], q.Args = a.tool, a.args
		return r.Person.Ask(ctx, q)
	})
}

// refused puts a refusal into words for the model.
func refused(a uip.Response, o policy.Opinion) error {
	switch {
	case a.Unanswered():
		return &Denied{o.String() + ", and nobody is there to be asked"}
	case strings.TrimSpace(a.Comment) != "":
		return &Denied{"refused by the user: " + a.Comment}
	}
	return &Denied{"refused by the user"}
}
