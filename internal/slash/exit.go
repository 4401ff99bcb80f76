package slash

import (
	"context"

	"coder/internal/agent/orchestrator"
)

// Exit ends the program. The command has two names.
func Exit() []Command {
	leave := func(context.Context, call) (outcome, error) {
		return outcome{Destination: &orchestrator.Destination{Exit: true}}, nil
	}
	return []Command{
		{Name: "exit", Exits: true, Help: "exit; the session can be resumed", Run: leave},
		{Name: "quit", Exits: true, Help: "the same as /exit", Run: leave},
	}
}
