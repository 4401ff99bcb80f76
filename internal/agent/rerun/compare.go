package rerun

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"coder/internal/agent/alike"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/lazy"
	"coder/internal/tool"
	"coder/internal/tool/bash"
)

// Report is the result of a rerun.
type Report struct {
	Session         string      `json:"session"`
	Steps           int         `json:"steps"`   // replies of the model on record
	ComparedRecords int         `json:"records"` // that were compared
	Difference      *Difference `json:"difference,omitempty"`
	// UnsureFiles are files that may have been others at the beginning.
	UnsureFiles []string `json:"unsure,omitempty"`
	// Missing is why not all files that the session began with can be had, if that may
	// be where the difference comes from.
	Missing string `json:"missing,omitempty"`
}

// Difference is the first record of a rerun that differs.
type Difference struct {
	Step          int    `json:"step"`   // replies of the model so far
	Record        uint64 `json:"record"` // the one on record
	Kind          string `json:"what"`   // request, reply, decision, question, result, files or course
	Subject       string `json:"about,omitempty"`
	Call          string `json:"call,omitempty"`  // what a person is shown of the call
	Cause         string `json:"cause,omitempty"` // why it was decided otherwise
	Recorded      string `json:"was"`
	Rerun         string `json:"is"`
	AgreedRecords int    `json:"agreed"` // how many records agreed before it
}

// What a difference is of.
const (
	kindRequest  = "request"
	kindReply    = "reply"
	kindDecision = "decision"
	kindQuestion = "question"
	kindResult   = "result"
	kindFiles    = "files"
	kindCourse   = "course"
)

// MayBeChance reports whether chance may have made the difference, as in a command's output, or the files
// or the repository that a session began with.
func (d *Difference) MayBeChance() bool {
	return slices.Contains([]string{kindResult, kindFiles, kindRequest, kindCourse}, d.Kind)
}

// Exceptions are what else may differ in one rerun.
type Exceptions struct {
	SkippedRecords []uint64 // these are not compared
	IgnoredLines   []string // lines that these patterns match are not
}

func (x Exceptions) removeIgnored(text string) string {
	for _, pattern := range x.IgnoredLines {
		if re, err := regexp.Compile("(?m)^.*(?:" + pattern + ").*$"); err == nil {
			text = re.ReplaceAllString(text, "<ignored>")
		}
	}
	return text
}

// streamRecord is a record that a rerun made, and its stream.
type streamRecord struct {
	stream string
	event.Record
}

// recordPair is a record and the one that a rerun made in its place. One without the other stands
// alone.
type recordPair struct{ recorded, rerun event.Record }

// recordKey is what two records have in common that stand in each other's place: their kind, who
// says what they add to the conversation, and which tool they are about.
func recordKey(e event.Event) (key struct{ kind, about string }) {
	key.kind = eventName(e)
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

// alignRecords puts records and those of a rerun side by side, by their place in their streams, up to
// the first of another key in each. What the rerun did not come to is its difference only if
// it did not take another course before.
func alignRecords(recording *Recording, rerun []streamRecord) (pairs []recordPair) {
	at, parted := make(map[string]int), make(map[string]bool)
	for _, m := range rerun {
		list, p := recording.streams[m.stream], recordPair{rerun: m.Record}
		if n := at[m.stream]; n < len(list) {
			p.recorded = list[n]
		} else if len(list) > 0 {
			p.recorded.Seq = list[len(list)-1].Seq
		}
		if at[m.stream]++; !parted[m.stream] {
			pairs = append(pairs, p)
		}
		if recordKey(p.recorded.Event) != recordKey(p.rerun.Event) {
			parted[m.stream] = true
		}
	}
	for stream, list := range recording.streams {
		if n := at[stream]; n < len(list) && len(parted) == 0 {
			pairs = append(pairs, recordPair{recorded: list[n]})
		}
	}
	slices.SortStableFunc(pairs, func(a, b recordPair) int { return cmp.Compare(a.recorded.Seq, b.recorded.Seq) })
	return pairs
}

// Compare compares the rerun with the record. Again are other reruns in the same world:
// what differs between them may differ from the record.
func (f *Replayer) Compare(except Exceptions, again ...*Replayer) *Report {
	c := newComparison(f.recording, f.recordSide, f.RerunSide, except)
	for _, other := range again {
		c.addRerun(alignRecords(f.recording, other.produced))
	}
	return &Report{
		Session: f.recording.ID, Steps: f.recording.repliesBy(math.MaxUint64), ComparedRecords: len(f.produced),
		Difference: c.firstDifference(alignRecords(f.recording, f.produced)), UnsureFiles: f.workCopy.Uncertain,
	}
}

// comparison compares a recording with its rerun, and with other reruns in the same world.
type comparison struct {
	*Recording
	exceptions  Exceptions
	sides       [2]*leafReader                     // of the record, and of the rerun
	otherReruns []map[uint64]event.Event           // of the other reruns, by the record
	calls       map[string]event.ToolCallRequested // on record, by id
	hasJobs     bool                               // there are commands in the background
}

func newComparison(recording *Recording, was, is Side, except Exceptions) *comparison {
	c := &comparison{Recording: recording, exceptions: except, calls: make(map[string]event.ToolCallRequested)}
	for i, side := range []Side{was, is} {
		c.sides[i] = &leafReader{side, except, make(map[event.FileState]string)}
	}
	for _, e := range recording.Requests {
		c.calls[e.CallID], c.hasJobs = e, c.hasJobs || isBackground(e)
	}
	return c
}

// addRerun adds what another rerun came to.
func (c *comparison) addRerun(pairs []recordPair) {
	events := make(map[uint64]event.Event, len(pairs))
	for _, p := range pairs {
		events[p.recorded.Seq] = p.rerun.Event
	}
	c.otherReruns = append(c.otherReruns, events)
}

// firstDifference is the first difference of pairs that the other reruns do not explain.
func (c *comparison) firstDifference(pairs []recordPair) *Difference {
	for i, p := range pairs {
		d := c.compareRecords(p)
		if d == nil || slices.Contains(c.exceptions.SkippedRecords, p.recorded.Seq) {
			continue
		}
		d.Step, d.Record, d.AgreedRecords = c.repliesBy(p.recorded.Seq), p.recorded.Seq, i
		switch e := cmp.Or(p.recorded.Event, p.rerun.Event).(type) {
		case event.ToolCallRequested:
			d.Subject, d.Call = e.Tool, e.Title
		case event.ToolCallCompleted:
			d.Subject, d.Call = e.Tool, c.calls[e.CallID].Title
		}
		if e, ok := p.rerun.Event.(event.ToolCallRequested); ok && d.Kind == kindDecision {
			d.Cause = strings.Join(e.Reasons, "; ")
		}
		return d
	}
	return nil
}

// compareRecords is how the records of a pair differ, with their fields in lines for people; nil
// if they do not.
func (c *comparison) compareRecords(p recordPair) *Difference {
	kind := kindOf(p)
	if done, ok := p.recorded.Event.(event.ToolCallCompleted); ok && kind == kindResult && wasInterrupted(done) {
		return nil // how far it got is chance
	}
	then, now := c.sides[0].eventLeaves(p.recorded.Event), c.sides[1].eventLeaves(p.rerun.Event)
	var again []map[string]leaf
	for _, other := range c.otherReruns {
		name := eventName(p.recorded.Event)
		if e := other[p.recorded.Seq]; name == eventName(e) && name == eventName(p.rerun.Event) {
			again = append(again, c.sides[1].eventLeaves(e))
		}
	}
	call := c.callOf(p.recorded.Event)
	both := maps.Clone(then)
	maps.Copy(both, now)
	var was, is strings.Builder
	filesOnly := true
	for _, path := range slices.Sorted(maps.Keys(both)) {
		x, before := then[path]
		y, after := now[path]
		text := leaf.plainText
		if processIDPattern().Match(call.Input) && !strings.HasSuffix(path, "exit_code") {
			text = func(l leaf) string { return numberPattern().ReplaceAllString(l.plainText(), "<pid>") }
		}
		explains := func(other map[string]leaf) bool { return alike.IsRerunVariation(text(x), text(y), text(other[path])) }
		if !before && y.optional || x.name == y.name || alike.Equal(text(x), text(y)) || c.isExcused(call, path, x, y) ||
			slices.ContainsFunc(again, explains) {
			continue
		}
		filesOnly = filesOnly && both[path].isFile
		if before {
			fmt.Fprintf(&was, "%s: %s\n", path, x)
		}
		if after {
			fmt.Fprintf(&is, "%s: %s\n", path, y)
		}
	}
	switch {
	case was.Len()+is.Len() == 0:
		return nil
	case filesOnly:
		kind = kindFiles
	}
	return &Difference{Kind: kind, Recorded: was.String(), Rerun: is.String()}
}

// differenceKinds are what a difference is of, by the kind of its records. Of any other it is the course.
var differenceKinds = map[string]string{
	"MessageAdded": kindRequest, "ContextReplaced": kindRequest,
	"ToolCallRequested": kindDecision, "ToolCallCompleted": kindResult,
	"UserInteractionRequested": kindQuestion, "UserInteractionResponded": kindQuestion,
}

// kindOf says in a word what the records of a pair tell.
func kindOf(p recordPair) string {
	name := eventName(p.recorded.Event)
	switch _, ok := event.AsReply(p.recorded.Event); {
	case name != eventName(p.rerun.Event):
		return kindCourse
	case ok:
		return kindReply
	}
	return cmp.Or(differenceKinds[name], kindCourse)
}

// processIDPattern are the ways in which a command names processes by their numbers.
var processIDPattern = lazy.Regexp(`\$\$|\$\{?(?:PPID|BASHPID|!)|[Gg]etp?pid|` +
	`\b[Pp]rocess\.pid\b|\bps\b|\bpgrep\b|\bpstree\b|\bjobs -[a-z]*[lp]`)

var numberPattern = lazy.Regexp(`\b\d{1,7}\b`)

// jobProgressFields are the fields of results that say how far a command in the background is.
var jobProgressFields = []string{
	"running", "state", "exit_code", "seconds", "output", "stdout", "stderr", "text", "next_offset", "ended", "runs",
}

// callOf is the call that an event is about, if it is about one.
func (c *comparison) callOf(e event.Event) event.ToolCallRequested {
	done, _ := e.(event.ToolCallCompleted)
	m, _ := e.(event.MessageAdded)
	for res := range chat.PartsOf[chat.ToolResult](m.Message) {
		done.CallID = res.CallID
	}
	return c.calls[done.CallID]
}

// isExcused reports whether a field may differ because a command in the background ends when it ends: how far
// it was, and which call found a file that it left.
func (c *comparison) isExcused(call event.ToolCallRequested, path string, was, is leaf) bool {
	job := isBackground(call) || tool.ClassOf(call.Tool) == tool.ClassJobs
	progress := job && slices.Contains(jobProgressFields, path[strings.LastIndexByte(path, '.')+1:])
	return progress || c.hasJobs && was.isFile != is.isFile
}

// isBackground reports whether a call is of a command in the background.
func isBackground(e event.ToolCallRequested) bool {
	yes, _ := bash.Asks(e.Input)
	return yes
}
