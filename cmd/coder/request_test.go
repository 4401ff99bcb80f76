package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"coder/testkit/faultserver"
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

// TestRequestsOfOtherWiresAreExportedAsTheyWereSent does the same over the wires of
// vendors: with thinking that is signed, a call and its result, and a second turn.
func TestRequestsOfOtherWiresAreExportedAsTheyWereSent(t *testing.T) {
	said := func(events ...string) faultserver.Reply {
		body := ""
		for _, e := range events {
			body += "data: " + e + "\n\n"
		}
		return faultserver.Reply{Body: body}
	}
	anthropic := func(stop string, blocks ...string) faultserver.Reply {
		events := []string{`{"type":"message_start","message":{"id":"m","model":"m","content":[],"usage":{"input_tokens":1}}}`}
		for i, block := range blocks {
			begin, delta, _ := strings.Cut(block, " | ")
			events = append(events, fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, begin))
			for d := range strings.SplitSeq(delta, " | ") {
				events = append(events, fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, i, d))
			}
			events = append(events, fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i))
		}
		return said(append(events, fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q},"usage":{"output_tokens":1}}`, stop), `{"type":"message_stop"}`)...)
	}
	gemini := func(parts string) faultserver.Reply {
		return said(`{"candidates":[{"content":{"role":"model","parts":[` + parts + `]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1}}`)
	}
	responses := func(items ...string) faultserver.Reply {
		events := []string{`{"type":"response.created","response":{"id":"r","status":"in_progress"}}`}
		for i, item := range items {
			events = append(events, fmt.Sprintf(`{"type":"response.output_item.added","output_index":%d,"item":%s}`, i, item))
			if strings.Contains(item, `"message"`) {
				events = append(events, fmt.Sprintf(`{"type":"response.output_text.delta","output_index":%d,"delta":"said"}`, i))
			}
			events = append(events, fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, i, item))
		}
		return said(append(events, `{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":1,"output_tokens":1}}}`)...)
	}
	const text = `{"type":"text","text":""} | {"type":"text_delta","text":"said"}`
	const message = `{"type":"message","role":"assistant","content":[]}`
	for wire, replies := range map[string][]faultserver.Reply{
		"anthropic": {
			anthropic("tool_use", `{"type":"thinking","thinking":"","signature":""} | {"type":"thinking_delta","thinking":"hm <b>"} | {"type":"signature_delta","signature":"c2ln"}`,
				`{"type":"tool_use","id":"toolu_1","name":"read","input":{}} | {"type":"input_json_delta","partial_json":"{\"path\":\"named.txt\"}"}`),
			anthropic("end_turn", text), anthropic("end_turn", text),
		},
		"gemini": {
			gemini(`{"text":"hm <b>","thought":true},{"functionCall":{"id":"c1","name":"read","args":{"path":"named.txt"}},"thoughtSignature":"c2ln"}`),
			gemini(`{"text":"said"}`), gemini(`{"text":"said"}`),
		},
		"responses": {
			responses(`{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"c2ln"}`, `{"type":"function_call","id":"fc","call_id":"c1","name":"read","arguments":"{\"path\":\"named.txt\"}"}`),
			responses(message), responses(message),
		},
	} {
		t.Run(wire, func(t *testing.T) {
			p, s := connected(t, "")
			p.settings(map[string]any{"base_url": s.Base(""), "kind": wire})
			p.file("named.txt", "what it holds: <&>\n")
			s.Script(replies...)
			for _, args := range [][]string{{"-p", "look at @named.txt"}, {"-p", "-c", "and now"}} {
				if out, stderr, code := p.run(args...); code != 0 || out != "said\n" {
					t.Fatalf("%v: %q, code %d: %s", args, out, code, stderr)
				}
			}
			reqs, seqs := s.Requests(), p.replies()
			if len(reqs) != 3 || len(seqs) != 3 {
				t.Fatalf("%d requests, %d replies", len(reqs), len(seqs))
			}
			for i, seq := range seqs {
				out, stderr, code := p.run("export", p.last(), "--format", "request", "--at", fmt.Sprint(seq))
				if code != 0 || out != string(reqs[i].Body) {
					t.Errorf("record %d: code %d: %s\n%.2000s\nwant\n%.2000s", seq, code, stderr, out, reqs[i].Body)
				}
			}
		})
	}
}
