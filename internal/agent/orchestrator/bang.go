package orchestrator

import (
	"context"
	"errors"
	"strings"

	"coder/internal/agent/toolrun"
	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/tool"
)

// sectionLines limits the lines shown of each section in a command's output.
const sectionLines = 20

// runBangCommand runs a shell command that the user typed, through the same gate
// as the model's commands, and adds command and result to the conversation.
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

// OwnLine is a ! line of the user's, parsed for its needs.
type OwnLine interface {
	// Context returns the context for its call.
	Context(context.Context) context.Context
	// Unconfined reports whether it must run without a sandbox.
	Unconfined() bool
	// Hears returns what to show the user as soon as the line prints text, or "".
	Hears(text string) string
	// Ended returns what to show the user about how it ended.
	Ended(tool.ShellResult) []string
}

// shell runs command and stores its displayed output in st.final.
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
		Task: st.task, Actor: ActorUser, Aside: uip.BangAside, Unjudged: st.set.DirectBang, Set: st.set.Tools, Calls: []chat.ToolCall{call},
		Person: o.Person(st.sink), Sink: hearing(st.sink, line), Deliver: deliver,
	})
}

// hearing shows the user at once what a line says about its own output.
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
