package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"coder/internal/agent/orchestrator"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/ui/control"
	"coder/internal/ui/drive"
	"coder/internal/ui/events"
)

// answered is a session whose questions a program answers in the words of the
// events that it is told.
type answered struct {
	inv   *invocation
	queue *drive.Queue
	run   *headless

	mu    sync.Mutex        // guards the fields below
	open  *uip.Request      // nil if none is
	so    uip.Response      // as far as open is answered
	about string            // the question that reply is to
	reply chan uip.Response // holds one
	gone  bool              // no more answers come
}

// runAnswered runs the prompt of the command line, and those that come on stdin,
// and takes answers from there.
func (inv *invocation) runAnswered(ctx context.Context) error {
	inv.exit.driven.Store(true)
	for _, name := range inv.flags.passedOver {
		inv.warn(fmt.Sprintf("passed over: %s", oneLine(name)))
	}
	inv.flags.NoYolo = !inv.flags.mayBypass
	a, err := inv.newApp(inv.warn)
	if err != nil {
		return err
	}
	d := &answered{inv: inv}
	var failed error
	d.queue = drive.NewQueue(func(ctx context.Context, m drive.Message) error {
		d.run.Steer(d.queue.Soon)
		if err := d.run.turn(ctx, m.Said); err != nil {
			complain(inv.Stderr, inv.words.Said(message(err)), 0)
			failed = cmp.Or(failed, error(&exitError{code: ExitCode(err)}))
		}
		if d.run.over {
			d.queue.Close()
		}
		return nil
	})
	if prompt := strings.Join(inv.flags.args, " "); strings.TrimSpace(prompt) != "" {
		d.queue.Add(drive.Message{Said: orchestrator.Say(chat.From(chat.Typed, prompt))})
	}
	out := inv.newOutput(a)
	out.Sink = event.Tee(event.SinkFunc(d.note), out.Sink)
	d.run = &headless{app: a, sup: a.Supervise(d), out: out}
	if d.run.Session, err = a.Open(ctx, d.run.sup, inv.flags.session, out); err != nil {
		return err
	}
	inv.exit.opened()
	reading, over := context.WithCancel(ctx)
	var read sync.WaitGroup
	var readErr error
	read.Go(func() {
		readErr = d.read(reading)
		d.end()
		d.queue.Close()
	})
	err = d.queue.Serve(ctx)
	over()
	read.Wait()
	if errors.Is(readErr, context.Canceled) {
		readErr = nil
	}
	defer inv.closed(a)
	return cmp.Or(err, readErr, d.run.Close(), failed)
}

// read takes lines until there are no more: answers, and messages.
func (d *answered) read(ctx context.Context) error {
	type answerOrMessage struct {
		events.Reply
		control.Line
	}
	var garbled error
	for n := 0; ; {
		line, wrong, err := nextLine[answerOrMessage](ctx, d.inv.input, &n)
		switch {
		case errors.Is(err, io.EOF):
			return garbled
		case err != nil:
			return err
		case wrong != nil:
		case line.Event != "":
			if err := d.answer(line.Reply); err != nil {
				d.inv.warn(err.Error())
			}
		case line.Type == "user":
			var m drive.Message
			if m, wrong = line.Said(); wrong == nil {
				wrong = checkPrompt(m.Text())
			}
			if wrong == nil {
				d.queue.Add(m)
			}
		default:
			wrong = errors.New(`neither an answer like {"event":"tool:permission:response","data":{"selected":"agree"}} nor a message like ` + messageForm)
		}
		if wrong != nil { // what is asked about goes on waiting for its answer
			said := inputf("stdin, line %d: %s", n, message(wrong))
			d.inv.warn(message(said))
			garbled = cmp.Or(garbled, error(&exitError{code: ExitCode(said)}))
		}
	}
}

// note opens a question from the moment at which it is told: its answer may come
// before anybody waits for it. What comes while none is open answers nothing.
func (d *answered) note(_ context.Context, r event.Record) error {
	if e, ok := r.Event.(event.InteractionRequested); ok {
		d.ask(e.Request)
	}
	return nil
}

func (d *answered) ask(q uip.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.about == q.ID {
		return
	}
	d.open, d.so, d.about, d.reply = &q, uip.Response{}, q.ID, make(chan uip.Response, 1)
	if d.gone {
		d.close(uip.NoAnswer(q))
	}
}

// close gives the question that is open its answer.
func (d *answered) close(a uip.Response) {
	d.open = nil
	d.reply <- a
}

func (d *answered) answer(r events.Reply) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == nil {
		return fmt.Errorf("%s: nothing is asked now", oneLine(r.Event))
	}
	whole, err := r.Answer(*d.open, &d.so)
	if whole {
		d.so.ID, d.so.Author, d.so.Via = d.open.ID, "user", "stdin"
		d.close(d.so)
	}
	return err
}

// end says that no more answers come.
func (d *answered) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gone = true
	if d.open != nil {
		d.close(uip.NoAnswer(*d.open))
	}
}

// Ask waits for the answer of the program.
func (d *answered) Ask(ctx context.Context, q uip.Request) (uip.Response, error) {
	d.ask(q) // unless it was told just now
	d.mu.Lock()
	reply := d.reply
	d.mu.Unlock()
	select {
	case a := <-reply:
		return a, nil
	case <-ctx.Done():
		d.mu.Lock()
		defer d.mu.Unlock()
		d.open, d.about = nil, ""
		return uip.Response{}, ctx.Err()
	}
}
