package orchestrator

import (
	"context"
	"strings"
)

func diffCommand() command {
	return command{
		name: "diff", args: "[full|PATH]", help: "show what changed in the workspace",
		run: func(ctx context.Context, in invocation) (string, error) {
			if in.Desk.Diff == nil {
				return "", notHere("diff")
			}
			return in.Desk.Diff(ctx, readDiff(in.args))
		},
	}
}

// readDiff reads what /diff is asked for: "full", a path, or both.
func readDiff(args string) Diff {
	if args == "full" {
		return Diff{Full: true}
	}
	if path, ok := strings.CutPrefix(args, "full "); ok {
		args = strings.TrimSpace(path)
	}
	return Diff{Full: args != "", Path: args}
}
