// Package supervisor opens sessions, restores them after a crash, and runs their inputs one at a time.
//
// Unfinished work from an earlier process is settled from the record, never by guessing:
// a completed call keeps its result, a running call gets an unknown outcome, a call that
// had not begun may still run, and an open question is asked again under the same id.
package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"coder/internal/agent/broker"
	"coder/internal/agent/conversation"
	"coder/internal/agent/orchestrator"
	"coder/internal/agent/toolrun"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/core/task"
	"coder/internal/core/uip"
	"coder/internal/host/authkey"
	"coder/internal/policy/mode"
	"coder/internal/record/seal"
	"coder/internal/record/session"
	"coder/internal/record/timeline"
	"coder/internal/record/undo"
	"coder/internal/tool"
)

// ErrFinished reports that no turn is unfinished.
var ErrFinished = errors.New("nothing is unfinished")

// Config has the parts of a Supervisor. Every field is required unless it says otherwise.
type Config struct {
	Store    event.Store
	Sessions session.Store
	User     uip.Interactor
	// Engine builds what one session needs to run. spawn delegates to subagents, once the session is open.
	Engine func(sessionID string, spawn SpawnFunc) (Engine, error)
	Dir    string
	NewID  func(prefix string) string
	Now    func() time.Time
	// IsDamaged, which may be nil, reports whether a session whose newest record is last had more records.
	// Then its snapshot may have more than its logs, and calls without a recorded beginning may have begun.
	IsDamaged func(sessionID string, last uint64) bool
	// Key, which may be nil, returns the key that seals records.
	// Without a key, records from an earlier process allow nothing.
	Key func() *authkey.Key
	// DoubtReason, which may be nil, returns why coder must ignore a session's logs, even sealed ones, or "".
	// The supervisor calls DoubtReason after it claims the session.
	DoubtReason func(sessionID string) string
	// IsCopied, which may be nil, reports whether a session's first records were copied from another session.
	IsCopied func(sessionID string) bool
}

// Engine is what one session needs to run, with callbacks.
type Engine struct {
	orchestrator.Engine
	// ModeChosen means that the user chose the mode for this run: a resumed session does not restore its own.
	ModeChosen bool
	// OnInput, if set, gets each input with its origin.
	OnInput func(words chat.UserText)
	// Observe, if set, gets every stored record, in order, and whether
	// this process or an earlier one made it. It must not emit.
	Observe func(event.Record, RecordOrigin)
	// Undo and Redo, if set, undo and redo turns' changes to files.
	Undo, Redo func(context.Context, undo.Request) (undo.Plan, error)
	// Restore, if set, sets files to their state at some time.
	Restore func(context.Context, undo.Request, []undo.Goal) (undo.Plan, error)
	// InterruptedUndos, if set, lists the missing ends of an earlier process's undo calls.
	InterruptedUndos func() []event.ToolCallCompleted
	// ChangesSince, if set, returns the changes to files since a call began.
	ChangesSince func(context.Context, event.ToolCallRequested) FileChanges
	// Close, if set, stops everything that the engine started.
	Close func() error
}

// RecordOrigin says whether a record is new or replayed. Times cannot tell: the clock may have been changed.
type RecordOrigin bool

// A record is from an earlier process, or from this one.
const (
	Replayed RecordOrigin = false
	Live     RecordOrigin = true
)

// Supervisor opens sessions.
type Supervisor struct{ Config }

// New returns a Supervisor.
func New(c Config) *Supervisor { return &Supervisor{c} }

// Session is one open session. Its methods may be called from several goroutines; inputs wait for each other.
type Session struct {
	ID string

	supervisor   *Supervisor
	engine       Engine
	timeline     *timeline.Timeline
	orch         *orchestrator.Orchestrator
	broker       *broker.Broker
	conversation conversation.Conversation
	projection   projection
	past         history
	subtasks     subtaskPool
	questions    openQuestions
	requests     openRequests
	mode         string // as the record has it; "" is the usual one

	notary          *seal.Sealer
	doubtReason     func() string // why nothing on record counts; "" if it may
	modeRecords     []modeRecord  // recorded mode changes
	lastModeYolo    bool          // the last of them was to yolo, which is not restored
	unvouched       unvouchedParts
	hasSignedRecord bool // a stored record has this user's signature

	steering atomic.Pointer[func() []chat.UserText]
	changes  settingChanges

	turnMu sync.Mutex // locked while an input runs
}

// StartSession opens a new session under id.
func (s *Supervisor) StartSession(ctx context.Context, id string, out event.Sink) (*Session, error) {
	return s.openSession(ctx, id, out, timeline.Options{Now: s.Now, New: true})
}

// ResumeSession opens the session id from its logs, or from its snapshot if there
// are none. If there is neither, the error is [session.ErrNotFound].
func (s *Supervisor) ResumeSession(ctx context.Context, id string, out event.Sink) (*Session, error) {
	if known, err := s.Exists(ctx, id); err != nil {
		return nil, err
	} else if !known {
		return nil, message.Errorf("session %s: %w", id, session.ErrNotFound)
	}
	return s.openSession(ctx, id, out, timeline.Options{Now: s.Now})
}

// Exists reports whether a session id has any records.
func (s *Supervisor) Exists(ctx context.Context, id string) (bool, error) {
	for _, err := range s.Store.Read(ctx, id, 0) {
		return err == nil, err
	}
	_, err := s.Sessions.Load(ctx, id)
	if errors.Is(err, session.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

func (s *Supervisor) openSession(ctx context.Context, id string, out event.Sink, o timeline.Options) (*Session, error) {
	ss := &Session{ID: id, supervisor: s, broker: broker.New(s.User)}
	ss.notary = s.newNotary(id)
	ss.doubtReason = sync.OnceValue(func() string {
		if s.DoubtReason == nil || o.New {
			return ""
		}
		return s.DoubtReason(id)
	})
	o.Fold, o.Seal = ss.applyPast, ss.notary.Seal
	var err error
	if ss.engine, err = s.Engine(id, ss.Spawn); err != nil {
		return nil, err
	}
	if ss.engine.Concealer != nil {
		o.Mask = ss.engine.Concealer
	}
	if ss.timeline, err = timeline.Open(ctx, s.Store, id, o); err != nil {
		return nil, errors.Join(err, ss.engine.close())
	}
	ss.orch = orchestrator.New(orchestrator.Config{
		Engine: ss.engine.Engine, Conversation: &ss.conversation,
		RecordingSink: ss.recordingSink, NewInteractor: ss.broker.WithSink, Save: ss.saveSnapshot,
		TakeSteering: ss.takeSteering, TakeModeChange: ss.changes.takeChanges, NewID: s.NewID, Now: s.Now,
	})
	if err := ss.announce(ctx, out, !o.New); err != nil {
		return nil, errors.Join(err, ss.timeline.Close(), ss.engine.close())
	}
	return ss, nil
}

func (e Engine) close() error {
	if e.Close == nil {
		return nil
	}
	return e.Close()
}

// announce prepares a resumed session and shows out what was opened.
func (s *Session) announce(ctx context.Context, out event.Sink, resumed bool) error {
	damaged := resumed && s.supervisor.IsDamaged != nil && s.supervisor.IsDamaged(s.ID, s.timeline.Last())
	if resumed && s.timeline.Last() == 0 || damaged {
		if err := s.restoreMessages(ctx); err != nil {
			return err
		}
	}
	if damaged {
		if err := s.markUnsureCalls(ctx); err != nil {
			return err
		}
	}
	if resumed {
		for _, th := range s.unsettledThreads("") {
			s.restoreQuestions(th)
		}
		s.resumeMode()
		if err := s.saveSnapshot(ctx); err != nil {
			return s.showNotice(ctx, out, fmt.Sprintf("the session file could not be written: %v", err))
		}
	}
	if err := s.recordMode(ctx, out); err != nil {
		return err
	}
	if text := s.untrustedNotice(); text != "" {
		if err := s.showNotice(ctx, out, text); err != nil {
			return err
		}
	}
	set := s.engine.Settings()
	if s.lastModeYolo {
		now, _ := s.engine.Mode.Current()
		if err := s.showNotice(ctx, out, fmt.Sprintf("yolo does not carry over to a resumed session; the mode is %s",
			now.Name)); err != nil {
			return err
		}
	}
	opened := event.SessionOpened{Dir: s.supervisor.Dir, Model: set.Model, Mode: set.Mode, Resumed: resumed,
		MaxTokens: set.ContextLimit}
	opened.Tools = s.Tools()
	return s.recordingSink(out).Emit(ctx, event.Record{Actor: "system", Event: opened})
}

// recordMode records the mode if it changed, so that a resumed session continues in it.
func (s *Session) recordMode(ctx context.Context, out event.Sink) error {
	if s.engine.Mode == nil {
		return nil
	}
	m, preset := s.engine.Mode.Current()
	if m.Name == cmp.Or(s.mode, mode.Build) {
		return nil
	}
	r := event.Record{Actor: orchestrator.ActorUser, Event: event.ModeChanged{Mode: m.Name, Preset: preset}}
	if err := s.recordingSink(out).Emit(ctx, r); err != nil {
		return err
	}
	s.conversation.Add(r)
	return nil
}

// applyPast applies one stored record while the session opens.
func (s *Session) applyPast(r event.Record) error {
	r.Vouched = s.notary.HasValidSeal(r) && s.doubtReason() == ""
	s.conversation.Add(r)
	s.observe(r, Replayed)
	if e, ok := r.Event.(event.ModeChanged); ok {
		s.mode = e.Mode
		s.modeRecords = append(s.modeRecords, modeRecord{e.Mode, e.Preset, r.Vouched})
	}
	if s.hasSignedRecord = s.hasSignedRecord || r.Vouched; !r.Vouched {
		s.unvouched.addRecord(r)
	}
	s.past.addRecord(r)
	s.questions.applyRecord(r)
	s.requests.applyPast(r)
	return nil
}

// observe passes a record to everything that keeps a view of the session.
func (s *Session) observe(r event.Record, when RecordOrigin) {
	s.projection.add(r)
	s.subtasks.observe(r)
	if r.Seq != 0 && s.engine.Observe != nil {
		s.engine.Observe(r, when)
	}
}

// recordingSink returns the sink for all events of this session: it stores, projects, then shows them on out.
func (s *Session) recordingSink(out event.Sink) event.Sink {
	shown := event.SinkFunc(func(ctx context.Context, r event.Record) error {
		r.Vouched = true
		s.questions.applyRecord(r)
		s.requests.applyRecord(r)
		s.observe(r, Live)
		return out.Emit(ctx, r)
	})
	return event.SinkFunc(func(ctx context.Context, r event.Record) error {
		rs := []event.Record{r}
		if q, ok := s.questions.obsoleteQuestion(r); ok {
			s.broker.Forget(q)
			rs = []event.Record{newWithdrawal(q, r.Task, "no longer applies: the call was decided without the answer"), r}
		}
		return s.timeline.EmitAll(ctx, shown, rs...)
	})
}

// Specs describes the tools of the next turn.
func (s *Session) Specs() iter.Seq[tool.Spec] { return s.engine.Settings().Tools.Specs() }

// RunCall makes one tool call for another agent, queued with the inputs.
func (s *Session) RunCall(ctx context.Context, call chat.ToolCall, out event.Sink) (toolrun.Outcome, error) {
	s.turnMu.Lock()
	defer s.turnMu.Unlock()
	if err := s.closeUnfinished(ctx, out); err != nil {
		return toolrun.Outcome{}, err
	}
	s.subtasks.beginTurn(out, nil)
	return s.orch.RunCall(ctx, call, out)
}

// RunText is [Session.RunInput] for text that the user did not type.
func (s *Session) RunText(ctx context.Context, input string, out event.Sink) (orchestrator.Outcome, error) {
	return s.RunInput(ctx, orchestrator.TextInput(chat.NewUserText(chat.OriginUnknown, input)), out)
}

// RunInput runs one input, after settling everything that an earlier process
// left unfinished: a new input means that its calls must not run any more.
func (s *Session) RunInput(ctx context.Context, said orchestrator.Input, out event.Sink) (orchestrator.Outcome, error) {
	s.turnMu.Lock()
	defer s.turnMu.Unlock()
	if err := s.closeUnfinished(ctx, out); err != nil {
		return orchestrator.Outcome{}, err
	}
	if err := s.applyChanges(ctx, out); err != nil {
		return orchestrator.Outcome{}, err
	}
	s.subtasks.beginTurn(out, nil)
	s.notifyInput(said.UserText)
	done, err := s.orch.RunInput(ctx, said, out)
	return done, s.finishChanges(ctx, err, out)
}

func (s *Session) notifyInput(words chat.UserText) {
	if s.engine.OnInput != nil {
		s.engine.OnInput(words)
	}
}

// SwitchMode changes the mode of the session.
func (s *Session) SwitchMode(ctx context.Context, mode string, out event.Sink) error {
	s.turnMu.Lock()
	defer s.turnMu.Unlock()
	return s.orch.SwitchMode(ctx, mode, out)
}

// IsShowCommand reports whether an input is a command that only shows
// something, which Look runs at once, even during a turn.
func (s *Session) IsShowCommand(input string) bool { return s.orch.IsShowCommand(input) }

// TargetMode returns the mode that an input switches to, or ""; see [Session.ChangeSettings].
func (s *Session) TargetMode(input string) string { return s.orch.TargetMode(input) }

// IsKnownCommand reports whether an input is an existing command, or a shell command.
func (s *Session) IsKnownCommand(input string) bool { return s.orch.IsKnownCommand(input) }

// CheckUnknownCommand returns an error if an input looks like a command but is not one.
func (s *Session) CheckUnknownCommand(input string) error { return s.orch.CheckUnknownCommand(input) }

// IsExitCommand reports whether an input is a command that ends coder.
func (s *Session) IsExitCommand(input string) bool { return s.orch.IsExitCommand(input) }

// RunShowCommand runs a command that only shows something.
func (s *Session) RunShowCommand(ctx context.Context, input string, out event.Sink) error {
	return s.orch.RunShowCommand(ctx, input, out)
}

// SetSteering sets a function from which the running turn gets more of the
// user's input between steps. take may be called from another goroutine.
func (s *Session) SetSteering(take func() []chat.UserText) { s.steering.Store(&take) }

func (s *Session) takeSteering() (said []chat.UserText) {
	if take := s.steering.Load(); take != nil {
		said = (*take)()
	}
	for _, words := range said {
		s.notifyInput(words)
	}
	return said
}

// Continue resumes the turn that an earlier process left unfinished, or returns [ErrFinished].
func (s *Session) Continue(ctx context.Context, out event.Sink) (string, error) {
	s.turnMu.Lock()
	defer s.turnMu.Unlock()
	t, ok := s.past.unfinishedTask()
	left := s.unfinishedTurn(t)
	if !ok || left.IsCommand() || left.IsInputLost() {
		return "", errors.Join(ErrFinished, s.closeUnfinished(ctx, out))
	}
	if err := s.resolveCalls(ctx, s.main(t.ID), true, s.recordingSink(out)); err != nil {
		return "", err
	}
	if err := s.endRequests(ctx, s.endsWithTurn(t.ID), s.recordingSink(out)); err != nil {
		return "", err
	}
	subtasks := s.unfinishedSubtasks()
	if err := announceSubtasks(ctx, subtasks, out); err != nil {
		return "", err
	}
	s.subtasks.beginTurn(out, subtasks)
	s.past = history{}
	answer, err := s.orch.ContinueTurn(ctx, left, out)
	return answer, s.finishChanges(ctx, s.closeUnclaimed(ctx, err, out), out)
}

// unfinishedTurn returns how to resume a task's turn.
func (s *Session) unfinishedTurn(t task.Task) orchestrator.UnfinishedTurn {
	return orchestrator.UnfinishedTurn{Task: t.ID, Input: t.Intent, Started: t.Status != task.StatusOpen,
		InputRecorded: s.past.inputRecorded, Run: s.past.run, Unvouched: s.main(t.ID).isUnvouched(),
		Answered: s.past.isAnswered, EditedFiles: s.past.editedFiles, CheckCall: s.past.pendingCheck(),
		LoopQuestion: s.past.loopQuestion()}
}

// ErrNoMessage reports that the session has no such message from the user.
var ErrNoMessage = errors.New("this session has no such user message")

// RecordLocal records a built-in command and saves the session, so that the session exists even without a prompt.
func (s *Session) RecordLocal(ctx context.Context, e event.LocalAdded) error {
	s.turnMu.Lock()
	defer s.turnMu.Unlock()
	r := event.Record{Actor: orchestrator.ActorUser, Event: e}
	return errors.Join(s.recordingSink(event.Discard).Emit(ctx, r), s.saveSnapshot(ctx))
}

// UnfinishedTask returns the task that an earlier process left unfinished, if any.
func (s *Session) UnfinishedTask() (task.Task, bool) { return s.past.unfinishedTask() }

// WillAsk reports whether resuming the unfinished turn asks this question again.
func (s *Session) WillAsk(question string) bool {
	t, ok := s.past.unfinishedTask()
	left := s.unfinishedTurn(t)
	return ok && !left.IsCommand() && !left.IsInputLost() && s.questions.has(question)
}

// UnfinishedCommand reports whether the unfinished work is the user's command, which
// is not resumed. asked is the command if it was only waiting for approval.
func (s *Session) UnfinishedCommand() (asked string, ok bool) {
	t, ok := s.past.unfinishedTask()
	left := s.unfinishedTurn(t)
	ok = ok && left.IsCommand()
	if ok && !left.IsInputLost() && t.Pending != nil && t.Pending.Author == event.ActorUser {
		asked = t.Intent
	}
	return asked, ok
}

// Commands returns the slash commands in this session.
func (s *Session) Commands() []orchestrator.Command { return s.orch.AllCommands() }

// Prompts returns the messages to which a rewind is possible,
// the newest first. It must not be called during a turn.
func (s *Session) Prompts() (texts []string) {
	for p := s.orch.Conversation.LastPrompt(); p != nil; p = p.Before {
		texts = append(texts, orchestrator.Title(p.Text))
	}
	return texts
}

// Tools returns the names of the tools in the next turn.
func (s *Session) Tools() (names []string) {
	for spec := range s.engine.Settings().Tools.Specs() {
		names = append(names, spec.Name)
	}
	return names
}

// ContextUsed returns the number of tokens in the next request.
func (s *Session) ContextUsed() int { return s.orch.ContextUsed() }

// FixedTokens returns how many tokens in every request are the system text and the tools.
func (s *Session) FixedTokens() (system, tools int) { return s.orch.FixedTokens() }

// Timeline returns the session's timeline, for observers.
func (s *Session) Timeline() *timeline.Timeline { return s.timeline }

// Close closes the session. It can be resumed.
func (s *Session) Close() error {
	s.turnMu.Lock()
	defer s.turnMu.Unlock()
	s.orch.RunEndHooks(event.Discard)
	return errors.Join(s.engine.close(), s.timeline.Close())
}

func (s *Session) showNotice(ctx context.Context, out event.Sink, text string) error {
	return out.Emit(ctx, event.Record{Session: s.ID, Event: event.Notice{Level: event.LevelWarn, Text: text}})
}
