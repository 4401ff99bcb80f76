package slash

import (
	"context"

	"coder/internal/agent/orchestrator"
)

// New starts a new session. The command has two names.
func New(newID func() string) []Command {
	command := func(name, help string) Command {
		return Command{Name: name, Help: help, Run: func(context.Context, call) (outcome, error) {
			id := newID()
			return outcome{Text: "new session: " + id, Destination: &orchestrator.Destination{New: true, Session: id}}, nil
		}}
	}
	return []Command{command("new", "start a new session, with an empty conversation"),
		command("clear", "the same as /new")}
}
