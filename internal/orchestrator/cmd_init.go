package orchestrator

import (
	_ "embed"
	"strings"
)

//go:embed init.md
var initPrompt string

func initCommand() command {
	return command{
		name: "init", args: "[WISHES]", help: "let the model draft an AGENTS.md for this project",
		prompt: func(args string) string {
			words := strings.TrimSpace(initPrompt)
			if args != "" {
				words += "\n\nThe user adds: " + args
			}
			return words
		},
	}
}
