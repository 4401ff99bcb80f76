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
	"coder/internal/config"
	"coder/internal/core/event"
	"coder/internal/host/atomicfile"
	"coder/internal/host/shell"
	"coder/internal/host/workspace"
	"coder/internal/record/store/jsonl"
	"coder/internal/record/undo"
)

// scratchDir is the folder for temporary files, below the workspace.
var scratchDir = filepath.Join(".coder", "tmp")

// DraftsDir is the folder in CODER_HOME for text that is being edited.
const DraftsDir = "drafts"

// runningPrefix begins the name of a file that says that a process
// runs commands here. If the process is gone, it was killed.
const runningPrefix = "running-"

// sweepFiles removes temporary files that a killed process left in the workspace, and names those
// with content. In the background it removes leftovers of coder's own files and of answers.
func (a *Session) sweepFiles(ws *workspace.Workspace, t *toolkit) {
	if t.fileKeeper != nil {
		for _, name := range ws.RemoveScratch(nil, func(c io.ReadSeeker) bool { return t.fileKeeper.get().HasContent(c) }) {
			a.warn(fmt.Sprintf("%s has the content of a file that the program was replacing when it was killed", name))
		}
	}
	t.sweeps.Go(func() {
		if a.Home != "" {
			atomicfile.Sweep(a.Home, ".", "always", DraftsDir, pluginsDir, workspacesDir, searchCacheDir, memoryDir,
				worktreesDir, loginsDir, keysDirName, shipCursorsDir)
			inbox.Box{Dir: filepath.Join(a.Home, answersDir)}.Sweep()
			inbox.Box{Dir: filepath.Join(a.Home, listeningDir)}.Sweep()
		}
		if !a.Options.Ephemeral {
			atomicfile.Sweep(a.dataDir(), ".", "sessions", filepath.Join("undo", "tmp"))
			if private := a.Store().PrivateUndo(); private != "" {
				atomicfile.Sweep(private, "tmp", "starts")
			}
		}
	})
}

// sweepCommands stops commands that a killed process left running, and leaves a note for the next process.
func (a *Session) sweepCommands(ws *workspace.Workspace, t *toolkit) {
	sweep := func(notes []string) {
		t.sweeps.Go(func() {
			if _, err := shell.KillStrays(t.ctx, t.marker); err != nil {
				return // the next process tries again
			}
			for _, note := range notes {
				_ = ws.Delete(note)
			}
		})
	}
	var killed []string // notes that their processes did not remove
	entries, _, _ := ws.ReadDir(scratchDir, maxNotes)
	for _, e := range entries {
		if program, ok := strings.CutPrefix(e.Name(), runningPrefix); ok && shell.HasEnded(program) {
			killed = append(killed, filepath.Join(scratchDir, e.Name()))
		}
	}
	if len(killed) > 0 {
		sweep(killed)
	}
	t.noteRunning = func() {
		note := filepath.Join(scratchDir, runningPrefix+shell.ProcessName())
		if a.Options.Ephemeral || ws.CreateFile(note, nil, 0o600) != nil {
			sweep(nil) // without notes, sweep anyway
			return
		}
		t.removeNote = func() { _ = ws.Delete(note) }
	}
}

// maxNotes limits the number of notes to read.
const maxNotes = 10_000

// otherClaims returns the changes recorded by other sessions' calls
// in this workspace that ran between from and to.
func (s *Store) otherClaims(ctx context.Context, self string, from, to time.Time) (list []undo.Claim, err error) {
	if s.unusableDirs["log"] != nil {
		return nil, nil
	}
	logs := jsonl.Open(s.Path("log"), jsonl.Options{}) // without warnings: the user did not ask about them
	for _, id := range s.SessionsIn("log") {
		if id == self || s.logTime(id) < from.UnixNano() {
			continue
		}
		open := make(map[string]event.ToolCallRequested)
		for r, err := range logs.Read(ctx, id, 0, event.LogAudit) {
			if err != nil {
				break // use the readable part
			}
			switch e := r.Event.(type) {
			case event.ToolCallRequested:
				if e.Timestamp <= to.UnixMilli() && (len(e.Before) > 0 || e.Tree != "") {
					open[e.CallID] = e
				}
			case event.ToolCallCompleted:
				asked, ok := open[e.CallID]
				delete(open, e.CallID)
				if !ok || e.Timestamp < from.UnixMilli() {
					continue
				}
				claim := undo.Claim{Session: id, From: time.UnixMilli(asked.Timestamp), To: time.UnixMilli(e.Timestamp)}
				list = append(list, callClaims(claim, e.Changes)...)
			}
		}
		for _, e := range open { // running or cut off
			claim := undo.Claim{Session: id, From: time.UnixMilli(e.Timestamp)}
			for _, before := range e.Before {
				claim.Path = before.Path
				list = append(list, claim)
			}
			if e.Tree != "" {
				claim.Path, claim.Doubt = ".", event.DoubtUnseen
				list = append(list, claim)
			}
		}
	}
	return list, ctx.Err()
}

// callClaims returns the claims of one call.
func callClaims(like undo.Claim, changes []event.FileChange) (list []undo.Claim) {
	for _, c := range changes {
		like.Path, like.Doubt, like.Many = c.After.Path, c.Doubt, event.FileChange{}
		if like.Path == "." {
			like.Many = c
		}
		list = append(list, like)
	}
	return list
}

// limitStorage keeps commands' output and caches within their limits. It removes the
// oldest files first, and none of sessions in use. It reports removed output to warn.
func (s *Store) limitStorage(c config.Storage, warn func(string)) {
	if s.ephemeral {
		return
	}
	runs := s.Path("runs")
	dropped := limitDirSize(runs, int64(c.RunsBytes), func(path string) bool {
		rel, err := filepath.Rel(runs, path)
		session, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
		return err != nil || s.IsInUse(session)
	})
	if dropped > 0 {
		warn(fmt.Sprintf("deleted %d MB of command output from ended sessions (.coder/runs)", (dropped+1<<20-1)>>20))
	}
	limitDirSize(s.Path("cache"), int64(c.CacheBytes), func(string) bool { return false })
}

// limitDirSize removes the oldest files below dir until the rest has
// at most most bytes, and returns the number of removed bytes.
func limitDirSize(dir string, most int64, stays func(path string) bool) (dropped int64) {
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
	slices.SortFunc(all, func(a, b file) int { return a.ModTime().Compare(b.ModTime()) })
	for _, f := range all {
		if bytes-dropped <= most {
			break
		}
		if !stays(f.path) && os.Remove(f.path) == nil {
			dropped += f.Size()
		}
	}
	return dropped
}
