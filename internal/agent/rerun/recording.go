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

// Recording is a session on record that can be run again.
type Recording struct {
	ID          string
	Root        string // the workspace, where it was then
	Records     []event.Record
	StartTime   time.Time                 // of the first record
	FirstTurn   event.Record              // begins the first turn
	FirstRun    event.RunOptions          // of that
	StateRecord event.Record              // names the state of the repository in which the session began
	RepoState   string                    // that name
	Model       string                    // replied first
	MaxSteps    int                       // a limit that a turn ran into, or else none: all turns have an end on record
	Requests    []event.ToolCallRequested // the calls

	streams   map[string][]event.Record   // the records that are compared
	processes []map[string][]event.Record // the same, as each process made them
	endsEarly bool                        // the last one ended without closing the books, as those before it did
	excluded  []event.Record              // what comes after it
}

// main is the stream of the session itself; a subtask's is that of its call.
const main = ""

// Prefix is a recording of the first n records. It ends as if its process had.
func (t *Recording) Prefix(n int) *Recording {
	part := New(t.ID, t.Root, t.Records[:n])
	part.excluded = t.Records[n:]
	part.endsEarly = part.endsEarly || len(part.excluded) > 0
	return part
}

// New reads a session, oldest record first.
func New(id, root string, records []event.Record) *Recording {
	t := &Recording{ID: id, Root: root, Records: records, MaxSteps: math.MaxInt, streams: make(map[string][]event.Record)}
	now := make(map[string][]event.Record)
	t.processes = append(t.processes, now)
	streams, p := streamNamer{}, processTracker{}
	for i, r := range records {
		stream := streams.streamName(r)
		t.endsEarly = isTurnOpen(t.endsEarly, stream, r.Event)
		switch e := r.Event.(type) {
		case event.TaskCreated:
			if stream == main && t.FirstTurn.Event == nil {
				t.FirstTurn, t.FirstRun = r, runFlags(e.Run)
			}
		case event.TaskFailed:
			if e.Steps > 0 {
				t.MaxSteps = min(t.MaxSteps, e.Steps)
			}
		case event.ToolCallRequested:
			if t.Requests = append(t.Requests, e); t.RepoState == "" {
				t.StateRecord, t.RepoState = r, e.Repository
			}
		case event.MessageAdded:
			if _, ok := event.AsReply(e); ok {
				t.Model = cmp.Or(t.Model, e.Model)
			}
		}
		if i == 0 {
			t.StartTime = r.Time
		}
		if isSkipped(r.Event) {
			continue
		}
		if p.startsNext(r, stream) {
			before, n := now[main], len(now[main])
			for n > 1 && isModeChange(before[n-1]) { // it put the mode it was begun in on record first
				n--
			}
			now[main], now = before[:n:n], map[string][]event.Record{main: before[n:]}
			t.processes = append(t.processes, now)
		}
		now[stream] = append(now[stream], r)
		t.streams[stream] = append(t.streams[stream], r)
	}
	return t
}

func isModeChange(r event.Record) bool {
	_, ok := r.Event.(event.ModeChanged)
	return ok
}

// repliesBy is how many replies of the model there were by a record.
func (t *Recording) repliesBy(seq uint64) (n int) {
	for _, r := range t.Records {
		if _, ok := event.AsReply(r.Event); ok && r.Seq <= seq {
			n++
		}
	}
	return n
}

// TraceFiles finds out from the whole record what the files of a take of its beginning were.
func TraceFiles(ctx context.Context, whole, take *Recording, kept past.TreeSource) (*past.FileHistory, error) {
	end := uint64(0)
	if n := len(take.Records); n > 0 {
		end = take.Records[n-1].Seq
	}
	return past.TraceHistory(ctx, whole.Records, end, kept, isSkipped)
}

// isTurnOpen reports whether the session is in a turn after an event, if it was before.
func isTurnOpen(before bool, stream string, e event.Event) bool {
	switch e.(type) {
	case event.TaskCreated:
		return before || stream == main
	case event.TaskCompleted, event.TaskFailed, event.TaskCanceled:
		return before && stream != main
	}
	return before
}

// findResult finds the result of a requested call, if there is one. A later call may have the same id.
func (t *Recording) findResult(asked streamRecord) (event.Record, event.ToolCallCompleted) {
	request, _ := asked.Event.(event.ToolCallRequested)
	for r, e := range eventsOf[event.ToolCallCompleted](t.streams[asked.stream]) {
		if e.CallID == request.CallID && r.Seq > asked.Seq {
			return r, e
		}
	}
	return event.Record{}, event.ToolCallCompleted{}
}

// streamNamer names the streams of records. A subtask's is its call, with a sign more for each that
// worked for the call before.
type streamNamer map[string]string // by the task

func (n *streamNamer) streamName(r event.Record) string {
	if *n == nil {
		*n = make(streamNamer)
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

// processTracker tells the records of a process from those of the next.
type processTracker struct {
	streams  map[string]bool   // streams with records of the process
	run      *event.RunOptions // the flags of its last turn
	question string            // its last question about a turn that an earlier one left
	looked   bool              // the person wants to see more before they answer it
}

// startsNext reports whether a record is the first of another process.
func (p *processTracker) startsNext(r event.Record, stream string) (begins bool) {
	recovers, answers, askedAgain := r.Actor == event.ActorRecovery, false, false
	switch e := r.Event.(type) {
	case event.TaskCreated: // with other flags
		if stream == main {
			begins = p.streams[main] && p.run != nil && runFlags(e.Run) != *p.run
			p.run = new(runFlags(e.Run))
		}
	case event.TaskStarted: // taken up
		if stream == main && e.Run != nil {
			begins = p.streams[main]
			p.run = new(runFlags(e.Run))
		}
	case event.ToolCallRequested: // the one before had its keys
		begins = e.KeysMissing && p.streams[stream]
	case event.InteractionRequested:
		askedAgain = p.question != "" && e.CallID() == "" && !p.looked
	case event.InteractionResponded:
		answers = p.question != "" && e.ID == p.question
		p.looked = e.Option == supervisor.OptionShowChanges
	}
	begins = begins || recovers && (p.streams[stream] || answers || askedAgain)
	if begins || p.streams == nil {
		*p = processTracker{streams: make(map[string]bool), run: p.run}
	}
	p.streams[stream] = p.streams[stream] || !recovers && !answers
	if e, ok := r.Event.(event.InteractionRequested); ok && recovers {
		p.question, p.looked = e.ID, false
	}
	return begins
}

// runFlags are those that a run was begun with.
func runFlags(r *event.RunOptions) event.RunOptions {
	flags := *cmp.Or(r, new(event.RunOptions))
	flags.Window = 0
	return flags
}

// isSkipped reports whether an event is not compared: it is of another version, it is
// about money, or it only looked something up.
func isSkipped(e event.Event) bool {
	switch e := e.(type) {
	case event.Spent, event.Unknown:
		return true
	case event.LocalAdded:
		name, args, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(e.Input), "/"), " ")
		if args = strings.TrimSpace(args); name == "mode" || name == "permissions" {
			return args == "" || strings.HasPrefix(args, "revoke")
		}
		return !slices.Contains(replayedCommands, name) && !slices.Contains(mode.Names(), name)
	}
	return false
}

// replayedCommands are those that change something in a session, beside those that are modes.
var replayedCommands = []string{"compact", "undo", "redo", "restore", "rewind"}

// eventsOf yields the events of a kind, with their records.
func eventsOf[E event.Event](records []event.Record) iter.Seq2[event.Record, E] {
	return func(yield func(event.Record, E) bool) {
		for _, r := range records {
			if e, ok := r.Event.(E); ok && !yield(r, e) {
				return
			}
		}
	}
}
