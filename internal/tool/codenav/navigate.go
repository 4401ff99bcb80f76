//go:build unix

package codenav

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"io"
	"slices"
	"strings"

	"coder/internal/host/lsp"
	"coder/internal/host/workspace"
	"coder/internal/tool"
)

//go:embed definition.md
var definitionDoc string

//go:embed references.md
var referencesDoc string

//go:embed hover.md
var hoverDoc string

// maxHover is how many bytes of documentation are returned.
const maxHover = 16 << 10

// finder asks a server about a place.
type finder func(ctx context.Context, name string, text []byte, at lsp.Position) ([]lsp.Location, error)

type definitionResult struct {
	OK          bool     `json:"ok"`
	At          string   `json:"at"`
	Definitions []string `json:"definitions"`
	Truncated   bool     `json:"truncated"`
}

// Definition returns the tool that finds where a symbol is defined.
func Definition(ws *workspace.Workspace, pool *lsp.Pool) tool.Tool {
	return placeTool(ws, "lsp_definition", definitionDoc, []string{"goto_definition", "go_to_definition"},
		func(ctx context.Context, a placeArgs) (tool.Result, error) {
			f, err := findLocations(ctx, ws, a, pool.Definition)
			if err != nil {
				return tool.Result{}, err
			}
			return tool.Result{
				Value:   definitionResult{OK: true, At: f.at, Definitions: f.lines, Truncated: f.truncated},
				Summary: tool.FormatCount(f.count, "definition", "definitions"),
			}, nil
		})
}

type referencesResult struct {
	OK         bool     `json:"ok"`
	At         string   `json:"at"`
	References []string `json:"references"`
	Count      int      `json:"count"`
	Truncated  bool     `json:"truncated"`
}

// References returns the tool that finds the uses of a symbol.
func References(ws *workspace.Workspace, pool *lsp.Pool) tool.Tool {
	return placeTool(ws, "lsp_references", referencesDoc, []string{"find_references"},
		func(ctx context.Context, a placeArgs) (tool.Result, error) {
			f, err := findLocations(ctx, ws, a, pool.References)
			if err != nil {
				return tool.Result{}, err
			}
			return tool.Result{
				Value:   referencesResult{OK: true, At: f.at, References: f.lines, Count: f.count, Truncated: f.truncated},
				Summary: tool.FormatCount(f.count, "reference", "references"),
			}, nil
		})
}

type hoverResult struct {
	OK        bool   `json:"ok"`
	At        string `json:"at"`
	Text      string `json:"text"`
	Truncated bool   `json:"truncated,omitzero"`
	Note      string `json:"note,omitzero"`
}

// noResult is the answer if a server has none.
const noResult = "no symbol at this place, or none the language server knows"

// Hover returns the tool that describes a symbol.
func Hover(ws *workspace.Workspace, pool *lsp.Pool) tool.Tool {
	return placeTool(ws, "lsp_hover", hoverDoc, nil,
		func(ctx context.Context, a placeArgs) (tool.Result, error) {
			var text string
			at, err := tryCandidates(ctx, ws, a, func(ctx context.Context, name string, content []byte, at lsp.Position) (bool,
				error) {
				var err error
				text, err = pool.Hover(ctx, name, content, at)
				return text != "", err
			})
			if err != nil {
				return tool.Result{}, err
			}
			short := strings.ToValidUTF8(text[:min(len(text), maxHover)], "")
			note, summary := "", "nothing"
			if strings.TrimSpace(short) == "" {
				note = noResult
			}
			for line := range strings.Lines(short) { // the first meaningful line of the Markdown
				if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "```") {
					summary = truncateLine(line)
					break
				}
			}
			return tool.Result{
				Value:   hoverResult{OK: true, At: at, Text: short, Truncated: len(text) > maxHover, Note: note},
				Summary: summary,
			}, nil
		})
}

// placeTool returns a tool that describes a place in a file.
func placeTool(ws *workspace.Workspace, name, doc string, others []string, do func(context.Context, placeArgs) (tool.Result, error)) tool.Tool {
	var aliases []tool.Alias
	for _, other := range others {
		aliases = append(aliases, tool.Alias{Name: other})
	}
	return tool.Func[placeArgs]{
		Name: name, Doc: doc, Aliases: aliases,
		Plan: func(_ context.Context, a placeArgs) (tool.Plan, error) {
			if err := a.check(); err != nil {
				return tool.Plan{}, err
			}
			return readPlan(ws, a.Path, a.title())
		},
		Do: func(ctx context.Context, a placeArgs, _ io.Writer) (tool.Result, error) { return do(ctx, a) },
	}
}

// findResult has the places from a server, as lines of a result.
type findResult struct {
	at        string
	lines     []string
	count     int
	truncated bool
}

// findLocations asks about the place that the arguments mean, and sorts the answer.
func findLocations(ctx context.Context, ws *workspace.Workspace, a placeArgs, ask finder) (findResult, error) {
	var list []lsp.Location
	at, err := tryCandidates(ctx, ws, a, func(ctx context.Context, name string, text []byte, at lsp.Position) (bool, error) {
		var err error
		list, err = ask(ctx, name, text, at)
		return len(list) > 0, err
	})
	if err != nil {
		return findResult{}, err
	}
	slices.SortFunc(list, compareLocations)
	list = slices.CompactFunc(list, func(a, b lsp.Location) bool { return compareLocations(a, b) == 0 })
	src := &sourceReader{ws: ws}
	var lines []string
	for _, l := range list[:min(len(list), maxLocations+1)] {
		lines = append(lines, src.formatWithLine(l))
	}
	f := findResult{at: at, count: len(list)}
	f.lines, f.truncated = limitLines(lines)
	return f, nil
}

func compareLocations(a, b lsp.Location) int {
	return cmp.Or(
		cmp.Compare(a.Path, b.Path), cmp.Compare(a.Range.Start.Line, b.Range.Start.Line),
		cmp.Compare(a.Range.Start.Character, b.Range.Start.Character),
	)
}

// tryCandidates asks about the places that the arguments may mean until there is an answer. It returns the
// answered place, or the likeliest one. If a server refuses one place, try asks about the next: some
// servers refuse if a place has no symbol.
func tryCandidates(ctx context.Context, ws *workspace.Workspace, a placeArgs, ask func(context.Context, string, []byte, lsp.Position) (bool, error)) (string, error) {
	name, err := ws.Locate(a.Path)
	if err != nil {
		return "", err
	}
	text, _, err := ws.ReadFile(name, maxFile)
	if err != nil {
		return "", err
	}
	src := &sourceReader{ws: ws}
	places, err := a.candidates(src.add(name, text))
	if err != nil {
		return "", err
	}
	shown := func(at lsp.Position) string {
		return src.formatWithLine(lsp.Location{Path: name, Range: lsp.Range{Start: at}})
	}
	for _, at := range places {
		var ok bool
		if ok, err = ask(ctx, name, text, at); ok {
			return shown(at), nil
		}
		if err != nil && !errors.Is(err, lsp.ErrRefused) {
			return "", err
		}
	}
	return shown(places[0]), err
}
