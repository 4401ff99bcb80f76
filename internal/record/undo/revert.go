package undo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"time"

	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/host/workspace"
)

// Request is a request to undo, redo or restore, with the means to record it.
type Request struct {
	All       bool      // also changes by commands
	Force     bool      // also files that others changed since, and changes that cannot be redone
	DryRun    bool      // only report what would be done
	Turns     []string  // turns to undo, the last first; empty means the last one
	Selection Selection // one call or one file, if set; then commands are included
	// Others, if set, returns the files that other sessions changed in a period.
	Others func(ctx context.Context, from, to time.Time) ([]Claim, error)

	NewID func() string                            // creates the call's id
	Emit  func(context.Context, event.Event) error // records an event; not used in a dry run
}

// Selection selects one call, by the number of a record of it, or one file or folder: by its bytes or, if no
// changed file has that name, by its shown name.
type Selection struct {
	Record      uint64
	File        string
	byShownName bool
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
// something, a call with All or Force continues with that turn. The error is [ErrNothingToUndo] if there is no
// such turn. Its actions are recorded before they are done, and h must receive those records.
func Undo(ctx context.Context, k *Keeper, h *History, c Request) (Plan, error) {
	if c.Selection != (Selection{}) {
		c.All = true
		if rel, err := k.ws.Resolve(c.Selection.File); err == nil && c.Selection.File != "" {
			c.Selection.File = rel
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
		case err != nil && (!errors.Is(err, ErrNothingToUndo) || len(c.Turns) == 1):
			return MergePlans(append(plans, p)...), err
		case err == nil:
			plans = append(plans, p)
		}
	}
	return MergePlans(plans...), tooOld
}

// undoOne undoes one turn. A dry run stores the resulting states in made.
func undoOne(ctx context.Context, k *Keeper, h *History, c Request, turn string, made map[string]event.FileState) (Plan,
	error) {
	p, err := undoAs(ctx, k, h, c, turn, made)
	if errors.Is(err, ErrNothingToUndo) && strings.Contains(c.Selection.File, `\x`) {
		c.Selection.byShownName = true
		return undoAs(ctx, k, h, c, turn, made)
	}
	return p, err
}

func undoAs(ctx context.Context, k *Keeper, h *History, c Request, turn string, made map[string]event.FileState) (Plan,
	error) {
	turns, err := h.candidates(c, turn)
	if err != nil {
		return Plan{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.releaseRepos()
	rest := false
	for _, t := range turns {
		p, err := k.planUndo(ctx, t, c, made)
		if err != nil {
			return Plan{Turn: t.Turn}, message.Errorf("plan undo: %w", err)
		}
		if c.Selection.File != "" && !p.hasMore {
			continue // the turn did not change this file
		}
		told := (t.all || !c.All) && (t.force || !c.Force) // the user was already told what prevents the rest
		if t.isPartial && t.cutOffUndo == nil && turn == "" && c.Selection == (Selection{}) && len(p.steps) == 0 &&
			(told || len(p.plan.Unchanged)+len(p.plan.Lost) == 0) {
			rest = rest || p.hasMore
			continue // nothing more to do or report
		}
		if turn == "" && c.Selection == (Selection{}) && !t.isPartial {
			p.plan.Skipped, p.plan.OwnCommands = h.idleTurnsAfter(t.ID)
		}
		return p.execute(ctx, undoTool, c, request{Turn: t.ID, All: c.All, Force: c.Force,
			Partial: c.Selection != Selection{}})
	}
	switch {
	case c.Selection != Selection{}:
		return Plan{}, c.Selection.nothingError()
	case rest && !c.Force:
		return Plan{}, errFilesLeft
	}
	return Plan{}, ErrNothingToUndo
}

// Redo reverts the last undo. The error is [ErrNothingToRedo] if calls changed files since, or nothing
// was undone.
func Redo(ctx context.Context, k *Keeper, h *History, c Request) (Plan, error) {
	o := h.lastUndo()
	if o == nil {
		return Plan{}, ErrNothingToRedo
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.releaseRepos()
	p := &operation{keeper: k, force: c.Force, plan: Plan{Turn: o.turn.Turn, DryRun: c.DryRun}}
	for _, ch := range o.effectiveChanges() {
		expected := ch.After
		if err := p.addGoal(ctx, fileGoal{target: ch.Before, expected: &expected}); err != nil {
			return Plan{Turn: o.turn.Turn}, message.Errorf("plan redo: %w", err)
		}
	}
	return p.execute(ctx, redoTool, c, request{Turn: o.turn.ID, Force: c.Force, Reverts: o.seq})
}

// Goal is a file's state to restore. Known is its current state according to the record: a file with
// another state was changed by someone else and stays, unless [Call.Force] is set. If Known is nil, any
// state may be replaced.
type Goal struct {
	To       event.FileState
	Expected *event.FileState
}

// Restore gives files the states in goals. It is recorded as a call, so [Undo] can revert it. It ignores
// the fields All, Turns, Only and Others of c.
func Restore(ctx context.Context, k *Keeper, c Request, goals []Goal) (Plan, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.releaseRepos()
	p := &operation{keeper: k, force: c.Force, plan: Plan{DryRun: c.DryRun}}
	for _, g := range goals {
		w := fileGoal{target: g.To, expected: g.Expected}
		if g.Expected == nil {
			now, err := k.Current(g.To.Path)
			if err != nil {
				return p.plan, message.Errorf("plan restore: %w", err)
			}
			w.expected = &now
		}
		if err := p.addGoal(ctx, w); err != nil {
			return p.plan, message.Errorf("plan restore: %w", err)
		}
	}
	p.keepOccupied()
	return p.execute(ctx, restoreTool, c, request{})
}

func (h *History) lastUndo() *undoOp {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settleCutOff()
	if o := h.lastOp(); o != nil {
		held := *o
		return &held
	}
	return nil
}

// execute records the plan, executes it, and records the result.
func (p *operation) execute(ctx context.Context, tool string, c Request, in request) (Plan, error) {
	p.addParents()
	if c.DryRun {
		for i := range p.steps {
			p.steps[i].done = true
			if p.plannedStates != nil {
				p.plannedStates[p.steps[i].target.Path] = p.steps[i].target
			}
		}
		return p.result(), nil
	}
	if err := p.keeper.store.Commit(); err != nil {
		return p.plan, err
	}
	began := p.keeper.now()
	asked, err := p.newRequestEvent(tool, c, in)
	if err != nil {
		return p.plan, err
	}
	if err := c.Emit(ctx, asked); err != nil {
		return p.plan, message.Errorf("record the %s: %w", tool, err)
	}
	// Order: removals from the deepest up, then directories from the top down, then files, then the modes of
	// directories, so that no step blocks another.
	slices.SortStableFunc(p.steps, func(a, b step) int { return cmp.Compare(depth(a), depth(b)) })
	up := slices.Backward(p.steps)
	for i := range p.steps {
		p.steps[i].done = p.steps[i].isCurrent
		s := &p.steps[i]
		if s.isPending() && kindOf(s.current) == kindDir && s.current.Mode&ownerAll != ownerAll {
			// a failure shows in the step that needs it
			_ = p.keeper.ws.Chmod(s.current.Path, fs.FileMode(s.current.Mode|ownerAll))
		}
	}
	for i := range up {
		p.clearPath(ctx, &p.steps[i])
	}
	for i := range p.steps {
		s := &p.steps[i]
		if !s.isPending() || kindOf(s.target) != kindDir || kindOf(s.current) == kindDir || !p.isReady(ctx, s) {
			continue
		}
		if err := p.keeper.ws.Mkdir(s.target.Path, fs.FileMode(s.target.Mode|ownerAll)); err != nil {
			p.recordFailure(s, err)
		}
	}
	for i := range p.steps {
		p.restoreFile(ctx, &p.steps[i])
	}
	for i := range up {
		s := &p.steps[i]
		if !s.isPending() || kindOf(s.target) != kindDir {
			continue
		}
		if err := p.keeper.ws.Chmod(s.target.Path, fs.FileMode(s.target.Mode)); err != nil {
			p.recordFailure(s, err)
		} else {
			s.done = true
		}
	}
	plan := p.result()
	done := event.ToolCallCompleted{
		CallID: asked.CallID, Tool: asked.Tool, Author: userAuthor, TaskID: asked.TaskID, IsError: len(plan.Failed) > 0,
	}
	for _, s := range p.steps {
		if s.done && s.current != s.target {
			done.Changes = append(done.Changes, event.FileChange{Before: s.current, After: s.target})
		}
	}
	done.Output, _ = json.Marshal(struct {
		OK bool `json:"ok"`
		Plan
	}{len(plan.Failed) == 0, plan}) // only strings, so it cannot fail
	done.Timestamp = p.keeper.now().UnixMilli()
	done.DurationMs = p.keeper.now().Sub(began).Milliseconds()
	if err := c.Emit(context.WithoutCancel(ctx), done); err != nil {
		return plan, message.Errorf("record the %s: %w", tool, err)
	}
	return plan, ctx.Err()
}

func (p *operation) newRequestEvent(tool string, c Request, in request) (event.ToolCallRequested, error) {
	id := c.NewID()
	e := event.ToolCallRequested{
		CallID: id, Tool: tool, Author: userAuthor, TaskID: cmp.Or(in.Turn, id), Timestamp: p.keeper.now().UnixMilli(),
		Verdict: event.VerdictAllowed, DecidedBy: userAuthor,
	}
	for _, s := range p.steps {
		in.Files = append(in.Files, target{To: s.target, Undoes: s.undoes})
		e.Before = append(e.Before, s.current)
		e.Effects = append(e.Effects, event.Effect{Kind: event.EffectWrite, Target: event.DisplayName(s.target.Path)})
	}
	var err error
	e.Input, err = json.Marshal(in)
	return e, err
}

func (p *operation) result() Plan {
	r := p.plan
	for _, s := range p.steps {
		if !s.done || s.current == s.target {
			continue
		}
		name, goes := displayPath(s.target), kindOf(s.target) == kindAbsent
		if goes {
			name = displayPath(s.current)
			r.Removed = append(r.Removed, name)
		} else {
			r.Restored = append(r.Restored, name)
		}
		for list, is := range map[*[]string]bool{&r.PartlyRestored: s.isPartial && !goes, &r.Interrupted: s.cutOff && !goes,
			&r.Shared: s.shared} {
			if is {
				*list = append(*list, name)
			}
		}
		if s.forcedReason != "" {
			r.Forced = append(r.Forced, Note{Path: name, Why: s.forcedReason})
		}
	}
	slices.Sort(r.Restored)
	slices.Sort(r.Removed)
	return r
}

func depth(s step) int { return strings.Count(s.target.Path, "/") }

func (s *step) isPending() bool { return !s.done && s.target.Path != "" }

func (p *operation) recordFailure(s *step, err error) {
	p.plan.Failed = append(p.plan.Failed, Note{Path: displayPath(s.target), Why: err.Error()})
	*s = step{}
}

// skipStep cancels a step to protect the file.
func (p *operation) skipStep(s *step, why string) {
	p.keepFile(*s, why)
	*s = step{}
}

// isReady reports whether a step can run now: nobody may have changed the file since planning.
func (p *operation) isReady(ctx context.Context, s *step) bool {
	if err := ctx.Err(); err != nil {
		p.recordFailure(s, err)
		return false
	}
	now, err := p.keeper.Current(s.current.Path)
	if err != nil {
		p.recordFailure(s, err)
		return false
	}
	if !p.force && !p.keeper.isSame(ctx, now, s.expectedState()) {
		p.skipStep(s, changedReason)
		return false
	}
	return true
}

const changedReason = "changed since then"

// expectedState returns the state that must be at the step's path now.
func (s *step) expectedState() event.FileState {
	if s.isCleared {
		return event.FileState{}
	}
	return s.current
}

// acceptPlanned allows replacing only the state that was planned for.
func (p *operation) acceptPlanned(ctx context.Context, s *step) workspace.Accept {
	if p.force {
		return nil
	}
	rel, expected := s.current.Path, s.expectedState()
	return func(f workspace.Existing) error {
		now, err := p.keeper.foundState(rel, f)
		if err == nil && !p.keeper.isSame(ctx, now, expected) {
			err = workspace.ErrChanged
		}
		return err
	}
}

func (p *operation) recordGiveUp(s *step, err error) {
	switch {
	case errors.Is(err, workspace.ErrNotRestored):
		p.recordFailure(s, err)
	case errors.Is(err, workspace.ErrChanged):
		p.skipStep(s, changedReason)
	case errors.Is(err, workspace.ErrBusy):
		p.skipStep(s, workspace.ErrBusy.Error())
	default:
		p.recordFailure(s, err)
	}
}

const ownerAll = 0o700

// clearPath removes what blocks the path, or was created by the turn.
func (p *operation) clearPath(ctx context.Context, s *step) {
	if !s.isPending() || kindOf(s.current) == kindAbsent {
		return
	}
	from, to := kindOf(s.current), kindOf(s.target)
	if to != kindAbsent && from != kindDir && to != kindDir || from == kindDir && to == kindDir {
		return // replaced later in one step
	}
	var accept workspace.Accept
	if from != kindDir {
		if !p.isReady(ctx, s) {
			return
		}
		accept = p.acceptPlanned(ctx, s)
	}
	err := p.keeper.ws.Remove(s.current.Path, accept)
	switch {
	case from == kindDir && (errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST)):
		_ = p.keeper.ws.Chmod(s.current.Path, fs.FileMode(s.current.Mode))
		p.skipStep(s, ReasonOthersFiles)
	case err != nil && !isMissing(err):
		p.recordGiveUp(s, err)
	default:
		s.done, s.isCleared = to == kindAbsent, true
	}
}

// restoreFile restores the content and mode of a file, or the target of a link.
func (p *operation) restoreFile(ctx context.Context, s *step) {
	if !s.isPending() || kindOf(s.target) != kindFile && kindOf(s.target) != kindLink {
		return
	}
	if !p.isReady(ctx, s) {
		return
	}
	if err := p.keeper.restoreContent(ctx, s.target, p.acceptPlanned(ctx, s)); err != nil {
		p.recordGiveUp(s, err)
		return
	}
	s.done = true
}

func (k *Keeper) restoreContent(ctx context.Context, to event.FileState, accept workspace.Accept) error {
	if kindOf(to) == kindLink {
		return k.ws.RestoreLink(to.Path, to.Link, accept)
	}
	content, err := k.content(ctx, to)
	if err != nil {
		return err
	}
	defer content.Close()
	return k.ws.Restore(to.Path, content, fs.FileMode(to.Mode), accept)
}
