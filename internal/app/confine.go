package app

import (
	"context"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"coder/internal/core/secret"
	"coder/internal/host/egress"
	"coder/internal/host/program"
	"coder/internal/host/sandbox"
	"coder/internal/policy"
	"coder/internal/policy/confine"
	"coder/internal/policy/risk"
	"coder/internal/policy/rule"
	"coder/internal/tool"
	"coder/internal/tool/web"
)

// confiner confines the commands of one session. The journal,
// which may be nil, names the files that they touch.
func (a *safety) newConfiner(p *protectedFiles, journal *sandbox.Journal) *confine.Confiner {
	home := a.Env.Getenv("HOME")
	write := slices.Concat(a.Options.AddDirs, a.writableDirs())
	protect := []string{a.Home}
	hidden := []string{a.Home, a.stagingDir()}
	if a.stagingDir() == os.TempDir() {
		hidden = hidden[:1]
	}
	if a.Replay != nil {
		protect, hidden = append(protect, a.Replay.hiddenDirs...), append(hidden, a.Replay.hiddenDirs...)
	}
	for _, p := range a.plugins { // keep their content as the user agreed to it
		protect = append(protect, p.Dir)
	}
	return confine.New(confine.Options{
		Demand: a.Config.Safety.Sandbox, Exe: a.Env.Exe, Launcher: a.launcher, Root: a.Root, Home: home,
		Write: write,
		NeededWrite: func() []string {
			return confine.NeededCaches(home, a.Env.Getenv, func(name string) bool {
				info, err := os.Stat(filepath.Join(a.Root, name))
				return program.IsInstalled(name) || err == nil && info.Mode().IsRegular()
			})
		},
		Protect: protect,
		Network: func() bool {
			m, _ := a.ModeState.Current()
			return a.Config.Safety.Network.IsUnlimited() && !m.ReadOnly
		},
		AnyNetwork: a.Config.Safety.Network.IsUnlimited(), HostPolicy: a.hostReach(),
		WithheldEnv: sync.OnceValue(a.lendableVars), IsVouched: func(r risk.Report) bool {
			return a.judge != nil &&
				a.judge.IsVouched(r)
		},
		ToolChains: a.toolchainDirs(), StateDirs: hidden, Sockets: sync.OnceValue(a.Env.envSockets),
		Agent: a.Env.Getenv("SSH_AUTH_SOCK"), Runtime: a.Env.Getenv("XDG_RUNTIME_DIR"),
		Secrets: a.secretFiles(p), Tracked: p.trackedFiles, FrozenPaths: p.frozenPaths, Repositories: p.nestedRepositories,
		Projects:    p.projectDirs,
		DeniedPaths: p.deniedPaths, IsDenied: func(file string) bool {
			return a.judge != nil &&
				a.judge.IsDenied(rule.ClassRead, file)
		},
		NamedFiles: func(r risk.Report) []string {
			if a.judge == nil {
				return nil
			}
			return a.judge.NamedFiles(r)
		},
		MemoryMB: a.Config.Safety.MemoryLimitMB, Processes: a.Config.Safety.MaxProcesses,
		Rerun: a.Replay != nil, Warn: a.warn, OnUnconfined: sync.OnceFunc(a.eraseStartEnv),
		Journal: journal,
	})
}

// secretFiles lists the workspace's secret files, including those of the workspace that a copy stands for.
func (a *safety) secretFiles(p *protectedFiles) func(context.Context) ([]string, bool) {
	if a.Replay == nil {
		return p.hiddenFiles
	}
	return func(ctx context.Context) (files []string, all bool) {
		files, all = p.hiddenFiles(ctx)
		return append(files, a.Replay.secretFiles...), all
	}
}

// writableDirs returns folders outside the workspace that commands may write to.
func (a *Site) writableDirs() []string {
	write := confine.Caches(a.Env.Getenv("HOME"), a.Env.Getenv)
	for _, dir := range a.Config.Safety.Writable {
		write = append(write, a.resolvePath(dir))
	}
	return write
}

// untrustedDirs returns the folders whose programs never run outside the
// sandbox: a repository or a command may have put them there.
func (a *Site) untrustedDirs() program.UntrustedDirs {
	return program.UntrustedDirs{
		Work:     slices.Concat([]string{a.Root, a.Project}, a.Options.AddDirs, a.originWorkspaces),
		Writable: slices.Concat(confine.TempDirs(), a.writableDirs()),
	}
}

// Launcher starts programs outside the sandbox, with the environment of commands.
func (a *Site) Launcher() program.Launcher { return a.launcher.WithEnv(a.ChildEnv()) }

// hostReach returns the function that decides which hosts commands reach,
// if the settings list hosts. In read-only modes they reach none.
func (a *safety) hostReach() func() *confine.HostPolicy {
	named := a.Config.Safety.Network.HostPatterns()
	if len(named) == 0 {
		return nil
	}
	fetch := web.Options{AllowPrivate: a.Config.Fetch.AllowPrivate, AllowHosts: a.Config.Fetch.AllowHosts}
	r := &confine.HostPolicy{
		Allowed: named, Dialer: egress.Dialer{Allow: fetch.IsAllowed}, Upstream: http.ProxyFromEnvironment,
		IsRemembered: func(host string) bool { return a.judge != nil && a.judge.IsHostAllowed(host) },
		Remember: func(host string, s policy.Scope, why string) error {
			if a.judge == nil {
				return nil
			}
			return a.judge.AllowHost(host, s, why)
		},
	}
	return func() *confine.HostPolicy {
		if m, _ := a.ModeState.Current(); m.ReadOnly {
			return nil
		}
		return r
	}
}

// envSockets returns the sockets that the environment names: an
// agent's, a bus, a terminal that others can type into.
func (e Env) envSockets() (list []string) {
	for _, kv := range e.Environ {
		name, value, _ := strings.Cut(kv, "=")
		if strings.HasSuffix(name, "PATH") || strings.HasSuffix(name, "DIRS") {
			continue
		}
		for _, part := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(":,;= ", r) }) {
			if part = strings.TrimPrefix(part, "//"); !filepath.IsAbs(part) {
				if part = "/" + part; !strings.HasPrefix(value, "unix://") {
					continue
				}
			}
			if info, err := os.Stat(part); err == nil && info.Mode()&fs.ModeSocket != 0 {
				list = append(list, filepath.Clean(part))
			}
		}
	}
	return list
}

// analyzeLine returns what a command line would do here; without a judge, the result is unknown.
func (a *safety) analyzeLine(command string) tool.Line {
	if a.judge == nil {
		return risk.Report{Command: command, Unknown: true}
	}
	return a.judge.Analyse(command)
}

// ChildEnv returns the environment for commands: coder's without the provider's
// keys, and without apparent secrets unless the user allows them by name.
func (a *Site) ChildEnv() []string {
	env := slices.DeleteFunc(slices.Clone(a.Env.Environ), a.withheldVarFilter())
	return append(env, a.markerVar())
}

// withheldVarFilter returns a function that reports whether commands do not get a variable.
func (a *Site) withheldVarFilter() func(kv string) bool {
	own, allowed := a.keyVarFilter(), a.Config.Safety.EnvAllow
	return func(kv string) bool {
		name, value, _ := strings.Cut(kv, "=")
		return own(kv) || secret.IsSecretVariable(name, value) && !slices.Contains(allowed, name)
	}
}

// keyVarFilter returns a function that reports whether a variable
// holds a provider's key, which commands never get.
func (a *Site) keyVarFilter() func(kv string) bool {
	key, known := a.Config.Provider.APIKey, a.Report.SecretVariables()
	return func(kv string) bool {
		name, value, _ := strings.Cut(kv, "=")
		return key != "" && value == key || slices.Contains(known, name)
	}
}

// WithheldVars returns the names of the variables that commands do not get.
func (a *Site) WithheldVars() (names []string) {
	withholds := a.withheldVarFilter()
	for _, kv := range a.Env.Environ {
		if withholds(kv) {
			name, _, _ := strings.Cut(kv, "=")
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// lendableVars returns the variables that commands get only if their programs need them.
func (a *Site) lendableVars() []string {
	own, withholds := a.keyVarFilter(), a.withheldVarFilter()
	return slices.DeleteFunc(slices.Clone(a.Env.Environ), func(kv string) bool { return own(kv) || !withholds(kv) })
}

// markerVar returns the variable that identifies programs left running in this workspace by a killed process.
func (a *Site) markerVar() string { return "CODER_WORKSPACE=" + a.Root }
