package slash

import (
	_ "embed"
	"strings"
)

//go:embed init.md
var initPrompt string

// Init asks the model to draft an AGENTS.md.
func Init() Command {
	return Command{
		Name: "init", Args: "[WISHES]", Help: "have the model draft an AGENTS.md for this project",
		Prompt: func(args string) string {
			words := strings.TrimSpace(initPrompt)
			if args != "" {
				words += "\n\nThe user adds: " + args
			}
			return words
		},
	}
}
