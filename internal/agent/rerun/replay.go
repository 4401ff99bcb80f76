package rerun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"coder/internal/agent/orchestrator"
	"coder/internal/agent/supervisor"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/lazy"
	"coder/internal/core/message"
	"coder/internal/policy/mode"
	"coder/internal/record/past"
	"coder/internal/tool"
)

// errDiverged ends a rerun at a difference. errProcessEnded ends it where the recorded process ended.
var (
	errDiverged     = errors.New("the session differs from its record")
	errProcessEnded = errors.New("the process ended here")
)

// NotRerunnableError reports a part of a session that cannot run again.
type NotRerunnableError struct {
	Record uint64
	Why    string
}

func (e *NotRerunnableError) Error() string {
	return fmt.Sprintf("the session cannot be rerun from record %d on: %s", e.Record, e.Why)
}

// Replayer reruns a recording. It replays each outside input at the record where the input arrived, and is safe for
// concurrent use.
type Replayer struct {
	RerunSide   Side // how to read the rerun's records
	recordSide  Side
	recording   *Recording
	workCopy    *past.Copy
	try         int                       // number of earlier reruns
	clock       atomic.Value              // of time.Time
	mu          sync.Mutex                // guards the fields below
	pending     map[string][]event.Record // records that the current process must still produce, by stream
	endsEarly   bool                      // the process must end before it closes its logs
	ended       bool                      // the process has ended there
	streamNames streamNamer               // of the rerun's tasks
	requested   map[string]streamRecord   // recorded calls and questions, by their ids in the rerun
	turnOpen    bool                      // a turn is open
	mode        string                    // the mode after the last mode record
	run         event.RunOptions          // options of the current turn, or of the next one
	window      int                       // window that the server reported; 0 if none yet
	cancel      context.CancelFunc        // stops the current input
	changeMode  func(mode string)         // continues the current turn in another mode
	diverged    bool                      // the rerun differed, so it ended
	produced    []streamRecord            // records of the rerun so far
	numbers     map[uint64]uint64         // record numbers of the rerun, by the recorded ones
	unclear     int                       // calls whose commits have one of two dates
}

// NewReplayer returns a Replayer of recording in a copy of its starting files. try is the number of earlier reruns.
func NewReplayer(recording *Recording, was, is Side, copy *past.Copy, try int) *Replayer {
	f := &Replayer{
		recording: recording, recordSide: was, RerunSide: is, workCopy: copy, try: try, mode: mode.Build,
		requested: make(map[string]streamRecord), numbers: make(map[uint64]uint64),
		cancel: func() {}, changeMode: func(string) {},
	}
	f.clock.Store(recording.StartTime)
	f.startProcess(0)
	return f
}

// startProcess starts the nth recorded process.
func (f *Replayer) startProcess(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending, f.ended = maps.Clone(f.recording.processes[n]), false
	f.endsEarly = f.recording.endsEarly || n < len(f.recording.processes)-1
	f.advance(true)
}

// advance sets the clock to the next record. Between turns, it also sets the next turn's options.
func (f *Replayer) advance(betweenTurns bool) {
	if then, ok := f.nextRecord(main); ok {
		f.clock.Store(then.Time)
	}
	for _, r := range f.pending[main] {
		created, begins := r.Event.(event.TaskCreated)
		started, _ := r.Event.(event.TaskStarted)
		if run := cmp.Or(created.Run, started.Run); betweenTurns && (begins || run != nil) {
			f.run = *cmp.Or(run, new(event.RunOptions))
			return
		}
	}
}

// Now returns the rerun's time: the time of the next record.
func (f *Replayer) Now() time.Time { return f.clock.Load().(time.Time) }

// Date returns when a recorded call made its commits: between its request and its result. If the two
// fall into different seconds, the record does not show which one applies, and reruns try both.
func (f *Replayer) Date(callID string) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	asked, ok := f.requested[callID]
	if !ok {
		return f.Now()
	}
	done, _ := f.recording.findResult(asked)
	if done.Event == nil || done.Time.Unix() == asked.Time.Unix() {
		return asked.Time
	}
	if f.unclear++; f.try > 0 && (f.try == 1 || f.unclear%2 == f.try%2) {
		return asked.Time
	}
	return done.Time
}

// nextRecord returns the record that the current process must produce next in a stream.
func (f *Replayer) nextRecord(stream string) (event.Record, bool) {
	if list := f.pending[stream]; len(list) > 0 {
		return list[0], true
	}
	return event.Record{}, false
}

// hasPending reports whether the current process must still produce records, in any stream.
func (f *Replayer) hasPending() bool {
	for _, list := range f.pending {
		if len(list) > 0 {
			return true
		}
	}
	return false
}

// Store returns a store that checks each record against the recording before it passes the record to store.
func (f *Replayer) Store(store event.Store) event.Store { return replayStore{store, f} }

type replayStore struct {
	event.Store
	replayer *Replayer
}

func (s replayStore) Append(ctx context.Context, last uint64, rs ...event.Record) error {
	s.replayer.mu.Lock()
	defer s.replayer.mu.Unlock()
	for i, r := range rs {
		stream := s.replayer.streamNames.streamName(r)
		err := s.replayer.expectRecord(stream, r)
		if err == nil {
			err = s.Store.Append(ctx, last+uint64(i), r)
		}
		if err == nil && !isSkipped(r.Event) {
			err = s.replayer.addRecord(ctx, stream, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// expectRecord returns an error unless the recording continues with a record like r. A record of another
// kind ends the rerun as a difference.
func (f *Replayer) expectRecord(stream string, r event.Record) error {
	switch want, ok := f.nextRecord(stream); {
	case f.diverged:
		return errDiverged
	case f.ended:
		return errProcessEnded
	case isSkipped(r.Event):
		return nil
	case !ok && f.endsEarly:
		return errProcessEnded
	case !ok || recordKey(want.Event) != recordKey(r.Event):
		return f.diverge(stream, r)
	}
	return nil
}

// diverge saves the record that differs, and ends the rerun.
func (f *Replayer) diverge(stream string, is event.Record) error {
	if !f.diverged {
		f.diverged, f.produced = true, append(f.produced, streamRecord{stream, is})
		f.cancel()
	}
	return errDiverged
}

// addRecord adds a record of the rerun, and replays what followed it: other programs' changes to files,
// the user's actions during a turn, and the end of the process.
func (f *Replayer) addRecord(ctx context.Context, stream string, r event.Record) error {
	was := f.pending[stream][0]
	f.pending[stream] = f.pending[stream][1:]
	f.produced, f.numbers[was.Seq] = append(f.produced, streamRecord{stream, r}), r.Seq
	f.turnOpen = isTurnOpen(f.turnOpen, stream, r.Event)
	f.advance(!f.turnOpen)
	switch e := r.Event.(type) {
	case event.ToolCallRequested:
		f.requested[e.CallID] = streamRecord{stream, was}
	case event.InteractionRequested:
		f.requested[e.ID] = streamRecord{stream, was}
	case event.ModeChanged:
		f.mode = e.Mode
	}
	if err := f.workCopy.Apply(ctx, was.Seq); err != nil {
		return message.Errorf("repeat others' file changes after record %d: %w", was.Seq, err)
	}
	then, _ := f.nextRecord(stream)
	if e, ok := then.Event.(event.ToolCallRequested); ok && e.Verdict == event.VerdictCancelled &&
		then.Actor != event.ActorRecovery {
		f.cancel() // the user interrupted here
	}
	if to, ok := f.nextMode(); ok && stream == main && f.turnOpen && then.Actor == event.ActorUser &&
		!isPlanHandover(was.Event) {
		f.changeMode(to) // between two steps
	}
	if f.endsEarly && !f.hasPending() {
		f.ended = true
		f.cancel()
	}
	return nil
}

// isPlanHandover reports whether an event is the result of an approved plan, which changes the mode.
func isPlanHandover(e event.Event) bool {
	done, _ := e.(event.ToolCallCompleted)
	is := tool.ClassOf(done.Tool) == tool.ClassEndPlan && !done.IsError
	m, _ := e.(event.MessageAdded)
	for r := range chat.PartsOf[chat.ToolResult](m.Message) {
		is = is || tool.ClassOf(r.Name) == tool.ClassEndPlan && !r.Failed
	}
	return is
}

// nextMode returns the mode that the session changes to next without a command.
func (f *Replayer) nextMode() (string, bool) {
	then, _ := f.nextRecord(main)
	e, ok := then.Event.(event.ModeChanged)
	if list := f.pending[main]; ok && len(list) > 1 {
		_, typed := list[1].Event.(event.LocalAdded)
		return e.Mode, !typed
	}
	return e.Mode, ok
}

// ProcessStart returns the mode and the turn options with which the current process starts.
func (f *Replayer) ProcessStart() (mode string, run event.RunOptions) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if to, ok := f.nextMode(); ok {
		return to, f.run
	}
	return f.mode, f.run
}

// Window returns the model's window: the server's last report, or else the turn's.
func (f *Replayer) Window() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return cmp.Or(f.window, f.run.Window)
}

// OpenFunc opens the session of the rerun: a new one, or the same one after its process ended.
type OpenFunc func(ctx context.Context, resume bool) (*supervisor.Session, error)

// Run reruns the recording, one process after the other. It returns an error if the rerun could not start.
func (f *Replayer) Run(ctx context.Context, open OpenFunc) error {
	for n := range f.recording.processes {
		f.startProcess(n)
		s, err := open(ctx, n > 0)
		if err == nil {
			s.SetSteering(f.steeringTexts)
			f.changeMode = func(mode string) { _ = s.ChangeSettings(ctx, mode, event.Discard) } // at the turn's next step
			err = errors.Join(f.runInputs(ctx, s, n > 0), s.Close())
		}
		f.mu.Lock()
		diverged, ended := f.diverged, f.ended
		f.mu.Unlock()
		switch {
		case ctx.Err() != nil: // the caller stopped the rerun
			return ctx.Err()
		case diverged:
			return nil
		case !ended:
			return err
		}
	}
	return nil
}

// runInputs runs the user's inputs until the process or the recording ends.
func (f *Replayer) runInputs(ctx context.Context, s *supervisor.Session, resumed bool) error {
	for ; ctx.Err() == nil; resumed = false {
		turn, cancel := context.WithCancel(ctx)
		f.mu.Lock()
		r, ok := f.nextRecord(main)
		made := len(f.produced)
		over := f.ended || f.diverged || !ok && !(resumed && f.hasPending())
		f.cancel = cancel
		f.mu.Unlock()
		var err error
		if !over {
			err = f.runInput(turn, s, r, resumed)
		}
		cancel()
		f.mu.Lock()
		stuck := len(f.produced) == made && !f.diverged && !f.ended
		f.mu.Unlock()
		switch {
		case over:
			return nil
		case stuck && err != nil:
			return message.Errorf("record %d: %w", r.Seq, err)
		case stuck:
			return &NotRerunnableError{r.Seq, "the cause of this record is unknown"}
		}
	}
	return ctx.Err()
}

// runInput runs the input of a record.
func (f *Replayer) runInput(ctx context.Context, s *supervisor.Session, r event.Record, resumed bool) (err error) {
	f.mu.Lock()
	asks := f.turnOpen && f.wasResumeAsked()
	goesOn := f.turnOpen && resumed && !f.wasAbandoned()
	to, byHand := f.nextMode()
	said, isSaid := f.nextUserInput()
	f.mu.Unlock()
	switch {
	case asks:
		_, _, err = s.AskResume(ctx, event.Discard) // text that is no choice is an input itself
	case byHand && !goesOn:
		err = s.SwitchMode(ctx, to, event.Discard)
	case isSaid && !goesOn:
		_, err = s.RunInput(ctx, said, event.Discard)
	case goesOn, r.Actor == event.ActorRecovery:
		if _, err = s.Continue(ctx, event.Discard); errors.Is(err, supervisor.ErrFinished) {
			err = nil
		}
	default:
		err = &NotRerunnableError{r.Seq, "the original input was not recorded"}
	}
	return err
}

// wasResumeAsked reports whether coder asked the user about the unfinished turn. A change of mode and the
// withdrawal of a question without an answer may come before.
func (f *Replayer) wasResumeAsked() bool {
	for _, r := range f.pending[main] {
		q, asks := r.Event.(event.InteractionRequested)
		a, _ := r.Event.(event.InteractionResponded)
		if asks || !isModeChange(r) && !(a.Dismissed && r.Actor == event.ActorRecovery) {
			return q.Author == event.ActorRecovery
		}
	}
	return false
}

// wasAbandoned reports whether the unfinished turn was not resumed.
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

// nextUserInput returns the next input of the user.
func (f *Replayer) nextUserInput() (said orchestrator.Input, ok bool) {
	list := f.pending[main]
	for n, r := range slices.Concat(list, f.recording.excluded) {
		switch e := r.Event.(type) {
		case event.LocalAdded:
			return f.typedInput(f.renumbered(e.Input)), !isSkipped(e)
		case event.TaskCreated:
			if n >= len(list) {
				return said, false
			}
			return f.promptInput(r, e, list[n:]), true
		}
	}
	return said, false
}

// byNumber matches commands that name a record.
var byNumber = lazy.Regexp(`^(\s*/(?:restore\s+#?|undo\s.*#))(\d+)\b`)

// renumbered returns a command with the rerun's number of the record that the command names.
func (f *Replayer) renumbered(command string) string {
	m := byNumber().FindStringSubmatch(command)
	if m == nil {
		return command
	}
	n, _ := strconv.ParseUint(m[2], 10, 64)
	n = min(n, uint64(len(f.recording.Records)))
	for n > 0 && f.numbers[n] == 0 { // the nearest earlier one: some are not compared
		n--
	}
	return m[1] + strconv.FormatUint(f.numbers[n], 10) + command[len(m[0]):]
}

// typedInput returns what the user typed.
func (f *Replayer) typedInput(text string) orchestrator.Input {
	return orchestrator.TextInput(chat.NewUserText(chat.OriginTyped, f.localizePaths(text)))
}

// promptInput returns the input that started a task.
func (f *Replayer) promptInput(created event.Record, task event.TaskCreated, turn []event.Record) orchestrator.Input {
	command := strings.HasPrefix(task.Intent, "/")
	at := slices.IndexFunc(f.recording.Records, func(r event.Record) bool { return r.Seq == created.Seq })
	if at > 0 && !command && strings.HasPrefix(task.Title, "/") {
		e, ok := f.recording.Records[at-1].Event.(event.LocalAdded)
		if ok && orchestrator.Title(e.Input) == task.Title { // the message holds the expanded text
			return f.typedInput(e.Input)
		}
	}
	for n, r := range turn {
		m, ok := firstUserMessage(turn[n:])
		if r.Task != task.TaskID || !ok {
			continue
		}
		if command && m.Text() != task.Intent {
			break // the message holds the command's expanded text
		}
		said := f.typedInput(m.Text())
		said.Verbatim = command
		if !strings.Contains(said.Text(), "@") { // coder reads a named file again
			said.Pictures = slices.Collect(chat.PartsOf[chat.Image](m))
		}
		return said
	}
	return f.typedInput(task.Intent)
}
