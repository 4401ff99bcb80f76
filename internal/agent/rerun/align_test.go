package rerun

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"coder/internal/core/event"
)

// sides are pairs in a line: the numbers of the record and of the one that was made, 0 for none.
func sides(pairs []recordPair) string {
	var list []string
	for _, p := range pairs {
		is := fmt.Sprint(p.rerun.Seq)
		if p.rerun.Event == nil {
			is = "-"
		}
		was := fmt.Sprint(p.recorded.Seq)
		if p.recorded.Event == nil {
			was += "?" // the record that it comes after
		}
		list = append(list, was+":"+is)
	}
	return strings.Join(list, " ")
}

// again are records as a rerun made them, in a stream that the letter before a colon names.
func again(rs ...streamRecord) []streamRecord {
	for i := range rs {
		rs[i].Seq = uint64(i + 1)
	}
	return rs
}

func TestRecordsStandSideBySide(t *testing.T) {
	sub := of("u", "", event.TaskCreated{TaskID: "u", ParentID: "t", CallID: "c"})
	whole := New("s", "/ws", numbered(created("t"), requested("t", "c", "task", `{}`), sub, replied("u", "in"), completed("t", "c", "task", `{}`), replied("t", "end")))
	in := func(stream string, r event.Record) streamRecord { return streamRecord{stream, r} }
	begin, call, inside := in(main, created("t")), in(main, requested("t", "c", "task", `{}`)), in("c", sub)
	reply, done, end := in("c", replied("u", "in")), in(main, completed("t", "c", "task", `{}`)), in(main, replied("t", "end"))
	for name, tt := range map[string]struct {
		made []streamRecord
		want string
	}{
		"all of them":              {again(begin, call, inside, reply, done, end), "1:1 2:2 3:3 4:4 5:5 6:6"},
		"streams in another order": {again(begin, call, done, end, inside, reply), "1:1 2:2 3:5 4:6 5:3 6:4"},
		"none":                     {nil, "1:- 3:-"},
		"the last is missing":      {again(begin, call, inside, reply, done), "1:1 2:2 3:3 4:4 5:5 6:-"},
		"two streams end early":    {again(begin, call, inside), "1:1 2:2 3:3 4:- 5:-"},
		"one more":                 {again(begin, call, inside, reply, done, end, end), "1:1 2:2 3:3 4:4 5:5 6:6 6?:7"},
		"another kind":             {again(begin, call, inside, reply, end), "1:1 2:2 3:3 4:4 5:5"},
		"nothing after it counts":  {again(begin, end, call, inside), "1:1 2:2 3:4"},
		"a stream of nobody":       {again(begin, in("x", sub)), "0?:2 1:1"},
	} {
		if got := sides(alignRecords(whole, tt.made)); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// TestARerunThatStopsEarlyDiffers, and does not agree in silence.
func TestARerunThatStopsEarlyDiffers(t *testing.T) {
	list := numbered(created("t"), requested("t", "c", "bash", `{}`), completed("t", "c", "bash", `{}`))
	for n := range list {
		r := follow(t, New("s", "/ws", list), keeper{}, nil)
		if err := r.make(list[:n]...); err != nil {
			t.Fatal(err)
		}
		d := r.Compare(Exceptions{}).Difference
		if d == nil || d.Record != uint64(n+1) || d.Kind != kindCourse || d.AgreedRecords != n || d.Rerun != "nothing: the session ends here\n" {
			t.Errorf("after %d records: %+v", n, d)
		}
	}
}

// TestEveryFieldOfTheTable may differ in its record at any depth that the table names, and a
// field of another name or in another record is compared.
func TestEveryFieldOfTheTable(t *testing.T) {
	r := &leafReader{}
	leaves := func(record, path string) map[string]leaf {
		value := any("a difference")
		names := strings.Split(path, ".")
		for i := range names {
			value = map[string]any{names[len(names)-1-i]: value}
		}
		list := make(map[string]leaf)
		r.addLeaves(list, record, "", "", value)
		return list
	}
	for _, rule := range IgnoredFields {
		for _, field := range strings.Fields(rule.Fields) {
			record, other := rule.Record, "TaskCompleted"
			if record == "*" {
				record, other = "TaskCompleted", ""
				if list := leaves(record, "deep.list."+field); len(list) > 0 {
					t.Errorf("%s is compared where it lies deeper", field)
				}
			}
			switch list := leaves(record, field); {
			case rule.Reason == reasonMayLack && !list[field].optional:
				t.Errorf("%s %s: an older record must have it", record, field)
			case rule.Reason != reasonMayLack && len(list) > 0:
				t.Errorf("%s %s is compared", record, field)
			}
			if list := leaves(record, field+"2"); list[field+"2"].name == "" || list[field+"2"].optional {
				t.Errorf("%s %s2 is not compared", record, field)
			}
			if list := leaves(other, field); other != "" && list[field].name == "" {
				t.Errorf("%s of %s is not compared", field, other)
			}
		}
	}
}

// TestADamagedSessionIsReadAsFarAsItGoes: what is missing in it is a difference at its place.
func TestADamagedSessionIsReadAsFarAsItGoes(t *testing.T) {
	call, done := requested("t", "c", "bash", `{}`), completed("t", "c", "bash", `{}`)
	end := of("t", "", event.TaskCompleted{TaskID: "t"})
	for name, tt := range map[string]struct {
		records, made []event.Record
		record        uint64 // the first that differs; 0 for none
	}{
		"nothing":                          {nil, nil, 0},
		"a result without its call":        {[]event.Record{created("t"), done, end}, []event.Record{created("t"), call}, 2},
		"a call without its result":        {[]event.Record{created("t"), call, end}, []event.Record{created("t"), call, done}, 3},
		"a task that nobody began":         {[]event.Record{of("x", "", done.Event), created("t"), end}, []event.Record{created("t")}, 1},
		"its end twice":                    {[]event.Record{created("t"), end, end}, []event.Record{created("t"), end}, 3},
		"records of a later version":       {[]event.Record{created("t"), of("t", "", event.Unknown{Type: "New"}), end}, []event.Record{created("t"), end}, 0},
		"a subtask whose call is gone":     {[]event.Record{created("t"), of("u", "", event.TaskCreated{TaskID: "u", ParentID: "t", CallID: "z"}), end}, []event.Record{created("t"), end}, 2},
		"a subtask of one that is not":     {[]event.Record{created("t"), of("u", "", event.TaskCreated{TaskID: "u", ParentID: "gone", CallID: ""}), end}, []event.Record{created("t"), end}, 2},
		"numbers that come more than once": {[]event.Record{created("t"), created("t"), end}, []event.Record{created("t"), end}, 2},
	} {
		r := follow(t, New("s", "/ws", numbered(tt.records...)), keeper{}, nil)
		_ = r.make(tt.made...) // the first that does not fit is refused
		switch d := r.Compare(Exceptions{}).Difference; {
		case d == nil && tt.record > 0 || d != nil && d.Record != tt.record:
			t.Errorf("%s: %+v, want record %d", name, d, tt.record)
		case d != nil && d.Kind != kindCourse && d.Kind != kindResult && d.Kind != kindDecision:
			t.Errorf("%s: a difference of %s", name, d.Kind)
		}
	}
}

// TestTheTableNamesFieldsThatRecordsHave, so that a field which is renamed does not go on to be
// compared, or not, by its old name.
func TestTheTableNamesFieldsThatRecordsHave(t *testing.T) {
	have := make(map[string]bool)
	var add func(of reflect.Type, path string)
	add = func(of reflect.Type, path string) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if have[path] = true; of.Kind() != reflect.Struct || strings.Count(path, ".") > 3 {
			return
		}
		for i := range of.NumField() {
			f := of.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case f.Anonymous:
				add(f.Type, path)
			case name != "-":
				add(f.Type, path+"."+cmp.Or(name, strings.ToLower(f.Name))) // a display is written so
			}
		}
	}
	for _, e := range []event.Event{
		event.TaskCreated{}, event.TaskStarted{}, event.TaskFailed{}, event.ToolCallRequested{}, event.ToolCallCompleted{}, event.MessageAdded{},
		event.ContextReplaced{}, event.ContextRewound{}, event.LocalAdded{}, event.InteractionRequested{},
	} {
		add(reflect.TypeOf(e), eventName(e))
	}
	for _, rule := range IgnoredFields {
		for _, field := range strings.Fields(rule.Fields) {
			if rule.Record != "*" && !have[rule.Record+"."+field] {
				t.Errorf("%s has no field %s", rule.Record, field)
			}
		}
	}
}

// TestAnIdMayComeAgain looks for the result of a call after its request only.
func TestAnIdMayComeAgain(t *testing.T) {
	list := numbered(created("t"), requested("t", "c", "read", `{}`), completed("t", "c", "read", `{"n":1}`),
		requested("t", "c", "read", `{}`), completed("t", "c", "read", `{"n":2}`), requested("t", "c", "read", `{}`))
	take := New("s", "/ws", list)
	for seq, want := range map[int]string{2: `{"n":1}`, 4: `{"n":2}`, 6: ""} {
		if r, done := take.findResult(streamRecord{main, list[seq-1]}); string(done.Output) != want || (r.Event != nil) != (want != "") {
			t.Errorf("of record %d came %s, %v", seq, done.Output, r)
		}
	}
}

// TestASubtaskThatGoesOnAloneIsRun by the process that takes it up.
func TestASubtaskThatGoesOnAloneIsRun(t *testing.T) {
	sub := of("u", "", event.TaskCreated{TaskID: "u", ParentID: "t", CallID: "c"})
	recovered := of("u", event.ActorRecovery, event.ToolCallCompleted{CallID: "d", Tool: "read"})
	whole := New("s", "/ws", numbered(created("t"), requested("t", "c", "task", `{}`), sub, requested("u", "d", "read", `{}`), recovered))
	r := follow(t, whole, keeper{}, nil)
	if err := r.make(whole.Records[:4]...); err != nil || !r.Replayer.ended {
		t.Fatalf("the first process: %v, ended %v", err, r.Replayer.ended)
	}
	r.startProcess(1)
	if _, ok := r.nextRecord(main); ok || !r.hasPending() || len(whole.processes) != 2 {
		t.Errorf("the second has %v", r.pending)
	}
	if err := r.make(recovered); err != nil || !r.Replayer.ended {
		t.Errorf("it makes that: %v, ended %v", err, r.Replayer.ended)
	}
}

// TestTheBeginningOfATurnIsCutOff even where its last record closed the books of the one before.
func TestTheBeginningOfATurnIsCutOff(t *testing.T) {
	whole := New("s", "/ws", numbered(created("t"), of("t", "", event.TaskCompleted{TaskID: "t"}), created("u")))
	if part := whole.Prefix(2); !part.endsEarly || New("s", "/ws", whole.Records[:2]).endsEarly {
		t.Errorf("cut %v", part.endsEarly)
	}
	sub := of("u", "", event.TaskCreated{TaskID: "u", ParentID: "t", CallID: "c"})
	two := New("s", "/ws", numbered(created("t"), requested("t", "c", "task", `{}`), sub, replied("u", "one"), replied("u", "two"), replied("t", "x")))
	r := follow(t, two.Prefix(5), keeper{}, nil)
	if err := r.make(created("t"), requested("t", "c", "task", `{}`), sub); err != nil {
		t.Fatal(err)
	}
	if err := r.make(replied("t", "x")); !errors.Is(err, errProcessEnded) || r.diverged {
		t.Errorf("the session goes on beyond the end: %v", err)
	}
}
