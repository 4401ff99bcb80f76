package past

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"coder/internal/core/event"
	"coder/internal/core/message"
)

// Moment is what the record of a whole session tells of the files at one of its
// records. While a call ran, files count as they were before it.
type Moment struct {
	Seq        uint64
	Files      map[string]event.FileState // by path; an empty hash says that there was none
	IsComplete bool                       // these are all files that git does not ignore
	// the files that calls changed after the record, in the order of their first change
	Later      []LaterFile
	ActiveTool string // the tool of a call that was under way; "" if none was
	// files of which nobody knows what a call left that was cut off before the record
	Uncertain []string
}

// LaterFile is a file that calls of the session changed after a record.
type LaterFile struct {
	Recorded event.FileState // what it was at the record
	// Current is what the record says the file is now. Where somebody else changed the
	// file in between, it is what the session's last call before them left: the file is
	// theirs. Of a call that nobody saw the end of it is what the call found.
	Current         event.FileState
	ChangedByOthers bool // somebody else changed it in between
}

// change is what one call did to one file. After is nil if nobody knows.
type change struct {
	requestSeq, completedSeq uint64
	before, after            *event.FileState
	byOther                  bool // another program made it while the call ran
}

// ReadMoment reads from all records of a session how its files were at the one numbered
// at, which may be zero for the time before the first.
func ReadMoment(ctx context.Context, records iter.Seq2[event.Record, error], at uint64, kept TreeSource) (Moment,
	error) {
	t := momentTracer{source: kept, targetSeq: at, pending: make(map[string]pendingCall)}
	for r, err := range records {
		if err == nil {
			err = t.add(ctx, r)
		}
		if err != nil {
			return Moment{}, err
		}
	}
	if t.last < at {
		return Moment{}, &RangeError{Records: t.last}
	}
	for _, q := range t.pending { // they never came to an end
		t.addInterrupted(q, t.last+1)
	}
	return t.moment(ctx)
}

// RangeError reports a record that a session does not have.
type RangeError struct{ Records uint64 }

func (e *RangeError) Error() string { return fmt.Sprintf("the session has %d records", e.Records) }

// momentTracer takes in the records of a session.
type momentTracer struct {
	source       TreeSource
	targetSeq    uint64
	last         uint64
	pending      map[string]pendingCall // calls under way, by id
	changedPaths []string               // paths, as they were first changed after the record
	changes      map[string][]change
	tree         string // the state of all files that was kept last before the record, or else first after it
	treeAt       uint64
	activeTool   string
}

// pendingCall is a call that was requested.
type pendingCall struct {
	seq    uint64
	tool   string
	before []event.FileState
}

func (t *momentTracer) add(ctx context.Context, r event.Record) error {
	t.last = max(t.last, r.Seq)
	switch e := r.Event.(type) {
	case event.ToolCallRequested:
		if e.Verdict == event.VerdictAllowed || len(e.Before) > 0 || e.Tree != "" {
			t.pending[e.CallID] = pendingCall{r.Seq, e.Tool, e.Before}
		}
		if e.Tree != "" && (r.Seq <= t.targetSeq || t.tree == "") {
			t.tree, t.treeAt = e.Tree, r.Seq
		}
	case event.ToolCallCompleted:
		q, ok := t.pending[e.CallID]
		if delete(t.pending, e.CallID); !ok {
			return nil
		}
		if q.seq <= t.targetSeq && r.Seq > t.targetSeq {
			t.activeTool = q.tool
		}
		if r.Actor == event.ActorRecovery {
			t.addInterrupted(q, r.Seq)
			return nil
		}
		all, err := ExpandChanges(ctx, t.source, e.Changes)
		for _, c := range all {
			t.addChange(change{q.seq, r.Seq, &c.Before, &c.After, c.Doubt == event.DoubtOther || c.Doubt == event.DoubtBoth})
		}
		return err
	}
	return nil
}

// addInterrupted takes in a call that nobody saw the end of, which is on record as done.
func (t *momentTracer) addInterrupted(q pendingCall, done uint64) {
	if q.seq <= t.targetSeq && done > t.targetSeq {
		t.activeTool = q.tool
	}
	for _, s := range q.before {
		t.addChange(change{requestSeq: q.seq, completedSeq: done, before: &s})
	}
}

func (t *momentTracer) addChange(c change) {
	name := c.before.Path
	if t.changes == nil {
		t.changes = make(map[string][]change)
	}
	known := t.changes[name]
	if c.completedSeq > t.targetSeq && (len(known) == 0 || known[len(known)-1].completedSeq <= t.targetSeq) {
		t.changedPaths = append(t.changedPaths, name)
	}
	t.changes[name] = append(known, c)
}

func (t *momentTracer) moment(ctx context.Context) (Moment, error) {
	w := Moment{Seq: t.targetSeq, Files: make(map[string]event.FileState), ActiveTool: t.activeTool}
	if t.tree != "" {
		list, err := t.source.Files(ctx, t.tree)
		if err != nil {
			return w, message.Errorf("the files of that time were not saved: %w", err)
		}
		w.IsComplete = true
		for _, s := range list {
			w.Files[s.Path] = s
		}
	}
	for name, all := range t.changes {
		for _, c := range all {
			if c.completedSeq > t.targetSeq || t.tree != "" && c.completedSeq < t.treeAt {
				continue
			}
			if c.after == nil {
				w.Uncertain = append(w.Uncertain, name)
				continue
			}
			w.Files[name] = *c.after
			w.Uncertain = slices.DeleteFunc(w.Uncertain, func(other string) bool { return other == name })
		}
	}
	for _, name := range t.changedPaths {
		l := t.laterFile(ctx, t.changes[name])
		w.Files[name] = l.Recorded
		w.Later = append(w.Later, l)
		w.Uncertain = slices.DeleteFunc(w.Uncertain, func(other string) bool { return other == name })
	}
	return w, ctx.Err()
}

// laterFile is what became of a file after the record.
func (t *momentTracer) laterFile(ctx context.Context, all []change) LaterFile {
	i := 0
	for all[i].completedSeq <= t.targetSeq {
		i++
	}
	all = all[i:]
	last := all[len(all)-1]
	l := LaterFile{Recorded: *all[0].before, Current: *cmp.Or(last.after, last.before)}
	for i, c := range all {
		if c.byOther {
			l.Current, l.ChangedByOthers = *c.before, true
			break
		}
		if i == 0 {
			continue
		}
		last := all[i-1]
		if last.after != nil && last.completedSeq < c.requestSeq && !t.isSameContent(ctx, *last.after, *c.before) {
			l.Current, l.ChangedByOthers = *last.after, true
			break
		}
	}
	return l
}

// isSameContent reports whether two states of a file are the same, whatever the store calls
// their contents.
func (t *momentTracer) isSameContent(ctx context.Context, a, b event.FileState) bool {
	if a.Hash == b.Hash || a.ContentLost || b.ContentLost {
		return a.Link == b.Link
	}
	if strings.HasPrefix(a.Hash, "git:") == strings.HasPrefix(b.Hash, "git:") || a.Size != b.Size {
		return false
	}
	x, err := t.source.Content(ctx, a, maxFile)
	if err != nil {
		return false
	}
	y, err := t.source.Content(ctx, b, maxFile)
	return err == nil && string(x) == string(y)
}

// OutsideFiles are the files of a moment that lie outside of the workspace.
func (m Moment) OutsideFiles() (names []string) {
	for name, s := range m.Files {
		if path.IsAbs(name) && s.Hash != "" {
			names = append(names, name)
		}
	}
	return names
}
