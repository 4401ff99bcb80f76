package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"coder/internal/model/faultserver"
)

// TestRequestsAreExportedAsTheyWereSent holds the bytes of coder export --format request
// against those that the server received: with files that are named, reminders, a
// conversation that is summed up, a session that is resumed, a subtask, and calls
// written as text.
func TestRequestsAreExportedAsTheyWereSent(t *testing.T) {
	for _, mode := range []string{"auto", "xml"} {
		t.Run(mode, func(t *testing.T) {
			p, s := connected(t, "")
			p.settings(map[string]any{"base_url": s.Base(""), "tool_mode": mode})
			if err := os.WriteFile(filepath.Join(p.ws, "named.txt"), []byte("what it holds\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			call := func(name, args string) faultserver.Reply {
				if mode == "xml" {
					return faultserver.Stream(faultserver.Text(fmt.Sprintf(`<tool_use>{"name":%q,"arguments":%s}</tool_use>`, name, args)), faultserver.Finish("stop"))
				}
				return faultserver.Stream(faultserver.Call("c_"+name, name, args), faultserver.Finish("tool_calls"))
			}
			say := func(text string) faultserver.Reply {
				return faultserver.Stream(faultserver.Text(text), faultserver.Finish("stop"))
			}
			s.Script(call("read", `{"path":"named.txt"}`), call("task", `{"description":"look","prompt":"look around","subagent_type":"explore"}`), say("seen"), say("one"),
				say("two"), say("a summary"), say("three"))
			for _, args := range [][]string{{"-p", "look at @named.txt"}, {"-p", "-c", "and now"}, {"-p", "-c", "/compact"}, {"-p", "-c", "last"}} {
				if _, stderr, code := p.run(args...); code != 0 {
					t.Fatalf("%v: code %d: %s", args, code, stderr)
				}
			}
			sent := make(map[string]bool)
			for _, r := range s.Requests() {
				sent[string(r.Body)] = true
			}
			reqs := s.Requests()
			if out, stderr, code := p.run("export", p.last(), "--format", "request"); code != 0 || out != string(reqs[len(reqs)-1].Body) {
				t.Errorf("the last request: code %d: %s%.300s", code, stderr, out)
			}
			replies := 0
			for _, seq := range p.replies() {
				out, stderr, code := p.run("export", p.last(), "--format", "request", "--at", fmt.Sprint(seq))
				if code != 0 || !sent[out] {
					t.Errorf("record %d: code %d: %s%.300s", seq, code, stderr, out)
				}
				delete(sent, out)
				replies++
			}
			if replies != 6 || len(sent) != 1 { // the one for the summary is no reply
				t.Errorf("%d replies, %d of %d requests not exported", replies, len(sent), len(reqs))
			}
		})
	}
}

// last is the id of the only session.
func (p *program) last() string {
	all, _ := filepath.Glob(filepath.Join(p.ws, ".coder", "log", "*"))
	if len(all) != 1 {
		p.t.Fatalf("sessions: %v", all)
	}
	return filepath.Base(all[0])
}

// replies are the numbers of the records of replies.
func (p *program) replies() (seqs []int) {
	text, err := os.ReadFile(filepath.Join(p.ws, ".coder", "log", p.last(), "conversation.jsonl"))
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var r struct {
			Seq     int
			Payload struct{ Sent *struct{} }
		}
		if json.Unmarshal(line, &r) == nil && r.Payload.Sent != nil {
			seqs = append(seqs, r.Seq)
		}
	}
	return seqs
}
