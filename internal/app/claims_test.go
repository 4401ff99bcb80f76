package app

import (
	"encoding/json"
	"testing"
	"time"

	"coder/internal/core/event"
	"coder/internal/record/store/jsonl"
	"coder/internal/record/undo"
)

// A claim of another session reaches from the request of a call to its completion, and
// is open as long as that is missing.
func TestClaimsAreSpans(t *testing.T) {
	env, o := Env{Environ: []string{"HOME=" + t.TempDir()}, Dir: t.TempDir(), Now: time.Now}, Options{}
	settings, err := Load(env, o)
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(env, o, settings, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	store := a.Store()
	at := func(second int64) time.Time { return time.Unix(1e9+second, 0) }
	logs := jsonl.Open(store.Path("log"), jsonl.Options{})
	release, err := logs.Claim(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	last := uint64(0)
	log := func(e event.Event) {
		t.Helper()
		if err := logs.Append(t.Context(), last, event.Record{Seq: last + 1, Time: time.Now(), Session: "other", Actor: "main", Event: e}); err != nil {
			t.Fatal(err)
		}
		last++
	}
	call := func(id, file string, from, to int64, doubt event.Doubt) {
		t.Helper()
		before := event.FileState{Path: file}
		log(event.ToolCallRequested{CallID: id, Tool: "write", Input: json.RawMessage("{}"), Timestamp: at(from).UnixMilli(), Before: []event.FileState{before}})
		if to == 0 {
			return
		}
		log(event.ToolCallCompleted{
			CallID: id, Tool: "write", Output: json.RawMessage("{}"), Timestamp: at(to).UnixMilli(),
			Changes: []event.FileChange{{Before: before, After: event.FileState{Path: file, Hash: "h"}, Doubt: doubt}},
		})
	}
	call("1", "before", 1, 9, "")
	call("2", "across", 9, 30, "")
	call("3", "inside", 12, 13, event.DoubtOther)
	call("4", "open", 15, 0, "")
	call("5", "after", 21, 22, "")
	if err := release(); err != nil {
		t.Fatal(err)
	}
	list, err := store.otherClaims(t.Context(), "s1", at(10), at(20))
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]undo.Claim)
	for _, c := range list {
		got[c.Path] = c
	}
	if len(list) != 3 || !got["across"].From.Equal(at(9)) || !got["across"].To.Equal(at(30)) || got["inside"].Doubt != event.DoubtOther || !got["open"].To.IsZero() || got["open"].Session != "other" {
		t.Errorf("%+v", list)
	}
}
