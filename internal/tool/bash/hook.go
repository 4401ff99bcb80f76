package bash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"coder/internal/core/clip"
	"coder/internal/host/shell"
	"coder/internal/tool"
)

// HookTool is the recorded tool name of commands that run on events.
const HookTool = "hook"

// HookRun has the commands that run concurrently on one event, and their common input.
type HookRun struct {
	Event    string          `json:"event"`
	Commands []HookCommand   `json:"commands"`
	Input    json.RawMessage `json:"input"`
}

// HookCommand is one command on an event.
type HookCommand struct {
	Command        string   `json:"command,omitempty"`
	Args           []string `json:"args,omitempty"` // if set, Command is a program run without a shell
	TimeoutSeconds float64  `json:"timeout"`
	Env            []string `json:"env,omitempty"` // in addition to every command's
	// Foreign is set if it is not the user's own; see [ForeignLine].
	Foreign bool     `json:"foreign,omitempty"`
	Hide    []string `json:"hide,omitempty"`
	// Callback, instead of Command, is the id of a function in the program that drives the session.
	Callback string `json:"callback,omitempty"`
}

// ForeignLine is a line that runs by itself and was written by someone else. Nobody allowed it to read what
// it names: it sees no secrets, and nothing of Hide, or it does not run.
type ForeignLine struct {
	tool.Line
	Hide []string // absolute
}

// HookResults are the results of the commands, in order.
type HookResults struct {
	OK    bool               `json:"ok"`
	Hooks []tool.ShellResult `json:"hooks"`
}

// maxHookOutput limits the saved output of each stream of a command on an event.
const maxHookOutput = 64 << 10

// Hook returns the tool that runs commands on events. It is not advertised to models. With it, these
// commands are calls like others: confined, recorded and undone with the turn.
func Hook(o Options) tool.Tool { return hook{o.withDefaults()} }

type hook struct{ Options }

func (h hook) Spec() tool.Spec {
	return tool.Spec{Name: HookTool, Doc: "runs the commands of an event", Schema: json.RawMessage(`{"type":"object"}`)}
}

func (h hook) Prepare(ctx context.Context, args json.RawMessage) (tool.Call, error) {
	c := hookCall{hook: h}
	if err := json.Unmarshal(args, &c.run); err != nil {
		return nil, &tool.ArgumentError{Tool: HookTool, Err: err}
	}
	c.plan.Title = c.run.Event
	for _, one := range c.run.Commands {
		if one.Callback != "" {
			c.lines = append(c.lines, nil)
			c.plan.Effects = append(c.plan.Effects, tool.Effect{Kind: tool.Note, Target: one.Callback})
			continue
		}
		line := tool.Line(rawLine(one.line()))
		if h.Analyse != nil {
			line = h.Analyse(one.line())
		}
		if one.Foreign {
			line = ForeignLine{line, one.Hide}
		}
		c.lines = append(c.lines, line)
		c.plan.Effects = append(c.plan.Effects, tool.Effect{Kind: tool.Exec, Target: one.line()})
		if h.DescribeConfinement != nil {
			words, err := h.DescribeConfinement(ctx, line)
			if err != nil {
				return nil, err
			}
			c.plan.Confined = words
		}
	}
	return c, nil
}

// line returns the command as a shell line.
func (c HookCommand) line() string {
	if len(c.Args) == 0 {
		return c.Command
	}
	var words []string
	for _, w := range append([]string{c.Command}, c.Args...) {
		words = append(words, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
	}
	return strings.Join(words, " ")
}

type hookCall struct {
	hook  hook
	run   HookRun
	lines []tool.Line
	plan  tool.Plan
}

func (c hookCall) Plan() tool.Plan { return c.plan }

func (c hookCall) Run(ctx context.Context, _ io.Writer) (tool.Result, error) {
	results := HookResults{OK: true, Hooks: make([]tool.ShellResult, len(c.run.Commands))}
	var all sync.WaitGroup
	for i := range c.run.Commands {
		all.Go(func() { results.Hooks[i] = c.runCommand(ctx, i) })
	}
	all.Wait()
	return tool.Result{Value: results}, ctx.Err()
}

// runCommand runs one command. A command that cannot be started has exit code -1.
func (c hookCall) runCommand(ctx context.Context, i int) tool.ShellResult {
	h, cmd, line := c.hook, c.run.Commands[i], c.lines[i]
	if cmd.Callback != "" {
		return c.runCallback(ctx, cmd, tool.ShellResult{Command: cmd.Callback, ExitCode: -1})
	}
	failed := func(err error) tool.ShellResult {
		return tool.ShellResult{Command: cmd.Command, ExitCode: -1, Error: err.Error()}
	}
	bounds, err := h.confine(ctx, line, false)
	if err != nil {
		return failed(err)
	}
	o, refused, err := bounds.run(ctx, shell.Spec{
		Shell: h.Shell, Command: line.ShellLine(), Dir: h.Workspace.Root(),
		Env:     line.Environ(slices.Concat(h.Env, quietEnv, cmd.Env)),
		Timeout: time.Duration(cmd.TimeoutSeconds * float64(time.Second)), OutputLimit: maxHookOutput, Stdin: c.run.Input,
		Prefix: bounds.Wrapper, Attr: bounds.Attr, Init: bounds.Init, Journal: bounds.Journal, Now: h.Now,
	})
	if err != nil && !errors.Is(err, ctx.Err()) {
		return failed(err)
	}
	r := makeResult(cmd.Command, o, fmt.Sprintf("timed out after %g s", cmd.TimeoutSeconds))
	r.OK = r.OK && err == nil
	r.Stdout, r.Stderr, r.Truncated = h.Concealer.Value(o.Stdout.Text()), h.Concealer.Text(o.Stderr.Text()),
		o.Stdout.Dropped > 0
	if bounds.ExplainFailure != nil && !r.OK && !o.TimedOut {
		if why := bounds.ExplainFailure(o.ExitCode, o.Stderr.Text()); why != "" {
			r.Sandbox = clip.Truncate(why, 200) + ": the sandbox may be the reason (" + bounds.Summary + ")"
		}
	}
	if r.Note = refused; bounds.CheckAfter != nil {
		r.Note = tool.JoinNotes(r.Note, bounds.CheckAfter(context.WithoutCancel(ctx)))
	}
	return r
}

// runCallback lets the program that drives the session run one of its functions.
func (c hookCall) runCallback(ctx context.Context, cmd HookCommand, r tool.ShellResult) tool.ShellResult {
	if c.hook.Callback == nil {
		r.Error = "the program that owns this hook no longer drives the session"
		return r
	}
	own, cancel := context.WithTimeout(ctx, time.Duration(cmd.TimeoutSeconds*float64(time.Second)))
	defer cancel()
	began := c.hook.Now()
	said, err := c.hook.Callback(own, cmd.Callback, c.run.Input)
	r.DurationMS = c.hook.Now().Sub(began).Milliseconds()
	switch {
	case ctx.Err() == nil && own.Err() != nil:
		r.TimedOut, r.Error = true, fmt.Sprintf("timed out after %g s", cmd.TimeoutSeconds)
	case errors.Is(err, ErrTooLarge): // a function that cannot see the event did not allow it
		r.ExitCode, r.Stderr = 2, err.Error()
	case err != nil:
		r.Error = clip.Truncate(err.Error(), 500)
	default:
		r.OK, r.ExitCode, r.Stdout = true, 0, c.hook.Concealer.Value(string(said))
	}
	return r
}

// ErrTooLarge means that an event is too large to send to a function of the program that drives the session.
var ErrTooLarge = errors.New("too large to show to the hook")
