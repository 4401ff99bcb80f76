package orchestrator

import "context"

func redoCommand() command {
	return command{
		name: "redo", args: "[force|dry]", help: "take the last /undo back",
		run: func(ctx context.Context, in invocation) (string, error) {
			return in.revert(ctx, "redo", in.Desk.Redo)
		},
	}
}
