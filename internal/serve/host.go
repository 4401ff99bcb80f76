// Package serve holds sessions open for their faces: a terminal, a pipe, a program, an editor, a page. A
// face shows events and answers questions. Sessions open, run and close in the same way for all faces.
package serve

import (
	"context"
	"fmt"
	"sync"

	"coder/internal/agent/orchestrator"
	"coder/internal/agent/supervisor"
	"coder/internal/app"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/ui/drive"
)

// Options say how to run a session. The zero Options open a new one,
// show it to nobody, and wait for answers from [Questions.Answer].
type Options struct {
	Which app.Which
	Sink  event.Sink // shows events
	// Person answers questions.
	Person uip.Interactor
	Screen app.Screen // the person's terminal, if there is one
	// Elsewhere lets the user's other processes answer, too. Said, if set, reports here that one did.
	Elsewhere bool
	Said      func(text string)
	// Kept asks only recorded questions: others could not be answered later.
	Kept bool
}

// Host is an open session with its input: its [drive.Queue]. A command may switch to
// another session, which is then the open one. Use [Open], and close it after use.
type Host struct {
	*drive.Queue
	App       *app.Workspace
	Questions *Questions

	sup  *app.Sessions
	sink event.Sink

	mu      sync.Mutex // guards the fields below
	session *supervisor.Session
	over    bool
}

// Open opens a session in a workspace.
func Open(ctx context.Context, a *app.Workspace, o Options) (*Host, error) {
	h := &Host{Queue: drive.NewQueue(), App: a, sink: o.Sink}
	if h.sink == nil {
		h.sink = event.Discard
	}
	if o.Said == nil {
		o.Said = func(string) {}
	}
	h.Questions = &Questions{
		app: a, id: h.ID, here: o.Person, said: o.Said, kept: o.Kept,
		afar: o.Elsewhere && !a.Options.Ephemeral && a.Home != "", // without a record, another process could not find the question
	}
	h.sink = event.Tee(event.SinkFunc(h.Questions.note), h.sink)
	h.sup = a.Supervise(h.Questions, o.Screen)
	opened, err := a.Open(ctx, h.sup, o.Which, h.sink)
	if err != nil {
		a.Store().Tidy()
		return nil, err
	}
	h.session = opened
	return h, nil
}

// Session returns the open session.
func (h *Host) Session() *supervisor.Session {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.session
}

// Inside returns what the open session has: its judge, tools, usage and checks.
func (h *Host) Inside() *app.Session { return h.sup.Opened() }

// ID returns the session's id.
func (h *Host) ID() string { return h.Session().ID }

// Over reports whether the user has ended the work.
func (h *Host) Over() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.over
}

// Outcome is the result of an input.
type Outcome struct {
	Text   string
	Left   *Result // the previous session, if the input switched to another
	Stayed error   // why it did not switch
}

// Do runs one input, and switches sessions if it says so.
func (h *Host) Do(ctx context.Context, said orchestrator.Said) (out Outcome, err error) {
	done, err := h.Say(ctx, said, h.sink)
	out.Text = done.Text
	if err == nil && done.Next != nil {
		out.Left, out.Stayed = h.Follow(ctx, done.Next)
	}
	return out, err
}

// Say runs one input, shown on out, and returns where it leads.
func (h *Host) Say(ctx context.Context, said orchestrator.Said, out event.Sink) (orchestrator.Outcome, error) {
	return h.Session().RunSaid(ctx, said, out)
}

// Continue resumes the unfinished turn.
func (h *Host) Continue(ctx context.Context) (answer string, err error) {
	return h.Session().Continue(ctx, h.sink)
}

// TakeUp asks the user about the unfinished turn. It returns
// any new prompt from the user for the caller to run.
func (h *Host) TakeUp(ctx context.Context, out event.Sink) (answer, words string, err error) {
	return h.Session().TakeUp(ctx, out)
}

// Serve runs the queued messages one after the other, until no more come or the user ends
// the work. The running turn may include messages early. An error from run ends the work.
func (h *Host) Serve(ctx context.Context, run func(context.Context, drive.Message) error) error {
	return h.Queue.Serve(ctx, func(ctx context.Context, m drive.Message) error {
		h.Session().Steer(h.Soon)
		err := run(ctx, m)
		if h.Over() {
			h.Finish()
		}
		return err
	})
}

// Follow switches to the user's next session. If that fails, the session stays open.
func (h *Host) Follow(ctx context.Context, to *orchestrator.Next) (*Result, error) {
	if to.Exit {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.over = true
		return nil, nil
	}
	was := h.Session()
	other, err := h.App.Move(ctx, h.sup, to, was.ID, h.sink)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	h.session = other
	h.mu.Unlock()
	left := h.end(was)
	return &left, nil
}

// Result says how a session was closed.
type Result struct {
	ID     string
	Unused bool  // nothing was asked or decided in it
	Unkept error // why some of it is not saved; nil if all is
	Err    error // what failed when closing it
}

// Close closes the session and everything that runs in it, and repairs what killed processes left behind.
func (h *Host) Close(ctx context.Context) Result {
	done := h.end(h.Session())
	h.App.Store().MendSnapshots(ctx, done.ID)
	return done
}

// end closes a session. An empty session leaves nothing behind.
func (h *Host) end(s *supervisor.Session) Result {
	done := Result{ID: s.ID}
	if err := s.Close(); err != nil {
		done.Err = fmt.Errorf("close the session: %w", err)
	}
	store := h.App.Store()
	done.Unkept = store.Unkept()
	store.Forget(s.ID)
	done.Unused = store.Unused(s.ID)
	return done
}
