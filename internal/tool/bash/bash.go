//go:build unix

// Package bash has the tool that runs commands, and the tools that manage background jobs. A command's
// output becomes plain text before the model or the user sees it, with a limited size: the result has
// the beginning and the end of each stream, and a file has all of it.
package bash

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"coder/internal/core/display"
	"coder/internal/core/message"
	"coder/internal/core/secret"
	"coder/internal/host/shell"
	"coder/internal/host/workspace"
	"coder/internal/tool"
)

//go:embed bash.md
var bashDoc string

// Options configures the tools. Workspace is required.
type Options struct {
	Workspace *workspace.Workspace
	// Shell is the program that runs commands; /bin/sh if empty.
	Shell shell.Program
	// CommandTimeout is the maximum duration of a command; 2 minutes if zero.
	CommandTimeout time.Duration
	// OutputLimit is how many bytes of each stream are kept; 1 MiB if zero.
	OutputLimit int
	// RunsDir, below the workspace, is where output too long for a result is saved, such as
	// .coder/runs/<session>. If it is empty, such output is not saved.
	RunsDir string
	// RunsLimit limits the bytes of output that a session saves there; no limit if zero.
	RunsLimit int64
	// Env is the whole environment of commands, without variables that they must not have.
	Env []string
	// Analyse, if set, analyzes a call's command line, once, during Prepare.
	Analyse func(command string) tool.Line
	// Confine, if set, returns how a command is confined. Its error means that the command must not run.
	Confine func(ctx context.Context, line tool.Line) (Confinement, error)
	// DescribeConfinement, which may be nil, describes what Confine will do, before anything is prepared for it.
	DescribeConfinement func(ctx context.Context, line tool.Line) (string, error)
	// Supervised, which may be nil, returns how an unconfined command is run.
	Supervised func(context.Context, tool.Line) Confinement
	// Concealer masks keys in everything that a command prints.
	Concealer *secret.Concealer
	// Callback, which may be nil, lets the program that drives the session run one of its functions on an
	// event, and returns the function's output.
	Callback func(ctx context.Context, id string, input json.RawMessage) (json.RawMessage, error)
	// OnJobEnd, which may be nil, is called when a background job ends for which no call waits.
	OnJobEnd func(JobEnd)
	// Now returns the current time, for durations.
	Now func() time.Time

	logCount *atomic.Int64 // number of logs so far
	logSpace *logSpace
}

// Confinement is how one command is confined. The zero Confinement does not confine it.
type Confinement struct {
	// Wrapper is a program and its first arguments that run the command,
	// Attr and Init how that program is started; see [shell.Spec].
	Wrapper []string
	Attr    func(*syscall.SysProcAttr)
	Init    bool
	// Journal, if set, is where that program lists the files that the command touches.
	Journal *os.File
	// TightenWrapper, if set, returns a replacement for Through that enforces more of
	// the bounds, and a function to call after the command has ended.
	TightenWrapper func() (through []string, release func())
	// OpenNetwork, if set, opens the command's connection to its allowed hosts, for as long as it runs.
	OpenNetwork func(ctx context.Context) (NetworkAccess, error)
	// Summary describes briefly what is enforced.
	Summary string
	// ExplainFailure, if set, says why a failed command may have failed
	// because of its bounds; empty if nothing indicates that.
	ExplainFailure func(exitCode int, stderr string) string
	// Env are additional variables for this command only. Missing, if set, names missing variables that a
	// failed command may have needed, given its output; empty if there are none.
	Env              []string
	MissingVariables func(output string) string
	// CheckAfter, if set, checks after the command for files it left
	// that other programs would obey, and describes them.
	CheckAfter func(ctx context.Context) string
}

// NetworkAccess is a command's connection to hosts on the network.
type NetworkAccess struct {
	Outlet *os.File      // see [shell.Spec]
	Env    []string      // variables that point programs to it
	Close  func() string // closes it, and returns the refused hosts, or ""
}

// run runs a command confined by c, and returns the hosts that it was refused.
func (c Confinement) run(ctx context.Context, spec shell.Spec) (o shell.Outcome, refused string, err error) {
	if c.TightenWrapper != nil {
		through, release := c.TightenWrapper()
		defer release()
		spec.Prefix = through
	}
	if c.OpenNetwork == nil {
		o, err = shell.Run(ctx, spec)
		return o, "", err
	}
	way, err := c.OpenNetwork(ctx)
	if err != nil {
		return o, "", err
	}
	spec.Outlet, spec.Env = way.Outlet, slices.Concat(spec.Env, way.Env)
	o, err = shell.Run(ctx, spec)
	return o, way.Close(), err
}

const (
	defaultTimeout = 2 * time.Minute
	defaultLimit   = 1 << 20
	maxChars       = 30_000 // per stream in a result
	maxCommand     = 128 << 10
	maxTitle       = 200
	truncationNote = "[output truncated]"
)

// quietEnv is the environment of a command without a terminal: no program should ask, page, or start an editor.
var quietEnv = []string{"TERM=dumb", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true"}

type bashArgs struct {
	Command     string `json:"command" also:"cmd script shell_command"`
	Timeout     int    `json:"timeout,omitzero" also:"timeout_ms" doc:"ms"`
	Description string `json:"description,omitzero" also:"explanation reason" doc:"purpose, for the user"`
	Background  bool   `json:"background,omitzero" also:"run_in_background is_background" doc:"for servers and long work"`
	Unconfined  bool   `json:"unconfined,omitzero" also:"outside_sandbox with_escalated_permissions dangerously_disable_sandbox" doc:"ask to run outside the sandbox"`
}

// Asks reports whether the arguments of a call on record ask to run in the background, or outside the sandbox.
func Asks(args json.RawMessage) (background, unconfined bool) {
	in, err := tool.Arguments[bashArgs](args)
	return err == nil && in.Background, err == nil && in.Unconfined
}

// All returns every tool of this package and the owner of its background
// jobs. The caller must close the owner when the session ends.
func All(o Options) ([]tool.Tool, *Jobs) {
	o = o.withDefaults()
	jobs := &Jobs{options: o}
	return []tool.Tool{bashTool(&bash{Options: o, jobs: jobs}),
		tool.Group{Name: "jobs", Doc: jobsDoc, Members: []tool.Member{
			{Action: "list", Tool: jobs.listTool()}, {Action: "read", Tool: jobs.readTool()},
			{Action: "stop", Tool: jobs.stopTool()},
		}}}, jobs
}

// withDefaults returns o with every limit set.
func (o Options) withDefaults() Options {
	o.CommandTimeout = cmp.Or(max(o.CommandTimeout, 0), defaultTimeout)
	o.OutputLimit = cmp.Or(max(o.OutputLimit, 0), defaultLimit)
	if o.logCount == nil {
		o.logCount, o.logSpace = new(atomic.Int64), new(logSpace)
	}
	return o
}

func bashTool(b *bash) tool.Tool {
	return tool.Func[bashArgs]{
		Name: "bash", Doc: b.doc(),
		Aliases: []tool.Alias{
			{Dialect: tool.Sema, Name: "Bash"}, {Dialect: tool.CoAuthor, Name: "runCommand"},
			{Name: "shell"}, {Name: "sh"}, {Name: "execute"}, {Name: "execute_command"}, {Name: "run_terminal_cmd"},
		},
		PlanRun: func(ctx context.Context, a bashArgs) (tool.Plan, tool.Run, error) {
			p, err := b.plan(ctx, a)
			return p, func(ctx context.Context, out io.Writer) (tool.Result, error) {
				c, err := b.confine(ctx, p.Line, a.Unconfined)
				if err != nil {
					return tool.Result{}, err
				}
				if a.Background {
					return b.jobs.start(ctx, p.Line, c)
				}
				return b.run(ctx, a, p.Line, c, out)
			}, err
		},
	}
}

// bash is the tool that runs commands.
type bash struct {
	Options
	jobs *Jobs
}

func (b *bash) doc() string {
	words := fmt.Sprintf("%s, a plain POSIX shell: there is no bash here, so no [[ ]], arrays, {a,b}, &>, <<< or <(...)",
		cmp.Or(b.Shell, "/bin/sh"))
	if b.Shell.IsBash() {
		words = fmt.Sprintf("bash (%s, no profile or aliases)", b.Shell)
	}
	return strings.NewReplacer(
		"{shell}", words,
		"{timeout}", strconv.FormatInt(b.CommandTimeout.Milliseconds(), 10),
		"{chars}", strconv.Itoa(min(maxChars, b.OutputLimit)/2),
	).Replace(bashDoc)
}

// plan returns what a command would do, and how it would be confined.
func (b *bash) plan(ctx context.Context, a bashArgs) (p tool.Plan, err error) {
	switch {
	case strings.TrimSpace(a.Command) == "":
		return p, errors.New("command is empty")
	case strings.ContainsRune(a.Command, 0):
		return p, errors.New("command contains a NUL byte")
	case len(a.Command) >= maxCommand:
		return p, message.Errorf("command is too long (%d bytes); write it to a file and run that", len(a.Command))
	case a.Timeout < 0:
		return p, errors.New("timeout must not be negative")
	}
	p = tool.Plan{
		Title:   commandTitle(a.Command),
		Effects: []tool.Effect{{Kind: tool.Exec, Target: a.Command}},
		Preview: display.Code{Lang: "sh", Source: a.Command},
		Line:    rawLine(a.Command),
	}
	if b.Analyse != nil {
		p.Line = b.Analyse(a.Command)
	}
	if b.DescribeConfinement != nil {
		p.Confined, err = b.DescribeConfinement(ctx, p.Line)
	} else {
		var c Confinement
		c, err = b.confine(ctx, p.Line, false)
		p.Confined = c.Summary
	}
	if p.Confined != "" && a.Unconfined && err == nil {
		p.Confined, p.Unconfined = "", true
	}
	return p, err
}

// rawLine is a line without analysis. It runs as written.
type rawLine string

func (u rawLine) Original() string              { return string(u) }
func (u rawLine) ShellLine() string             { return string(u) }
func (u rawLine) Environ(env []string) []string { return env }

// confine returns the confinement of a command, or none if it runs unconfined.
func (o Options) confine(ctx context.Context, line tool.Line, unconfined bool) (Confinement, error) {
	switch {
	case o.Confine != nil && !unconfined:
		return o.Confine(ctx, line)
	case o.Supervised == nil:
		return Confinement{}, nil
	}
	return o.Supervised(ctx, line), nil
}

// commandTitle returns the command in one short line.
func commandTitle(command string) string {
	line, rest, more := strings.Cut(strings.TrimSpace(command), "\n")
	line = strings.Join(strings.Fields(line), " ")
	runes := []rune(line)
	if len(runes) > maxTitle {
		return string(runes[:maxTitle]) + "…"
	}
	if more && strings.TrimSpace(rest) != "" {
		return line + " …"
	}
	return line
}

func (b *bash) run(ctx context.Context, a bashArgs, line tool.Line, c Confinement, out io.Writer) (tool.Result, error) {
	log := b.newLog(a.Command)
	var draw func(line string)
	seen := &limitWriter{out: out, remaining: b.OutputLimit, now: b.Now}
	if d, ok := out.(tool.Drawer); ok {
		draw, seen.report = func(line string) { d.Draw(line, 0) }, d.Draw
	}
	live := newLive(tee{seen, log}, draw, b.Concealer)
	spec := b.spec(line, c, live)
	spec.Timeout, spec.OutputLimit = b.CommandTimeout, b.OutputLimit
	if a.Timeout > 0 { // up to the maximum
		spec.Timeout = min(time.Duration(min(a.Timeout, 1<<31))*time.Millisecond, b.CommandTimeout)
	}
	var o shell.Outcome
	var refused string
	var err error
	if lend := tool.LenderOf(ctx); lend != nil {
		spec.Timeout, spec.Env = 0, line.Environ(slices.Concat(b.Env, c.Env))
		err = lend(ctx, func(terminal *os.File) (err error) {
			spec.Terminal = terminal
			o, refused, err = c.run(ctx, spec)
			return err
		})
	} else {
		o, refused, err = c.run(ctx, spec)
	}
	live.flush()
	seen.finish()
	defer log.close()
	if err != nil && ctx.Err() == nil {
		return tool.Result{}, err
	}
	r := makeResult(a.Command, o, fmt.Sprintf("timed out after %v", spec.Timeout))
	r.Terminal = spec.Terminal != nil
	var cutOut, cutErr bool
	r.Stdout, cutOut = truncateOutput(b.Concealer.Text(o.Stdout.Text()), o.Stdout.Dropped > 0)
	r.Stderr, cutErr = truncateOutput(b.Concealer.Text(o.Stderr.Text()), o.Stderr.Dropped > 0)
	if r.Truncated = cutOut || cutErr; r.Truncated {
		if r.LogPath = log.ensureFile(); log.noRoom {
			r.Note = fmt.Sprintf("the log is cut: this session has saved as much output as it may (storage.runs_session_bytes, %d MB)", b.RunsLimit>>20)
		}
	}
	switch { // what happened to processes that outlived the command
	case o.Escaped:
		r.Note = tool.JoinNotes(r.Note, "a process got away from the command and may still be running")
	case o.Stopped && !o.TimedOut:
		r.Note = tool.JoinNotes(r.Note, "processes left running in the background were stopped")
	}
	r.Note = tool.JoinNotes(r.Note, refused)
	if c.ExplainFailure != nil && !o.TimedOut {
		if why := c.ExplainFailure(o.ExitCode, o.Stderr.Text()); why != "" {
			r.Sandbox = why + ": the sandbox may be the reason (" + c.Summary +
				"). If the command has to do that, call bash again with unconfined: true; the user is asked, once."
		}
	}
	if !r.OK && strings.Contains(a.Command, ".coder/runs/") {
		r.Note = tool.JoinNotes(r.Note, "commands do not see .coder/runs: open the file with read or grep")
	}
	if c.MissingVariables != nil && !r.OK {
		r.Note = tool.JoinNotes(r.Note, c.MissingVariables(o.Stdout.Text()+"\n"+o.Stderr.Text()))
	}
	if c.CheckAfter != nil {
		r.Note = tool.JoinNotes(r.Note, c.CheckAfter(context.WithoutCancel(ctx)))
	}
	if err != nil {
		r.OK, r.Error = false, "cancelled"
	}
	summary := fmt.Sprintf("exit %d", r.ExitCode)
	if r.TimedOut {
		summary = r.Error
	}
	return tool.Result{Value: r, Failed: !r.OK, Summary: summary, Show: outputBlock(r)}, err
}

// makeResult returns the result of a command; late is set if it timed out.
func makeResult(command string, o shell.Outcome, late string) tool.ShellResult {
	r := tool.ShellResult{
		OK: o.ExitCode == 0, Command: command, ExitCode: o.ExitCode, Signal: o.Signal, DurationMS: o.Duration.Milliseconds(),
		TimedOut: o.TimedOut,
	}
	switch {
	case o.TimedOut:
		r.Error = late
	case o.Signal != "":
		r.Error = "ended by " + o.Signal
	case o.ExitCode != 0:
		r.Error = fmt.Sprintf("exit code %d", o.ExitCode)
	}
	return r
}

// spec returns the shell spec for a command.
func (o Options) spec(line tool.Line, c Confinement, live *liveOutput) shell.Spec {
	return shell.Spec{
		Shell: o.Shell, Command: line.ShellLine(), Dir: o.Workspace.Root(),
		Env:    line.Environ(slices.Concat(o.Env, c.Env, quietEnv)),
		Prefix: c.Wrapper, Attr: c.Attr, Init: c.Init, Journal: c.Journal, Stdout: &live.stdout.clean,
		Stderr: &live.stderr.clean, Now: o.Now,
	}
}

// truncateOutput keeps the beginning and the end of a stream's text. If
// anything is missing, here or earlier, the last line says so.
func truncateOutput(text string, dropped bool) (string, bool) {
	var runes []rune
	if len(text) > maxChars {
		runes = []rune(text)
	}
	left := len(runes) - maxChars
	if left > 0 {
		text = fmt.Sprintf("%s\n[%d characters left out]\n%s", string(runes[:maxChars-maxChars/2]), left,
			string(runes[len(runes)-maxChars/2:]))
	}
	if left <= 0 && !dropped {
		return text, false
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + truncationNote + "\n", true
}

// outputBlock returns the output for the user, who knows the command already.
func outputBlock(r tool.ShellResult) display.Block {
	text := r.Stdout
	if r.Stderr != "" {
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		text += r.Stderr
	}
	return display.Text(text)
}
