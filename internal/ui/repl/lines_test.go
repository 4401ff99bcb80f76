//go:build unix

package repl

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/ui/lineedit"
	"coder/internal/ui/term"
	"coder/internal/ui/tty"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
)

// asking is a session that asks before it answers.
type asking struct {
	person   uip.Interactor
	content  display.Block
	received []string
}

func (s *asking) Run(ctx context.Context, words lineedit.Draft, out event.Sink) (string, error) {
	input := words.Text()
	s.received = append(s.received, input)
	a, err := s.person.Ask(ctx, uip.Request{
		ID: "q", Kind: uip.KindConfirm, Purpose: uip.PurposeConfirmRiskyAction, Display: uip.Display{Title: "bash rm x", Content: s.content},
		Options: []uip.Option{{ID: uip.OptionApprove, Label: "Yes"}, {ID: uip.OptionReject, Label: "No"}},
	})
	if err != nil {
		return "", err
	}
	s.received = append(s.received, a.Option+" "+a.Comment)
	return "", out.Emit(ctx, event.Record{Event: event.MessageAdded{Message: chat.TextMessage(chat.Assistant, "so be it")}})
}

func (s *asking) Continue(context.Context, event.Sink) (string, error)     { return "", nil }
func (s *asking) SwitchMode(context.Context, string, event.Sink) error     { return nil }
func (s *asking) SetSteering(func() []chat.UserText)                       {}
func (s *asking) ChangeSettings(context.Context, string, event.Sink) error { return nil }
func (s *asking) TargetMode(string) string                                 { return "" }
func (s *asking) IsKnownCommand(string) bool                               { return false }
func (s *asking) IsExitCommand(string) bool                                { return false }
func (s *asking) CheckUnknownCommand(string) error                         { return nil }
func (s *asking) IsShowCommand(string) bool                                { return false }
func (s *asking) RunShowCommand(context.Context, string, event.Sink) error { return nil }
func (s *asking) ContextUsed() int                                         { return 7 }

// sitInLines is a person at a terminal that prints lines. All that is printed is
// in the buffer once the person has left with Ctrl+C.
func sitInLines(t *testing.T, session func(*LineREPL) Session) (d *desk, leave func() string) {
	t.Helper()
	person, program, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := tty.Open(program, program, tty.Options{LinesOnly: true})
	if err == nil {
		err = terminal.SetRaw()
	}
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	d = &desk{t: t, person: person, emu: vt.NewEmulator(80, 24)}
	page := NewLineScreen(io.MultiWriter(program, &out), terminal.HadEcho())
	l := &LineREPL{
		Terminal: terminal, Screen: page, Translator: term.English{}, Renderer: term.New(term.Options{Out: page}), Dir: "/w",
		Status: func() (string, string) { return "m", "build" },
	}
	s := session(l)
	l.Session = func() Session { return s }
	ended := make(chan error, 1)
	var work sync.WaitGroup
	work.Go(func() { ended <- l.Run(context.Background(), lineedit.Draft{}, false) })
	work.Go(d.watch)
	return d, func() string {
		d.keys("\x03")
		if err := <-ended; !errors.Is(err, ErrInterrupted) {
			t.Errorf("it ended with %v", err)
		}
		_ = terminal.Close()
		_ = program.Close() // ends watch
		work.Wait()
		_ = person.Close()
		return out.String()
	}
}

func TestATerminalThatCanOnlyPrintLinesIsTalkedToInLines(t *testing.T) {
	s := &asking{}
	d, leave := sitInLines(t, func(l *LineREPL) Session { s.person = l; return s })
	for _, step := range [][2]string{
		{"/w> ", "\x1b[Atidy\tuup\x7f\x7fp\r"}, {"> ", "always\r"}, {"adds a note\r\n> ", "n, keep it\r"},
		{"so be it", ""}, {"/w> ", "\r"}, {"/w> ", "gone 字\x15again\n"}, {"2 No, and", ""}, {"> ", "1\r"}, {"so be it", ""}, {"/w> ", ""},
	} {
		d.sees(step[0])
		d.keys(step[1])
	}
	out := leave()
	if got := strings.Join(s.received, "|"); got != "tidy\tup|reject keep it|again|approve " {
		t.Errorf("received %q", got)
	}
	for _, want := range []string{"context: 7 tokens · model: m\n[build] /w> ", "bash rm x", "answer with a number from 1 to 2, y or n;", "so be it"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Errorf("an escape sequence was sent: %q", out)
	}
}

// A yes to a card that leaves something out is taken only once all of it was
// shown.
func TestAYesToWhatIsHiddenNeedsASecondLook(t *testing.T) {
	long := strings.Repeat("echo a\n", 45) + "rm -rf hidden\n" + strings.Repeat("echo b\n", 45)
	for _, tt := range []struct {
		name, received string
		typed          []string
		shown          int
	}{
		{"yes", "go|approve ", []string{"y", "y"}, 1},
		{"view, then yes", "go|approve ", []string{"v", "y"}, 1},
		{"view twice", "go|reject ", []string{"view", "查看", "n"}, 2},
		{"no", "go|reject ", []string{"n"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &asking{content: display.Code{Lang: "sh", Source: long}}
			d, leave := sitInLines(t, func(l *LineREPL) Session { s.person = l; return s })
			d.sees("/w> ")
			d.keys("go\r")
			for _, line := range tt.typed {
				d.sees("\r\n> ")
				d.keys(line + "\r")
			}
			d.sees("so be it")
			out := leave()
			if got := strings.Join(s.received, "|"); got != tt.received {
				t.Errorf("received %q", got)
			}
			if n := strings.Count(out, "rm -rf hidden"); n != tt.shown {
				t.Errorf("all of it was shown %d times, want %d:\n%s", n, tt.shown, out)
			}
			if !strings.Contains(out, "v: all of it") {
				t.Error("the card does not say how to see it")
			}
		})
	}
}

// streams is a session that says what a test tells it to, until it is stopped.
type streams struct {
	talk
	says     chan string // "" ends the turn
	received []string
}

func streaming() *streams {
	s := &streams{says: make(chan string)}
	s.run = func(ctx context.Context, input string, out event.Sink) error {
		s.received = append(s.received, input)
		for {
			select {
			case text := <-s.says:
				if text == "" {
					return nil
				}
				_ = out.Emit(ctx, event.Record{Event: event.TextDelta{Text: text}})
			case <-ctx.Done():
				return out.Emit(context.WithoutCancel(ctx), event.Record{Event: event.Interrupted{}})
			}
		}
	}
	return s
}

func TestWhatIsTypedInLinesWhileATurnRunsIsWhole(t *testing.T) {
	s := streaming()
	d, leave := sitInLines(t, func(*LineREPL) Session { return s })
	d.sees("/w> ")
	d.keys("go\r")
	s.says <- "the quick \n"
	d.sees("the quick")
	d.keys("lat")
	d.sees("> lat")
	s.says <- "brown fox \n"
	s.says <- "jumps \n" // the one before has been printed
	d.keys("er\r")
	d.sees("er\r\n")
	d.sees("brown fox")
	d.sees("queued: later")
	d.keys("/cost\r")
	d.sees("it cost nothing")
	s.says <- ""
	d.sees("/w> later")
	s.says <- "so it is \n"
	d.sees("so it is")
	d.keys("x\x7f\r") // nothing
	s.says <- ""
	d.sees("/w> ")
	out := leave()
	if got := strings.Join(s.received, "|"); got != "go|later" {
		t.Errorf("received %q", got)
	}
	if !strings.Contains(out, "> later\n") {
		t.Errorf("what was typed is torn:\n%s", out)
	}
}

func TestEscInLinesStopsTheTurnAndKeepsWhatWasTyped(t *testing.T) {
	s := streaming()
	d, leave := sitInLines(t, func(*LineREPL) Session { return s })
	d.sees("/w> ")
	d.keys("go\r")
	s.says <- "the quick \n"
	d.keys("later\r")
	d.sees("queued: later")
	d.keys("hal\x1b")
	d.sees("Cancelled by ESC")
	d.sees("/w> hal later")
	d.keys("\x1b")
	d.sees("\b \b")
	d.keys("more\r")
	s.says <- "the lazy \n"
	d.sees("the lazy")
	out := leave()
	if got := strings.Join(s.received, "|"); got != "go|more" {
		t.Errorf("received %q", got)
	}
	if n := strings.Count(out, "Cancelled by ESC"); n != 1 {
		t.Errorf("Ctrl+C is taken for Esc:\n%s", out)
	}
}

func TestALineBegunBeforeAQuestionIsNoAnswerToIt(t *testing.T) {
	begin, answers := make(chan struct{}, 1), make(chan uip.Response, 1)
	var face *LineREPL
	s := &talk{run: func(ctx context.Context, _ string, _ event.Sink) error {
		pause(ctx, begin)
		a, err := face.Ask(ctx, approval("q", uip.OptionApprove, uip.OptionReject))
		answers <- a
		return err
	}}
	d, leave := sitInLines(t, func(l *LineREPL) Session { face = l; return s })
	d.sees("/w> ")
	d.keys("go\r")
	d.sees("go\r\n")
	d.keys("y")
	d.sees("> y")
	begin <- struct{}{}
	for !face.questionOpen.Load() { // the card waits
		time.Sleep(time.Millisecond)
	}
	d.keys("\r")
	d.sees("[APPROVAL]")
	d.sees("queued: y")
	d.keys("n\r")
	if a := <-answers; a.Option != uip.OptionReject {
		t.Errorf("answered %+v", a)
	}
	leave()
}

// What a card points to, such as /trust yes, can be typed at it; then it is put once more.
func TestACardInLinesTakesACommandThatOnlyLooks(t *testing.T) {
	answers := make(chan uip.Response, 1)
	var face *LineREPL
	s := &talk{run: func(ctx context.Context, _ string, _ event.Sink) error {
		a, err := face.Ask(ctx, approval("q", uip.OptionApprove, uip.OptionReject))
		answers <- a
		return err
	}}
	d, leave := sitInLines(t, func(l *LineREPL) Session { face = l; return s })
	d.sees("/w> ")
	d.keys("go\r")
	d.sees("2 No, and")
	d.sees("> ")
	d.keys(" /cost \r")
	d.sees("it cost nothing")
	d.sees("2 No, and")
	d.sees("> ")
	d.keys("y\r")
	if a := <-answers; a.Option != uip.OptionApprove {
		t.Errorf("answered %+v", a)
	}
	leave()
}

func TestACommandInLinesIsNeverTheAnswer(t *testing.T) {
	answers := make(chan uip.Response, 1)
	var face *LineREPL
	s := &talk{run: func(ctx context.Context, _ string, _ event.Sink) error {
		a, err := face.Ask(ctx, uip.Request{ID: "q", Kind: uip.KindInput, Display: uip.Display{Title: "Which colour?"}})
		answers <- a
		return err
	}}
	d, leave := sitInLines(t, func(l *LineREPL) Session { face = l; return s })
	d.sees("/w> ")
	d.keys("go\r")
	d.sees("Which colour?")
	d.sees("> ")
	d.keys("/mode plan\r")
	d.sees("mode plan from the next step")
	d.sees("> ")
	d.keys("/undo\r")
	d.sees("queued: /undo")
	d.sees("> ")
	d.keys("/udno\r")
	d.sees("did you mean /undo?")
	d.sees("> ")
	d.keys("/usr/bin\r")
	if a := <-answers; a.Input != "/usr/bin" {
		t.Errorf("answered %+v", a)
	}
	if got := s.changed.Load(); got == nil || *got != "plan" {
		t.Errorf("the mode was changed to %v", got)
	}
	leave()
}

func TestLinesAreCutWithTheSignsOfTheTerminal(t *testing.T) {
	long := strings.Repeat("x", 300)
	for ascii, want := range map[bool]string{false: "…", true: "..."} {
		l := &LineREPL{Renderer: term.New(term.Options{Out: io.Discard, ASCII: ascii})}
		if got := l.oneLine(long); !strings.HasSuffix(got, "x"+want) {
			t.Errorf("ASCII %t: %s", ascii, got)
		}
	}
}

// What is printed while a line is typed waits, but not for ever for who does not go on
// typing. The line is not said again and again: it stands there once more when it is typed
// on, or behind the prompt of the next turn; before a question it stands by itself.
func TestAHalfTypedLineDoesNotHoldTheOutputForEver(t *testing.T) {
	for name, tt := range map[string]struct {
		goesOn func(p *LineScreen)
		want   string
		behind bool
	}{
		"typed on": {func(p *LineScreen) { p.showTyped("ft", "draft") }, "and on\n> draft\n", false},
		"typed on within a line": {func(p *LineScreen) {
			_, _ = p.Write([]byte("and "))
			p.showTyped("ft", "draft")
		}, "and on\nand \n> draft\n", false},
		"more is said": {func(p *LineScreen) { _, _ = p.Write([]byte("and on\n")) }, "and on\nand on\n", false},
		"the next prompt": {func(p *LineScreen) {
			_ = p.prompt("/w> ", true)
			p.showTyped("ft", "draft")
		}, "and on\n/w> draft\n", true},
		"a question": {func(p *LineScreen) {
			_ = p.prompt("answer> ", false)
			p.showTyped("ft", "draft")
		}, "and on\n> draft\nanswer> ", false},
	} {
		var out bytes.Buffer
		p := NewLineScreen(&out, true)
		p.typingPause = time.Hour
		_, _ = p.Write([]byte("a stream "))
		p.startLine()
		p.showTyped("dra", "dra")
		_, _ = p.Write([]byte("goes on\nand on\n"))
		p.timerFired()
		p.timerFired() // there is no more
		tt.goesOn(p)
		_, behind := p.endLine(false)
		if got, want := out.String(), "a stream \n> dra\ngoes on\n"+tt.want; got != want || behind != tt.behind {
			t.Errorf("%s: got\n%q, want\n%q; behind a prompt: %t", name, got, want, behind)
		}
	}
}

// What is typed is kept while it is typed: whatever ends the program, it is there again.
func TestWhatIsTypedInLinesIsKeptMeanwhile(t *testing.T) {
	kept := make(chan string, 100)
	d, leave := sitInLines(t, func(l *LineREPL) Session {
		l.SaveUnsent = func(u UnsentText) { kept <- u.Draft }
		return streaming()
	})
	d.sees("/w> ")
	d.keys("half a line")
	for got := ""; got != "half a line"; {
		got = <-kept
	}
	leave()
}
