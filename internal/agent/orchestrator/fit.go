package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"coder/internal/agent/compact"
	tokens "coder/internal/agent/prompt"
	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/model/provider"
)

// Compaction says when and how to shorten a long conversation.
type Compaction struct {
	Auto, Prune bool
	Threshold   float64
	Recent      int
}

// Limits on shortening a conversation.
const (
	maxSummaries = 4    // by the model in one turn; after that, rules shorten the conversation
	maxRefusals  = 3    // of requests as too long, in one turn
	fullShare    = 0.94 // of the window: the most for a request
	calmShare    = 0.7  // of the threshold: the most after a rule-based shortening, so that it lasts
	leastShare   = 0.1  // of the window: the least space for messages that is worth saving
)

// window returns how many tokens a request in this turn may have; 0 if unknown.
func (o *Orchestrator) window(set Settings) int {
	return o.gauge.of(set.Model).window(set.ContextLimit)
}

func (o *Orchestrator) limits(st *turnState, force bool) compact.Limits {
	c := st.set.Compaction
	return compact.Limits{Tokens: o.window(st.set), Threshold: c.Threshold, Recent: c.Recent, Force: force}
}

// fixed returns how many tokens every request in this turn has before the first message.
func (o *Orchestrator) fixed(st *turnState) int {
	return int(o.gauge.factor() * float64(st.fixed))
}

// fit makes sure before every request that it fits into the window: it prunes old output, moves
// large results to files, asks the model for a summary, and shortens by rule what is still too long.
func (o *Orchestrator) fit(ctx context.Context, st *turnState) error {
	window := o.window(st.set)
	if window > 0 && o.fixed(st) > window {
		return o.noRoom(st)
	}
	if !st.set.Compaction.Auto || window == 0 {
		return nil
	}
	limits := o.limits(st, false)
	due := func() bool { return limits.Due(o.contextUsed(st.set.Model, st.fixed)) }
	if !due() {
		return nil
	}
	if st.set.Compaction.Prune {
		if done, err := o.prune(ctx, st, limits); done || err != nil {
			return err
		}
		if err := o.squeeze(ctx, st, limits, true); err != nil || !due() {
			return err
		}
	}
	if st.summaries < maxSummaries {
		st.summaries++
		if _, err := o.summarise(ctx, st, limits, "", true); err != nil && !isHopeless(err) {
			return err
		}
	}
	if !due() {
		return nil
	}
	return o.squeeze(ctx, st, limits, false)
}

// isHopeless reports whether compaction found nothing to save.
func isHopeless(err error) bool {
	return errors.Is(err, compact.ErrTooShort) || errors.Is(err, compact.ErrNoGain)
}

// prune drops unimportant parts of old tool output, and reports whether that is enough.
func (o *Orchestrator) prune(ctx context.Context, st *turnState, limits compact.Limits) (bool, error) {
	view := o.Talk.View()
	recent := min(max(limits.Recent, 1), len(view))
	pruned, saved := compact.Prune(view, recent)
	if saved == 0 {
		return false, nil
	}
	before := o.contextUsed(st.set.Model, st.fixed)
	if limits.Due(o.fixed(st) + o.count(pruned)) {
		return false, nil
	}
	return true, o.replace(ctx, st, event.ContextReplaced{
		Reason: event.Compacted, Messages: pruned[:len(pruned)-recent], Keep: recent, TokensBefore: before,
		Done: "old output was pruned",
	})
}

// squeeze shortens the conversation by rule: only large results, or as much as necessary.
func (o *Orchestrator) squeeze(ctx context.Context, st *turnState, limits compact.Limits, large bool) error {
	view, window, fixed := o.Talk.View(), float64(limits.Tokens), float64(o.fixed(st))
	budget := calmShare*limits.Allowed() - fixed
	if budget < leastShare*window {
		budget = max(fullShare*window-fixed, 0)
	}
	short := compact.Squeeze(view, int(budget), o.gauge.count, o.archive(ctx), large)
	if short.Shortened == 0 && short.Dropped == 0 {
		return nil
	}
	before := o.contextUsed(st.set.Model, st.fixed)
	done := fmt.Sprintf(display.Form(short.Shortened, "%d long part was shortened", "%d long parts were shortened"), short.Shortened)
	if short.Dropped > 0 {
		done += "; " + fmt.Sprintf(display.Form(short.Dropped, "%d message replaced by a list made by rule", "%d messages replaced by a list made by rule"), short.Dropped)
	}
	return o.replace(ctx, st, event.ContextReplaced{
		Reason: event.Compacted, Messages: short.Messages[:len(short.Messages)-short.Keep], Keep: short.Keep,
		TokensBefore: before, Done: done,
	})
}

// archive saves shortened results where the model can read them.
func (o *Orchestrator) archive(ctx context.Context) compact.Archive {
	if o.PutAside == nil {
		return nil
	}
	return func(r chat.ToolResult) string {
		path, err := o.PutAside(ctx, r.CallID, compact.Whole(r.Text))
		if err != nil {
			return "" // the model can call the tool again
		}
		return path
	}
}

// leastResult is the minimum number of tokens shown of a result.
const leastResult = 200

// inRoom shortens a result that does not fit into the rest of the window, and saves the whole.
func (o *Orchestrator) inRoom(ctx context.Context, st *turnState, r chat.ToolResult) chat.ToolResult {
	window := o.window(st.set)
	if window == 0 {
		return r
	}
	size := o.gauge.count(chat.Answer(r))
	left := int(fullShare*float64(window)) - max(o.contextUsed(st.set.Model, st.fixed), o.fixed(st))
	if most := int(fullShare*float64(window)) - o.fixed(st); size <= left || size <= most/4 {
		return r // it fits, or is too small to matter
	}
	room := max(left/2, (int(fullShare*float64(window))-o.fixed(st))/4, leastResult)
	r.Text = compact.ShortResult(r, len(r.Text)*room/max(size, 1), o.archive(ctx))
	return r
}

func (o *Orchestrator) count(ms []chat.Message) (n int) {
	for _, m := range ms {
		n += tokens.MessageTokens(m)
	}
	return int(o.gauge.factor() * float64(n))
}

// worthwhile is how many tokens the old part needs for a summary to help.
const worthwhile = 200

// summarise replaces the old part of the conversation by a summary. If it is urgent and
// the model cannot write one, a rule makes one; otherwise everything stays unchanged.
func (o *Orchestrator) summarise(ctx context.Context, st *turnState, limits compact.Limits, focus string, urgent bool) (string, error) {
	plan, err := compact.Cut(o.Talk.View(), limits, o.gauge.count)
	if err != nil {
		return "", err
	}
	if urgent && o.count(plan.Old) < worthwhile {
		return "", compact.ErrNoGain
	}
	trigger := "manual"
	if urgent {
		trigger = "auto"
	}
	switch refused, err := o.hookCompact(ctx, st, trigger, focus); {
	case err != nil:
		return "", err
	case refused != "" && !urgent:
		return "", &CommandError{"a hook refused to compact the conversation: " + refused}
	case refused != "":
		return "", cmp.Or(o.warn(ctx, st, "a hook refused to compact the conversation: "+refused), compact.ErrNoGain)
	}
	before := o.contextUsed(st.set.Model, st.fixed)
	text, err := o.askForSummary(ctx, st, plan.Old, focus, limits.Room())
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil && !urgent:
		return "", fmt.Errorf("the conversation is unchanged, since it could not be summarized: %w", err)
	case err != nil:
		text = compact.Fallback(plan.Old)
		if err := o.warn(ctx, st, "the model could not summarize the conversation, so coder shortened it by rule"); err != nil {
			return "", err
		}
	}
	keep := compact.Collect(plan.Old)
	if o.Todos != nil {
		keep.Todos = o.Todos()
	}
	m := compact.Message(text, keep, limits.Room())
	if _, err := plan.With(m, o.gauge.count); err != nil && urgent {
		return "", err
	}
	stand := append([]chat.Message{m}, compact.Skills(plan.Old)...)
	return text, o.replace(ctx, st, event.ContextReplaced{
		Reason: event.Compacted, Messages: stand, Keep: len(plan.Kept), TokensBefore: before,
		Done: fmt.Sprintf(display.Form(len(plan.Old), "%d message replaced by a summary", "%d messages replaced by a summary"), len(plan.Old)),
	})
}

// askForSummary has the model write the summary. The request
// has no tools, and the summary is not shown as an answer.
func (o *Orchestrator) askForSummary(ctx context.Context, st *turnState, old []chat.Message, focus string, room int) (string, error) {
	if err := o.emit(ctx, st, ActorAgent, event.Waiting{Why: event.WaitSummary}); err != nil {
		return "", err
	}
	req := provider.Request{Model: st.set.Model, System: compact.SummarySystem, Messages: compact.SummaryPrompt(old, focus, room)}
	reply, err := provider.Collect(o.Provider.Stream(ctx, req), func(d provider.Delta) error {
		switch d := d.(type) {
		case provider.Waiting:
			if !d.Loading {
				return o.emit(ctx, st, ActorAgent, event.Waiting{Why: event.WaitSummary, Waited: d.Waited, Read: d.Read, Of: d.Of})
			}
			return o.show(ctx, st, d)
		case provider.Restart, provider.Spent, provider.Window:
			return o.show(ctx, st, d)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	if reply.Usage != nil {
		spent := event.Spent{Model: cmp.Or(reply.Model, st.set.Model), Usage: *reply.Usage, For: event.ForSummary}
		if err := o.emit(ctx, st, ActorAgent, spent); err != nil {
			return "", err
		}
	}
	if text := reply.Message.Text(); text != "" {
		return text, nil
	}
	return "", errEmptyReply(reply.Stop)
}

// replace records a shorter conversation. It still says which mode applies.
func (o *Orchestrator) replace(ctx context.Context, st *turnState, e event.ContextReplaced) error {
	view := o.Talk.View()
	kept := view[len(view)-min(e.Keep, len(view)):]
	stays := slices.Concat(e.Messages, kept)
	tells := func(m chat.Message) bool { return strings.Contains(m.Text(), st.set.ModeText) }
	if len(e.Messages) > 0 && e.Messages[0].Role == chat.User && slices.ContainsFunc(view, tells) && !slices.ContainsFunc(stays, tells) {
		first := e.Messages[0]
		first.Parts = append(slices.Clone(first.Parts), chat.Text("\n\n"+joinReminders("", st.set.ModeText)))
		e.Messages = append([]chat.Message{first}, e.Messages[1:]...)
	}
	e.Window = st.window
	e.TokensAfter = o.fixed(st) + o.count(slices.Concat(e.Messages, kept)) // the current description of it
	return errors.Join(o.emit(ctx, st, ActorAgent, e), o.tellUsage(ctx, st))
}

// retryShorter handles a provider that found the conversation too long: it learns the limit,
// shortens the conversation to fit, and sends it again. sent is the size of the rejected
// request in tokens, by coder's own count: the tools' descriptions may have changed since.
func (o *Orchestrator) retryShorter(ctx context.Context, st *turnState, sent int, tooLong error) error {
	size := func() int { return o.fixed(st) + o.count(o.Talk.View()) }
	before := int(o.gauge.factor() * float64(sent))
	if st.refusals++; st.refusals > maxRefusals {
		return notAnswered(tooLong)
	}
	window := 0
	if e, ok := errors.AsType[*provider.Error](tooLong); ok {
		window = e.Window
	}
	st.window = window
	o.gauge.refused(max(o.contextUsed(st.set.Model, st.fixed), before), window)
	o.retell(st)
	limits := o.limits(st, true)
	_, err := o.summarise(ctx, st, limits, "", true)
	if isHopeless(err) || err == nil && limits.Due(size()) {
		err = o.squeeze(ctx, st, limits, false)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return errors.Join(notAnswered(tooLong), err)
	case size() >= before && o.fixed(st) > o.count(o.Talk.View()):
		return &askError{fmt.Errorf("%w; the server says: %w", o.noRoom(st), tooLong), tooLong}
	case size() >= before:
		return notAnswered(tooLong) // it would be rejected again
	}
	return o.chatStep(ctx, st)
}
