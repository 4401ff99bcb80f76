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

// maxSectionLines limits the lines shown of each section in a command's output.
const maxSectionLines = 20

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
	o.saveSnapshot()
	st := o.newTurnState(out)
	err := o.openTask(ctx, st, rawInput)
	if err == nil {
		err = o.emit(ctx, st, ActorUser, event.MessageAdded{Message: chat.TextMessage(chat.User, rawInput)})
	}
	if err == nil {
		err = o.runShell(ctx, st, line, line != command)
	}
	return st.finalText, o.closeTurn(ctx, st, err)
}

// BangLine is a ! line of the user's, parsed for its needs.
type BangLine interface {
	// WithTerminal returns the context for its call.
	WithTerminal(context.Context) context.Context
	// Unconfined reports whether it must run without a sandbox.
	Unconfined() bool
	// OutputHint returns what to show the user as soon as the line prints text, or "".
	OutputHint(text string) string
	// EndNotes returns notes for the user about the end of the command.
	EndNotes(tool.ShellResult) []string
}

// runShell runs command and stores its displayed output in st.final.
func (o *Orchestrator) runShell(ctx context.Context, st *turnState, command string, forced bool) error {
	if !st.settings.hasClass(tool.ClassShell) {
		st.finalText = "command mode denied: bash disabled by active agent " + st.settings.Mode
		return o.emit(ctx, st, ActorAgent, event.MessageAdded{
			Message: chat.TextMessage(chat.Assistant, st.finalText), Blocks: display.Blocks{display.Text(st.finalText)},
		})
	}
	args := map[string]any{"command": command}
	line := st.settings.ParseBang(command, forced)
	if line.Unconfined() {
		args["unconfined"] = true
	}
	call := st.settings.shellCall(o.NewID("bang"), args)
	deliver := func(keep context.Context, out toolrun.Outcome) error {
		for _, e := range out.Effects {
			if e.Kind == tool.Write {
				st.work.RecordWrite(e.Target)
			}
		}
		result := tool.ParseShellResult(o.Concealer.Text(command), out.Result.Text)
		whole := result.Block()
		shown := display.Blocks{whole.Truncate(maxSectionLines)}
		st.finalText = shown.PlainText()
		said := event.MessageAdded{Message: chat.TextMessage(chat.Assistant, display.Blocks{whole}.PlainText()),
			Blocks: shown}
		err := o.emit(keep, st, ActorAgent, said)
		for _, text := range line.EndNotes(result) {
			err = errors.Join(err, o.emit(keep, st, ActorAgent, event.Notice{Level: event.LevelInfo, Text: text}))
		}
		return errors.Join(err, o.reportUsage(keep, st))
	}
	return o.Runner.Run(line.WithTerminal(ctx), toolrun.Round{
		Task: st.task, Actor: ActorUser, ApprovalNote: uip.BangHint, Unjudged: st.settings.TrustBang,
		Tools: st.settings.Tools, Calls: []chat.ToolCall{call},
		User: o.NewInteractor(st.sink), Sink: withOutputHints(st.sink, line), Deliver: deliver,
	})
}

// withOutputHints shows the user at once what a line says about its own output.
func withOutputHints(sink event.Sink, line BangLine) event.Sink {
	return event.SinkFunc(func(ctx context.Context, r event.Record) error {
		err := sink.Emit(ctx, r)
		if e, ok := r.Event.(event.ToolOutput); ok && err == nil {
			if text := line.OutputHint(e.Text); text != "" {
				r.Event = event.Notice{Level: event.LevelInfo, Text: text}
				err = sink.Emit(ctx, r)
			}
		}
		return err
	})
}
