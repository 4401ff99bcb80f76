package provenance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/host/patch"
	"coder/internal/host/workspace"
	"coder/internal/record/undo"
	"coder/internal/report/provenance"
	"coder/internal/tool"
)

// modelLine is a line of the model: what it says, and who wrote it.
type modelLine struct{ text, by string }

// world is a workspace in which sessions and people change a file, and a model
// that knows of every line who wrote it.
type world struct {
	t       *testing.T
	random  *rand.Rand
	dir     string
	ws      *workspace.Workspace
	keeper  *undo.Keeper
	records map[string][]event.Record
	clock   time.Time
	name    string
	lines   []modelLine
	other   []modelLine // of another file
	serial  int
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	dir := t.TempDir()
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	store := undo.OpenStore(filepath.Join(t.TempDir(), "undo"), undo.StoreOptions{NoSync: true})
	t.Cleanup(func() { store.Close(); ws.Close() })
	return &world{
		t: t, random: rand.New(rand.NewPCG(seed, 1)), dir: dir, ws: ws, keeper: undo.New(ws, store, undo.Options{Now: time.Now}),
		records: make(map[string][]event.Record), clock: time.Unix(1_700_000_000, 0), name: "f.txt",
	}
}

func (w *world) put(session string, e event.Event) uint64 {
	w.clock = w.clock.Add(time.Second)
	seq := uint64(len(w.records[session]) + 1)
	w.records[session] = append(w.records[session], event.Record{Seq: seq, Time: w.clock, Session: session, Event: e})
	return seq
}

// change puts new lines of an author among those there are, in a few places,
// and takes others away.
func (w *world) change(by string) {
	for range 1 + w.random.IntN(3) {
		at := w.random.IntN(len(w.lines) + 1)
		gone := min(w.random.IntN(4), len(w.lines)-at)
		var more []modelLine
		for range w.random.IntN(5) {
			w.serial++
			more = append(more, modelLine{fmt.Sprintf("line %d of %s\n", w.serial, by), by})
		}
		w.lines = slices.Concat(w.lines[:at:at], more, w.lines[at+gone:])
	}
	for range w.random.IntN(3) { // a block goes elsewhere; whose it is stays
		from := w.random.IntN(len(w.lines) + 1)
		block := slices.Clone(w.lines[from:min(from+w.random.IntN(6), len(w.lines))])
		w.lines = slices.Delete(w.lines, from, from+len(block))
		w.lines = slices.Insert(w.lines, w.random.IntN(len(w.lines)+1), block...)
	}
	for i := w.random.IntN(len(w.lines) + 1); i < len(w.lines) && w.random.IntN(4) > 0; i++ { // moved in or out; whose they are stays
		w.lines[i].text = strings.Repeat("\t", w.random.IntN(3)) + strings.TrimSpace(w.lines[i].text) + "\n"
	}
}

func (w *world) text() string { return textOf(w.lines) }

func textOf(lines []modelLine) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.text)
	}
	return b.String()
}

func (w *world) write() {
	w.t.Helper()
	for name, lines := range map[string][]modelLine{w.name: w.lines, otherName: w.other} {
		if err := os.WriteFile(filepath.Join(w.dir, name), []byte(textOf(lines)), 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
}

const otherName = "other.md"

// carry has a command take a block out of one file and put it into the other, and
// change the first besides.
func (w *world) carry(session string) {
	w.call(session, "bash", func(by string) json.RawMessage {
		from, to := &w.lines, &w.other
		if w.random.IntN(3) == 0 {
			from, to = to, from
		}
		at := w.random.IntN(len(*from) + 1)
		block := slices.Clone((*from)[at:min(at+w.random.IntN(6), len(*from))])
		*from = slices.Delete(*from, at, at+len(block))
		*to = slices.Insert(*to, w.random.IntN(len(*to)+1), block...)
		w.change(by)
		w.write()
		return json.RawMessage(`{"exit_code":0}`)
	}, tool.Effect{Kind: tool.Exec, Target: "make"})
}

// call has a session do something that effects plan; do returns what it says.
func (w *world) call(session, name string, do func(by string) json.RawMessage, effects ...tool.Effect) {
	w.t.Helper()
	ctx := context.Background()
	kept, err := w.keeper.SaveOriginals(ctx, effects)
	if err != nil {
		w.t.Fatal(err)
	}
	seq := w.put(session, event.ToolCallRequested{CallID: "call", Tool: name, Author: "main", Input: json.RawMessage("{}"), Before: kept.Before, Tree: kept.Tree})
	output := do(fmt.Sprintf("%s:%d", session, seq))
	changes, err := w.keeper.ChangesSince(ctx, kept)
	if err != nil {
		w.t.Fatal(err)
	}
	w.put(session, event.ToolCallCompleted{CallID: "call", Tool: name, Author: "main", Output: output, Changes: changes})
}

func (w *world) edit(session string) {
	w.call(session, "edit", func(by string) json.RawMessage {
		old := w.text()
		w.change(by)
		w.write()
		diff, _, _ := patch.Unified(w.name, []byte(old), []byte(w.text()))
		out, _ := json.Marshal(map[string]string{"diff": diff})
		return out
	}, tool.Effect{Kind: tool.Write, Target: w.name})
}

func (w *world) command(session string) {
	w.call(session, "bash", func(by string) json.RawMessage {
		w.change(by)
		w.write()
		return json.RawMessage(`{"exit_code":0}`)
	}, tool.Effect{Kind: tool.Exec, Target: "make"})
}

func (w *world) rename(session string) {
	w.call(session, "bash", func(string) json.RawMessage {
		w.serial++
		next := fmt.Sprintf("f%d.txt", w.serial)
		if err := os.Rename(filepath.Join(w.dir, w.name), filepath.Join(w.dir, next)); err != nil {
			w.t.Fatal(err)
		}
		w.name = next
		return json.RawMessage(`{"exit_code":0}`)
	}, tool.Effect{Kind: tool.Exec, Target: "mv"})
}

// move gives the file another name, and another line now and then, by hand.
func (w *world) move() {
	w.serial++
	next := fmt.Sprintf("moved%d.txt", w.serial)
	if err := os.Rename(filepath.Join(w.dir, w.name), filepath.Join(w.dir, next)); err != nil {
		w.t.Fatal(err)
	}
	if w.name = next; w.random.IntN(2) == 0 {
		w.serial++
		w.lines = append(w.lines, modelLine{fmt.Sprintf("line %d of person\n", w.serial), "person"})
		w.write()
	}
}

func (w *world) person() {
	w.change("person")
	w.write()
}

func read(records []event.Record) iter.Seq2[event.Record, error] {
	return func(yield func(event.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// trace is what is said of every line.
func (w *world) trace() []modelLine { return w.traceFile(w.name, w.text()) }

func (w *world) traceFile(file, text string) []modelLine {
	w.t.Helper()
	changes := func(string) (all []*provenance.Change) {
		for _, records := range w.records {
			list, err := provenance.CollectChanges(read(records))
			if err != nil {
				w.t.Fatal(err)
			}
			all = append(all, list...)
		}
		provenance.SortByTime(all)
		return all
	}
	lines, _, err := provenance.Trace(context.Background(), file, []byte(text), 0, changes(file), w.keeper, func(name string) bool {
		_, err := os.Lstat(filepath.Join(w.dir, name))
		return err != nil
	}, changes)
	if err != nil {
		w.t.Fatal(err)
	}
	var got []modelLine
	for _, l := range lines {
		by := "base"
		switch {
		case l.Uncertain:
			by = "unsure"
		case l.External:
			by = "person"
		case l.Change != nil:
			by = fmt.Sprintf("%s:%d", l.Change.Session, l.Change.Seq)
		}
		got = append(got, modelLine{l.Text, by})
	}
	return got
}

// Fifty edits by agents of three sessions and by people, at random: of every
// line it is said who wrote it.
func TestEveryLineHasItsOrigin(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, seed)
			for range 20 {
				w.serial++
				w.lines = append(w.lines, modelLine{fmt.Sprintf("line %d of base\n", w.serial), "base"})
			}
			w.write()
			w.edit("s0")
			for step := range 50 {
				session := fmt.Sprintf("s%d", w.random.IntN(3))
				what := ""
				switch n := w.random.IntN(12); {
				case n < 4:
					what = "edit"
					w.edit(session)
				case n < 6:
					what = "command"
					w.command(session)
				case n < 7:
					what = "rename"
					w.rename(session)
				case n < 8:
					what = "rename by a person"
					w.move()
				case n < 10:
					what = "from file to file"
					w.carry(session)
				default:
					what = "person"
					w.person()
				}
				got := slices.Concat(w.trace(), w.traceFile(otherName, textOf(w.other)))
				if want := slices.Concat(w.lines, w.other); !slices.Equal(got, want) {
					for i := range min(len(got), len(want)) {
						if got[i] != want[i] {
							t.Fatalf("after step %d (%s): line %d of both files is %q, want %q", step, what, i+1, got[i], want[i])
						}
					}
					t.Fatalf("after step %d: %d lines, want %d", step, len(got), len(want))
				}
			}
		})
	}
}

// What a call left behind is known by its own words if it was not saved; where
// these do not have the hash on record nobody is blamed for sure.
func TestAnOutcomeThatWasNotKept(t *testing.T) {
	for name, tc := range map[string]struct{ output, want string }{
		"told":     {"", "s:1"},
		"masked":   {`{"diff":"--- a/f.txt\n+++ b/f.txt\n@@ -1 +1,2 @@\n base\n+[masked]\n"}`, "unsure"},
		"not told": {`{}`, "unsure"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.lines = []modelLine{{"base\n", "base"}}
			w.write()
			w.call("s", "edit", func(by string) json.RawMessage {
				old := w.text()
				w.lines = append(w.lines, modelLine{"secret\n", tc.want})
				w.write()
				diff, _, _ := patch.Unified(w.name, []byte(old), []byte(w.text()))
				out, _ := json.Marshal(map[string]string{"diff": diff})
				if tc.output != "" {
					out = json.RawMessage(tc.output)
				}
				return out
			}, tool.Effect{Kind: tool.Write, Target: w.name})
			w.lines = append(w.lines, modelLine{"mine\n", "person"})
			if tc.want == "unsure" { // it may as well be the call's
				w.lines[2].by = "unsure"
			}
			w.write()
			if got := w.trace(); !slices.Equal(got, w.lines) {
				t.Errorf("got %q, want %q", got, w.lines)
			}
		})
	}
}

// What stands behind a change: the prompt of its turn also where another agent
// did the work, the message, the answer to the question, and the first check
// that was begun when it was done.
func TestStories(t *testing.T) {
	w := newWorld(t, 1)
	say := func(task, actor string, m chat.Message) {
		seq := w.put("s", event.MessageAdded{Message: m, Model: "m"})
		w.records["s"][seq-1].Task, w.records["s"][seq-1].Actor = task, actor
	}
	run := func(task, id, command string, exit int) uint64 {
		in, _ := json.Marshal(map[string]string{"command": command})
		seq := w.put("s", event.ToolCallRequested{CallID: id, Tool: "bash", TaskID: task, Input: in, Verdict: event.VerdictAllowed, DecidedBy: "user", Reasons: []string{"rule: x"}})
		w.put("s", event.ToolCallCompleted{CallID: id, Output: fmt.Appendf(nil, `{"exit_code":%d}`, exit), Changes: []event.FileChange{{After: event.FileState{Path: "f", Hash: "1"}}}})
		return seq
	}
	w.put("s", event.TaskCreated{TaskID: "t1"})
	say("t1", event.ActorUser, chat.Message{Role: chat.User, Parts: []chat.Part{chat.Text("do it")}})
	w.put("s", event.TaskCreated{TaskID: "t2", ParentID: "t1"})
	say("t2", "main", chat.Message{Role: chat.User, Parts: []chat.Part{chat.Text("a part of it")}})
	say("t2", "helper", chat.Message{Role: chat.Assistant, Parts: []chat.Part{chat.Text("I make it"), chat.ToolCall{ID: "c", Name: "bash", Args: []byte("{}")}}})
	w.put("s", event.InteractionRequested{Request: uip.Request{ID: "q", Parts: []uip.Request{uip.Request{ID: "q.1"}.BindToCall("other"), uip.Request{ID: "q.2"}.BindToCall("c")}}})
	w.put("s", event.InteractionResponded{Response: uip.Response{ID: "q", Option: uip.OptionApprove}})
	first := run("t2", "c", "make", 0)
	second := run("t2", "c", "check one", 1)
	run("t2", "c", "check two", 0)
	changes, err := provenance.CollectChanges(read(w.records["s"]))
	if err != nil {
		t.Fatal(err)
	}
	stories, err := provenance.Explain(read(w.records["s"]), changes, func(line string) bool { return strings.HasPrefix(line, "check") })
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		s := stories[c]
		switch c.Seq {
		case first:
			if s.Prompt.Text != "do it" || s.Message.Text != "I make it" || s.Answer == nil || s.Answer.ID != "q.2" || s.Check == nil || s.Check.Exit != 1 || s.Check.Command != "check one" {
				t.Errorf("%+v, answer %+v, check %+v", s, s.Answer, s.Check)
			}
		case second:
			if s.Answer != nil || s.Check == nil || s.Check.Command != "check two" {
				t.Errorf("%+v, answer %+v, check %+v", s, s.Answer, s.Check)
			}
		}
	}
}

// A line that was moved keeps its author if it can be known again; what stands in
// many a place cannot, nor is a copy a move.
func TestWhatIsKnownAgainWhereItWasMoved(t *testing.T) {
	const call, person, base = "s:1", "person", "base"
	for name, tc := range map[string]struct{ wrote, now []modelLine }{
		"a block": {
			[]modelLine{{"def f():\n", call}, {"    return 11\n", call}},
			[]modelLine{{"one\n", base}, {"two\n", base}, {"three\n", base}, {"def f():\n", call}, {"    return 11\n", call}},
		},
		"a block that is indented elsewhere": {
			[]modelLine{{"if a {\n", call}, {"}\n", call}},
			[]modelLine{{"one\n", base}, {"two\n", base}, {"three\n", base}, {"\tif a {\n", call}, {"\t}\n", call}},
		},
		"one line that says enough": {
			[]modelLine{{"limit = 4096\n", call}},
			[]modelLine{{"one\n", base}, {"two\n", base}, {"three\n", base}, {"limit = 4096\n", call}},
		},
		"a brace": {
			[]modelLine{{"}\n", call}},
			[]modelLine{{"one\n", base}, {"two\n", base}, {"three\n", base}, {"}\n", person}},
		},
		"a word of the language": {
			[]modelLine{{"else:\n", call}},
			[]modelLine{{"one\n", base}, {"two\n", base}, {"three\n", base}, {"else:\n", person}},
		},
		"blanks and braces": {
			[]modelLine{{"}\n", call}, {"\n", call}},
			[]modelLine{{"one\n", base}, {"two\n", base}, {"three\n", base}, {"}\n", person}, {"\n", person}},
		},
		"one line in two places": {
			[]modelLine{{"limit = 4096\n", call}},
			[]modelLine{{"one\n", base}, {"limit = 4096\n", person}, {"two\n", base}, {"limit = 4096\n", person}, {"three\n", base}},
		},
		"a copy": {
			[]modelLine{{"def f():\n", call}, {"    return 11\n", call}},
			[]modelLine{{"def f():\n", call}, {"    return 11\n", call}, {"one\n", base}, {"two\n", base}, {"three\n", base}, {"def f():\n", person}, {"    return 11\n", person}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.lines = []modelLine{{"one\n", base}, {"two\n", base}, {"three\n", base}}
			w.write()
			w.call("s", "bash", func(string) json.RawMessage {
				w.lines = slices.Concat(tc.wrote, w.lines)
				w.write()
				return json.RawMessage(`{"exit_code":0}`)
			}, tool.Effect{Kind: tool.Exec, Target: "make"})
			w.lines = tc.now
			w.write()
			if got := w.trace(); !slices.Equal(got, w.lines) {
				t.Errorf("got %q, want %q", got, w.lines)
			}
		})
	}
}

// A log is read by several goroutines, so its lines are seen in any order.
func TestASurveyTakesLinesInAnyOrder(t *testing.T) {
	var lines [][]byte
	for i := range 200 {
		lines = append(lines,
			fmt.Appendf(nil, `{"seq":%d,"type":"ToolCallCompleted","payload":{"toolCallId":"c%d","changes":[{"after":{"path":"f%d"}}]}}`, 2*i+2, i, i),
			fmt.Appendf(nil, `{"seq":%d,"type":"ToolCallRequested","payload":{"toolCallId":"c%d"}}`, 2*i+1, i))
	}
	open := []byte(`{"seq":1000,"type":"ToolCallRequested","payload":{"toolCallId":"open"}}`)
	var s provenance.LogScan
	var wg sync.WaitGroup
	for part := range slices.Chunk(append(lines, open), 50) {
		wg.Go(func() {
			for _, line := range part {
				s.AddLine(line)
			}
		})
	}
	wg.Wait()
	wants := s.PendingFilter()
	if len(s.Files) != 200 || wants == nil || !wants(open) || slices.ContainsFunc(lines, wants) {
		t.Errorf("%d files; the open call is wanted: %t", len(s.Files), wants != nil && wants(open))
	}
}
