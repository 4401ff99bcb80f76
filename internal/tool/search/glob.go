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

	"github.com/bmatcuk/doublestar/v4"

	"coder/internal/host/workspace"
	"coder/internal/tool"
)

//go:embed glob.md
var globDoc string

const (
	defaultFiles = 200
	maxFiles     = 1000
	maxPattern   = 1000    // bytes of a pattern
	maxBraces    = 4       // matching takes longer with each
	maxCommas    = 64      // the same
	maxFound     = 200_000 // matches that are compared by age
)

type globArgs struct {
	Pattern string `json:"pattern" also:"glob glob_pattern query" doc:"which files, such as **/*.go"`
	Path    string `json:"path,omitzero" also:"dir directory folder" doc:"directory to search, relative to the workspace; all of it if not given"`
	Limit   int    `json:"limit,omitzero" also:"max_results max_files head_limit" doc:"most files to return, 200 if not given"`
}

type globResult struct {
	OK         bool     `json:"ok"`
	Matches    []string `json:"matches"`
	Count      int      `json:"count"`
	Truncated  bool     `json:"truncated"`
	Unreadable []string `json:"unreadable,omitempty"`
	Note       string   `json:"note,omitzero"`
}

// Glob is the tool that finds files by name.
func Glob(ws *workspace.Workspace) tool.Tool {
	return tool.Func[globArgs]{
		Name: "glob", Doc: globDoc,
		Aliases: []tool.Alias{{Dialect: tool.Sema, Name: "Glob"}, {Dialect: tool.CoAuthor, Name: "globTool"}, {Name: "find_files"}, {Name: "search_files"}},
		Plan: func(_ context.Context, a globArgs) (tool.Plan, error) {
			base, _, err := a.split(ws)
			if err != nil {
				return tool.Plan{}, err
			}
			return reading(ws, a.Pattern, base)
		},
		Do: func(ctx context.Context, a globArgs, _ io.Writer) (tool.Result, error) {
			return glob(ctx, ws, a)
		},
	}
}

// split checks the pattern and parts it into the directory where the search
// begins and what is looked for there.
func (a globArgs) split(ws *workspace.Workspace) (base string, g include, err error) {
	if err := checkGlob(a.Pattern); err != nil {
		return "", g, err
	}
	if a.Limit < 0 {
		return "", g, errors.New("limit must not be negative")
	}
	list := items(a.Pattern)
	if len(list) == 1 && !strings.HasPrefix(list[0], "!") {
		return a.below(ws, list[0])
	}
	if base, err = ws.Locate(cmp.Or(a.Path, ".")); err != nil {
		return "", g, err
	}
	g.base = base
	for _, item := range list {
		rest, negated := strings.CutPrefix(item, "!")
		if rest, err = inTree(ws, base, rest); err != nil {
			return "", g, err
		}
		for _, p := range readings(rest) {
			switch {
			case !negated:
				g.want = append(g.want, mask{p, fromBase})
			case strings.Contains(p, "/"):
				g.not = append(g.not, mask{p, fromBase}, mask{strings.TrimSuffix(p, "/") + "/**", fromBase})
			default:
				g.not = append(g.not, mask{p, baseName}, mask{"**/" + p + "/**", fromBase})
			}
		}
	}
	return base, g, nil
}

// below parts one pattern: its fixed beginning is where the search begins.
func (a globArgs) below(ws *workspace.Workspace, item string) (base string, g include, err error) {
	dir, pattern := doublestar.SplitPattern(item)
	if slices.Contains(strings.Split(strings.ReplaceAll(pattern, `\`, "/"), "/"), "..") {
		return "", g, fmt.Errorf("pattern %q: .. is not allowed after a wildcard", a.Pattern)
	}
	if dir = unescape(dir); !path.IsAbs(dir) {
		dir = path.Join(cmp.Or(a.Path, "."), dir)
	}
	if base, err = ws.Locate(dir); err != nil {
		return "", g, err
	}
	if g.base = base; pattern == "" || strings.HasSuffix(pattern, "/") {
		pattern += "**" // all that is in a folder
	}
	for _, p := range readings(pattern) {
		g.want = append(g.want, mask{p, fromBase})
	}
	return base, g, nil
}

// checkGlob refuses patterns that are wrong or that would take forever.
func checkGlob(pattern string) error {
	switch {
	case pattern == "":
		return errors.New("pattern is empty")
	case len(pattern) > maxPattern:
		return fmt.Errorf("pattern is too long (%d bytes)", len(pattern))
	case strings.Count(pattern, "{") > maxBraces || strings.Count(pattern, ",") > maxCommas:
		return fmt.Errorf("pattern %.60q has too many alternatives", pattern)
	case !doublestar.ValidatePattern(pattern):
		return fmt.Errorf("pattern %q is not well formed", pattern)
	}
	return nil
}

// unescape takes away the backslashes that made wildcards plain.
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

// found is a matching file and its age.
type found struct {
	path string
	mod  time.Time
}

func glob(ctx context.Context, ws *workspace.Workspace, a globArgs) (tool.Result, error) {
	base, wanted, err := a.split(ws)
	if err != nil {
		return tool.Result{}, err
	}
	if info, err := ws.Stat(base); err != nil {
		return tool.Result{}, ws.Meant(ctx, base, err)
	} else if !info.IsDir() {
		return tool.Result{}, fmt.Errorf("%s is not a directory", base)
	}
	r := globResult{OK: true, Matches: []string{}}
	depth := 0 // how deep the patterns can reach; 0 if there is no end to it
	for _, one := range wanted.want {
		if strings.Contains(one.pattern, "**") || strings.ContainsAny(one.pattern, `{[\`) {
			depth = 0
			break
		}
		depth = max(depth, 1+strings.Count(path.Clean(one.pattern), "/"))
	}
	var files []found
	looked := 0
	for e := range ws.Walk(ctx, base, depth) {
		if looked++; looked > maxWalk || len(files) == maxFound {
			r.Truncated = true
			break
		}
		switch {
		case e.Err != nil:
			r.Unreadable = noted(r.Unreadable, e.Path)
		case e.Ignored || e.IsDir():
		case wanted.matches(below(base, e.Path)):
			f := found{path: e.Path}
			if info, err := e.Info(); err == nil {
				f.mod = info.ModTime()
			}
			files = append(files, f)
		}
	}
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	slices.SortStableFunc(files, func(a, b found) int { return b.mod.Compare(a.mod) })
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
	return tool.Result{Value: r, Summary: tool.Count(r.Count, "file", "files")}, nil
}

// maxNoted is how many unreadable places a result names.
const maxNoted = 20

func noted(list []string, name string) []string {
	if len(list) < maxNoted {
		list = append(list, name)
	}
	return list
}
