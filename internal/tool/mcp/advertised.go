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
	"coder/internal/core/message"
	"coder/internal/tool"
)

// maxSpecBytes limits the bytes that descriptions of servers' tools
// add to every request. The model finds the other tools by search.
const maxSpecBytes = 6 << 10

// SearchTool is the name of the tool that finds other tools.
const SearchTool = "tool_search"

// advertisedTools tracks which of the servers' tools the model knows, in order of advertising. Tools are
// only ever added, so that the start of a request stays the same.
type advertisedTools struct {
	mu          sync.Mutex // guards the fields below
	generation  int
	order       []string        // names of tools
	considered  map[string]bool // names of tools already considered for advertising
	usedBytes   int             // bytes
	needsSearch bool            // some tools must be searched for
	searchIndex int             // position of the search tool in order
}

// markChanged records that the servers' tools have changed.
func (s *advertisedTools) markChanged() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation++
}

func (s *advertisedTools) isLoaded(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.order, name)
}

// load advertises more tools from the next step on.
func (s *advertisedTools) load(names []string) {
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
	there := make(map[string]*remoteTool)
	for _, p := range h.peers {
		p.mu.Lock()
		tools := p.tools
		p.mu.Unlock()
		for _, t := range tools {
			there[t.spec.Name] = t
		}
		s.addServer(p, tools)
	}
	for i, name := range s.order {
		if s.needsSearch && i == s.searchIndex {
			all = append(all, h.searchTool())
		}
		if t, ok := there[name]; ok {
			all = append(all, t)
			delete(there, name)
		}
	}
	if s.needsSearch && s.searchIndex == len(s.order) {
		all = append(all, h.searchTool())
	}
	for _, t := range collect(h, func(p *peer) []*remoteTool { return p.tools }) {
		if _, hidden := there[t.spec.Name]; hidden {
			all = append(all, unlistedTool{t})
		}
	}
	return all, s.generation
}

// addServer advertises a server's new tools if there is room: all of them or none.
func (s *advertisedTools) addServer(p *peer, tools []*remoteTool) {
	if s.considered == nil {
		s.considered = make(map[string]bool)
	}
	need := 0
	var fresh []string
	for _, t := range tools {
		if name := t.spec.Name; !s.considered[name] {
			s.considered[name] = true
			fresh = append(fresh, name)
			need += len(name) + len(t.spec.Doc) + len(t.spec.Schema)
		}
	}
	if s.usedBytes+need > maxSpecBytes && !p.AlwaysLoad {
		if !s.needsSearch {
			s.needsSearch, s.searchIndex = true, len(s.order)
		}
		return
	}
	s.usedBytes += need
	s.order = append(s.order, fresh...)
}

// unlistedTool is a tool that can be called but is not advertised.
type unlistedTool struct{ *remoteTool }

// Spec returns the tool's spec, marked as unlisted.
func (u unlistedTool) Spec() tool.Spec {
	s := u.remoteTool.Spec()
	s.Unlisted = true
	return s
}

//go:embed tool_search.md
var searchDoc string

type searchArgs struct {
	Query string `json:"query" also:"keywords q name names"`
}

// maxMatches limits how many tools one search finds.
const maxMatches = 10

// searchTool returns the tool by which the model finds servers' tools.
func (h *Host) searchTool() tool.Tool {
	return tool.Func[searchArgs]{
		Name: SearchTool, Doc: strings.TrimSpace(searchDoc) + "\n" + h.searchSummary(),
		Aliases: []tool.Alias{{Name: "ToolSearch"}},
		Plan: func(_ context.Context, a searchArgs) (tool.Plan, error) {
			if strings.TrimSpace(a.Query) == "" {
				return tool.Plan{}, message.Errorf("%s: the query is empty", SearchTool)
			}
			return tool.Plan{Title: oneLine(a.Query), Effects: []tool.Effect{{Kind: tool.Note, Target: "tools"}}}, nil
		},
		Do: func(_ context.Context, a searchArgs, _ io.Writer) (tool.Result, error) {
			return h.searchTools(a.Query), nil
		},
	}
}

// searchSummary describes briefly what can be searched for.
func (h *Host) searchSummary() string {
	var parts []string
	for _, p := range h.peers {
		p.mu.Lock()
		n := len(p.tools)
		p.mu.Unlock()
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s (%d)", CleanName(p.Name), n))
		}
	}
	return clip.Truncate("Servers and how many tools they have: "+strings.Join(parts, ", "), 300)
}

// searchResult is a search result for the model.
type searchResult struct {
	OK    bool        `json:"ok"`
	Tools []foundTool `json:"tools"`
	Note  string      `json:"note"`
}

type foundTool struct {
	Name string `json:"name"`
	Doc  string `json:"description"`
}

// searchTools searches tools by the words of a query, or by name, and advertises those it finds.
func (h *Host) searchTools(query string) tool.Result {
	all := collect(h, func(p *peer) []*remoteTool { return p.tools })
	hits := findByName(all, query)
	if list, ok := strings.CutPrefix(strings.TrimSpace(query), "select:"); !ok || len(hits) == 0 {
		hits = append(hits, findByWords(all, strings.ReplaceAll(list, ",", " "))...)
	}
	v := searchResult{OK: true, Tools: []foundTool{}, Note: "these can be called now"}
	var names []string
	for _, t := range hits {
		if len(names) < maxMatches && !slices.Contains(names, t.spec.Name) {
			names = append(names, t.spec.Name)
			v.Tools = append(v.Tools, foundTool{t.spec.Name, clip.Truncate(t.spec.Doc, 300)})
		}
	}
	h.advertised.load(names)
	if len(names) == 0 {
		v.Note = "nothing was found; try other words, or one word"
	}
	return tool.Result{Value: v, Summary: tool.FormatCount(len(names), "tool", "tools"),
		Show: display.Text(strings.Join(names, "\n"))}
}

// findByName returns the tools that a query names, in full or by the server's own name.
func findByName(all []*remoteTool, query string) (hits []*remoteTool) {
	list := strings.TrimPrefix(strings.TrimSpace(query), "select:")
	for name := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' || r == ' ' }) {
		for _, t := range all {
			if strings.EqualFold(name, t.spec.Name) || strings.EqualFold(name, t.remoteName) {
				hits = append(hits, t)
			}
		}
	}
	return hits
}

// findByWords returns the tools that match words, best first: a
// match in the name counts more than one in the description.
func findByWords(all []*remoteTool, query string) []*remoteTool {
	type hit struct {
		*remoteTool
		score int
	}
	var hits []hit
	words := strings.FieldsFunc(strings.ToLower(query), func(r rune) bool {
		return r == ' ' || r == '+' || r == '_' ||
			r == '"'
	})
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
	var list []*remoteTool
	for _, h := range hits {
		list = append(list, h.remoteTool)
	}
	return list
}
