// Package cli is the command line of the program: flags and subcommands, runs
// without a terminal and what they print, sessions at a terminal, exit codes. It
// owns nothing that outlives one call of [Main].
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"coder/internal/app"
	"coder/internal/core/jsonx"
	"coder/internal/core/sanitize"
	"coder/internal/host/stdio"
	"coder/internal/report/export"
	"coder/internal/ui/i18n"
	"coder/internal/ui/term/ink"

	xterm "golang.org/x/term"
)

// Env is the world the program is called in.
type Env struct {
	app.Env
	Args   []string // without the program's name
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// Piped reports whether something other than a person is on stdin.
	Piped func() bool
	// Terminal is the terminal the person sits at, if there is one.
	Terminal func() (in, out *os.File, ok bool)
	// Signals returns a context that ends when the program is told to stop, and
	// one that ends when it is told so again.
	Signals func(context.Context) (first, again context.Context, stop func())
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
		Env:  app.Env{Exe: exe, Environ: os.Environ(), Dir: dir, Now: time.Now},
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Piped: func() bool { // a pipe, a file or a socket, rather than a terminal or the null device
			info, err := os.Stdin.Stat()
			return err == nil && info.Mode()&os.ModeCharDevice == 0
		},
		Terminal: func() (in, out *os.File, ok bool) {
			return os.Stdin, os.Stdout, xterm.IsTerminal(int(os.Stdin.Fd())) && xterm.IsTerminal(int(os.Stdout.Fd()))
		},
		Signals: signals,
	}
}

// Main runs the program and returns its exit code.
func Main(env Env) int {
	ctx, again, stop := env.Signals(context.Background())
	defer stop()
	columns, wide, onScreen := width(env.Stderr), width(env.Stdout), isTerminal(env.Stdout)
	env.Stdout, env.Stderr = stdio.NewWriter(ctx, env.Stdout), stdio.NewWriter(ctx, env.Stderr)
	inv := &invocation{Env: env, columns: wide, onScreen: onScreen, input: stdio.NewReader(env.Stdin), unkept: new(unkept),
		exit: &shutdown{patience: env.Patience, leaving: make(chan struct{})}}
	err := inv.exit.watch(ctx, again, func() error { return inv.kept(inv.run(ctx)) })
	if errors.Is(err, syscall.EPIPE) && inv.flags != nil && inv.flags.command != nil {
		err = &exitError{code: ExitError} // whoever read it has read enough
	}
	if text := message(err); text != "" {
		words := inv.words
		if errors.Is(err, errStuck) { // what is stuck may still be at work on it
			words = i18n.For(i18n.Choose(asked("lang", env.Args), env.Getenv))
		}
		complain(env.Stderr, words.Said(text), columns)
	}
	return ExitCode(err)
}

// complain tells the person what went wrong, in lines of so many columns; 0: in any.
func complain(w io.Writer, text string, columns int) {
	for line := range strings.Lines(text) {
		fmt.Fprintln(w, ink.Folded("coder: "+sanitize.Mask(strings.TrimRight(line, "\n")), columns))
	}
}

// width is how many columns w has, if it is a terminal, else 0.
func width(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if columns, _, err := xterm.GetSize(int(f.Fd())); err == nil {
			return columns
		}
	}
	return 0
}

// isTerminal reports whether what is written is shown as it comes.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && xterm.IsTerminal(int(f.Fd()))
}

// invocation is one call of the program: its world, its command line, the
// settings of the workspace and the language of the person.
type invocation struct {
	Env
	columns  int  // of Stdout, if it is a terminal
	onScreen bool // Stdout is a terminal
	flags    *flags
	settings app.Settings
	loadErr  error // what is wrong with them
	words    *i18n.Printer
	input    *stdio.Reader // of Stdin
	exit     *shutdown
	unkept   *unkept // nil notes nothing
	below    string  // where the program was called, if the sessions asked about are those of a folder above
}

func (inv *invocation) run(ctx context.Context) error {
	if len(inv.Args) > 0 && inv.Args[0] == completeName {
		return inv.complete(ctx, inv.Args[1:])
	}
	if isFleet(inv.Args) {
		inv.load(&flags{Options: app.Options{Lang: asked("lang", inv.Args)}})
		return inv.runFleet(ctx)
	}
	fl, err := parseFlags(inv.Args)
	if err != nil {
		inv.load(&flags{Options: app.Options{Lang: asked("lang", inv.Args)}}) // for the language it is said in
		return err
	}
	if fl.version {
		return inv.runVersion(ctx)
	}
	if fl.command != nil && fl.command.name == "trust" && len(fl.args) == 1 {
		fl.Dir = fl.args[0]
	}
	inv.lookAbove(fl)
	inv.load(fl)
	if fl.command == nil && !fl.help && fl.session.Fork && (fl.at > 0 || fl.resumeAt != "") {
		if err := inv.forkFirst(ctx); err != nil {
			return err
		}
	}
	switch {
	case fl.help:
		return writeHelp(inv.Stdout, inv.columns, inv.words, fl.command)
	case fl.command != nil:
		return fl.command.run(inv, ctx)
	case !fl.print && !fl.prompt && !fl.driven && inv.mistaken() != nil:
		return inv.mistaken()
	case fl.inputFormat == "events":
		return inv.runAnswered(ctx)
	case fl.inputFormat == "stream-json" && fl.outputFormat == "stream-json" && fl.onAsk == "":
		return inv.runDriven(ctx)
	case fl.print:
		return inv.runHeadless(ctx)
	}
	return inv.runInteractive(ctx)
}

func (inv *invocation) runVersion(context.Context) error {
	build := app.ReadBuild()
	if inv.flags != nil && inv.flags.json {
		return inv.printJSON(build)
	}
	_, err := fmt.Fprintf(inv.Stdout, "coder %s\n", build)
	return err
}

// load reads the settings of the workspace, and finds the language of the
// person: that of the flag, of the settings, or of the environment. Programs are
// spoken to in one language only.
func (inv *invocation) load(fl *flags) {
	inv.flags = fl
	inv.settings, inv.loadErr = app.Load(inv.Env.Env, fl.Options)
	if lang := cmp.Or(fl.Lang, inv.settings.Config.UI.Lang); fl.forMachines() {
		inv.words = i18n.For(i18n.English)
	} else {
		inv.words = i18n.For(i18n.Choose(lang, inv.Getenv))
		if inv.ascii() {
			inv.words.ASCII()
		}
	}
}

// asked is the value that a command line gives a flag, though it may be wrong
// elsewhere.
func asked(flag string, args []string) (value string) {
	for i, arg := range args {
		switch joined, ok := strings.CutPrefix(arg, "--"+flag+"="); {
		case ok:
			value = joined
		case arg == "--"+flag && i+1 < len(args):
			value = args[i+1]
		}
	}
	return value
}

// newApp puts the program together for the workspace.
func (inv *invocation) newApp(warn func(string)) (*app.App, error) {
	if err := cmp.Or(inv.loadErr, inv.readTexts()); err != nil {
		return nil, err
	}
	o := inv.flags.Options
	o.Speech = inv.speech()
	return app.New(inv.Env.Env, o, inv.settings, warn)
}

// speech is how what is written down for the person speaks.
func (inv *invocation) speech() export.Speech {
	return export.Speech{Words: inv.words, Lang: inv.words.Lang(), Width: ink.Width}
}

// warn tells the person something that is not part of any turn.
func (inv *invocation) warn(text string) { fmt.Fprintln(inv.Stderr, "coder: "+inv.words.Said(text)) }

// print writes lines to stdout. A long answer goes there in pieces, since each is copied on
// its way.
func (inv *invocation) print(lines ...string) error {
	const piece = 64 << 10
	text := strings.Join(lines, "\n")
	for ; len(text) > piece; text = text[piece:] {
		if _, err := io.WriteString(inv.Stdout, text[:piece]); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(inv.Stdout, text)
	return err
}

// foreign is text of others made fit for stdout: a terminal would obey what is in it, a
// file or a program gets it as it is.
func (inv *invocation) foreign(text string) string {
	if inv.onScreen {
		return sanitize.Text(text)
	}
	return text
}

// tell writes lines for people to stdout, broken between words for a terminal. What is
// painted is laid out already.
func (inv *invocation) tell(lines ...string) error {
	for i, line := range lines {
		if !strings.ContainsRune(line, '\x1b') {
			lines[i] = ink.Folded(line, inv.columns)
		}
	}
	return inv.print(lines...)
}

// printJSON writes v to stdout, for programs.
func (inv *invocation) printJSON(v any) error {
	_, err := fmt.Fprintf(inv.Stdout, "%s\n", jsonx.Must(v))
	return err
}

// oneLine is foreign text made fit for a list.
func oneLine(s string) string { return sanitize.Line(s, 400) }
