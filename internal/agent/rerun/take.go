// Package rerun runs a recorded session again and tells the first thing that
// comes out otherwise.
//
// What came from outside comes from the record: the person's words and answers,
// the model's replies, what was fetched, what programs of others said, the end of
// a process, what somebody else did to the files. Everything else is done anew,
// and every record that this makes is compared with the one that stands on record
// in its place. A session and each of its subtasks are a stream of their own:
// within a stream the order counts, between streams it does not.
package rerun

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"coder/internal/agent/supervisor"
	"coder/internal/core/event"
	"coder/internal/policy/mode"
	"coder/internal/record/past"
)

// Take is a session on record that can be run again.
type Take struct {
	ID      string
	Root    string // the workspace, where it was then
	Records []event.Record

	Begun    time.Time                 // the time of the first record
	First    event.Record              // begins the first turn
	Flags    event.Run                 // of that
	Stated   event.Record              // names the state of the repository in which the session began
	State    string                    // that name
	Model    string                    // replied first
	Requests []event.ToolCallRequested // the calls

	steps     int                         // a limit that a turn ran into; 0 if none did
	streams   map[string][]event.Record   // the records that are compared
	processes []map[string][]event.Record // the same, as each process made them
	cut       bool                        // the last one ended without closing the books, as those before it did
	rest      []event.Record              // what comes after it
}

// main is the stream of the session itself; a subtask's is that of its call.
const main = ""

// Until is a take of the first n records. It ends as if its process had.
func (t *Take) Until(n int) *Take {
	part := New(t.ID, t.Root, t.Records[:n])
	part.rest = t.Records[n:]
	part.cut = part.cut || len(part.rest) > 0
	return part
}

// New reads a session, oldest record first.
func New(id, root string, records []event.Record) *Take {
	now := make(map[string][]event.Record)
	t := &Take{ID: id, Root: root, Records: records, streams: make(map[string][]event.Record)}
	if len(records) > 0 {
		t.Begun = records[0].Time
	}
	t.processes = append(t.processes, now)
	streams, p := namer{}, process{}
	for _, r := range records {
		stream := streams.of(r)
		t.cut = isOpen(t.cut, stream, r.Event)
		t.note(r, stream)
		if skipped(r.Event) {
			continue
		}
		if p.another(r, stream) {
			before, n := now[main], len(now[main])
			for ; n > 1; n-- { // it put the mode it was begun in on record first
				if _, ok := before[n-1].Event.(event.ModeChanged); !ok {
					break
				}
			}
			now[main], now = before[:n:n], map[string][]event.Record{main: before[n:]}
			t.processes = append(t.processes, now)
		}
		now[stream] = append(now[stream], r)
		t.streams[stream] = append(t.streams[stream], r)
	}
	return t
}

// note takes down what is asked of a take.
func (t *Take) note(r event.Record, stream string) {
	switch e := r.Event.(type) {
	case event.TaskCreated:
		if stream == main && t.First.Event == nil {
			t.First, t.Flags = r, flags(e.Run)
		}
	case event.TaskFailed:
		t.steps = cmp.Or(t.steps, e.Steps)
	case event.ToolCallRequested:
		if t.Requests = append(t.Requests, e); t.State == "" {
			t.Stated, t.State = r, e.Repository
		}
	case event.MessageAdded:
		if _, ok := event.Reply(e); ok {
			t.Model = cmp.Or(t.Model, e.Model)
		}
	}
}

// repliesBy is how many replies of the model there were by a record.
func (t *Take) repliesBy(seq uint64) (n int) {
	for _, r := range t.Records {
		if _, ok := event.Reply(r.Event); ok && r.Seq <= seq {
			n++
		}
	}
	return n
}

// MaxSteps is the limit that a turn ran into, or else none: all turns came to an end on record.
func (t *Take) MaxSteps() int { return cmp.Or(t.steps, math.MaxInt) }

// Trace finds out from the whole record what the files of a take of its beginning were.
func Trace(ctx context.Context, whole, take *Take, kept past.Kept) (*past.World, error) {
	end := uint64(0)
	if n := len(take.Records); n > 0 {
		end = take.Records[n-1].Seq
	}
	return past.Trace(ctx, whole.Records, end, kept, skipped)
}

// isOpen reports whether the session is in a turn after an event, if it was before.
func isOpen(before bool, stream string, e event.Event) bool {
	switch e.(type) {
	case event.TaskCreated:
		return before || stream == main
	case event.TaskCompleted, event.TaskFailed, event.TaskCanceled:
		return before && stream != main
	}
	return before
}

// done finds the result of a requested call, if there is one. A later call may have the same id.
func (t *Take) done(asked made) (r event.Record, e event.ToolCallCompleted) {
	request, _ := asked.Event.(event.ToolCallRequested)
	for r, e := range each[event.ToolCallCompleted](t.streams[asked.stream]) {
		if e.CallID == request.CallID && r.Seq > asked.Seq {
			return r, e
		}
	}
	return r, e
}

// namer names the streams of records. A subtask's is its call, with a sign more for each that
// worked for the call before.
type namer map[string]string // by the task

func (n *namer) of(r event.Record) string {
	if *n == nil {
		*n = make(namer)
	}
	e, ok := r.Event.(event.TaskCreated)
	if _, known := (*n)[e.TaskID]; ok && e.ParentID != "" && !known {
		stream := e.CallID
		for _, taken := (*n)["\x00"+stream]; taken; _, taken = (*n)["\x00"+stream] {
			stream += "+"
		}
		(*n)[e.TaskID], (*n)["\x00"+stream] = stream, stream
	}
	return (*n)[r.Task]
}

// process tells the records of a process from those of the next.
type process struct {
	fresh  map[string]bool // streams with records of the process
	run    *event.Run      // the flags of its last turn
	asked  map[string]bool // its questions about a turn that an earlier one left
	looked bool            // the person wants to see more before they answer these
}

// another reports whether a record is the first of another process.
func (p *process) another(r event.Record, stream string) bool {
	begins := false
	answer, answers := r.Event.(event.InteractionResponded)
	answers = answers && p.asked[answer.ID]
	question, asks := r.Event.(event.InteractionRequested)
	switch e := r.Event.(type) {
	case event.TaskCreated: // with other flags
		if stream == main {
			begins = p.fresh[main] && p.run != nil && flags(e.Run) != *p.run
			p.run = new(flags(e.Run))
		}
	case event.TaskStarted: // taken up
		if stream == main && e.Run != nil {
			begins = p.fresh[main]
			p.run = new(flags(e.Run))
		}
	case event.ToolCallRequested: // the one before had its keys
		begins = e.Keyless && p.fresh[stream]
	}
	recovers := r.Actor == event.ActorRecovery
	withdraws := answers || asks && len(p.asked) > 0 && question.CallID() == "" && !p.looked
	if begins = begins || recovers && (p.fresh[stream] || withdraws); begins || p.fresh == nil {
		*p = process{fresh: make(map[string]bool), run: p.run, asked: make(map[string]bool)}
	}
	p.fresh[stream] = p.fresh[stream] || !recovers && !answers
	if asks && recovers {
		p.asked[question.ID], p.looked = true, false
	}
	if _, ok := r.Event.(event.InteractionResponded); ok {
		p.looked = answer.Option == supervisor.Look
	}
	return begins
}

// flags are those that a run was begun with.
func flags(r *event.Run) event.Run {
	if r == nil {
		return event.Run{}
	}
	of := *r
	of.Window = 0
	return of
}

// skipped reports whether an event is not compared: it is of another version, it is
// about money, or it only looked something up.
func skipped(e event.Event) bool {
	switch e := e.(type) {
	case event.Spent, event.Unknown:
		return true
	case event.LocalAdded:
		return !runsAgain(e)
	}
	return false
}

// commands are those of the program's own that change something in a session.
var commands = slices.Concat([]string{"compact", "undo", "redo", "restore", "rewind", "mode", "permissions"}, mode.Names())

func runsAgain(e event.LocalAdded) bool {
	name, args, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(e.Input), "/"), " ")
	if name == "mode" || name == "permissions" {
		return strings.TrimSpace(args) != "" && !strings.HasPrefix(strings.TrimSpace(args), "revoke")
	}
	return slices.Contains(commands, name)
}

// typed reports whether the second of some records is a command that the person typed.
func typed(list []event.Record) bool {
	if len(list) < 2 {
		return false
	}
	_, ok := list[1].Event.(event.LocalAdded)
	return ok
}

// each yields the events of a kind, with their records.
func each[E event.Event](records []event.Record) iter.Seq2[event.Record, E] {
	return func(yield func(event.Record, E) bool) {
		for _, r := range records {
			if e, ok := r.Event.(E); ok && !yield(r, e) {
				return
			}
		}
	}
}
