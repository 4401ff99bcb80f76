// Package app puts the program together: flags and configuration in, organs
// built, mind and face connected, an exit code out. It is the only package
// that reads the environment, the clock and chance, and it owns nothing that
// outlives one call of [Main].
package app

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"coder/internal/core/event"
	"coder/internal/host/sandbox"
	"coder/internal/host/stdio"
	"coder/internal/record/store/jsonl"
	"coder/internal/record/undo"
)

// Version is the program's version; a release build sets it.
var Version = "0.1.0-dev"

// Env is the world the program runs in.
type Env struct {
	Args    []string // without the program's name
	Environ []string
	Dir     string // the working directory; empty if there is none
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Now     func() time.Time
	// Piped reports whether something other than a person is on stdin.
	Piped func() bool
	// Exe is the path of this program, which runs itself to confine commands.
	Exe string
	// Terminal is the terminal the person sits at, if there is one.
	Terminal func() (in, out *os.File, ok bool)
	// Signals returns a context that ends when the program is told to stop, and
	// one that ends when it is told so again.
	Signals func(context.Context) (first, again context.Context, stop func())
	// Sleep, if set, passes the time between attempts instead of real time.
	Sleep func(context.Context, time.Duration) error
	// WrapStore, if set, wraps the store of sessions. Tests break it.
	WrapStore func(event.Store) event.Store
	// Disk, if set, is what sessions, and what can be undone, are written to.
	// Tests let it fail.
	Disk Disk

	input *stdio.Reader // of Stdin
	exit  *wayOut
}

// Disk is what is written to: files, and the directory of what can be undone.
type Disk interface {
	jsonl.Disk
	Below(*os.Root) undo.StoreDir
}

// FromOS is the real world.
func FromOS() Env {
	dir, err := os.Getwd()
	if err != nil {
		dir = ""
	}
	exe, err := os.Executable()
	if err != nil {
		exe = ""
	}
	return Env{
		Exe:  exe,
		Args: os.Args[1:], Environ: os.Environ(), Dir: dir,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Now: time.Now, Piped: stdinIsPiped, Terminal: terminal,
		Signals: signals,
	}
}

// terminal is the terminal on both stdin and stdout.
func terminal() (in, out *os.File, ok bool) {
	return os.Stdin, os.Stdout, term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd()))
}

// stdinIsPiped reports whether stdin is a pipe, a file or a socket, rather
// than a terminal or the null device.
func stdinIsPiped() bool {
	info, err := os.Stdin.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice == 0
}

// Getenv looks a variable up; an unset one is empty.
func (e Env) Getenv(name string) string {
	for i := len(e.Environ) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(e.Environ[i], "="); ok && k == name {
			return v
		}
	}
	return ""
}

// Main runs the program and returns its exit code.
func Main(env Env) int {
	if len(env.Args) > 0 && env.Args[0] == sandbox.HelperName {
		return sandbox.Main(env.Args[1:])
	}
	ctx, again, stop := env.Signals(context.Background())
	defer stop()
	env.exit, env.input = &wayOut{leaving: make(chan struct{})}, stdio.NewReader(env.Stdin)
	env.Stdout, env.Stderr = stdio.NewWriter(ctx, env.Stdout), stdio.NewWriter(ctx, env.Stderr)
	err := env.exit.watch(ctx, again, func() error { return run(ctx, env) })
	if text := message(err); text != "" {
		complain(env.Stderr, wordsOf(env, errors.Is(err, errStuck)).Said(text))
	}
	return ExitCode(err)
}

// complain tells the person what went wrong.
func complain(w io.Writer, text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintln(w, "coder: "+strings.TrimRight(line, "\n"))
	}
}

func run(ctx context.Context, env Env) error {
	fl, err := parseFlags(env.Args)
	if err != nil {
		return err
	}
	switch {
	case fl.help:
		return writeHelp(env.Stdout, wordsFor(env, fl))
	case fl.version || fl.command == "version":
		_, err := fmt.Fprintf(env.Stdout, "coder %s\n", Version)
		return err
	case fl.command == "config":
		return runConfig(env, fl)
	case fl.command == "trust":
		return runTrust(env, fl)
	case fl.command == "policy":
		return runPolicy(ctx, env, fl)
	case fl.command == "sessions":
		return runSessions(ctx, env, fl)
	case fl.command == "export":
		return runExport(ctx, env, fl)
	case fl.command == "audit":
		return runAudit(ctx, env, fl)
	case fl.command == "tasks":
		return runTasks(ctx, env, fl)
	case fl.command == "respond":
		return runRespond(ctx, env, fl)
	case fl.command == "prune":
		return runPrune(ctx, env, fl)
	case fl.command == "watch":
		return runWatch(ctx, env, fl)
	case fl.command == "demo":
		return runDemo(ctx, env, fl)
	case fl.print:
		return runHeadless(ctx, env, fl)
	}
	return runInteractive(ctx, env, fl)
}

// newSessionID makes an id that sorts by time: the second, then the part of it,
// then chance.
func newSessionID(now time.Time) string {
	var b [2]byte
	_, _ = rand.Read(b[:]) // never fails
	fraction := now.Nanosecond() / (1_000_000_000 >> 16)
	return fmt.Sprintf("sess_%010d_%04x%s", now.Unix(), min(fraction, 1<<16-1), hex.EncodeToString(b[:]))
}

// newID makes an id of twelve random characters behind a prefix that says
// what it names.
func newID(prefix string) string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return prefix + "_" + strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))[:12]
}
