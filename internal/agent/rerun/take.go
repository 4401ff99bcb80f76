// Package rerun runs a recorded session again and tells the first thing that
// comes out otherwise.
//
// What came from outside comes from the record: the person's words and answers,
// the model's replies, what was fetched, what programs of others said, the end of
// a process, what somebody else did to the files. Everything else is done anew,
// and every record that this makes is held against the one that stands on record
// in its place. A session and each of its subtasks are a stream of their own:
// within a stream the order counts, between streams it does not.
package rerun

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"coder/internal/agent/supervisor"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/secret"
	"coder/internal/policy/mode"
)

// Take is a session on record that can be run again.
type Take struct {
	ID      string
	Root    string // the workspace, where it was then
	Records []event.Record

	streams map[string][]int // the records that are held against others, by stream
	ends    []uint64         // the first records after a process ended without closing the books
	done    map[uint64]int   // of the request of a call, the record of its completion
	cut     bool             // it does not end by itself: its last turn has no end, or there is more
	rest    []event.Record   // what comes after it
}

// Until is a take of the first n records. It ends as if its process had.
func (t *Take) Until(n int) *Take {
	part := New(t.ID, t.Root, t.Records[:n])
	part.rest = t.Records[n:]
	part.cut = part.cut || len(part.rest) > 0
	return part
}

// main is the stream of the session itself; a subtask's is that of its call.
const main = ""

// New reads a session, oldest record first.
func New(id, root string, records []event.Record) *Take {
	t := &Take{ID: id, Root: root, Records: records, streams: make(map[string][]int), done: make(map[uint64]int)}
	of := t.streamsOf()
	fresh := make(map[string]bool) // has records of the process under way
	under := make(map[string]uint64)
	var run *event.Run          // of the turn before
	var left dialogue           // about a turn that was left
	ended := func(seq uint64) { // the process did, before this record
		t.end(seq)
		clear(fresh)
		left = dialogue{}
	}
	for i, r := range records {
		stream := of[i]
		switch e := r.Event.(type) {
		case event.TaskCreated:
			t.cut = t.cut || stream == main
			if stream == main && fresh[main] && run != nil && given(e.Run) != *run { // run with other flags, so by another process
				ended(r.Seq)
			}
			if stream == main {
				now := given(e.Run)
				run = &now
			}
		case event.TaskStarted:
			if e.Run == nil || stream != main {
				break
			}
			if fresh[main] { // another process took it up
				ended(r.Seq)
			}
			now := given(e.Run)
			run = &now
		case event.TaskCompleted, event.TaskFailed, event.TaskCanceled:
			t.cut = t.cut && stream != main
		case event.ToolCallRequested:
			under[stream+"\x00"+e.CallID] = r.Seq
			if fresh[stream] && e.Keyless { // another process went on, without the keys
				ended(r.Seq)
			}
		case event.ToolCallCompleted:
			if seq, ok := under[stream+"\x00"+e.CallID]; ok {
				t.done[seq] = i
			}
		}
		if passedOver(r.Event) {
			continue
		}
		t.streams[stream] = append(t.streams[stream], i)
		switch {
		case r.Actor == event.ActorRecovery && (fresh[stream] || left.begunAnew(r.Event)):
			ended(r.Seq)
		case r.Actor != event.ActorRecovery && !left.answers(r.Event):
			fresh[stream] = true
		}
		left.add(r)
	}
	return t
}

// dialogue is how far a process got in asking what is to become of a turn that an
// earlier one left.
type dialogue struct {
	asked  map[string]bool // its questions
	looked bool            // the person wants to see more before they say
}

// answers reports whether an event is an answer to one of its questions.
func (d *dialogue) answers(e event.Event) bool {
	a, ok := e.(event.InteractionResponded)
	return ok && d.asked[a.ID]
}

// begunAnew reports whether a record of recovery is one of a later process, which begins from
// the start: it withdraws a question, or asks about the turn though that was answered.
func (d *dialogue) begunAnew(e event.Event) bool {
	q, ok := e.(event.InteractionRequested)
	return d.answers(e) || ok && len(d.asked) > 0 && q.CallID() == "" && !d.looked
}

func (d *dialogue) add(r event.Record) {
	switch e := r.Event.(type) {
	case event.InteractionRequested:
		if r.Actor == event.ActorRecovery {
			if d.asked == nil {
				d.asked = make(map[string]bool)
			}
			d.asked[e.ID], d.looked = true, false
		}
	case event.InteractionResponded:
		d.looked = e.Option == supervisor.Look
	}
}

// end takes note that a process ended before a record was made. The next one
// put the mode it was begun in on record first.
func (t *Take) end(seq uint64) {
	list := t.streams[main]
	for n := len(list) - 1; n > 0; n-- {
		r := t.Records[list[n]]
		if r.Seq == seq {
			continue
		}
		if _, ok := r.Event.(event.ModeChanged); !ok || t.typed(n+1) {
			break
		}
		seq = r.Seq
	}
	t.ends = append(t.ends, seq)
}

// given is what the flags of a run were.
func given(r *event.Run) event.Run {
	if r == nil {
		return event.Run{}
	}
	flags := *r
	flags.Window = 0
	return flags
}

// FirstRun is the first turn's record of what it was run with.
func (t *Take) FirstRun() (event.Record, event.Run) {
	for _, i := range t.streams[main] {
		if e, ok := t.Records[i].Event.(event.TaskCreated); ok {
			return t.Records[i], given(e.Run)
		}
	}
	return event.Record{}, event.Run{}
}

// streamsOf names the stream of each record.
func (t *Take) streamsOf() []string {
	of, subtask, calls := make([]string, len(t.Records)), make(map[string]string), make(map[string]bool)
	for i, r := range t.Records {
		if e, ok := r.Event.(event.TaskCreated); ok && e.ParentID != "" {
			stream := e.CallID
			for calls[stream] {
				stream += "+"
			}
			calls[stream], subtask[e.TaskID] = true, stream
		}
		of[i] = subtask[r.Task]
	}
	return of
}

// passedOver reports whether an event is not held against others: it is of
// another version, it is about money, or it only looked something up.
func passedOver(e event.Event) bool {
	switch e := e.(type) {
	case event.Spent, event.Unknown:
		return true
	case event.LocalAdded:
		return !runsAgain(e)
	}
	return false
}

// commands are those of the program's own that change something in a session.
var commands = slices.Concat([]string{"compact", "undo", "redo", "rewind", "mode", "permissions"}, mode.Names())

func runsAgain(e event.LocalAdded) bool {
	name, args, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(e.Input), "/"), " ")
	if name == "mode" || name == "permissions" {
		return strings.TrimSpace(args) != "" && !strings.HasPrefix(strings.TrimSpace(args), "revoke")
	}
	return slices.Contains(commands, name)
}

// Steps is how many replies of a model there are on record.
func (t *Take) Steps() int { return t.step(^uint64(0)) }

// step is how many replies there were by a record.
func (t *Take) step(seq uint64) (n int) {
	for _, r := range t.Records {
		if r.Seq <= seq && isReply(r.Event) {
			n++
		}
	}
	return n
}

// isReply reports whether an event is what a model said.
func isReply(e event.Event) bool {
	m, ok := e.(event.MessageAdded)
	return ok && m.Message.Role == chat.Assistant && m.Model != ""
}

// Start is when the session began.
func (t *Take) Start() time.Time {
	if len(t.Records) == 0 {
		return time.Time{}
	}
	return t.Records[0].Time
}

// typed reports whether a record of the session's own is a command that the
// person typed.
func (t *Take) typed(n int) bool {
	list := t.streams[main]
	if n >= len(list) {
		return false
	}
	_, ok := t.Records[list[n]].Event.(event.LocalAdded)
	return ok
}

// Model is the model that replied first, or "".
func (t *Take) Model() string {
	for _, r := range t.Records {
		if e, ok := r.Event.(event.MessageAdded); ok && isReply(e) {
			return e.Model
		}
	}
	return ""
}

// MaxSteps is the limit that a turn ran into, or one that all turns keep to if it
// is more than usual.
func (t *Take) MaxSteps(usual int) int {
	most, limit := make(map[string]int), 0
	for _, r := range t.Records {
		if isReply(r.Event) {
			most[r.Task]++
		}
		if e, ok := r.Event.(event.TaskFailed); ok {
			limit = cmp.Or(e.Steps, limit)
		}
		usual = max(usual, most[r.Task])
	}
	return cmp.Or(limit, usual)
}

// OfOthers are the calls of tools of other programs, by the names of these.
func (t *Take) OfOthers() map[string][]event.ToolCallRequested {
	all := make(map[string][]event.ToolCallRequested)
	for _, r := range t.Records {
		if e, ok := r.Event.(event.ToolCallRequested); ok && (strings.HasPrefix(e.Tool, ofOthers) || e.Tool == resources) {
			all[e.Tool] = append(all[e.Tool], e)
		}
	}
	return all
}

// ofOthers begins the names of tools of other programs; resources is the one by
// which a message gets what it names of theirs, onEvents the one that runs commands on
// events.
const (
	ofOthers  = "mcp__"
	resources = "mcp_resource"
	onEvents  = "hook"
)

// Repository is the record that names the state of the repository in which the session
// began, and that name.
func (t *Take) Repository() (event.Record, string) {
	for _, r := range t.Records {
		if e, ok := r.Event.(event.ToolCallRequested); ok && e.Repository != "" {
			return r, e.Repository
		}
	}
	return event.Record{}, ""
}

// Calls reports whether any call is on record: without one no file matters.
func (t *Take) Calls() bool {
	return slices.ContainsFunc(t.Records, func(r event.Record) bool {
		_, ok := r.Event.(event.ToolCallRequested)
		return ok
	})
}

// outside reports whether a call reached beyond this machine's confined
// commands and files: it is not made again, and what came of it is on record.
func outside(e event.ToolCallRequested) bool {
	if keyed(e) {
		return true
	}
	if e.Tool == resources || e.Tool == onEvents { // what a message names of other programs, and what these do on events
		return true
	}
	if strings.HasPrefix(e.Tool, "lsp_") { // language servers answer when they are ready
		return true
	}
	for _, f := range e.Effects {
		if f.Kind == event.EffectNet || f.Kind == event.EffectUnknown {
			return true
		}
	}
	var args map[string]json.RawMessage
	_ = json.Unmarshal(e.Input, &args)
	for name, value := range args {
		if string(value) == "true" && slices.Contains(unbounded, strings.ToLower(name)) {
			return true
		}
	}
	return false
}

// keyed reports whether a call cannot be made again because the keys that it was made
// with are not on record. What it notes down has none.
func keyed(e event.ToolCallRequested) bool {
	return secret.Marked(e.Input) && !event.Harmless(e.Effects)
}

// Keyed are the names of tools with such calls.
func (t *Take) Keyed() (names []string) {
	for _, r := range t.Records {
		if e, ok := r.Event.(event.ToolCallRequested); ok && keyed(e) && !slices.Contains(names, e.Tool) {
			names = append(names, e.Tool)
		}
	}
	return names
}

// unbounded are the arguments by which a command asks to run without bounds.
var unbounded = []string{"unconfined", "outside_sandbox", "with_escalated_permissions", "dangerously_disable_sandbox", "dangerouslydisablesandbox"}

// untold reports whether a record lacks what a rerun needs of it, as one of an earlier
// version may.
func untold(e event.Event) bool {
	switch e := e.(type) {
	case event.TaskFailed:
		return e.Says == "" && e.Steps == 0
	case event.ToolCallRequested:
		byFlag := e.Verdict == event.Allowed && e.DecidedBy == event.ActorPolicy && len(e.Reasons) > 0
		return byFlag && e.Unasked == "" || e.Verdict == event.Invalid && secret.Marked(e.Input) && !e.Keyless
	}
	return false
}

// isInterrupted reports whether the person interrupted while a call ran.
func isInterrupted(e event.ToolCallCompleted) bool {
	var out struct {
		Cancelled bool `json:"cancelled"`
	}
	return json.Unmarshal(e.Output, &out) == nil && out.Cancelled
}
