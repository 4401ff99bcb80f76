package sandbox

import (
	"context"

	"coder/internal/host/program"
)

// seatbeltPath is where macOS has it; one elsewhere is not to be trusted.
const seatbeltPath = "/usr/bin/sandbox-exec"

// sample has every kind of rule in it, so that a system that does not
// understand one is not taken for one that does.
var sample = places{write: []string{"/private/tmp"}, protect: []string{"/private/tmp/.a/.b"}, hide: []string{"/var/run/docker.sock"}}

func backends(Options) []backend {
	return []backend{{name: Seatbelt, through: []string{seatbeltPath}, probe: func(ctx context.Context) error {
		return program.Exactly(ctx, seatbeltPath, "-p", profile(sample), "/usr/bin/true").Run()
	}}}
}

// Doubtful reports whether there are signs that this machine does not confine
// all that is asked for.
func Doubtful() bool { return false }
