package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"coder/internal/event"
)

// command is one slash command. Help, completion and dispatch read the table
// of them.
type command struct {
	name, args, help string
	run              func(context.Context, invocation) (string, error)
	// prompt, which stands in place of run, writes what the model is asked: the
	// command is then a turn.
	prompt func(args string) string
}

// invocation is one use of a command.
type invocation struct {
	*Orchestrator
	st   *turnState
	args string
}

// commands is the one table. It is a function so that a command may read the
// table it stands in.
func commands() []command {
	return slices.Concat(
		[]command{helpCommand(), modelCommand(), modeCommand()}, modeCommands(),
		[]command{
			permissionsCommand(), toolsCommand(), skillsCommand(), agentsCommand(), todosCommand(),
			contextCommand(), costCommand(), compactCommand(), diffCommand(), undoCommand(), redoCommand(),
			newCommand("new"), newCommand("clear"), resumeCommand(), sessionsCommand(), exportCommand(), initCommand(),
			configCommand(), statusCommand(), trustCommand(), exitCommand("exit"), exitCommand("quit"),
		},
	)
}

// runSlashCommand runs a command of the program's own. Its input and output
// are kept with the conversation and never sent to the model.
func (o *Orchestrator) runSlashCommand(ctx context.Context, rawInput, name, args string, out event.Sink) (string, error) {
	st := &turnState{sink: o.Through(out)}
	c, err := o.lookup(name)
	if err == nil && c.prompt != nil {
		return o.runPrompted(ctx, st, rawInput, c.prompt(args), out)
	}
	if err != nil {
		if text, ok, err := o.custom(ctx, rawInput, name, args, out); ok {
			return text, err
		}
	}
	var text string
	if err == nil {
		text, err = c.run(ctx, invocation{o, st, args})
	}
	local := event.LocalAdded{Input: rawInput, Output: text}
	if leave := (*Leave)(nil); err != nil && !errors.As(err, &leave) {
		local.Output, local.Failed = err.Error(), true
	}
	if keepErr := errors.Join(o.emit(ctx, st, ActorUser, local), o.saveSession(ctx, st)); keepErr != nil {
		return text, keepErr
	}
	return text, err
}

// runPrompted runs a command that is a turn: the model is asked in words that
// are the program's own.
func (o *Orchestrator) runPrompted(ctx context.Context, st *turnState, rawInput, words string, out event.Sink) (string, error) {
	local := event.LocalAdded{Input: rawInput, Output: "asking the model: " + Title(words)}
	if err := o.emit(ctx, st, ActorUser, local); err != nil {
		return "", err
	}
	return o.RunTurn(ctx, words, out)
}

// CommandError reports a slash command that could not be run as written.
type CommandError struct{ Text string }

func (e *CommandError) Error() string { return e.Text }

// lookup finds a command of the program's own. What is no command at all is
// never sent to the model.
func (o *Orchestrator) lookup(name string) (command, error) {
	var names []string
	for _, c := range commands() {
		if c.name == name {
			return c, nil
		}
		names = append(names, c.name)
	}
	for _, c := range o.Lore.All() {
		names = append(names, c.Name)
	}
	if near := nearest(name, names); near != "" {
		return command{}, &CommandError{fmt.Sprintf("unknown command /%s; did you mean /%s? /help lists the commands", name, near)}
	}
	return command{}, &CommandError{fmt.Sprintf("unknown command /%s; /help lists the commands", name)}
}

// nearest is the name that word begins, or else the one that is most like it,
// or "" if none is much like it.
func nearest(word string, names []string) string {
	if i := slices.IndexFunc(names, func(n string) bool { return len(word) > 1 && strings.HasPrefix(n, word) }); i >= 0 {
		return names[i]
	}
	best, least := "", max(1, len(word)/3)+1
	for _, n := range names {
		if d := distance(word, n); d < least {
			best, least = n, d
		}
	}
	return best
}

// longestName bounds the work of distance; no command's name is as long.
const longestName = 40

// distance counts the letters to add, drop, change or swap with their
// neighbour to make b of a.
func distance(a, b string) int {
	if len(a) > longestName {
		return len(a)
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			rows[i][j] = min(change, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
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
