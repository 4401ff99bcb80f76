package search

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"coder/internal/workspace"
)

// FindRipgrep looks for rg in the directories of a PATH. Relative ones and those
// in the workspace do not count: what lies there is not to be run unasked. It
// is "" if there is none.
func FindRipgrep(pathList string, ws *workspace.Workspace) string { return ws.Program(pathList, "rg") }

const (
	minEnough     = 2000     // files rg names, in any order, until we rather look ourselves
	enoughTimes   = 4        // and how many for each match that is wanted
	maxComplaints = 64 << 10 // bytes of what it complains about
	rgWait        = time.Second
	rgPatience    = 10 * time.Second // without a word from rg before we look ourselves
)

// candidates asks rg which files below the base may have a match, in the order
// of a walk. It is false if rg cannot be asked, or names so many that a walk soon
// has all that is wanted: then we look ourselves.
func (s *searcher) candidates(ctx context.Context) (names []string, ok bool) {
	if s.ripgrep == "" {
		return nil, false
	}
	inherits, ok := s.inherits()
	if !ok {
		return nil, false
	}
	pattern, ok := rustPattern(s.m.source)
	if !ok {
		return nil, false
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	cmd := exec.CommandContext(ctx, s.ripgrep, s.arguments(pattern, inherits)...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = s.ws.Abs(s.base), []string{}, rgWait
	complaints := &firstBytes{left: maxComplaints}
	cmd.Stderr = complaints
	out, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		return nil, false
	}
	silent := time.AfterFunc(rgPatience, stop) // it may wait for a pipe where it expects a file of rules
	names, whole := s.readNames(out, func() { silent.Reset(rgPatience) })
	if !whole {
		stop()
		silent.Stop()
		_ = cmd.Wait() // it was told to end
		return nil, false
	}
	err = cmd.Wait()
	if !silent.Stop() {
		return nil, false
	}
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) && failed.ExitCode() == 2 && !s.complained(complaints.String()) {
		return nil, false // it does not like the pattern, or is not what we think
	} else if err != nil && !errors.As(err, &failed) {
		return nil, false
	}
	if s.crosses(names, inherits) {
		return nil, false
	}
	slices.SortFunc(names, walkOrder)
	return names, true
}

// inherits reports whether ignore rules of the directories above the base hold
// in it. If rg is told to heed those it heeds the ones above the tree as well,
// which we do not, so ok is false if there are such.
func (s *searcher) inherits() (yes, ok bool) {
	if len(s.ws.IgnoreFilesAbove(s.base)) == 0 {
		return false, true
	}
	for dir := s.top(); dir != filepath.Dir(dir); {
		dir = filepath.Dir(dir)
		if _, err := os.Lstat(filepath.Join(dir, ".gitignore")); err == nil {
			return true, false
		}
	}
	return true, true
}

// crosses reports whether there is a repository within the tree on the way to
// one of names. No ignore rule from outside holds in it for rg; for us it does.
func (s *searcher) crosses(names []string, inherits bool) bool {
	seen := map[string]bool{s.base: !inherits, ".": true, s.top(): true}
	for _, name := range names {
		for dir := path.Dir(name); !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			if _, err := s.ws.Lstat(path.Join(dir, ".git")); err == nil {
				return true
			}
		}
	}
	return false
}

// top is the root of the tree that the base lies in.
func (s *searcher) top() string {
	top := s.ws.Abs(".")
	if !path.IsAbs(s.base) {
		return top
	}
	for _, dir := range s.ws.Added() {
		if rel, err := filepath.Rel(dir, s.base); err == nil && filepath.IsLocal(rel) {
			return dir
		}
	}
	return top
}

// arguments make rg look at the files we would look at, and name each that has
// a match.
func (s *searcher) arguments(pattern string, inherits bool) []string {
	args := []string{
		"--no-config", "--no-follow", "--hidden", "--text", "--crlf", "--null", "--files-with-matches",
		"--no-ignore-dot", "--no-ignore-exclude", "--no-ignore-global", "--no-require-git",
		"--color=never", "--max-filesize=" + strconv.FormatInt(s.size, 10),
	}
	if !inherits {
		args = append(args, "--no-ignore-parent")
	}
	for _, dir := range workspace.NeverSearched() {
		args = append(args, "--glob=!"+dir+"/")
	}
	return append(args, "--regexp="+pattern, "--", "./")
}

// readNames reads what rg found; whole is false if that is more than enough.
func (s *searcher) readNames(out io.Reader, heard func()) (names []string, whole bool) {
	r := bufio.NewReader(out)
	for {
		name, err := r.ReadString(0)
		if err != nil {
			return names, true
		}
		heard()
		rel := strings.TrimPrefix(strings.TrimSuffix(name, "\x00"), "./")
		if at := path.Join(s.base, rel); s.wanted(rel) && !s.hides(at) {
			names = append(names, at)
		}
		if len(names) > max(minEnough, enoughTimes*s.limit) {
			return names, false
		}
	}
}

// complained notes the places rg could not read, and reports whether that was
// all it complained about.
func (s *searcher) complained(text string) bool {
	only := text != ""
	for line := range strings.Lines(text) {
		name, ok := strings.CutPrefix(line, "./")
		if !ok {
			name, ok = strings.CutPrefix(line, "rg: ./")
		}
		name, why, cut := cutLast(strings.TrimRight(name, "\n"), ": ")
		if !ok || !cut || !strings.Contains(why, "os error") {
			only = false
			continue
		}
		s.unreadable = noted(s.unreadable, path.Join(s.base, name))
	}
	return only
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// firstBytes keeps the beginning of what is written to it.
type firstBytes struct {
	bytes.Buffer
	left int
}

func (f *firstBytes) Write(b []byte) (int, error) {
	n := min(len(b), f.left)
	f.left -= n
	f.Buffer.Write(b[:n])
	return len(b), nil
}

// walkOrder compares names as a walk comes across them: the near before the
// far, each directory in the order of names.
func walkOrder(a, b string) int {
	if c := cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")); c != 0 {
		return c
	}
	as, bs := strings.Split(a, "/"), strings.Split(b, "/")
	return slices.Compare(as, bs)
}
