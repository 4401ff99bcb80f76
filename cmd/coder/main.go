//go:build unix

// Command coder is a coding agent for the terminal.
package main

import (
	"os"

	"coder/internal/cli"
)

func main() { os.Exit(cli.Main(cli.FromOS())) }
