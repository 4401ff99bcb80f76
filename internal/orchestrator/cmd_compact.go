package orchestrator

import "context"

func compactCommand() command {
	return command{
		name: "compact", args: "[FOCUS|undo]", help: "let a summary stand for what was said, or undo that",
		run: func(ctx context.Context, in invocation) (string, error) {
			if in.args == "undo" {
				return in.compactUndo(ctx, in.st)
			}
			return in.compactNow(ctx, in.st, in.args)
		},
	}
}
