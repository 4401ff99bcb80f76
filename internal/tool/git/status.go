package git

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"strings"

	"coder/internal/core/display"
	"coder/internal/tool"
)

//go:embed status.md
var statusDoc string

type statusArgs struct{}

type statusResult struct {
	OK        bool   `json:"ok"`
	Branch    string `json:"branch"`
	Clean     bool   `json:"clean"`
	Changes   string `json:"changes"`
	Truncated bool   `json:"truncated"`
	Note      string `json:"note,omitzero"`
}

// Status is the tool that tells what has changed.
func Status(o Options) tool.Tool {
	return tool.Func[statusArgs]{
		Name: "git_status", Doc: statusDoc,
		Plan: func(context.Context, statusArgs) (tool.Plan, error) { return reading(o, "") },
		Do: func(ctx context.Context, _ statusArgs, _ io.Writer) (tool.Result, error) {
			r, err := open(ctx, o)
			if err != nil {
				return tool.Result{}, err
			}
			return r.status(ctx)
		},
	}
}

func (r *repository) status(ctx context.Context) (tool.Result, error) {
	out, err := r.must(ctx, "status", "--short", "--branch", "--untracked-files=normal", "--ignored=no",
		"--ignore-submodules=dirty", "--no-column", "--", ".")
	if err != nil {
		return tool.Result{}, err
	}
	branch, changes, _ := strings.Cut(text(out), "\n")
	v := statusResult{
		OK: true, Branch: strings.TrimPrefix(branch, "## "), Clean: changes == "", Changes: changes,
		Truncated: out.cut, Note: r.note(),
	}
	summary := "clean"
	if !v.Clean {
		summary = plural(strings.Count(changes, "\n"), "change")
	}
	return tool.Result{Value: v, Summary: summary, Show: display.Text(branch + "\n" + changes)}, nil
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
