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
	write := slices.Concat(a.Options.AddDirs, a.writable())
	protect := []string{a.Home}
	hidden := []string{a.Home, a.stageDir()}
	if a.stageDir() == os.TempDir() {
		hidden = hidden[:1]
	}
	if a.Recorded != nil {
		protect, hidden = append(protect, a.Recorded.hidden...), append(hidden, a.Recorded.hidden...)
	}
	for _, p := range a.plugins { // keep their content as the user agreed to it
		protect = append(protect, p.Dir)
	}
	return confine.New(confine.Options{
		Demand: a.Config.Safety.Sandbox, Exe: a.Env.Exe, Door: a.door, Root: a.Root, Home: home,
		Write: write,
		Needed: func() []string {
			return confine.NeededCaches(home, a.Env.Getenv, func(name string) bool {
				info, err := os.Stat(filepath.Join(a.Root, name))
				return program.Has(name) || err == nil && info.Mode().IsRegular()
			})
		},
		Protect: protect,
		Network: func() bool {
			m, _ := a.Modes.Current()
			return a.Config.Safety.Network.All() && !m.ReadOnly
		},
		AnyNetwork: a.Config.Safety.Network.All(), Reach: a.reach(),
		Withheld: sync.OnceValue(a.lendable), Vouches: func(r risk.Report) bool { return a.judge != nil && a.judge.Vouches(r) },
		ToolChains: a.toolChains(), State: hidden, Sockets: sync.OnceValue(a.Env.sockets), Agent: a.Env.Getenv("SSH_AUTH_SOCK"), Runtime: a.Env.Getenv("XDG_RUNTIME_DIR"),
		Secrets: a.secretFiles(p), Tracked: p.tracked, Frozen: p.frozenPaths, Repositories: p.repositories, Projects: p.projects,
		Denied: p.denied, Denies: func(file string) bool { return a.judge != nil && a.judge.Denies(rule.Reads, file) },
		Named: func(r risk.Report) []string {
			if a.judge == nil {
				return nil
			}
			return a.judge.Names(r)
		},
		MemoryMB: a.Config.Safety.MemoryLimitMB, Processes: a.Config.Safety.MaxProcesses,
		Rerun: a.Recorded != nil, Warn: a.warn, Bare: sync.OnceFunc(a.eraseStartEnv),
		Journal: journal,
	})
}

// secretFiles lists the workspace's secret files, including those of the workspace that a copy stands for.
func (a *safety) secretFiles(p *protectedFiles) func(context.Context) ([]string, bool) {
	if a.Recorded == nil {
		return p.hidden
	}
	return func(ctx context.Context) (files []string, all bool) {
		files, all = p.hidden(ctx)
		return append(files, a.Recorded.secrets...), all
	}
}

// writable returns folders outside the workspace that commands may write to.
func (a *Site) writable() []string {
	write := confine.Caches(a.Env.Getenv("HOME"), a.Env.Getenv)
	for _, dir := range a.Config.Safety.Writable {
		write = append(write, a.resolve(dir))
	}
	return write
}

// places returns the folders whose programs never run outside the
// sandbox: a repository or a command may have put them there.
func (a *Site) places() program.Places {
	return program.Places{
		Work:     slices.Concat([]string{a.Root, a.Project}, a.Options.AddDirs, a.elsewhere),
		Writable: slices.Concat(confine.Temporary(), a.writable()),
	}
}

// Door starts programs outside the sandbox, with the environment of commands.
func (a *Site) Door() program.Door { return a.door.With(a.ChildEnv()) }

// reach returns the function that decides which hosts commands reach,
// if the settings list hosts. In read-only modes they reach none.
func (a *safety) reach() func() *confine.Reach {
	named := a.Config.Safety.Network.Hosts()
	if len(named) == 0 {
		return nil
	}
	fetch := web.Options{AllowPrivate: a.Config.Fetch.AllowPrivate, AllowHosts: a.Config.Fetch.AllowHosts}
	r := &confine.Reach{
		Named: named, Dialer: egress.Dialer{Allow: fetch.Allows}, Upstream: http.ProxyFromEnvironment,
		Remembered: func(host string) bool { return a.judge != nil && a.judge.Connects(host) },
		Remember: func(host string, s policy.Scope, why string) error {
			if a.judge == nil {
				return nil
			}
			return a.judge.Connect(host, s, why)
		},
	}
	return func() *confine.Reach {
		if m, _ := a.Modes.Current(); m.ReadOnly {
			return nil
		}
		return r
	}
}

// sockets returns the sockets that the environment names: an
// agent's, a bus, a terminal that others can type into.
func (e Env) sockets() (list []string) {
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

// analyse returns what a command line would do here; without a judge, the result is unknown.
func (a *safety) analyse(command string) tool.Line {
	if a.judge == nil {
		return risk.Report{Command: command, Unknown: true}
	}
	return a.judge.Analyse(command)
}

// ChildEnv returns the environment for commands: coder's without the provider's
// keys, and without apparent secrets unless the user allows them by name.
func (a *Site) ChildEnv() []string {
	env := slices.DeleteFunc(slices.Clone(a.Env.Environ), a.withholds())
	return append(env, a.marked())
}

// withholds returns a function that reports whether commands do not get a variable.
func (a *Site) withholds() func(kv string) bool {
	own, allowed := a.ownKeys(), a.Config.Safety.EnvAllow
	return func(kv string) bool {
		name, value, _ := strings.Cut(kv, "=")
		return own(kv) || secret.Variable(name, value) && !slices.Contains(allowed, name)
	}
}

// ownKeys returns a function that reports whether a variable
// holds a provider's key, which commands never get.
func (a *Site) ownKeys() func(kv string) bool {
	key, known := a.Config.Provider.APIKey, a.Report.SecretVariables()
	return func(kv string) bool {
		name, value, _ := strings.Cut(kv, "=")
		return key != "" && value == key || slices.Contains(known, name)
	}
}

// Withheld returns the names of the variables that commands do not get.
func (a *Site) Withheld() (names []string) {
	withholds := a.withholds()
	for _, kv := range a.Env.Environ {
		if withholds(kv) {
			name, _, _ := strings.Cut(kv, "=")
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// lendable returns the variables that commands get only if their programs need them.
func (a *Site) lendable() []string {
	own, withholds := a.ownKeys(), a.withholds()
	return slices.DeleteFunc(slices.Clone(a.Env.Environ), func(kv string) bool { return own(kv) || !withholds(kv) })
}

// marked returns the variable that identifies programs left running in this workspace by a killed process.
func (a *Site) marked() string { return "CODER_WORKSPACE=" + a.Root }
