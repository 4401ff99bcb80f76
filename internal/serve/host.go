// Package serve holds sessions open for the faces that work in them: a terminal, a pipe, a program, an
// editor, a page. Each of these is a face, which shows what happens and answers what is asked. How a
// session is opened, worked in and closed is the same for all.
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

// Options say how a session is worked in. The zero Options open a new one, show it to nobody,
// and wait for answers by [Questions.Answer].
type Options struct {
	Which app.Which
	Sink  event.Sink // is shown what happens
	// Person is asked what has to be asked.
	Person uip.Interactor
	// Elsewhere lets other processes of the user answer, too. Said, if set, tells the
	// person here when one did.
	Elsewhere bool
	Said      func(text string)
	// Kept asks only what is on the disk: what is not cannot be answered later.
	Kept bool
}

// Host is an open session, and what is said in it: its [drive.Queue]. A command may lead on to
// another session, which is then the one that is open. Use [Open], and close it.
type Host struct {
	*drive.Queue
	App       *app.App
	Questions *Questions

	sup  *supervisor.Supervisor
	sink event.Sink

	mu      sync.Mutex // guards the fields below
	session *supervisor.Session
	over    bool
}

// Open opens a session in a workspace.
func Open(ctx context.Context, a *app.App, o Options) (*Host, error) {
	h := &Host{Queue: drive.NewQueue(), App: a, sink: o.Sink}
	if h.sink == nil {
		h.sink = event.Discard
	}
	if o.Said == nil {
		o.Said = func(string) {}
	}
	h.Questions = &Questions{
		app: a, id: h.ID, here: o.Person, said: o.Said, kept: o.Kept,
		afar: o.Elsewhere && !a.Options.Ephemeral && a.Home != "", // else another process could not know the question by anything
	}
	h.sink = event.Tee(event.SinkFunc(h.Questions.note), h.sink)
	h.sup = a.Supervise(h.Questions)
	opened, err := a.Open(ctx, h.sup, o.Which, h.sink)
	if err != nil {
		a.Store().Tidy()
		return nil, err
	}
	h.session = opened
	return h, nil
}

// Session is the session that is open.
func (h *Host) Session() *supervisor.Session {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.session
}

// ID is that of the session.
func (h *Host) ID() string { return h.Session().ID }

// Over reports whether the person said that they are done.
func (h *Host) Over() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.over
}

// Outcome is what an input came to.
type Outcome struct {
	Text   string
	Left   *Result // of the session before, if the input led to another one
	Stayed error   // why it did not
}

// Do runs one input, and goes where it leads.
func (h *Host) Do(ctx context.Context, said orchestrator.Said) (out Outcome, err error) {
	done, err := h.Say(ctx, said, h.sink)
	out.Text = done.Text
	if err == nil && done.Next != nil {
		out.Left, out.Stayed = h.Follow(ctx, done.Next)
	}
	return out, err
}

// Say runs one input, which out shows, and tells where it leads.
func (h *Host) Say(ctx context.Context, said orchestrator.Said, out event.Sink) (orchestrator.Outcome, error) {
	return h.Session().RunSaid(ctx, said, out)
}

// Continue goes on with the turn that was left unfinished.
func (h *Host) Continue(ctx context.Context) (answer string, err error) {
	return h.Session().Continue(ctx, h.sink)
}

// TakeUp asks the person about the turn that was left unfinished. What they say instead of
// going on is for them to say as an input.
func (h *Host) TakeUp(ctx context.Context, out event.Sink) (answer, words string, err error) {
	return h.Session().TakeUp(ctx, out)
}

// Serve runs what is in the queue, one message after the other, until no more come or the
// person is done. What may be taken up by the turn that runs is. An error of run ends the work.
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

// Follow goes where the person said. If that fails the session stays open.
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

// Result is how a session was closed.
type Result struct {
	ID     string
	Unused bool  // nothing was asked or decided in it
	Unkept error // why something of it is not on the disk; nil if all is
	Err    error // what went wrong in closing it
}

// Close ends the session and what runs in it, and mends what other processes left when they were killed.
func (h *Host) Close(ctx context.Context) Result {
	done := h.end(h.Session())
	h.App.Store().MendSnapshots(ctx, done.ID)
	return done
}

// end closes a session. One in which nothing was said leaves nothing behind.
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
