package rerun

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"coder/internal/agent/supervisor"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/lazy"
	"coder/internal/core/uip"
	"coder/internal/tool"
)

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

// Chancy reports whether chance may have made the difference, as in a command's output.
func (d *Difference) Chancy() bool { return d.What == result || d.What == inFiles || d.What == request }

// A Rule is a field of records that may differ. Record "*" is any, and then Field is a
// name at any depth.
type Rule struct{ Record, Field, Why string }

const (
	newIDs   = "a rerun makes new ids"
	itsTime  = "a rerun happens at another time"
	forMen   = "it says in words what other fields say"
	measured = "it measures the machine"
	ofToday  = "the flags of today count, and the record stands in for those not given"
)

// MayDiffer lists the fields that are not compared. All others are.
var MayDiffer = []Rule{
	{"*", "taskId", newIDs}, {"*", "parentTaskId", newIDs}, {"*", "toolCallId", newIDs}, {"*", "tool_call_id", newIDs}, {"*", "interactionId", newIDs},
	{"*", "callDigest", newIDs}, {"*", "pid", newIDs}, {"*", "commit", newIDs},
	{"*", "timestamp", itsTime}, {"*", "durationMs", itsTime}, {"*", "duration_ms", itsTime},
	{"*", "diagnostics", "language servers answer when they are ready"}, {"*", "new_diagnostics", "language servers answer when they are ready"},
	{"*", "sandbox", "a rerun is always confined"}, {"*", "authorActorId", "a rerun is run by nobody"},
	{"TaskCreated", "title", forMen}, {"TaskCreated", "run", ofToday}, {"TaskStarted", "run", ofToday}, {"TaskFailed", "code", forMen},
	{"ToolCallRequested", "reasons", forMen}, {"ToolCallRequested", "title", forMen}, {"ToolCallCompleted", "summary", forMen},
	{"ToolCallRequested", "readOnly", forMen}, {"ToolCallRequested", "tree", newIDs}, {"ToolCallRequested", "repository", newIDs},
	{"MessageAdded", "reminded", forMen}, {"MessageAdded", "model", ofToday}, {"MessageAdded", "usage", measured}, {"MessageAdded", "stop", measured},
	{"MessageAdded", "window", measured}, {"MessageAdded", "tools", measured}, {"MessageAdded", "blocks", forMen},
	{"MessageAdded", "sent", "the record answers in the model's place, and no request goes over a network"},
	{"ContextReplaced", "tokensBefore", measured}, {"ContextReplaced", "tokensAfter", measured}, {"ContextReplaced", "window", measured},
	{"ContextReplaced", "done", forMen}, {"ContextRewound", "to", newIDs}, {"ContextRewound", "undone", measured},
	{"LocalAdded", "output", "the records of what the command did are compared"}, {"LocalAdded", "blocks", forMen},
	{"UserInteractionRequested", "display.metadata", forMen}, {"UserInteractionRequested", "display.content", "the call and its files are compared"},
	{"UserInteractionRequested", "display.description", forMen}, {"UserInteractionRequested", "options.label", forMen},
}

// mayDiffer reports whether a field at a path is one of those.
var mayDiffer = func() func(record, path string) bool {
	rules := make(map[Rule]bool)
	for _, r := range MayDiffer {
		rules[Rule{Record: r.Record, Field: r.Field}] = true
	}
	return func(record, path string) bool {
		for strings.HasPrefix(path, "parts.") { // of a question: they are questions
			path = strings.TrimPrefix(path, "parts.")
		}
		for at := path; ; at = at[:strings.LastIndexByte(at, '.')] {
			if rules[Rule{Record: record, Field: at}] {
				return true
			}
			if !strings.Contains(at, ".") {
				return rules[Rule{Record: "*", Field: path[strings.LastIndexByte(path, '.')+1:]}]
			}
		}
	}
}()

// leaf is a field of a record that holds no other fields.
type leaf struct {
	path string
	text string
	load func() (string, bool) // of a file's state: what the file held, if that can be compared
}

// same reports whether two leaves say the same but for what may differ.
func (l leaf) same(as leaf) bool {
	if l.text == as.text || alike(l.text, as.text) {
		return true
	}
	a, b, ok := contents2(l, as)
	return ok && alike(a, b)
}

// contents2 are the contents of files that two leaves name.
func contents2(l, as leaf) (a, b string, ok bool) {
	if l.load == nil || as.load == nil {
		return "", "", false
	}
	a, first := l.load()
	b, second := as.load()
	return a, b, first && second
}

// explained reports whether l differs from is no more than is and again do, which were
// made in the same world.
func (l leaf) explained(is, again leaf) bool {
	if varies(is.text, again.text).allows(l.text) {
		return true
	}
	a, b, ok := contents2(is, again)
	if !ok || l.load == nil {
		return false
	}
	was, ok := l.load()
	return ok && varies(a, b).allows(was)
}

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

// reader reads the leaves of records on one side.
type reader struct {
	side   Side
	except Exceptions
	kept   map[event.FileState]string
}

// leaves are the fields of an event that are compared, in order.
func (r *reader) leaves(e event.Event) (list []leaf) {
	name := nameOf(e)
	add := func(path, text string) { list = append(list, leaf{path: path, text: r.text(text)}) }
	switch was := e.(type) {
	case event.ToolCallRequested:
		list = r.states(list, "before", was.Before)
		was.Before = nil
		if was.Tool == "undo" || was.Tool == "redo" { // these name records by their numbers
			was.Input = nil
		}
		e = was
	case event.ToolCallCompleted:
		list = r.states(r.changes(list, was.Changes), "saw", was.Saw)
		was.Changes, was.Saw = nil, nil
		if tool.ClassOf(was.Tool) == tool.FindsFiles {
			was.Output = sorted(was.Output)
		}
		e = was
	case event.MessageAdded:
		was.Message = untimed(was.Message)
		e = was
	case event.InteractionRequested: // which is best, and whether there is more to see, is told by the files of a call that was cut off
		if was.Author == event.ActorRecovery {
			was.Options = slices.Clone(was.Options)
			for i := range was.Options {
				was.Options[i].Default, was.Options[i].Style = false, ""
			}
			was.Options = slices.DeleteFunc(was.Options, func(o uip.Option) bool { return o.ID == supervisor.Look })
			slices.SortFunc(was.Options, func(a, b uip.Option) int { return strings.Compare(a.ID, b.ID) })
			e = was
		}
	}
	data, err := json.Marshal(e)
	if err != nil {
		return append(list, leaf{path: "event", text: err.Error()})
	}
	walk(name, "", decoded(data), add)
	return list
}

func decoded(data []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return string(data)
	}
	return v
}

// walk calls add for the leaves of a value, but for those that may differ.
func walk(record, path string, value any, add func(path, text string)) {
	if path != "" && mayDiffer(record, path) {
		return
	}
	switch v := value.(type) {
	case nil:
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			walk(record, strings.TrimPrefix(path+"."+k, "."), v[k], add)
		}
	case []any:
		for i, one := range v { // a number in a path is no name of a field
			walk(record, path, one, func(at, text string) { add(strings.Replace(at, path, path+"["+strconv.Itoa(i)+"]", 1), text) })
		}
	case string:
		if inner := decoded([]byte(v)); strings.HasPrefix(v, "{") && isObject(inner) {
			walk(record, path, inner, add)
			return
		}
		add(path, v)
	default:
		add(path, fmt.Sprint(v))
	}
}

func isObject(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

// untimed is a message in which the results of searches by name, the newest first, are in
// one order.
func untimed(m chat.Message) chat.Message {
	m.Parts = slices.Clone(m.Parts)
	for i, p := range m.Parts {
		if res, ok := p.(chat.ToolResult); ok && tool.ClassOf(res.Name) == tool.FindsFiles {
			res.Text = string(sorted(json.RawMessage(res.Text)))
			m.Parts[i] = res
		}
	}
	return m
}

// sorted is the result of a search by name in one order.
func sorted(output json.RawMessage) json.RawMessage {
	var found map[string]json.RawMessage
	var matches []json.RawMessage
	if json.Unmarshal(output, &found) != nil || json.Unmarshal(found["matches"], &matches) != nil {
		return output
	}
	slices.SortFunc(matches, func(a, b json.RawMessage) int { return bytes.Compare(a, b) })
	found["matches"], _ = json.Marshal(matches)
	text, _ := json.Marshal(found)
	return text
}

// text is a text without what may differ everywhere.
func (r *reader) text(text string) string {
	return r.except.without(normal(withoutKeys().Text(r.side.swap(text))))
}

func (r *reader) states(list []leaf, path string, states []event.FileState) []leaf {
	for _, s := range states {
		list = append(list, r.state(path+" "+s.Path, s))
	}
	return list
}

// changes are what a call did to files, one by one, in the order of their names.
func (r *reader) changes(list []leaf, changes []event.FileChange) []leaf {
	from := len(list)
	for _, c := range changes {
		all := []event.FileChange{c}
		if r.side.Kept != nil {
			if each, err := r.side.Kept.Expand(context.Background(), c); err == nil {
				all = each
			}
		}
		for _, one := range all {
			if name := cmp.Or(one.After.Path, one.Before.Path); !(one.Before.Hash == "dir" && one.After.Hash == "dir") && !cache(name) {
				list = append(list, r.state("files "+name, one.After))
			}
		}
	}
	slices.SortFunc(list[from:], func(a, b leaf) int { return strings.Compare(a.path, b.path) })
	return slices.CompactFunc(list, func(a, b leaf) bool { return a.path == b.path && a.text == b.text })
}

// cache reports whether a file is one that a program writes for itself, with times in it.
func cache(name string) bool {
	return strings.HasSuffix(name, ".pyc") || strings.HasSuffix(name, "/__pycache__") || strings.HasSuffix(name, "/.pytest_cache")
}

// state is what became of a file.
func (r *reader) state(path string, s event.FileState) leaf {
	l := leaf{path: withoutKeys().Text(r.side.swap(path))}
	switch {
	case s.Lost:
		l.text = "(not kept)"
	case s.Hash == "":
		l.text = "(none)"
	case s.Link != "":
		l.text = r.text("link to " + s.Link)
	case s.Hash == "dir":
		l.text = "folder"
	default:
		l.text = fmt.Sprintf("%s %04o", s.Hash, s.Mode)
		if r.side.Kept != nil {
			l.load = func() (string, bool) { return r.content(s) }
		}
	}
	return l
}

// content is what a file held, if it can be compared, with its mode.
func (r *reader) content(s event.FileState) (string, bool) {
	if text, known := r.kept[s]; known {
		return text, true
	}
	data, err := r.side.Kept.Content(context.Background(), s, maxFile)
	if err != nil {
		return "", false
	}
	text := hash(data)
	if len(data) <= maxCompared && !bytes.ContainsRune(data, 0) {
		text = r.text(string(data))
	}
	r.kept[s] = fmt.Sprintf("%04o\n%s", s.Mode, text)
	return r.kept[s], true
}

// maxCompared is how long a file may be of which parts may differ.
const maxCompared = 1 << 20

// pair is a record and the one that a rerun made in its place. Without one the record
// stands alone, and where the rerun made one more there is no record.
type pair struct{ was, is event.Record }

// comparison compares a take with its rerun, and with other reruns in the same world.
type comparison struct {
	take    *Take
	was, is *reader
	except  Exceptions
	again   []map[uint64]event.Record // of the other reruns, by the record
	moved   map[string]bool           // changes of files by commands in the background, by side, file and outcome
}

// first is the first difference of pairs that the other rerun does not explain.
func (c *comparison) first(pairs []pair) *Difference {
	c.survey(pairs)
	slices.SortStableFunc(pairs, func(a, b pair) int { return cmp.Compare(a.was.Seq, b.was.Seq) })
	for i, p := range pairs {
		was, is := c.differing(p)
		if was == "" && is == "" || slices.Contains(c.except.Records, p.was.Seq) {
			continue
		}
		d := &Difference{Step: c.take.step(p.was.Seq), Record: p.was.Seq, What: kind(p, was), Was: was, Is: is, Agreement: i}
		d.About, d.Call = c.about(p)
		if e, ok := p.is.Event.(event.ToolCallRequested); ok && d.What == decision {
			d.Cause = strings.Join(e.Reasons, "; ")
		}
		return d
	}
	return nil
}

// differing are the fields of a pair that differ, in lines for people.
func (c *comparison) differing(p pair) (was, is string) {
	if p.was.Event == nil || p.is.Event == nil || nameOf(p.was.Event) != nameOf(p.is.Event) {
		return c.was.describe(p.was.Event), c.is.describe(p.is.Event)
	}
	if done, ok := p.was.Event.(event.ToolCallCompleted); ok && isInterrupted(done) {
		return "", "" // how far it got is chance
	}
	inBackground := c.anyCall(p.was, func(e event.ToolCallRequested) bool { return background(e) || tool.ClassOf(e.Tool) == tool.WatchesJobs })
	then, now := byPath(c.was.leaves(p.was.Event)), byPath(c.is.leaves(p.is.Event))
	var again []map[string]leaf
	for _, other := range c.again {
		if r, ok := other[p.was.Seq]; ok && nameOf(r.Event) == nameOf(p.was.Event) {
			again = append(again, byPath(c.is.leaves(r.Event)))
		}
	}
	pids := c.namesProcesses(p.was)
	var a, b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(merged(then, now))) {
		x, y := then[path], now[path]
		if inBackground && slices.Contains(ofJobs, path[strings.LastIndexByte(path, '.')+1:]) || c.elsewhere(x, y, path) {
			continue // it ends when it ends
		}
		explains := func(other map[string]leaf) bool { return x.explained(y, other[path]) }
		if x.same(y) || pids && withoutNumbers(x.text) == withoutNumbers(y.text) || slices.ContainsFunc(again, explains) {
			continue
		}
		show(&a, path, x, then)
		show(&b, path, y, now)
	}
	return a.String(), b.String()
}

// processIDs are the ways in which a command names processes by their numbers.
var processIDs = lazy.Regexp(`\$\$|\$\{?(?:PPID|BASHPID|!)|[Gg]etp?pid|\b[Pp]rocess\.pid\b|\bps\b|\bpgrep\b|\bpstree\b|\bjobs -[a-z]*[lp]`)

// namesProcesses reports whether a record is of a command that may print such numbers.
func (c *comparison) namesProcesses(r event.Record) bool {
	return c.anyCall(r, func(e event.ToolCallRequested) bool { return processIDs().Match(e.Input) })
}

// anyCall reports whether a record is the outcome of a call, or tells the model of one, that
// is such.
func (c *comparison) anyCall(r event.Record, is func(event.ToolCallRequested) bool) bool {
	such := func(id string) bool {
		return slices.ContainsFunc(c.take.Records, func(r event.Record) bool {
			e, ok := r.Event.(event.ToolCallRequested)
			return ok && e.CallID == id && is(e)
		})
	}
	switch e := r.Event.(type) {
	case event.ToolCallCompleted:
		return such(e.CallID)
	case event.MessageAdded:
		for res := range chat.Select[chat.ToolResult](e.Message) {
			return such(res.CallID)
		}
	}
	return false
}

// ofJobs are the fields of results that say how far a command in the background is.
var ofJobs = []string{"running", "state", "exit_code", "seconds", "output", "stdout", "stderr", "text", "next_offset", "ended", "runs"}

// background reports whether a call is of a command in the background.
func background(e event.ToolCallRequested) bool {
	var args struct {
		Background bool `json:"background"`
	}
	return json.Unmarshal(e.Input, &args) == nil && args.Background
}

// survey finds what became of files in a session with commands in the background: a change by
// one is noticed after whatever call is next.
func (c *comparison) survey(pairs []pair) {
	if !slices.ContainsFunc(c.take.Records, func(r event.Record) bool {
		e, ok := r.Event.(event.ToolCallRequested)
		return ok && background(e)
	}) {
		return
	}
	c.moved = make(map[string]bool)
	for _, p := range pairs {
		for side, e := range map[*reader]event.Event{c.was: p.was.Event, c.is: p.is.Event} {
			if done, ok := e.(event.ToolCallCompleted); ok {
				for _, l := range side.changes(nil, done.Changes) {
					c.moved[c.place(side, l)] = true
				}
			}
		}
	}
}

func (c *comparison) place(side *reader, l leaf) string {
	text := l.text
	if l.load != nil {
		if held, ok := l.load(); ok {
			text = held
		}
	}
	return fmt.Sprintf("%t\x00%s\x00%s", side == c.was, l.path, text)
}

// elsewhere reports whether a change of a file that only one side has here is noticed after
// another call on the other side.
func (c *comparison) elsewhere(was, is leaf, path string) bool {
	switch {
	case c.moved == nil || !strings.HasPrefix(path, "files "):
		return false
	case was.path == "":
		return c.moved[c.place(c.was, is)]
	case is.path == "":
		return c.moved[c.place(c.is, was)]
	}
	return c.moved[c.place(c.is, was)] || c.moved[c.place(c.was, is)]
}

var numbers = lazy.Regexp(`\b\d{1,7}\b`)

func withoutNumbers(text string) string { return numbers().ReplaceAllString(text, "<pid>") }

func byPath(list []leaf) map[string]leaf {
	all := make(map[string]leaf, len(list))
	for _, l := range list {
		all[l.path] = l
	}
	return all
}

func merged(a, b map[string]leaf) map[string]leaf {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// show writes a field as people read it: a text of several lines on lines of its own.
func show(b *strings.Builder, path string, l leaf, in map[string]leaf) {
	if _, there := in[path]; !there {
		return
	}
	text := l.text
	if l.load != nil {
		if held, ok := l.load(); ok {
			_, text, _ = strings.Cut(held, "\n")
		}
	}
	if text = strings.TrimRight(text, "\n"); strings.Contains(text, "\n") {
		text = "\n  " + strings.ReplaceAll(text, "\n", "\n  ")
	}
	fmt.Fprintf(b, "%s: %s\n", path, text)
}

// describe is an event that has no counterpart.
func (r *reader) describe(e event.Event) string {
	if e == nil {
		return "nothing: the record ends here\n"
	}
	b := &strings.Builder{}
	fmt.Fprintf(b, "record: %s\n", nameOf(e))
	all := byPath(r.leaves(e))
	for _, path := range slices.Sorted(maps.Keys(all)) {
		show(b, path, all[path], all)
	}
	return b.String()
}

// What a difference is of.
const (
	request  = "request"
	reply    = "reply"
	decision = "decision"
	question = "question"
	result   = "result"
	inFiles  = "files"
	course   = "course"
)

// kind says in a word what differs.
func kind(p pair, was string) string {
	if p.was.Event == nil || p.is.Event == nil || nameOf(p.was.Event) != nameOf(p.is.Event) {
		return course
	}
	filesOnly := true
	for line := range strings.Lines(was) {
		filesOnly = filesOnly && (strings.HasPrefix(line, " ") || strings.HasPrefix(line, "files ") || strings.HasPrefix(line, "before ") || strings.HasPrefix(line, "saw "))
	}
	switch p.was.Event.(type) {
	case event.MessageAdded:
		if isReply(p.was.Event) {
			return reply
		}
		return request
	case event.ToolCallRequested:
		if filesOnly {
			return inFiles
		}
		return decision
	case event.ToolCallCompleted:
		if filesOnly {
			return inFiles
		}
		return result
	case event.InteractionRequested, event.InteractionResponded:
		return question
	case event.ContextReplaced:
		return request
	}
	return course
}

// about names the tool of a pair, and what a person was shown of the call.
func (c *comparison) about(p pair) (tool, call string) {
	switch e := cmp.Or(p.was.Event, p.is.Event).(type) {
	case event.ToolCallRequested:
		return e.Tool, e.Title
	case event.ToolCallCompleted:
		for _, r := range c.take.Records {
			if asked, ok := r.Event.(event.ToolCallRequested); ok && asked.CallID == e.CallID && r.Seq < p.was.Seq {
				call = asked.Title
			}
		}
		return e.Tool, call
	}
	return "", ""
}

func nameOf(e event.Event) string {
	name, _ := event.Name(e)
	return name
}
