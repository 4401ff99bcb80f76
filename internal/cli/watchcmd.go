package cli

import (
	"bytes"
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

	xterm "golang.org/x/term"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/sanitize"
	"coder/internal/core/uip"
	"coder/internal/record/session"
	"coder/internal/ui/events"
	"coder/internal/ui/i18n"
	"coder/internal/ui/term"
)

// followTime is how often a session that is followed is looked at.
const followTime = 150 * time.Millisecond

// runWatch follows a session that another process works in, by its logs alone:
// it claims nothing, writes nothing and answers nothing.
func (inv *invocation) runWatch(ctx context.Context) error {
	fl := inv.flags
	if len(fl.args) > 1 {
		return usagef("coder watch takes one session; coder sessions lists them")
	}
	a, err := inv.newApp(inv.warn)
	if err != nil {
		return err
	}
	store := a.Store()
	id, err := store.Last()
	if len(fl.args) == 1 {
		id, err = fl.args[0], nil
	}
	if err != nil {
		return err
	}
	known, err := store.Records.Exists(ctx, id)
	if err != nil {
		return err
	}
	if !known {
		return fmt.Errorf("session %s: %w", id, session.ErrNotFound)
	}
	f := &follower{logs: store.Logs, dir: store.Dir("log", id), session: id, words: inv.words, after: uint64(max(fl.from-1, 0))}
	if fl.lastTurn {
		if err := f.skipToLastTurn(ctx); err != nil {
			return err
		}
	}
	return f.follow(ctx, inv.watcher())
}

// watcher is the face of someone who looks on.
func (inv *invocation) watcher() event.Sink {
	if inv.flags.events != "" {
		view, err := events.ParseView(inv.flags.events)
		if err != nil {
			panic(err) // the flag allows no other
		}
		return events.New(inv.Stdout, view)
	}
	o := term.Options{Out: inv.Stdout, Words: inv.words, Palette: inv.palette(false), Now: inv.Now, ASCII: !inv.utf8()}
	if _, out, ok := inv.Terminal(); ok {
		o.Palette = inv.palette(true)
		o.Width = func() int {
			cols, _, err := xterm.GetSize(int(out.Fd()))
			if err != nil {
				return 0
			}
			return cols
		}
	}
	return &replay{face: term.New(o), words: inv.words, calls: make(map[string]event.ToolCallRequested)}
}

// follower reads what is added to the logs of a session.
type follower struct {
	logs    event.Store
	dir     string // that they lie in
	words   *i18n.Printer
	session string
	after   uint64 // the last record that was shown
}

// skipToLastTurn goes to where the last turn began.
func (f *follower) skipToLastTurn(ctx context.Context) error {
	for r, err := range f.logs.Read(ctx, f.session, 0, event.Domain) {
		if err != nil {
			return err
		}
		if e, ok := r.Event.(event.TaskCreated); ok && e.ParentID == "" {
			f.after = r.Seq - 1
		}
	}
	return nil
}

// follow shows the session until nobody works in it any more.
func (f *follower) follow(ctx context.Context, out event.Sink) error {
	tick := time.NewTicker(followTime)
	defer tick.Stop()
	var seen int64
	for {
		live := f.live() // before reading: what is written last is read too
		if now := f.size(); now != seen {
			seen = now
			if err := f.show(ctx, out); err != nil {
				return err
			}
		}
		if !live {
			return f.end(out)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return &exitError{code: ExitInterrupted}
		}
	}
}

func (f *follower) show(ctx context.Context, out event.Sink) error {
	for r, err := range f.logs.Read(ctx, f.session, f.after) {
		if ctx.Err() != nil {
			return &exitError{code: ExitInterrupted}
		}
		if err != nil {
			return err
		}
		if err := out.Emit(ctx, r); err != nil {
			return err
		}
		f.after = r.Seq
	}
	return nil
}

// end says that there is nothing more to see.
func (f *follower) end(out event.Sink) error {
	if p, ok := out.(*replay); ok {
		return p.face.Insert(f.words.T("no process works in session %s; go on with it by: coder -r %[1]s", f.session))
	}
	return nil
}

// size is how long the logs are together.
func (f *follower) size() (n int64) {
	for _, l := range event.Logs {
		if info, err := os.Stat(filepath.Join(f.dir, l.String()+".jsonl")); err == nil {
			n += info.Size()
		}
	}
	return n
}

// live reports whether a process works in the session, without trying its lock:
// by the note in it, and by what the system says of who locks what.
func (f *follower) live() bool {
	path := filepath.Join(f.dir, "lock")
	lock, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer lock.Close()
	text, err := io.ReadAll(io.LimitReader(lock, 4<<10))
	var note struct {
		PID int `json:"pid"`
	}
	if err != nil || json.Unmarshal(text, &note) != nil || note.PID <= 0 {
		return false
	}
	if err := syscall.Kill(note.PID, 0); err != nil && !errors.Is(err, syscall.EPERM) {
		return false
	}
	info, err := lock.Stat()
	if err != nil {
		return true
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || !letGo(note.PID, stat.Ino)
}

// letGo reports whether a process that holds locks does not hold the one of
// this file.
func letGo(pid int, inode uint64) bool {
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return false
	}
	any := false
	for line := range bytes.Lines(locks) {
		fields := strings.Fields(string(line))
		if len(fields) < 6 || fields[1] != "FLOCK" || fields[4] != fmt.Sprint(pid) {
			continue
		}
		any = true
		if strings.HasSuffix(fields[5], fmt.Sprintf(":%d", inode)) {
			return false
		}
	}
	return any
}

// replay shows records as the terminal showed what they are of. What was only
// seen, such as the start of a call, is made of what is kept.
type replay struct {
	face  *term.Renderer
	words *i18n.Printer
	calls map[string]event.ToolCallRequested
}

func (p *replay) Emit(ctx context.Context, r event.Record) error {
	switch e := r.Event.(type) {
	case event.MessageAdded:
		if e.Message.Role == chat.User && r.Actor == "user" {
			if err := p.face.Insert("> " + sanitize.Text(e.Message.Text())); err != nil {
				return err
			}
		}
	case event.LocalAdded:
		if err := p.face.Insert("> " + sanitize.Text(e.Input)); err != nil {
			return err
		}
	case event.InteractionRequested:
		return p.face.Insert(p.face.Cards().Draw(e.Request))
	case event.InteractionResponded:
		return p.face.Insert("> " + p.answer(e.Response))
	case event.ToolCallRequested:
		p.calls[e.CallID] = e
		started := event.ToolStarted{CallID: e.CallID, Tool: e.Tool, Title: strings.Join(event.Targets(e.Effects), ", ")}
		return errors.Join(p.face.Emit(ctx, r), p.face.Emit(ctx, p.made(r, started)))
	case event.ToolCallCompleted:
		return p.finish(ctx, r, e)
	}
	return p.face.Emit(ctx, r)
}

// made is something that was only seen, told by r.
func (p *replay) made(r event.Record, e event.Event) event.Record {
	r.Seq, r.Event = 0, e
	return r
}

// answer is what was answered, and by whom.
func (p *replay) answer(a uip.Response) string {
	given := a.Option
	switch {
	case a.Dismissed:
		given = p.words.T("(dismissed)")
	case given == "":
		given = a.Input
	}
	for _, part := range a.Parts {
		given = strings.TrimSpace(given + " " + part.ID + "=" + part.Option + part.Input)
	}
	if a.Comment != "" {
		given += ", " + a.Comment
	}
	return sanitize.Line(given, 400) + " (" + sanitize.Line(a.Author, 40) + ")"
}

// finish shows what came of a call.
func (p *replay) finish(ctx context.Context, r event.Record, e event.ToolCallCompleted) error {
	var out struct {
		ExitCode  *int   `json:"exit_code"`
		Stdout    string `json:"stdout"`
		Stderr    string `json:"stderr"`
		Diff      string `json:"diff"`
		Operation string `json:"operation"`
		Error     string `json:"error"`
	}
	_ = json.Unmarshal(e.Output, &out) // what is missing is not shown
	call := p.calls[e.CallID]
	delete(p.calls, e.CallID)
	done := event.ToolFinished{
		CallID: e.CallID, Tool: e.Tool, Title: strings.Join(event.Targets(call.Effects), ", "), Failed: e.IsError, Denied: call.Verdict != event.Allowed,
		Took: time.Duration(e.DurationMs) * time.Millisecond, Summary: out.Operation, Result: chat.ToolResult{CallID: e.CallID, Name: e.Tool, Text: string(e.Output), Failed: e.IsError},
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
	if text := out.Stdout + out.Stderr; text != "" {
		if err := p.face.Emit(ctx, p.made(r, event.ToolOutput{CallID: e.CallID, Text: text})); err != nil {
			return err
		}
	}
	return p.face.Emit(ctx, p.made(r, done))
}
