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
	"coder/internal/core/message"
	"coder/internal/host/repofile"
	"coder/internal/host/workspace"
	"coder/internal/host/worktree"
	"coder/internal/policy/mode"
	"coder/internal/record/past"
	"coder/internal/record/seal"
)

// ForkResult is a session that began at a record of another one, in its own folder.
type ForkResult struct {
	worktree.Entry
	Mode    string   // the one that it begins in; "" if it is the usual one
	Yolo    bool     // the source's mode was yolo, which does not carry over
	Within  string   // the tool of the call then running
	Lost    []string // files whose contents are gone
	Outside []string // files outside the workspace, which stay unchanged
}

// maxForkedFile limits the size of a file in a fork.
const maxForkedFile = 1 << 30

// worktreesDir is the folder in CODER_HOME with the list of forks.
const worktreesDir = "worktrees"

// WorktreeBook returns the book of the folders that forks made.
func (a *Archive) WorktreeBook() (worktree.Registry, error) {
	if a.Home == "" {
		return worktree.Registry{}, inputErrorf("no home folder to record worktrees in: set HOME")
	}
	return worktree.Registry{Dir: filepath.Join(a.Home, worktreesDir)}, nil
}

// ForkSession begins a new session from a record of another one: with the conversation, todos and mode
// at that record, and with its files in a git worktree beside the repository, or without git in a
// copy beside the workspace. Record zero means the last. If it fails, it leaves nothing behind.
func (a *Archive) ForkSession(ctx context.Context, id string, at uint64, as string) (f ForkResult, err error) {
	book, err := a.WorktreeBook()
	if err != nil {
		return f, err
	}
	if _, err := a.Store().CheckSession(ctx, id); err != nil {
		return f, err
	}
	then, err := a.readMoment(ctx, id, at)
	if err != nil {
		return f, err
	}
	defer then.store.Workspace.Close()
	f.Entry = worktree.Entry{
		From: a.Root, Source: id, Record: then.Seq, Session: cmp.Or(as, NewSessionID(a.Env.Now())),
		Created: a.Env.Now().UTC(),
	}
	f.Within, f.Outside = then.ActiveTool, then.OutsideFiles()
	if err := a.chooseForkDir(ctx, &f.Entry, then.recordTime); err != nil {
		return f, err
	}
	if err := book.Save(f.Entry); err != nil {
		return f, message.Errorf("record the worktree: %w", err)
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
	if err := a.writeFork(ctx, &f, then); err != nil {
		return f, err
	}
	if f.Fingerprint, err = worktree.Fingerprint(f.Dir); err != nil {
		return f, err
	}
	return f, book.Save(f.Entry)
}

// sessionMoment is a session and its files at one of its records.
type sessionMoment struct {
	past.Moment
	store        *past.Store
	recordTime   time.Time // the record's time
	mode, preset string    // as recorded and vouched
}

// readMoment reads a session's state at one of its records; zero means the last.
func (a *Archive) readMoment(ctx context.Context, id string, at uint64) (p *sessionMoment, err error) {
	kept, err := a.openPastStore(maxForkedFile)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			kept.Workspace.Close()
		}
	}()
	p = &sessionMoment{store: kept}
	s := a.Store()
	notary, doubted := seal.New(s.SealKey(), s.root, id), s.doubtReason(id) != ""
	last := uint64(0)
	for r, err := range s.Logs.Read(ctx, id, 0) {
		if err != nil {
			return nil, err
		}
		last = r.Seq
		if at > 0 && r.Seq > at {
			continue
		}
		p.recordTime = r.Time
		if e, ok := r.Event.(event.ModeChanged); ok && !doubted && notary.HasValidSeal(r) {
			p.mode, p.preset = e.Mode, e.Preset
		}
	}
	if last == 0 {
		return nil, inputErrorf("session %s has only a session file: its logs, which hold its files, are missing", id)
	}
	if p.Moment, err = newMoment(ctx, id, s.Logs.Read(ctx, id, 0), cmp.Or(at, last), p.store); err != nil {
		return nil, err
	}
	if why := s.unreadReason(id); why != "" && !p.IsComplete {
		return nil, inputErrorf("%s, so the files of that time are unknown", why)
	}
	return p, nil
}

// newMoment is what records tell of a session's files at one of them.
func newMoment(ctx context.Context, id string, records iter.Seq2[event.Record, error], at uint64,
	kept past.TreeSource) (past.Moment, error) {
	m, err := past.ReadMoment(ctx, records, at, kept)
	if beyond := (*past.RangeError)(nil); errors.As(err, &beyond) {
		return m, inputErrorf("session %s has %d records", id, beyond.Records)
	}
	if err != nil {
		return m, inputErrorf("session %s: %v", id, err)
	}
	return m, nil
}

// chooseForkDir chooses the folder for a fork, and the branch if there is git.
func (a *Archive) chooseForkDir(ctx context.Context, e *worktree.Entry, when time.Time) error {
	top, rel := a.Root, "."
	if repo, _ := repofile.FindRepository(a.Root); repo != "" {
		if t, err := worktree.Open(ctx, repo, a.Launcher()); err == nil {
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
	dir, err := worktree.UnusedName(filepath.Dir(top), filepath.Base(top)+"-at-"+strconv.FormatUint(e.Record, 10))
	if err != nil {
		return inputErrorf("find a folder for the fork: %v", err)
	}
	e.Dir, e.Workspace, e.Name = dir, filepath.Join(dir, rel), filepath.Base(dir)
	if book, err := a.WorktreeBook(); err == nil {
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
func (a *Archive) fillFork(ctx context.Context, f *ForkResult, p *sessionMoment) error {
	files, err := a.filesAt(ctx, f.Source, p)
	if err != nil {
		return err
	}
	var spared []string
	if f.Repo != "" {
		t, err := worktree.Open(ctx, f.Repo, a.Launcher())
		if err != nil {
			return err
		}
		made, err := t.Add(ctx, f.Dir, f.Branch, f.Commit)
		if err != nil {
			return err
		}
		if spared, err = made.TrackedIgnored(ctx, f.Workspace); err != nil {
			return err
		}
	} else if err := os.Mkdir(f.Dir, 0o755); err != nil {
		return inputErrorf("create the folder of the fork: %v", err)
	}
	if err := os.MkdirAll(f.Workspace, 0o755); err != nil {
		return err
	}
	into, err := worktree.OpenFolder(f.Workspace, func(ctx context.Context, s event.FileState) ([]byte, error) {
		return p.store.Content(ctx, s, maxForkedFile)
	})
	if err != nil {
		return err
	}
	defer into.Close()
	if f.Repo != "" {
		err = into.RemoveExtra(files, spared...)
	} else { // git adds the tracked ones
		err = a.copyUserFiles(f.Workspace)
	}
	if err == nil {
		f.Lost, err = into.Fill(ctx, files)
	}
	if err != nil {
		return message.Errorf("restore the files of record %d: %w", p.Seq, err)
	}
	return nil
}

// filesAt returns all files at the record. Files without a record
// have their current content, without other sessions' later changes.
func (a *Archive) filesAt(ctx context.Context, id string, p *sessionMoment) (worktree.Files, error) {
	files := make(worktree.Files)
	addNow := func(from string) {
		ignored := func(e workspace.Entry) bool { return e.Ignored || repofile.CheckLayout(e.Path, "") != nil }
		for s := range p.store.CurrentFiles(ctx, from, ignored) {
			files[s.Path] = s
		}
	}
	if !p.IsComplete {
		addNow(".")
		if err := a.revertLaterChanges(ctx, id, p, files); err != nil {
			return nil, err
		}
	}
	for name, s := range p.Files {
		if !filepath.IsAbs(name) {
			files[name] = s
		}
	}
	for _, name := range p.Uncertain {
		s, err := p.store.Current(name)
		if err != nil {
			return nil, err
		}
		if files[name] = s; s.Hash == "dir" {
			addNow(name)
		}
	}
	return files, ctx.Err()
}

// revertLaterChanges reverts other sessions' changes after the record in files with their current content.
func (a *Archive) revertLaterChanges(ctx context.Context, id string, p *sessionMoment, files worktree.Files) error {
	first := make(map[string]time.Time)
	s := a.Store()
	for _, other := range s.LoggedSessions() {
		if other == id {
			continue
		}
		for r, err := range s.readRecords(ctx, other, func([]byte) bool { return true }, event.LogAudit) {
			if err != nil {
				break // use the readable part
			}
			e, ok := r.Event.(event.ToolCallCompleted)
			if !ok || !r.Time.After(p.recordTime) {
				continue
			}
			all, _ := past.ExpandChanges(ctx, p.store, e.Changes) // unsaved content is reported when it is needed
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

// writeFork writes the session up to the record to the fork's folder, and ends its unfinished work.
func (a *Archive) writeFork(ctx context.Context, f *ForkResult, p *sessionMoment) error {
	o := Options{Dir: f.Workspace, Language: a.Options.Language}
	env := a.Env
	env.Dir = f.Workspace
	settings, err := Load(env, o)
	if err != nil {
		return err
	}
	there, err := New(env, o, settings, func(string) {}) // the fork's own run reports these warnings
	if err != nil {
		return err
	}
	var copied bytes.Buffer
	if _, err := a.bundleUpTo(ctx, &copied, f.Source, p.Seq); err != nil {
		return err
	}
	if _, _, err := there.ImportBundle(ctx, &copied, f.Session); err != nil {
		return err
	}
	preset := p.preset
	if f.Yolo = p.mode == mode.Yolo || preset == mode.Yolo; f.Yolo {
		preset = ""
	} else {
		f.Mode = p.mode
	}
	if err := there.Store().Supervisor.CloseCopied(ctx, f.Session, f.Mode, preset); err != nil {
		return message.Errorf("end the unfinished work: %w", err)
	}
	return errors.Join(there.Store().Supervisor.SaveProjection(ctx, f.Session), there.Store().UnsavedReason())
}

// RemoveWorktree removes a fork's folder, and reports whether its branch stays because it has commits.
func (a *Archive) RemoveWorktree(ctx context.Context, e worktree.Entry) (stays bool, err error) {
	book, err := a.WorktreeBook()
	if err != nil {
		return false, err
	}
	if e.Repo != "" {
		t, err := worktree.Open(ctx, e.Repo, a.Launcher())
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
	return stays, book.Remove(e.Name)
}
