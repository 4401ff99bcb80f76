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
	Person   uip.Interactor
	// Engine builds what one session needs to run. spawn delegates to subagents, once the session is open.
	Engine func(sessionID string, spawn Spawn) (Engine, error)
	Dir    string
	NewID  func(prefix string) string
	Now    func() time.Time
	// Damaged, which may be nil, reports whether a session whose newest record is last had more records.
	// Then its snapshot may have more than its logs, and calls without a recorded beginning may have begun.
	Damaged func(sessionID string, last uint64) bool
	// Key, which may be nil, returns the key that seals records.
	// Without a key, records from an earlier process allow nothing.
	Key func() *authkey.Key
	// Doubt, which may be nil, returns why nothing in a session's logs counts,
	// even if sealed, or "". It is called once the session is claimed.
	Doubt func(sessionID string) string
	// Copied, which may be nil, reports whether a session's first records were copied from another session.
	Copied func(sessionID string) bool
}

// Engine is what one session needs to run, with callbacks.
type Engine struct {
	orchestrator.Engine
	// ModeChosen means that the user chose the mode for this run: a resumed session does not restore its own.
	ModeChosen bool
	// OnInput, if set, gets each input with its origin.
	OnInput func(words chat.Words)
	// Observe, if set, gets every stored record, in order, and whether
	// this process or an earlier one made it. It must not emit.
	Observe func(event.Record, When)
	// Undo and Redo, if set, undo and redo turns' changes to files.
	Undo, Redo func(context.Context, undo.Call) (undo.Plan, error)
	// Restore, if set, sets files to their state at some time.
	Restore func(context.Context, undo.Call, []undo.Goal) (undo.Plan, error)
	// CutOff, if set, lists the missing ends of an earlier process's undo calls.
	CutOff func() []event.ToolCallCompleted
	// ChangesSince, if set, returns the changes to files since a call began.
	ChangesSince func(context.Context, event.ToolCallRequested) Changes
	// Close, if set, stops everything that the engine started.
	Close func() error
}

// When says whether a record is new or replayed. Times cannot tell: the clock may have been changed.
type When bool

// A record is from an earlier process, or from this one.
const (
	Replayed When = false
	Live     When = true
)

// Supervisor opens sessions.
type Supervisor struct{ Config }

// New returns a Supervisor.
func New(c Config) *Supervisor { return &Supervisor{c} }

// Session is one open session. Its methods may be called from several goroutines; inputs wait for each other.
type Session struct {
	ID string

	sup          *Supervisor
	engine       Engine
	line         *timeline.Timeline
	orch         *orchestrator.Orchestrator
	broker       *broker.Broker
	conversation conversation.Conversation
	view         projection
	past         history
	subtasks     subtasks
	open         questions
	requests     requests
	mode         string // as the record has it; "" is the usual one

	notary  *seal.Notary
	doubt   func() string // why nothing on record counts; "" if it may
	modes   []modeKept    // recorded mode changes
	yolo    bool          // the last of them was to yolo, which is not restored
	ignored ignored
	signed  bool // a stored record has this user's signature

	steer   atomic.Pointer[func() []chat.Words]
	changes changes

	turn sync.Mutex // locked while an input runs
}

// Start opens a new session under id.
func (s *Supervisor) Start(ctx context.Context, id string, out event.Sink) (*Session, error) {
	return s.open(ctx, id, out, timeline.Options{Now: s.Now, New: true})
}

// Resume opens the session id from its logs, or from its snapshot if there
// are none. If there is neither, the error is [session.ErrNotFound].
func (s *Supervisor) Resume(ctx context.Context, id string, out event.Sink) (*Session, error) {
	if known, err := s.Exists(ctx, id); err != nil {
		return nil, err
	} else if !known {
		return nil, fmt.Errorf("session %s: %w", id, session.ErrNotFound)
	}
	return s.open(ctx, id, out, timeline.Options{Now: s.Now})
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

func (s *Supervisor) open(ctx context.Context, id string, out event.Sink, o timeline.Options) (*Session, error) {
	ss := &Session{ID: id, sup: s, broker: broker.New(s.Person)}
	ss.notary = s.notary(id)
	ss.doubt = sync.OnceValue(func() string {
		if s.Doubt == nil || o.New {
			return ""
		}
		return s.Doubt(id)
	})
	o.Fold, o.Seal = ss.fold, ss.notary.Seal
	var err error
	if ss.engine, err = s.Engine(id, ss.Spawn); err != nil {
		return nil, err
	}
	if ss.engine.Conceals != nil {
		o.Mask = ss.engine.Conceals
	}
	if ss.line, err = timeline.Open(ctx, s.Store, id, o); err != nil {
		return nil, errors.Join(err, ss.engine.close())
	}
	ss.orch = orchestrator.New(orchestrator.Config{
		Engine: ss.engine.Engine, Talk: &ss.conversation,
		Through: ss.through, Person: ss.broker.On, Save: ss.save, Steer: ss.takeSteering, Changed: ss.changes.take, NewID: s.NewID, Now: s.Now,
	})
	if err := ss.announce(ctx, out, !o.New); err != nil {
		return nil, errors.Join(err, ss.line.Close(), ss.engine.close())
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
	damaged := resumed && s.sup.Damaged != nil && s.sup.Damaged(s.ID, s.line.Last())
	if resumed && s.line.Last() == 0 || damaged {
		if err := s.restore(ctx); err != nil {
			return err
		}
	}
	if damaged {
		if err := s.markUnsure(ctx); err != nil {
			return err
		}
	}
	if resumed {
		for _, th := range s.threads("") {
			s.recall(th)
		}
		s.resumeMode()
		if err := s.save(ctx); err != nil {
			return s.notice(ctx, out, fmt.Sprintf("the session file could not be written: %v", err))
		}
	}
	if err := s.recordMode(ctx, out); err != nil {
		return err
	}
	if text := s.untrustedNotice(); text != "" {
		if err := s.notice(ctx, out, text); err != nil {
			return err
		}
	}
	set := s.engine.Settings()
	if s.yolo {
		now, _ := s.engine.Mode.Current()
		if err := s.notice(ctx, out, fmt.Sprintf("yolo does not carry over to a resumed session; the mode is %s", now.Name)); err != nil {
			return err
		}
	}
	opened := event.SessionOpened{Dir: s.sup.Dir, Model: set.Model, Mode: set.Mode, Resumed: resumed, MaxTokens: set.ContextLimit}
	opened.Tools = s.Tools()
	return s.through(out).Emit(ctx, event.Record{Actor: "system", Event: opened})
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
	if err := s.through(out).Emit(ctx, r); err != nil {
		return err
	}
	s.conversation.Add(r)
	return nil
}

// fold applies one stored record while the session opens.
func (s *Session) fold(r event.Record) error {
	r.Vouched = s.notary.Vouches(r) && s.doubt() == ""
	s.conversation.Add(r)
	s.observe(r, Replayed)
	if e, ok := r.Event.(event.ModeChanged); ok {
		s.mode = e.Mode
		s.modes = append(s.modes, modeKept{e.Mode, e.Preset, r.Vouched})
	}
	if s.signed = s.signed || r.Vouched; !r.Vouched {
		s.ignored.note(r)
	}
	s.past.add(r)
	s.open.note(r)
	s.requests.recall(r)
	return nil
}

// observe passes a record to everything that keeps a view of the session.
func (s *Session) observe(r event.Record, when When) {
	s.view.add(r)
	s.subtasks.observe(r)
	if r.Seq != 0 && s.engine.Observe != nil {
		s.engine.Observe(r, when)
	}
}

// through returns the sink for all events of this session: it stores, projects, then shows them on out.
func (s *Session) through(out event.Sink) event.Sink {
	shown := event.SinkFunc(func(ctx context.Context, r event.Record) error {
		r.Vouched = true
		s.open.note(r)
		s.requests.note(r)
		s.observe(r, Live)
		return out.Emit(ctx, r)
	})
	return event.SinkFunc(func(ctx context.Context, r event.Record) error {
		rs := []event.Record{r}
		if q, ok := s.open.passed(r); ok {
			s.broker.Forget(q)
			rs = []event.Record{withdrawal(q, r.Task, "it no longer applies: the call was decided without it"), r}
		}
		return s.line.EmitAll(ctx, shown, rs...)
	})
}

// Specs describes the tools of the next turn.
func (s *Session) Specs() iter.Seq[tool.Spec] { return s.engine.Settings().Tools.Specs() }

// Call makes one tool call for another agent, queued with the inputs.
func (s *Session) Call(ctx context.Context, call chat.ToolCall, out event.Sink) (toolrun.Outcome, error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if err := s.abandon(ctx, out); err != nil {
		return toolrun.Outcome{}, err
	}
	s.subtasks.begin(out, nil)
	return s.orch.RunCall(ctx, call, out)
}

// Run is [Session.RunSaid] for text that the user did not type.
func (s *Session) Run(ctx context.Context, input string, out event.Sink) (orchestrator.Outcome, error) {
	return s.RunSaid(ctx, orchestrator.Say(chat.From(chat.Unknown, input)), out)
}

// RunSaid runs one input, after settling everything that an earlier process
// left unfinished: a new input means that its calls must not run any more.
func (s *Session) RunSaid(ctx context.Context, said orchestrator.Said, out event.Sink) (orchestrator.Outcome, error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if err := s.abandon(ctx, out); err != nil {
		return orchestrator.Outcome{}, err
	}
	if err := s.applyChanges(ctx, out); err != nil {
		return orchestrator.Outcome{}, err
	}
	s.subtasks.begin(out, nil)
	s.notifyInput(said.Words)
	done, err := s.orch.RunSaid(ctx, said, out)
	return done, s.endChanges(ctx, err, out)
}

func (s *Session) notifyInput(words chat.Words) {
	if s.engine.OnInput != nil {
		s.engine.OnInput(words)
	}
}

// SwitchMode changes the mode of the session.
func (s *Session) SwitchMode(ctx context.Context, mode string, out event.Sink) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	return s.orch.SwitchMode(ctx, mode, out)
}

// Looks reports whether an input is a command that only shows
// something, which Look runs at once, even during a turn.
func (s *Session) Looks(input string) bool { return s.orch.Looks(input) }

// Switches returns the mode that an input switches to, or ""; see [Session.Change].
func (s *Session) Switches(input string) string { return s.orch.Switches(input) }

// Knows reports whether an input is an existing command, or a shell command.
func (s *Session) Knows(input string) bool { return s.orch.Knows(input) }

// Unknown returns an error if an input looks like a command but is not one.
func (s *Session) Unknown(input string) error { return s.orch.Unknown(input) }

// Leaves reports whether an input is a command that ends coder.
func (s *Session) Leaves(input string) bool { return s.orch.Leaves(input) }

// Look runs a command that only shows something.
func (s *Session) Look(ctx context.Context, input string, out event.Sink) error {
	return s.orch.Look(ctx, input, out)
}

// Steer sets a function from which the running turn gets more of the
// user's input between steps. take may be called from another goroutine.
func (s *Session) Steer(take func() []chat.Words) { s.steer.Store(&take) }

func (s *Session) takeSteering() (said []chat.Words) {
	if take := s.steer.Load(); take != nil {
		said = (*take)()
	}
	for _, words := range said {
		s.notifyInput(words)
	}
	return said
}

// Continue resumes the turn that an earlier process left unfinished, or returns [ErrFinished].
func (s *Session) Continue(ctx context.Context, out event.Sink) (string, error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	t, ok := s.past.unfinished()
	left := s.left(t)
	if !ok || left.Command() || left.Lost() {
		return "", errors.Join(ErrFinished, s.abandon(ctx, out))
	}
	if err := s.resolveCalls(ctx, s.main(t.ID), true, s.through(out)); err != nil {
		return "", err
	}
	if err := s.endRequests(ctx, s.settledLater(t.ID), s.through(out)); err != nil {
		return "", err
	}
	subtasks := s.unfinishedSubtasks()
	if err := announceSubtasks(ctx, subtasks, out); err != nil {
		return "", err
	}
	s.subtasks.begin(out, subtasks)
	s.past = history{}
	answer, err := s.orch.ContinueTurn(ctx, left, out)
	return answer, s.endChanges(ctx, s.closeUnclaimed(ctx, err, out), out)
}

// left returns how to resume a task's turn.
func (s *Session) left(t task.Task) orchestrator.Unfinished {
	return orchestrator.Unfinished{Task: t.ID, Input: t.Intent, Started: t.Status != task.Open, Heard: s.past.heard, Run: s.past.run, Doubted: s.main(t.ID).doubted(),
		Answered: s.past.concluded, Edited: s.past.edited, Check: s.past.check(), Circle: s.past.circle()}
}

// ErrNoMessage reports that the session has no such message from the user.
var ErrNoMessage = errors.New("this session has no such user message")

// Note records a built-in command and saves the session, so that the session exists even without a prompt.
func (s *Session) Note(ctx context.Context, e event.LocalAdded) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	r := event.Record{Actor: orchestrator.ActorUser, Event: e}
	return errors.Join(s.through(event.Discard).Emit(ctx, r), s.save(ctx))
}

// Unfinished returns the task that an earlier process left unfinished, if any.
func (s *Session) Unfinished() (task.Task, bool) { return s.past.unfinished() }

// Asks reports whether resuming the unfinished turn asks this question again.
func (s *Session) Asks(question string) bool {
	t, ok := s.past.unfinished()
	left := s.left(t)
	return ok && !left.Command() && !left.Lost() && s.open.has(question)
}

// LeftCommand reports whether the unfinished work is the user's command, which
// is not resumed. asked is the command if it was only waiting for approval.
func (s *Session) LeftCommand() (asked string, ok bool) {
	t, ok := s.past.unfinished()
	left := s.left(t)
	ok = ok && left.Command()
	if ok && !left.Lost() && t.Pending != nil && t.Pending.Author == event.ActorUser {
		asked = t.Intent
	}
	return asked, ok
}

// Commands returns the slash commands in this session.
func (s *Session) Commands() []orchestrator.Command { return s.orch.AllCommands() }

// Prompts returns the messages to which a rewind is possible,
// the newest first. It must not be called during a turn.
func (s *Session) Prompts() (texts []string) {
	for p := s.orch.Talk.Last(); p != nil; p = p.Before {
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
func (s *Session) Timeline() *timeline.Timeline { return s.line }

// Close closes the session. It can be resumed.
func (s *Session) Close() error {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.orch.End(event.Discard)
	return errors.Join(s.engine.close(), s.line.Close())
}

func (s *Session) notice(ctx context.Context, out event.Sink, text string) error {
	return out.Emit(ctx, event.Record{Session: s.ID, Event: event.Notice{Level: event.Warn, Text: text}})
}
