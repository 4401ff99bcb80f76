//go:build unix

// Command coder is a coding agent for the terminal.
package main

import (
	"os"
	"runtime/debug"

	"coder/internal/app"
	"coder/internal/cli"
)

func main() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(app.MaxSessionMemory)
	}
	os.Exit(cli.Main(cli.NewEnv()))
}
