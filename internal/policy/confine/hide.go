package confine

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"coder/internal/core/secret"
	"coder/internal/host/program"
	"coder/internal/host/sandbox"
	"coder/internal/policy/risk"
)

// readableParts are the parts of coder's own folder that commands may read: what users write for the model to run.
var readableParts = []string{"skills", "commands", "agents", "AGENTS.md"}

// recordDirs returns the folders with session records: of the workspace, of the folders
// above it and of the projects below. With early, those of the workspace are included
// before they exist, for commands that are still running when they do.
func (c *Confiner) recordDirs(ctx context.Context, early bool) (dirs []string) {
	projects := []string{c.o.Root}
	for dir := filepath.Dir(c.o.Root); dir != filepath.Dir(dir); dir = filepath.Dir(dir) { // a session may have run there
		projects = append(projects, dir)
	}
	if c.o.Projects != nil {
		projects = append(projects, c.o.Projects(ctx)...)
	}
	for _, project := range projects {
		if _, err := os.Lstat(filepath.Join(project, ".coder")); err != nil {
			continue
		}
		for _, name := range secret.RecordFolders {
			at := filepath.Join(project, ".coder", name)
			info, err := os.Lstat(at)
			switch {
			case err != nil:
				if early && project == c.o.Root {
					dirs = append(dirs, at+"/")
				}
			case info.IsDir():
				dirs = append(dirs, at)
			default: // a link; one that leads out of the project is unused
				if to, err := filepath.EvalSymlinks(at); err == nil && to != c.o.Root && contains(c.o.Root, to) {
					dirs = append(dirs, to)
				}
			}
		}
	}
	return dirs
}

// hiddenSockets returns the sockets of programs that are not commands of this session, those named in the
// environment, and the user's own socket folder.
func (c *Confiner) hiddenSockets() (list []string) {
	if c.o.Sockets != nil {
		list = slices.Clone(c.o.Sockets())
	}
	for _, socket := range sandbox.ListeningSockets(c.o.Root) {
		if !slices.Contains(list, socket) {
			list = append(list, socket)
		}
	}
	if filepath.IsAbs(c.o.Runtime) {
		list = append(list, filepath.Clean(c.o.Runtime))
	}
	return list
}

// isSocket reports whether a path leads to a socket.
func isSocket(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&os.ModeSocket != 0
}

// agentSockets returns the sockets that programs need for their work.
func (c *Confiner) agentSockets(programs []string) (list []string) {
	for _, a := range []struct{ needs, socket string }{
		{".ssh/", c.o.Agent}, {".gnupg/", filepath.Join(c.o.Runtime, "gnupg")},
	} {
		needed := slices.ContainsFunc(secret.KnownPlaces(), func(p secret.Place) bool {
			return p.Path == a.needs &&
				p.IsNeededBy(programs)
		})
		if filepath.IsAbs(a.socket) && needed {
			list = append(list, filepath.Clean(a.socket))
		}
	}
	return list
}

// secretPlaces returns the existing known places of secrets: hide, and show if one of the programs needs them.
func (c *Confiner) secretPlaces(h homeDir, programs []string) (hide, show []string) {
	for _, p := range secret.KnownPlaces() {
		at := p.Path
		if !filepath.IsAbs(at) {
			if h.path == "" || !h.has(at) {
				continue
			}
			at = filepath.Join(h.path, at)
		}
		if _, err := os.Lstat(at); err != nil {
			continue
		}
		if at = filepath.Clean(at); p.IsNeededBy(programs) {
			show = append(show, at)
		} else {
			hide = append(hide, at)
		}
	}
	return hide, show
}

// allowedPrograms returns the programs that a line was deliberately allowed to run. A read-only line was not,
// and its programs gain nothing by their names.
func (c *Confiner) allowedPrograms(r risk.Report) (names []string) {
	if r.ReadOnly || r.MaySet("PATH") {
		return nil
	}
	for _, s := range r.Simple {
		if !c.isPlanted(s.Name) {
			names = append(names, path.Base(s.Name))
		}
	}
	return names
}

// isPlanted reports whether name leads to a program in a place that
// commands can write to. Such a program gains nothing by its name.
func (c *Confiner) isPlanted(name string) bool {
	if filepath.IsAbs(name) {
		return slices.ContainsFunc(c.writable(), func(dir string) bool { return contains(realPath(dir), realPath(name)) })
	}
	if strings.Contains(name, "/") {
		return true
	}
	found, err := c.o.Launcher.Find(name)
	if errors.As(err, new(*program.RefusalError)) {
		return true
	}
	first, missing := program.LookPath(name)
	return err == nil && missing == nil && first != found || errors.Is(missing, program.ErrDot)
}

// workspaceSecrets returns the secret files of the workspace. A line that only runs git, or was deliberately
// allowed, sees the tracked ones: git would otherwise consider them deleted.
func (c *Confiner) workspaceSecrets(ctx context.Context, r risk.Report) []string {
	if c.o.Secrets == nil {
		return nil
	}
	all, _ := c.o.Secrets(ctx)
	all = slices.DeleteFunc(slices.Clone(all), isPublic)
	if len(all) == 0 || c.o.Tracked == nil || !runsGit(r) || r.ReadOnly &&
		slices.ContainsFunc(r.Simple, func(s risk.Command) bool { return s.Name != "git" }) {
		return all
	}
	tracked := c.o.Tracked(all)
	onlyGit := !slices.ContainsFunc(r.Simple, func(s risk.Command) bool { return s.Name != "git" })
	return slices.DeleteFunc(all, func(p string) bool {
		return slices.Contains(tracked, p) && (onlyGit || c.o.IsDenied == nil || !c.o.IsDenied(p))
	})
}

// pinnedDirs returns the folders of the workspace whose names make file hidden:
// if a command moved one, the next command could see the file.
func (c *Confiner) pinnedDirs(file string) (dirs []string) {
	rel, err := filepath.Rel(c.o.Root, file)
	if err != nil || !filepath.IsLocal(rel) {
		return nil
	}
	denied := func(rel string) bool { return c.o.IsDenied != nil && c.o.IsDenied(filepath.Join(c.o.Root, rel)) }
	hidden := func(rel string) bool { return secret.IsHiddenInTree(rel, false) }
	if denied(rel) {
		hidden = denied
	}
	for dir := filepath.Dir(rel); dir != "."; dir = filepath.Dir(dir) {
		if moved := filepath.Join("moved", strings.TrimPrefix(rel, dir)); !hidden(moved) {
			dirs = append(dirs, filepath.Join(c.o.Root, dir))
		}
	}
	return dirs
}

// headBytes is how much of a file is read to tell a certificate from a key.
const headBytes = 64 << 10

// isPublic reports whether a file is named like a key but contains none.
func isPublic(file string) bool {
	if ext := strings.ToLower(filepath.Ext(file)); ext != ".pem" && ext != ".key" {
		return false
	}
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > headBytes {
		return false
	}
	text, err := io.ReadAll(io.LimitReader(f, headBytes))
	return err == nil && secret.IsPublic(file, text)
}

// HidesSecrets reports whether secret files that a line does not name are hidden
// from it. If not, what a line reads must be known before it runs.
func (c *Confiner) HidesSecrets(ctx context.Context) bool {
	if c.o.Demand == Off {
		return false
	}
	var files []string
	all := true
	if c.o.Secrets != nil {
		files, all = c.o.Secrets(ctx)
	}
	l := c.readingLimits() // only such a line runs without approval
	l.Hide = files
	return all && c.findSandbox(ctx).CanHide(l)
}

// EnforcesFrozen reports whether frozen paths are unwritable for every command.
func (c *Confiner) EnforcesFrozen(ctx context.Context) bool {
	return c.o.Demand != Off && c.findSandbox(ctx).CanProtect()
}

// cache is where a tool keeps what it can rebuild. Nothing in it is run or obeyed by itself: the tool's
// programs, settings, startup files and hooks are elsewhere and stay read-only.
type cache struct {
	env      string   // the variable with its location; may be empty
	home     string   // otherwise its path in the home
	subs     []string // only these subfolders; all of it if empty
	neededBy []string // programs, or scripts of a project, that require it
}

// caches are the caches of common tools.
var caches = []cache{
	{env: "GOCACHE", home: ".cache/go-build", neededBy: []string{"go"}}, {env: "GOMODCACHE", home: "go/pkg/mod"},
	{env: "GOPATH", home: "go", subs: []string{"pkg/mod", "pkg/sumdb"}, neededBy: []string{"go"}},
	{env: "GOLANGCI_LINT_CACHE", home: ".cache/golangci-lint", neededBy: []string{"golangci-lint"}},
	{env: "STATICCHECK_CACHE", home: ".cache/staticcheck"}, {home: ".cache/gopls"}, {home: ".cache/goimports"},
	{env: "CARGO_HOME", home: ".cargo", subs: []string{"registry", "git"}, neededBy: []string{"cargo"}},
	{env: "SCCACHE_DIR", home: ".cache/sccache"}, {env: "CCACHE_DIR", home: ".cache/ccache"}, {home: ".ccache"},
	{env: "npm_config_cache", home: ".npm", subs: []string{"_cacache", "_logs"}, neededBy: []string{"npm"}},
	{home: ".pnpm-store"}, {home: ".local/share/pnpm/store"}, {home: ".cache/pnpm"},
	{env: "YARN_CACHE_FOLDER", home: ".cache/yarn"}, {home: ".yarn/berry/cache"}, {home: ".bun/install/cache"},
	{env: "DENO_DIR", home: ".cache/deno", neededBy: []string{"deno"}},
	{home: ".cache/node-gyp"}, {home: ".cache/typescript"}, {home: ".cache/turbo"}, {home: ".cache/electron"},
	{env: "PIP_CACHE_DIR", home: ".cache/pip"}, {env: "UV_CACHE_DIR", home: ".cache/uv", neededBy: []string{"uv"}},
	{home: ".cache/pypoetry/cache"}, {home: ".cache/pypoetry/artifacts"},
	{home: ".cache/pylint"}, {home: ".cache/black"}, {home: ".cache/mypy"}, {home: ".cache/ruff"},
	{home: ".cache/matplotlib"}, {home: ".cache/fontconfig"},
	{home: ".cache/huggingface/hub"}, {home: ".cache/huggingface/datasets"}, {home: ".cache/torch/hub/checkpoints"},
	{home: ".cache/jedi"}, {home: ".cache/parso"},
	{home: ".m2/repository", neededBy: []string{"mvn", "mvnw"}},
	{env: "GRADLE_USER_HOME", home: ".gradle", subs: []string{"caches", "daemon", "native", "notifications", "workers",
		".tmp"}, neededBy: []string{"gradle", "gradlew"}},
	{home: ".ivy2/cache"}, {home: ".cache/coursier/v1"}, {home: ".cache/bazel", neededBy: []string{"bazel"}},
	{home: ".cache/zig", neededBy: []string{"zig"}}, {home: ".cache/clangd"}, {home: ".cache/composer"},
	{home: ".nuget/packages", neededBy: []string{"dotnet"}}, {home: ".local/share/NuGet"}, {home: ".pub-cache/hosted"},
	{home: ".cache/rubocop_cache"}, {home: ".cache/nix"}, {home: ".stack/pantry"},
	{home: ".cabal/packages"}, {home: ".cache/cabal/packages"}, {home: ".hex/packages"}, {home: ".cache/rebar3"},
	{home: ".cache/julia"}, {home: ".cache/swift-build"},
	{home: "Library/Caches/go-build"}, {home: "Library/Caches/pip"}, {home: "Library/Caches/Yarn"},
	{home: "Library/Caches/deno"}, {home: "Library/Caches/golangci-lint"},
}

// defaultCacheDir is the folder of caches that another variable can relocate.
const defaultCacheDir = ".cache"

// Caches returns the folders of common tools that commands may write to.
func Caches(home string, getenv func(string) string) (all []string) {
	for _, c := range caches {
		all = append(all, c.dirs(home, getenv)...)
	}
	return all
}

func (c cache) dirs(home string, getenv func(string) string) (all []string) {
	dir, base := "", getenv("XDG_CACHE_HOME")
	if c.env != "" {
		dir = getenv(c.env)
	}
	rel, err := filepath.Rel(defaultCacheDir, c.home)
	switch {
	case dir != "":
	case base != "" && err == nil && filepath.IsLocal(rel):
		dir = filepath.Join(base, rel)
	case home != "":
		dir = filepath.Join(home, c.home)
	default:
		return nil
	}
	if len(c.subs) == 0 {
		return []string{dir}
	}
	for _, sub := range c.subs {
		all = append(all, filepath.Join(dir, sub))
	}
	return all
}

// NeededCaches returns the caches that are required by installed tools.
func NeededCaches(home string, getenv func(string) string, isThere func(program string) bool) (all []string) {
	for _, c := range caches {
		if slices.ContainsFunc(c.neededBy, isThere) {
			all = append(all, c.dirs(home, getenv)...)
		}
	}
	return all
}

// makeCaches creates missing caches that tools require, as in a new home: a
// command could not create them, since only existing folders can be made
// writable. If that fails, the command's own error says what is missing.
func (c *Confiner) makeCaches() {
	if c.o.NeededWrite == nil || c.o.Demand == Off {
		return
	}
	c.cachesOnce.Do(func() {
		writable := c.writable()
		for _, dir := range c.o.NeededWrite() {
			within := func(root string) bool { return contains(root, dir) }
			if filepath.IsAbs(dir) && !strings.ContainsRune(dir, filepath.ListSeparator) &&
				!slices.ContainsFunc(writable, within) {
				_ = os.MkdirAll(dir, 0o700)
			}
		}
	})
}
