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
	"coder/internal/core/message"
	"coder/internal/core/uip"
	"coder/internal/serve"
	"coder/internal/ui/control"
	"coder/internal/ui/drive"
	"coder/internal/ui/events"
)

// answeredSession is a session whose questions a program answers in the vocabulary of its events.
type answeredSession struct {
	headless
	invocation    *invocation
	partialAnswer uip.Response // the answer to the open question so far
}

// runAnswered runs the prompt from the command line and those from stdin, and reads answers from stdin.
func (inv *invocation) runAnswered(ctx context.Context) error {
	inv.shutdown.isDriven.Store(true)
	for _, name := range inv.flags.ignoredFlags {
		inv.warn(fmt.Sprintf("flag ignored: %s", singleLine(name)))
	}
	inv.flags.NoYolo = !inv.flags.allowBypass
	a, err := inv.newApp(inv.warn)
	if err != nil {
		return err
	}
	d := &answeredSession{invocation: inv, headless: headless{out: inv.newOutput(a)}}
	if err := inv.openSession(ctx, a, &d.headless, serve.Options{Which: inv.flags.session}); err != nil {
		return err
	}
	if prompt := strings.Join(inv.flags.args, " "); strings.TrimSpace(prompt) != "" {
		d.Add(drive.Message{Input: orchestrator.TextInput(chat.NewUserText(chat.OriginTyped, prompt))})
	}
	reading, over := context.WithCancel(ctx)
	var read sync.WaitGroup
	var readErr, failed error
	read.Go(func() {
		readErr = d.readReplies(reading)
		d.Questions.End()
		d.Finish()
	})
	err = d.RunQueue(ctx, func(ctx context.Context, m drive.Message) error {
		if err := d.runTurn(ctx, m.Input); err != nil {
			printError(inv.Stderr, inv.printer.Translate(errorMessage(err)), 0)
			failed = cmp.Or(failed, error(&exitError{code: ExitCode(err)}))
		}
		return nil
	})
	over()
	read.Wait()
	if errors.Is(readErr, context.Canceled) {
		readErr = nil
	}
	return cmp.Or(inv.closeSession(ctx, &d.headless, cmp.Or(err, readErr)), failed)
}

// readReplies handles lines until the input ends: answers and messages.
func (d *answeredSession) readReplies(ctx context.Context) error {
	type answerOrMessage struct {
		events.SemaReply
		control.Line
	}
	var garbled error
	for n := 0; ; {
		line, wrong, err := nextLine[answerOrMessage](ctx, d.invocation.stdin, &n)
		switch {
		case errors.Is(err, io.EOF):
			return garbled
		case err != nil:
			return err
		case wrong != nil:
		case line.Event != "":
			if err := d.applyReply(ctx, line.SemaReply); err != nil {
				d.invocation.warn(err.Error())
			}
		case line.Type == "user":
			var m drive.Message
			if m, wrong = line.ToMessage(); wrong == nil {
				wrong = checkPrompt(m.Text())
			}
			if wrong == nil {
				d.Add(m)
			}
		default:
			wrong = errors.New(`neither an answer like {"event":"tool:permission:response","data":{"selected":"agree"}} nor a message like ` + messageExample)
		}
		if wrong != nil { // the question stays open
			said := inputErrorf("stdin, line %d: %s", n, errorMessage(wrong))
			d.invocation.warnError(said)
			garbled = cmp.Or(garbled, error(&exitError{code: ExitCode(said)}))
		}
	}
}

// applyReply applies the program's reply to the open question.
func (d *answeredSession) applyReply(ctx context.Context, r events.SemaReply) error {
	q, asked := d.Questions.Current()
	if !asked {
		return message.Errorf("%s: no question is open", singleLine(r.Event))
	}
	if d.partialAnswer.ID != q.ID {
		d.partialAnswer = uip.Response{}
	}
	whole, err := r.ParseAnswer(q, &d.partialAnswer)
	if d.partialAnswer.ID, d.partialAnswer.Author, d.partialAnswer.AnsweredBy = q.ID, "user", "stdin"; whole {
		d.Questions.Answer(ctx, d.partialAnswer)
		d.partialAnswer = uip.Response{}
	}
	return err
}
