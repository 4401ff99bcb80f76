package rerun

import (
	"encoding/json"
	"strings"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/core/event"
)

// bashCall are the records of one command: 1 asks for it, 2 has what it printed.
func bashCall(input, output string) []event.Record {
	return []event.Record{
		{Seq: 1, Event: event.ToolCallRequested{CallID: "c", Tool: "bash", Input: json.RawMessage(input), Verdict: event.VerdictAllowed, Title: "the command"}},
		{Seq: 2, Event: event.ToolCallCompleted{CallID: "c", Tool: "bash", Output: json.RawMessage(output)}},
	}
}

// first is the first difference of two lists of records, with others from the same world.
func first(was, is []event.Record, except Exceptions, again ...[]event.Record) *Difference {
	c := newComparison(New("s", "/ws", was), Side{}, Side{}, except)
	pairs := func(is []event.Record) (list []recordPair) {
		for i, r := range was {
			list = append(list, recordPair{r, is[i]})
		}
		return list
	}
	for _, other := range again {
		c.addRerun(pairs(other))
	}
	return c.firstDifference(pairs(is))
}

func TestWhatDiffersBetweenRunsInOneWorldMayDiffer(t *testing.T) {
	const in = `{"command":"x"}`
	out := func(text string) []event.Record {
		data, _ := json.Marshal(map[string]any{"stdout": text, "exit_code": 0})
		return bashCall(in, string(data))
	}
	for name, tt := range map[string]struct {
		was, is, again string
		differs        bool
	}{
		"a number by chance":                {"n 5\nend\n", "n 17\nend\n", "n 3\nend\n", false},
		"a word by chance":                  {"key abc end\n", "key xyz end\n", "key q end\n", false},
		"lines by chance":                   {"a\nx\nb\n", "a\nb\n", "a\ny\nz\nb\n", false},
		"the same twice":                    {"n 5\n", "n 17\n", "n 17\n", true},
		"something else than what varies":   {"n 5\nend\n", "n 17\nEND\n", "n 3\nEND\n", true},
		"a line more than what varies":      {"n 5\nend\nmore\n", "n 17\nend\n", "n 3\nend\n", true},
		"another word beside a varying one": {"m 5\n", "n 17\n", "n 3\n", true},
		"nothing":                           {"same\n", "same\n", "other\n", false},
	} {
		if d := first(out(tt.was), out(tt.is), Exceptions{}, out(tt.again)); (d != nil) != tt.differs {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestADifferenceNamesTheRecordTheCallAndTheField(t *testing.T) {
	was, is := bashCall(`{"command":"x"}`, `{"stdout":"a\n","exit_code":0}`), bashCall(`{"command":"x"}`, `{"stdout":"a\n","exit_code":1}`)
	d := first(was, is, Exceptions{})
	if d == nil || d.Record != 2 || d.Kind != "result" || d.Subject != "bash" || d.Call != "the command" || d.Recorded != "output.exit_code: 0\n" || d.Rerun != "output.exit_code: 1\n" || d.AgreedRecords != 1 {
		t.Errorf("%+v", d)
	}
	denied := bashCall(`{"command":"x"}`, `{"stdout":"a\n","exit_code":0}`)
	asked := denied[0].Event.(event.ToolCallRequested)
	asked.Verdict, asked.Reasons = event.VerdictDenied, []string{"rule: no"}
	denied[0].Event = asked
	if d := first(was, denied, Exceptions{}); d == nil || d.Record != 1 || d.Kind != "decision" || d.Cause != "rule: no" {
		t.Errorf("%+v", d)
	}
	other := []event.Record{was[0], {Event: event.MessageAdded{Message: chat.TextMessage(chat.Assistant, "x")}}}
	if d := first(was, other, Exceptions{}); d == nil || d.Record != 2 || d.Kind != "course" {
		t.Errorf("%+v", d)
	}
}

func TestExceptionsAreNotCompared(t *testing.T) {
	was, is := bashCall(`{"command":"x"}`, `{"stdout":"a\nrate 5\n"}`), bashCall(`{"command":"x"}`, `{"stdout":"a\nrate 6\n"}`)
	for name, tt := range map[string]struct {
		except  Exceptions
		differs bool
	}{
		"none":           {Exceptions{}, true},
		"the record":     {Exceptions{SkippedRecords: []uint64{2}}, false},
		"another record": {Exceptions{SkippedRecords: []uint64{1}}, true},
		"the line":       {Exceptions{IgnoredLines: []string{"^rate"}}, false},
		"another line":   {Exceptions{IgnoredLines: []string{"^b"}}, true},
	} {
		if d := first(was, is, tt.except); (d != nil) != tt.differs {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestNumbersOfProcessesMayDiffer(t *testing.T) {
	for command, differs := range map[string]bool{"echo $$": false, "python3 -c 'import os; print(os.getpid())'": false, "echo 8": true, "cat a": true} {
		input, _ := json.Marshal(map[string]string{"command": command})
		if d := first(bashCall(string(input), `{"stdout":"8\n"}`), bashCall(string(input), `{"stdout":"9\n"}`), Exceptions{}); (d != nil) != differs {
			t.Errorf("%s: %+v", command, d)
		}
	}
}

// TestNumbersOfProcessesMayDifferBesideOthers that vary between two reruns.
func TestNumbersOfProcessesMayDifferBesideOthers(t *testing.T) {
	out := func(text string) []event.Record {
		return bashCall(`{"command":"echo $$ $KEY"}`, `{"stdout":"`+text+`"}`)
	}
	if d := first(out("8 key a end"), out("9 key b end"), Exceptions{}, out("9 key c end")); d != nil {
		t.Errorf("%+v", d)
	}
	code := func(n string) []event.Record { return bashCall(`{"command":"echo $$"}`, `{"exit_code":`+n+`}`) }
	if d := first(code("0"), code("1"), Exceptions{}); d == nil {
		t.Error("another exit code is the same")
	}
	if d := first(out("8 key a end"), out("9 key b other"), Exceptions{}, out("9 key c other")); d == nil {
		t.Error("another word is the same")
	}
}

func TestHowFarAJobIsMayDiffer(t *testing.T) {
	const in = `{"command":"sleep 1","background":true}`
	if d := first(bashCall(in, `{"job":"job-1","running":true}`), bashCall(in, `{"job":"job-1","running":false,"exit_code":0}`), Exceptions{}); d != nil {
		t.Errorf("%+v", d)
	}
	if d := first(bashCall(in, `{"job":"job-1"}`), bashCall(in, `{"job":"job-2"}`), Exceptions{}); d == nil {
		t.Error("another job is the same")
	}
}

// TestEveryFieldThatMayDifferSaysWhy and is named once.
func TestEveryFieldThatMayDifferSaysWhy(t *testing.T) {
	seen := make(map[string]bool)
	for _, r := range IgnoredFields {
		for _, field := range strings.Fields(r.Fields) {
			at := r.Record + " " + field
			if r.Reason == "" || seen[at] || r.Record != "*" && !known(r.Record) || ignoreReason(r.Record, field) != r.Reason {
				t.Errorf("%+v", r)
			}
			seen[at] = true
		}
	}
	if ignoreReason("ToolCallCompleted", "output.stdout") != "" || ignoreReason("ToolCallCompleted", "output.duration_ms") != reasonTime || ignoreReason("TaskCreated", "intent") != "" {
		t.Error("the wrong fields may differ")
	}
}

func known(record string) bool {
	for _, e := range []event.Event{
		event.TaskCreated{}, event.TaskStarted{}, event.TaskFailed{}, event.ToolCallRequested{}, event.ToolCallCompleted{}, event.MessageAdded{},
		event.ContextReplaced{}, event.ContextRewound{}, event.LocalAdded{}, event.InteractionRequested{},
	} {
		if eventName(e) == record {
			return true
		}
	}
	return false
}
