package git

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"coder/internal/core/display"
	"coder/internal/core/message"
	"coder/internal/core/sanitize"
	"coder/internal/tool"
)

//go:embed add.md
var addDoc string

const (
	maxPaths = 1000
	// maxNames limits the total size of the file names that one call may stage.
	maxNames = 8 << 20
)

type addArgs struct {
	Path  string   `json:"path,omitzero" also:"file_path file" hidden:"yes" doc:"file or directory"`
	Paths []string `json:"paths,omitzero" also:"files file_paths"`
}

type addResult struct {
	OK     bool     `json:"ok"`
	Staged int      `json:"staged"`
	Files  []string `json:"files"`
	Note   string   `json:"note,omitzero"`
}

// Add returns the tool that stages files. It stages exactly the files in its plan.
func Add(o Options) tool.Tool {
	return tool.Func[addArgs]{Name: "git_add", Doc: addDoc,
		PlanRun: func(ctx context.Context, a addArgs) (tool.Plan, tool.Run, error) {
			s, err := planStaging(ctx, o, a)
			if err != nil {
				return tool.Plan{}, nil, err
			}
			// git's own changes are named as such, not as files: git writes by
			// its own rules, unlike a tool that writes into its folder.
			effects := []tool.Effect{{Kind: tool.Write, Target: "index of " + s.dir}}
			for _, p := range s.paths {
				effects = append(effects, tool.Effect{Kind: tool.Read, Target: p})
			}
			return tool.Plan{Title: shortTitle(strings.Join(s.paths, " ")), Effects: effects,
				Preview: display.Text(s.preview(len(s.names)))}, s.add, nil
		}}
}

// stagingPlan is a set of files to stage.
type stagingPlan struct {
	*repository
	paths []string // as requested
	names []string // files that differ from the staged ones
	kinds []string // the kind of each difference
}

// planStaging finds the files to stage.
func planStaging(ctx context.Context, o Options, a addArgs) (*stagingPlan, error) {
	paths := a.Paths
	if a.Path != "" {
		paths = append([]string{a.Path}, paths...)
	}
	switch {
	case len(paths) == 0:
		return nil, errors.New(`argument "path" is missing`)
	case len(paths) > maxPaths:
		return nil, message.Errorf("at most %d paths are allowed", maxPaths)
	}
	s := new(stagingPlan)
	for _, p := range paths {
		if p == "" {
			return nil, errors.New("path is empty")
		}
		name, err := cleanPath(o.Workspace, p)
		if err != nil {
			return nil, err
		}
		s.paths = append(s.paths, name)
	}
	var err error
	if s.repository, err = openRepository(ctx, o); err != nil {
		return nil, err
	}
	if err := s.findFiles(ctx); err != nil {
		return nil, err
	}
	return s, s.checkPaths(ctx)
}

// changeKinds are the kinds of difference by ls-files letter.
var changeKinds = map[string]string{"?": "new", "C": "modified", "R": "deleted"}

// statusLetters are those of git status, the same in every language.
var statusLetters = map[string]string{"new": "A", "modified": "M", "deleted": "D"}

// findFiles finds the files that differ. It does not leave this to git, because git, asked to add a
// directory, would run git in each submodule there; it leaves out submodules and other repositories.
func (s *stagingPlan) findFiles(ctx context.Context) error {
	args := append([]string{"ls-files", "-z", "-t", "--modified", "--deleted", "--others", "--exclude-standard", "--"},
		s.paths...)
	out, err := s.run(ctx, s.Git, command{args: args, limit: maxNames})
	switch {
	case err != nil:
		return err
	case out.truncated:
		return errors.New("too many files; stage them directory by directory")
	case out.exitCode != 0:
		return runError("add", out)
	}
	found := make(map[string]string)
	for _, f := range splitFields(out.stdout) {
		tag, name, _ := strings.Cut(f, " ")
		info, err := s.Workspace.Lstat(name)
		if strings.HasSuffix(name, "/") || found[name] == "deleted" || err == nil && info.IsDir() {
			continue
		}
		if found[name] == "" {
			s.names = append(s.names, name)
		}
		found[name] = changeKinds[tag]
	}
	slices.Sort(s.names)
	for _, name := range s.names {
		s.kinds = append(s.kinds, found[name])
	}
	return nil
}

// checkPaths returns an error for paths that cannot be staged; an already staged path is no error.
func (s *stagingPlan) checkPaths(ctx context.Context) error {
	idle := slices.DeleteFunc(slices.Clone(s.paths), s.includes)
	if len(idle) == 0 {
		return nil
	}
	for _, p := range idle {
		_, err := s.Workspace.Lstat(p)
		if errors.Is(err, fs.ErrNotExist) {
			return message.Errorf("%s: no such file, and none is tracked", shortTitle(p))
		}
		if err != nil {
			return err
		}
	}
	args := []string{"ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory", "--"}
	out, err := s.run(ctx, s.Git, command{args: append(args, idle...), limit: maxNames})
	if err != nil {
		return err
	}
	for _, ignored := range splitFields(out.stdout) {
		if slices.ContainsFunc(idle, func(p string) bool {
			return strings.HasPrefix(p+"/",
				strings.TrimSuffix(ignored, "/")+"/")
		}) {
			return message.Errorf("%s is ignored by .gitignore", shortTitle(ignored))
		}
	}
	return nil
}

// includes reports whether a file at or below path is to be staged.
func (s *stagingPlan) includes(path string) bool {
	if path == "." {
		return len(s.names) > 0
	}
	if _, found := slices.BinarySearch(s.names, path); found {
		return true
	}
	i, _ := slices.BinarySearch(s.names, path+"/")
	return i < len(s.names) && strings.HasPrefix(s.names[i], path+"/")
}

func (s *stagingPlan) preview(most int) string {
	if len(s.names) == 0 {
		return "nothing to stage"
	}
	var b strings.Builder
	for i, name := range s.names[:min(len(s.names), most)] {
		fmt.Fprintf(&b, "%s  %s\n", statusLetters[s.kinds[i]], sanitize.Line(name, 0))
	}
	if more := len(s.names) - most; more > 0 {
		fmt.Fprintf(&b, "… and %s more\n", tool.FormatCount(more, "file", "files"))
	}
	return b.String()
}

func (s *stagingPlan) add(ctx context.Context, _ io.Writer) (tool.Result, error) {
	v := addResult{OK: true, Staged: len(s.names), Files: []string{}}
	if len(s.names) == 0 {
		v.Note = "nothing to stage: these files are unchanged, or staged already"
		return tool.Result{Value: v, Summary: "nothing to stage"}, ctx.Err()
	}
	r, err := openRepository(ctx, s.Options) // the configuration may have changed
	if err != nil {
		return tool.Result{}, err
	}
	names := strings.NewReader(strings.Join(s.names, "\x00") + "\x00")
	out, err := r.run(ctx, r.Strict(), command{args: []string{"add", "--pathspec-from-file=-", "--pathspec-file-nul"},
		stdin: names, write: r.gitDirs})
	if err != nil {
		return tool.Result{}, err
	}
	if out.exitCode != 0 {
		err := runError("add", out)
		if len(r.DisabledFilters) > 0 { // it may be the content of a filter that is off
			err = message.Errorf("%w\nthis repository configures filters (%s), which this tool does not run; use a command to stage such files", err, r.filterNames())
		}
		return tool.Result{}, err
	}
	for _, name := range s.names[:min(len(s.names), maxListed)] {
		v.Files = append(v.Files, sanitize.Line(name, 0))
	}
	return tool.Result{Value: v, Summary: tool.FormatCount(v.Staged, "file", "files") + " staged",
		Show: display.Text(s.preview(maxListed))}, nil
}
