package app

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"coder/internal/shell"
	"coder/internal/workspace"
)

// scratch is where temporary files lie, below the workspace.
var scratch = filepath.Join(".coder", "tmp")

// runningPrefix begins the name of a file that says that a program runs commands
// here. One whose program is gone says that it was killed.
const runningPrefix = "running-"

// sweepScratch removes the temporary files that a killed program left, and names
// those that hold something.
func (h *house) sweepScratch(ws *workspace.Workspace, hs *hands) {
	if hs.files == nil {
		return
	}
	for _, name := range ws.Sweep(nil, func(c io.ReadSeeker) bool { return hs.files.get().Keeps(c) }) {
		h.warn(fmt.Sprintf("%s holds what a file had when the program was killed while replacing it", name))
	}
}

// sweepCommands ends what commands of a killed program left running, if one was
// killed here, and sees that the next one will know of us.
func (h *house) sweepCommands(hs *hands) {
	dir := filepath.Join(h.root, scratch)
	sweep := func(notes []string) {
		hs.sweeping.Go(func() {
			if _, err := shell.Sweep(hs.work, hs.marked); err != nil {
				return // another time: what is left then is not ours to mourn
			}
			for _, note := range notes {
				_ = os.Remove(note)
			}
		})
	}
	if killed := killedPrograms(dir); len(killed) > 0 {
		sweep(killed)
	}
	hs.note = func() {
		note := filepath.Join(dir, runningPrefix+shell.ProgramName())
		if h.flags.ephemeral || os.MkdirAll(dir, 0o700) != nil || os.WriteFile(note, nil, 0o600) != nil {
			sweep(nil) // nobody can have left word
			return
		}
		hs.gone = func() { _ = os.Remove(note) }
	}
}

// killedPrograms lists the notes of programs that did not take them away.
func killedPrograms(dir string) (notes []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if program, ok := strings.CutPrefix(e.Name(), runningPrefix); ok && shell.Ended(program) {
			notes = append(notes, filepath.Join(dir, e.Name()))
		}
	}
	return notes
}
