//go:build unix

package repl

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/tool"
	"coder/internal/ui/lineedit"
	"coder/internal/ui/term"
	"coder/internal/ui/term/ink"
	"coder/internal/ui/tty"
)

// Lines is the face for a terminal that can only print lines: it prints, reads a line, and never moves
// the cursor. It is also an [uip.Interactor].
//
// While a turn runs, a line is read the same way: output waits until the line is complete, then the line
// is answered beside the turn, queued, or passed to the turn between its steps.
type Lines struct {
	Terminal *tty.Terminal // source of keys
	Page     *Page         // where Render writes
	Render   *term.Renderer

	Words   term.Words
	Session func() Session
	Status  func() (model, mode string)
	Above   func() string // may be nil: the line above the prompt
	Compact bool          // the prompt is one short line
	Dir     string
	// Trust, which may be nil, reports whether one letter may trust the folder.
	Trust func() bool
	// Direct, which may be nil, allows the commands that the user types after ! without approval, in the
	// user's settings.
	Direct func() error
	// After, which may be nil, is called with a finished input and its error. It may open another session.
	// Its own error ends the program.
	After func(ctx context.Context, input string, err error) error
	// CtrlCStops makes the first Ctrl+C stop the running turn, and the second end the program.
	CtrlCStops bool
	// Sent, which may be nil, is called with what the user sends; Unsent, which may be nil, regularly and at
	// the end with the unsent text.
	Sent   func(text string)
	Unsent func(Unsent)
	// Running, which may be nil, returns the commands that end with the program.
	Running func() []string
	// Leaving, which may be nil, is called when the user ends the program while something may still have to
	// be stopped.
	Leaving func()

	above   head           // of the prompt
	draft   string         // text for the next prompt
	half    Answer         // answer to restore at its question
	marked  lineedit.Draft // whose pictures stand in draft by their markers
	now     Answer         // the current answer
	again   []string       // earlier answers to the question's parts
	mode    string         // mode for the turn's next step
	parted  bool           // the user left at a question
	asked   bool           // asked whether to end the background commands
	keys    chan input
	program context.Context         // ends when the program should end
	end     context.CancelCauseFunc // ends program
	running atomic.Bool             // a turn is running
	asking  atomic.Bool             // a question is open
	pressed atomic.Bool             // Ctrl+C was pressed in this turn
	asks    chan chan struct{}      // a question needs the keyboard until the channel is closed
	stop    func()                  // stops the turn
	queue   queue
	looking sync.WaitGroup   // commands answered during a turn
	lends   chan lent        // from the turn
	begins  chan string      // text to show as if typed; buffers one
	typed   func() string    // returns the typed text
	beat    <-chan time.Time // when to save it
	kept    string           // text saved last
}

// Out returns the sink that shows events.
func (l *Lines) Out() event.Sink { return l.Render }

// Say prints coder's own lines.
func (l *Lines) Say(text string) error { return l.Render.Insert(text) }

// Recall shows an earlier answer.
func (l *Lines) Recall(answer event.MessageAdded, bang bool) error {
	return l.Render.Recall(answer, bang)
}

// RecallQuestion shows an earlier question and its answer.
func (l *Lines) RecallQuestion(q uip.Request, answer string) error {
	return l.Render.RecallQuestion(q, answer)
}

// Tell prints coder's own lines, wrapped between words.
func (l *Lines) Tell(lines ...[]ink.Span) error { return l.Render.Tell(lines...) }

// Resume continues the unfinished turn of the current session.
func (l *Lines) Resume(ctx context.Context) { _ = l.turn(ctx, "", l.Session().Continue) } // the error was shown

// Run reads and answers input until the user leaves. It returns nil after a normal exit,
// [ErrInterrupted] on Ctrl+C, or ctx's error. It runs first before anything else, unless empty; resume
// continues the unfinished turn.
func (l *Lines) Run(ctx context.Context, first lineedit.Draft, resume bool) error {
	ctx, end := context.WithCancelCause(ctx)
	l.program, l.end, l.asks, l.keys = ctx, end, make(chan chan struct{}), make(chan input)
	l.lends, l.begins = make(chan lent), make(chan string, 1)
	k := keyboard{terminal: l.Terminal, page: l.Page, inputs: l.keys, lends: l.lends, begins: l.begins}
	l.typed = func() string { line, _ := k.stands.Load().(string); return line }
	beat := time.NewTicker(time.Second)
	defer beat.Stop()
	l.beat = beat.C
	k.keeps = func() bool { return l.running.Load() && !l.asking.Load() }
	var reading sync.WaitGroup
	reading.Go(func() { k.listen(ctx) })
	defer func() { end(nil); l.looking.Wait(); reading.Wait(); l.keep(&k) }()
	if resume {
		if err := l.turn(ctx, "", l.Session().Continue); err != nil {
			return ended(err)
		}
	}
	for draft := first; ; draft = (lineedit.Draft{}) {
		if draft.Empty() {
			var err error
			if draft, err = l.next(ctx); err != nil {
				return ended(err)
			}
		}
		if strings.TrimSpace(draft.Text()) == "" {
			continue
		}
		if same, ok := shorthand(draft.Text()); ok {
			draft = lineedit.Folded(same, nil)
		}
		line := draft.Text()
		if !l.Session().Leaves(strings.TrimSpace(line)) {
			l.asked = false
		} else if l.asksBefore() {
			continue
		}
		l.keepDraft() // the draft was sent, and the turn may open another session
		if l.Sent != nil {
			l.Sent(draft.Saved())
		}
		run := func(ctx context.Context, out event.Sink) (string, error) { return l.Session().Run(ctx, draft, out) }
		if err := l.turn(ctx, line, run); err != nil {
			return ended(err)
		}
	}
}

// Put sets the draft for the next prompt, and an answer for its question.
func (l *Lines) Put(typed Unsent) {
	l.draft, l.half, l.marked = typed.Draft, typed.Answer, typed.Again
	if !l.marked.Empty() {
		l.draft = l.marked.Text()
	}
}

// taken is a line as a draft, with the pictures whose markers stand in it.
func (l *Lines) taken(h input) lineedit.Draft {
	if d := l.marked.Rewritten(h.line); len(d.Pictures()) > 0 && !h.pasted {
		l.marked = lineedit.Draft{}
		return d
	}
	return h.draft()
}

// keepDraft saves the unsent text if it has changed.
func (l *Lines) keepDraft() {
	if l.Unsent == nil {
		return
	}
	now := Unsent{Queue: l.queue.texts(), Draft: cmp.Or(l.typed(), l.draft), Answer: l.half}
	if l.asking.Load() {
		now.Draft, now.Answer = l.draft, Answer{l.now.Question, l.now.Given, l.typed(), l.mode}
	}
	if now.said() != l.kept {
		l.kept = now.said()
		l.Unsent(now)
	}
}

// keep saves the unsent text.
func (l *Lines) keep(k *keyboard) {
	if k.typing {
		k.page.end(false)
	}
	if l.Unsent == nil {
		return
	}
	left := Unsent{Queue: l.queue.texts()}
	select {
	case text := <-l.begins: // it was never shown
		k.line = append([]byte(text), k.line...)
	default:
	}
	left.Draft, left.Answer = cmp.Or(string(k.line), l.draft), l.half
	if now := (Answer{l.now.Question, l.now.Given, string(k.line), l.mode}); l.parted && !now.empty() {
		left.Draft, left.Answer = l.draft, now
	}
	l.Unsent(left)
}

// ready shows the prompt. Text typed before continues after it, unless a queued message is shown there.
func (l *Lines) ready(queued bool) error {
	model, mode := l.Status()
	above := ""
	if now := l.above.next(l.Above); now != "" {
		above = l.folded(l.oneLine(now)) + "\n"
	}
	l.above.printed()
	if l.Compact {
		return l.ask(fmt.Sprintf("%s[%s] %s> ", above, mode, l.oneLine(filepath.Base(l.Dir))), !queued)
	}
	above += l.folded(contextLine(l.Render.Cards().ASCII, l.Session().ContextUsed(), l.oneLine(model)))
	dir := l.oneLine(l.Dir)
	if width := l.Render.Cards().Width; width != nil {
		dir = shortened(dir, width(), mode, l.Render.Cards().ASCII)
	}
	return l.ask(fmt.Sprintf("%s\n[%s] %s> ", above, mode, dir), !queued)
}

// next returns the next input: the first queued one, or a typed line. Text typed before the prompt is
// repeated after it.
func (l *Lines) next(ctx context.Context) (lineedit.Draft, error) {
	queued := l.queue.take(one)
	if err := l.ready(len(queued) > 0); err != nil {
		return lineedit.Draft{}, err
	}
	for _, d := range queued {
		return d, l.repeat(d.String())
	}
	if l.draft != "" {
		l.begins <- l.draft
		l.draft = ""
	}
	for {
		h, err := l.await(ctx)
		switch {
		case err != nil:
			return lineedit.Draft{}, err
		case h.kind == left && l.asksBefore():
			if err := l.ready(false); err != nil {
				return lineedit.Draft{}, err
			}
		case h.kind == left:
			return lineedit.Draft{}, errLeave
		case h.kind == entered && !h.asked:
			return l.taken(h), l.repeat(h.line)
		case h.kind == entered:
			return l.taken(h), nil
		}
	}
}

// asksBefore reports whether background commands are running, and asks once before they end with the
// program: the user leaves again, or stays.
func (l *Lines) asksBefore() bool {
	if l.asked || l.Running == nil {
		return false
	}
	if running := l.Running(); len(running) > 0 {
		l.asked = true
		l.note(l.Words.T("running in the background: %s; leave again to stop", l.oneLine(strings.Join(running, ", "))))
	}
	return l.asked
}

// repeat prints text typed before the prompt after it.
func (l *Lines) repeat(line string) error {
	_, err := io.WriteString(l.Page, l.oneLine(line)+"\n")
	return err
}

// await waits for the user's input. Ctrl+C ends the program.
func (l *Lines) await(ctx context.Context) (input, error) {
	for {
		select {
		case h, ok := <-l.keys:
			switch {
			case ctx.Err() != nil:
				return input{}, context.Cause(ctx)
			case !ok:
				return input{}, errLeave
			case h.kind == interrupted && l.CtrlCStops && l.asking.Load() && !l.pressed.Swap(true):
				l.stopTurn()
				h.kind = stopped
			case h.kind == interrupted:
				l.interrupt()
				return input{}, ErrInterrupted
			}
			return h, nil
		case <-l.beat:
			l.keepDraft()
		case <-ctx.Done():
			return input{}, context.Cause(ctx)
		}
	}
}

func (l *Lines) interrupt() {
	if l.Leaving != nil {
		l.Leaving()
	}
	l.end(ErrInterrupted)
}

// turn runs one input to its end. The end of ctx stops the turn, except at an open question, which must
// stay open.
func (l *Lines) turn(ctx context.Context, input string, work func(context.Context, event.Sink) (string, error)) error {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if !l.asking.Load() {
			cancel()
		}
	})()
	var escaped atomic.Bool
	out := &failureSink{Sink: l.Render, stopped: &escaped}
	l.stop, l.mode = func() { escaped.Store(true); cancel() }, ""
	l.Session().Steer(l.steer)
	done := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				_ = l.Terminal.Close()
				panic(p)
			}
		}()
		_, err := work(tool.WithLender(inner, l.Lend), out)
		done <- err
	}()
	l.pressed.Store(false)
	l.running.Store(true)
	err := l.attend(ctx, done)
	l.running.Store(false)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if l.After != nil {
		return l.After(ctx, input, err)
	}
	return nil
}

// attend handles the user's input until the turn is done.
func (l *Lines) attend(ctx context.Context, done <-chan error) error {
	keys := l.keys
	for {
		select {
		case err := <-done:
			return err
		case <-l.beat:
			l.keepDraft()
		case back := <-l.asks:
			<-back
		case h, ok := <-keys:
			if !ok {
				keys = nil
				continue
			}
			l.meanwhile(ctx, h)
		}
	}
}

// meanwhile handles the user's input during a turn without a question.
func (l *Lines) meanwhile(ctx context.Context, h input) {
	s := l.Session()
	switch line := strings.TrimSpace(h.line); {
	case h.kind == interrupted && l.CtrlCStops && !l.pressed.Swap(true):
		l.stopTurn()
	case h.kind == interrupted:
		l.interrupt()
	case h.kind == stopped:
		l.stopTurn()
	case h.kind == left:
		l.note(staying(l.Words))
	case line == "":
	case h.asked:
		l.note(l.Words.T("not sent, the question is no longer open: %s", l.oneLine(line)))
	case s.Switches(line) != "":
		l.switchMode(ctx, s.Switches(line))
	case s.Looks(line):
		l.look(ctx, h)
	case s.Unknown(line) != nil:
		l.note(l.Words.Said(s.Unknown(line).Error()))
	default:
		l.enqueue(h)
	}
}

// switchMode changes the running turn's mode, from its next step on.
func (l *Lines) switchMode(ctx context.Context, mode string) {
	if err := l.Session().Change(ctx, mode, l.Render); err != nil {
		l.note(l.Words.Said(err.Error()))
		return
	}
	l.mode = mode
	l.note(l.Words.T("mode %s from the next step", mode))
}

// stopTurn stops the turn. Queued messages return to the next prompt; a command only if it is alone,
// since the text after it would become its arguments.
func (l *Lines) stopTurn() {
	l.stop()
	back := l.queue.take(all)
	var texts []string
	for i, d := range back {
		if len(back) > 1 && !words(i, d) {
			l.note(l.Words.T("no longer queued: %s", l.oneLine(d.Text())))
		} else {
			texts = append(texts, d.Text())
		}
	}
	if l.draft == "" {
		l.draft = strings.Join(texts, "\n")
	}
}

// enqueue queues a line for the next step or turn, and confirms that.
func (l *Lines) enqueue(h input) {
	h.line = strings.TrimSpace(h.line)
	l.queue.add(h.draft())
	l.note(l.Words.T("queued: %s", l.oneLine(h.line)))
}

// steer passes the queued text to the running turn, up to the first command.
func (l *Lines) steer() (said []chat.Words) {
	for _, d := range l.queue.take(steers) {
		said = append(said, d.Words())
		l.note("> " + l.oneLine(d.Text()))
	}
	return said
}

// look answers a command beside the turn, below its line.
func (l *Lines) look(ctx context.Context, h input) {
	line := strings.TrimSpace(h.line)
	if h.apart {
		l.note("> " + l.oneLine(line))
	}
	s := l.Session()
	l.looking.Go(func() {
		if err := s.Look(ctx, line, l.Render); err != nil && ctx.Err() == nil {
			l.note(l.Words.Said(err.Error()))
		}
	})
}

// note prints a message during the turn. A lost terminal ends the program by itself.
func (l *Lines) note(text string) { _ = l.Tell([]ink.Span{{Text: text}}) }

// oneLine returns text on one line, in signs that the terminal shows.
func (l *Lines) oneLine(text string) string {
	line := oneLine(text)
	if head, cut := strings.CutSuffix(line, "…"); cut {
		return head + dots(l.Render.Cards().ASCII)
	}
	return line
}

// maxLine is the longest line accepted, in bytes.
const maxLine = 8 << 20

// prompt prints a prompt. The user types after its last line.
func (l *Lines) prompt(text string) error { return l.ask(text, false) }

// ask is prompt; takes allows a line begun earlier to continue after it.
func (l *Lines) ask(text string, takes bool) error {
	i := strings.LastIndexByte(text, '\n') + 1
	if err := l.Render.Insert(strings.TrimSuffix(text[:i], "\n")); err != nil {
		return err
	}
	return l.Page.prompt(text[i:], takes)
}

// folded returns text wrapped between words for the terminal.
func (l *Lines) folded(text string) string {
	if width := l.Render.Cards().Width; width != nil {
		return ink.Folded(text, width())
	}
	return text
}
