package rerun

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"coder/internal/agent/orchestrator"
	"coder/internal/agent/supervisor"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/lazy"
	"coder/internal/core/message"
)

// OpenFunc opens the session of the rerun: a new one, or the same again after its
// process has ended.
type OpenFunc func(ctx context.Context, resume bool) (*supervisor.Session, error)

// NotRerunnableError reports a session of which a part cannot be run again.
type NotRerunnableError struct {
	Record uint64
	Why    string
}

func (e *NotRerunnableError) Error() string {
	return fmt.Sprintf("the session cannot be rerun from record %d on: %s", e.Record, e.Why)
}

// Run runs the take again, one process after the other. The error is for what kept it
// from being run at all.
func (f *Replayer) Run(ctx context.Context, open OpenFunc) error {
	for n := 0; ; n++ {
		f.startProcess(n)
		s, err := open(ctx, n > 0)
		if err == nil {
			s.SetSteering(f.steeringTexts)
			f.mu.Lock()
			// a turn runs, so it only takes note
			f.changeMode = func(mode string) { _ = s.ChangeSettings(ctx, mode, event.Discard) }
			f.mu.Unlock()
			err = errors.Join(f.runInputs(ctx, s, n > 0), s.Close())
		}
		f.mu.Lock()
		parted, ended := f.diverged, f.ended
		f.mu.Unlock()
		switch {
		case ctx.Err() != nil: // what the session became then is this one's doing
			return ctx.Err()
		case parted, ended && n == len(f.recording.processes)-1:
			return nil
		case !ended:
			return err
		}
	}
}

// replayInput is what makes a session go on.
type replayInput func(context.Context, *supervisor.Session) error

// runInputs runs what the person said, until the process ends or there is no more.
func (f *Replayer) runInputs(ctx context.Context, s *supervisor.Session, resumed bool) error {
	for ; ctx.Err() == nil; resumed = false {
		f.mu.Lock()
		r, ok := f.nextRecord(main)
		made := len(f.produced)
		ok = (ok || resumed && f.hasPending()) && !f.ended && !f.diverged
		do, err := f.nextInput(r, resumed)
		turn, cancel := context.WithCancel(ctx)
		f.cancel = cancel
		f.mu.Unlock()
		if ok && err == nil {
			err = do(turn, s)
		}
		cancel()
		f.mu.Lock()
		stuck := len(f.produced) == made && !f.diverged && !f.ended
		f.mu.Unlock()
		switch {
		case !ok:
			return nil
		case stuck && err != nil:
			return message.Errorf("record %d: %w", r.Seq, err)
		case stuck:
			return &NotRerunnableError{r.Seq, "the cause of this record is unknown"}
		}
	}
	return ctx.Err()
}

// nextInput is what makes the session go on with a record.
func (f *Replayer) nextInput(r event.Record, resumed bool) (replayInput, error) {
	goOn := func(ctx context.Context, s *supervisor.Session) error {
		if _, err := s.Continue(ctx, event.Discard); !errors.Is(err, supervisor.ErrFinished) {
			return err
		}
		return nil
	}
	if f.turnOpen && f.wasResumeAsked() {
		return func(ctx context.Context, s *supervisor.Session) error {
			_, _, err := s.AskResume(ctx, event.Discard) // other words than a choice are an input of their own
			return err
		}, nil
	}
	if resumed && f.turnOpen && !f.wasAbandoned() {
		return goOn, nil
	}
	if e, ok := r.Event.(event.ModeChanged); ok && !isTypedCommand(f.pending[main]) {
		return func(ctx context.Context, s *supervisor.Session) error {
			return s.SwitchMode(ctx, e.Mode, event.Discard)
		}, nil
	}
	if said, ok := f.nextUserInput(); ok {
		return func(ctx context.Context, s *supervisor.Session) error {
			_, err := s.RunInput(ctx, said, event.Discard)
			return err
		}, nil
	}
	if r.Actor == event.ActorRecovery {
		return goOn, nil
	}
	return nil, &NotRerunnableError{r.Seq, "the original input was not recorded"}
}

// wasResumeAsked reports whether the turn that was left unfinished was put to the person.
func (f *Replayer) wasResumeAsked() bool {
	for _, r := range f.pending[main] {
		switch e := r.Event.(type) {
		case event.ModeChanged: // the process began in another
			continue
		case event.InteractionResponded: // the question of a process that did not live to hear an answer
			if r.Actor == event.ActorRecovery && e.Dismissed {
				continue
			}
		case event.InteractionRequested:
			return e.Author == event.ActorRecovery
		}
		return false
	}
	return false
}

// wasAbandoned reports whether the turn that was left unfinished was not taken up.
func (f *Replayer) wasAbandoned() bool {
	for _, r := range f.pending[main] {
		switch r.Event.(type) {
		case event.TaskCanceled:
			return r.Actor == event.ActorRecovery
		case event.TaskCreated, event.TaskCompleted, event.TaskFailed:
			return false
		}
	}
	return false
}

// nextUserInput is the next thing that the person said.
func (f *Replayer) nextUserInput() (orchestrator.Input, bool) {
	for n, r := range f.pending[main] {
		switch e := r.Event.(type) {
		case event.LocalAdded:
			return f.typedInput(f.renumbered(e.Input)), true
		case event.TaskCreated:
			return f.promptInput(r, e, f.pending[main][n:]), true
		}
	}
	for _, r := range f.recording.excluded { // of a command the end is said last
		switch e := r.Event.(type) {
		case event.LocalAdded:
			return f.typedInput(f.renumbered(e.Input)), isReplayedCommand(e)
		case event.TaskCreated:
			return orchestrator.Input{}, false
		}
	}
	return orchestrator.Input{}, false
}

// byNumber are the commands that name a record.
var byNumber = lazy.Regexp(`^(\s*/(?:restore\s+#?|undo\s.*#))(\d+)\b`)

// renumbered is a command with the record of the rerun that has the place of the one it names.
func (f *Replayer) renumbered(command string) string {
	m := byNumber().FindStringSubmatch(command)
	if m == nil {
		return command
	}
	n, _ := strconv.ParseUint(m[2], 10, 64)
	is := n
	for _, p := range alignRecords(f.recording, f.produced) { // the last up to it: some are not compared
		if p.rerun.Event != nil && p.recorded.Seq <= n {
			is = p.rerun.Seq
		}
	}
	return m[1] + strconv.FormatUint(is, 10) + command[len(m[0]):]
}

// typedInput are what the person typed.
func (f *Replayer) typedInput(text string) orchestrator.Input {
	return orchestrator.TextInput(chat.NewUserText(chat.OriginTyped, f.localizePaths(text)))
}

// promptInput is what the person said to begin a task.
func (f *Replayer) promptInput(created event.Record, task event.TaskCreated, turn []event.Record) orchestrator.Input {
	command := strings.HasPrefix(task.Intent, "/")
	at := slices.IndexFunc(f.recording.Records, func(r event.Record) bool { return r.Seq == created.Seq })
	if at > 0 && !command && strings.HasPrefix(task.Title, "/") {
		e, ok := f.recording.Records[at-1].Event.(event.LocalAdded)
		if ok && orchestrator.Title(e.Input) == task.Title { // the words are those that it stands for
			return f.typedInput(e.Input)
		}
	}
	for n, r := range turn {
		m, ok := firstUserMessage(turn[n:])
		if r.Task != task.TaskID || !ok {
			continue
		}
		if command && m.Text() != task.Intent {
			break // the words are those that the command stands for
		}
		said := f.typedInput(m.Text())
		said.Verbatim = command
		if !strings.Contains(said.Text(), "@") { // what is named is read anew
			said.Pictures = slices.Collect(chat.PartsOf[chat.Image](m))
		}
		return said
	}
	return f.typedInput(task.Intent)
}
