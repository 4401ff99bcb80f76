package compact

import (
	"encoding/json"
	"fmt"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/core/jsonx"
	"coder/internal/core/lazy"
)

// Archiver saves a whole result before it is shortened, in a place that
// the model can read, and returns the path, or "" if it saved nothing.
type Archiver func(r chat.ToolResult) string

// SqueezeResult describes a conversation that was shortened by rule.
type SqueezeResult struct {
	Messages  []chat.Message
	Unchanged int // how many of the last messages are unchanged
	Shortened int // results, arguments and texts that lost their middle, and pictures
	Dropped   int // messages replaced by a rule-based summary
	Fits      bool
}

// partSizes are the part sizes in bytes that Squeeze tries in turn until everything fits.
var partSizes = []int{16000, 8000, 4000, 2000, 1000, 400, 120}

// minSaving is the smallest saving in bytes that is worth a change: a shortened
// text is a little longer than its limit, and the provider has it cached.
const minSaving = 64

// sparedMessages is how many of the last messages Squeeze spares for as long as possible.
const sparedMessages = 4

// Squeeze shortens view to at most budget tokens, without a model: long parts lose their middle,
// results first and the newest messages last. If that is not enough, a rule-based summary replaces
// the oldest messages. Calls keep their results. With large, Squeeze only shortens large results.
func Squeeze(view []chat.Message, budget int, count Counter, archive Archiver, large bool) SqueezeResult {
	s := &squeezer{view: append([]chat.Message(nil), view...), count: count, archiver: archive, budget: budget,
		shortened: make(map[int]bool)}
	for _, m := range view {
		n := count(m)
		s.tokens = append(s.tokens, n)
		s.total += n
	}
	levels := partSizes
	if large {
		levels = partSizes[:2]
	}
	for _, size := range levels {
		for _, spared := range []int{sparedMessages, 0} {
			s.shortenAll(size, len(view)-spared, !large)
			if s.total <= budget {
				return s.result()
			}
		}
	}
	if !large {
		s.dropOldest()
	}
	return s.result()
}

type squeezer struct {
	view      []chat.Message
	tokens    []int
	total     int
	budget    int
	count     Counter
	archiver  Archiver
	shortened map[int]bool
	dropped   int
}

func (s *squeezer) result() SqueezeResult {
	last := s.dropped - 1
	for i := range s.shortened {
		last = max(last, i)
	}
	return SqueezeResult{
		Messages: s.view, Unchanged: len(s.tokens) - 1 - last, Shortened: len(s.shortened), Dropped: s.dropped,
		Fits: s.total <= s.budget,
	}
}

// shortenAll shortens parts longer than size in the messages before end.
func (s *squeezer) shortenAll(size, end int, words bool) {
	for i := range max(end, 0) {
		if s.total <= s.budget {
			return
		}
		if m, n := s.shorten(s.view[i], size, words); n > 0 {
			s.shortened[i] = true
			s.view[i] = m
			now := s.count(m)
			s.total += now - s.tokens[i]
			s.tokens[i] = now
		}
	}
}

// shorten returns m with no part much longer than size, and how many bytes that saves.
func (s *squeezer) shorten(m chat.Message, size int, words bool) (chat.Message, int) {
	saved := 0
	parts := make([]chat.Part, 0, len(m.Parts))
	for _, p := range m.Parts {
		switch q := p.(type) {
		case chat.ToolResult:
			if len(q.Text) <= size {
				break
			}
			if short := ShortenResult(q, size, s.archiver); len(q.Text)-len(short) >= minSaving {
				saved += len(q.Text) - len(short)
				q.Text = short
				p = q
			}
		case chat.ToolCall:
			if short := shortenArgs(q.Args, size); words && len(short) < len(q.Args) {
				saved += len(q.Args) - len(short)
				q.Args = short
				p = q
			}
		case chat.Text:
			most := 2 * size
			if m.Role == chat.User {
				most = 4 * size // the user's words go last
			}
			if short := s.shortenText(m, string(q), most); words && len(short) < len(q) {
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
				p = chat.Text(pictureRemoved)
			}
		}
		parts = append(parts, p)
	}
	return chat.Message{Role: m.Role, Parts: parts}, saved
}

// shortenText returns text without its middle. If it is the user's, the whole text is archived for the model.
func (s *squeezer) shortenText(m chat.Message, text string, most int) string {
	if len(text) <= most || m.Role != chat.User || s.archiver == nil {
		return cutWithNote(text, most, "they were left out to save room")
	}
	path := archivePath(text)
	if path == "" {
		path = s.archiver(chat.ToolResult{CallID: "words:" + text, Text: text})
	}
	return cutWithNote(text, most, howToRead(path))
}

// howToRead says how to see the rest of a text.
func howToRead(path string) string {
	if path == "" {
		return "they were left out to save room"
	}
	return archiveMarker + path + ": read that in parts (offset, limit) or search it"
}

const archiveMarker = "all of it is in "

// SplitAtGaps splits a shortened text into the parts before and after its gaps.
func SplitAtGaps(text string) []string { return gapPattern().Split(text, -1) }

var gapPattern = lazy.Regexp(`\[\d+ bytes are not shown here; `)

// archivePath returns the path of the whole text, if text was shortened before.
func archivePath(text string) string {
	_, rest, ok := strings.Cut(text, " bytes are not shown here; "+archiveMarker)
	path, _, closed := strings.Cut(rest, ": ")
	if !ok || !closed || strings.ContainsAny(path, " \n") {
		return ""
	}
	return path
}

// dropOldest replaces the oldest messages by a rule-based summary, as few as possible.
func (s *squeezer) dropOldest() {
	for _, at := range cutPoints(s.view, true) {
		if at == len(s.view) && at > 1 {
			return // the last message stays
		}
		old := s.view[:at]
		m := NewMessage(FallbackSummary(old), CollectCarryover(old), max(s.budget/4, minSummaryTokens))
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

// ShortenResult returns a result of at most about size bytes: its
// beginning, its end, and between them what is missing and how to see it.
func ShortenResult(r chat.ToolResult, size int, archive Archiver) string {
	how := "make the call again for less to see them"
	if archive != nil {
		if path := archive(r); path != "" {
			how = howToRead(path)
		}
	}
	if key, value, object := longestField(r.Text); key != "" {
		object[key] = jsonx.MustMarshal("")
		if rest := len(jsonx.MustMarshal(object)); rest <= size/2 {
			object[key] = jsonx.MustMarshal(cutWithNote(value, size-rest, how))
			return string(jsonx.MustMarshal(object))
		}
	}
	return cutWithNote(r.Text, size, how)
}

// FullText returns what to save of a result: its longest text if that is most of it, otherwise everything.
func FullText(text string) string {
	if key, value, _ := longestField(text); key != "" && len(value) > len(text)/2 {
		return value
	}
	return text
}

// longestField finds the longest text in a result that is a JSON object.
func longestField(text string) (key, value string, object map[string]json.RawMessage) {
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

// shortenArgs returns a call's arguments with long texts shortened; they stay a JSON object.
func shortenArgs(args []byte, size int) []byte {
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
			object[k] = jsonx.MustMarshal(cutWithNote(s, size/2, "they were left out to save room"))
		default:
			object[k] = jsonx.MustMarshal(fmt.Sprintf("[%d bytes left out to save room]", len(raw)))
		}
	}
	return jsonx.MustMarshal(object)
}

// cutWithNote returns about n bytes of s, its beginning and its
// end, and between them how much is missing and how to see it.
func cutWithNote(s string, n int, how string) string {
	if len(s) <= n {
		return s
	}
	head, tail := headOf(s, n*2/3), tailOf(s, n/3)
	return fmt.Sprintf("%s\n[%d bytes are not shown here; %s]\n%s", head, len(s)-len(head)-len(tail), how, tail)
}
