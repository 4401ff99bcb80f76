// Package tool defines tools and their calls. A call has two steps: Prepare turns untrusted arguments
// into a [Call] that knows what it would touch, and Run does it. Everything that decides whether a call
// may run happens in between and considers only the Call's [Plan], never raw JSON or tool names.
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

// A Tool is something the model can call. Tools are safe for concurrent
// use. Implementations pass [coder/testkit/tooltest.TestTool].
type Tool interface {
	Spec() Spec
	// Prepare checks args, a JSON object, and plans the call. It may
	// read but must not change anything. The model sees its error.
	Prepare(ctx context.Context, args json.RawMessage) (Call, error)
}

// Spec describes a tool to the model.
type Spec struct {
	Name, Doc string
	Class     Class // zero for tools of other programs
	Schema    json.RawMessage
	// Aliases are other names that models use for such a tool. They are
	// accepted in any case, and advertised only in their dialect.
	Aliases []Alias
	// Unlisted means that the tool can be called but is not advertised.
	Unlisted bool

	properties properties // the source of the schema, for coder's own tools
	arguments  *arguments // of a Func
}

// Alias is a tool's name in another dialect; an alias without a dialect is
// accepted but never advertised.
type Alias struct{ Dialect, Name string }

// The dialects that can be advertised instead of coder's own names.
const (
	Sema     = "sema"
	CoAuthor = "coauthor"
)

// A Call is one prepared use of a tool.
type Call interface {
	Plan() Plan
	// Run does the work, writing live output to out. The model gets an error as a failed result, unless it
	// is ctx.Err() or marked [Fatal]; those end the turn.
	Run(ctx context.Context, out io.Writer) (Result, error)
}

// Drawer is a writer of live output that can also show an incomplete line that is redrawn repeatedly.
// lines is the number of lines not written because there are too many; line is the last of them.
type Drawer interface{ Draw(line string, lines int) }

// Plan is what a call intends.
type Plan struct {
	Title   string // the key arguments, shortened: a path, a command
	Effects []Effect
	Preview display.Block // for the user who must approve: the command, the diff

	// Confined describes briefly how the sandbox would confine the call; empty if it would not.
	Confined string
	// Unconfined is set if the call asks to leave the sandbox.
	Unconfined bool
	// Sends describes what the call would send to another machine besides a page request; empty if nothing.
	Sends string
	// Executable are the files that the call would make executable: a program may then run by its name alone.
	Executable []string
	// Line is the analysis of the command line that the call would run, if there is one. Everything that decides
	// about the line, confines it or guards it uses this one value, so that what was judged is what runs.
	Line Line
	// Hunks is the number of hunks in the preview, a diff, if they can be applied separately: with
	// [OnlyHunks] among its arguments the call applies only those.
	Hunks int
	// Version identifies the description that a tool of another program gives of itself. The user's grant
	// for the tool applies as long as the version is the same.
	Version string
}

// OnlyHunks is the argument, a list of numbers from 1, that selects the hunks to apply. The user sets
// it, see [Plan.Hunks]; models do not know it.
const OnlyHunks = "only_hunks"

// A Line is a command line that has been analyzed.
type Line interface {
	Original() string  // as in the call
	ShellLine() string // as passed to the shell
	// Environ returns its environment, based on the one for all lines.
	Environ(env []string) []string
}

// ReadOnly reports whether the plan only reads. A plan with no
// effects is not read-only: silence is not innocence.
func (p Plan) ReadOnly() bool {
	for _, e := range p.Effects {
		if e.Kind != Read {
			return false
		}
	}
	return len(p.Effects) > 0
}

// Effect is one thing a call would touch, and Kind its kind: see [event.Effect].
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

// ChangesFile reports whether an effect of a tool's call changes a
// file. A git command does not change the files it names.
func ChangesFile(name string, e Effect) bool {
	return e.Kind == Write && ClassOf(name) != ClassChangeGit
}

// Snapshot is what was saved before a call: the files it names, and the
// name of the state of all files if its targets are unknown.
type Snapshot struct {
	Effects []Effect
	Before  []event.FileState
	Tree    string
	// TouchedFiles, if set, returns what the session's commands have since done to files, by full path. known is
	// false if one of them could not be watched.
	TouchedFiles func() (of func(path string) Touch, known bool)
	CountMark    int // mark of the counts before the call, if any
}

// Touch is the most that commands may have done to a file.
type Touch struct {
	Touched   bool // they touched it
	Opened    int  // times they opened it for writing
	Moved     int  // times they moved it to or from the name
	Removed   int  // times they removed it
	StillOpen bool // they may still be writing it
}

// Result is the result of a call.
type Result struct {
	// Value is for the model: a struct or map that marshals to a
	// JSON object with an "ok" key. The tool limits its size.
	Value any
	// Failed is set if the tool worked but its action failed, such as a command with a non-zero exit code.
	Failed  bool
	Summary string        // the core of the result, briefly: "12 lines", "exit 0"
	Show    display.Block // for the user; never sent to the model
	// Images are shown to the model after the results of the round.
	Images []chat.Image
	// Effects are what the call did beyond its plan, such as what others wrote on its behalf.
	Effects []Effect
	// SeenFiles has the SHA-256 of the files whose content the model knows from the call, by path.
	SeenFiles map[string]string
	// Events are recorded after the call: its changes to coder's own memory and, even if it failed, its costs.
	Events []event.Event
	// Rebuild, if set, continues the turn in another mode.
	Rebuild *Rebuild
}

// Rebuild is a change of mode during a turn: from the next step on, tools and system text are those of
// the new mode. With a Message the conversation restarts from that message.
type Rebuild struct {
	Mode    string
	Message string
}

// JoinNotes joins two notes, either of which may be empty.
func JoinNotes(a, b string) string {
	if a != "" && b != "" {
		return a + "; " + b
	}
	return a + b
}

type callKey struct{}

// WithCall returns a context that carries the id of the running call.
func WithCall(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, callKey{}, id)
}

// CallID returns the id of the call that runs under ctx, or "".
func CallID(ctx context.Context) string {
	id, _ := ctx.Value(callKey{}).(string)
	return id
}

type approvalKey struct{}

// WithApproval returns a context that records whether the user approved this very call. It applies to
// that call alone: a call below it needs its own value.
func WithApproval(ctx context.Context, approved bool) context.Context {
	return context.WithValue(ctx, approvalKey{}, approved)
}

// IsApproved reports whether the user approved the call that runs under ctx. A rule, a mode, or the
// approval of an earlier call does not count.
func IsApproved(ctx context.Context) bool {
	approved, _ := ctx.Value(approvalKey{}).(bool)
	return approved
}

// A TerminalLender lends the user's terminal while use runs. use gets
// the end of the terminal that a program is started with.
type TerminalLender func(ctx context.Context, use func(terminal *os.File) error) error

type (
	lenderKey   struct{}
	terminalKey struct{}
)

// WithLender returns a context with a Lender. That alone gives no call the terminal.
func WithLender(ctx context.Context, l TerminalLender) context.Context {
	return context.WithValue(ctx, lenderKey{}, l)
}

// WithTerminal gives the terminal to the call that runs under ctx, if ctx has a Lender.
func WithTerminal(ctx context.Context) context.Context {
	l, _ := ctx.Value(lenderKey{}).(TerminalLender)
	return context.WithValue(ctx, terminalKey{}, l)
}

// LenderOf returns the Lender for the call that runs under ctx, or nil if it may not use the terminal.
func LenderOf(ctx context.Context) TerminalLender {
	l, _ := ctx.Value(terminalKey{}).(TerminalLender)
	return l
}

// Fatal marks err as ending the turn instead of going to the model.
func Fatal(err error) error { return &fatal{err} }

// IsFatal reports whether err was marked by [Fatal].
func IsFatal(err error) bool { var f *fatal; return errors.As(err, &f) }

type fatal struct{ error }

func (f *fatal) Unwrap() error { return f.error }

// FormatCount formats a number of things for a summary: "1 line", "3 lines".
func FormatCount(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// MarkPartial marks a summary as partial if there is more.
func MarkPartial(summary string, more bool) string {
	if more {
		summary += ", and there are more"
	}
	return summary
}

// ShellResult is the result of a command, as sent to the model and as recorded.
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
	Sandbox    string `json:"sandbox,omitzero"` // what the sandbox may have blocked
	// Terminal means that the command had the user's terminal: its output went there and was not captured.
	Terminal bool `json:"terminal,omitzero"`
}

// ParseShellResult parses a command's result from a result's text. A
// negative exit code means that the command did not run.
func ParseShellResult(command, text string) ShellResult {
	r := ShellResult{ExitCode: -1, Error: "no result"}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		r.Error = text
	}
	r.Command = command
	return r
}

// Block returns the result for display.
func (r ShellResult) Block() display.Shell {
	if r.ExitCode < 0 {
		return display.Shell{Command: r.Command, Error: r.Error}
	}
	b := display.Shell{
		Command: r.Command, HasRun: true, ExitCode: r.ExitCode, DurationMs: r.DurationMS, Truncated: r.Truncated,
		Stdout: r.Stdout, Stderr: r.Stderr,
		UsedTerminal: r.Terminal, LogPath: r.LogPath,
	}
	if r.TimedOut {
		b.Error = r.Error
	}
	return b
}
