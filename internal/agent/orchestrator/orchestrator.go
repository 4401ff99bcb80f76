// Package orchestrator runs the user's inputs. It only controls the order
// of steps: providers, tools, policies, stores and renderers are passed in,
// and a turn's whole state is in one turnState passed from step to step.
//
// An Orchestrator serves one session and runs one input at a time.
package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"coder/internal/agent/conversation"
	"coder/internal/agent/hooks"
	"coder/internal/agent/toolrun"
	"coder/internal/agent/verify"
	"coder/internal/authored/rulefile"
	"coder/internal/core/chat"
	"coder/internal/core/clock"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/core/secret"
	"coder/internal/core/uip"
	"coder/internal/model/provider"
	"coder/internal/policy/mode"
	"coder/internal/tool"
)

// Actors of an Orchestrator's records.
const (
	ActorUser  = event.ActorUser
	ActorAgent = "main"
	// ActorVerifier runs the checks of edits.
	ActorVerifier = event.ActorVerifier
)

// ErrStepLimit reports that the model still called tools when the turn reached its step limit.
var ErrStepLimit = errors.New("step limit reached")

type stepLimitError struct{ steps int }

func (e *stepLimitError) Error() string { return fmt.Sprintf("%v (%d)", ErrStepLimit, e.steps) }
func (e *stepLimitError) Unwrap() error { return ErrStepLimit }

// askError is the error of a request to the model.
type askError struct {
	error
	why error
}

func (e *askError) Unwrap() error { return e.error }

func notAnswered(why error) error { return &askError{fmt.Errorf("ask the model: %w", why), why} }

// Engine is what a session needs to run: the model and the tools, and
// what the user set and wrote for them. Fields that may be nil say so.
type Engine struct {
	Provider provider.Provider
	Runner   *toolrun.Runner
	Settings func() Settings // called once at the start of each turn
	Mode     *mode.State     // the session's mode
	Commands []Command       // the built-in commands, in the order of /help
	// Counterparts maps names of other agents' commands to what coder has instead.
	Counterparts map[string]string
	// Todos, which may be nil, returns the todo list.
	Todos func() []event.Todo
	// Checked, which may be nil, returns the session's last check and the changes since.
	Checked func() verify.Check
	// Ended, which may be nil, returns a text for the model about background commands
	// that ended since its last call, and the names under which the record keeps that.
	Ended func() (text string, names []string)
	// Declined, which may be nil, reports whether the user declined a check.
	Declined func(command string) bool
	// Files, which may be nil, finds the project's files for choosing a check.
	Files Files
	// Library, which may be nil, is what the user and the project wrote for
	// use in the session. Without it the model gets only the user's text.
	Library *Library
	Hooks   *hooks.Hooks // the user's commands on events; may be nil
	// PutAside, which may be nil, saves the text of a call's result in a file that the model can
	// read, and returns its path. The same call always gets the same file, with the text saved first.
	PutAside func(ctx context.Context, callID, text string) (path string, err error)
	Final    Final // may be nil
	// Conceals, which may be nil, masks keys in everything that coder saves. The model sees the saved text.
	Conceals *secret.Concealer
	// Sleep, which may be nil, replaces the real clock's sleep.
	Sleep func(context.Context, time.Duration) error
}

// Final checks how a turn may end. Its errors end the turn.
type Final interface {
	// Final checks a turn's answer. A non-empty result is sent to the model, which continues.
	Final(answer string) (more string, err error)
	// Called observes the outcome of every call.
	Called(tool string, failed bool) error
}

// Config has the parts of an Orchestrator. Every field is
// required unless it says otherwise; none changes after [New].
type Config struct {
	Engine
	Talk *conversation.Conversation // the conversation so far; grows with the records

	// Through returns a sink that records events and then shows them on out.
	Through func(out event.Sink) event.Sink
	// Person returns the interactor, with questions and answers recorded in sink.
	Person func(sink event.Sink) uip.Interactor
	// Save writes the session's snapshot after a turn.
	Save func(context.Context) error

	// Steer, which may be nil, returns what the user typed since the last step.
	Steer func() []chat.Words
	// Changed, which may be nil, reports between steps whether the user
	// changed settings since the last one, and returns the new mode, if any.
	Changed func() (mode string, changed bool)
	// Child is set for a subagent, which does not verify and does not report its context use.
	Child *Subtask

	NewID func(prefix string) string
	Now   func() time.Time
}

// pause sleeps until d has passed or ctx ends.
func (e Engine) pause(ctx context.Context, d time.Duration) error {
	if e.Sleep != nil {
		return e.Sleep(ctx, d)
	}
	return clock.Sleep(ctx, d)
}

// Subtask describes a subagent's task in the record.
type Subtask struct {
	ID, Parent   string // the ids of the task and its parent
	CallID       string // the parent's call that started it
	Agent, Title string
}

// Settings are what the user can change between turns.
type Settings struct {
	Model    string
	Mode     string
	ModeText string // describes the mode to the model at the end of the conversation
	System   string
	Tools    tool.Set
	// Later, which may be nil, returns the tools including any added since, or set itself if none were. It
	// is called before every request, and before calls left by an earlier process, whose tools it waits for.
	Later        func(ctx context.Context, set tool.Set, wanted []chat.ToolCall) tool.Set
	Lean         bool // describe the tools briefly
	MaxSteps     int
	ContextLimit int       // the model's window in tokens
	Run          event.Run // details that are no settings
	RaiseWindow  string    // how a server is made to take more; "": it is not known
	StopOnReject bool      // a denied call ends the turn
	DirectBang   bool      // run the user's ! commands without judging them
	// ReadOwn parses the user's ! command; forced means that the user typed !!.
	ReadOwn func(line string, forced bool) OwnLine

	// RulesFor, which may be nil, returns the rules that apply to a file in addition to those in System.
	RulesFor func(file string) []rulefile.Rule

	Compaction     Compaction
	Verification   Verification
	WaitLimit      time.Duration // how long a turn may wait for limits to end
	Attended       bool          // a user is present to answer about it
	TodoForComplex bool          // a complex request starts a todo list
}

// offers reports whether the mode has a tool of class c.
func (s Settings) offers(c tool.Class) bool {
	_, on := s.Tools.First(c)
	return on
}

// shellCall returns a call of the tool that runs command lines.
func (s Settings) shellCall(id string, args any) chat.ToolCall {
	name, _ := s.Tools.First(tool.RunsShell)
	return chat.ToolCall{ID: id, Name: name, Args: jsonx.Must(args)}
}

// Orchestrator runs the inputs of one session, one at a time.
type Orchestrator struct {
	Config
	gauge   gauge // of the current model
	prefix  prefix
	seen    atomic.Pointer[Orchestrator] // the state at the last step
	begun   bool                         // the user sent a prompt in this process
	refused refusedCheck                 // the last denied check
}

// New returns an Orchestrator.
func New(c Config) *Orchestrator {
	o := &Orchestrator{Config: c}
	if o.Talk != nil {
		o.glimpse() // a left-over turn may ask questions before the first step
	}
	return o
}

// Said is the user's input.
type Said struct {
	chat.Words
	Typed    string // what the user typed, if different
	Pictures []chat.Image
	// AsWritten sends the text to the model unchanged: no command, no files.
	AsWritten bool
	// Anyway sends the message without files that cannot be attached.
	Anyway bool
}

// Say returns an input of only words.
func Say(w chat.Words) Said { return Said{Words: w} }

// RunInput runs one input of any kind, and shows events on out.
func (o *Orchestrator) RunInput(ctx context.Context, input string, out event.Sink) (done Outcome, err error) {
	return o.RunSaid(ctx, Say(chat.From(chat.Unknown, input)), out)
}

// RunSaid is RunInput for an input that may have more than words.
func (o *Orchestrator) RunSaid(ctx context.Context, said Said, out event.Sink) (done Outcome, err error) {
	text := said.Text()
	in := parseInput(text)
	if said.AsWritten || len(said.Pictures) > 0 || !said.Commands() {
		in = prompt(text)
	}
	if _, ok := in.(slash); ok && !o.Knows(text) && o.namesFile(text) {
		in = prompt(text)
	}
	switch in := in.(type) {
	case slash:
		return o.runCommand(ctx, text, in.name, in.args, out)
	case bang:
		done.Text, err = o.runBangCommand(ctx, text, string(in), out)
		return done, err
	case prompt:
		done.Text, err = o.runTurn(ctx, said, out)
		return done, err
	}
	panic("unreachable: parseInput returns slash, bang or prompt")
}
