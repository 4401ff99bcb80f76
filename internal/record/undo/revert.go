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

// Call is a request to undo, redo or restore, with the means to record it.
type Call struct {
	All    bool     // also changes by commands
	Force  bool     // also files that others changed since, and changes that cannot be redone
	DryRun bool     // only report what would be done
	Turns  []string // turns to undo, the last first; empty means the last one
	Only   Only     // one call or one file, if set; then commands are included
	// Others, if set, returns the files that other sessions changed in a period.
	Others func(ctx context.Context, from, to time.Time) ([]Claim, error)

	NewID func() string                            // creates the call's id
	Emit  func(context.Context, event.Event) error // records an event; not used in a dry run
}

// Only selects one call, by the number of a record of it, or one file or folder: by its bytes or, if no
// changed file has that name, by its shown name.
type Only struct {
	Record uint64
	File   string
	shown  bool
}

// Claim is another session's record that it changed a file, at some time between the request and the
// completion of a call; To is zero without a completion. The path "." stands for Many changes recorded
// as one. A claim with a doubt may be wrong.
type Claim struct {
	Path     string
	Session  string
	From, To time.Time
	Doubt    event.Doubt
	Many     event.FileChange
}

// Undo restores the files to before the last turn that was not undone, or before several turns. It only
// undoes calls with known targets, unless All is set. After an undo of the same turn that left
// something, a call with All or Force continues with that turn. The error is [ErrNothing] if there is no
// such turn. Its actions are recorded before they are done, and h must receive those records.
func Undo(ctx context.Context, k *Keeper, h *History, c Call) (Plan, error) {
	if c.Only != (Only{}) {
		c.All = true
		if rel, err := k.ws.Resolve(c.Only.File); err == nil && c.Only.File != "" {
			c.Only.File = rel
		}
	}
	if len(c.Turns) == 0 {
		return undoOne(ctx, k, h, c, "", nil)
	}
	var plans []Plan
	var tooOld error
	made := make(map[string]event.FileState)
	for _, turn := range c.Turns {
		p, err := undoOne(ctx, k, h, c, turn, made)
		switch {
		case errors.Is(err, ErrTooOld):
			tooOld = err
		case err != nil && (!errors.Is(err, ErrNothing) || len(c.Turns) == 1):
			return Join(append(plans, p)...), err
		case err == nil:
			plans = append(plans, p)
		}
	}
	return Join(plans...), tooOld
}

// undoOne undoes one turn. A dry run stores the resulting states in made.
func undoOne(ctx context.Context, k *Keeper, h *History, c Call, turn string, made map[string]event.FileState) (Plan, error) {
	p, err := undoAs(ctx, k, h, c, turn, made)
	if errors.Is(err, ErrNothing) && strings.Contains(c.Only.File, `\x`) {
		c.Only.shown = true
		return undoAs(ctx, k, h, c, turn, made)
	}
	return p, err
}

func undoAs(ctx context.Context, k *Keeper, h *History, c Call, turn string, made map[string]event.FileState) (Plan, error) {
	turns, err := h.candidates(c, turn)
	if err != nil {
		return Plan{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.release()
	rest := false
	for _, t := range turns {
		p, err := k.planUndo(ctx, t, c, made)
		if err != nil {
			return Plan{Turn: t.Turn}, fmt.Errorf("plan undo: %w", err)
		}
		if c.Only.File != "" && !p.rest {
			continue // the turn did not change this file
		}
		told := (t.all || !c.All) && (t.force || !c.Force) // the user was already told what prevents the rest
		if t.going && t.left == nil && turn == "" && c.Only == (Only{}) && len(p.steps) == 0 && (told || len(p.plan.Kept)+len(p.plan.Lost) == 0) {
			rest = rest || p.rest
			continue // nothing more to do or report
		}
		if turn == "" && c.Only == (Only{}) && !t.going {
			p.plan.Skipped, p.plan.Own = h.passedAfter(t.ID)
		}
		return p.carryOut(ctx, undoTool, c, request{Turn: t.ID, All: c.All, Force: c.Force, Only: c.Only != Only{}})
	}
	switch {
	case c.Only != Only{}:
		return Plan{}, c.Only.nothing()
	case rest && !c.Force:
		return Plan{}, errLeft
	}
	return Plan{}, ErrNothing
}

// Redo reverts the last undo. The error is [ErrNothingUndone] if calls changed files since, or nothing
// was undone.
func Redo(ctx context.Context, k *Keeper, h *History, c Call) (Plan, error) {
	o := h.lastUndo()
	if o == nil {
		return Plan{}, ErrNothingUndone
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.release()
	p := &work{k: k, force: c.Force, plan: Plan{Turn: o.turn.Turn, DryRun: c.DryRun}}
	for _, ch := range o.did() {
		expected := ch.After
		if err := p.consider(ctx, wish{to: ch.Before, expected: &expected}); err != nil {
			return Plan{Turn: o.turn.Turn}, fmt.Errorf("plan redo: %w", err)
		}
	}
	return p.carryOut(ctx, redoTool, c, request{Turn: o.turn.ID, Force: c.Force, Of: o.seq})
}

// Goal is a file's state to restore. Known is its current state according to the record: a file with
// another state was changed by someone else and stays, unless [Call.Force] is set. If Known is nil, any
// state may be replaced.
type Goal struct {
	To    event.FileState
	Known *event.FileState
}

// Restore gives files the states in goals. It is recorded as a call, so [Undo] can revert it. It ignores
// the fields All, Turns, Only and Others of c.
func Restore(ctx context.Context, k *Keeper, c Call, goals []Goal) (Plan, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.release()
	p := &work{k: k, force: c.Force, plan: Plan{DryRun: c.DryRun}}
	for _, g := range goals {
		w := wish{to: g.To, expected: g.Known}
		if g.Known == nil {
			now, err := k.Current(g.To.Path)
			if err != nil {
				return p.plan, fmt.Errorf("plan restore: %w", err)
			}
			w.expected = &now
		}
		if err := p.consider(ctx, w); err != nil {
			return p.plan, fmt.Errorf("plan restore: %w", err)
		}
	}
	p.leaveOccupied()
	return p.carryOut(ctx, restoreTool, c, request{})
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

// carryOut records the plan, executes it, and records the result.
func (p *work) carryOut(ctx context.Context, tool string, c Call, in request) (Plan, error) {
	p.addParents()
	if c.DryRun {
		for i := range p.steps {
			p.steps[i].done = true
			if p.made != nil {
				p.made[p.steps[i].to.Path] = p.steps[i].to
			}
		}
		return p.tell(), nil
	}
	if err := p.k.store.Commit(); err != nil {
		return p.plan, err
	}
	began := p.k.now()
	asked, err := p.requested(tool, c, in)
	if err != nil {
		return p.plan, err
	}
	if err := c.Emit(ctx, asked); err != nil {
		return p.plan, fmt.Errorf("record the %s: %w", tool, err)
	}
	// Order: removals from the deepest up, then directories from the top down, then files, then the modes of
	// directories, so that no step blocks another.
	slices.SortStableFunc(p.steps, func(a, b step) int { return cmp.Compare(depth(a), depth(b)) })
	up := slices.Backward(p.steps)
	for i := range p.steps {
		p.steps[i].done = p.steps[i].already
		s := &p.steps[i]
		if s.pending() && kindOf(s.now) == isDir && s.now.Mode&ownerAll != ownerAll {
			_ = p.k.ws.Chmod(s.now.Path, fs.FileMode(s.now.Mode|ownerAll)) // a failure shows in the step that needs it
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
	plan := p.tell()
	done := event.ToolCallCompleted{
		CallID: asked.CallID, Tool: asked.Tool, Author: user, TaskID: asked.TaskID, IsError: len(plan.Failed) > 0,
	}
	for _, s := range p.steps {
		if s.done && s.now != s.to {
			done.Changes = append(done.Changes, event.FileChange{Before: s.now, After: s.to})
		}
	}
	done.Output, _ = json.Marshal(struct {
		OK bool `json:"ok"`
		Plan
	}{len(plan.Failed) == 0, plan}) // only strings, so it cannot fail
	done.Timestamp = p.k.now().UnixMilli()
	done.DurationMs = p.k.now().Sub(began).Milliseconds()
	if err := c.Emit(context.WithoutCancel(ctx), done); err != nil {
		return plan, fmt.Errorf("record the %s: %w", tool, err)
	}
	return plan, ctx.Err()
}

func (p *work) requested(tool string, c Call, in request) (event.ToolCallRequested, error) {
	id := c.NewID()
	e := event.ToolCallRequested{
		CallID: id, Tool: tool, Author: user, TaskID: cmp.Or(in.Turn, id), Timestamp: p.k.now().UnixMilli(),
		Verdict: event.Allowed, DecidedBy: user,
	}
	for _, s := range p.steps {
		in.Files = append(in.Files, target{To: s.to, Undoes: s.undoes})
		e.Before = append(e.Before, s.now)
		e.Effects = append(e.Effects, event.Effect{Kind: event.EffectWrite, Target: event.ShownName(s.to.Path)})
	}
	var err error
	e.Input, err = json.Marshal(in)
	return e, err
}

func (p *work) tell() Plan {
	r := p.plan
	for _, s := range p.steps {
		if !s.done || s.now == s.to {
			continue
		}
		name, goes := label(s.to), kindOf(s.to) == isAbsent
		if goes {
			name = label(s.now)
			r.Removed = append(r.Removed, name)
		} else {
			r.Restored = append(r.Restored, name)
		}
		for list, is := range map[*[]string]bool{&r.Partly: s.partly && !goes, &r.CutOff: s.cutOff && !goes, &r.Shared: s.shared} {
			if is {
				*list = append(*list, name)
			}
		}
		if s.forced != "" {
			r.Forced = append(r.Forced, Note{Path: name, Why: s.forced})
		}
	}
	slices.Sort(r.Restored)
	slices.Sort(r.Removed)
	return r
}

func depth(s step) int { return strings.Count(s.to.Path, "/") }

func (s *step) pending() bool { return !s.done && s.to.Path != "" }

func (p *work) fail(s *step, err error) {
	p.plan.Failed = append(p.plan.Failed, Note{Path: label(s.to), Why: err.Error()})
	*s = step{}
}

// skip cancels a step to protect the file.
func (p *work) skip(s *step, why string) {
	p.leave(*s, why)
	*s = step{}
}

// ready reports whether a step can run now: nobody may have changed the file since planning.
func (p *work) ready(ctx context.Context, s *step) bool {
	if err := ctx.Err(); err != nil {
		p.fail(s, err)
		return false
	}
	now, err := p.k.Current(s.now.Path)
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

const changedSince = "changed since then"

// expected returns the state that must be at the step's path now.
func (s *step) expected() event.FileState {
	if s.cleared {
		return event.FileState{}
	}
	return s.now
}

// accept allows replacing only the state that was planned for.
func (p *work) accept(ctx context.Context, s *step) workspace.Accept {
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

func (p *work) gaveUp(s *step, err error) {
	switch {
	case errors.Is(err, workspace.ErrAside):
		p.fail(s, err)
	case errors.Is(err, workspace.ErrChanged):
		p.skip(s, changedSince)
	case errors.Is(err, workspace.ErrBusy):
		p.skip(s, workspace.ErrBusy.Error())
	default:
		p.fail(s, err)
	}
}

const ownerAll = 0o700

// clear removes what blocks the path, or was created by the turn.
func (p *work) clear(ctx context.Context, s *step) {
	if !s.pending() || kindOf(s.now) == isAbsent {
		return
	}
	from, to := kindOf(s.now), kindOf(s.to)
	if to != isAbsent && from != isDir && to != isDir || from == isDir && to == isDir {
		return // replaced later in one step
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

// putBack restores the content and mode of a file, or the target of a link.
func (p *work) putBack(ctx context.Context, s *step) {
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
