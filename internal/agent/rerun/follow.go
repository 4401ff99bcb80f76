package rerun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
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

// Side is one of the two that are compared: the session as it was, or its rerun.
type Side struct {
	Paths map[string]string // what stands for a path in texts that are compared
	Kept  Contents          // nil if there is nothing to look up
}

// Contents is what was kept of files.
type Contents interface {
	Content(ctx context.Context, s event.FileState, limit int64) ([]byte, error)
	Expand(ctx context.Context, c event.FileChange) ([]event.FileChange, error)
}

// errDiffers ends a rerun that has come to a difference, errEnded one whose
// process ended at this place.
var (
	errDiffers = errors.New("the session came out otherwise")
	errEnded   = errors.New("the process ended here")
)

// Follower holds a rerun against a take, record by record, and gives it what is
// taken from the record. It is safe for concurrent use.
type Follower struct {
	take     *Take
	was, is  Side
	world    *World
	clock    atomic.Value // of time.Time
	mu       sync.Mutex   // guards the fields below
	at       map[string]int
	streamOf map[string]string      // of the rerun's tasks
	calls    map[string]requested   // the rerun's calls that were requested
	resting  map[string]string      // streams that wait with a call that was cut off: its tool
	asked    map[string]uip.Request // on record, by the id that the question has now
	left     int                    // records before the end of the process under way
	ends     []uint64               // of processes, that are still to come
	ended    bool                   // the process under way
	open     bool                   // a turn is
	cancel   context.CancelFunc     // of the input under way
	change   func(mode string)      // has the turn under way go on in another mode
	parted   bool                   // the rerun took another course, which ended it
	pairs    []pair                 // what it came to so far
	window   int                    // that the server told of; 0 if it did not yet
}

// requested is where the request of a call stands on record.
type requested struct {
	seq    uint64
	stream string
}

// Follow begins to follow a rerun of take, in the copy that world was laid out in.
func Follow(take *Take, was, is Side, world *World) *Follower {
	f := &Follower{
		take: take, was: was, is: is, world: world, ends: slices.Clone(take.ends),
		at: make(map[string]int), streamOf: make(map[string]string), calls: make(map[string]requested), resting: make(map[string]string),
		asked: make(map[string]uip.Request), cancel: func() {}, change: func(string) {},
	}
	if take.cut && len(take.Records) > 0 {
		f.ends = append(f.ends, take.Records[len(take.Records)-1].Seq+1)
	}
	f.count()
	f.clock.Store(take.Start())
	return f
}

// LookUp says where the contents of the rerun's files are looked up.
func (f *Follower) LookUp(kept Contents) { f.is.Kept = kept }

// count finds out how far the process under way gets.
func (f *Follower) count() {
	f.left = 0
	for stream, list := range f.take.streams {
		for _, i := range list[f.at[stream]:] {
			if len(f.ends) > 0 && f.take.Records[i].Seq < f.ends[0] {
				f.left++
			}
		}
	}
}

// Now is the time of the rerun: that of the record that comes next.
func (f *Follower) Now() time.Time { return f.clock.Load().(time.Time) }

// Run is what the turn under way was run with, or the one that comes next, and the
// window that the server told of since.
func (f *Follower) Run() (run event.Run) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n, ok := f.turn(); ok {
		list := f.take.streams[main][n:]
		if e := f.take.Records[list[0]].Event.(event.TaskCreated); e.Run != nil {
			run = *e.Run
		}
		for _, i := range list[1:] { // or the process under way, which took the turn up
			r := f.take.Records[i]
			if _, next := r.Event.(event.TaskCreated); next || len(f.ends) > 0 && r.Seq >= f.ends[0] {
				break
			}
			if e, ok := r.Event.(event.TaskStarted); ok && e.Run != nil {
				run = *e.Run
			}
		}
	}
	run.Window = cmp.Or(f.window, run.Window)
	return run
}

// turn is where the turn under way begins in the session's own stream, or the one
// that comes next, or else the last.
func (f *Follower) turn() (at int, ok bool) {
	for n, i := range f.take.streams[main] {
		if n >= f.at[main] && f.open {
			break
		}
		if _, created := f.take.Records[i].Event.(event.TaskCreated); created {
			if at, ok = n, true; n >= f.at[main] {
				break
			}
		}
	}
	return at, ok
}

// Written is what another program wrote for a command of the turn.
func (f *Follower) Written(command string) (text string, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, ok := f.turn()
	if !ok {
		return "", false
	}
	list := f.take.streams[main][n:]
	task := f.take.Records[list[0]].Event.(event.TaskCreated)
	if name, _, _ := strings.Cut(task.Intent, " "); !strings.EqualFold(name, "/"+command) {
		return "", false
	}
	for _, i := range list {
		r := f.take.Records[i]
		if m, is := r.Event.(event.MessageAdded); is && r.Task == task.TaskID && r.Actor == event.ActorUser && m.Message.Role == chat.User {
			return f.here(m.Message.Text()), true
		}
	}
	return "", false
}

// Mode is the mode that the process which begins now is in.
func (f *Follower) Mode() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := mode.Build
	for n, i := range f.take.streams[main] {
		e, ok := f.take.Records[i].Event.(event.ModeChanged)
		if n > f.at[main] || n == f.at[main] && (!ok || f.take.typed(n+1)) {
			break
		}
		if ok {
			now = e.Mode
		}
	}
	return now
}

// setClock follows the record.
func (f *Follower) setClock() {
	if r, ok := f.next(main); ok {
		f.clock.Store(r.Time)
	}
}

// next is the record that comes next in a stream.
func (f *Follower) next(stream string) (event.Record, bool) {
	list := f.take.streams[stream]
	if n := f.at[stream]; n < len(list) {
		return f.take.Records[list[n]], true
	}
	return event.Record{}, false
}

// beyond reports whether a record was made after the process under way ended.
func (f *Follower) beyond(r event.Record) bool { return len(f.ends) > 0 && r.Seq >= f.ends[0] }

// Store is where the records of the rerun go: to store, if they are those of the
// take.
func (f *Follower) Store(store event.Store) event.Store { return following{f, store} }

type following struct {
	f     *Follower
	store event.Store
}

func (s following) Claim(ctx context.Context, session string) (func() error, error) {
	return s.store.Claim(ctx, session)
}

func (s following) Read(ctx context.Context, session string, after uint64, logs ...event.Log) iter.Seq2[event.Record, error] {
	return s.store.Read(ctx, session, after, logs...)
}

func (s following) Append(ctx context.Context, last uint64, rs ...event.Record) error {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	for _, r := range rs {
		if err := s.f.hold(r); err != nil {
			return err
		}
	}
	if err := s.store.Append(ctx, last, rs...); err != nil {
		return err
	}
	for _, r := range rs {
		if err := s.f.matched(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// hold finds the record that one of the rerun is made in place of. A rerun that makes
// another kind of record has taken another course.
func (f *Follower) hold(r event.Record) error {
	switch {
	case f.parted:
		return errDiffers
	case f.ended:
		return errEnded
	case passedOver(r.Event):
		return nil
	}
	stream := f.stream(r)
	want, ok := f.next(stream)
	switch {
	case ok && f.beyond(want):
		return errEnded
	case !ok:
		return f.part(event.Record{Seq: f.last(stream)}, r)
	case nameOf(want.Event) != nameOf(r.Event) || roleOf(want.Event) != roleOf(r.Event):
		return f.part(want, r)
	}
	return nil
}

// part takes down that the rerun took another course, and ends it.
func (f *Follower) part(was, is event.Record) error {
	if !f.parted {
		f.parted, f.pairs = true, append(f.pairs, pair{was, is})
		f.cancel()
	}
	return errDiffers
}

// roleOf is who says what a record adds to the conversation, or which tool it is about.
func roleOf(e event.Event) string {
	switch e := e.(type) {
	case event.MessageAdded:
		return string(e.Message.Role)
	case event.ToolCallRequested:
		return e.Tool
	case event.ToolCallCompleted:
		return e.Tool
	}
	return ""
}

// stream is that of a record of the rerun.
func (f *Follower) stream(r event.Record) string {
	if e, ok := r.Event.(event.TaskCreated); ok && e.ParentID != "" {
		stream := e.CallID
		for f.at[stream] > 0 {
			stream += "+"
		}
		f.streamOf[e.TaskID] = stream
	}
	return f.streamOf[r.Task]
}

// last is the number of the last record of a stream.
func (f *Follower) last(stream string) uint64 {
	if list := f.take.streams[stream]; len(list) > 0 {
		return f.take.Records[list[len(list)-1]].Seq
	}
	return 0
}

// matched takes note of a record that was made again.
func (f *Follower) matched(ctx context.Context, r event.Record) error {
	if passedOver(r.Event) {
		return nil
	}
	stream := f.stream(r)
	want, _ := f.next(stream)
	f.at[stream]++
	f.pairs = append(f.pairs, pair{want, r})
	f.setClock()
	switch e := r.Event.(type) {
	case event.TaskCreated:
		f.open = f.open || stream == main
	case event.TaskCompleted, event.TaskFailed, event.TaskCanceled:
		f.open = f.open && stream != main
	case event.ToolCallRequested:
		f.calls[e.CallID] = requested{want.Seq, stream}
	case event.InteractionRequested:
		if q, ok := want.Event.(event.InteractionRequested); ok {
			f.asked[e.ID] = q.Request
		}
	}
	if err := f.world.apply(ctx, want.Seq); err != nil {
		return fmt.Errorf("do what others did to files after record %d: %w", want.Seq, err)
	}
	if then, ok := f.next(stream); ok && then.Actor != event.ActorRecovery {
		if e, is := then.Event.(event.ToolCallRequested); is && e.Verdict == event.Cancelled {
			f.cancel() // the person interrupted here
		}
	}
	if then, ok := f.next(main); ok && stream == main && f.open && !f.beyond(then) && !handedOver(want.Event) {
		if e, is := then.Event.(event.ModeChanged); is && then.Actor == event.ActorUser && !f.take.typed(f.at[main]+1) {
			f.change(e.Mode) // the person did, between two steps
		}
	}
	if len(f.ends) > 0 && want.Seq < f.ends[0] {
		if f.left--; f.left == 0 {
			f.ended = true
			f.cancel()
		}
	}
	if f.stuck(stream) {
		return errDiffers
	}
	return nil
}

// handedOver reports whether an event is what came of handing a plan over, which
// changes the mode by itself.
func handedOver(e event.Event) bool {
	m, ok := e.(event.MessageAdded)
	if !ok {
		done, is := e.(event.ToolCallCompleted)
		return is && tool.ClassOf(done.Tool) == tool.EndsPlan && !done.IsError
	}
	for r := range chat.Select[chat.ToolResult](m.Message) {
		if tool.ClassOf(r.Name) == tool.EndsPlan && strings.HasPrefix(r.Text, `{"ok":true`) {
			return true
		}
	}
	return false
}

// reopen begins the next process.
func (f *Follower) reopen() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended, f.ends = false, f.ends[1:]
	f.count()
}

// index is where a record stands.
func (f *Follower) index(seq uint64) int {
	i, _ := slices.BinarySearchFunc(f.take.Records, seq, func(r event.Record, seq uint64) int { return cmp.Compare(r.Seq, seq) })
	return min(i, len(f.take.Records)-1)
}
