package jsonl_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/record/store/jsonl"
	"coder/testkit/eventtest"
)

// typical is a reply of the usual size with one tool call.
func typical() event.Event {
	return event.MessageAdded{Model: "m", StopReason: "stop", Usage: &chat.Usage{In: 12_000, Out: 300}, Message: chat.Message{
		Role: chat.Assistant, Parts: []chat.Part{
			chat.Text(strings.Repeat("Some words of an answer, with a \"quote\" now and then.\n", 15)),
			chat.ToolCall{ID: "call_1", Name: "read", Args: json.RawMessage(`{"path":"internal/store/jsonl/jsonl.go"}`)},
		}}}
}

func BenchmarkAppend(b *testing.B) {
	for name, e := range map[string]event.Event{
		"message":   typical(),
		"requested": event.ToolCallRequested{CallID: "c", Tool: "read", ReadOnly: true, Input: json.RawMessage(`{"path":"a.go"}`)},
	} {
		b.Run(name, func(b *testing.B) {
			s := jsonl.Open(b.TempDir(), jsonl.Options{})
			eventtest.Claim(b, s, "a")
			r := eventtest.Records("a", 0, e)
			b.ReportAllocs()
			last := uint64(0)
			for b.Loop() {
				r[0].Seq = last + 1
				if err := s.Append(b.Context(), last, r...); err != nil {
					b.Fatal(err)
				}
				last++
			}
		})
	}
}

func BenchmarkAppendDecision(b *testing.B) {
	s := jsonl.Open(b.TempDir(), jsonl.Options{})
	eventtest.Claim(b, s, "a")
	last := uint64(0)
	for b.Loop() {
		eventtest.Append(b, s, "a", last, typical(), event.TaskCompleted{TaskID: "t"})
		last += 2
	}
}

func BenchmarkClaimNew(b *testing.B) {
	s := jsonl.Open(b.TempDir(), jsonl.Options{})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		release, err := s.Claim(b.Context(), fmt.Sprintf("s%d", i))
		if err != nil {
			b.Fatal(err)
		}
		release()
	}
}

// A long session: 100,000 records, about 100 MB.
func BenchmarkLongSession(b *testing.B) {
	dir := b.TempDir()
	s := jsonl.Open(dir, jsonl.Options{Fsync: jsonl.FsyncNever})
	release := eventtest.Claim(b, s, "a")
	const batch = 100
	events := make([]event.Event, batch)
	for i := range events {
		events[i] = typical()
		if i%4 == 0 {
			events[i] = event.ToolCallRequested{CallID: "c", Tool: "read", ReadOnly: true, Input: json.RawMessage(`{"path":"a.go"}`)}
		}
	}
	for i := range uint64(1000) {
		eventtest.Append(b, s, "a", i*batch, events...)
	}
	release()
	b.Run("claim", func(b *testing.B) {
		for b.Loop() {
			eventtest.Claim(b, s, "a")()
		}
	})
	for name, logs := range map[string][]event.Log{"all": nil, "audit": {event.LogAudit}} {
		b.Run("read "+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, err := range s.Read(b.Context(), "a", 0, logs...) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
