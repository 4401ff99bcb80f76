package session_test

import (
	"encoding/json"
	"slices"
	"testing"

	"coder/internal/record/session"
	"coder/testkit/sessiontest"
)

// What a server of the OpenAI form needs stands at the top, beside what is
// ours alone.
func TestSnapshotForm(t *testing.T) {
	b, err := json.Marshal(sessiontest.Sample("a"))
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(b, &keys); err != nil {
		t.Fatal(err)
	}
	want := []string{"session_id", "created_at", "updated_at", "meta", "model", "tools", "messages", "message_notes", "local", "at_seq"}
	for k := range keys {
		if !slices.Contains(want, k) {
			t.Errorf("unexpected key %s", k)
		}
	}
	for _, k := range want {
		if keys[k] == nil {
			t.Errorf("no key %s in %s", k, b)
		}
	}
	var replay struct {
		Model           string
		Tools, Messages []json.RawMessage
	}
	if err := json.Unmarshal(b, &replay); err != nil || replay.Model != "m" || len(replay.Tools) != 1 || len(replay.Messages) != 2 {
		t.Errorf("a request made of it: %+v, %v", replay, err)
	}
	var back session.Snapshot
	if err := json.Unmarshal(b, &back); err != nil || back.ID != "a" || back.Meta.Dir != "/w" {
		t.Errorf("came back as %+v, %v", back, err)
	}
}
