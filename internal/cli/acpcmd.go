package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"coder/internal/agent/orchestrator"
	"coder/internal/agent/toolrun"
	"coder/internal/app"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/host/stdio"
	"coder/internal/model/provider"
	"coder/internal/policy/mode"
	"coder/internal/record/session"
	"coder/internal/serve"
	"coder/internal/ui/acp"
	"coder/internal/ui/drive"
)

// acpServer is an editor that works with sessions over ACP.
type acpServer struct {
	invocation *invocation
	conn       *acp.Conn
	greeting   acp.InitializeRequest
	ctx        context.Context // ends when the editor is gone
	work       sync.WaitGroup
	sessions   map[string]*acpSession // by the editor's session id
}

// acpSession is one session in an editor.
type acpSession struct {
	headless
	app             *app.Workspace
	conn            *acp.Conn
	face            *acp.Sink
	modes           []acp.Mode
	unanswered      atomic.Int64             // unanswered prompts
	supportsOptions atomic.Bool              // the editor supports options
	listedModels    atomic.Pointer[[]string] // the models that the endpoint lists
	done            chan struct{}            // closed when the session has ended
}

// runACP serves an editor until it is gone.
func (inv *invocation) runACP(ctx context.Context) error {
	inv.shutdown.isDriven.Store(true)
	inv.flags.HasUser, inv.flags.NoYolo = true, !inv.flags.allowBypass
	life, gone := context.WithCancel(ctx)
	defer gone()
	e := &acpServer{invocation: inv, conn: acp.NewConn(inv.Stdout), ctx: life, sessions: make(map[string]*acpSession)}
	err := e.readMessages(ctx)
	e.conn.Close()
	gone() // no client is left for the turns' results
	e.work.Wait()
	for _, s := range e.sessions {
		err = errors.Join(err, inv.recordClose(s.Close(ctx)))
	}
	return err
}

// readMessages handles messages until the input ends.
func (e *acpServer) readMessages(ctx context.Context) error {
	for {
		line, err := e.invocation.stdin.ReadLine(ctx, maxLineBytes)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, stdio.ErrTooLong):
			said := fmt.Sprintf("a message from the editor is longer than %d MiB", maxLineBytes>>20)
			if err := e.conn.Reply(json.RawMessage("null"), nil, &acp.Error{Code: -32700, Message: said}); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		case strings.TrimSpace(line) == "":
			continue
		}
		var m acp.Message
		var wrong *acp.Error
		switch err := json.Unmarshal([]byte(line), &m); {
		case err != nil && !json.Valid([]byte(line)):
			wrong = &acp.Error{Code: -32700, Message: "the message is not JSON"}
		case err != nil, m.Method == "" && m.Result == nil && m.Error == nil:
			wrong = &acp.Error{Code: acp.CodeInvalidRequest, Message: "the message is neither a request nor an answer"}
		case m.Method == "":
			e.conn.HandleResponse(m)
		default:
			if err := e.handleMessage(ctx, m); err != nil {
				return err
			}
		}
		if wrong != nil {
			if err := e.conn.Reply(json.RawMessage("null"), nil, wrong); err != nil {
				return err
			}
		}
	}
}

// handleMessage handles one message. Its error ends the program.
func (e *acpServer) handleMessage(ctx context.Context, m acp.Message) error {
	var result any
	var err error
	var after func() error // runs once the response is sent
	switch m.Method {
	case "initialize":
		err = m.DecodeParams(&e.greeting)
		result = acp.NewInitializeResponse(app.Version)
	case "authenticate":
		result = nil // keys belong in the settings
	case "session/new", "session/load", "session/resume":
		result, after, err = e.openSession(ctx, m)
	case "session/list":
		result, err = e.listSessions(ctx, m)
	case "session/close":
		err = e.closeRequested(m)
	case "session/delete":
		err = e.delete(ctx, m)
	case "session/set_mode":
		err = e.setMode(ctx, m)
	case "session/set_config_option":
		result, err = e.applyChoice(ctx, m)
	case "session/prompt":
		if err = e.queuePrompt(m); err == nil {
			return nil // answered when the turn ends
		}
	case "session/cancel":
		if s, err := e.findSession(m, new(acp.Selection)); err == nil {
			return s.stopTurns()
		}
		return nil // a notification has no response
	default:
		err = &acp.Error{Code: acp.CodeMethodNotFound, Message: "unknown method " + singleLine(m.Method)}
	}
	if !m.IsRequest() {
		return nil
	}
	if err := e.conn.Reply(m.ID, result, err); err != nil || after == nil {
		return err
	}
	return after()
}

// findSession decodes a message into p and returns its session.
func (e *acpServer) findSession(m acp.Message, p interface{ SessionID() string }) (*acpSession, error) {
	if err := m.DecodeParams(p); err != nil {
		return nil, err
	}
	if s, ok := e.sessions[p.SessionID()]; ok {
		return s, nil
	}
	return nil, &acp.Error{Code: acp.CodeNotFound, Message: "unknown session " + singleLine(p.SessionID())}
}

// openSession opens a session in the editor's folder: a new one, or an existing one, whose conversation is sent
// first.
func (e *acpServer) openSession(ctx context.Context, m acp.Message) (result any, after func() error, err error) {
	var p acp.OpenRequest
	if err := m.DecodeParams(&p); err != nil {
		return nil, nil, err
	}
	loads := m.Method != "session/new"
	if !filepath.IsAbs(p.Dir) {
		return nil, nil, &acp.Error{Code: acp.CodeInvalidParams, Message: "cwd must be a full path"}
	}
	which := app.SessionChoice{ResumeID: p.Session}
	if !loads {
		which = app.SessionChoice{NewID: app.NewSessionID(e.invocation.Now())}
	}
	id := which.ResumeID + which.NewID
	old, open := e.sessions[id]
	if open && old.unanswered.Load() > 0 {
		return nil, nil, &acp.Error{Code: acp.CodeInvalidParams,
			Message: "a turn is running in the session; cancel it, or wait until it ends"}
	}
	a, err := e.newApp(id, p)
	if err == nil && open { // kept open if the other cannot be opened
		if _, err = a.Store().CheckSession(ctx, id); err == nil {
			err = e.closeSession(id, old)
		}
	}
	if err != nil {
		return nil, nil, toProtocolError(err)
	}
	s := &acpSession{app: a, conn: e.conn, face: &acp.Sink{Conn: e.conn, Session: id, Root: a.Root}}
	s.out = &output{Sink: event.Discard, invocation: e.invocation} // while opening: the editor does not have the id yet
	if err := e.invocation.openSession(ctx, a, &s.headless,
		serve.Options{Which: which, User: s.face.Interactor()}); err != nil {
		return nil, nil, toProtocolError(err)
	}
	s.out.Sink = event.Tee(s.face, event.SinkFunc(s.noteMode), e.noticeSink(s.face))
	if m.Method == "session/load" {
		if err := s.replay(ctx); err != nil {
			return nil, nil, errors.Join(err, e.invocation.recordClose(s.Close(ctx)))
		}
	}
	e.sessions[id] = s
	s.done = make(chan struct{})
	e.work.Go(func() {
		defer close(s.done)
		if err := s.RunQueue(e.ctx, s.runTurn); err != nil && e.ctx.Err() == nil {
			e.invocation.warn(err.Error())
		}
	})
	for _, name := range mode.Names() {
		if name != mode.Yolo || e.invocation.flags.allowBypass {
			s.modes = append(s.modes, acp.Mode{ID: name, Name: name, Description: modeDescriptions[name]})
		}
	}
	s.supportsOptions.Store(e.greeting.Client.Name != "")
	current, _ := a.ModeState.Current()
	answer := acp.OpenResponse{Session: which.NewID, Modes: acp.Modes{Current: current.Name, Available: s.modes},
		Options: s.currentOptions(current.Name)}
	return answer, func() error {
		e.work.Go(func() { s.askModels(e.ctx) })
		return s.face.SendCommands(acp.Commands(s.Session().Commands()))
	}, nil
}

// newApp builds the program for a session's folder.
func (e *acpServer) newApp(id string, p acp.OpenRequest) (*app.Workspace, error) {
	if err := e.invocation.readFlagFiles(); err != nil {
		return nil, err
	}
	o := e.invocation.flags.Options
	o.Dir, o.AddDirs = cmp.Or(p.Dir, o.Dir), slices.Concat(o.AddDirs, p.AddDirs)
	if servers := p.MCPSettings(); len(servers) > 0 {
		o.MCPConfig = append(slices.Clone(o.MCPConfig), string(jsonx.MustMarshal(map[string]any{"mcpServers": servers})))
	}
	if e.greeting.Capabilities.Files.Read {
		o.Driver.Buffer = func(ctx context.Context, path string) (string, bool) { return e.conn.ReadFile(ctx, id, path) }
	}
	settings, err := app.Load(e.invocation.Env.Env, o)
	if err != nil {
		return nil, err
	}
	return app.New(e.invocation.Env.Env, o, settings, e.invocation.warn)
}

// noticeSink reports messages outside turns: as notices if the editor supports them, otherwise as thoughts
// and on stderr.
func (e *acpServer) noticeSink(face *acp.Sink) event.Sink {
	place := e.greeting.Capabilities.Session.Notices != nil
	return event.SinkFunc(func(_ context.Context, r event.Record) error {
		n, ok := r.Event.(event.Notice)
		switch {
		case !ok || n.Level == event.LevelInfo || n.Text == "":
			return nil
		case place:
			return face.Warn(e.invocation.printer.TranslateText(n.Text), n.Level != event.LevelWarn)
		}
		e.invocation.warn(n.Text)
		return face.WarnAsThought(e.invocation.printer.TranslateText(n.Text))
	})
}

// queuePrompt queues the user's message.
func (e *acpServer) queuePrompt(m acp.Message) error {
	var p acp.Prompt
	s, err := e.findSession(m, &p)
	if err != nil {
		return err
	}
	said, err := p.Input(s.app.Root)
	if err == nil {
		err = checkPrompt(said.Text())
	}
	if err == nil {
		s.unanswered.Add(1)
		s.Add(drive.Message{Input: said, ID: string(m.ID)})
	}
	return err
}

// stopTurns stops the running turn and the waiting ones.
func (s *acpSession) stopTurns() error {
	for _, waited := range s.TakeAll() {
		if err := s.sendReply(waited, "cancelled", nil); err != nil {
			return err
		}
	}
	s.Interrupt()
	return nil
}

// closeRequested closes a session, which can be loaded again.
func (e *acpServer) closeRequested(m acp.Message) error {
	var p acp.Selection
	s, err := e.findSession(m, &p)
	if err != nil {
		return err
	}
	if err := s.stopTurns(); err != nil {
		return err
	}
	return e.closeSession(p.Session, s)
}

// delete takes a session out of the list: it is archived, so that the user can bring it back. An unknown
// session is as good as deleted.
func (e *acpServer) delete(ctx context.Context, m acp.Message) error {
	var p acp.Selection
	if err := m.DecodeParams(&p); err != nil {
		return err
	}
	if s, open := e.sessions[p.Session]; open {
		if err := errors.Join(s.stopTurns(), e.closeSession(p.Session, s)); err != nil {
			return err
		}
	}
	a, err := e.newApp("", acp.OpenRequest{})
	if err != nil {
		return toProtocolError(err)
	}
	for _, root := range a.Workspaces() {
		a, err := e.newApp("", acp.OpenRequest{Dir: root})
		if err != nil {
			continue // an unusable folder lists no sessions
		}
		if _, err := a.Store().CheckSession(ctx, p.Session); err == nil {
			return a.Store().ChangeLabel(ctx, p.Session, func(l *app.Label) { l.Archived = true })
		}
	}
	return nil
}

// closeSession closes a session once nothing in it is running.
func (e *acpServer) closeSession(id string, s *acpSession) error {
	s.Finish()
	<-s.done
	delete(e.sessions, id)
	return e.invocation.recordClose(s.Close(context.WithoutCancel(e.ctx)))
}

// maxListedSessions is the most sessions sent to an editor.
const maxListedSessions = 100

// listSessions returns the sessions in a folder, or in all of them, newest first.
func (e *acpServer) listSessions(ctx context.Context, m acp.Message) (any, error) {
	var p acp.OpenRequest
	if err := m.DecodeParams(&p); err != nil {
		return nil, err
	}
	a, err := e.newApp("", p)
	if err != nil {
		return nil, toProtocolError(err)
	}
	apps := []*app.Workspace{a}
	if p.Dir == "" {
		apps = nil
		for _, root := range a.Workspaces() {
			if a, err := e.newApp("", acp.OpenRequest{Dir: root}); err == nil { // an unusable folder is left out
				apps = append(apps, a)
			}
		}
	}
	all := []acp.Session{}
	for _, a := range apps {
		heads, err := a.Store().ListHeads(ctx)
		if err != nil && p.Dir != "" {
			return nil, toProtocolError(err)
		}
		for _, h := range heads {
			all = append(all, acp.Session{ID: h.ID, Dir: a.Root, Title: h.Meta.Title,
				Updated: h.Updated.UTC().Format(time.RFC3339)})
		}
	}
	slices.SortStableFunc(all, func(a, b acp.Session) int { return strings.Compare(b.Updated, a.Updated) })
	return acp.SessionList{Sessions: all[:min(len(all), maxListedSessions)]}, nil
}

// replay sends the editor the earlier conversation.
func (s *acpSession) replay(ctx context.Context) error {
	s.face.Replay = true
	defer func() { s.face.Replay = false }()
	told := newCallSink(s.face)
	for r, err := range s.app.Store().Logs.Read(ctx, s.ID(), 0) {
		if err == nil {
			err = told.Emit(ctx, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// runTurn runs one prompt and answers it.
func (s *acpSession) runTurn(ctx context.Context, m drive.Message) error {
	model := s.app.ModelName()
	_, err := s.runInput(ctx, m.Input)
	if s.app.ModelName() != model {
		current, _ := s.app.ModeState.Current()
		if err := s.sendOptions(current.Name); err != nil {
			return err
		}
	}
	var (
		command *orchestrator.CommandError
		fails   *provider.Error
	)
	switch {
	case err == nil, errors.As(err, &command): // the command has reported its error
		return s.sendReply(m, "end_turn", nil)
	case ctx.Err() != nil, errors.Is(err, toolrun.ErrDeniedAndStopped):
		return s.sendReply(m, "cancelled", nil)
	case errors.Is(err, orchestrator.ErrStepLimit):
		return s.sendReply(m, "max_turn_requests", nil)
	case errors.Is(err, provider.ErrAuth):
		return s.sendReply(m, "", &acp.Error{Code: acp.CodeAuthRequired, Message: errorMessage(err).String()})
	case errors.As(err, &fails):
		return s.sendReply(m, "", &acp.Error{Code: acp.CodeInternal, Message: errorMessage(err).String(),
			Data: fails.Error()})
	}
	return s.sendReply(m, "", toProtocolError(err))
}

func (s *acpSession) sendReply(m drive.Message, stop string, err error) error {
	s.unanswered.Add(-1) // a client with the answer may continue immediately
	return s.conn.Reply(json.RawMessage(m.ID), map[string]string{"stopReason": stop}, err)
}

// toProtocolError converts an error to the protocol's form.
func toProtocolError(err error) error {
	code := acp.CodeInternal
	switch {
	case errors.Is(err, session.ErrNotFound):
		code = acp.CodeNotFound
	case ExitCode(err) == ExitInput:
		code = acp.CodeInvalidParams
	}
	return &acp.Error{Code: code, Message: errorMessage(err).String()}
}
