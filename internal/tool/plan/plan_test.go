package plan_test

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/tool"
	"coder/internal/tool/plan"
	"coder/testkit/tooltest"
)

// desk is a session as far as todos are concerned: facts are put on record, and
// the record is observed.
type desk struct {
	plan.TodoList
	tools tool.Set
	seq   uint64
}

func open(t *testing.T) *desk {
	t.Helper()
	d := &desk{}
	var err error
	if d.tools, err = tool.NewSet(plan.All(d)...); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *desk) run(t *testing.T, name, args string) (tool.Plan, tool.Result, error) {
	t.Helper()
	tl, ok := d.tools.Lookup(name)
	if !ok {
		t.Fatalf("no tool %s", name)
	}
	call, err := tl.Prepare(t.Context(), json.RawMessage(args))
	if err != nil {
		return tool.Plan{}, tool.Result{}, err
	}
	r, err := call.Run(t.Context(), io.Discard)
	if err == nil {
		for _, f := range r.Events {
			d.seq++
			d.Observe(event.Record{Seq: d.seq, Event: f})
		}
	}
	return call.Plan(), r, err
}

// lay writes a list down.
func lay(list []event.Todo) string {
	var b strings.Builder
	for _, t := range list {
		fmt.Fprintf(&b, "%s:%s:%s", t.ID, t.Content, t.Status)
		if t.Priority != "" {
			b.WriteString(":" + t.Priority)
		}
		b.WriteString("; ")
	}
	return strings.TrimSuffix(b.String(), "; ")
}

func TestToolsKeepTheContract(t *testing.T) {
	for _, f := range []tooltest.Fixture{
		{Good: []string{`{}`, ``}, Bad: []string{`{"todos":[]}`}},
		{
			Good: []string{`{"todos":[]}`, `{"todos":[{"content":"a","status":"in_progress"},{"id":"7","content":"b"}]}`},
			Bad: []string{
				`{}`, `{"todos":"x"}`, `{"todos":[{}]}`, `{"todos":[{"content":" "}]}`, `{"todos":[{"content":"a","status":"lost"}]}`,
				`{"todos":[{"content":"a","status":"in_progress"},{"content":"b","status":"in_progress"}]}`,
			},
		},
	} {
		name := "todoread"
		if len(f.Bad) > 1 {
			name = "todowrite"
		}
		t.Run(name, func(t *testing.T) {
			tooltest.TestTool(t, func(t *testing.T) tooltest.Fixture {
				f.Tool, _ = open(t).tools.Lookup(name)
				f.Dir = t.TempDir()
				return f
			})
		})
	}
}

func TestTheListIsWrittenAndRead(t *testing.T) {
	d := open(t)
	if _, r, err := d.run(t, "todoread", `{}`); err != nil || r.Summary != "0 items" {
		t.Errorf("at first: %q, %v", r.Summary, err)
	}
	p, r, err := d.run(t, "todowrite", `{"todos":[
		{"content":"look around","status":"done"},
		{"content":"mend it","status":"in_progress","priority":"high"},
		{"content":"test\n it","status":"pending"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	if p.ReadOnly() || len(p.Effects) != 1 || p.Effects[0].Kind != tool.Note || p.Title != "3 items, 1 in progress, 1 completed" || p.Preview == nil {
		t.Errorf("plan %+v", p)
	}
	want := "1:look around:completed; 2:mend it:in_progress:high; 3:test it:pending"
	if got := lay(d.List()); got != want {
		t.Errorf("list %s\nwant %s", got, want)
	}
	b, _ := json.Marshal(r.Value)
	const wire = `{"ok":true,"todos":[{"id":"1","content":"look around","status":"completed"},{"id":"2","content":"mend it","status":"in_progress","priority":"high"},{"id":"3","content":"test it","status":"pending"}]}`
	if string(b) != wire || r.Summary != p.Title {
		t.Errorf("result %s, %s", b, r.Summary)
	}
	if table, ok := r.Show.(display.Table); !ok || len(table.Rows) != 3 || table.Rows[1][0] != display.TextCells("in_progress")[0] || table.Rows[1][1] != display.DataCells("mend it")[0] {
		t.Errorf("shown %v", r.Show)
	}
	p, r, err = d.run(t, "todoread", ``)
	if b2, _ := json.Marshal(r.Value); err != nil || !p.ReadOnly() || string(b2) != wire || r.Events != nil {
		t.Errorf("read %s, %v, %v", b2, p, err)
	}
	if _, r, err := d.run(t, "todowrite", `{"todos":[]}`); err != nil || r.Summary != "0 items" || len(d.List()) != 0 {
		t.Errorf("cleared: %q, %v, %v", r.Summary, d.List(), err)
	}
}

func TestItemsKeepTheirIDs(t *testing.T) {
	d := open(t)
	for _, step := range []struct{ args, want string }{
		{`[{"content":"a"},{"content":"b"},{"content":"c"}]`, "1:a:pending; 2:b:pending; 3:c:pending"},
		{`[{"content":"c"},{"content":"d"},{"content":"a","status":"completed"}]`, "3:c:pending; 4:d:pending; 1:a:completed"},
		{`[{"id":"x","content":"d"},{"id":3,"content":"changed"},{"content":"new"},{"content":"new"}]`, "x:d:pending; 3:changed:pending; 2:new:pending; 5:new:pending"},
	} {
		if _, _, err := d.run(t, "todowrite", `{"todos":`+step.args+`}`); err != nil {
			t.Fatal(err)
		}
		if got := lay(d.List()); got != step.want {
			t.Errorf("%s gives %s\nwant %s", step.args, got, step.want)
		}
	}
}

func TestOtherWaysToWriteAList(t *testing.T) {
	for args, want := range map[string]string{
		`{"todos":["a","b"]}`:                                    "1:a:pending; 2:b:pending",
		`{"items":[{"title":"a","status":"Done"}]}`:              "1:a:completed",
		`{"plan":[{"step":"a","status":"in progress"}]}`:         "1:a:in_progress",
		`{"todos":"[{\"content\":\"a\"}]"}`:                      "1:a:pending",
		`{"todos":[{"content":"a","activeForm":"doing a"}]}`:     "1:a:pending",
		`{"todos":[{"id":null,"content":"a","priority":"LOW"}]}`: "1:a:pending:low",
		`{"todos":[{"description":"a","state":"completed"}]}`:    "1:a:completed",
	} {
		d := open(t)
		if _, _, err := d.run(t, "TodoWrite", args); err != nil {
			t.Errorf("%s: %v", args, err)
		} else if got := lay(d.List()); got != want {
			t.Errorf("%s gives %s, want %s", args, got, want)
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	many := strings.TrimSuffix(strings.Repeat(`"x",`, 101), ",")
	for args, want := range map[string]string{
		`[{"content":"a","status":"in_progress"},{"content":"b","status":"in_progress"}]`: "2 todos are in_progress; only one can be: the one you are working on",
		`[{"content":"a"},{"content":"\n"}]`:                                              "todo 2: content is empty",
		`[{"content":"a","status":"cancelled"}]`:                                          `todo 1: status must be one of pending, in_progress, completed, not "cancelled"`,
		`[{"content":"a","priority":"urgent"}]`:                                           `todo 1: priority must be one of high, medium, low, not "urgent"`,
		`[{"id":"1","content":"a"},{"id":"1","content":"b"}]`:                             `two todos have the id "1"`,
		`[{"content":"` + strings.Repeat("界", 501) + `"}]`:                                "todo 1: content has 501 characters, the limit is 500",
		`[{"content":"a","id":"` + strings.Repeat("x", 65) + `"}]`:                        "todo 1: id has 65 bytes, the limit is 64",
		`[` + many + `]`:             "101 todos are too many, the limit is 100",
		`[{"content":"a","id":[1]}]`: `todowrite: argument "todos" must be an array`,
		`[7]`:                        `todowrite: argument "todos" must be an array`,
	} {
		d := open(t)
		d.Observe(event.Record{Seq: 1, Event: event.TodosChanged{Todos: []event.Todo{{ID: "1", Content: "old", Status: event.TodoPending}}}})
		_, _, err := d.run(t, "todowrite", `{"todos":`+args+`}`)
		if err == nil || strings.TrimPrefix(err.Error(), "todowrite: ") != strings.TrimPrefix(want, "todowrite: ") {
			t.Errorf("%.80s: %v\nwant %s", args, err, want)
		}
		if got := lay(d.List()); got != "1:old:pending" {
			t.Errorf("%.80s changed the list to %s", args, got)
		}
	}
}

func TestMemoryIsNotShared(t *testing.T) {
	var m plan.TodoList
	todos := []event.Todo{{ID: "1", Content: "a", Status: event.TodoPending}}
	m.Observe(event.Record{Event: event.TodosChanged{Todos: todos}})
	todos[0].Content = "changed by who told it"
	m.List()[0].Content = "changed by who asked"
	m.Observe(event.Record{Event: event.LocalAdded{Input: "/todos"}})
	if got := lay(m.List()); got != "1:a:pending" {
		t.Errorf("list %s", got)
	}
}

func FuzzTodoWrite(f *testing.F) {
	for _, s := range []string{`{"todos":["a"]}`, `{"todos":[{"id":1e300,"content":"a"}]}`, `{"todos":[{"content":"\ud800"}]}`, `{"todos":[null,{}]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, args []byte) {
		d := open(t)
		if _, _, err := d.run(t, "todowrite", string(args)); err != nil {
			return
		}
		seen, doing := make(map[string]bool), 0
		for _, todo := range d.List() {
			if todo.ID == "" || seen[todo.ID] || todo.Content == "" || len(todo.Content) > 2000 {
				t.Fatalf("%s gives %s", args, lay(d.List()))
			}
			if seen[todo.ID] = true; todo.Status == event.TodoInProgress {
				doing++
			}
		}
		if doing > 1 || len(seen) > 100 {
			t.Fatalf("%s gives %s", args, lay(d.List()))
		}
	})
}
