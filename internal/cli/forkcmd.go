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
	inv.warnOfUnfinished(a)
	f, err := a.ForkAt(ctx, inv.flags.args[0], uint64(inv.flags.at), inv.flags.session.ID)
	if err != nil {
		return err
	}
	return inv.tell(append(inv.forkLines(f), inv.words.T("Continue it: coder --cwd %s -r %s", f.Work, f.Session))...)
}

// forkLines describes a fork, and what in it differs from the original.
func (inv *invocation) forkLines(f app.Forked) []string {
	t := inv.words.T
	lines := []string{t("Session %s starts at record %d of %s.", f.Session, f.At, f.Source)}
	if f.Repo != "" {
		lines = append(lines, t("Files: %s (git worktree, branch %s)", oneLine(f.Work), f.Branch))
	} else {
		lines = append(lines, t("Files: %s (copy)", oneLine(f.Work)))
	}
	switch {
	case f.Yolo:
		lines = append(lines, t("Mode: %s (yolo does not carry over)", mode.Build))
	case f.Mode != "":
		lines = append(lines, t("Mode: %s", f.Mode))
	}
	if f.Within != "" {
		lines = append(lines, t("Record %d is within a call of %s: the call is cancelled, files are as before it.", f.At, oneLine(f.Within)))
	}
	if len(f.Lost) > 0 {
		lines = append(lines, t("Missing, because their content was not saved: %s", oneLine(strings.Join(f.Lost, ", "))))
	}
	if len(f.Outside) > 0 {
		lines = append(lines, t("Outside the project, so unchanged: %s", oneLine(strings.Join(f.Outside, ", "))))
	}
	return lines
}

// warnOfUnfinished lists worktrees that are incomplete because the program ended.
func (inv *invocation) warnOfUnfinished(a *app.Workspace) {
	book, err := a.Worktrees()
	if err != nil {
		return
	}
	all, _ := book.List()
	for _, e := range all {
		if e.Print == "" {
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
	id := fl.session.Resume
	if id == "" {
		if id, err = a.Store().Last(); err != nil {
			return err
		}
	}
	at := uint64(fl.at)
	if fl.resumeAt != "" {
		if at, err = recordOf(ctx, a, id, fl.resumeAt); err != nil {
			return err
		}
	}
	f, err := a.ForkAt(ctx, id, at, fl.session.ID)
	if err != nil {
		return err
	}
	for _, line := range inv.forkLines(f) {
		inv.warn(line)
	}
	fl.Dir, fl.at, fl.resumeAt = f.Work, 0, ""
	fl.session = app.Which{Resume: f.Session}
	inv.below = ""
	inv.load(fl)
	return nil
}

// recordOf returns the record of a message in the stream, by its uuid or by the record's number.
func recordOf(ctx context.Context, a *app.Workspace, id, message string) (uint64, error) {
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
	return 0, inputf("session %s has no message %s", id, oneLine(message))
}

// worktreeVerbs lists the commands for worktrees.
var worktreeVerbs = []string{"list", "remove"}

// runWorktree lists the worktrees of forks, or removes one.
func (inv *invocation) runWorktree(ctx context.Context, a *app.Workspace) error {
	book, err := a.Worktrees()
	if err != nil {
		return err
	}
	if inv.flags.args[0] == "remove" {
		if len(inv.flags.args) != 2 {
			return usagef("coder worktree remove needs a name; coder worktree list shows them")
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
		return inv.tell(inv.words.T("No worktrees."))
	}
	t := display.Table{Head: display.Words("name", "made", "from", "session", "folder")}
	for _, e := range all {
		row := display.Data(e.Name, e.Made.Local().Format("2006-01-02 15:04"), fmt.Sprintf("%s #%d", e.Source, e.At), e.Session, oneLine(e.Work))
		if state := stateOf(e); state != "" {
			row = append(row, display.Words(state)...)
		}
		t.Rows = append(t.Rows, row)
	}
	return inv.show(t)
}

// stateOf describes a worktree's problem; "" if there is none.
func stateOf(e worktree.Entry) string {
	if _, err := os.Lstat(e.Dir); errors.Is(err, fs.ErrNotExist) {
		return "folder is gone"
	}
	if e.Print == "" {
		return "never finished"
	}
	return ""
}

// removeWorktree removes a worktree with its session. A used worktree is removed only with force.
func (inv *invocation) removeWorktree(ctx context.Context, a *app.Workspace, book worktree.Book, name string) error {
	e, err := book.Find(name)
	if errors.Is(err, fs.ErrNotExist) {
		return inputf("Unknown worktree %s. coder worktree list shows them.", oneLine(name))
	}
	if err != nil {
		return inputf("%v", err)
	}
	if stateOf(e) == "" && !inv.flags.force {
		now, err := worktree.Print(e.Dir)
		if err != nil || now != e.Print {
			return inputf("Files or sessions in %s changed since the fork. --force removes them all.", oneLine(e.Dir))
		}
	}
	if jsonl.InUse(filepath.Join(e.Work, ".coder", "log", e.Session)) {
		return inputf("A process is working on session %s in %s.", e.Session, oneLine(e.Work))
	}
	stays, err := a.RemoveWorktree(ctx, e)
	if err != nil {
		return err
	}
	lines := []string{inv.words.T("Removed %s with session %s.", oneLine(e.Dir), e.Session)}
	if stays {
		lines = append(lines, inv.words.T("Kept branch %s: it has new commits.", e.Branch))
	}
	return inv.tell(lines...)
}
