package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"

	"coder/internal/agent/hooks"
	"coder/internal/agent/subagent"
	"coder/internal/app"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/host/stdio"
	"coder/internal/serve"
	"coder/internal/tool/dialect"
	"coder/internal/ui/control"
	"coder/internal/ui/drive"
	"coder/internal/ui/streamjson"
)

// maxLineBytes is the longest line accepted from a program: pictures are sent on one line.
const maxLineBytes = 64 << 20

// drivenSession is a session that a program drives by lines: its messages, requests and answers come on stdin,
// everything else goes to stdout.
type drivenSession struct {
	invocation        *invocation
	app               *app.Workspace
	renderer          *streamjson.Renderer
	agentNames        []string // agents for subtasks, and in about their descriptions
	agentDescriptions []string
	channel           control.Channel
	done              chan error      // the result of the work; nil before the session is open
	heldMessages      []drive.Message // messages to join with the next one
	turnErr           error           // the first turn that failed
	parseErr          error           // the first unreadable line
	cancel            context.CancelFunc

	usedTokens, maxTokens atomic.Int64      // tokens of the window, as last reported
	dontAsk               atomic.Bool       // refuse what needs approval
	busy                  atomic.Bool       // a turn is running or its result is not sent
	pendingRewinds        atomic.Int64      // rewind requests that wait in the queue
	messageID             string            // the program's id of the turn's message
	messageSeqs           map[string]uint64 // records of messages by the program's ids
	set                   programSettings
	reopening             atomic.Bool // the end of the queue is not the end of the program

	headless // the session, once it is open
}

// runDriven serves a driving program until it sends no more and everything sent is done.
func (inv *invocation) runDriven(ctx context.Context) error {
	inv.shutdown.isDriven.Store(true)
	for _, name := range inv.flags.ignoredFlags {
		inv.warn(fmt.Sprintf("flag ignored: %s", singleLine(name)))
	}
	reading, over := context.WithCancel(ctx)
	defer over()
	d := &drivenSession{invocation: inv, cancel: over, messageSeqs: make(map[string]uint64)}
	d.renderer = streamjson.New(inv.Stdout, streamjson.Options{Now: inv.Now, Partial: inv.flags.partialMessages,
		Driver: &streamjson.DriverOptions{
			ConvertCall: func(name string, args json.RawMessage) (string, json.RawMessage) {
				return dialect.ToExternal(name, args, d.channel.Root)
			},
			ConvertMode: d.toForeignMode, SessionInfo: d.currentFacts, Echo: inv.flags.echoMessages,
		}})
	d.dontAsk.Store(inv.flags.dontAsk)
	d.channel.WriteLine, d.channel.ApplyUpdate = d.renderer.WriteLine, d.applyUpdate
	d.channel.DecidesCalls.Store(inv.flags.approver == "stdio" && !inv.flags.dontAsk)
	readErr := d.readLines(reading)
	if reading.Err() != nil && ctx.Err() == nil {
		readErr = nil // the queue ended first, and has the error
	}
	d.channel.Close()
	if d.done == nil {
		if readErr = cmp.Or(readErr, d.parseErr); readErr == nil && inv.flags.print {
			return inputErrorf("no message on stdin; each is a line like %s", messageExample)
		}
		return readErr
	}
	d.Finish()
	err := errors.Join(readErr, <-d.done)
	err = errors.Join(err, d.invocation.recordClose(d.Close(ctx)))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil && inv.flags.print {
		err = d.turnErr
	}
	return cmp.Or(err, d.parseErr)
}

// readLines handles lines until the input ends. An unreadable line is answered with an error: the session and
// its open question continue.
func (d *drivenSession) readLines(ctx context.Context) error {
	for n := 0; ; {
		line, wrong, err := nextLine[control.Line](ctx, d.invocation.stdin, &n)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err == nil && wrong == nil && line.Type == "":
			wrong = errors.New("not a JSON object like " + messageExample)
		}
		if err == nil && wrong == nil {
			err = d.handleLine(ctx, line)
		}
		if wrong != nil {
			said := inputErrorf("stdin, line %d: %v", n, wrong)
			d.parseErr = cmp.Or(d.parseErr, error(&exitError{code: ExitCode(said)}))
			d.invocation.warnError(said)
			err = d.channel.Reply(nil, nil, said)
		}
		if err != nil {
			return err
		}
	}
}

// nextLine returns the next nonempty line and sets n to its number. A line that is not JSON of this type
// returns a zero value; wrong reports one that is too long.
func nextLine[T any](ctx context.Context, in *stdio.Reader, n *int) (line T, wrong, err error) {
	text := ""
	for strings.TrimSpace(text) == "" && err == nil {
		*n++
		text, err = in.ReadLine(ctx, maxLineBytes)
	}
	switch {
	case errors.Is(err, stdio.ErrTooLong):
		return line, message.Errorf("longer than %d MiB", maxLineBytes>>20), nil
	case err != nil:
		return line, nil, err
	case json.Unmarshal([]byte(strings.TrimPrefix(text, "\ufeff")), &line) != nil:
		return *new(T), nil, nil // discard a partial line
	}
	return line, nil, nil
}

// handleLine handles one line.
func (d *drivenSession) handleLine(ctx context.Context, line control.Line) error {
	switch line.Type {
	case "control_request":
		return d.handleRequest(ctx, line)
	case "control_response":
		if err := d.channel.HandleResponse(line); err != nil {
			return d.channel.Reply(nil, nil, err)
		}
	case "user":
		m, err := line.ToMessage()
		if err == nil {
			err = checkPrompt(m.Text())
		}
		if err := d.openSession(ctx, nil); err != nil {
			return err
		}
		if err != nil {
			d.rejectMessage(errorMessage(err).String())
			return nil
		}
		if line.ShouldQuery != nil && !*line.ShouldQuery {
			d.heldMessages = append(d.heldMessages, m)
			return nil
		}
		for _, h := range d.heldMessages {
			m.UserText = slices.Concat(h.UserText, chat.NewUserText(chat.OriginComposed, "\n\n"), m.UserText).Trim()
			m.Pictures = append(h.Pictures, m.Pictures...)
		}
		if d.heldMessages = nil; strings.TrimSpace(m.Text()) == "" && len(m.Pictures) == 0 {
			d.rejectMessage("the message has no text")
			return nil
		}
		d.Add(m)
	case "keep_alive", "control_cancel_request": // no request here takes long enough to be canceled
	default:
		d.invocation.warn(fmt.Sprintf("skipped: a line of type %s", singleLine(line.Type)))
	}
	return nil
}

// initialization is a program's first request.
type initialization struct {
	Hooks        map[string][]hooks.CallbackGroup `json:"hooks"`
	Servers      []string                         `json:"sdkMcpServers"`
	SystemPrompt json.RawMessage                  `json:"systemPrompt"` // a text, or a list of texts
	Append       string                           `json:"appendSystemPrompt"`
	Schema       json.RawMessage                  `json:"jsonSchema"`
	Agents       map[string]json.RawMessage       `json:"agents"`
}

// initialize opens the session with the program's settings, and sends the session's facts.
func (d *drivenSession) initialize(ctx context.Context, line control.Line) error {
	var init initialization
	err := json.Unmarshal(line.Request, &init)
	if err != nil {
		return d.channel.Reply(line.RequestID, nil, invalidRequestError(err))
	}
	if d.done != nil {
		return d.channel.Reply(line.RequestID, nil, errors.New("the session is already open"))
	}
	if err := d.openSession(ctx, &init); err != nil {
		return errors.Join(d.channel.Reply(line.RequestID, nil, errors.New(errorMessage(err).String())), err)
	}
	return d.channel.Reply(line.RequestID, d.sessionFacts(init), nil)
}

// openSession opens the session, once.
func (d *drivenSession) openSession(ctx context.Context, init *initialization) error {
	if d.done != nil {
		return nil
	}
	fl := d.invocation.flags
	fl.NoYolo = !fl.allowBypass
	if init != nil {
		if err := d.applyInit(init); err != nil {
			return err
		}
	}
	fl.Driver.Callback, fl.Driver.Relay = d.channel.RunHook, d.channel.Relay
	a, err := d.invocation.newApp(d.invocation.warn)
	if err != nil {
		return err
	}
	d.app, d.channel.Root = a, a.Root
	d.agentNames, d.agentDescriptions = a.Agents()
	d.out = &output{invocation: d.invocation, json: d.renderer}
	if fl.Schema != nil {
		d.out.structured = a.StructuredAnswer
	}
	d.out.Sink = event.Tee(event.SinkFunc(d.out.countRecord), d.renderer, event.SinkFunc(d.handleEvent))
	if err := d.invocation.openSession(ctx, a, &d.headless,
		serve.Options{Which: fl.session, User: d.channel.Interactor()}); err != nil {
		return err
	}
	d.done = make(chan error, 1)
	go func() { // runDriven waits for it
		err := d.RunQueue(ctx, d.runTurn)
		if d.Ended() {
			err = nil // the program requested the end
		}
		if !d.reopening.Load() {
			d.cancel()
		}
		d.done <- err
	}()
	return nil
}

// applyInit applies the program's settings.
func (d *drivenSession) applyInit(init *initialization) error {
	o := &d.invocation.flags.Options
	list, skipped, err := hooks.ParseCallbacks(init.Hooks)
	if err != nil {
		return inputErrorf("initialize: %v", err)
	}
	for _, s := range skipped {
		d.invocation.warn(s)
	}
	if o.Driver.Agents, err = subagent.ParseDefinitions(init.Agents); err != nil {
		return inputErrorf("initialize: %v", err)
	}
	o.Driver.Hooks, o.Driver.Servers = append(o.Driver.Hooks, list...), init.Servers
	var texts []string
	if json.Unmarshal(init.SystemPrompt, &texts) != nil {
		var one string
		_ = json.Unmarshal(init.SystemPrompt, &one) // neither form: ignored
		texts = []string{one}
	}
	o.SystemPrompt = cmp.Or(strings.TrimSpace(strings.Join(texts, "\n\n")), o.SystemPrompt)
	o.AppendSystem = cmp.Or(init.Append, o.AppendSystem)
	if len(init.Schema) > 0 && string(init.Schema) != "null" {
		o.Schema = init.Schema
	}
	return nil
}

// sessionFacts returns the facts of the session.
func (d *drivenSession) sessionFacts(init initialization) any {
	type model struct {
		Value string `json:"value"`
		Name  string `json:"displayName"`
		About string `json:"description"`
	}
	commands, agents := d.named()
	styles, style := d.app.OutputStyles()
	models := []model{{"default", d.app.ModelName(), "the model from the settings"}}
	for _, name := range d.app.KnownModels() {
		models = append(models, model{name, name, ""})
	}
	return map[string]any{
		"commands": commands, "agents": agents, "models": models, "account": map[string]any{}, "output_style": style,
		"available_output_styles": styles, "hooks_applied": len(init.Hooks) > 0, "hook_on_failure_supported": true,
	}
}

// rejectMessage answers a message with an error, in its turn: the sender waits for a result.
func (d *drivenSession) rejectMessage(why string) {
	d.Add(drive.Message{Action: func(ctx context.Context) error {
		return d.reportTurn(ctx, func() (string, error) { return "", inputErrorf("%s", why) })
	}})
}

// runTurn runs one message.
func (d *drivenSession) runTurn(ctx context.Context, m drive.Message) error {
	d.busy.Store(true)
	return d.reportTurn(ctx, func() (string, error) {
		defer d.busy.Store(false) // before the result is sent: a request may follow at once
		d.messageID = m.ID
		did, err := d.runInput(ctx, m.Input)
		return did.Text, err
	})
}

// reportTurn reports a turn's start and its result.
func (d *drivenSession) reportTurn(ctx context.Context, run func() (string, error)) error {
	d.out.beginTurn()
	if err := d.renderer.Begin(); err != nil {
		return err
	}
	answer, err := run()
	if err := d.renderer.Finish(ctx, d.out.turnOutcome(answer, err)); err != nil {
		return err
	}
	if n := len(d.out.tally.Denials); err == nil && n > 0 {
		err = &exitError{code: ExitDenied, text: d.out.deniedMessage(n)}
	}
	if err != nil {
		if d.invocation.flags.print {
			printError(d.invocation.Stderr, d.invocation.printer.Translate(errorMessage(err)), 0)
		}
		d.turnErr = cmp.Or(d.turnErr, error(&exitError{code: ExitCode(err)}))
	}
	if d.Ended() {
		d.cancel()
	}
	return nil
}

// handleEvent processes events that no line reports.
func (d *drivenSession) handleEvent(_ context.Context, r event.Record) error {
	switch e := r.Event.(type) {
	case event.MessageAdded:
		if e.Message.Role == chat.User && d.messageID != "" && r.Seq > 0 {
			d.messageSeqs[d.messageID], d.messageID = r.Seq, ""
		}
	case event.ContextUsed:
		d.usedTokens.Store(int64(e.Used))
		d.maxTokens.Store(int64(e.Max))
	case event.Notice:
		if e.Level != event.LevelInfo {
			d.invocation.warn(e.Text)
		}
	}
	return nil
}

// currentFacts returns the session's current facts.
func (d *drivenSession) currentFacts() streamjson.SessionInfo {
	s := d.Session()
	m, _ := d.app.ModeState.Current()
	_, style := d.app.OutputStyles()
	f := streamjson.SessionInfo{Style: style, Model: d.app.ModelName(), Mode: m.Name, Tools: s.Tools(),
		Version: app.Version}
	for _, c := range s.Commands() {
		f.Commands = append(f.Commands, c.Name)
	}
	f.Agents, f.Skills = d.agentNames, d.app.Skills()
	f.Servers = streamServers(d.Inside().MCPStatus())
	return f
}

type serverLine struct {
	Name   string     `json:"name"`
	Status string     `json:"status"`
	Error  string     `json:"error,omitempty"`
	Tools  []toolLine `json:"tools"`
}

type toolLine struct {
	Name  string `json:"name"`
	About string `json:"description"`
}
