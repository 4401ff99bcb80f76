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

// Command is a slash command.
type Command struct {
	Name, Args, Help string
	// Run executes the command. Its output is saved with the conversation but never sent to the model.
	Run func(context.Context, *Call) (Outcome, error)
	// Prompt, which replaces Run, returns a prompt for the model: the command is then a turn.
	Prompt func(args string) string
	// Looks means that the command without arguments only shows something, and Reads that it uses nothing in the
	// conversation or workspace that a turn may change. Such a command also works during a turn and at a card.
	Looks, Reads bool
	// Mode, which may be nil, returns the mode to switch to, or
	// "". During a turn, the mode applies from the next step.
	Mode func(args string) string
	// Leaves means that the command ends coder.
	Leaves bool
	// Authored means that Help was not written for coder itself.
	Authored bool
}

// Outcome is the result of an input.
type Outcome struct {
	Text   string         // the answer, or a command's output
	Blocks display.Blocks // the structure of Text, unless it is prose
	Next   *Next          // nil: the session stays open
	Draft  string         // text for the user to edit and send again
}

// Next is where the user goes from a session.
type Next struct {
	New     bool   // to a new session with the id in Session
	Session string // the id of the session to open
	Exit    bool   // leave coder
}

// CommandError reports a command that could not run as written.
type CommandError struct{ Text string }

func (e *CommandError) Error() string { return e.Text }

// stoppedError says what is left of a command that the user stopped.
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
	if err == nil && c.Leaves && len(o.Talk.Messages()) == 0 {
		return done, nil // an empty session leaves nothing behind
	}
	local := event.LocalAdded{Input: rawInput, Output: done.Text, Blocks: done.Blocks}
	if err != nil {
		local = event.LocalAdded{Input: rawInput, Output: err.Error(), Failed: true}
	}
	ctx = context.WithoutCancel(ctx) // record a stopped command, too
	if keepErr := errors.Join(o.emit(ctx, st, ActorUser, local), o.saveSession(ctx, st)); keepErr != nil {
		return done, keepErr
	}
	return done, err
}

// glimpse saves the current state for commands that look
// during a turn. They do not see what the turn adds later.
func (o *Orchestrator) glimpse() {
	c, talk := o.Config, *o.Talk
	c.Talk = &talk
	o.seen.Store(&Orchestrator{Config: c, gauge: o.gauge, prefix: o.prefix})
}

// Looks reports whether an input is a command that can run during a turn.
func (o *Orchestrator) Looks(input string) bool {
	in, ok := parseInput(input).(slash)
	if !ok || o.seen.Load() == nil {
		return false
	}
	c, err := o.command(in.name)
	return err == nil && c.Run != nil && (c.Reads || c.Looks && in.args == "")
}

// Switches returns the mode that an input switches to, or "".
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

// Knows reports whether an input is an existing command, including a custom one, or a shell command.
func (o *Orchestrator) Knows(input string) bool {
	switch in := parseInput(input).(type) {
	case bang:
		return in != ""
	case slash:
		return slices.ContainsFunc(o.AllCommands(), func(c Command) bool { return c.Name == in.name })
	}
	return false
}

// Unknown returns an error if an input looks like a command
// but is not one: "/statsu" does, "/usr/bin" does not.
func (o *Orchestrator) Unknown(input string) error {
	in, ok := parseInput(input).(slash)
	if !ok || !isCommandName(in.name) || o.Knows(input) || o.namesFile(input) {
		return nil
	}
	_, err := o.command(in.name)
	return err
}

// Leaves reports whether an input is a command that ends coder.
func (o *Orchestrator) Leaves(input string) bool {
	in, ok := parseInput(input).(slash)
	c, err := o.command(in.name)
	return ok && err == nil && c.Leaves
}

// Look runs a command for which [Orchestrator.Looks] is true.
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

// AllCommands returns everything that can be typed: the built-in commands, then the custom ones.
func (o *Orchestrator) AllCommands() []Command {
	return slices.Concat(o.Commands, o.Library.All(o.Commands))
}

// command finds a built-in command. It returns an error for an
// unknown command, which is never sent to the model.
func (o *Orchestrator) command(name string) (Command, error) {
	var names []string
	for _, c := range o.AllCommands() {
		if c.Name == name && (c.Run != nil || c.Prompt != nil) {
			return c, nil
		}
		names = append(names, c.Name)
	}
	if other := o.Counterparts[name]; other != "" {
		return Command{}, &CommandError{fmt.Sprintf("unknown command /%s; use %s", name, other)}
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

// Call is one use of a command: its arguments, and its session.
type Call struct {
	Args string

	o  *Orchestrator
	st *turnState
}

// Commands returns everything that can be typed in the session.
func (c *Call) Commands() []Command { return c.o.AllCommands() }

// Settings returns the settings of the next turn.
func (c *Call) Settings() Settings { return c.o.Settings() }

// Mode returns the session's mode and its permissions.
func (c *Call) Mode() (m mode.Mode, preset string) { return c.o.Mode.Current() }

// Conversation returns the conversation so far.
func (c *Call) Conversation() *conversation.Conversation { return c.o.Talk }

// ContextUsed returns the number of tokens in the next request.
func (c *Call) ContextUsed() int { return c.o.ContextUsed() }

// ToolTokens returns how many tokens describe the tools, by coder's own count.
func (c *Call) ToolTokens() int {
	set := c.o.Settings()
	_, all := c.o.specs(set)
	return all - tokens.Tokens(set.System)
}

// toolSizes returns how many tokens describe each tool, by coder's own count.
func toolSizes(list []provider.ToolSpec) map[string]int {
	sizes := make(map[string]int, len(list))
	for _, s := range list {
		sizes[s.Name] = tokens.Tokens(s.Name) + tokens.Tokens(s.Doc) + tokens.Bytes(s.Schema)
	}
	return sizes
}

// Prefix returns how far requests begin like the ones before them.
func (c *Call) Prefix() Prefix { return c.o.prefix.Prefix }

// NewID returns a new id that begins with prefix.
func (c *Call) NewID(prefix string) string { return c.o.NewID(prefix) }

// Emit records an event with the user as its actor.
func (c *Call) Emit(ctx context.Context, e event.Event) error {
	return c.o.emit(ctx, c.st, ActorUser, e)
}

// Warn shows the user a warning in addition to the command's output.
func (c *Call) Warn(ctx context.Context, text string) error { return c.o.warn(ctx, c.st, text) }

// SwitchMode changes the mode.
func (c *Call) SwitchMode(ctx context.Context, name string) error {
	return c.o.switchMode(ctx, c.st, name)
}

// TakePreset changes the mode's permissions.
func (c *Call) TakePreset(ctx context.Context, name string) error {
	was, _ := c.o.Mode.Current()
	if err := c.o.Mode.Preset(name); err != nil {
		return &CommandError{err.Error()}
	}
	return c.o.tellMode(ctx, c.st, was.Name)
}

// SettingsChanged reports how full the context is under the current settings.
func (c *Call) SettingsChanged(ctx context.Context) (Settings, error) {
	c.o.freezeSettings(c.st)
	return c.st.set, c.o.tellUsage(ctx, c.st)
}

// freeze freezes the settings, unless they already are.
func (c *Call) freeze() {
	if c.st.set.Model == "" && c.st.tools == nil {
		c.o.freezeSettings(c.st)
	}
}

// Compact replaces the conversation by a summary, with emphasis
// on focus if that is not empty. It returns the summary.
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

// Uncompact undoes the last replacement and returns it.
func (c *Call) Uncompact(ctx context.Context) (was conversation.Replacement, err error) {
	was, ok := c.o.Talk.Replaced()
	if !ok {
		return was, &CommandError{"nothing was compacted, so there is nothing to restore"}
	}
	c.freeze()
	return was, errors.Join(c.o.emit(ctx, c.st, ActorUser, event.ContextRestored{Messages: len(was.Hidden)}), c.o.tellUsage(ctx, c.st))
}

// Rewind sets the conversation and the todo list back to before a message. turns is
// how many turns' files were undone with it, and undone how many are undone in all.
func (c *Call) Rewind(ctx context.Context, to *conversation.Prompt, turns, undone int) error {
	hidden := len(c.o.Talk.View()) - to.Messages()
	if err := c.o.emit(ctx, c.st, ActorUser, event.ContextRewound{To: to.Seq, Messages: hidden, Turns: turns, Undone: undone}); err != nil {
		return err
	}
	return c.asRewound(ctx, to.Todos())
}

// Unrewind undoes the last Rewind and restores the todo list from before it.
func (c *Call) Unrewind(ctx context.Context, e event.ContextRewound) error {
	if err := c.o.emit(ctx, c.st, ActorUser, event.ContextRewound{Messages: e.Messages, Undo: true}); err != nil {
		return err
	}
	return c.asRewound(ctx, c.o.Talk.Todos())
}

// asRewound restores the todo list that belongs to the current
// conversation and reports how full the context is.
func (c *Call) asRewound(ctx context.Context, todos []event.Todo) error {
	if c.o.Todos != nil && !slices.Equal(todos, c.o.Todos()) {
		if err := c.o.emit(ctx, c.st, ActorUser, event.TodosChanged{Todos: todos}); err != nil {
			return err
		}
	}
	c.freeze()
	return c.o.tellUsage(ctx, c.st)
}
