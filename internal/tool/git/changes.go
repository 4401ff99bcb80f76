package git

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"coder/internal/core/sanitize"
)

// Changes is how the files differ from the last commit, for a person to look at.
type Changes struct {
	Files     []Changed
	Untracked []string // files, and folders that hold nothing else
	Cut       bool     // there are more
	Note      string   // what was switched off, where that may change what is seen
}

// Changed is one file that differs.
type Changed struct {
	Path           string
	Added, Deleted int
	Binary         bool
}

// Look tells which files differ from the last commit, staged or not, at path or
// everywhere. The error is [ErrNoRepository] where git does not look after them.
func Look(ctx context.Context, o Options, path string) (Changes, error) {
	r, err := open(ctx, o)
	if err != nil {
		return Changes{}, err
	}
	name, err := resolve(r.Workspace, path)
	if err != nil {
		return Changes{}, err
	}
	out, err := r.against(ctx, name, "--raw", "--numstat", "-z", "--no-renames")
	if err != nil {
		return Changes{}, err
	}
	others, err := r.must(ctx, "ls-files", "--others", "--exclude-standard", "--directory", "--no-empty-directory", "-z", "--", name)
	if err != nil {
		return Changes{}, err
	}
	c := Changes{Files: parseNumbers(fields(out.stdout)), Cut: out.cut || others.cut, Note: r.note()}
	for _, f := range fields(others.stdout) {
		c.Untracked = append(c.Untracked, title(f))
	}
	return c, nil
}

// Hunks shows line by line how the files at path, or all, differ from the last
// commit.
func Hunks(ctx context.Context, o Options, path string) (diff string, cut bool, err error) {
	r, err := open(ctx, o)
	if err != nil {
		return "", false, err
	}
	name, err := resolve(r.Workspace, path)
	if err != nil {
		return "", false, err
	}
	out, err := r.against(ctx, name, "--patch")
	return text(out), out.cut, err
}

// against compares the files with the last commit; with nothing where there is
// none yet.
func (r *repository) against(ctx context.Context, name string, form ...string) (output, error) {
	base := "HEAD"
	head, err := r.git(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err != nil {
		return output{}, err
	}
	if head.code != 0 {
		empty, err := r.must(ctx, "hash-object", "-t", "tree", "--stdin")
		if err != nil {
			return output{}, err
		}
		base = strings.TrimSpace(string(empty.stdout))
	}
	args := append([]string{"diff", "--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short",
		"--ignore-submodules=dirty", "--relative", "--src-prefix=a/", "--dst-prefix=b/"}, form...)
	return r.must(ctx, append(args, base, "--", name)...)
}

// parseNumbers reads what git says about each file twice: what it is and was,
// then how many lines were added and deleted. A file whose content is the same,
// as one that was only touched, is none that changed.
func parseNumbers(list []string) (files []Changed) {
	altered := make(map[string]bool) // the mode changed, or the file is new or gone
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
			files = append(files, Changed{Path: sanitize.Line(parts[2], maxTitle), Added: added, Deleted: deleted, Binary: binary})
		}
	}
	return files
}

// String is a line of the summary.
func (c Changed) String() string {
	if c.Binary {
		return c.Path + " (binary)"
	}
	return fmt.Sprintf("%s +%d -%d", c.Path, c.Added, c.Deleted)
}
