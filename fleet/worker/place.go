package worker

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"coder/internal/core/message"
	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
)

// place is the folder of a task on this machine. It has the same name on every
// machine, and one process at a time works in it: whoever enters it holds the
// claim on the task, so a process that is still there has lost it, and is ended.
type place struct {
	dir  string
	held *os.File
}

const (
	logsName = "logs" // where the logs of tasks that were here are kept
	holder   = "holder"
	waitTime = 10 * time.Second // for a process to end that was killed
)

// ownFolder makes sure that dir is a folder of this user's alone.
func ownFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return errors.New("the folder is not private to this user")
	}
	return nil
}

// enter makes the folder of a task anew, and holds it.
func enter(root, id string) (*place, error) {
	p := &place{dir: filepath.Join(root, id)}
	for until := time.Now().Add(waitTime); ; time.Sleep(20 * time.Millisecond) {
		in, err := p.hold()
		if in {
			break
		}
		if err == nil && time.Now().After(until) {
			err = errors.New("another process is there and does not exit")
		}
		if err != nil {
			return nil, message.Errorf("create the folder %s: %w", p.dir, err)
		}
		p.evict()
	}
	vacate(p.dir)
	err := os.Mkdir(p.inside(), 0o700)
	if err == nil {
		err = atomicfile.Write(filepath.Join(p.inside(), holder), []byte(strconv.Itoa(os.Getpid())), 0o600)
	}
	if err != nil {
		p.held.Close()
		return nil, message.Errorf("create the folder %s: %w", p.dir, err)
	}
	return p, nil
}

// inside is where the task may have files: the folder itself is held.
func (p *place) inside() string { return filepath.Join(p.dir, "in") }

// workIn is where the clone lies in the folder of a task.
func workIn(dir string) string { return filepath.Join(dir, "in", "repo", "work") }

// hold tries to hold the folder that has the name now.
func (p *place) hold() (in bool, err error) {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return false, err
	}
	if p.held, err = os.Open(p.dir); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	got := atomicfile.LockIfUnheld(p.held)
	opened, err := p.held.Stat()
	named, gone := os.Stat(p.dir)
	if got && err == nil && gone == nil && os.SameFile(opened, named) {
		return true, nil
	}
	p.held.Close()
	return false, err
}

// evict ends the process that holds the folder, with all that belongs to it.
func (p *place) evict() {
	text, err := repofile.ReadOwn(filepath.Join(p.inside(), holder), 64)
	if err != nil {
		return // it has not said yet who it is
	}
	if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && pid > 1 && pid != os.Getpid() {
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
}

// leave clears the folder and lets go of it.
func (p *place) leave() {
	vacate(p.dir)
	_ = os.Remove(p.dir)
	p.held.Close()
}

// vacate removes what is in the folder of a task, and keeps the log that was
// written there: it is what a lost engine can be filled from.
func vacate(dir string) {
	log := filepath.Join(workIn(dir), ".coder", "log", filepath.Base(dir))
	if _, err := os.Stat(log); err == nil {
		to := filepath.Join(filepath.Dir(dir), logsName, filepath.Base(dir), strconv.FormatInt(time.Now().UnixNano(), 36))
		if os.MkdirAll(filepath.Dir(to), 0o700) == nil && os.Rename(log, to) == nil {
			_ = os.Rename(filepath.Join(dir, "in", taskFile), filepath.Join(to, taskFile))
		}
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		_ = os.RemoveAll(filepath.Join(dir, e.Name()))
	}
}

// sweep clears the folders that processes left which were killed.
func sweep(root string) {
	entries, _ := os.ReadDir(root)
	for _, e := range entries {
		if e.Name() == logsName || !e.IsDir() {
			continue
		}
		held, err := os.Open(filepath.Join(root, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if p := (&place{dir: filepath.Join(root, e.Name()), held: held}); err == nil && atomicfile.LockIfUnheld(held) {
			p.leave()
		} else if err == nil {
			held.Close()
		}
	}
}
