package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"coder/internal/chat"
	"coder/internal/compact"
	"coder/internal/event"
	tokens "coder/internal/prompt"
	"coder/internal/provider"
)

// Compaction says when and how a long conversation is made shorter.
type Compaction struct {
	Auto, Prune bool
	Threshold   float64
	Recent      int
}

func (o *Orchestrator) limits(st *turnState, force bool) compact.Limits {
	c := st.set.Compaction
	return compact.Limits{Tokens: st.set.ContextLimit, Threshold: c.Threshold, Recent: c.Recent, Force: force}
}

// fit makes the conversation shorter before it would no longer fit. What
// cannot be made shorter is sent as it is: the provider has the last word.
func (o *Orchestrator) fit(ctx context.Context, st *turnState) error {
	if !st.set.Compaction.Auto || st.unfit || o.Child != nil {
		return nil
	}
	limits := o.limits(st, false)
	if !limits.Due(o.contextUsed(st.set)) {
		return nil
	}
	if st.set.Compaction.Prune {
		if done, err := o.prune(ctx, st, limits); done || err != nil {
			return err
		}
	}
	_, err := o.summarise(ctx, st, limits, "", true)
	if isHopeless(err) {
		st.unfit = true
		return nil
	}
	return err
}

// isHopeless reports whether compaction found nothing to gain.
func isHopeless(err error) bool {
	return errors.Is(err, compact.ErrTooShort) || errors.Is(err, compact.ErrNoGain)
}

// prune drops what is dull of old tool output, and reports whether that is
// enough.
func (o *Orchestrator) prune(ctx context.Context, st *turnState, limits compact.Limits) (bool, error) {
	view := o.Talk.View()
	recent := min(max(limits.Recent, 1), len(view))
	pruned, saved := compact.Prune(view, recent)
	if saved == 0 {
		return false, nil
	}
	before := o.contextUsed(st.set)
	after := before - (count(view) - count(pruned))
	if limits.Due(after) {
		return false, nil
	}
	return true, o.replace(ctx, st, event.ContextReplaced{
		Reason: event.Compacted, Messages: pruned[:len(pruned)-recent], Keep: recent, TokensBefore: before, TokensAfter: after,
	})
}

func count(ms []chat.Message) (n int) {
	for _, m := range ms {
		n += tokens.MessageTokens(m)
	}
	return n
}

// worthwhile is how many tokens the old part must have for a summary to help.
const worthwhile = 200

// summarise lets a summary stand for the old part of the conversation. If it
// is urgent and the model cannot write one, one is made by rule; if it is not,
// everything stays as it is.
func (o *Orchestrator) summarise(ctx context.Context, st *turnState, limits compact.Limits, focus string, urgent bool) (string, error) {
	plan, err := compact.Cut(o.Talk.View(), limits, tokens.MessageTokens)
	if err != nil {
		return "", err
	}
	if urgent && count(plan.Old) < worthwhile {
		return "", compact.ErrNoGain
	}
	before := o.contextUsed(st.set)
	text, err := o.askForSummary(ctx, st, plan.Old, focus, limits.Room())
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil && !urgent:
		return "", fmt.Errorf("the conversation stays as it is, since it could not be summarised: %w", err)
	case err != nil:
		text = compact.Fallback(plan.Old)
		if err := o.emit(ctx, st, ActorAgent, event.Notice{Level: event.Warn, Text: "the model could not summarise the conversation, so it was shortened by rule"}); err != nil {
			return "", err
		}
	}
	keep := compact.Collect(plan.Old)
	if o.Todos != nil {
		keep.Todos = o.Todos()
	}
	m := compact.Message(text, keep, limits.Room())
	if _, err := plan.With(m, tokens.MessageTokens); err != nil && urgent {
		return "", err
	}
	stand := append([]chat.Message{m}, compact.Skills(plan.Old)...)
	after := max(before-count(plan.Old)+count(stand), 0)
	return text, o.replace(ctx, st, event.ContextReplaced{
		Reason: event.Compacted, Messages: stand, Keep: len(plan.Kept), TokensBefore: before, TokensAfter: after,
	})
}

// askForSummary has the model write the summary. It sees no tools and nothing
// of it is shown as an answer.
func (o *Orchestrator) askForSummary(ctx context.Context, st *turnState, old []chat.Message, focus string, room int) (string, error) {
	req := provider.Request{Model: st.set.Model, System: compact.SummarySystem, Messages: compact.SummaryPrompt(old, focus, room)}
	reply, err := provider.Collect(o.Provider.Stream(ctx, req), func(d provider.Delta) error {
		if r, ok := d.(provider.Restart); ok {
			return o.show(ctx, st, r)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	if text := reply.Message.Text(); text != "" {
		return text, nil
	}
	return "", errEmptyReply(reply.Stop)
}

// replace puts a shorter conversation on record.
func (o *Orchestrator) replace(ctx context.Context, st *turnState, e event.ContextReplaced) error {
	return errors.Join(o.emit(ctx, st, ActorAgent, e), o.tellUsage(ctx, st))
}

// retryShorter answers a provider that found the conversation too long: once a
// turn it is made shorter and sent again.
func (o *Orchestrator) retryShorter(ctx context.Context, st *turnState, tooLong error) error {
	if st.shortened || o.Child != nil {
		return fmt.Errorf("ask the model: %w", tooLong)
	}
	st.shortened = true
	limits := o.limits(st, true)
	if _, err := o.summarise(ctx, st, limits, "", true); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errors.Join(fmt.Errorf("ask the model: %w", tooLong), err)
	}
	return o.chatStep(ctx, st)
}

// compactNow makes the conversation shorter because the person said so, with
// an eye to focus if that is not empty.
func (o *Orchestrator) compactNow(ctx context.Context, st *turnState, focus string) (string, error) {
	if st.set.Model == "" && st.tools == nil {
		o.settle(st)
	}
	text, err := o.summarise(ctx, st, o.limits(st, true), focus, false)
	if errors.Is(err, compact.ErrTooShort) {
		return "", &CommandError{err.Error()}
	}
	return text, err
}

// compactUndo brings back what the last compaction hid.
func (o *Orchestrator) compactUndo(ctx context.Context, st *turnState) (string, error) {
	hidden, ok := o.Talk.Replaced()
	if !ok {
		return "", &CommandError{"nothing was compacted, so nothing can be brought back"}
	}
	if st.set.Model == "" && st.tools == nil {
		o.settle(st)
	}
	err := errors.Join(o.emit(ctx, st, ActorUser, event.ContextRestored{Messages: hidden}), o.tellUsage(ctx, st))
	return fmt.Sprintf("%d messages are back", hidden), err
}
