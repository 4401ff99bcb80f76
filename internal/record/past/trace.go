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

// historyTracer reads from records what was where.
type historyTracer struct {
	*FileHistory
	source        TreeSource
	states        map[string]event.FileState
	listed        map[string]bool               // paths that stood in a tree
	names         map[event.FileState]string    // of contents that git names
	requestSeqs   map[string]uint64             // the record before the request of a call
	subtaskTurns  map[string]string             // of subtasks, the turn that they belong to
	firstFound    map[[2]string]event.FileState // first state that a call of a turn found, by turn and path
	revertedAfter map[string]uint64             // files that undoing met changed by others, by the record after which
	seq           uint64                        // of the last record that is compared
	tree          string                        // the last
}

// TraceHistory finds out from all records of a session how its files were at the beginning, and what
// others did to them before the record numbered end. Records that are skipped have no place.
func TraceHistory(ctx context.Context, records []event.Record, end uint64, kept TreeSource,
	skipped func(event.Event) bool) (*FileHistory, error) {
	w := historyTracer{
		FileHistory: NewFileHistory(nil, make(map[uint64][]event.FileState)), source: kept,
		states: make(map[string]event.FileState), listed: make(map[string]bool), names: make(map[event.FileState]string),
		requestSeqs: make(map[string]uint64), subtaskTurns: make(map[string]string),
		firstFound: make(map[[2]string]event.FileState), revertedAfter: make(map[string]uint64),
	}
	w.IsComplete = false
	for _, r := range records {
		switch e := r.Event.(type) {
		case event.TaskCreated:
			w.subtaskTurns[e.TaskID] = e.ParentID
		case event.ToolCallRequested:
			w.addRequest(ctx, e)
		case event.ToolCallCompleted:
			if err := w.addCompletion(ctx, e, cmp.Or(w.subtaskTurns[r.Task], r.Task)); err != nil {
				return nil, err
			}
		}
		if !skipped(r.Event) {
			w.seq = r.Seq
		}
	}
	for name, seq := range w.revertedAfter { // nothing met it again, so what it held does not matter
		w.LaterChanges[seq] = append(w.LaterChanges[seq], placeholder(name))
	}
	maps.DeleteFunc(w.LaterChanges, func(seq uint64, _ []event.FileState) bool { return seq >= end })
	return w.FileHistory, ctx.Err()
}

// addRequest takes in what a call was about to overwrite, and all files if their state was kept.
func (w *historyTracer) addRequest(ctx context.Context, e event.ToolCallRequested) {
	w.requestSeqs[e.CallID] = w.seq
	for _, s := range e.Before {
		w.recordState(ctx, s, w.seq)
	}
	for _, s := range e.Before { // the folder of a file to be made was there, unless it is to be made, too
		dir := path.Dir(s.Path)
		made := func(s event.FileState) bool {
			return s.Hash == "" && !s.ContentLost && strings.HasPrefix(dir+"/", s.Path+"/")
		}
		_, known := w.states[dir]
		if !known && dir != "." && s.Hash == "" && fs.ValidPath(dir) && !slices.ContainsFunc(e.Before, made) {
			w.recordState(ctx, event.FileState{Path: dir, Hash: "dir"}, w.seq)
		}
	}
	if w.FirstTree = cmp.Or(w.FirstTree, e.Tree); e.Tree == "" || e.Tree == w.tree {
		return
	}
	list, err := w.source.Files(ctx, e.Tree)
	if err != nil {
		return // what was not kept is found out when it is missed
	}
	there := make(map[string]bool, len(list))
	for _, s := range list {
		there[s.Path] = true
		w.recordState(ctx, s, w.seq)
		w.listed[s.Path] = true
	}
	for name := range w.listed {
		if !there[name] && w.states[name].Hash != "" {
			w.recordState(ctx, event.FileState{Path: name}, w.seq)
		}
	}
	w.tree, w.IsComplete = e.Tree, true
}

// addCompletion takes in what a call found and left.
func (w *historyTracer) addCompletion(ctx context.Context, e event.ToolCallCompleted, turn string) error {
	changes, err := ExpandChanges(ctx, w.source, e.Changes)
	if err != nil {
		return err
	}
	seq := w.requestSeqs[e.CallID]
	for _, c := range changes {
		w.recordState(ctx, c.Before, seq)
		w.states[c.After.Path] = c.After
		at := [2]string{turn, c.Before.Path}
		if _, known := w.firstFound[at]; !known && turn != "" {
			w.firstFound[at] = c.Before
		}
	}
	w.addRevert(ctx, e, seq)
	for _, s := range e.SeenFiles {
		w.recordState(ctx, s, seq)
	}
	return nil
}

// recordState takes in what a file was when the record after seq was made.
func (w *historyTracer) recordState(ctx context.Context, s event.FileState, seq uint64) {
	if s.Path == "" {
		return
	}
	before, known := w.states[s.Path]
	other := known && w.contentName(ctx, before) != w.contentName(ctx, s)
	if since, left := w.revertedAfter[s.Path]; left && (!known || other) {
		seq = since
	}
	delete(w.revertedAfter, s.Path)
	switch {
	case other, !known && !w.listed[s.Path] && w.IsComplete && s.Hash != "":
		w.LaterChanges[seq] = append(w.LaterChanges[seq], s)
	case !known:
		w.Start[s.Path] = s
	case s.Mode > 0 && w.Start[s.Path] == before: // it says more
		w.Start[s.Path] = s
	}
	w.states[s.Path] = s
}

// contentName tells contents apart, by whatever name they were kept.
func (w *historyTracer) contentName(ctx context.Context, s event.FileState) string {
	switch {
	case s.Link != "":
		return "link:" + s.Link
	case !strings.HasPrefix(s.Hash, "git:"):
		return s.Hash
	}
	key := event.FileState{Path: s.Path, Hash: s.Hash, Size: s.Size}
	if _, ok := w.names[key]; !ok {
		w.names[key] = s.Hash
		if data, err := w.source.Content(ctx, s, maxFile); err == nil {
			w.names[key] = ContentHash(data)
		}
	}
	return w.names[key]
}

// addRevert takes in what undoing and redoing says of the files that it found, other
// than what is on record of those that it changed: what these held is not on record, only
// that somebody had changed them.
func (w *historyTracer) addRevert(ctx context.Context, e event.ToolCallCompleted, seq uint64) {
	var r undo.Plan
	if e.Tool != "undo" && e.Tool != "redo" || json.Unmarshal(e.Output, &r) != nil {
		return
	}
	var changed []string
	for _, n := range r.Unchanged {
		changed = append(changed, n.Path)
	}
	for _, name := range r.NotUndone { // a command that was cut off may have made it
		if _, known := w.firstFound[[2]string{r.Turn.ID, strings.TrimSuffix(name, "/")}]; !known {
			changed = append(changed, name)
		}
	}
	for _, name := range changed {
		if _, known := w.revertedAfter[name]; !known {
			w.revertedAfter[name] = seq
		}
	}
	if e.Tool == "redo" {
		return
	}
	told := slices.Concat(changed, r.NotUndone, r.Restored, r.Removed)
	for _, n := range slices.Concat(r.Lost, r.Failed) {
		told = append(told, n.Path)
	}
	for at, before := range w.firstFound { // other files are as before the turn
		if at[0] == r.Turn.ID && before.Hash != "dir" && !slices.Contains(told, at[1]) && w.states[at[1]].Hash != "dir" {
			w.recordState(ctx, before, seq)
		}
	}
}
