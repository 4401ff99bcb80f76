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
	inv     *invocation
	app     *app.Workspace
	in, out *os.File
	input   *stdio.Reader // lines typed at the terminal in its usual mode
	printer io.Writer     // writes to the terminal
	size    func() (cols, rows int)

	colours term.Palette
	theme   string // the theme of colours
	face    face
	host    *serve.Host
	shown   app.Screen         // as sessions see it
	told    []string           // the user's messages before the session was continued
	paths   *pathfind.Finder   // the workspace's files, for naming them
	remote  serve.Listener     // for messages from elsewhere
	above   *above             // the line above the prompt
	early   []string           // messages from before there was a face
	next    *orchestrator.Next // where the user wants to go
	again   string             // text that they may want to rephrase
	back    lineedit.Draft     // what could not be sent as it is
	refused bool               // since the model takes no pictures
	newer   chan string        // a newer version of coder, if searched for
	watch   string             // another process's session to watch
	// ends, if set, is called at the end of an input instead of the usual.
	ends func(ctx context.Context, input string, err error) error
}

// face shows the program to the user and reads their answers.
type face interface {
	uip.Interactor
	Out() event.Sink
	Say(text string) error
	Tell(lines ...[]ink.Span) error
	Recall(answer event.MessageAdded, bang bool) error
	RecallQuestion(q uip.Request, answer string) error
	Put(repl.Unsent)
	Pick(ctx context.Context, p lineedit.Picker) (string, error)
	Run(ctx context.Context, first lineedit.Draft, resume bool) error
	Resume(ctx context.Context)
}

// runInteractive converses with the user at a terminal, or reads the lines of a pipe.
func (inv *invocation) runInteractive(ctx context.Context) error {
	in, out, ok := inv.Terminal()
	switch {
	case !ok && inv.flags.oneWord() && in != nil && width(in) > 0: // the user expects a list
		word := inv.flags.args[0]
		return usagef("unknown command %s; coder help all lists them (to send it as a prompt: coder -- %s)", word, word)
	case !ok:
		return inv.runPiped(ctx)
	}
	inv.flags.Attended = true
	t := &terminal{inv: inv, in: in, out: out, input: stdio.NewReader(in), printer: stdio.NewWriter(ctx, out)}
	var err error
	if t.app, err = inv.newApp(t.warn); err != nil {
		return err
	}
	if err := t.askTrust(ctx); err != nil {
		return err
	}
	if demo, err := t.withoutProvider(ctx); demo || err != nil {
		if demo {
			return inv.runDemo(ctx)
		}
		return err
	}
	if inv.inLines() {
		return t.openLines(ctx)
	}
	if err := t.open(ctx, t.converse); err != nil || t.watch == "" {
		return err
	}
	inv.flags.args = []string{t.watch}
	return inv.runWatch(ctx, t.app)
}

// warn shows the user a message outside turns.
func (t *terminal) warn(text string) {
	if t.face == nil {
		t.early = append(t.early, text)
		return
	}
	_ = t.say(ink.Warn, t.inv.words.Said(text)) // a lost terminal ends the program by itself
}

// say shows the user lines in one style.
func (t *terminal) say(role ink.Role, text string) error {
	var lines [][]ink.Span
	for line := range strings.SplitSeq(sanitize.Text(text), "\n") {
		lines = append(lines, span(role, line))
	}
	return t.face.Tell(lines...)
}

func span(role ink.Role, text string) []ink.Span {
	return []ink.Span{{Look: ink.Look{Role: role}, Text: text}}
}

// inLines reports whether only lines are wanted, or can be printed.
func (inv *invocation) inLines() bool {
	return inv.settings.Config.UI.Plain || inv.Getenv("TERM") == "dumb"
}

// openLines converses in lines until the user leaves.
func (t *terminal) openLines(ctx context.Context) (err error) {
	keys, err := t.take(tty.Options{Lines: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, keys.Close()) }()
	t.above = newAbove(ctx, t)
	defer t.above.close()
	page := repl.NewPage(t.printer, keys.Echoed())
	t.face = &repl.Lines{
		Terminal: keys, Page: page, Render: term.New(term.Options{
			Out: page, Width: func() int { return width(t.out) }, Words: t.inv.words, Now: t.inv.Now, ASCII: t.inv.ascii(), Spoken: t.inv.settings.Config.UI.Plain, AtOnce: true, ThoughtLine: t.app.Config.UI.Thinking == "line",
		}),
		Words: t.inv.words, Session: t.view, Status: t.status, Above: t.above.Line, Compact: t.compact(), Dir: t.app.Root, Trust: t.app.Trustable, Direct: t.direct(), CtrlCStops: t.app.Config.UI.CtrlC == "stop", After: t.after, Sent: t.sent, Unsent: t.unsent, Running: t.running, Leaving: t.inv.exit.leave,
	}
	return t.converse(ctx)
}

// take opens the terminal for key input until Close.
func (t *terminal) take(o tty.Options) (keys *tty.Terminal, err error) {
	o.Writer, o.EscDelay = t.printer, 60*time.Millisecond // an Esc may begin something longer
	if t.inv.Getenv("SSH_TTY") != "" || t.inv.Getenv("SSH_CONNECTION") != "" {
		o.EscDelay = 90 * time.Millisecond // its parts may arrive separately
	}
	if keys, err = tty.Open(t.in, t.out, o); err != nil {
		return nil, fmt.Errorf("open the terminal: %w", err)
	}
	t.inv.exit.onStuck(func() { _ = keys.Restore() }) // no one is left to see an error
	if err := keys.Raw(); err != nil {
		return nil, errors.Join(fmt.Errorf("open the terminal: %w", err), keys.Close())
	}
	return keys, nil
}

// open opens the terminal and converses until the user leaves.
func (t *terminal) open(ctx context.Context, talk func(context.Context) error) (err error) {
	name := t.inv.Getenv("TERM") // some terminals cut lines when they get narrower
	noReflow := name == "linux" || name == "xterm" || strings.HasPrefix(name, "screen") && !strings.Contains(name, "tmux")
	screen, err := t.take(tty.Options{Keys: name != "linux", Background: t.asksBackground(), Title: t.title(false, false)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, screen.Close()) }()
	t.above = newAbove(ctx, t)
	defer t.above.close()
	t.paths = pathfind.New(t.app.Paths, t.inv.Now)
	defer t.paths.Close()
	if name != "linux" {
		t.shown.Copy = func(bytes string) { _, _ = io.WriteString(t.printer, bytes) } // a terminal that is gone ends the program by itself
	}
	t.colours, t.size, t.theme = t.inv.palette(true), screen.Size, t.app.Theme()
	if _, err := t.colours.With(t.app.Config.UI.Colors); err != nil {
		t.warn(err.Error())
	}
	t.face = repl.New(repl.Options{
		Terminal: screen, Screen: tty.NewScreen(t.printer, screen.Size, tty.ScreenOptions{NoReflow: noReflow}),
		Words: t.inv.words, Palette: t.colours, Recolour: t.recolour, ASCII: t.inv.ascii(),
		Session: t.view, Status: t.status, Above: t.above.Line, Compact: t.compact(),
		Toggle: t.app.Modes.Toggled, Next: mode.Next, Dir: t.app.Root,
		ThoughtLine: t.app.Config.UI.Thinking == "line", Vim: t.app.Config.UI.Vim, Bound: t.bindKeys(), Complete: t.complete, Suggest: t.suggest, Most: mostSeen, Lists: t.lists, Keys: t.keyTable, Trust: t.app.Trustable, Direct: t.direct(), CtrlCStops: t.app.Config.UI.CtrlC == "stop", Dropped: t.dropped, Clipboard: t.clipboard, Edit: t.edit, Page: t.pager(), Now: t.inv.Now,
		Sent: t.sent, Unsent: t.unsent, Earlier: func() []string { return t.app.Typed().Sent(t.session().ID, t.told...) },
		Notify: t.notifier(), Title: func(asks, runs bool) { _ = screen.Title(t.title(asks, runs)) }, // a lost terminal ends the program by itself
		After: t.after, Leaving: t.inv.exit.leave, Elsewhere: t.elsewhere,
	})
	defer t.remote.Close()
	return talk(ctx)
}

// direct allows the user's own commands without approval from then on, and says where that is saved; nil
// if their settings do not decide it.
func (t *terminal) direct() func() error {
	if !t.app.MayDirectBang() {
		return nil
	}
	return func() error {
		if err := t.app.DirectBang(); err != nil {
			return err
		}
		return t.say(ink.Dim, t.inv.words.T("Saved approval.bang = direct in %s.", filepath.Join(t.app.Home, "config.json")))
	}
}

// elsewhere returns a message that the user sent to the session from another process.
func (t *terminal) elsewhere() (repl.Remote, bool) {
	t.remote.Listen(t.app, t.host.ID(), serve.ToSay, serve.ToStop)
	said, ok := t.remote.Next()
	return repl.Remote(said), ok
}

// title returns the window title: the folder, and whether a turn runs or a question is open. It is empty
// if the user wants none.
func (t *terminal) title(asks, runs bool) string {
	if !t.app.Config.UI.Title || t.inv.Getenv("TERM") == "linux" {
		return ""
	}
	text := t.inv.words.Signs("coder · ") + sanitize.Line(filepath.Base(t.app.Root), 60)
	switch {
	case asks:
		return "? " + text
	case runs:
		return "* " + text
	}
	return text
}

// asksBackground reports whether to request the terminal's background color, which is only needed if it
// decides something.
func (t *terminal) asksBackground() bool {
	ui := t.app.Config.UI
	return ui.Theme == "auto" && t.inv.palette(true).Level > term.None && t.inv.Getenv("TERM") != "linux"
}

// recolour returns the palette for the background color that the terminal reports.
func (t *terminal) recolour(light bool) term.Palette {
	theme := "dark"
	if light {
		theme = "light"
	}
	t.colours = t.colours.Themed(theme)
	return t.colours
}

// retheme applies the chosen theme's colors.
func (t *terminal) retheme() {
	theme := t.app.Theme()
	face, ok := t.face.(interface{ Repaint(term.Palette) })
	if theme == t.theme || !ok {
		return
	}
	t.theme = theme
	t.inv.settings.Config.UI.Theme = theme
	t.colours = t.inv.palette(true)
	face.Repaint(t.colours)
}

// notifier returns a function that notifies the user in their chosen way; nil if they chose none.
func (t *terminal) notifier() func(text string) {
	form := map[string]string{"bell": "\a", "osc9": "\x1b]9;%s\x1b\\", "osc777": "\x1b]777;notify;coder;%s\x1b\\"}[t.app.Config.UI.Notify]
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
	if t.inv.flags.session.Pick || t.lastElsewhere() {
		if err := t.pickSession(ctx); err != nil {
			if errors.Is(err, repl.ErrLeft) {
				return nil
			}
			return err
		}
	}
	which := t.inv.flags.session
	last := which.Last && which.Resume == ""
	onlyDraft := last && t.onlyDraft()
	switch {
	case onlyDraft:
		which = app.Which{ID: which.ID}
	case last:
		which.Resume = t.app.LeftTyping()
	}
	if err := t.begin(ctx, which); err != nil {
		return err
	}
	err = t.banner()
	if err == nil && (which.Resumes() || onlyDraft) {
		err = t.recap(ctx)
		wanted := typed.Left
		if last {
			wanted = typed.Last
		}
		t.putDraft(ctx, wanted)
	}
	if err != nil {
		return errors.Join(err, t.close(ctx))
	}
	first, err := t.inv.typed(t.app)
	if err != nil {
		return errors.Join(err, t.close(ctx))
	}
	if word := t.inv.flags.oneWord(); word || len(t.inv.flags.args) == 0 && !first.Empty() {
		if word {
			_ = t.say(ink.Warn, t.inv.words.T("unknown command %s; Enter sends it to the model", first.Text())) // said if it can be
		}
		t.face.Put(repl.Unsent{Draft: first.Text(), Again: first})
		first = lineedit.Draft{}
	}
	_, cutOff := t.session().Unfinished() // the user is asked immediately what to do with it
	err = t.face.Run(ctx, first, first.Empty() && cutOff)
	if errors.Is(err, errLeft) {
		err = nil
	}
	running := t.running()
	done := t.host.Close(ctx)
	if closeErr := t.inv.closed(done); err == nil {
		err = closeErr
	}
	t.sayEnded(running)
	if !t.inv.flags.Ephemeral && !done.Unused {
		said := t.inv.words.T("resume this session with: coder -r %s", done.ID)
		_ = t.say(ink.Dim, strings.Replace(said, "coder -r ", "coder"+ink.HardBlank+"-r"+ink.HardBlank, 1)) // errors are ignored; one copyable unit
	}
	if repl.CutTurn(err) {
		_ = t.say(ink.Dim, t.inv.words.T("Ctrl+C ends coder; Esc stops a turn. With ui.ctrl_c = stop Ctrl+C stops the turn first.")) // errors are ignored
	}
	if errors.Is(err, repl.ErrInterrupted) {
		return &exitError{code: ExitInterrupted}
	}
	return err
}

// begin opens the session.
func (t *terminal) begin(ctx context.Context, which app.Which) (err error) {
	t.shown.JobEnded = t.jobEnded
	o := serve.Options{Which: which, Sink: t.face.Out(), Person: t.face, Screen: t.shown, Elsewhere: true, Said: t.warn}
	if t.host, err = serve.Open(ctx, t.app, o); err == nil {
		t.inv.exit.opened()
	}
	return err
}

// session returns the open session.
func (t *terminal) session() *supervisor.Session { return t.host.Session() }

// running lists the session's running background commands.
func (t *terminal) running() []string { return t.host.Inside().Running() }

// close closes the session.
func (t *terminal) close(ctx context.Context) error { return t.inv.closed(t.host.Close(ctx)) }

// sayEnded lists the background commands that ended with the session.
func (t *terminal) sayEnded(commands []string) {
	if len(commands) > 0 {
		_ = t.say(ink.Warn, t.inv.words.T("no longer running in the background: %s", oneLine(strings.Join(commands, ", ")))) // errors are ignored
	}
}

// jobEnded reports that a background command has finished.
func (t *terminal) jobEnded(j slash.Job) {
	w := t.inv.words
	_ = t.say(ink.Dim, w.T("%s finished: %s", j.ID, strings.Join([]string{oneLine(j.Command), w.Said(j.State), j.Runs}, t.apart()))) // errors are ignored
}

// banner introduces the session, with what the user must know of it.
func (t *terminal) banner() error {
	model, mode := t.status()
	w := t.inv.words
	lines := [][]ink.Span{append(span(ink.Plain, "coder "+app.Version), span(ink.Dim, w.Signs(" · ")+w.T("model %s · mode %s · session %s", sanitize.Line(model, 80), mode, t.session().ID))...)}
	add := func(role ink.Role, text string) { lines = append(lines, span(role, sanitize.Line(text, 0))) }
	if t.app.PassesOver() {
		add(ink.Warn, w.T("this folder is %s: its own settings may only tighten yours (coder trust changes that)", w.Said(t.app.Trusted.String())))
	}
	if t.app.ModelAssumed() {
		add(ink.Warn, w.T("no model was chosen: the endpoint may not have %s; /model lists its models", t.app.ModelName()))
	}
	if text := t.inv.wideFolder(t.app.Root); text != "" {
		add(ink.Warn, text)
	}
	if _, err := t.app.Door().Find("git"); err != nil {
		add(ink.Dim, w.T("not installed, optional: %s", "git"))
	}
	command, _ := t.session().LeftCommand() // shown when it continues
	if u, ok := t.session().Unfinished(); ok && u.Pending != nil && u.Pending.Author != event.ActorRecovery && command == "" {
		add(ink.Warn, w.T("the last turn was interrupted while it waited for an answer: %s", oneLine(u.Title)))
	}
	if t.session().CutUndo() {
		add(ink.Warn, w.T("the program ended during an undo or redo; /undo shows what can be undone now"))
	}
	if t.inv.inLines() {
		add(ink.Dim, w.T("/help commands · Enter sends · Esc stops a turn · Ctrl+D quits"))
	} else {
		add(ink.Dim, w.T("/help commands · ? keys · Enter sends · Esc stops a turn · Ctrl+D quits"))
	}
	for _, text := range t.early {
		for line := range strings.SplitSeq(w.Said(text), "\n") {
			add(ink.Warn, line)
		}
	}
	t.early = nil
	return t.face.Tell(lines...)
}

func (t *terminal) status() (model, mode string) {
	m, _ := t.app.Modes.Current()
	return t.app.ModelName(), m.Name
}

// after handles the end of an input.
func (t *terminal) after(ctx context.Context, input string, err error) error {
	if t.paths != nil {
		t.paths.Changed()
	}
	if said := t.sumUp(ctx); said != nil {
		return said
	}
	t.sayNewer()
	t.retheme()
	t.above.ended()
	if t.ends != nil {
		return t.ends(ctx, input, err)
	}
	return t.follow(ctx)
}

// errLeft ends the conversation at a terminal normally.
var errLeft = errors.New("the person has left")

// view returns the session as the terminal sees it.
func (t *terminal) view() repl.Session { return replSession{t.session(), t} }

// replSession is a session at a terminal: it records where the user goes next.
type replSession struct {
	*supervisor.Session
	terminal *terminal
}

// Continue asks the user about the turn that was cut off.
func (s replSession) Continue(ctx context.Context, out event.Sink) (string, error) {
	answer, words, err := s.terminal.host.TakeUp(ctx, out)
	if words == "" || err != nil {
		return answer, err
	}
	return s.Run(ctx, lineedit.Folded(words, nil), out)
}

// Run takes what the person typed. A message that could not be sent with what was attached comes
// back into the line; sent once more, it goes without the files that cannot be read.
func (s replSession) Run(ctx context.Context, input lineedit.Draft, out event.Sink) (string, error) {
	if t, ok := s.Session.Unfinished(); ok {
		s.terminal.warn(fmt.Sprintf("closed the interrupted turn: %s", oneLine(t.Title)))
	}
	if !isCommand(input.Text()) {
		s.terminal.lookForUpdate(ctx)
	}
	said := orchestrator.Said{Words: input.Words(), Pictures: input.Pictures()}
	said.Anyway = !s.terminal.refused && !s.terminal.back.Empty() && s.terminal.back.Text() == input.Text()
	s.terminal.back = lineedit.Draft{}
	done, err := s.terminal.host.Say(ctx, said, out)
	s.terminal.next, s.terminal.again = done.Next, done.Draft
	unsent := new(orchestrator.AttachError)
	if s.terminal.refused = errors.Is(err, provider.ErrNoImages); s.terminal.refused || errors.As(err, &unsent) {
		s.terminal.back, s.terminal.again = input, input.Text()
	}
	return done.Text, err
}

// follow opens another session after the input that requested it. If that fails the current one stays.
func (t *terminal) follow(ctx context.Context) error {
	to, again := t.next, t.again
	t.next, t.again = nil, ""
	switch {
	case to == nil && again != "":
		t.face.Put(repl.Unsent{Draft: again, Again: t.back})
		return t.sayBack()
	case to == nil:
		return nil
	case to.Exit:
		return errLeft
	}
	running := t.running()
	left, err := t.host.Follow(ctx, to)
	if err != nil {
		return t.say(ink.Bad, t.inv.words.Said(message(err)))
	}
	if err := t.inv.closed(*left); err != nil {
		t.warn(err.Error())
	}
	t.sayEnded(running)
	if err := t.banner(); err != nil {
		return err
	}
	if err := t.recap(ctx); err != nil {
		return err
	}
	t.putDraft(ctx, typed.None)
	if _, cutOff := t.session().Unfinished(); cutOff {
		t.face.Resume(ctx)
	}
	return nil
}

// sayBack says what to do with a message that came back into the line.
func (t *terminal) sayBack() error {
	switch {
	case t.back.Empty():
		return nil
	case t.refused:
		return t.say(ink.Dim, t.inv.words.T("Your message is back in the line: delete the image, or choose another model with /model."))
	}
	return t.say(ink.Dim, t.inv.words.T("Your message is back in the line: Enter sends it without the file."))
}

// utf8 reports whether the user's terminal shows more than ASCII.
func (inv *invocation) utf8() bool {
	name := strings.ToLower(cmp.Or(inv.Getenv("LC_ALL"), inv.Getenv("LC_CTYPE"), inv.Getenv("LANG")))
	return name == "" || strings.Contains(name, "utf-8") || strings.Contains(name, "utf8")
}

// ascii reports whether coder's own signs must be ASCII.
func (inv *invocation) ascii() bool { return inv.settings.Config.UI.Plain || !inv.utf8() }

// palette returns the colors to use.
func (inv *invocation) palette(isTerminal bool) term.Palette {
	ui := inv.settings.Config.UI
	var p term.Palette
	if !inv.flags.NoColor && ui.Color != "never" {
		p = term.PaletteFor(inv.Getenv, isTerminal || ui.Color == "always").Themed(ui.Theme)
		p, _ = p.With(ui.Colors) // their errors are shown at a terminal
	}
	p.Links = isTerminal && inv.Getenv("TERM") != "dumb" && (ui.Links == "on" || ui.Links == "auto" && term.KnowsLinks(inv.Getenv))
	return p
}
