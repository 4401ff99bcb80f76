// Package asof computes the state of a session at one of its records:
// its mode, its open questions, and the files that its calls changed.
package asof

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/report/provenance"
)

// State is a session's state as of a record.
type State struct {
	Seq          uint64 // of the record
	Time         time.Time
	Mode, Preset string
	Open         []uip.Request // questions without an answer
	Files        []File        // changed by calls so far, sorted
}

// File is a file that a session changed.
type File struct {
	Path string
	// Before is its state before the session's first change, and After its state after the last call.
	Before, After event.FileState
	LastChange    *provenance.Change // the last call
	change        event.FileChange
}

// Content returns the file's content after the last call, or nil if the file did not exist.
func (f File) Content(ctx context.Context, kept provenance.ContentReader) ([]byte, error) {
	if f.LastChange == nil {
		s := f.After
		if s.Hash == "" && !s.ContentLost {
			return nil, nil
		}
		return kept.Content(ctx, s, provenance.MaxFileSize)
	}
	return f.LastChange.ContentAfter(ctx, f.change, kept)
}

// Until yields the records up to number at, or all if at is zero.
func Until(records iter.Seq2[event.Record, error], at uint64) iter.Seq2[event.Record, error] {
	return func(yield func(event.Record, error) bool) {
		for r, err := range records {
			if at > 0 && r.Seq > at || !yield(r, err) {
				return
			}
		}
	}
}

// Fold returns the state after these records.
func Fold(ctx context.Context, records iter.Seq2[event.Record, error], kept provenance.ContentReader) (State, error) {
	var s State
	changes, err := provenance.CollectChanges(func(yield func(event.Record, error) bool) {
		for r, err := range records {
			if err == nil {
				s.add(r)
			}
			if !yield(r, err) {
				return
			}
		}
	})
	if err != nil {
		return s, err
	}
	s.Files = combineChanges(ctx, changes, kept)
	return s, ctx.Err()
}

func (s *State) add(r event.Record) {
	s.Seq, s.Time = r.Seq, r.Time
	switch e := r.Event.(type) {
	case event.ModeChanged:
		s.Mode, s.Preset = e.Mode, e.Preset
	case event.InteractionRequested:
		s.Open = append(s.Open, e.Request)
	case event.InteractionResponded:
		s.closeQuestions(func(q uip.Request) bool { return q.ID == e.ID })
	case event.TaskCompleted:
		s.closeQuestions(func(q uip.Request) bool { return q.TaskID == e.TaskID })
	case event.TaskFailed:
		s.closeQuestions(func(q uip.Request) bool { return q.TaskID == e.TaskID })
	case event.TaskCanceled:
		s.closeQuestions(func(q uip.Request) bool { return q.TaskID == e.TaskID })
	}
}

func (s *State) closeQuestions(answered func(uip.Request) bool) {
	s.Open = slices.DeleteFunc(s.Open, answered)
}

// combineChanges returns the combined changes, by file.
func combineChanges(ctx context.Context, changes []*provenance.Change, kept provenance.ContentReader) []File {
	all := make(map[string]File)
	for _, c := range changes {
		c.Expand(ctx, kept)
		for _, f := range c.Files {
			name := f.After.Path
			if f.Before.Hash == "dir" || f.After.Hash == "dir" || strings.HasPrefix(f.After.Hash, "tree:") {
				continue
			}
			file, ok := all[name]
			if !ok {
				file = File{Path: name, Before: f.Before}
			}
			file.After, file.LastChange, file.change = f.After, c, f
			all[name] = file
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b File) int { return strings.Compare(a.Path, b.Path) })
}

// Difference is a file in two states of a session.
type Difference struct {
	Path     string
	Old, New []byte // nil if the file did not exist
	Err      error  // why the content is unknown
}

// Compare returns the differences of a session's files between one state and a later one.
func Compare(ctx context.Context, a, b State, kept provenance.ContentReader) (list []Difference) {
	for _, f := range b.Files {
		i := slices.IndexFunc(a.Files, func(g File) bool { return g.Path == f.Path })
		from := File{Path: f.Path, After: f.Before}
		if i >= 0 {
			from = a.Files[i]
		}
		if from.After == f.After {
			continue
		}
		d := Difference{Path: f.Path}
		var err error
		if d.Old, err = from.Content(ctx, kept); err == nil {
			d.New, err = f.Content(ctx, kept)
		}
		d.Err = err
		list = append(list, d)
	}
	return list
}
