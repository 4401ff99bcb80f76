package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"coder/internal/agent/compact"
	"coder/internal/agent/conversation"
	tokens "coder/internal/agent/prompt"
	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/nearest"
	"coder/internal/model/provider"
	"coder/internal/policy/mode"
)

// Command is a slash command: what it is called, what it takes and what it does.
type Command struct {
	Name, Args, Help string
	// Run does it. What it says is kept with the conversation and never sent to
	// the model.
	Run func(context.Context, *Call) (Outcome, error)
	// Prompt, which stands in place of Run, writes what the model is asked: the
	// command is then a turn.
	Prompt func(args string) string
	// Looks says that without arguments it only looks something up, and Reads that with
	// any it takes nothing from the conversation and the workspace that a turn may
	// change: it is then answered while a turn runs, and at a card.
	Looks, Reads bool
	// Mode, which may be nil, is the mode that it switches to, or "": while a turn
	// runs that counts from its next step on.
	Mode func(args string) string
	// Leaves says that it ends the program.
	Leaves bool
	// Authored says that Help is not the program's own words.
	Authored bool
}

// Outcome is what came of an input.
type Outcome struct {
	Text   string         // the answer, or what a command says
	Blocks display.Blocks // what Text is made of, unless that is prose
	Next   *Next          // nil: the session goes on
	Draft  string         // what the person may want to say in other words
}

// Next is where the person goes from a session.
type Next struct {
	New     bool   // to a new session, under the id in Session
	Session string // the one to go to
	Exit    bool   // out of the program
}

// CommandError reports a command that could not be run as written.
type CommandError struct{ Text string }

func (e *CommandError) Error() string { return e.Text }

// stoppedError says what the person who stopped a command has of it.
type stoppedError string

func (e stoppedError) Error() string        { return string(e) }
func (e stoppedError) Is(target error) bool { return target == context.Canceled }

// runCommand runs a slash command.
func (o *Orchestrator) runCommand(ctx context.Context, rawInput, name, args string, out event.Sink) (Outcome, error) {
	st := &turnState{sink: o.Through(out)}
	c, err := o.command(name)
	if err == nil && c.Prompt != nil {
		words := c.Prompt(args)
		asking := event.LocalAdded{Input: rawInput, Output: "asking the model: " + Title(words)}
		if err := o.emit(ctx, st, ActorUser, asking); err != nil {
			return Outcome{}, err
		}
		text, err := o.runTurn(ctx, Said{Words: chat.From(chat.Unknown, words), Typed: rawInput}, out)
		return Outcome{Text: text}, err
	}
	if err != nil {
		if text, ok, err := o.runWritten(ctx, rawInput, name, args, out); ok {
			return Outcome{Text: text}, err
		}
	}
	if err == nil && c.Args == "" && args != "" {
		err = &CommandError{fmt.Sprintf("/%s takes no arguments", name)}
	}
	var done Outcome
	if err == nil {
		done, err = c.Run(ctx, &Call{args, o, st})
	}
	local := event.LocalAdded{Input: rawInput, Output: done.Text, Blocks: done.Blocks}
	if err != nil {
		local = event.LocalAdded{Input: rawInput, Output: err.Error(), Failed: true}
	}
	ctx = context.WithoutCancel(ctx) // what was stopped is on record, too
	if keepErr := errors.Join(o.emit(ctx, st, ActorUser, local), o.saveSession(ctx, st)); keepErr != nil {
		return done, keepErr
	}
	return done, err
}

// glimpse keeps how things stand for those who look while a turn runs. What the
// turn adds to them from here on is not seen.
func (o *Orchestrator) glimpse() {
	c, talk := o.Config, *o.Talk
	c.Talk = &talk
	o.seen.Store(&Orchestrator{Config: c, gauge: o.gauge, prefix: o.prefix})
}

// Looks reports whether an input is a command that can be answered while a turn
// runs.
func (o *Orchestrator) Looks(input string) bool {
	in, ok := parseInput(input).(slash)
	if !ok || o.seen.Load() == nil {
		return false
	}
	c, err := o.command(in.name)
	return err == nil && c.Run != nil && (c.Reads || c.Looks && in.args == "")
}

// Switches is the mode that an input switches to, or "".
func (o *Orchestrator) Switches(input string) string {
	in, ok := parseInput(input).(slash)
	if !ok {
		return ""
	}
	if c, err := o.command(in.name); err == nil && c.Mode != nil {
		return c.Mode(in.args)
	}
	return ""
}

// Knows reports whether an input is a command that there is, also one that people wrote,
// or one for the shell.
func (o *Orchestrator) Knows(input string) bool {
	switch in := parseInput(input).(type) {
	case bang:
		return in != ""
	case slash:
		return slices.ContainsFunc(o.AllCommands(), func(c Command) bool { return c.Name == in.name })
	}
	return false
}

// Unknown is why an input that looks like a command is none, as "/statsu" is and
// "/usr/bin" is not.
func (o *Orchestrator) Unknown(input string) error {
	in, ok := parseInput(input).(slash)
	if !ok || !isCommandName(in.name) || o.Knows(input) {
		return nil
	}
	_, err := o.command(in.name)
	return err
}

// Leaves reports whether an input is a command that ends the program.
func (o *Orchestrator) Leaves(input string) bool {
	in, ok := parseInput(input).(slash)
	c, err := o.command(in.name)
	return ok && err == nil && c.Leaves
}

// Look answers such a command.
func (o *Orchestrator) Look(ctx context.Context, input string, out event.Sink) error {
	in, _ := parseInput(input).(slash)
	c, err := o.command(in.name)
	if err != nil {
		return err
	}
	st := &turnState{sink: o.Through(out)}
	done, err := c.Run(ctx, &Call{in.args, o.seen.Load(), st})
	local := event.LocalAdded{Input: input, Output: done.Text, Blocks: done.Blocks}
	if err != nil {
		local = event.LocalAdded{Input: input, Output: err.Error(), Failed: true}
	}
	return st.sink.Emit(ctx, event.Record{Actor: ActorUser, Event: local})
}

// AllCommands are all that can be typed: the program's own, then those that
// people wrote.
func (o *Orchestrator) AllCommands() []Command {
	return slices.Concat(o.Commands, o.Library.All(o.Commands))
}

// command finds a command of the program's own. What is no command at all is
// never sent to the model.
func (o *Orchestrator) command(name string) (Command, error) {
	var names []string
	for _, c := range o.AllCommands() {
		if c.Name == name && (c.Run != nil || c.Prompt != nil) {
			return c, nil
		}
		names = append(names, c.Name)
	}
	near := nearest.Of(name, names)
	if i := slices.IndexFunc(names, func(n string) bool { return len(name) > 1 && strings.HasPrefix(n, name) }); i >= 0 {
		near = names[i]
	}
	if near != "" {
		return Command{}, &CommandError{fmt.Sprintf("unknown command /%s; did you mean /%s? /help lists the commands", name, near)}
	}
	return Command{}, &CommandError{fmt.Sprintf("unknown command /%s; /help lists the commands", name)}
}

// Call is one use of a command: what was typed after its name, and the session
// it was typed in.
type Call struct {
	Args string

	o  *Orchestrator
	st *turnState
}

// Commands are all that can be typed here.
func (c *Call) Commands() []Command { return c.o.AllCommands() }

// Settings are those of the next turn.
func (c *Call) Settings() Settings { return c.o.Settings() }

// Mode is the mode the session is in, and its permissions.
func (c *Call) Mode() (m mode.Mode, preset string) { return c.o.Mode.Current() }

// Conversation is what was said so far.
func (c *Call) Conversation() *conversation.Conversation { return c.o.Talk }

// ContextUsed is how many tokens the next request would take, and ToolTokens
// how many of them, by our own count, describe the tools.
func (c *Call) ContextUsed() int { return c.o.ContextUsed() }

// ToolTokens is how many tokens describe the tools, by our own count.
func (c *Call) ToolTokens() int {
	set := c.o.Settings()
	_, all := c.o.specs(set)
	return all - tokens.Tokens(set.System)
}

// toolSizes are how many tokens describe each of the tools, by our own count.
func toolSizes(list []provider.ToolSpec) map[string]int {
	sizes := make(map[string]int, len(list))
	for _, s := range list {
		sizes[s.Name] = tokens.Tokens(s.Name) + tokens.Tokens(s.Doc) + tokens.Bytes(s.Schema)
	}
	return sizes
}

// Prefix is how far requests begin like those before them.
func (c *Call) Prefix() Prefix { return c.o.prefix.Prefix }

// NewID makes an id behind a prefix that says what it names.
func (c *Call) NewID(prefix string) string { return c.o.NewID(prefix) }

// Emit puts an event on record as the person's.
func (c *Call) Emit(ctx context.Context, e event.Event) error {
	return c.o.emit(ctx, c.st, ActorUser, e)
}

// Warn tells the person something beside the command's output.
func (c *Call) Warn(ctx context.Context, text string) error { return c.o.warn(ctx, c.st, text) }

// SwitchMode changes the mode.
func (c *Call) SwitchMode(ctx context.Context, name string) error {
	return c.o.switchMode(ctx, c.st, name)
}

// TakePreset changes the permissions of the mode.
func (c *Call) TakePreset(ctx context.Context, name string) error {
	was, _ := c.o.Mode.Current()
	if err := c.o.Mode.Preset(name); err != nil {
		return &CommandError{err.Error()}
	}
	return c.o.tellMode(ctx, c.st, was.Name)
}

// SettingsChanged tells how full the context is under the settings as they are
// now.
func (c *Call) SettingsChanged(ctx context.Context) (Settings, error) {
	c.o.freezeSettings(c.st)
	return c.st.set, c.o.tellUsage(ctx, c.st)
}

// freeze freezes the settings, unless they are.
func (c *Call) freeze() {
	if c.st.set.Model == "" && c.st.tools == nil {
		c.o.freezeSettings(c.st)
	}
}

// Compact lets a summary stand for what was said, with an eye to focus if that
// is not empty. It returns the summary.
func (c *Call) Compact(ctx context.Context, focus string) (string, error) {
	c.freeze()
	text, err := c.o.summarise(ctx, c.st, c.o.limits(c.st, true), focus, false)
	switch {
	case errors.Is(err, compact.ErrTooShort):
		return "", &CommandError{err.Error()}
	case ctx.Err() != nil:
		return "", stoppedError("stopped; the conversation is unchanged")
	}
	return text, err
}

// Uncompact brings back what the last replacement hides, and tells what that was.
func (c *Call) Uncompact(ctx context.Context) (was conversation.Replacement, err error) {
	was, ok := c.o.Talk.Replaced()
	if !ok {
		return was, &CommandError{"nothing was compacted, so there is nothing to restore"}
	}
	c.freeze()
	return was, errors.Join(c.o.emit(ctx, c.st, ActorUser, event.ContextRestored{Messages: len(was.Hidden)}), c.o.tellUsage(ctx, c.st))
}

// Rewind takes the conversation, and the todo list, back to before a message.
// Turns is how many turns of files were taken back with it, of undone in all.
func (c *Call) Rewind(ctx context.Context, to *conversation.Prompt, turns, undone int) error {
	hidden := len(c.o.Talk.View()) - to.Messages()
	if err := c.o.emit(ctx, c.st, ActorUser, event.ContextRewound{To: to.Seq, Messages: hidden, Turns: turns, Undone: undone}); err != nil {
		return err
	}
	return c.asRewound(ctx, to.Todos())
}

// Unrewind takes the last Rewind back. Todos is the list as it was before that.
func (c *Call) Unrewind(ctx context.Context, e event.ContextRewound) error {
	if err := c.o.emit(ctx, c.st, ActorUser, event.ContextRewound{Messages: e.Messages, Undo: true}); err != nil {
		return err
	}
	return c.asRewound(ctx, c.o.Talk.Todos())
}

// asRewound lets the list be what belongs to the conversation as it is now, and
// tells how full the context is.
func (c *Call) asRewound(ctx context.Context, todos []event.Todo) error {
	if c.o.Todos != nil && !slices.Equal(todos, c.o.Todos()) {
		if err := c.o.emit(ctx, c.st, ActorUser, event.TodosChanged{Todos: todos}); err != nil {
			return err
		}
	}
	c.freeze()
	return c.o.tellUsage(ctx, c.st)
}
