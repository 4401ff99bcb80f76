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
	"coder/internal/core/uip"
	"coder/internal/serve"
	"coder/internal/ui/control"
	"coder/internal/ui/drive"
	"coder/internal/ui/events"
)

// answered is a session whose questions a program answers in the vocabulary of its events.
type answered struct {
	headless
	inv *invocation
	so  uip.Response // the answer to the open question so far
}

// runAnswered runs the prompt from the command line and those from stdin, and reads answers from stdin.
func (inv *invocation) runAnswered(ctx context.Context) error {
	inv.exit.driven.Store(true)
	for _, name := range inv.flags.passedOver {
		inv.warn(fmt.Sprintf("flag ignored: %s", oneLine(name)))
	}
	inv.flags.NoYolo = !inv.flags.mayBypass
	a, err := inv.newApp(inv.warn)
	if err != nil {
		return err
	}
	d := &answered{inv: inv, headless: headless{out: inv.newOutput(a)}}
	if err := inv.open(ctx, a, &d.headless, serve.Options{Which: inv.flags.session}); err != nil {
		return err
	}
	if prompt := strings.Join(inv.flags.args, " "); strings.TrimSpace(prompt) != "" {
		d.Add(drive.Message{Said: orchestrator.Say(chat.From(chat.Typed, prompt))})
	}
	reading, over := context.WithCancel(ctx)
	var read sync.WaitGroup
	var readErr, failed error
	read.Go(func() {
		readErr = d.read(reading)
		d.Questions.End()
		d.Finish()
	})
	err = d.Serve(ctx, func(ctx context.Context, m drive.Message) error {
		if err := d.turn(ctx, m.Said); err != nil {
			complain(inv.Stderr, inv.words.Said(message(err)), 0)
			failed = cmp.Or(failed, error(&exitError{code: ExitCode(err)}))
		}
		return nil
	})
	over()
	read.Wait()
	if errors.Is(readErr, context.Canceled) {
		readErr = nil
	}
	return cmp.Or(inv.close(ctx, &d.headless, cmp.Or(err, readErr)), failed)
}

// read handles lines until the input ends: answers and messages.
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
			if err := d.answer(ctx, line.Reply); err != nil {
				d.inv.warn(err.Error())
			}
		case line.Type == "user":
			var m drive.Message
			if m, wrong = line.Said(); wrong == nil {
				wrong = checkPrompt(m.Text())
			}
			if wrong == nil {
				d.Add(m)
			}
		default:
			wrong = errors.New(`neither an answer like {"event":"tool:permission:response","data":{"selected":"agree"}} nor a message like ` + messageForm)
		}
		if wrong != nil { // the question stays open
			said := inputf("stdin, line %d: %s", n, message(wrong))
			d.inv.warn(message(said))
			garbled = cmp.Or(garbled, error(&exitError{code: ExitCode(said)}))
		}
	}
}

// answer applies the program's reply to the open question.
func (d *answered) answer(ctx context.Context, r events.Reply) error {
	q, asked := d.Questions.Open()
	if !asked {
		return fmt.Errorf("%s: no question is open", oneLine(r.Event))
	}
	if d.so.ID != q.ID {
		d.so = uip.Response{}
	}
	whole, err := r.Answer(q, &d.so)
	if d.so.ID, d.so.Author, d.so.Via = q.ID, "user", "stdin"; whole {
		d.Questions.Answer(ctx, d.so)
		d.so = uip.Response{}
	}
	return err
}
