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
	"coder/internal/host/stdio"
	"coder/internal/serve"
	"coder/internal/tool/dialect"
	"coder/internal/ui/control"
	"coder/internal/ui/drive"
	"coder/internal/ui/streamjson"
)

// lineLimit is the longest line accepted from a program: pictures are sent on one line.
const lineLimit = 64 << 20

// driven is a session that a program drives by lines: its messages, requests and answers come on stdin,
// everything else goes to stdout.
type driven struct {
	inv     *invocation
	app     *app.Workspace
	lines   *streamjson.Renderer
	agents  []string // agents for subtasks, and in about their descriptions
	about   []string
	channel control.Channel
	serving chan error      // the result of the work; nil before the session is open
	held    []drive.Message // messages to join with the next one
	failed  error           // the first turn that failed
	garbled error           // the first unreadable line
	over    context.CancelFunc

	used, most atomic.Int64      // tokens of the window, as last reported
	dontAsk    atomic.Bool       // refuse what needs approval
	busy       atomic.Bool       // a turn is running or its result is not sent
	rewinds    atomic.Int64      // rewind requests that wait in the queue
	asked      string            // the program's id of the turn's message
	seqs       map[string]uint64 // records of messages by the program's ids
	set        programSettings
	reopening  atomic.Bool // the end of the queue is not the end of the program

	headless // the session, once it is open
}

// runDriven serves a driving program until it sends no more and everything sent is done.
func (inv *invocation) runDriven(ctx context.Context) error {
	inv.exit.driven.Store(true)
	for _, name := range inv.flags.passedOver {
		inv.warn(fmt.Sprintf("flag ignored: %s", oneLine(name)))
	}
	reading, over := context.WithCancel(ctx)
	defer over()
	d := &driven{inv: inv, over: over, seqs: make(map[string]uint64)}
	d.lines = streamjson.New(inv.Stdout, streamjson.Options{Now: inv.Now, Partial: inv.flags.partial, Driven: &streamjson.Driven{
		Tool: func(name string, args json.RawMessage) (string, json.RawMessage) {
			return dialect.Outward(name, args, d.channel.Root)
		},
		Mode: d.outwardMode, Facts: d.facts, Echo: inv.flags.echo,
	}})
	d.dontAsk.Store(inv.flags.dontAsk)
	d.channel.Put, d.channel.Change = d.lines.Put, d.change
	d.channel.Asks.Store(inv.flags.decides == "stdio" && !inv.flags.dontAsk)
	readErr := d.read(reading)
	if reading.Err() != nil && ctx.Err() == nil {
		readErr = nil // the queue ended first, and has the error
	}
	d.channel.Close()
	if d.serving == nil {
		if readErr = cmp.Or(readErr, d.garbled); readErr == nil && inv.flags.print {
			return inputf("no message on stdin; each is a line like %s", messageForm)
		}
		return readErr
	}
	d.Finish()
	err := errors.Join(readErr, <-d.serving)
	err = errors.Join(err, d.inv.closed(d.Close(ctx)))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil && inv.flags.print {
		err = d.failed
	}
	return cmp.Or(err, d.garbled)
}

// read handles lines until the input ends. An unreadable line is answered with an error: the session and
// its open question continue.
func (d *driven) read(ctx context.Context) error {
	for n := 0; ; {
		line, wrong, err := nextLine[control.Line](ctx, d.inv.input, &n)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err == nil && wrong == nil && line.Type == "":
			wrong = errors.New("not a JSON object like " + messageForm)
		}
		if err == nil && wrong == nil {
			err = d.take(ctx, line)
		}
		if wrong != nil {
			said := inputf("stdin, line %d: %v", n, wrong)
			d.garbled = cmp.Or(d.garbled, error(&exitError{code: ExitCode(said)}))
			d.inv.warn(message(said))
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
		text, err = in.Line(ctx, lineLimit)
	}
	switch {
	case errors.Is(err, stdio.ErrTooLong):
		return line, fmt.Errorf("it is longer than %d MiB", lineLimit>>20), nil
	case err != nil:
		return line, nil, err
	case json.Unmarshal([]byte(strings.TrimPrefix(text, "\ufeff")), &line) != nil:
		return *new(T), nil, nil // discard a partial line
	}
	return line, nil, nil
}

// take handles one line.
func (d *driven) take(ctx context.Context, line control.Line) error {
	switch line.Type {
	case "control_request":
		return d.request(ctx, line)
	case "control_response":
		if err := d.channel.Answer(line); err != nil {
			return d.channel.Reply(nil, nil, err)
		}
	case "user":
		m, err := line.Said()
		if err == nil {
			err = checkPrompt(m.Text())
		}
		if err := d.open(ctx, nil); err != nil {
			return err
		}
		if err != nil {
			d.refuse(message(err))
			return nil
		}
		if line.ShouldQuery != nil && !*line.ShouldQuery {
			d.held = append(d.held, m)
			return nil
		}
		for _, h := range d.held {
			m.Words = slices.Concat(h.Words, chat.From(chat.Composed, "\n\n"), m.Words).Trim()
			m.Pictures = append(h.Pictures, m.Pictures...)
		}
		if d.held = nil; strings.TrimSpace(m.Text()) == "" && len(m.Pictures) == 0 {
			d.refuse("the message has no text")
			return nil
		}
		d.Add(m)
	case "keep_alive", "control_cancel_request": // no request here takes long enough to be canceled
	default:
		d.inv.warn(fmt.Sprintf("skipped: a line of type %s", oneLine(line.Type)))
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
func (d *driven) initialize(ctx context.Context, line control.Line) error {
	var init initialization
	err := json.Unmarshal(line.Request, &init)
	if err != nil {
		return d.channel.Reply(line.RequestID, nil, unreadable(err))
	}
	if d.serving != nil {
		return d.channel.Reply(line.RequestID, nil, errors.New("the session is already open"))
	}
	if err := d.open(ctx, &init); err != nil {
		return errors.Join(d.channel.Reply(line.RequestID, nil, errors.New(message(err))), err)
	}
	return d.channel.Reply(line.RequestID, d.greeting(init), nil)
}

// open opens the session, once.
func (d *driven) open(ctx context.Context, init *initialization) error {
	if d.serving != nil {
		return nil
	}
	fl := d.inv.flags
	fl.NoYolo = !fl.mayBypass
	if init != nil {
		if err := d.adopt(init); err != nil {
			return err
		}
	}
	fl.Driver.Callback, fl.Driver.Relay = d.channel.Hook, d.channel.Relay
	a, err := d.inv.newApp(d.inv.warn)
	if err != nil {
		return err
	}
	d.app, d.channel.Root = a, a.Root
	d.agents, d.about = a.Agents()
	d.out = &output{inv: d.inv, json: d.lines}
	if fl.Schema != nil {
		d.out.structured = a.Structured
	}
	d.out.Sink = event.Tee(event.SinkFunc(d.out.count), d.lines, event.SinkFunc(d.note))
	if err := d.inv.open(ctx, a, &d.headless, serve.Options{Which: fl.session, Person: d.channel.Person()}); err != nil {
		return err
	}
	d.serving = make(chan error, 1)
	go func() { // runDriven waits for it
		err := d.Serve(ctx, d.turn)
		if d.Over() {
			err = nil // the program requested the end
		}
		if !d.reopening.Load() {
			d.over()
		}
		d.serving <- err
	}()
	return nil
}

// adopt applies the program's settings.
func (d *driven) adopt(init *initialization) error {
	o := &d.inv.flags.Options
	list, skipped, err := hooks.Callbacks(init.Hooks)
	if err != nil {
		return inputf("initialize: %v", err)
	}
	for _, s := range skipped {
		d.inv.warn(s)
	}
	if o.Driver.Agents, err = subagent.Given(init.Agents); err != nil {
		return inputf("initialize: %v", err)
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

// greeting returns the facts of the session.
func (d *driven) greeting(init initialization) any {
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

// refuse answers a message with an error, in its turn: the sender waits for a result.
func (d *driven) refuse(why string) {
	d.Add(drive.Message{Do: func(ctx context.Context) error {
		return d.tell(ctx, func() (string, error) { return "", inputf("%s", why) })
	}})
}

// turn runs one message.
func (d *driven) turn(ctx context.Context, m drive.Message) error {
	d.busy.Store(true)
	return d.tell(ctx, func() (string, error) {
		defer d.busy.Store(false) // before the result is sent: a request may follow at once
		d.asked = m.ID
		did, err := d.do(ctx, m.Said)
		return did.Text, err
	})
}

// tell reports a turn's start and its result.
func (d *driven) tell(ctx context.Context, run func() (string, error)) error {
	d.out.begin()
	if err := d.lines.Begin(); err != nil {
		return err
	}
	answer, err := run()
	if err := d.lines.Finish(ctx, d.out.outcome(answer, err)); err != nil {
		return err
	}
	if n := len(d.out.tally.Denials); err == nil && n > 0 {
		err = &exitError{code: ExitRefused, text: d.out.refused(n)}
	}
	if err != nil {
		if d.inv.flags.print {
			complain(d.inv.Stderr, d.inv.words.Said(message(err)), 0)
		}
		d.failed = cmp.Or(d.failed, error(&exitError{code: ExitCode(err)}))
	}
	if d.Over() {
		d.over()
	}
	return nil
}

// note processes events that no line reports.
func (d *driven) note(_ context.Context, r event.Record) error {
	switch e := r.Event.(type) {
	case event.MessageAdded:
		if e.Message.Role == chat.User && d.asked != "" && r.Seq > 0 {
			d.seqs[d.asked], d.asked = r.Seq, ""
		}
	case event.ContextUsed:
		d.used.Store(int64(e.Used))
		d.most.Store(int64(e.Max))
	case event.Notice:
		if e.Level != event.Info {
			d.inv.warn(e.Text)
		}
	}
	return nil
}

// facts returns the session's current facts.
func (d *driven) facts() streamjson.Facts {
	s := d.Session()
	m, _ := d.app.Modes.Current()
	_, style := d.app.OutputStyles()
	f := streamjson.Facts{Style: style, Model: d.app.ModelName(), Mode: m.Name, Tools: s.Tools(), Version: app.Version}
	for _, c := range s.Commands() {
		f.Commands = append(f.Commands, c.Name)
	}
	f.Agents, f.Skills = d.agents, d.app.Skills()
	f.Servers = initServers(d.Inside().MCPStatus())
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
