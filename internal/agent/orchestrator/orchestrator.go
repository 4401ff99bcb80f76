// Package orchestrator runs what the person typed. It owns the order of things
// and nothing else: providers, tools, policies, stores and renderers are given
// to it, and all state of a turn lives in one turnState handed from step to
// step.
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

// Actors of the records an Orchestrator makes.
const (
	ActorUser  = event.ActorUser
	ActorAgent = "main"
	// ActorVerifier runs the checks of edited work.
	ActorVerifier = event.ActorVerifier
)

// ErrStepLimit reports that the model was still calling tools when its steps
// ran out.
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

// Engine is what a session runs on: the model and the tools, and what people set
// and wrote for them. A field that says so may be nil.
type Engine struct {
	Provider provider.Provider
	Runner   *toolrun.Runner
	Settings func() Settings // read once at the start of each turn
	Mode     *mode.State     // the mode the session is in
	Commands []Command       // those of the program's own, in the order of /help
	// Todos, which may be nil, is the list of things to do.
	Todos func() []event.Todo
	// Checked, which may be nil, is what the session checked last, and what was changed since.
	Checked func() verify.Check
	// Ended, which may be nil, is what the model needs to know of commands in the background
	// that ended since it was called last, with the names under which the record keeps that.
	Ended func() (text string, names []string)
	// Declined, which may be nil, reports whether the person turned a check down.
	Declined func(command string) bool
	// Files, which may be nil, is where checks of edited work are chosen from.
	Files Files
	// Library, which may be nil, is what people wrote down for use here. Without
	// it the model gets the person's words and nothing beside them.
	Library *Library
	Hooks   *hooks.Hooks // people's own commands on events; may be nil
	// PutAside, which may be nil, keeps the text of a call's result in a file
	// that the model can read, and returns its path. The same call gives the
	// same file, with what it was given first.
	PutAside func(ctx context.Context, callID, text string) (path string, err error)
	Final    Final // may be nil
	// Conceals, which may be nil, blots keys out of all that is kept. The model
	// sees what is kept.
	Conceals *secret.Concealer
	// Sleep, which may be nil, passes time instead of real time.
	Sleep func(context.Context, time.Duration) error
}

// Final has a say in what a turn may end with. Its errors end the turn.
type Final interface {
	// Final looks at an answer with which the model is content. What it returns is
	// said to the model, which goes on.
	Final(answer string) (more string, err error)
	// Called hears what came of every call.
	Called(tool string, failed bool) error
}

// Config is what an Orchestrator is made of. Every field is required unless it
// says otherwise; none changes after [New].
type Config struct {
	Engine
	Talk *conversation.Conversation // what was said so far; grows as records are made

	// Through returns a sink that keeps what it is told and then shows it to out.
	Through func(out event.Sink) event.Sink
	// Person returns whom to ask, with questions and answers kept in sink.
	Person func(sink event.Sink) uip.Interactor
	// Save projects the session for people and other programs, after a turn.
	Save func(context.Context) error

	// Steer, which may be nil, is what the person said since the last step.
	Steer func() []chat.Words
	// Changed, which may be nil, tells between steps whether the person changed
	// settings since the last one, and the mode to go on in if it is to be another.
	Changed func() (mode string, changed bool)
	// Child is set for an agent that works for another: it does not verify, and
	// its use of the context is not told.
	Child *Subtask

	NewID func(prefix string) string
	Now   func() time.Time
}

// pause passes time, or ends with ctx.
func (e Engine) pause(ctx context.Context, d time.Duration) error {
	if e.Sleep != nil {
		return e.Sleep(ctx, d)
	}
	return clock.Sleep(ctx, d)
}

// Subtask is how the task of an agent that works for another is recorded.
type Subtask struct {
	ID, Parent   string // of the task itself, and of the one it belongs to
	CallID       string // the parent's call that it does the work of
	Agent, Title string
}

// Settings is what a person may change between turns.
type Settings struct {
	Model    string
	Mode     string
	ModeText string // what the mode means, which the model is told at the end of the conversation
	System   string
	Tools    tool.Set
	// Later, which may be nil, is the tools with those that have come since, or
	// as they were if none has. It is asked before every request, and before
	// calls that an earlier process left, whose tools are waited for.
	Later        func(ctx context.Context, set tool.Set, wanted []chat.ToolCall) tool.Set
	Lean         bool // the tools are described in short
	MaxSteps     int
	ContextLimit int       // tokens the model can take in
	Run          event.Run // what no settings tell
	RaiseWindow  string    // how a server is made to take more; "": it is not known
	StopOnReject bool      // a refused call ends the turn
	DirectBang   bool      // a person's own ! command is not judged
	// ReadOwn reads a person's own ! command; forced says that they wrote !!.
	ReadOwn func(line string, forced bool) OwnLine

	// RulesFor, which may be nil, returns the rules that apply to a file beside those in System.
	RulesFor func(file string) []rulefile.Rule

	Compaction     Compaction
	Verification   Verification
	WaitLimit      time.Duration // how long a turn may wait for the ends of the provider's limits
	Attended       bool          // a person is there to be asked whether to
	TodoForComplex bool          // a complex request starts a list of things to do
}

// offers reports whether the mode has a tool of a class.
func (s Settings) offers(c tool.Class) bool {
	_, on := s.Tools.First(c)
	return on
}

// shellCall is the call of the tool that runs command lines.
func (s Settings) shellCall(id string, args any) chat.ToolCall {
	name, _ := s.Tools.First(tool.RunsShell)
	return chat.ToolCall{ID: id, Name: name, Args: jsonx.Must(args)}
}

// Orchestrator runs the inputs of one session, one at a time.
type Orchestrator struct {
	Config
	gauge   gauge // of the window
	prefix  prefix
	seen    atomic.Pointer[Orchestrator] // how things stood at the last step
	begun   bool                         // the person said something, in this process
	refused refusedCheck                 // the last one
}

// New returns an Orchestrator.
func New(c Config) *Orchestrator {
	o := &Orchestrator{Config: c}
	if o.Talk != nil {
		o.glimpse() // what was left may be asked about before the first step
	}
	return o
}

// Said is what the person said.
type Said struct {
	chat.Words
	Typed    string // what the person typed, if that is something else
	Pictures []chat.Image
	// AsWritten says that it is for the model as it stands: no command, no files.
	AsWritten bool
	// Anyway sends it without the files that cannot be attached.
	Anyway bool
}

// Say is an input of words alone.
func Say(w chat.Words) Said { return Said{Words: w} }

// RunInput runs one input, whatever kind it is, and shows what happens on out.
func (o *Orchestrator) RunInput(ctx context.Context, input string, out event.Sink) (done Outcome, err error) {
	return o.RunSaid(ctx, Say(chat.From(chat.Unknown, input)), out)
}

// RunSaid is RunInput for what may be more than words.
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
