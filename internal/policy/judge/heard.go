package judge

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/policy/rule"
)

// These bounds limit what goes without approval to a host that the user named, in one session. When the
// user approves a call beyond them, counting restarts.
const (
	mostAddresses = 20
	mostBytes     = 2 << 10 // of paths and queries
	longestQuery  = 128     // without approval
)

// mostResults is how many results of calls are searched for the source of an address.
const mostResults = 200

// heard records the hosts mentioned in a session, and what was
// sent to them without approval. It is safe for concurrent use.
type heard struct {
	mu      sync.Mutex // guards the fields below
	hosts   map[string]chat.Origin
	sent    map[string]spent
	begun   map[string]string // the titles of running calls, by id
	results []result          // oldest first
}

type spent struct{ addresses, bytes int }

type result struct {
	call   string
	output []byte
}

func newHeard() *heard {
	return &heard{hosts: make(map[string]chat.Origin), sent: make(map[string]spent), begun: make(map[string]string)}
}

// Hear records an input: calls may fetch from hosts in what the user typed.
func (j *Judge) Hear(words chat.Words) {
	h := j.heard
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range words {
		for _, host := range rule.HostsIn(p.Text) {
			if h.hosts[host] != chat.Typed {
				h.hosts[host] = p.Origin
			}
		}
	}
}

// Observe counts what was sent to hosts according to a record, which may be from an earlier process.
func (j *Judge) Observe(r event.Record) {
	h := j.heard
	h.mu.Lock()
	defer h.mu.Unlock()
	switch e := r.Event.(type) {
	case event.ToolCallRequested:
		h.begun[e.CallID] = e.Tool + " " + e.Title
		for _, f := range e.Effects {
			switch {
			case f.Kind != event.EffectNet || e.Verdict != event.Allowed:
			case e.DecidedBy == event.ActorPolicy:
				h.spend(f.Target, queryOf(e.Title))
			default:
				delete(h.sent, rule.HostOf(f.Target))
			}
		}
	case event.ToolCallCompleted:
		h.results = append(h.results, result{h.begun[e.CallID], e.Output})
		h.results = h.results[max(0, len(h.results)-mostResults):]
		delete(h.begun, e.CallID)
	}
}

func (h *heard) spend(address string, query int) {
	host := rule.HostOf(address)
	s := h.sent[host]
	h.sent[host] = spent{s.addresses + 1, s.bytes + sizeOf(address) + query}
}

// redirected counts an address to which a host redirected a call.
func (h *heard) redirected(address string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.spend(address, 0)
}

// queryOf returns the size in bytes of the query in a call's title; the target has no query.
func queryOf(title string) int {
	_, query, _ := strings.Cut(title, "?")
	if strings.HasSuffix(title, "…") {
		return longestQuery
	}
	return len(query)
}

// sizeOf returns how many bytes of data an address can carry.
func sizeOf(address string) int {
	u, err := url.Parse(address)
	if err != nil {
		return len(address)
	}
	return len(u.EscapedPath()) + len(u.RawQuery)
}

// exceeds reports whether one more address would exceed the bounds for its host.
func (h *heard) exceeds(address string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sent[rule.HostOf(address)]
	return s.addresses >= mostAddresses || s.bytes+sizeOf(address) > mostBytes
}

func (h *heard) typed(host string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hosts[host] == chat.Typed
}

// whence describes where a host came from.
func (h *heard) whence(host string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch h.hosts[host] {
	case chat.Typed:
		return fmt.Sprintf("%d addresses of %s, or %d bytes, were fetched without approval in this session", mostAddresses, host, mostBytes)
	case chat.Pasted:
		return "the address came from pasted lines: " + host
	case chat.Stdin, chat.Line:
		return "the address came from stdin: " + host
	case chat.Attached, chat.Linked:
		return "the address came from an attached resource: " + host
	case chat.Composed:
		return "the address came from a message written by a program: " + host
	case chat.Unknown:
	}
	for _, r := range h.results {
		if bytes.Contains(bytes.ToLower(r.output), []byte(host)) {
			return "the address came from the result of a call: " + r.call
		}
	}
	return "the address was not found in this conversation: " + host
}
