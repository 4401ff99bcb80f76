package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Git is git in one folder, with all that the repository there configures
// switched off. It is only made by [Door.Git], and the zero Git refuses.
type Git struct {
	// Filters are those of the repository that have no program any more.
	Filters []string

	door     Door
	dir      string
	settings []Setting
}

// Query is git for what runs nothing that a repository configures: it needs no
// look at the configuration first.
type Query struct {
	door Door
	dir  string
}

// Starter makes commands of git.
type Starter interface {
	Command(ctx context.Context, args ...string) *Cmd
}

// queries are what a [Query] may ask.
var queries = []string{"--version", "rev-parse", "config", "check-attr", "cat-file", "ls-tree"}

// Query is git in a folder for questions about objects, attributes and settings.
func (d Door) Query(dir string) Query { return Query{d, dir} }

// Command makes a command of git, which fails if it is no question.
func (q Query) Command(ctx context.Context, args ...string) *Cmd {
	converts := func(arg string) bool { return strings.HasPrefix(arg, "--f") || strings.HasPrefix(arg, "--t") } // short for --filters, --textconv
	if len(args) == 0 || !slices.Contains(queries, args[0]) || args[0] == "cat-file" && slices.ContainsFunc(args, converts) {
		return refuse(ctx, "git", errors.New("git may run what the repository configures for that"))
	}
	// A git that is too old for settings in the environment heeds these.
	args = append([]string{"-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"}, args...)
	return q.door.git(ctx, q.dir, Always, args...)
}

// Git asks git, in a folder, what is configured there, and switches off what the
// repository configures. More are settings that the caller wants beside [Always].
// It fails if git cannot be asked, or would look at files elsewhere.
func (d Door) Git(ctx context.Context, dir string, more ...Setting) (g Git, err error) {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	given := slices.Concat(Always, more)
	list, err := d.list(ctx, dir, given)
	if err != nil {
		return Git{}, err
	}
	settings, filters, err := disarm(list, given)
	if err == nil && slices.ContainsFunc(parse(list), func(e entry) bool { return e.Key == "core.worktree" }) {
		err = d.worksHere(ctx, dir)
	}
	if err != nil {
		return Git{}, err
	}
	return Git{filters, d, dir, settings}, nil
}

// Inspect returns the settings under which git can be let read a repository.
func (d Door) Inspect(ctx context.Context, dir string) ([]Setting, error) {
	g, err := d.Git(ctx, dir)
	return g.settings, err
}

// Command makes a command of git.
func (g Git) Command(ctx context.Context, args ...string) *Cmd {
	return g.door.git(ctx, g.dir, g.settings, args...)
}

// Strict has the filters that were switched off fail, rather than let content
// pass unfiltered.
func (g Git) Strict() Git {
	g.settings = slices.Concat(g.settings, require(g.Filters, true))
	return g
}

// Hooked lets hooks run: you approved that.
func (g Git) Hooked() Git {
	g.settings = slices.DeleteFunc(slices.Clone(g.settings), func(s Setting) bool {
		return s.Key == "core.hookspath" || strings.HasPrefix(s.Key, "hook.")
	})
	return g
}

// Clone makes a command that clones a repository by one of some protocols, as you
// and with your credentials, into a folder that is not there yet. It checks nothing
// out and runs nothing that the repository brings along.
func (d Door) Clone(ctx context.Context, protocols, from, into string) *Cmd {
	cmd := d.git(ctx, filepath.Dir(into), []Setting{{"core.hookspath", "/dev/null"}, {"core.fsmonitor", "false"}, {"gc.auto", "0"}},
		"clone", "--quiet", "--no-hardlinks", "--no-checkout", "--template=", "--", from, into)
	cmd.Env = append(cmd.Env, "GIT_ALLOW_PROTOCOL="+protocols, "GIT_SSH_COMMAND=ssh -oBatchMode=yes")
	return cmd
}

// Remotes are the addresses of the repositories that the one of a folder knows.
func (d Door) Remotes(ctx context.Context, dir string) (urls []string, err error) {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	list, err := d.list(ctx, dir, Always)
	for _, e := range parse(list) {
		if strings.HasPrefix(e.Key, "remote.") && strings.HasSuffix(e.Key, ".url") {
			urls = append(urls, e.Value)
		}
	}
	return urls, err
}

const (
	patience  = 30 * time.Second // for git to say what is configured
	maxConfig = 1 << 20          // bytes of a configuration; a longer one is refused
)

var errLong = fmt.Errorf("the configuration of the repository is longer than %d bytes", maxConfig)

// list has git list what is configured in a folder.
func (d Door) list(ctx context.Context, dir string, given []Setting) ([]byte, error) {
	var out bounded
	cmd := d.git(ctx, dir, given, "config", "--list", "-z", "--show-scope")
	cmd.Stdout, cmd.WaitDelay = &out, time.Second
	err := cmd.Run()
	switch {
	case out.full:
		return nil, errLong
	case err != nil:
		return nil, fmt.Errorf("ask git about %s: %w", dir, err)
	}
	return out.Bytes(), nil
}

// worksHere makes sure that git would look at the files of a folder.
func (d Door) worksHere(ctx context.Context, dir string) error {
	top, err := d.Query(dir).Command(ctx, "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return fmt.Errorf("ask git about %s: %w", dir, err)
	}
	at, err := filepath.EvalSymlinks(strings.TrimSuffix(string(top), "\n"))
	real, unresolved := filepath.EvalSymlinks(dir)
	rel, apart := filepath.Rel(at, real)
	if err != nil || unresolved != nil || apart != nil || !filepath.IsLocal(rel) {
		return errors.New("the repository keeps its files in another directory")
	}
	return nil
}

// git is the one place where git commands are made.
func (d Door) git(ctx context.Context, dir string, settings []Setting, args ...string) *Cmd {
	cmd := d.command(ctx, "git", append([]string{"--no-pager"}, args...)...)
	cmd.Dir, cmd.Env = dir, Environment(cmd.Env, settings)
	return cmd
}

// bounded takes what a configuration may hold, and refuses more.
type bounded struct {
	bytes.Buffer
	full bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.full = b.full || b.Len()+len(p) > maxConfig; b.full {
		return 0, errLong
	}
	return b.Buffer.Write(p)
}
