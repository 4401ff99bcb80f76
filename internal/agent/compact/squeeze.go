package compact

import (
	"encoding/json"
	"fmt"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/core/jsonx"
	"coder/internal/core/lazy"
)

// Archive saves a whole result before it is shortened, in a place that
// the model can read, and returns the path, or "" if it saved nothing.
type Archive func(r chat.ToolResult) string

// Squeezed describes a conversation that was shortened by rule.
type Squeezed struct {
	Messages  []chat.Message
	Keep      int // how many of the last messages are unchanged
	Shortened int // results, arguments and texts that lost their middle, and pictures
	Dropped   int // messages replaced by a rule-based summary
	Fits      bool
}

// sizes are the part sizes in bytes that Squeeze tries in turn until everything fits.
var sizes = []int{16000, 8000, 4000, 2000, 1000, 400, 120}

// leastSaved is the smallest saving in bytes that is worth a change: a shortened
// text is a little longer than its limit, and the provider has it cached.
const leastSaved = 64

// newest is how many of the last messages Squeeze spares for as long as possible.
const newest = 4

// Squeeze shortens view to at most budget tokens, without a model: long parts lose their middle,
// results first and the newest messages last. If that is not enough, a rule-based summary replaces
// the oldest messages. Calls keep their results. With large, Squeeze only shortens large results.
func Squeeze(view []chat.Message, budget int, count Count, archive Archive, large bool) Squeezed {
	s := &squeeze{view: append([]chat.Message(nil), view...), count: count, archive: archive, budget: budget, touched: make(map[int]bool)}
	for _, m := range view {
		n := count(m)
		s.tokens = append(s.tokens, n)
		s.total += n
	}
	levels := sizes
	if large {
		levels = sizes[:2]
	}
	for _, size := range levels {
		for _, spared := range []int{newest, 0} {
			s.pass(size, len(view)-spared, !large)
			if s.total <= budget {
				return s.done()
			}
		}
	}
	if !large {
		s.drop()
	}
	return s.done()
}

type squeeze struct {
	view    []chat.Message
	tokens  []int
	total   int
	budget  int
	count   Count
	archive Archive
	touched map[int]bool
	dropped int
}

func (s *squeeze) done() Squeezed {
	last := s.dropped - 1
	for i := range s.touched {
		last = max(last, i)
	}
	return Squeezed{
		Messages: s.view, Keep: len(s.tokens) - 1 - last, Shortened: len(s.touched), Dropped: s.dropped, Fits: s.total <= s.budget,
	}
}

// pass shortens parts longer than size in the messages before end.
func (s *squeeze) pass(size, end int, words bool) {
	for i := range max(end, 0) {
		if s.total <= s.budget {
			return
		}
		if m, n := s.shorten(s.view[i], size, words); n > 0 {
			s.touched[i] = true
			s.view[i] = m
			now := s.count(m)
			s.total += now - s.tokens[i]
			s.tokens[i] = now
		}
	}
}

// shorten returns m with no part much longer than size, and how many bytes that saves.
func (s *squeeze) shorten(m chat.Message, size int, words bool) (chat.Message, int) {
	saved := 0
	parts := make([]chat.Part, 0, len(m.Parts))
	for _, p := range m.Parts {
		switch q := p.(type) {
		case chat.ToolResult:
			if len(q.Text) <= size {
				break
			}
			if short := ShortResult(q, size, s.archive); len(q.Text)-len(short) >= leastSaved {
				saved += len(q.Text) - len(short)
				q.Text = short
				p = q
			}
		case chat.ToolCall:
			if short := shortArgs(q.Args, size); words && len(short) < len(q.Args) {
				saved += len(q.Args) - len(short)
				q.Args = short
				p = q
			}
		case chat.Text:
			most := 2 * size
			if m.Role == chat.User {
				most = 4 * size // the user's words go last
			}
			if short := s.words(m, string(q), most); words && len(short) < len(q) {
				saved += len(q) - len(short)
				p = chat.Text(short)
			}
		case chat.Reasoning:
			if words && len(q.Text) > size && m.Role == chat.Assistant && len(m.Parts) > 1 {
				saved += len(q.Text)
				continue
			}
		case chat.Image:
			if words {
				saved += max(1, len(q.Data))
				p = chat.Text(pictureGone)
			}
		}
		parts = append(parts, p)
	}
	return chat.Message{Role: m.Role, Parts: parts}, saved
}

// words returns text without its middle. If it is the user's, the whole text is archived for the model.
func (s *squeeze) words(m chat.Message, text string, most int) string {
	if len(text) <= most || m.Role != chat.User || s.archive == nil {
		return middleGap(text, most, "they were left out to save room")
	}
	path := archivedAt(text)
	if path == "" {
		path = s.archive(chat.ToolResult{CallID: "words:" + text, Text: text})
	}
	return middleGap(text, most, seeAt(path))
}

// seeAt says how to see the rest of a text.
func seeAt(path string) string {
	if path == "" {
		return "they were left out to save room"
	}
	return archiveMark + path + ": read that in parts (offset, limit) or search it"
}

const archiveMark = "all of it is in "

// Gaps splits a shortened text into the parts before and after its gaps.
func Gaps(text string) []string { return gap().Split(text, -1) }

var gap = lazy.Regexp(`\[\d+ bytes are not shown here; `)

// archivedAt returns the path of the whole text, if text was shortened before.
func archivedAt(text string) string {
	_, rest, ok := strings.Cut(text, " bytes are not shown here; "+archiveMark)
	path, _, closed := strings.Cut(rest, ": ")
	if !ok || !closed || strings.ContainsAny(path, " \n") {
		return ""
	}
	return path
}

// drop replaces the oldest messages by a rule-based summary, as few as possible.
func (s *squeeze) drop() {
	for _, at := range boundaries(s.view, true) {
		if at == len(s.view) && at > 1 {
			return // the last message stays
		}
		old := s.view[:at]
		m := Message(Fallback(old), Collect(old), max(s.budget/4, minRoom))
		total := s.count(m)
		for _, n := range s.tokens[at:] {
			total += n
		}
		if total < s.total {
			next := append([]chat.Message{m}, s.view[at:]...)
			if total <= s.budget || at == len(s.view)-1 {
				s.dropped, s.total, s.view = at, total, next
				return
			}
		}
	}
}

// ShortResult returns a result of at most about size bytes: its
// beginning, its end, and between them what is missing and how to see it.
func ShortResult(r chat.ToolResult, size int, archive Archive) string {
	how := "make the call again for less to see them"
	if archive != nil {
		if path := archive(r); path != "" {
			how = seeAt(path)
		}
	}
	if key, value, object := longest(r.Text); key != "" {
		object[key] = jsonx.Must("")
		if rest := len(jsonx.Must(object)); rest <= size/2 {
			object[key] = jsonx.Must(middleGap(value, size-rest, how))
			return string(jsonx.Must(object))
		}
	}
	return middleGap(r.Text, size, how)
}

// Whole returns what to save of a result: its longest text if that is most of it, otherwise everything.
func Whole(text string) string {
	if key, value, _ := longest(text); key != "" && len(value) > len(text)/2 {
		return value
	}
	return text
}

// longest finds the longest text in a result that is a JSON object.
func longest(text string) (key, value string, object map[string]json.RawMessage) {
	if !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &object) != nil {
		return "", "", nil
	}
	for k, raw := range object {
		var s string
		if json.Unmarshal(raw, &s) == nil && (len(s) > len(value) || len(s) == len(value) && k < key) {
			key, value = k, s
		}
	}
	return key, value, object
}

// shortArgs returns a call's arguments with long texts shortened; they stay a JSON object.
func shortArgs(args []byte, size int) []byte {
	if len(args) <= size {
		return args
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(args, &object) != nil {
		return []byte("{}") // a server would reject half an object
	}
	for k, raw := range object {
		var s string
		switch {
		case len(raw) <= size/2:
		case json.Unmarshal(raw, &s) == nil:
			object[k] = jsonx.Must(middleGap(s, size/2, "they were left out to save room"))
		default:
			object[k] = jsonx.Must(fmt.Sprintf("[%d bytes left out to save room]", len(raw)))
		}
	}
	return jsonx.Must(object)
}

// middleGap returns about n bytes of s, its beginning and its
// end, and between them how much is missing and how to see it.
func middleGap(s string, n int, how string) string {
	if len(s) <= n {
		return s
	}
	head, tail := cutHead(s, n*2/3), cutTail(s, n/3)
	return fmt.Sprintf("%s\n[%d bytes are not shown here; %s]\n%s", head, len(s)-len(head)-len(tail), how, tail)
}
