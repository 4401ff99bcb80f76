package undo

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"coder/internal/core/event"
	"coder/internal/tool"
)

const (
	// MaxTurns is the number of turns that can be undone.
	MaxTurns = 50
	// pinnedTurns is the number of turns whose contents stay however full the store is.
	pinnedTurns = 5
)

// Names and author of undo calls on record, and the actor that completes calls with an unknown end.
const (
	undoTool       = "undo"
	redoTool       = "redo"
	restoreTool    = "restore"
	userAuthor     = "user"
	recoveryAuthor = "recovery"
)

// Reverts reports whether a tool only puts files back that other calls changed.
func Reverts(tool string) bool { return tool == undoTool || tool == redoTool || tool == restoreTool }

// Turn identifies a turn for the user.
type Turn struct {
	ID    string `json:"id"`
	Title string `json:"title,omitempty"`
}

// History is what a session's records say about files: a stack of turns, and what was undone. The zero
// value is ready to use, and safe for concurrent use. It must receive every record of the session,
// including those of [Undo] and [Redo].
type History struct {
	mu           sync.Mutex
	parents      map[string]string // task → its parent
	titles       map[string]string
	order        []string // tasks that are turns
	reported     span     // turns after the one undone last, which reported them
	turns        []*turn  // oldest first
	dropped      bool     // older turns were dropped
	calls        map[string]*call
	cutOff       []*call            // commands that were cut off
	ops          map[string]*undoOp // undo calls in progress
	redoStack    []*undoOp          // undos that can be redone, newest last
	tree         string
	neededHashes map[string]bool // nil until computed
}

// span is a contiguous range of a list.
type span struct{ from, to int }

// turn is the work of one task and its subtasks.
type turn struct {
	Turn
	calls     []*call
	undone    map[changeMark]bool
	undoCount int  // number of undos in force
	withAll   bool // they were requested with All
	force     bool // and with Force
}

// changeMark is a change to one file by one call.
type changeMark struct {
	seq  uint64
	path string
}

// call is a call that may change files.
type call struct {
	seq, end    uint64 // records of its request and completion; end is zero without one
	isCommand   bool
	author      string
	commandLine string // the command line
	requestTime int64  // time of the request, in milliseconds
	endTime     int64  // time of the end; zero if unknown
	before      []event.FileState
	tree        string
	isComplete  bool // changes is complete
	changes     []event.FileChange
	isSettled   bool                       // cut off, and treated as if it had completed
	foundStates map[string]event.FileState // for a command that was cut off; see observe
}

// mayHaveChanged reports whether the call changed files, or may have.
func (c *call) mayHaveChanged() bool { return len(c.changes) > 0 || !c.isComplete }

func (t *turn) mayHaveChanged() bool { return slices.ContainsFunc(t.calls, (*call).mayHaveChanged) }

// isOwnCommand reports whether the turn only ran the user's own commands.
func (t *turn) isOwnCommand() bool {
	return !slices.ContainsFunc(t.calls, func(c *call) bool {
		return c.mayHaveChanged() &&
			(!c.isCommand || c.author != userAuthor)
	})
}

// undoOp is an undo, completed or in progress, or a redo of one.
type undoOp struct {
	seq       uint64
	reverts   uint64 // for a redo: the undo that it reverts
	turn      *turn
	before    map[string]event.FileState
	files     []target
	changes   []event.FileChange
	marked    []changeMark
	done      bool
	isPartial bool // it concerns a part of the turn
}

// request is the recorded input of an undo or redo.
type request struct {
	Turn    string   `json:"turn"`
	All     bool     `json:"all,omitempty"`
	Force   bool     `json:"force,omitempty"`
	Reverts uint64   `json:"of,omitempty"`
	Partial bool     `json:"only,omitempty"` // the turn is only partly undone, and stays in force
	Files   []target `json:"files,omitempty"`
}

// target is a file's intended state, and the records whose changes it undoes.
type target struct {
	To     event.FileState `json:"to"`
	Undoes []uint64        `json:"undoes,omitempty"`
}

// Add processes one record. Records that do not concern files are ignored.
func (h *History) Add(r event.Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch e := r.Event.(type) {
	case event.TaskCreated:
		if h.titles == nil {
			h.titles, h.parents = make(map[string]string), make(map[string]string)
		}
		h.titles[e.TaskID] = e.Title
		if e.ParentID != "" {
			h.parents[e.TaskID] = e.ParentID
		} else {
			h.order = append(h.order, e.TaskID)
		}
	case event.ToolCallRequested:
		switch {
		case e.ReadOnly:
			return
		case e.Author == userAuthor && (e.Tool == undoTool || e.Tool == redoTool):
			h.addRequest(r.Seq, e)
			return
		case len(e.Before) == 0 && e.Tree == "":
			return
		}
		c := &call{seq: r.Seq, author: e.Author, requestTime: e.Timestamp, before: e.Before, tree: e.Tree}
		c.isCommand, c.commandLine = len(e.Effects) == 0, e.Tool
		anything := func(f event.Effect) bool { return f.Kind == tool.Exec || f.Kind == tool.Unknown }
		if i := slices.IndexFunc(e.Effects, anything); i >= 0 {
			c.isCommand, c.commandLine = true, e.Effects[i].Target
		}
		id := e.TaskID
		for range len(h.parents) + 1 {
			up, ok := h.parents[id]
			if !ok {
				break
			}
			id = up
		}
		t := h.turnOf(id)
		t.calls = append(t.calls, c)
		if h.calls == nil {
			h.calls = make(map[string]*call)
		}
		h.calls[e.CallID] = c
		h.recordFound(r.Seq, e.Before)
		if e.Tree != "" {
			h.tree = e.Tree
		}
		h.neededHashes = nil
	case event.ToolCallCompleted:
		if o := h.ops[e.CallID]; o != nil {
			delete(h.ops, e.CallID)
			if r.Actor != recoveryAuthor { // otherwise it was cut off and can be continued
				h.finishOp(o, e.Changes)
			}
			return
		}
		c := h.calls[e.CallID]
		if c == nil {
			return
		}
		delete(h.calls, e.CallID)
		c.end, c.isComplete, c.changes = r.Seq, r.Actor != recoveryAuthor, e.Changes
		if c.isComplete {
			c.endTime = e.Timestamp
		}
		if !c.isComplete && c.tree != "" {
			h.cutOff = append(h.cutOff, c)
		}
		var before []event.FileState
		for _, ch := range c.changes {
			before = append(before, ch.Before)
		}
		h.recordFound(c.seq, before)
		if c.mayHaveChanged() && !c.isSettled {
			h.recordChange(c)
		}
		h.neededHashes = nil
	}
}

// turnOf returns the turn of a task, creating it if necessary.
func (h *History) turnOf(id string) *turn {
	if i := h.index(id); i >= 0 {
		return h.turns[i]
	}
	h.turns = slices.DeleteFunc(h.turns, func(t *turn) bool { return !t.mayHaveChanged() })
	if len(h.turns) >= MaxTurns {
		old := h.turns[0]
		h.turns, h.dropped = slices.Delete(h.turns, 0, 1), true
		h.redoStack = slices.DeleteFunc(h.redoStack, func(o *undoOp) bool { return o.turn == old })
		h.cutOff = slices.DeleteFunc(h.cutOff, func(c *call) bool { return slices.Contains(old.calls, c) })
	}
	t := &turn{Turn: Turn{ID: id, Title: h.titles[id]}, undone: make(map[changeMark]bool)}
	h.turns = append(h.turns, t)
	return t
}

func (h *History) index(id string) int {
	return slices.IndexFunc(h.turns, func(t *turn) bool { return t.ID == id })
}

// recordChange records that files changed: earlier undos can no longer be redone, and the turn of c becomes the
// last one, even if it was undone before.
func (h *History) recordChange(c *call) {
	h.redoStack = nil
	i := slices.IndexFunc(h.turns, func(t *turn) bool { return slices.Contains(t.calls, c) })
	if i < 0 {
		return
	}
	t := h.turns[i]
	t.undoCount, t.withAll, t.force = 0, false, false
	h.turns = append(slices.Delete(h.turns, i, i+1), t)
}

func (h *History) addRequest(seq uint64, e event.ToolCallRequested) {
	var in request
	i := -1
	if json.Unmarshal(e.Input, &in) == nil {
		i = h.index(in.Turn)
	}
	if i < 0 {
		return // a turn too old to undo
	}
	h.settleCutOff()
	o := &undoOp{seq: seq, reverts: in.Reverts, turn: h.turns[i], files: in.Files, isPartial: in.Partial,
		before: make(map[string]event.FileState)}
	for _, s := range e.Before {
		o.before[s.Path] = s
	}
	if h.ops == nil {
		h.ops = make(map[string]*undoOp)
	}
	h.ops[e.CallID] = o
	for _, c := range h.cutOff {
		c.recordFound(e.Before)
	}
	for _, c := range h.calls {
		c.recordFound(e.Before)
	}
	if e.Tool == undoTool {
		if !in.Partial {
			o.turn.withAll, o.turn.force = o.turn.withAll || in.All, o.turn.force || in.Force
		}
		// It replaces an unfinished one of the same turn.
		if top := h.lastOp(); top != nil && !top.done && top.turn == o.turn {
			h.redoStack = h.redoStack[:len(h.redoStack)-1]
		}
		h.redoStack = append(h.redoStack, o)
		if len(h.redoStack) > MaxTurns {
			h.redoStack = slices.Delete(h.redoStack, 0, 1)
		}
	}
	h.neededHashes = nil
}

// RedoCount returns how many undos can be redone.
func (h *History) RedoCount() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.redoStack)
}

func (h *History) lastOp() *undoOp {
	if len(h.redoStack) == 0 {
		return nil
	}
	return h.redoStack[len(h.redoStack)-1]
}

func (h *History) finishOp(o *undoOp, changes []event.FileChange) {
	o.changes, o.done = changes, true
	h.neededHashes = nil
	if o.reverts != 0 {
		h.applyRedo(o)
		return
	}
	if len(o.files) == 0 && o.turn.undoCount > 0 { // it only reported what prevents more
		h.redoStack = slices.DeleteFunc(h.redoStack, func(other *undoOp) bool { return other == o })
		return
	}
	for _, f := range o.files {
		if !o.hasReached(f.To) {
			continue
		}
		for _, seq := range f.Undoes {
			o.marked = append(o.marked, changeMark{seq, f.To.Path})
		}
	}
	for _, m := range o.marked {
		o.turn.undone[m] = true
	}
	if o.isPartial {
		return
	}
	o.turn.undoCount++
	h.reported = span{slices.Index(h.order, o.turn.ID), len(h.order)}
}

// applyRedo records that a redo restored undone changes.
func (h *History) applyRedo(redo *undoOp) {
	i := slices.IndexFunc(h.redoStack, func(o *undoOp) bool { return o.seq == redo.reverts })
	if i < 0 {
		return
	}
	o := h.redoStack[i]
	h.redoStack = slices.Delete(h.redoStack, i, len(h.redoStack))
	again := make(map[string]bool)
	for _, f := range redo.files {
		again[f.To.Path] = redo.hasReached(f.To)
	}
	for _, m := range o.marked {
		if again[m.path] {
			delete(o.turn.undone, m)
		}
	}
	if o.isPartial {
		return
	}
	if o.done {
		o.turn.undoCount--
		h.reported = span{}
	}
	o.turn.withAll, o.turn.force = false, false
}

// hasReached reports whether a file has its intended state.
func (o *undoOp) hasReached(to event.FileState) bool {
	return o.before[to.Path] == to || slices.ContainsFunc(o.changes,
		func(c event.FileChange) bool { return c.After.Path == to.Path })
}

// effectiveChanges returns the changes of the op; if it was cut off, the intended ones.
func (o *undoOp) effectiveChanges() []event.FileChange {
	if o.done {
		return o.changes
	}
	var list []event.FileChange
	for _, f := range o.files {
		if before, ok := o.before[f.To.Path]; ok {
			list = append(list, event.FileChange{Before: before, After: f.To})
		}
	}
	return list
}

// InterruptedCalls returns the undo calls without an end, as completions that must be recorded.
func (h *History) InterruptedCalls() (list []event.ToolCallCompleted) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, o := range h.ops {
		tool := undoTool
		if o.reverts != 0 {
			tool = redoTool
		}
		list = append(list, event.ToolCallCompleted{
			CallID: id, Tool: tool, Author: userAuthor, TaskID: o.turn.ID, IsError: true, OutcomeUnknown: true,
			Output: json.RawMessage(`{"ok":false,"error":"coder exited before this was done; repeat the command to finish it"}`),
		})
	}
	slices.SortFunc(list, func(a, b event.ToolCallCompleted) int { return strings.Compare(a.CallID, b.CallID) })
	return list
}

// Tree returns the newest tree on record.
func (h *History) Tree() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tree
}

// Turns returns the turns that can be undone, oldest first.
func (h *History) Turns() []Turn {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []Turn
	for _, t := range h.turns {
		if t.undoCount == 0 && t.mayHaveChanged() {
			list = append(list, t.Turn)
		}
	}
	return list
}

// TurnsSince returns the turns from a task on that can be undone, newest first, except those that only ran
// the user's own commands.
func (h *History) TurnsSince(task string) (list []Turn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	from := slices.Index(h.order, task)
	for _, t := range slices.Backward(h.turns) {
		if from >= 0 && t.undoCount == 0 && t.mayHaveChanged() && !t.isOwnCommand() && slices.Index(h.order, t.ID) >= from {
			list = append(list, t.Turn)
		}
	}
	return list
}

// idleTurnsAfter returns the turns after a turn that changed no file, and those that were the user's own
// commands.
func (h *History) idleTurnsAfter(id string) (idle, own []Turn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for n := slices.Index(h.order, id) + 1; n < len(h.order); n++ {
		later := h.order[n]
		if h.reported.from <= n && n < h.reported.to {
			continue
		}
		t := Turn{ID: later, Title: h.titles[later]}
		switch i := h.index(later); {
		case i < 0 || !h.turns[i].mayHaveChanged():
			idle = append(idle, t)
		case h.turns[i].undoCount == 0 && h.turns[i].isOwnCommand():
			own = append(own, t)
		} // others were undone before
	}
	return idle, own
}

// IsNeeded reports whether a content is needed to undo one of the last turns, or to redo.
func (h *History) IsNeeded(hash string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.neededHashes == nil {
		h.neededHashes = make(map[string]bool)
		add := func(s event.FileState) {
			h.neededHashes[strings.TrimPrefix(s.Hash, treePrefix)] = true
		}
		for _, t := range h.turns[max(0, len(h.turns)-pinnedTurns):] {
			for _, c := range t.calls {
				h.neededHashes[c.tree] = true
				for _, s := range c.before {
					add(s)
				}
				for _, ch := range c.changes {
					add(ch.Before)
					add(ch.After)
				}
			}
		}
		for _, o := range h.redoStack {
			for _, ch := range o.effectiveChanges() {
				add(ch.Before)
			}
		}
	}
	return h.neededHashes[hash]
}
