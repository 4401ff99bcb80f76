package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"coder/internal/app"
	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/sanitize"
	"coder/internal/core/uip"
	"coder/internal/record/session"
	"coder/internal/report/export"
	"coder/internal/ui/i18n"
	"coder/internal/ui/term"
	"coder/internal/ui/term/ink"
)

// followTime is the poll interval of a followed session.
const followTime = 150 * time.Millisecond

// runWatch follows a session of another process by its logs alone: it claims nothing, writes nothing and
// answers nothing. It ends when no process holds the session any more.
func (inv *invocation) runWatch(ctx context.Context, a *app.Workspace) error {
	fl := inv.flags
	store := a.Store()
	id := strings.Join(fl.args, "")
	if len(fl.args) == 0 {
		var err error
		if id, err = store.Last(); err != nil {
			return err
		}
	}
	if known, err := store.Records.Exists(ctx, id); err != nil {
		return err
	} else if !known {
		return fmt.Errorf("session %s: %w", id, session.ErrNotFound)
	}
	after := uint64(max(fl.from-1, 0)) // the last record shown
	if fl.lastTurn {
		for r, err := range store.Logs.Read(ctx, id, 0, event.Domain) {
			if err != nil {
				return err
			}
			if e, ok := r.Event.(event.TaskCreated); ok && e.ParentID == "" {
				after = r.Seq - 1
			}
		}
	}
	out, over := inv.watcher(id)
	tick := time.NewTicker(followTime)
	defer tick.Stop()
	var seen int64 // total length of the logs
	for {
		live, size := isLive(store.Dir("log", id, "lock")), int64(0) // before reading, so that the last write is read too
		for _, l := range event.Logs {
			if info, err := os.Stat(store.Dir("log", id, l.String()+".jsonl")); err == nil {
				size += info.Size()
			}
		}
		if size != seen {
			seen = size
			for r, err := range store.Logs.Read(ctx, id, after) {
				if ctx.Err() != nil {
					return &exitError{code: ExitInterrupted}
				}
				if err == nil {
					err = out.Emit(ctx, r)
				}
				if err != nil {
					return err
				}
				after = r.Seq
			}
		}
		if !live {
			return over()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return &exitError{code: ExitInterrupted}
		}
	}
}

// watcher returns the face of a viewer, and a function to call at the end.
func (inv *invocation) watcher(id string) (out event.Sink, over func() error) {
	if inv.flags.events != "" {
		return inv.eventStream(), func() error { return nil }
	}
	o := term.Options{Out: inv.Stdout, Words: inv.words, Palette: inv.palette(false), Now: inv.Now, ASCII: inv.ascii()}
	if _, out, ok := inv.Terminal(); ok {
		o.Palette = inv.palette(true)
		o.Width = func() int { return width(out) }
	}
	face := term.New(o)
	return &replay{face: face, words: inv.words, seen: newSeen(face)}, func() error {
		return face.Insert(inv.words.T("no process is working in session %s; continue it with: coder -r %[1]s", id))
	}
}

// isLive reports whether a process holds the session's lock.
func isLive(path string) bool { return holderOf(path) > 0 }

// holderOf returns the process that holds a session's lock, or 0, without locking: from the note in it,
// and from the system's list of locks.
func holderOf(path string) (pid int) {
	lock, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return 0
	}
	defer lock.Close()
	text, err := io.ReadAll(io.LimitReader(lock, 4<<10))
	var note struct {
		PID int `json:"pid"`
	}
	if err != nil || json.Unmarshal(text, &note) != nil || note.PID <= 0 {
		return 0
	}
	if err := syscall.Kill(note.PID, 0); err != nil && !errors.Is(err, syscall.EPERM) {
		return 0
	}
	info, err := lock.Stat()
	if err != nil {
		return note.PID
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && lockReleased(path, stat.Ino) {
		return 0
	}
	return note.PID
}

// lockReleased reports whether, according to the system, no process locks a file. A file system without
// locks has no such information: there a file serves as the lock.
func lockReleased(path string, inode uint64) bool {
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return false
	}
	if _, err := os.Lstat(filepath.Join(filepath.Dir(path), "owner")); err == nil {
		return false
	}
	for line := range bytes.Lines(locks) {
		if fields := strings.Fields(string(line)); len(fields) >= 6 && fields[1] == "FLOCK" && strings.HasSuffix(fields[5], fmt.Sprintf(":%d", inode)) {
			return false
		}
	}
	return true
}

// replay shows records as the terminal showed their events. Transient events, such as the start of a
// call, are derived from the records.
type replay struct {
	face  *term.Renderer
	words *i18n.Printer
	seen  *seen
	// held are the records of what the user's command undid or redid: they precede the command itself.
	held  []event.Record
	asked map[string]uip.Request // unanswered questions
}

// release shows the held records.
func (p *replay) release(ctx context.Context) error {
	held := p.held
	p.held = nil
	for _, r := range held {
		if err := p.seen.Emit(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// restores reports whether a record belongs to a call that undid or redid file changes for the user.
func restores(e event.Event) bool {
	tool, author := "", ""
	switch e := e.(type) {
	case event.ToolCallRequested:
		tool, author = e.Tool, e.Author
	case event.ToolCallCompleted:
		tool, author = e.Tool, e.Author
	}
	return author == event.ActorUser && (tool == "undo" || tool == "redo")
}

func (p *replay) Emit(ctx context.Context, r event.Record) error {
	if restores(r.Event) {
		p.held = append(p.held, r)
		return nil
	}
	switch r.Event.(type) {
	case event.LocalAdded, event.ContextRewound, event.TodosChanged: // the command follows
	default:
		if err := p.release(ctx); err != nil {
			return err
		}
	}
	switch e := r.Event.(type) {
	case event.MessageAdded:
		if event.ByPerson(r) {
			if err := p.echo(sanitize.Text(e.Message.Text())); err != nil {
				return err
			}
		}
	case event.LocalAdded:
		if err := errors.Join(p.echo(sanitize.Text(e.Input)), p.release(ctx)); err != nil {
			return err
		}
	case event.InteractionRequested:
		if p.asked == nil {
			p.asked = make(map[string]uip.Request)
		}
		p.asked[e.Request.ID] = e.Request
		return p.face.Insert(p.face.Cards().Draw(e.Request))
	case event.InteractionResponded:
		given := responseWords(p.words, p.asked[e.ID], e.Response)
		delete(p.asked, e.ID)
		return p.echo(given)
	}
	return p.seen.Emit(ctx, r)
}

// responseWords describes the answer to a question, and who gave it if not the user here.
func responseWords(words *i18n.Printer, q uip.Request, a uip.Response) string {
	given := sanitize.Line(export.Speech{Words: words}.Response(q, a), 400)
	if a.Author != event.ActorUser {
		given += " (" + sanitize.Line(a.Author, 40) + ")"
	}
	return given
}

// echo shows the user's message, wrapped between words to the terminal's width.
func (p *replay) echo(text string) error {
	columns := 0
	if width := p.face.Cards().Width; width != nil {
		columns = width()
	}
	return p.face.Insert(ink.Folded("> "+text, columns))
}

// seen sends the events of the calls' records to to, as seen when they ran.
type seen struct {
	to    event.Sink
	calls map[string]event.ToolCallRequested // running calls
}

func newSeen(to event.Sink) *seen { return &seen{to, make(map[string]event.ToolCallRequested)} }

func (p *seen) Emit(ctx context.Context, r event.Record) error {
	switch e := r.Event.(type) {
	case event.ToolCallRequested:
		p.calls[e.CallID] = e
		if e.Verdict == event.Denied || e.Verdict == event.Cancelled || e.Verdict == event.Invalid {
			return p.to.Emit(ctx, r) // it never began
		}
		started := event.ToolStarted{CallID: e.CallID, Tool: e.Tool, Title: titleOf(e)}
		return errors.Join(p.to.Emit(ctx, r), p.to.Emit(ctx, p.made(r, started)))
	case event.ToolCallCompleted:
		return p.finish(ctx, r, e)
	}
	return p.to.Emit(ctx, r)
}

// titleOf returns the call's title as the user saw it; records of earlier versions have only its
// subject.
func titleOf(e event.ToolCallRequested) string {
	return cmp.Or(e.Title, strings.Join(event.Targets(e.Effects), ", "))
}

// made returns a transient event with r's envelope.
func (p *seen) made(r event.Record, e event.Event) event.Record {
	r.Seq, r.Event = 0, e
	return r
}

// finish shows a call's result.
func (p *seen) finish(ctx context.Context, r event.Record, e event.ToolCallCompleted) error {
	var out struct {
		ExitCode  *int   `json:"exit_code"`
		Stdout    string `json:"stdout"`
		Stderr    string `json:"stderr"`
		Diff      string `json:"diff"`
		Operation string `json:"operation"`
		Error     string `json:"error"`
	}
	_ = json.Unmarshal(e.Output, &out) // missing fields are not shown
	call := p.calls[e.CallID]
	delete(p.calls, e.CallID)
	done := event.ToolFinished{
		CallID: e.CallID, Tool: e.Tool, Title: titleOf(call), Failed: e.IsError, Denied: call.Verdict == event.Denied,
		Took: time.Duration(e.DurationMs) * time.Millisecond, Summary: out.Operation, Result: chat.ToolResult{CallID: e.CallID, Name: e.Tool, Text: string(e.Output), Failed: e.IsError},
	}
	if e.Unknown {
		done.Took = -1 // unknown
	}
	switch {
	case out.ExitCode != nil:
		done.Summary = fmt.Sprintf("exit %d", *out.ExitCode)
	case e.IsError:
		done.Summary = out.Error
	case out.Diff != "":
		diff := display.Counted(out.Diff)
		done.Show, done.Summary = diff, fmt.Sprintf("%s, +%d -%d", out.Operation, diff.Added, diff.Deleted)
	}
	done.Summary = cmp.Or(e.Summary, done.Summary)
	if text := out.Stdout + out.Stderr; text != "" {
		if err := p.to.Emit(ctx, p.made(r, event.ToolOutput{CallID: e.CallID, Text: text})); err != nil {
			return err
		}
	}
	return p.to.Emit(ctx, p.made(r, done))
}
