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
	"coder/internal/core/message"
	"coder/internal/core/sanitize"
	"coder/internal/core/uip"
	"coder/internal/record/session"
	"coder/internal/report/export"
	"coder/internal/ui/i18n"
	"coder/internal/ui/term"
	"coder/internal/ui/term/ink"
)

// pollInterval is the poll interval of a followed session.
const pollInterval = 150 * time.Millisecond

// runWatch follows a session of another process by its logs alone: it claims nothing, writes nothing and
// answers nothing. It ends when no process holds the session any more.
func (inv *invocation) runWatch(ctx context.Context, a *app.Workspace) error {
	fl := inv.flags
	store := a.Store()
	id := strings.Join(fl.args, "")
	if len(fl.args) == 0 {
		var err error
		if id, err = store.LastSession(); err != nil {
			return err
		}
	}
	if known, err := store.Supervisor.Exists(ctx, id); err != nil {
		return err
	} else if !known {
		return message.Errorf("session %s: %w", id, session.ErrNotFound)
	}
	after := uint64(max(fl.fromRecord-1, 0)) // the last record shown
	if fl.lastTurn {
		for r, err := range store.Logs.Read(ctx, id, 0, event.LogDomain) {
			if err != nil {
				return err
			}
			if e, ok := r.Event.(event.TaskCreated); ok && e.ParentID == "" {
				after = r.Seq - 1
			}
		}
	}
	out, over := inv.newWatcher(id)
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	var seen int64 // total length of the logs
	for {
		live, size := isLive(store.Path("log", id, "lock")), int64(0) // before reading, so that the last write is read too
		for _, l := range event.AllLogs {
			if info, err := os.Stat(store.Path("log", id, l.String()+".jsonl")); err == nil {
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

// newWatcher returns the face of a viewer, and a function to call at the end.
func (inv *invocation) newWatcher(id string) (out event.Sink, over func() error) {
	if inv.flags.events != "" {
		return inv.eventStream(), func() error { return nil }
	}
	o := term.Options{Out: inv.Stdout, Translator: inv.printer, Palette: inv.palette(false), Now: inv.Now,
		ASCII: inv.useASCII()}
	if _, out, ok := inv.Terminal(); ok {
		o.Palette = inv.palette(true)
		o.Width = func() int { return terminalWidth(out) }
	}
	face := term.New(o)
	return &replayFace{face: face, printer: inv.printer, callFilter: newCallSink(face)}, func() error {
		return face.Insert(inv.printer.T("no process is working in session %s; continue it with: coder -r %[1]s", id))
	}
}

// isLive reports whether a process holds the session's lock.
func isLive(path string) bool { return lockHolder(path) > 0 }

// lockHolder returns the process that holds a session's lock, or 0, without locking: from the note in it,
// and from the system's list of locks.
func lockHolder(path string) (pid int) {
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
		if fields := strings.Fields(string(line)); len(fields) >= 6 && fields[1] == "FLOCK" &&
			strings.HasSuffix(fields[5], fmt.Sprintf(":%d", inode)) {
			return false
		}
	}
	return true
}

// replayFace shows records as the terminal showed their events. Transient events, such as the start of a
// call, are derived from the records.
type replayFace struct {
	face       *term.Renderer
	printer    *i18n.Printer
	callFilter *callSink
	// heldRecords are the records of what the user's command undid or redid: they precede the command itself.
	heldRecords   []event.Record
	openQuestions map[string]uip.Request // unanswered questions
}

// showHeld shows the held records.
func (p *replayFace) showHeld(ctx context.Context) error {
	held := p.heldRecords
	p.heldRecords = nil
	for _, r := range held {
		if err := p.callFilter.Emit(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// isRestoreRecord reports whether a record belongs to a call that undid or redid file changes for the user.
func isRestoreRecord(e event.Event) bool {
	tool, author := "", ""
	switch e := e.(type) {
	case event.ToolCallRequested:
		tool, author = e.Tool, e.Author
	case event.ToolCallCompleted:
		tool, author = e.Tool, e.Author
	}
	return author == event.ActorUser && (tool == "undo" || tool == "redo")
}

func (p *replayFace) Emit(ctx context.Context, r event.Record) error {
	if isRestoreRecord(r.Event) {
		p.heldRecords = append(p.heldRecords, r)
		return nil
	}
	switch r.Event.(type) {
	case event.LocalAdded, event.ContextRewound, event.TodosChanged: // the command follows
	default:
		if err := p.showHeld(ctx); err != nil {
			return err
		}
	}
	switch e := r.Event.(type) {
	case event.MessageAdded:
		if event.IsUserMessage(r) {
			if err := p.showUserMessage(sanitize.Text(e.Message.Text())); err != nil {
				return err
			}
		}
	case event.LocalAdded:
		if err := errors.Join(p.showUserMessage(sanitize.Text(e.Input)), p.showHeld(ctx)); err != nil {
			return err
		}
	case event.InteractionRequested:
		if p.openQuestions == nil {
			p.openQuestions = make(map[string]uip.Request)
		}
		p.openQuestions[e.Request.ID] = e.Request
		return p.face.Insert(p.face.Cards().Draw(e.Request))
	case event.InteractionResponded:
		given := describeResponse(p.printer, p.openQuestions[e.ID], e.Response)
		delete(p.openQuestions, e.ID)
		return p.showUserMessage(given)
	}
	return p.callFilter.Emit(ctx, r)
}

// describeResponse describes the answer to a question, and who gave it if not the user here.
func describeResponse(words *i18n.Printer, q uip.Request, a uip.Response) string {
	given := sanitize.Line(export.Locale{Translator: words}.Response(q, a), 400)
	if a.Author != event.ActorUser {
		given += " (" + sanitize.Line(a.Author, 40) + ")"
	}
	return given
}

// showUserMessage shows the user's message, wrapped between words to the terminal's width.
func (p *replayFace) showUserMessage(text string) error {
	columns := 0
	if width := p.face.Cards().Width; width != nil {
		columns = width()
	}
	return p.face.Insert(ink.FoldText("> "+text, columns))
}

// callSink sends the events of the calls' records to to, as seen when they ran.
type callSink struct {
	sink         event.Sink
	runningCalls map[string]event.ToolCallRequested // running calls
}

func newCallSink(to event.Sink) *callSink {
	return &callSink{to, make(map[string]event.ToolCallRequested)}
}

func (p *callSink) Emit(ctx context.Context, r event.Record) error {
	switch e := r.Event.(type) {
	case event.ToolCallRequested:
		p.runningCalls[e.CallID] = e
		if e.Verdict == event.VerdictDenied || e.Verdict == event.VerdictCancelled || e.Verdict == event.VerdictInvalid {
			return p.sink.Emit(ctx, r) // it never began
		}
		started := event.ToolStarted{CallID: e.CallID, Tool: e.Tool, Title: callTitle(e)}
		return errors.Join(p.sink.Emit(ctx, r), p.sink.Emit(ctx, p.transientRecord(r, started)))
	case event.ToolCallCompleted:
		return p.showResult(ctx, r, e)
	}
	return p.sink.Emit(ctx, r)
}

// callTitle returns the call's title as the user saw it; records of earlier versions have only its
// subject.
func callTitle(e event.ToolCallRequested) string {
	return cmp.Or(e.Title, strings.Join(event.Targets(e.Effects), ", "))
}

// transientRecord returns a transient event with r's envelope.
func (p *callSink) transientRecord(r event.Record, e event.Event) event.Record {
	r.Seq, r.Event = 0, e
	return r
}

// showResult shows a call's result.
func (p *callSink) showResult(ctx context.Context, r event.Record, e event.ToolCallCompleted) error {
	var out struct {
		ExitCode  *int   `json:"exit_code"`
		Stdout    string `json:"stdout"`
		Stderr    string `json:"stderr"`
		Diff      string `json:"diff"`
		Operation string `json:"operation"`
		Error     string `json:"error"`
	}
	_ = json.Unmarshal(e.Output, &out) // missing fields are not shown
	call := p.runningCalls[e.CallID]
	delete(p.runningCalls, e.CallID)
	done := event.ToolFinished{
		CallID: e.CallID, Tool: e.Tool, Title: callTitle(call), Failed: e.IsError,
		Denied:   call.Verdict == event.VerdictDenied,
		Duration: time.Duration(e.DurationMs) * time.Millisecond, Summary: out.Operation,
		Result: chat.ToolResult{CallID: e.CallID, Name: e.Tool, Text: string(e.Output), Failed: e.IsError},
	}
	if e.OutcomeUnknown {
		done.Duration = -1 // unknown
	}
	switch {
	case out.ExitCode != nil:
		done.Summary = fmt.Sprintf("exit %d", *out.ExitCode)
	case e.IsError:
		done.Summary = out.Error
	case out.Diff != "":
		diff := display.NewDiff(out.Diff)
		done.Content, done.Summary = diff, fmt.Sprintf("%s, +%d -%d", out.Operation, diff.Added, diff.Deleted)
	}
	done.Summary = cmp.Or(e.Summary, done.Summary)
	if text := out.Stdout + out.Stderr; text != "" {
		if err := p.sink.Emit(ctx, p.transientRecord(r, event.ToolOutput{CallID: e.CallID, Text: text})); err != nil {
			return err
		}
	}
	return p.sink.Emit(ctx, p.transientRecord(r, done))
}
