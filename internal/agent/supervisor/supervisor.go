// Package supervisor opens sessions, brings them back after a crash, and runs
// their inputs one at a time.
//
// What an earlier process left unfinished is settled from the record, never
// by guessing: a call that completed keeps its result, a call that was under
// way is reported as having an unknown outcome, a call that had not begun may
// still run, and a question that was open is put again under the same id.
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

// ErrFinished reports that no turn was left unfinished.
var ErrFinished = errors.New("nothing is unfinished")

// Config is what a Supervisor is made of. Every field is required unless it
// says otherwise.
type Config struct {
	Store    event.Store
	Sessions session.Store
	Person   uip.Interactor
	// Engine builds what one session runs on. Spawn hands work to other agents,
	// once the session is open.
	Engine func(sessionID string, spawn Spawn) (Engine, error)
	Dir    string
	NewID  func(prefix string) string
	Now    func() time.Time
	// Damaged, which may be nil, reports whether a session whose newest record
	// is last is known to have had more. Its snapshot may then know more than
	// its logs, and what they say was not begun may have been.
	Damaged func(sessionID string, last uint64) bool
	// Key, which may be nil, is what records are sealed with. Without one
	// nothing that an earlier process left on record lets anything be done.
	Key func() *authkey.Key
	// Doubt, which may be nil, says why nothing in the logs of a session counts,
	// seal or not; "" if it may. It is asked once the session is claimed.
	Doubt func(sessionID string) string
	// Copied, which may be nil, reports whether what a session begins with was taken
	// over from another one.
	Copied func(sessionID string) bool
}

// Engine is what one session runs on, and what is told of it and asked about it.
type Engine struct {
	orchestrator.Engine
	// ModeChosen says that the person chose the mode for this run: a session that
	// is resumed does not bring its own.
	ModeChosen bool
	// OnInput, if set, is told what was said, and where it came from.
	OnInput func(words chat.Words)
	// Observe, if set, is told of every record that is kept, in order, and
	// whether it is of this process or an earlier one. It must not emit.
	Observe func(event.Record, When)
	// Undo and Redo, if set, take back what turns did to files.
	Undo, Redo func(context.Context, undo.Call) (undo.Plan, error)
	// Restore, if set, makes files what they were at some time.
	Restore func(context.Context, undo.Call, []undo.Goal) (undo.Plan, error)
	// CutOff, if set, lists the ends of undoing that an earlier process owes.
	CutOff func() []event.ToolCallCompleted
	// ChangesSince, if set, tells what has changed in files since a call began.
	ChangesSince func(context.Context, event.ToolCallRequested) Changes
	// Close, if set, ends what the engine started.
	Close func() error
}

// When says whether a record is made now or read again. Nothing else tells: the
// clock may have been set since.
type When bool

// A record is one of an earlier process, or of this one.
const (
	Replayed When = false
	Live     When = true
)

// Supervisor opens sessions.
type Supervisor struct{ Config }

// New returns a Supervisor.
func New(c Config) *Supervisor { return &Supervisor{c} }

// Session is one open session. Its methods may be called by several
// goroutines; inputs wait for each other.
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
	modes   []modeKept    // switches on record
	yolo    bool          // the last of them was to yolo, which does not hold here
	ignored ignored
	signed  bool // a stored record has the signature of this user

	steer   atomic.Pointer[func() []chat.Words]
	changes changes

	turn sync.Mutex // held while an input runs
}

// Start opens a new session under id.
func (s *Supervisor) Start(ctx context.Context, id string, out event.Sink) (*Session, error) {
	return s.open(ctx, id, out, timeline.Options{Now: s.Now, New: true})
}

// Resume opens the session id as its logs tell it; where there are none, from
// its snapshot. If there is neither the error is [session.ErrNotFound].
func (s *Supervisor) Resume(ctx context.Context, id string, out event.Sink) (*Session, error) {
	if known, err := s.Exists(ctx, id); err != nil {
		return nil, err
	} else if !known {
		return nil, fmt.Errorf("session %s: %w", id, session.ErrNotFound)
	}
	return s.open(ctx, id, out, timeline.Options{Now: s.Now})
}

// Exists reports whether anything is on record under id.
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

// announce takes up what is known of a resumed session and tells out what was
// opened.
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

// recordMode puts the mode on record where it is not the one there, so that
// the session goes on in it when it is resumed.
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

// fold takes in one stored record while the session opens.
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

// observe tells those who keep a view of the session.
func (s *Session) observe(r event.Record, when When) {
	s.view.add(r)
	s.subtasks.observe(r)
	if r.Seq != 0 && s.engine.Observe != nil {
		s.engine.Observe(r, when)
	}
}

// through returns the sink that everything in this session goes through: kept,
// then projected, then shown to out.
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
			rs = []event.Record{withdrawal(q, r.Task, "it is void: the matter was decided without it"), r}
		}
		return s.line.EmitAll(ctx, shown, rs...)
	})
}

// Specs describe the tools of the next turn.
func (s *Session) Specs() iter.Seq[tool.Spec] { return s.engine.Settings().Tools.Specs() }

// Call makes one call of a tool that another agent asks for, in its turn among
// the inputs.
func (s *Session) Call(ctx context.Context, call chat.ToolCall, out event.Sink) (toolrun.Outcome, error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if err := s.abandon(ctx, out); err != nil {
		return toolrun.Outcome{}, err
	}
	s.subtasks.begin(out, nil)
	return s.orch.RunCall(ctx, call, out)
}

// Run is [Session.RunSaid] for words that nobody typed.
func (s *Session) Run(ctx context.Context, input string, out event.Sink) (orchestrator.Outcome, error) {
	return s.RunSaid(ctx, orchestrator.Say(chat.From(chat.Unknown, input)), out)
}

// RunSaid takes one input through, after settling whatever an earlier process left
// unfinished: the person has moved on, so its calls are not run any more.
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

// Looks reports whether an input is a command that only looks something up, which
// Look answers at once, also while a turn runs.
func (s *Session) Looks(input string) bool { return s.orch.Looks(input) }

// Switches is the mode that an input switches to, or ""; see [Session.Change].
func (s *Session) Switches(input string) string { return s.orch.Switches(input) }

// Knows reports whether an input is a command that there is, or one for the shell.
func (s *Session) Knows(input string) bool { return s.orch.Knows(input) }

// Unknown is why an input that looks like a command is none.
func (s *Session) Unknown(input string) error { return s.orch.Unknown(input) }

// Leaves reports whether an input is a command that ends the program.
func (s *Session) Leaves(input string) bool { return s.orch.Leaves(input) }

// Look answers a command that only looks something up.
func (s *Session) Look(ctx context.Context, input string, out event.Sink) error {
	return s.orch.Look(ctx, input, out)
}

// Steer lets the running turn take more of the person's words between its
// steps. Take may be called by another goroutine.
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

// Continue takes up the turn an earlier process left unfinished, or returns
// [ErrFinished].
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

// left is a task as its turn is taken up.
func (s *Session) left(t task.Task) orchestrator.Unfinished {
	return orchestrator.Unfinished{Task: t.ID, Input: t.Intent, Started: t.Status != task.Open, Heard: s.past.heard, Run: s.past.run, Doubted: s.main(t.ID).doubted(),
		Answered: s.past.concluded, Edited: s.past.edited, Check: s.past.check(), Circle: s.past.circle()}
}

// ErrNoMessage reports that no message of the person's is the one that is meant.
var ErrNoMessage = errors.New("this session has no such user message")

// Note puts a command of the program's own on record and saves the session, so
// that there is one even before anything was said in it.
func (s *Session) Note(ctx context.Context, e event.LocalAdded) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	r := event.Record{Actor: orchestrator.ActorUser, Event: e}
	return errors.Join(s.through(event.Discard).Emit(ctx, r), s.save(ctx))
}

// Unfinished is the task an earlier process left behind, if any.
func (s *Session) Unfinished() (task.Task, bool) { return s.past.unfinished() }

// Asks reports whether a question of the turn that was left behind is put again when that
// is taken up.
func (s *Session) Asks(question string) bool {
	t, ok := s.past.unfinished()
	left := s.left(t)
	return ok && !left.Command() && !left.Lost() && s.open.has(question)
}

// LeftCommand reports whether what was left behind is a command of the person's, which is
// not taken up. It is returned if they were only being asked about it.
func (s *Session) LeftCommand() (asked string, ok bool) {
	t, ok := s.past.unfinished()
	left := s.left(t)
	ok = ok && left.Command()
	if ok && !left.Lost() && t.Pending != nil && t.Pending.Author == event.ActorUser {
		asked = t.Intent
	}
	return asked, ok
}

// Commands are the slash commands that can be typed in this session.
func (s *Session) Commands() []orchestrator.Command { return s.orch.AllCommands() }

// Prompts are the messages that one can go back to before, the newest first. It
// is for when no turn runs.
func (s *Session) Prompts() (texts []string) {
	for p := s.orch.Talk.Last(); p != nil; p = p.Before {
		texts = append(texts, orchestrator.Title(p.Text))
	}
	return texts
}

// Tools are the names of what the model may call in the next turn.
func (s *Session) Tools() (names []string) {
	for spec := range s.engine.Settings().Tools.Specs() {
		names = append(names, spec.Name)
	}
	return names
}

// ContextUsed is the number of tokens the next request would take.
func (s *Session) ContextUsed() int { return s.orch.ContextUsed() }

// FixedTokens is how many tokens of every request are the system text and the
// tools.
func (s *Session) FixedTokens() (system, tools int) { return s.orch.FixedTokens() }

// Timeline is the session's one order of things, for those who watch it.
func (s *Session) Timeline() *timeline.Timeline { return s.line }

// Close ends the session. It can be resumed.
func (s *Session) Close() error {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.orch.End(event.Discard)
	return errors.Join(s.engine.close(), s.line.Close())
}

func (s *Session) notice(ctx context.Context, out event.Sink, text string) error {
	return out.Emit(ctx, event.Record{Session: s.ID, Event: event.Notice{Level: event.Warn, Text: text}})
}
