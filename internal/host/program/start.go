package program

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"syscall"
)

// TrustedCommand returns a command for a file that the caller vouches for: this program, a system's shell, the
// sandbox's helper. Its environment is empty.
func TrustedCommand(ctx context.Context, file string, args ...string) *Cmd {
	if !filepath.IsAbs(file) {
		return refusedCommand(ctx, file, errors.New("the program has no full path"))
	}
	cmd := exec.CommandContext(ctx, file, args...)
	cmd.Env = []string{}
	return cmd
}

// ConfinedCommand returns a command for a program in the sandbox. It is found as the user's shell would,
// including in the workspace; see [Door.Unconfine]. Its environment is empty.
func ConfinedCommand(name string, args ...string) *Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = []string{}
	return cmd
}

// LookPath returns the file that a command inside the sandbox runs for a program.
func LookPath(name string) (string, error) { return exec.LookPath(name) }

// IsInstalled reports whether commands inside the sandbox find a program.
func IsInstalled(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil || errors.Is(err, exec.ErrDot) // a shell finds it there
}

// ForkExec starts a program from a process that has already confined itself.
func ForkExec(file string, argv []string, attr *syscall.ProcAttr) (pid int, err error) {
	return syscall.ForkExec(file, argv, attr)
}

// Exec replaces this process with another program.
func Exec(file string, argv, env []string) error { return syscall.Exec(file, argv, env) }
