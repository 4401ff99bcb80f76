package app

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"coder/internal/agent/inbox"
	"coder/internal/core/event"
	"coder/internal/host/atomicfile"
	"coder/internal/host/shell"
	"coder/internal/host/workspace"
	"coder/internal/record/store/jsonl"
	"coder/internal/record/undo"
)

// scratch is where temporary files lie, below the workspace.
var scratch = filepath.Join(".coder", "tmp")

// drafts is where what is written in an editor lies meanwhile, below our home.
const drafts = "drafts"

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

// sweepOwn removes what a killed program left of files of our own that it was
// writing, and of answers it waited for or gave.
func (h *house) sweepOwn(hs *hands) {
	hs.sweeping.Go(func() {
		if h.home != "" {
			atomicfile.Sweep(h.home, ".", "always", drafts)
			inbox.Box{Dir: h.answers()}.Sweep()
		}
		if !h.flags.ephemeral {
			atomicfile.Sweep(h.data(), ".", "sessions", filepath.Join("undo", "tmp"))
		}
	})
}

// sweepCommands ends what commands of a killed program left running, if one was
// killed here, and sees that the next one will know of us.
func (h *house) sweepCommands(ws *workspace.Workspace, hs *hands) {
	sweep := func(notes []string) {
		hs.sweeping.Go(func() {
			if _, err := shell.Sweep(hs.work, hs.marked); err != nil {
				return // another time: what is left then is not ours to mourn
			}
			for _, note := range notes {
				_ = ws.Delete(note)
			}
		})
	}
	if killed := killedPrograms(ws); len(killed) > 0 {
		sweep(killed)
	}
	hs.note = func() {
		note := filepath.Join(scratch, runningPrefix+shell.ProgramName())
		if h.flags.ephemeral || ws.CreateFile(note, nil, 0o600) != nil {
			sweep(nil) // nobody can have left word
			return
		}
		hs.gone = func() { _ = ws.Delete(note) }
	}
}

// killedPrograms lists the notes of programs that did not take them away.
func killedPrograms(ws *workspace.Workspace) (notes []string) {
	entries, _, err := ws.ReadDir(scratch, maxNotes)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if program, ok := strings.CutPrefix(e.Name(), runningPrefix); ok && shell.Ended(program) {
			notes = append(notes, filepath.Join(scratch, e.Name()))
		}
	}
	return notes
}

// maxNotes is how many notes are looked at.
const maxNotes = 10_000

// claims are the changes that other sessions of this workspace put on record
// within a time.
func (h *house) claims(ctx context.Context, self string, from, to time.Time) (list []undo.Claim, err error) {
	sup, err := h.shelf()
	if err != nil {
		return nil, err
	}
	for _, id := range sessionsUnder(h.logs(), "") {
		if id == self || h.logged(id) < from.UnixNano() {
			continue
		}
		for r, err := range sup.Store.Read(ctx, id, 0, event.Audit) {
			if err != nil {
				break // what can be read of it counts
			}
			e, ok := r.Event.(event.ToolCallCompleted)
			if !ok || r.Time.Before(from) || r.Time.After(to.Add(claimMargin)) {
				continue
			}
			for _, c := range e.Changes {
				list = append(list, undo.Claim{Path: c.After.Path, Session: id, At: time.UnixMilli(e.Timestamp)})
			}
		}
	}
	return list, ctx.Err()
}

// claimMargin is how much later than it was made a change may be on record.
const claimMargin = time.Minute

// boundStorage sees that what commands wrote and what can be worked out again
// takes no more room than it may. The oldest goes first, and nothing of sessions
// that are in use.
func (h *house) boundStorage() {
	if h.flags.ephemeral {
		return
	}
	bound(h.runs(), int64(h.conf.Storage.RunsBytes), func(path string) bool {
		rel, err := filepath.Rel(h.runs(), path)
		session, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
		return err != nil || jsonl.InUse(filepath.Join(h.logs(), session))
	})
	bound(h.cache(), int64(h.conf.Storage.CacheBytes), func(string) bool { return false })
}

// bound removes the oldest files below dir until the others have at most so many
// bytes.
func bound(dir string, most int64, stays func(path string) bool) {
	type file struct {
		path string
		fs.FileInfo
	}
	var all []file
	var bytes int64
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			all, bytes = append(all, file{path, info}), bytes+info.Size()
		}
		return nil
	})
	if bytes <= most {
		return
	}
	slices.SortFunc(all, func(a, b file) int { return a.ModTime().Compare(b.ModTime()) })
	for _, f := range all {
		if bytes <= most {
			return
		}
		if !stays(f.path) && os.Remove(f.path) == nil {
			bytes -= f.Size()
		}
	}
}
