// Package codesearch holds the tool that finds code by what it is about.
//
// It answers from an index of the workspace: nothing leaves the machine, a
// result is bounded in size, and what it names is there when it is named.
package codesearch

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"coder/internal/core/display"
	"coder/internal/host/codeindex"
	"coder/internal/host/workspace"
	"coder/internal/tool"
)

//go:embed search_code.md
var searchDoc string

const (
	defaultResults = 10
	maxResults     = 50
	maxQuery       = 2000     // bytes of a query
	maxText        = 32 << 10 // bytes of all snippets together
	maxTitle       = 100      // characters of a query in a title
)

type searchArgs struct {
	Query string `json:"query" also:"question text search keywords q pattern" doc:"what the code is about, in words or names"`
	Path  string `json:"path,omitzero" also:"dir directory folder file" doc:"directory or file to search, relative to the workspace; all of it if not given"`
	Limit int    `json:"limit,omitzero" also:"max_results top_k count" doc:"most results to return, 10 if not given"`
}

type searchResult struct {
	OK      bool    `json:"ok"`
	Results []place `json:"results"`
	Count   int     `json:"count"`
	Files   int     `json:"indexed_files"`
	Partial bool    `json:"partial_index,omitzero"`
	Hint    string  `json:"hint,omitzero"`
}

type place struct {
	Path    string         `json:"path"`
	Line    int            `json:"line"`
	EndLine int            `json:"end_line"`
	Symbol  string         `json:"symbol,omitzero"`
	Kind    codeindex.Kind `json:"kind"`
	Snippet string         `json:"snippet,omitzero"`
}

// SearchCode is the tool that finds code by what it is about. The index is of
// ws; whoever made it closes it. Files that hide names, if it is set, are not
// shown.
func SearchCode(ws *workspace.Workspace, index *codeindex.Index, hide func(path string) bool) tool.Tool {
	return tool.Func[searchArgs]{
		Name: "search_code", Doc: searchDoc,
		Aliases: []tool.Alias{{Dialect: tool.CoAuthor, Name: "searchCode"}, {Name: "codebase_search"}, {Name: "code_search"}, {Name: "semantic_search"}},
		Plan: func(_ context.Context, a searchArgs) (tool.Plan, error) {
			return plan(ws, a)
		},
		Do: func(ctx context.Context, a searchArgs, _ io.Writer) (tool.Result, error) {
			return search(ctx, ws, index, hide, a)
		},
	}
}

func plan(ws *workspace.Workspace, a searchArgs) (tool.Plan, error) {
	switch {
	case strings.TrimSpace(a.Query) == "":
		return tool.Plan{}, errors.New("query is empty")
	case len(a.Query) > maxQuery:
		return tool.Plan{}, fmt.Errorf("query has %d bytes, the limit is %d: a few words will do", len(a.Query), maxQuery)
	case a.Limit < 0:
		return tool.Plan{}, errors.New("limit must not be negative")
	}
	at, err := ws.Locate(a.dir())
	title := clip(a.Query)
	if at != "." {
		title += " in " + at
	}
	return tool.Plan{Title: title, Effects: []tool.Effect{{Kind: tool.Read, Target: at}}}, err
}

func (a searchArgs) dir() string {
	if a.Path == "" {
		return "."
	}
	return a.Path
}

func (a searchArgs) limit() int {
	if a.Limit == 0 {
		return defaultResults
	}
	return min(a.Limit, maxResults)
}

func search(ctx context.Context, ws *workspace.Workspace, index *codeindex.Index, hide func(string) bool, a searchArgs) (tool.Result, error) {
	at, err := ws.Locate(a.dir())
	if err != nil {
		return tool.Result{}, err
	}
	if _, err := ws.Stat(at); err != nil {
		return tool.Result{}, err
	}
	answer, err := index.Search(ctx, codeindex.Query{Text: a.Query, Under: at, Limit: a.limit()})
	if err != nil {
		return tool.Result{}, err
	}
	if hide != nil {
		answer.Hits = slices.DeleteFunc(answer.Hits, func(h codeindex.Hit) bool { return hide(h.Path) })
	}
	r := result(answer)
	return tool.Result{Value: r, Summary: tool.Count(r.Count, "result", "results") + " in " + tool.Count(r.Files, "file", "files"), Show: r.table()}, nil
}

// result puts an answer into words, with snippets as long as there is room.
func result(a codeindex.Answer) searchResult {
	r := searchResult{OK: true, Results: []place{}, Count: len(a.Hits), Files: a.Files, Partial: a.Cut}
	room := maxText
	for _, h := range a.Hits {
		p := place{Path: h.Path, Line: h.Line, EndLine: h.EndLine, Symbol: h.Symbol, Kind: h.Kind}
		if room -= len(h.Snippet); room >= 0 {
			p.Snippet = h.Snippet
		}
		r.Results = append(r.Results, p)
	}
	if r.Count == 0 {
		r.Hint = "nothing is about these words; try others, or grep for an exact text"
	}
	return r
}

func (r searchResult) table() display.Block {
	t := display.Table{Head: display.Data("place", "symbol")}
	for _, p := range r.Results {
		t.Rows = append(t.Rows, display.Data(fmt.Sprintf("%s:%d", p.Path, p.Line), p.Symbol))
	}
	return t
}

// clip makes a query fit into a title.
func clip(query string) string {
	query = strings.Join(strings.Fields(query), " ")
	if r := []rune(query); len(r) > maxTitle {
		return string(r[:maxTitle]) + "…"
	}
	return query
}
