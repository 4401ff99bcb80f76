// Package rerun runs a recorded session again and reports the differences.
//
// Outside input comes from the record: the user's inputs and answers, the model's
// replies, fetched pages, answers of other programs, the end of a process, and other
// programs' changes to files. Everything else runs again. Afterwards, each record of
// the rerun is compared with the recorded one in its place. A session and each of its
// subtasks have a stream. Order counts within a stream, not between streams.
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

// Recording is a recorded session that can run again.
type Recording struct {
	ID          string
	Root        string // the workspace's path then
	Records     []event.Record
	StartTime   time.Time                 // of the first record
	FirstTurn   event.Record              // starts the first turn
	FirstRun    event.RunOptions          // of the first turn
	StateRecord event.Record              // names the repository's state at the session's start
	RepoState   string                    // the state's name
	Model       string                    // of the first reply
	MaxSteps    int                       // a step limit that a turn reached, or no limit
	Requests    []event.ToolCallRequested // the calls

	streams   map[string][]event.Record   // the records to compare
	processes []map[string][]event.Record // the same records, by process
	endsEarly bool                        // the last process ended without closing its logs
	excluded  []event.Record              // the records after the end
}

// main is the session's stream. A subtask's stream is named by its call.
const main = ""

// Prefix returns a recording of the first n records, as if the process had ended there.
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
			for n > 1 && isModeChange(before[n-1]) { // the process recorded its start mode first
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

// repliesBy returns the number of the model's replies up to a record.
func (t *Recording) repliesBy(seq uint64) (n int) {
	for _, r := range t.Records {
		if _, ok := event.AsReply(r.Event); ok && r.Seq <= seq {
			n++
		}
	}
	return n
}

// TraceFiles finds, from the whole recording, which files a prefix of it started with.
func TraceFiles(ctx context.Context, whole, take *Recording, kept past.TreeSource) (*past.FileHistory, error) {
	end := uint64(0)
	if n := len(take.Records); n > 0 {
		end = take.Records[n-1].Seq
	}
	return past.TraceHistory(ctx, whole.Records, end, kept, isSkipped)
}

// isTurnOpen reports whether a turn is open after an event; before tells whether one was open before it.
func isTurnOpen(before bool, stream string, e event.Event) bool {
	switch e.(type) {
	case event.TaskCreated:
		return before || stream == main
	case event.TaskCompleted, event.TaskFailed, event.TaskCanceled:
		return before && stream != main
	}
	return before
}

// findResult returns the result of a requested call, if the call has one. A later call may have the same id.
func (t *Recording) findResult(asked streamRecord) (event.Record, event.ToolCallCompleted) {
	request, _ := asked.Event.(event.ToolCallRequested)
	for r, e := range eventsOf[event.ToolCallCompleted](t.streams[asked.stream]) {
		if e.CallID == request.CallID && r.Seq > asked.Seq {
			return r, e
		}
	}
	return event.Record{}, event.ToolCallCompleted{}
}

// streamNamer names the streams of records. A subtask's name is its call's id, plus one + for each earlier
// subtask of the call.
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

// processTracker finds where one process ends and the next starts.
type processTracker struct {
	streams  map[string]bool   // streams with records of the process
	run      *event.RunOptions // the flags of the process's last turn
	question string            // the last question about an unfinished turn
	looked   bool              // the user asked to see more before the answer
}

// startsNext reports whether a record is the first of the next process.
func (p *processTracker) startsNext(r event.Record, stream string) (begins bool) {
	recovers, answers, askedAgain := r.Actor == event.ActorRecovery, false, false
	switch e := r.Event.(type) {
	case event.TaskCreated: // with other flags
		if stream == main {
			begins = p.streams[main] && p.run != nil && runFlags(e.Run) != *p.run
			p.run = new(runFlags(e.Run))
		}
	case event.TaskStarted: // resumed
		if stream == main && e.Run != nil {
			begins = p.streams[main]
			p.run = new(runFlags(e.Run))
		}
	case event.ToolCallRequested: // the earlier process had the keys
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

// runFlags returns the flags that a run started with.
func runFlags(r *event.RunOptions) event.RunOptions {
	flags := *cmp.Or(r, new(event.RunOptions))
	flags.Window = 0
	return flags
}

// isSkipped reports whether an event is not compared: events of other versions, about cost, or of
// commands that only show something.
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

// replayedCommands are the commands, other than modes, that change a session.
var replayedCommands = []string{"compact", "undo", "redo", "restore", "rewind"}

// eventsOf yields the events of one type with their records.
func eventsOf[E event.Event](records []event.Record) iter.Seq2[event.Record, E] {
	return func(yield func(event.Record, E) bool) {
		for _, r := range records {
			if e, ok := r.Event.(E); ok && !yield(r, e) {
				return
			}
		}
	}
}
