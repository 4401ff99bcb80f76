package undo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"time"

	"coder/internal/core/event"
	"coder/internal/host/workspace"
)

// Call is how undoing is asked for, and how it is put on record.
type Call struct {
	All    bool   // also what commands changed
	Force  bool   // also what someone else changed since, and what cannot be brought back
	DryRun bool   // only tell what would be done
	Turn   string // which turn; empty means the last
	// Others, if set, tells which files other sessions changed within a time.
	Others func(ctx context.Context, from, to time.Time) ([]Claim, error)

	NewID func() string                            // makes the call's id
	Emit  func(context.Context, event.Event) error // puts on record; not used by a dry run
}

// Claim is another session's word that it changed a file. A path of "." stands
// for more files than it lists.
type Claim struct {
	Path    string
	Session string
	At      time.Time
}

// Report is what undoing, or redoing, did. Paths of directories end in a slash.
type Report struct {
	Turn     Turn     `json:"turn"`
	Skipped  []Turn   `json:"skipped,omitempty"` // later ones that changed no file
	Own      []Turn   `json:"own,omitempty"`     // and those that are commands of the person's own
	DryRun   bool     `json:"dryRun,omitempty"`
	Restored []string `json:"restored,omitempty"` // have the content and mode they had
	Removed  []string `json:"removed,omitempty"`  // were made by the turn and are gone
	// Partly names those of Restored that someone else changed while the turn
	// ran: they have what that person made of them, not what the turn began with.
	Partly []string `json:"partly,omitempty"`
	Kept   []Note   `json:"kept,omitempty"`   // left alone, unless forced
	Lost   []Note   `json:"lost,omitempty"`   // cannot be brought back
	Failed []Note   `json:"failed,omitempty"` // could not be written
	// NotUndone names what commands changed and that was not asked for.
	NotUndone []string `json:"notUndone,omitempty"`
	// Commands are those the turn ran. What they did outside the workspace, to
	// ignored files or to git itself is beyond our reach.
	Commands []string `json:"commands,omitempty"`
}

// Sum is what several reports, the last turn's first, say together: which files
// were changed, or would be, and which stay as they are and why.
func Sum(all []Report) (changed, left []string) {
	known := make(map[string]bool)
	for _, r := range all {
		for _, path := range slices.Concat(r.Restored, r.Removed) {
			if !known[path] {
				known[path], changed = true, append(changed, path)
			}
		}
	}
	for _, r := range all {
		for _, n := range slices.Concat(r.Kept, r.Lost, r.Failed) {
			if !known[n.Path] { // a turn before the last one that would be undone finds what that one left
				known[n.Path], left = true, append(left, n.Path+" ("+n.Why+")")
			}
		}
	}
	slices.Sort(changed)
	return changed, left
}

// Note is a path and what is to be said about it.
type Note struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// Undo brings back what files were before the last turn that was not undone.
// Only what calls with known targets changed is brought back, unless All is
// set. If it follows an undo of the same turn that left something, asking for
// All or Force goes on with that turn. The error is [ErrNothing] if there is no
// such turn. What it does is on record before it is done, and h must be told of
// those records.
func Undo(ctx context.Context, k *Keeper, h *History, c Call) (Report, error) {
	turns, err := h.candidates(c)
	if err != nil {
		return Report{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.release()
	for _, t := range turns {
		p, err := k.planUndo(ctx, t, c)
		if err != nil {
			return Report{Turn: t.Turn}, fmt.Errorf("plan undo: %w", err)
		}
		told := (t.all || !c.All) && (t.force || !c.Force) // who asks has heard what stands in its way
		if t.going && t.left == nil && c.Turn == "" && len(p.steps) == 0 && (told || len(p.report.Kept)+len(p.report.Lost) == 0) {
			continue // there is nothing more to do, nor to say
		}
		if c.Turn == "" && !t.going {
			p.report.Skipped, p.report.Own = h.passedAfter(t.ID)
		}
		return p.carryOut(ctx, undoTool, c, request{Turn: t.ID, All: c.All, Force: c.Force})
	}
	return Report{}, ErrNothing
}

// Redo takes back the last undo. The error is [ErrNothingUndone] if files were
// changed by calls since, or nothing was undone.
func Redo(ctx context.Context, k *Keeper, h *History, c Call) (Report, error) {
	o := h.lastUndo()
	if o == nil {
		return Report{}, ErrNothingUndone
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.release()
	p := &plan{k: k, force: c.Force}
	p.report = Report{Turn: o.turn.Turn, DryRun: c.DryRun}
	for _, ch := range o.did() {
		expected := ch.After
		if err := p.consider(ctx, wish{to: ch.Before, expected: &expected}); err != nil {
			return Report{Turn: o.turn.Turn}, fmt.Errorf("plan redo: %w", err)
		}
	}
	return p.carryOut(ctx, redoTool, c, request{Turn: o.turn.ID, Force: c.Force, Of: o.seq})
}

func (h *History) lastUndo() *op {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.resolveCutOff()
	if o := h.top(); o != nil {
		held := *o
		return &held
	}
	return nil
}

// carryOut records the plan, acts, and records what came of it.
func (p *plan) carryOut(ctx context.Context, tool string, c Call, in request) (Report, error) {
	p.addParents()
	if c.DryRun {
		for i := range p.steps {
			p.steps[i].done = true
		}
		return p.tell(), nil
	}
	if err := p.k.store.Commit(); err != nil {
		return p.report, err
	}
	began := p.k.now()
	asked, err := p.requested(tool, c, in)
	if err != nil {
		return p.report, err
	}
	if err := c.Emit(ctx, asked); err != nil {
		return p.report, fmt.Errorf("record the %s: %w", tool, err)
	}
	// First what must go, from the deepest up, then directories from the top down,
	// then files, then the modes of directories, so that none of them stands in
	// another's way.
	slices.SortStableFunc(p.steps, func(a, b step) int { return cmp.Compare(depth(a), depth(b)) })
	up := slices.Backward(p.steps)
	for i := range p.steps {
		p.steps[i].done = p.steps[i].already
		s := &p.steps[i]
		if s.pending() && kindOf(s.now) == isDir && s.now.Mode&ownerAll != ownerAll {
			_ = p.k.ws.Chmod(s.now.Path, fs.FileMode(s.now.Mode|ownerAll)) // what it was for will tell
		}
	}
	for i := range up {
		p.clear(ctx, &p.steps[i])
	}
	for i := range p.steps {
		s := &p.steps[i]
		if !s.pending() || kindOf(s.to) != isDir || kindOf(s.now) == isDir || !p.ready(ctx, s) {
			continue
		}
		if err := p.k.ws.Mkdir(s.to.Path, fs.FileMode(s.to.Mode|ownerAll)); err != nil {
			p.fail(s, err)
		}
	}
	for i := range p.steps {
		p.putBack(ctx, &p.steps[i])
	}
	for i := range up {
		s := &p.steps[i]
		if !s.pending() || kindOf(s.to) != isDir {
			continue
		}
		if err := p.k.ws.Chmod(s.to.Path, fs.FileMode(s.to.Mode)); err != nil {
			p.fail(s, err)
		} else {
			s.done = true
		}
	}
	report := p.tell()
	done := event.ToolCallCompleted{
		CallID: asked.CallID, Tool: asked.Tool, Author: user, TaskID: asked.TaskID, IsError: len(report.Failed) > 0,
	}
	for _, s := range p.steps {
		if s.done && s.now != s.to {
			done.Changes = append(done.Changes, event.FileChange{Before: s.now, After: s.to})
		}
	}
	done.Output, _ = json.Marshal(struct {
		OK bool `json:"ok"`
		Report
	}{len(report.Failed) == 0, report}) // strings only
	done.Timestamp = p.k.now().UnixMilli()
	done.DurationMs = p.k.now().Sub(began).Milliseconds()
	if err := c.Emit(context.WithoutCancel(ctx), done); err != nil {
		return report, fmt.Errorf("record the %s: %w", tool, err)
	}
	return report, ctx.Err()
}

func (p *plan) requested(tool string, c Call, in request) (event.ToolCallRequested, error) {
	e := event.ToolCallRequested{
		CallID: c.NewID(), Tool: tool, Author: user, TaskID: in.Turn, Timestamp: p.k.now().UnixMilli(),
		Verdict: event.Allowed, DecidedBy: user,
	}
	for _, s := range p.steps {
		in.Files = append(in.Files, target{To: s.to, Undoes: s.undoes})
		e.Before = append(e.Before, s.now)
		e.Effects = append(e.Effects, event.Effect{Kind: event.EffectWrite, Target: s.to.Path})
	}
	var err error
	e.Input, err = json.Marshal(in)
	return e, err
}

func (p *plan) tell() Report {
	r := p.report
	for _, s := range p.steps {
		switch {
		case !s.done || s.now == s.to:
		case kindOf(s.to) == isAbsent:
			r.Removed = append(r.Removed, label(s.now))
		default:
			r.Restored = append(r.Restored, label(s.to))
			if s.partly {
				r.Partly = append(r.Partly, label(s.to))
			}
		}
	}
	slices.Sort(r.Restored)
	slices.Sort(r.Removed)
	return r
}

func depth(s step) int { return strings.Count(s.to.Path, "/") }

func (s *step) pending() bool { return !s.done && s.to.Path != "" }

func (p *plan) fail(s *step, err error) {
	p.report.Failed = append(p.report.Failed, Note{label(s.to), err.Error()})
	*s = step{}
}

// skip gives a step up because the file is better left alone.
func (p *plan) skip(s *step, why string) {
	p.keep(s.now, why)
	*s = step{}
}

// ready reports whether a step can be taken now: nobody may have changed the
// file since we planned.
func (p *plan) ready(ctx context.Context, s *step) bool {
	if err := ctx.Err(); err != nil {
		p.fail(s, err)
		return false
	}
	now, err := p.k.current(s.now.Path)
	if err != nil {
		p.fail(s, err)
		return false
	}
	if !p.force && !p.k.same(ctx, now, s.expected()) {
		p.skip(s, changedSince)
		return false
	}
	return true
}

const changedSince = "it was changed since"

// expected is what must stand at the step's path now.
func (s *step) expected() event.FileState {
	if s.cleared {
		return event.FileState{}
	}
	return s.now
}

// accept lets nothing go but what we planned with.
func (p *plan) accept(ctx context.Context, s *step) workspace.Accept {
	if p.force {
		return nil
	}
	rel, expected := s.now.Path, s.expected()
	return func(f workspace.Found) error {
		now, err := p.k.stateOf(rel, f)
		if err == nil && !p.k.same(ctx, now, expected) {
			err = workspace.ErrChanged
		}
		return err
	}
}

func (p *plan) gaveUp(s *step, err error) {
	switch {
	case errors.Is(err, workspace.ErrChanged):
		p.skip(s, changedSince)
	case errors.Is(err, workspace.ErrBusy):
		p.skip(s, workspace.ErrBusy.Error())
	default:
		p.fail(s, err)
	}
}

const ownerAll = 0o700

// clear removes what stands in the way, or was made by the turn.
func (p *plan) clear(ctx context.Context, s *step) {
	if !s.pending() || kindOf(s.now) == isAbsent {
		return
	}
	from, to := kindOf(s.now), kindOf(s.to)
	if to != isAbsent && from != isDir && to != isDir || from == isDir && to == isDir {
		return // it will be replaced in one step
	}
	var accept workspace.Accept
	if from != isDir {
		if !p.ready(ctx, s) {
			return
		}
		accept = p.accept(ctx, s)
	}
	err := p.k.ws.Remove(s.now.Path, accept)
	switch {
	case from == isDir && (errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST)):
		_ = p.k.ws.Chmod(s.now.Path, fs.FileMode(s.now.Mode))
		p.skip(s, HoldsOthers)
	case err != nil && !missing(err):
		p.gaveUp(s, err)
	default:
		s.done, s.cleared = to == isAbsent, true
	}
}

// putBack gives a file the content and mode, or a link the target, it had.
func (p *plan) putBack(ctx context.Context, s *step) {
	if !s.pending() || kindOf(s.to) != isFile && kindOf(s.to) != isLink {
		return
	}
	if !p.ready(ctx, s) {
		return
	}
	if err := p.k.bringBack(ctx, s.to, p.accept(ctx, s)); err != nil {
		p.gaveUp(s, err)
		return
	}
	s.done = true
}

func (k *Keeper) bringBack(ctx context.Context, to event.FileState, accept workspace.Accept) error {
	if kindOf(to) == isLink {
		return k.ws.RestoreLink(to.Path, to.Link, accept)
	}
	content, err := k.content(ctx, to)
	if err != nil {
		return err
	}
	defer content.Close()
	return k.ws.Restore(to.Path, content, fs.FileMode(to.Mode), accept)
}
