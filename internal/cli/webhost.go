package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"coder/internal/agent/orchestrator"
	"coder/internal/agent/supervisor"
	"coder/internal/app"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/policy/mode"
	"coder/internal/serve"
	"coder/internal/ui/browser"
	"coder/internal/ui/drive"
)

// hostedSession is a session that this process holds for a browser.
type hostedSession struct {
	*serve.Host
	server    *webServer
	place     browser.SessionRef
	done      chan struct{} // closed when nothing in it is running
	idleTimer *time.Timer   // closes the session after a long pause
}

// sessionIdleTimeout is how long a session stays open without messages.
const sessionIdleTimeout = 15 * time.Minute

// findHosted returns the session if this process holds it, else nil.
func (w *webServer) findHosted(p browser.SessionRef) *hostedSession {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hosted[p]
}

// openHosted opens a session to work in it.
func (w *webServer) openHosted(ctx context.Context, root, mode string, which app.SessionChoice) (*hostedSession,
	error) {
	if w.ctx.Err() != nil {
		return nil, &browser.UserError{Status: http.StatusServiceUnavailable, Text: "coder web is stopping"}
	}
	a, err := w.invocation.newAppIn(root, mode, w.invocation.warn)
	if err != nil {
		return nil, toPageError(err)
	}
	h := &hostedSession{server: w, place: browser.SessionRef{Root: root}, done: make(chan struct{})}
	o := serve.Options{Which: which, Sink: event.SinkFunc(h.broadcast), RemoteAnswers: true, RecordedOnly: true}
	if h.Host, err = serve.Open(context.WithoutCancel(ctx), a, o); err != nil {
		return nil, toPageError(err)
	}
	w.invocation.shutdown.markSessionOpen()
	h.place.Session = h.ID()
	h.idleTimer = time.AfterFunc(sessionIdleTimeout, h.Finish)
	w.mu.Lock()
	w.hosted[h.place] = h
	w.mu.Unlock()
	w.work.Go(h.run)
	return h, nil
}

// run runs messages until the queue ends, and closes the session.
func (h *hostedSession) run() {
	defer close(h.done)
	err := h.RunQueue(h.server.ctx, h.runTurn)
	h.idleTimer.Stop()
	h.server.mu.Lock()
	delete(h.server.hosted, h.place)
	late := h.TakeAll() // messages that arrived just now
	h.server.mu.Unlock()
	if err != nil && h.server.ctx.Err() == nil {
		h.server.invocation.warn(err.Error())
	}
	h.reportClose(h.Close(context.WithoutCancel(h.server.ctx)))
	for _, m := range late {
		if err := h.server.queueMessage(h.server.ctx, h.place, m); err != nil && h.server.ctx.Err() == nil {
			h.server.invocation.warnError(err)
		}
	}
}

// reportClose reports the errors of closing a session.
func (h *hostedSession) reportClose(r serve.CloseResult) {
	if err := h.server.invocation.recordClose(r); err != nil {
		h.server.invocation.warn(err.Error())
	}
}

// broadcast sends events to the pages without waiting for them.
func (h *hostedSession) broadcast(ctx context.Context, r event.Record) error {
	if place := h.currentPlace(); place.Session != "" {
		h.server.server.HandleEvent(ctx, place, r)
	}
	return nil
}

// currentPlace returns the session's place, once it is open.
func (h *hostedSession) currentPlace() browser.SessionRef {
	h.server.mu.Lock()
	defer h.server.mu.Unlock()
	return h.place
}

// runTurn runs one message; an empty one continues the unfinished turn.
func (h *hostedSession) runTurn(ctx context.Context, m drive.Message) (err error) {
	h.idleTimer.Stop()
	defer func() { h.idleTimer.Reset(sessionIdleTimeout) }()
	if m.ID == continueMessageID {
		_, err = h.ResumeTurn(ctx)
	} else {
		var did serve.Outcome
		did, err = h.Run(ctx, m.Input)
		err = cmp.Or(err, did.SwitchErr)
		if did.Previous != nil {
			h.followMove(ctx, *did.Previous)
		}
	}
	var command *orchestrator.CommandError
	if err != nil && ctx.Err() == nil && !errors.As(err, &command) && !errors.Is(err, supervisor.ErrFinished) {
		_ = h.broadcast(ctx, event.Record{Event: event.Notice{
			Level: event.LevelError, Text: errorMessage(err).String()}})
	}
	return nil
}

// continueMessageID is the id of a message that only continues.
const continueMessageID = "go on"

// followMove follows a command to another session.
func (h *hostedSession) followMove(ctx context.Context, left serve.CloseResult) {
	h.reportClose(left)
	h.server.mu.Lock()
	delete(h.server.hosted, h.place)
	was := h.place
	h.place.Session = h.ID()
	h.server.hosted[h.place] = h
	h.server.mu.Unlock()
	h.server.server.HandleEvent(ctx, was, event.Record{Event: event.Notice{Level: event.LevelInfo,
		Text: fmt.Sprintf("the conversation continues in session %s", h.ID())}})
}

// toPageError converts an error to a page's message.
func toPageError(err error) error {
	if err == nil {
		return nil
	}
	status := http.StatusInternalServerError
	var claimed *event.ClaimedError
	var refusal serve.Refusal
	switch code := ExitCode(err); {
	case errors.As(err, &refusal):
		status = http.StatusConflict
	case errors.As(err, &claimed):
		return &browser.UserError{Status: http.StatusConflict,
			Text: fmt.Sprintf("%s; send messages there. Nothing was changed", claimed)}
	case code == ExitInput || code == ExitConfig:
		status = http.StatusBadRequest
	}
	return &browser.UserError{Status: status, Text: errorMessage(err).String()}
}

// startSession starts a session with a prompt.
func (w *webServer) startSession(ctx context.Context, root, mode, prompt string) (string, error) {
	if err := checkPrompt(prompt); err != nil {
		return "", toPageError(err)
	}
	h, err := w.openHosted(ctx, root, mode, app.SessionChoice{NewID: app.NewSessionID(w.invocation.Now())})
	if err != nil {
		return "", err
	}
	id := h.ID()
	h.Add(drive.Message{Input: orchestrator.TextInput(chat.NewUserText(chat.OriginTyped, prompt))})
	return id, nil
}

// sendMessage sends a message to a session: to the running turn, or as the next one.
func (w *webServer) sendMessage(ctx context.Context, p browser.SessionRef, prompt string) error {
	if err := checkPrompt(prompt); err != nil {
		return toPageError(err)
	}
	if room, err := w.remoteApp(p); room != nil || err != nil {
		switch words := append(strings.Fields(prompt), ""); {
		case err != nil:
		// nor may another process switch to it
		case w.invocation.flags.NoYolo && strings.HasPrefix(words[0], "/") &&
			(words[0] == "/"+mode.Yolo || words[1] == mode.Yolo):
			err = &browser.UserError{Status: http.StatusBadRequest,
				Text: "the mode yolo needs --allow-dangerously-skip-permissions"}
		default:
			err = toPageError(serve.SendMessage(ctx, room, p.Session, serve.MessageSlot, prompt))
		}
		return err
	}
	return w.queueMessage(ctx, p, drive.Message{Input: orchestrator.TextInput(chat.NewUserText(chat.OriginTyped, prompt)),
		MidTurn: true})
}

// remoteApp returns the program for a session that another process holds; nil if none does.
func (w *webServer) remoteApp(p browser.SessionRef) (*app.Workspace, error) {
	if w.findHosted(p) != nil || w.sessionPulse(p).Holder == "" {
		return nil, nil
	}
	room, err := w.projectApp(p.Root)
	return room, toPageError(err)
}

// queueMessage queues a message in a session, and opens the session if it is not open here.
func (w *webServer) queueMessage(ctx context.Context, p browser.SessionRef, m drive.Message) error {
	w.openMu.Lock()
	defer w.openMu.Unlock()
	w.mu.Lock()
	h := w.hosted[p]
	if h != nil {
		h.Add(m)
	}
	w.mu.Unlock()
	if h != nil {
		return nil
	}
	h, err := w.openHosted(ctx, p.Root, "", app.SessionChoice{ResumeID: p.Session})
	if err == nil {
		h.Add(m)
	}
	return err
}

// deliverAnswer delivers an answer: to a session here, to another process, or to the records, in which case the
// work continues here.
func (w *webServer) deliverAnswer(ctx context.Context, p browser.SessionRef, q uip.Request, a uip.Response) error {
	if h := w.findHosted(p); h != nil {
		if h.Questions.Answer(ctx, a) {
			return nil
		}
		return &browser.UserError{Status: http.StatusConflict,
			Text: "the question was already answered, or is no longer open; your answer changed nothing"}
	}
	room, err := w.projectApp(p.Root)
	if err != nil {
		return toPageError(err)
	}
	err = room.Store().Supervisor.Answer(ctx, p.Session, a)
	if claimed := (*event.ClaimedError)(nil); errors.As(err, &claimed) {
		err = serve.ForwardAnswer(ctx, room, p.Session, q, a)
	}
	switch {
	case errors.Is(err, serve.ErrAnsweredElsewhere):
		return nil
	case errors.Is(err, supervisor.ErrAnswered), errors.Is(err, supervisor.ErrWithdrawn):
		return &browser.UserError{Status: http.StatusConflict,
			Text: "the question was already answered, or is no longer open; your answer changed nothing"}
	case err != nil:
		return toPageError(err)
	}
	// the answer is on record: only the work cannot continue here
	if err := w.queueMessage(ctx, p, drive.Message{ID: continueMessageID}); err != nil {
		return &browser.UserError{Status: http.StatusAccepted,
			Text: fmt.Sprintf("the session has not continued yet: %s; then run: coder -p -r %s", errorMessage(err), p.Session)}
	}
	return nil
}

// stopTurn stops the running turn and drops waiting messages.
func (w *webServer) stopTurn(ctx context.Context, p browser.SessionRef) error {
	if room, err := w.remoteApp(p); room != nil || err != nil {
		if err == nil {
			err = toPageError(serve.SendMessage(ctx, room, p.Session, serve.StopSlot, ""))
		}
		return err
	}
	h := w.findHosted(p)
	if h == nil {
		return &browser.UserError{Status: http.StatusConflict, Text: "nothing is running in this session"}
	}
	h.TakeAll()
	h.Interrupt()
	return nil
}

// releaseSession closes a session here, so that another process can continue it.
func (w *webServer) releaseSession(p browser.SessionRef) error {
	h := w.findHosted(p)
	if h == nil {
		return &browser.UserError{Status: http.StatusConflict, Text: "the session is not open here"}
	}
	h.Finish()
	h.TakeAll()
	h.Interrupt()
	<-h.done
	return nil
}
