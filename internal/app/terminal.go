package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"coder/internal/agent/orchestrator"
	"coder/internal/agent/supervisor"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
	"coder/internal/host/stdio"
	"coder/internal/policy/trust"
	"coder/internal/ui/i18n"
	"coder/internal/ui/repl"
	"coder/internal/ui/term"
	"coder/internal/ui/term/ink"
	"coder/internal/ui/tty"
)

// console is the program at a terminal.
type console struct {
	*house
	words   *i18n.Printer
	palette term.Palette
	sup     *supervisor.Supervisor
	session *supervisor.Session
	face    face
	input   *stdio.Reader // lines typed at the terminal in its usual mode
	printer io.Writer     // to the terminal
	size    func() (cols, rows int)
	// ends, if set, is told of the end of an input instead of the usual.
	ends  func(ctx context.Context, input string, err error) error
	early []string           // said before there was a face to say it
	next  *orchestrator.Next // where the person wants to go
}

// runInteractive talks with a person at a terminal, or reads line by line what
// comes through a pipe.
func runInteractive(ctx context.Context, env Env, fl *flags) error {
	in, out, ok := env.Terminal()
	if !ok {
		return runPiped(ctx, env, fl)
	}
	c := &console{}
	h, err := newHouse(env, fl, c.warn)
	if err != nil {
		return err
	}
	c.house = h
	c.words = h.words()
	c.input, c.printer = stdio.NewReader(in), stdio.NewWriter(ctx, out)
	if err := c.askTrust(ctx); err != nil {
		return err
	}
	if demo, err := c.withoutProvider(ctx); demo || err != nil {
		if demo {
			return runDemo(ctx, env, fl)
		}
		return err
	}
	if c.env.Getenv("TERM") == "dumb" {
		return c.runLines(ctx)
	}
	return c.run(ctx, in, out, c.converse)
}

// face is what the person sees of the program and answers it by.
type face interface {
	uip.Interactor
	Out() event.Sink
	Say(text string) error
	Run(ctx context.Context, first string, resume bool) error
	Resume(ctx context.Context)
}

// runLines talks at a terminal that can do no more than print lines.
func (c *console) runLines(ctx context.Context) error {
	c.face = &repl.Lines{
		In: c.input, Printer: c.printer, Render: term.New(term.Options{Out: c.printer, Words: c.words, Now: c.env.Now, ASCII: !speaksUTF8(c.env.Getenv)}),
		Words: c.words, Session: func() repl.Session { return visit{c.session, c} }, Status: c.status, Dir: c.root, After: c.after,
	}
	return c.converse(ctx)
}

// words speaks the language of the person.
func (h *house) words() *i18n.Printer {
	if h.flags.forMachines() {
		return i18n.For(i18n.English)
	}
	return i18n.For(i18n.Choose(cmp.Or(h.flags.lang, h.conf.UI.Lang), h.env.Getenv))
}

// warn tells the person something that is not part of any turn.
func (c *console) warn(text string) {
	if c.face == nil {
		c.early = append(c.early, text)
		return
	}
	_ = c.face.Say(c.palette.Paint(ink.Warn, c.words.Said(text))) // a terminal that is gone ends the program by itself
}

// run opens the terminal and talks until the person leaves.
func (c *console) run(ctx context.Context, in, out *os.File, talk func(context.Context) error) (err error) {
	printer := stdio.NewWriter(ctx, out)
	t, err := tty.Open(in, out, tty.Options{EscDelay: c.escDelay(), Writer: printer})
	if err != nil {
		return fmt.Errorf("open the terminal: %w", err)
	}
	c.env.exit.gives(func() { _ = t.Restore() }) // nobody is left to tell
	defer func() { err = errors.Join(err, t.Close()) }()
	if err := t.Raw(); err != nil {
		return fmt.Errorf("open the terminal: %w", err)
	}
	c.palette, c.size = c.paletteFor(true), t.Size
	c.face = repl.New(repl.Options{
		Terminal: t, Screen: tty.NewScreen(printer, t.Size, tty.ScreenOptions{NoReflow: noReflow(c.env.Getenv("TERM"))}),
		Words: c.words, Palette: c.palette, ASCII: !speaksUTF8(c.env.Getenv),
		Session: func() repl.Session { return visit{c.session, c} }, Status: c.status,
		Toggle: c.state.Toggled, Next: c.state.Next, Dir: c.root,
		Complete: c.complete, Edit: c.edit(in, out), Now: c.env.Now,
		Bell: func() { _, _ = io.WriteString(printer, "\a") }, After: c.after, Leaving: c.env.exit.leave,
	})
	return talk(ctx)
}

// converse opens the session, greets, talks, and says how to come back.
func (c *console) converse(ctx context.Context) error {
	c.attended = true
	sup, err := c.supervise(c.reach(c.face, c.warn, func() string { return c.session.ID }))
	if err != nil {
		return err
	}
	c.sup = sup
	c.keepOutOfGit()
	if c.session, err = c.open(ctx, sup, c.face.Out()); err != nil {
		return err
	}
	err = c.greet()
	if err == nil && c.flags.resumes() {
		err = c.recap(ctx)
	}
	if err != nil {
		return errors.Join(err, c.session.Close())
	}
	first := strings.Join(c.flags.args, " ")
	err = c.face.Run(ctx, first, first == "" && c.cutOff())
	if errors.Is(err, errGone) {
		err = nil
	}
	id := c.session.ID
	if closeErr := c.session.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("close the session: %w", closeErr)
	}
	if !c.flags.ephemeral {
		_ = c.face.Say(c.palette.Paint(ink.Dim, c.words.T("resume this session with: coder -r %s", id))) // said if it can be
	}
	c.mendSnapshots(ctx, sup, id)
	if errors.Is(err, repl.ErrInterrupted) {
		return &exitError{code: ExitInterrupted}
	}
	return err
}

// cutOff reports whether the session was left in the middle of a turn: what is
// to become of it is asked at once.
func (c *console) cutOff() bool {
	_, ok := c.session.Unfinished()
	return ok
}

// greet is the short banner.
func (c *console) greet() error {
	model, mode := c.status()
	dim := func(s string) string { return c.palette.Paint(ink.Dim, s) }
	lines := []string{fmt.Sprintf("coder %s", Version) + dim(" · "+c.words.T("model %s · mode %s · session %s", model, mode, c.session.ID))}
	if c.trusted == trust.Changed || len(trust.Settings(c.root)) > 0 && c.trusted != trust.Trusted {
		lines = append(lines, c.palette.Paint(ink.Warn, c.words.T("this folder is %s: its own settings may only tighten yours (coder trust changes that)", c.words.Said(c.trusted.String()))))
	}
	if missing := c.missing(); missing != "" {
		lines = append(lines, dim(missing))
	}
	if t, ok := c.session.Unfinished(); ok && t.Pending != nil && t.Pending.Author != event.ActorRecovery {
		lines = append(lines, c.palette.Paint(ink.Warn, c.words.T("the last turn was cut off while it waited for an answer: %s", oneLine(t.Title))))
	}
	if c.session.CutUndo() {
		lines = append(lines, c.palette.Paint(ink.Warn, c.words.T("the program ended while it undid or redid a turn; /undo shows what can be taken back now")))
	}
	lines = append(lines, dim(c.words.T("/help lists the commands · Enter sends · Esc stops a turn · Ctrl+D leaves")))
	for _, text := range c.early {
		lines = append(lines, c.palette.Paint(ink.Warn, c.words.Said(text)))
	}
	c.early = nil
	return c.face.Say(strings.Join(lines, "\n"))
}

// missing says which helpers are not installed.
func (c *console) missing() string {
	var all []string
	for _, name := range []string{"git"} {
		if _, err := exec.LookPath(name); err != nil {
			all = append(all, name)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return c.words.T("not installed, and used where it is: %s", strings.Join(all, ", "))
}

func (c *console) status() (model, mode string) {
	m, _ := c.state.Current()
	return c.modelName(), m.Name
}

// after takes note of the end of an input.
func (c *console) after(ctx context.Context, input string, err error) error {
	if c.ends != nil {
		return c.ends(ctx, input, err)
	}
	return c.goWhereTold(ctx)
}

// escDelay is how long an Esc may be the beginning of something longer: over a
// network its parts may arrive apart.
func (c *console) escDelay() time.Duration {
	if c.env.Getenv("SSH_TTY") != "" || c.env.Getenv("SSH_CONNECTION") != "" {
		return 90 * time.Millisecond
	}
	return 60 * time.Millisecond
}

// noReflow reports whether a terminal cuts lines when it gets narrower.
func noReflow(name string) bool {
	return name == "linux" || name == "xterm" || strings.HasPrefix(name, "screen") && !strings.Contains(name, "tmux")
}

// speaksUTF8 reports whether the person's terminal shows more than ASCII.
func speaksUTF8(getenv func(string) string) bool {
	name := strings.ToLower(cmp.Or(getenv("LC_ALL"), getenv("LC_CTYPE"), getenv("LANG")))
	return name == "" || strings.Contains(name, "utf-8") || strings.Contains(name, "utf8")
}

// paletteFor is the colours to use.
func (h *house) paletteFor(isTerminal bool) term.Palette {
	switch {
	case h.flags.noColor || h.conf.UI.Color == "never":
		return term.Palette{}
	case h.conf.UI.Color == "always":
		isTerminal = true
	}
	return term.PaletteFor(h.env.Getenv, isTerminal)
}

// askTrust asks once whether a project's own settings may hold.
func (c *console) askTrust(ctx context.Context) error {
	if !c.needsTrust("") || c.trust().Declined(c.root) {
		return nil
	}
	fmt.Fprintln(c.printer, c.words.T("This folder brings settings of its own that change what the program may do:"))
	for _, w := range c.report.Warnings {
		fmt.Fprintf(c.printer, "  %s\n", c.words.Said(w.String()))
	}
	yes, err := c.confirm(ctx, c.words.T("Do you trust %s? [y/N] ", c.root), false)
	if err != nil {
		return err
	}
	c.early = nil
	if !yes {
		return c.trust().Decline(c.root)
	}
	if err := c.trust().Give(c.root); err != nil {
		return inputf("%v", err)
	}
	h, err := newHouse(c.env, c.flags, c.warn)
	if err == nil {
		c.house = h
	}
	return err
}

// withoutProvider says how to connect a provider where there is none, and
// offers the demo.
func (c *console) withoutProvider(ctx context.Context) (demo bool, err error) {
	_, err = c.provider()
	var known *exitError
	if err == nil || !errors.As(err, &known) || known.code != ExitConfig || c.conf.Provider.BaseURL != "" {
		return false, err
	}
	fmt.Fprintln(c.printer, c.words.T("No provider is connected yet. Set CODER_BASE_URL, CODER_API_KEY and CODER_MODEL, or the key of your vendor, such as OPENAI_API_KEY with CODER_MODEL; the README says more."))
	demo, askErr := c.confirm(ctx, c.words.T("See the demo instead? Its model is a script, everything else is real. [Y/n] "), true)
	if askErr != nil || demo {
		return demo, askErr
	}
	return false, err
}

// confirm asks a yes-or-no question on a terminal that is in its usual mode.
func (c *console) confirm(ctx context.Context, question string, byDefault bool) (bool, error) {
	if _, err := io.WriteString(c.printer, question); err != nil {
		return false, err
	}
	line, err := c.input.Line(ctx, promptLimit)
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err != nil:
		return false, nil // nobody answers
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "":
		return byDefault, nil
	case "y", "yes", "是", "好":
		return true, nil
	}
	return false, nil
}

// edit returns a function that lets the person write in their own editor.
func (c *console) edit(in, out *os.File) func(context.Context, string) (string, error) {
	program := cmp.Or(c.env.Getenv("VISUAL"), c.env.Getenv("EDITOR"), "vi")
	return func(ctx context.Context, text string) (string, error) {
		path, done, err := c.draft(text)
		if err != nil {
			return text, err
		}
		defer done()
		words := strings.Fields(program)
		cmd := exec.CommandContext(ctx, words[0], append(words[1:], path)...)
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = stdio.Grace
		cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Dir, cmd.Env = in, out, out, c.root, c.childEnv()
		if err := cmd.Run(); err != nil {
			return text, fmt.Errorf("%s: %w", program, err)
		}
		written, err := repofile.Own(path, promptLimit)
		return strings.TrimRight(string(written), "\n"), err
	}
}

// draft puts text into a file for an editor, where it is swept if this process is
// killed. Done removes it, and what the editor left beside it.
func (c *console) draft(text string) (path string, done func(), err error) {
	dir := filepath.Join(c.home, drafts)
	if c.home == "" || os.MkdirAll(dir, 0o700) != nil {
		dir = os.TempDir()
	}
	release, err := atomicfile.Hold(dir)
	if err != nil {
		return "", nil, err
	}
	f, err := os.CreateTemp(dir, atomicfile.Prefix+"*.md")
	if err != nil {
		release()
		return "", nil, err
	}
	done = func() {
		defer release()
		names, _ := filepath.Glob(f.Name() + "*") // the pattern is good
		for _, name := range names {
			_ = os.Remove(name)
		}
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		done()
		return "", nil, err
	}
	return f.Name(), done, nil
}

// runPiped answers what comes through a pipe, line by line, without a byte
// that is meant for a terminal.
func runPiped(ctx context.Context, env Env, fl *flags) error {
	var (
		h     *house
		lines []string
	)
	h, err := newHouse(env, fl, warner(env, fl))
	if err != nil {
		return err
	}
	if first := strings.Join(fl.args, " "); first != "" {
		lines = append(lines, first)
	}
	face := term.New(term.Options{Out: env.Stdout, Palette: h.paletteFor(false), Words: h.words(), Now: env.Now})
	out := newOutput(env, fl)
	out.Sink, out.text = event.Tee(event.SinkFunc(out.count), face), false
	err = h.sit(ctx, out, func(s *sitting) error {
		for _, line := range lines {
			if err := h.pipedTurn(ctx, s, out, line); err != nil {
				return err
			}
		}
		for !s.over {
			line, err := env.input.Line(ctx, promptLimit)
			switch {
			case errors.Is(err, io.EOF):
				return nil
			case errors.Is(err, stdio.ErrTooLong):
				return tooLong()
			case err != nil:
				return err
			case strings.TrimSpace(line) == "":
				continue
			}
			if err := h.pipedTurn(ctx, s, out, line); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
	if n := len(out.tally.Denials); err == nil && n > 0 {
		return &exitError{code: ExitRefused, text: out.refused(n)}
	}
	return err
}

// pipedTurn runs one line. A turn that goes wrong has said so and does not keep
// the next from running.
func (h *house) pipedTurn(ctx context.Context, s *sitting, out *output, line string) error {
	turn, done := s.waits.turn(ctx)
	did, err := s.Run(turn, line, out)
	done()
	if followErr := s.follow(ctx, out, did.Next); followErr != nil {
		h.warn(message(followErr))
	}
	if errors.Is(err, uip.ErrParked) {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return nil // what went wrong the face has shown
}
