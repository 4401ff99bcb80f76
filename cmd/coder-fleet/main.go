//go:build unix

// Command coder-fleet runs tasks of many agents on one machine or several. People
// call it as coder fleet.
package main

import (
	"os"

	"coder/internal/cli"
	"coder/internal/fleet/fleetcli"
)

func main() { os.Exit(fleetcli.Main(cli.FromOS())) }
