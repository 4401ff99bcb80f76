//go:build unix

package shell

import (
	"os"
	"path/filepath"
)

// A Program is the shell that runs command lines, by its path. The zero Program
// is the system's plain shell.
type Program string

// plain is the shell that every system has.
const plain Program = "/bin/sh"

// known are the places of bash. PATH is not asked: what it finds first could be
// the project's own.
var known = []Program{"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/run/current-system/sw/bin/bash"}

// Find is bash where there is one, else the plain shell.
func Find() Program {
	for _, p := range known {
		if info, err := os.Stat(string(p)); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return p
		}
	}
	return plain
}

// Bash reports whether lines are run by bash.
func (p Program) Bash() bool { return filepath.Base(string(p)) == "bash" }

// argv runs a line in a shell that reads no file before it.
func (p Program) argv(line string) []string {
	switch {
	case p.Bash():
		return []string{string(p), "--noprofile", "--norc", "-c", line}
	case p == "":
		p = plain
	}
	return []string{string(p), "-c", line}
}

// meanings are the variables by which an environment changes what a line means
// to a shell: files to run first, options, where cd leads, what patterns match.
var meanings = []string{"ENV", "SHELLOPTS", "CDPATH", "GLOBIGNORE", "GLOBSORT", "EXECIGNORE", "POSIXLY_CORRECT", "PROMPT_COMMAND", "IFS", "PS0", "PS1", "PS2", "PS4"}
