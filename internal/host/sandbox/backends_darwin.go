package sandbox

import (
	"context"

	"coder/internal/host/program"
)

// seatbeltPath is its path in macOS; one elsewhere is not trustworthy.
const seatbeltPath = "/usr/bin/sandbox-exec"

// sample contains every kind of rule, so that a system that rejects one of them is not considered
// working.
var sample = places{write: []string{"/private/tmp"}, protect: []string{"/private/tmp/.a/.b"}, hide: []string{"/var/run/docker.sock"}}

func backends(Options) []backend {
	return []backend{{name: Seatbelt, through: []string{seatbeltPath}, probe: func(ctx context.Context) error {
		return program.Exactly(ctx, seatbeltPath, "-p", profile(sample), "/usr/bin/true").Run()
	}}}
}

// Doubtful reports whether there are signs that confinement is incomplete on this machine.
func Doubtful() bool { return false }
