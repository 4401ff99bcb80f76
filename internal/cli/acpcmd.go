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

// editor is an editor that works with sessions over ACP.
type editor struct {
	inv      *invocation
	conn     *acp.Conn
	greeting acp.Initialize
	life     context.Context // ends when the editor is gone
	work     sync.WaitGroup
	sessions map[string]*edited // by the editor's session id
}

// edited is one session in an editor.
type edited struct {
	headless
	app   *app.Workspace
	conn  *acp.Conn
	face  *acp.Face
	modes []acp.Mode
	asked atomic.Int64             // unanswered prompts
	knows atomic.Bool              // the editor supports options
	named atomic.Pointer[[]string] // the models that the endpoint lists
	ended chan struct{}            // closed when the session has ended
}

// runACP serves an editor until it is gone.
func (inv *invocation) runACP(ctx context.Context) error {
	inv.exit.driven.Store(true)
	inv.flags.Attended, inv.flags.NoYolo = true, !inv.flags.mayBypass
	life, gone := context.WithCancel(ctx)
	defer gone()
	e := &editor{inv: inv, conn: acp.NewConn(inv.Stdout), life: life, sessions: make(map[string]*edited)}
	err := e.read(ctx)
	e.conn.Close()
	gone() // no client is left for the turns' results
	e.work.Wait()
	for _, s := range e.sessions {
		err = errors.Join(err, inv.closed(s.Close(ctx)))
	}
	return err
}

// read handles messages until the input ends.
func (e *editor) read(ctx context.Context) error {
	for {
		line, err := e.inv.input.Line(ctx, lineLimit)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, stdio.ErrTooLong):
			said := fmt.Sprintf("a message from the editor is longer than %d MiB", lineLimit>>20)
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
			wrong = &acp.Error{Code: acp.CodeInvalid, Message: "the message is neither a request nor an answer"}
		case m.Method == "":
			e.conn.Answer(m)
		default:
			if err := e.take(ctx, m); err != nil {
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

// take handles one message. Its error ends the program.
func (e *editor) take(ctx context.Context, m acp.Message) error {
	var result any
	var err error
	var after func() error // runs once the response is sent
	switch m.Method {
	case "initialize":
		err = m.Into(&e.greeting)
		result = acp.Hello(app.Version)
	case "authenticate":
		result = nil // keys belong in the settings
	case "session/new", "session/load", "session/resume":
		result, after, err = e.open(ctx, m)
	case "session/list":
		result, err = e.list(ctx, m)
	case "session/close":
		err = e.end(m)
	case "session/set_mode":
		err = e.setMode(ctx, m)
	case "session/set_config_option":
		result, err = e.choose(ctx, m)
	case "session/prompt":
		if err = e.prompt(m); err == nil {
			return nil // answered when the turn ends
		}
	case "session/cancel":
		if s, err := e.find(m, new(acp.Selection)); err == nil {
			return s.stop()
		}
		return nil // a notification has no response
	default:
		err = &acp.Error{Code: acp.CodeNoMethod, Message: "unknown method " + oneLine(m.Method)}
	}
	if !m.IsRequest() {
		return nil
	}
	if err := e.conn.Reply(m.ID, result, err); err != nil || after == nil {
		return err
	}
	return after()
}

// find decodes a message into p and returns its session.
func (e *editor) find(m acp.Message, p interface{ Of() string }) (*edited, error) {
	if err := m.Into(p); err != nil {
		return nil, err
	}
	if s, ok := e.sessions[p.Of()]; ok {
		return s, nil
	}
	return nil, &acp.Error{Code: acp.CodeUnknown, Message: "unknown session " + oneLine(p.Of())}
}

// open opens a session in the editor's folder: a new one, or an existing one, whose conversation is sent
// first.
func (e *editor) open(ctx context.Context, m acp.Message) (result any, after func() error, err error) {
	var p acp.Open
	if err := m.Into(&p); err != nil {
		return nil, nil, err
	}
	loads := m.Method != "session/new"
	if !filepath.IsAbs(p.Dir) {
		return nil, nil, &acp.Error{Code: acp.CodeParams, Message: "cwd must be a full path"}
	}
	which := app.Which{Resume: p.Session}
	if !loads {
		which = app.Which{ID: app.NewSessionID(e.inv.Now())}
	}
	id := which.Resume + which.ID
	old, open := e.sessions[id]
	if open && old.asked.Load() > 0 {
		return nil, nil, &acp.Error{Code: acp.CodeParams, Message: "a turn is running in the session; cancel it, or wait until it ends"}
	}
	a, err := e.newApp(id, p)
	if err == nil && open { // kept open if the other cannot be opened
		if _, err = a.Store().Known(ctx, id); err == nil {
			err = e.shut(id, old)
		}
	}
	if err != nil {
		return nil, nil, asError(err)
	}
	s := &edited{app: a, conn: e.conn, face: &acp.Face{Conn: e.conn, Session: id, Root: a.Root}}
	s.out = &output{Sink: event.Discard, inv: e.inv} // while opening: the editor does not have the id yet
	if err := e.inv.open(ctx, a, &s.headless, serve.Options{Which: which, Person: s.face.Person()}); err != nil {
		return nil, nil, asError(err)
	}
	s.out.Sink = event.Tee(s.face, event.SinkFunc(s.note), e.notes(s.face))
	if m.Method == "session/load" {
		if err := s.replay(ctx); err != nil {
			return nil, nil, errors.Join(err, e.inv.closed(s.Close(ctx)))
		}
	}
	e.sessions[id] = s
	s.ended = make(chan struct{})
	e.work.Go(func() {
		defer close(s.ended)
		if err := s.Serve(e.life, s.turn); err != nil && e.life.Err() == nil {
			e.inv.warn(err.Error())
		}
	})
	for _, name := range mode.Names() {
		if name != mode.Yolo || e.inv.flags.mayBypass {
			s.modes = append(s.modes, acp.Mode{ID: name, Name: name, About: aboutModes[name]})
		}
	}
	s.knows.Store(e.greeting.Client.Name != "")
	current, _ := a.Modes.Current()
	answer := acp.Opened{Session: which.ID, Modes: acp.Modes{Current: current.Name, Available: s.modes}, Options: s.options(current.Name)}
	return answer, func() error {
		e.work.Go(func() { s.askModels(e.life) })
		return s.face.Advertise(acp.Commands(s.Session().Commands()))
	}, nil
}

// newApp builds the program for a session's folder.
func (e *editor) newApp(id string, p acp.Open) (*app.Workspace, error) {
	if err := e.inv.readTexts(); err != nil {
		return nil, err
	}
	o := e.inv.flags.Options
	o.Dir, o.AddDirs = cmp.Or(p.Dir, o.Dir), slices.Concat(o.AddDirs, p.AddDirs)
	if servers := p.MCP(); len(servers) > 0 {
		o.MCPConfig = append(slices.Clone(o.MCPConfig), string(jsonx.Must(map[string]any{"mcpServers": servers})))
	}
	if e.greeting.Capabilities.Files.Read {
		o.Driver.Buffer = func(ctx context.Context, path string) (string, bool) { return e.conn.ReadFile(ctx, id, path) }
	}
	settings, err := app.Load(e.inv.Env.Env, o)
	if err != nil {
		return nil, err
	}
	return app.New(e.inv.Env.Env, o, settings, e.inv.warn)
}

// notes reports messages outside turns: as notices if the editor supports them, otherwise as thoughts
// and on stderr.
func (e *editor) notes(face *acp.Face) event.Sink {
	place := e.greeting.Capabilities.Session.Notices != nil
	return event.SinkFunc(func(_ context.Context, r event.Record) error {
		n, ok := r.Event.(event.Notice)
		switch {
		case !ok || n.Level == event.Info || n.Text == "":
			return nil
		case place:
			return face.Warn(e.inv.words.Said(n.Text), n.Level != event.Warn)
		}
		e.inv.warn(n.Text)
		return face.Aside(e.inv.words.Said(n.Text))
	})
}

// prompt queues the user's message.
func (e *editor) prompt(m acp.Message) error {
	var p acp.Prompt
	s, err := e.find(m, &p)
	if err != nil {
		return err
	}
	said, err := p.Said(s.app.Root)
	if err == nil {
		err = checkPrompt(said.Text())
	}
	if err == nil {
		s.asked.Add(1)
		s.Add(drive.Message{Said: said, ID: string(m.ID)})
	}
	return err
}

// stop stops the running turn and the waiting ones.
func (s *edited) stop() error {
	for _, waited := range s.Drop() {
		if err := s.reply(waited, "cancelled", nil); err != nil {
			return err
		}
	}
	s.Interrupt()
	return nil
}

// end closes a session, which can be loaded again.
func (e *editor) end(m acp.Message) error {
	var p acp.Selection
	s, err := e.find(m, &p)
	if err != nil {
		return err
	}
	if err := s.stop(); err != nil {
		return err
	}
	return e.shut(p.Session, s)
}

// shut closes a session once nothing in it is running.
func (e *editor) shut(id string, s *edited) error {
	s.Finish()
	<-s.ended
	delete(e.sessions, id)
	return e.inv.closed(s.Close(context.WithoutCancel(e.life)))
}

// mostListed is the most sessions sent to an editor.
const mostListed = 100

// list returns the sessions in a folder, or in all of them, newest first.
func (e *editor) list(ctx context.Context, m acp.Message) (any, error) {
	var p acp.Open
	if err := m.Into(&p); err != nil {
		return nil, err
	}
	a, err := e.newApp("", p)
	if err != nil {
		return nil, asError(err)
	}
	apps := []*app.Workspace{a}
	if p.Dir == "" {
		apps = nil
		for _, root := range a.Workspaces() {
			if a, err := e.newApp("", acp.Open{Dir: root}); err == nil { // an unusable folder is left out
				apps = append(apps, a)
			}
		}
	}
	all := []acp.Session{}
	for _, a := range apps {
		heads, err := a.Store().Heads(ctx)
		if err != nil && p.Dir != "" {
			return nil, asError(err)
		}
		for _, h := range heads {
			all = append(all, acp.Session{ID: h.ID, Dir: a.Root, Title: h.Meta.Title, Updated: h.Updated.UTC().Format(time.RFC3339)})
		}
	}
	slices.SortStableFunc(all, func(a, b acp.Session) int { return strings.Compare(b.Updated, a.Updated) })
	return acp.Listed{Sessions: all[:min(len(all), mostListed)]}, nil
}

// replay sends the editor the earlier conversation.
func (s *edited) replay(ctx context.Context) error {
	s.face.Replay = true
	defer func() { s.face.Replay = false }()
	told := newSeen(s.face)
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

// turn runs one prompt and answers it.
func (s *edited) turn(ctx context.Context, m drive.Message) error {
	model := s.app.ModelName()
	_, err := s.do(ctx, m.Said)
	if s.app.ModelName() != model {
		current, _ := s.app.Modes.Current()
		if err := s.offer(current.Name); err != nil {
			return err
		}
	}
	var (
		command *orchestrator.CommandError
		fails   *provider.Error
	)
	switch {
	case err == nil, errors.As(err, &command): // the command has reported its error
		return s.reply(m, "end_turn", nil)
	case ctx.Err() != nil, errors.Is(err, toolrun.ErrRefused):
		return s.reply(m, "cancelled", nil)
	case errors.Is(err, orchestrator.ErrStepLimit):
		return s.reply(m, "max_turn_requests", nil)
	case errors.Is(err, provider.ErrAuth):
		return s.reply(m, "", &acp.Error{Code: acp.CodeAuth, Message: message(err)})
	case errors.As(err, &fails):
		return s.reply(m, "", &acp.Error{Code: acp.CodeInternal, Message: message(err), Data: fails.Error()})
	}
	return s.reply(m, "", asError(err))
}

func (s *edited) reply(m drive.Message, stop string, err error) error {
	s.asked.Add(-1) // a client with the answer may continue immediately
	return s.conn.Reply(json.RawMessage(m.ID), map[string]string{"stopReason": stop}, err)
}

// asError converts an error to the protocol's form.
func asError(err error) error {
	code := acp.CodeInternal
	switch {
	case errors.Is(err, session.ErrNotFound):
		code = acp.CodeUnknown
	case ExitCode(err) == ExitInput:
		code = acp.CodeParams
	}
	return &acp.Error{Code: code, Message: message(err)}
}
