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
	Prompt   Kind = "your messages"
	Reply    Kind = "the model's replies"
	Thinking Kind = "the model's thinking"
	Call     Kind = "tool calls"
	File     Kind = "file"
	Result   Kind = "result"
	Summary  Kind = "summary"
)

// Kinds lists them.
var Kinds = []Kind{System, Rules, Tool, Prompt, Reply, Thinking, Call, File, Result, Summary}

// Entry is one source of window content.
type Entry struct {
	Kind   Kind   `json:"kind"`
	Name   string `json:"name,omitempty"`
	Seq    uint64 `json:"record,omitempty"` // the first of its records
	Tokens int    `json:"now"`              // tokens in the window after the last record
	// These are its totals in all requests: how often it was sent,
	// its tokens, those from the provider's cache, and their cost.
	Requests int     `json:"requests"`
	Sent     int     `json:"sent"`
	Cached   int     `json:"cached"`
	Cost     float64 `json:"cost"`
	Dropped  bool    `json:"dropped,omitempty"` // the model no longer sees it

	lastRequest int // the last request that counted it
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
	Reason   string `json:"done,omitempty"`
	Before   int    `json:"tokens_before"`
	After    int    `json:"tokens_after"`
	Messages int    `json:"messages"` // how many the model no longer sees
	// Shortened is how many of the remaining messages became shorter.
	Shortened int `json:"shortened,omitempty"`
}

// CacheBreak is a request that did not begin with all of the previous
// one, or that did but was not served from the provider's cache.
type CacheBreak struct {
	Seq          uint64 `json:"record"` // of the reply
	Reason       string `json:"why"`
	RereadTokens int    `json:"anew"` // tokens read again
}

// Ledger is the ledger of a session.
type Ledger struct {
	Requests  []Request    `json:"requests"`
	Entries   []*Entry     `json:"entries"`
	Drops     []Drop       `json:"drops,omitempty"`
	Breaks    []CacheBreak `json:"breaks,omitempty"`
	Total     chat.Usage   `json:"total"`
	SideUsage chat.Usage   `json:"aside"` // additional usage by summaries, subtasks and replies that broke off

	messageLog   conversation.Conversation
	price        func(model string, u chat.Usage) chat.Usage
	tools        []*Entry
	toolTokens   int // tokens of the tools, if the tools are unknown
	entries      map[string]*Entry
	partShares   map[*chat.Part][]share // the parts of a message
	calls        map[string]chat.ToolCall
	system       string
	prefixShares []share
	lastMessages []chat.Message // in the last request
	lastShares   []share        // the parts of these messages
	lastTokens   int            // their tokens
	scale        float64        // ratio of the provider's token count to coder's, in the last request
	model        string
	breakReason  string // what would break the cache in the next request
	reportsCache bool   // the provider reports cached tokens
}

// share is a part of a message.
type share struct {
	entry *Entry
	size  int // approximate tokens
}

// New returns an empty ledger. price adds the cost to a model's usage.
func New(price func(model string, u chat.Usage) chat.Usage) *Ledger {
	return &Ledger{price: price, scale: 1, entries: make(map[string]*Entry), partShares: make(map[*chat.Part][]share),
		calls: make(map[string]chat.ToolCall)}
}

// setTools records which tools are advertised from now on.
func (b *Ledger) setTools(tools map[string]int, seq uint64) {
	for _, e := range b.tools {
		e.Tokens = 0
	}
	b.tools = nil
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		e := b.findEntry(Tool, name, seq)
		e.Tokens = tools[name]
		b.tools = append(b.tools, e)
	}
}

func (b *Ledger) findEntry(k Kind, name string, seq uint64) *Entry {
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
func (b *Ledger) Add(r event.Record) {
	before := b.messageLog.View()
	b.messageLog.Add(r)
	after := b.messageLog.View()
	switch e := r.Event.(type) {
	case event.MessageAdded:
		n := len(after)
		if e.Message.Role == chat.System && len(e.Tools) > 0 && b.messageLog.SystemText() == e.Message.Text() {
			b.setTools(e.Tools, r.Seq)
		}
		if n <= len(before) { // it belongs to a subtask
			if e.Usage != nil {
				b.SideUsage = b.SideUsage.Add(b.price(e.Model, *e.Usage))
			}
			break
		}
		if e.Message.Role == chat.Assistant && e.Usage != nil {
			b.recordRequest(r.Seq, e.Model, *e.Usage, before)
		}
		b.assignParts(after[n-1], r)
	case event.Spent:
		b.SideUsage = b.SideUsage.Add(b.price(e.Model, e.Usage))
	case event.ModeChanged:
		b.breakReason = "the mode and the tools changed"
	case event.ContextReplaced:
		// else it belongs to a subtask
		if last, ok := b.messageLog.LastReplacement(); ok && !slices.EqualFunc(before, after, chat.IsSame) {
			b.recordDrop(r.Seq, e, last)
		}
	case event.ContextRestored:
		b.breakReason = "a summary was replaced by the original messages"
	case event.ContextRewound:
		if b.breakReason = "the conversation was rewound"; e.IsUndo {
			b.breakReason = "the rewind was undone"
		}
	}
	if s := b.messageLog.SystemText(); s != b.system {
		b.splitSystem(s, r.Seq)
	}
}

// recordDrop records a marker and its effect.
func (b *Ledger) recordDrop(seq uint64, e event.ContextReplaced, last conversation.Replacement) {
	d := Drop{Seq: seq, Reason: e.Description, Before: e.TokensBefore, After: e.TokensAfter}
	if e.Reason == event.ReplaceModeSwitched {
		d.Reason = "the mode changed"
	}
	d.Messages, d.Shortened = compact.CompareMessages(last.Hidden, last.By)
	b.Drops = append(b.Drops, d)
	b.breakReason = "conversation shortened"
}

// rulesBegin and rulesEnd mark a rule file in a system text.
const rulesBegin, rulesEnd = "\n<rules from=", "\n</rules>"

// splitSystem splits the system text into its sources.
func (b *Ledger) splitSystem(text string, seq uint64) {
	if b.system != "" {
		b.breakReason = "the system text changed"
	}
	for _, s := range b.prefixShares {
		s.entry.Tokens = 0
	}
	own, rules := b.splitRules(text, seq)
	b.system, b.prefixShares = text, slices.Insert(rules, 0, share{b.findEntry(System, "", seq), own})
	for _, s := range b.prefixShares {
		s.entry.Tokens += s.size
	}
}

// splitRules returns the tokens of the rule files in a text, and of the text around them.
func (b *Ledger) splitRules(text string, seq uint64) (around int, rules []share) {
	for {
		head, tail, found := strings.Cut(text, rulesBegin)
		around += tokens.EstimateTokens(head)
		if !found {
			return around, rules
		}
		body, after, _ := strings.Cut(tail, rulesEnd)
		name, _, _ := strings.Cut(strings.TrimPrefix(body, `"`), `"`)
		rules = append(rules, share{b.findEntry(Rules, sanitize.Line(name, 200), seq), tokens.EstimateTokens(body)})
		text = after
	}
}

// assignParts assigns the content of a message to its sources.
func (b *Ledger) assignParts(m chat.Message, r event.Record) {
	if len(m.Parts) == 0 {
		return
	}
	var parts []share
	for _, p := range m.Parts {
		size := tokens.EstimateMessageTokens(chat.Message{Parts: []chat.Part{p}})
		var e *Entry
		switch p := p.(type) {
		case chat.Text:
			switch {
			case m.Role == chat.Assistant && isCommandOutput(r):
				first, _, _ := strings.Cut(m.Text(), "\n")
				e = b.findEntry(Result, sanitize.Line(first, 60), r.Seq)
			case m.Role == chat.Assistant:
				e = b.findEntry(Reply, "", r.Seq)
			case compact.IsSummary(m):
				e = b.findEntry(Summary, "", r.Seq)
			default:
				around, rules := b.splitRules(string(p), r.Seq)
				parts = append(parts, rules...)
				size, e = min(size, around), b.findEntry(Prompt, "", r.Seq)
			}
		case chat.Reasoning:
			e = b.findEntry(Thinking, "", r.Seq)
		case chat.ToolCall:
			b.calls[p.ID] = p
			e = b.callEntry(p, r.Seq)
		case chat.ToolResult:
			e = b.resultEntry(p, r.Seq)
		case chat.Image:
			e = b.findEntry(Result, "pictures", r.Seq)
		default:
			continue
		}
		parts = append(parts, share{e, size})
	}
	b.partShares[&m.Parts[0]] = parts
}

// isCommandOutput reports whether a record has the output of a command of the user's own: no model wrote it.
func isCommandOutput(r event.Record) bool {
	e, ok := r.Event.(event.MessageAdded)
	return ok && e.Model == "" && len(e.Blocks) > 0
}

// callEntry returns the entry of a call: the file that it is about, or other calls.
func (b *Ledger) callEntry(c chat.ToolCall, seq uint64) *Entry {
	if file := callFile(c); file != "" {
		return b.findEntry(File, file, seq)
	}
	return b.findEntry(Call, "", seq)
}

func (b *Ledger) resultEntry(res chat.ToolResult, seq uint64) *Entry {
	c, known := b.calls[res.CallID]
	if !known {
		return b.findEntry(Result, sanitize.Line(res.Name, 60), seq)
	}
	if file := callFile(c); file != "" {
		return b.findEntry(File, file, seq)
	}
	return b.findEntry(Result, callTitle(c), seq)
}

// callFile returns the one file that a call is about, or "".
func callFile(c chat.ToolCall) string {
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

// whitespace matches the white space that a title reduces to one space.
var whitespace = lazy.Regexp(`\s+`)

// callTitle returns a short title of a call: its tool, and its first argument.
func callTitle(c chat.ToolCall) string {
	var args map[string]any
	_ = json.Unmarshal(c.Args, &args) // anything but an object gives no text
	for _, name := range []string{"command", "pattern", "query", "url", "path", "prompt", "description", "name", "id"} {
		if text, ok := args[name].(string); ok && text != "" {
			return sanitize.Line(c.Name+" "+whitespace().ReplaceAllString(text, " "), 60)
		}
	}
	return sanitize.Line(c.Name, 60)
}

// recordRequest processes an answered request: its parts, scaled to the provider's count, and the cost of each.
func (b *Ledger) recordRequest(seq uint64, model string, u chat.Usage, view []chat.Message) {
	u = b.price(model, u)
	b.Total = b.Total.Add(u)
	alike := len(view) >= len(b.lastMessages)
	for i := 0; alike && i < len(b.lastMessages); i++ {
		alike = chat.IsSame(b.lastMessages[i], view[i])
	}
	if !alike {
		b.lastMessages, b.lastShares, b.lastTokens = nil, nil, 0
	}
	for _, m := range view[len(b.lastMessages):] {
		if len(m.Parts) == 0 {
			continue
		}
		if b.partShares[&m.Parts[0]] == nil { // made by a marker
			b.assignParts(m, event.Record{Seq: seq})
		}
		for _, s := range b.partShares[&m.Parts[0]] {
			b.lastShares, b.lastTokens = append(b.lastShares, s), b.lastTokens+s.size
		}
	}
	sum, head := b.lastTokens, slices.Clone(b.prefixShares)
	for _, t := range b.tools {
		head = append(head, share{t, t.Tokens})
	}
	for _, s := range head {
		sum += s.size
	}
	// the tools are the unrecorded part
	if left := u.In - sum; len(b.tools) == 0 && left > 0 && (b.toolTokens == 0 || b.breakReason != "") {
		b.toolTokens = left
	}
	if b.toolTokens > 0 {
		e := b.findEntry(Tool, "", 0)
		e.Tokens = b.toolTokens
		head = slices.Insert(head, len(b.prefixShares), share{e, b.toolTokens})
		sum += b.toolTokens
	}
	b.recordBreak(seq, model, u, alike)
	b.lastMessages = view
	one := Request{Seq: seq, Usage: u, ByKind: make(map[Kind]int)}
	b.scale = 1
	if u.In > 0 && sum > 0 {
		b.scale = float64(u.In) / float64(sum)
	}
	fresh, cheap := b.tokenRates(model, u)
	cached := float64(u.Cached)
	all, told := 0.0, 0 // so that the parts add up to the whole
	for s := range concat(head, b.lastShares) {
		size := float64(s.size) * b.scale
		hit := min(size, cached)
		cached -= hit
		e := s.entry
		all += size
		whole := int(all+0.5) - told
		told += whole
		e.Sent += whole
		e.Cached += int(hit + 0.5)
		e.Cost += (size-hit)*fresh + hit*cheap
		if e.lastRequest != len(b.Requests)+1 {
			e.lastRequest = len(b.Requests) + 1
			e.Requests++
		}
		one.ByKind[e.Kind] += whole
	}
	b.Requests = append(b.Requests, one)
}

// concat yields one list and then the other.
func concat(a, b []share) iter.Seq[share] {
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

// tokenRates returns the cost of a request's token, uncached and cached.
func (b *Ledger) tokenRates(model string, u chat.Usage) (fresh, cheap float64) {
	const many = 1_000_000
	of := func(u chat.Usage) float64 { return b.price(model, u).Cost / many }
	fresh, cheap = of(chat.Usage{In: many}), of(chat.Usage{In: many, Cached: many})
	if written := u.In - u.Cached; u.CacheWritten > 0 && written > 0 {
		share := min(float64(u.CacheWritten)/float64(written), 1)
		fresh += share * (of(chat.Usage{In: many, CacheWritten: many}) - fresh)
	}
	if fresh == 0 && u.In+u.Out > 0 { // the provider reports the cost, but its prices are unknown
		fresh = u.Cost / float64(u.In+u.Out)
		cheap = fresh
	}
	return fresh, cheap
}

// minCachedShare is the share of the previous request that the cache must serve to count as useful.
const minCachedShare = 0.5

// recordBreak records whether a request broke the cache.
func (b *Ledger) recordBreak(seq uint64, model string, u chat.Usage, alike bool) {
	why, last := "", 0
	if n := len(b.Requests); n > 0 {
		last = b.Requests[n-1].Usage.In
	}
	b.reportsCache = b.reportsCache || u.Cached > 0
	switch {
	case len(b.Requests) == 0:
	case model != b.model:
		why = "another model was used"
	case !alike || b.breakReason != "":
		if why = b.breakReason; why == "" {
			why = "messages changed"
		}
	case b.reportsCache && float64(u.Cached) < minCachedShare*float64(last):
		why = "the provider's cache expired, or is not reported"
	}
	if why != "" {
		b.Breaks = append(b.Breaks, CacheBreak{seq, why, max(u.In-u.Cached, 0)})
	}
	b.model, b.breakReason = model, ""
}

// Finish finishes the ledger: what is in the window now, and what was dropped.
func (b *Ledger) Finish() *Ledger {
	for _, e := range b.Entries {
		if e.Kind != System && e.Kind != Rules && e.Kind != Tool {
			e.Tokens = 0
		}
	}
	for _, m := range b.messageLog.View() {
		if len(m.Parts) == 0 {
			continue
		}
		if b.partShares[&m.Parts[0]] == nil {
			b.assignParts(m, event.Record{})
		}
		for _, s := range b.partShares[&m.Parts[0]] {
			s.entry.Tokens += s.size
		}
	}
	b.Entries = slices.DeleteFunc(b.Entries, func(e *Entry) bool { return e.Tokens == 0 && e.Sent == 0 })
	for _, e := range b.Entries {
		e.Dropped = e.Tokens == 0
	}
	b.Scale(b.estimateNext())
	slices.SortStableFunc(b.Entries, func(x, y *Entry) int {
		if x.Tokens != y.Tokens {
			return y.Tokens - x.Tokens
		}
		return y.Sent - x.Sent
	})
	return b
}
