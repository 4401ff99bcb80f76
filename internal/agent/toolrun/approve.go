package toolrun

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"coder/internal/core/clip"
	"coder/internal/core/display"
	"coder/internal/core/jsonx"
	"coder/internal/core/secret"
	"coder/internal/core/uip"
	"coder/internal/policy"
	"coder/internal/tool"
)

// prepareChanged prepares the call with the arguments that the user changed when approving it.
func (r *run) prepareChanged(ctx context.Context, a *admission, args json.RawMessage) bool {
	a.call.Args, a.call.Broken = args, ""
	if off := r.prepare(ctx, a); off {
		a.revoke(&DeniedError{"the changed call uses a tool that is switched off"})
	}
	a.note = tool.JoinNotes(a.note, "the user changed the arguments to "+clip.Truncate(string(args), 500))
	return a.err == nil
}

// prepareAccepted prepares the call with only those hunks of its change that the user accepted.
func (r *run) prepareAccepted(ctx context.Context, a *admission, answer uip.Response, args json.RawMessage) bool {
	all := a.hunks()
	taken, err := answer.Hunks(len(all))
	a.call.Args, a.call.Broken = args, ""
	if err == nil {
		a.prepared, err = a.prepared.PrepareChanged(ctx, a.call)
	}
	if err != nil {
		a.revoke(err)
		return false
	}
	var file string
	for i, h := range all {
		if slices.Contains(taken, i+1) {
			continue
		}
		if h.FileHeader != file {
			a.rejectedDiff += h.FileHeader
		}
		file = h.FileHeader
		a.rejectedDiff += h.Body
	}
	a.rejectedDiff = r.Concealer.Text(a.rejectedDiff)
	a.note = tool.JoinNotes(a.note,
		fmt.Sprintf("of the %d hunks of this change the user took number %s; the others, shown in turned_down, were turned down and not made",
			len(all), strings.Trim(string(jsonx.MustMarshal(taken)), "[]")))
	return true
}

// hunks returns the hunks of the call's change, or nil if it cannot be made in part.
func (a *admission) hunks() []display.Hunk {
	diff, _ := a.plan().Preview.(display.Diff)
	if a.plan().Hunks < 2 {
		return nil
	}
	all := display.SplitHunks(diff.Unified)
	if len(all) != a.plan().Hunks {
		return nil // the hunks cannot be numbered reliably
	}
	return all
}

// combinedQuestion combines several calls into one question with an answer for each, or one for all.
func (r *run) combinedQuestion(as []*admission) uip.Request {
	q := uip.Request{
		ID: r.NewID(), TaskID: r.Task, Author: r.Actor, Kind: uip.KindComposite, Purpose: uip.PurposeConfirmRiskyAction,
		Display: uip.Display{Title: fmt.Sprintf("%d calls need approval", len(as)), Metadata: make(map[string]string)},
		Options: []uip.Option{{ID: uip.OptionApprove, Label: "Yes to all, this once", Style: uip.StyleDanger}},
	}
	what := make(map[policy.Scope][]string)
	note := func(s policy.Scope, text string) {
		if !slices.Contains(what[s], text) {
			what[s] = append(what[s], text)
		}
	}
	folders := false
	for i, a := range as {
		part := r.callQuestion(a)
		part.ID = fmt.Sprintf("%s.%d", q.ID, i+1)
		q.Parts = append(q.Parts, part)
		offers := r.rememberOffers(a)
		below := slices.ContainsFunc(offers, func(o policy.Offer) bool { return o.Scope == policy.BelowFolder })
		folders = folders || below
		for _, o := range offers {
			note(o.Scope, o.What)
			if o.Scope == policy.ThisSession && !below {
				note(policy.BelowFolder, o.What) // no folder: offer the session
			}
		}
	}
	for _, s := range scopes {
		if all := strings.Join(what[s], ", "); all != "" && (s != policy.BelowFolder || folders) {
			addOffer(&q, policy.Offer{Scope: s, What: all}, "Yes to all, and where it can be ")
		}
	}
	q.Options = append(q.Options, uip.Option{ID: uip.OptionReject, Label: "No to all", Style: uip.StylePlain,
		Default: true})
	return q
}

func (r *run) callQuestion(a *admission) uip.Request {
	q := uip.Request{
		ID: r.NewID(), TaskID: r.Task, Author: r.Actor,
		Kind: uip.KindConfirm, Purpose: uip.PurposeConfirmRiskyAction,
		Display: uip.Display{
			Title:       strings.TrimSpace(a.tool + " " + a.plan().Title),
			Description: tool.JoinNotes(a.opinion.String(), r.ApprovalNote),
			Content:     a.plan().Preview,
			Metadata:    map[string]string{"toolCallId": a.call.ID, "toolName": a.tool},
		},
		Options: []uip.Option{{ID: uip.OptionApprove, Label: "Yes, this once", Style: uip.StyleDanger}},
		Digest:  a.prepared.Digest(), Args: a.prepared.Args(),
	}
	if r.hasKeys(a) {
		q.Display.Metadata[uip.MetaHasKeys] = "true"
		q.Display.Description = tool.JoinNotes(q.Display.Description, keysNote)
	}
	if n := len(a.hunks()); n > 0 {
		q.Options = append(q.Options, uip.Option{ID: uip.OptionSome,
			Label: fmt.Sprintf("Yes to some of the %d hunks, this once", n)})
		q.Display.Metadata[uip.MetaHunks] = strconv.Itoa(n)
	}
	for _, o := range r.rememberOffers(a) {
		addOffer(&q, o, "Yes, and ")
	}
	q.Options = append(q.Options, uip.Option{ID: uip.OptionReject, Label: "No", Style: uip.StylePlain, Default: true})
	return q
}

// hasKeys reports whether a call has keys in its arguments, which are not saved on disk.
func (r *run) hasKeys(a *admission) bool {
	return !bytes.Equal(r.Concealer.JSON(a.prepared.Args()), a.prepared.Args())
}

// keysNote is shown in the approval of such a call.
const keysNote = "the keys in it are not saved on disk: approve it while the program that asks is running, in a terminal or with --on-ask wait"

// scopes are the possible scopes of an answer, in the order of their display.
var scopes = []policy.Scope{policy.ThisSession, policy.ThisProject, policy.BelowFolder}

// addOffer adds a yes that is remembered. The remembered text is also available separately, for renderers.
func addOffer(q *uip.Request, o policy.Offer, yes string) {
	label := map[policy.Scope]string{
		policy.ThisSession: "always in this session: ", policy.ThisProject: "always in this project: ",
		policy.BelowFolder: "always in this session: ",
	}[o.Scope]
	q.Options = append(q.Options, uip.Option{ID: string(o.Scope), Label: yes + label + o.What, Rules: o.Rules})
	q.SetRemembered(string(o.Scope), o.What, o.Each)
}

// rememberOffers returns the possible remembered answers, if any.
func (r *run) rememberOffers(a *admission) []policy.Offer {
	if !a.opinion.IsWaivable() || r.Approvals == nil || r.hasKeys(a) || secret.HasMask(a.prepared.Args()) {
		return nil
	}
	offers, err := r.Approvals.Offers(a.policyCase())
	if err != nil {
		return nil
	}
	return offers
}

// callInteractor lets a running call ask questions. They belong to the call.
func (r *run) callInteractor(a *admission) uip.Interactor {
	return uip.InteractorFunc(func(ctx context.Context, q uip.Request) (uip.Response, error) {
		q.ID, q.TaskID, q.Author, q.Digest = cmp.Or(q.ID, r.NewID()), r.Task, r.Actor, a.prepared.Digest()
		for i := range q.Parts {
			q.Parts[i].ID = cmp.Or(q.Parts[i].ID, fmt.Sprintf("%s.%d", q.ID, i+1))
			q.Parts[i].TaskID, q.Parts[i].Author = r.Task, r.Actor
		}
		q = q.BindToCall(a.call.ID)
		q.Display.Metadata["toolName"], q.Args = a.tool, a.prepared.Args()
		return r.User.Ask(ctx, q)
	})
}

// notAcceptedPrefix begins the model's error for an answer that does not count.
const notAcceptedPrefix = "the answer was not accepted: "

// refusalError explains to the model why an answer does not approve its call.
func refusalError(a uip.Response, o policy.Opinion, why error) error {
	switch {
	case a.IsUnanswered():
		return &DeniedError{o.String() + ", and no user can answer"}
	case a.Option != uip.OptionReject:
		return &DeniedError{notAcceptedPrefix + why.Error()}
	case strings.TrimSpace(a.Comment) != "":
		return &DeniedError{"refused by the user: " + a.Comment}
	}
	return &DeniedError{"refused by the user"}
}
