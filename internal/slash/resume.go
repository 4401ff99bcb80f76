package slash

import (
	"context"
	"time"

	"coder/internal/agent/orchestrator"
)

// Resume continues another session. Only an id names one, not a number in a list or a nickname.
func Resume(archive Archive, current string, now func() time.Time) Command {
	return Command{
		Name: "resume", Args: "[ID]", Help: "continue another session; without ID, list them",
		Run: func(ctx context.Context, c call) (outcome, error) {
			switch c.Args {
			case "":
				return listSessions(ctx, archive, current, now())
			case current:
				return say("already in session " + current)
			}
			if err := archive.Free(ctx, c.Args); err != nil {
				return wrong("%v", err)
			}
			return outcome{Text: "opening session " + c.Args, Next: &orchestrator.Next{Session: c.Args}}, nil
		},
	}
}
