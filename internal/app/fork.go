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
	"strconv"
	"strings"
	"time"

	"coder/internal/core/event"
	"coder/internal/host/repofile"
	"coder/internal/host/workspace"
	"coder/internal/host/worktree"
	"coder/internal/policy/mode"
	"coder/internal/record/past"
	"coder/internal/record/seal"
)

// Forked is a session that began at a record of another one, in its own folder.
type Forked struct {
	worktree.Entry
	Mode    string   // the one that it begins in; "" if it is the usual one
	Yolo    bool     // the source's mode was yolo, which does not carry over
	Within  string   // the tool of the call then running
	Lost    []string // files whose contents are gone
	Outside []string // files outside the workspace, which stay unchanged
}

// maxForked limits the size of a file in a fork.
const maxForked = 1 << 30

// Worktrees returns the book of the folders that forks made.
func (a *Archive) Worktrees() (worktree.Book, error) {
	if a.Home == "" {
		return worktree.Book{}, inputf("no home folder to record worktrees in: set HOME")
	}
	return worktree.Book{Dir: filepath.Join(a.Home, "worktrees")}, nil
}

// ForkAt begins a new session from a record of another one: with the conversation, todos and mode
// at that record, and with its files in a git worktree beside the repository, or without git in a
// copy beside the workspace. Record zero means the last. If it fails, it leaves nothing behind.
func (a *Archive) ForkAt(ctx context.Context, id string, at uint64, as string) (f Forked, err error) {
	book, err := a.Worktrees()
	if err != nil {
		return f, err
	}
	if _, err := a.Store().Known(ctx, id); err != nil {
		return f, err
	}
	then, err := a.pastOf(ctx, id, at)
	if err != nil {
		return f, err
	}
	defer then.kept.Workspace.Close()
	f.Entry = worktree.Entry{
		From: a.Root, Source: id, At: then.Seq, Session: cmp.Or(as, NewSessionID(a.Env.Now())), Made: a.Env.Now().UTC(),
	}
	f.Within, f.Outside = then.Within, then.Outside()
	if err := a.placeFork(ctx, &f.Entry, then.when); err != nil {
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
	if err := a.fillFork(ctx, &f, then); err != nil {
		return f, err
	}
	if err := a.beginFork(ctx, &f, then); err != nil {
		return f, err
	}
	if f.Print, err = worktree.Print(f.Dir); err != nil {
		return f, err
	}
	return f, book.Put(f.Entry)
}

// moment is a session and its files at one of its records.
type moment struct {
	past.Moment
	kept         *past.Store
	when         time.Time // the record's time
	mode, preset string    // as recorded and vouched
}

// pastOf reads a session's state at one of its records; zero means the last.
func (a *Archive) pastOf(ctx context.Context, id string, at uint64) (p *moment, err error) {
	kept, err := a.openPast(maxForked)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			kept.Workspace.Close()
		}
	}()
	p = &moment{kept: kept}
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
	if p.Moment, err = momentAt(ctx, id, s.Logs.Read(ctx, id, 0), cmp.Or(at, last), p.kept); err != nil {
		return nil, err
	}
	if why := s.unreadOf(id); why != "" && !p.Whole {
		return nil, inputf("%s, so the files of that time are unknown", why)
	}
	return p, nil
}

// momentAt is what records tell of a session's files at one of them.
func momentAt(ctx context.Context, id string, records iter.Seq2[event.Record, error], at uint64, kept past.Kept) (past.Moment, error) {
	m, err := past.At(ctx, records, at, kept)
	if beyond := (*past.RangeError)(nil); errors.As(err, &beyond) {
		return m, inputf("session %s has %d records", id, beyond.Records)
	}
	if err != nil {
		return m, inputf("session %s: %v", id, err)
	}
	return m, nil
}

// placeFork chooses the folder for a fork, and the branch if there is git.
func (a *Archive) placeFork(ctx context.Context, e *worktree.Entry, when time.Time) error {
	top, rel := a.Root, "."
	if repo, _ := repofile.Repository(a.Root); repo != "" {
		if t, err := worktree.Open(ctx, repo, a.Door()); err == nil {
			if e.Commit, err = t.CommitAt(ctx, when); err == nil { // otherwise there is no commit yet
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

// fillFork creates a fork's folder and fills it with the files at the record.
func (a *Archive) fillFork(ctx context.Context, f *Forked, p *moment) error {
	files, err := a.forkFiles(ctx, f.Source, p)
	if err != nil {
		return err
	}
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
	into, err := worktree.OpenFolder(f.Work, func(ctx context.Context, s event.FileState) ([]byte, error) {
		return p.kept.Content(ctx, s, maxForked)
	})
	if err != nil {
		return err
	}
	defer into.Close()
	if f.Repo != "" {
		err = into.Clear(files, spared...)
	} else { // git adds the tracked ones
		err = a.copyAuthored(f.Work)
	}
	if err == nil {
		f.Lost, err = into.Fill(ctx, files)
	}
	if err != nil {
		return fmt.Errorf("restore the files of record %d: %w", p.Seq, err)
	}
	return nil
}

// forkFiles returns all files at the record. Files without a record
// have their current content, without other sessions' later changes.
func (a *Archive) forkFiles(ctx context.Context, id string, p *moment) (worktree.Files, error) {
	files := make(worktree.Files)
	addNow := func(from string) {
		ignored := func(e workspace.Entry) bool { return e.Ignored || repofile.CheckLayout(e.Path, "") != nil }
		for s := range p.kept.Present(ctx, from, ignored) {
			files[s.Path] = s
		}
	}
	if !p.Whole {
		addNow(".")
		if err := a.withoutLater(ctx, id, p, files); err != nil {
			return nil, err
		}
	}
	for name, s := range p.Files {
		if !filepath.IsAbs(name) {
			files[name] = s
		}
	}
	for _, name := range p.Unsure {
		s, err := p.kept.Current(name)
		if err != nil {
			return nil, err
		}
		if files[name] = s; s.Hash == "dir" {
			addNow(name)
		}
	}
	return files, ctx.Err()
}

// withoutLater reverts other sessions' changes after the record in files with their current content.
func (a *Archive) withoutLater(ctx context.Context, id string, p *moment, files worktree.Files) error {
	first := make(map[string]time.Time)
	s := a.Store()
	for _, other := range s.IDs() {
		if other == id {
			continue
		}
		for r, err := range s.read(ctx, other, func([]byte) bool { return true }, event.Audit) {
			if err != nil {
				break // use the readable part
			}
			e, ok := r.Event.(event.ToolCallCompleted)
			if !ok || !r.Time.After(p.when) {
				continue
			}
			all, _ := past.Expand(ctx, p.kept, e.Changes) // unsaved content is reported when it is needed
			for _, c := range all {
				name := c.Before.Path
				at, known := first[name]
				if !filepath.IsAbs(name) && !strings.HasPrefix(c.Before.Hash, "tree:") && !(known && at.Before(r.Time)) {
					first[name], files[name] = r.Time, c.Before
				}
			}
		}
	}
	return ctx.Err()
}

// beginFork writes the session up to the record to the fork's folder, and ends its unfinished work.
func (a *Archive) beginFork(ctx context.Context, f *Forked, p *moment) error {
	o := Options{Dir: f.Work, Speech: a.Options.Speech}
	env := a.Env
	env.Dir = f.Work
	settings, err := Load(env, o)
	if err != nil {
		return err
	}
	there, err := New(env, o, settings, func(string) {}) // the fork's own run reports these warnings
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

// RemoveWorktree removes a fork's folder, and reports whether its branch stays because it has commits.
func (a *Archive) RemoveWorktree(ctx context.Context, e worktree.Entry) (stays bool, err error) {
	book, err := a.Worktrees()
	if err != nil {
		return false, err
	}
	if e.Repo != "" {
		t, err := worktree.Open(ctx, e.Repo, a.Door())
		switch {
		case errors.Is(err, fs.ErrNotExist): // the repository is gone, so nothing else is to do
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
