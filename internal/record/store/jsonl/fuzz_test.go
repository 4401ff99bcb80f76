package jsonl_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"coder/internal/core/event"
	"coder/internal/record/store/jsonl"
	"coder/testkit/eventtest"
)

// Whatever the three files hold: nothing panics, no reader sees a gap, those
// who look before and after the claim see the same, and the session goes on.
func FuzzLogReader(f *testing.F) {
	w := writeWhole(f, eventtest.Samples()...)
	domain, audited, talk := w.logs[event.LogDomain], w.logs[event.LogAudit], w.logs[event.LogConversation]
	f.Add(domain, audited, talk)
	f.Add(domain[:len(domain)-7], audited, talk)
	f.Add(domain, audited, append(bytes.Clone(talk), make([]byte, 512)...))
	f.Add([]byte(nil), []byte("{}\n"), []byte(`{"seq":1,"type":"x","payload":1}`+"\n"))
	f.Add([]byte(`{"payload":{},"type":"T","seq":1}`+"\n"), []byte("\n\n"), []byte("{"))
	f.Add([]byte(`{"seq":1,"type":"T","v":1,"sessionId":"a","streamId":"","createdAt":"2025-01-01T00:00:00Z","payload":{},"seq":2}`+"\n"), []byte(nil), []byte(nil))
	f.Add([]byte(`{"seq":1,"type":"LocalAdded","v":1,"sessionId":"a","streamId":"","createdAt":"2025-01-01T00:00:00Z","payload":7,"PREV":"x"}`+"\n"), []byte(nil), []byte(nil))
	f.Fuzz(func(t *testing.T, domain, audited, talk []byte) {
		dir := t.TempDir()
		for l, b := range map[event.Log][]byte{event.LogDomain: domain, event.LogAudit: audited, event.LogConversation: talk} {
			pendingWrite(t, filepath.Join(dir, "a", l.String()+".jsonl"), string(b))
		}
		s := jsonl.Open(dir, jsonl.Options{Fsync: jsonl.FsyncNever})
		before := readAll(t, s)
		release := eventtest.Claim(t, s, "a")
		if err := eventtest.Same(readAll(t, s), before); err != nil {
			t.Fatalf("before and after the claim: %v", err)
		}
		want := append(before, eventtest.Append(t, s, "a", uint64(len(before)), eventtest.Samples()...)...)
		if err := eventtest.Same(readAll(t, s), want); err != nil {
			t.Fatal(err)
		}
		release()
		if err := eventtest.Same(readAll(t, s), want); err != nil {
			t.Fatal(err)
		}
	})
}

func readAll(t *testing.T, s event.Store) []event.Record {
	t.Helper()
	var rs []event.Record
	for r, err := range s.Read(t.Context(), "a", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Seq != uint64(len(rs)+1) {
			t.Fatalf("record %d in place %d", r.Seq, len(rs)+1)
		}
		rs = append(rs, r)
	}
	return slices.Clip(rs)
}
