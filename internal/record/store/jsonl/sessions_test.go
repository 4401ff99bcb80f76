package jsonl_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"coder/internal/record/session"
	"coder/internal/record/store/jsonl"
	"coder/testkit/sessiontest"
)

func TestSnapshotIsOneObjectWithALinePerMessage(t *testing.T) {
	dir := t.TempDir()
	want := sessiontest.Sample("a")
	if err := jsonl.OpenSessions(dir, jsonl.FsyncDecisions).Save(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "a.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range want.Messages {
		if !bytes.Contains(b, append([]byte("\n"), m...)) {
			t.Errorf("message %s has no line of its own in\n%s", m, b)
		}
	}
	var keys []string
	for _, line := range strings.Split(string(b), "\n") {
		if key, _, ok := strings.Cut(line, `": `); ok && line[0] == '"' {
			keys = append(keys, key[1:])
		}
	}
	order := "session_id created_at updated_at meta model at_seq tools local message_notes messages check"
	if got := strings.Join(keys, " "); got != order {
		t.Errorf("keys are %s, want %s", got, order)
	}
	if !json.Valid(b) {
		t.Errorf("not JSON:\n%s", b)
	}
	if got := names(t, dir); got != "a.json" {
		t.Errorf("saving left %s", got)
	}
}

func TestListReadsHeadsOnly(t *testing.T) {
	dir := t.TempDir()
	head := `{"session_id":"a","created_at":"2025-01-01T00:00:00Z","updated_at":"2025-01-02T00:00:00Z","meta":{"title":"long"},`
	pendingWrite(t, filepath.Join(dir, "a.json"), head+`"messages": [ and here it breaks`)
	for h, err := range jsonl.OpenSessions(dir, jsonl.FsyncDecisions).List(t.Context()) {
		if err != nil || h.ID != "a" || h.Meta.Title != "long" {
			t.Errorf("listed %+v, %v", h, err)
		}
	}
}

func TestListGoesOnAfterABrokenSnapshot(t *testing.T) {
	dir := t.TempDir()
	s := jsonl.OpenSessions(dir, jsonl.FsyncDecisions)
	for _, id := range []string{"a", "z"} {
		if err := s.Save(t.Context(), sessiontest.Sample(id)); err != nil {
			t.Fatal(err)
		}
	}
	broken := map[string]string{
		"b-empty": "", "c-cut": `{"session_id":"c","created_at":`, "d-array": `[]`, "e-types": `{"session_id":1}`,
		"f-headless": `{}`, "g-nul": "\x00\x00", "h-other": `{"messages":[],"tools":[]}`,
	}
	for id, text := range broken {
		pendingWrite(t, filepath.Join(dir, id+".json"), text)
	}
	pendingWrite(t, filepath.Join(dir, ".x.1.tmp"), "half")
	pendingWrite(t, filepath.Join(dir, "README"), "not ours")
	if err := os.MkdirAll(filepath.Join(dir, "i-dir.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	var ids []string
	var errs []string
	for h, err := range s.List(t.Context()) {
		if err != nil {
			errs = append(errs, err.Error())
			continue
		}
		ids = append(ids, h.ID)
	}
	if !slices.Equal(ids, []string{"z", "a"}) {
		t.Errorf("listed %v, want z and a", ids)
	}
	if len(errs) != len(broken)+1 {
		t.Errorf("%d complaints about %d broken snapshots: %q", len(errs), len(broken)+1, errs)
	}
	for id := range broken {
		if !slices.ContainsFunc(errs, func(e string) bool { return strings.Contains(e, id) }) {
			t.Errorf("no complaint names %s: %q", id, errs)
		}
		if id == "f-headless" || id == "h-other" {
			continue // a snapshot without a head can still be loaded
		}
		if _, err := s.Load(t.Context(), id); err == nil || errors.Is(err, session.ErrNotFound) {
			t.Errorf("load %s: %v, want an error that says it is broken", id, err)
		}
	}
}

func TestSnapshotsThatCannotBeWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sessions")
	pendingWrite(t, dir, "a file")
	s := jsonl.OpenSessions(dir, jsonl.FsyncDecisions)
	var path *fs.PathError
	if err := s.Save(t.Context(), sessiontest.Sample("a")); !errors.As(err, &path) {
		t.Errorf("save: %v, want an error that says where", err)
	}
	for h, err := range s.List(t.Context()) {
		if !errors.As(err, &path) {
			t.Errorf("list: %+v, %v, want an error that says where", h, err)
		}
	}
}

// A snapshot that cannot be written leaves the old one as it was, and nothing
// beside it.
func TestFailedSaveKeepsTheOld(t *testing.T) {
	dir := t.TempDir()
	s := jsonl.OpenSessions(dir, jsonl.FsyncDecisions)
	old := sessiontest.Sample("a")
	if err := s.Save(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	bad := sessiontest.Sample("a")
	bad.Messages = append(bad.Messages, json.RawMessage(`{"role":`))
	if err := s.Save(t.Context(), bad); err == nil {
		t.Error("a snapshot that is not JSON was saved")
	}
	got, err := s.Load(t.Context(), "a")
	if err != nil || fmt.Sprint(got) != fmt.Sprint(old) {
		t.Errorf("after a failed save: %+v, %v", got, err)
	}
	if got := names(t, dir); got != "a.json" {
		t.Errorf("a failed save left %s", got)
	}
}
