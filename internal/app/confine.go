package app

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"coder/internal/policy/risk"
	"coder/internal/sandbox"
	toolexec "coder/internal/toolbox/exec"
)

// confiner keeps the commands of one session within bounds, as far as the
// machine can. What it can do is found out when the first command comes.
type confiner struct {
	*house
	once sync.Once
	box  *sandbox.Sandbox
	told sync.Once
}

// find finds the sandbox of this machine.
func (c *confiner) find(ctx context.Context) *sandbox.Sandbox {
	c.once.Do(func() {
		c.box = sandbox.Find(context.WithoutCancel(ctx), sandbox.Options{Exe: c.env.Exe, LookPath: exec.LookPath})
	})
	return c.box
}

// Close removes what the sandbox put in place for the session.
func (c *confiner) Close() error { return c.box.Close() }

// confine is the confinement of one command in the mode of the moment.
func (c *confiner) confine(ctx context.Context, command string) (toolexec.Confinement, error) {
	if c.conf.Safety.Sandbox == "off" {
		return toolexec.Confinement{}, nil
	}
	limits := c.limits(command)
	box := c.find(ctx)
	report := box.Report(limits)
	if c.conf.Safety.Sandbox == "require" && !report.Whole {
		return toolexec.Confinement{}, errSandbox(report)
	}
	c.told.Do(func() {
		if len(report.NotEnforced) > 0 && !report.Whole {
			c.warn("the sandbox does not enforce: " + strings.Join(report.NotEnforced, "; "))
		}
	})
	if report.Backend == sandbox.None {
		return toolexec.Confinement{Words: ""}, nil
	}
	through, err := box.Wrap(limits)
	if err != nil {
		return toolexec.Confinement{}, err
	}
	return toolexec.Confinement{
		Through: through, Words: words(report),
		Blocked: func(code int, stderr string) string {
			if why, failed := sandbox.SetupFailed(code, stderr); failed {
				return "the sandbox could not be set up (" + why + ")"
			}
			return sandbox.Blocked(code, stderr, limits)
		},
	}, nil
}

// words is a report in one line.
func words(r sandbox.Report) string {
	text := r.Backend + ": " + strings.Join(r.Enforced, "; ")
	if !r.Whole {
		text += "; not enforced: " + strings.Join(r.NotEnforced, "; ")
	}
	return text
}

// require checks, before anything runs, that commands can be confined where
// that is demanded.
func (c *confiner) require(ctx context.Context) error {
	if c.conf.Safety.Sandbox != "require" {
		return nil
	}
	if report := c.find(ctx).Report(c.limits("true")); !report.Whole {
		return errSandbox(report)
	}
	return nil
}

func errSandbox(r sandbox.Report) error {
	return &exitError{code: ExitSandbox, text: "safety.sandbox is \"require\", and this machine cannot enforce: " + strings.Join(r.NotEnforced, "; ")}
}

// limits are what a command may do: write below the workspace, to temporary
// folders and to the caches of common tools, and use the network unless the
// mode only reads.
func (c *confiner) limits(command string) sandbox.Limits {
	m, _ := c.state.Current()
	home := c.env.Getenv("HOME")
	l := sandbox.Limits{Network: c.conf.Safety.Network && !m.ReadOnly}
	l.Write = existing(slices.Concat([]string{c.root, os.TempDir(), "/tmp", "/var/tmp", "/dev/shm"}, c.flags.addDirs, c.caches(home), c.absolute(c.conf.Safety.Writable)))
	protect := sandbox.ProtectedIn(c.root, home)
	if c.runsGit(command) {
		protect = slices.DeleteFunc(protect, func(p string) bool { return p == filepath.Join(c.root, ".git")+"/" })
		protect = append(protect, sandbox.ProtectedInForGit(c.root)...)
	}
	l.Protect = existing(protect)
	return l
}

// runsGit reports whether a command line runs git itself.
func (c *confiner) runsGit(command string) bool {
	r := risk.Analyse(command, c.riskFacts())
	return slices.ContainsFunc(r.Simple, func(s risk.Command) bool { return s.Name == "git" })
}

// caches are where common tools keep what they can make again.
func (c *confiner) caches(home string) []string {
	var all []string
	for _, name := range []string{"XDG_CACHE_HOME", "GOCACHE", "GOMODCACHE", "CARGO_HOME", "npm_config_cache", "GRADLE_USER_HOME"} {
		all = append(all, c.env.Getenv(name))
	}
	if gopath := c.env.Getenv("GOPATH"); gopath != "" {
		all = append(all, filepath.Join(gopath, "pkg"))
	}
	if home == "" {
		return all
	}
	for _, name := range []string{".cache", "go/pkg", ".npm", ".cargo/registry", ".cargo/git", ".m2", ".gradle", ".ivy2", ".pnpm-store", ".local/share/pnpm", "Library/Caches"} {
		all = append(all, filepath.Join(home, name))
	}
	return all
}

func (c *confiner) absolute(dirs []string) (all []string) {
	for _, d := range dirs {
		if rest, ok := strings.CutPrefix(d, "~/"); ok {
			d = filepath.Join(c.env.Getenv("HOME"), rest)
		}
		if !filepath.IsAbs(d) {
			d = filepath.Join(c.root, d)
		}
		all = append(all, d)
	}
	return all
}

// existing are the paths that are there, each once.
func existing(paths []string) (all []string) {
	for _, p := range paths {
		if p == "" || !filepath.IsAbs(p) || slices.Contains(all, p) {
			continue
		}
		if _, err := os.Lstat(strings.TrimSuffix(p, "/")); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// guard is the command to run in place of one that was let run because it only
// reads: what a repository could make git run is switched off.
func (h *house) guard(command string) string {
	return risk.Guard(command, risk.Analyse(command, h.riskFacts()))
}
