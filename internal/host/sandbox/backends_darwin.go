package sandbox

import (
	"context"

	"coder/internal/host/program"
)

// seatbeltPath is its path in macOS; one elsewhere is not trustworthy.
const seatbeltPath = "/usr/bin/sandbox-exec"

// sample contains every kind of rule, so that a system that rejects one of them is not considered
// working.
var sample = resolvedLimits{write: []string{"/private/tmp"}, protect: []string{"/private/tmp/.a/.b"},
	hide: []string{"/var/run/docker.sock"}}

func backends(Options) []backend {
	return []backend{{name: Seatbelt, prefix: []string{seatbeltPath}, probe: func(ctx context.Context) error {
		return program.TrustedCommand(ctx, seatbeltPath, "-p", seatbeltProfile(sample), "/usr/bin/true").Run()
	}}}
}

// LooksIncomplete reports whether there are signs that confinement is incomplete on this machine.
func LooksIncomplete() bool { return false }
