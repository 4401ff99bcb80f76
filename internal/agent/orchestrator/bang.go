package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"coder/internal/agent/toolrun"
	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/tool"
)

// shellTool is the tool behind command mode. Command mode is the person's own
// use of that one tool, so this is the one place that knows its name.
const shellTool = "bash"

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
		if line != command || wantsTerminal(line, st.set.TerminalPrograms) {
			ctx = tool.WithTerminal(ctx)
		}
		err = o.shell(ctx, st, line)
	}
	return st.final, o.persistStep(ctx, st, err)
}

// shell runs command and leaves what is to be shown of it in st.final.
func (o *Orchestrator) shell(ctx context.Context, st *turnState, command string) error {
	if !st.set.offers(shellTool) {
		st.final = "command mode denied: bash disabled by active agent " + st.set.Mode
		return o.emit(ctx, st, ActorAgent, event.MessageAdded{
			Message: chat.Say(chat.Assistant, st.final), Blocks: display.Blocks{display.Text(st.final)},
		})
	}
	args := map[string]any{"command": command}
	if becomesAnother(command) {
		args["unconfined"] = true // a sandbox lets nobody become another user
	}
	watch := &terminalWatch{Sink: st.sink}
	call := chat.ToolCall{ID: o.NewID("bang"), Name: shellTool, Args: jsonx.Must(args)}
	deliver := func(keep context.Context, out toolrun.Outcome) error {
		for _, e := range out.Effects {
			if e.Kind == tool.Write {
				st.edited = append(st.edited, e.Target)
			}
		}
		result := readShellResult(o.Conceals.Text(command), out.Result.Text)
		whole := result.block()
		shown := display.Blocks{whole.Cut(sectionLines)}
		st.final = shown.Plain()
		said := event.MessageAdded{Message: chat.Say(chat.Assistant, display.Blocks{whole}.Plain()), Blocks: shown}
		err := o.emit(keep, st, ActorAgent, said)
		if result.missedTerminal() && !watch.told.Load() {
			err = errors.Join(err, o.emit(keep, st, ActorAgent, wantsTerminalNotice))
		}
		if result.ExitCode == 0 && endsWithItsShell(command) {
			err = errors.Join(err, o.emit(keep, st, ActorAgent, event.Notice{Level: event.Info, Text: "each ! line has a shell of its own: where it goes and what it sets ends with it"}))
		}
		return errors.Join(err, o.tellUsage(keep, st))
	}
	return o.Runner.Run(ctx, toolrun.Round{
		Task: st.task, Actor: ActorUser, Aside: bangAside, Unjudged: st.set.DirectBang, Set: st.set.Tools, Calls: []chat.ToolCall{call},
		Person: o.Person(st.sink), Sink: watch, Deliver: deliver,
	})
}

var wantsTerminalNotice = event.Notice{Level: event.Info, Text: "it seems to want a terminal: !! before a command gives it one"}

// terminalWatch tells at once that a command complains of having no terminal: it may wait
// for one without end.
type terminalWatch struct {
	event.Sink
	told atomic.Bool
}

func (w *terminalWatch) Emit(ctx context.Context, r event.Record) error {
	err := w.Sink.Emit(ctx, r)
	if e, ok := r.Event.(event.ToolOutput); ok && err == nil && wantsOne(e.Text) && w.told.CompareAndSwap(false, true) {
		r.Event = wantsTerminalNotice
		err = w.Sink.Emit(ctx, r)
	}
	return err
}

// wantsOne reports whether a program says that its terminal is none, and goes on.
func wantsOne(text string) bool {
	text = strings.ToLower(text)
	return strings.Contains(text, "output is not to a terminal") || strings.Contains(text, "input is not from a terminal")
}

// bangAside is what a person is told who is asked about their own command.
const bangAside = "your own command: with approval.bang = direct such commands run unasked"

// elevated are the programs that make one another user.
var elevated = []string{"sudo", "su", "doas", "pkexec"}

// shellResult is what came of a command; an exit code below zero says that it
// was not run.
type shellResult tool.ShellResult

func readShellResult(command, text string) shellResult {
	r := shellResult{ExitCode: -1, Error: "no result"}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		r.Error = text
	}
	r.Command = command
	return r
}

// missedTerminal reports whether a command failed because there was nobody to ask.
func (r shellResult) missedTerminal() bool {
	says := func(what string) bool { return strings.Contains(strings.ToLower(r.Stderr), what) }
	return r.ExitCode != 0 && !r.Terminal && slices.ContainsFunc([]string{"eoferror", "not a tty", "not a terminal", "no tty", "inappropriate ioctl", "a terminal is required", "not from a terminal", "not to a terminal"}, says)
}

// block is the result as people are shown it.
func (r shellResult) block() display.Shell {
	if r.ExitCode < 0 {
		return display.Shell{Command: r.Command, Error: r.Error}
	}
	b := display.Shell{
		Command: r.Command, Ran: true, Exit: r.ExitCode, Millis: r.DurationMS, Truncated: r.Truncated, Stdout: r.Stdout, Stderr: r.Stderr,
		Terminal: r.Terminal, Log: r.LogPath,
	}
	if r.TimedOut {
		b.Error = r.Error
	}
	return b
}
