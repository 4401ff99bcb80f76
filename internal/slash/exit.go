package slash

import (
	"context"

	"coder/internal/agent/orchestrator"
)

// Exit ends the program. The command has two names.
func Exit() []Command {
	leave := func(context.Context, call) (outcome, error) {
		return outcome{Next: &orchestrator.Next{Exit: true}}, nil
	}
	return []Command{
		{Name: "exit", Leaves: true, Help: "exit; the session can be resumed", Run: leave},
		{Name: "quit", Leaves: true, Help: "the same as /exit", Run: leave},
	}
}
