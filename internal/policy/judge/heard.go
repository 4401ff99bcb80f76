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
	maxAddresses = 20
	maxBytes     = 2 << 10 // of paths and queries
	maxQuery     = 128     // without approval
)

// maxResults is how many results of calls are searched for the source of an address.
const maxResults = 200

// hostLog records the hosts mentioned in a session, and what was
// sent to them without approval. It is safe for concurrent use.
type hostLog struct {
	mu      sync.Mutex // guards the fields below
	hosts   map[string]chat.Origin
	sent    map[string]sentTotal
	running map[string]string // the titles of running calls, by id
	results []result          // oldest first
}

type sentTotal struct{ addresses, bytes int }

type result struct {
	call   string
	output []byte
}

func newHostLog() *hostLog {
	return &hostLog{hosts: make(map[string]chat.Origin), sent: make(map[string]sentTotal),
		running: make(map[string]string)}
}

// RecordInput records an input: calls may fetch from hosts in what the user typed.
func (j *Judge) RecordInput(words chat.UserText) {
	h := j.hosts
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range words {
		for _, host := range rule.HostsIn(p.Text) {
			if h.hosts[host] != chat.OriginTyped {
				h.hosts[host] = p.Origin
			}
		}
	}
}

// RecordEvent counts what was sent to hosts according to a record, which may be from an earlier process.
func (j *Judge) RecordEvent(r event.Record) {
	h := j.hosts
	h.mu.Lock()
	defer h.mu.Unlock()
	switch e := r.Event.(type) {
	case event.ToolCallRequested:
		h.running[e.CallID] = e.Tool + " " + e.Title
		for _, f := range e.Effects {
			switch {
			case f.Kind != event.EffectNet || e.Verdict != event.VerdictAllowed:
			case e.DecidedBy == event.ActorPolicy:
				h.recordSent(f.Target, querySize(e.Title))
			default:
				delete(h.sent, rule.HostOf(f.Target))
			}
		}
	case event.ToolCallCompleted:
		h.results = append(h.results, result{h.running[e.CallID], e.Output})
		h.results = h.results[max(0, len(h.results)-maxResults):]
		delete(h.running, e.CallID)
	}
}

func (h *hostLog) recordSent(address string, query int) {
	host := rule.HostOf(address)
	s := h.sent[host]
	h.sent[host] = sentTotal{s.addresses + 1, s.bytes + addressSize(address) + query}
}

// recordRedirect counts an address to which a host redirected a call.
func (h *hostLog) recordRedirect(address string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recordSent(address, 0)
}

// querySize returns the size in bytes of the query in a call's title; the target has no query.
func querySize(title string) int {
	_, query, _ := strings.Cut(title, "?")
	if strings.HasSuffix(title, "…") {
		return maxQuery
	}
	return len(query)
}

// addressSize returns how many bytes of data an address can carry.
func addressSize(address string) int {
	u, err := url.Parse(address)
	if err != nil {
		return len(address)
	}
	return len(u.EscapedPath()) + len(u.RawQuery)
}

// exceedsLimits reports whether one more address would exceed the bounds for its host.
func (h *hostLog) exceedsLimits(address string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sent[rule.HostOf(address)]
	return s.addresses >= maxAddresses || s.bytes+addressSize(address) > maxBytes
}

func (h *hostLog) isTyped(host string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hosts[host] == chat.OriginTyped
}

// describeOrigin describes where a host came from.
func (h *hostLog) describeOrigin(host string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch h.hosts[host] {
	case chat.OriginTyped:
		return fmt.Sprintf("%d addresses of %s, or %d bytes, were fetched without approval in this session", maxAddresses,
			host, maxBytes)
	case chat.OriginPasted:
		return "the address came from pasted lines: " + host
	case chat.OriginStdin, chat.OriginLine:
		return "the address came from stdin: " + host
	case chat.OriginAttached, chat.OriginLinked:
		return "the address came from an attached resource: " + host
	case chat.OriginComposed:
		return "the address came from a message written by a program: " + host
	case chat.OriginUnknown:
	}
	for _, r := range h.results {
		if bytes.Contains(bytes.ToLower(r.output), []byte(host)) {
			return "the address came from the result of a call: " + r.call
		}
	}
	return "the address was not found in this conversation: " + host
}
