package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"coder/internal/core/message"
	"coder/internal/core/sanitize"
	"coder/internal/host/program"
)

const (
	// killGrace is how long git has to remove its lock files after it is asked to end.
	killGrace = 2 * time.Second
	maxErrors = 4 << 10 // saved bytes of git's error output
)

// command is one run of git.
type command struct {
	args  []string
	stdin io.Reader // nil means empty
	limit int       // maximum output in bytes; maxOutput if zero
	write []string  // the only folders where it may write
}

// output is the output of a git run.
type output struct {
	stdout    []byte
	truncated bool // the output was longer
	stderr    string
	exitCode  int
}

// run runs git in the workspace. Its error is ctx.Err() or says
// why git could not run; a non-zero exit code is not an error.
func (o Options) run(ctx context.Context, git program.Commander, c command) (output, error) {
	if err := ctx.Err(); err != nil {
		return output{}, err
	}
	limit := cmp.Or(max(o.Timeout, 0), defaultTimeout)
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out, err := o.start(bounded, git, c)
	switch {
	case ctx.Err() != nil:
		return output{}, ctx.Err()
	case bounded.Err() != nil:
		return output{}, message.Errorf("git %s: timed out after %v", c.args[0], limit)
	case errors.Is(err, program.ErrNotFound):
		return output{}, startError(err)
	case err != nil:
		return output{}, message.Errorf("git %s: %w", c.args[0], err)
	}
	return out, nil
}

// startError reports that git is not installed, or why the installed one is not used.
func startError(err error) error {
	if refused := (*program.RefusalError)(nil); errors.As(err, &refused) {
		return refused
	}
	return errors.New("git is not installed, or not in PATH")
}

func (o Options) start(ctx context.Context, git program.Commander, c command) (output, error) {
	stdout, stderr := headWriter{limit: cmp.Or(c.limit, maxOutput), stopAtLimit: true}, headWriter{limit: maxErrors}
	cmd := git.Command(ctx, c.args...)
	cmd.Env = append(cmd.Env, "GIT_LITERAL_PATHSPECS=1", "LC_ALL=C")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.stdin, &stdout, &stderr
	cmd.WaitDelay = killGrace
	setOwnGroup(cmd)
	if write := append(slices.Clone(c.write), o.filterDirs...); len(write) > 0 && o.Confine != nil && cmd.Err == nil {
		if err := o.Confine(ctx, cmd, write...); err != nil {
			return output{}, err
		}
	}
	if err := cmd.Start(); err != nil {
		return output{}, err
	}
	err := cmd.Wait()
	killGroup(cmd)
	out := output{stdout: stdout.content, truncated: stdout.truncated, exitCode: cmd.ProcessState.ExitCode()}
	out.stderr = strings.TrimSpace(sanitize.Text(string(stderr.content)))
	if exit := (*program.ExitError)(nil); stdout.truncated || errors.As(err, &exit) ||
		errors.Is(err, program.ErrWaitDelay) {
		err = nil
	}
	return out, err
}

// runError returns an error for a failed run.
func runError(what string, out output) error {
	why := cmp.Or(out.stderr, strings.TrimSpace(outputText(out)), fmt.Sprintf("exit code %d", out.exitCode))
	return message.Errorf("git %s: %s", what, strings.TrimPrefix(why, "fatal: "))
}

// headWriter keeps the beginning of what is written to it. With stop set
// it then returns an error, so that an endless writer ends.
type headWriter struct {
	limit       int
	stopAtLimit bool
	content     []byte
	truncated   bool
}

var errLimitReached = errors.New("enough")

func (h *headWriter) Write(b []byte) (int, error) {
	n := min(len(b), h.limit-len(h.content))
	h.content = append(h.content, b[:n]...)
	if n == len(b) {
		return n, nil
	}
	h.truncated = true
	if h.stopAtLimit {
		return n, errLimitReached
	}
	return len(b), nil
}

// splitFields splits output into its NUL-terminated fields.
func splitFields(b []byte) []string {
	b = bytes.TrimSuffix(b, []byte{0})
	if len(b) == 0 {
		return nil
	}
	return strings.Split(string(b), "\x00")
}

// outputSettings makes git print the output that the tools parse.
var outputSettings = []program.Setting{
	{Key: "core.quotepath", Value: "false"},
	{Key: "color.ui", Value: "false"},
	{Key: "color.status", Value: "false"},
	{Key: "commit.gpgsign", Value: "false"},
	{Key: "i18n.commitencoding", Value: "UTF-8"},
	{Key: "i18n.logoutputencoding", Value: "UTF-8"},
	{Key: "status.relativepaths", Value: "true"},
}
