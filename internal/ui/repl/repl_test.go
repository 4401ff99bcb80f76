//go:build unix

package repl

import (
	"context"
	"errors"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/ui/cells"
	"coder/internal/ui/lineedit"
	"coder/internal/ui/term"
	"coder/internal/ui/tty"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// talk is a session whose turns are what a test says.
type talk struct {
	run func(ctx context.Context, input string, out event.Sink) error

	changed atomic.Pointer[string] // the mode it was changed to

	mu    sync.Mutex // guards steer
	steer func() []chat.UserText
}

func (s *talk) Run(ctx context.Context, words lineedit.Draft, out event.Sink) (string, error) {
	input := words.Text()
	return "", s.run(ctx, input, out)
}
func (s *talk) Continue(ctx context.Context, out event.Sink) (string, error) {
	return s.Run(ctx, lineedit.Draft{}, out)
}
func (s *talk) SwitchMode(context.Context, string, event.Sink) error { return nil }
func (s *talk) ChangeSettings(_ context.Context, mode string, _ event.Sink) error {
	s.changed.Store(&mode)
	return nil
}
func (s *talk) TargetMode(input string) string {
	mode, _ := strings.CutPrefix(input, "/mode ")
	return strings.TrimPrefix(mode, input)
}
func (s *talk) IsKnownCommand(input string) bool { return input == "/undo" }
func (s *talk) IsExitCommand(input string) bool  { return input == "/exit" }
func (s *talk) CheckUnknownCommand(input string) error {
	if input == "/udno" {
		return errors.New("unknown command /udno; did you mean /undo? /help lists the commands")
	}
	return nil
}
func (s *talk) IsShowCommand(input string) bool { return input == "/cost" }
func (s *talk) RunShowCommand(ctx context.Context, input string, out event.Sink) error {
	return out.Emit(ctx, event.Record{Event: event.LocalAdded{Input: input, Output: "it cost nothing"}})
}
func (s *talk) ContextUsed() int { return 7 }
func (s *talk) SetSteering(take func() []chat.UserText) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steer = take
}

// desk is a REPL at a terminal, with the person's end of it.
type desk struct {
	t       *testing.T
	face    *REPL
	person  *os.File
	session *talk
	ahead   atomic.Int64              // what the clock is ahead of the real one
	still   atomic.Pointer[time.Time] // when the clock stands still

	mu   sync.Mutex // guards the fields below
	seen strings.Builder
	emu  *vt.Emulator
	call []string // what the person was called for
}

// sit starts a REPL whose turns are run. What it returned is told by leave.
func sit(t *testing.T, run func(ctx context.Context, face *REPL, out event.Sink) error) *desk {
	t.Helper()
	person, program, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := tty.Open(program, program, tty.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, person: person, emu: vt.NewEmulator(80, 24)}
	d.session = &talk{run: func(ctx context.Context, _ string, out event.Sink) error { return run(ctx, d.face, out) }}
	d.face = New(Options{
		Terminal: terminal, Screen: tty.NewScreen(program, terminal.Size, tty.ScreenOptions{}), Translator: term.English{},
		Session: func() Session { return d.session }, Status: func() (string, string) { return "m", "build" },
		ToggleMode: func() string { return "plan" }, NextMode: func(from string) string { return from + "+" }, Dir: "/w",
		Now: func() time.Time {
			if still := d.still.Load(); still != nil {
				return still.Add(time.Duration(d.ahead.Load()))
			}
			return time.Now().Add(time.Duration(d.ahead.Load()))
		},
		Notify: func(text string) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.call = append(d.call, text)
		},
	})
	if err := terminal.SetRaw(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	var work sync.WaitGroup
	work.Go(func() { ended <- d.face.Run(context.Background(), lineedit.Draft{}, false) })
	work.Go(d.watch)
	t.Cleanup(func() {
		d.keys("\x03")
		if err := <-ended; !errors.Is(err, ErrInterrupted) {
			t.Errorf("it ended with %v", err)
		}
		_ = terminal.Close()
		_ = program.Close() // ends watch
		work.Wait()
		_ = person.Close()
	})
	return d
}

var sequences = regexp.MustCompile(`\x1b\[[?\d;]*[A-Za-z]`)

func (d *desk) watch() {
	buf := make([]byte, 4096)
	for {
		n, err := d.person.Read(buf)
		d.mu.Lock()
		_, _ = d.emu.Write(buf[:n])
		d.seen.WriteString(sequences.ReplaceAllString(string(buf[:n]), ""))
		d.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (d *desk) keys(text string) {
	if _, err := d.person.WriteString(text); err != nil {
		d.t.Error(err)
	}
}

// sees waits until the text has been written, and forgets all up to it.
func (d *desk) sees(text string) {
	d.t.Helper()
	for range 180000 {
		d.mu.Lock()
		_, rest, ok := strings.Cut(d.seen.String(), text)
		if ok {
			d.seen.Reset()
			d.seen.WriteString(rest)
		}
		d.mu.Unlock()
		if ok {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	d.t.Fatalf("never saw %q, but %q", text, d.seen.String())
}

var spinner = regexp.MustCompile(`[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]`)

// shows waits until the text is on the screen, blanks at the ends of lines
// aside.
func (d *desk) shows(text string) {
	d.t.Helper()
	var screen string
	for range 180000 {
		d.mu.Lock()
		screen = spinner.ReplaceAllString(d.emu.String(), "⠋")
		d.mu.Unlock()
		var lines []string
		for line := range strings.SplitSeq(screen, "\n") {
			lines = append(lines, strings.TrimRight(line, " \r"))
		}
		if screen = strings.Join(lines, "\n"); strings.Contains(screen, text) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	d.t.Fatalf("never saw %q, but\n%s", text, screen)
}

// pause waits for the test to go on, or for the turn to be stopped.
func pause(ctx context.Context, until <-chan struct{}) {
	select {
	case <-until:
	case <-ctx.Done():
	}
}

func TestAnAnswerGoesBackToWhoAsked(t *testing.T) {
	answers := make(chan uip.Response, 1)
	d := sit(t, func(ctx context.Context, face *REPL, _ event.Sink) error {
		a, err := face.Ask(ctx, lasting)
		answers <- a
		return err
	})
	d.sees("/w> ")
	d.keys("go\r")
	d.sees("[APPROVAL]")
	d.keys("perhaps\r")
	d.sees("answer with a number from 1 to 3, y or n;")
	d.keys("n, not that\r")
	if a := <-answers; a.Option != uip.OptionReject || a.Comment != "not that" || a.Author != "user" || a.ID != "q" {
		t.Errorf("answered %+v", a)
	}
	d.sees("/w> ")
}

func TestAQuestionWaitsWhileADraftIsWritten(t *testing.T) {
	ask, asked := make(chan struct{}), make(chan uip.Response, 1)
	d := sit(t, func(ctx context.Context, face *REPL, _ event.Sink) error {
		pause(ctx, ask)
		a, err := face.Ask(ctx, lasting)
		asked <- a
		return err
	})
	d.sees("/w> ")
	d.keys("go\r")
	d.shows(">")
	now := time.Now()
	d.still.Store(&now)
	d.keys("toda")
	d.shows("> toda")
	close(ask)
	time.Sleep(3 * tickInterval) // it would be put
	d.keys("y\r")
	d.shows("queued: today")
	d.sees("[APPROVAL]")
	d.keys("n\r")
	if a := <-asked; a.Option != uip.OptionReject {
		t.Errorf("answered %+v", a)
	}
	d.still.Store(nil)
	d.sees("/w> ")
}

func TestTheTerminalShowsAllBeforeItTakesAYes(t *testing.T) {
	answers := make(chan uip.Response, 1)
	q := approval("q", uip.OptionApprove, uip.OptionReject)
	q.Display.Content = display.Code{Lang: "sh", Source: strings.Repeat("echo a\n", 45) + "rm hidden\n" + strings.Repeat("echo b\n", 45)}
	d := sit(t, func(ctx context.Context, face *REPL, _ event.Sink) error {
		a, err := face.Ask(ctx, q)
		answers <- a
		return err
	})
	d.sees("/w> ")
	d.keys("go\r")
	d.sees("Ctrl+O: all of it")
	d.keys("y\r")
	d.sees("answer again")
	select {
	case a := <-answers:
		t.Fatalf("the first yes was taken: %+v", a)
	default:
	}
	d.keys("y\r")
	if a := <-answers; a.Option != uip.OptionApprove {
		t.Errorf("answered %+v", a)
	}
	d.sees("/w> ")
}

// A question that was answered elsewhere is put away, and typing goes to the
// draft again.
func TestAWithdrawnQuestionIsPutAway(t *testing.T) {
	withdraw, over := make(chan struct{}), make(chan struct{})
	d := sit(t, func(ctx context.Context, face *REPL, out event.Sink) error {
		asking, stop := context.WithCancel(ctx)
		defer stop()
		go func() {
			pause(asking, withdraw)
			stop()
		}()
		if _, err := face.Ask(asking, lasting); !errors.Is(err, context.Canceled) {
			t.Errorf("asking gave %v", err)
		}
		err := out.Emit(ctx, event.Record{Event: event.Notice{Level: event.LevelWarn, Text: "answered elsewhere"}})
		pause(ctx, over)
		return err
	})
	d.sees("/w> ")
	d.keys("go\r")
	d.sees("[APPROVAL]")
	close(withdraw)
	d.sees("answered elsewhere")
	d.keys("later\r")
	d.sees("queued: later")
	d.keys("\x1b[A\x15")
	close(over)
	d.sees("/w> ")
}

// What is typed stands below a line that is being written, which goes on.
func TestTypingIsSeenBelowALineThatStreams(t *testing.T) {
	over, more := make(chan struct{}), make(chan struct{})
	d := sit(t, func(ctx context.Context, _ *REPL, out event.Sink) error {
		err := out.Emit(ctx, event.Record{Event: event.TextDelta{Text: "half a line "}})
		pause(ctx, more)
		err = errors.Join(err, out.Emit(ctx, event.Record{Event: event.TextDelta{Text: "and more "}}))
		pause(ctx, over)
		return errors.Join(err, out.Emit(ctx, event.Record{Event: event.TextDelta{Text: "to its end"}}))
	})
	d.sees("/w> ")
	d.keys("go\r")
	d.shows("half a line\n\n>")
	d.keys("typed")
	d.shows("half a line\n\n> typed")
	close(more)
	d.shows("half a line and more\n\n> typed")
	d.ahead.Store(int64(time.Hour))
	d.shows("half a line and more\n\n⠋ writing · 1h0m0s · Esc stops it\n> typed")
	close(over)
	d.shows("half a line and more to its end\n\ncontext: 7 tokens · model: m\n[build] /w> typed")
	d.keys("\x15")
}

// Who looks elsewhere, or whose terminal does not tell, is called at the end of a long
// turn; nobody is for a short one, or who looks.
func TestTheEndOfALongTurnCallsThePerson(t *testing.T) {
	for _, tt := range []struct {
		name, focus string
		took        time.Duration
		called      bool
	}{
		{"elsewhere", "\x1b[O", time.Hour, true},
		{"nobody knows", "", time.Hour, true},
		{"here", "\x1b[I", time.Hour, false},
		{"back again", "\x1b[O\x1b[I", time.Hour, false},
		{"short", "\x1b[O", 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			over := make(chan struct{})
			d := sit(t, func(ctx context.Context, _ *REPL, out event.Sink) error {
				err := out.Emit(ctx, event.Record{Event: event.TextDelta{Text: "at work\n"}})
				pause(ctx, over)
				return err
			})
			d.sees("/w> ")
			d.keys("go\r")
			d.shows("at work\n")
			d.keys(tt.focus + "x")
			d.shows("> x")
			d.ahead.Store(int64(tt.took))
			close(over)
			d.shows("[build] /w> x")
			d.mu.Lock()
			defer d.mu.Unlock()
			if want := []string{"the turn has ended: go"}; tt.called != slices.Equal(d.call, want) || !tt.called && len(d.call) > 0 {
				t.Errorf("called for %q", d.call)
			}
		})
	}
}

// All calls that run are named, each with its own time; one that is over is
// not.
func TestWhatRunsIsNamed(t *testing.T) {
	over, next := make(chan struct{}), make(chan struct{})
	d := sit(t, func(ctx context.Context, face *REPL, out event.Sink) error {
		start := func(id string) {
			_ = out.Emit(ctx, event.Record{Task: "t", Event: event.ToolStarted{CallID: id, Tool: "grep", Title: id}})
		}
		start("a")
		pause(ctx, next)
		start("b")
		pause(ctx, next)
		_ = out.Emit(ctx, event.Record{Task: "t", Event: event.ToolFinished{CallID: "a", Tool: "grep", Title: "a", Summary: "7 matches"}})
		pause(ctx, over)
		return nil
	})
	d.sees("/w> ")
	d.keys("go\r")
	d.shows("[tool] grep  a\n\n>")
	d.ahead.Store(int64(time.Hour))
	next <- struct{}{}
	d.shows("[tool] grep  b")
	d.ahead.Store(int64(2 * time.Hour))
	d.shows("⠋ grep a · 2h0m0s\n⠋ grep b · 1h0m0s · Esc stops it\n>")
	next <- struct{}{}
	d.shows("✓ grep a: 7 matches")
	d.shows("\n⠋ grep b · 1h0m0s · Esc stops it\n>")
	close(over)
	d.sees("/w> ")
}

// What only looks something up is answered while a turn runs, and modes change.
func TestATurnLetsThePersonLook(t *testing.T) {
	over, more := make(chan struct{}), make(chan struct{})
	d := sit(t, func(ctx context.Context, _ *REPL, out event.Sink) error {
		err := out.Emit(ctx, event.Record{Task: "t", Event: event.TextDelta{Text: "one line\nhalf a "}})
		pause(ctx, more)
		err = errors.Join(err, out.Emit(ctx, event.Record{Task: "t", Event: event.TextDelta{Text: "line\n\nthe next\n"}}))
		pause(ctx, over)
		return err
	})
	d.sees("/w> ")
	d.keys("go\r")
	d.shows("one line\nhalf a")
	d.keys("/cost\r")
	d.shows("one line\nhalf a\n\n> /cost\n\nit cost nothing\n\n>") // seen at once, below what is unfinished
	close(more)
	d.shows("one line\nhalf a line\n\n> /cost\n\nit cost nothing\n\nthe next\n\n>")
	d.keys("\x1b[Z")
	d.shows("mode build+ from the next step\n>")
	d.keys("\x1b[Z")
	d.shows("mode build++ from the next step\n>")
	if got := d.session.changed.Load(); got == nil || *got != "build++" {
		t.Errorf("the mode was changed to %v", got)
	}
	d.keys("/mode plan\r")
	d.shows("mode plan from the next step\n>")
	if got := d.session.changed.Load(); *got != "plan" {
		t.Errorf("the mode was changed to %v", *got)
	}
	d.keys("/undo\r")
	d.shows("queued: /undo")
	d.keys("\x1b[A\x15")
	close(over)
	d.sees("/w> ")
}

func TestALongPathIsShortenedInTheMiddle(t *testing.T) {
	for _, tt := range []struct {
		path    string
		columns int
		want    string
	}{
		{"/home/me/w", 40, "/home/me/w"},
		{"/home/me/projects/customers/some-customer/services/billing", 40, "/home/me/proj…-customer/services/billing"},
		{"/home/me/项目/一个很长的文件夹名字/服务/账单系统", 30, "/home/me/…夹名字/服务/账单系统"},
		{"/home/me/projects", 0, "/hom…rojects"},
	} {
		got := cells.ShortenMiddle(tt.path, tt.columns, "…")
		if got != tt.want || cells.Width(got) > max(tt.columns, 12) {
			t.Errorf("%s in %d columns: %s", tt.path, tt.columns, got)
		}
	}
}

// A stream is drawn as often as the loop can, what is written beyond a bound or
// while there is no loop at once.
func TestOutputIsCollected(t *testing.T) {
	var out strings.Builder
	w := outputBuffer{screen: tty.NewScreen(&out, func() (int, int) { return 80, 24 }, tty.ScreenOptions{}), ready: make(chan struct{}, 1)}
	for i, step := range []struct {
		looped bool
		text   string
		shown  int // lines
	}{
		{false, "at once\n", 1},
		{true, "later\n", 0},
		{true, "still later\n", 0},
		{true, strings.Repeat("x\n", maxBuffered/2+1), maxBuffered/2 + 1},
		{true, "held\n", 0},
		{false, "", 1},
	} {
		out.Reset()
		if err := w.setLoop(step.looped); err != nil && step.looped {
			t.Fatal(err)
		}
		if step.looped {
			out.Reset()
		}
		if err := w.add(step.text, term.PendingOutput{}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(out.String(), "\r\n"); got != step.shown {
			t.Errorf("step %d: %d lines were shown, want %d", i, got, step.shown)
		}
	}
}

// Only Esc is told as Esc.
func TestOtherEndsAreNotToldAsEsc(t *testing.T) {
	for _, esc := range []bool{true, false} {
		w := &failureSink{Sink: &seen{}, stopped: new(atomic.Bool)}
		w.stopped.Store(esc)
		if err := w.Emit(t.Context(), event.Record{Event: event.Interrupted{}}); err != nil {
			t.Fatal(err)
		}
		if got := w.Sink.(*seen).n == 1; got != esc || !w.errShown.Load() {
			t.Errorf("Esc %v: shown %v", esc, got)
		}
	}
}

type seen struct{ n int }

func (s *seen) Emit(context.Context, event.Record) error { s.n++; return nil }

// A line that fills its row is followed by as many blank lines as any other.
func TestALineThatFillsItsRowLeavesNoBlankLine(t *testing.T) {
	d := sit(t, func(ctx context.Context, _ *REPL, out event.Sink) error {
		return out.Emit(ctx, event.Record{Task: "t", Event: event.TextDelta{Text: "done\n"}})
	})
	d.sees("/w> ")
	line := strings.Repeat("x", 80-len("[build] /w> "))
	d.keys(line + "\r")
	d.shows("[build] /w> " + line + "\n[ANSWER]\ndone\n")
}

func TestAnEchoKeepsWordsWhole(t *testing.T) {
	d := sit(t, func(context.Context, *REPL, event.Sink) error { return nil })
	if got, want := d.face.echo(strings.Repeat("words ", 14)), "> "+strings.Repeat("words ", 12)+"words\n  words"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A terminal that gets one size after another lays out again what stands there, and may
// tell of it late: until it has come to rest nothing is drawn into that.
func TestNothingIsDrawnWhileTheTerminalIsResized(t *testing.T) {
	d := sit(t, func(context.Context, *REPL, event.Sink) error { return nil })
	d.shows("/w>")
	began := time.Now()
	d.face.events <- []tty.Event{tty.Resize{}, tty.Key{Name: lineedit.Char, Rune: 'x'}}
	d.shows("/w> x")
	if after := time.Since(began); after < resizeDelay {
		t.Errorf("it was drawn after %v", after)
	}
}

// What waits for the end of a paragraph is seen from its first line on: all of it, or
// what came last as far as there is room.
func TestWhatWaitsForAParagraphIsSeenFromItsFirstLine(t *testing.T) {
	d := sit(t, func(context.Context, *REPL, event.Sink) error { return nil })
	for _, tt := range []struct {
		all, newest string
		want        []string
	}{
		{"", "", nil},
		{"a\nb\nc", "c", []string{"", "a", "b", "c", ""}},
		{"a\nb\nc\nd\ne", "d\ne", []string{"", "d", "e", ""}},
		{"a\n1\n2\n3\n4\n5\n6", "1\n2\n3\n4\n5\n6", []string{"", "1", "2", "3", "3 more lines follow", ""}},
	} {
		face := &REPL{Options: d.face.Options}
		if got := face.aheadRows(term.PendingOutput{Waiting: tt.all, WaitingNewest: tt.newest}, 80, 4); !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q", tt.all, got)
		}
	}
}

// A question that came at once, and is left alone, calls for the person after a while.
func TestAQuestionThatIsLeftAloneCallsThePerson(t *testing.T) {
	d := sit(t, func(ctx context.Context, face *REPL, _ event.Sink) error {
		_, err := face.Ask(ctx, uip.Request{ID: "q", Kind: uip.KindInput, Purpose: uip.PurposeRequestInfo, Display: uip.Display{Title: "which way?"}})
		return err
	})
	d.sees("/w> ")
	d.keys("go\r")
	d.sees("which way?")
	called := func() []string {
		d.mu.Lock()
		defer d.mu.Unlock()
		return slices.Clone(d.call)
	}
	if got := called(); len(got) > 0 {
		t.Errorf("called at once: %q", got)
	}
	d.ahead.Store(int64(time.Hour))
	for len(called()) == 0 { // the test's own time limit ends this
		time.Sleep(time.Millisecond)
	}
	d.keys("left\r")
	d.shows("[build] /w>")
	if got := called(); got[0] != "which way?" {
		t.Errorf("called for %q", got)
	}
}

// A number answers at once, and the Enter that a habit adds to it is not taken for anything.
func TestANumberAnswersAtOnce(t *testing.T) {
	for key, want := range map[string]uip.Response{
		"1\r":         {ID: "q", Author: "user", Option: uip.OptionApprove},
		"2":           {ID: "q", Author: "user", Option: uip.OptionAlways},
		"3\r":         {ID: "q", Author: "user", Option: uip.OptionReject, Stop: true},
		"\x1b[B\r":    {ID: "q", Author: "user", Option: uip.OptionAlways},
		"y\r":         {ID: "q", Author: "user", Option: uip.OptionApprove},
		"?\r\x1b[B\r": {ID: "q", Author: "user", Option: uip.OptionApprove},
	} {
		answers := make(chan uip.Response, 1)
		d := sit(t, func(ctx context.Context, face *REPL, _ event.Sink) error {
			a, err := face.Ask(ctx, lasting)
			answers <- a
			return err
		})
		d.sees("/w> ")
		d.keys("go\r")
		d.sees("[APPROVAL]")
		d.keys("\r") // it has just appeared
		d.keys(key)
		if a := <-answers; !reflect.DeepEqual(a, want) {
			t.Errorf("%q answered %+v", key, a)
		}
		d.sees("/w> ")
	}
}

// What is dangerous takes no number and no Enter.
func TestWhatIsDangerousTakesWordsAlone(t *testing.T) {
	answers := make(chan uip.Response, 1)
	q := approval("q", uip.OptionApprove, uip.OptionReject)
	q.Display.Description = "risk: removes files"
	d := sit(t, func(ctx context.Context, face *REPL, _ event.Sink) error {
		a, err := face.Ask(ctx, q)
		answers <- a
		return err
	})
	d.sees("/w> ")
	d.keys("go\r")
	d.sees("Type y and Enter")
	d.keys("1\r")
	d.sees("answer y or n")
	d.keys("\x1b[B\x1b[A\r")
	d.sees("answer y or n")
	d.keys("n\r")
	if a := <-answers; a.Option != uip.OptionReject || a.Stop {
		t.Errorf("answered %+v", a)
	}
	d.sees("/w> ")
}
