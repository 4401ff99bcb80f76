package app

import (
	"cmp"
	"context"
	"sync"
	"time"

	"coder/internal/agent/supervisor"
	"coder/internal/agent/verify"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/host/patch"
	"coder/internal/host/workspace"
	"coder/internal/model/meter"
	"coder/internal/slash"
	"coder/internal/tool"
)

// Turn is a turn's cost and result.
type Turn struct {
	Took           time.Duration // without waiting for the user
	Longer         bool          // the real time was longer: when a call ended is unknown
	Usage          chat.Usage
	Files          int          // changed files
	Added, Deleted int          // lines in files that can be compared
	Calls          []string     // ids of the calls that ended in it
	Check          verify.Check // the session's last check after it
}

// maxTallied limits how many files are compared to count a turn's lines.
const maxTallied = 200

// tally tracks the current turn, including one that an earlier process began.
type tally struct {
	meter   *meter.Meter
	kit     *toolkit
	compare *slash.Changes

	mu      sync.Mutex // guards the fields below
	running bool
	root    string // the task of the turn
	replied bool   // a model replied, so there is something to report
	spent   chat.Usage
	took    time.Duration
	// estimated means that the provider did not report the usage of all replies.
	estimated bool
	turn      Turn
	names     []string
	before    map[string]event.FileState // files that the turn's calls changed
}

// add adds a record. A live turn ends when end is called, an earlier process's turn when its record says so.
func (t *tally) add(r event.Record, when supervisor.When) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, ok := r.Event.(event.TaskCreated); ok && e.ParentID == "" || !t.running && r.Task != "" && when == supervisor.Live {
		t.spent, t.took = t.meter.Spent()
		t.running, t.root, t.replied, t.estimated, t.turn, t.names, t.before = true, r.Task, false, false, Turn{}, nil, make(map[string]event.FileState)
	}
	if _, used, ok := event.Used(r.Event); ok {
		t.estimated = t.estimated || used.Estimated
		t.replied = t.replied || used.In > 0 // a partial reply that was charged
	}
	switch e := r.Event.(type) {
	case event.TaskCompleted, event.TaskFailed, event.TaskCanceled:
		t.running = t.running && (when == supervisor.Live || r.Task != t.root)
	case event.MessageAdded:
		t.replied = t.replied || e.Message.Role == chat.Assistant && e.Model != ""
	case event.ToolCallCompleted:
		t.turn.Calls, t.turn.Longer = append(t.turn.Calls, e.CallID), t.turn.Longer || e.Unknown && !waits(e.Tool)
		for _, c := range filesOf(e.Changes) {
			name := cmp.Or(c.Before.Path, c.After.Path)
			if _, known := t.before[name]; !known && t.before != nil {
				t.names, t.before[name] = append(t.names, name), c.Before
			}
		}
	}
}

// waits reports whether a tool's time is the user's, and never counted.
func waits(name string) bool {
	class := tool.ClassOf(name)
	return class == tool.AsksPerson || class == tool.EndsPlan
}

// filesOf returns changes without those of folders, which come and go with their files.
func filesOf(changes []event.FileChange) (files []event.FileChange) {
	for _, c := range changes {
		if !c.Folder() {
			files = append(files, c)
		}
	}
	return files
}

// end returns the turn that has ended, if a model replied in it.
func (t *tally) end(ctx context.Context) (Turn, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	told := t.running && t.replied
	if t.running = false; !told {
		return Turn{}, false
	}
	usage, took := t.meter.Spent()
	t.turn.Took = took - t.took
	t.turn.Usage = chat.Usage{
		In: usage.In - t.spent.In, Out: usage.Out - t.spent.Out, Cached: usage.Cached - t.spent.Cached, Cost: usage.Cost - t.spent.Cost,
		Unpriced: usage.Unpriced, Estimated: t.estimated,
	}
	for i, name := range t.names {
		added, deleted, same := 0, 0, false
		if i < maxTallied {
			added, deleted, same = t.lines(ctx, name)
		}
		if !same {
			t.turn.Files++
			t.turn.Added, t.turn.Deleted = t.turn.Added+added, t.turn.Deleted+deleted
		}
	}
	return t.turn, true
}

// lines counts a file's changed lines since the turn began.
func (t *tally) lines(ctx context.Context, name string) (added, deleted int, same bool) {
	before := t.before[name]
	var old []byte
	if before.Hash != "" {
		if t.kit.files == nil {
			return 0, 0, false
		}
		var err error
		if old, err = t.kit.files.get().Content(ctx, before, slash.MaxCompared); err != nil {
			return 0, 0, false
		}
		if old == nil {
			old = []byte{}
		}
	}
	return t.compare.Lines(name, old)
}

// Turns tracks a session's turns by its records alone.
type Turns struct {
	in     *Archive
	checks verify.Checks
	root   string    // the task of the turn
	begun  time.Time // when the turn began, or zero
	asked  time.Time // since when the user is being waited for
	seen   time.Time // the previous record's time
	waited time.Duration
	told   bool // a model replied
	turn   Turn
	names  []string
	files  map[string]event.FileChange // each file's change in the turn
}

// Turns returns a new tracker for a session.
func (a *Archive) Turns() *Turns { return &Turns{in: a} }

// Add adds the next record. If the record ends a turn in which a model replied, Add returns the turn.
func (t *Turns) Add(ctx context.Context, r event.Record) (turn Turn, ended bool) {
	t.checks.Add(r)
	if r.Actor == event.ActorRecovery && t.asked.IsZero() && !t.seen.IsZero() { // the turn is resumed: nothing ran in between
		t.waited += r.Time.Sub(t.seen)
	}
	t.seen = r.Time
	_, used, _ := event.Used(r.Event)
	t.turn.Usage, t.told = t.turn.Usage.Add(used), t.told || used.In > 0
	switch e := r.Event.(type) {
	case event.TaskCreated:
		if e.ParentID == "" {
			t.root, t.begun, t.waited, t.told, t.turn, t.names, t.files = e.TaskID, r.Time, 0, false, Turn{}, nil, make(map[string]event.FileChange)
		}
	case event.InteractionRequested:
		if t.asked.IsZero() { // the next process may ask again
			t.asked = r.Time
		}
	case event.InteractionResponded:
		t.answered(r.Time)
	case event.MessageAdded:
		t.told = t.told || e.Message.Role == chat.Assistant && e.Model != ""
	case event.ToolCallCompleted:
		t.turn.Calls, t.turn.Longer = append(t.turn.Calls, e.CallID), t.turn.Longer || e.Unknown && !waits(e.Tool)
		for _, c := range filesOf(e.Changes) {
			name := cmp.Or(c.Before.Path, c.After.Path)
			if was, known := t.files[name]; known {
				c.Before = was.Before
			} else {
				t.names = append(t.names, name)
			}
			if t.files != nil {
				t.files[name] = c
			}
		}
	case event.TaskCompleted:
		return t.end(ctx, e.TaskID, r.Time)
	case event.TaskFailed:
		return t.end(ctx, e.TaskID, r.Time)
	case event.TaskCanceled:
		return t.end(ctx, e.TaskID, r.Time)
	}
	return Turn{}, false
}

// answered ends the wait for the user.
func (t *Turns) answered(at time.Time) {
	if !t.asked.IsZero() {
		t.waited += at.Sub(t.asked)
	}
	t.asked = time.Time{}
}

func (t *Turns) end(ctx context.Context, task string, at time.Time) (Turn, bool) {
	if task == t.root {
		t.answered(at) // stopping a turn may leave a question open
	}
	if task != t.root || t.begun.IsZero() || !t.told {
		return Turn{}, false
	}
	t.turn.Took, t.turn.Check = at.Sub(t.begun)-t.waited, t.checks.Last()
	t.begun = time.Time{}
	ws, err := workspace.Open(t.in.Root, t.in.Options.AddDirs...)
	if err != nil {
		t.turn.Files = len(t.names)
		return t.turn, true
	}
	defer ws.Close()
	kept := t.in.kept(ws)
	held := func(s event.FileState) ([]byte, error) {
		if s.Hash == "" && !s.Lost {
			return nil, nil
		}
		return kept.Content(ctx, s, slash.MaxCompared)
	}
	for i, name := range t.names {
		c := t.files[name]
		if c.Before.Hash == c.After.Hash {
			continue
		}
		t.turn.Files++
		old, err1 := held(c.Before)
		now, err2 := held(c.After)
		if i < maxTallied && err1 == nil && err2 == nil {
			_, added, deleted := patch.Unified(name, old, now)
			t.turn.Added, t.turn.Deleted = t.turn.Added+added, t.turn.Deleted+deleted
		}
	}
	return t.turn, true
}

// LastTurn returns the cost and result of the turn that has ended,
// once. It reports false if there was none, or no model replied in it.
func (a *Session) LastTurn(ctx context.Context) (Turn, bool) {
	turn, ok := a.turn.end(ctx)
	turn.Check = a.Checked()
	return turn, ok
}
