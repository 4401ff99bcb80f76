package orchestrator

import "context"

func sessionsCommand() command {
	return command{name: "sessions", help: "list the last sessions", run: func(ctx context.Context, in invocation) (string, error) {
		if err := in.noArguments("sessions"); err != nil {
			return "", err
		}
		return in.listSessions(ctx, "sessions")
	}}
}

func (in invocation) listSessions(ctx context.Context, name string) (string, error) {
	if in.Desk.Sessions == nil {
		return "", notHere(name)
	}
	table, err := in.Desk.Sessions(ctx)
	if err != nil {
		return "", err
	}
	return aligned(table) + "\n/resume ID goes on with one of them", nil
}
