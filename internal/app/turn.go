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

// Turn is what a turn took and came to.
type Turn struct {
	Took           time.Duration // without waiting for people
	Longer         bool          // than that: nobody knows when a call of it ended
	Usage          chat.Usage
	Files          int          // that are not as they were
	Added, Deleted int          // lines of those that can be compared
	Calls          []string     // that ended in it, by their ids
	Check          verify.Check // how the session stands after it
}

// maxTallied is how many files are compared for the lines of a turn.
const maxTallied = 200

// tally follows the turn that runs, also one that an earlier process began.
type tally struct {
	meter   *meter.Meter
	kit     *toolkit
	compare *slash.Changes

	mu      sync.Mutex // guards the fields below
	running bool
	root    string // the task of the turn
	replied bool   // a model did, so that there is something to tell
	spent   chat.Usage
	took    time.Duration
	// estimated says that the provider did not tell what all replies of the turn used.
	estimated bool
	turn      Turn
	names     []string
	before    map[string]event.FileState // of the files that calls of the turn changed
}

// add takes in a record. A live turn is over when it is asked for, one of an earlier
// process when its record says so.
func (t *tally) add(r event.Record, when supervisor.When) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, ok := r.Event.(event.TaskCreated); ok && e.ParentID == "" || !t.running && r.Task != "" && when == supervisor.Live {
		t.spent, t.took = t.meter.Spent()
		t.running, t.root, t.replied, t.estimated, t.turn, t.names, t.before = true, r.Task, false, false, Turn{}, nil, make(map[string]event.FileState)
	}
	if _, used, ok := event.Used(r.Event); ok {
		t.estimated = t.estimated || used.Estimated
		t.replied = t.replied || used.In > 0 // a reply that broke off, and was paid for
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

// waits reports whether the time of a tool is that of people, and never counted.
func waits(name string) bool {
	class := tool.ClassOf(name)
	return class == tool.AsksPerson || class == tool.EndsPlan
}

// filesOf are the changes without those of folders, which come and go with their files.
func filesOf(changes []event.FileChange) (files []event.FileChange) {
	for _, c := range changes {
		if !c.Folder() {
			files = append(files, c)
		}
	}
	return files
}

// end is the turn that has ended, if a model took part in it.
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

// lines counts what became of a file since the turn began.
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

// Turns follows the turns of a session by its records alone.
type Turns struct {
	app    *App
	checks verify.Checks
	root   string    // the task of the turn
	begun  time.Time // it, or zero
	asked  time.Time // since when a person is waited for
	seen   time.Time // when the record before was written
	waited time.Duration
	told   bool // a model replied
	turn   Turn
	names  []string
	files  map[string]event.FileChange // what became of each in the turn
}

// Turns begins to follow a session.
func (a *App) Turns() *Turns { return &Turns{app: a} }

// Add takes the next record. If a turn ends with it in which a model took part, that
// is returned.
func (t *Turns) Add(ctx context.Context, r event.Record) (turn Turn, ended bool) {
	t.checks.Add(r)
	if r.Actor == event.ActorRecovery && t.asked.IsZero() && !t.seen.IsZero() { // the turn is taken up: nothing ran meanwhile
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
		if t.asked.IsZero() { // it may be asked again by the next process
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

// answered ends the waiting for a person.
func (t *Turns) answered(at time.Time) {
	if !t.asked.IsZero() {
		t.waited += at.Sub(t.asked)
	}
	t.asked = time.Time{}
}

func (t *Turns) end(ctx context.Context, task string, at time.Time) (Turn, bool) {
	if task == t.root {
		t.answered(at) // a question may be left open by who stops the turn
	}
	if task != t.root || t.begun.IsZero() || !t.told {
		return Turn{}, false
	}
	t.turn.Took, t.turn.Check = at.Sub(t.begun)-t.waited, t.checks.Last()
	t.begun = time.Time{}
	ws, err := workspace.Open(t.app.Root, t.app.Options.AddDirs...)
	if err != nil {
		t.turn.Files = len(t.names)
		return t.turn, true
	}
	defer ws.Close()
	kept := t.app.kept(ws)
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

// LastTurn is what the turn that has ended took and came to, once; it reports
// false if there was none, or no model took part in it.
func (a *App) LastTurn(ctx context.Context) (Turn, bool) {
	t := a.turn.Load()
	if t == nil {
		return Turn{}, false
	}
	turn, ok := t.end(ctx)
	turn.Check = a.Checked()
	return turn, ok
}
