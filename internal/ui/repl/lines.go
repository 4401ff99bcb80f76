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

// LineREPL is the face for a terminal that can only print lines: it prints, reads a line, and never moves
// the cursor. It is also an [uip.Interactor].
//
// While a turn runs, a line is read the same way: output waits until the line is complete, then the line
// is answered beside the turn, queued, or passed to the turn between its steps.
type LineREPL struct {
	Terminal *tty.Terminal // source of keys
	Screen   *LineScreen   // where Render writes
	Renderer *term.Renderer

	Translator term.Translator
	Session    func() Session
	Status     func() (model, mode string)
	StatusLine func() string // may be nil: the line above the prompt
	Compact    bool          // the prompt is one short line
	Dir        string
	// CanTrust, which may be nil, reports whether one letter may trust the folder.
	CanTrust func() bool
	// AllowDirect, which may be nil, allows the commands that the user types after ! without approval, in the
	// user's settings.
	AllowDirect func() error
	// AfterInput, which may be nil, is called with a finished input and its error. It may open another session.
	// Its own error ends the program.
	AfterInput func(ctx context.Context, input string, err error) error
	// CtrlCStops makes the first Ctrl+C stop the running turn, and the second end the program.
	CtrlCStops bool
	// OnSent, which may be nil, is called with what the user sends; Unsent, which may be nil, regularly and at
	// the end with the unsent text.
	OnSent     func(text string)
	SaveUnsent func(UnsentText)
	// Running, which may be nil, returns the commands that end with the program.
	Running func() []string
	// OnLeave, which may be nil, is called when the user ends the program while something may still have to
	// be stopped.
	OnLeave func()

	header           headerLine     // of the prompt
	draft            string         // text for the next prompt
	restoredAnswer   Answer         // answer to restore at its question
	pictureDraft     lineedit.Draft // whose pictures stand in draft by their markers
	currentAnswer    Answer         // the current answer
	earlierAnswers   []string       // earlier answers to the question's parts
	mode             string         // mode for the turn's next step
	leftQuestion     bool           // the user left at a question
	leaveAsked       bool           // asked whether to end the background commands
	inputs           chan input
	ctx              context.Context         // ends when the program should end
	cancel           context.CancelCauseFunc // ends program
	running          atomic.Bool             // a turn is running
	questionOpen     atomic.Bool             // a question is open
	ctrlCPressed     atomic.Bool             // Ctrl+C was pressed in this turn
	keyboardRequests chan chan struct{}      // a question needs the keyboard until the channel is closed
	cancelTurn       func()                  // stops the turn
	queue            queue
	showCommands     sync.WaitGroup   // commands answered during a turn
	lendRequests     chan lendRequest // from the turn
	prefill          chan string      // text to show as if typed; buffers one
	typedText        func() string    // returns the typed text
	saveTick         <-chan time.Time // when to save it
	savedText        string           // text saved last
}

// Sink returns the sink that shows events.
func (l *LineREPL) Sink() event.Sink { return l.Renderer }

// Print prints coder's own lines.
func (l *LineREPL) Print(text string) error { return l.Renderer.Insert(text) }

// ShowAnswer shows an earlier answer.
func (l *LineREPL) ShowAnswer(answer event.MessageAdded, bang bool) error {
	return l.Renderer.ShowAnswer(answer, bang)
}

// ShowQuestion shows an earlier question and its answer.
func (l *LineREPL) ShowQuestion(q uip.Request, answer string) error {
	return l.Renderer.ShowQuestion(q, answer)
}

// PrintLines prints coder's own lines, wrapped between words.
func (l *LineREPL) PrintLines(lines ...[]ink.Span) error { return l.Renderer.PrintLines(lines...) }

// Resume continues the unfinished turn of the current session.
func (l *LineREPL) Resume(ctx context.Context) { _ = l.runTurn(ctx, "", l.Session().Continue) } // the error was shown

// Run reads and answers input until the user leaves. It returns nil after a normal exit,
// [ErrInterrupted] on Ctrl+C, or ctx's error. It runs first before anything else, unless empty; resume
// continues the unfinished turn.
func (l *LineREPL) Run(ctx context.Context, first lineedit.Draft, resume bool) error {
	ctx, end := context.WithCancelCause(ctx)
	l.ctx, l.cancel, l.keyboardRequests, l.inputs = ctx, end, make(chan chan struct{}), make(chan input)
	l.lendRequests, l.prefill = make(chan lendRequest), make(chan string, 1)
	k := keyboard{terminal: l.Terminal, screen: l.Screen, inputs: l.inputs, lendRequests: l.lendRequests,
		prefill: l.prefill}
	l.typedText = func() string { line, _ := k.currentLine.Load().(string); return line }
	beat := time.NewTicker(time.Second)
	defer beat.Stop()
	l.saveTick = beat.C
	k.keepsText = func() bool { return l.running.Load() && !l.questionOpen.Load() }
	var reading sync.WaitGroup
	reading.Go(func() { k.listen(ctx) })
	defer func() { end(nil); l.showCommands.Wait(); reading.Wait(); l.saveTyped(&k) }()
	if resume {
		if err := l.runTurn(ctx, "", l.Session().Continue); err != nil {
			return loopError(err)
		}
	}
	for draft := first; ; draft = (lineedit.Draft{}) {
		if draft.IsEmpty() {
			var err error
			if draft, err = l.nextInput(ctx); err != nil {
				return loopError(err)
			}
		}
		if strings.TrimSpace(draft.Text()) == "" {
			continue
		}
		if same, ok := shorthandCommand(draft.Text()); ok {
			draft = lineedit.NewDraft(same, nil)
		}
		line := draft.Text()
		if !l.Session().IsExitCommand(strings.TrimSpace(line)) {
			l.leaveAsked = false
		} else if l.confirmLeave() {
			continue
		}
		l.saveDraft() // the draft was sent, and the turn may open another session
		if l.OnSent != nil {
			l.OnSent(draft.DiskText())
		}
		run := func(ctx context.Context, out event.Sink) (string, error) { return l.Session().Run(ctx, draft, out) }
		if err := l.runTurn(ctx, line, run); err != nil {
			return loopError(err)
		}
	}
}

// RestoreUnsent sets the draft for the next prompt, and an answer for its question.
func (l *LineREPL) RestoreUnsent(typed UnsentText) {
	l.draft, l.restoredAnswer, l.pictureDraft = typed.Draft, typed.Answer, typed.Again
	if !l.pictureDraft.IsEmpty() {
		l.draft = l.pictureDraft.Text()
	}
}

// toDraft is a line as a draft, with the pictures whose markers stand in it.
func (l *LineREPL) toDraft(h input) lineedit.Draft {
	if d := l.pictureDraft.WithText(h.line); len(d.Pictures()) > 0 && !h.pasted {
		l.pictureDraft = lineedit.Draft{}
		return d
	}
	return h.draft()
}

// saveDraft saves the unsent text if it has changed.
func (l *LineREPL) saveDraft() {
	if l.SaveUnsent == nil {
		return
	}
	now := UnsentText{Queue: l.queue.texts(), Draft: cmp.Or(l.typedText(), l.draft), Answer: l.restoredAnswer}
	if l.questionOpen.Load() {
		now.Draft, now.Answer = l.draft, Answer{l.currentAnswer.Question, l.currentAnswer.Given, l.typedText(), l.mode}
	}
	if now.allText() != l.savedText {
		l.savedText = now.allText()
		l.SaveUnsent(now)
	}
}

// saveTyped saves the unsent text.
func (l *LineREPL) saveTyped(k *keyboard) {
	if k.typing {
		k.screen.endLine(false)
	}
	if l.SaveUnsent == nil {
		return
	}
	left := UnsentText{Queue: l.queue.texts()}
	select {
	case text := <-l.prefill: // it was never shown
		k.line = append([]byte(text), k.line...)
	default:
	}
	left.Draft, left.Answer = cmp.Or(string(k.line), l.draft), l.restoredAnswer
	if now := (Answer{l.currentAnswer.Question, l.currentAnswer.Given, string(k.line), l.mode}); l.leftQuestion &&
		!now.isEmpty() {
		left.Draft, left.Answer = l.draft, now
	}
	l.SaveUnsent(left)
}

// showPrompt shows the prompt. Text typed before continues after it, unless a queued message is shown there.
func (l *LineREPL) showPrompt(queued bool) error {
	model, mode := l.Status()
	above := ""
	if now := l.header.next(l.StatusLine); now != "" {
		above = l.wrapText(l.oneLine(now)) + "\n"
	}
	l.header.markPrinted()
	if l.Compact {
		return l.promptFor(fmt.Sprintf("%s[%s] %s> ", above, mode, l.oneLine(filepath.Base(l.Dir))), !queued)
	}
	above += l.wrapText(contextLine(l.Renderer.Cards().ASCII, l.Session().ContextUsed(), l.oneLine(model)))
	dir := l.oneLine(l.Dir)
	if width := l.Renderer.Cards().Width; width != nil {
		dir = shortenDir(dir, width(), mode, l.Renderer.Cards().ASCII)
	}
	return l.promptFor(fmt.Sprintf("%s\n[%s] %s> ", above, mode, dir), !queued)
}

// nextInput returns the next input: the first queued one, or a typed line. Text typed before the prompt is
// repeated after it.
func (l *LineREPL) nextInput(ctx context.Context) (lineedit.Draft, error) {
	queued := l.queue.takeFirst(acceptFirst)
	if err := l.showPrompt(len(queued) > 0); err != nil {
		return lineedit.Draft{}, err
	}
	for _, d := range queued {
		return d, l.reprint(d.String())
	}
	if l.draft != "" {
		l.prefill <- l.draft
		l.draft = ""
	}
	for {
		h, err := l.waitInput(ctx)
		switch {
		case err != nil:
			return lineedit.Draft{}, err
		case h.kind == inputEOF && l.confirmLeave():
			if err := l.showPrompt(false); err != nil {
				return lineedit.Draft{}, err
			}
		case h.kind == inputEOF:
			return lineedit.Draft{}, errLeave
		case h.kind == inputLine && !h.afterPrompt:
			return l.toDraft(h), l.reprint(h.line)
		case h.kind == inputLine:
			return l.toDraft(h), nil
		}
	}
}

// confirmLeave reports whether background commands are running, and asks once before they end with the
// program: the user leaves again, or stays.
func (l *LineREPL) confirmLeave() bool {
	if l.leaveAsked || l.Running == nil {
		return false
	}
	if running := l.Running(); len(running) > 0 {
		l.leaveAsked = true
		l.printNote(l.Translator.T("running in the background: %s; leave again to stop",
			l.oneLine(strings.Join(running, ", "))))
	}
	return l.leaveAsked
}

// reprint prints text typed before the prompt after it.
func (l *LineREPL) reprint(line string) error {
	_, err := io.WriteString(l.Screen, l.oneLine(line)+"\n")
	return err
}

// waitInput waits for the user's input. Ctrl+C ends the program.
func (l *LineREPL) waitInput(ctx context.Context) (input, error) {
	for {
		select {
		case h, ok := <-l.inputs:
			switch {
			case ctx.Err() != nil:
				return input{}, context.Cause(ctx)
			case !ok:
				return input{}, errLeave
			case h.kind == inputInterrupt && l.CtrlCStops && l.questionOpen.Load() && !l.ctrlCPressed.Swap(true):
				l.stopTurn()
				h.kind = inputEsc
			case h.kind == inputInterrupt:
				l.interrupt()
				return input{}, ErrInterrupted
			}
			return h, nil
		case <-l.saveTick:
			l.saveDraft()
		case <-ctx.Done():
			return input{}, context.Cause(ctx)
		}
	}
}

func (l *LineREPL) interrupt() {
	if l.OnLeave != nil {
		l.OnLeave()
	}
	l.cancel(ErrInterrupted)
}

// runTurn runs one input to its end. The end of ctx stops the turn, except at an open question, which must
// stay open.
func (l *LineREPL) runTurn(ctx context.Context, input string,
	work func(context.Context, event.Sink) (string, error)) error {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if !l.questionOpen.Load() {
			cancel()
		}
	})()
	var escaped atomic.Bool
	out := &failureSink{Sink: l.Renderer, stopped: &escaped}
	l.cancelTurn, l.mode = func() { escaped.Store(true); cancel() }, ""
	l.Session().SetSteering(l.takeSteering)
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
	l.ctrlCPressed.Store(false)
	l.running.Store(true)
	err := l.handleTurn(ctx, done)
	l.running.Store(false)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if l.AfterInput != nil {
		return l.AfterInput(ctx, input, err)
	}
	return nil
}

// handleTurn handles the user's input until the turn is done.
func (l *LineREPL) handleTurn(ctx context.Context, done <-chan error) error {
	keys := l.inputs
	for {
		select {
		case err := <-done:
			return err
		case <-l.saveTick:
			l.saveDraft()
		case back := <-l.keyboardRequests:
			<-back
		case h, ok := <-keys:
			if !ok {
				keys = nil
				continue
			}
			l.handleTurnInput(ctx, h)
		}
	}
}

// handleTurnInput handles the user's input during a turn without a question.
func (l *LineREPL) handleTurnInput(ctx context.Context, h input) {
	s := l.Session()
	switch line := strings.TrimSpace(h.line); {
	case h.kind == inputInterrupt && l.CtrlCStops && !l.ctrlCPressed.Swap(true):
		l.stopTurn()
	case h.kind == inputInterrupt:
		l.interrupt()
	case h.kind == inputEsc:
		l.stopTurn()
	case h.kind == inputEOF:
		l.printNote(stayText(l.Translator))
	case line == "":
	case h.afterPrompt:
		l.printNote(l.Translator.T("not sent, the question is no longer open: %s", l.oneLine(line)))
	case s.TargetMode(line) != "":
		l.switchMode(ctx, s.TargetMode(line))
	case s.IsShowCommand(line):
		l.runShowCommand(ctx, h)
	case s.CheckUnknownCommand(line) != nil:
		l.printNote(l.Translator.TranslateError(s.CheckUnknownCommand(line)))
	default:
		l.enqueue(h)
	}
}

// switchMode changes the running turn's mode, from its next step on.
func (l *LineREPL) switchMode(ctx context.Context, mode string) {
	if err := l.Session().ChangeSettings(ctx, mode, l.Renderer); err != nil {
		l.printNote(l.Translator.TranslateError(err))
		return
	}
	l.mode = mode
	l.printNote(l.Translator.T("mode %s from the next step", mode))
}

// stopTurn stops the turn. Queued messages return to the next prompt; a command only if it is alone,
// since the text after it would become its arguments.
func (l *LineREPL) stopTurn() {
	l.cancelTurn()
	back := l.queue.takeFirst(acceptAll)
	var texts []string
	for i, d := range back {
		if len(back) > 1 && !isPromptDraft(i, d) {
			l.printNote(l.Translator.T("no longer queued: %s", l.oneLine(d.Text())))
		} else {
			texts = append(texts, d.Text())
		}
	}
	if l.draft == "" {
		l.draft = strings.Join(texts, "\n")
	}
}

// enqueue queues a line for the next step or turn, and confirms that.
func (l *LineREPL) enqueue(h input) {
	h.line = strings.TrimSpace(h.line)
	l.queue.add(h.draft())
	l.printNote(l.Translator.T("queued: %s", l.oneLine(h.line)))
}

// takeSteering passes the queued text to the running turn, up to the first command.
func (l *LineREPL) takeSteering() (said []chat.UserText) {
	for _, d := range l.queue.takeFirst(isSteering) {
		said = append(said, d.Words())
		l.printNote("> " + l.oneLine(d.Text()))
	}
	return said
}

// runShowCommand answers a command beside the turn, below its line.
func (l *LineREPL) runShowCommand(ctx context.Context, h input) {
	line := strings.TrimSpace(h.line)
	if h.outputBelow {
		l.printNote("> " + l.oneLine(line))
	}
	s := l.Session()
	l.showCommands.Go(func() {
		if err := s.RunShowCommand(ctx, line, l.Renderer); err != nil && ctx.Err() == nil {
			l.printNote(l.Translator.TranslateError(err))
		}
	})
}

// printNote prints a message during the turn. A lost terminal ends the program by itself.
func (l *LineREPL) printNote(text string) { _ = l.PrintLines([]ink.Span{{Text: text}}) }

// oneLine returns text on one line, in signs that the terminal shows.
func (l *LineREPL) oneLine(text string) string {
	line := oneLine(text)
	if head, cut := strings.CutSuffix(line, "…"); cut {
		return head + ellipsis(l.Renderer.Cards().ASCII)
	}
	return line
}

// maxLine is the longest line accepted, in bytes.
const maxLine = 8 << 20

// prompt prints a prompt. The user types after its last line.
func (l *LineREPL) prompt(text string) error { return l.promptFor(text, false) }

// promptFor is prompt; takes allows a line begun earlier to continue after it.
func (l *LineREPL) promptFor(text string, takes bool) error {
	i := strings.LastIndexByte(text, '\n') + 1
	if err := l.Renderer.Insert(strings.TrimSuffix(text[:i], "\n")); err != nil {
		return err
	}
	return l.Screen.prompt(text[i:], takes)
}

// wrapText returns text wrapped between words for the terminal.
func (l *LineREPL) wrapText(text string) string {
	if width := l.Renderer.Cards().Width; width != nil {
		return ink.FoldText(text, width())
	}
	return text
}
