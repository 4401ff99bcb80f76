// Package ledger shows what filled the model's window in a session, by source, and what that cost:
// every request sends the whole conversation again. It is a fold of the records; the figures of a part
// are estimates, scaled to the provider's count for the whole.
package ledger

import (
	"encoding/json"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"

	"coder/internal/agent/compact"
	"coder/internal/agent/conversation"
	tokens "coder/internal/agent/prompt"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/lazy"
	"coder/internal/core/sanitize"
)

// Kind is a kind of window content.
type Kind string

// The kinds, in their order in a request.
const (
	System   Kind = "system text"
	Rules    Kind = "rules"
	Tool     Kind = "tool"
	Words    Kind = "your messages"
	Reply    Kind = "the model's replies"
	Thinking Kind = "the model's thinking"
	Call     Kind = "tool calls"
	File     Kind = "file"
	Result   Kind = "result"
	Summary  Kind = "summary"
)

// Kinds lists them.
var Kinds = []Kind{System, Rules, Tool, Words, Reply, Thinking, Call, File, Result, Summary}

// Entry is one source of window content.
type Entry struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name,omitempty"`
	Seq  uint64 `json:"record,omitempty"` // the first of its records
	Now  int    `json:"now"`              // tokens in the window after the last record
	// These are its totals in all requests: how often it was sent,
	// its tokens, those from the provider's cache, and their cost.
	Requests int     `json:"requests"`
	Sent     int     `json:"sent"`
	Cached   int     `json:"cached"`
	Cost     float64 `json:"cost"`
	Dropped  bool    `json:"dropped,omitempty"` // the model no longer sees it

	last int // the last request that counted it
}

// Request is one request of the conversation.
type Request struct {
	Seq    uint64       `json:"record"` // of its reply
	Usage  chat.Usage   `json:"usage"`
	ByKind map[Kind]int `json:"by_kind"` // tokens
}

// Drop is what a marker removed from the window.
type Drop struct {
	Seq      uint64 `json:"record"`
	Done     string `json:"done,omitempty"`
	Before   int    `json:"tokens_before"`
	After    int    `json:"tokens_after"`
	Messages int    `json:"messages"` // how many the model no longer sees
	// Shortened is how many of the remaining messages became shorter.
	Shortened int `json:"shortened,omitempty"`
}

// Break is a request that did not begin with all of the previous
// one, or that did but was not served from the provider's cache.
type Break struct {
	Seq  uint64 `json:"record"` // of the reply
	Why  string `json:"why"`
	Anew int    `json:"anew"` // tokens read again
}

// Book is the ledger of a session.
type Book struct {
	Requests []Request  `json:"requests"`
	Entries  []*Entry   `json:"entries"`
	Drops    []Drop     `json:"drops,omitempty"`
	Breaks   []Break    `json:"breaks,omitempty"`
	Total    chat.Usage `json:"total"`
	Aside    chat.Usage `json:"aside"` // additional usage by summaries, subtasks and replies that broke off

	talk    conversation.Conversation
	price   func(model string, u chat.Usage) chat.Usage
	tools   []*Entry
	rest    int // tokens of the tools, if the tools are unknown
	entries map[string]*Entry
	of      map[*chat.Part][]share // the parts of a message
	calls   map[string]chat.ToolCall
	system  string
	fixed   []share
	seen    []chat.Message // in the last request
	said    []share        // the parts of these messages
	sum     int            // their tokens
	fit     float64        // ratio of the provider's token count to coder's, in the last request
	model   string
	why     string // what would break the cache in the next request
	cached  bool   // the provider reports cached tokens
}

// share is a part of a message.
type share struct {
	entry *Entry
	size  int // approximate tokens
}

// New returns an empty ledger. price adds the cost to a model's usage.
func New(price func(model string, u chat.Usage) chat.Usage) *Book {
	return &Book{price: price, fit: 1, entries: make(map[string]*Entry), of: make(map[*chat.Part][]share), calls: make(map[string]chat.ToolCall)}
}

// offer records which tools are advertised from now on.
func (b *Book) offer(tools map[string]int, seq uint64) {
	for _, e := range b.tools {
		e.Now = 0
	}
	b.tools = nil
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		e := b.entry(Tool, name, seq)
		e.Now = tools[name]
		b.tools = append(b.tools, e)
	}
}

func (b *Book) entry(k Kind, name string, seq uint64) *Entry {
	key := string(k) + "\x00" + name
	e := b.entries[key]
	if e == nil {
		e = &Entry{Kind: k, Name: name, Seq: seq}
		b.entries[key] = e
		b.Entries = append(b.Entries, e)
	}
	return e
}

// Add processes one record.
func (b *Book) Add(r event.Record) {
	before := b.talk.View()
	b.talk.Add(r)
	after := b.talk.View()
	switch e := r.Event.(type) {
	case event.MessageAdded:
		n := len(after)
		if e.Message.Role == chat.System && len(e.Tools) > 0 && b.talk.System() == e.Message.Text() {
			b.offer(e.Tools, r.Seq)
		}
		if n <= len(before) { // it belongs to a subtask
			if e.Usage != nil {
				b.Aside = b.Aside.Add(b.price(e.Model, *e.Usage))
			}
			break
		}
		if e.Message.Role == chat.Assistant && e.Usage != nil {
			b.request(r.Seq, e.Model, *e.Usage, before)
		}
		b.explain(after[n-1], r)
	case event.Spent:
		b.Aside = b.Aside.Add(b.price(e.Model, e.Usage))
	case event.ModeChanged:
		b.why = "the mode and the tools changed"
	case event.ContextReplaced:
		if last, ok := b.talk.Replaced(); ok && !slices.EqualFunc(before, after, chat.Same) { // else it belongs to a subtask
			b.drop(r.Seq, e, last)
		}
	case event.ContextRestored:
		b.why = "a summary was replaced by the original messages"
	case event.ContextRewound:
		if b.why = "the conversation was rewound"; e.Undo {
			b.why = "the rewind was undone"
		}
	}
	if s := b.talk.System(); s != b.system {
		b.describe(s, r.Seq)
	}
}

// drop records a marker and its effect.
func (b *Book) drop(seq uint64, e event.ContextReplaced, last conversation.Replacement) {
	d := Drop{Seq: seq, Done: e.Done, Before: e.TokensBefore, After: e.TokensAfter}
	if e.Reason == event.ModeSwitched {
		d.Done = "the mode changed"
	}
	d.Messages, d.Shortened = compact.Compare(last.Hidden, last.By)
	b.Drops = append(b.Drops, d)
	b.why = "conversation shortened"
}

// rulesBegin and rulesEnd mark a rule file in a system text.
const rulesBegin, rulesEnd = "\n<rules from=", "\n</rules>"

// describe splits the system text into its sources.
func (b *Book) describe(text string, seq uint64) {
	if b.system != "" {
		b.why = "the system text changed"
	}
	for _, s := range b.fixed {
		s.entry.Now = 0
	}
	own, rules := b.cutRules(text, seq)
	b.system, b.fixed = text, slices.Insert(rules, 0, share{b.entry(System, "", seq), own})
	for _, s := range b.fixed {
		s.entry.Now += s.size
	}
}

// cutRules returns the tokens of the rule files in a text, and of the text around them.
func (b *Book) cutRules(text string, seq uint64) (around int, rules []share) {
	for {
		head, tail, found := strings.Cut(text, rulesBegin)
		around += tokens.Tokens(head)
		if !found {
			return around, rules
		}
		body, after, _ := strings.Cut(tail, rulesEnd)
		name, _, _ := strings.Cut(strings.TrimPrefix(body, `"`), `"`)
		rules = append(rules, share{b.entry(Rules, sanitize.Line(name, 200), seq), tokens.Tokens(body)})
		text = after
	}
}

// explain assigns the content of a message to its sources.
func (b *Book) explain(m chat.Message, r event.Record) {
	if len(m.Parts) == 0 {
		return
	}
	var parts []share
	for _, p := range m.Parts {
		size := tokens.MessageTokens(chat.Message{Parts: []chat.Part{p}})
		var e *Entry
		switch p := p.(type) {
		case chat.Text:
			switch {
			case m.Role == chat.Assistant && printed(r):
				first, _, _ := strings.Cut(m.Text(), "\n")
				e = b.entry(Result, sanitize.Line(first, 60), r.Seq)
			case m.Role == chat.Assistant:
				e = b.entry(Reply, "", r.Seq)
			case compact.IsSummary(m):
				e = b.entry(Summary, "", r.Seq)
			default:
				around, rules := b.cutRules(string(p), r.Seq)
				parts = append(parts, rules...)
				size, e = min(size, around), b.entry(Words, "", r.Seq)
			}
		case chat.Reasoning:
			e = b.entry(Thinking, "", r.Seq)
		case chat.ToolCall:
			b.calls[p.ID] = p
			e = b.ofCall(p, r.Seq)
		case chat.ToolResult:
			e = b.ofResult(p, r.Seq)
		case chat.Image:
			e = b.entry(Result, "pictures", r.Seq)
		default:
			continue
		}
		parts = append(parts, share{e, size})
	}
	b.of[&m.Parts[0]] = parts
}

// printed reports whether a record has the output of a command of the user's own: no model wrote it.
func printed(r event.Record) bool {
	e, ok := r.Event.(event.MessageAdded)
	return ok && e.Model == "" && len(e.Blocks) > 0
}

// ofCall returns the entry of a call: the file that it is about, or other calls.
func (b *Book) ofCall(c chat.ToolCall, seq uint64) *Entry {
	if file := fileOf(c); file != "" {
		return b.entry(File, file, seq)
	}
	return b.entry(Call, "", seq)
}

func (b *Book) ofResult(res chat.ToolResult, seq uint64) *Entry {
	c, known := b.calls[res.CallID]
	if !known {
		return b.entry(Result, sanitize.Line(res.Name, 60), seq)
	}
	if file := fileOf(c); file != "" {
		return b.entry(File, file, seq)
	}
	return b.entry(Result, titleOf(c), seq)
}

// fileOf returns the one file that a call is about, or "".
func fileOf(c chat.ToolCall) string {
	var args struct {
		Path     string `json:"path"`
		FilePath string `json:"file_path"`
		Pattern  string `json:"pattern"`
		Query    string `json:"query"`
		Command  string `json:"command"`
	}
	if json.Unmarshal(c.Args, &args) != nil || args.Pattern+args.Query+args.Command != "" {
		return ""
	}
	file := args.Path
	if file == "" {
		file = args.FilePath
	}
	if file == "" || path.Base(file) == "." {
		return ""
	}
	return sanitize.Line(path.Clean(file), 200)
}

// spaces matches the white space that a title reduces to one space.
var spaces = lazy.Regexp(`\s+`)

// titleOf returns a short title of a call: its tool, and its first argument.
func titleOf(c chat.ToolCall) string {
	var args map[string]any
	_ = json.Unmarshal(c.Args, &args) // anything but an object gives no text
	for _, name := range []string{"command", "pattern", "query", "url", "path", "prompt", "description", "name", "id"} {
		if text, ok := args[name].(string); ok && text != "" {
			return sanitize.Line(c.Name+" "+spaces().ReplaceAllString(text, " "), 60)
		}
	}
	return sanitize.Line(c.Name, 60)
}

// request processes an answered request: its parts, scaled to the provider's count, and the cost of each.
func (b *Book) request(seq uint64, model string, u chat.Usage, view []chat.Message) {
	u = b.price(model, u)
	b.Total = b.Total.Add(u)
	alike := len(view) >= len(b.seen)
	for i := 0; alike && i < len(b.seen); i++ {
		alike = chat.Same(b.seen[i], view[i])
	}
	if !alike {
		b.seen, b.said, b.sum = nil, nil, 0
	}
	for _, m := range view[len(b.seen):] {
		if len(m.Parts) == 0 {
			continue
		}
		if b.of[&m.Parts[0]] == nil { // made by a marker
			b.explain(m, event.Record{Seq: seq})
		}
		for _, s := range b.of[&m.Parts[0]] {
			b.said, b.sum = append(b.said, s), b.sum+s.size
		}
	}
	sum, head := b.sum, slices.Clone(b.fixed)
	for _, t := range b.tools {
		head = append(head, share{t, t.Now})
	}
	for _, s := range head {
		sum += s.size
	}
	if left := u.In - sum; len(b.tools) == 0 && left > 0 && (b.rest == 0 || b.why != "") { // the tools are the unrecorded part
		b.rest = left
	}
	if b.rest > 0 {
		e := b.entry(Tool, "", 0)
		e.Now = b.rest
		head = slices.Insert(head, len(b.fixed), share{e, b.rest})
		sum += b.rest
	}
	b.note(seq, model, u, alike)
	b.seen = view
	one := Request{Seq: seq, Usage: u, ByKind: make(map[Kind]int)}
	b.fit = 1
	if u.In > 0 && sum > 0 {
		b.fit = float64(u.In) / float64(sum)
	}
	fresh, cheap := b.rates(model, u)
	cached := float64(u.Cached)
	all, told := 0.0, 0 // so that the parts add up to the whole
	for s := range both(head, b.said) {
		size := float64(s.size) * b.fit
		hit := min(size, cached)
		cached -= hit
		e := s.entry
		all += size
		whole := int(all+0.5) - told
		told += whole
		e.Sent += whole
		e.Cached += int(hit + 0.5)
		e.Cost += (size-hit)*fresh + hit*cheap
		if e.last != len(b.Requests)+1 {
			e.last = len(b.Requests) + 1
			e.Requests++
		}
		one.ByKind[e.Kind] += whole
	}
	b.Requests = append(b.Requests, one)
}

// both yields one list and then the other.
func both(a, b []share) iter.Seq[share] {
	return func(yield func(share) bool) {
		for _, list := range [][]share{a, b} {
			for _, s := range list {
				if !yield(s) {
					return
				}
			}
		}
	}
}

// rates returns the cost of a request's token, uncached and cached.
func (b *Book) rates(model string, u chat.Usage) (fresh, cheap float64) {
	const many = 1_000_000
	of := func(u chat.Usage) float64 { return b.price(model, u).Cost / many }
	fresh, cheap = of(chat.Usage{In: many}), of(chat.Usage{In: many, Cached: many})
	if written := u.In - u.Cached; u.Written > 0 && written > 0 {
		share := min(float64(u.Written)/float64(written), 1)
		fresh += share * (of(chat.Usage{In: many, Written: many}) - fresh)
	}
	if fresh == 0 && u.In+u.Out > 0 { // the provider reports the cost, but its prices are unknown
		fresh = u.Cost / float64(u.In+u.Out)
		cheap = fresh
	}
	return fresh, cheap
}

// leastCached is the share of the previous request that the cache must serve to count as useful.
const leastCached = 0.5

// note records whether a request broke the cache.
func (b *Book) note(seq uint64, model string, u chat.Usage, alike bool) {
	why, last := "", 0
	if n := len(b.Requests); n > 0 {
		last = b.Requests[n-1].Usage.In
	}
	b.cached = b.cached || u.Cached > 0
	switch {
	case len(b.Requests) == 0:
	case model != b.model:
		why = "another model was used"
	case !alike || b.why != "":
		if why = b.why; why == "" {
			why = "messages changed"
		}
	case b.cached && float64(u.Cached) < leastCached*float64(last):
		why = "the provider's cache expired, or is not reported"
	}
	if why != "" {
		b.Breaks = append(b.Breaks, Break{seq, why, max(u.In-u.Cached, 0)})
	}
	b.model, b.why = model, ""
}

// Done finishes the ledger: what is in the window now, and what was dropped.
func (b *Book) Done() *Book {
	for _, e := range b.Entries {
		if e.Kind != System && e.Kind != Rules && e.Kind != Tool {
			e.Now = 0
		}
	}
	for _, m := range b.talk.View() {
		if len(m.Parts) == 0 {
			continue
		}
		if b.of[&m.Parts[0]] == nil {
			b.explain(m, event.Record{})
		}
		for _, s := range b.of[&m.Parts[0]] {
			s.entry.Now += s.size
		}
	}
	b.Entries = slices.DeleteFunc(b.Entries, func(e *Entry) bool { return e.Now == 0 && e.Sent == 0 })
	for _, e := range b.Entries {
		e.Dropped = e.Now == 0
	}
	b.Fit(b.used())
	slices.SortStableFunc(b.Entries, func(x, y *Entry) int {
		if x.Now != y.Now {
			return y.Now - x.Now
		}
		return y.Sent - x.Sent
	})
	return b
}
