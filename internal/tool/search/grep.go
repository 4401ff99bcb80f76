package search

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"coder/internal/core/message"
	"coder/internal/host/workspace"
	"coder/internal/tool"
)

//go:embed grep.md
var grepDoc string

const (
	defaultMatches = 200
	maxMatches     = 1000
	maxContext     = 20
	modeFiles      = "files"
	modeCount      = "count"
	maxText        = 64 << 10 // bytes of all matches
	maxLineText    = 500      // characters of one line
	maxFile        = 2 << 20  // bytes of a file that is not named
	maxNamedFile   = 16 << 20 // bytes of a named file
)

type grepArgs struct {
	Pattern    string `json:"pattern" also:"regex regexp query search"`
	Path       string `json:"path,omitzero" also:"dir directory folder file" doc:"file or directory"`
	Include    string `json:"include,omitzero" also:"glob file_pattern include_pattern" doc:"such as *.go,!*_test.go"`
	IgnoreCase bool   `json:"ignore_case,omitzero" also:"case_insensitive -i"`
	Context    int    `json:"context,omitzero" also:"-C context_lines" doc:"lines around a match"`
	Type       string `json:"type,omitzero" also:"file_type filetype" hidden:"yes" doc:"only files of a language: go, py, ts"`
	OutputMode string `json:"output_mode,omitzero" also:"mode" enum:"content|files|count|files_with_matches"`
	MaxMatches int    `json:"max_matches,omitzero" also:"limit max_results head_limit"`
}

type grepResult struct {
	OK         bool     `json:"ok"`
	Matches    []string `json:"matches"`
	Count      int      `json:"count"`
	Files      int      `json:"files"`
	Truncated  bool     `json:"truncated"`
	TooLarge   int      `json:"skipped_large,omitzero"`
	Binary     []string `json:"binary,omitempty"` // matching files that are not text
	Note       string   `json:"note,omitzero"`
	Unreadable []string `json:"unreadable,omitempty"`
}

// Grep returns the tool that finds lines by content.
func Grep(ws *workspace.Workspace, o Options) tool.Tool {
	return tool.Func[grepArgs]{
		Name: "grep", Doc: grepDoc,
		Aliases: []tool.Alias{{Dialect: tool.Sema, Name: "Grep"}, {Dialect: tool.CoAuthor, Name: "grepTool"},
			{Name: "search"}, {Name: "search_content"}, {Name: "rg"}},
		Plan: func(_ context.Context, a grepArgs) (tool.Plan, error) {
			if _, err := a.matcher(); err != nil {
				return tool.Plan{}, err
			}
			if _, err := newFileFilter(ws, cmp.Or(a.Path, "."), a.Include); err != nil {
				return tool.Plan{}, err
			}
			return searchPlan(ws, a.Pattern, cmp.Or(a.Path, "."))
		},
		Do: func(ctx context.Context, a grepArgs, _ io.Writer) (tool.Result, error) {
			s, isDir, err := a.newSearcher(ctx, ws, o)
			if err != nil {
				return tool.Result{}, err
			}
			s.run(ctx)
			if err := cmp.Or(ctx.Err(), s.namedErr); err != nil {
				return tool.Result{}, err
			}
			r := s.result()
			if r.Note = a.emptyNote(s, isDir); r.Note == "" && !s.hasFound() {
				r.Note = a.plainTextNote(ctx, s)
			}
			summary := tool.FormatCount(r.Count, "match", "matches") + " in " + tool.FormatCount(r.Files, "file", "files")
			if s.mode == modeFiles || s.mode == modeCount {
				summary = tool.FormatCount(r.Files, "file", "files")
			}
			return tool.Result{Value: r, Summary: tool.MarkPartial(summary, r.Truncated)}, nil
		},
	}
}

// newSearcher returns the search that the arguments ask for, and whether its path is a folder.
func (a grepArgs) newSearcher(ctx context.Context, ws *workspace.Workspace, o Options) (s *searcher, isDir bool,
	err error) {
	m, err := a.matcher()
	if err != nil {
		return nil, false, err
	}
	at, err := ws.Locate(cmp.Or(a.Path, "."))
	if err != nil {
		return nil, false, err
	}
	info, err := ws.Stat(at)
	if err != nil {
		return nil, false, ws.AddSuggestion(ctx, a.Path, err)
	}
	kind, err := parseType(a.Type)
	if err != nil {
		return nil, false, err
	}
	wanted, err := newFileFilter(ws, at, a.Include)
	if err != nil {
		return nil, false, err
	}
	if a.OutputMode == "files_with_matches" {
		a.OutputMode = modeFiles
	}
	s = &searcher{
		ws: ws, matcher: m, include: wanted, fileType: kind, base: at, mode: a.OutputMode, context: a.Context,
		limit: min(cmp.Or(a.MaxMatches, defaultMatches), maxMatches), maxSize: maxFile, isHidden: o.Hide,
	}
	if !info.IsDir() {
		s.maxSize = maxNamedFile
	}
	return s, info.IsDir(), nil
}

// matcher checks the arguments and returns their matcher.
func (a grepArgs) matcher() (*matcher, error) {
	switch {
	case a.Pattern == "":
		return nil, errors.New("pattern is empty")
	case a.Context < 0 || a.Context > maxContext:
		return nil, message.Errorf("context must be from 0 to %d", maxContext)
	case a.MaxMatches < 0:
		return nil, errors.New("max_matches must not be negative")
	}
	if _, err := parseType(a.Type); err != nil {
		return nil, err
	}
	return newMatcher(a.Pattern, a.IgnoreCase)
}

// emptyNote says what may be wrong with a search without results.
func (a grepArgs) emptyNote(s *searcher, dir bool) string {
	switch {
	case len(s.otherEncoding) > 0 && !s.truncated:
		return fmt.Sprintf("characters beyond ASCII are not found in files that are not UTF-8: %s; iconv -f ENCODING -t UTF-8 FILE | grep finds them", strings.Join(s.otherEncoding, ", "))
	case s.hasFound():
		return ""
	case s.matcher.dotAll:
		return "a search goes line by line: nothing in the pattern matches a line end. Search for one of the lines, with context for those around it"
	case !dir:
		return ""
	case s.fileCount == 0 && a.Include != "":
		return fmt.Sprintf("include %q names no file that is searched there", a.Include)
	case s.fileCount == 0 && a.Type != "":
		return fmt.Sprintf("no files of type %s to search there", a.Type)
	case strings.Contains(a.Pattern, `\|`):
		return `\| is a plain |; alternatives are written a|b`
	}
	return ""
}

// plainTextNote says where the pattern occurs as plain text, if it does: a search for foo(x) may mean just that.
func (a grepArgs) plainTextNote(ctx context.Context, s *searcher) string {
	quoted := regexp.QuoteMeta(a.Pattern)
	if quoted == a.Pattern {
		return ""
	}
	m, err := newMatcher(quoted, a.IgnoreCase)
	if err != nil {
		return ""
	}
	as := &searcher{ws: s.ws, matcher: m, include: s.include, fileType: s.fileType, base: s.base, limit: 1,
		maxSize: s.maxSize, isHidden: s.isHidden}
	as.run(ctx)
	if r := as.result(); len(r.Matches) > 0 {
		place := strings.SplitN(r.Matches[0], ":", 3) // its file and line
		return fmt.Sprintf("no match as a regular expression, but the literal text is in %s; escape it: %s",
			strings.Join(place[:min(len(place), 2)], ":"), quoted)
	}
	return ""
}
