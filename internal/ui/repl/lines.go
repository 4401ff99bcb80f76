//go:build unix

package repl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/tool"
	"coder/internal/ui/lineedit"
	"coder/internal/ui/term"
	"coder/internal/ui/term/ink"
	"coder/internal/ui/tty"
)

// Lines is the face for a terminal that cannot do more than print lines: it
// prints, reads a line, and moves no cursor. It is an [uip.Interactor] too.
//
// While a turn runs it is the same: a line that is typed is whole, what happens
// waits for its end, and it is answered beside the turn, queued, or told to the
// turn between its steps.
type Lines struct {
	Terminal *tty.Terminal // gives keys
	Page     *Page         // where Render writes to
	Render   *term.Renderer

	Words   term.Words
	Session func() Session
	Status  func() (model, mode string)
	Dir     string
	// Trust, which may be nil, reports whether one letter may trust the folder.
	Trust func() bool
	// After, which may be nil, is told of a finished input and its error. It
	// may open another session. Its own error ends the program.
	After func(ctx context.Context, input string, err error) error
	// Sent, which may be nil, is told what the person sends; Unsent, which may be nil, what
	// is typed and not sent, now and then and in the end.
	Sent   func(text string)
	Unsent func(queue []string, draft string, begun Answer)
	// Leaving, which may be nil, is told that the person ends the program while
	// something may still have to be stopped.
	Leaving func()

	draft   string   // to stand behind the next prompt
	half    Answer   // to stand behind its question
	now     Answer   // that is being given
	again   []string // what was answered to its parts before it was left
	mode    string   // that the person wants from the next step of the turn on
	parted  bool     // the person left at a question
	keys    chan input
	program context.Context         // ends when the program is to end
	end     context.CancelCauseFunc // ends it
	running atomic.Bool             // a turn does
	asking  atomic.Bool             // a question is open
	asks    chan chan struct{}      // a question takes the keyboard until the channel is closed
	stop    func()                  // stops the turn
	queue   queue
	looking sync.WaitGroup   // commands that are answered while a turn runs
	lends   chan lent        // from the turn
	begins  chan string      // what is to stand there as if it had been typed; holds one
	typed   func() string    // what stands there
	beat    <-chan time.Time // when to keep it
	kept    string           // what was kept last
}

// Out is where what happens is shown.
func (l *Lines) Out() event.Sink { return l.Render }

// Say shows lines of the program's own.
func (l *Lines) Say(text string) error { return l.Render.Insert(text) }

// Recall shows an answer that was given before.
func (l *Lines) Recall(answer event.MessageAdded, bang bool) error {
	return l.Render.Recall(answer, bang)
}

// Tell shows lines of the program's own, broken between words.
func (l *Lines) Tell(lines ...[]ink.Span) error { return l.Render.Tell(lines...) }

// Resume takes up the turn that the session in use was left with.
func (l *Lines) Resume(ctx context.Context) { _ = l.turn(ctx, "", l.Session().Continue) } // what went wrong was shown

// Run reads and answers until the person leaves. It returns nil if they left in
// good order, [ErrInterrupted] on Ctrl+C, or ctx's error. First, if not empty,
// is run first; with resume the turn that was left unfinished is taken up.
func (l *Lines) Run(ctx context.Context, first string, resume bool) error {
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
	for line := first; ; line = "" {
		if line == "" {
			var err error
			if line, err = l.next(ctx); err != nil {
				return ended(err)
			}
		}
		switch strings.TrimSpace(line) {
		case "":
			continue
		case "?":
			line = "/keys"
		}
		l.keepDraft() // there is none any more, and the session may become another
		if l.Sent != nil {
			l.Sent(line)
		}
		run := func(ctx context.Context, out event.Sink) (string, error) { return l.Session().Run(ctx, line, out) }
		if err := l.turn(ctx, line, run); err != nil {
			return ended(err)
		}
	}
}

// Put has text stand behind the next prompt, and an answer behind its question.
func (l *Lines) Put(text string, begun Answer) { l.draft, l.half = text, begun }

// maxListed is how many items of a list are printed at a time.
const maxListed = 20

// Pick lets the person choose from a list before anything else: by a number, by words that
// only one item has, or the first one by Enter alone. It returns [ErrLeft] if they leave it,
// and [ErrInterrupted] on Ctrl+C.
func (l *Lines) Pick(ctx context.Context, p lineedit.Picker) (value string, err error) {
	ctx, end := context.WithCancel(ctx)
	keys := make(chan input)
	k := keyboard{terminal: l.Terminal, page: l.Page, inputs: keys, keeps: func() bool { return false }}
	var reading sync.WaitGroup
	reading.Go(func() { k.listen(ctx) })
	defer func() { end(); reading.Wait() }()
	for items := p.Items; ; {
		var text strings.Builder
		for i, item := range items[:min(len(items), maxListed)] {
			fmt.Fprintf(&text, "  %d. %s  %s\n", i+1, l.oneLine(item.Text), l.oneLine(item.Note))
		}
		if more := len(items) - maxListed; more > 0 {
			fmt.Fprintf(&text, "  %s\n", l.Words.T("%d more: type some words of one", more))
		}
		if err := l.prompt(l.folded(text.String()) + p.Title); err != nil {
			return "", err
		}
		var h input
		var ok bool
		select {
		case h, ok = <-keys:
		case <-ctx.Done():
			return "", ctx.Err()
		}
		line := strings.TrimSpace(h.line)
		n, notNumber := strconv.Atoi(line)
		switch found := p.Find(line); {
		case !ok, h.kind == stopped, h.kind == left:
			return "", ErrLeft
		case h.kind == interrupted:
			return "", ErrInterrupted
		case line == "":
			return items[0].Value, nil
		case notNumber == nil && n >= 1 && n <= len(items):
			return items[n-1].Value, nil
		case len(found) == 1:
			return found[0].Value, nil
		case len(found) == 0:
			if err := l.Say(l.Words.T("nothing matches")); err != nil {
				return "", err
			}
			items = p.Items
		default:
			items = found
		}
	}
}

// keepDraft keeps what is typed and not sent, if that has changed.
func (l *Lines) keepDraft() {
	if l.Unsent == nil {
		return
	}
	var queue []string
	for _, d := range l.queue.waiting() {
		queue = append(queue, d.Text())
	}
	draft, begun := cmp.Or(l.typed(), l.draft), l.half
	if l.asking.Load() {
		draft, begun = l.draft, Answer{l.now.Question, l.now.Given, l.typed(), l.mode}
	}
	if all := strings.Join(slices.Concat(queue, begun.Given, []string{draft, begun.Question, begun.Text, begun.Mode}), "\x00"); all != l.kept {
		l.kept = all
		l.Unsent(queue, draft, begun)
	}
}

// keep tells what was typed and not sent.
func (l *Lines) keep(k *keyboard) {
	if k.typing {
		k.page.end(false)
	}
	if l.Unsent == nil {
		return
	}
	var queue []string
	for _, d := range l.queue.take(all) {
		queue = append(queue, d.Text())
	}
	select {
	case text := <-l.begins: // it did not come to that
		k.line = append([]byte(text), k.line...)
	default:
	}
	draft, begun := cmp.Or(string(k.line), l.draft), l.half
	if now := (Answer{l.now.Question, l.now.Given, string(k.line), l.mode}); l.parted && !now.empty() {
		draft, begun = l.draft, now
	}
	l.Unsent(queue, draft, begun)
}

// ready says that the person is to type. What they type already goes on behind the prompt,
// unless something that was queued stands there.
func (l *Lines) ready(queued bool) error {
	model, mode := l.Status()
	above := l.folded(contextLine(l.Render.Cards().ASCII, l.Session().ContextUsed(), l.oneLine(model)))
	return l.ask(fmt.Sprintf("%s\n[%s] %s> ", above, mode, l.oneLine(l.Dir)), !queued)
}

// next is the next input: what was queued, or what is typed now. What was typed
// before there was a prompt is printed behind it.
func (l *Lines) next(ctx context.Context) (string, error) {
	queued := l.queue.take(one)
	if err := l.ready(len(queued) > 0); err != nil {
		return "", err
	}
	for _, d := range queued {
		return d.Text(), l.repeat(d.String())
	}
	if l.draft != "" {
		l.begins <- l.draft
		l.draft = ""
	}
	for {
		h, err := l.await(ctx)
		switch {
		case err != nil:
			return "", err
		case h.kind == left:
			return "", errLeave
		case h.kind == entered && !h.asked:
			return h.line, l.repeat(h.line)
		case h.kind == entered:
			return h.line, nil
		}
	}
}

// repeat prints behind the prompt what was typed before it stood there.
func (l *Lines) repeat(line string) error {
	_, err := io.WriteString(l.Page, l.oneLine(line)+"\n")
	return err
}

// await waits for what the person does. Ctrl+C ends the program.
func (l *Lines) await(ctx context.Context) (input, error) {
	for {
		select {
		case h, ok := <-l.keys:
			switch {
			case ctx.Err() != nil:
				return input{}, context.Cause(ctx)
			case !ok:
				return input{}, errLeave
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

// turn runs one input to its end. The end of ctx stops it, save where a
// question is open, which must stay so.
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

// attend takes what the person does until the turn is done.
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

// meanwhile takes what the person does while a turn runs and asks nothing.
func (l *Lines) meanwhile(ctx context.Context, h input) {
	s := l.Session()
	switch line := strings.TrimSpace(h.line); {
	case h.kind == interrupted:
		l.interrupt()
	case h.kind == stopped:
		l.stopTurn()
	case h.kind == left:
		l.note(staying(l.Words))
	case line == "":
	case h.asked:
		l.note(l.Words.T("not taken, the question is no longer open: %s", l.oneLine(line)))
	case s.Switches(line) != "":
		l.switchMode(ctx, s.Switches(line))
	case s.Looks(line):
		l.look(ctx, h)
	default:
		l.enqueue(line)
	}
}

// switchMode changes the mode of the turn that runs, from its next step on.
func (l *Lines) switchMode(ctx context.Context, mode string) {
	if err := l.Session().Change(ctx, mode, l.Render); err != nil {
		l.note(l.Words.Said(err.Error()))
		return
	}
	l.mode = mode
	l.note(l.Words.T("mode %s from the next step on", mode))
}

// stopTurn stops all that is going on. What was queued stands behind the next prompt; a
// command only if it is alone, since what stands behind it would be taken for its arguments.
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

// enqueue keeps a line for the next step or the next turn, and says so.
func (l *Lines) enqueue(line string) {
	var typed lineedit.Editor
	typed.SetText(line)
	l.queue.add(typed.Draft())
	l.note(l.Words.T("queued: %s", l.oneLine(line)))
}

// steer hands the queued words to the running turn, up to the first that is a
// command.
func (l *Lines) steer() (said []string) {
	for _, d := range l.queue.take(words) {
		said = append(said, d.Text())
		l.note("> " + l.oneLine(d.Text()))
	}
	return said
}

// look answers what the person wants to know beside the turn, under the line that
// asks for it.
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

// note says something beside the turn. A terminal that is gone ends the program
// by itself.
func (l *Lines) note(text string) { _ = l.Tell([]ink.Span{{Text: text}}) }

// oneLine is text in a line, with the signs that the terminal shows.
func (l *Lines) oneLine(text string) string {
	line := oneLine(text)
	if head, cut := strings.CutSuffix(line, "…"); cut {
		return head + dots(l.Render.Cards().ASCII)
	}
	return line
}

// maxLine is the longest line that is taken.
const maxLine = 8 << 20

// prompt prints what is asked. Its last line is what a line is typed behind.
func (l *Lines) prompt(text string) error { return l.ask(text, false) }

// ask is prompt; takes says that a line that was begun before may stand behind it.
func (l *Lines) ask(text string, takes bool) error {
	i := strings.LastIndexByte(text, '\n') + 1
	if err := l.Render.Insert(strings.TrimSuffix(text[:i], "\n")); err != nil {
		return err
	}
	return l.Page.prompt(text[i:], takes)
}

// folded is text with its lines broken between words for the terminal.
func (l *Lines) folded(text string) string {
	if width := l.Render.Cards().Width; width != nil {
		return ink.Folded(text, width())
	}
	return text
}

// Ask puts a question and reads its answer, part by part if it has parts.
func (l *Lines) Ask(ctx context.Context, q uip.Request) (uip.Response, error) {
	back := make(chan struct{})
	select {
	case l.asks <- back:
		defer close(back)
	case <-ctx.Done():
		return uip.Response{}, ctx.Err()
	}
	l.asking.Store(true)
	defer func() {
		if l.program.Err() == nil { // else the turn must not be stopped: the question stays open
			l.asking.Store(false)
		}
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.program, func() { cancel(uip.ErrParked) })()
	d := dialogue{ask: ask{question: q}}
	if l.now = l.half.at(q); l.half.Question == q.ID {
		l.half = Answer{}
	}
	l.again, l.now.Given = l.now.Given, nil
	if l.now.Mode != "" {
		l.switchMode(ctx, l.now.Mode)
	}
	if _, mode := l.Status(); l.mode == mode { // it has come to it
		l.mode = ""
	}
	if !l.Render.Cards().Hides(q) {
		l.Render.Saw(q)
	}
	for {
		a, err := l.answer(ctx, &d)
		l.parted = errors.Is(err, uip.ErrParked)
		if err != nil || a.Dismissed || !d.inParts() {
			return a, err
		}
		d.parts = append(d.parts, a)
		if d.at++; d.at == len(q.Parts) {
			return uip.Response{ID: q.ID, Author: "user", Parts: d.parts}, nil
		}
	}
}

func (l *Lines) cards() term.Cards { return offering(l.Render.Cards(), l.Trust) }

// card is the part of the question that is to be answered now, in brief where all of it was
// shown before.
func (l *Lines) card(d *dialogue, brief bool) string {
	cards := l.cards()
	if d.inParts() {
		return cards.Question(d.current(), d.at+1, len(d.question.Parts))
	}
	cards.Brief = brief
	return cards.Draw(d.question)
}

// answer reads lines until one is an answer. Esc stops the turn at an approval,
// and dismisses any other question. Where nothing can be read any more the
// question stays open.
func (l *Lines) answer(ctx context.Context, d *dialogue) (uip.Response, error) {
	text := l.card(d, false)
	for q := d.current(); ; {
		h, err := l.reply(ctx, strings.TrimPrefix(text+"\n> ", "\n"))
		switch {
		case ctx.Err() != nil:
			return uip.Response{}, context.Cause(ctx)
		case err != nil:
			return uip.Response{}, uip.ErrParked
		case h.kind == stopped && d.question.Purpose == uip.ConfirmRiskyAction:
			l.stopTurn()
			return uip.Response{}, context.Canceled
		case h.kind == stopped:
			return uip.Response{ID: d.question.ID, Author: "user", Dismissed: true}, nil
		case h.kind == left, l.Session().Leaves(strings.TrimSpace(h.line)):
			l.end(errLeave)
			return uip.Response{}, uip.ErrParked
		case l.Session().Looks(strings.TrimSpace(h.line)):
			l.look(ctx, h)
			l.looking.Wait()
			text = l.card(d, true)
			continue
		}
		if said, ok := l.command(ctx, q, h.line); ok {
			text = said
			continue
		}
		if all := d.secondLook(l.cards(), l.Words, h.line); all != "" {
			l.Render.Saw(d.question)
			text = all
			continue
		}
		if trusts(l.cards(), q, h.line) {
			l.look(ctx, input{line: trustInput})
			l.looking.Wait()
			if !l.cards().Trust { // it is given
				return uip.Response{ID: q.ID, Author: "user", Option: uip.Approve}, nil
			}
			text = l.card(d, true)
			continue
		}
		a, ok := read(l.Words, q, h.line)
		a.ID, a.Author = q.ID, "user"
		if ok && !unheard(q, a) && uip.Check(q, a) == nil {
			l.now.Given = append(l.now.Given, h.line)
			return a, nil
		}
		text = l.folded(hint(l.Words, l.cards(), q))
	}
}

// command does what a command that was typed at a question does while a turn runs, and is
// what to say below it. It reports whether the line is one.
func (l *Lines) command(ctx context.Context, q uip.Request, line string) (say string, ok bool) {
	s := l.Session()
	line = strings.TrimSpace(line)
	switch mode := s.Switches(line); {
	case mode != "" && decidesMode(q):
		return l.folded(modeHint(l.Words, q)), true
	case mode != "":
		l.switchMode(ctx, mode)
		return "", true
	case s.Knows(line):
		l.enqueue(line)
		return "", true
	}
	if err := s.Unknown(line); err != nil {
		return l.folded(l.Words.Said(err.Error())), true
	}
	return "", false
}

// reply asks and waits for a line typed behind the prompt, or Esc. A line that
// was begun before the question was there is no answer to it.
func (l *Lines) reply(ctx context.Context, text string) (input, error) {
	if err := l.prompt(text); err != nil {
		return input{}, err
	}
	if len(l.again) > 0 {
		line := l.again[0]
		l.again = l.again[1:]
		return input{line: line}, l.repeat(line)
	}
	if l.now.Text != "" {
		l.begins <- l.now.Text
		l.now.Text = ""
	}
	for {
		h, err := l.await(ctx)
		switch {
		case err != nil, h.kind == stopped, h.kind == left, h.kind == entered && h.asked:
			return h, err
		case h.kind == entered && strings.TrimSpace(h.line) != "":
			l.enqueue(h.line)
			if err := l.prompt("> "); err != nil {
				return input{}, err
			}
		}
	}
}
