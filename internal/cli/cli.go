// Package cli is coder's command line: flags and subcommands, non-interactive runs and their output,
// sessions at a terminal, exit codes. It owns nothing that outlives a call of [Main].
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
	"coder/internal/core/message"
	"coder/internal/core/sanitize"
	"coder/internal/host/stdio"
	"coder/internal/report/export"
	"coder/internal/ui/i18n"
	"coder/internal/ui/term/ink"

	xterm "golang.org/x/term"
)

// Env is the program's environment.
type Env struct {
	app.Env
	Args   []string // without the program's name
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// IsPiped reports whether stdin is a pipe, file or socket.
	IsPiped func() bool
	// Terminal returns the user's terminal, if there is one.
	Terminal func() (in, out *os.File, ok bool)
	// Signals returns a context that ends at the first stop signal, and one that ends at the second.
	Signals func(context.Context) (first, again context.Context, stop func())
}

// NewEnv returns the real environment.
func NewEnv() Env {
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
		IsPiped: func() bool { // a pipe, a file or a socket, not a terminal or the null device
			info, err := os.Stdin.Stat()
			return err == nil && info.Mode()&os.ModeCharDevice == 0
		},
		Terminal: func() (in, out *os.File, ok bool) {
			return os.Stdin, os.Stdout, xterm.IsTerminal(int(os.Stdin.Fd())) && xterm.IsTerminal(int(os.Stdout.Fd()))
		},
		Signals: notifySignals,
	}
}

// Main runs the program and returns its exit code.
func Main(env Env) int {
	ctx, again, stop := env.Signals(context.Background())
	defer stop()
	columns, wide, onScreen := terminalWidth(env.Stderr), terminalWidth(env.Stdout), isTerminal(env.Stdout)
	env.Stdout, env.Stderr = stdio.NewWriter(ctx, env.Stdout), stdio.NewWriter(ctx, env.Stderr)
	inv := &invocation{Env: env, columns: wide, isTerminal: onScreen, stdin: stdio.NewReader(env.Stdin),
		unsaved:  new(unsavedReason),
		shutdown: &shutdown{timeoutFactor: env.TimeoutFactor, leaving: make(chan struct{})}}
	err := inv.shutdown.run(ctx, again, func() error { return inv.finalError(inv.run(ctx)) })
	if errors.Is(err, syscall.EPIPE) && inv.flags != nil && inv.flags.command != nil {
		err = &exitError{code: ExitError} // the reader has closed the pipe
	}
	if said := errorMessage(err); said.Format != "" {
		words := inv.printer
		if errors.Is(err, errStuck) { // the stuck work may still use it
			words = i18n.For(i18n.Choose(flagValue("lang", env.Args), env.Getenv))
		}
		printError(env.Stderr, words.Translate(said), columns)
	}
	return ExitCode(err)
}

// printError prints an error to the user, wrapped to columns; 0 disables wrapping.
func printError(w io.Writer, text string, columns int) {
	for line := range strings.Lines(text) {
		fmt.Fprintln(w, ink.FoldText("coder: "+sanitize.Mask(strings.TrimRight(line, "\n")), columns))
	}
}

// terminalWidth returns w's columns if it is a terminal, else 0.
func terminalWidth(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if columns, _, err := xterm.GetSize(int(f.Fd())); err == nil {
			return columns
		}
	}
	return 0
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && xterm.IsTerminal(int(f.Fd()))
}

// invocation is one call of the program: its environment, its command line, the workspace's settings and
// the user's language.
type invocation struct {
	Env
	columns    int  // of Stdout, if it is a terminal
	isTerminal bool // Stdout is a terminal
	flags      *flags
	settings   app.Settings
	loadErr    error // their error
	printer    *i18n.Printer
	stdin      *stdio.Reader // of Stdin
	shutdown   *shutdown
	unsaved    *unsavedReason // nil records nothing
	callDir    string         // the folder of the call, if the project is a folder above
}

func (inv *invocation) run(ctx context.Context) error {
	if len(inv.Args) > 0 && inv.Args[0] == completeCommand {
		return inv.completeWords(ctx, inv.Args[1:])
	}
	if isFleet(inv.Args) {
		inv.loadSettings(&flags{Options: app.Options{Overrides: app.Overrides{Lang: flagValue("lang", inv.Args)}}})
		return inv.runFleet(ctx)
	}
	fl, err := parseFlags(inv.Args)
	if err != nil {
		// for the language of its error
		inv.loadSettings(&flags{Options: app.Options{Overrides: app.Overrides{Lang: flagValue("lang", inv.Args)}}})
		return err
	}
	if fl.version {
		return inv.runVersion(ctx)
	}
	if fl.command != nil && fl.command.name == "trust" && len(fl.args) == 1 {
		fl.Dir = fl.args[0]
	}
	inv.findProjectAbove(fl)
	inv.loadSettings(fl)
	if fl.command == nil && !fl.help && fl.session.ForkCopy && (fl.atRecord > 0 || fl.resumeAt != "") {
		if err := inv.forkFirst(ctx); err != nil {
			return err
		}
	}
	switch {
	case fl.help:
		return writeHelp(inv.Stdout, inv.columns, inv.printer, fl.command)
	case fl.command != nil:
		return fl.command.run(inv, ctx)
	case !fl.print && !fl.forcePrompt && !fl.isDriven && inv.checkMistyped() != nil:
		return inv.checkMistyped()
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

// loadSettings reads the workspace's settings, and determines the user's language: from the flag, the settings
// or the environment. Programs always get English.
func (inv *invocation) loadSettings(fl *flags) {
	inv.flags = fl
	inv.settings, inv.loadErr = app.Load(inv.Env.Env, fl.Options)
	if lang := cmp.Or(fl.Lang, inv.settings.Config.UI.Lang); fl.isMachineOutput() {
		inv.printer = i18n.For(i18n.English)
	} else {
		inv.printer = i18n.For(i18n.Choose(lang, inv.Getenv))
		if inv.useASCII() {
			inv.printer.ASCII()
		}
	}
}

// flagValue returns a flag's value, even if the rest of the command line is invalid.
func flagValue(flag string, args []string) (value string) {
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

// newApp builds the program for the workspace.
func (inv *invocation) newApp(warn func(string)) (*app.Workspace, error) {
	if err := cmp.Or(inv.loadErr, inv.readFlagFiles()); err != nil {
		return nil, err
	}
	o := inv.flags.Options
	o.Language = inv.exportLanguage()
	return app.New(inv.Env.Env, o, inv.settings, warn)
}

// exportLanguage returns the wording of documents for the user.
func (inv *invocation) exportLanguage() export.Locale {
	return export.Locale{Translator: inv.printer, Lang: inv.printer.Lang(), Width: ink.Width}
}

// warn prints a message outside turns to the user.
func (inv *invocation) warn(text string) {
	fmt.Fprintln(inv.Stderr, "coder: "+inv.printer.TranslateText(text))
}

// warnError prints an error outside turns to the user.
func (inv *invocation) warnError(err error) { inv.warnMessage(errorMessage(err)) }

// warnMessage prints a sentence outside turns to the user.
func (inv *invocation) warnMessage(m message.Message) {
	fmt.Fprintln(inv.Stderr, "coder: "+inv.printer.Translate(m))
}

// print writes lines to stdout. It writes a long answer in pieces, since each write copies its text.
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

// sanitizeText makes untrusted text safe for stdout: a terminal would obey its escape sequences, a file or a
// program gets it unchanged.
func (inv *invocation) sanitizeText(text string) string {
	if inv.isTerminal {
		return sanitize.Text(text)
	}
	return text
}

// printWrapped writes lines for the user to stdout, wrapped between words on a terminal. Colored text is already
// laid out.
func (inv *invocation) printWrapped(lines ...string) error {
	for i, line := range lines {
		if !strings.ContainsRune(line, '\x1b') {
			lines[i] = ink.FoldText(line, inv.columns)
		}
	}
	return inv.print(lines...)
}

// printJSON writes v to stdout as JSON.
func (inv *invocation) printJSON(v any) error {
	_, err := fmt.Fprintf(inv.Stdout, "%s\n", jsonx.MustMarshal(v))
	return err
}

// singleLine makes untrusted text fit for one line of a list.
func singleLine(s string) string { return sanitize.Line(s, 400) }
