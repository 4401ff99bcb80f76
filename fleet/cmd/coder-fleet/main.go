//go:build unix

// Command coder-fleet runs tasks of many agents on one machine or several. People
// call it as coder fleet.
package main

import (
	"os"

	"coder/fleet/fleetcli"
	"coder/internal/cli"
)

func main() { os.Exit(fleetcli.Main(cli.NewEnv())) }
