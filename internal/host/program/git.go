package program

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"coder/internal/core/message"
	"coder/internal/host/repofile"
)

// Git runs git in one folder. It reads neither the repository's configuration nor any other settings
// file: it gets the settings that [Door.Git] found and accepted. Later changes to the configuration have
// no effect. The zero Git refuses to run.
type Git struct {
	// DisabledFilters are those that do not run: the repository's, and the user's except after [Git.WithFilters].
	DisabledFilters []string
	userFilters     []Setting // the user's filters

	launcher Launcher
	dir      string
	settings []Setting
	repo     Repository
	viewDir  string // git's common directory: see view.go
	hooksDir string
	repoErr  error // why there is no repository
}

// Repository locates the repository of a folder.
type Repository struct {
	Top    string // of the work tree; "" in a bare repository
	Prefix string // of the folder, seen from there: "" or "a/b/"
	Dir    string // git's own files of this work tree
	Common string // git's own files shared by all work trees
}

// NoRepositoryError reports a folder without a repository that git would use.
type NoRepositoryError struct{ Message string }

func (n *NoRepositoryError) Error() string { return n.Message }

// Query runs git commands that run nothing from the repository's configuration, so that it need not be
// inspected first.
type Query struct {
	launcher Launcher
	dir      string
}

// Commander creates git commands.
type Commander interface {
	Command(ctx context.Context, args ...string) *Cmd
}

// queryCommands are the commands that a [Query] may run.
var queryCommands = []string{"--version", "rev-parse", "config", "check-attr", "cat-file", "ls-tree"}

// Query returns a Query for objects, attributes and settings in a folder.
func (d Launcher) Query(dir string) Query { return Query{d, dir} }

// Command returns a git command that fails to start if it is not a query.
func (q Query) Command(ctx context.Context, args ...string) *Cmd {
	// --filters, --textconv and abbreviations
	converts := func(arg string) bool { return strings.HasPrefix(arg, "--f") || strings.HasPrefix(arg, "--t") }
	if len(args) == 0 || !slices.Contains(queryCommands, args[0]) || args[0] == "cat-file" &&
		slices.ContainsFunc(args, converts) {
		return refusedCommand(ctx, "git", errors.New("git may run programs that the repository configures"))
	}
	// A git too old for settings in the environment honours these.
	args = append([]string{"-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"}, args...)
	return q.launcher.gitCommand(ctx, q.dir, BaseSettings, args...)
}

// Git inspects the repository and the configuration of a folder, and returns a Git that uses the user's
// settings and the harmless ones. More are the caller's settings, added to [BaseSettings]. It fails if git
// cannot be run, or would use files elsewhere. Without a repository, the Git can only create one.
func (d Launcher) Git(ctx context.Context, dir string, more ...Setting) (g Git, err error) {
	ctx, stop := context.WithTimeout(ctx, listTimeout)
	defer stop()
	given := slices.Concat(BaseSettings, more)
	g = Git{launcher: d, dir: dir, settings: given}
	if g.repo, err = d.findRepository(ctx, dir); err != nil {
		if none := (*NoRepositoryError)(nil); errors.As(err, &none) {
			g.repoErr, err = err, nil
		}
		return g, err
	}
	list, err := d.listConfig(ctx, dir, given)
	if err != nil {
		return Git{}, err
	}
	found, err := d.classify(list, given)
	if err != nil {
		return Git{}, err
	}
	g.settings, g.hooksDir = append(found.allowed, given...), found.hooksDir
	g.userFilters, g.DisabledFilters = found.userFilters, slices.Concat(found.filters, filterNames(found.userFilters))
	if g.hooksDir == "" {
		g.hooksDir = filepath.Join(g.repo.Common, "hooks")
	}
	if g.viewDir, err = g.createView(ctx, found.format); err == nil {
		err = g.repairGitFile()
	}
	return g, err
}

// Repository returns the repository, or a [*NoRepositoryError] error.
func (g Git) Repository() (Repository, error) { return g.repo, g.repoErr }

// Inspect returns the settings with which git may read a repository inside the sandbox.
func (d Launcher) Inspect(ctx context.Context, dir string) ([]Setting, error) {
	ctx, stop := context.WithTimeout(ctx, listTimeout)
	defer stop()
	list, err := d.listConfig(ctx, dir, BaseSettings)
	if err != nil {
		return nil, err
	}
	settings, entries, err := d.disableSettings(list)
	if err == nil && slices.ContainsFunc(entries, func(e configEntry) bool { return e.Key == "core.worktree" }) {
		_, err = d.findRepository(ctx, dir)
	}
	return settings, err
}

// configCommands are commands that edit or show a repository's configuration, or create a repository. They run
// nothing, whatever the configuration.
var configCommands = []string{"init", "config", "remote"}

// To compare the files of a submodule, git runs itself there, with unchecked settings. The comparing
// commands have an option against that, which overrides .gitmodules; the sweeping options of git add
// have none.
var (
	compareCommands = []string{"status", "diff", "diff-files", "diff-index"}
	addAllOptions   = []string{"-A", "-u", "--all", "--update", "--no-ignore-removal"}
)

// Command returns a git command.
func (g Git) Command(ctx context.Context, args ...string) *Cmd {
	switch {
	case len(args) > 0 && slices.Contains(configCommands, args[0]),
		len(args) > 1 && args[0] == "worktree" && args[1] == "list":
		return g.launcher.gitCommand(ctx, g.dir, BaseSettings, args...)
	case g.repoErr != nil:
		return refusedCommand(ctx, "git", g.repoErr)
	case g.viewDir == "":
		return refusedCommand(ctx, "git", ErrZeroLauncher)
	case len(args) == 0:
		return g.viewCommand(ctx)
	case args[0] == "add" && slices.ContainsFunc(args, func(arg string) bool {
		return slices.Contains(addAllOptions,
			arg)
	}):
		return refusedCommand(ctx, "git",
			errors.New("git would also run in submodules, with their settings: add files by name"))
	case slices.Contains(creatingCommands, args[0]):
		if link := g.findRefLink(args[1:]); link != "" {
			return refusedCommand(ctx, "git",
				message.Errorf("%s is a link, and git would write to its target: remove it", link))
		}
		g.createDirs(args[0])
	case slices.Contains(compareCommands, args[0]):
		args = slices.Insert(slices.Clone(args), 1, "--ignore-submodules=dirty")
	}
	return g.viewCommand(ctx, args...)
}

// viewCommand returns a git command that reads only the view's settings.
func (g Git) viewCommand(ctx context.Context, args ...string) *Cmd {
	cmd := g.launcher.gitCommand(ctx, g.dir, g.settings, args...)
	cmd.Env = append(cmd.Env, "GIT_DIR="+g.repo.Dir, "GIT_COMMON_DIR="+g.viewDir,
		"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	if g.repo.Top == "" {
		cmd.Env = append(cmd.Env, "GIT_IMPLICIT_WORK_TREE=0")
	} else {
		cmd.Env = append(cmd.Env, "GIT_WORK_TREE="+g.repo.Top)
	}
	return cmd
}

// Strict makes filters that do not run fail instead of passing content unfiltered.
func (g Git) Strict() Git {
	g.settings = slices.Concat(g.settings, requireFilters(g.DisabledFilters, true))
	return g
}

// WithFilters also enables the user's filters. They may load files from the folder, as python -m does, so
// such a git must be confined. The second result reports whether there are any.
func (g Git) WithFilters() (Git, bool) {
	mine := filterNames(g.userFilters)
	g.settings = slices.Concat(g.settings, g.userFilters)
	g.DisabledFilters = slices.DeleteFunc(slices.Clone(g.DisabledFilters),
		func(name string) bool { return slices.Contains(mine, name) })
	g.userFilters = nil
	return g, len(mine) > 0
}

// filterNames returns the filters that settings concern.
func filterNames(settings []Setting) (names []string) {
	for _, s := range settings {
		if _, name, _ := (configEntry{Setting: s}).splitKey(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// WithHooks enables hooks; it requires the user's approval.
func (g Git) WithHooks() Git {
	g.settings = slices.DeleteFunc(slices.Clone(g.settings), func(s Setting) bool {
		return s.Key == "core.hookspath" || strings.HasPrefix(s.Key, "hook.") && strings.HasSuffix(s.Key, ".enabled")
	})
	g.settings = append(g.settings, Setting{"core.hookspath", g.hooksDir})
	return g
}

// Clone returns a command that clones a repository by one of the given protocols into a new folder, as
// the user and with their credentials. It checks out nothing and runs nothing from the repository.
func (d Launcher) Clone(ctx context.Context, protocols, from, into string) *Cmd {
	dir := filepath.Dir(into)
	list, err := d.listConfig(ctx, dir, BaseSettings)
	if err != nil {
		return refusedCommand(ctx, "git", err)
	}
	settings := append(d.userSettings(parseEntries(list)), Setting{"core.hookspath", "/dev/null"},
		Setting{"core.fsmonitor", "false"}, Setting{"gc.auto", "0"})
	cmd := d.gitCommand(ctx, dir, settings, "clone", "--quiet", "--no-hardlinks", "--no-checkout", "--template=", "--",
		from, into)
	cmd.Env = append(cmd.Env, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_ALLOW_PROTOCOL="+protocols, "GIT_SSH_COMMAND=ssh -oBatchMode=yes")
	return cmd
}

// Remotes returns the URLs of the remotes of a folder's repository.
func (d Launcher) Remotes(ctx context.Context, dir string) (urls []string, err error) {
	ctx, stop := context.WithTimeout(ctx, listTimeout)
	defer stop()
	list, err := d.listConfig(ctx, dir, BaseSettings)
	for _, e := range parseEntries(list) {
		if strings.HasPrefix(e.Key, "remote.") && strings.HasSuffix(e.Key, ".url") {
			urls = append(urls, e.Value)
		}
	}
	return urls, err
}

const (
	listTimeout = 30 * time.Second // limit for listing the configuration
	maxConfig   = 1 << 20          // bytes; a longer configuration is refused
)

var errConfigTooLong = message.Errorf("the repository's configuration is longer than %d bytes", maxConfig)

// listConfig lists the configuration that applies in a folder.
func (d Launcher) listConfig(ctx context.Context, dir string, given []Setting) ([]byte, error) {
	var out limitedBuffer
	cmd := d.gitCommand(ctx, dir, given, "config", "--list", "-z", "--show-scope", "--show-origin")
	cmd.Stdout, cmd.WaitDelay = &out, time.Second
	err := cmd.Run()
	switch {
	case out.full:
		return nil, errConfigTooLong
	case err != nil:
		return nil, message.Errorf("ask git about %s: %w", dir, err)
	}
	return out.Bytes(), nil
}

// findRepository locates the repository of a folder, and verifies that git would use the files of that folder.
func (d Launcher) findRepository(ctx context.Context, dir string) (r Repository, err error) {
	lines, err := d.revParse(ctx, dir, "--show-toplevel", "--git-dir", "--git-common-dir", "--show-prefix")
	if none := (*NoRepositoryError)(nil); errors.As(err, &none) &&
		strings.Contains(none.Message, "must be run in a work tree") {
		bare, other := d.revParse(ctx, dir, "--git-dir", "--git-common-dir", "--is-bare-repository")
		if other == nil && bare[2] == "true" {
			return Repository{Dir: bare[0], Common: bare[1]}, nil
		}
	}
	if err != nil {
		return r, err
	}
	r = Repository{Top: lines[0], Dir: lines[1], Common: lines[2], Prefix: lines[3]}
	at, err := filepath.EvalSymlinks(r.Top)
	real, unresolved := filepath.EvalSymlinks(dir)
	if err != nil || unresolved != nil || filepath.Join(at, r.Prefix) != real {
		return r, message.Errorf("the repository keeps its files in another directory: %s", r.Top)
	}
	return r, r.check()
}

// check verifies that the files shared by all work trees are in the repository itself: a file in .git
// can name any other folder. The caller must check whether the repository lists this work tree.
func (r Repository) check() error {
	if head, err := repofile.NewRoot(r.Dir).Read("HEAD", maxLink); err == nil {
		ref, _ := strings.CutPrefix(strings.TrimSpace(string(head)), "ref: ")
		at := filepath.Join(r.Common, filepath.FromSlash(ref))
		if info, err := os.Stat(at); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
			return message.Errorf("%s is not a regular file: git would block on it", at)
		}
	}
	above := filepath.Dir(r.Dir)
	if isSameDir(r.Dir, r.Common) || filepath.Base(above) == "worktrees" && isSameDir(filepath.Dir(above), r.Common) {
		return nil
	}
	return message.Errorf("%s gets its files from another repository, %s: coder's git uses neither", r.Dir, r.Common)
}

// isSameDir reports whether two paths lead to the same folder.
func isSameDir(a, b string) bool {
	one, err := os.Stat(a)
	other, missing := os.Stat(b)
	return err == nil && missing == nil && os.SameFile(one, other)
}

// revParse runs git rev-parse, which prints one line per argument.
func (d Launcher) revParse(ctx context.Context, dir string, what ...string) ([]string, error) {
	var out, says bytes.Buffer
	cmd := d.Query(dir).Command(ctx, append([]string{"rev-parse", "--path-format=absolute"}, what...)...)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = append(cmd.Env, "LC_ALL=C"), &out, &says, time.Second
	err := cmd.Run()
	exit := (*ExitError)(nil)
	switch {
	case ctx.Err() == nil && errors.As(err, &exit) && says.Len() > 0:
		return nil, &NoRepositoryError{strings.TrimPrefix(strings.TrimSpace(says.String()), "fatal: ")}
	case err != nil:
		return nil, message.Errorf("ask git about %s: %w", dir, err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != len(what) {
		return nil, errors.New("the repository's path contains a line break")
	}
	return lines, nil
}

// gitCommand is the only function that creates git commands.
func (d Launcher) gitCommand(ctx context.Context, dir string, settings []Setting, args ...string) *Cmd {
	cmd := d.command(ctx, "git", append([]string{"--no-pager"}, args...)...)
	cmd.Dir, cmd.Env = dir, GitEnv(cmd.Env, settings)
	return cmd
}

// limitedBuffer collects a configuration up to its limit, and rejects more.
type limitedBuffer struct {
	bytes.Buffer
	full bool
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.full = b.full || b.Len()+len(p) > maxConfig; b.full {
		return 0, errConfigTooLong
	}
	return b.Buffer.Write(p)
}
