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

// HookTool is the name under which commands run on events stand on record.
const HookTool = "hook"

// HookRun is the commands that run, side by side, on one event, and what all of
// them are given to read.
type HookRun struct {
	Event    string          `json:"event"`
	Commands []HookCommand   `json:"commands"`
	Input    json.RawMessage `json:"input"`
}

// HookCommand is one of them.
type HookCommand struct {
	Command string   `json:"command,omitempty"`
	Args    []string `json:"args,omitempty"` // with any, Command is a program and no shell reads them
	Seconds float64  `json:"timeout"`
	Env     []string `json:"env,omitempty"` // besides that of every command
	// Foreign is set if it is not the person's own; see [Foreign].
	Foreign bool     `json:"foreign,omitempty"`
	Hide    []string `json:"hide,omitempty"`
	// Callback, which stands in place of Command, is what the program that drives
	// the session knows a function of its own by.
	Callback string `json:"callback,omitempty"`
}

// Foreign is a line that runs by itself and that somebody else wrote. What it names
// nobody let it read: it sees no secrets, and nothing of Hide, or it does not run.
type Foreign struct {
	tool.Line
	Hide []string // absolute
}

// HookResults is what came of them, in their order.
type HookResults struct {
	OK    bool               `json:"ok"`
	Hooks []tool.ShellResult `json:"hooks"`
}

// maxHookOutput bounds what is kept of each stream of a command on an event.
const maxHookOutput = 64 << 10

// Hook is the tool that runs commands on events. No model is offered it: with it
// what they do is a call like others, confined, on record and undone with the
// turn.
func Hook(o Options) tool.Tool { return hook{o.filled()} }

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
		line := tool.Line(unread(one.line()))
		if h.Analyse != nil {
			line = h.Analyse(one.line())
		}
		if one.Foreign {
			line = Foreign{line, one.Hide}
		}
		c.lines = append(c.lines, line)
		c.plan.Effects = append(c.plan.Effects, tool.Effect{Kind: tool.Exec, Target: one.line()})
		if h.Holds != nil {
			words, err := h.Holds(ctx, line)
			if err != nil {
				return nil, err
			}
			c.plan.Confined = words
		}
	}
	return c, nil
}

// line is the command as a shell is given it.
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
		all.Go(func() { results.Hooks[i] = c.one(ctx, i) })
	}
	all.Wait()
	return tool.Result{Value: results}, ctx.Err()
}

// one runs one of the commands. One that cannot be started has exit code -1.
func (c hookCall) one(ctx context.Context, i int) tool.ShellResult {
	h, cmd, line := c.hook, c.run.Commands[i], c.lines[i]
	if cmd.Callback != "" {
		return c.callBack(ctx, cmd, tool.ShellResult{Command: cmd.Callback, ExitCode: -1})
	}
	failed := func(err error) tool.ShellResult {
		return tool.ShellResult{Command: cmd.Command, ExitCode: -1, Error: err.Error()}
	}
	bounds, err := h.confine(ctx, line, false)
	if err != nil {
		return failed(err)
	}
	o, refused, err := bounds.run(ctx, shell.Spec{
		Shell: h.Shell, Command: line.Runs(), Dir: h.Workspace.Root(), Env: line.Environ(slices.Concat(h.Env, quiet, cmd.Env)),
		Timeout: time.Duration(cmd.Seconds * float64(time.Second)), Limit: maxHookOutput, Stdin: c.run.Input,
		Through: bounds.Through, Attr: bounds.Attr, Init: bounds.Init, Journal: bounds.Journal, Now: h.Now,
	})
	if err != nil && !errors.Is(err, ctx.Err()) {
		return failed(err)
	}
	r := resultOf(cmd.Command, o, fmt.Sprintf("timed out after %g s", cmd.Seconds))
	r.OK = r.OK && err == nil
	r.Stdout, r.Stderr, r.Truncated = h.Conceals.Value(o.Stdout.Text()), h.Conceals.Text(o.Stderr.Text()), o.Stdout.Dropped > 0
	if bounds.Blocked != nil && !r.OK && !o.TimedOut {
		if why := bounds.Blocked(o.ExitCode, o.Stderr.Text()); why != "" {
			r.Sandbox = clip.Text(why, 200) + ": the sandbox may be the reason (" + bounds.Words + ")"
		}
	}
	if r.Note = refused; bounds.After != nil {
		r.Note = tool.JoinNotes(r.Note, bounds.After(context.WithoutCancel(ctx)))
	}
	return r
}

// callBack has the program that drives the session run a function of its own.
func (c hookCall) callBack(ctx context.Context, cmd HookCommand, r tool.ShellResult) tool.ShellResult {
	if c.hook.Callback == nil {
		r.Error = "the program that has it does not drive this session any more"
		return r
	}
	own, cancel := context.WithTimeout(ctx, time.Duration(cmd.Seconds*float64(time.Second)))
	defer cancel()
	began := c.hook.Now()
	said, err := c.hook.Callback(own, cmd.Callback, c.run.Input)
	r.DurationMS = c.hook.Now().Sub(began).Milliseconds()
	switch {
	case ctx.Err() == nil && own.Err() != nil:
		r.TimedOut, r.Error = true, fmt.Sprintf("timed out after %g s", cmd.Seconds)
	case errors.Is(err, ErrTooLarge): // what it cannot be shown it has not let pass
		r.ExitCode, r.Stderr = 2, err.Error()
	case err != nil:
		r.Error = clip.Text(err.Error(), 500)
	default:
		r.OK, r.ExitCode, r.Stdout = true, 0, c.hook.Conceals.Value(string(said))
	}
	return r
}

// ErrTooLarge reports what is too large to be shown to a function of the program
// that drives the session.
var ErrTooLarge = errors.New("it is too large to show to the hook")
