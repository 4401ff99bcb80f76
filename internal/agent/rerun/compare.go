package rerun

import (
	"cmp"
	"context"
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
	"coder/internal/record/past"
	"coder/internal/tool"
	"coder/internal/tool/bash"
)

// Report is the result of a rerun.
type Report struct {
	Session    string      `json:"session"`
	Steps      int         `json:"steps"`   // replies of the model on record
	Records    int         `json:"records"` // that were compared
	Difference *Difference `json:"difference,omitempty"`
	// Unsure are files that may have been others at the beginning.
	Unsure []string `json:"unsure,omitempty"`
	// Missing is why not all files that the session began with can be had, if that may
	// be where the difference comes from.
	Missing string `json:"missing,omitempty"`
}

// Difference is the first record of a rerun that differs.
type Difference struct {
	Step      int    `json:"step"`   // replies of the model so far
	Record    uint64 `json:"record"` // the one on record
	What      string `json:"what"`   // request, reply, decision, question, result, files or course
	About     string `json:"about,omitempty"`
	Call      string `json:"call,omitempty"`  // what a person is shown of the call
	Cause     string `json:"cause,omitempty"` // why it was decided otherwise
	Was       string `json:"was"`
	Is        string `json:"is"`
	Agreement int    `json:"agreed"` // how many records agreed before it
}

// What a difference is of.
const (
	ofRequest  = "request"
	ofReply    = "reply"
	ofDecision = "decision"
	ofQuestion = "question"
	ofResult   = "result"
	ofFiles    = "files"
	ofCourse   = "course"
)

// Chancy reports whether chance may have made the difference, as in a command's output.
func (d *Difference) Chancy() bool {
	return d.What == ofResult || d.What == ofFiles || d.What == ofRequest
}

// Worldly reports whether it may come from the files or the repository that a session began with.
func (d *Difference) Worldly() bool { return d.Chancy() || d.What == ofCourse }

// Exceptions are what else may differ in one rerun.
type Exceptions struct {
	Records []uint64 // these are not compared
	Ignore  []string // lines that these patterns match are not
}

func (x Exceptions) without(text string) string {
	for _, pattern := range x.Ignore {
		if re, err := regexp.Compile("(?m)^.*(?:" + pattern + ").*$"); err == nil {
			text = re.ReplaceAllString(text, "<ignored>")
		}
	}
	return text
}

// made is a record that a rerun made, and its stream.
type made struct {
	stream string
	event.Record
}

// pair is a record and the one that a rerun made in its place. One without the other stands
// alone.
type pair struct{ was, is event.Record }

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

// align puts records and those of a rerun side by side, by their place in their streams, up to
// the first of another key in each. What the rerun did not come to is its difference only if
// it did not take another course before.
func align(take *Take, rerun []made) (pairs []pair) {
	at, parted := make(map[string]int), make(map[string]bool)
	for _, m := range rerun {
		list, p := take.streams[m.stream], pair{is: m.Record}
		if n := at[m.stream]; n < len(list) {
			p.was = list[n]
		} else if len(list) > 0 {
			p.was.Seq = list[len(list)-1].Seq
		}
		if at[m.stream]++; !parted[m.stream] {
			pairs = append(pairs, p)
		}
		if keyOf(p.was.Event) != keyOf(p.is.Event) {
			parted[m.stream] = true
		}
	}
	for stream, list := range take.streams {
		if n := at[stream]; n < len(list) && len(parted) == 0 {
			pairs = append(pairs, pair{was: list[n]})
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return cmp.Compare(a.was.Seq, b.was.Seq) })
	return pairs
}

// Compare compares the rerun with the record. Again are other reruns in the same world:
// what differs between them may differ from the record.
func (f *Follower) Compare(except Exceptions, again ...*Follower) *Report {
	c := newComparison(f.take, f.was, f.is, except)
	c.later = f.copy.Later
	for _, other := range again {
		c.add(align(f.take, other.made))
	}
	return &Report{
		Session: f.take.ID, Steps: f.take.repliesBy(math.MaxUint64), Records: len(f.made),
		Difference: c.first(align(f.take, f.made)), Unsure: f.copy.Unsure,
	}
}

// comparison compares a take with its rerun, and with other reruns in the same world.
type comparison struct {
	take    *Take
	was, is *reader
	except  Exceptions
	again   []map[uint64]event.Record          // of the other reruns, by the record
	calls   map[string]event.ToolCallRequested // on record, by id
	jobs    bool                               // there are commands in the background
	later   map[uint64][]event.FileState       // what others left, or a command in the background

	noticedWas, noticedIs map[string][]leaf // by whatever call, if there are such commands
}

func newComparison(take *Take, was, is Side, except Exceptions) *comparison {
	reading := func(side Side) *reader { return &reader{side, except, make(map[event.FileState]string)} }
	c := &comparison{take: take, was: reading(was), is: reading(is), except: except}
	c.calls = make(map[string]event.ToolCallRequested)
	for _, e := range take.Requests {
		c.calls[e.CallID], c.jobs = e, c.jobs || background(e)
	}
	return c
}

// add adds what another rerun came to.
func (c *comparison) add(pairs []pair) {
	records := make(map[uint64]event.Record, len(pairs))
	for _, p := range pairs {
		records[p.was.Seq] = p.is
	}
	c.again = append(c.again, records)
}

// first is the first difference of pairs that the other reruns do not explain.
func (c *comparison) first(pairs []pair) *Difference {
	if c.jobs {
		var was, is []event.Record
		for _, p := range pairs {
			was, is = append(was, p.was), append(is, p.is)
		}
		c.noticedWas, c.noticedIs = noticed(c.was, c.later, was), noticed(c.is, nil, is)
	}
	for i, p := range pairs {
		d := c.differing(p)
		if d == nil || slices.Contains(c.except.Records, p.was.Seq) {
			continue
		}
		d.Step, d.Record, d.Agreement = c.take.repliesBy(p.was.Seq), p.was.Seq, i
		switch e := cmp.Or(p.was.Event, p.is.Event).(type) {
		case event.ToolCallRequested:
			d.About, d.Call = e.Tool, e.Title
		case event.ToolCallCompleted:
			d.About, d.Call = e.Tool, c.calls[e.CallID].Title
		}
		if e, ok := p.is.Event.(event.ToolCallRequested); ok && d.What == ofDecision {
			d.Cause = strings.Join(e.Reasons, "; ")
		}
		return d
	}
	return nil
}

// differing is how the records of a pair differ, with their fields in lines for people; nil
// if they do not.
func (c *comparison) differing(p pair) *Difference {
	kind := kindOf(p)
	if done, ok := p.was.Event.(event.ToolCallCompleted); ok && kind == ofResult && interrupted(done) {
		return nil // how far it got is chance
	}
	then, now := c.was.leaves(p.was.Event), c.is.leaves(p.is.Event)
	var again []map[string]leaf
	for _, other := range c.again {
		r := other[p.was.Seq]
		if name := nameOf(p.was.Event); name == nameOf(r.Event) && name == nameOf(p.is.Event) {
			again = append(again, c.is.leaves(r.Event))
		}
	}
	call := c.callOf(p.was)
	both := maps.Clone(then)
	maps.Copy(both, now)
	var was, is strings.Builder
	filesOnly := true
	for _, path := range slices.Sorted(maps.Keys(both)) {
		x, before := then[path]
		y, after := now[path]
		text := leaf.text
		if processIDs().Match(call.Input) && !strings.HasSuffix(path, "exit_code") {
			text = func(l leaf) string { return numbers().ReplaceAllString(l.text(), "<pid>") }
		}
		explains := func(other map[string]leaf) bool { return alike.Explains(text(x), text(y), text(other[path])) }
		same := x.name == y.name || alike.Texts(text(x), text(y))
		if !before && y.older || same || c.excused(call, path, x, y) || slices.ContainsFunc(again, explains) {
			continue
		}
		filesOnly = filesOnly && both[path].file
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
		kind = ofFiles
	}
	return &Difference{What: kind, Was: was.String(), Is: is.String()}
}

// kinds are what a difference is of, by the kind of its records. Of any other it is the course.
var kinds = map[string]string{
	"MessageAdded": ofRequest, "ContextReplaced": ofRequest, ofReply: ofReply,
	"ToolCallRequested": ofDecision, "ToolCallCompleted": ofResult,
	"UserInteractionRequested": ofQuestion, "UserInteractionResponded": ofQuestion,
}

// kindOf says in a word what the records of a pair tell.
func kindOf(p pair) string {
	name := nameOf(p.was.Event)
	if _, ok := event.Reply(p.was.Event); ok {
		name = ofReply
	}
	if nameOf(p.was.Event) != nameOf(p.is.Event) {
		name = ofCourse
	}
	return cmp.Or(kinds[name], ofCourse)
}

// processIDs are the ways in which a command names processes by their numbers.
var processIDs = lazy.Regexp(`\$\$|\$\{?(?:PPID|BASHPID|!)|[Gg]etp?pid|` +
	`\b[Pp]rocess\.pid\b|\bps\b|\bpgrep\b|\bpstree\b|\bjobs -[a-z]*[lp]`)

var numbers = lazy.Regexp(`\b\d{1,7}\b`)

// ofJobs are the fields of results that say how far a command in the background is.
var ofJobs = []string{
	"running", "state", "exit_code", "seconds", "output", "stdout", "stderr", "text", "next_offset", "ended", "runs",
}

// callOf is the call that a record is about, if it is about one.
func (c *comparison) callOf(r event.Record) event.ToolCallRequested {
	id := ""
	switch e := r.Event.(type) {
	case event.ToolCallCompleted:
		id = e.CallID
	case event.MessageAdded:
		for res := range chat.Select[chat.ToolResult](e.Message) {
			id = res.CallID
		}
	}
	return c.calls[id]
}

// excused reports whether a field may differ because a command in the background ends when it ends.
func (c *comparison) excused(call event.ToolCallRequested, path string, was, is leaf) bool {
	if c.jobs && (was.file || is.file) {
		excuses := func(noticed []leaf, change leaf) bool {
			same := func(other leaf) bool { return other.text() == change.text() }
			ownCall := background(call) && len(noticed) == 0 // whether it ended within that is chance
			return change.file && (ownCall || slices.ContainsFunc(noticed, same))
		}
		return excuses(c.noticedIs[path], was) || excuses(c.noticedWas[path], is)
	}
	job := background(call) || tool.ClassOf(call.Tool) == tool.WatchesJobs
	return job && slices.Contains(ofJobs, path[strings.LastIndexByte(path, '.')+1:])
}

// background reports whether a call is of a command in the background.
func background(e event.ToolCallRequested) bool {
	yes, _ := bash.Asks(e.Input)
	return yes
}

// noticed are the files that a side found, by their paths, whenever that was: what a command in
// the background does is found by whatever call is next, or was there before that.
func noticed(side *reader, later map[uint64][]event.FileState, records []event.Record) map[string][]leaf {
	ctx, found := context.Background(), slices.Concat(slices.Collect(maps.Values(later))...)
	for _, e := range each[event.ToolCallRequested](records) {
		if kept, ok := side.side.Kept.(past.Kept); ok && e.Tree != "" {
			all, _ := kept.Files(ctx, e.Tree)
			found = append(found, all...)
		}
	}
	for _, e := range each[event.ToolCallCompleted](records) {
		changes, _ := past.Expand(ctx, side.side.Kept, e.Changes)
		for _, one := range changes {
			found = append(found, one.After)
		}
	}
	list := make(map[string][]leaf)
	for _, s := range found {
		path := side.change(s.Path)
		list[path] = append(list[path], side.state(s))
	}
	return list
}
