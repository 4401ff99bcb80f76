package app

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/confine"
	"coder/internal/policy/risk"
	"coder/internal/tool"
)

// confiner keeps the commands of one session within bounds.
func (h *house) confiner() *confine.Confiner {
	home := h.env.Getenv("HOME")
	return confine.New(confine.Options{
		Demand: h.conf.Safety.Sandbox, Exe: h.env.Exe, LookPath: exec.LookPath, Root: h.root, Home: home,
		Write:   slices.Concat(h.flags.addDirs, h.caches(home), h.absoluteAll(h.conf.Safety.Writable)),
		Protect: []string{h.home},
		Network: func() bool {
			m, _ := h.state.Current()
			return h.conf.Safety.Network && !m.ReadOnly
		},
		Warn: h.warn,
	})
}

// analyse says what a command line would do here. Before there is a judge
// nothing is known.
func (h *house) analyse(command string) tool.Line {
	if h.judge == nil {
		return risk.Report{Command: command, Unknown: true}
	}
	return h.judge.Analyse(command)
}

// caches are where common tools keep what they can make again.
func (h *house) caches(home string) []string {
	var all []string
	for _, name := range []string{"XDG_CACHE_HOME", "GOCACHE", "GOMODCACHE", "CARGO_HOME", "npm_config_cache", "GRADLE_USER_HOME"} {
		all = append(all, h.env.Getenv(name))
	}
	if gopath := h.env.Getenv("GOPATH"); gopath != "" {
		all = append(all, filepath.Join(gopath, "pkg"))
	}
	if home == "" {
		return all
	}
	for _, name := range []string{
		".cache", "go/pkg", ".npm", ".cargo/registry", ".cargo/git", ".m2", ".gradle", ".ivy2", ".pnpm-store", ".local/share/pnpm", "Library/Caches",
	} {
		all = append(all, filepath.Join(home, name))
	}
	return all
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
