//go:build !linux

package shell

import (
	"context"
	"os"
	"strconv"
)

// Sweep does nothing where what a killed program left cannot be told.
func Sweep(context.Context, string) (ended int, err error) { return 0, nil }

// ProgramName is the name of this program.
func ProgramName() string { return self().String() }

// Ended cannot tell here.
func Ended(string) bool { return false }

// program is a process that runs commands.
type program struct{ pid int }

func (p program) String() string { return strconv.Itoa(p.pid) }

func self() program { return program{os.Getpid()} }
