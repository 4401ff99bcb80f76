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
)

// Open opens the session of the rerun: a new one, or the same again after its
// process has ended.
type Open func(ctx context.Context, resume bool) (*supervisor.Session, error)

// UnfitError reports a session of which a part cannot be run again.
type UnfitError struct {
	Record uint64
	Why    string
}

func (e *UnfitError) Error() string {
	return fmt.Sprintf("the session cannot be rerun from record %d on: %s", e.Record, e.Why)
}

// Again runs the take again, one process after the other. The error is for what kept it
// from being run at all.
func (f *Follower) Again(ctx context.Context, open Open) error {
	for n := 0; ; n++ {
		f.begin(n)
		s, err := open(ctx, n > 0)
		if err == nil {
			s.Steer(f.steer)
			f.mu.Lock()
			f.change = func(mode string) { _ = s.Change(ctx, mode, event.Discard) } // a turn runs, so it only takes note
			f.mu.Unlock()
			err = errors.Join(f.inputs(ctx, s, n > 0), s.Close())
		}
		f.mu.Lock()
		parted, ended := f.parted, f.ended
		f.mu.Unlock()
		switch {
		case ctx.Err() != nil: // what the session became then is this one's doing
			return ctx.Err()
		case parted, ended && n == len(f.take.processes)-1:
			return nil
		case !ended:
			return err
		}
	}
}

// input is what makes a session go on.
type input func(context.Context, *supervisor.Session) error

// inputs runs what the person said, until the process ends or there is no more.
func (f *Follower) inputs(ctx context.Context, s *supervisor.Session, resumed bool) error {
	for ; ctx.Err() == nil; resumed = false {
		f.mu.Lock()
		r, ok := f.next(main)
		made := len(f.made)
		ok = (ok || resumed && f.more()) && !f.ended && !f.parted
		do, err := f.input(r, resumed)
		turn, cancel := context.WithCancel(ctx)
		f.cancel = cancel
		f.mu.Unlock()
		if ok && err == nil {
			err = do(turn, s)
		}
		cancel()
		f.mu.Lock()
		stuck := len(f.made) == made && !f.parted && !f.ended
		f.mu.Unlock()
		switch {
		case !ok:
			return nil
		case stuck && err != nil:
			return fmt.Errorf("record %d: %w", r.Seq, err)
		case stuck:
			return &UnfitError{r.Seq, "the cause of this record is unknown"}
		}
	}
	return ctx.Err()
}

// input is what makes the session go on with a record.
func (f *Follower) input(r event.Record, resumed bool) (input, error) {
	goOn := func(ctx context.Context, s *supervisor.Session) error {
		if _, err := s.Continue(ctx, event.Discard); !errors.Is(err, supervisor.ErrFinished) {
			return err
		}
		return nil
	}
	if f.open && f.takenUp() {
		return func(ctx context.Context, s *supervisor.Session) error {
			_, _, err := s.TakeUp(ctx, event.Discard) // other words than a choice are an input of their own
			return err
		}, nil
	}
	if resumed && f.open && !f.abandoned() {
		return goOn, nil
	}
	if e, ok := r.Event.(event.ModeChanged); ok && !typed(f.left[main]) {
		return func(ctx context.Context, s *supervisor.Session) error {
			return s.SwitchMode(ctx, e.Mode, event.Discard)
		}, nil
	}
	if said, ok := f.said(); ok {
		return func(ctx context.Context, s *supervisor.Session) error {
			_, err := s.RunSaid(ctx, said, event.Discard)
			return err
		}, nil
	}
	if r.Actor == event.ActorRecovery {
		return goOn, nil
	}
	return nil, &UnfitError{r.Seq, "the original input was not recorded"}
}

// takenUp reports whether the turn that was left unfinished was put to the person.
func (f *Follower) takenUp() bool {
	for _, r := range f.left[main] {
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

// abandoned reports whether the turn that was left unfinished was not taken up.
func (f *Follower) abandoned() bool {
	for _, r := range f.left[main] {
		switch r.Event.(type) {
		case event.TaskCanceled:
			return r.Actor == event.ActorRecovery
		case event.TaskCreated, event.TaskCompleted, event.TaskFailed:
			return false
		}
	}
	return false
}

// said is the next thing that the person said.
func (f *Follower) said() (orchestrator.Said, bool) {
	for n, r := range f.left[main] {
		switch e := r.Event.(type) {
		case event.LocalAdded:
			return f.words(f.renumbered(e.Input)), true
		case event.TaskCreated:
			return f.prompt(r, e, f.left[main][n:]), true
		}
	}
	for _, r := range f.take.rest { // of a command the end is said last
		switch e := r.Event.(type) {
		case event.LocalAdded:
			return f.words(f.renumbered(e.Input)), runsAgain(e)
		case event.TaskCreated:
			return orchestrator.Said{}, false
		}
	}
	return orchestrator.Said{}, false
}

// byNumber are the commands that name a record.
var byNumber = lazy.Regexp(`^(\s*/(?:restore\s+#?|undo\s.*#))(\d+)\b`)

// renumbered is a command with the record of the rerun that has the place of the one it names.
func (f *Follower) renumbered(command string) string {
	m := byNumber().FindStringSubmatch(command)
	if m == nil {
		return command
	}
	n, _ := strconv.ParseUint(m[2], 10, 64)
	is := n
	for _, p := range align(f.take, f.made) { // the last up to it: some are not compared
		if p.is.Event != nil && p.was.Seq <= n {
			is = p.is.Seq
		}
	}
	return m[1] + strconv.FormatUint(is, 10) + command[len(m[0]):]
}

// words are what the person typed.
func (f *Follower) words(text string) orchestrator.Said {
	return orchestrator.Say(chat.From(chat.Typed, f.here(text)))
}

// prompt is what the person said to begin a task.
func (f *Follower) prompt(created event.Record, task event.TaskCreated, turn []event.Record) orchestrator.Said {
	command := strings.HasPrefix(task.Intent, "/")
	at := slices.IndexFunc(f.take.Records, func(r event.Record) bool { return r.Seq == created.Seq })
	if at > 0 && !command && strings.HasPrefix(task.Title, "/") {
		e, ok := f.take.Records[at-1].Event.(event.LocalAdded)
		if ok && orchestrator.Title(e.Input) == task.Title { // the words are those that it stands for
			return f.words(e.Input)
		}
	}
	for n, r := range turn {
		m, ok := byPerson(turn[n:])
		if r.Task != task.TaskID || !ok {
			continue
		}
		if command && m.Text() != task.Intent {
			break // the words are those that the command stands for
		}
		said := f.words(m.Text())
		said.AsWritten = command
		if !strings.Contains(said.Text(), "@") { // what is named is read anew
			said.Pictures = slices.Collect(chat.Select[chat.Image](m))
		}
		return said
	}
	return f.words(task.Intent)
}
