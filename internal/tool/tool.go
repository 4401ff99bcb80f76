// Package tool says what a tool is. A call lives in two steps: Prepare turns
// untrusted arguments into a [Call] that knows what it would touch, and Run
// does it. Everything that decides whether a call may run happens between the
// two and looks only at the Call's [Plan], never at raw JSON or tool names.
package tool

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
)

// A Tool is something the model may call. Tools are safe for concurrent use.
// Implementations pass [coder/testkit/tooltest.TestTool].
type Tool interface {
	Spec() Spec
	// Prepare checks args, a JSON object, and plans the call. It may read but
	// must not change anything. Its error is shown to the model.
	Prepare(ctx context.Context, args json.RawMessage) (Call, error)
}

// Spec is a tool as the model sees it.
type Spec struct {
	Name, Doc string
	Class     Class // zero for tools of other programs
	Schema    json.RawMessage
	// Aliases are other names by which models know such a tool. They are
	// accepted in any case, and advertised only in the dialect they belong to.
	Aliases []Alias
	// Unlisted says that the tool can be called and is not advertised.
	Unlisted bool

	properties properties // that the schema is made of, where it is ours
	arguments  *arguments // of a Func
}

// Alias is a tool's name in another dialect; an alias without a dialect is
// accepted but never advertised.
type Alias struct{ Dialect, Name string }

// The dialects that can be advertised instead of our own names.
const (
	Sema     = "sema"
	CoAuthor = "coauthor"
)

// A Call is one prepared use of a tool.
type Call interface {
	Plan() Plan
	// Run does the work, writing live output to out. An error is told to the
	// model as a failed result, unless it is ctx.Err() or marked [Fatal];
	// those end the turn.
	Run(ctx context.Context, out io.Writer) (Result, error)
}

// Drawer is what live output is written to where a line that is drawn over and over can
// be seen before it is whole. Lines is how many lines were not written, since they are too
// many; the line is the last of them.
type Drawer interface{ Draw(line string, lines int) }

// Plan is what a call intends.
type Plan struct {
	Title   string // the key arguments in a few words: a path, a command
	Effects []Effect
	Preview display.Block // for a person who must approve: the command, the diff

	// Confined says how the call would be kept within bounds by the system, in
	// a few words; empty if it would not be.
	Confined string
	// Unconfined is set if the call asks to be let out of those bounds.
	Unconfined bool
	// Sends says what the call would hand to another machine besides asking it
	// for a page; empty if nothing.
	Sends string
	// Executable are the files that the call would make executable: a program may
	// come to be run by its name alone.
	Executable []string
	// Line is the reading of the command line that the call would run, if one
	// was made. Whatever decides about the line, confines it or guards it looks
	// at this one value, so that what was judged is what runs.
	Line Line
	// Hunks is how many hunks the preview, a diff, has, if they can be made one by
	// one: with [OnlyHunks] among its arguments the call makes those alone.
	Hunks int
	// Version tells apart what a tool of another program says of itself. What a
	// person always allows of it holds as long as that is the same.
	Version string
}

// OnlyHunks is the argument, a list of numbers from 1, that names the hunks to make.
// People choose them, see [Plan.Hunks]; models are not told of it.
const OnlyHunks = "only_hunks"

// A Line is a command line that has been read.
type Line interface {
	Written() string // as the call gave it
	Runs() string    // as the shell is given it
	// Environ is the environment it runs in, made of the one for all lines.
	Environ(env []string) []string
}

// ReadOnly reports whether the plan only looks. A plan with no effects is not
// read-only: silence is not innocence.
func (p Plan) ReadOnly() bool {
	for _, e := range p.Effects {
		if e.Kind != Read {
			return false
		}
	}
	return len(p.Effects) > 0
}

// Effect is one thing a call would touch, and Kind its sort: see [event.Effect].
type (
	Effect = event.Effect
	Kind   = event.EffectKind
)

// The kinds of effect, worst first.
const (
	Unknown = event.EffectUnknown
	Exec    = event.EffectExec
	Write   = event.EffectWrite
	Net     = event.EffectNet
	Note    = event.EffectNote
	Read    = event.EffectRead
)

// Edits reports whether a file is changed by an effect of a call of a tool. What git is told
// of files leaves them as they are.
func Edits(name string, e Effect) bool { return e.Kind == Write && ClassOf(name) != ChangesGit }

// Kept is what was saved before a call: the files it names, and the name
// of the state of all files for a call whose targets nobody can tell.
type Kept struct {
	Effects []Effect
	Before  []event.FileState
	Tree    string
	// Touched, if set, tells what the commands of the session have done to files, by full
	// paths, since; it is not known if one of them could not be watched.
	Touched func() (of func(path string) Touch, known bool)
	Counted int // what was counted of files before, if anything was
}

// Touch is what commands may have done to a file, at most.
type Touch struct {
	Any     bool // they touched it
	Opened  int  // how often they opened it for writing
	Moved   int  // how often they moved it to the name or away from it
	Removed int  // how often they removed it
	Held    bool // they may be writing it yet
}

// Result is what a tool gives back.
type Result struct {
	// Value is for the model: a struct or map that marshals to a JSON object
	// with an "ok" key, bounded in size by the tool.
	Value any
	// Failed is set when the tool worked but what it did failed, such as a
	// command with a non-zero exit code.
	Failed  bool
	Summary string        // the core of the result in a few words: "12 lines", "exit 0"
	Show    display.Block // for people; never sent to the model
	// Images are shown to the model after the results of the round.
	Images []chat.Image
	// Effects are what the call did that its plan could not tell, such as what
	// others wrote on its behalf.
	Effects []Effect
	// Saw is the SHA-256 of the content of files that the model knows by the
	// call, by their paths.
	Saw map[string]string
	// Facts are put on record when the call is over: what it changed in the
	// program's own memory, and, also if it failed, what it spent.
	Facts []event.Event
	// Rebuild, if set, asks for the rest of the turn to go on in another mode.
	Rebuild *Rebuild
}

// Rebuild is a change of mode in the middle of a turn: tools and system text
// are those of the new mode from the next step on. With a Message the
// conversation so far is put aside and begins anew with it.
type Rebuild struct {
	Mode    string
	Message string
}

// JoinNotes makes one note of two, either of which may be empty.
func JoinNotes(a, b string) string {
	if a != "" && b != "" {
		return a + "; " + b
	}
	return a + b
}

type callKey struct{}

// WithCall lets a call that runs under ctx know which one it is.
func WithCall(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, callKey{}, id)
}

// CallID is the id of the call that runs under ctx; "" if none does.
func CallID(ctx context.Context) string {
	id, _ := ctx.Value(callKey{}).(string)
	return id
}

type approvedKey struct{}

// WithApproval lets a call that runs under ctx know whether a person said yes to
// this very call. It holds for that call alone: whoever runs another below it says
// so anew.
func WithApproval(ctx context.Context, approved bool) context.Context {
	return context.WithValue(ctx, approvedKey{}, approved)
}

// Approved reports whether a person said yes to the call that runs under ctx. A rule,
// a mode, or a yes to an earlier call is none.
func Approved(ctx context.Context) bool {
	approved, _ := ctx.Value(approvedKey{}).(bool)
	return approved
}

// A Lender lets somebody have the person's terminal while use runs. It is given
// the end of it that a program is started with.
type Lender func(ctx context.Context, use func(terminal *os.File) error) error

type (
	lenderKey   struct{}
	terminalKey struct{}
)

// WithLender lets what runs under ctx know who can lend the terminal. No call has
// it by that alone.
func WithLender(ctx context.Context, l Lender) context.Context {
	return context.WithValue(ctx, lenderKey{}, l)
}

// WithTerminal gives the terminal to the call that runs under ctx, if somebody
// can lend it.
func WithTerminal(ctx context.Context) context.Context {
	l, _ := ctx.Value(lenderKey{}).(Lender)
	return context.WithValue(ctx, terminalKey{}, l)
}

// TerminalOf is who lends the terminal to the call that runs under ctx; nil if it
// has none.
func TerminalOf(ctx context.Context) Lender {
	l, _ := ctx.Value(terminalKey{}).(Lender)
	return l
}

// Fatal marks err as ending the turn rather than being told to the model.
func Fatal(err error) error { return &fatal{err} }

// IsFatal reports whether err was marked by [Fatal].
func IsFatal(err error) bool { var f *fatal; return errors.As(err, &f) }

type fatal struct{ error }

func (f *fatal) Unwrap() error { return f.error }

// Count says how many of a thing there are, for a summary: "1 line", "3 lines".
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// OfMore is a summary that says so where there is more than it tells of.
func OfMore(summary string, more bool) string {
	if more {
		summary += ", and there are more"
	}
	return summary
}

// ShellResult is what came of a command, as the model is told it and as it stands
// on record.
type ShellResult struct {
	OK         bool   `json:"ok"`
	Command    string `json:"command"`
	ExitCode   int    `json:"exit_code"`
	Signal     string `json:"signal,omitzero"`
	Error      string `json:"error,omitzero"`
	Stdout     string `json:"stdout"`
	Stderr     string `json:"stderr"`
	Truncated  bool   `json:"truncated"`
	DurationMS int64  `json:"duration_ms"`
	TimedOut   bool   `json:"timed_out"`
	LogPath    string `json:"log_path,omitzero"`
	Note       string `json:"note,omitzero"`
	Sandbox    string `json:"sandbox,omitzero"` // what may have failed because of it
	// Terminal says that the command had the person's terminal: what it wrote went
	// there and was not captured.
	Terminal bool `json:"terminal,omitzero"`
}

// ReadShellResult reads the result of a command off a result's text; an exit code below
// zero says that the command was not run.
func ReadShellResult(command, text string) ShellResult {
	r := ShellResult{ExitCode: -1, Error: "no result"}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		r.Error = text
	}
	r.Command = command
	return r
}

// Block is the result as people are shown it.
func (r ShellResult) Block() display.Shell {
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
