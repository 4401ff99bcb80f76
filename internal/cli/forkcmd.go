package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"coder/internal/app"
	"coder/internal/core/display"
	"coder/internal/host/worktree"
	"coder/internal/policy/mode"
	"coder/internal/record/store/jsonl"
	"coder/internal/ui/streamjson"
)

// runFork starts a new session from a record of another one, in its own folder.
func (inv *invocation) runFork(ctx context.Context, a *app.Workspace) error {
	inv.warnIncompleteWorktrees(a)
	f, err := a.ForkSession(ctx, inv.flags.args[0], uint64(inv.flags.atRecord), inv.flags.session.NewID)
	if err != nil {
		return err
	}
	return inv.printWrapped(append(inv.forkLines(f), inv.printer.T("Continue it: coder --cwd %s -r %s", f.Workspace,
		f.Session))...)
}

// forkLines describes a fork, and what in it differs from the original.
func (inv *invocation) forkLines(f app.ForkResult) []string {
	t := inv.printer.T
	lines := []string{t("Session %s starts at record %d of %s.", f.Session, f.Record, f.Source)}
	if f.Repo != "" {
		lines = append(lines, t("Files: %s (git worktree, branch %s)", singleLine(f.Workspace), f.Branch))
	} else {
		lines = append(lines, t("Files: %s (copy)", singleLine(f.Workspace)))
	}
	switch {
	case f.Yolo:
		lines = append(lines, t("Mode: %s (yolo does not carry over)", mode.Build))
	case f.Mode != "":
		lines = append(lines, t("Mode: %s", f.Mode))
	}
	if f.Within != "" {
		lines = append(lines, t("Record %d is within a call of %s: the call is cancelled, files are as before it.", f.Record,
			singleLine(f.Within)))
	}
	if len(f.Lost) > 0 {
		lines = append(lines, t("Missing, because their content was not saved: %s", singleLine(strings.Join(f.Lost, ", "))))
	}
	if len(f.Outside) > 0 {
		lines = append(lines, t("Outside the project, so unchanged: %s", singleLine(strings.Join(f.Outside, ", "))))
	}
	return lines
}

// warnIncompleteWorktrees lists worktrees that are incomplete because the program ended.
func (inv *invocation) warnIncompleteWorktrees(a *app.Workspace) {
	book, err := a.WorktreeBook()
	if err != nil {
		return
	}
	all, _ := book.List()
	for _, e := range all {
		if e.Fingerprint == "" {
			inv.warn(fmt.Sprintf("The worktree %s was never finished. coder worktree remove %[1]s deletes it.", e.Name))
		}
	}
}

// forkFirst starts the session for --fork-session --at, and makes the rest of the command line apply to
// it.
func (inv *invocation) forkFirst(ctx context.Context) error {
	fl := inv.flags
	a, err := inv.newApp(inv.warn)
	if err != nil {
		return err
	}
	id := fl.session.ResumeID
	if id == "" {
		if id, err = a.Store().LastSession(); err != nil {
			return err
		}
	}
	at := uint64(fl.atRecord)
	if fl.resumeAt != "" {
		if at, err = messageRecord(ctx, a, id, fl.resumeAt); err != nil {
			return err
		}
	}
	f, err := a.ForkSession(ctx, id, at, fl.session.NewID)
	if err != nil {
		return err
	}
	for _, line := range inv.forkLines(f) {
		inv.warn(line)
	}
	fl.Dir, fl.atRecord, fl.resumeAt = f.Workspace, 0, ""
	fl.session = app.SessionChoice{ResumeID: f.Session}
	inv.callDir = ""
	inv.loadSettings(fl)
	return nil
}

// messageRecord returns the record of a message in the stream, by its uuid or by the record's number.
func messageRecord(ctx context.Context, a *app.Workspace, id, message string) (uint64, error) {
	if n, err := strconv.ParseUint(message, 10, 32); err == nil && n > 0 {
		return n, nil
	}
	for r, err := range a.Store().Logs.Read(ctx, id, 0) {
		if err != nil {
			return 0, err
		}
		if streamjson.UUID(id, r.Seq) == message {
			return r.Seq, nil
		}
	}
	return 0, inputErrorf("session %s has no message %s", id, singleLine(message))
}

// worktreeVerbs lists the commands for worktrees.
var worktreeVerbs = []string{"list", "remove"}

// runWorktree lists the worktrees of forks, or removes one.
func (inv *invocation) runWorktree(ctx context.Context, a *app.Workspace) error {
	book, err := a.WorktreeBook()
	if err != nil {
		return err
	}
	if inv.flags.args[0] == "remove" {
		if len(inv.flags.args) != 2 {
			return usageErrorf("coder worktree remove needs a name; coder worktree list shows them")
		}
		return inv.removeWorktree(ctx, a, book, inv.flags.args[1])
	}
	all, err := book.List()
	if err != nil {
		inv.warn(err.Error())
	}
	if inv.flags.json {
		return inv.printJSON(append([]worktree.Entry{}, all...))
	}
	if len(all) == 0 {
		return inv.printWrapped(inv.printer.T("No worktrees."))
	}
	t := display.Table{Header: display.TextCells("name", "made", "from", "session", "folder")}
	for _, e := range all {
		row := display.DataCells(e.Name, e.Created.Local().Format("2006-01-02 15:04"),
			fmt.Sprintf("%s #%d", e.Source, e.Record), e.Session, singleLine(e.Workspace))
		if state := worktreeProblem(e); state != "" {
			row = append(row, display.TextCells(state)...)
		}
		t.Rows = append(t.Rows, row)
	}
	return inv.printBlocks(t)
}

// worktreeProblem describes a worktree's problem; "" if there is none.
func worktreeProblem(e worktree.Entry) string {
	if e.Fingerprint == "" {
		return "never finished"
	}
	if _, err := os.Lstat(e.Dir); errors.Is(err, fs.ErrNotExist) {
		return "folder is gone"
	}
	return ""
}

// removeWorktree removes a worktree with its session. A used worktree is removed only with force.
func (inv *invocation) removeWorktree(ctx context.Context, a *app.Workspace, book worktree.Registry,
	name string) error {
	e, err := book.Find(name)
	if errors.Is(err, fs.ErrNotExist) {
		return inputErrorf("Unknown worktree %s. coder worktree list shows them.", singleLine(name))
	}
	if err != nil {
		return inputErrorf("%v", err)
	}
	if worktreeProblem(e) == "" && !inv.flags.force {
		now, err := worktree.Fingerprint(e.Dir)
		if err != nil || now != e.Fingerprint {
			return inputErrorf("Files or sessions in %s changed since the fork. --force removes them all.", singleLine(e.Dir))
		}
	}
	if jsonl.InUse(filepath.Join(e.Workspace, ".coder", "log", e.Session)) {
		return inputErrorf("A process is working on session %s in %s.", e.Session, singleLine(e.Workspace))
	}
	stays, err := a.RemoveWorktree(ctx, e)
	if err != nil {
		return err
	}
	lines := []string{inv.printer.T("Removed %s with session %s.", singleLine(e.Dir), e.Session)}
	if stays {
		lines = append(lines, inv.printer.T("Kept branch %s, which has new commits.", e.Branch))
	}
	return inv.printWrapped(lines...)
}
