package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	tokens "coder/internal/agent/prompt"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/model/provider"
)

// chatStep sends the conversation and processes one reply.
func (o *Orchestrator) chatStep(ctx context.Context, st *turnState) error {
	st.window = 0
	o.addLateTools(ctx, st)
	if err := o.fitWindow(ctx, st); err != nil {
		return err
	}
	size := st.fixed + o.Conversation.TotalTokens(tokens.EstimateMessageTokens)
	req := provider.Request{Model: st.settings.Model, System: st.settings.System, Messages: o.Conversation.View(),
		Tools: st.tools, MaxTokens: o.maxReplyTokens(st), Estimate: o.contextTokens(st.settings.Model, st.fixed)}
	o.prefix.update(req)
	seen := &replyFilter{orch: o, st: st}
	seen.discardPending()
	reply, err := provider.Collect(o.Provider.Stream(ctx, req), func(d provider.Delta) error { return seen.show(ctx, d) })
	err = cmp.Or(err, seen.flush(context.WithoutCancel(ctx)))
	if errors.Is(err, provider.ErrContextTooLong) && ctx.Err() == nil {
		return o.retryShorter(ctx, st, size, err)
	}
	if again, limit := o.waitForLimit(ctx, st, err); again {
		return o.chatStep(ctx, st)
	} else if limit != nil {
		err = limit
	}
	if err != nil {
		return o.recordPartialReply(ctx, st, reply, err)
	}
	if err := o.learnFromUsage(ctx, st, size, reply.Usage); err != nil {
		return err
	}
	// Each result answers only one call, so an id seen before is replaced. A
	// subtask's calls all get new ids, because other subtasks run in parallel.
	for i, p := range reply.Message.Parts {
		if c, ok := p.(chat.ToolCall); ok && (o.Subtask != nil || o.Conversation.HasCall(c.ID) ||
			o.Concealer.Text(c.ID) != c.ID) {
			c.ID = o.NewID("call")
			reply.Message.Parts[i] = c
		}
	}
	added := event.MessageAdded{Message: reply.Message, Model: cmp.Or(reply.Model, st.settings.Model), Usage: reply.Usage,
		StopReason: string(reply.Stop), Window: st.window, Request: o.unrecordedPart(reply.Sent)}
	if len(reply.Message.Text()) == 0 && len(reply.Message.Calls()) == 0 {
		return newEmptyReplyError(reply.Stop)
	}
	if err := o.emit(ctx, st, ActorAgent, added); err != nil {
		return err
	}
	st.calls = reply.Message.Calls()
	if len(st.calls) == 0 {
		st.finalText = o.Concealer.Text(reply.Message.Text())
	}
	return errors.Join(o.warnEarlyStop(ctx, st, reply.Stop), o.reportUsage(ctx, st))
}

// unrecordedPart returns the sent request without the part that is already recorded.
func (o *Orchestrator) unrecordedPart(sent *chat.SentRequest) *chat.SentRequest {
	if sent == nil || sent.Head != o.Conversation.RequestHead() {
		return sent
	}
	short := *sent
	short.Head = ""
	return &short
}

// recordPartialReply keeps the received part of a reply, marked as interrupted, and returns why it is incomplete.
func (o *Orchestrator) recordPartialReply(ctx context.Context, st *turnState, reply provider.Reply, why error) error {
	if reply.Message.Text() != "" {
		part := event.MessageAdded{Message: reply.Message, Model: st.settings.Model, Interrupted: true}
		if err := o.emit(ctx, st, ActorAgent, part); err != nil {
			return errors.Join(why, err)
		}
		st.finalText = o.Concealer.Text(reply.Message.Text())
		if err := o.reportUsage(ctx, st); err != nil {
			return errors.Join(why, err)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return newModelError(why)
}

func newEmptyReplyError(stop provider.Stop) error {
	why := "the reply had neither text nor a tool call"
	switch stop {
	case provider.StopLength:
		why = "the reply reached the model's length limit before anything was usable"
	case provider.StopFilter:
		why = "the provider's content filter blocked the reply"
	case provider.StopSize:
		why = fmt.Sprintf("the reply exceeded %d MiB before anything was usable", provider.MaxReplyBytes>>20)
	case provider.StopLoop:
		why = "the model repeated itself endlessly before anything was usable"
	case provider.StopEnd, provider.StopTools:
	}
	return newModelError(&provider.Error{Kind: provider.ErrCutOff, Err: errors.New(why)})
}

// warnEarlyStop warns if a reply ended early.
func (o *Orchestrator) warnEarlyStop(ctx context.Context, st *turnState, stop provider.Stop) error {
	switch stop {
	case provider.StopLength:
		return o.warn(ctx, st, "the answer was cut off: the model reached its length limit")
	case provider.StopFilter:
		return o.warn(ctx, st, "the answer was cut off by the provider's content filter")
	case provider.StopSize:
		return o.warn(ctx, st,
			fmt.Sprintf("the answer was cut off: coder reads %d MiB of one reply, and %d MiB of its calls' arguments",
				provider.MaxReplyBytes>>20, provider.MaxArgumentBytes>>20))
	case provider.StopLoop:
		return o.warn(ctx, st, "the answer was stopped: the model repeated itself endlessly")
	case provider.StopEnd, provider.StopTools:
	}
	return nil
}

// showDelta shows the user the reply as it arrives.
func (o *Orchestrator) showDelta(ctx context.Context, st *turnState, d provider.Delta) error {
	switch d := d.(type) {
	case provider.TextDelta:
		return o.emit(ctx, st, ActorAgent, event.TextDelta{Text: string(d)})
	case provider.ReasoningDelta:
		if d.Text != "" {
			return o.emit(ctx, st, ActorAgent, event.ReasoningDelta{Text: d.Text})
		}
	case provider.Restart:
		return o.emit(ctx, st, ActorAgent, event.Retrying{Attempt: d.Attempt, MaxAttempts: d.MaxAttempts, Wait: d.Wait,
			Reason: d.Err.Error()})
	case provider.Waiting:
		why := event.WaitReply
		if d.Loading {
			why = event.WaitLoading
		}
		return o.emit(ctx, st, ActorAgent, event.Waiting{Reason: why, Waited: d.Elapsed, ReadTokens: d.ReadTokens,
			TotalTokens: d.TotalTokens})
	case provider.Spent:
		why := event.UsageForPartialReply
		if d.Complete {
			why = event.UsageForUnreported
		}
		return o.emit(ctx, st, ActorAgent, event.Spent{Model: d.Model, Usage: d.Usage, Reason: why})
	case provider.Window:
		return o.recordWindow(ctx, st, int(d))
	case provider.CallDelta, provider.Done:
	}
	return nil
}
