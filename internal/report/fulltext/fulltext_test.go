package fulltext_test

import (
	"encoding/json"
	"iter"
	"strings"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/report/fulltext"
)

func read(events ...event.Event) iter.Seq2[event.Record, error] {
	return func(yield func(event.Record, error) bool) {
		for i, e := range events {
			r := event.Record{Seq: uint64(i + 1), Event: e}
			if m, ok := e.(event.MessageAdded); ok && m.Message.Role == chat.User {
				r.Actor = event.ActorUser
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

func said(role chat.Role, text string) event.MessageAdded {
	return event.MessageAdded{Message: chat.Message{Role: role, Parts: []chat.Part{chat.Text(text)}}}
}

func session() iter.Seq2[event.Record, error] {
	return read(
		event.TaskCreated{TaskID: "t", Title: "Parser work"},
		said(chat.User, "make the Parser faster\nand keep its tests"),
		said(chat.Assistant, "I look at the lexer first"),
		event.ToolCallRequested{CallID: "c", Tool: "bash", Input: json.RawMessage(`{"command":"go test ./lexer"}`)},
		event.ToolCallCompleted{CallID: "c", Output: json.RawMessage(`{"diff":"@@ -1 +1 @@\n-slow()\n+fast()\n context()\n"}`), Changes: []event.FileChange{{After: event.FileState{Path: "lexer/scan.go"}}}},
		said(chat.Tool, "hidden result"),
	)
}

func TestWordsAreFound(t *testing.T) {
	made := fulltext.Build("stamp", session())
	doc, ok := fulltext.Decode(made.Encode())
	if !ok || doc.Stamp != "stamp" || doc.Title != "Parser work" {
		t.Fatalf("%+v, %v", doc.Head, ok)
	}
	for words, want := range map[string]fulltext.Hit{
		"PARSER faster": {Record: 2, Kind: fulltext.Prompt, Line: "make the Parser faster"},
		"keep tests":    {Record: 2, Kind: fulltext.Prompt, Line: "and keep its tests"},
		"lexer first":   {Record: 3, Kind: fulltext.Answer, Line: "I look at the lexer first"},
		"go test":       {Record: 4, Kind: fulltext.Command, Line: "go test ./lexer"},
		"scan.go":       {Record: 5, Kind: fulltext.Path, Line: "lexer/scan.go"},
		"fast()":        {Record: 5, Kind: fulltext.Patch, Line: "+fast()"},
		"work fast()":   {Record: 5, Kind: fulltext.Patch, Line: "+fast()"}, // one is in the title
	} {
		if got, ok := doc.Find(strings.Fields(words)); !ok || got != want {
			t.Errorf("%s: %+v, %v, want %+v", words, got, ok, want)
		}
	}
	for _, words := range []string{"parser nowhere", "context()", "hidden"} {
		if got, ok := doc.Find(strings.Fields(words)); ok {
			t.Errorf("%s: found %+v", words, got)
		}
	}
}

func TestADamagedDocumentIsNone(t *testing.T) {
	text := fulltext.Build("stamp", session()).Encode()
	for i := range text {
		for _, broken := range [][]byte{text[:i], append(append(append([]byte{}, text[:i]...), text[i]^1), text[i+1:]...)} {
			if doc, ok := fulltext.Decode(broken); ok && doc.Stamp == "stamp" && doc.Title == "Parser work" {
				if _, ok := doc.Find([]string{"parser"}); !ok {
					t.Fatalf("byte %d: it is another one", i)
				}
			}
		}
	}
	if _, ok := fulltext.Decode(text[:len(text)-1]); ok {
		t.Error("a document that was cut short is read")
	}
}

func TestADocumentIsBounded(t *testing.T) {
	long := said(chat.User, strings.Repeat(strings.Repeat("x", 1000)+"\n", 10_000))
	if n := len(fulltext.Build("", read(long)).Encode()); n > 3*fulltext.MaxText {
		t.Errorf("%d bytes", n)
	}
}

// Models write paragraphs on one line.
func TestWordsAreFoundAnywhereInALongLine(t *testing.T) {
	for _, filler := range []string{"word ", "长句没有空格", "x"} {
		for before := range 90 {
			text := strings.Repeat(filler, 60+before) + "needle针在此" + strings.Repeat(filler, 200)
			doc := fulltext.Build("", read(said(chat.Assistant, text)))
			if hit, ok := doc.Find([]string{"needle针在此"}); !ok || !strings.Contains(hit.Line, "needle针在此") {
				t.Fatalf("after %d times %q: %v %q", 60+before, filler, ok, hit.Line)
			}
		}
	}
}

func TestMark(t *testing.T) {
	for _, tc := range []struct{ line, words, want string }{
		{"the Parser is slow", "parser slow", "the [Parser] is [slow]"},
		{"aaa", "a aa", "[aaa]"},
		{"nothing", "other", "nothing"},
	} {
		if got := fulltext.Highlight(tc.line, strings.Fields(tc.words), "[", "]"); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
}

func TestQuotesHoldWordsTogether(t *testing.T) {
	doc := fulltext.Build("s", session())
	for line, want := range map[string]bool{
		`"parser faster"`: true, `"faster parser"`: false, `faster parser`: true, `“the parser” tests`: true, `"go test" "fast()"`: true,
		`"the lexer`: true, `""  lexer`: true, `"first lexer"`: false,
	} {
		if _, got := doc.Find(fulltext.SplitQuery(line)); got != want {
			t.Errorf("%s: %v in %q", line, got, fulltext.SplitQuery(line))
		}
	}
}
