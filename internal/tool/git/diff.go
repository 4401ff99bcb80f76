package git

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"coder/internal/core/display"
	"coder/internal/core/message"
	"coder/internal/core/sanitize"
	"coder/internal/tool"
)

//go:embed diff.md
var diffDoc string

type diffArgs struct {
	Staged bool   `json:"staged,omitzero" also:"cached"`
	Path   string `json:"path,omitzero" also:"file_path file"`
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

// Diff returns the tool that shows changes line by line.
func Diff(o Options) tool.Tool {
	return tool.Func[diffArgs]{
		Name: "git_diff", Doc: diffDoc,
		Plan: func(_ context.Context, a diffArgs) (tool.Plan, error) { return readPlan(o, a.Path) },
		Do:   inRepository(o, (*repository).diff),
	}
}

func (r *repository) diff(ctx context.Context, a diffArgs) (tool.Result, error) {
	name, err := cleanPath(r.Workspace, a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	args := []string{"--patch"}
	if a.Staged {
		args = append(args, "--cached")
	}
	out, err := r.runDiff(ctx, maxOutput, append(args, "--", name)...)
	if err != nil {
		return tool.Result{}, err
	}
	shown, hidden := r.hideFiles(outputText(out), name)
	v := diffResult{OK: true, Diff: shown, Truncated: out.truncated, Note: r.disabledNote()}
	if len(hidden) > 0 {
		v.Note = strings.TrimPrefix(v.Note+"; the changes of "+strings.Join(hidden, ", ")+
			" are left out, which usually holds secrets: name the file to see them", "; ")
	}
	v.Files, v.Additions, v.Deletions = countDiff(v.Diff)
	if v.Note == "" && strings.Contains(string(out.stdout), "\r\n") {
		v.Note = "some of these lines end with CR LF, which is not shown"
	}
	summary := "no changes"
	if v.Files > 0 {
		summary = fmt.Sprintf("%s, +%d -%d", tool.FormatCount(v.Files, "file", "files"), v.Additions, v.Deletions)
	}
	return tool.Result{
		Value: v, Summary: summary,
		Show: display.Diff{Unified: v.Diff, Added: v.Additions, Deleted: v.Deletions},
	}, nil
}

// hideFiles returns a diff without the hidden files, and the
// names of those. It shows the requested file anyway.
func (r *repository) hideFiles(diff, asked string) (shown string, hidden []string) {
	if r.IsHidden == nil {
		return diff, nil
	}
	return FilterDiff(diff, func(name string) bool { return name != asked && r.IsHidden(name) })
}

// FilterDiff returns a diff without the files for which hides is true, and the names of those.
func FilterDiff(diff string, hides func(name string) bool) (shown string, hidden []string) {
	var kept strings.Builder
	hide := false
	for line := range strings.Lines(diff) {
		if head, ok := strings.CutPrefix(line, "diff --git "); ok {
			name := diffFile(strings.TrimSuffix(head, "\n"))
			if hide = hides(name); hide {
				hidden = append(hidden, name)
			}
		}
		if !hide {
			kept.WriteString(line)
		}
	}
	return kept.String(), hidden
}

// diffFile returns the file in the heading of a diff, which names it
// twice: a/name b/name, in quotes if it has unusual characters.
func diffFile(head string) string {
	if i := strings.LastIndex(head, ` "b/`); i >= 0 {
		if name, err := strconv.Unquote(head[i+1:]); err == nil {
			return strings.TrimPrefix(name, "b/")
		}
	}
	if n := (len(head) - 1) / 2; len(head)%2 == 1 && head[n] == ' ' && strings.HasPrefix(head[n+1:], "b/") {
		return head[n+3:] // the same name on both sides, whatever characters it has
	}
	_, name, _ := strings.Cut(head, " b/")
	return name
}

// countDiff returns how many files a diff has and how many lines it adds and
// deletes. The first character of a line counts only inside a hunk.
func countDiff(diff string) (files, added, deleted int) {
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

// Changes is the difference between the files and the last commit, for the user.
type Changes struct {
	Files     []FileChange
	Untracked []string // files, and folders with nothing else
	NoCommits bool     // there is no commit yet
	Truncated bool     // the list is incomplete
	Note      string   // what was switched off, if that may affect the result
}

// FileChange is one file that differs.
type FileChange struct {
	Path           string
	Added, Deleted int
	Binary         bool
}

// ListChanges returns the files that differ from the last commit, staged or not, at path or everywhere.
// The error is [ErrNoRepository] outside a git repository.
func ListChanges(ctx context.Context, o Options, path string) (Changes, error) {
	r, err := openRepository(ctx, o)
	if err != nil {
		return Changes{}, err
	}
	name, err := cleanPath(r.Workspace, path)
	if err != nil {
		return Changes{}, err
	}
	out, first, err := r.diffLastCommit(ctx, name, maxOutput, "--raw", "--numstat", "-z", "--no-renames")
	if err != nil {
		return Changes{}, err
	}
	others, err := r.mustGit(ctx, "ls-files", "--others", "--exclude-standard", "--directory", "--no-empty-directory",
		"-z", "--", name)
	if err != nil {
		return Changes{}, err
	}
	c := Changes{Files: parseNumstat(splitFields(out.stdout)), NoCommits: first,
		Truncated: out.truncated || others.truncated, Note: r.disabledNote()}
	for _, f := range splitFields(others.stdout) {
		c.Untracked = append(c.Untracked, shortTitle(f))
	}
	return c, nil
}

// WorkingDiff returns line by line how the files at path, or all, differ from the last commit.
func WorkingDiff(ctx context.Context, o Options, path string) (diff string, cut bool, err error) {
	r, err := openRepository(ctx, o)
	if err != nil {
		return "", false, err
	}
	name, err := cleanPath(r.Workspace, path)
	if err != nil {
		return "", false, err
	}
	out, _, err := r.diffLastCommit(ctx, name, maxOutput, "--patch")
	return outputText(out), out.truncated, err
}

// maxReviewDiff limits the size of a change to review.
const maxReviewDiff = 8 << 20

// ReviewDiff returns a diff to review: from revision to revision or,
// if revisions is empty, from the last commit to the files.
func ReviewDiff(ctx context.Context, o Options, revisions string) (diff string, err error) {
	r, err := openRepository(ctx, o)
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(revisions, "-") {
		return "", message.Errorf("not a range of commits: %s", shortTitle(revisions))
	}
	var out output
	if revisions == "" {
		out, _, err = r.diffLastCommit(ctx, ".", maxReviewDiff, "--patch")
	} else {
		out, err = r.runDiff(ctx, maxReviewDiff, "--patch", revisions, "--", ".")
	}
	if err == nil && out.truncated {
		err = message.Errorf("the change is larger than %d MiB; review it in parts: git diff … | coder review",
			maxReviewDiff>>20)
	}
	return outputText(out), err
}

// diffOptions has options for a diff that runs no program named
// in the repository and is relative to the workspace.
var diffOptions = []string{"diff", "--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short",
	"--ignore-submodules=dirty", "--relative", "--src-prefix=a/", "--dst-prefix=b/"}

// runDiff runs git diff with diffOptions.
func (r *repository) runDiff(ctx context.Context, limit int, args ...string) (output, error) {
	out, err := r.run(ctx, r.Git, command{args: slices.Concat(diffOptions, args), limit: limit})
	if err == nil && out.exitCode != 0 && !out.truncated {
		err = runError("diff", out)
	}
	return out, err
}

// diffLastCommit compares the files with the last commit, or with nothing if there is no commit yet.
func (r *repository) diffLastCommit(ctx context.Context, name string, limit int, form ...string) (out output,
	first bool, err error) {
	base := "HEAD"
	head, err := r.git(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err != nil {
		return output{}, false, err
	}
	if first = head.exitCode != 0; first {
		empty, err := r.mustGit(ctx, "hash-object", "-t", "tree", "--stdin")
		if err != nil {
			return output{}, true, err
		}
		base = strings.TrimSpace(string(empty.stdout))
	}
	out, err = r.runDiff(ctx, limit, append(form, base, "--", name)...)
	return out, first, err
}

// parseNumstat parses git's two entries about each file: its old and new state, then the numbers of added and
// deleted lines. A file with the same content, such as one that was only touched, does not count as changed.
func parseNumstat(list []string) (files []FileChange) {
	altered := make(map[string]bool) // the mode changed, or the file is new or deleted
	for len(list) > 0 {
		if strings.HasPrefix(list[0], ":") && len(list) > 1 {
			words := strings.Fields(list[0][1:])
			altered[list[1]] = len(words) == 5 && (words[0] != words[1] || words[4] != "M")
			list = list[2:]
			continue
		}
		parts := strings.SplitN(list[0], "\t", 3)
		list = list[1:]
		if len(parts) < 3 {
			continue // cut off
		}
		added, errAdded := strconv.Atoi(parts[0])
		deleted, errDeleted := strconv.Atoi(parts[1])
		binary := errAdded != nil || errDeleted != nil
		if added+deleted > 0 || binary || altered[parts[2]] {
			files = append(files, FileChange{Path: sanitize.Line(parts[2], maxTitle), Added: added, Deleted: deleted,
				Binary: binary})
		}
	}
	return files
}
