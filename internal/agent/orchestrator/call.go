package orchestrator

import (
	"context"

	"coder/internal/agent/toolrun"
	"coder/internal/core/chat"
	"coder/internal/core/event"
)

// RunCall makes one tool call for another agent, through the same gate
// as the model's calls. The call is not part of the conversation.
func (o *Orchestrator) RunCall(ctx context.Context, call chat.ToolCall, out event.Sink) (done toolrun.Outcome,
	err error) {
	call.ID = o.NewID("call")
	st := o.newTurnState(out)
	if err = o.openTask(ctx, st, call.Name); err == nil {
		err = o.Runner.Run(ctx, toolrun.Round{
			Task: st.task, Actor: ActorAgent, Tools: st.settings.Tools, Calls: []chat.ToolCall{call},
			User: o.NewInteractor(st.sink), Sink: st.sink,
			Deliver: func(_ context.Context, out toolrun.Outcome) error { done = out; return nil },
		})
	}
	return done, o.closeTurn(ctx, st, err)
}
