// Package codesearch has the tool that finds code by topic.
//
// It answers from an index of the workspace: nothing leaves the machine, the size of a result is
// limited, and everything it names exists at that time.
package codesearch

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"coder/internal/core/display"
	"coder/internal/core/message"
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
	maxText        = 32 << 10 // bytes of all snippets
	maxTitle       = 100      // characters of a query in a title
)

type searchArgs struct {
	Query string `json:"query" also:"question text search keywords q pattern" doc:"words or names"`
	Path  string `json:"path,omitzero" also:"dir directory folder file"`
	Limit int    `json:"limit,omitzero" also:"max_results top_k count" hidden:"yes"`
}

type searchResult struct {
	OK      bool        `json:"ok"`
	Results []codeMatch `json:"results"`
	Count   int         `json:"count"`
	Files   int         `json:"indexed_files"`
	Partial bool        `json:"partial_index,omitzero"`
	Hint    string      `json:"hint,omitzero"`
}

type codeMatch struct {
	Path    string         `json:"path"`
	Line    int            `json:"line"`
	EndLine int            `json:"end_line"`
	Symbol  string         `json:"symbol,omitzero"`
	Kind    codeindex.Kind `json:"kind"`
	Snippet string         `json:"snippet,omitzero"`
}

// SearchCode returns the tool that finds code by topic. The index is of ws; its creator closes it.
// Files for which hide, if set, is true are not shown.
func SearchCode(ws *workspace.Workspace, index *codeindex.Index, hide func(path string) bool) tool.Tool {
	return tool.Func[searchArgs]{
		Name: "search_code", Doc: searchDoc,
		Aliases: []tool.Alias{{Dialect: tool.CoAuthor, Name: "searchCode"}, {Name: "codebase_search"}, {Name: "code_search"},
			{Name: "semantic_search"}},
		Plan: func(_ context.Context, a searchArgs) (tool.Plan, error) {
			switch {
			case strings.TrimSpace(a.Query) == "":
				return tool.Plan{}, errors.New("query is empty")
			case len(a.Query) > maxQuery:
				return tool.Plan{}, message.Errorf("query has %d bytes, the limit is %d: a few words are enough",
					len(a.Query),
					maxQuery)
			case a.Limit < 0:
				return tool.Plan{}, errors.New("limit must not be negative")
			}
			at, err := ws.Locate(cmp.Or(a.Path, "."))
			title := strings.Join(strings.Fields(a.Query), " ")
			if r := []rune(title); len(r) > maxTitle {
				title = string(r[:maxTitle]) + "…"
			}
			if at != "." {
				title += " (" + at + ")"
			}
			return tool.Plan{Title: title, Effects: []tool.Effect{{Kind: tool.Read, Target: at}}}, err
		},
		Do: func(ctx context.Context, a searchArgs, _ io.Writer) (tool.Result, error) {
			at, err := ws.Locate(cmp.Or(a.Path, "."))
			if err != nil {
				return tool.Result{}, err
			}
			if _, err := ws.Stat(at); err != nil {
				return tool.Result{}, err
			}
			answer, err := index.Search(ctx, codeindex.Query{Text: a.Query, PathPrefix: at,
				Limit: min(cmp.Or(a.Limit, defaultResults), maxResults)})
			if err != nil {
				return tool.Result{}, err
			}
			if hide != nil {
				answer.Hits = slices.DeleteFunc(answer.Hits, func(h codeindex.Hit) bool { return hide(h.Path) })
			}
			r := searchResult{OK: true, Results: []codeMatch{}, Count: len(answer.Hits), Files: answer.Files,
				Partial: answer.Truncated}
			t := display.Table{Header: display.TextCells("place", "symbol")}
			room, in := maxText, make(map[string]bool)
			for _, h := range answer.Hits {
				in[h.Path] = true
				p := codeMatch{Path: h.Path, Line: h.Line, EndLine: h.EndLine, Symbol: h.Symbol, Kind: h.Kind}
				if room -= len(h.Snippet); room >= 0 {
					p.Snippet = h.Snippet
				}
				r.Results = append(r.Results, p)
				t.Rows = append(t.Rows, display.DataCells(fmt.Sprintf("%s:%d", p.Path, p.Line), p.Symbol))
			}
			var show display.Block = t
			if r.Count == 0 {
				show = nil
				r.Hint = "nothing is about these words; try others, or grep for an exact text"
			}
			return tool.Result{Value: r, Summary: tool.FormatCount(r.Count, "result", "results") + " in " +
				tool.FormatCount(len(in), "file", "files"), Show: show}, nil
		},
	}
}
