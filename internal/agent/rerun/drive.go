package rerun

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"coder/internal/agent/orchestrator"
	"coder/internal/agent/supervisor"
	"coder/internal/core/chat"
	"coder/internal/core/event"
)

// Open opens the session of the rerun: a new one, or the same again after its
// process has ended.
type Open func(ctx context.Context, resume bool) (*supervisor.Session, error)

// Report is what came of a rerun.
type Report struct {
	Session    string      `json:"session"`
	Steps      int         `json:"steps"`   // replies of the model on record
	Records    int         `json:"records"` // that were held against each other
	Difference *Difference `json:"difference,omitempty"`
	// Unsure are files that may have been others at the beginning.
	Unsure []string `json:"unsure,omitempty"`
	// Missing is what cannot be had, of the files that the session began with or of its
	// records, if that may be where the difference comes from.
	Missing string `json:"missing,omitempty"`
}

// Again runs the take again. The error is for what kept it from being run at all.
func (f *Follower) Again(ctx context.Context, open Open) error {
	err := f.processes(ctx, open)
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil { // what came of the session then is this one's doing
		return ctx.Err()
	}
	if f.parted {
		return nil
	}
	return err
}

// Parted reports whether the rerun took another course than the record, which ended it.
func (f *Follower) Parted() bool { return f.parted }

// Compare compares the rerun with the record. Again are other reruns in the same world:
// what differs between them may differ from the record.
func (f *Follower) Compare(except Exceptions, again ...*Follower) *Report {
	reading := func(side Side) *reader { return &reader{side, except, make(map[event.FileState]string)} }
	c := &comparison{take: f.take, was: reading(f.was), is: reading(f.is), except: except}
	for _, other := range again {
		records := make(map[uint64]event.Record, len(other.pairs))
		for _, p := range other.pairs {
			records[p.was.Seq] = p.is
		}
		c.again = append(c.again, records)
	}
	pairs := slices.Clone(f.pairs)
	report := &Report{Session: f.take.ID, Steps: f.take.Steps(), Records: len(pairs), Difference: c.first(pairs), Unsure: f.world.Unsure}
	if d := report.Difference; d != nil && d.Record != 0 && untold(f.take.Records[f.index(d.Record)].Event) {
		report.Missing = "its record does not say what is needed for it, as with those of earlier versions of coder"
	}
	return report
}

// processes runs one process after the other, as the record has them.
func (f *Follower) processes(ctx context.Context, open Open) error {
	for resume := false; ; resume = true {
		s, err := open(ctx, resume)
		if err != nil {
			return err
		}
		s.Steer(f.steer)
		f.mu.Lock()
		f.change = func(mode string) { _ = s.Change(ctx, mode, event.Discard) } // a turn runs, so it only takes note
		f.mu.Unlock()
		err = f.inputs(ctx, s, resume)
		err = errors.Join(err, s.Close())
		f.mu.Lock()
		ended := f.ended && !f.parted
		_, more := f.next(main)
		f.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case ended && !more:
			return nil
		case !ended:
			return err
		}
		f.reopen()
	}
}

// inputs runs what the person said, until the process ends or there is no more.
func (f *Follower) inputs(ctx context.Context, s *supervisor.Session, resumed bool) error {
	for ctx.Err() == nil {
		f.mu.Lock()
		r, ok := f.next(main)
		before, over := len(f.pairs), f.ended || f.parted
		turn, cancel := context.WithCancel(ctx)
		f.cancel = cancel
		f.mu.Unlock()
		if !ok || over {
			cancel()
			return nil
		}
		act, err := f.input(r, resumed)
		if err == nil {
			err = act(turn, s)
		}
		cancel()
		resumed = false
		f.mu.Lock()
		stuck := len(f.pairs) == before && !f.parted && !f.ended
		f.mu.Unlock()
		switch {
		case stuck && err != nil:
			return fmt.Errorf("record %d: %w", r.Seq, err)
		case stuck:
			return &UnfitError{r.Seq, "nothing is known that would make this record"}
		}
	}
	return ctx.Err()
}

// UnfitError reports a session of which a part cannot be run again.
type UnfitError struct {
	Record uint64
	Why    string
}

func (e *UnfitError) Error() string {
	return fmt.Sprintf("the session cannot be run again from record %d on: %s", e.Record, e.Why)
}

// input is what makes the session go on with a record.
func (f *Follower) input(r event.Record, resumed bool) (func(context.Context, *supervisor.Session) error, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open && f.takenUp() {
		return func(ctx context.Context, s *supervisor.Session) error {
			_, _, err := s.TakeUp(ctx, event.Discard) // other words than a choice are an input of their own
			return err
		}, nil
	}
	if resumed && f.open && !f.abandoned() {
		return func(ctx context.Context, s *supervisor.Session) error {
			_, err := s.Continue(ctx, event.Discard)
			return err
		}, nil
	}
	said, ok := f.upcoming()
	if e, mode := r.Event.(event.ModeChanged); mode && !f.take.typed(f.at[main]+1) {
		return func(ctx context.Context, s *supervisor.Session) error {
			return s.SwitchMode(ctx, e.Mode, event.Discard)
		}, nil
	}
	if !ok && r.Actor == event.ActorRecovery {
		return func(ctx context.Context, s *supervisor.Session) error {
			_, err := s.Continue(ctx, event.Discard)
			if errors.Is(err, supervisor.ErrFinished) {
				return nil
			}
			return err
		}, nil
	}
	if !ok {
		return nil, &UnfitError{r.Seq, "what was said then is not on record"}
	}
	return func(ctx context.Context, s *supervisor.Session) error {
		_, err := s.RunSaid(ctx, said, event.Discard)
		return err
	}, nil
}

// takenUp reports whether the turn that was left unfinished was put to the person.
func (f *Follower) takenUp() bool {
	for _, i := range f.take.streams[main][f.at[main]:] {
		r := f.take.Records[i]
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
	for _, i := range f.take.streams[main][f.at[main]:] {
		switch r := f.take.Records[i]; r.Event.(type) {
		case event.TaskCanceled:
			return r.Actor == event.ActorRecovery
		case event.TaskCreated, event.TaskCompleted, event.TaskFailed:
			return false
		}
	}
	return false
}

// upcoming is the next thing that the person said, from the record that comes next
// on.
func (f *Follower) upcoming() (said orchestrator.Said, ok bool) {
	list := f.take.streams[main]
	for n := f.at[main]; n < len(list); n++ {
		switch e := f.take.Records[list[n]].Event.(type) {
		case event.LocalAdded:
			return orchestrator.Say(chat.From(chat.Typed, f.here(e.Input))), true
		case event.TaskCreated:
			return f.prompt(e, list[n:]), true
		}
	}
	for _, r := range f.take.rest { // of a command the end is said last
		switch e := r.Event.(type) {
		case event.LocalAdded:
			return orchestrator.Say(chat.From(chat.Typed, f.here(e.Input))), runsAgain(e)
		case event.TaskCreated:
			return said, false
		}
	}
	return said, false
}

// prompt is what the person said to begin a task.
func (f *Follower) prompt(task event.TaskCreated, records []int) orchestrator.Said {
	if at := records[0]; at > 0 && !strings.HasPrefix(task.Intent, "/") {
		e, ok := f.take.Records[at-1].Event.(event.LocalAdded)
		if ok && strings.HasPrefix(task.Title, "/") && orchestrator.Title(e.Input) == task.Title { // the words are those that it stands for
			return orchestrator.Say(chat.From(chat.Typed, f.here(e.Input)))
		}
	}
	said := orchestrator.Say(chat.From(chat.Typed, f.here(task.Intent)))
	for _, i := range records {
		r := f.take.Records[i]
		m, ok := r.Event.(event.MessageAdded)
		if r.Task != task.TaskID || !ok || !event.ByPerson(r) {
			continue
		}
		command := strings.HasPrefix(task.Intent, "/")
		if command && m.Message.Text() != task.Intent {
			break // the words are those that the command stands for
		}
		said = orchestrator.Say(chat.From(chat.Typed, f.here(m.Message.Text())))
		said.AsWritten = command
		if !strings.Contains(said.Text(), "@") { // what is named is read anew
			said.Pictures = slices.Collect(chat.Select[chat.Image](m.Message))
		}
		break
	}
	return said
}
