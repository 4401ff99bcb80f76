package files

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"

	"coder/internal/core/message"
	"coder/internal/host/workspace"
	"coder/internal/tool"
)

//go:embed list.md
var listDoc string

const maxEntries = 500

type listArgs struct {
	Path  string `json:"path,omitzero" also:"dir directory folder"`
	Depth int    `json:"depth,omitzero" also:"levels max_depth" doc:"default 1"`
}

type listResult struct {
	OK         bool     `json:"ok"`
	Path       string   `json:"path"`
	Entries    []string `json:"entries"`
	Truncated  bool     `json:"truncated"`
	Unreadable []string `json:"unreadable,omitempty"`
}

// List returns the tool that lists a directory.
func List(ws *workspace.Workspace) tool.Tool {
	return tool.Func[listArgs]{
		Name: "list", Doc: listDoc,
		Aliases: toolAliases("LS", "listFiles", "ls", "list_dir", "list_directory"),
		Plan: func(_ context.Context, a listArgs) (tool.Plan, error) {
			if a.Depth < 0 {
				return tool.Plan{}, errors.New("depth must not be negative")
			}
			return readPlan(ws, cmp.Or(a.Path, "."))
		},
		Do: func(ctx context.Context, a listArgs, _ io.Writer) (tool.Result, error) {
			a.Path = cmp.Or(a.Path, ".")
			name, at, err := locate(ws, a.Path)
			if err != nil {
				return tool.Result{}, err
			}
			if info, err := ws.Stat(at); err != nil {
				return tool.Result{}, ws.AddSuggestion(ctx, a.Path, err)
			} else if !info.IsDir() {
				return tool.Result{}, message.Errorf("%s is not a directory; use read for a file", name)
			}
			r := listResult{OK: true, Path: name, Entries: []string{}}
			for e := range ws.Walk(ctx, at, max(a.Depth, 1)) {
				switch {
				case e.Err != nil && e.Path == at:
					return tool.Result{}, e.Err
				case e.Err != nil:
					r.Unreadable = append(r.Unreadable, relativePath(at, e.Path))
				case e.Depth > 1 && e.Ignored && !e.IsDir():
				case len(r.Entries) == maxEntries:
					r.Truncated = true
				default:
					suffix := "" // distinguishes directories and links from files
					if e.IsDir() {
						suffix = "/"
					} else if e.Type&fs.ModeSymlink != 0 {
						suffix = "@"
					}
					r.Entries = append(r.Entries, relativePath(at, e.Path)+suffix)
				}
				if r.Truncated {
					break
				}
			}
			slices.Sort(r.Entries)
			return tool.Result{Value: r, Summary: tool.MarkPartial(tool.FormatCount(len(r.Entries), "entry", "entries"),
				r.Truncated)}, ctx.Err()
		},
	}
}

// relativePath returns path relative to dir.
func relativePath(dir, path string) string {
	if dir == "." {
		return path
	}
	return strings.TrimPrefix(path, dir+"/")
}
