package orchestrator

import (
	"context"
	"errors"
	"strings"

	"coder/internal/agent/toolrun"
	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/tool"
)

// sectionLines is how much of each section of a command's output is shown.
const sectionLines = 20

// runBangCommand runs a shell command the person typed, through the same gate
// as the model's own commands, and puts both into the conversation.
func (o *Orchestrator) runBangCommand(ctx context.Context, rawInput, command string, out event.Sink) (string, error) {
	line := command
	if forced, ok := strings.CutPrefix(command, "!"); ok { // !!command
		line = strings.TrimSpace(forced)
	}
	if line == "" {
		return "", &CommandError{"no command after !"}
	}
	o.glimpse()
	st := o.newState(out)
	err := o.openTask(ctx, st, rawInput)
	if err == nil {
		err = o.emit(ctx, st, ActorUser, event.MessageAdded{Message: chat.Say(chat.User, rawInput)})
	}
	if err == nil {
		err = o.shell(ctx, st, line, line != command)
	}
	return st.final, o.persistStep(ctx, st, err)
}

// OwnLine is a command line of the person's, read by what knows its needs.
type OwnLine interface {
	// Context is the one its call runs under.
	Context(context.Context) context.Context
	// Unconfined reports whether no sandbox may be around it.
	Unconfined() bool
	// Hears is what to tell the person at once when it prints text, or "".
	Hears(text string) string
	// Ended is what to tell the person of how it ended.
	Ended(tool.ShellResult) []string
}

// shell runs command and leaves what is to be shown of it in st.final.
func (o *Orchestrator) shell(ctx context.Context, st *turnState, command string, forced bool) error {
	if !st.set.offers(tool.RunsShell) {
		st.final = "command mode denied: bash disabled by active agent " + st.set.Mode
		return o.emit(ctx, st, ActorAgent, event.MessageAdded{
			Message: chat.Say(chat.Assistant, st.final), Blocks: display.Blocks{display.Text(st.final)},
		})
	}
	args := map[string]any{"command": command}
	line := st.set.ReadOwn(command, forced)
	if line.Unconfined() {
		args["unconfined"] = true
	}
	call := st.set.shellCall(o.NewID("bang"), args)
	deliver := func(keep context.Context, out toolrun.Outcome) error {
		for _, e := range out.Effects {
			if e.Kind == tool.Write {
				st.work.Wrote(e.Target)
			}
		}
		result := tool.ReadShellResult(o.Conceals.Text(command), out.Result.Text)
		whole := result.Block()
		shown := display.Blocks{whole.Cut(sectionLines)}
		st.final = shown.Plain()
		said := event.MessageAdded{Message: chat.Say(chat.Assistant, display.Blocks{whole}.Plain()), Blocks: shown}
		err := o.emit(keep, st, ActorAgent, said)
		for _, text := range line.Ended(result) {
			err = errors.Join(err, o.emit(keep, st, ActorAgent, event.Notice{Level: event.Info, Text: text}))
		}
		return errors.Join(err, o.tellUsage(keep, st))
	}
	return o.Runner.Run(line.Context(ctx), toolrun.Round{
		Task: st.task, Actor: ActorUser, Aside: bangAside, Unjudged: st.set.DirectBang, Set: st.set.Tools, Calls: []chat.ToolCall{call},
		Person: o.Person(st.sink), Sink: hearing(st.sink, line), Deliver: deliver,
	})
}

// hearing tells the person at once what a line has to say of its own output.
func hearing(sink event.Sink, line OwnLine) event.Sink {
	return event.SinkFunc(func(ctx context.Context, r event.Record) error {
		err := sink.Emit(ctx, r)
		if e, ok := r.Event.(event.ToolOutput); ok && err == nil {
			if text := line.Hears(e.Text); text != "" {
				r.Event = event.Notice{Level: event.Info, Text: text}
				err = sink.Emit(ctx, r)
			}
		}
		return err
	})
}

// bangAside is what a person is told who is asked about their own command.
const bangAside = "your own command: approval.bang = direct runs it without approval"
