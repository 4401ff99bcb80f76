package orchestrator

import (
	"context"
	"fmt"
)

func trustCommand() command {
	return command{
		name: "trust", args: "[yes|no]", help: "show or change whether this folder is trusted",
		run: func(ctx context.Context, in invocation) (string, error) {
			do, ok := map[string]Trust{"": AskTrust, "yes": GiveTrust, "no": EndTrust}[in.args]
			switch {
			case in.Desk.Trust == nil:
				return "", notHere("trust")
			case !ok:
				return "", &CommandError{fmt.Sprintf("/trust takes yes or no, not %q", in.args)}
			}
			text, err := in.Desk.Trust(ctx, do)
			if err != nil {
				return "", &CommandError{err.Error()}
			}
			return text, nil
		},
	}
}
