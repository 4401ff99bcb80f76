package app

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"coder/internal/agent/rerun"
	"coder/internal/core/event"
	"coder/internal/core/secret"
	"coder/internal/host/program"
	"coder/internal/host/worktree"
	"coder/internal/policy/trust"
	"coder/internal/record/golden"
	"coder/internal/record/past"
)

// GoldenDir returns the folder with the workspace's golden sessions.
func (a *Workspace) GoldenDir() string { return filepath.Join(a.data(), "golden") }

// HasGoldens reports whether a folder has its own golden sessions.
func HasGoldens(root string) bool {
	_, err := os.Lstat(filepath.Join(root, ".coder", "golden"))
	return err == nil
}

// Golden returns a golden session's folder: the workspace's by name, or any by path.
func (a *Workspace) Golden(name string) string {
	switch {
	case filepath.IsAbs(name):
		return filepath.Clean(name)
	case filepath.Base(name) == name && name != "." && name != "..":
		return filepath.Join(a.GoldenDir(), name)
	}
	return filepath.Join(a.Env.Dir, name)
}

// Goldens returns the names of the workspace's golden sessions.
func (a *Workspace) Goldens() (names []string) {
	entries, _ := os.ReadDir(a.GoldenDir())
	for _, e := range entries {
		if e.IsDir() && ValidSessionID(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// SavedGolden is the result of saving a golden session.
type SavedGolden struct {
	*rerun.Report
	Left   []string // omitted files and parts of history that may hold secrets
	Parted bool     // with these settings the session runs differently, so nothing was saved
}

// SaveGolden saves a recorded session as a golden session: its result with a golden session's settings, those
// of the command line and the project. If that differs from the record, it returns the first difference.
func (a *Workspace) SaveGolden(
	ctx context.Context, id, dir string, records []event.Record, except rerun.Exceptions,
) (*SavedGolden, error) {
	if _, err := os.Lstat(dir); err == nil {
		return nil, inputf("%s already exists; choose another name, or remove it first", dir)
	}
	then, err := a.openPast(0)
	if err != nil {
		return nil, err
	}
	defer then.Workspace.Close()
	mask := secret.Conceal(a.Report.Secrets(a.Env.Environ))
	for i, r := range records {
		records[i].Event = event.Masked(r.Event, mask)
	}
	take := rerun.New(id, a.recordedRoot(ctx, id), records)
	kept := &maskedPast{then, mask}
	world, state, err := a.worldOf(ctx, take, take, kept, then)
	if err != nil {
		return nil, err
	}
	left, err := golden.WithoutSecrets(world)
	if err != nil {
		return nil, inputf("session %s: %v", id, err)
	}
	g := golden.Golden{
		Session: id, Root: "/workspace/" + filepath.Base(a.Root), Platform: platform(),
		Version: Version, Made: a.Env.Now(), Trusted: a.Trusted == trust.Trusted,
		Except: except.Records, Ignore: except.Ignore,
	}
	if past.NotesOf(state).Repository {
		more, err := a.takeRepository(ctx, &g, state)
		if err != nil {
			return nil, inputf("session %s: %v", id, err)
		}
		left = append(left, more...)
	}
	report, learnt, err := a.runBare(ctx, take, world, kept, &g, true)
	if learnt != nil {
		err = learnt.Write(dir)
	}
	return &SavedGolden{report, left, learnt == nil}, err
}

// takeRepository gives a golden session the repository that it began in.
func (a *Workspace) takeRepository(ctx context.Context, g *golden.Golden, state []byte) (left []string, err error) {
	ask := func(key string) string {
		out, _ := a.Door().Query(a.Root).Command(ctx, "config", "--get", key).Output()
		return strings.TrimSpace(string(out))
	}
	g.Name, g.Address = ask("user.name"), ask("user.email")
	stage, err := a.stage()
	if err != nil {
		return nil, err
	}
	defer worktree.RemoveAll(stage)
	return g.Take(ctx, state, a.Root, stage, a.bareDoor(stage))
}

// bareDoor starts git in a folder of a copy, with no settings but those of the copy.
func (a *Workspace) bareDoor(dir string) program.Door {
	env := append(a.ChildEnv(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	return a.door.With(append(env, "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir)))
}

// maskedPast is the saved file contents, with keys masked.
type maskedPast struct {
	*past.Store
	mask *secret.Concealer
}

func (p *maskedPast) Content(ctx context.Context, s event.FileState, limit int64) ([]byte, error) {
	data, err := p.Store.Content(ctx, s, limit)
	if err != nil || bytes.IndexByte(data, 0) >= 0 {
		return data, err
	}
	return []byte(p.mask.Text(string(data))), nil
}

// RunGolden runs a golden session. With update, the new result becomes the expected one.
func (a *Workspace) RunGolden(ctx context.Context, dir string, update bool) (*rerun.Report, error) {
	g, err := golden.Read(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, inputf("no golden session in %s", dir)
	}
	if err != nil {
		return nil, inputf("cannot read the golden session in %s: %v", dir, err)
	}
	take := rerun.New(g.Session, g.Root, g.Records)
	report, learnt, err := a.runBare(ctx, take, past.NewWorld(g.Start, g.Later), golden.Kept{Dir: dir}, g, update)
	if learnt != nil {
		report.Difference, err = nil, learnt.WriteExpected(dir)
	}
	return report, err
}

// runBare reruns a take with the settings of the command line and the project only, as if on another machine.
func (a *Workspace) runBare(
	ctx context.Context, take *rerun.Take, world *past.World, kept past.Contents, g *golden.Golden, learn bool,
) (*rerun.Report, *golden.Golden, error) {
	home, err := a.stage()
	if err != nil {
		return nil, nil, err
	}
	defer worktree.RemoveAll(home)
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
		take: take, world: world, kept: kept, hidden: []string{a.Home, home},
		except: rerun.Exceptions{Records: g.Except, Ignore: g.Ignore},
		within: filepath.Dir(filepath.FromSlash(g.Within)),
		was:    map[string]string{g.Platform: "<platform>"}, is: machine(),
		furnish: func(ctx context.Context, root string) error {
			return errors.Join(a.copyAuthored(root, "golden"), g.Unpack(ctx, root, b.bareDoor(g.Top(root))))
		},
	}
	if learn {
		s.learn = g
	}
	return b.again(ctx, s)
}

// enforce applies the project's rules and hooks as if it were trusted, but none of its other settings.
// It is for a confined rerun, which takes the results of hooks from the record and runs none.
func (s *Settings) enforce(env Env, o Options) error {
	trusted, err := load(env, o, func(trust.Book, string) (trust.State, error) { return trust.Trusted, nil })
	if err != nil {
		return err
	}
	s.Config.Permission, s.Config.Hooks = trusted.Config.Permission, trusted.Config.Hooks
	trusted.Report.Warnings = s.Report.Warnings // about its other settings
	s.Report = trusted.Report
	return nil
}

func platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

// leastHost is the minimum length of a host name, so that it is not confused with a word.
const leastHost = 4

// machine maps the names of this machine and its platform to their placeholders.
func machine() map[string]string {
	names := map[string]string{platform(): "<platform>"}
	if name, err := os.Hostname(); err == nil && len(name) >= leastHost && name != "localhost" {
		names[name] = "<host>"
	}
	return names
}
