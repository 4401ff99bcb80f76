package rerun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/policy/mode"
	"coder/internal/record/past"
	"coder/internal/tool"
)

// errDiffers ends a rerun that has come to a difference, errEnded one whose
// process ended at this place.
var (
	errDiffers = errors.New("the session differs from its record")
	errEnded   = errors.New("the process ended here")
)

// Follower runs a take again: it stands in for what came from outside, at the place of the
// record where it came in. It is safe for concurrent use.
type Follower struct {
	take    *Take
	was, is Side
	copy    *past.Copy
	clock   atomic.Value              // of time.Time
	mu      sync.Mutex                // guards the fields below
	left    map[string][]event.Record // what the process under way has still to make, by stream
	cut     bool                      // it is to end there, before its books are closed
	ended   bool                      // it did
	streams namer                     // of the rerun's tasks
	asked   map[string]made           // calls and questions on record, by the ids that they have now
	open    bool                      // a turn is
	mode    string                    // of the last record that changed it
	run     event.Run                 // of the turn under way, or else the next one
	cancel  context.CancelFunc        // of the input under way
	change  func(mode string)         // has the turn under way go on in another mode
	parted  bool                      // the rerun took another course, which ended it
	made    []made                    // what it came to so far
	window  int                       // that the server told of; 0 if it did not yet
	try     int                       // how many reruns of the take there were before
	unclear int                       // calls whose commits have one of two dates
}

// Follow begins to follow a rerun of take, in a copy of the files that it began with. The try is
// how many reruns there were before.
func Follow(take *Take, was, is Side, copy *past.Copy, try int) *Follower {
	f := &Follower{
		take: take, was: was, is: is, copy: copy, try: try, mode: mode.Build, asked: make(map[string]made),
		cancel: func() {}, change: func(string) {},
	}
	f.clock.Store(take.Begun)
	f.begin(0)
	return f
}

// begin begins the nth process.
func (f *Follower) begin(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left, f.ended = maps.Clone(f.take.processes[n]), false
	f.cut = f.take.cut || n < len(f.take.processes)-1
	f.tick()
	f.nextRun()
}

// tick sets the clock to the time of the record that comes next.
func (f *Follower) tick() {
	if then, ok := f.next(main); ok {
		f.clock.Store(then.Time)
	}
}

// LookUp says where the contents of the rerun's files are looked up.
func (f *Follower) LookUp(kept past.Contents) { f.is.Kept = kept }

// Parted reports whether the rerun took another course than the record, which ended it.
func (f *Follower) Parted() bool { return f.parted }

// Now is the time of the rerun: that of the record that comes next.
func (f *Follower) Now() time.Time { return f.clock.Load().(time.Time) }

// Date is when a call on record made its commits: between its request and its result. If these
// are in two seconds, the record does not say in which, and reruns of a session try both.
func (f *Follower) Date(callID string) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	asked, ok := f.asked[callID]
	if !ok {
		return f.Now()
	}
	done, _ := f.take.done(asked)
	if done.Event == nil || done.Time.Unix() == asked.Time.Unix() {
		return asked.Time
	}
	if f.unclear++; f.try > 0 && (f.try == 1 || f.unclear%2 == f.try%2) {
		return asked.Time
	}
	return done.Time
}

// next is the record that the process under way makes next in a stream.
func (f *Follower) next(stream string) (event.Record, bool) {
	if list := f.left[stream]; len(list) > 0 {
		return list[0], true
	}
	return event.Record{}, false
}

// more reports whether the process under way has more to make, in any stream.
func (f *Follower) more() bool {
	for _, list := range f.left {
		if len(list) > 0 {
			return true
		}
	}
	return false
}

// Store is where the records of the rerun go: to store, as far as they are those of the
// take.
func (f *Follower) Store(store event.Store) event.Store { return following{store, f} }

type following struct {
	event.Store
	f *Follower
}

func (s following) Append(ctx context.Context, last uint64, rs ...event.Record) error {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	for _, r := range rs {
		if err := s.f.expect(r); err != nil {
			return err
		}
	}
	if err := s.Store.Append(ctx, last, rs...); err != nil {
		return err
	}
	for _, r := range rs {
		if err := s.f.add(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// expect reports whether the session goes on with a record. A rerun that makes another kind
// of record has taken another course.
func (f *Follower) expect(r event.Record) error {
	switch {
	case f.parted:
		return errDiffers
	case f.ended:
		return errEnded
	case skipped(r.Event):
		return nil
	}
	stream := f.streams.of(r)
	switch want, ok := f.next(stream); {
	case !ok && f.cut:
		return errEnded
	case !ok || keyOf(want.Event) != keyOf(r.Event):
		return f.part(stream, r)
	}
	return nil
}

// part takes down that the rerun took another course with a record, and ends it.
func (f *Follower) part(stream string, is event.Record) error {
	if !f.parted {
		f.parted, f.made = true, append(f.made, made{stream, is})
		f.cancel()
	}
	return errDiffers
}

// add takes in a record that was made again, and has happen what happened next.
func (f *Follower) add(ctx context.Context, r event.Record) error {
	if skipped(r.Event) {
		return nil
	}
	stream := f.streams.of(r)
	was := f.left[stream][0]
	f.left[stream] = f.left[stream][1:]
	f.made = append(f.made, made{stream, r})
	f.tick()
	f.open = isOpen(f.open, stream, r.Event)
	if e, ok := was.Event.(event.ModeChanged); ok {
		f.mode = e.Mode
	}
	switch e := r.Event.(type) {
	case event.ToolCallRequested:
		f.asked[e.CallID] = made{stream, was}
	case event.InteractionRequested:
		f.asked[e.ID] = made{stream, was}
	}
	if !f.open {
		f.nextRun()
	}
	if err := f.copy.Apply(ctx, was.Seq); err != nil {
		return fmt.Errorf("repeat others' file changes after record %d: %w", was.Seq, err)
	}
	f.intervene(stream, was)
	return nil
}

// intervene does what the person did after a record, and ends the process where it ended.
func (f *Follower) intervene(stream string, was event.Record) {
	then, _ := f.next(stream)
	switch e := then.Event.(type) {
	case event.ToolCallRequested:
		if e.Verdict == event.Cancelled && then.Actor != event.ActorRecovery {
			f.cancel() // the person interrupted here
		}
	case event.ModeChanged:
		byHand := then.Actor == event.ActorUser && !typed(f.left[main]) && !handsOver(was.Event)
		if stream == main && f.open && byHand {
			f.change(e.Mode) // between two steps
		}
	}
	if f.cut && !f.more() {
		f.ended = true
		f.cancel()
	}
}

// handsOver reports whether an event is the result of handing a plan over, which
// changes the mode by itself.
func handsOver(e event.Event) bool {
	switch e := e.(type) {
	case event.ToolCallCompleted:
		return tool.ClassOf(e.Tool) == tool.EndsPlan && !e.IsError
	case event.MessageAdded:
		for r := range chat.Select[chat.ToolResult](e.Message) {
			return tool.ClassOf(r.Name) == tool.EndsPlan && !r.Failed
		}
	}
	return false
}

// Run is what the turn under way, or else the next one, is run with.
func (f *Follower) Run() event.Run {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.run
}

// Window is the model's window: what the server told of since, else that of the turn.
func (f *Follower) Window() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return cmp.Or(f.window, f.run.Window)
}

// nextRun finds what the turn is run with that the process under way runs or takes up next.
func (f *Follower) nextRun() {
	for _, r := range f.left[main] {
		if run := runOf(r.Event); run != nil {
			f.run = *run
			return
		}
	}
}

// runOf is what a turn is run with that a record begins or takes up.
func runOf(e event.Event) *event.Run {
	switch e := e.(type) {
	case event.TaskCreated:
		return cmp.Or(e.Run, new(event.Run))
	case event.TaskStarted:
		return e.Run
	}
	return nil
}

// Written is what another program wrote for a command of the turn.
func (f *Follower) Written(command string) (text string, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := make(map[string]bool) // tasks
	for _, e := range each[event.TaskCreated](f.take.streams[main]) {
		name, _, _ := strings.Cut(e.Intent, " ")
		of[e.TaskID] = strings.EqualFold(name, "/"+command)
	}
	for r, m := range each[event.MessageAdded](f.left[main]) {
		if of[r.Task] && r.Actor == event.ActorUser && m.Message.Role == chat.User {
			return f.here(m.Message.Text()), true
		}
	}
	return "", false
}

// Mode is the mode that the process which begins now is in.
func (f *Follower) Mode() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r, ok := f.next(main); ok && !typed(f.left[main]) {
		if e, ok := r.Event.(event.ModeChanged); ok {
			return e.Mode
		}
	}
	return f.mode
}
