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
func (a *Workspace) GoldenDir() string { return filepath.Join(a.dataDir(), "golden") }

// HasGoldenSessions reports whether a folder has its own golden sessions.
func HasGoldenSessions(root string) bool {
	_, err := os.Lstat(filepath.Join(root, ".coder", "golden"))
	return err == nil
}

// GoldenPath returns a golden session's folder: the workspace's by name, or any by path.
func (a *Workspace) GoldenPath(name string) string {
	switch {
	case filepath.IsAbs(name):
		return filepath.Clean(name)
	case filepath.Base(name) == name && name != "." && name != "..":
		return filepath.Join(a.GoldenDir(), name)
	}
	return filepath.Join(a.Env.Dir, name)
}

// GoldenNames returns the names of the workspace's golden sessions.
func (a *Workspace) GoldenNames() (names []string) {
	entries, _ := os.ReadDir(a.GoldenDir())
	for _, e := range entries {
		if e.IsDir() && IsSessionID(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// GoldenResult is the result of saving a golden session.
type GoldenResult struct {
	*rerun.Report
	Omitted  []string // omitted files and parts of history that may hold secrets
	Diverged bool     // with these settings the session runs differently, so nothing was saved
}

// SaveGolden saves a recorded session as a golden session: its result with a golden session's settings, those
// of the command line and the project. If that differs from the record, it returns the first difference.
func (a *Workspace) SaveGolden(
	ctx context.Context, id, dir string, records []event.Record, except rerun.Exceptions,
) (*GoldenResult, error) {
	if _, err := os.Lstat(dir); err == nil {
		return nil, inputErrorf("%s already exists; choose another name, or remove it first", dir)
	}
	then, err := a.openPastStore(0)
	if err != nil {
		return nil, err
	}
	defer then.Workspace.Close()
	mask := secret.NewConcealer(a.Report.Secrets(a.Env.Environ))
	for i, r := range records {
		records[i].Event = event.Mask(r.Event, mask)
	}
	take := rerun.New(id, a.recordedRoot(ctx, id), records)
	kept := &maskedStore{then, mask}
	world, state, err := a.recordedWorld(ctx, take, take, kept, then)
	if err != nil {
		return nil, err
	}
	left, err := golden.DropSecrets(world)
	if err != nil {
		return nil, inputErrorf("session %s: %v", id, err)
	}
	g := golden.Golden{
		Session: id, Root: "/workspace/" + filepath.Base(a.Root), Platform: platform(),
		Version: Version, Created: a.Env.Now(), Trusted: a.Trusted == trust.Trusted,
		SkippedRecords: except.SkippedRecords, IgnoredLines: except.IgnoredLines,
	}
	if past.ReadNotes(state).Repository {
		more, err := a.addRepository(ctx, &g, state)
		if err != nil {
			return nil, inputErrorf("session %s: %v", id, err)
		}
		left = append(left, more...)
	}
	report, learnt, err := a.runBare(ctx, take, world, kept, &g, true)
	if learnt != nil {
		err = learnt.Write(dir)
	}
	return &GoldenResult{report, left, learnt == nil}, err
}

// addRepository gives a golden session the repository that it began in.
func (a *Workspace) addRepository(ctx context.Context, g *golden.Golden, state []byte) (left []string, err error) {
	ask := func(key string) string {
		out, _ := a.Launcher().Query(a.Root).Command(ctx, "config", "--get", key).Output()
		return strings.TrimSpace(string(out))
	}
	g.AuthorName, g.AuthorEmail = ask("user.name"), ask("user.email")
	stage, err := a.makeStagingDir()
	if err != nil {
		return nil, err
	}
	defer worktree.RemoveAll(stage)
	return g.SaveRepository(ctx, state, a.Root, stage, a.bareLauncher(stage))
}

// bareLauncher starts git in a folder of a copy, with no settings but those of the copy.
func (a *Workspace) bareLauncher(dir string) program.Launcher {
	env := append(a.ChildEnv(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	return a.launcher.WithEnv(append(env, "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir)))
}

// maskedStore is the saved file contents, with keys masked.
type maskedStore struct {
	*past.Store
	concealer *secret.Concealer
}

func (p *maskedStore) Content(ctx context.Context, s event.FileState, limit int64) ([]byte, error) {
	data, err := p.Store.Content(ctx, s, limit)
	if err != nil || bytes.IndexByte(data, 0) >= 0 {
		return data, err
	}
	return []byte(p.concealer.Text(string(data))), nil
}

// RunGolden runs a golden session. With update, the new result becomes the expected one.
func (a *Workspace) RunGolden(ctx context.Context, dir string, update bool) (*rerun.Report, error) {
	g, err := golden.Read(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, inputErrorf("no golden session in %s", dir)
	}
	if err != nil {
		return nil, inputErrorf("cannot read the golden session in %s: %v", dir, err)
	}
	take := rerun.New(g.Session, g.Root, g.Records)
	report, learnt, err := a.runBare(ctx, take, past.NewFileHistory(g.Start, g.LaterChanges), golden.StoredFiles{Dir: dir},
		g, update)
	if learnt != nil {
		report.Difference, err = nil, learnt.WriteExpected(dir)
	}
	return report, err
}

// runBare reruns a take with the settings of the command line and the project only, as if on another machine.
func (a *Workspace) runBare(
	ctx context.Context, take *rerun.Recording, world *past.FileHistory, kept past.ContentSource, g *golden.Golden,
	learn bool,
) (*rerun.Report, *golden.Golden, error) {
	home, err := a.makeStagingDir()
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
		err = settings.applyProjectRules(env, o)
	}
	if err != nil {
		return nil, nil, err
	}
	env.Environ = bare
	b, err := New(env, o, settings, func(string) {})
	if err != nil {
		return nil, nil, err
	}
	s := rerunInput{
		recording: take, world: world, contents: kept, hiddenDirs: []string{a.Home, home},
		exceptions: rerun.Exceptions{SkippedRecords: g.SkippedRecords, IgnoredLines: g.IgnoredLines},
		pathInRepo: filepath.Dir(filepath.FromSlash(g.RepoDir)),
		was:        map[string]string{g.Platform: "<platform>"}, is: machine(),
		prepareCopy: func(ctx context.Context, root string) error {
			return errors.Join(a.copyUserFiles(root, "golden"),
				g.UnpackRepository(ctx, root, b.bareLauncher(g.RepositoryTop(root))))
		},
	}
	if learn {
		s.golden = g
	}
	return b.rerunUntilExplained(ctx, s)
}

// applyProjectRules applies the project's rules and hooks as if it were trusted, but none of its other settings.
// It is for a confined rerun, which takes the results of hooks from the record and runs none.
func (s *Settings) applyProjectRules(env Env, o Options) error {
	trusted, err := loadSettings(env, o, func(trust.Registry, string) (trust.State, error) { return trust.Trusted, nil })
	if err != nil {
		return err
	}
	s.Config.Permission, s.Config.Hooks = trusted.Config.Permission, trusted.Config.Hooks
	trusted.Report.Warnings = s.Report.Warnings // about its other settings
	s.Report = trusted.Report
	return nil
}

func platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

// minHostLen is the minimum length of a host name, so that it is not confused with a word.
const minHostLen = 4

// machine maps the names of this machine and its platform to their placeholders.
func machine() map[string]string {
	names := map[string]string{platform(): "<platform>"}
	if name, err := os.Hostname(); err == nil && len(name) >= minHostLen && name != "localhost" {
		names[name] = "<host>"
	}
	return names
}
