package mcp

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"coder/internal/core/clip"
	"coder/internal/core/display"
	"coder/internal/tool"
)

// roomForSpecs limits the bytes that descriptions of servers' tools
// add to every request. The model finds the other tools by search.
const roomForSpecs = 6 << 10

// SearchTool is the name of the tool that finds other tools.
const SearchTool = "tool_search"

// advertised tracks which of the servers' tools the model knows, in order of advertising. Tools are
// only ever added, so that the start of a request stays the same.
type advertised struct {
	mu         sync.Mutex // guards the fields below
	generation int
	order      []string        // names of tools
	known      map[string]bool // names of tools already considered for advertising
	used       int             // bytes
	search     bool            // some tools must be searched for
	at         int             // position of the search tool in order
}

// changed records that the servers' tools have changed.
func (s *advertised) changed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation++
}

func (s *advertised) isLoaded(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.order, name)
}

// load advertises more tools from the next step on.
func (s *advertised) load(names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if !slices.Contains(s.order, name) {
			s.order = append(s.order, name)
			s.generation++
		}
	}
}

// Tools returns the tools of all connected servers, and the generation for their set: first the
// advertised ones in order of advertising, then the others, which can be called but are not advertised.
func (h *Host) Tools() (all []tool.Tool, generation int) {
	h.advertised.mu.Lock()
	defer h.advertised.mu.Unlock()
	s := &h.advertised
	if s.generation == 0 {
		return nil, 0
	}
	there := make(map[string]*remote)
	for _, p := range h.peers {
		p.mu.Lock()
		tools := p.tools
		p.mu.Unlock()
		for _, t := range tools {
			there[t.spec.Name] = t
		}
		s.place(p, tools)
	}
	for i, name := range s.order {
		if s.search && i == s.at {
			all = append(all, h.searchTool())
		}
		if t, ok := there[name]; ok {
			all = append(all, t)
			delete(there, name)
		}
	}
	if s.search && s.at == len(s.order) {
		all = append(all, h.searchTool())
	}
	for _, t := range gather(h, func(p *peer) []*remote { return p.tools }) {
		if _, hidden := there[t.spec.Name]; hidden {
			all = append(all, unlisted{t})
		}
	}
	return all, s.generation
}

// place advertises a server's new tools if there is room: all of them or none.
func (s *advertised) place(p *peer, tools []*remote) {
	if s.known == nil {
		s.known = make(map[string]bool)
	}
	need := 0
	var fresh []string
	for _, t := range tools {
		if name := t.spec.Name; !s.known[name] {
			s.known[name] = true
			fresh = append(fresh, name)
			need += len(name) + len(t.spec.Doc) + len(t.spec.Schema)
		}
	}
	if s.used+need > roomForSpecs && !p.AlwaysLoad {
		if !s.search {
			s.search, s.at = true, len(s.order)
		}
		return
	}
	s.used += need
	s.order = append(s.order, fresh...)
}

// unlisted is a tool that can be called but is not advertised.
type unlisted struct{ *remote }

// Spec returns the tool's spec, marked as unlisted.
func (u unlisted) Spec() tool.Spec {
	s := u.remote.Spec()
	s.Unlisted = true
	return s
}

//go:embed tool_search.md
var searchDoc string

type searchArgs struct {
	Query string `json:"query" also:"keywords q name names"`
}

// maxFound limits how many tools one search finds.
const maxFound = 10

// searchTool returns the tool by which the model finds servers' tools.
func (h *Host) searchTool() tool.Tool {
	return tool.Func[searchArgs]{
		Name: SearchTool, Doc: strings.TrimSpace(searchDoc) + "\n" + h.stock(),
		Aliases: []tool.Alias{{Name: "ToolSearch"}},
		Plan: func(_ context.Context, a searchArgs) (tool.Plan, error) {
			if strings.TrimSpace(a.Query) == "" {
				return tool.Plan{}, fmt.Errorf("%s: the query is empty", SearchTool)
			}
			return tool.Plan{Title: oneLine(a.Query), Effects: []tool.Effect{{Kind: tool.Note, Target: "tools"}}}, nil
		},
		Do: func(_ context.Context, a searchArgs, _ io.Writer) (tool.Result, error) { return h.find(a.Query), nil },
	}
}

// stock describes briefly what can be searched for.
func (h *Host) stock() string {
	var parts []string
	for _, p := range h.peers {
		p.mu.Lock()
		n := len(p.tools)
		p.mu.Unlock()
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s (%d)", Clean(p.Name), n))
		}
	}
	return clip.Text("Servers and how many tools they have: "+strings.Join(parts, ", "), 300)
}

// found is a search result for the model.
type found struct {
	OK    bool        `json:"ok"`
	Tools []foundTool `json:"tools"`
	Note  string      `json:"note"`
}

type foundTool struct {
	Name string `json:"name"`
	Doc  string `json:"description"`
}

// find searches tools by the words of a query, or by name, and advertises those it finds.
func (h *Host) find(query string) tool.Result {
	all := gather(h, func(p *peer) []*remote { return p.tools })
	hits := named(all, query)
	if list, ok := strings.CutPrefix(strings.TrimSpace(query), "select:"); !ok || len(hits) == 0 {
		hits = append(hits, matching(all, strings.ReplaceAll(list, ",", " "))...)
	}
	v := found{OK: true, Tools: []foundTool{}, Note: "these can be called now"}
	var names []string
	for _, t := range hits {
		if len(names) < maxFound && !slices.Contains(names, t.spec.Name) {
			names = append(names, t.spec.Name)
			v.Tools = append(v.Tools, foundTool{t.spec.Name, clip.Text(t.spec.Doc, 300)})
		}
	}
	h.advertised.load(names)
	if len(names) == 0 {
		v.Note = "nothing was found; try other words, or one word"
	}
	return tool.Result{Value: v, Summary: tool.Count(len(names), "tool", "tools"), Show: display.Text(strings.Join(names, "\n"))}
}

// named returns the tools that a query names, in full or by the server's own name.
func named(all []*remote, query string) (hits []*remote) {
	list := strings.TrimPrefix(strings.TrimSpace(query), "select:")
	for name := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' || r == ' ' }) {
		for _, t := range all {
			if strings.EqualFold(name, t.spec.Name) || strings.EqualFold(name, t.name) {
				hits = append(hits, t)
			}
		}
	}
	return hits
}

// matching returns the tools that match words, best first: a
// match in the name counts more than one in the description.
func matching(all []*remote, query string) []*remote {
	type hit struct {
		*remote
		score int
	}
	var hits []hit
	words := strings.FieldsFunc(strings.ToLower(query), func(r rune) bool { return r == ' ' || r == '+' || r == '_' || r == '"' })
	for _, t := range all {
		score := 0
		name, doc := strings.ToLower(t.spec.Name), strings.ToLower(t.spec.Doc)
		for _, w := range words {
			if strings.Contains(name, w) {
				score += 3
			} else if strings.Contains(doc, w) {
				score++
			}
		}
		if score > 0 {
			hits = append(hits, hit{t, score})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return b.score - a.score })
	var list []*remote
	for _, h := range hits {
		list = append(list, h.remote)
	}
	return list
}
