package rerun

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"coder/internal/agent/alike"
	"coder/internal/agent/supervisor"
	"coder/internal/core/event"
	"coder/internal/core/paths"
	"coder/internal/core/secret"
	"coder/internal/core/uip"
	"coder/internal/record/past"
	"coder/internal/tool"
)

// A Rule names fields of records that may differ. Record "*" is any, and then a field is a
// name at any depth.
type Rule struct{ Record, Fields, Why string }

const (
	newIDs   = "a rerun makes new ids"
	itsTime  = "a rerun happens at another time"
	forMen   = "it says in words what other fields say"
	measured = "it measures the machine"
	ofToday  = "the flags of today count, and the record stands in for those not given"
	notTold  = "records of earlier versions do not have it" // these may lack it, and no more
)

// MayDiffer lists the fields that are not compared. All others are.
var MayDiffer = []Rule{
	{"*", "taskId parentTaskId toolCallId tool_call_id interactionId callDigest pid commit", newIDs},
	{"*", "timestamp durationMs duration_ms", itsTime},
	{"*", "diagnostics new_diagnostics", "language servers answer when they are ready"},
	{"*", "sandbox", "a rerun is always confined"},
	{"*", "authorActorId", "a rerun is run by nobody"},
	{"TaskCreated", "title", forMen},
	{"TaskCreated", "run", ofToday},
	{"TaskStarted", "run", ofToday},
	{"TaskFailed", "reason", forMen},
	{"TaskFailed", "says steps", notTold},
	{"ToolCallRequested", "reasons title readOnly", forMen},
	{"ToolCallRequested", "tree repository", newIDs},
	{"ToolCallRequested", "unasked", ofToday},
	{"ToolCallRequested", "keyless", notTold},
	{"ToolCallRequested", "before", "what a call finds is what the calls before it left, and that is compared"},
	{"ToolCallCompleted", "summary", forMen},
	{"ToolCallCompleted", "changes", "the files that they left are compared"},
	{"ToolCallCompleted", "saw", "its result says what it saw"},
	{"MessageAdded", "reminded blocks", forMen},
	{"MessageAdded", "model", ofToday},
	{"MessageAdded", "usage stop window tools", measured},
	{"MessageAdded", "sent", "the record answers in the model's place, and no request goes over a network"},
	{"ContextReplaced", "tokensBefore tokensAfter window", measured},
	{"ContextReplaced", "done", forMen},
	{"ContextRewound", "to", newIDs},
	{"ContextRewound", "undone", measured},
	{"LocalAdded", "input", "a rerun is given it, with its own record numbers"},
	{"LocalAdded", "output", "the records of what the command did are compared"},
	{"LocalAdded", "blocks", forMen},
	{"UserInteractionRequested", "display.metadata display.description options.label", forMen},
	{"UserInteractionRequested", "display.content", "the call and its files are compared"},
}

// reasons are the reasons of the table, by the record and the field.
var reasons = sync.OnceValue(func() map[[2]string]string {
	all := make(map[[2]string]string)
	for _, r := range MayDiffer {
		for _, field := range strings.Fields(r.Fields) {
			all[[2]string{r.Record, field}] = r.Why
		}
	}
	return all
})

// mayDiffer is why a field at a path may differ, "" if it may not.
func mayDiffer(record, path string) string {
	for strings.HasPrefix(path, "parts.") { // of a question: they are questions
		path = strings.TrimPrefix(path, "parts.")
	}
	why := reasons()[[2]string{"*", path[strings.LastIndexByte(path, '.')+1:]}]
	for at := path; at != "" && why == ""; at = at[:max(strings.LastIndexByte(at, '.'), 0)] {
		why = reasons()[[2]string{record, at}]
	}
	return why
}

// Side is one of the two that are compared: the session as it was, or its rerun.
type Side struct {
	Paths paths.Map     // what stands for a path in texts that are compared
	Kept  past.Contents // nil if there is nothing to look up
}

// leaf is a field of a record that holds no other fields, or a file that a call left.
type leaf struct {
	name  string        // what it says, or of a file what its content is called, and its mode
	held  func() string // of a file: its mode and what it held, "" if that cannot be compared
	file  bool
	older bool // records of earlier versions do not have it
}

// reader reads the leaves of records on one side.
type reader struct {
	side   Side
	except Exceptions
	kept   map[event.FileState]string
}

// leaves are the fields of an event that are compared, by their paths; of none, that there is none.
func (r *reader) leaves(e event.Event) map[string]leaf {
	if e == nil {
		return map[string]leaf{"nothing": {name: "the session ends here"}}
	}
	list := map[string]leaf{"record": {name: nameOf(e)}}
	switch was := e.(type) {
	case event.ToolCallRequested:
		if slices.Contains([]string{"undo", "redo", "restore"}, was.Tool) { // these name records by their numbers
			was.Input = nil
		}
		e = was
	case event.ToolCallCompleted:
		r.changes(list, was.Changes)
	case event.InteractionRequested: // which is best, and whether there is more to see, is told by files
		if was.Author == event.ActorRecovery {
			looks := func(o uip.Option) bool { return o.ID == supervisor.Look }
			was.Options = slices.DeleteFunc(slices.Clone(was.Options), looks)
			for i := range was.Options {
				was.Options[i].Default, was.Options[i].Style = false, ""
			}
			slices.SortFunc(was.Options, func(a, b uip.Option) int { return strings.Compare(a.ID, b.ID) })
			e = was
		}
	}
	data, err := json.Marshal(e)
	if err != nil {
		list["event"] = leaf{name: err.Error()}
		return list
	}
	r.walk(list, nameOf(e), "", "", decoded(string(data)))
	return list
}

// decoded is what a text says in JSON, or the text if it is none.
func decoded(text string) (v any) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return text
	}
	return v
}

// findsFiles reports whether a value is the name of a tool that finds files: the newest first.
func findsFiles(name any) bool {
	text, _ := name.(string)
	return tool.ClassOf(text) == tool.FindsFiles
}

// walk adds the leaves of a value, but for those that may differ. The path shown tells the
// elements of lists apart.
func (r *reader) walk(list map[string]leaf, record, path, shown string, value any) {
	why := ""
	if path != "" {
		if why = mayDiffer(record, path); why != "" && why != notTold {
			return
		}
	}
	switch v := value.(type) {
	case nil:
	case map[string]any:
		search := findsFiles(v["name"]) || findsFiles(v["toolName"])
		for k, one := range v {
			if search && (k == "output" || k == "content") {
				one = inOneOrder(one)
			}
			r.walk(list, record, strings.TrimPrefix(path+"."+k, "."), strings.TrimPrefix(shown+"."+k, "."), one)
		}
	case []any:
		for i, one := range v {
			r.walk(list, record, path, shown+"["+strconv.Itoa(i)+"]", one)
		}
	case string:
		if inner, ok := decoded(v).(map[string]any); ok {
			r.walk(list, record, path, shown, inner)
			return
		}
		list[shown] = leaf{name: r.text(v), older: why != ""}
	default:
		list[shown] = leaf{name: fmt.Sprint(v), older: why != ""}
	}
}

// inOneOrder is the result of a search by name, the newest first, in one order: the files of a
// copy are not as old.
func inOneOrder(result any) any {
	if text, ok := result.(string); ok {
		result = decoded(text)
	}
	found, _ := result.(map[string]any)
	if matches, ok := found["matches"].([]any); ok {
		slices.SortFunc(matches, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
	return result
}

// text is a text without what may differ everywhere.
func (r *reader) text(text string) string {
	return r.except.without(alike.Masked(secret.Shapes().Text(r.side.Paths.Text(text))))
}

// changes are what a call did to files, one by one.
func (r *reader) changes(list map[string]leaf, changes []event.FileChange) {
	each, _ := past.Expand(context.Background(), r.side.Kept, changes) // what was not kept is compared as it is
	for _, c := range each {
		name := cmp.Or(c.After.Path, c.Before.Path)
		if c.Before.Hash == "dir" && c.After.Hash == "dir" || cache(name) {
			continue
		}
		list[r.change(name)] = r.state(c.After)
	}
}

// change is the path of what a call did to a file.
func (r *reader) change(name string) string {
	return "files " + past.Name(r.side.Paths.Text(name))
}

// cache reports whether a file is one that a program writes for itself, with times in it.
func cache(name string) bool {
	base := path.Base(name)
	return path.Ext(base) == ".pyc" || base == "__pycache__" || base == ".pytest_cache"
}

// state is what became of a file.
func (r *reader) state(s event.FileState) leaf {
	switch {
	case s.Lost:
		return leaf{file: true, name: "(not kept)"}
	case s.Hash == "":
		return leaf{file: true, name: "(none)"}
	case s.Link != "":
		return leaf{file: true, name: r.text("link to " + s.Link)}
	case s.Hash == "dir":
		return leaf{file: true, name: "folder"}
	}
	return leaf{file: true, name: fmt.Sprintf("%s %04o", s.Hash, s.Mode), held: func() string { return r.content(s) }}
}

// maxRead is how long a file may be that is compared at all.
const maxRead = 256 << 20

// maxCompared is how long a file may be of which parts may differ.
const maxCompared = 1 << 20

// content is what a file held, after its mode, "" if it cannot be compared.
func (r *reader) content(s event.FileState) string {
	if text, known := r.kept[s]; known || r.side.Kept == nil {
		return text
	}
	data, err := r.side.Kept.Content(context.Background(), s, maxRead)
	if err != nil {
		return ""
	}
	text := past.Sum(data)
	if len(data) <= maxCompared && !bytes.ContainsRune(data, 0) {
		text = r.text(string(data))
	}
	r.kept[s] = fmt.Sprintf("%04o\n%s", s.Mode, text)
	return r.kept[s]
}

// text is what a leaf says, or of a file what it held.
func (l leaf) text() string {
	if l.held == nil {
		return l.name
	}
	return cmp.Or(l.held(), l.name)
}

// String is a leaf as people read it: a text of several lines on lines of its own.
func (l leaf) String() string {
	text := l.text()
	if text != l.name {
		_, text, _ = strings.Cut(text, "\n")
	}
	if text = strings.TrimRight(text, "\n"); strings.Contains(text, "\n") {
		text = "\n  " + strings.ReplaceAll(text, "\n", "\n  ")
	}
	return text
}

func nameOf(e event.Event) string {
	name, _ := event.Name(e)
	return name
}
