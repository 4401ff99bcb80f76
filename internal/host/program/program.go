// Package program is the only package that starts programs. coder's own programs, outside the sandbox,
// start through a [Launcher]: it finds them only where no command or repository can have put them, and gives
// them an environment that leads nowhere else. Git has two doors of its own, [Git] and [Query], which
// run nothing from a repository's configuration.
package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"coder/internal/core/message"
)

// Aliases of os/exec, for packages that handle a Door's results.
type (
	Cmd       = exec.Cmd
	Error     = exec.Error
	ExitError = exec.ExitError
)

var (
	ErrNotFound  = exec.ErrNotFound
	ErrDot       = exec.ErrDot
	ErrWaitDelay = exec.ErrWaitDelay
)

// ErrZeroLauncher is the error of a zero Door.
var ErrZeroLauncher = errors.New("cannot start programs here: the folders to keep out of are not set")

// UntrustedDirs are the folders that programs never come from.
type UntrustedDirs struct {
	Work     []string // the workspace and added folders: nothing there runs, not even by full path
	Writable []string // other folders writable by commands: a program there is not found by name
}

// A Launcher starts programs outside the sandbox. The zero Door refuses.
type Launcher struct {
	finder *finder
	env    []string
}

// New returns a Door to the programs on the PATH of an environment. It calls places for the first
// program.
func New(environ []string, places func() UntrustedDirs) Launcher {
	f := &finder{found: make(map[string]string), cleaned: make(map[string]string)}
	var user string
	for _, kv := range environ {
		switch name, value, _ := strings.Cut(kv, "="); name {
		case "PATH":
			f.path = value
		case "HOME":
			user = value
		case "CODER_HOME":
			f.home = value
		}
	}
	if f.home == "" && user != "" {
		f.home = filepath.Join(user, ".coder")
	}
	f.places = sync.OnceValues(func() (work, all []untrustedDir) {
		p := places()
		for _, name := range slices.Concat(p.Work, p.Writable) {
			if filepath.IsAbs(name) {
				info, _ := os.Stat(name) // a folder created later is matched by name
				all = append(all, untrustedDir{filepath.Clean(name), info})
			}
			if len(all) <= len(p.Work) {
				work = all
			}
		}
		return work, all
	})
	return Launcher{f, environ}
}

// NewOutside returns a Door that runs no programs from the given folders.
func NewOutside(environ []string, work ...string) Launcher {
	return New(environ, func() UntrustedDirs { return UntrustedDirs{Work: work} })
}

// WithEnv returns the Door with another environment for its programs.
func (d Launcher) WithEnv(environ []string) Launcher { return Launcher{d.finder, environ} }

// RefusalError reports a program in a folder that commands may write to.
type RefusalError struct{ Name, File, Folder string }

func (r *RefusalError) Error() string {
	return fmt.Sprintf("coder does not run %s, because commands may write to %s: install %s outside that folder", r.File,
		r.Folder, r.Name)
}

func (r *RefusalError) Unwrap() error { return ErrNotFound }

// Find finds a program by name on the PATH, or accepts a full path from the user's settings.
func (d Launcher) Find(name string) (string, error) {
	f := d.finder
	if f == nil {
		return "", ErrZeroLauncher
	}
	work, all := f.places()
	switch {
	case len(work) == 0:
		return "", ErrZeroLauncher
	case filepath.IsAbs(name):
		if folder := dirOnPath(name, work); folder != "" {
			return "", &RefusalError{filepath.Base(name), name, folder}
		}
		return name, nil
	case strings.ContainsRune(name, filepath.Separator):
		return "", message.Errorf("coder does not run %s from the current folder: use its full path", name)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if file := f.found[name]; file != "" {
		return file, nil
	}
	var refused error
	for _, dir := range filepath.SplitList(f.path) {
		file := filepath.Join(cmp.Or(dir, "."), name)
		if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
			continue
		}
		folder := cmp.Or(dir, ".")
		if filepath.IsAbs(dir) {
			folder = dirOnPath(file, all)
		}
		if folder == "" {
			f.found[name] = file
			return file, nil
		}
		if refused == nil {
			refused = &RefusalError{name, file, folder}
		}
	}
	if refused == nil {
		refused = &Error{Name: name, Err: ErrNotFound}
	}
	return "", refused
}

// Command returns a command for a program. It fails to start if the program is refused. For git, use
// [Door.Git] and [Door.Query].
func (d Launcher) Command(ctx context.Context, name string, args ...string) *Cmd {
	if filepath.Base(name) == "git" {
		return refusedCommand(ctx, name, errors.New("git starts only with the repository's programs disabled"))
	}
	return d.command(ctx, name, args...)
}

func (d Launcher) command(ctx context.Context, name string, args ...string) *Cmd {
	file, err := d.Find(name)
	if err != nil {
		return refusedCommand(ctx, name, err)
	}
	cmd := exec.CommandContext(ctx, file, args...)
	cmd.Env = d.finder.cleanEnv(d.env)
	return cmd
}

// refusedCommand returns a command that fails to start with the error why.
func refusedCommand(ctx context.Context, name string, why error) *Cmd {
	cmd := exec.CommandContext(ctx, "/", name)
	cmd.Env, cmd.Err = []string{}, why
	return cmd
}

// Unconfine makes a command built for the sandbox run outside it: it finds the program again, and cleans the
// environment.
func (d Launcher) Unconfine(cmd *Cmd) error {
	file, err := d.Find(cmd.Args[0])
	if err != nil {
		return err
	}
	cmd.Path, cmd.Err, cmd.Env = file, nil, d.finder.cleanEnv(cmd.Env)
	return nil
}

// finder looks up programs and caches the results.
type finder struct {
	path   string
	home   string // coder's own folder, "" if there is none
	places func() (work, all []untrustedDir)

	mu      sync.Mutex        // guards the fields below
	found   map[string]string // program name → file
	cleaned map[string]string // variable value → cleaned value
}

// untrustedDir is a folder that programs never come from.
type untrustedDir struct {
	name string
	info fs.FileInfo // nil if the folder does not exist
}

// maxLinks limits the links on a path.
const maxLinks = 40

// dirOnPath returns the last place that a path passes through, by its name or by a link, or "". It
// resolves name by name, as the kernel does: after a link, ".." is the parent of the link's target.
func dirOnPath(path string, places []untrustedDir) (found string) {
	at, parts := string(filepath.Separator), strings.Split(path, string(filepath.Separator))
	found = namedDir(at, places)
	for links := 0; len(parts) > 0; {
		part := parts[0]
		parts = parts[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, part)
		found = cmp.Or(namedDir(next, places), found)
		to, err := os.Readlink(next)
		if err != nil {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return path // endless links
		}
		if filepath.IsAbs(to) {
			at = string(filepath.Separator)
		}
		parts = append(strings.Split(to, string(filepath.Separator)), parts...)
	}
	return found
}

// namedDir returns the place that a path names. It compares folders by identity, since a folder may have many
// names.
func namedDir(path string, places []untrustedDir) string {
	info, err := os.Stat(path)
	for _, p := range places {
		if p.name == path || err == nil && p.info != nil && os.SameFile(info, p.info) {
			return p.name
		}
	}
	return ""
}
