package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"coder/internal/agent/orchestrator"
	"coder/internal/agent/supervisor"
	"coder/internal/app"
	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/core/sanitize"
	"coder/internal/core/uip"
	"coder/internal/host/pathfind"
	"coder/internal/host/stdio"
	"coder/internal/model/provider"
	"coder/internal/policy/mode"
	"coder/internal/record/typed"
	"coder/internal/serve"
	"coder/internal/slash"
	"coder/internal/ui/lineedit"
	"coder/internal/ui/repl"
	"coder/internal/ui/term"
	"coder/internal/ui/term/ink"
	"coder/internal/ui/tty"
)

// terminal is the program at a terminal.
type terminal struct {
	invocation *invocation
	app        *app.Workspace
	in, out    *os.File
	input      *stdio.Reader // lines typed at the terminal in its usual mode
	printer    io.Writer     // writes to the terminal
	size       func() (cols, rows int)

	palette        term.Palette
	theme          string // the theme of colours
	face           face
	host           *serve.Host
	shown          app.Screen                // as sessions see it
	pastMessages   []string                  // the user's messages before the session was continued
	paths          *pathfind.Finder          // the workspace's files, for naming them
	remote         serve.Listener            // for messages from elsewhere
	statusLine     *statusLine               // the line above the prompt
	earlyMessages  []string                  // messages from before there was a face
	destination    *orchestrator.Destination // where the user wants to go
	rephraseText   string                    // text that they may want to rephrase
	returnedDraft  lineedit.Draft            // what could not be sent as it is
	imagesRefused  bool                      // since the model takes no pictures
	newerVersion   chan string               // a newer version of coder, if searched for
	watchedSession string                    // another process's session to watch
	// onInputEnd, if set, is called at the end of an input instead of the usual.
	onInputEnd func(ctx context.Context, input string, err error) error
}

// face shows the program to the user and reads their answers.
type face interface {
	uip.Interactor
	Sink() event.Sink
	Print(text string) error
	PrintLines(lines ...[]ink.Span) error
	ShowAnswer(answer event.MessageAdded, bang bool) error
	ShowQuestion(q uip.Request, answer string) error
	RestoreUnsent(repl.UnsentText)
	Pick(ctx context.Context, p lineedit.Picker) (string, error)
	Run(ctx context.Context, first lineedit.Draft, resume bool) error
	Resume(ctx context.Context)
}

// runInteractive converses with the user at a terminal, or reads the lines of a pipe.
func (inv *invocation) runInteractive(ctx context.Context) error {
	in, out, ok := inv.Terminal()
	switch {
	case !ok && inv.flags.isOneWordPrompt() && in != nil && terminalWidth(in) > 0: // the user expects a list
		word := inv.flags.args[0]
		return usageErrorf("unknown command %s; coder help all lists them (to send it as a prompt: coder -- %s)", word, word)
	case !ok:
		return inv.runPiped(ctx)
	}
	inv.flags.HasUser = true
	t := &terminal{invocation: inv, in: in, out: out, input: stdio.NewReader(in), printer: stdio.NewWriter(ctx, out)}
	var err error
	if t.app, err = inv.newApp(t.warn); err != nil {
		return err
	}
	if err := t.askTrust(ctx); err != nil {
		return err
	}
	if demo, err := t.setupProvider(ctx); demo || err != nil {
		if demo {
			return inv.runDemo(ctx)
		}
		return err
	}
	if inv.isLineMode() {
		return t.runLines(ctx)
	}
	if err := t.runScreen(ctx, t.converse); err != nil || t.watchedSession == "" {
		return err
	}
	inv.flags.args = []string{t.watchedSession}
	return inv.runWatch(ctx, t.app)
}

// warn shows the user a message outside turns.
func (t *terminal) warn(text string) {
	if t.face == nil {
		t.earlyMessages = append(t.earlyMessages, text)
		return
	}
	_ = t.printText(ink.Warn, t.invocation.printer.TranslateText(text)) // a lost terminal ends the program by itself
}

// printText shows the user lines in one style.
func (t *terminal) printText(role ink.Role, text string) error {
	var lines [][]ink.Span
	for line := range strings.SplitSeq(sanitize.Text(text), "\n") {
		lines = append(lines, span(role, line))
	}
	return t.face.PrintLines(lines...)
}

func span(role ink.Role, text string) []ink.Span {
	return []ink.Span{{Style: ink.Style{Role: role}, Text: text}}
}

// isLineMode reports whether only lines are wanted, or can be printed.
func (inv *invocation) isLineMode() bool {
	return inv.settings.Config.UI.Plain || inv.Getenv("TERM") == "dumb"
}

// runLines converses in lines until the user leaves.
func (t *terminal) runLines(ctx context.Context) (err error) {
	keys, err := t.openKeyboard(tty.Options{LinesOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, keys.Close()) }()
	t.statusLine = newStatusLine(ctx, t)
	defer t.statusLine.close()
	page := repl.NewLineScreen(t.printer, keys.HadEcho())
	t.face = &repl.LineREPL{
		Terminal: keys, Screen: page, Renderer: term.New(term.Options{
			Out: page, Width: func() int { return terminalWidth(t.out) }, Translator: t.invocation.printer,
			Now: t.invocation.Now, ASCII: t.invocation.useASCII(), ScreenReader: t.invocation.settings.Config.UI.Plain,
			ShowImmediately: true, ThoughtLine: t.app.Config.UI.Thinking == "line",
		}),
		Translator: t.invocation.printer, Session: t.replSession, Status: t.modelAndMode, StatusLine: t.statusLine.Line,
		Compact: t.isCompact(), Dir: t.app.Root, CanTrust: t.app.CanTrust, AllowDirect: t.bangTruster(),
		CtrlCStops: t.app.Config.UI.CtrlC == "stop", AfterInput: t.handleInputEnd, OnSent: t.recordSent,
		SaveUnsent: t.recordUnsent, Running: t.running, OnLeave: t.invocation.shutdown.markLeaving,
	}
	return t.converse(ctx)
}

// openKeyboard opens the terminal for key input until Close.
func (t *terminal) openKeyboard(o tty.Options) (keys *tty.Terminal, err error) {
	o.Writer, o.EscDelay = t.printer, 60*time.Millisecond // an Esc may begin something longer
	if t.invocation.Getenv("SSH_TTY") != "" || t.invocation.Getenv("SSH_CONNECTION") != "" {
		o.EscDelay = 90 * time.Millisecond // its parts may arrive separately
	}
	if keys, err = tty.Open(t.in, t.out, o); err != nil {
		return nil, message.Errorf("open the terminal: %w", err)
	}
	t.invocation.shutdown.setRestore(func() { _ = keys.Restore() }) // no one is left to see an error
	if err := keys.SetRaw(); err != nil {
		return nil, errors.Join(message.Errorf("open the terminal: %w", err), keys.Close())
	}
	return keys, nil
}

// runScreen opens the terminal and converses until the user leaves.
func (t *terminal) runScreen(ctx context.Context, talk func(context.Context) error) (err error) {
	name := t.invocation.Getenv("TERM") // some terminals cut lines when they get narrower
	noReflow := name == "linux" || name == "xterm" || strings.HasPrefix(name, "screen") && !strings.Contains(name, "tmux")
	screen, err := t.openKeyboard(tty.Options{Keys: name != "linux", Background: t.needsBackground(),
		Title: t.windowTitle(false, false)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, screen.Close()) }()
	t.statusLine = newStatusLine(ctx, t)
	defer t.statusLine.close()
	t.paths = pathfind.New(t.app.WalkPaths, t.invocation.Now)
	defer t.paths.Close()
	if name != "linux" {
		// a terminal that is gone ends the program by itself
		t.shown.Copy = func(bytes string) { _, _ = io.WriteString(t.printer, bytes) }
	}
	t.palette, t.size, t.theme = t.invocation.palette(true), screen.Size, t.app.Theme()
	if _, err := t.palette.WithColours(t.app.Config.UI.Colors); err != nil {
		t.warn(err.Error())
	}
	t.face = repl.New(repl.Options{
		Terminal: screen, Screen: tty.NewScreen(t.printer, screen.Size, tty.ScreenOptions{NoReflow: noReflow}),
		Translator: t.invocation.printer, Palette: t.palette, PaletteFor: t.setBackground, ASCII: t.invocation.useASCII(),
		Session: t.replSession, Status: t.modelAndMode, StatusLine: t.statusLine.Line, Compact: t.isCompact(),
		ToggleMode: t.app.ModeState.ToggleTarget, NextMode: mode.Next, Dir: t.app.Root,
		ThoughtLine: t.app.Config.UI.Thinking == "line", Vim: t.app.Config.UI.Vim, KeyBindings: t.bindKeys(),
		Complete: t.completeInput, Suggest: t.suggestWhileTyping, MaxCompletions: maxSimilarFiles, ListFor: t.argumentList,
		KeyHelp: t.keyTable, CanTrust: t.app.CanTrust, AllowDirect: t.bangTruster(),
		CtrlCStops: t.app.Config.UI.CtrlC == "stop", DraftFromPaths: t.droppedDraft, Clipboard: t.readClipboard,
		Edit: t.openEditor, Page: t.pager(), Now: t.invocation.Now,
		OnSent: t.recordSent, SaveUnsent: t.recordUnsent,
		Earlier: func() []string { return t.app.TypedBook().Sent(t.session().ID, t.pastMessages...) },
		// a lost terminal ends the program by itself
		Notify: t.notifier(), SetTitle: func(asks, runs bool) { _ = screen.SetTitle(t.windowTitle(asks, runs)) },
		AfterInput: t.handleInputEnd, OnLeave: t.invocation.shutdown.markLeaving, NextRemote: t.takeRemote,
	})
	defer t.remote.Close()
	return talk(ctx)
}

// bangTruster allows the user's own commands without approval from then on, and says where that is saved; nil
// if their settings do not decide it.
func (t *terminal) bangTruster() func() error {
	if !t.app.CanTrustBang() {
		return nil
	}
	return func() error {
		if err := t.app.TrustBang(); err != nil {
			return err
		}
		return t.printText(ink.Dim, t.invocation.printer.T("Saved approval.bang = direct in %s.",
			filepath.Join(t.app.Home, "config.json")))
	}
}

// takeRemote returns a message that the user sent to the session from another process.
func (t *terminal) takeRemote() (repl.RemoteMessage, bool) {
	t.remote.Listen(t.app, t.host.ID(), serve.MessageSlot, serve.StopSlot)
	said, ok := t.remote.Next()
	return repl.RemoteMessage(said), ok
}

// windowTitle returns the window title: the folder, and whether a turn runs or a question is open. It is empty
// if the user wants none.
func (t *terminal) windowTitle(asks, runs bool) string {
	if !t.app.Config.UI.Title || t.invocation.Getenv("TERM") == "linux" {
		return ""
	}
	text := t.invocation.printer.DisplaySigns("coder · ") + sanitize.Line(filepath.Base(t.app.Root), 60)
	switch {
	case asks:
		return "? " + text
	case runs:
		return "* " + text
	}
	return text
}

// needsBackground reports whether to request the terminal's background color, which is only needed if it
// decides something.
func (t *terminal) needsBackground() bool {
	ui := t.app.Config.UI
	return ui.Theme == "auto" && t.invocation.palette(true).Level > term.None && t.invocation.Getenv("TERM") != "linux"
}

// setBackground returns the palette for the background color that the terminal reports.
func (t *terminal) setBackground(light bool) term.Palette {
	theme := "dark"
	if light {
		theme = "light"
	}
	t.palette = t.palette.WithTheme(theme)
	return t.palette
}

// applyTheme applies the chosen theme's colors.
func (t *terminal) applyTheme() {
	theme := t.app.Theme()
	face, ok := t.face.(interface{ SetPalette(term.Palette) })
	if theme == t.theme || !ok {
		return
	}
	t.theme = theme
	t.invocation.settings.Config.UI.Theme = theme
	t.palette = t.invocation.palette(true)
	face.SetPalette(t.palette)
}

// notifier returns a function that notifies the user in their chosen way; nil if they chose none.
func (t *terminal) notifier() func(text string) {
	form := map[string]string{"bell": "\a", "osc9": "\x1b]9;%s\x1b\\",
		"osc777": "\x1b]777;notify;coder;%s\x1b\\"}[t.app.Config.UI.Notify]
	if form == "" {
		return nil
	}
	return func(text string) {
		if strings.Contains(form, "%s") {
			text = fmt.Sprintf(form, strings.ReplaceAll(sanitize.Line(sanitize.Mask(text), 120), ";", ","))
		} else {
			text = form
		}
		_, _ = io.WriteString(t.printer, text) // a lost terminal ends the program by itself
	}
}

// converse opens the session, introduces it, converses, and says how to come back.
func (t *terminal) converse(ctx context.Context) (err error) {
	if t.invocation.flags.session.PickSession || t.warnLastOpenElsewhere() {
		if err := t.pickSession(ctx); err != nil {
			if errors.Is(err, repl.ErrCanceled) {
				return nil
			}
			return err
		}
	}
	which := t.invocation.flags.session
	last := which.ContinueLast && which.ResumeID == ""
	onlyDraft := last && t.hasOnlyDraft()
	switch {
	case onlyDraft:
		which = app.SessionChoice{NewID: which.NewID}
	case last:
		which.ResumeID = t.app.DraftSession()
	}
	if err := t.openSession(ctx, which); err != nil {
		return err
	}
	err = t.showBanner()
	if err == nil && (which.IsResume() || onlyDraft) {
		err = t.showRecap(ctx)
		wanted := typed.DraftAbandoned
		if last {
			wanted = typed.DraftNewest
		}
		t.restoreDraft(ctx, wanted)
	}
	if err != nil {
		return errors.Join(err, t.closeSession(ctx))
	}
	first, err := t.invocation.initialDraft(t.app)
	if err != nil {
		return errors.Join(err, t.closeSession(ctx))
	}
	if word := t.invocation.flags.isOneWordPrompt(); word || len(t.invocation.flags.args) == 0 && !first.IsEmpty() {
		if word {
			// said if it can be
			_ = t.printText(ink.Warn, t.invocation.printer.T("unknown command %s; Enter sends it to the model", first.Text()))
		}
		t.face.RestoreUnsent(repl.UnsentText{Draft: first.Text(), Again: first})
		first = lineedit.Draft{}
	}
	_, cutOff := t.session().UnfinishedTask() // the user is asked immediately what to do with it
	err = t.face.Run(ctx, first, first.IsEmpty() && cutOff)
	if errors.Is(err, errUserLeft) {
		err = nil
	}
	running := t.running()
	done := t.host.Close(ctx)
	if closeErr := t.invocation.recordClose(done); err == nil {
		err = closeErr
	}
	t.printEndedJobs(running)
	if !t.invocation.flags.Ephemeral && !done.Unused {
		said := t.invocation.printer.T("resume this session with: coder -r %s", done.ID)
		// errors are ignored; one copyable unit
		_ = t.printText(ink.Dim, strings.Replace(said, "coder -r ", "coder"+ink.NoBreakSpace+"-r"+ink.NoBreakSpace, 1))
	}
	if repl.IsTurnInterrupted(err) {
		// errors are ignored
		_ = t.printText(ink.Dim,
			t.invocation.printer.T("Ctrl+C ends coder; Esc stops a turn. With ui.ctrl_c = stop Ctrl+C stops the turn first."))
	}
	if errors.Is(err, repl.ErrInterrupted) {
		return &exitError{code: ExitInterrupted}
	}
	return err
}

// openSession opens the session.
func (t *terminal) openSession(ctx context.Context, which app.SessionChoice) (err error) {
	t.shown.OnJobEnded = t.showJobEnded
	o := serve.Options{Which: which, Sink: t.face.Sink(), User: t.face, Screen: t.shown, RemoteAnswers: true,
		Report: t.warn}
	if t.host, err = serve.Open(ctx, t.app, o); err == nil {
		t.invocation.shutdown.markSessionOpen()
	}
	return err
}

// session returns the open session.
func (t *terminal) session() *supervisor.Session { return t.host.Session() }

// running lists the session's running background commands.
func (t *terminal) running() []string { return t.host.Inside().RunningJobs() }

// closeSession closes the session.
func (t *terminal) closeSession(ctx context.Context) error {
	return t.invocation.recordClose(t.host.Close(ctx))
}

// printEndedJobs lists the background commands that ended with the session.
func (t *terminal) printEndedJobs(commands []string) {
	if len(commands) > 0 {
		// errors are ignored
		_ = t.printText(ink.Warn, t.invocation.printer.T("no longer running in the background: %s",
			singleLine(strings.Join(commands, ", "))))
	}
}

// showJobEnded reports that a background command has finished.
func (t *terminal) showJobEnded(j slash.Job) {
	w := t.invocation.printer
	// errors are ignored
	_ = t.printText(ink.Dim, w.T("%s finished: %s", j.ID,
		strings.Join([]string{singleLine(j.Command), w.TranslateText(j.State), j.Elapsed}, t.separator())))
}

// showBanner introduces the session, with what the user must know of it.
func (t *terminal) showBanner() error {
	model, mode := t.modelAndMode()
	w := t.invocation.printer
	lines := [][]ink.Span{append(span(ink.Plain, "coder "+app.Version),
		span(ink.Dim, w.DisplaySigns(" · ")+w.T("model %s · mode %s · session %s", sanitize.Line(model, 80), mode,
			t.session().ID))...)}
	add := func(role ink.Role, text string) { lines = append(lines, span(role, sanitize.Line(text, 0))) }
	if t.app.IgnoresProject() {
		add(ink.Warn, w.T("this folder is %s: its own settings may only tighten yours (coder trust changes that)",
			w.TranslateText(t.app.Trusted.String())))
	}
	if t.app.IsModelAssumed() {
		add(ink.Warn, w.T("no model was chosen: the endpoint may not have %s; /model lists its models", t.app.ModelName()))
	}
	if text := t.invocation.wideFolderWarning(t.app.Root); text != "" {
		add(ink.Warn, text)
	}
	if _, err := t.app.Launcher().Find("git"); err != nil {
		add(ink.Dim, w.T("not installed, optional: %s", "git"))
	}
	command, _ := t.session().UnfinishedCommand() // shown when it continues
	if u, ok := t.session().UnfinishedTask(); ok && u.Pending != nil && u.Pending.Author != event.ActorRecovery &&
		command == "" {
		add(ink.Warn, w.T("the last turn was interrupted while it waited for an answer: %s", singleLine(u.Title)))
	}
	if t.session().WasUndoInterrupted() {
		add(ink.Warn, w.T("the program ended during an undo or redo; /undo shows what can be undone now"))
	}
	if t.invocation.isLineMode() {
		add(ink.Dim, w.T("/help commands · Enter sends · Esc stops a turn · Ctrl+D quits"))
	} else {
		add(ink.Dim, w.T("/help commands · ? keys · Enter sends · Esc stops a turn · Ctrl+D quits"))
	}
	for _, text := range t.earlyMessages {
		for line := range strings.SplitSeq(w.TranslateText(text), "\n") {
			add(ink.Warn, line)
		}
	}
	t.earlyMessages = nil
	return t.face.PrintLines(lines...)
}

func (t *terminal) modelAndMode() (model, mode string) {
	m, _ := t.app.ModeState.Current()
	return t.app.ModelName(), m.Name
}

// handleInputEnd handles the end of an input.
func (t *terminal) handleInputEnd(ctx context.Context, input string, err error) error {
	if t.paths != nil {
		t.paths.Invalidate()
	}
	if said := t.showTurnLine(ctx); said != nil {
		return said
	}
	t.showNewerVersion()
	t.applyTheme()
	t.statusLine.noteInputEnded()
	if t.onInputEnd != nil {
		return t.onInputEnd(ctx, input, err)
	}
	return t.switchSession(ctx)
}

// errUserLeft ends the conversation at a terminal normally.
var errUserLeft = errors.New("the person has left")

// replSession returns the session as the terminal sees it.
func (t *terminal) replSession() repl.Session { return replSession{t.session(), t} }

// replSession is a session at a terminal: it records where the user goes next.
type replSession struct {
	*supervisor.Session
	terminal *terminal
}

// Continue asks the user about the turn that was cut off.
func (s replSession) Continue(ctx context.Context, out event.Sink) (string, error) {
	answer, words, err := s.terminal.host.AskResume(ctx, out)
	if words == "" || err != nil {
		return answer, err
	}
	return s.Run(ctx, lineedit.NewDraft(words, nil), out)
}

// Run takes what the person typed. A message that could not be sent with what was attached comes
// back into the line; sent once more, it goes without the files that cannot be read.
func (s replSession) Run(ctx context.Context, input lineedit.Draft, out event.Sink) (string, error) {
	if t, ok := s.Session.UnfinishedTask(); ok {
		s.terminal.warn(fmt.Sprintf("closed the interrupted turn: %s", singleLine(t.Title)))
	}
	if !isCommandText(input.Text()) {
		s.terminal.checkForUpdate(ctx)
	}
	said := orchestrator.Input{UserText: input.Words(), Pictures: input.Pictures()}
	said.SkipUnattachable = !s.terminal.imagesRefused && !s.terminal.returnedDraft.IsEmpty() &&
		s.terminal.returnedDraft.Text() == input.Text()
	s.terminal.returnedDraft = lineedit.Draft{}
	done, err := s.terminal.host.RunInput(ctx, said, out)
	s.terminal.destination, s.terminal.rephraseText = done.Destination, done.Draft
	unsent := new(orchestrator.AttachError)
	if s.terminal.imagesRefused = errors.Is(err, provider.ErrNoImages); s.terminal.imagesRefused ||
		errors.As(err, &unsent) {
		s.terminal.returnedDraft, s.terminal.rephraseText = input, input.Text()
	}
	return done.Text, err
}

// switchSession opens another session after the input that requested it. If that fails the current one stays.
func (t *terminal) switchSession(ctx context.Context) error {
	to, again := t.destination, t.rephraseText
	t.destination, t.rephraseText = nil, ""
	switch {
	case to == nil && again != "":
		t.face.RestoreUnsent(repl.UnsentText{Draft: again, Again: t.returnedDraft})
		return t.explainReturned()
	case to == nil:
		return nil
	case to.Exit:
		return errUserLeft
	}
	running := t.running()
	left, err := t.host.SwitchTo(ctx, to)
	if err != nil {
		return t.printText(ink.Bad, t.invocation.printer.Translate(errorMessage(err)))
	}
	if err := t.invocation.recordClose(*left); err != nil {
		t.warn(err.Error())
	}
	t.printEndedJobs(running)
	if err := t.showBanner(); err != nil {
		return err
	}
	if err := t.showRecap(ctx); err != nil {
		return err
	}
	t.restoreDraft(ctx, typed.DraftOwn)
	if _, cutOff := t.session().UnfinishedTask(); cutOff {
		t.face.Resume(ctx)
	}
	return nil
}

// explainReturned says what to do with a message that came back into the line.
func (t *terminal) explainReturned() error {
	switch {
	case t.returnedDraft.IsEmpty():
		return nil
	case t.imagesRefused:
		return t.printText(ink.Dim,
			t.invocation.printer.T("Your message is back in the line: delete the image, or choose another model with /model."))
	}
	return t.printText(ink.Dim,
		t.invocation.printer.T("Your message is back in the line: Enter sends it without the file."))
}

// isUTF8 reports whether the user's terminal shows more than ASCII.
func (inv *invocation) isUTF8() bool {
	name := strings.ToLower(cmp.Or(inv.Getenv("LC_ALL"), inv.Getenv("LC_CTYPE"), inv.Getenv("LANG")))
	return name == "" || strings.Contains(name, "utf-8") || strings.Contains(name, "utf8")
}

// useASCII reports whether coder's own signs must be ASCII.
func (inv *invocation) useASCII() bool { return inv.settings.Config.UI.Plain || !inv.isUTF8() }

// palette returns the colors to use.
func (inv *invocation) palette(isTerminal bool) term.Palette {
	ui := inv.settings.Config.UI
	var p term.Palette
	if !inv.flags.NoColor && ui.Color != "never" {
		p = term.DetectPalette(inv.Getenv, isTerminal || ui.Color == "always").WithTheme(ui.Theme)
		p, _ = p.WithColours(ui.Colors) // their errors are shown at a terminal
	}
	p.Links = isTerminal && inv.Getenv("TERM") != "dumb" &&
		(ui.Links == "on" || ui.Links == "auto" && term.SupportsLinks(inv.Getenv))
	return p
}
