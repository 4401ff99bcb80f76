package orchestrator

import "context"

// newCommand starts over. It goes by two names.
func newCommand(name string) command {
	help := "start a new session, with an empty conversation"
	if name != "new" {
		help = "the same as /new"
	}
	return command{name: name, help: help, run: func(_ context.Context, in invocation) (string, error) {
		if in.Desk.NewSession == nil {
			return "", notHere(name)
		}
		if err := in.noArguments(name); err != nil {
			return "", err
		}
		id := in.Desk.NewSession()
		return "new session: " + id, &Leave{New: true, Resume: id}
	}}
}
