package cli

import (
	"cmp"
	"coder/internal/app"
	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
	"coder/internal/host/stdio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// edit lets the person write in their own editor.
func (t *terminal) edit(ctx context.Context, text string) (string, error) {
	program := cmp.Or(t.Getenv("VISUAL"), t.Getenv("EDITOR"), "vi")
	path, done, err := t.draft(text)
	if err != nil {
		return text, err
	}
	defer done()
	words := strings.Fields(program)
	cmd := exec.CommandContext(ctx, words[0], append(words[1:], path)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stdio.Grace
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Dir, cmd.Env = t.in, t.out, t.out, t.app.Root, t.app.ChildEnv()
	if err := cmd.Run(); err != nil {
		return text, fmt.Errorf("%s: %w", program, err)
	}
	written, err := repofile.Own(path, promptLimit)
	return strings.TrimRight(string(written), "\n"), err
}

// draft puts text into a file for an editor, where it is swept if this process is
// killed. Done removes it, and what the editor left beside it.
func (t *terminal) draft(text string) (path string, done func(), err error) {
	dir := filepath.Join(t.app.Home, app.Drafts)
	if t.app.Home == "" || os.MkdirAll(dir, 0o700) != nil {
		dir = os.TempDir()
	}
	release, err := atomicfile.Hold(dir)
	if err != nil {
		return "", nil, err
	}
	f, err := os.CreateTemp(dir, atomicfile.Prefix+"*.md")
	if err != nil {
		release()
		return "", nil, err
	}
	done = func() {
		defer release()
		names, _ := filepath.Glob(f.Name() + "*") // the pattern is good
		for _, name := range names {
			_ = os.Remove(name)
		}
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		done()
		return "", nil, err
	}
	return f.Name(), done, nil
}
