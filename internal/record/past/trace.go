package past

import (
	"cmp"
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"coder/internal/core/event"
	"coder/internal/record/undo"
)

// trace reads from records what was where.
type trace struct {
	*World
	kept   Kept
	known  map[string]event.FileState
	listed map[string]bool               // paths that stood in a tree
	names  map[event.FileState]string    // of contents that git names
	before map[string]uint64             // the record before the request of a call
	turn   map[string]string             // of subtasks, the turn that they belong to
	found  map[[2]string]event.FileState // what the calls of a turn found first, by the turn and the path
	since  map[string]uint64             // files that undoing met changed by others, by the record after which
	seq    uint64                        // of the last record that is compared
	tree   string                        // the last
}

// Trace finds out from all records of a session how its files were at the beginning, and what
// others did to them before the record numbered end. Records that are skipped have no place.
func Trace(ctx context.Context, records []event.Record, end uint64, kept Kept, skipped func(event.Event) bool) (*World, error) {
	w := trace{
		World: NewWorld(nil, make(map[uint64][]event.FileState)), kept: kept,
		known: make(map[string]event.FileState), listed: make(map[string]bool), names: make(map[event.FileState]string),
		before: make(map[string]uint64), turn: make(map[string]string),
		found: make(map[[2]string]event.FileState), since: make(map[string]uint64),
	}
	w.Whole = false
	for _, r := range records {
		switch e := r.Event.(type) {
		case event.TaskCreated:
			w.turn[e.TaskID] = e.ParentID
		case event.ToolCallRequested:
			w.requested(ctx, e)
		case event.ToolCallCompleted:
			if err := w.completed(ctx, e, cmp.Or(w.turn[r.Task], r.Task)); err != nil {
				return nil, err
			}
		}
		if !skipped(r.Event) {
			w.seq = r.Seq
		}
	}
	for name, seq := range w.since { // nothing met it again, so what it held does not matter
		w.Later[seq] = append(w.Later[seq], standIn(name))
	}
	maps.DeleteFunc(w.Later, func(seq uint64, _ []event.FileState) bool { return seq >= end })
	return w.World, ctx.Err()
}

// requested takes in what a call was about to overwrite, and all files if their state was kept.
func (w *trace) requested(ctx context.Context, e event.ToolCallRequested) {
	w.before[e.CallID] = w.seq
	for _, s := range e.Before {
		w.was(ctx, s, w.seq)
	}
	for _, s := range e.Before { // the folder of a file to be made was there, unless it is to be made, too
		dir := path.Dir(s.Path)
		made := func(s event.FileState) bool { return s.Hash == "" && !s.Lost && strings.HasPrefix(dir+"/", s.Path+"/") }
		_, known := w.known[dir]
		if !known && dir != "." && s.Hash == "" && fs.ValidPath(dir) && !slices.ContainsFunc(e.Before, made) {
			w.was(ctx, event.FileState{Path: dir, Hash: "dir"}, w.seq)
		}
	}
	if w.Tree = cmp.Or(w.Tree, e.Tree); e.Tree == "" || e.Tree == w.tree {
		return
	}
	list, err := w.kept.Files(ctx, e.Tree)
	if err != nil {
		return // what was not kept is found out when it is missed
	}
	there := make(map[string]bool, len(list))
	for _, s := range list {
		there[s.Path] = true
		w.was(ctx, s, w.seq)
		w.listed[s.Path] = true
	}
	for name := range w.listed {
		if !there[name] && w.known[name].Hash != "" {
			w.was(ctx, event.FileState{Path: name}, w.seq)
		}
	}
	w.tree, w.Whole = e.Tree, true
}

// completed takes in what a call found and left.
func (w *trace) completed(ctx context.Context, e event.ToolCallCompleted, turn string) error {
	changes, err := Expand(ctx, w.kept, e.Changes)
	if err != nil {
		return err
	}
	seq := w.before[e.CallID]
	for _, c := range changes {
		w.was(ctx, c.Before, seq)
		w.known[c.After.Path] = c.After
		at := [2]string{turn, c.Before.Path}
		if _, known := w.found[at]; !known && turn != "" {
			w.found[at] = c.Before
		}
	}
	w.reverted(ctx, e, seq)
	for _, s := range e.Saw {
		w.was(ctx, s, seq)
	}
	return nil
}

// was takes in what a file was when the record after seq was made.
func (w *trace) was(ctx context.Context, s event.FileState, seq uint64) {
	if s.Path == "" {
		return
	}
	before, known := w.known[s.Path]
	other := known && w.name(ctx, before) != w.name(ctx, s)
	if since, left := w.since[s.Path]; left && (!known || other) {
		seq = since
	}
	delete(w.since, s.Path)
	switch {
	case other, !known && !w.listed[s.Path] && w.Whole && s.Hash != "":
		w.Later[seq] = append(w.Later[seq], s)
	case !known:
		w.Start[s.Path] = s
	case s.Mode > 0 && w.Start[s.Path] == before: // it says more
		w.Start[s.Path] = s
	}
	w.known[s.Path] = s
}

// name tells contents apart, by whatever name they were kept.
func (w *trace) name(ctx context.Context, s event.FileState) string {
	switch {
	case s.Link != "":
		return "link:" + s.Link
	case !strings.HasPrefix(s.Hash, "git:"):
		return s.Hash
	}
	key := event.FileState{Path: s.Path, Hash: s.Hash, Size: s.Size}
	if _, ok := w.names[key]; !ok {
		w.names[key] = s.Hash
		if data, err := w.kept.Content(ctx, s, maxFile); err == nil {
			w.names[key] = Sum(data)
		}
	}
	return w.names[key]
}

// reverted takes in what undoing and redoing says of the files that it found, other
// than what is on record of those that it changed: what these held is not on record, only
// that somebody had changed them.
func (w *trace) reverted(ctx context.Context, e event.ToolCallCompleted, seq uint64) {
	var r undo.Plan
	if e.Tool != "undo" && e.Tool != "redo" || json.Unmarshal(e.Output, &r) != nil {
		return
	}
	var changed []string
	for _, n := range r.Kept {
		changed = append(changed, n.Path)
	}
	for _, name := range r.NotUndone { // a command that was cut off may have made it
		if _, known := w.found[[2]string{r.Turn.ID, strings.TrimSuffix(name, "/")}]; !known {
			changed = append(changed, name)
		}
	}
	for _, name := range changed {
		if _, known := w.since[name]; !known {
			w.since[name] = seq
		}
	}
	if e.Tool == "redo" {
		return
	}
	told := slices.Concat(changed, r.NotUndone, r.Restored, r.Removed)
	for _, n := range slices.Concat(r.Lost, r.Failed) {
		told = append(told, n.Path)
	}
	for at, before := range w.found { // what is not told of is as it was before the turn
		if at[0] == r.Turn.ID && before.Hash != "dir" && !slices.Contains(told, at[1]) && w.known[at[1]].Hash != "dir" {
			w.was(ctx, before, seq)
		}
	}
}
