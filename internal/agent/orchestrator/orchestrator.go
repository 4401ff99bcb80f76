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
	"coder/internal/core/message"
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

// modelError is the error of a request to the model.
type modelError struct {
	error
	cause error
}

func (e *modelError) Unwrap() error { return e.error }

func newModelError(why error) error {
	return &modelError{message.Errorf("ask the model: %w", why), why}
}

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
	// LastCheck, which may be nil, returns the session's last check and the changes since.
	LastCheck func() verify.LastCheck
	// EndedCommands, which may be nil, returns a text for the model about background commands
	// that ended since its last call, and the names under which the record keeps that.
	EndedCommands func() (text string, names []string)
	// IsCheckDeclined, which may be nil, reports whether the user declined a check.
	IsCheckDeclined func(command string) bool
	// Files, which may be nil, finds the project's files for choosing a check.
	Files FileFinder
	// Library, which may be nil, is what the user and the project wrote for
	// use in the session. Without it the model gets only the user's text.
	Library *Library
	Hooks   *hooks.Hooks // the user's commands on events; may be nil
	// SaveResult, which may be nil, saves the text of a call's result in a file that the model can
	// read, and returns its path. The same call always gets the same file, with the text saved first.
	SaveResult func(ctx context.Context, callID, text string) (path string, err error)
	FinalCheck FinalChecker // may be nil
	// Concealer, which may be nil, masks keys in everything that coder saves. The model sees the saved text.
	Concealer *secret.Concealer
	// Sleep, which may be nil, replaces the real clock's sleep.
	Sleep func(context.Context, time.Duration) error
}

// FinalChecker checks how a turn may end. Its errors end the turn.
type FinalChecker interface {
	// CheckAnswer checks a turn's answer. A non-empty result is sent to the model, which continues.
	CheckAnswer(answer string) (more string, err error)
	// RecordCall observes the outcome of every call.
	RecordCall(tool string, failed bool) error
}

// Config has the parts of an Orchestrator. Every field is
// required unless it says otherwise; none changes after [New].
type Config struct {
	Engine
	Conversation *conversation.Conversation // the conversation so far; grows with the records

	// RecordingSink returns a sink that records events and then shows them on out.
	RecordingSink func(out event.Sink) event.Sink
	// NewInteractor returns the interactor, with questions and answers recorded in sink.
	NewInteractor func(sink event.Sink) uip.Interactor
	// Save writes the session's snapshot after a turn.
	Save func(context.Context) error

	// TakeSteering, which may be nil, returns what the user typed since the last step.
	TakeSteering func() []chat.UserText
	// TakeModeChange, which may be nil, reports between steps whether the user
	// changed settings since the last one, and returns the new mode, if any.
	TakeModeChange func() (mode string, changed bool)
	// Subtask is set for a subagent, which does not verify and does not report its context use.
	Subtask *Subtask

	NewID func(prefix string) string
	Now   func() time.Time
}

// sleep sleeps until d has passed or ctx ends.
func (e Engine) sleep(ctx context.Context, d time.Duration) error {
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
	// RefreshTools, which may be nil, returns the tools including any added since, or set itself if none were. It
	// is called before every request, and before calls left by an earlier process, whose tools it waits for.
	RefreshTools    func(ctx context.Context, set tool.Set, wanted []chat.ToolCall) tool.Set
	ShortToolDocs   bool // describe the tools briefly
	MaxSteps        int
	ContextLimit    int              // the model's window in tokens
	Run             event.RunOptions // details that are no settings
	RaiseWindowHint string           // how a server is made to take more; "": it is not known
	StopOnReject    bool             // a denied call ends the turn
	TrustBang       bool             // run the user's ! commands without judging them
	// ParseBang parses the user's ! command; forced means that the user typed !!.
	ParseBang func(line string, forced bool) BangLine

	// RulesFor, which may be nil, returns the rules that apply to a file in addition to those in System.
	RulesFor func(file string) []rulefile.Rule

	Compaction     Compaction
	Verification   Verification
	WaitLimit      time.Duration // how long a turn may wait for limits to end
	HasUser        bool          // a user is present to answer about it
	TodoForComplex bool          // a complex request starts a todo list
}

// hasClass reports whether the mode has a tool of class c.
func (s Settings) hasClass(c tool.Class) bool {
	_, on := s.Tools.FirstOfClass(c)
	return on
}

// shellCall returns a call of the tool that runs command lines.
func (s Settings) shellCall(id string, args any) chat.ToolCall {
	name, _ := s.Tools.FirstOfClass(tool.ClassShell)
	return chat.ToolCall{ID: id, Name: name, Args: jsonx.MustMarshal(args)}
}

// Orchestrator runs the inputs of one session, one at a time.
type Orchestrator struct {
	Config
	gauge       tokenGauge // of the current model
	prefix      prefixTracker
	snapshot    atomic.Pointer[Orchestrator] // the state at the last step
	prompted    bool                         // the user sent a prompt in this process
	deniedCheck deniedCheck                  // the last denied check
}

// New returns an Orchestrator.
func New(c Config) *Orchestrator {
	o := &Orchestrator{Config: c}
	if o.Conversation != nil {
		o.saveSnapshot() // a left-over turn may ask questions before the first step
	}
	return o
}

// Input is the user's input.
type Input struct {
	chat.UserText
	Typed    string // what the user typed, if different
	Pictures []chat.Image
	// Verbatim sends the text to the model unchanged: no command, no files.
	Verbatim bool
	// SkipUnattachable sends the message without files that cannot be attached.
	SkipUnattachable bool
}

// TextInput returns an input of only words.
func TextInput(w chat.UserText) Input { return Input{UserText: w} }

// RunText runs one input of any kind, and shows events on out.
func (o *Orchestrator) RunText(ctx context.Context, input string, out event.Sink) (done Outcome, err error) {
	return o.RunInput(ctx, TextInput(chat.NewUserText(chat.OriginUnknown, input)), out)
}

// RunText is RunText for an input that may have more than words.
func (o *Orchestrator) RunInput(ctx context.Context, said Input, out event.Sink) (done Outcome, err error) {
	text := said.Text()
	in := parseInput(text)
	if said.Verbatim || len(said.Pictures) > 0 || !said.CanBeCommand() {
		in = promptInput(text)
	}
	if _, ok := in.(slashInput); ok && !o.IsKnownCommand(text) && o.startsWithPath(text) {
		in = promptInput(text)
	}
	switch in := in.(type) {
	case slashInput:
		return o.runCommand(ctx, text, in.name, in.args, out)
	case bangInput:
		done.Text, err = o.runBangCommand(ctx, text, string(in), out)
		return done, err
	case promptInput:
		done.Text, err = o.runTurn(ctx, said, out)
		return done, err
	}
	panic("unreachable: parseInput returns slash, bang or prompt")
}
