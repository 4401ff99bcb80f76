//go:build unix

// Package exec holds the tool that runs commands. What a command prints is made
// plain text before a model or a person sees it, and bounded: the result holds
// the beginning and the end of each stream, and a file keeps the rest.
package exec

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"coder/internal/shell"
	"coder/internal/show"
	"coder/internal/tool"
	"coder/internal/workspace"
)

//go:embed bash.md
var bashDoc string

// Options are what the tool is built from. Workspace is required.
type Options struct {
	Workspace *workspace.Workspace
	// CommandTimeout is the most time a command may take; 2 minutes if zero.
	CommandTimeout time.Duration
	// OutputLimit is how many bytes of each stream are kept; 1 MiB if zero.
	OutputLimit int
	// RunsDir, below the workspace, is where output too long for a result is
	// saved, such as .coder/runs/<session>. It is not saved if this is empty.
	RunsDir string
	// Env is the whole environment of commands. Whoever makes it leaves out
	// what commands must not know.
	Env []string
	// Now tells the time, for durations.
	Now func() time.Time
}

const (
	defaultTimeout = 2 * time.Minute
	defaultLimit   = 1 << 20
	maxChars       = 30_000 // of each stream in a result
	maxCommand     = 128 << 10
	maxTitle       = 200
	truncatedLine  = "[output truncated]"
)

// quiet is the environment of a command that has no terminal: nothing should
// ask, page, or start an editor.
var quiet = []string{"TERM=dumb", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true"}

type bashArgs struct {
	Command     string `json:"command" also:"cmd script shell_command" doc:"the command line, as for sh -c"`
	Timeout     int    `json:"timeout,omitzero" also:"timeout_ms" doc:"most milliseconds it may take"`
	Description string `json:"description,omitzero" also:"explanation reason" doc:"what it is for, in a few words"`
}

// Bash is the tool that runs a command.
func Bash(o Options) tool.Tool {
	if o.CommandTimeout <= 0 {
		o.CommandTimeout = defaultTimeout
	}
	if o.OutputLimit <= 0 {
		o.OutputLimit = defaultLimit
	}
	b := &bash{Options: o}
	return tool.Func[bashArgs]{
		Name: "bash", Doc: b.doc(),
		Aliases: []tool.Alias{
			{Dialect: tool.Sema, Name: "Bash"}, {Dialect: tool.CoAuthor, Name: "runCommand"},
			{Name: "shell"}, {Name: "sh"}, {Name: "execute"}, {Name: "execute_command"}, {Name: "run_terminal_cmd"},
		},
		Plan: func(_ context.Context, a bashArgs) (tool.Plan, error) { return plan(a) },
		Do:   b.run,
	}
}

// bash is the tool's state: how many outputs it has saved.
type bash struct {
	Options
	saved atomic.Int64
}

func (b *bash) doc() string {
	return strings.NewReplacer(
		"{timeout}", strconv.FormatInt(b.CommandTimeout.Milliseconds(), 10),
		"{chars}", strconv.Itoa(min(maxChars, b.OutputLimit)/2),
	).Replace(bashDoc)
}

func plan(a bashArgs) (tool.Plan, error) {
	switch {
	case strings.TrimSpace(a.Command) == "":
		return tool.Plan{}, errors.New("command is empty")
	case strings.ContainsRune(a.Command, 0):
		return tool.Plan{}, errors.New("command holds a NUL byte")
	case len(a.Command) >= maxCommand:
		return tool.Plan{}, fmt.Errorf("command is too long (%d bytes); write it to a file and run that", len(a.Command))
	case a.Timeout < 0:
		return tool.Plan{}, errors.New("timeout must not be negative")
	}
	return tool.Plan{
		Title:   title(a.Command),
		Effects: []tool.Effect{{Kind: tool.Exec, Target: a.Command}},
		Preview: show.Code{Lang: "sh", Source: a.Command},
	}, nil
}

// title is the command in one short line.
func title(command string) string {
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

type bashResult struct {
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
}

func (b *bash) run(ctx context.Context, a bashArgs, out io.Writer) (tool.Result, error) {
	live := newLive(out, b.OutputLimit)
	spec := shell.Spec{
		Command: a.Command, Dir: b.Workspace.Root(), Env: append(append([]string{}, b.Env...), quiet...),
		Timeout: b.timeout(a), Limit: b.OutputLimit, Stdout: &live.stdout, Stderr: &live.stderr, Now: b.Now,
	}
	o, err := shell.Run(ctx, spec)
	live.end()
	if err != nil {
		return tool.Result{}, err
	}
	r := b.result(a, o)
	return tool.Result{Value: r, Failed: !r.OK, Summary: summary(r), Show: shown(r)}, nil
}

// timeout is what the call asks for, but never more than is allowed.
func (b *bash) timeout(a bashArgs) time.Duration {
	if a.Timeout == 0 {
		return b.CommandTimeout
	}
	return min(time.Duration(min(a.Timeout, 1<<31))*time.Millisecond, b.CommandTimeout)
}

func (b *bash) result(a bashArgs, o shell.Outcome) bashResult {
	stdout, stderr := o.Stdout.Text(), o.Stderr.Text()
	r := bashResult{
		OK: o.ExitCode == 0, Command: a.Command, ExitCode: o.ExitCode, Signal: o.Signal,
		DurationMS: o.Duration.Milliseconds(), TimedOut: o.TimedOut, Error: failure(o, b.timeout(a)), Note: note(o),
	}
	var cutOut, cutErr bool
	r.Stdout, cutOut = bounded(stdout, o.Stdout.Dropped > 0)
	r.Stderr, cutErr = bounded(stderr, o.Stderr.Dropped > 0)
	r.Truncated = cutOut || cutErr
	if r.Truncated {
		r.LogPath = b.save(a.Command, stdout, stderr)
	}
	return r
}

func failure(o shell.Outcome, limit time.Duration) string {
	switch {
	case o.TimedOut:
		return fmt.Sprintf("timed out after %v", limit)
	case o.Signal != "":
		return "ended by " + o.Signal
	case o.ExitCode != 0:
		return fmt.Sprintf("exit code %d", o.ExitCode)
	}
	return ""
}

// note says what became of processes that outlived the command.
func note(o shell.Outcome) string {
	switch {
	case o.Escaped:
		return "a process detached itself from the command and may still be running"
	case o.Stopped && !o.TimedOut:
		return "processes left running in the background were stopped"
	}
	return ""
}

// bounded keeps the beginning and the end of a stream's text. If anything is
// missing, here or before, the last line says so.
func bounded(text string, dropped bool) (string, bool) {
	head, tail, left := cut(text, maxChars)
	if left > 0 {
		text = fmt.Sprintf("%s\n[%d characters left out]\n%s", head, left, tail)
	}
	if left == 0 && !dropped {
		return text, false
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + truncatedLine + "\n", true
}

// cut parts text into its first and last characters, n in all, and counts
// those between.
func cut(text string, n int) (head, tail string, left int) {
	if len(text) <= n {
		return text, "", 0
	}
	runes := []rune(text)
	if len(runes) <= n {
		return text, "", 0
	}
	return string(runes[:n-n/2]), string(runes[len(runes)-n/2:]), len(runes) - n
}

// save writes what was kept of the output to a file of its own and returns its
// path, or "" if that cannot be done: the command has run all the same.
func (b *bash) save(command, stdout, stderr string) string {
	if b.RunsDir == "" {
		return ""
	}
	text := fmt.Sprintf("$ %s\n\nstdout:\n%s\n\nstderr:\n%s\n", command, stdout, stderr)
	for {
		name := path.Join(b.RunsDir, fmt.Sprintf("bash-%04d.log", b.saved.Add(1)))
		err := b.Workspace.CreateFile(name, []byte(text), 0o600)
		switch {
		case err == nil:
			return name
		case !errors.Is(err, fs.ErrExist):
			return ""
		}
	}
}

func summary(r bashResult) string {
	if r.TimedOut {
		return r.Error
	}
	return fmt.Sprintf("exit %d", r.ExitCode)
}

// shown is the output for people, who know the command already.
func shown(r bashResult) show.Block {
	text := r.Stdout
	if r.Stderr != "" {
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		text += r.Stderr
	}
	return show.Text(text)
}
