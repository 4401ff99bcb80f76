package browser

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/uip"
)

// entry is a record in the timeline. The result of a call and the answer to a question are shown with
// it, if recorded.
type entry struct {
	kind string // CSS class for colors
	key  string // other entries may belong to it
	into string // key of the entry that it belongs to
	body markup
}

// entry renders a record; an entry without a body is not shown.
func (p *page) entry(r event.Record, whole bool) entry {
	switch e := r.Event.(type) {
	case event.MessageAdded:
		return p.message(r, e, whole)
	case event.LocalAdded:
		return entry{kind: "local", body: join(p.head(p.t("Command"), r), el("p", el("code", e.Input)), p.blocks(e.Shown()))}
	case event.ToolCallRequested:
		return p.call(r, e, whole)
	case event.ToolCallCompleted:
		return p.outcome(r, e, whole)
	case event.InteractionRequested:
		p.knows(e.Request)
		return entry{kind: "asked", key: "question:" + e.ID, body: join(p.head(p.t("Question"), r), el("details", set("open", whole), el("summary", p.questionTitle(e.Request)), p.asked(e.Request)))}
	case event.InteractionResponded:
		return entry{kind: "answered", into: "question:" + e.ID, body: el("p", class("answer"), p.given(p.asks[e.ID], e.Response), " ", p.when(r.Time))}
	case event.TodosChanged:
		return entry{kind: "note", body: el("details", el("summary", p.t("Todos"), " ", p.when(r.Time)), checklist(checks(e.Todos)))}
	}
	if text := p.note(r.Event); text != "" {
		return entry{kind: "note", body: el("p", class("dim"), text, " ", p.when(r.Time))}
	}
	return entry{}
}

// knows saves questions, so that their answers can be described.
func (p *page) knows(all ...uip.Request) {
	if p.asks == nil {
		p.asks = make(map[string]uip.Request)
	}
	for _, q := range all {
		p.asks[q.ID] = q
	}
}

// note renders a record as one line.
func (p *page) note(e event.Event) string {
	switch e := e.(type) {
	case event.TaskCreated:
		if e.ParentID != "" {
			return p.t("subtask of %s: %s", line(e.AgentID), line(e.Title))
		}
	case event.TaskCompleted:
		return p.t("done")
	case event.TaskFailed:
		return p.t("failed: %s", p.words.Said(e.Reason))
	case event.TaskCanceled:
		return p.t("stopped: %s", p.words.Said(e.Reason))
	case event.ModeChanged:
		return p.t("mode: %s", strings.TrimSpace(e.Mode+" "+e.Preset))
	case event.ContextReplaced:
		return cmp.Or(p.words.Said(e.Done), p.t("the conversation was shortened"))
	case event.ContextRestored, event.ContextRewound:
		return p.t("the conversation was rewound")
	case event.Unknown:
		return p.t("a record of an unknown version: %s", line(e.Type))
	}
	return ""
}

// head renders the speaker and the time.
func (p *page) head(name string, r event.Record) markup {
	return el("h3", name, " ", p.when(r.Time), " ", el("a", class("seq"), attr{"href", p.of("replay", "at", decimal(r.Seq))}, "#"+decimal(r.Seq)))
}

func (p *page) message(r event.Record, e event.MessageAdded, whole bool) entry {
	m := e.Message
	switch {
	case event.ByPerson(r):
		return entry{kind: "user", body: join(p.head(p.t("You"), r), p.said(m.Text(), whole, r.Seq), p.pictures(m))}
	case m.Role == chat.Assistant && e.Model == "" && e.Blocks != nil: // the output of the user's own command
		body := p.long(m.Text(), whole, r.Seq)
		if s, ok := e.Blocks[0].(display.Shell); ok && s.Terminal {
			body = join(p.blocks(e.Blocks))
		}
		return entry{kind: "local", body: join(p.head(p.t("Command"), r), body)}
	case m.Role == chat.Assistant:
		var parts []any
		for _, part := range m.Parts {
			if t, ok := part.(chat.Reasoning); ok && t.Text != "" {
				parts = append(parts, el("details", el("summary", p.t("Thinking")), p.long(t.Text, whole, r.Seq)))
			}
		}
		if said := m.Text(); strings.TrimSpace(said) != "" {
			parts = append(parts, p.said(said, whole, r.Seq))
		}
		if e.Interrupted {
			parts = append(parts, el("p", class("failed"), p.t("(interrupted)")))
		}
		if len(parts) == 0 {
			return entry{}
		}
		return entry{kind: "reply", body: join(append([]any{p.head(cmp.Or(line(e.Model), p.t("The model")), r)}, parts...)...)}
	}
	return entry{}
}

// saidText is the most bytes of a message in a list.
const saidText = 64 << 10

func (p *page) said(s string, whole bool, seq uint64) markup {
	if len(s) > saidText && !whole {
		return p.long(s, false, seq)
	}
	return prose(s)
}

func (p *page) pictures(m chat.Message) markup {
	n := 0
	for _, part := range m.Parts {
		if _, ok := part.(chat.Image); ok {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return el("p", class("dim"), p.t(display.Form(n, "%d image", "%d images"), n))
}

func (p *page) call(r event.Record, e event.ToolCallRequested, whole bool) entry {
	var why []markup
	if e.Verdict != event.Allowed || e.DecidedBy != "" {
		why = append(why, el("span", class("dim"), " ", line(p.words.Said(e.Ruling()))))
	}
	if e.Author == event.ActorVerifier {
		why = append(why, el("span", class("dim"), " ", p.t("Check of the edits")))
	}
	var reasons []markup
	for _, reason := range e.Reasons {
		reasons = append(reasons, el("p", class("dim"), p.words.Said(reason)))
	}
	return entry{kind: "call", key: "call:" + e.CallID, body: el("details", set("open", whole),
		el("summary", el("strong", e.Tool), " ", el("code", line(strings.Join(event.Targets(e.Effects), ", "))), why, " ", p.when(r.Time), " ",
			el("a", class("seq"), attr{"href", p.of("replay", "at", decimal(r.Seq))}, "#"+decimal(r.Seq))),
		reasons, p.fields(e.Input, whole, r.Seq))}
}

func (p *page) outcome(r event.Record, e event.ToolCallCompleted, whole bool) entry {
	state, name := p.t("done"), "ok"
	switch {
	case e.Unknown:
		state, name = p.t("outcome unknown"), "failed"
	case e.IsError:
		state, name = p.t("failed"), "failed"
	}
	var out struct {
		ExitCode *int   `json:"exit_code"`
		Error    string `json:"error"`
		Diff     string `json:"diff"`
	}
	_ = json.Unmarshal(e.Output, &out) // missing fields are not shown
	about := out.Error
	if out.ExitCode != nil {
		about = p.t("exit code %d", *out.ExitCode)
	}
	body := []any{el("p", class("outcome "+name), state, " ", el("span", class("dim"),
		display.Duration(time.Duration(e.DurationMs)*time.Millisecond), " ", p.words.Said(line(about))))}
	if out.Diff != "" {
		body = append(body, diffs(out.Diff))
	} else {
		body = append(body, el("details", set("open", whole), el("summary", p.t("Output")), p.fields(e.Output, whole, r.Seq)))
	}
	return entry{kind: "call", into: "call:" + e.CallID, body: join(body...)}
}

func checks(todos []event.Todo) (all display.Checklist) {
	for _, t := range todos {
		all = append(all, display.Check{State: display.State(t.Status), Text: line(t.Content)})
	}
	return all
}

// item renders an entry with the entries that belong to it.
func item(seq uint64, e entry, more ...markup) markup {
	return el("li", class(e.kind), attr{"id", "r" + decimal(seq)}, attr{"data-key", e.key}, attr{"data-into", e.into}, e.body, more)
}

// items renders the entries of records, each with those that belong to it.
func (p *page) items(records []event.Record) (list []markup) {
	var entries []entry
	var seqs []uint64
	more := make(map[string][]markup)
	for _, r := range records {
		switch r.Event.(type) {
		case event.TaskCompleted, event.TaskFailed, event.TaskCanceled:
			for _, e := range entries {
				if id, ok := strings.CutPrefix(e.key, "question:"); ok && len(more[e.key]) == 0 && p.asks[id].TaskID == r.Task {
					more[e.key] = append(more[e.key], el("p", class("answer"), p.t("Answer"), ": ", p.t("(none: stopped first)")))
				}
			}
		}
		e := p.entry(r, false)
		if e.body == "" {
			continue
		}
		if e.into != "" && slices.ContainsFunc(entries, func(o entry) bool { return o.key == e.into }) {
			more[e.into] = append(more[e.into], e.body)
			continue
		}
		if e.into != "" && len(entries) == 0 && r.Seq > 1 {
			continue // its call is on the page before, and so is this
		}
		entries, seqs = append(entries, e), append(seqs, r.Seq)
	}
	for i, e := range entries {
		list = append(list, item(seqs[i], e, more[e.key]...))
	}
	return list
}

// view is the state of a session after the records read so far.
type view struct {
	last  uint64
	title string
	mode  string
	todos []event.Todo
	open  []uip.Request
	turn  string // the current task
}

func (v *view) add(r event.Record) {
	v.last = r.Seq
	ended := func(id string) {
		if v.turn == id {
			v.turn = ""
		}
		v.open = slices.DeleteFunc(v.open, func(q uip.Request) bool { return q.TaskID == id })
	}
	switch e := r.Event.(type) {
	case event.TaskCreated:
		if e.ParentID == "" {
			v.title, v.turn = cmp.Or(v.title, e.Title), e.TaskID
		}
	case event.ModeChanged:
		v.mode = e.Mode
	case event.TodosChanged:
		v.todos = e.Todos
	case event.InteractionRequested:
		v.open = append(v.open, e.Request)
	case event.InteractionResponded:
		v.open = slices.DeleteFunc(v.open, func(q uip.Request) bool { return q.ID == e.ID })
	case event.TaskCompleted:
		ended(e.TaskID)
	case event.TaskFailed:
		ended(e.TaskID)
	case event.TaskCanceled:
		ended(e.TaskID)
	}
}

// clone returns a copy of v that shares nothing mutable.
func (v view) clone() view {
	v.open, v.todos = slices.Clone(v.open), slices.Clone(v.todos)
	return v
}

// mostShown is the most records on a page.
const mostShown = 200

// read reads a session up to a record, 0 for all, and returns the newest records.
func (s *Server) read(ctx context.Context, place Place, upTo uint64) (v view, newest []event.Record, err error) {
	if v, newest, ok := s.followed(place); ok && upTo == 0 {
		return v, newest, nil
	}
	for r, err := range s.Records(ctx, place, 0) {
		if err != nil {
			return v, newest, err
		}
		v.add(r)
		if upTo > 0 && r.Seq > upTo {
			continue
		}
		if len(newest) == 2*mostShown {
			newest = slices.Delete(newest, 0, mostShown)
		}
		newest = append(newest, r)
	}
	return v, newest[max(0, len(newest)-mostShown):], ctx.Err()
}

// session renders the timeline.
func (p *page) session() (markup, error) {
	if err := p.find(); err != nil {
		return "", err
	}
	at, err := p.number("at")
	if err != nil {
		return "", err
	}
	upTo := at
	if at > 0 {
		upTo = at + mostShown/2
	}
	v, records, err := p.read(p.r.Context(), p.place, upTo)
	damaged := p.damaged(err)
	if len(records) > 0 && records[len(records)-1].Seq >= v.last {
		upTo = 0 // shows the end
	}
	p.tab, p.title = "Timeline", line(cmp.Or(v.title, p.place.Session))
	earlier := markup("")
	if len(records) > 0 && records[0].Seq > 1 {
		before := max(1, int64(records[0].Seq)-mostShown/2)
		earlier = el("p", el("a", attr{"href", p.of("", "at", decimal(uint64(before)))}, p.t("Earlier")))
	}
	list := []any{attr{"id", "timeline"}, attr{"aria-label", p.t("Timeline")}}
	later := markup("")
	if upTo == 0 {
		list = append(list, attr{"role", "log"}, attr{"data-events", p.of("events")}, attr{"data-after", decimal(v.last)}, attr{"data-lost", p.t("Connection lost; reconnecting.")})
	} else {
		later = el("p", el("a", attr{"href", p.of("")}, p.t("To the end")))
	}
	pulse := p.Pulse(p.place)
	p.waits = len(v.open)
	return join(
		el("h1", p.title),
		el("aside", attr{"id", "state"}, attr{"aria-label", p.t("State")}, p.state(v, pulse)),
		damaged, p.still(), earlier,
		el("ol", append(list, p.items(records))...), later,
		el("pre", attr{"id", "live"}, attr{"aria-live", "off"}, attr{"hidden", ""}),
		el("section", attr{"id", "questions"}, attr{"aria-label", p.t("Open questions")}, attr{"aria-live", "assertive"}, p.questions(v.open)),
		el("p", attr{"id", "connection"}, attr{"role", "status"}),
		el("section", attr{"id", "say"}, attr{"aria-label", p.t("Send a message")}, p.prompt(v, pulse)),
	), nil
}

// state renders who works in the session and the todo list.
func (p *page) state(v view, pulse Pulse) markup {
	who := p.t("not running")
	switch {
	case len(v.open) > 0:
		who = p.t("waiting for your answer")
		if pulse.Holder != "" && !pulse.Ours {
			who = p.t("waiting for your answer, here or in %s", p.words.Said(pulse.Holder))
		}
	case pulse.Busy:
		who = p.t("working here")
	case pulse.Ours:
		who = p.t("waiting here for your message")
	case pulse.Holder != "" && v.turn == "":
		who = p.t("open in %s", p.words.Said(pulse.Holder))
	case pulse.Holder != "":
		who = p.t("working in %s", p.words.Said(pulse.Holder))
	}
	parts := []any{el("p", el("strong", who), " · ", p.t("%d records", v.last), " · ", p.t("mode: %s", cmp.Or(v.mode, "build")))}
	if pulse.Queued > 0 {
		parts = append(parts, el("p", p.t(display.Form(pulse.Queued, "%d message is queued", "%d messages are queued"), pulse.Queued)))
	}
	if len(v.todos) > 0 {
		done := 0
		for _, t := range v.todos {
			if t.Status == event.TodoCompleted {
				done++
			}
		}
		parts = append(parts, el("details", attr{"open", ""}, attr{"id", "todos"}, el("summary", p.t("Todos, %d of %d done", done, len(v.todos))), checklist(checks(v.todos))))
	}
	return join(parts...)
}

// still warns, where scripts do not run, that the page does not update.
func (p *page) still() markup {
	return el("noscript", el("p", class("dim"), p.t("Without JavaScript this page does not update itself."), " ", el("a", attr{"href", p.of("")}, p.t("Reload"))))
}

// prompt renders the form to send a message, stop the turn and choose the mode.
func (p *page) prompt(v view, pulse Pulse) markup {
	elsewhere := pulse.Holder != "" && !pulse.Ours
	shape, buttons, about := "free", []any{class("buttons")}, markup("")
	switch {
	case pulse.Ours:
		shape = "ours"
	case pulse.Hears:
		shape, about = pulse.Holder+" hears", el("p", class("dim"), p.t("The session is in use by %s: messages you send here go there.", p.words.Said(pulse.Holder)))
	case elsewhere:
		shape, about = pulse.Holder, el("p", class("dim"), p.t("The session is in use by %s, which accepts no messages from here: answer its questions, or continue when it has ended.", p.words.Said(pulse.Holder)))
	}
	if pulse.Busy || pulse.Stops && v.turn != "" {
		shape += " busy"
		buttons = append(buttons, p.form(p.of("stop"), el("button", class("danger"), p.t("Stop"))))
	}
	if pulse.Ours {
		buttons = append(buttons, p.form(p.of("release"), el("button", attr{"title", p.t("so that another process can continue the session")}, p.t("Close it here"))))
	}
	if elsewhere && !pulse.Hears {
		return el("div", attr{"data-shape", shape}, about, el("div", buttons...))
	}
	if len(p.Modes) > 0 {
		shape += " " + v.mode
		buttons = append(buttons, p.form(p.of("mode"), class("mode"), el("label", attr{"for", "mode"}, p.t("Mode")), p.modes(cmp.Or(v.mode, "build")), el("button", p.t("Switch"))))
	}
	return el("div", attr{"data-shape", shape}, about,
		p.form(p.of("say"), class("prompt"),
			el("input", attr{"type", "hidden"}, attr{"name", "seen"}, attr{"value", decimal(v.last)}),
			el("label", class("unseen"), attr{"for", "prompt"}, p.t("Task")),
			el("textarea", attr{"id", "prompt"}, attr{"name", "prompt"}, attr{"rows", "2"}, attr{"required", ""}, attr{"placeholder", p.t("Task")}),
			el("button", class("primary"), p.t("Send"))),
		el("div", buttons...))
}

// modes renders the choice of mode; now is the current one.
func (p *page) modes(now string) markup {
	var all []markup
	for _, name := range p.Modes {
		all = append(all, el("option", attr{"value", name}, set("selected", name == now), name))
	}
	if now == "" {
		all = append([]markup{el("option", attr{"value", ""}, p.t("as configured"))}, all...)
	}
	return el("select", attr{"id", "mode"}, attr{"name", "mode"}, all)
}

// record shows one record completely.
func (p *page) record() (markup, error) {
	if err := p.find(); err != nil {
		return "", err
	}
	seq, err := readNumber(p.r.PathValue("seq"))
	if err != nil {
		return "", err
	}
	p.tab, p.title = "Timeline", p.t("Record %d", seq)
	for r, err := range p.Records(p.r.Context(), p.place, seq-min(seq, 1)) {
		if err != nil {
			return "", err
		}
		if r.Seq != seq {
			break
		}
		return join(el("h1", p.title), el("ol", attr{"id", "one"}, item(seq, p.entry(r, true))),
			el("p", el("a", attr{"href", p.of("", "at", decimal(seq))}, p.t("In the timeline")))), nil
	}
	return "", &Problem{http.StatusNotFound, "record not found"}
}
