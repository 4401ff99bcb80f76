package orchestrator

import "context"

// exitCommand ends the program. It goes by two names.
func exitCommand(name string) command {
	help := "end the program; the session can be resumed"
	if name != "exit" {
		help = "the same as /exit"
	}
	return command{name: name, help: help, run: func(context.Context, invocation) (string, error) {
		return "", &Leave{Exit: true}
	}}
}
