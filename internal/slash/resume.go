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
				return showText("already in session " + current)
			}
			if err := archive.CheckFree(ctx, c.Args); err != nil {
				return usageError("%v", err)
			}
			return outcome{Text: "opening session " + c.Args, Destination: &orchestrator.Destination{Session: c.Args}}, nil
		},
	}
}
