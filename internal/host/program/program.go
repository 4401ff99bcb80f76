// Package program is the only package that starts programs. coder's own programs, outside the sandbox,
// start through a [Door]: it finds them only where no command or repository can have put them, and gives
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

// ErrShut is the error of a zero Door.
var ErrShut = errors.New("cannot start programs here: the folders to keep out of are not set")

// Places are the folders that programs never come from.
type Places struct {
	Work     []string // the workspace and added folders: nothing there runs, not even by full path
	Writable []string // other folders writable by commands: a program there is not found by name
}

// A Door starts programs outside the sandbox. The zero Door refuses.
type Door struct {
	finder *finder
	env    []string
}

// New returns a Door to the programs on the PATH of an environment. It calls places for the first
// program.
func New(environ []string, places func() Places) Door {
	f := &finder{found: make(map[string]string), passed: make(map[string]string)}
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
	f.places = sync.OnceValues(func() (work, all []place) {
		p := places()
		for _, name := range slices.Concat(p.Work, p.Writable) {
			if filepath.IsAbs(name) {
				info, _ := os.Stat(name) // a folder created later is matched by name
				all = append(all, place{filepath.Clean(name), info})
			}
			if len(all) <= len(p.Work) {
				work = all
			}
		}
		return work, all
	})
	return Door{f, environ}
}

// Outside returns a Door that runs no programs from the given folders.
func Outside(environ []string, work ...string) Door {
	return New(environ, func() Places { return Places{Work: work} })
}

// With returns the Door with another environment for its programs.
func (d Door) With(environ []string) Door { return Door{d.finder, environ} }

// Refusal reports a program in a folder that commands may write to.
type Refusal struct{ Name, File, Folder string }

func (r *Refusal) Error() string {
	return fmt.Sprintf("coder does not run %s, because commands may write to %s: install %s outside that folder", r.File, r.Folder, r.Name)
}

func (r *Refusal) Unwrap() error { return ErrNotFound }

// Find finds a program by name on the PATH, or accepts a full path from the user's settings.
func (d Door) Find(name string) (string, error) {
	f := d.finder
	if f == nil {
		return "", ErrShut
	}
	work, all := f.places()
	switch {
	case len(work) == 0:
		return "", ErrShut
	case filepath.IsAbs(name):
		if folder := through(name, work); folder != "" {
			return "", &Refusal{filepath.Base(name), name, folder}
		}
		return name, nil
	case strings.ContainsRune(name, filepath.Separator):
		return "", fmt.Errorf("coder does not run %s from the current folder: use its full path", name)
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
			folder = through(file, all)
		}
		if folder == "" {
			f.found[name] = file
			return file, nil
		}
		if refused == nil {
			refused = &Refusal{name, file, folder}
		}
	}
	if refused == nil {
		refused = &Error{Name: name, Err: ErrNotFound}
	}
	return "", refused
}

// Command returns a command for a program. It fails to start if the program is refused. For git, use
// [Door.Git] and [Door.Query].
func (d Door) Command(ctx context.Context, name string, args ...string) *Cmd {
	if filepath.Base(name) == "git" {
		return refuse(ctx, name, errors.New("git starts only with the repository's programs disabled"))
	}
	return d.command(ctx, name, args...)
}

func (d Door) command(ctx context.Context, name string, args ...string) *Cmd {
	file, err := d.Find(name)
	if err != nil {
		return refuse(ctx, name, err)
	}
	cmd := exec.CommandContext(ctx, file, args...)
	cmd.Env = d.finder.clean(d.env)
	return cmd
}

// refuse returns a command that fails to start with the error why.
func refuse(ctx context.Context, name string, why error) *Cmd {
	cmd := exec.CommandContext(ctx, "/", name)
	cmd.Env, cmd.Err = []string{}, why
	return cmd
}

// Admit makes a command built for the sandbox run outside it: it finds the program again, and cleans the
// environment.
func (d Door) Admit(cmd *Cmd) error {
	file, err := d.Find(cmd.Args[0])
	if err != nil {
		return err
	}
	cmd.Path, cmd.Err, cmd.Env = file, nil, d.finder.clean(cmd.Env)
	return nil
}

// finder looks up programs and caches the results.
type finder struct {
	path   string
	home   string // coder's own folder, "" if there is none
	places func() (work, all []place)

	mu     sync.Mutex        // guards the fields below
	found  map[string]string // program name → file
	passed map[string]string // variable value → cleaned value
}

// place is a folder that programs never come from.
type place struct {
	name string
	info fs.FileInfo // nil if the folder does not exist
}

// maxLinks limits the links on a path.
const maxLinks = 40

// through returns the last place that a path passes through, by its name or by a link, or "". It
// resolves name by name, as the kernel does: after a link, ".." is the parent of the link's target.
func through(path string, places []place) (found string) {
	at, parts := string(filepath.Separator), strings.Split(path, string(filepath.Separator))
	found = is(at, places)
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
		found = cmp.Or(is(next, places), found)
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

// is returns the place that a path names. It compares folders by identity, since a folder may have many
// names.
func is(path string, places []place) string {
	info, err := os.Stat(path)
	for _, p := range places {
		if p.name == path || err == nil && p.info != nil && os.SameFile(info, p.info) {
			return p.name
		}
	}
	return ""
}
