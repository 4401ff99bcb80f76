package app

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"coder/internal/agent/rerun"
	"coder/internal/core/event"
	"coder/internal/core/secret"
	"coder/internal/host/workspace"
	"coder/internal/policy/trust"
	"coder/internal/tool/git"
)

// GoldenDir is where the golden sessions of the workspace are.
func (a *App) GoldenDir() string { return filepath.Join(a.data(), "golden") }

// HasGoldens reports whether a folder has golden sessions of its own.
func HasGoldens(root string) bool {
	_, err := os.Lstat(filepath.Join(root, ".coder", "golden"))
	return err == nil
}

// Golden is the folder of a golden session: one of the workspace's by its name,
// or any by its path.
func (a *App) Golden(name string) string {
	if !strings.ContainsRune(name, filepath.Separator) && name != "." && name != ".." {
		return filepath.Join(a.GoldenDir(), name)
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(a.Env.Dir, name)
	}
	return filepath.Clean(name)
}

// Goldens are the names of the golden sessions of the workspace.
func (a *App) Goldens() (names []string) {
	entries, _ := os.ReadDir(a.GoldenDir())
	for _, e := range entries {
		if e.IsDir() && ValidSessionID(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// Bounds of what the files of a golden session may be.
const (
	maxGoldenFiles = 2000
	maxGoldenBytes = 32 << 20
)

// SaveGolden makes a golden session of one on record, once that comes to the same
// with the settings that a golden session is run with: those of the command line
// and the project, none of the person's own. It returns the files that were left
// out because they hold secrets.
func (a *App) SaveGolden(ctx context.Context, id, dir string, records []event.Record) (*rerun.Report, []string, error) {
	if _, err := os.Lstat(dir); err == nil {
		return nil, nil, inputf("%s exists already; choose another name, or remove it first", dir)
	}
	ws, err := workspace.Open(a.Root)
	if err != nil {
		return nil, nil, inputf("open the workspace: %v", err)
	}
	defer ws.Close()
	mask := secret.Conceal(a.Report.Secrets(a.Env.Environ))
	for i, r := range records {
		records[i].Event = event.Masked(r.Event, mask)
	}
	take, kept := rerun.New(id, a.recordedRoot(ctx, id), records), &maskedPast{past: &past{contents: a.kept(ws), app: a}, mask: mask}
	world, err := rerun.Trace(ctx, take, take, kept)
	if err == nil && !world.Whole {
		err = a.completeStart(ctx, take, world, kept.past)
	}
	if err != nil {
		return nil, nil, err
	}
	completeFolders(ctx, ws, take, world)
	left, err := withoutSecrets(world)
	if err != nil {
		return nil, nil, inputf("session %s: %v", id, err)
	}
	g := rerun.Golden{Branch: branch(a.Root), Trusted: a.Trusted == trust.Trusted}
	if o := (git.Options{Workspace: ws, Door: a.Door()}); g.Branch != "" {
		if commit, err := git.At(ctx, o, take.Start()); err == nil && commit != "" {
			g.Tracked, _ = git.Tracked(ctx, o, commit)
		}
		g.Tracked = slices.DeleteFunc(g.Tracked, func(name string) bool { return world.Start[name].Hash == "" && !strings.HasPrefix(name, ".coder/") })
	}
	report, learnt, err := a.runBare(ctx, take, world, kept, g, rerun.Settings)
	if err == nil && learnt == nil && kept.changed.Load() { // a masked word is not as long as a key
		report, learnt, err = a.runBare(ctx, take, world, kept, g, rerun.Anything)
	}
	if err != nil || learnt == nil {
		return report, left, err
	}
	root := "/workspace/" + filepath.Base(a.Root)
	if learnt, err = learnt.At(root); err != nil {
		return nil, nil, err
	}
	learnt.Branch, learnt.Tracked, learnt.Trusted = g.Branch, g.Tracked, g.Trusted
	return report, left, learnt.Write(dir)
}

// maskedPast is what files held, without keys.
type maskedPast struct {
	*past
	mask    *secret.Concealer
	changed atomic.Bool // something was blotted out
}

func (p *maskedPast) Content(ctx context.Context, s event.FileState, limit int64) ([]byte, error) {
	data, err := p.past.Content(ctx, s, limit)
	if err != nil || bytes.IndexByte(data, 0) >= 0 {
		return data, err
	}
	text := p.mask.Text(string(data))
	if text != string(data) {
		p.changed.Store(true)
	}
	return []byte(text), nil
}

// withoutSecrets leaves files out that are known to hold secrets, and tells
// which. The error says that there are too many others.
func withoutSecrets(world *rerun.World) (left []string, err error) {
	size := int64(0)
	for name, s := range world.Start {
		if secret.Is(name) && s.Hash != "" {
			left = append(left, name)
			delete(world.Start, name)
		}
		size += s.Size
	}
	slices.Sort(left)
	if len(world.Start) > maxGoldenFiles || size > maxGoldenBytes {
		return nil, fmt.Errorf("it began with %d files of %d bytes; a golden session has at most %d of %d: record it in a smaller folder", len(world.Start), size, maxGoldenFiles, maxGoldenBytes)
	}
	return left, nil
}

// RunGolden runs a golden session. With update what happens now is what is
// expected from now on.
func (a *App) RunGolden(ctx context.Context, dir string, update bool) (*rerun.Report, error) {
	g, err := rerun.ReadGolden(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, inputf("there is no golden session in %s", dir)
	}
	if err != nil {
		return nil, inputf("the golden session in %s cannot be read: %v", dir, err)
	}
	lesson := rerun.Strict
	if update {
		lesson = rerun.Anything
	}
	take := rerun.New(g.Session, g.Root, g.Records)
	report, learnt, err := a.runBare(ctx, take, rerun.NewWorld(g.Start, g.Later), rerun.Kept{Dir: dir}, *g, lesson)
	if err != nil || learnt == nil {
		return report, err
	}
	learnt.Branch, learnt.Tracked, learnt.Trusted = g.Branch, g.Tracked, g.Trusted
	return report, learnt.WriteExpected(dir)
}

// runBare runs a take again with the settings of the command line and the
// project, as a stranger to this machine.
func (a *App) runBare(ctx context.Context, take *rerun.Take, world *rerun.World, kept rerun.Contents, g rerun.Golden, lesson rerun.Lesson) (*rerun.Report, *rerun.Golden, error) {
	home, err := os.MkdirTemp("", stages)
	if err != nil {
		return nil, nil, err
	}
	defer removeAll(home)
	env, o := a.Env, a.Options
	bare := slices.DeleteFunc(slices.Clone(env.Environ), func(kv string) bool { return strings.HasPrefix(kv, "CODER_") })
	env.Environ = append(slices.Clip(bare), "CODER_HOME="+home)
	o.Dir = a.Project
	settings, err := Load(env, o)
	if err == nil && g.Trusted {
		err = settings.enforce(env, o)
	}
	if err != nil {
		return nil, nil, err
	}
	env.Environ = bare
	b, err := New(env, o, settings, func(string) {})
	if err != nil {
		return nil, nil, err
	}
	s := staging{
		take: take, world: world, kept: kept, hidden: []string{a.Home, home}, lesson: lesson,
		was: map[string]string{g.Platform: "<platform>"}, is: map[string]string{platform(): "<platform>"},
		furnish: func(_ context.Context, root string) error { return a.copyAuthored(root) },
	}
	if g.Branch != "" {
		var keep func(context.Context) error
		s.furnish = func(ctx context.Context, root string) error {
			if keep, err = b.repository(ctx, root, g); err != nil {
				return err
			}
			return a.copyAuthored(root)
		}
		s.laidOut = func(ctx context.Context, _ string) error { return keep(ctx) }
	}
	return b.again(ctx, s)
}

// enforce puts the rules and the hooks of the project into force as if it were trusted,
// and nothing else of it. It is for a confined rerun, in which the record says what came
// of hooks: none is run.
func (s *Settings) enforce(env Env, o Options) error {
	trusted, err := load(env, o, func(trust.Book, string) (trust.State, error) { return trust.Trusted, nil })
	if err != nil {
		return err
	}
	s.Config.Permission, s.Config.Hooks = trusted.Config.Permission, trusted.Config.Hooks
	trusted.Report.Warnings = s.Report.Warnings // of what else it has
	s.Report = trusted.Report
	return nil
}

func platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

// branch is what is checked out in a folder that is a repository, or "".
func branch(root string) string {
	own, _ := linked(root)
	text, err := os.ReadFile(filepath.Join(cmp.Or(own, filepath.Join(root, ".git")), "HEAD"))
	if err != nil {
		return ""
	}
	name, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "ref: refs/heads/")
	if !ok {
		return "main"
	}
	return name
}

// repository makes a repository of a folder in which there is nothing yet. Keep has
// what is in the folder by then, of the files that are to be in it, in one commit. No
// settings but those of the repository count, and it has none of the files' making.
func (a *App) repository(ctx context.Context, root string, g rerun.Golden) (keep func(context.Context) error, err error) {
	env := append(a.ChildEnv(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_CEILING_DIRECTORIES="+filepath.Dir(root),
		"GIT_AUTHOR_NAME=golden", "GIT_AUTHOR_EMAIL=golden@localhost", "GIT_AUTHOR_DATE=2000-01-01T00:00:00Z",
		"GIT_COMMITTER_NAME=golden", "GIT_COMMITTER_EMAIL=golden@localhost", "GIT_COMMITTER_DATE=2000-01-01T00:00:00Z")
	run := func(ctx context.Context, names string, steps ...[]string) error {
		git, err := a.door.With(env).Git(ctx, root)
		for i := 0; err == nil && i < len(steps); i++ {
			cmd := git.Command(ctx, steps[i]...)
			cmd.Env, cmd.Stdin = append(cmd.Env, "GIT_LITERAL_PATHSPECS=1"), strings.NewReader(names)
			if out, failed := cmd.CombinedOutput(); failed != nil {
				err = fmt.Errorf("make a repository of the copy: git %s: %w: %s", steps[i][0], failed, bytes.TrimSpace(out))
			}
		}
		return err
	}
	keep = func(ctx context.Context) error {
		tracked := slices.DeleteFunc(slices.Clone(g.Tracked), func(name string) bool {
			_, err := os.Lstat(filepath.Join(root, filepath.FromSlash(name))) // what the project has for all sessions may be gone
			return err != nil
		})
		if len(tracked) == 0 {
			return nil
		}
		return run(ctx, strings.Join(tracked, "\x00"), []string{"add", "-f", "--pathspec-from-file=-", "--pathspec-file-nul"},
			[]string{"commit", "-q", "-m", "The files that the session began with"})
	}
	return keep, run(ctx, "", []string{"init", "-q", "-b", g.Branch}, []string{"config", "user.name", "golden"}, []string{"config", "user.email", "golden@localhost"})
}
