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

// hosted is a session that this process holds for a browser.
type hosted struct {
	*serve.Host
	web   *web
	place browser.Place
	ended chan struct{} // closed when nothing in it is running
	idle  *time.Timer   // closes the session after a long pause
}

// idleHere is how long a session stays open without messages.
const idleHere = 15 * time.Minute

// find returns the session if this process holds it, else nil.
func (w *web) find(p browser.Place) *hosted {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hosted[p]
}

// host opens a session to work in it.
func (w *web) host(ctx context.Context, root, mode string, which app.Which) (*hosted, error) {
	if w.life.Err() != nil {
		return nil, &browser.Problem{Status: http.StatusServiceUnavailable, Text: "coder web is stopping"}
	}
	a, err := w.inv.appIn(root, mode, w.inv.warn)
	if err != nil {
		return nil, asProblem(err)
	}
	h := &hosted{web: w, place: browser.Place{Root: root}, ended: make(chan struct{})}
	o := serve.Options{Which: which, Sink: event.SinkFunc(h.show), Elsewhere: true, Kept: true}
	if h.Host, err = serve.Open(context.WithoutCancel(ctx), a, o); err != nil {
		return nil, asProblem(err)
	}
	w.inv.exit.opened()
	h.place.Session = h.ID()
	h.idle = time.AfterFunc(idleHere, h.Finish)
	w.mu.Lock()
	w.hosted[h.place] = h
	w.mu.Unlock()
	w.work.Go(h.serve)
	return h, nil
}

// serve runs messages until the queue ends, and closes the session.
func (h *hosted) serve() {
	defer close(h.ended)
	err := h.Serve(h.web.life, h.turn)
	h.idle.Stop()
	h.web.mu.Lock()
	delete(h.web.hosted, h.place)
	late := h.Drop() // messages that arrived just now
	h.web.mu.Unlock()
	if err != nil && h.web.life.Err() == nil {
		h.web.inv.warn(err.Error())
	}
	h.closed(h.Close(context.WithoutCancel(h.web.life)))
	for _, m := range late {
		if err := h.web.add(h.web.life, h.place, m); err != nil && h.web.life.Err() == nil {
			h.web.inv.warn(message(err))
		}
	}
}

// closed reports the errors of closing a session.
func (h *hosted) closed(r serve.Result) {
	if err := h.web.inv.closed(r); err != nil {
		h.web.inv.warn(err.Error())
	}
}

// show sends events to the pages without waiting for them.
func (h *hosted) show(ctx context.Context, r event.Record) error {
	if place := h.at(); place.Session != "" {
		h.web.pages.Seen(ctx, place, r)
	}
	return nil
}

// at returns the session's place, once it is open.
func (h *hosted) at() browser.Place {
	h.web.mu.Lock()
	defer h.web.mu.Unlock()
	return h.place
}

// turn runs one message; an empty one continues the unfinished turn.
func (h *hosted) turn(ctx context.Context, m drive.Message) (err error) {
	h.idle.Stop()
	defer func() { h.idle.Reset(idleHere) }()
	if m.ID == takeUp {
		_, err = h.Continue(ctx)
	} else {
		var did serve.Outcome
		did, err = h.Do(ctx, m.Said)
		err = cmp.Or(err, did.Stayed)
		if did.Left != nil {
			h.moved(ctx, *did.Left)
		}
	}
	var command *orchestrator.CommandError
	if err != nil && ctx.Err() == nil && !errors.As(err, &command) && !errors.Is(err, supervisor.ErrFinished) {
		_ = h.show(ctx, event.Record{Event: event.Notice{Level: event.Error, Text: message(err)}})
	}
	return nil
}

// takeUp is the id of a message that only continues.
const takeUp = "go on"

// moved follows a command to another session.
func (h *hosted) moved(ctx context.Context, left serve.Result) {
	h.closed(left)
	h.web.mu.Lock()
	delete(h.web.hosted, h.place)
	was := h.place
	h.place.Session = h.ID()
	h.web.hosted[h.place] = h
	h.web.mu.Unlock()
	h.web.pages.Seen(ctx, was, event.Record{Event: event.Notice{Level: event.Info, Text: fmt.Sprintf("it continues in session %s", h.ID())}})
}

// asProblem converts an error to a page's message.
func asProblem(err error) error {
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
		return &browser.Problem{Status: http.StatusConflict, Text: fmt.Sprintf("%s; send messages there. Nothing was changed", claimed)}
	case code == ExitInput || code == ExitConfig:
		status = http.StatusBadRequest
	}
	return &browser.Problem{Status: status, Text: message(err)}
}

// begin starts a session with a prompt.
func (w *web) begin(ctx context.Context, root, mode, prompt string) (string, error) {
	if err := checkPrompt(prompt); err != nil {
		return "", asProblem(err)
	}
	h, err := w.host(ctx, root, mode, app.Which{ID: app.NewSessionID(w.inv.Now())})
	if err != nil {
		return "", err
	}
	id := h.ID()
	h.Add(drive.Message{Said: orchestrator.Say(chat.From(chat.Typed, prompt))})
	return id, nil
}

// say sends a message to a session: to the running turn, or as the next one.
func (w *web) say(ctx context.Context, p browser.Place, prompt string) error {
	if err := checkPrompt(prompt); err != nil {
		return asProblem(err)
	}
	if room, err := w.elsewhere(p); room != nil || err != nil {
		switch words := append(strings.Fields(prompt), ""); {
		case err != nil:
		case w.inv.flags.NoYolo && strings.HasPrefix(words[0], "/") && (words[0] == "/"+mode.Yolo || words[1] == mode.Yolo): // nor may another process switch to it
			err = &browser.Problem{Status: http.StatusBadRequest, Text: "the mode yolo needs --allow-dangerously-skip-permissions"}
		default:
			err = asProblem(serve.Tell(ctx, room, p.Session, serve.ToSay, prompt))
		}
		return err
	}
	return w.add(ctx, p, drive.Message{Said: orchestrator.Say(chat.From(chat.Typed, prompt)), Soon: true})
}

// elsewhere returns the program for a session that another process holds; nil if none does.
func (w *web) elsewhere(p browser.Place) (*app.Workspace, error) {
	if w.find(p) != nil || w.pulse(p).Holder == "" {
		return nil, nil
	}
	room, err := w.room(p.Root)
	return room, asProblem(err)
}

// add queues a message in a session, and opens the session if it is not open here.
func (w *web) add(ctx context.Context, p browser.Place, m drive.Message) error {
	w.opening.Lock()
	defer w.opening.Unlock()
	w.mu.Lock()
	h := w.hosted[p]
	if h != nil {
		h.Add(m)
	}
	w.mu.Unlock()
	if h != nil {
		return nil
	}
	h, err := w.host(ctx, p.Root, "", app.Which{Resume: p.Session})
	if err == nil {
		h.Add(m)
	}
	return err
}

// answer delivers an answer: to a session here, to another process, or to the records, in which case the
// work continues here.
func (w *web) answer(ctx context.Context, p browser.Place, q uip.Request, a uip.Response) error {
	if h := w.find(p); h != nil {
		if h.Questions.Answer(ctx, a) {
			return nil
		}
		return &browser.Problem{Status: http.StatusConflict, Text: "the question was already answered, or is no longer open; your answer changed nothing"}
	}
	room, err := w.room(p.Root)
	if err != nil {
		return asProblem(err)
	}
	err = room.Store().Records.Answer(ctx, p.Session, a)
	if claimed := (*event.ClaimedError)(nil); errors.As(err, &claimed) {
		err = serve.HandOver(ctx, room, p.Session, q, a)
	}
	switch {
	case errors.Is(err, serve.ErrElsewhere):
		return nil
	case errors.Is(err, supervisor.ErrAnswered), errors.Is(err, supervisor.ErrWithdrawn):
		return &browser.Problem{Status: http.StatusConflict, Text: "the question was already answered, or is no longer open; your answer changed nothing"}
	case err != nil:
		return asProblem(err)
	}
	if err := w.add(ctx, p, drive.Message{ID: takeUp}); err != nil { // the answer is on record: only the work cannot continue here
		return &browser.Problem{Status: http.StatusAccepted, Text: fmt.Sprintf("the session has not continued yet: %s; then run: coder -p -r %s", message(err), p.Session)}
	}
	return nil
}

// stop stops the running turn and drops waiting messages.
func (w *web) stop(ctx context.Context, p browser.Place) error {
	if room, err := w.elsewhere(p); room != nil || err != nil {
		if err == nil {
			err = asProblem(serve.Tell(ctx, room, p.Session, serve.ToStop, ""))
		}
		return err
	}
	h := w.find(p)
	if h == nil {
		return &browser.Problem{Status: http.StatusConflict, Text: "nothing is running in this session"}
	}
	h.Drop()
	h.Interrupt()
	return nil
}

// release closes a session here, so that another process can continue it.
func (w *web) release(p browser.Place) error {
	h := w.find(p)
	if h == nil {
		return &browser.Problem{Status: http.StatusConflict, Text: "the session is not open here"}
	}
	h.Finish()
	h.Drop()
	h.Interrupt()
	<-h.ended
	return nil
}
