package sandbox

import (
	"os/exec"
	"slices"
	"syscall"
)

// Line is what confines a command: a program and its first arguments to put
// before it, and what the process has to be started with. The zero Line
// confines nothing.
type Line struct {
	Argv []string
	Attr func(*syscall.SysProcAttr) // may be nil

	// Init says that the process is the first of all of the command's: none of
	// them outlives it, they all end when it is sent SIGTERM, and they end when
	// whoever started it dies, however that happens.
	Init bool
}

// Telling is the line for somebody who reads, from a pipe given as descriptor
// [TellOn], how the command ended: see [End]. It is for lines with Init
// set, whose own exit code cannot tell a signal from a number.
func (l Line) Telling() Line {
	if l.Init {
		l.Argv = slices.Insert(slices.Clone(l.Argv), 2, "--tell") // after the program and the name of the helper
	}
	return l
}

// Apply has a command that was not started yet run through the line. What it
// was to run, its environment, directory and streams stay as they are.
func (l Line) Apply(cmd *exec.Cmd) {
	if len(l.Argv) == 0 {
		return
	}
	argv := slices.Clone(cmd.Args)
	argv[0] = cmd.Path
	cmd.Path, cmd.Args = l.Argv[0], append(slices.Clone(l.Argv), argv...)
	if l.Attr != nil {
		if cmd.SysProcAttr == nil {
			cmd.SysProcAttr = new(syscall.SysProcAttr)
		}
		l.Attr(cmd.SysProcAttr)
	}
}
