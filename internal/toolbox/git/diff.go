package git

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"strings"

	"coder/internal/show"
	"coder/internal/tool"
)

//go:embed diff.md
var diffDoc string

type diffArgs struct {
	Staged bool   `json:"staged,omitzero" also:"cached" doc:"what is staged, instead of what is not"`
	Path   string `json:"path,omitzero" also:"file_path file" doc:"only this file or directory"`
}

type diffResult struct {
	OK        bool   `json:"ok"`
	Diff      string `json:"diff"`
	Files     int    `json:"files"`
	Additions int    `json:"additions"`
	Deletions int    `json:"deletions"`
	Truncated bool   `json:"truncated"`
	Note      string `json:"note,omitzero"`
}

// Diff is the tool that shows changes line by line.
func Diff(o Options) tool.Tool {
	return tool.Func[diffArgs]{
		Name: "git_diff", Doc: diffDoc,
		Plan: func(_ context.Context, a diffArgs) (tool.Plan, error) { return reading(o, a.Path) },
		Do: func(ctx context.Context, a diffArgs, _ io.Writer) (tool.Result, error) {
			r, err := open(ctx, o)
			if err != nil {
				return tool.Result{}, err
			}
			return r.diff(ctx, a)
		},
	}
}

func (r *repository) diff(ctx context.Context, a diffArgs) (tool.Result, error) {
	name, err := resolve(r.Workspace, a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	args := []string{"diff", "--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short",
		"--ignore-submodules=dirty", "--relative", "--src-prefix=a/", "--dst-prefix=b/", "--patch"}
	if a.Staged {
		args = append(args, "--cached")
	}
	out, err := r.must(ctx, append(args, "--", name)...)
	if err != nil {
		return tool.Result{}, err
	}
	v := diffResult{OK: true, Diff: text(out), Truncated: out.cut, Note: r.note()}
	v.Files, v.Additions, v.Deletions = count(v.Diff)
	if v.Note == "" && strings.Contains(string(out.stdout), "\r\n") {
		v.Note = "some of these lines end with CR LF, which is not shown"
	}
	return tool.Result{
		Value: v, Summary: v.summary(),
		Show: show.Diff{Unified: v.Diff, Added: v.Additions, Deleted: v.Deletions},
	}, nil
}

func (v diffResult) summary() string {
	if v.Files == 0 {
		return "no changes"
	}
	return fmt.Sprintf("%s, +%d -%d", plural(v.Files, "file"), v.Additions, v.Deletions)
}

// count tells how many files a diff is about and how many lines it adds and
// deletes. Only within a hunk does the first character of a line say so.
func count(diff string) (files, added, deleted int) {
	hunk := false
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, "diff --"):
			files++
			hunk = false
		case strings.HasPrefix(line, "@@"):
			hunk = true
		case hunk && line[0] == '+':
			added++
		case hunk && line[0] == '-':
			deleted++
		}
	}
	return files, added, deleted
}
