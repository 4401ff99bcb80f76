//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// offered are the names under which a repository can have something read
// without anybody asking for it, and those in the person's home.
var offered = []string{
	"AGENTS.md", "CLAUDE.md", "sub/AGENTS.md", ".coder/config.json", ".mcp.json",
	".gitignore", "sub/.gitignore", ".git", ".git/config", ".git/HEAD", ".git/index", ".git/packed-refs", ".git/commondir", ".git/info/exclude",
	".coder/skills", ".coder/skills/x/SKILL.md", ".claude/skills/x/SKILL.md", ".agents/skills", ".coder/commands", ".coder/commands/x.md",
	".coder/agents", ".coder/agents/x.md", ".coder/log", ".coder/log/old/events.jsonl", ".coder/log/old/conversation.jsonl", ".coder/log/old/audit.jsonl",
	".coder/log/old/lock", ".coder/sessions", ".coder/sessions/old.json", ".coder/plans", ".coder/cache", ".coder/cache/code.index", ".coder/undo", ".coder/runs",
	"package.json", "go.mod", "Makefile", "pyproject.toml", "Cargo.toml",
	"~/.coder/AGENTS.md", "~/.coder/trust.json", "~/.coder/skills/x/SKILL.md", "~/.coder/commands/x.md", "~/.coder/agents/x.md", "~/.coder/config.json",
}

// looker is a model that uses everything that looks around.
const looker = `
call list {"path": "."}
call grep {"pattern": "nothing"}
call glob {"pattern": "**/*.go"}
call search_code {"query": "nothing"}
call git_status {}
call write {"path": "new.txt", "content": "x\n"}
---
say done
---
say done
---
say done
repeat
`

// hangGuard ends a process that waits for something that never comes. It is
// far longer than any run takes.
const hangGuard = 15 * time.Minute

// home is where this program's person lives.
func (p *program) home() string { return filepath.Join(p.ws, "..", "home-of-"+filepath.Base(p.ws)) }

func (p *program) offeredPath(name string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		return filepath.Join(p.home(), rest)
	}
	return filepath.Join(p.ws, name)
}

// plant puts something under a name, unless another planted thing is in the way.
func (p *program) plant(name string, put func(path string) error) {
	p.t.Helper()
	path := p.offeredPath(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return
	}
	if err := os.RemoveAll(path); err != nil {
		p.t.Fatal(err)
	}
	if err := put(path); err != nil && !errors.Is(err, fs.ErrExist) {
		p.t.Fatalf("plant %s: %v", name, err)
	}
}

// ends runs coder and fails if it does not end by itself.
func (p *program) ends(args ...string) (said string, code int) {
	p.t.Helper()
	ctx, stop := context.WithTimeout(p.t.Context(), hangGuard)
	defer stop()
	c := exec.CommandContext(ctx, p.self, args...)
	var out bytes.Buffer
	c.Dir, c.Env, c.Stdout, c.Stderr = p.ws, append(p.env, "HOME="+p.home(), "OFFERED_MARK=leaked-environment"), &out, &out
	c.WaitDelay = time.Second
	err := c.Run()
	var exit *exec.ExitError
	if ctx.Err() != nil || err != nil && !errors.As(err, &exit) {
		p.t.Fatalf("%v does not end: %v\n%s", args, err, out.String())
	}
	return out.String(), c.ProcessState.ExitCode()
}

// use has the program look around by itself, in as many ways as there are.
func (p *program) use(script string, ways int) (said string) {
	p.t.Helper()
	for _, args := range [][]string{
		{"-p", "--auto-approve", "--script", script, "go"}, {"-p", "-c", "--script", script, "go on"}, {"sessions"},
		{"-p", "-r", "old", "--script", script, "go on"}, {"config", "show"}, {"policy", "check", "git status"}, {"audit"}, {"trust"},
	}[:ways] {
		text, _ := p.ends(args...)
		said += text
	}
	return said
}

func TestNothingThatARepositoryOffersIsWaitedFor(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	for _, name := range offered {
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			t.Parallel()
			p := newProgram(t)
			p.plant(name, func(path string) error { return syscall.Mkfifo(path, 0o600) })
			p.use(p.file("../model", looker), 3)
		})
	}
}

func TestNothingThatARepositoryOffersLeadsElsewhere(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	const key = "-----BEGIN KEY----- leaked-key"
	kinds := map[string]func(p *program, path string) error{
		"environ":   func(_ *program, path string) error { return os.Symlink("/proc/self/environ", path) },
		"zero":      func(_ *program, path string) error { return os.Symlink("/dev/zero", path) },
		"terminal":  func(_ *program, path string) error { return os.Symlink("/dev/tty", path) },
		"key":       func(p *program, path string) error { return os.Symlink(filepath.Join(p.home(), ".ssh/id_rsa"), path) },
		"outside":   func(p *program, path string) error { return os.Symlink(filepath.Join(p.home(), "letter.md"), path) },
		"own env":   func(p *program, path string) error { return os.Symlink(filepath.Join(p.ws, ".env"), path) },
		"loop":      func(_ *program, path string) error { return os.Symlink(filepath.Base(path), path) },
		"directory": func(_ *program, path string) error { return os.Mkdir(path, 0o755) },
		"pipe":      func(_ *program, path string) error { return syscall.Mkfifo(path, 0o600) },
		"garbage": func(_ *program, path string) error {
			return os.WriteFile(path, []byte("\x00\xff\xfe{[---\n: :"), 0o644)
		},
		"huge": func(_ *program, path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o644), os.Truncate(path, 1<<28))
		},
	}
	for kind, put := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := newProgram(t)
			for _, dir := range []string{filepath.Join(p.home(), ".ssh"), p.home()} {
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for path, text := range map[string]string{
				filepath.Join(p.home(), ".ssh/id_rsa"): key, filepath.Join(p.home(), "letter.md"): "leaked-letter", filepath.Join(p.ws, ".env"): "KEY=leaked-own",
			} {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range offered {
				if !strings.HasPrefix(name, "~/") && !strings.HasPrefix(name, ".coder/log") && name != ".git" {
					p.plant(name, func(path string) error { return put(p, path) })
				}
			}
			said := p.use(p.file("../model", looker), 8)
			if !strings.Contains(said, "AGENTS.md is ignored") && kind != "huge" && kind != "garbage" {
				t.Errorf("nobody was told:\n%s", said)
			}
			if text := everything(t, p.ws); strings.Contains(text+said, "leaked-") {
				i := strings.Index(text+said, "leaked-")
				t.Errorf("it leaked: %.300q", (text + said)[max(0, i-200):])
			}
		})
	}
}

// everything is what the program wrote down about a workspace.
func everything(t *testing.T, ws string) string {
	t.Helper()
	var all strings.Builder
	for _, dir := range []string{"log", "sessions"} {
		_ = filepath.WalkDir(filepath.Join(ws, ".coder", dir), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && path != filepath.Join(ws, ".coder", "sessions") && !strings.HasSuffix(path, "old.json") {
				text, _ := os.ReadFile(path)
				all.Write(text)
			}
			return nil
		})
	}
	return all.String()
}
