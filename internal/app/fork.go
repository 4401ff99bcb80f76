package app

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"coder/internal/core/event"
	"coder/internal/host/repofile"
	"coder/internal/host/workspace"
	"coder/internal/host/worktree"
	"coder/internal/policy/mode"
	"coder/internal/record/seal"
	"coder/internal/report/asof"
)

// Forked is a session that began at a record of another one, in a folder of its own.
type Forked struct {
	worktree.Entry
	Mode    string   // the one that it begins in; "" if it is the usual one
	Yolo    bool     // the mode of then was yolo, which does not carry over
	Within  string   // the tool of the call that was under way
	Lost    []string // files whose contents nobody has any more
	Outside []string // files of then that lie outside of the workspace, and stay as they are
}

// maxForked is the longest file that is brought into a fork.
const maxForked = 1 << 30

// Worktrees is where it is written down which folders forks made.
func (a *App) Worktrees() (worktree.Book, error) {
	if a.Home == "" {
		return worktree.Book{}, inputf("no home folder to record worktrees in: set HOME")
	}
	return worktree.Book{Dir: filepath.Join(a.Home, "worktrees")}, nil
}

// ForkAt begins a new session from a record of another one: with conversation, todos
// and mode of then, and with the files of then in a git worktree beside the
// repository, or without git in a copy beside the workspace. A record of zero is the
// last. If it fails nothing is left of it.
func (a *App) ForkAt(ctx context.Context, id string, at uint64, as string) (f Forked, err error) {
	book, err := a.Worktrees()
	if err != nil {
		return f, err
	}
	if _, err := a.Store().Known(ctx, id); err != nil {
		return f, err
	}
	past, err := a.pastOf(ctx, id, at)
	if err != nil {
		return f, err
	}
	defer past.ws.Close()
	f.Entry = worktree.Entry{
		From: a.Root, Source: id, At: past.Seq, Session: cmp.Or(as, NewSessionID(a.Env.Now())), Made: a.Env.Now().UTC(),
	}
	f.Within, f.Outside = past.Within, past.Outside()
	if err := a.placeFork(ctx, &f.Entry, past.when); err != nil {
		return f, err
	}
	if err := book.Put(f.Entry); err != nil {
		return f, fmt.Errorf("record the worktree: %w", err)
	}
	defer func() {
		if err != nil {
			_, gone := a.RemoveWorktree(context.WithoutCancel(ctx), f.Entry)
			err = errors.Join(err, gone)
		}
	}()
	if err := a.fillFork(ctx, &f, past); err != nil {
		return f, err
	}
	if err := a.beginFork(ctx, &f, past); err != nil {
		return f, err
	}
	if f.Print, err = worktree.Print(f.Dir); err != nil {
		return f, err
	}
	return f, book.Put(f.Entry)
}

// moment is what a session and its files were at one of its records.
type moment struct {
	asof.World
	ws           *workspace.Workspace
	kept         contents
	when         time.Time // of the record
	mode, preset string    // as far as this user's program put them on record
	now          map[string]bool
}

// pastOf reads what the record tells of a session at one of its records, zero being
// the last.
func (a *App) pastOf(ctx context.Context, id string, at uint64) (p *moment, err error) {
	ws, err := workspace.Open(a.Root, a.Options.AddDirs...)
	if err != nil {
		return nil, inputf("open the workspace: %v", err)
	}
	ws.UseGitSettings(a.gitSettings())
	defer func() {
		if err != nil {
			ws.Close()
		}
	}()
	p = &moment{ws: ws, kept: a.kept(ws), now: make(map[string]bool)}
	s := a.Store()
	notary, doubted := seal.New(s.Key(), s.root, id), s.doubt(id) != ""
	last := uint64(0)
	for r, err := range s.Logs.Read(ctx, id, 0) {
		if err != nil {
			return nil, err
		}
		last = r.Seq
		if at > 0 && r.Seq > at {
			continue
		}
		p.when = r.Time
		if e, ok := r.Event.(event.ModeChanged); ok && !doubted && notary.Vouches(r) {
			p.mode, p.preset = e.Mode, e.Preset
		}
	}
	if last == 0 {
		return nil, inputf("session %s has only a session file: its logs, which hold its files, are missing", id)
	}
	p.World, err = asof.Trace(ctx, s.Logs.Read(ctx, id, 0), cmp.Or(at, last), p.kept)
	if beyond := (*asof.RangeError)(nil); errors.As(err, &beyond) {
		return nil, inputf("session %s has %d records", id, beyond.Records)
	}
	if err != nil {
		return nil, inputf("session %s: %v", id, err)
	}
	if why := s.unreadOf(id); why != "" && !p.Whole {
		return nil, inputf("%s, so the files of that time are unknown", why)
	}
	return p, nil
}

// placeFork finds the folder for a fork, and where git is one for its branch.
func (a *App) placeFork(ctx context.Context, e *worktree.Entry, when time.Time) error {
	top, rel := a.Root, "."
	if repo, _ := repofile.Repository(a.Root); repo != "" {
		if t, err := worktree.Open(ctx, repo, a.Door()); err == nil {
			if e.Commit, err = t.CommitAt(ctx, when); err == nil { // else there is no commit yet
				e.Repo = repo
			}
		}
	}
	if e.Repo != "" {
		var err error
		if rel, err = filepath.Rel(e.Repo, a.Root); err != nil {
			return err
		}
		top = e.Repo
	}
	dir, err := worktree.Free(filepath.Dir(top), filepath.Base(top)+"-at-"+strconv.FormatUint(e.At, 10))
	if err != nil {
		return inputf("find a folder for the fork: %v", err)
	}
	e.Dir, e.Work, e.Name = dir, filepath.Join(dir, rel), filepath.Base(dir)
	if book, err := a.Worktrees(); err == nil {
		for n := 2; ; n++ {
			if _, err := book.Find(e.Name); errors.Is(err, fs.ErrNotExist) {
				break
			}
			e.Name = fmt.Sprintf("%s-%d", filepath.Base(dir), n)
		}
	}
	if e.Repo != "" {
		e.Branch = "coder/" + e.Session
	}
	return nil
}

// fillFork makes the folder of a fork and puts the files of then into it.
func (a *App) fillFork(ctx context.Context, f *Forked, p *moment) error {
	var spared []string
	if f.Repo != "" {
		t, err := worktree.Open(ctx, f.Repo, a.Door())
		if err != nil {
			return err
		}
		made, err := t.Add(ctx, f.Dir, f.Branch, f.Commit)
		if err != nil {
			return err
		}
		if spared, err = made.TrackedIgnored(ctx, f.Work); err != nil {
			return err
		}
	} else if err := os.Mkdir(f.Dir, 0o755); err != nil {
		return inputf("create the folder of the fork: %v", err)
	}
	if err := os.MkdirAll(f.Work, 0o755); err != nil {
		return err
	}
	files, err := a.forkFiles(ctx, f, p)
	if err != nil {
		return err
	}
	f.Lost, err = worktree.Fill(ctx, f.Work, files, func(ctx context.Context, s event.FileState) ([]byte, error) {
		if p.now[s.Path] {
			text, _, err := p.ws.ReadFile(s.Path, maxForked)
			return text, err
		}
		return p.kept.Content(ctx, s, maxForked)
	}, spared...)
	if err != nil {
		return fmt.Errorf("restore the files of record %d: %w", p.Seq, err)
	}
	return nil
}

// forkFiles are all files of then. Those that no record tells of are as they are
// now, without what other sessions did since.
func (a *App) forkFiles(ctx context.Context, f *Forked, p *moment) (worktree.Files, error) {
	files := make(worktree.Files)
	if !p.Whole {
		if err := a.addNow(ctx, p, ".", files); err != nil {
			return nil, err
		}
		if err := a.withoutLater(ctx, f.Source, p, files); err != nil {
			return nil, err
		}
	}
	if f.Repo == "" { // git has those that are tracked
		if err := a.addOwn(ctx, p, files); err != nil {
			return nil, err
		}
	}
	for name, s := range p.Files {
		if filepath.IsAbs(name) {
			continue
		}
		delete(p.now, name)
		if files[name] = s; s.Hash == "" && !s.Lost {
			delete(files, name)
		}
	}
	for _, name := range p.Unsure {
		if err := a.addNow(ctx, p, name, files); err != nil {
			return nil, err
		}
	}
	return files, ctx.Err()
}

// addNow adds files as they are now, but for those that are ignored.
func (a *App) addNow(ctx context.Context, p *moment, from string, files worktree.Files) error {
	if _, err := p.ws.Lstat(from); err != nil {
		delete(files, from)
		return nil
	}
	for e := range p.ws.Walk(ctx, from, 0) {
		if e.Err != nil || e.Ignored || e.Path == "." || repofile.CheckLayout(e.Path, "") != nil {
			continue
		}
		p.addFile(e.Path, files)
	}
	return ctx.Err()
}

// addFile adds a file as it is now.
func (p *moment) addFile(name string, files worktree.Files) {
	info, err := p.ws.Lstat(name)
	if err != nil {
		return
	}
	s := event.FileState{Path: name, Mode: uint32(info.Mode().Perm())}
	switch {
	case info.IsDir():
		s.Hash = "dir"
	case info.Mode()&fs.ModeSymlink != 0:
		s.Hash, s.Mode = "link", 0
		if s.Link, err = p.ws.Readlink(name); err != nil {
			return
		}
	case info.Mode().IsRegular():
		s.Hash, s.Size = "now", info.Size()
		p.now[name] = true
	default:
		return
	}
	files[name] = s
}

// addOwn adds what people wrote for coder in the project.
func (a *App) addOwn(ctx context.Context, p *moment, files worktree.Files) error {
	entries, _, err := p.ws.ReadDir(".coder", 1000)
	if err != nil {
		return nil // there is none
	}
	for _, e := range entries {
		if slices.Contains(dataFolders, e.Name()) || e.Name() == "tmp" || e.Name() == ".gitignore" {
			continue
		}
		name := ".coder/" + e.Name()
		err := fs.WalkDir(repofile.Below(a.Root), name, func(name string, d fs.DirEntry, err error) error {
			if err == nil {
				p.addFile(name, files)
			}
			return ctx.Err()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// withoutLater takes out of files as they are now what other sessions did to them
// after the record.
func (a *App) withoutLater(ctx context.Context, id string, p *moment, files worktree.Files) error {
	first := make(map[string]time.Time)
	s := a.Store()
	for _, other := range s.IDs() {
		if other == id {
			continue
		}
		for r, err := range s.read(ctx, other, func([]byte) bool { return true }, event.Audit) {
			if err != nil {
				break // what can be read of it counts
			}
			e, ok := r.Event.(event.ToolCallCompleted)
			if !ok || !r.Time.After(p.when) {
				continue
			}
			for c := range p.each(ctx, e.Changes) {
				name := c.Before.Path
				if at, known := first[name]; filepath.IsAbs(name) || known && at.Before(r.Time) {
					continue
				}
				first[name] = r.Time
				delete(p.now, name)
				if files[name] = c.Before; c.Before.Hash == "" && !c.Before.Lost {
					delete(files, name)
				}
			}
		}
	}
	return ctx.Err()
}

// each yields changes one by one, also those that were recorded together.
func (p *moment) each(ctx context.Context, changes []event.FileChange) iter.Seq[event.FileChange] {
	return func(yield func(event.FileChange) bool) {
		for _, c := range changes {
			list := []event.FileChange{c}
			if strings.HasPrefix(c.Before.Hash, "tree:") {
				list, _ = p.kept.Expand(ctx, c) // what was not kept is missed when it is needed
			}
			for _, one := range list {
				if !yield(one) {
					return
				}
			}
		}
	}
}

// beginFork writes the session into the folder of a fork, up to the record, and ends
// what was under way there.
func (a *App) beginFork(ctx context.Context, f *Forked, p *moment) error {
	o := Options{Dir: f.Work, Speech: a.Options.Speech}
	env := a.Env
	env.Dir = f.Work
	settings, err := Load(env, o)
	if err != nil {
		return err
	}
	there, err := New(env, o, settings, func(string) {}) // what is wrong with them is told when it is worked in
	if err != nil {
		return err
	}
	var copied bytes.Buffer
	if _, err := a.bundle(ctx, &copied, f.Source, p.Seq); err != nil {
		return err
	}
	if _, _, err := there.Import(ctx, &copied, f.Session); err != nil {
		return err
	}
	preset := p.preset
	if f.Yolo = p.mode == mode.Yolo || preset == mode.Yolo; f.Yolo {
		preset = ""
	} else {
		f.Mode = p.mode
	}
	if err := there.Store().Records.Cut(ctx, f.Session, f.Mode, preset); err != nil {
		return fmt.Errorf("end the unfinished work: %w", err)
	}
	return errors.Join(there.Store().Records.Project(ctx, f.Session), there.Store().Unkept())
}

// RemoveWorktree removes the folder of a fork, and reports whether its branch stays
// because there are commits on it.
func (a *App) RemoveWorktree(ctx context.Context, e worktree.Entry) (stays bool, err error) {
	book, err := a.Worktrees()
	if err != nil {
		return false, err
	}
	if e.Repo != "" {
		t, err := worktree.Open(ctx, e.Repo, a.Door())
		switch {
		case errors.Is(err, fs.ErrNotExist): // the repository is gone, and the worktree is none any more
		case err != nil:
			return false, err
		default:
			if stays, err = t.Remove(ctx, e.Dir, e.Branch, e.Commit); err != nil {
				return stays, err
			}
		}
	}
	if err := os.RemoveAll(e.Dir); err != nil {
		return stays, err
	}
	return stays, book.Strike(e.Name)
}
