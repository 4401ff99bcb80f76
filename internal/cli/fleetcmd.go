package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

	"coder/internal/core/nearest"
)

// fleetProgram is what runs many agents. It is a program of its own, so that
// this one stays small.
const fleetProgram = "coder-fleet"

// fleetVerbs are what it can be told.
var fleetVerbs = []string{"up", "worker", "submit", "ps", "workers", "logs", "watch", "answer", "cancel", "result", "verify", "drain", "enroll", "metrics", "help"}

// isFleet tells a command for the fleet from a prompt that begins with the word.
func isFleet(args []string) bool {
	if len(args) == 0 || args[0] != "fleet" {
		return false
	}
	return len(args) == 1 || slices.Contains(fleetVerbs, args[1]) || len(args) == 2 && nearest.Of(args[1], fleetVerbs) != ""
}

// runFleet becomes the program of the fleet, which lies beside this one or on the
// PATH.
func (inv *invocation) runFleet(context.Context) error {
	path := filepath.Join(filepath.Dir(inv.Exe), fleetProgram)
	if info, err := os.Stat(path); err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
		if path, err = exec.LookPath(fleetProgram); err != nil {
			return &exitError{code: ExitInput, text: "coder-fleet is not here: put it beside coder, or on the PATH (make fleet makes it)"}
		}
	}
	err := syscall.Exec(path, append([]string{fleetProgram}, inv.Args[1:]...), inv.Environ)
	return errors.Join(errors.New("coder-fleet could not be started"), err)
}
