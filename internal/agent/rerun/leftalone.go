package rerun

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"coder/internal/core/event"
	"coder/internal/record/undo"
)

// leftAlone is what is known of files by what undoing and redoing said of them: what
// they held is not on record, only that somebody had changed them.
type leftAlone struct {
	turnOf map[string]string                     // of subtasks, the turn that they belong to
	first  map[string]map[string]event.FileState // what the calls of a turn found, by path
	since  map[string]uint64                     // files that others changed, by the record after which
}

func newLeftAlone() *leftAlone {
	return &leftAlone{make(map[string]string), make(map[string]map[string]event.FileState), make(map[string]uint64)}
}

// turn takes note of which turn a subtask belongs to.
func (l *leftAlone) turn(r event.Record) {
	if e, ok := r.Event.(event.TaskCreated); ok && e.ParentID != "" {
		l.turnOf[e.TaskID] = e.ParentID
	}
}

// change takes note of what a call found where it changed something.
func (l *leftAlone) change(task string, before event.FileState) {
	if turn, ok := l.turnOf[task]; ok {
		task = turn
	}
	if l.first[task] == nil {
		l.first[task] = make(map[string]event.FileState)
	}
	if _, known := l.first[task][before.Path]; !known && task != "" {
		l.first[task][before.Path] = before
	}
}

// met takes in what undoing and redoing says of the files that it found, other
// than what is on record of those that it changed.
func (w *tracking) met(ctx context.Context, e event.ToolCallCompleted, seq uint64) {
	var r undo.Plan
	if e.Tool != "undo" && e.Tool != "redo" || json.Unmarshal(e.Output, &r) != nil {
		return
	}
	turn := w.left.first[r.Turn.ID]
	var changed []string
	for _, n := range r.Kept {
		changed = append(changed, n.Path)
	}
	for _, name := range r.NotUndone {
		if _, known := turn[strings.TrimSuffix(name, "/")]; !known { // a command that was cut off may have made it
			changed = append(changed, name)
		}
	}
	for _, name := range changed {
		if _, known := w.left.since[name]; !known {
			w.left.since[name] = seq
		}
	}
	if e.Tool == "redo" {
		return
	}
	told := slices.Concat(changed, r.NotUndone, r.Restored, r.Removed)
	for _, n := range slices.Concat(r.Lost, r.Failed) {
		told = append(told, n.Path)
	}
	for name, before := range turn { // what is not told of is as it was before the turn
		if before.Hash != "dir" && !slices.Contains(told, name) && w.known[name].Hash != "dir" {
			w.was(ctx, before, seq)
		}
	}
}

// byOthers stands for what others made of a file, where that was not kept.
const byOthers = "somebody else wrote this, and it was not kept\n"

// standIn is a file, or a folder, that others left.
func standIn(name string) event.FileState {
	if dir, ok := strings.CutSuffix(name, "/"); ok {
		return event.FileState{Path: dir, Hash: "dir"}
	}
	return event.FileState{Path: name, Hash: hash([]byte(byOthers)), Size: int64(len(byOthers))}
}
