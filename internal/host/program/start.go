package program

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Exactly makes a command for a file that the caller vouches for: this program
// itself, a system's shell, what the sandbox puts before a command. Its
// environment is empty.
func Exactly(ctx context.Context, file string, args ...string) *Cmd {
	if !filepath.IsAbs(file) {
		return refuse(ctx, file, errors.New("the program has no full path"))
	}
	cmd := exec.CommandContext(ctx, file, args...)
	cmd.Env = []string{}
	return cmd
}

// Confined makes a command for a program that is to run within the sandbox. It is
// found as your shell finds it, in the workspace too; see [Door.Admit]. Its
// environment is empty.
func Confined(name string, args ...string) *Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = []string{}
	return cmd
}

// OnPath is where a command within the sandbox finds a program.
func OnPath(name string) (string, error) { return exec.LookPath(name) }

// Has reports whether a command within the sandbox finds a program.
func Has(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil || errors.Is(err, exec.ErrDot) // the shell finds it there
}

// Fork starts a program from a process that has confined itself.
func Fork(file string, argv []string, attr *syscall.ProcAttr) (pid int, err error) {
	return syscall.ForkExec(file, argv, attr)
}

// Become has another program take the place of this one.
func Become(file string, argv, env []string) error { return syscall.Exec(file, argv, env) }
