package search

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"coder/internal/core/message"
	"coder/internal/host/workspace"
	"coder/internal/tool"

	"github.com/bmatcuk/doublestar/v4"
)

//go:embed glob.md
var globDoc string

const (
	defaultFiles = 200
	maxFiles     = 1000
	maxPattern   = 1000    // bytes of a pattern
	maxBraces    = 4       // each makes matching slower
	maxCommas    = 64      // the same
	maxCompared  = 200_000 // matches compared by age
)

type globArgs struct {
	Pattern string `json:"pattern" also:"glob glob_pattern query"`
	Path    string `json:"path,omitzero" also:"dir directory folder"`
	Limit   int    `json:"limit,omitzero" also:"max_results max_files head_limit"`
}

type globResult struct {
	OK         bool     `json:"ok"`
	Matches    []string `json:"matches"`
	Count      int      `json:"count"`
	Truncated  bool     `json:"truncated"`
	Unreadable []string `json:"unreadable,omitempty"`
	Note       string   `json:"note,omitzero"`
}

// Glob returns the tool that finds files by name.
func Glob(ws *workspace.Workspace) tool.Tool {
	return tool.Func[globArgs]{
		Name: "glob", Doc: globDoc,
		Aliases: []tool.Alias{{Dialect: tool.Sema, Name: "Glob"}, {Dialect: tool.CoAuthor, Name: "globTool"},
			{Name: "find_files"}, {Name: "search_files"}},
		Plan: func(_ context.Context, a globArgs) (tool.Plan, error) {
			base, _, err := a.split(ws)
			if err != nil {
				return tool.Plan{}, err
			}
			return searchPlan(ws, a.Pattern, base)
		},
		Do: func(ctx context.Context, a globArgs, _ io.Writer) (tool.Result, error) {
			return glob(ctx, ws, a)
		},
	}
}

// split checks the pattern and splits it into the start directory and what to find there.
func (a globArgs) split(ws *workspace.Workspace) (base string, g fileFilter, err error) {
	if err := checkGlob(a.Pattern); err != nil {
		return "", g, err
	}
	if a.Limit < 0 {
		return "", g, errors.New("limit must not be negative")
	}
	list := splitGlobs(a.Pattern)
	if len(list) == 1 && !strings.HasPrefix(list[0], "!") {
		return a.splitPattern(ws, list[0])
	}
	if base, err = ws.Locate(cmp.Or(a.Path, ".")); err != nil {
		return "", g, err
	}
	g.base = base
	for _, item := range list {
		rest, negated := strings.CutPrefix(item, "!")
		if rest, err = relativeGlob(ws, base, rest); err != nil {
			return "", g, err
		}
		for _, p := range interpretations(rest) {
			switch {
			case !negated:
				g.includes = append(g.includes, globMask{p, searchSubject})
			case strings.Contains(p, "/"):
				g.excludes = append(g.excludes, globMask{p, searchSubject},
					globMask{strings.TrimSuffix(p, "/") + "/**", searchSubject})
			default:
				g.excludes = append(g.excludes, globMask{p, baseSubject}, globMask{"**/" + p + "/**", searchSubject})
			}
		}
	}
	return base, g, nil
}

// splitPattern splits one pattern: its fixed beginning is the start directory.
func (a globArgs) splitPattern(ws *workspace.Workspace, item string) (base string, g fileFilter, err error) {
	dir, pattern := doublestar.SplitPattern(item)
	if slices.Contains(strings.Split(strings.ReplaceAll(pattern, `\`, "/"), "/"), "..") {
		return "", g, message.Errorf("pattern %q: .. is not allowed after a wildcard", a.Pattern)
	}
	if dir = unescape(dir); !path.IsAbs(dir) {
		dir = path.Join(cmp.Or(a.Path, "."), dir)
	}
	if base, err = ws.Locate(dir); err != nil {
		return "", g, err
	}
	if g.base = base; pattern == "" || strings.HasSuffix(pattern, "/") {
		pattern += "**" // everything in a folder
	}
	for _, p := range interpretations(pattern) {
		g.includes = append(g.includes, globMask{p, searchSubject})
	}
	return base, g, nil
}

// checkGlob rejects invalid patterns and patterns that would take forever.
func checkGlob(pattern string) error {
	switch {
	case pattern == "":
		return errors.New("pattern is empty")
	case len(pattern) > maxPattern:
		return message.Errorf("pattern is too long (%d bytes)", len(pattern))
	case strings.Count(pattern, "{") > maxBraces || strings.Count(pattern, ",") > maxCommas:
		return message.Errorf("pattern %.60q has too many alternatives", pattern)
	case !doublestar.ValidatePattern(pattern):
		return message.Errorf("pattern %q is malformed", pattern)
	}
	return nil
}

// unescape removes the backslashes before wildcards.
func unescape(dir string) string {
	if !strings.Contains(dir, `\`) {
		return dir
	}
	var b strings.Builder
	for i := 0; i < len(dir); i++ {
		if dir[i] == '\\' && i+1 < len(dir) {
			i++
		}
		b.WriteByte(dir[i])
	}
	return b.String()
}

// globMatch is a matching file and its age.
type globMatch struct {
	path    string
	modTime time.Time
}

func glob(ctx context.Context, ws *workspace.Workspace, a globArgs) (tool.Result, error) {
	base, wanted, err := a.split(ws)
	if err != nil {
		return tool.Result{}, err
	}
	if info, err := ws.Stat(base); err != nil {
		return tool.Result{}, ws.AddSuggestion(ctx, base, err)
	} else if !info.IsDir() {
		return tool.Result{}, message.Errorf("%s is not a directory", base)
	}
	r := globResult{OK: true, Matches: []string{}}
	depth := 0 // how deep the patterns can reach; 0 means unlimited
	for _, one := range wanted.includes {
		if strings.Contains(one.pattern, "**") || strings.ContainsAny(one.pattern, `{[\`) {
			depth = 0
			break
		}
		depth = max(depth, 1+strings.Count(path.Clean(one.pattern), "/"))
	}
	var files []globMatch
	looked := 0
	for e := range ws.Walk(ctx, base, depth) {
		if looked++; looked > maxWalk || len(files) == maxCompared {
			r.Truncated = true
			break
		}
		switch {
		case e.Err != nil:
			r.Unreadable = appendLimited(r.Unreadable, e.Path)
		case e.Ignored || e.IsDir():
		case wanted.matches(relativePath(base, e.Path)):
			f := globMatch{path: e.Path}
			if info, err := e.Info(); err == nil {
				f.modTime = info.ModTime()
			}
			files = append(files, f)
		}
	}
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	slices.SortStableFunc(files, func(a, b globMatch) int { return b.modTime.Compare(a.modTime) })
	limit := min(cmp.Or(a.Limit, defaultFiles), maxFiles)
	r.Truncated = r.Truncated || len(files) > limit
	for _, f := range files[:min(len(files), limit)] {
		r.Matches = append(r.Matches, f.path)
	}
	r.Count = len(r.Matches)
	if name := path.Join(base, a.Pattern); r.Count == 0 {
		if info, err := ws.Stat(name); err == nil && info.IsDir() {
			r.Note = fmt.Sprintf("%s is a directory; %s/** finds the files in it", name, name)
		} else if !strings.ContainsAny(a.Pattern, "/\\,!") && !strings.Contains(a.Pattern, "**") {
			r.Note = fmt.Sprintf("%s is looked for in one directory only; **/%s looks in all below it too", a.Pattern, a.Pattern)
		}
	}
	return tool.Result{Value: r, Summary: tool.MarkPartial(tool.FormatCount(r.Count, "file", "files"), r.Truncated)}, nil
}

// maxUnreadable limits how many unreadable places a result names.
const maxUnreadable = 20

func appendLimited(list []string, name string) []string {
	if len(list) < maxUnreadable {
		list = append(list, name)
	}
	return list
}

// fileFilter selects the files that a grep reads: those that match one of want, or all if want is empty, except
// those that match one of not. If a glob has several readings, each counts, so that no file is missed.
type fileFilter struct {
	base               string // the searched directory
	includes, excludes []globMask
}

// globMask is one reading of a glob.
type globMask struct {
	pattern string
	subject func(base, rel string) string // returns what it is matched with
}

func baseSubject(_, rel string) string    { return path.Base(rel) }
func searchSubject(_, rel string) string  { return rel }
func rootSubject(base, rel string) string { return path.Join(base, rel) }

func (g fileFilter) matches(rel string) bool {
	fits := func(one globMask) bool { return doublestar.MatchUnvalidated(one.pattern, one.subject(g.base, rel)) }
	return (len(g.includes) == 0 || slices.ContainsFunc(g.includes, fits)) && !slices.ContainsFunc(g.excludes, fits)
}

// newFileFilter parses which files to read below base: a list of globs, some of which may begin with "!".
func newFileFilter(ws *workspace.Workspace, base, text string) (g fileFilter, err error) {
	g.base = base
	if text == "" {
		return g, nil
	}
	if err := checkGlob(text); err != nil {
		return g, message.Errorf("include: %w", err)
	}
	for _, item := range splitGlobs(text) {
		rest, negated := strings.CutPrefix(item, "!")
		list, err := parseMasks(ws, base, rest)
		switch {
		case err != nil:
			return g, message.Errorf("include: %w", err)
		case negated:
			g.excludes = append(g.excludes, list...)
		default:
			g.includes = append(g.includes, list...)
		}
	}
	return g, nil
}

// parseMasks returns the readings of one glob.
func parseMasks(ws *workspace.Workspace, base, item string) (list []globMask, err error) {
	if item, err = relativeGlob(ws, base, item); err != nil {
		return nil, err
	}
	add := func(pattern string, of ...func(base, rel string) string) {
		for _, p := range interpretations(pattern) {
			for _, o := range of {
				list = append(list, globMask{p, o})
			}
		}
	}
	of := []func(base, rel string) string{searchSubject, rootSubject}
	if base == "." {
		of = of[:1]
	}
	dir, folder := strings.CutSuffix(item, "/")
	plain := !strings.ContainsAny(dir, `*?{`)
	deep := dir
	if !strings.ContainsAny(dir, `/\`) {
		deep = "**/" + dir
		if !folder {
			add(dir, baseSubject)
		}
		if plain && strings.HasPrefix(dir, ".") {
			add("*"+dir, baseSubject) // a file extension
		}
	} else if !folder {
		add(dir, of...)
	}
	if plain || folder {
		add(deep+"/**", of...) // a folder name
	}
	return list, nil
}

// relativeGlob returns a glob relative to the searched directory, or to the root of the workspace.
func relativeGlob(ws *workspace.Workspace, base, item string) (string, error) {
	for strings.HasPrefix(item, "./") {
		item = item[2:]
	}
	if slices.Contains(strings.Split(item, "/"), "..") {
		return "", message.Errorf("pattern %q: .. is not allowed", item)
	}
	if item == "" {
		return "", errors.New("pattern is empty")
	}
	if !path.IsAbs(item) {
		return item, nil
	}
	dir, rest := doublestar.SplitPattern(item)
	at, err := ws.Resolve(unescape(dir))
	switch {
	case err == nil && at == ".":
		return rest, nil
	case err == nil:
		return wildcardEscaper.Replace(at) + "/" + rest, nil
	}
	top, _, _ := strings.Cut(strings.TrimPrefix(dir, "/"), "/") // or it is relative to the base
	if _, missing := ws.Stat(path.Join(base, unescape(top))); missing != nil {
		return "", err
	}
	return strings.TrimLeft(item, "/"), nil
}

// splitGlobs splits a list of globs at commas outside braces, and at spaces if each part is clearly a glob.
func splitGlobs(text string) (list []string) {
	depth, from := 0, 0
	cut := func(to int) {
		if item := unquote(strings.TrimSpace(text[from:to])); item != "" {
			list = append(list, item)
		}
		from = to + 1
	}
	for i, c := range text {
		switch {
		case c == '{':
			depth++
		case c == '}':
			depth--
		case c == ',' && depth <= 0:
			cut(i)
		}
	}
	cut(len(text))
	for _, sep := range []string{"|", ";"} {
		if parts := strings.Split(text, sep); len(list) == 1 && len(parts) > 1 &&
			!slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(p, "*") }) {
			return splitGlobs(strings.Join(parts, ","))
		}
	}
	if len(list) == 1 {
		fields := strings.Fields(text)
		if !slices.ContainsFunc(fields, func(f string) bool { return !strings.ContainsAny(f, "*!") }) {
			for i := range fields {
				fields[i] = unquote(fields[i])
			}
			return fields
		}
	}
	return list
}

// unquote returns a glob without shell quotes.
func unquote(item string) string {
	for _, q := range []string{`"`, `'`} {
		if s, ok := strings.CutPrefix(item, q); ok && strings.HasSuffix(s, q) {
			return strings.TrimSuffix(s, q)
		}
	}
	return item
}

// interpretations returns the patterns that a glob may stand for: itself; with
// brackets as part of a name, as in app/[slug]; with Windows separators.
func interpretations(pattern string) []string {
	list := []string{pattern}
	if strings.ContainsAny(pattern, "[") && !strings.Contains(pattern, `\[`) {
		list = append(list, bracketEscaper.Replace(pattern))
	}
	if strings.Contains(pattern, `\`) {
		slashes := strings.ReplaceAll(pattern, `\`, "/")
		if list = append(list, slashes); strings.Contains(slashes, "[") {
			list = append(list, bracketEscaper.Replace(slashes))
		}
	}
	return slices.DeleteFunc(list, func(p string) bool { return !doublestar.ValidatePattern(p) })
}

// wildcardEscaper escapes the wildcards in a path.
var wildcardEscaper = strings.NewReplacer("[", `\[`, "]", `\]`, "*", `\*`, "?", `\?`, "{", `\{`, "}", `\}`, `\`, `\\`)

var bracketEscaper = strings.NewReplacer("[", `\[`, "]", `\]`)
