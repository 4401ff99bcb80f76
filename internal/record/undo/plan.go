package undo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"coder/internal/core/event"
	"coder/internal/core/message"
)

// ErrNothingToUndo reports that there is nothing to undo.
var ErrNothingToUndo = errors.New("nothing to undo")

// errFilesLeft is ErrNothingToUndo after an undo that left files unchanged.
var errFilesLeft = message.Errorf("%w except files left unchanged (force includes them)", ErrNothingToUndo)

// ErrNotSaved reports a session that saves nothing, and ErrTooOld a turn whose saved files are gone.
var (
	ErrNotSaved = errors.New("nothing is saved in this session, so nothing can be undone")
	ErrTooOld   = message.Errorf("only the last %d turns are saved", MaxTurns)
)

// ErrNothingToRedo reports a redo without a preceding undo.
var ErrNothingToRedo = errors.New("nothing to redo")

// turnChange is one change of one file in a turn.
type turnChange struct {
	call          *call
	before, after event.FileState // after is empty if the call's outcome is unknown
	doubt         event.Doubt
	isGuessed     bool // something changed since the call, perhaps by others
	foundStates   map[string]event.FileState
}

func (l turnChange) isKnown() bool { return l.call.isComplete }

// turnState is a turn's current state, for planning.
type turnState struct {
	Turn
	changes      []turnChange // in the order of requests
	commands     []string
	undone       map[changeMark]bool
	cutOffUndo   *undoOp      // an undo of this turn that was cut off, or nil
	isPartial    bool         // it has been partly undone
	all          bool         // including changes by commands
	force        bool         // including changes by others
	laterChanges []turnChange // changes of all turns, if only one call or file is selected
}

// candidates returns the turns that an undo may refer to, likeliest first: the one undone last, if more
// of it can be undone, then the newest that was not undone.
func (h *History) candidates(c Request, id string) (list []turnState, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settleCutOff()
	switch {
	case id != "":
		if i := h.index(id); i >= 0 && h.turns[i].mayHaveChanged() {
			return []turnState{h.turnState(h.turns[i])}, nil
		}
		if h.dropped && h.index(id) < 0 {
			return nil, ErrTooOld
		}
		return nil, message.Errorf("turn %s: %w", id, ErrNothingToUndo)
	case c.Selection != Selection{}:
		return h.selectTurns(c.Selection)
	}
	if top := h.lastOp(); top != nil && (top.turn.undoCount > 0 && (c.All || c.Force) || !top.done) {
		list = append(list, h.turnState(top.turn))
	}
	for _, t := range slices.Backward(h.turns) {
		if t.undoCount == 0 && t.hasRemaining() && (c.All || !t.isOwnCommand()) {
			if len(list) == 0 || list[0].ID != t.ID {
				list = append(list, h.turnState(t))
			}
			return list, nil
		}
	}
	if len(list) == 0 && h.dropped {
		return nil, message.Errorf("%w: only the last %d turns are saved", ErrNothingToUndo, MaxTurns)
	}
	if len(list) == 0 && slices.ContainsFunc(h.turns, func(t *turn) bool {
		return t.undoCount == 0 &&
			t.mayHaveChanged()
	}) {
		return nil, message.Errorf("%w except changes by your own commands (all includes them)", ErrNothingToUndo)
	}
	if top := h.lastOp(); len(list) == 0 && top != nil && top.turn.hasLeftover() {
		return nil, errFilesLeft
	}
	if len(list) == 0 {
		return nil, ErrNothingToUndo
	}
	return list, nil
}

// selectTurns returns the turn with the selected call, or those that may have changed the selected file, newest
// first.
func (h *History) selectTurns(o Selection) (list []turnState, err error) {
	for _, t := range slices.Backward(h.turns) {
		if o.Record != 0 && !slices.ContainsFunc(t.calls, o.matches) {
			continue
		}
		p := h.turnState(t)
		p.changes = slices.DeleteFunc(p.changes, func(l turnChange) bool { return o.Record != 0 && !o.matches(l.call) })
		p.commands = nil
		changed := func(l turnChange) bool {
			// A link may stand for many changes, and those of a command that was cut off are not listed.
			many := strings.HasPrefix(l.before.Hash, treePrefix)
			return many || o.selectedFile(l.before.Path) != "" && !p.undone[changeMark{l.call.seq, l.before.Path}]
		}
		if o.Record == 0 && !slices.ContainsFunc(p.changes, changed) {
			continue
		}
		p.laterChanges = h.allChanges()
		list = append(list, p)
	}
	if len(list) == 0 {
		return nil, o.nothingError()
	}
	return list, nil
}

// allChanges returns the changes of all turns that were not undone.
func (h *History) allChanges() (list []turnChange) {
	for _, t := range h.turns {
		for _, c := range t.calls {
			for _, ch := range c.changes {
				if !t.undone[changeMark{c.seq, ch.Before.Path}] {
					list = append(list, turnChange{call: c, before: ch.Before, after: ch.After})
				}
			}
		}
	}
	return list
}

// nothingError returns the error for a selected call or file that cannot be undone.
func (o Selection) nothingError() error {
	if o.Record != 0 {
		return message.Errorf("call #%d changed no file, or is not in the last %d turns: %w", o.Record, MaxTurns,
			ErrNothingToUndo)
	}
	return message.Errorf("no call in the last %d turns changed %s: %w", MaxTurns, event.DisplayName(o.File),
		ErrNothingToUndo)
}

// matches reports whether c is the selected call.
func (o Selection) matches(c *call) bool {
	return c.mayHaveChanged() && (c.seq == o.Record || c.end == o.Record)
}

// selectedFile returns the selected file or folder if rel is that or is in it.
func (o Selection) selectedFile(rel string) string {
	switch {
	case rel == o.File || isBelow(rel, o.File):
		return o.File
	case !o.byShownName:
		return ""
	}
	for at := rel; at != "." && at != "/"; at = path.Dir(at) {
		if event.DisplayName(at) == o.File {
			return at
		}
	}
	return ""
}

// selectFiles returns the selected files of a turn. A shown name must match only one.
func (o Selection) selectFiles(order []string) ([]string, error) {
	var files []string
	order = slices.DeleteFunc(order, func(rel string) bool {
		file := o.selectedFile(rel)
		if file != "" && !slices.Contains(files, file) {
			files = append(files, file)
		}
		return file == ""
	})
	if len(files) > 1 {
		return nil, message.Errorf("%s matches %d files; use the exact bytes of the name, or undo a call by its number",
			o.File,
			len(files))
	}
	return order, nil
}

// hasRemaining reports whether the turn has, or may have, changes that were not undone.
func (t *turn) hasRemaining() bool {
	return slices.ContainsFunc(t.calls, func(c *call) bool {
		return !c.isComplete || slices.ContainsFunc(c.changes,
			func(ch event.FileChange) bool { return !t.undone[changeMark{c.seq, ch.Before.Path}] })
	})
}

// hasLeftover reports whether an undo of the turn left a tool's change in place.
func (t *turn) hasLeftover() bool {
	for _, c := range t.calls {
		for _, ch := range c.changes {
			if !c.isCommand && !t.undone[changeMark{c.seq, ch.Before.Path}] && !t.undone[changeMark{c.seq, ch.After.Path}] {
				return true
			}
		}
	}
	return false
}

// turnState collects what remains of a turn.
func (h *History) turnState(t *turn) turnState {
	p := turnState{Turn: t.Turn, isPartial: t.undoCount > 0, all: t.withAll, force: t.force, undone: maps.Clone(t.undone)}
	if top := h.lastOp(); top != nil && top.turn == t && !top.done {
		p.cutOffUndo, p.isPartial = top, true
	}
	for _, c := range t.calls {
		if c.isCommand {
			p.commands = append(p.commands, c.commandLine)
		}
		for _, ch := range c.changes {
			p.changes = append(p.changes, turnChange{call: c, before: ch.Before, after: ch.After, doubt: ch.Doubt})
		}
		for _, s := range c.before {
			if !c.isComplete {
				p.changes = append(p.changes, turnChange{call: c, before: s})
			}
		}
		if !c.isComplete && c.tree != "" {
			whole := event.FileState{Path: ".", Hash: treePrefix + c.tree}
			p.changes = append(p.changes, turnChange{call: c, before: whole, foundStates: maps.Clone(c.foundStates)})
		}
	}
	return p
}

// step is one file to change.
type step struct {
	current, target event.FileState
	undoes          []uint64
	isCurrent       bool   // it already has the intended state
	isCleared       bool   // the previous file was removed
	isPartial       bool   // it returns to someone's version from during the turn
	cutOff          bool   // or that of a command that was cut off
	shared          bool   // commands wrote it after tools did, but only the tools' work was selected
	forcedReason    string // why it would have stayed without Force
	done            bool
}

// operation is an undo, redo or restore in preparation.
type operation struct {
	keeper  *Keeper
	force   bool
	steps   []step
	plan    Plan
	hasMore bool // more could be undone
	// plannedStates holds the states that earlier plans would give files, by path, in a dry run.
	plannedStates map[string]event.FileState
}

func (k *Keeper) planUndo(ctx context.Context, t turnState, c Request, made map[string]event.FileState) (*operation,
	error) {
	p := &operation{keeper: k, force: c.Force, plannedStates: made}
	p.plan = Plan{Turn: t.Turn, DryRun: c.DryRun, Commands: t.commands}
	chains, order, err := k.changesByFile(ctx, t, &p.plan)
	if err != nil {
		return nil, err
	}
	if c.Selection.File != "" {
		if order, err = c.Selection.selectFiles(order); err != nil {
			return nil, err
		}
	}
	p.hasMore = len(order) > 0
	claims, err := k.otherClaims(ctx, t, c)
	if err != nil && !c.Force {
		return nil, message.Errorf("check what other sessions changed: %w", err)
	}
	for _, path := range order {
		chain := dropOwnOverlap(chains[path])
		if len(chain) == 0 {
			continue
		}
		if !c.All && !slices.ContainsFunc(chain, isTool) {
			p.plan.NotUndone = append(p.plan.NotUndone, displayPath(chain[0].before, chain[len(chain)-1].after))
			continue
		}
		w := k.newFileGoal(ctx, chain, c)
		w.owners = describeOwners(claims, chain[len(chain)-len(w.undoes):])
		w.laterCall = t.laterCall(chain[len(chain)-1])
		if t.cutOffUndo != nil {
			if before, ok := t.cutOffUndo.before[path]; ok {
				w.leftState = &before
			}
		}
		if err := p.addGoal(ctx, w); err != nil {
			return nil, err
		}
	}
	p.keepOccupied()
	return p, nil
}

// newFileGoal returns the intended state of a file when its chain is undone. If someone else changed it
// between two calls, it returns to their version, no further.
func (k *Keeper) newFileGoal(ctx context.Context, chain []turnChange, c Request) fileGoal {
	start := 0
	if !c.All {
		start = slices.IndexFunc(chain, isTool)
	}
	from := len(chain) - 1
	for from > start && k.isContiguous(ctx, chain[from-1], chain[from]) {
		from--
	}
	w := fileGoal{isPartial: from > start}
	w.cutOff = w.isPartial && !chain[from-1].isKnown()
	if c.Force {
		w.changedBetween, w.isPartial, from = w.isPartial, false, start
	}
	w.target = chain[from].before
	w.changedAfter = !c.All && !slices.ContainsFunc(chain[from:], isTool)
	w.shared = !c.All && slices.ContainsFunc(chain[from:], func(l turnChange) bool { return !isTool(l) })
	last := chain[len(chain)-1]
	for _, l := range chain[from:] {
		w.undoes = append(w.undoes, l.call.seq)
		if last.isKnown() && l.isKnown() && l.call.end > last.call.end {
			last = l // it was still running
		}
	}
	if last.isKnown() {
		w.expected = &last.after
	}
	w.startTime, w.isGuessed = last.call.requestTime, last.isGuessed || last.call.isCommand
	return w
}

// dropOwnOverlap removes changes attributed to a command that another call of the session made at the same
// time. If both changed the file, neither is in doubt.
func dropOwnOverlap(chain []turnChange) []turnChange {
	beside := func(l turnChange) bool {
		return slices.ContainsFunc(chain, func(m turnChange) bool {
			return m.call != l.call && m.doubt == "" && m.call.seq < l.call.end && (l.call.seq < m.call.end || m.call.end == 0)
		})
	}
	var both []int
	for i, l := range chain {
		if l.doubt == event.DoubtBoth && beside(l) {
			both = append(both, i)
		}
	}
	for _, i := range both {
		chain[i].doubt = ""
	}
	return slices.DeleteFunc(chain, func(l turnChange) bool { return l.doubt == event.DoubtOther && beside(l) })
}

// laterCall returns the call that changed a file after l did, or 0.
func (t turnState) laterCall(l turnChange) (seq uint64) {
	for _, later := range t.laterChanges {
		if later.before.Path == l.before.Path && later.call.seq > l.call.seq {
			seq = max(seq, later.call.seq)
		}
	}
	return seq
}

func isTool(l turnChange) bool { return !l.call.isCommand }

// otherClaims returns what other sessions changed while commands of the turn ran.
func (k *Keeper) otherClaims(ctx context.Context, t turnState, c Request) (list []Claim, err error) {
	var from, to int64
	for _, l := range t.changes {
		if l.call.isCommand && l.call.endTime > 0 {
			if from == 0 || l.call.requestTime < from {
				from = l.call.requestTime
			}
			to = max(to, l.call.endTime)
		}
	}
	if c.Others == nil || to == 0 {
		return nil, nil
	}
	all, err := c.Others(ctx, time.UnixMilli(from), time.UnixMilli(to+1))
	disclaimed := make(map[Claim]bool)
	for _, claim := range all {
		disclaimed[claim] = claim.Doubt == event.DoubtOther
	}
	for _, claim := range all {
		many, err := k.expand(ctx, claim.Many)
		if !strings.HasPrefix(claim.Many.Before.Hash, treePrefix) || err != nil {
			if claim.Doubt != event.DoubtOther {
				list = append(list, claim)
			}
			continue
		}
		for _, one := range many {
			claim.Path, claim.Many = one.After.Path, event.FileChange{}
			other := claim
			if other.Doubt = event.DoubtOther; !disclaimed[other] {
				list = append(list, claim)
			}
		}
	}
	return list, err
}

// describeOwners describes who may have changed a file, if not only the commands of the chain; otherwise it is
// empty.
func describeOwners(claims []Claim, chain []turnChange) string {
	for _, l := range chain {
		if !l.call.isCommand || l.call.endTime == 0 {
			continue
		}
		session, sure := "", false
		for _, c := range claims {
			certain := c.Doubt == "" || c.Doubt == event.DoubtBoth
			if (c.Path == l.before.Path || c.Path == ".") && c.overlaps(l.call.requestTime, l.call.endTime) &&
				(session == "" || !sure && certain) {
				session, sure = c.Session, certain
			}
		}
		switch {
		case session != "" && sure && l.doubt == event.DoubtOther:
			return fmt.Sprintf("session %s changed it while the command ran", session)
		case session != "" && l.doubt == event.DoubtOther:
			return fmt.Sprintf("another program or session %s changed it while the command ran", session)
		case l.doubt == event.DoubtOther:
			return "another program changed it while the command ran"
		case session != "" && l.doubt == event.DoubtBoth:
			return fmt.Sprintf("the command and session %s both changed it", session)
		case l.doubt == event.DoubtBoth:
			return "the command and another program both changed it"
		case session != "" && (sure || l.doubt == event.DoubtUnseen):
			return fmt.Sprintf("the command or session %s changed it", session)
		case l.doubt == event.DoubtUnseen:
			return "the command or another program changed it; coder could not watch the command"
		}
	}
	return ""
}

// overlaps reports whether the change may have happened between two times, in milliseconds.
func (c Claim) overlaps(from, to int64) bool {
	return c.From.UnixMilli() <= to && (c.To.IsZero() || c.To.UnixMilli() >= from)
}

// changesByFile groups a turn's changes by file, in the order the files were first touched.
func (k *Keeper) changesByFile(ctx context.Context, t turnState, r *Plan) (chains map[string][]turnChange,
	order []string, err error) {
	chains = make(map[string][]turnChange)
	for _, l := range t.changes {
		list, err := k.expandChange(ctx, l)
		if err != nil {
			if ctx.Err() != nil {
				return nil, nil, ctx.Err()
			}
			r.Lost = append(r.Lost, Note{Path: ".", Why: "the changes of this command are no longer known: " +
				l.call.commandLine})
			continue
		}
		for _, l := range list {
			path := l.before.Path
			if t.undone[changeMark{l.call.seq, path}] {
				continue
			}
			list := chains[path]
			if list == nil {
				order = append(order, path)
			} else if last := &list[len(list)-1]; last.call == l.call { // one of many, with a doubt
				last.doubt = l.doubt
				continue
			}
			chains[path] = append(chains[path], l)
		}
	}
	return chains, order, nil
}

// fileGoal is a file's intended state and its conditions.
type fileGoal struct {
	target         event.FileState
	expected       *event.FileState // what the turn left; nil if unknown
	startTime      int64            // start of the call with the unknown outcome
	isGuessed      bool             // and the change may not be the call's
	undoes         []uint64
	isPartial      bool
	cutOff         bool   // to may be the work of a command that was cut off
	changedBetween bool   // someone else changed it between two of the undone changes
	shared         bool   // undoes commands, though only tools were selected
	changedAfter   bool   // someone else's change follows the ones to undo
	owners         string // who else may have changed it, as text
	laterCall      uint64 // the call that changed it later, if only one call is undone
	leftState      *event.FileState
}

// isContiguous reports whether nobody else changed the file between two calls.
func (k *Keeper) isContiguous(ctx context.Context, a, b turnChange) bool {
	overlap := a.call.end == 0 || a.call.end > b.call.seq
	return a.isKnown() && (overlap || k.isSame(ctx, a.after, b.before))
}

func (p *operation) addGoal(ctx context.Context, w fileGoal) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s := step{target: w.target, undoes: w.undoes, isPartial: w.isPartial, cutOff: w.cutOff && w.isPartial,
		shared: w.shared}
	if rel, err := p.keeper.ws.Resolve(w.target.Path); err != nil || rel != w.target.Path {
		p.recordLost(w.target, "not in the workspace")
		return nil
	}
	now, err := p.currentState(w.target.Path)
	if err != nil {
		return err
	}
	s.current = now
	switch {
	case w.target.ContentLost:
		p.recordLost(w.target, "the content was not saved")
		return nil
	case p.keeper.isSame(ctx, now, w.target):
		p.resolveCurrent(ctx, s, w)
		return nil
	}
	if s.forcedReason = p.keeper.objection(ctx, now, w); s.forcedReason != "" && !p.force {
		p.keepFile(s, s.forcedReason)
		return nil
	}
	return p.addStep(ctx, s)
}

// objection returns why a file should stay unchanged, or "" if nothing prevents the wish.
func (k *Keeper) objection(ctx context.Context, now event.FileState, w fileGoal) string {
	switch {
	case w.owners != "":
		return w.owners
	case w.laterCall != 0:
		return fmt.Sprintf("call #%d changed it later", w.laterCall)
	case w.changedAfter:
		return "someone else changed it after the turn did"
	case w.expected == nil && w.isGuessed:
		return "an interrupted command or another program may have changed it"
	case !k.isUntouched(ctx, now, w):
		return changedReason
	case w.changedBetween && w.cutOff:
		return "an interrupted command may have changed it"
	case w.changedBetween:
		return "someone else changed it between two calls of the turn"
	}
	return ""
}

// Current describes what stands at a path, or would after the plans before this one.
func (p *operation) currentState(rel string) (event.FileState, error) {
	if s, planned := p.plannedStates[rel]; planned {
		return s, nil
	}
	return p.keeper.Current(rel)
}

// resolveCurrent handles a file that already has the intended state. If someone else caused it, the plan does
// not claim it.
func (p *operation) resolveCurrent(ctx context.Context, s step, w fileGoal) {
	s.isCurrent = true
	switch {
	case w.leftState != nil: // an undo that was cut off
		s.current = *w.leftState
	case len(w.undoes) > 0 && (w.expected == nil || !p.keeper.isSame(ctx, s.current, *w.expected)):
		return
	default:
		s.current = s.target
	}
	p.steps = append(p.steps, s)
}

// cutOffWindow is how long after its request a cut-off call may have written a file. A later change is someone
// else's.
const cutOffWindow = 2 * time.Second

// isUntouched reports whether a file is as the turn left it. If that is unknown because a call was cut
// off, a file changed at the time of the call counts as untouched.
func (k *Keeper) isUntouched(ctx context.Context, now event.FileState, w fileGoal) bool {
	if w.expected != nil {
		return k.isSame(ctx, now, *w.expected)
	}
	if kindOf(now) == kindDir && kindOf(w.target) == kindAbsent {
		return true // it is removed only if empty
	}
	changed := now.Path
	if kindOf(now) == kindAbsent {
		changed = path.Dir(now.Path)
	}
	info, err := k.ws.Lstat(changed)
	if err != nil {
		return false
	}
	after := stampOf(info).lastChange().Sub(time.UnixMilli(w.startTime))
	return after > -cutOffWindow && after < cutOffWindow
}

// addStep adds a step to the plan if it is possible and reversible.
func (p *operation) addStep(ctx context.Context, s step) error {
	if kindOf(s.target) == kindFile {
		if err := p.keeper.checkContent(ctx, s.target); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			p.recordLost(s.target, err.Error())
			return nil
		}
	}
	keep := p.keeper.saveFile
	if p.plan.DryRun {
		keep = p.currentState
	}
	now, err := keep(s.current.Path)
	switch {
	case err != nil && !p.force:
		return err
	case err != nil:
		s.current.ContentLost = true
	case !p.keeper.isSame(ctx, now, s.current) && !p.force && !now.ContentLost:
		s.current = now
		p.keepFile(s, changedReason)
		return nil
	default:
		s.current = now
	}
	if s.current.ContentLost {
		const unsaved = "the current content could not be restored"
		if s.forcedReason = cmp.Or(s.forcedReason, unsaved); !p.force {
			p.keepFile(s, unsaved)
			return nil
		}
	}
	p.steps = append(p.steps, s)
	return nil
}

// ReasonOthersFiles is why a folder created by a turn stays: it contains files that are not the turn's or are
// ignored, which could not be restored.
const ReasonOthersFiles = "contains other files"

// keepOccupied keeps folders that would not be empty.
func (p *operation) keepOccupied() {
	goes := make(map[string]bool)
	for _, s := range p.steps {
		goes[s.target.Path] = kindOf(s.target) == kindAbsent
	}
	// a folder's content comes before it
	slices.SortStableFunc(p.steps, func(a, b step) int { return depth(b) - depth(a) })
	p.steps = slices.DeleteFunc(p.steps, func(s step) bool {
		if !goes[s.target.Path] || kindOf(s.current) != kindDir {
			return false
		}
		there, _, err := p.keeper.ws.ReadDir(s.current.Path, maxListed) // unlisted entries will prevent the removal
		stays := err == nil && slices.ContainsFunc(there, func(e fs.DirEntry) bool {
			rel := path.Join(s.current.Path, e.Name())
			was, planned := p.plannedStates[rel]
			return !goes[rel] && !(planned && kindOf(was) == kindAbsent)
		})
		if stays {
			goes[s.target.Path] = false
			p.keepFile(s, ReasonOthersFiles)
		}
		return stays
	})
}

// addParents adds the directories needed for restored files, so that those to be created are also on
// record.
func (p *operation) addParents() {
	at := make(map[string]int)
	for i, s := range p.steps {
		at[s.target.Path] = i
	}
	for _, s := range slices.Clone(p.steps) {
		if kindOf(s.target) == kindAbsent {
			continue
		}
		for dir := path.Dir(s.target.Path); dir != "." && dir != "/"; dir = path.Dir(dir) {
			if i, planned := at[dir]; planned {
				p.steps[i].keepDir()
			} else if _, err := p.keeper.ws.Lstat(dir); isMissing(err) {
				at[dir] = len(p.steps)
				p.steps = append(p.steps, step{current: event.FileState{Path: dir}, target: newDirState(dir)})
			}
		}
	}
}

// keepDir makes a step that would leave nothing leave a directory.
func (s *step) keepDir() {
	switch {
	case kindOf(s.target) != kindAbsent:
	case kindOf(s.current) == kindDir:
		s.target, s.isCurrent = s.current, true
	default:
		s.target, s.isCurrent = newDirState(s.target.Path), false
	}
}

func newDirState(rel string) event.FileState {
	return event.FileState{Path: rel, Hash: dirHash, Mode: parentMode}
}

// parentMode is the mode of directories whose mode is unknown.
const parentMode = 0o755

// checkContent reads a saved content to the end.
func (k *Keeper) checkContent(ctx context.Context, s event.FileState) error {
	r, err := k.content(ctx, s)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(io.Discard, r)
	return err
}

// keepFile keeps the file of a step unchanged, with the reason.
func (p *operation) keepFile(s step, why string) {
	n := Note{Path: displayPath(s.current), Why: why}
	switch {
	case why == ReasonOthersFiles:
	case kindOf(s.target) == kindAbsent:
		n.Force = ForceRemove
	case kindOf(s.current) == kindAbsent:
		n.Force = ForceRestore
	default:
		n.Force = ForceOverwrite
	}
	p.plan.Unchanged = append(p.plan.Unchanged, n)
}

func (p *operation) recordLost(s event.FileState, why string) {
	p.plan.Lost = append(p.plan.Lost, Note{Path: displayPath(s), Why: why})
}

// displayPath returns a path for display; that of a directory ends in a slash.
func displayPath(states ...event.FileState) string {
	for _, s := range states {
		if kindOf(s) == kindDir {
			return event.DisplayName(s.Path) + "/"
		}
	}
	return event.DisplayName(states[0].Path)
}
