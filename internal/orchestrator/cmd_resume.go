package orchestrator

import "context"

func resumeCommand() command {
	return command{
		name: "resume", args: "[ID]", help: "go on with another session; without ID, list them",
		run: func(ctx context.Context, in invocation) (string, error) {
			if in.args == "" {
				return in.listSessions(ctx, "resume")
			}
			if in.Desk.Find == nil {
				return "", notHere("resume")
			}
			here, err := in.Desk.Find(ctx, in.args)
			switch {
			case err != nil:
				return "", &CommandError{err.Error()}
			case here:
				return "this is session " + in.args + " already", nil
			}
			return "opening session " + in.args, &Leave{Resume: in.args}
		},
	}
}
