package cli

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"coder/internal/app"
	"coder/internal/host/stdio"
	"coder/internal/model/scripted"
	"coder/internal/policy/mode"
	"coder/internal/ui/i18n"
	"coder/internal/ui/repl"
)

//go:embed demo
var demoFiles embed.FS

// demoProject is the project that the demo repairs, without its go.mod.
var demoProject = []string{"pages.go", "pages_test.go"}

// runDemo lets a scripted model repair a small project in a temporary folder,
// and then shows what is kept of it. Everything but the model is the real
// program. A person at the terminal is asked; in a pipe nobody is.
func (inv *invocation) runDemo(ctx context.Context) error {
	dir, err := unpackDemo()
	if err != nil {
		return fmt.Errorf("unpack the demo: %w", err)
	}
	in, out, attended := inv.Terminal()
	demo := inv.forDemo(dir, !attended)
	if !attended {
		return demo.demoInPipe(ctx)
	}
	return demo.demoAtTerminal(ctx, in, out)
}

// forDemo is the invocation in which the demo runs: of the person's own flags
// only those hold that say how to talk with them.
func (inv *invocation) forDemo(dir string, autoApprove bool) *invocation {
	demo := *inv
	demo.Environ = offline(inv.Environ)
	demo.load(&flags{
		Options:      app.Options{Dir: dir, Mode: mode.Build, Model: "script", ConfigFile: inv.flags.ConfigFile, AutoApprove: autoApprove},
		outputFormat: "text", lang: inv.flags.lang, noColor: inv.flags.noColor,
	})
	return &demo
}

// offline is an environment in which Go asks nobody for anything.
func offline(environ []string) []string {
	set := []string{"GOFLAGS=-mod=mod", "GOPROXY=off", "GOTOOLCHAIN=local", "GOWORK=off", "GO111MODULE=on"}
	kept := slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.ContainsFunc(set, func(s string) bool { return strings.HasPrefix(s, name+"=") })
	})
	return append(kept, set...)
}

// newDemo is the program for the demo. The script is written for the
// names that tools have by themselves, called the way the API does, and runs
// the tests itself, so that the program need not ask to run them once more.
// What the person allows here for always goes with the folder. Where nobody
// watches, the model does not pause to think.
func (inv *invocation) newDemo(warn func(string)) (*app.App, error) {
	a, err := inv.newApp(warn)
	if err != nil {
		return nil, err
	}
	a.Config.Tools.Dialect, a.Config.Provider.ToolMode = "native", "native"
	a.Config.Workflow.AutoVerifyAfterEdit = false
	a.Home = filepath.Join(a.Root, ".coder")
	name := "demo/script.txt"
	if lang := i18n.Choose(cmp.Or(inv.flags.lang, a.Config.UI.Lang), inv.Getenv); lang == i18n.Chinese {
		name = "demo/script." + lang + ".txt"
	}
	text, err := demoFiles.ReadFile(name)
	if err != nil {
		return nil, err
	}
	script, err := scripted.Parse(string(text))
	if err != nil {
		return nil, err
	}
	o := scripted.Options{Sleep: inv.Sleep}
	if inv.flags.AutoApprove {
		o.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	}
	a.Play = scripted.New(script, o)
	return a, nil
}

// unpackDemo writes the demo's project into a new temporary folder.
func unpackDemo() (string, error) {
	dir, err := os.MkdirTemp("", "coder-demo-")
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module pages\n\ngo 1.21\n"), 0o644); err != nil {
		return "", err
	}
	for _, name := range demoProject {
		text, err := demoOriginal(name)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// demoOriginal is a file of the project as it was unpacked.
func demoOriginal(name string) ([]byte, error) { return demoFiles.ReadFile("demo/" + name + ".txt") }

// introduceDemo says what is about to be seen, and first what is not real.
func (inv *invocation) introduceDemo(w io.Writer) error {
	words := inv.words
	lines := []string{words.T("The model in this demo is a script: its replies were written in advance. Everything else is the real program.")}
	if _, err := exec.LookPath("go"); err != nil {
		lines = append(lines, words.T("Go is not installed here, so the tests of the project cannot run and the demo will end early; everything before that works."))
	}
	lines = append(lines, words.T("The project, with a test that fails: %s", inv.settings.Root))
	if inv.flags.AutoApprove {
		lines = append(lines, words.T("Nobody can be asked here, so what would be asked is allowed, as with --auto-approve."))
	} else {
		lines = append(lines, words.T("You will be asked before files are edited and commands run: y and Enter is fine here, and so is n."))
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n")+"\n")
	return err
}

func (inv *invocation) demoPrompt() string {
	return inv.words.T("a test fails; find out why and fix it")
}

// demoInPipe runs the demo where nobody can be asked.
func (inv *invocation) demoInPipe(ctx context.Context) error {
	a, err := inv.newDemo(inv.warn)
	if err != nil {
		return err
	}
	if err := inv.introduceDemo(inv.Stdout); err != nil {
		return err
	}
	out, face := inv.newLines()
	after := demoReport{invocation: inv, app: a, colours: inv.palette(false), out: face, say: face.Insert}
	if err := face.Insert("> " + inv.demoPrompt()); err != nil {
		return err
	}
	err = inv.withSession(ctx, a, out, func(s *headless) error {
		turnErr := s.turn(ctx, inv.demoPrompt())
		return errors.Join(turnErr, after.ofTurn(ctx, s.Session))
	})
	return errors.Join(err, after.ofSession(ctx))
}

// demoAtTerminal runs the demo with a person who answers the questions.
func (inv *invocation) demoAtTerminal(ctx context.Context, in, out *os.File) (err error) {
	t := &terminal{invocation: inv, in: in, out: out, printer: stdio.NewWriter(ctx, out)}
	if t.app, err = inv.newDemo(t.warn); err != nil {
		return err
	}
	if err := inv.introduceDemo(out); err != nil {
		return err
	}
	return t.open(ctx, t.demonstrate)
}

// errTurnOver ends the conversation of the demo after its turn.
var errTurnOver = errors.New("the turn is over")

// demonstrate opens the session, runs the one turn of the demo, and shows what
// came of it.
func (t *terminal) demonstrate(ctx context.Context) (err error) {
	t.sup = t.app.Supervise(t.face)
	if t.session, err = t.app.Open(ctx, t.sup, t.flags.session, t.face.Out()); err != nil {
		return err
	}
	t.exit.opened()
	if err := t.banner(); err != nil {
		return errors.Join(err, t.session.Close())
	}
	after := demoReport{invocation: t.invocation, app: t.app, colours: t.colours, out: t.face.Out(), say: t.face.Say, width: t.columns}
	err = t.demoTurn(ctx)
	err = errors.Join(err, after.ofTurn(ctx, t.session), t.session.Close())
	return errors.Join(err, after.ofSession(ctx))
}

func (t *terminal) columns() int {
	cols, _ := t.size()
	return cols
}

// demoTurn runs the turn. What went wrong in it has been shown when it returns.
func (t *terminal) demoTurn(ctx context.Context) error {
	var turnErr error
	t.ends = func(_ context.Context, _ string, err error) error {
		turnErr = err
		return errTurnOver
	}
	err := t.face.Run(ctx, t.demoPrompt(), false)
	switch {
	case errors.Is(err, repl.ErrInterrupted):
		return &exitError{code: ExitInterrupted}
	case !errors.Is(err, errTurnOver):
		return err
	case turnErr == nil || errors.Is(turnErr, context.Canceled):
		return ctx.Err()
	}
	return &exitError{code: ExitCode(turnErr)}
}
