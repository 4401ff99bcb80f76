//go:build unix

// Command coder is a coding agent for the terminal.
package main

import (
	"os"

	"coder/internal/app"
)

func main() { os.Exit(app.Main(app.FromOS())) }
