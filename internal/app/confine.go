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
func (h *house) confiner(t *terrain) *confine.Confiner {
	home := h.env.Getenv("HOME")
	return confine.New(confine.Options{
		Demand: h.conf.Safety.Sandbox, Exe: h.env.Exe, LookPath: exec.LookPath, Root: h.root, Home: home,
		Write:   slices.Concat(h.flags.addDirs, confine.Caches(home, h.env.Getenv), h.absoluteAll(h.conf.Safety.Writable)),
		Protect: []string{h.home},
		Network: func() bool {
			m, _ := h.state.Current()
			return h.conf.Safety.Network && !m.ReadOnly
		},
		State: []string{h.home}, Sockets: sync.OnceValue(h.sockets), Agent: h.env.Getenv("SSH_AUTH_SOCK"), Runtime: h.env.Getenv("XDG_RUNTIME_DIR"),
		Secrets: t.hidden, Tracked: t.tracked, Frozen: t.iced, Repositories: t.repositories,
		Named: func(r risk.Report) []string {
			if h.judge == nil {
				return nil
			}
			return h.judge.Names(r)
		},
		Warn: h.warn, Bare: sync.OnceFunc(h.forgetStart),
	})
}

// sockets are those that the environment names: of an agent, a bus, a terminal
// that others can type into.
func (h *house) sockets() (list []string) {
	for _, kv := range h.env.Environ {
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
func (h *house) analyse(command string) tool.Line {
	if h.judge == nil {
		return risk.Report{Command: command, Unknown: true}
	}
	return h.judge.Analyse(command)
}

// absoluteAll resolves folders from the workspace and from home.
func (h *house) absoluteAll(dirs []string) (all []string) {
	for _, d := range dirs {
		if rest, ok := strings.CutPrefix(d, "~/"); ok {
			d = filepath.Join(h.env.Getenv("HOME"), rest)
		}
		if !filepath.IsAbs(d) {
			d = filepath.Join(h.root, d)
		}
		all = append(all, d)
	}
	return all
}
