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
)

// ErrNothing reports that there is nothing to undo.
var ErrNothing = errors.New("nothing to undo")

// errLeft is ErrNothing after an undo that left files unchanged.
var errLeft = fmt.Errorf("%w except files left unchanged (force includes them)", ErrNothing)

// ErrNotKept reports a session that saves nothing, and ErrTooOld a turn whose saved files are gone.
var (
	ErrNotKept = errors.New("nothing is saved in this session, so nothing can be undone")
	ErrTooOld  = fmt.Errorf("only the last %d turns are saved", MaxTurns)
)

// ErrNothingUndone reports a redo without a preceding undo.
var ErrNothingUndone = errors.New("nothing to redo")

// link is one change of one file in a turn.
type link struct {
	call          *call
	before, after event.FileState // after is empty if the call's outcome is unknown
	doubt         event.Doubt
	guessed       bool // something changed since the call, perhaps by others
	found         map[string]event.FileState
}

func (l link) known() bool { return l.call.known }

// past is a turn's current state, for planning.
type past struct {
	Turn
	links    []link // in the order of requests
	commands []string
	undone   map[mark]bool
	left     *op    // an undo of this turn that was cut off, or nil
	going    bool   // it has been partly undone
	all      bool   // including changes by commands
	force    bool   // including changes by others
	since    []link // changes of all turns, if only one call or file is selected
}

// candidates returns the turns that an undo may refer to, likeliest first: the one undone last, if more
// of it can be undone, then the newest that was not undone.
func (h *History) candidates(c Call, id string) (list []past, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.resolveCutOff()
	switch {
	case id != "":
		if i := h.index(id); i >= 0 && h.turns[i].touched() {
			return []past{h.past(h.turns[i])}, nil
		}
		if h.dropped && h.index(id) < 0 {
			return nil, ErrTooOld
		}
		return nil, fmt.Errorf("turn %s: %w", id, ErrNothing)
	case c.Only != Only{}:
		return h.only(c.Only)
	}
	if top := h.top(); top != nil && (top.turn.popped > 0 && (c.All || c.Force) || !top.done) {
		list = append(list, h.past(top.turn))
	}
	for _, t := range slices.Backward(h.turns) {
		if t.popped == 0 && t.remains() && (c.All || !t.own()) {
			if len(list) == 0 || list[0].ID != t.ID {
				list = append(list, h.past(t))
			}
			return list, nil
		}
	}
	if len(list) == 0 && h.dropped {
		return nil, fmt.Errorf("%w: only the last %d turns are saved", ErrNothing, MaxTurns)
	}
	if len(list) == 0 && slices.ContainsFunc(h.turns, func(t *turn) bool { return t.popped == 0 && t.touched() }) {
		return nil, fmt.Errorf("%w except changes by your own commands (all includes them)", ErrNothing)
	}
	if top := h.top(); len(list) == 0 && top != nil && top.turn.left() {
		return nil, errLeft
	}
	if len(list) == 0 {
		return nil, ErrNothing
	}
	return list, nil
}

// only returns the turn with the selected call, or those that may have changed the selected file, newest
// first.
func (h *History) only(o Only) (list []past, err error) {
	for _, t := range slices.Backward(h.turns) {
		if o.Record != 0 && !slices.ContainsFunc(t.calls, o.is) {
			continue
		}
		p := h.past(t)
		p.links = slices.DeleteFunc(p.links, func(l link) bool { return o.Record != 0 && !o.is(l.call) })
		p.commands = nil
		changed := func(l link) bool {
			// A link may stand for many changes, and those of a command that was cut off are not listed.
			many := strings.HasPrefix(l.before.Hash, treePrefix)
			return many || o.fileOf(l.before.Path) != "" && !p.undone[mark{l.call.seq, l.before.Path}]
		}
		if o.Record == 0 && !slices.ContainsFunc(p.links, changed) {
			continue
		}
		p.since = h.all()
		list = append(list, p)
	}
	if len(list) == 0 {
		return nil, o.nothing()
	}
	return list, nil
}

// all returns the changes of all turns that were not undone.
func (h *History) all() (list []link) {
	for _, t := range h.turns {
		for _, c := range t.calls {
			for _, ch := range c.changes {
				if !t.undone[mark{c.seq, ch.Before.Path}] {
					list = append(list, link{call: c, before: ch.Before, after: ch.After})
				}
			}
		}
	}
	return list
}

// nothing returns the error for a selected call or file that cannot be undone.
func (o Only) nothing() error {
	if o.Record != 0 {
		return fmt.Errorf("call #%d changed no file, or is not in the last %d turns: %w", o.Record, MaxTurns, ErrNothing)
	}
	return fmt.Errorf("no call in the last %d turns changed %s: %w", MaxTurns, event.ShownName(o.File), ErrNothing)
}

// is reports whether c is the selected call.
func (o Only) is(c *call) bool { return c.touched() && (c.seq == o.Record || c.end == o.Record) }

// fileOf returns the selected file or folder if rel is that or is in it.
func (o Only) fileOf(rel string) string {
	switch {
	case rel == o.File || lies(rel, o.File):
		return o.File
	case !o.shown:
		return ""
	}
	for at := rel; at != "." && at != "/"; at = path.Dir(at) {
		if event.ShownName(at) == o.File {
			return at
		}
	}
	return ""
}

// meant returns the selected files of a turn. A shown name must match only one.
func (o Only) meant(order []string) ([]string, error) {
	var files []string
	order = slices.DeleteFunc(order, func(rel string) bool {
		file := o.fileOf(rel)
		if file != "" && !slices.Contains(files, file) {
			files = append(files, file)
		}
		return file == ""
	})
	if len(files) > 1 {
		return nil, fmt.Errorf("%s matches %d files; use the exact bytes of the name, or undo a call by its number", o.File, len(files))
	}
	return order, nil
}

// remains reports whether the turn has, or may have, changes that were not undone.
func (t *turn) remains() bool {
	return slices.ContainsFunc(t.calls, func(c *call) bool {
		return !c.known || slices.ContainsFunc(c.changes, func(ch event.FileChange) bool { return !t.undone[mark{c.seq, ch.Before.Path}] })
	})
}

// left reports whether an undo of the turn left a tool's change in place.
func (t *turn) left() bool {
	for _, c := range t.calls {
		for _, ch := range c.changes {
			if !c.command && !t.undone[mark{c.seq, ch.Before.Path}] && !t.undone[mark{c.seq, ch.After.Path}] {
				return true
			}
		}
	}
	return false
}

// past collects what remains of a turn.
func (h *History) past(t *turn) past {
	p := past{Turn: t.Turn, going: t.popped > 0, all: t.all, force: t.force, undone: maps.Clone(t.undone)}
	if top := h.top(); top != nil && top.turn == t && !top.done {
		p.left, p.going = top, true
	}
	for _, c := range t.calls {
		if c.command {
			p.commands = append(p.commands, c.what)
		}
		for _, ch := range c.changes {
			p.links = append(p.links, link{call: c, before: ch.Before, after: ch.After, doubt: ch.Doubt})
		}
		for _, s := range c.before {
			if !c.known {
				p.links = append(p.links, link{call: c, before: s})
			}
		}
		if !c.known && c.tree != "" {
			whole := event.FileState{Path: ".", Hash: treePrefix + c.tree}
			p.links = append(p.links, link{call: c, before: whole, found: maps.Clone(c.found)})
		}
	}
	return p
}

// step is one file to change.
type step struct {
	now, to event.FileState
	undoes  []uint64
	already bool   // it already has the intended state
	cleared bool   // the previous file was removed
	partly  bool   // it returns to someone's version from during the turn
	cutOff  bool   // or that of a command that was cut off
	shared  bool   // commands wrote it after tools did, but only the tools' work was selected
	forced  string // why it would have stayed without Force
	done    bool
}

// work is an undo, redo or restore in preparation.
type work struct {
	k     *Keeper
	force bool
	steps []step
	plan  Plan
	rest  bool // more could be undone
	// made holds the states that earlier plans would give files, by path, in a dry run.
	made map[string]event.FileState
}

func (k *Keeper) planUndo(ctx context.Context, t past, c Call, made map[string]event.FileState) (*work, error) {
	p := &work{k: k, force: c.Force, made: made}
	p.plan = Plan{Turn: t.Turn, DryRun: c.DryRun, Commands: t.commands}
	chains, order, err := k.chains(ctx, t, &p.plan)
	if err != nil {
		return nil, err
	}
	if c.Only.File != "" {
		if order, err = c.Only.meant(order); err != nil {
			return nil, err
		}
	}
	p.rest = len(order) > 0
	claims, err := k.claims(ctx, t, c)
	if err != nil && !c.Force {
		return nil, fmt.Errorf("check what other sessions changed: %w", err)
	}
	for _, path := range order {
		chain := withoutOwn(chains[path])
		if len(chain) == 0 {
			continue
		}
		if !c.All && !slices.ContainsFunc(chain, isTool) {
			p.plan.NotUndone = append(p.plan.NotUndone, label(chain[0].before, chain[len(chain)-1].after))
			continue
		}
		w := k.wishOf(ctx, chain, c)
		w.whose = whose(claims, chain[len(chain)-len(w.undoes):])
		w.later = t.laterThan(chain[len(chain)-1])
		if t.left != nil {
			if before, ok := t.left.before[path]; ok {
				w.left = &before
			}
		}
		if err := p.consider(ctx, w); err != nil {
			return nil, err
		}
	}
	p.leaveOccupied()
	return p, nil
}

// wishOf returns the intended state of a file when its chain is undone. If someone else changed it
// between two calls, it returns to their version, no further.
func (k *Keeper) wishOf(ctx context.Context, chain []link, c Call) wish {
	start := 0
	if !c.All {
		start = slices.IndexFunc(chain, isTool)
	}
	from := len(chain) - 1
	for from > start && k.joined(ctx, chain[from-1], chain[from]) {
		from--
	}
	w := wish{partly: from > start}
	w.cutOff = w.partly && !chain[from-1].known()
	if c.Force {
		w.between, w.partly, from = w.partly, false, start
	}
	w.to = chain[from].before
	w.buried = !c.All && !slices.ContainsFunc(chain[from:], isTool)
	w.shared = !c.All && slices.ContainsFunc(chain[from:], func(l link) bool { return !isTool(l) })
	last := chain[len(chain)-1]
	for _, l := range chain[from:] {
		w.undoes = append(w.undoes, l.call.seq)
		if last.known() && l.known() && l.call.end > last.call.end {
			last = l // it was still running
		}
	}
	if last.known() {
		w.expected = &last.after
	}
	w.since, w.guessed = last.call.at, last.guessed || last.call.command
	return w
}

// withoutOwn removes changes attributed to a command that another call of the session made at the same
// time. If both changed the file, neither is in doubt.
func withoutOwn(chain []link) []link {
	beside := func(l link) bool {
		return slices.ContainsFunc(chain, func(m link) bool {
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
	return slices.DeleteFunc(chain, func(l link) bool { return l.doubt == event.DoubtOther && beside(l) })
}

// laterThan returns the call that changed a file after l did, or 0.
func (t past) laterThan(l link) (seq uint64) {
	for _, later := range t.since {
		if later.before.Path == l.before.Path && later.call.seq > l.call.seq {
			seq = max(seq, later.call.seq)
		}
	}
	return seq
}

func isTool(l link) bool { return !l.call.command }

// claims returns what other sessions changed while commands of the turn ran.
func (k *Keeper) claims(ctx context.Context, t past, c Call) (list []Claim, err error) {
	var from, to int64
	for _, l := range t.links {
		if l.call.command && l.call.until > 0 {
			if from == 0 || l.call.at < from {
				from = l.call.at
			}
			to = max(to, l.call.until)
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

// whose describes who may have changed a file, if not only the commands of the chain; otherwise it is
// empty.
func whose(claims []Claim, chain []link) string {
	for _, l := range chain {
		if !l.call.command || l.call.until == 0 {
			continue
		}
		session, sure := "", false
		for _, c := range claims {
			certain := c.Doubt == "" || c.Doubt == event.DoubtBoth
			if (c.Path == l.before.Path || c.Path == ".") && c.overlaps(l.call.at, l.call.until) && (session == "" || !sure && certain) {
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

// chains groups a turn's changes by file, in the order the files were first touched.
func (k *Keeper) chains(ctx context.Context, t past, r *Plan) (chains map[string][]link, order []string, err error) {
	chains = make(map[string][]link)
	for _, l := range t.links {
		list, err := k.expandLink(ctx, l)
		if err != nil {
			if ctx.Err() != nil {
				return nil, nil, ctx.Err()
			}
			r.Lost = append(r.Lost, Note{Path: ".", Why: "the changes of this command are no longer known: " + l.call.what})
			continue
		}
		for _, l := range list {
			path := l.before.Path
			if t.undone[mark{l.call.seq, path}] {
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

// wish is a file's intended state and its conditions.
type wish struct {
	to       event.FileState
	expected *event.FileState // what the turn left; nil if unknown
	since    int64            // start of the call with the unknown outcome
	guessed  bool             // and the change may not be the call's
	undoes   []uint64
	partly   bool
	cutOff   bool   // to may be the work of a command that was cut off
	between  bool   // someone else changed it between two of the undone changes
	shared   bool   // undoes commands, though only tools were selected
	buried   bool   // someone else's change follows the ones to undo
	whose    string // who else may have changed it, as text
	later    uint64 // the call that changed it later, if only one call is undone
	left     *event.FileState
}

// joined reports whether nobody else changed the file between two calls.
func (k *Keeper) joined(ctx context.Context, a, b link) bool {
	overlap := a.call.end == 0 || a.call.end > b.call.seq
	return a.known() && (overlap || k.same(ctx, a.after, b.before))
}

func (p *work) consider(ctx context.Context, w wish) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s := step{to: w.to, undoes: w.undoes, partly: w.partly, cutOff: w.cutOff && w.partly, shared: w.shared}
	if rel, err := p.k.ws.Resolve(w.to.Path); err != nil || rel != w.to.Path {
		p.lose(w.to, "not in the workspace")
		return nil
	}
	now, err := p.current(w.to.Path)
	if err != nil {
		return err
	}
	s.now = now
	switch {
	case w.to.Lost:
		p.lose(w.to, "its content was not saved")
		return nil
	case p.k.same(ctx, now, w.to):
		p.resolve(ctx, s, w)
		return nil
	}
	if s.forced = p.k.objection(ctx, now, w); s.forced != "" && !p.force {
		p.leave(s, s.forced)
		return nil
	}
	return p.admit(ctx, s)
}

// objection returns why a file should stay unchanged, or "" if nothing prevents the wish.
func (k *Keeper) objection(ctx context.Context, now event.FileState, w wish) string {
	switch {
	case w.whose != "":
		return w.whose
	case w.later != 0:
		return fmt.Sprintf("call #%d changed it later", w.later)
	case w.buried:
		return "someone else changed it after the turn did"
	case w.expected == nil && w.guessed:
		return "an interrupted command or another program may have changed it"
	case !k.untouched(ctx, now, w):
		return changedSince
	case w.between && w.cutOff:
		return "an interrupted command may have changed it"
	case w.between:
		return "someone else changed it between two calls of the turn"
	}
	return ""
}

// Current describes what stands at a path, or would after the plans before this one.
func (p *work) current(rel string) (event.FileState, error) {
	if s, planned := p.made[rel]; planned {
		return s, nil
	}
	return p.k.Current(rel)
}

// resolve handles a file that already has the intended state. If someone else caused it, the plan does
// not claim it.
func (p *work) resolve(ctx context.Context, s step, w wish) {
	s.already = true
	switch {
	case w.left != nil: // an undo that was cut off
		s.now = *w.left
	case len(w.undoes) > 0 && (w.expected == nil || !p.k.same(ctx, s.now, *w.expected)):
		return
	default:
		s.now = s.to
	}
	p.steps = append(p.steps, s)
}

// nearby is how long after its request a cut-off call may have written a file. A later change is someone
// else's.
const nearby = 2 * time.Second

// untouched reports whether a file is as the turn left it. If that is unknown because a call was cut
// off, a file changed at the time of the call counts as untouched.
func (k *Keeper) untouched(ctx context.Context, now event.FileState, w wish) bool {
	if w.expected != nil {
		return k.same(ctx, now, *w.expected)
	}
	if kindOf(now) == isDir && kindOf(w.to) == isAbsent {
		return true // it is removed only if empty
	}
	changed := now.Path
	if kindOf(now) == isAbsent {
		changed = path.Dir(now.Path)
	}
	info, err := k.ws.Lstat(changed)
	if err != nil {
		return false
	}
	after := stampOf(info).last().Sub(time.UnixMilli(w.since))
	return after > -nearby && after < nearby
}

// admit adds a step to the plan if it is possible and reversible.
func (p *work) admit(ctx context.Context, s step) error {
	if kindOf(s.to) == isFile {
		if err := p.k.check(ctx, s.to); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			p.lose(s.to, err.Error())
			return nil
		}
	}
	keep := p.k.save
	if p.plan.DryRun {
		keep = p.current
	}
	now, err := keep(s.now.Path)
	switch {
	case err != nil && !p.force:
		return err
	case err != nil:
		s.now.Lost = true
	case !p.k.same(ctx, now, s.now) && !p.force && !now.Lost:
		s.now = now
		p.leave(s, changedSince)
		return nil
	default:
		s.now = now
	}
	if s.now.Lost {
		const unsaved = "its current content could not be restored"
		if s.forced = cmp.Or(s.forced, unsaved); !p.force {
			p.leave(s, unsaved)
			return nil
		}
	}
	p.steps = append(p.steps, s)
	return nil
}

// HoldsOthers is why a folder created by a turn stays: it contains files that are not the turn's or are
// ignored, which could not be restored.
const HoldsOthers = "it contains other files"

// leaveOccupied keeps folders that would not be empty.
func (p *work) leaveOccupied() {
	goes := make(map[string]bool)
	for _, s := range p.steps {
		goes[s.to.Path] = kindOf(s.to) == isAbsent
	}
	slices.SortStableFunc(p.steps, func(a, b step) int { return depth(b) - depth(a) }) // a folder's content comes before it
	p.steps = slices.DeleteFunc(p.steps, func(s step) bool {
		if !goes[s.to.Path] || kindOf(s.now) != isDir {
			return false
		}
		there, _, err := p.k.ws.ReadDir(s.now.Path, maxListed) // unlisted entries will prevent the removal
		stays := err == nil && slices.ContainsFunc(there, func(e fs.DirEntry) bool {
			rel := path.Join(s.now.Path, e.Name())
			was, planned := p.made[rel]
			return !goes[rel] && !(planned && kindOf(was) == isAbsent)
		})
		if stays {
			goes[s.to.Path] = false
			p.leave(s, HoldsOthers)
		}
		return stays
	})
}

// addParents adds the directories needed for restored files, so that those to be created are also on
// record.
func (p *work) addParents() {
	at := make(map[string]int)
	for i, s := range p.steps {
		at[s.to.Path] = i
	}
	for _, s := range slices.Clone(p.steps) {
		if kindOf(s.to) == isAbsent {
			continue
		}
		for dir := path.Dir(s.to.Path); dir != "." && dir != "/"; dir = path.Dir(dir) {
			if i, planned := at[dir]; planned {
				p.steps[i].holdOpen()
			} else if _, err := p.k.ws.Lstat(dir); missing(err) {
				at[dir] = len(p.steps)
				p.steps = append(p.steps, step{now: event.FileState{Path: dir}, to: madeDir(dir)})
			}
		}
	}
}

// holdOpen makes a step that would leave nothing leave a directory.
func (s *step) holdOpen() {
	switch {
	case kindOf(s.to) != isAbsent:
	case kindOf(s.now) == isDir:
		s.to, s.already = s.now, true
	default:
		s.to, s.already = madeDir(s.to.Path), false
	}
}

func madeDir(rel string) event.FileState {
	return event.FileState{Path: rel, Hash: dirHash, Mode: parentMode}
}

// parentMode is the mode of directories whose mode is unknown.
const parentMode = 0o755

// check reads a saved content to the end.
func (k *Keeper) check(ctx context.Context, s event.FileState) error {
	r, err := k.content(ctx, s)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(io.Discard, r)
	return err
}

// leave keeps the file of a step unchanged, with the reason.
func (p *work) leave(s step, why string) {
	n := Note{Path: label(s.now), Why: why}
	switch {
	case why == HoldsOthers:
	case kindOf(s.to) == isAbsent:
		n.Force = Removes
	case kindOf(s.now) == isAbsent:
		n.Force = Restores
	default:
		n.Force = Overwrites
	}
	p.plan.Kept = append(p.plan.Kept, n)
}

func (p *work) lose(s event.FileState, why string) {
	p.plan.Lost = append(p.plan.Lost, Note{Path: label(s), Why: why})
}

// label returns a path for display; that of a directory ends in a slash.
func label(states ...event.FileState) string {
	for _, s := range states {
		if kindOf(s) == isDir {
			return event.ShownName(s.Path) + "/"
		}
	}
	return event.ShownName(states[0].Path)
}
