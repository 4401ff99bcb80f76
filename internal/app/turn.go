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

// TurnResult is a turn's cost and result.
type TurnResult struct {
	Duration                 time.Duration // without waiting for the user
	DurationIncomplete       bool          // the real time was longer: when a call ended is unknown
	Usage                    chat.Usage
	ChangedFiles             int              // changed files
	AddedLines, DeletedLines int              // lines in files that can be compared
	CallIDs                  []string         // ids of the calls that ended in it
	LastCheck                verify.LastCheck // the session's last check after it
}

// maxComparedFiles limits how many files are compared to count a turn's lines.
const maxComparedFiles = 200

// turnTally tracks the current turn, including one that an earlier process began.
type turnTally struct {
	meter   *meter.Meter
	kit     *toolkit
	changes *slash.Changes

	mu      sync.Mutex // guards the fields below
	running bool
	taskID  string // the task of the turn
	replied bool   // a model replied, so there is something to report
	usage   chat.Usage
	elapsed time.Duration
	// estimated means that the provider did not report the usage of all replies.
	estimated bool
	turn      TurnResult
	names     []string
	originals map[string]event.FileState // files that the turn's calls changed
}

// add adds a record. A live turn ends when end is called, an earlier process's turn when its record says so.
func (t *turnTally) add(r event.Record, when supervisor.RecordOrigin) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, ok := r.Event.(event.TaskCreated); ok && e.ParentID == "" || !t.running && r.Task != "" &&
		when == supervisor.Live {
		t.usage, t.elapsed = t.meter.Spent()
		t.running, t.taskID, t.replied, t.estimated, t.turn, t.names, t.originals = true, r.Task, false, false, TurnResult{},
			nil, make(map[string]event.FileState)
	}
	if _, used, ok := event.UsageOf(r.Event); ok {
		t.estimated = t.estimated || used.Estimated
		t.replied = t.replied || used.In > 0 // a partial reply that was charged
	}
	switch e := r.Event.(type) {
	case event.TaskCompleted, event.TaskFailed, event.TaskCanceled:
		t.running = t.running && (when == supervisor.Live || r.Task != t.taskID)
	case event.MessageAdded:
		t.replied = t.replied || e.Message.Role == chat.Assistant && e.Model != ""
	case event.ToolCallCompleted:
		t.turn.CallIDs, t.turn.DurationIncomplete = append(t.turn.CallIDs, e.CallID),
			t.turn.DurationIncomplete || e.OutcomeUnknown && !isUserTime(e.Tool)
		for _, c := range withoutFolders(e.Changes) {
			name := cmp.Or(c.Before.Path, c.After.Path)
			if _, known := t.originals[name]; !known && t.originals != nil {
				t.names, t.originals[name] = append(t.names, name), c.Before
			}
		}
	}
}

// isUserTime reports whether a tool's time is the user's, and never counted.
func isUserTime(name string) bool {
	class := tool.ClassOf(name)
	return class == tool.ClassAskUser || class == tool.ClassEndPlan
}

// withoutFolders returns changes without those of folders, which come and go with their files.
func withoutFolders(changes []event.FileChange) (files []event.FileChange) {
	for _, c := range changes {
		if !c.IsFolder() {
			files = append(files, c)
		}
	}
	return files
}

// finish returns the turn that has ended, if a model replied in it.
func (t *turnTally) finish(ctx context.Context) (TurnResult, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	told := t.running && t.replied
	if t.running = false; !told {
		return TurnResult{}, false
	}
	usage, took := t.meter.Spent()
	t.turn.Duration = took - t.elapsed
	t.turn.Usage = chat.Usage{
		In: usage.In - t.usage.In, Out: usage.Out - t.usage.Out, Cached: usage.Cached - t.usage.Cached,
		Cost:     usage.Cost - t.usage.Cost,
		Unpriced: usage.Unpriced, Estimated: t.estimated,
	}
	for i, name := range t.names {
		added, deleted, same := 0, 0, false
		if i < maxComparedFiles {
			added, deleted, same = t.countLines(ctx, name)
		}
		if !same {
			t.turn.ChangedFiles++
			t.turn.AddedLines, t.turn.DeletedLines = t.turn.AddedLines+added, t.turn.DeletedLines+deleted
		}
	}
	return t.turn, true
}

// countLines counts a file's changed lines since the turn began.
func (t *turnTally) countLines(ctx context.Context, name string) (added, deleted int, same bool) {
	before := t.originals[name]
	var old []byte
	if before.Hash != "" {
		if t.kit.fileKeeper == nil {
			return 0, 0, false
		}
		var err error
		if old, err = t.kit.fileKeeper.get().Content(ctx, before, slash.MaxCompareSize); err != nil {
			return 0, 0, false
		}
		if old == nil {
			old = []byte{}
		}
	}
	return t.changes.CountLines(name, old)
}

// TurnTracker tracks a session's turns by its records alone.
type TurnTracker struct {
	in           *Archive
	checks       verify.CheckTracker
	taskID       string    // the task of the turn
	startedAt    time.Time // when the turn began, or zero
	askedAt      time.Time // since when the user is being waited for
	lastRecordAt time.Time // the previous record's time
	waited       time.Duration
	replied      bool // a model replied
	turn         TurnResult
	names        []string
	files        map[string]event.FileChange // each file's change in the turn
}

// NewTurnTracker returns a new tracker for a session.
func (a *Archive) NewTurnTracker() *TurnTracker { return &TurnTracker{in: a} }

// Add adds the next record. If the record ends a turn in which a model replied, Add returns the turn.
func (t *TurnTracker) Add(ctx context.Context, r event.Record) (turn TurnResult, ended bool) {
	t.checks.Add(r)
	// the turn is resumed: nothing ran in between
	if r.Actor == event.ActorRecovery && t.askedAt.IsZero() && !t.lastRecordAt.IsZero() {
		t.waited += r.Time.Sub(t.lastRecordAt)
	}
	t.lastRecordAt = r.Time
	_, used, _ := event.UsageOf(r.Event)
	t.turn.Usage, t.replied = t.turn.Usage.Add(used), t.replied || used.In > 0
	switch e := r.Event.(type) {
	case event.TaskCreated:
		if e.ParentID == "" {
			t.taskID, t.startedAt, t.waited, t.replied, t.turn, t.names, t.files = e.TaskID, r.Time, 0, false, TurnResult{}, nil,
				make(map[string]event.FileChange)
		}
	case event.InteractionRequested:
		if t.askedAt.IsZero() { // the next process may ask again
			t.askedAt = r.Time
		}
	case event.InteractionResponded:
		t.endWait(r.Time)
	case event.MessageAdded:
		t.replied = t.replied || e.Message.Role == chat.Assistant && e.Model != ""
	case event.ToolCallCompleted:
		t.turn.CallIDs, t.turn.DurationIncomplete = append(t.turn.CallIDs, e.CallID),
			t.turn.DurationIncomplete || e.OutcomeUnknown && !isUserTime(e.Tool)
		for _, c := range withoutFolders(e.Changes) {
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
		return t.finish(ctx, e.TaskID, r.Time)
	case event.TaskFailed:
		return t.finish(ctx, e.TaskID, r.Time)
	case event.TaskCanceled:
		return t.finish(ctx, e.TaskID, r.Time)
	}
	return TurnResult{}, false
}

// endWait ends the wait for the user.
func (t *TurnTracker) endWait(at time.Time) {
	if !t.askedAt.IsZero() {
		t.waited += at.Sub(t.askedAt)
	}
	t.askedAt = time.Time{}
}

func (t *TurnTracker) finish(ctx context.Context, task string, at time.Time) (TurnResult, bool) {
	if task == t.taskID {
		t.endWait(at) // stopping a turn may leave a question open
	}
	if task != t.taskID || t.startedAt.IsZero() || !t.replied {
		return TurnResult{}, false
	}
	t.turn.Duration, t.turn.LastCheck = at.Sub(t.startedAt)-t.waited, t.checks.Last()
	t.startedAt = time.Time{}
	ws, err := workspace.Open(t.in.Root, t.in.Options.AddDirs...)
	if err != nil {
		t.turn.ChangedFiles = len(t.names)
		return t.turn, true
	}
	defer ws.Close()
	kept := t.in.kept(ws)
	held := func(s event.FileState) ([]byte, error) {
		if s.Hash == "" && !s.ContentLost {
			return nil, nil
		}
		return kept.Content(ctx, s, slash.MaxCompareSize)
	}
	for i, name := range t.names {
		c := t.files[name]
		if c.Before.Hash == c.After.Hash {
			continue
		}
		t.turn.ChangedFiles++
		old, err1 := held(c.Before)
		now, err2 := held(c.After)
		if i < maxComparedFiles && err1 == nil && err2 == nil {
			_, added, deleted := patch.Unified(name, old, now)
			t.turn.AddedLines, t.turn.DeletedLines = t.turn.AddedLines+added, t.turn.DeletedLines+deleted
		}
	}
	return t.turn, true
}

// TakeLastTurn returns the cost and result of the turn that has ended,
// once. It reports false if there was none, or no model replied in it.
func (a *Session) TakeLastTurn(ctx context.Context) (TurnResult, bool) {
	turn, ok := a.turn.finish(ctx)
	turn.LastCheck = a.LastCheck()
	return turn, ok
}
