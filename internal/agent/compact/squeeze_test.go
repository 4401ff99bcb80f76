package compact_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"coder/internal/agent/compact"
	"coder/internal/core/chat"
)

func bytesOf(m chat.Message) int {
	n := 4
	for _, p := range m.Parts {
		switch p := p.(type) {
		case chat.Text:
			n += len(p)
		case chat.Reasoning:
			n += len(p.Text)
		case chat.Image:
			n += 1000
		case chat.ToolCall:
			n += len(p.Name) + len(p.Args)
		case chat.ToolResult:
			n += len(p.Text)
		}
	}
	return n
}

// someTalk is a conversation of rounds of calls with results of all sizes.
func someTalk(rnd *rand.Rand, rounds int) (view []chat.Message) {
	text := func(most int) string { return strings.Repeat("some words\n", rnd.IntN(most/11+1)) }
	view = append(view, chat.TextMessage(chat.User, "remember the word tulip; "+text(20000)))
	for r := range rounds {
		reply := chat.Message{Role: chat.Assistant, Parts: []chat.Part{chat.Reasoning{Text: text(3000)}, chat.Text(text(2000))}}
		var results []chat.Message
		for i := range 1 + rnd.IntN(4) {
			id := fmt.Sprintf("c%d_%d", r, i)
			args, _ := json.Marshal(map[string]any{"path": "a.txt", "content": text(9000), "list": []string{text(500)}})
			reply.Parts = append(reply.Parts, chat.ToolCall{ID: id, Name: "write", Args: args})
			result, _ := json.Marshal(map[string]any{"ok": true, "content": text(60000), "n": 7})
			results = append(results, chat.ToolMessage(chat.ToolResult{CallID: id, Name: "write", Text: string(result)}))
		}
		view = append(append(view, reply), results...)
		if rnd.IntN(4) == 0 {
			view = append(view, chat.Message{Role: chat.User, Parts: []chat.Part{chat.Text("look"), chat.Image{Data: []byte("png")}}})
		}
	}
	return view
}

// paired checks that calls and results belong to each other.
func paired(view []chat.Message) error {
	open := map[string]bool{}
	for i, m := range view {
		if m.Role != chat.Tool && len(open) > 0 {
			return fmt.Errorf("message %d stands before results of %v", i, open)
		}
		for c := range chat.PartsOf[chat.ToolCall](m) {
			open[c.ID] = true
			if !json.Valid(c.Args) {
				return fmt.Errorf("arguments of %s: %.60s", c.ID, c.Args)
			}
		}
		for r := range chat.PartsOf[chat.ToolResult](m) {
			if !open[r.CallID] {
				return fmt.Errorf("a result of no call: %s", r.CallID)
			}
			delete(open, r.CallID)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("no result of %v", open)
	}
	return nil
}

func TestWhateverWasSaidIsMadeToFit(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	for seed := range uint64(24) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		view := someTalk(rnd, 1+rnd.IntN(12))
		budget := 6000 + rnd.IntN(200_000)
		kept := map[string]string{}
		archive := func(r chat.ToolResult) string {
			if _, there := kept[r.CallID]; !there {
				kept[r.CallID] = r.Text
			}
			return "runs/" + fmt.Sprint(len(kept))
		}
		s := compact.Squeeze(view, budget, bytesOf, archive, false)
		total := 0
		for _, m := range s.Messages {
			total += bytesOf(m)
		}
		if !s.Fits || total > budget {
			t.Errorf("seed %d: %d bytes for a budget of %d, of %d messages", seed, total, budget, len(view))
		}
		if err := paired(s.Messages); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		if !strings.Contains(s.Messages[0].Text(), "tulip") {
			t.Errorf("seed %d: what the person said is gone", seed)
		}
		for i := range s.Unchanged {
			was, is := view[len(view)-1-i], s.Messages[len(s.Messages)-1-i]
			if fmt.Sprint(was) != fmt.Sprint(is) {
				t.Errorf("seed %d: one of the last %d messages was changed", seed, s.Unchanged)
			}
		}
		if again := compact.Squeeze(s.Messages, budget, bytesOf, archive, false); again.Shortened+again.Dropped != 0 {
			t.Errorf("seed %d: what fits was shortened again", seed)
		}
	}
}

func TestAShortenedResultSaysWhereTheRestIs(t *testing.T) {
	long := strings.Repeat("line\n", 20000)
	text, _ := json.Marshal(map[string]any{"ok": true, "output": long, "exit_code": 3})
	r := chat.ToolResult{CallID: "c", Text: string(text)}
	var kept string
	short := compact.ShortenResult(r, 2000, func(r chat.ToolResult) string { kept = compact.FullText(r.Text); return ".coder/runs/s/x.txt" })
	var object struct {
		OK     bool   `json:"ok"`
		Output string `json:"output"`
		Exit   int    `json:"exit_code"`
	}
	if err := json.Unmarshal([]byte(short), &object); err != nil || !object.OK || object.Exit != 3 || len(short) > 3000 {
		t.Errorf("%d bytes, %v: %.200s", len(short), err, short)
	}
	if !strings.Contains(object.Output, "all of it is in .coder/runs/s/x.txt: read that in parts") || kept != long {
		t.Errorf("it does not say where: %.300s", object.Output)
	}
	if short := compact.ShortenResult(chat.ToolResult{Text: long}, 2000, nil); !strings.Contains(short, "make the call again") || len(short) > 3000 {
		t.Errorf("%.200s", short)
	}
}

// What was shortened is not shortened again for a byte or two: the provider's cache holds it.
func TestWhatWasShortenedStaysAsItIs(t *testing.T) {
	args, _ := json.Marshal(map[string]any{"ok": true, "content": strings.Repeat("some words\n", 4000)})
	view := []chat.Message{
		{Role: chat.Assistant, Parts: []chat.Part{chat.ToolCall{ID: "1", Name: "read", Args: json.RawMessage("{}")}}},
		chat.ToolMessage(chat.ToolResult{CallID: "1", Name: "read", Text: string(args)}),
	}
	archive := func(chat.ToolResult) string { return ".coder/runs/s/result-0123456789ab.txt" }
	once := compact.Squeeze(view, 10, bytesOf, archive, true)
	again := compact.Squeeze(once.Messages, 10, bytesOf, archive, true)
	if once.Shortened != 1 || again.Shortened != 0 || again.Unchanged != len(view) {
		t.Errorf("%d, then %d shortened, %d kept", once.Shortened, again.Shortened, again.Unchanged)
	}
}
