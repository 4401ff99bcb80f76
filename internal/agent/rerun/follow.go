package rerun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/policy/mode"
	"coder/internal/tool"
)

// errDiffers ends a rerun that has come to a difference, errEnded one whose
// process ended at this place.
var (
	errDiffers = errors.New("the session differs from its record")
	errEnded   = errors.New("the process ended here")
)

// Follower runs a take again: it stands in for what came from outside, and pairs each
// record that is made with one of the take. It is safe for concurrent use.
type Follower struct {
	take    *Take
	was, is Side
	world   *World
	clock   atomic.Value // of time.Time
	mu      sync.Mutex   // guards the fields below
	left    map[string][]event.Record
	streams namer                  // of the rerun's tasks
	calls   map[string]call        // by the id that a call has now
	asked   map[string]uip.Request // by the id that a question has now, the one on record
	ends    []uint64               // of processes, that are still to come
	ended   bool                   // the process under way
	open    bool                   // a turn is
	cancel  context.CancelFunc     // of the input under way
	change  func(mode string)      // has the turn under way go on in another mode
	parted  bool                   // the rerun took another course, which ended it
	pairs   []pair                 // what it came to so far
	window  int                    // that the server told of; 0 if it did not yet
}

// pair is a record and the one that a rerun made in its place. Without one the record
// stands alone, and where the rerun made one more there is no record.
type pair struct{ was, is event.Record }

// call is the request of a call on record, and its stream.
type call struct {
	asked  event.Record
	stream string
}

// Follow begins to follow a rerun of take, in the copy that world was laid out in.
func Follow(take *Take, was, is Side, world *World) *Follower {
	f := &Follower{
		take: take, was: was, is: is, world: world, ends: slices.Clone(take.ends), left: make(map[string][]event.Record),
		calls: make(map[string]call), asked: make(map[string]uip.Request), cancel: func() {}, change: func(string) {},
	}
	for stream, list := range take.streams {
		f.left[stream] = list
	}
	f.clock.Store(take.Start())
	return f
}

// LookUp says where the contents of the rerun's files are looked up.
func (f *Follower) LookUp(kept Contents) { f.is.Kept = kept }

// Parted reports whether the rerun took another course than the record, which ended it.
func (f *Follower) Parted() bool { return f.parted }

// Now is the time of the rerun: that of the record that comes next.
func (f *Follower) Now() time.Time { return f.clock.Load().(time.Time) }

// next is the record that comes next in a stream.
func (f *Follower) next(stream string) (event.Record, bool) {
	if list := f.left[stream]; len(list) > 0 {
		return list[0], true
	}
	return event.Record{}, false
}

// beyond reports whether a record was made after the process under way ended.
func (f *Follower) beyond(r event.Record) bool { return len(f.ends) > 0 && r.Seq >= f.ends[0] }

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
		if err := s.f.pair(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// expect finds the record that one of the rerun is made in place of. A rerun that makes
// another kind of record has taken another course.
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
	want, ok := f.next(stream)
	switch {
	case ok && f.beyond(want):
		return errEnded
	case !ok || keyOf(want.Event) != keyOf(r.Event):
		return f.part(stream, r)
	}
	return nil
}

// part takes down that the rerun took another course with a record, and ends it.
func (f *Follower) part(stream string, is event.Record) error {
	if !f.parted {
		was, ok := f.next(stream)
		if list := f.take.streams[stream]; !ok && len(list) > 0 {
			was.Seq = list[len(list)-1].Seq
		}
		f.parted, f.pairs = true, append(f.pairs, pair{was, is})
		f.cancel()
	}
	return errDiffers
}

// keyOf is what two records have in common that stand in each other's place: their kind, who
// says what they add to the conversation, and which tool they are about.
func keyOf(e event.Event) (key struct{ kind, about string }) {
	key.kind = nameOf(e)
	switch e := e.(type) {
	case event.MessageAdded:
		key.about = string(e.Message.Role)
	case event.ToolCallRequested:
		key.about = e.Tool
	case event.ToolCallCompleted:
		key.about = e.Tool
	}
	return key
}

// pair takes note of a record that was made again, and has happen what happened next.
func (f *Follower) pair(ctx context.Context, r event.Record) error {
	if skipped(r.Event) {
		return nil
	}
	stream := f.streams.of(r)
	was := f.left[stream][0]
	f.left[stream] = f.left[stream][1:]
	f.pairs = append(f.pairs, pair{was, r})
	if then, ok := f.next(main); ok {
		f.clock.Store(then.Time)
	}
	switch e := r.Event.(type) {
	case event.TaskCreated:
		f.open = f.open || stream == main
	case event.TaskCompleted, event.TaskFailed, event.TaskCanceled:
		f.open = f.open && stream != main
	case event.ToolCallRequested:
		f.calls[e.CallID] = call{was, stream}
	case event.InteractionRequested:
		f.asked[e.ID] = was.Event.(event.InteractionRequested).Request
	}
	if err := f.world.apply(ctx, was.Seq); err != nil {
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
		byHand := then.Actor == event.ActorUser && !typed(f.left[main], 1) && !handsOver(was.Event)
		if stream == main && f.open && !f.beyond(then) && byHand {
			f.change(e.Mode) // between two steps
		}
	}
	over := len(f.ends) > 0
	for stream := range f.left {
		r, more := f.next(stream)
		over = over && (!more || f.beyond(r))
	}
	if over && !f.ended {
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

// Run is what the process that begins now is run with.
func (f *Follower) Run() event.Run {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, next := f.runs()
	return next
}

// Window is the model's window: what the server told of since, else that of the turn.
func (f *Follower) Window() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	last, next := f.runs()
	if f.open {
		next = last
	}
	return cmp.Or(f.window, next.Window)
}

// runs are what the last turn was run with, and what the next one is that the process under
// way runs or takes up.
func (f *Follower) runs() (last, next event.Run) {
	list, of := f.take.streams[main], (*event.Run)(nil)
	made, found := len(list)-len(f.left[main]), false
	for n, r := range list {
		switch e := r.Event.(type) {
		case event.TaskCreated:
			of = cmp.Or(e.Run, new(event.Run))
		case event.TaskStarted:
			of = e.Run
		default:
			of = nil
		}
		switch {
		case of == nil:
		case n < made:
			last = *of
		case !found && !f.beyond(r):
			next, found = *of, true
		}
	}
	if !found {
		next = last
	}
	return last, next
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
	now, list := mode.Build, f.take.streams[main]
	made := len(list) - len(f.left[main])
	for n, r := range list[:min(made+1, len(list))] {
		if e, ok := r.Event.(event.ModeChanged); ok && (n < made || !typed(list, n+1)) {
			now = e.Mode
		}
	}
	return now
}
