package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"coder/internal/agent/orchestrator"
	"coder/internal/agent/supervisor"
	"coder/internal/app"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/policy/mode"
	"coder/internal/ui/browser"
	"coder/internal/ui/drive"
)

// hosted is a session that this process works in for a browser.
type hosted struct {
	*headless
	web   *web
	place browser.Place
	queue *drive.Queue
	asks  desk
	ended chan struct{} // closed when nothing of it runs any more
	idle  *time.Timer   // closes it when nothing was said for long
}

// idleHere is how long a session stays open in which nothing is said.
const idleHere = 15 * time.Minute

// desk is where the questions of a session lie until a page answers them.
type desk struct {
	mu     sync.Mutex // guards the fields below
	open   string     // the question that waits; "" if none does
	closed string     // the last one that waits no more
	reply  chan uip.Response
	news   chan struct{} // closed when another one waits; nil if nobody asks for that
}

// Ask waits for the answer of a page.
func (d *desk) Ask(ctx context.Context, q uip.Request) (uip.Response, error) {
	reply := make(chan uip.Response, 1)
	d.mu.Lock()
	d.open, d.reply = q.ID, reply
	if d.news != nil {
		close(d.news)
		d.news = nil
	}
	d.mu.Unlock()
	select {
	case a := <-reply:
		return a, nil
	case <-ctx.Done():
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open, d.closed = "", q.ID
	select {
	case a := <-reply: // it was taken before
		return a, nil
	default:
		return uip.Response{}, ctx.Err()
	}
}

// take gives the answer to the question that waits for it, and reports whether one
// does. A question is on record, and shown, a moment before it waits.
func (d *desk) take(ctx context.Context, a uip.Response) bool {
	tired := time.NewTimer(askTime)
	defer tired.Stop()
	for {
		done, news := d.offer(a)
		if news == nil {
			return done
		}
		select {
		case <-news:
		case <-tired.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// offer is take as things stand: if the question is still to come, news tells when.
func (d *desk) offer(a uip.Response) (done bool, news chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch a.ID {
	case d.open:
		d.open, d.closed = "", a.ID
		d.reply <- a
		return true, nil
	case d.closed:
		return false, nil
	}
	if d.news == nil {
		d.news = make(chan struct{})
	}
	return false, d.news
}

// find is the session that this process works in; nil if it does not.
func (w *web) find(p browser.Place) *hosted {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hosted[p]
}

// host opens a session to work in it.
func (w *web) host(ctx context.Context, root, mode string, which app.Which) (*hosted, error) {
	if w.life.Err() != nil {
		return nil, &browser.Problem{Status: http.StatusServiceUnavailable, Text: "coder web is ending"}
	}
	a, err := w.inv.appIn(root, mode, w.inv.warn)
	if err != nil {
		return nil, asProblem(err)
	}
	h := &hosted{web: w, ended: make(chan struct{})}
	person := onRecord(a.Store(), answerable(a, &h.asks, func(string) {}, func() string { return h.ID }))
	sup := a.Supervise(person)
	opened, err := a.Open(context.WithoutCancel(ctx), sup, which, event.Discard)
	if err != nil {
		return nil, asProblem(err)
	}
	w.inv.exit.opened()
	h.headless = &headless{Session: opened, app: a, sup: sup, out: &output{Sink: event.SinkFunc(h.show), inv: w.inv}}
	h.place = browser.Place{Root: root, Session: opened.ID}
	h.queue = drive.NewQueue(h.turn)
	h.idle = time.AfterFunc(idleHere, h.queue.Close)
	w.mu.Lock()
	w.hosted[h.place] = h
	w.mu.Unlock()
	w.work.Go(h.serve)
	return h, nil
}

// serve runs what is said until no more comes, and closes the session.
func (h *hosted) serve() {
	defer close(h.ended)
	err := h.queue.Serve(h.web.life)
	h.idle.Stop()
	h.web.mu.Lock()
	delete(h.web.hosted, h.place)
	late := h.queue.Drop() // what was said just now
	h.web.mu.Unlock()
	if err != nil && h.web.life.Err() == nil {
		h.web.inv.warn(err.Error())
	}
	if err := h.Close(); err != nil {
		h.web.inv.warn(fmt.Sprintf("close the session: %v", err))
	}
	h.web.inv.closed(h.app)
	h.app.Store().MendSnapshots(context.WithoutCancel(h.web.life), h.ID)
	for _, m := range late {
		if err := h.web.add(h.web.life, h.place, m); err != nil && h.web.life.Err() == nil {
			h.web.inv.warn(message(err))
		}
	}
}

// show tells the pages what happens. They are not waited for.
func (h *hosted) show(ctx context.Context, r event.Record) error {
	h.web.pages.Seen(ctx, browser.Place{Root: h.place.Root, Session: h.ID}, r)
	return nil
}

// turn runs one message; without words it takes up the turn that was left.
func (h *hosted) turn(ctx context.Context, m drive.Message) error {
	h.idle.Stop()
	defer func() { h.idle.Reset(idleHere) }()
	h.Steer(h.queue.Soon)
	var next *orchestrator.Next
	var err error
	if m.ID == takeUp {
		_, err = h.Continue(ctx, h.out)
	} else {
		var done orchestrator.Outcome
		done, err = h.RunSaid(ctx, m.Said, h.out)
		next = done.Next
	}
	if err == nil && next != nil {
		err = h.move(ctx, next)
	}
	var command *orchestrator.CommandError
	if err != nil && ctx.Err() == nil && !errors.As(err, &command) && !errors.Is(err, supervisor.ErrFinished) {
		_ = h.show(ctx, event.Record{Event: event.Notice{Level: event.Error, Text: message(err)}})
	}
	return nil
}

// takeUp is the id of a message that stands for going on.
const takeUp = "go on"

// move goes where a command leads: to another session, which is then open here, or
// away.
func (h *hosted) move(ctx context.Context, next *orchestrator.Next) error {
	if err := h.follow(ctx, next); err != nil {
		return err
	}
	if h.over {
		h.queue.Close()
		return nil
	}
	h.web.mu.Lock()
	delete(h.web.hosted, h.place)
	was := h.place
	h.place.Session = h.ID
	h.web.hosted[h.place] = h
	h.web.mu.Unlock()
	h.web.pages.Seen(ctx, was, event.Record{Event: event.Notice{Level: event.Info, Text: fmt.Sprintf("it goes on in session %s", h.ID)}})
	return nil
}

// asProblem is what went wrong in the words of a page.
func asProblem(err error) error {
	if err == nil {
		return nil
	}
	status := http.StatusInternalServerError
	var claimed *event.ClaimedError
	switch code := ExitCode(err); {
	case errors.As(err, &claimed):
		return &browser.Problem{Status: http.StatusConflict, Text: claimed.Error() + "; what is to be said to it is said there. Nothing was changed"}
	case code == ExitInput || code == ExitConfig:
		status = http.StatusBadRequest
	}
	return &browser.Problem{Status: status, Text: message(err)}
}

// begin begins a session with a prompt.
func (w *web) begin(ctx context.Context, root, mode, prompt string) (string, error) {
	if err := checkPrompt(prompt); err != nil {
		return "", asProblem(err)
	}
	h, err := w.host(ctx, root, mode, app.Which{ID: app.NewSessionID(w.inv.Now())})
	if err != nil {
		return "", err
	}
	id := h.ID
	h.queue.Add(drive.Message{Said: orchestrator.Say(chat.From(chat.Typed, prompt))})
	return id, nil
}

// say says something in a session: to the turn that runs, or as the next one.
func (w *web) say(ctx context.Context, p browser.Place, prompt string) error {
	if err := checkPrompt(prompt); err != nil {
		return asProblem(err)
	}
	if room, err := w.elsewhere(p); room != nil || err != nil {
		switch words := append(strings.Fields(prompt), ""); {
		case err != nil:
		case w.inv.flags.NoYolo && strings.HasPrefix(words[0], "/") && (words[0] == "/"+mode.Yolo || words[1] == mode.Yolo): // nor is it gone to in another place
			err = &browser.Problem{Status: http.StatusBadRequest, Text: "the mode yolo needs --allow-dangerously-skip-permissions"}
		default:
			err = sendRemote(ctx, room, p.Session, toSay, prompt)
		}
		return err
	}
	return w.add(ctx, p, drive.Message{Said: orchestrator.Say(chat.From(chat.Typed, prompt)), Soon: true})
}

// elsewhere is the program as it is put together for a session that another process
// works in; nil if none does.
func (w *web) elsewhere(p browser.Place) (*app.App, error) {
	if w.find(p) != nil || w.pulse(p).Holder == "" {
		return nil, nil
	}
	room, err := w.room(p.Root)
	return room, asProblem(err)
}

// add gives a session something to do, and opens it if it is not open here.
func (w *web) add(ctx context.Context, p browser.Place, m drive.Message) error {
	w.opening.Lock()
	defer w.opening.Unlock()
	w.mu.Lock()
	h := w.hosted[p]
	if h != nil {
		h.queue.Add(m)
	}
	w.mu.Unlock()
	if h != nil {
		return nil
	}
	h, err := w.host(ctx, p.Root, "", app.Which{Resume: p.Session})
	if err == nil {
		h.queue.Add(m)
	}
	return err
}

// answer gives an answer to whoever waits for it: a session here, another process,
// or the record, and then the work goes on here.
func (w *web) answer(ctx context.Context, p browser.Place, q uip.Request, a uip.Response) error {
	if h := w.find(p); h != nil {
		if h.asks.take(ctx, a) {
			return nil
		}
		return &browser.Problem{Status: http.StatusConflict, Text: "the question was answered before, or is not asked any more; your answer changed nothing"}
	}
	room, err := w.room(p.Root)
	if err != nil {
		return asProblem(err)
	}
	err = room.Store().Records.Answer(ctx, p.Session, a)
	if claimed := (*event.ClaimedError)(nil); errors.As(err, &claimed) {
		err = handOver(ctx, room, p.Session, q, a)
	}
	switch {
	case errors.Is(err, errElsewhere):
		return nil
	case errors.Is(err, supervisor.ErrAnswered), errors.Is(err, supervisor.ErrWithdrawn):
		return &browser.Problem{Status: http.StatusConflict, Text: "the question was answered before, or is not asked any more; your answer changed nothing"}
	case err != nil:
		return asProblem(err)
	}
	if err := w.add(ctx, p, drive.Message{ID: takeUp}); err != nil { // the answer is on record: only the work cannot continue here
		return &browser.Problem{Status: http.StatusAccepted, Text: fmt.Sprintf("the session does not continue yet: %s; then run: coder -p -r %s", message(err), p.Session)}
	}
	return nil
}

// stop stops what runs in a session, and forgets what waits.
func (w *web) stop(ctx context.Context, p browser.Place) error {
	if room, err := w.elsewhere(p); room != nil || err != nil {
		if err == nil {
			err = sendRemote(ctx, room, p.Session, toStop, "")
		}
		return err
	}
	h := w.find(p)
	if h == nil {
		return &browser.Problem{Status: http.StatusConflict, Text: "nothing runs in this session"}
	}
	h.queue.Drop()
	h.queue.Interrupt()
	return nil
}

// release closes a session here, so that another process can go on with it.
func (w *web) release(p browser.Place) error {
	h := w.find(p)
	if h == nil {
		return &browser.Problem{Status: http.StatusConflict, Text: "the session is not open here"}
	}
	h.queue.Close()
	h.queue.Drop()
	h.queue.Interrupt()
	<-h.ended
	return nil
}
