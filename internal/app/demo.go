package app

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

	"coder/internal/agent/supervisor"
	"coder/internal/core/event"
	"coder/internal/model/provider"
	"coder/internal/model/scripted"
	"coder/internal/policy/mode"
	"coder/internal/ui/i18n"
	"coder/internal/ui/repl"
	"coder/internal/ui/term"
)

//go:embed demo
var demoFiles embed.FS

// demoProject is the project that the demo repairs, without its go.mod.
var demoProject = []string{"pages.go", "pages_test.go"}

// runDemo lets a scripted model repair a small project in a temporary folder,
// and then shows what is kept of it. Everything but the model is the real
// program. A person at the terminal is asked; in a pipe nobody is.
func runDemo(ctx context.Context, env Env, fl *flags) error {
	dir, err := unpackDemo()
	if err != nil {
		return fmt.Errorf("unpack the demo: %w", err)
	}
	env.Environ = offline(env.Environ)
	in, out, attended := env.Terminal()
	demo := demoFlags(fl, dir)
	if !attended {
		demo.autoApprove = true
		return demoInPipe(ctx, env, demo)
	}
	return demoAtTerminal(ctx, env, demo, in, out)
}

// demoFlags are the flags of the demo: of the person's own only those that say
// how to talk with them.
func demoFlags(fl *flags, dir string) *flags {
	return &flags{
		demo: true, dir: dir, mode: mode.Build, model: "script", outputFormat: "text",
		lang: fl.lang, noColor: fl.noColor, configFile: fl.configFile,
	}
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

// newDemoHouse is the program for the demo. The script is written for the
// names that tools have by themselves, called the way the API does, and runs
// the tests itself, so that the program need not ask to run them once more.
// What the person allows here for always goes with the folder.
func newDemoHouse(env Env, fl *flags, warn func(string)) (*house, error) {
	h, err := newHouse(env, fl, warn)
	if err != nil {
		return nil, err
	}
	h.conf.Tools.Dialect, h.conf.Provider.ToolMode = "native", "native"
	h.conf.Workflow.AutoVerifyAfterEdit = false
	h.home = h.data()
	return h, nil
}

// demoModel plays the script in the language of the person. Where nobody
// watches, it does not pause to think.
func (h *house) demoModel() (provider.Provider, error) {
	name := "demo/script.txt"
	if lang := i18n.Choose(cmp.Or(h.flags.lang, h.conf.UI.Lang), h.env.Getenv); lang == i18n.Chinese {
		name = "demo/script." + lang + ".txt"
	}
	text, err := demoFiles.ReadFile(name)
	if err != nil {
		return nil, err
	}
	s, err := scripted.Parse(string(text))
	if err != nil {
		return nil, err
	}
	o := scripted.Options{Sleep: h.env.Sleep}
	if h.flags.autoApprove {
		o.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	}
	return scripted.New(s, o), nil
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
func (h *house) introduceDemo(w io.Writer) error {
	words := h.words()
	lines := []string{words.T("The model in this demo is a script: its replies were written in advance. Everything else is the real program.")}
	if _, err := exec.LookPath("go"); err != nil {
		lines = append(lines, words.T("Go is not installed here, so the tests of the project cannot run and the demo will end early; everything before that works."))
	}
	lines = append(lines, words.T("The project, with a test that fails: %s", h.root))
	if h.flags.autoApprove {
		lines = append(lines, words.T("Nobody can be asked here, so what would be asked is allowed, as with --auto-approve."))
	} else {
		lines = append(lines, words.T("You will be asked before files are edited and commands run: y and Enter is fine here, and so is n."))
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n")+"\n")
	return err
}

func (h *house) demoPrompt() string { return h.words().T("a test fails; find out why and fix it") }

// demoInPipe runs the demo where nobody can be asked.
func demoInPipe(ctx context.Context, env Env, fl *flags) error {
	h, err := newDemoHouse(env, fl, warner(env, fl))
	if err != nil {
		return err
	}
	if err := h.introduceDemo(env.Stdout); err != nil {
		return err
	}
	face := term.New(term.Options{Out: env.Stdout, Palette: h.paletteFor(false), Words: h.words(), Now: env.Now})
	out := newOutput(env, fl)
	out.Sink, out.text = event.Tee(event.SinkFunc(out.count), face), false
	after := aftermath{house: h, words: h.words(), palette: h.paletteFor(false), out: face, say: face.Insert}
	if err := face.Insert("> " + h.demoPrompt()); err != nil {
		return err
	}
	err = h.withSession(ctx, out, func(s *supervisor.Session) error {
		turnErr := h.turn(ctx, s, out, h.demoPrompt())
		return errors.Join(turnErr, after.ofTurn(ctx, s))
	})
	return errors.Join(err, after.ofSession(ctx))
}

// demoAtTerminal runs the demo with a person who answers the questions.
func demoAtTerminal(ctx context.Context, env Env, fl *flags, in, out *os.File) error {
	c := &console{}
	h, err := newDemoHouse(env, fl, c.warn)
	if err != nil {
		return err
	}
	c.house, c.words = h, h.words()
	if err := h.introduceDemo(out); err != nil {
		return err
	}
	return c.run(ctx, in, out, c.demonstrate)
}

// errTurnOver ends the conversation of the demo after its turn.
var errTurnOver = errors.New("the turn is over")

// demonstrate opens the session, runs the one turn of the demo, and shows what
// came of it.
func (c *console) demonstrate(ctx context.Context) error {
	sup, err := c.supervise(c.face)
	if err != nil {
		return err
	}
	c.sup = sup
	c.keepOutOfGit()
	if c.session, err = c.open(ctx, sup, c.face.Out()); err != nil {
		return err
	}
	if err := c.greet(); err != nil {
		return errors.Join(err, c.session.Close())
	}
	after := aftermath{house: c.house, words: c.words, palette: c.palette, out: c.face.Out(), say: c.face.Say, width: c.columns}
	err = c.demoTurn(ctx)
	err = errors.Join(err, after.ofTurn(ctx, c.session), c.session.Close())
	return errors.Join(err, after.ofSession(ctx))
}

func (c *console) columns() int {
	cols, _ := c.size()
	return cols
}

// demoTurn runs the turn. What went wrong in it has been shown when it returns.
func (c *console) demoTurn(ctx context.Context) error {
	var turnErr error
	c.ends = func(_ context.Context, _ string, err error) error {
		turnErr = err
		return errTurnOver
	}
	err := c.face.Run(ctx, c.demoPrompt(), false)
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
