package events_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/ui/events"
	"coder/testkit/rendertest"
)

var views = []events.View{events.Native, events.Sema, events.CoAuthor}

// lineWriter checks that each Write is one whole line of JSON.
type lineWriter struct {
	t *testing.T
	bytes.Buffer
}

func (w *lineWriter) Write(p []byte) (int, error) {
	if !bytes.HasSuffix(p, []byte("\n")) || bytes.Count(p, []byte("\n")) != 1 || !json.Valid(p) {
		w.t.Errorf("not one line of JSON: %q", p)
	}
	return w.Buffer.Write(p)
}

func render(t *testing.T, view events.View, rs []event.Record) []byte {
	t.Helper()
	w := &lineWriter{t: t}
	rendertest.Play(t, events.New(w, view), rs)
	return w.Bytes()
}

func TestGolden(t *testing.T) {
	for _, v := range views {
		t.Run(string(v), func(t *testing.T) {
			rendertest.Golden(t, string(v), render(t, v, rendertest.Story()))
		})
	}
}

// What the logs alone can tell, as when an old session is replayed.
func TestGoldenOfTheLogs(t *testing.T) {
	for _, v := range views {
		t.Run(string(v), func(t *testing.T) {
			rendertest.Golden(t, string(v)+"-logs", render(t, v, rendertest.Durable(rendertest.Story())))
		})
	}
}

func TestNativeKeepsRecordsAsTheLogHasThem(t *testing.T) {
	story := rendertest.Story()
	lines := bytes.Split(bytes.TrimSpace(render(t, events.Native, story)), []byte("\n"))
	if len(lines) != len(story) {
		t.Fatalf("%d lines for %d records", len(lines), len(story))
	}
	for i, r := range story {
		log := event.LogOf(r.Event)
		got, _, err := event.Decode(lines[i], log)
		if log == event.LogNone {
			if err == nil {
				t.Errorf("a transient event reads as a record: %s", lines[i])
			}
			continue
		}
		if err != nil || got.Seq != r.Seq || got.Task != r.Task || got.Session != r.Session {
			t.Errorf("line %d gives %+v, %v", i+1, got, err)
		}
		want, err := event.Encode(r)
		if err != nil || !bytes.Equal(lines[i], want) {
			t.Errorf("line %d:\n got %s\nwant %s", i+1, lines[i], want)
		}
	}
}

func TestUnknownRecordsPassThrough(t *testing.T) {
	odd := event.Record{Seq: 7, Session: "s", Task: "t", Event: event.Unknown{
		Log: event.LogDomain, Type: "TaskPaused", Version: 3, Payload: json.RawMessage(`{"taskId":"t"}`),
	}}
	for view, want := range map[events.View]string{
		events.Native:   `"type":"TaskPaused","v":3`,
		events.CoAuthor: `"type":"TaskPaused","payload":{"taskId":"t"}`,
		events.Sema:     "",
	} {
		if got := string(render(t, view, []event.Record{odd})); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%v: %s", view, got)
		}
	}
}

func TestParseView(t *testing.T) {
	for _, v := range views {
		if got, err := events.ParseView(string(v)); got != v || err != nil {
			t.Errorf("ParseView(%q) = %v, %v", v, got, err)
		}
	}
	if _, err := events.ParseView("xml"); err == nil {
		t.Error("ParseView takes xml")
	}
}

// Whatever the pieces, each chunk is valid JSON, tells all so far, and the
// deltas add up to it.
func FuzzChunks(f *testing.F) {
	f.Add("a \"b\"", "\\\n\u2028<&>", "世界\x00")
	f.Add("", "\xff", "\xc3")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		var out bytes.Buffer
		r := events.New(&out, events.Sema)
		for _, s := range []string{a, b, c} {
			rendertest.Play(t, r, []event.Record{{Event: event.TextDelta{Text: s}}})
		}
		sum := ""
		for _, e := range decodeSema(t, out.Bytes()) {
			sum += e.Data.Delta
			if e.Data.Content != sum {
				t.Fatalf("content %q after deltas %q", e.Data.Content, sum)
			}
		}
		want := strings.ToValidUTF8(a, "�") + strings.ToValidUTF8(b, "�") + strings.ToValidUTF8(c, "�")
		if squeeze(sum) != squeeze(want) {
			t.Fatalf("told %q, said %q", sum, want)
		}
	})
}

// squeeze makes one mark of several: how many stand for a run of broken bytes
// is up to the encoder.
func squeeze(s string) string {
	for strings.Contains(s, "��") {
		s = strings.ReplaceAll(s, "��", "�")
	}
	return s
}

type badWriter struct{ after int }

var errFull = errors.New("disk full")

func (w *badWriter) Write(p []byte) (int, error) {
	if w.after--; w.after < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// A line that cannot be written is an error of the very record it belongs to.
func TestWriteErrors(t *testing.T) {
	for _, v := range views {
		for after := range 10 {
			r := events.New(&badWriter{after}, v)
			var err error
			for _, rec := range rendertest.Story() {
				if err = r.Emit(context.Background(), rec); err != nil {
					break
				}
			}
			if !errors.Is(err, errFull) {
				t.Errorf("%v: after %d lines the error is %v", v, after, err)
			}
		}
	}
}

func TestFlush(t *testing.T) {
	for _, v := range views {
		var out bytes.Buffer
		w := bufio.NewWriterSize(&out, 1<<20)
		rendertest.Play(t, events.New(w, v), []event.Record{{Event: event.TextDelta{Text: "now"}}})
		if !strings.Contains(out.String(), "now") {
			t.Errorf("%v: the line waits in a buffer", v)
		}
	}
}

func TestConcurrentEmit(t *testing.T) {
	for _, v := range views {
		w := &lineWriter{t: t}
		r := events.New(w, v)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { rendertest.Play(t, r, rendertest.Story()) })
		}
		wg.Wait()
	}
}

// The page that documents the lines names every type there is.
func TestDocumented(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "events.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range views {
		for line := range bytes.Lines(render(t, v, rendertest.Story())) {
			var l struct{ Type, Event string }
			if err := json.Unmarshal(line, &l); err != nil {
				t.Fatal(err)
			}
			if name := l.Type + l.Event; !bytes.Contains(doc, []byte("`"+name+"`")) && name != "" {
				t.Errorf("docs/reference/events.md does not name `%s` of the %v view", name, v)
			}
		}
	}
}

func BenchmarkDeltas(b *testing.B) {
	deltas := rendertest.Deltas(20000, "word, ")
	for _, v := range views {
		b.Run(string(v), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				rendertest.Play(b, events.New(io.Discard, v), deltas)
			}
		})
	}
}

func say(role chat.Role, text string) event.MessageAdded {
	return event.MessageAdded{Message: chat.TextMessage(role, text)}
}

// pieces collects what is written and the longest Write.
type pieces struct {
	bytes.Buffer
	longest int
}

func (p *pieces) Write(b []byte) (int, error) {
	p.longest = max(p.longest, len(b))
	return p.Buffer.Write(b)
}

func TestALargeReplyIsWrittenInPieces(t *testing.T) {
	const piece, n = 100 << 10, 20
	text := strings.Repeat("déjà \"vu\" ", piece/12)
	rs := []event.Record{{Seq: 1, Session: "s", Task: "t", Event: event.TaskStarted{TaskID: "t"}}}
	for range n {
		rs = append(rs, event.Record{Session: "s", Task: "t", Event: event.TextDelta{Text: text}})
	}
	all := strings.Repeat(text, n)
	reply := chat.Message{Role: chat.Assistant, Parts: []chat.Part{chat.Reasoning{Text: all}, chat.Text(all)}}
	rs = append(rs, event.Record{Seq: 2, Session: "s", Task: "t", Event: event.MessageAdded{Message: reply}},
		event.Record{Seq: 3, Session: "s", Task: "t", Event: event.TaskCompleted{TaskID: "t"}})
	for _, v := range views {
		t.Run(string(v), func(t *testing.T) {
			var w pieces
			rendertest.Play(t, events.New(&w, v), rs)
			if w.longest > 3*piece {
				t.Errorf("a Write of %d bytes", w.longest)
			}
			if !jsonHas(t, w.Bytes(), all) {
				t.Error("no line has the whole text")
			}
		})
	}
}

// jsonHas checks that each line is an object, and reports whether one of them has a string equal to text.
func jsonHas(t *testing.T, lines []byte, text string) (has bool) {
	t.Helper()
	var look func(v any)
	look = func(v any) {
		switch v := v.(type) {
		case string:
			has = has || v == text
		case []any:
			for _, v := range v {
				look(v)
			}
		case map[string]any:
			for _, v := range v {
				look(v)
			}
		}
	}
	for line := range bytes.Lines(lines) {
		var v map[string]any
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatalf("%v in %.80q", err, line)
		}
		look(v)
	}
	return has
}
