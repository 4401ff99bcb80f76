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

	"coder/internal/agent/alike"
	"coder/internal/agent/supervisor"
	"coder/internal/core/event"
	"coder/internal/core/paths"
	"coder/internal/core/secret"
	"coder/internal/record/past"
	"coder/internal/tool"
)

// A FieldRule names fields of records that may differ. Record "*" is any, and then a field is a
// name at any depth.
type FieldRule struct{ Record, Fields, Reason string }

const (
	reasonNewIDs       = "a rerun makes new ids"
	reasonTime         = "a rerun happens at another time"
	reasonDisplayText  = "it says in words what other fields say"
	reasonMeasured     = "it measures the machine"
	reasonCurrentFlags = "the flags of today count, and the record stands in for those not given"
	reasonMayLack      = "records of earlier versions do not have it" // these may lack it, and no more
)

// IgnoredFields lists the fields that are not compared. All others are.
var IgnoredFields = []FieldRule{
	{"*", "taskId parentTaskId toolCallId tool_call_id interactionId callDigest pid commit", reasonNewIDs},
	{"*", "timestamp durationMs duration_ms", reasonTime},
	{"*", "diagnostics new_diagnostics", "language servers answer when they are ready"},
	{"*", "sandbox", "a rerun is always confined"},
	{"*", "authorActorId", "a rerun is run by nobody"},
	{"TaskCreated", "title", reasonDisplayText},
	{"TaskCreated", "run", reasonCurrentFlags},
	{"TaskStarted", "run", reasonCurrentFlags},
	{"TaskFailed", "reason", reasonDisplayText},
	{"TaskFailed", "says steps", reasonMayLack},
	{"ToolCallRequested", "reasons title readOnly", reasonDisplayText},
	{"ToolCallRequested", "tree repository", reasonNewIDs},
	{"ToolCallRequested", "unasked", reasonCurrentFlags},
	{"ToolCallRequested", "keyless", reasonMayLack},
	{"ToolCallRequested", "before", "what a call finds is what the calls before it left, and that is compared"},
	{"ToolCallCompleted", "summary", reasonDisplayText},
	{"ToolCallCompleted", "changes", "the files that they left are compared"},
	{"ToolCallCompleted", "saw", "its result says what it saw"},
	{"MessageAdded", "reminded blocks", reasonDisplayText},
	{"MessageAdded", "model", reasonCurrentFlags},
	{"MessageAdded", "usage stop window tools", reasonMeasured},
	{"MessageAdded", "sent", "the record answers in the model's place, and no request goes over a network"},
	{"ContextReplaced", "tokensBefore tokensAfter window", reasonMeasured},
	{"ContextReplaced", "done", reasonDisplayText},
	{"ContextRewound", "to", reasonNewIDs},
	{"ContextRewound", "undone", reasonMeasured},
	{"LocalAdded", "input", "a rerun is given it, with its own record numbers"},
	{"LocalAdded", "output", "the records of what the command did are compared"},
	{"LocalAdded", "blocks", reasonDisplayText},
	{"UserInteractionRequested", "display.metadata display.description options.label", reasonDisplayText},
	{"UserInteractionRequested", "display.content", "the call and its files are compared"},
}

// ignoreReason is why a field at a path may differ, "" if it may not.
func ignoreReason(record, path string) string {
	for strings.HasPrefix(path, "parts.") { // of a question: they are questions
		path = strings.TrimPrefix(path, "parts.")
	}
	for _, rule := range IgnoredFields {
		for field := range strings.FieldsSeq(rule.Fields) {
			if rule.Record == "*" && path[strings.LastIndexByte(path, '.')+1:] == field ||
				rule.Record == record && strings.HasPrefix(path+".", field+".") {
				return rule.Reason
			}
		}
	}
	return ""
}

// Side is one of the two that are compared: the session as it was, or its rerun.
type Side struct {
	Paths    paths.Map          // what stands for a path in texts that are compared
	Contents past.ContentSource // nil if there is nothing to look up
}

// leaf is a field of a record that holds no other fields, or a file that a call left.
type leaf struct {
	name     string        // the text, or of a file the hash of its content and its mode
	content  func() string // of a file: its mode and what it held, "" if that cannot be compared
	isFile   bool
	optional bool // records of earlier versions do not have it
}

// leafReader reads the leaves of records on one side.
type leafReader struct {
	Side
	exceptions Exceptions
	contents   map[event.FileState]string
}

// eventLeaves are the fields of an event that are compared, by their paths; of none, that there is none.
func (r *leafReader) eventLeaves(e event.Event) map[string]leaf {
	if e == nil {
		return map[string]leaf{"nothing": {name: "the session ends here"}}
	}
	list := map[string]leaf{"record": {name: eventName(e)}}
	switch was := e.(type) {
	case event.ToolCallRequested:
		if slices.Contains([]string{"undo", "redo", "restore"}, was.Tool) { // these name records by their numbers
			was.Input = nil
		}
		e = was
	case event.ToolCallCompleted:
		r.addChanges(list, was.Changes)
	case event.InteractionRequested:
		if was.Author == event.ActorRecovery { // which is best, and whether there is more to see, is told by files
			for _, o := range was.Options {
				list["option "+o.ID] = leaf{name: o.ID}
			}
			delete(list, "option "+supervisor.OptionShowChanges)
			was.Options = nil
		}
		e = was
	}
	data, err := json.Marshal(e)
	if err != nil {
		data = []byte(strconv.Quote(err.Error()))
	}
	r.addLeaves(list, eventName(e), "", "", decodeJSON(string(data)))
	return list
}

// decodeJSON is what a text says in JSON, or the text if it is none.
func decodeJSON(text string) (v any) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return text
	}
	return v
}

// addLeaves adds the leaves of a value, but for those that may differ. The path shown tells the
// elements of lists apart.
func (r *leafReader) addLeaves(list map[string]leaf, record, path, shown string, value any) {
	why := ignoreReason(record, path)
	if text, ok := value.(string); ok {
		if inner, ok := decodeJSON(text).(map[string]any); ok {
			value = inner
		}
	}
	switch v := value.(type) {
	case nil:
	case map[string]any:
		name := cmp.Or[any](v["name"], v["toolName"])
		for k, one := range v {
			if text, _ := name.(string); tool.ClassOf(text) == tool.ClassFindFiles && (k == "output" || k == "content") {
				one = sortSearchResult(one)
			}
			at := strings.TrimPrefix(path+"."+k, ".")
			if why := ignoreReason(record, at); why == "" || why == reasonMayLack {
				r.addLeaves(list, record, at, strings.TrimPrefix(shown+"."+k, "."), one)
			}
		}
	case []any:
		for i, one := range v {
			r.addLeaves(list, record, path, shown+"["+strconv.Itoa(i)+"]", one)
		}
	default:
		list[shown] = leaf{name: r.maskText(fmt.Sprint(v)), optional: why != ""}
	}
}

// sortSearchResult is the result of a search by name, the newest first, in one order: the files of a
// copy are not as old.
func sortSearchResult(result any) any {
	if text, ok := result.(string); ok {
		result = decodeJSON(text)
	}
	found, _ := result.(map[string]any)
	matches, _ := found["matches"].([]any)
	slices.SortFunc(matches, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return result
}

// maskText is a text without what may differ everywhere.
func (r *leafReader) maskText(text string) string {
	return r.exceptions.removeIgnored(alike.Mask(secret.ShapeConcealer().Text(r.Paths.Text(text))))
}

// addChanges are what a call did to files, one by one.
func (r *leafReader) addChanges(list map[string]leaf, changes []event.FileChange) {
	each, _ := past.ExpandChanges(context.Background(), r.Contents, changes) // what was not kept is compared as it is
	for _, c := range each {
		name := cmp.Or(c.After.Path, c.Before.Path)
		if c.Before.Hash == "dir" && c.After.Hash == "dir" || isCacheFile(name) {
			continue
		}
		list[r.changePath(name)] = r.stateLeaf(c.After)
	}
}

// changePath is the path of what a call did to a file.
func (r *leafReader) changePath(name string) string {
	return "files " + past.CopyName(r.Paths.Text(name))
}

// isCacheFile reports whether a file is one that a program writes for itself, with times in it.
func isCacheFile(name string) bool {
	base := path.Base(name)
	return path.Ext(base) == ".pyc" || base == "__pycache__" || base == ".pytest_cache"
}

// stateLeaf is what became of a file.
func (r *leafReader) stateLeaf(s event.FileState) leaf {
	switch {
	case s.ContentLost:
		return leaf{isFile: true, name: "(not kept)"}
	case s.Hash == "":
		return leaf{isFile: true, name: "(none)"}
	case s.Link != "":
		return leaf{isFile: true, name: r.maskText("link to " + s.Link)}
	case s.Hash == "dir":
		return leaf{isFile: true, name: "folder"}
	}
	name := fmt.Sprintf("%s %04o", s.Hash, s.Mode)
	return leaf{isFile: true, name: name, content: func() string { return r.fileContent(s) }}
}

// maxContentBytes is how long a file may be that is compared at all.
const maxContentBytes = 256 << 20

// maxMaskedBytes is how long a file may be of which parts may differ.
const maxMaskedBytes = 1 << 20

// fileContent is what a file held, after its mode, "" if it cannot be compared.
func (r *leafReader) fileContent(s event.FileState) string {
	if text, known := r.contents[s]; known || r.Contents == nil {
		return text
	}
	data, err := r.Contents.Content(context.Background(), s, maxContentBytes)
	if err != nil {
		return ""
	}
	text := past.ContentHash(data)
	if len(data) <= maxMaskedBytes && !bytes.ContainsRune(data, 0) {
		text = r.maskText(string(data))
	}
	r.contents[s] = fmt.Sprintf("%04o\n%s", s.Mode, text)
	return r.contents[s]
}

// plainText is what a leaf says, or of a file what it held.
func (l leaf) plainText() string {
	if l.content == nil {
		return l.name
	}
	return cmp.Or(l.content(), l.name)
}

// String is a leaf as people read it: a text of several lines on lines of its own.
func (l leaf) String() string {
	text := l.plainText()
	if text != l.name {
		_, text, _ = strings.Cut(text, "\n")
	}
	if text = strings.TrimRight(text, "\n"); strings.Contains(text, "\n") {
		text = "\n  " + strings.ReplaceAll(text, "\n", "\n  ")
	}
	return text
}

func eventName(e event.Event) string {
	name, _ := event.WireName(e)
	return name
}
