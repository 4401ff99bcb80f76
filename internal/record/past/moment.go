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
)

// Moment is what the record of a whole session tells of the files at one of its
// records. While a call ran, files count as they were before it.
type Moment struct {
	Seq    uint64
	Files  map[string]event.FileState // by path; an empty hash says that there was none
	Whole  bool                       // these are all files that git does not ignore
	Later  []Later                    // the files that calls changed after the record, in the order of their first change
	Within string                     // the tool of a call that was under way; "" if none was
	Unsure []string                   // files of which nobody knows what a call left that was cut off before the record
}

// Later is a file that calls of the session changed after a record.
type Later struct {
	To event.FileState // what it was at the record
	// Known is what the record says the file is now. Where somebody else changed the
	// file in between, it is what the session's last call before them left: the file is
	// theirs. Of a call that nobody saw the end of it is what the call found.
	Known  event.FileState
	Others bool // somebody else changed it in between
}

// change is what one call did to one file. After is nil if nobody knows.
type change struct {
	asked, done   uint64
	before, after *event.FileState
	other         bool // another program made it while the call ran
}

// At reads from all records of a session how its files were at the one numbered
// at, which may be zero for the time before the first.
func At(ctx context.Context, records iter.Seq2[event.Record, error], at uint64, kept Kept) (Moment, error) {
	t := tracing{kept: kept, at: at, asked: make(map[string]asked)}
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
	for _, q := range t.asked { // they never came to an end
		t.cutOff(q, t.last+1)
	}
	return t.moment(ctx)
}

// RangeError reports a record that a session does not have.
type RangeError struct{ Records uint64 }

func (e *RangeError) Error() string { return fmt.Sprintf("the session has %d records", e.Records) }

// tracing takes in the records of a session.
type tracing struct {
	kept    Kept
	at      uint64
	last    uint64
	asked   map[string]asked // calls under way, by id
	order   []string         // paths, as they were first changed after the record
	changes map[string][]change
	tree    string // the state of all files that was kept last before the record, or else first after it
	treeAt  uint64
	within  string
}

// asked is a call that was requested.
type asked struct {
	seq    uint64
	tool   string
	before []event.FileState
}

func (t *tracing) add(ctx context.Context, r event.Record) error {
	t.last = max(t.last, r.Seq)
	switch e := r.Event.(type) {
	case event.ToolCallRequested:
		if e.Verdict == event.Allowed || len(e.Before) > 0 || e.Tree != "" {
			t.asked[e.CallID] = asked{r.Seq, e.Tool, e.Before}
		}
		if e.Tree != "" && (r.Seq <= t.at || t.tree == "") {
			t.tree, t.treeAt = e.Tree, r.Seq
		}
	case event.ToolCallCompleted:
		q, ok := t.asked[e.CallID]
		if delete(t.asked, e.CallID); !ok {
			return nil
		}
		if q.seq <= t.at && r.Seq > t.at {
			t.within = q.tool
		}
		if r.Actor == event.ActorRecovery {
			t.cutOff(q, r.Seq)
			return nil
		}
		all, err := Expand(ctx, t.kept, e.Changes)
		for _, c := range all {
			t.note(change{q.seq, r.Seq, &c.Before, &c.After, c.Doubt == event.DoubtOther || c.Doubt == event.DoubtBoth})
		}
		return err
	}
	return nil
}

// cutOff takes in a call that nobody saw the end of, which is on record as done.
func (t *tracing) cutOff(q asked, done uint64) {
	if q.seq <= t.at && done > t.at {
		t.within = q.tool
	}
	for _, s := range q.before {
		t.note(change{asked: q.seq, done: done, before: &s})
	}
}

func (t *tracing) note(c change) {
	name := c.before.Path
	if t.changes == nil {
		t.changes = make(map[string][]change)
	}
	known := t.changes[name]
	if c.done > t.at && (len(known) == 0 || known[len(known)-1].done <= t.at) {
		t.order = append(t.order, name)
	}
	t.changes[name] = append(known, c)
}

func (t *tracing) moment(ctx context.Context) (Moment, error) {
	w := Moment{Seq: t.at, Files: make(map[string]event.FileState), Within: t.within}
	if t.tree != "" {
		list, err := t.kept.Files(ctx, t.tree)
		if err != nil {
			return w, fmt.Errorf("the files of that time were not saved: %w", err)
		}
		w.Whole = true
		for _, s := range list {
			w.Files[s.Path] = s
		}
	}
	for name, all := range t.changes {
		for _, c := range all {
			if c.done > t.at || t.tree != "" && c.done < t.treeAt {
				continue
			}
			if c.after == nil {
				w.Unsure = append(w.Unsure, name)
				continue
			}
			w.Files[name] = *c.after
			w.Unsure = slices.DeleteFunc(w.Unsure, func(other string) bool { return other == name })
		}
	}
	for _, name := range t.order {
		l := t.later(ctx, t.changes[name])
		w.Files[name] = l.To
		w.Later = append(w.Later, l)
		w.Unsure = slices.DeleteFunc(w.Unsure, func(other string) bool { return other == name })
	}
	return w, ctx.Err()
}

// later is what became of a file after the record.
func (t *tracing) later(ctx context.Context, all []change) Later {
	i := 0
	for all[i].done <= t.at {
		i++
	}
	all = all[i:]
	last := all[len(all)-1]
	l := Later{To: *all[0].before, Known: *cmp.Or(last.after, last.before)}
	for i, c := range all {
		if c.other {
			l.Known, l.Others = *c.before, true
			break
		}
		if i == 0 {
			continue
		}
		last := all[i-1]
		if last.after != nil && last.done < c.asked && !t.alike(ctx, *last.after, *c.before) {
			l.Known, l.Others = *last.after, true
			break
		}
	}
	return l
}

// alike reports whether two states of a file are the same, whatever the store calls
// their contents.
func (t *tracing) alike(ctx context.Context, a, b event.FileState) bool {
	if a.Hash == b.Hash || a.Lost || b.Lost {
		return a.Link == b.Link
	}
	if strings.HasPrefix(a.Hash, "git:") == strings.HasPrefix(b.Hash, "git:") || a.Size != b.Size {
		return false
	}
	x, err := t.kept.Content(ctx, a, maxFile)
	if err != nil {
		return false
	}
	y, err := t.kept.Content(ctx, b, maxFile)
	return err == nil && string(x) == string(y)
}

// Outside are the files of a moment that lie outside of the workspace.
func (m Moment) Outside() (names []string) {
	for name, s := range m.Files {
		if path.IsAbs(name) && s.Hash != "" {
			names = append(names, name)
		}
	}
	return names
}
