package rerun

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/policy/mode"
	"coder/internal/record/past"
	"coder/internal/tool"
)

// errDiverged ends a rerun that has come to a difference, errProcessEnded one whose
// process ended at this place.
var (
	errDiverged     = errors.New("the session differs from its record")
	errProcessEnded = errors.New("the process ended here")
)

// Replayer runs a take again: it stands in for what came from outside, at the place of the
// record where it came in. It is safe for concurrent use.
type Replayer struct {
	recording             *Recording
	recordSide, rerunSide Side
	workCopy              *past.Copy
	clock                 atomic.Value              // of time.Time
	mu                    sync.Mutex                // guards the fields below
	pending               map[string][]event.Record // what the process under way has still to make, by stream
	endsEarly             bool                      // it is to end there, before its books are closed
	ended                 bool                      // it did
	streamNames           streamNamer               // of the rerun's tasks
	requested             map[string]streamRecord   // calls and questions on record, by the ids that they have now
	turnOpen              bool                      // a turn is
	mode                  string                    // of the last record that changed it
	run                   event.RunOptions          // of the turn under way, or else the next one
	cancel                context.CancelFunc        // of the input under way
	changeMode            func(mode string)         // has the turn under way go on in another mode
	diverged              bool                      // the rerun took another course, which ended it
	produced              []streamRecord            // what it came to so far
	window                int                       // that the server told of; 0 if it did not yet
	try                   int                       // how many reruns of the take there were before
	unclear               int                       // calls whose commits have one of two dates
}

// NewReplayer begins to follow a rerun of take, in a copy of the files that it began with. The try is
// how many reruns there were before.
func NewReplayer(take *Recording, was, is Side, copy *past.Copy, try int) *Replayer {
	f := &Replayer{
		recording: take, recordSide: was, rerunSide: is, workCopy: copy, try: try, mode: mode.Build,
		requested: make(map[string]streamRecord),
		cancel:    func() {}, changeMode: func(string) {},
	}
	f.clock.Store(take.StartTime)
	f.startProcess(0)
	return f
}

// startProcess begins the nth process.
func (f *Replayer) startProcess(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending, f.ended = maps.Clone(f.recording.processes[n]), false
	f.endsEarly = f.recording.endsEarly || n < len(f.recording.processes)-1
	f.advanceClock()
	f.nextRun()
}

// advanceClock sets the clock to the time of the record that comes next.
func (f *Replayer) advanceClock() {
	if then, ok := f.nextRecord(main); ok {
		f.clock.Store(then.Time)
	}
}

// SetRerunContents says where the contents of the rerun's files are looked up.
func (f *Replayer) SetRerunContents(kept past.ContentSource) { f.rerunSide.Contents = kept }

// HasDiverged reports whether the rerun took another course than the record, which ended it.
func (f *Replayer) HasDiverged() bool { return f.diverged }

// Now is the time of the rerun: that of the record that comes next.
func (f *Replayer) Now() time.Time { return f.clock.Load().(time.Time) }

// Date is when a call on record made its commits: between its request and its result. If these
// are in two seconds, the record does not say in which, and reruns of a session try both.
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

// nextRecord is the record that the process under way makes next in a stream.
func (f *Replayer) nextRecord(stream string) (event.Record, bool) {
	if list := f.pending[stream]; len(list) > 0 {
		return list[0], true
	}
	return event.Record{}, false
}

// hasPending reports whether the process under way has more to make, in any stream.
func (f *Replayer) hasPending() bool {
	for _, list := range f.pending {
		if len(list) > 0 {
			return true
		}
	}
	return false
}

// Store is where the records of the rerun go: to store, as far as they are those of the
// take.
func (f *Replayer) Store(store event.Store) event.Store { return replayStore{store, f} }

type replayStore struct {
	event.Store
	replayer *Replayer
}

func (s replayStore) Append(ctx context.Context, last uint64, rs ...event.Record) error {
	s.replayer.mu.Lock()
	defer s.replayer.mu.Unlock()
	for _, r := range rs {
		if err := s.replayer.expectRecord(r); err != nil {
			return err
		}
	}
	if err := s.Store.Append(ctx, last, rs...); err != nil {
		return err
	}
	for _, r := range rs {
		if err := s.replayer.addRecord(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// expectRecord reports whether the session goes on with a record. A rerun that makes another kind
// of record has taken another course.
func (f *Replayer) expectRecord(r event.Record) error {
	switch {
	case f.diverged:
		return errDiverged
	case f.ended:
		return errProcessEnded
	case isSkipped(r.Event):
		return nil
	}
	stream := f.streamNames.streamName(r)
	switch want, ok := f.nextRecord(stream); {
	case !ok && f.endsEarly:
		return errProcessEnded
	case !ok || recordKey(want.Event) != recordKey(r.Event):
		return f.diverge(stream, r)
	}
	return nil
}

// diverge takes down that the rerun took another course with a record, and ends it.
func (f *Replayer) diverge(stream string, is event.Record) error {
	if !f.diverged {
		f.diverged, f.produced = true, append(f.produced, streamRecord{stream, is})
		f.cancel()
	}
	return errDiverged
}

// addRecord takes in a record that was made again, and has happen what happened next.
func (f *Replayer) addRecord(ctx context.Context, r event.Record) error {
	if isSkipped(r.Event) {
		return nil
	}
	stream := f.streamNames.streamName(r)
	was := f.pending[stream][0]
	f.pending[stream] = f.pending[stream][1:]
	f.produced = append(f.produced, streamRecord{stream, r})
	f.advanceClock()
	f.turnOpen = isTurnOpen(f.turnOpen, stream, r.Event)
	if e, ok := was.Event.(event.ModeChanged); ok {
		f.mode = e.Mode
	}
	switch e := r.Event.(type) {
	case event.ToolCallRequested:
		f.requested[e.CallID] = streamRecord{stream, was}
	case event.InteractionRequested:
		f.requested[e.ID] = streamRecord{stream, was}
	}
	if !f.turnOpen {
		f.nextRun()
	}
	if err := f.workCopy.Apply(ctx, was.Seq); err != nil {
		return message.Errorf("repeat others' file changes after record %d: %w", was.Seq, err)
	}
	f.replayUserActions(stream, was)
	return nil
}

// replayUserActions does what the person did after a record, and ends the process where it ended.
func (f *Replayer) replayUserActions(stream string, was event.Record) {
	then, _ := f.nextRecord(stream)
	switch e := then.Event.(type) {
	case event.ToolCallRequested:
		if e.Verdict == event.VerdictCancelled && then.Actor != event.ActorRecovery {
			f.cancel() // the person interrupted here
		}
	case event.ModeChanged:
		byHand := then.Actor == event.ActorUser && !isTypedCommand(f.pending[main]) && !isPlanHandover(was.Event)
		if stream == main && f.turnOpen && byHand {
			f.changeMode(e.Mode) // between two steps
		}
	}
	if f.endsEarly && !f.hasPending() {
		f.ended = true
		f.cancel()
	}
}

// isPlanHandover reports whether an event is the result of handing a plan over, which
// changes the mode by itself.
func isPlanHandover(e event.Event) bool {
	switch e := e.(type) {
	case event.ToolCallCompleted:
		return tool.ClassOf(e.Tool) == tool.ClassEndPlan && !e.IsError
	case event.MessageAdded:
		for r := range chat.PartsOf[chat.ToolResult](e.Message) {
			return tool.ClassOf(r.Name) == tool.ClassEndPlan && !r.Failed
		}
	}
	return false
}

// ProcessRun is what the turn under way, or else the next one, is run with.
func (f *Replayer) ProcessRun() event.RunOptions {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.run
}

// Window is the model's window: what the server told of since, else that of the turn.
func (f *Replayer) Window() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return cmp.Or(f.window, f.run.Window)
}

// nextRun finds what the turn is run with that the process under way runs or takes up next.
func (f *Replayer) nextRun() {
	for _, r := range f.pending[main] {
		if run := eventRun(r.Event); run != nil {
			f.run = *run
			return
		}
	}
}

// eventRun is what a turn is run with that a record begins or takes up.
func eventRun(e event.Event) *event.RunOptions {
	switch e := e.(type) {
	case event.TaskCreated:
		return cmp.Or(e.Run, new(event.RunOptions))
	case event.TaskStarted:
		return e.Run
	}
	return nil
}

// CommandText is what another program wrote for a command of the turn.
func (f *Replayer) CommandText(command string) (text string, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := make(map[string]bool) // tasks
	for _, e := range eventsOf[event.TaskCreated](f.recording.streams[main]) {
		name, _, _ := strings.Cut(e.Intent, " ")
		of[e.TaskID] = strings.EqualFold(name, "/"+command)
	}
	for r, m := range eventsOf[event.MessageAdded](f.pending[main]) {
		if of[r.Task] && r.Actor == event.ActorUser && m.Message.Role == chat.User {
			return f.localizePaths(m.Message.Text()), true
		}
	}
	return "", false
}

// Mode is the mode that the process which begins now is in.
func (f *Replayer) Mode() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r, ok := f.nextRecord(main); ok && !isTypedCommand(f.pending[main]) {
		if e, ok := r.Event.(event.ModeChanged); ok {
			return e.Mode
		}
	}
	return f.mode
}
