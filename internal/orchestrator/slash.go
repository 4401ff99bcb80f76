package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"coder/internal/event"
)

// command is one slash command. /help is printed from the table of them.
type command struct {
	name, args, help string
	run              func(context.Context, invocation) (string, error)
}

// invocation is one use of a command.
type invocation struct {
	*Orchestrator
	st   *turnState
	args string
}

// commands is a function so that a command may read the table it stands in.
func commands() []command {
	return slices.Concat(
		[]command{helpCommand(), modelCommand(), permissionsCommand(), toolsCommand(), modeCommand()},
		modeCommands(),
	)
}

// runSlashCommand runs a command of the program's own. Its input and output
// are kept with the conversation and never sent to the model.
func (o *Orchestrator) runSlashCommand(ctx context.Context, rawInput, name, args string, out event.Sink) (string, error) {
	st := &turnState{sink: o.Through(out)}
	text, err := o.dispatch(ctx, st, name, args)
	local := event.LocalAdded{Input: rawInput, Output: text}
	if err != nil {
		local.Output, local.Failed = err.Error(), true
	}
	if keepErr := errors.Join(o.emit(ctx, st, ActorUser, local), o.saveSession(ctx, st)); keepErr != nil {
		return text, keepErr
	}
	return text, err
}

// CommandError reports a slash command that could not be run as written.
type CommandError struct{ Text string }

func (e *CommandError) Error() string { return e.Text }

func (o *Orchestrator) dispatch(ctx context.Context, st *turnState, name, args string) (string, error) {
	all := commands()
	i := slices.IndexFunc(all, func(c command) bool { return c.name == name })
	if i < 0 {
		return "", &CommandError{fmt.Sprintf("unknown command /%s; /help lists the commands", name)}
	}
	return all[i].run(ctx, invocation{o, st, args})
}

func helpCommand() command {
	return command{name: "help", help: "list the commands", run: func(context.Context, invocation) (string, error) {
		var b strings.Builder
		for _, c := range commands() {
			fmt.Fprintf(&b, "%-16s %s\n", strings.TrimSpace("/"+c.name+" "+c.args), c.help)
		}
		b.WriteString("!COMMAND         run a shell command; its output joins the conversation\n")
		b.WriteString("Enter sends, Ctrl+D on an empty line leaves, Esc stops a running turn, Ctrl+C ends the program.")
		return b.String(), nil
	}}
}

func modelCommand() command {
	return command{name: "model", help: "show the model in use", run: func(_ context.Context, o invocation) (string, error) {
		return o.Settings().Model, nil
	}}
}

func toolsCommand() command {
	return command{name: "tools", help: "list the tools the model may call", run: func(_ context.Context, o invocation) (string, error) {
		var b strings.Builder
		for s := range o.Settings().Tools.Specs() {
			about, _, _ := strings.Cut(s.Doc, "\n")
			fmt.Fprintf(&b, "%-10s %s\n", s.Name, about)
		}
		return strings.TrimRight(b.String(), "\n"), nil
	}}
}

// CommandInfo is a slash command for those who list them.
type CommandInfo struct{ Name, Args, Help string }

// Commands lists the slash commands in the order of /help.
func Commands() (all []CommandInfo) {
	for _, c := range commands() {
		all = append(all, CommandInfo{c.name, c.args, c.help})
	}
	return all
}
