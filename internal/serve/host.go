// Package serve holds sessions open for their faces: a terminal, a pipe, a program, an editor, a page. A
// face shows events and answers questions. Sessions open, run and close in the same way for all faces.
package serve

import (
	"context"
	"sync"

	"coder/internal/agent/orchestrator"
	"coder/internal/agent/supervisor"
	"coder/internal/app"
	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/core/uip"
	"coder/internal/ui/drive"
)

// Options say how to run a session. The zero Options open a new one,
// show it to nobody, and wait for answers from [Questions.Answer].
type Options struct {
	Which app.SessionChoice
	Sink  event.Sink // shows events
	// User answers questions.
	User   uip.Interactor
	Screen app.Screen // the person's terminal, if there is one
	// RemoteAnswers lets the user's other processes answer, too. Said, if set, reports here that one did.
	RemoteAnswers bool
	Report        func(text string)
	// RecordedOnly asks only recorded questions: others could not be answered later.
	RecordedOnly bool
}

// Host is an open session with its input: its [drive.Queue]. A command may switch to
// another session, which is then the open one. Use [Current], and close it after use.
type Host struct {
	*drive.Queue
	App       *app.Workspace
	Questions *Questions

	sup  *app.Sessions
	sink event.Sink

	mu      sync.Mutex // guards the fields below
	session *supervisor.Session
	ended   bool
}

// Open opens a session in a workspace.
func Open(ctx context.Context, a *app.Workspace, o Options) (*Host, error) {
	h := &Host{Queue: drive.NewQueue(), App: a, sink: o.Sink}
	if h.sink == nil {
		h.sink = event.Discard
	}
	if o.Report == nil {
		o.Report = func(string) {}
	}
	h.Questions = &Questions{
		app: a, id: h.ID, local: o.User, report: o.Report, recordedOnly: o.RecordedOnly,
		// without a record, another process could not find the question
		remoteAnswers: o.RemoteAnswers && !a.Options.Ephemeral && a.Home != "",
	}
	h.sink = event.Tee(event.SinkFunc(h.Questions.handleRecord), h.sink)
	h.sup = a.NewSupervisor(h.Questions, o.Screen)
	opened, err := a.OpenSession(ctx, h.sup, o.Which, h.sink)
	if err != nil {
		a.Store().RemoveIfEmpty()
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

// Ended reports whether the user has ended the work.
func (h *Host) Ended() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended
}

// Outcome is the result of an input.
type Outcome struct {
	Text      string
	Previous  *CloseResult // the previous session, if the input switched to another
	SwitchErr error        // why it did not switch
}

// Run runs one input, and switches sessions if it says so.
func (h *Host) Run(ctx context.Context, said orchestrator.Input) (out Outcome, err error) {
	done, err := h.RunInput(ctx, said, h.sink)
	out.Text = done.Text
	if err == nil && done.Destination != nil {
		out.Previous, out.SwitchErr = h.SwitchTo(ctx, done.Destination)
	}
	return out, err
}

// RunInput runs one input, shown on out, and returns where it leads.
func (h *Host) RunInput(ctx context.Context, said orchestrator.Input, out event.Sink) (orchestrator.Outcome, error) {
	return h.Session().RunInput(ctx, said, out)
}

// ResumeTurn resumes the unfinished turn.
func (h *Host) ResumeTurn(ctx context.Context) (answer string, err error) {
	return h.Session().Continue(ctx, h.sink)
}

// AskResume asks the user about the unfinished turn. It returns
// any new prompt from the user for the caller to run.
func (h *Host) AskResume(ctx context.Context, out event.Sink) (answer, words string, err error) {
	return h.Session().AskResume(ctx, out)
}

// RunQueue runs the queued messages one after the other, until no more come or the user ends
// the work. The running turn may include messages early. An error from run ends the work.
func (h *Host) RunQueue(ctx context.Context, run func(context.Context, drive.Message) error) error {
	return h.Queue.Serve(ctx, func(ctx context.Context, m drive.Message) error {
		h.Session().SetSteering(h.TakeMidTurn)
		err := run(ctx, m)
		if h.Ended() {
			h.Finish()
		}
		return err
	})
}

// SwitchTo switches to the user's next session. If that fails, the session stays open.
func (h *Host) SwitchTo(ctx context.Context, to *orchestrator.Destination) (*CloseResult, error) {
	if to.Exit {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.ended = true
		return nil, nil
	}
	was := h.Session()
	other, err := h.App.SwitchSession(ctx, h.sup, to, was.ID, h.sink)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	h.session = other
	h.mu.Unlock()
	left := h.closeSession(was)
	return &left, nil
}

// CloseResult says how a session was closed.
type CloseResult struct {
	ID         string
	Unused     bool  // nothing was asked or decided in it
	UnsavedErr error // why some of it is not saved; nil if all is
	Err        error // what failed when closing it
}

// Close closes the session and everything that runs in it, and repairs what killed processes left behind.
func (h *Host) Close(ctx context.Context) CloseResult {
	done := h.closeSession(h.Session())
	h.App.Store().RepairSnapshots(ctx, done.ID)
	return done
}

// closeSession closes a session. An empty session leaves nothing behind.
func (h *Host) closeSession(s *supervisor.Session) CloseResult {
	done := CloseResult{ID: s.ID}
	if err := s.Close(); err != nil {
		done.Err = message.Errorf("close the session: %w", err)
	}
	store := h.App.Store()
	done.UnsavedErr = store.UnsavedReason()
	store.RemoveEmpty(s.ID)
	done.Unused = store.IsUnused(s.ID)
	return done
}
