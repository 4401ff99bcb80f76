package app

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"coder/internal/policy/confine"
	"coder/internal/policy/risk"
	"coder/internal/tool"
)

// confiner keeps the commands of one session within bounds.
func (a *App) confiner(t *terrain) *confine.Confiner {
	home := a.Env.Getenv("HOME")
	return confine.New(confine.Options{
		Demand: a.Config.Safety.Sandbox, Exe: a.Env.Exe, LookPath: exec.LookPath, Root: a.Root, Home: home,
		Write:   slices.Concat(a.Options.AddDirs, confine.Caches(home, a.Env.Getenv), a.absoluteAll(a.Config.Safety.Writable)),
		Protect: []string{a.Home},
		Network: func() bool {
			m, _ := a.Modes.Current()
			return a.Config.Safety.Network && !m.ReadOnly
		},
		State: []string{a.Home}, Sockets: sync.OnceValue(a.sockets), Agent: a.Env.Getenv("SSH_AUTH_SOCK"), Runtime: a.Env.Getenv("XDG_RUNTIME_DIR"),
		Secrets: t.hidden, Tracked: t.tracked, Frozen: t.iced, Repositories: t.repositories,
		Named: func(r risk.Report) []string {
			if a.judge == nil {
				return nil
			}
			return a.judge.Names(r)
		},
		Warn: a.warn, Bare: sync.OnceFunc(a.forgetStart),
	})
}

// sockets are those that the environment names: of an agent, a bus, a terminal
// that others can type into.
func (a *App) sockets() (list []string) {
	for _, kv := range a.Env.Environ {
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

// analyse says what a command line would do here. Before there is a judge
// nothing is known.
func (a *App) analyse(command string) tool.Line {
	if a.judge == nil {
		return risk.Report{Command: command, Unknown: true}
	}
	return a.judge.Analyse(command)
}

// absoluteAll resolves folders from the workspace and from home.
func (a *App) absoluteAll(dirs []string) (all []string) {
	for _, d := range dirs {
		if rest, ok := strings.CutPrefix(d, "~/"); ok {
			d = filepath.Join(a.Env.Getenv("HOME"), rest)
		}
		if !filepath.IsAbs(d) {
			d = filepath.Join(a.Root, d)
		}
		all = append(all, d)
	}
	return all
}
