package rerun

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"coder/internal/agent/supervisor"
	"coder/internal/core/event"
	"coder/internal/core/uip"
)

// differs is how two records differ, as lines for people; "" if they do not.
func differs(was, is event.Event, sides ...Side) string {
	sides = append(sides, Side{}, Side{})
	c := newComparison(New("s", "/ws", nil), sides[0], sides[1], Exceptions{})
	if d := c.compareRecords(recordPair{event.Record{Seq: 1, Event: was}, event.Record{Seq: 1, Event: is}}); d != nil {
		return d.Kind + "\n" + d.Recorded + "---\n" + d.Rerun
	}
	return ""
}

func TestFieldsThatMayDifferAreNotCompared(t *testing.T) {
	call := event.ToolCallRequested{CallID: "c", Tool: "bash", Input: []byte(`{"command":"x"}`), Verdict: event.VerdictAllowed}
	with := func(change func(*event.ToolCallRequested)) event.Event {
		other := call
		change(&other)
		return other
	}
	for name, other := range map[string]event.Event{
		"an id":        with(func(e *event.ToolCallRequested) { e.CallID, e.TaskID = "d", "t" }),
		"the time":     with(func(e *event.ToolCallRequested) { e.Timestamp = 7 }),
		"words":        with(func(e *event.ToolCallRequested) { e.Title, e.Reasons = "x", []string{"y"} }),
		"the sandbox":  with(func(e *event.ToolCallRequested) { e.Sandbox = "here" }),
		"a flag":       with(func(e *event.ToolCallRequested) { e.AutoAllowed = event.AllowanceRisks }),
		"what is kept": with(func(e *event.ToolCallRequested) { e.Tree, e.Repository = "x", "y" }),
	} {
		if d := differs(call, other); d != "" {
			t.Errorf("%s is compared: %s", name, d)
		}
	}
	for name, other := range map[string]event.Event{
		"the verdict": with(func(e *event.ToolCallRequested) { e.Verdict = event.VerdictDenied }),
		"who decided": with(func(e *event.ToolCallRequested) { e.DecidedBy = "user" }),
		"the input":   with(func(e *event.ToolCallRequested) { e.Input = []byte(`{"command":"y"}`) }),
		"effects":     with(func(e *event.ToolCallRequested) { e.Effects = []event.Effect{{Kind: event.EffectExec, Target: "x"}} }),
	} {
		if d := differs(call, other); !strings.HasPrefix(d, kindDecision) {
			t.Errorf("%s is not compared: %q", name, d)
		}
	}
}

// TestUndoingNamesRecordsByTheirNumbers, which a rerun numbers anew.
func TestUndoingNamesRecordsByTheirNumbers(t *testing.T) {
	for tool, same := range map[string]bool{"undo": true, "redo": true, "restore": true, "bash": false} {
		was, is := event.ToolCallRequested{Tool: tool, Input: []byte(`{"of":1}`)}, event.ToolCallRequested{Tool: tool, Input: []byte(`{"of":2}`)}
		if d := differs(was, is); (d == "") != same {
			t.Errorf("%s: %q", tool, d)
		}
	}
}

// TestAnOlderRecordMayLackAField, and one that has it is compared by it.
func TestAnOlderRecordMayLackAField(t *testing.T) {
	older, newer := event.TaskFailed{Reason: "ask the model: gone"}, event.TaskFailed{Reason: "in other words", ErrorText: "gone", Steps: 7}
	if d := differs(older, newer); d != "" {
		t.Errorf("an older record differs: %s", d)
	}
	if d := differs(newer, older); !strings.Contains(d, "says: gone") || !strings.Contains(d, "steps: 7") {
		t.Errorf("a newer one does not: %q", d)
	}
	if d := differs(newer, event.TaskFailed{ErrorText: "other", Steps: 7}); d != kindCourse+"\nsays: gone\n---\nsays: other\n" {
		t.Errorf("two newer ones differ as %q", d)
	}
	if d := differs(event.ToolCallRequested{}, event.ToolCallRequested{KeysMissing: true}); d != "" {
		t.Errorf("an older call differs: %s", d)
	}
}

func TestFieldsOfPartsAreFields(t *testing.T) {
	for path, may := range map[string]bool{
		"display.metadata": true, "display.metadata.x": true, "parts.display.metadata": true, "parts.parts.options.label": true,
		"display.title": false, "parts.kind": false, "display.metadatas": false, "parts.interactionId": true,
	} {
		if got := ignoreReason("UserInteractionRequested", path) != ""; got != may {
			t.Errorf("%s may differ: %v", path, got)
		}
	}
}

func TestLeavesOfARecord(t *testing.T) {
	r := &leafReader{Side: Side{Paths: map[string]string{"/ws": "<workspace>"}}}
	e := event.ToolCallCompleted{
		Tool: "x", CallID: "c", Output: []byte(`{"list":[{"a":1},{"a":"two"}],"text":"{\"in\":\"/ws/f\"}","none":null,"ok":true}`),
		SeenFiles: []event.FileState{file("s", "h")}, Changes: []event.FileChange{
			{After: event.FileState{Path: "gone"}}, {After: event.FileState{Path: "l", Hash: "link", Link: "/ws/t"}}, {After: event.FileState{Path: "lost", ContentLost: true}},
			{After: event.FileState{Path: "d", Hash: "dir"}}, {Before: event.FileState{Path: "e", Hash: "dir"}, After: event.FileState{Path: "e", Hash: "dir"}}, {After: file("x/a.pyc", "h")},
		},
	}
	want := map[string]string{
		"record": "ToolCallCompleted", "toolName": "x", "output.list[0].a": "1", "output.list[1].a": "two", "output.text.in": "<workspace>/f", "output.ok": "true", "isError": "false",
		"files gone": "(none)", "files l": "link to <workspace>/t", "files lost": "(not kept)", "files d": "folder",
	}
	got := make(map[string]string)
	for path, l := range r.eventLeaves(e) {
		got[path] = l.name
		if l.isFile != strings.HasPrefix(path, "files ") {
			t.Errorf("%s is a file: %v", path, l.isFile)
		}
	}
	delete(got, "taskId")
	if !maps.Equal(got, want) {
		t.Errorf("the leaves are %v", got)
	}
}

// TestFilesAreComparedByWhatTheyHold, with what may differ in any text.
func TestFilesAreComparedByWhatTheyHold(t *testing.T) {
	left := func(s event.FileState) event.Event {
		return event.ToolCallCompleted{Tool: "x", Output: []byte(`{}`), Changes: []event.FileChange{{After: s}}}
	}
	kept := keeper{contents: map[string]string{"1": "made 2026-11-16 06:24\n", "2": "made 2027-01-02 09:00\n", "3": "unmade\nhere", "4": "bin\x00 2026-11-16", "5": "bin\x00 2027-01-02"}}
	gitName := "git:" + strings.Repeat("a", 39) // whose ids are masked in texts
	kept.contents[gitName+"1"], kept.contents[gitName+"2"] = "one", "two"
	side := Side{Contents: kept}
	none := keeper{}
	for name, tt := range map[string]struct {
		was, is event.FileState
		kept    keeper
		same    bool
	}{
		"but for the time": {file("a", "1"), file("a", "2"), kept, true},
		"other words":      {file("a", "1"), file("a", "3"), kept, false},
		"another mode":     {file("a", "1"), event.FileState{Path: "a", Hash: "2", Mode: 0o755}, kept, false},
		"no text":          {file("a", "4"), file("a", "5"), kept, false},
		"the same":         {file("a", "9"), file("a", "9"), none, true},
		"not kept":         {file("a", "1"), file("a", "2"), none, false},
		"gone":             {file("a", "1"), event.FileState{Path: "a"}, kept, false},
		"named by git":     {file("a", gitName+"1"), file("a", gitName+"2"), kept, false},
	} {
		d := differs(left(tt.was), left(tt.is), Side{Contents: tt.kept}, Side{Contents: tt.kept})
		if (d == "") != tt.same || d != "" && !strings.HasPrefix(d, kindFiles) {
			t.Errorf("%s: %q", name, d)
		}
	}
	if d := differs(left(file("a", "1")), left(file("a", "3")), side, side); !strings.Contains(d, "files a: made <time>") || !strings.Contains(d, "files a: \n  unmade\n  here\n") {
		t.Errorf("it is shown as %q", d)
	}
}

// TestAQuestionAboutATurnThatWasLeftIsComparedByItsOptions: which is best is told by files.
func TestAQuestionAboutATurnThatWasLeftIsComparedByItsOptions(t *testing.T) {
	ask := func(author string, options ...uip.Option) event.Event {
		return event.InteractionRequested{Request: uip.Request{Author: author, Options: options}}
	}
	goOn, drop, look := uip.Option{ID: supervisor.OptionContinue, Default: true}, uip.Option{ID: supervisor.OptionDiscard, Style: uip.StyleDanger}, uip.Option{ID: supervisor.OptionShowChanges}
	then, now := []uip.Option{goOn, drop, look}, []uip.Option{{ID: supervisor.OptionDiscard, Default: true}, {ID: supervisor.OptionContinue}}
	if d := differs(ask(event.ActorRecovery, then...), ask(event.ActorRecovery, now...)); d != "" {
		t.Errorf("of a turn that was left: %s", d)
	}
	if d := differs(ask("main", then...), ask("main", now...)); !strings.HasPrefix(d, kindQuestion) {
		t.Errorf("of any other: %q", d)
	}
	if d := differs(ask(event.ActorRecovery, then...), ask(event.ActorRecovery, goOn)); d == "" {
		t.Error("an option less is the same")
	}
}

// TestAFileOfAJobIsNoticedByAnyCall: a command in the background ends when it ends. What both sides found is
// compared.
func TestAFileOfAJobIsNoticedByAnyCall(t *testing.T) {
	list := func(input string, first, second []event.FileChange) []event.Record {
		done := func(id string, changes []event.FileChange) event.Record {
			return of("t", "", event.ToolCallCompleted{CallID: id, Tool: "bash", Output: []byte(`{}`), Changes: changes})
		}
		return numbered(requested("t", "c", "bash", input), done("c", first), requested("t", "d", "bash", `{}`), done("d", second))
	}
	made := []event.FileChange{{After: file("j", "h")}}
	other := []event.FileChange{{After: file("j", "g")}}
	const job = `{"command":"x","run_in_background":true}`
	for name, tt := range map[string]struct {
		was, is   []event.Record
		different uint64
	}{
		"a call later":           {list(job, made, nil), list(job, nil, made), 0},
		"before the next call":   {list(job, made, nil), list(job, nil, nil), 0},
		"in the rerun only":      {list(job, nil, nil), list(job, nil, made), 0},
		"with another outcome":   {list(job, made, nil), list(job, other, nil), 2},
		"not in the background":  {list(`{}`, made, nil), list(`{}`, nil, made), 2},
		"in the background, but": {list(`{"command":"x","background":false}`, made, nil), list(`{"command":"x","background":false}`, nil, made), 2},
	} {
		d := first(tt.was, tt.is, Exceptions{})
		if tt.different == 0 && d != nil || tt.different > 0 && (d == nil || d.Record != tt.different || d.Kind != kindFiles) {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestHowFarAnInterruptedCallGotIsChance(t *testing.T) {
	done := func(out string) event.Event {
		return event.ToolCallCompleted{Tool: "bash", Output: []byte(out)}
	}
	if d := differs(done(`{"cancelled":true,"stdout":"1"}`), done(`{"stdout":"1\n2"}`)); d != "" {
		t.Errorf("it differs: %s", d)
	}
	if d := differs(done(`{"stdout":"1"}`), done(`{"cancelled":true,"stdout":"1"}`)); !strings.HasPrefix(d, kindResult) {
		t.Errorf("one that was not: %q", d)
	}
}

// What a pattern finds comes the newest first, and a copy's files are not as old: the
// order is not compared, what was found is. A commit is made at another time, so its
// name is another, even if both look like numbers.
func TestTheOrderOfTimesMayDiffer(t *testing.T) {
	same := func(tool, a, b string) bool {
		c := newComparison(New("s", "/ws", nil), Side{}, Side{}, Exceptions{})
		done := func(output string) event.Record {
			return event.Record{Event: event.ToolCallCompleted{Tool: tool, Output: json.RawMessage(output)}}
		}
		return c.compareRecords(recordPair{done(a), done(b)}) == nil
	}
	one, two := `{"matches":["a","b"],"count":2}`, `{"matches":["b","a"],"count":2}`
	if !same("glob", one, two) {
		t.Error("the order of a glob is compared")
	}
	if same("glob", one, `{"matches":["a","c"],"count":2}`) || same("grep", one, two) {
		t.Error("what was found is not compared, or the order of a tool that has one")
	}
	one, two = `{"commit":"5256490","files":1}`, `{"commit":"2673219","files":1}`
	if !same("git_commit", one, two) {
		t.Error("the name of a commit is compared")
	}
	if same("git_commit", one, `{"commit":"5256490","files":2}`) {
		t.Error("what was committed is not compared")
	}
}
