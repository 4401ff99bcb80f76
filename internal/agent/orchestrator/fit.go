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
	"coder/internal/core/message"
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
	maxSummariesPerTurn = 4    // by the model in one turn; after that, rules shorten the conversation
	maxTooLongPerTurn   = 3    // of requests as too long, in one turn
	maxRequestShare     = 0.94 // of the window: the most for a request
	relaxedShare        = 0.7  // of the threshold: the most after a rule-based shortening, so that it lasts
	minMessageShare     = 0.1  // of the window: the least space for messages that is worth saving
)

// windowTokens returns how many tokens a request in this turn may have; 0 if unknown.
func (o *Orchestrator) windowTokens(set Settings) int {
	return o.gauge.forModel(set.Model).maxRequestTokens(set.ContextLimit)
}

func (o *Orchestrator) compactLimits(st *turnState, force bool) compact.Limits {
	c := st.settings.Compaction
	return compact.Limits{Tokens: o.windowTokens(st.settings), Threshold: c.Threshold, Recent: c.Recent, Force: force}
}

// fixedTokens returns how many tokens every request in this turn has before the first message.
func (o *Orchestrator) fixedTokens(st *turnState) int {
	return int(o.gauge.effectiveScale() * float64(st.fixed))
}

// fitWindow makes sure before every request that it fits into the window: it prunes old output, moves
// large results to files, asks the model for a summary, and shortens by rule what is still too long.
func (o *Orchestrator) fitWindow(ctx context.Context, st *turnState) error {
	window := o.windowTokens(st.settings)
	if window > 0 && o.fixedTokens(st) > window {
		return o.windowTooSmall(st)
	}
	if !st.settings.Compaction.Auto || window == 0 {
		return nil
	}
	limits := o.compactLimits(st, false)
	due := func() bool { return limits.IsExceeded(o.contextTokens(st.settings.Model, st.fixed)) }
	if !due() {
		return nil
	}
	if st.settings.Compaction.Prune {
		if done, err := o.prune(ctx, st, limits); done || err != nil {
			return err
		}
		if err := o.squeeze(ctx, st, limits, true); err != nil || !due() {
			return err
		}
	}
	if st.summaries < maxSummariesPerTurn {
		st.summaries++
		if _, err := o.summarize(ctx, st, limits, "", true); err != nil && !isNothingToSave(err) {
			return err
		}
	}
	if !due() {
		return nil
	}
	return o.squeeze(ctx, st, limits, false)
}

// isNothingToSave reports whether compaction found nothing to save.
func isNothingToSave(err error) bool {
	return errors.Is(err, compact.ErrTooShort) || errors.Is(err, compact.ErrNoGain)
}

// prune drops unimportant parts of old tool output, and reports whether that is enough.
func (o *Orchestrator) prune(ctx context.Context, st *turnState, limits compact.Limits) (bool, error) {
	view := o.Conversation.View()
	recent := min(max(limits.Recent, 1), len(view))
	pruned, saved := compact.Prune(view, recent)
	if saved == 0 {
		return false, nil
	}
	before := o.contextTokens(st.settings.Model, st.fixed)
	if limits.IsExceeded(o.fixedTokens(st) + o.countTokens(pruned)) {
		return false, nil
	}
	return true, o.recordReplacement(ctx, st, event.ContextReplaced{
		Reason: event.ReplaceCompacted, Messages: pruned[:len(pruned)-recent], Keep: recent, TokensBefore: before,
		Description: "old output was pruned",
	})
}

// squeeze shortens the conversation by rule: only large results, or as much as necessary.
func (o *Orchestrator) squeeze(ctx context.Context, st *turnState, limits compact.Limits, large bool) error {
	view, window, fixed := o.Conversation.View(), float64(limits.Tokens), float64(o.fixedTokens(st))
	budget := relaxedShare*limits.MaxTokens() - fixed
	if budget < minMessageShare*window {
		budget = max(maxRequestShare*window-fixed, 0)
	}
	short := compact.Squeeze(view, int(budget), o.gauge.count, o.archive(ctx), large)
	if short.Shortened == 0 && short.Dropped == 0 {
		return nil
	}
	before := o.contextTokens(st.settings.Model, st.fixed)
	done := fmt.Sprintf(display.Plural(short.Shortened, "%d long part was shortened", "%d long parts were shortened"),
		short.Shortened)
	if short.Dropped > 0 {
		done += "; " + fmt.Sprintf(display.Plural(short.Dropped, "%d message replaced by a list made by rule",
			"%d messages replaced by a list made by rule"), short.Dropped)
	}
	return o.recordReplacement(ctx, st, event.ContextReplaced{
		Reason: event.ReplaceCompacted, Messages: short.Messages[:len(short.Messages)-short.Unchanged], Keep: short.Unchanged,
		TokensBefore: before, Description: done,
	})
}

// archive saves shortened results where the model can read them.
func (o *Orchestrator) archive(ctx context.Context) compact.Archiver {
	if o.SaveResult == nil {
		return nil
	}
	return func(r chat.ToolResult) string {
		path, err := o.SaveResult(ctx, r.CallID, compact.FullText(r.Text))
		if err != nil {
			return "" // the model can call the tool again
		}
		return path
	}
}

// minResultTokens is the minimum number of tokens shown of a result.
const minResultTokens = 200

// fitResult shortens a result that does not fit into the rest of the window, and saves the whole.
func (o *Orchestrator) fitResult(ctx context.Context, st *turnState, r chat.ToolResult) chat.ToolResult {
	window := o.windowTokens(st.settings)
	if window == 0 {
		return r
	}
	size := o.gauge.count(chat.ToolMessage(r))
	left := int(maxRequestShare*float64(window)) - max(o.contextTokens(st.settings.Model, st.fixed), o.fixedTokens(st))
	if most := int(maxRequestShare*float64(window)) - o.fixedTokens(st); size <= left || size <= most/4 {
		return r // it fits, or is too small to matter
	}
	room := max(left/2, (int(maxRequestShare*float64(window))-o.fixedTokens(st))/4, minResultTokens)
	r.Text = compact.ShortenResult(r, len(r.Text)*room/max(size, 1), o.archive(ctx))
	return r
}

func (o *Orchestrator) countTokens(ms []chat.Message) (n int) {
	for _, m := range ms {
		n += tokens.EstimateMessageTokens(m)
	}
	return int(o.gauge.effectiveScale() * float64(n))
}

// minSummarizedTokens is how many tokens the old part needs for a summary to help.
const minSummarizedTokens = 200

// summarize replaces the old part of the conversation by a summary. If it is urgent and
// the model cannot write one, a rule makes one; otherwise everything stays unchanged.
func (o *Orchestrator) summarize(ctx context.Context, st *turnState, limits compact.Limits, focus string,
	urgent bool) (string, error) {
	plan, err := compact.NewPlan(o.Conversation.View(), limits, o.gauge.count)
	if err != nil {
		return "", err
	}
	if urgent && o.countTokens(plan.Summarized) < minSummarizedTokens {
		return "", compact.ErrNoGain
	}
	trigger := "manual"
	if urgent {
		trigger = "auto"
	}
	switch refused, err := o.runCompactHooks(ctx, st, trigger, focus); {
	case err != nil:
		return "", err
	case refused != "" && !urgent:
		return "", &CommandError{"a hook refused to compact the conversation: " + refused}
	case refused != "":
		return "", cmp.Or(o.warn(ctx, st, "a hook refused to compact the conversation: "+refused), compact.ErrNoGain)
	}
	before := o.contextTokens(st.settings.Model, st.fixed)
	text, err := o.requestSummary(ctx, st, plan.Summarized, focus, limits.SummaryTokens())
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil && !urgent:
		return "", message.Errorf("the conversation is unchanged, since it could not be summarized: %w", err)
	case err != nil:
		text = compact.FallbackSummary(plan.Summarized)
		if err := o.warn(ctx, st,
			"the model could not summarize the conversation, so coder shortened it by rule"); err != nil {
			return "", err
		}
	}
	keep := compact.CollectCarryover(plan.Summarized)
	if o.Todos != nil {
		keep.Todos = o.Todos()
	}
	m := compact.NewMessage(text, keep, limits.SummaryTokens())
	if _, err := plan.Apply(m, o.gauge.count); err != nil && urgent {
		return "", err
	}
	stand := append([]chat.Message{m}, compact.SkillMessages(plan.Summarized)...)
	return text, o.recordReplacement(ctx, st, event.ContextReplaced{
		Reason: event.ReplaceCompacted, Messages: stand, Keep: len(plan.Kept), TokensBefore: before,
		Description: fmt.Sprintf(display.Plural(len(plan.Summarized), "%d message replaced by a summary",
			"%d messages replaced by a summary"), len(plan.Summarized)),
	})
}

// requestSummary has the model write the summary. The request
// has no tools, and the summary is not shown as an answer.
func (o *Orchestrator) requestSummary(ctx context.Context, st *turnState, old []chat.Message, focus string,
	room int) (string, error) {
	if err := o.emit(ctx, st, ActorAgent, event.Waiting{Reason: event.WaitSummary}); err != nil {
		return "", err
	}
	req := provider.Request{Model: st.settings.Model, System: compact.SummarySystem,
		Messages: compact.SummaryPrompt(old, focus, room)}
	reply, err := provider.Collect(o.Provider.Stream(ctx, req), func(d provider.Delta) error {
		switch d := d.(type) {
		case provider.Waiting:
			if !d.Loading {
				return o.emit(ctx, st, ActorAgent, event.Waiting{Reason: event.WaitSummary, Waited: d.Elapsed,
					ReadTokens: d.ReadTokens, TotalTokens: d.TotalTokens})
			}
			return o.showDelta(ctx, st, d)
		case provider.Restart, provider.Spent, provider.Window:
			return o.showDelta(ctx, st, d)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	if reply.Usage != nil {
		spent := event.Spent{Model: cmp.Or(reply.Model, st.settings.Model), Usage: *reply.Usage,
			Reason: event.UsageForSummary}
		if err := o.emit(ctx, st, ActorAgent, spent); err != nil {
			return "", err
		}
	}
	if text := reply.Message.Text(); text != "" {
		return text, nil
	}
	return "", newEmptyReplyError(reply.Stop)
}

// recordReplacement records a shorter conversation. It still says which mode applies.
func (o *Orchestrator) recordReplacement(ctx context.Context, st *turnState, e event.ContextReplaced) error {
	view := o.Conversation.View()
	kept := view[len(view)-min(e.Keep, len(view)):]
	stays := slices.Concat(e.Messages, kept)
	tells := func(m chat.Message) bool { return strings.Contains(m.Text(), st.settings.ModeText) }
	if len(e.Messages) > 0 && e.Messages[0].Role == chat.User && slices.ContainsFunc(view, tells) &&
		!slices.ContainsFunc(stays, tells) {
		first := e.Messages[0]
		first.Parts = append(slices.Clone(first.Parts), chat.Text("\n\n"+joinReminders("", st.settings.ModeText)))
		e.Messages = append([]chat.Message{first}, e.Messages[1:]...)
	}
	e.Window = st.window
	e.TokensAfter = o.fixedTokens(st) + o.countTokens(slices.Concat(e.Messages, kept)) // the current description of it
	return errors.Join(o.emit(ctx, st, ActorAgent, e), o.reportUsage(ctx, st))
}

// retryShorter handles a provider that found the conversation too long: it learns the limit,
// shortens the conversation to fit, and sends it again. sent is the size of the rejected
// request in tokens, by coder's own count: the tools' descriptions may have changed since.
func (o *Orchestrator) retryShorter(ctx context.Context, st *turnState, sent int, tooLong error) error {
	size := func() int { return o.fixedTokens(st) + o.countTokens(o.Conversation.View()) }
	before := int(o.gauge.effectiveScale() * float64(sent))
	if st.refusals++; st.refusals > maxTooLongPerTurn {
		return newModelError(tooLong)
	}
	window := 0
	if e, ok := errors.AsType[*provider.Error](tooLong); ok {
		window = e.Window
	}
	st.window = window
	o.gauge.learnRefusal(max(o.contextTokens(st.settings.Model, st.fixed), before), window)
	o.refreshToolSpecs(st)
	limits := o.compactLimits(st, true)
	_, err := o.summarize(ctx, st, limits, "", true)
	if isNothingToSave(err) || err == nil && limits.IsExceeded(size()) {
		err = o.squeeze(ctx, st, limits, false)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return errors.Join(newModelError(tooLong), err)
	case size() >= before && o.fixedTokens(st) > o.countTokens(o.Conversation.View()):
		return &modelError{message.Errorf("%w; the server says: %w", o.windowTooSmall(st), tooLong), tooLong}
	case size() >= before:
		return newModelError(tooLong) // it would be rejected again
	}
	return o.chatStep(ctx, st)
}
