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
	Run func(context.Context, *CommandCall) (Outcome, error)
	// Prompt, which replaces Run, returns a prompt for the model: the command is then a turn.
	Prompt func(args string) string
	// ShowsOnly means that the command without arguments only shows something, and Reads that it uses nothing in the
	// conversation or workspace that a turn may change. Such a command also works during a turn and at a card.
	ShowsOnly, IsReadOnly bool
	// Mode, which may be nil, returns the mode to switch to, or
	// "". During a turn, the mode applies from the next step.
	Mode func(args string) string
	// Exits means that the command ends coder.
	Exits bool
	// IsCustom means that Help was not written for coder itself.
	IsCustom bool
}

// Outcome is the result of an input.
type Outcome struct {
	Text        string         // the answer, or a command's output
	Blocks      display.Blocks // the structure of Text, unless it is prose
	Destination *Destination   // nil: the session stays open
	Draft       string         // text for the user to edit and send again
}

// Destination is where the user goes from a session.
type Destination struct {
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
	st := &turnState{sink: o.RecordingSink(out)}
	c, err := o.findCommand(name)
	if err == nil && c.Prompt != nil {
		words := c.Prompt(args)
		asking := event.LocalAdded{Input: rawInput, Output: "asking the model: " + Title(words)}
		if err := o.emit(ctx, st, ActorUser, asking); err != nil {
			return Outcome{}, err
		}
		text, err := o.runTurn(ctx, Input{UserText: chat.NewUserText(chat.OriginUnknown, words), Typed: rawInput}, out)
		return Outcome{Text: text}, err
	}
	if err != nil {
		if text, ok, err := o.runCustomCommand(ctx, rawInput, name, args, out); ok {
			return Outcome{Text: text}, err
		}
	}
	if err == nil && c.Args == "" && args != "" {
		err = &CommandError{fmt.Sprintf("/%s takes no arguments", name)}
	}
	var done Outcome
	if err == nil {
		done, err = c.Run(ctx, &CommandCall{args, o, st})
	}
	if err == nil && c.Exits && len(o.Conversation.Messages()) == 0 {
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

// saveSnapshot saves the current state for commands that look
// during a turn. They do not see what the turn adds later.
func (o *Orchestrator) saveSnapshot() {
	c, talk := o.Config, *o.Conversation
	c.Conversation = &talk
	o.snapshot.Store(&Orchestrator{Config: c, gauge: o.gauge, prefix: o.prefix})
}

// IsShowCommand reports whether an input is a command that can run during a turn.
func (o *Orchestrator) IsShowCommand(input string) bool {
	in, ok := parseInput(input).(slashInput)
	if !ok || o.snapshot.Load() == nil {
		return false
	}
	c, err := o.findCommand(in.name)
	return err == nil && c.Run != nil && (c.IsReadOnly || c.ShowsOnly && in.args == "")
}

// TargetMode returns the mode that an input switches to, or "".
func (o *Orchestrator) TargetMode(input string) string {
	in, ok := parseInput(input).(slashInput)
	if !ok {
		return ""
	}
	if c, err := o.findCommand(in.name); err == nil && c.Mode != nil {
		return c.Mode(in.args)
	}
	return ""
}

// IsKnownCommand reports whether an input is an existing command, including a custom one, or a shell command.
func (o *Orchestrator) IsKnownCommand(input string) bool {
	switch in := parseInput(input).(type) {
	case bangInput:
		return in != ""
	case slashInput:
		return slices.ContainsFunc(o.AllCommands(), func(c Command) bool { return c.Name == in.name })
	}
	return false
}

// CheckUnknownCommand returns an error if an input looks like a command
// but is not one: "/statsu" does, "/usr/bin" does not.
func (o *Orchestrator) CheckUnknownCommand(input string) error {
	in, ok := parseInput(input).(slashInput)
	if !ok || !isCommandName(in.name) || o.IsKnownCommand(input) || o.startsWithPath(input) {
		return nil
	}
	_, err := o.findCommand(in.name)
	return err
}

// IsExitCommand reports whether an input is a command that ends coder.
func (o *Orchestrator) IsExitCommand(input string) bool {
	in, ok := parseInput(input).(slashInput)
	c, err := o.findCommand(in.name)
	return ok && err == nil && c.Exits
}

// RunShowCommand runs a command for which [Orchestrator.IsShowCommand] is true.
func (o *Orchestrator) RunShowCommand(ctx context.Context, input string, out event.Sink) error {
	in, _ := parseInput(input).(slashInput)
	c, err := o.findCommand(in.name)
	if err != nil {
		return err
	}
	st := &turnState{sink: o.RecordingSink(out)}
	done, err := c.Run(ctx, &CommandCall{in.args, o.snapshot.Load(), st})
	local := event.LocalAdded{Input: input, Output: done.Text, Blocks: done.Blocks}
	if err != nil {
		local = event.LocalAdded{Input: input, Output: err.Error(), Failed: true}
	}
	return st.sink.Emit(ctx, event.Record{Actor: ActorUser, Event: local})
}

// AllCommands returns everything that can be typed: the built-in commands, then the custom ones.
func (o *Orchestrator) AllCommands() []Command {
	return slices.Concat(o.Commands, o.Library.AllCommands(o.Commands))
}

// findCommand finds a built-in command. It returns an error for an
// unknown command, which is never sent to the model.
func (o *Orchestrator) findCommand(name string) (Command, error) {
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
	near := nearest.Find(name, names)
	if i := slices.IndexFunc(names, func(n string) bool { return len(name) > 1 && strings.HasPrefix(n, name) }); i >= 0 {
		near = names[i]
	}
	if near != "" {
		return Command{}, &CommandError{fmt.Sprintf("unknown command /%s; did you mean /%s? /help lists the commands",
			name, near)}
	}
	return Command{}, &CommandError{fmt.Sprintf("unknown command /%s; /help lists the commands", name)}
}

// CommandCall is one use of a command: its arguments, and its session.
type CommandCall struct {
	Args string

	orch *Orchestrator
	st   *turnState
}

// Commands returns everything that can be typed in the session.
func (c *CommandCall) Commands() []Command { return c.orch.AllCommands() }

// Settings returns the settings of the next turn.
func (c *CommandCall) Settings() Settings { return c.orch.Settings() }

// Mode returns the session's mode and its permissions.
func (c *CommandCall) Mode() (m mode.Mode, preset string) { return c.orch.Mode.Current() }

// Conversation returns the conversation so far.
func (c *CommandCall) Conversation() *conversation.Conversation { return c.orch.Conversation }

// ContextUsed returns the number of tokens in the next request.
func (c *CommandCall) ContextUsed() int { return c.orch.ContextUsed() }

// ToolTokens returns how many tokens describe the tools, by coder's own count.
func (c *CommandCall) ToolTokens() int {
	set := c.orch.Settings()
	_, all := c.orch.toolSpecs(set)
	return all - tokens.EstimateTokens(set.System)
}

// toolTokens returns how many tokens describe each tool, by coder's own count.
func toolTokens(list []provider.ToolSpec) map[string]int {
	sizes := make(map[string]int, len(list))
	for _, s := range list {
		sizes[s.Name] = tokens.EstimateTokens(s.Name) + tokens.EstimateTokens(s.Doc) + tokens.EstimateBytesTokens(s.Schema)
	}
	return sizes
}

// PrefixStats returns how far requests begin like the ones before them.
func (c *CommandCall) PrefixStats() PrefixStats { return c.orch.prefix.PrefixStats }

// NewID returns a new id that begins with prefix.
func (c *CommandCall) NewID(prefix string) string { return c.orch.NewID(prefix) }

// Emit records an event with the user as its actor.
func (c *CommandCall) Emit(ctx context.Context, e event.Event) error {
	return c.orch.emit(ctx, c.st, ActorUser, e)
}

// Warn shows the user a warning in addition to the command's output.
func (c *CommandCall) Warn(ctx context.Context, text string) error {
	return c.orch.warn(ctx, c.st, text)
}

// SwitchMode changes the mode.
func (c *CommandCall) SwitchMode(ctx context.Context, name string) error {
	return c.orch.switchMode(ctx, c.st, name)
}

// SetPreset changes the mode's permissions.
func (c *CommandCall) SetPreset(ctx context.Context, name string) error {
	was, _ := c.orch.Mode.Current()
	if err := c.orch.Mode.SetPreset(name); err != nil {
		return &CommandError{err.Error()}
	}
	return c.orch.recordMode(ctx, c.st, was.Name)
}

// ReportSettingsChange reports how full the context is under the current settings.
func (c *CommandCall) ReportSettingsChange(ctx context.Context) (Settings, error) {
	c.orch.freezeSettings(c.st)
	return c.st.settings, c.orch.reportUsage(ctx, c.st)
}

// freezeSettings freezes the settings, unless they already are.
func (c *CommandCall) freezeSettings() {
	if c.st.settings.Model == "" && c.st.tools == nil {
		c.orch.freezeSettings(c.st)
	}
}

// Compact replaces the conversation by a summary, with emphasis
// on focus if that is not empty. It returns the summary.
func (c *CommandCall) Compact(ctx context.Context, focus string) (string, error) {
	c.freezeSettings()
	text, err := c.orch.summarize(ctx, c.st, c.orch.compactLimits(c.st, true), focus, false)
	switch {
	case errors.Is(err, compact.ErrTooShort):
		return "", &CommandError{err.Error()}
	case ctx.Err() != nil:
		return "", stoppedError("stopped; the conversation is unchanged")
	}
	return text, err
}

// UndoCompact undoes the last replacement and returns it.
func (c *CommandCall) UndoCompact(ctx context.Context) (was conversation.Replacement, err error) {
	was, ok := c.orch.Conversation.LastReplacement()
	if !ok {
		return was, &CommandError{"nothing was compacted, so there is nothing to restore"}
	}
	c.freezeSettings()
	return was, errors.Join(c.orch.emit(ctx, c.st, ActorUser, event.ContextRestored{Messages: len(was.Hidden)}),
		c.orch.reportUsage(ctx, c.st))
}

// Rewind sets the conversation and the todo list back to before a message. turns is
// how many turns' files were undone with it, and undone how many are undone in all.
func (c *CommandCall) Rewind(ctx context.Context, to *conversation.Prompt, turns, undone int) error {
	hidden := len(c.orch.Conversation.View()) - to.MessageCount()
	if err := c.orch.emit(ctx, c.st, ActorUser, event.ContextRewound{ToSeq: to.Seq, Messages: hidden, Turns: turns,
		RedoableTurns: undone}); err != nil {
		return err
	}
	return c.restoreTodos(ctx, to.Todos())
}

// UndoRewind undoes the last Rewind and restores the todo list from before it.
func (c *CommandCall) UndoRewind(ctx context.Context, e event.ContextRewound) error {
	if err := c.orch.emit(ctx, c.st, ActorUser, event.ContextRewound{Messages: e.Messages, IsUndo: true}); err != nil {
		return err
	}
	return c.restoreTodos(ctx, c.orch.Conversation.Todos())
}

// restoreTodos restores the todo list that belongs to the current
// conversation and reports how full the context is.
func (c *CommandCall) restoreTodos(ctx context.Context, todos []event.Todo) error {
	if c.orch.Todos != nil && !slices.Equal(todos, c.orch.Todos()) {
		if err := c.orch.emit(ctx, c.st, ActorUser, event.TodosChanged{Todos: todos}); err != nil {
			return err
		}
	}
	c.freezeSettings()
	return c.orch.reportUsage(ctx, c.st)
}
