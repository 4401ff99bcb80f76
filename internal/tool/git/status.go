package git

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"strconv"
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

// Status returns the tool that reports what has changed.
func Status(o Options) tool.Tool {
	return tool.Func[statusArgs]{
		Name: "git_status", Doc: statusDoc,
		Plan: func(context.Context, statusArgs) (tool.Plan, error) { return readPlan(o, "") },
		Do:   inRepository(o, (*repository).status),
	}
}

func (r *repository) status(ctx context.Context, _ statusArgs) (tool.Result, error) {
	out, err := r.mustGit(ctx, "status", "--short", "--branch", "--untracked-files=normal", "--ignored=no",
		"--ignore-submodules=dirty", "--no-column", "--", ".")
	if err != nil {
		return tool.Result{}, err
	}
	branch, changes, _ := strings.Cut(outputText(out), "\n")
	v := statusResult{
		OK: true, Branch: strings.TrimPrefix(branch, "## "), Clean: changes == "", Changes: changes,
		Truncated: out.truncated, Note: r.disabledNote(),
	}
	summary := "clean"
	if !v.Clean {
		summary = tool.FormatCount(strings.Count(changes, "\n"), "change", "changes")
	}
	return tool.Result{Value: v, Summary: summary, Show: display.Text(branch + "\n" + changes)}, nil
}

//go:embed log.md
var logDoc string

const (
	defaultCommits = 20
	maxCommits     = 200
)

type logArgs struct {
	Limit int    `json:"limit,omitzero" also:"n count max_count"`
	Path  string `json:"path,omitzero" also:"file_path file"`
}

type logResult struct {
	OK        bool   `json:"ok"`
	Commits   int    `json:"commits"`
	Log       string `json:"log"`
	Truncated bool   `json:"truncated"`
}

// Log returns the tool that lists commits, newest first.
func Log(o Options) tool.Tool {
	return tool.Func[logArgs]{
		Name: "git_log", Doc: logDoc,
		Plan: func(_ context.Context, a logArgs) (tool.Plan, error) {
			if a.Limit < 0 {
				return tool.Plan{}, errors.New("limit must not be negative")
			}
			return readPlan(o, a.Path)
		},
		Do: inRepository(o, (*repository).log),
	}
}

func (r *repository) log(ctx context.Context, a logArgs) (tool.Result, error) {
	name, err := cleanPath(r.Workspace, a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	a.Limit = cmp.Or(a.Limit, defaultCommits)
	out, err := r.git(ctx, "log", "--max-count="+strconv.Itoa(min(a.Limit, maxCommits)), "--format=%h %ad %an: %s%d",
		"--date=short", "--no-show-signature", "--no-notes", "--no-color", "--no-ext-diff", "--no-textconv", "--no-patch",
		"--", name)
	switch {
	case err != nil:
		return tool.Result{}, err
	case out.exitCode != 0 && strings.Contains(out.stderr, "does not have any commits yet"):
		out = output{}
	case out.exitCode != 0 && !out.truncated:
		return tool.Result{}, runError("log", out)
	}
	v := logResult{OK: true, Log: outputText(out), Truncated: out.truncated}
	v.Commits = strings.Count(v.Log, "\n")
	return tool.Result{Value: v, Summary: tool.FormatCount(v.Commits, "commit", "commits"), Show: display.Text(v.Log)}, nil
}
