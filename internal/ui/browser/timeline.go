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
	kind   string // CSS class for colors
	key    string // other entries may belong to it
	parent string // key of the entry that it belongs to
	body   markup
}

// renderEntry renders a record; an entry without a body is not shown.
func (p *page) renderEntry(r event.Record, whole bool) entry {
	switch e := r.Event.(type) {
	case event.MessageAdded:
		return p.renderMessage(r, e, whole)
	case event.LocalAdded:
		return entry{kind: "local", body: joinParts(p.renderEntryHead(p.t("Command"), r),
			element("p", element("code", e.Input)), p.renderBlocks(e.DisplayBlocks()))}
	case event.ToolCallRequested:
		return p.renderCall(r, e, whole)
	case event.ToolCallCompleted:
		return p.renderOutcome(r, e, whole)
	case event.InteractionRequested:
		p.rememberQuestions(e.Request)
		return entry{kind: "asked", key: "question:" + e.ID,
			body: joinParts(p.renderEntryHead(p.t("Question"), r),
				element("details", boolAttr("open", whole), element("summary", p.questionTitle(e.Request)),
					p.renderSubject(e.Request)))}
	case event.InteractionResponded:
		return entry{kind: "answered", parent: "question:" + e.ID,
			body: element("p", classAttr("answer"), p.answerText(p.questionsByID[e.ID], e.Response), " ", p.renderTime(r.Time))}
	case event.TodosChanged:
		return entry{kind: "note", body: element("details", element("summary", p.t("Todos"), " ", p.renderTime(r.Time)),
			renderChecklist(todoChecklist(e.Todos)))}
	}
	if text := p.eventText(r.Event); text != "" {
		return entry{kind: "note", body: element("p", classAttr("dim"), text, " ", p.renderTime(r.Time))}
	}
	return entry{}
}

// rememberQuestions saves questions, so that their answers can be described.
func (p *page) rememberQuestions(all ...uip.Request) {
	if p.questionsByID == nil {
		p.questionsByID = make(map[string]uip.Request)
	}
	for _, q := range all {
		p.questionsByID[q.ID] = q
	}
}

// eventText renders a record as one line.
func (p *page) eventText(e event.Event) string {
	switch e := e.(type) {
	case event.TaskCreated:
		if e.ParentID != "" {
			return p.t("subtask of %s: %s", oneLine(e.AgentID), oneLine(e.Title))
		}
	case event.TaskCompleted:
		return p.t("done")
	case event.TaskFailed:
		return p.t("failed: %s", p.translator.TranslateText(e.Reason))
	case event.TaskCanceled:
		return p.t("stopped: %s", p.translator.TranslateText(e.Reason))
	case event.ModeChanged:
		return p.t("mode: %s", strings.TrimSpace(e.Mode+" "+e.Preset))
	case event.ContextReplaced:
		return cmp.Or(p.translator.TranslateText(e.Description), p.t("the conversation was shortened"))
	case event.ContextRestored, event.ContextRewound:
		return p.t("the conversation was rewound")
	case event.Unknown:
		return p.t("a record of an unknown version: %s", oneLine(e.Type))
	}
	return ""
}

// renderEntryHead renders the speaker and the time.
func (p *page) renderEntryHead(name string, r event.Record) markup {
	return element("h3", name, " ", p.renderTime(r.Time), " ",
		element("a", classAttr("seq"), attr{"href", p.sessionURL("replay", "at", formatUint(r.Seq))}, "#"+formatUint(r.Seq)))
}

func (p *page) renderMessage(r event.Record, e event.MessageAdded, whole bool) entry {
	m := e.Message
	switch {
	case event.IsUserMessage(r):
		return entry{kind: "user", body: joinParts(p.renderEntryHead(p.t("You"), r), p.renderText(m.Text(), whole, r.Seq),
			p.renderImages(m))}
	case m.Role == chat.Assistant && e.Model == "" && e.Blocks != nil: // the output of the user's own command
		body := p.renderLongText(m.Text(), whole, r.Seq)
		if s, ok := e.Blocks[0].(display.Shell); ok && s.UsedTerminal {
			body = joinParts(p.renderBlocks(e.Blocks))
		}
		return entry{kind: "local", body: joinParts(p.renderEntryHead(p.t("Command"), r), body)}
	case m.Role == chat.Assistant:
		var parts []any
		for _, part := range m.Parts {
			if t, ok := part.(chat.Reasoning); ok && t.Text != "" {
				parts = append(parts, element("details", element("summary", p.t("Thinking")),
					p.renderLongText(t.Text, whole, r.Seq)))
			}
		}
		if said := m.Text(); strings.TrimSpace(said) != "" {
			parts = append(parts, p.renderText(said, whole, r.Seq))
		}
		if e.Interrupted {
			parts = append(parts, element("p", classAttr("failed"), p.t("(interrupted)")))
		}
		if len(parts) == 0 {
			return entry{}
		}
		return entry{kind: "reply",
			body: joinParts(append([]any{p.renderEntryHead(cmp.Or(oneLine(e.Model), p.t("The model")), r)}, parts...)...)}
	}
	return entry{}
}

// maxMessageText is the most bytes of a message in a list.
const maxMessageText = 64 << 10

func (p *page) renderText(s string, whole bool, seq uint64) markup {
	if len(s) > maxMessageText && !whole {
		return p.renderLongText(s, false, seq)
	}
	return renderMarkdown(s)
}

func (p *page) renderImages(m chat.Message) markup {
	n := 0
	for _, part := range m.Parts {
		if _, ok := part.(chat.Image); ok {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return element("p", classAttr("dim"), p.t(display.Plural(n, "%d image", "%d images"), n))
}

func (p *page) renderCall(r event.Record, e event.ToolCallRequested, whole bool) entry {
	var why []markup
	if e.Verdict != event.VerdictAllowed || e.DecidedBy != "" {
		why = append(why, element("span", classAttr("dim"), " ", oneLine(p.translator.TranslateText(e.VerdictText()))))
	}
	if e.Author == event.ActorVerifier {
		why = append(why, element("span", classAttr("dim"), " ", p.t("Check of the edits")))
	}
	var reasons []markup
	for _, reason := range e.Reasons {
		reasons = append(reasons, element("p", classAttr("dim"), p.translator.TranslateText(reason)))
	}
	return entry{kind: "call", key: "call:" + e.CallID, body: element("details", boolAttr("open", whole),
		element("summary", element("strong", e.Tool), " ", element("code",
			oneLine(strings.Join(event.Targets(e.Effects), ", "))), why, " ", p.renderTime(r.Time), " ",
			element("a", classAttr("seq"), attr{"href", p.sessionURL("replay", "at", formatUint(r.Seq))},
				"#"+formatUint(r.Seq))),
		reasons, p.renderFields(e.Input, whole, r.Seq))}
}

func (p *page) renderOutcome(r event.Record, e event.ToolCallCompleted, whole bool) entry {
	state, name := p.t("done"), "ok"
	switch {
	case e.OutcomeUnknown:
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
	body := []any{element("p", classAttr("outcome "+name), state, " ", element("span", classAttr("dim"),
		display.FormatDuration(time.Duration(e.DurationMs)*time.Millisecond), " ",
		p.translator.TranslateText(oneLine(about))))}
	if out.Diff != "" {
		body = append(body, renderDiffs(out.Diff))
	} else {
		body = append(body, element("details", boolAttr("open", whole), element("summary", p.t("Output")),
			p.renderFields(e.Output, whole, r.Seq)))
	}
	return entry{kind: "call", parent: "call:" + e.CallID, body: joinParts(body...)}
}

func todoChecklist(todos []event.Todo) (all display.Checklist) {
	for _, t := range todos {
		all = append(all, display.Check{State: display.State(t.Status), Text: oneLine(t.Content)})
	}
	return all
}

// entryItem renders an entry with the entries that belong to it.
func entryItem(seq uint64, e entry, more ...markup) markup {
	return element("li", classAttr(e.kind), attr{"id", "r" + formatUint(seq)}, attr{"data-key", e.key},
		attr{"data-into", e.parent}, e.body, more)
}

// entryItems renders the entries of records, each with those that belong to it.
func (p *page) entryItems(records []event.Record) (list []markup) {
	var entries []entry
	var seqs []uint64
	more := make(map[string][]markup)
	for _, r := range records {
		switch r.Event.(type) {
		case event.TaskCompleted, event.TaskFailed, event.TaskCanceled:
			for _, e := range entries {
				if id, ok := strings.CutPrefix(e.key, "question:"); ok && len(more[e.key]) == 0 &&
					p.questionsByID[id].TaskID == r.Task {
					more[e.key] = append(more[e.key], element("p", classAttr("answer"), p.t("Answer"), ": ",
						p.t("(none: stopped first)")))
				}
			}
		}
		e := p.renderEntry(r, false)
		if e.body == "" {
			continue
		}
		if e.parent != "" && slices.ContainsFunc(entries, func(o entry) bool { return o.key == e.parent }) {
			more[e.parent] = append(more[e.parent], e.body)
			continue
		}
		if e.parent != "" && len(entries) == 0 && r.Seq > 1 {
			continue // its call is on the page before, and so is this
		}
		entries, seqs = append(entries, e), append(seqs, r.Seq)
	}
	for i, e := range entries {
		list = append(list, entryItem(seqs[i], e, more[e.key]...))
	}
	return list
}

// view is the state of a session after the records read so far.
type view struct {
	lastSeq   uint64
	title     string
	mode      string
	todos     []event.Todo
	questions []uip.Request
	task      string // the current task
}

func (v *view) addRecord(r event.Record) {
	v.lastSeq = r.Seq
	ended := func(id string) {
		if v.task == id {
			v.task = ""
		}
		v.questions = slices.DeleteFunc(v.questions, func(q uip.Request) bool { return q.TaskID == id })
	}
	switch e := r.Event.(type) {
	case event.TaskCreated:
		if e.ParentID == "" {
			v.title, v.task = cmp.Or(v.title, e.Title), e.TaskID
		}
	case event.ModeChanged:
		v.mode = e.Mode
	case event.TodosChanged:
		v.todos = e.Todos
	case event.InteractionRequested:
		v.questions = append(v.questions, e.Request)
	case event.InteractionResponded:
		v.questions = slices.DeleteFunc(v.questions, func(q uip.Request) bool { return q.ID == e.ID })
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
	v.questions, v.todos = slices.Clone(v.questions), slices.Clone(v.todos)
	return v
}

// maxRecords is the most records on a page.
const maxRecords = 200

// readSession reads a session up to a record, 0 for all, and returns the newest records.
func (s *Server) readSession(ctx context.Context, place SessionRef, upTo uint64) (v view, newest []event.Record,
	err error) {
	if v, newest, ok := s.cachedView(place); ok && upTo == 0 {
		return v, newest, nil
	}
	for r, err := range s.Records(ctx, place, 0) {
		if err != nil {
			return v, newest, err
		}
		v.addRecord(r)
		if upTo > 0 && r.Seq > upTo {
			continue
		}
		if len(newest) == 2*maxRecords {
			newest = slices.Delete(newest, 0, maxRecords)
		}
		newest = append(newest, r)
	}
	return v, newest[max(0, len(newest)-maxRecords):], ctx.Err()
}

// session renders the timeline.
func (p *page) session() (markup, error) {
	if err := p.findSession(); err != nil {
		return "", err
	}
	at, err := p.queryNumber("at")
	if err != nil {
		return "", err
	}
	upTo := at
	if at > 0 {
		upTo = at + maxRecords/2
	}
	v, records, err := p.readSession(p.r.Context(), p.ref, upTo)
	damaged := p.renderDamage(err)
	if len(records) > 0 && records[len(records)-1].Seq >= v.lastSeq {
		upTo = 0 // shows the end
	}
	p.tab, p.title = "Timeline", oneLine(cmp.Or(v.title, p.ref.Session))
	earlier := markup("")
	if len(records) > 0 && records[0].Seq > 1 {
		before := max(1, int64(records[0].Seq)-maxRecords/2)
		earlier = element("p", element("a", attr{"href", p.sessionURL("", "at", formatUint(uint64(before)))}, p.t("Earlier")))
	}
	list := []any{attr{"id", "timeline"}, attr{"aria-label", p.t("Timeline")}}
	later := markup("")
	if upTo == 0 {
		list = append(list, attr{"role", "log"}, attr{"data-events", p.sessionURL("events")},
			attr{"data-after", formatUint(v.lastSeq)}, attr{"data-lost", p.t("Connection lost; reconnecting.")})
	} else {
		later = element("p", element("a", attr{"href", p.sessionURL("")}, p.t("To the end")))
	}
	pulse := p.Activity(p.ref)
	p.questionCount = len(v.questions)
	return joinParts(
		element("h1", p.title),
		element("aside", attr{"id", "state"}, attr{"aria-label", p.t("State")}, p.renderState(v, pulse)),
		damaged, p.renderNoScript(), earlier,
		element("ol", append(list, p.entryItems(records))...), later,
		element("pre", attr{"id", "live"}, attr{"aria-live", "off"}, attr{"hidden", ""}),
		element("section", attr{"id", "questions"}, attr{"aria-label", p.t("Open questions")}, attr{"aria-live", "assertive"},
			p.renderQuestions(v.questions)),
		element("p", attr{"id", "connection"}, attr{"role", "status"}),
		element("section", attr{"id", "say"}, attr{"aria-label", p.t("Send a message")}, p.renderPromptForm(v, pulse)),
	), nil
}

// renderState renders who works in the session and the todo list.
func (p *page) renderState(v view, pulse Activity) markup {
	who := p.t("not running")
	switch {
	case len(v.questions) > 0:
		who = p.t("waiting for your answer")
		if pulse.Holder != "" && !pulse.HeldHere {
			who = p.t("waiting for your answer, here or in %s", p.translator.TranslateText(pulse.Holder))
		}
	case pulse.Busy:
		who = p.t("working here")
	case pulse.HeldHere:
		who = p.t("waiting here for your message")
	case pulse.Holder != "" && v.task == "":
		who = p.t("open in %s", p.translator.TranslateText(pulse.Holder))
	case pulse.Holder != "":
		who = p.t("working in %s", p.translator.TranslateText(pulse.Holder))
	}
	parts := []any{element("p", element("strong", who), " · ", p.t("%d records", v.lastSeq), " · ",
		p.t("mode: %s", cmp.Or(v.mode, "build")))}
	if pulse.Queued > 0 {
		parts = append(parts, element("p", p.t(display.Plural(pulse.Queued, "%d message is queued", "%d messages are queued"),
			pulse.Queued)))
	}
	if len(v.todos) > 0 {
		done := 0
		for _, t := range v.todos {
			if t.Status == event.TodoCompleted {
				done++
			}
		}
		parts = append(parts, element("details", attr{"open", ""}, attr{"id", "todos"},
			element("summary", p.t("Todos, %d of %d done", done, len(v.todos))), renderChecklist(todoChecklist(v.todos))))
	}
	return joinParts(parts...)
}

// renderNoScript warns, where scripts do not run, that the page does not update.
func (p *page) renderNoScript() markup {
	return element("noscript", element("p", classAttr("dim"), p.t("Without JavaScript this page does not update itself."),
		" ", element("a", attr{"href", p.sessionURL("")}, p.t("Reload"))))
}

// renderPromptForm renders the form to send a message, stop the turn and choose the mode.
func (p *page) renderPromptForm(v view, pulse Activity) markup {
	elsewhere := pulse.Holder != "" && !pulse.HeldHere
	shape, buttons, about := "free", []any{classAttr("buttons")}, markup("")
	switch {
	case pulse.HeldHere:
		shape = "ours"
	case pulse.AcceptsMessages:
		shape, about = pulse.Holder+" hears", element("p", classAttr("dim"),
			p.t("The session is in use by %s: messages you send here go there.", p.translator.TranslateText(pulse.Holder)))
	case elsewhere:
		shape, about = pulse.Holder, element("p", classAttr("dim"),
			p.t("The session is in use by %s, which accepts no messages from here: answer its questions, or continue when it has ended.", p.translator.TranslateText(pulse.Holder)))
	}
	if pulse.Busy || pulse.CanStop && v.task != "" {
		shape += " busy"
		buttons = append(buttons, p.renderForm(p.sessionURL("stop"), element("button", classAttr("danger"), p.t("Stop"))))
	}
	if pulse.HeldHere {
		buttons = append(buttons, p.renderForm(p.sessionURL("release"),
			element("button", attr{"title", p.t("so that another process can continue the session")}, p.t("Close it here"))))
	}
	if elsewhere && !pulse.AcceptsMessages {
		return element("div", attr{"data-shape", shape}, about, element("div", buttons...))
	}
	if len(p.Modes) > 0 {
		shape += " " + v.mode
		buttons = append(buttons, p.renderForm(p.sessionURL("mode"), classAttr("mode"),
			element("label", attr{"for", "mode"}, p.t("Mode")), p.renderModes(cmp.Or(v.mode, "build")),
			element("button", p.t("Switch"))))
	}
	return element("div", attr{"data-shape", shape}, about,
		p.renderForm(p.sessionURL("say"), classAttr("prompt"),
			element("input", attr{"type", "hidden"}, attr{"name", "seen"}, attr{"value", formatUint(v.lastSeq)}),
			element("label", classAttr("unseen"), attr{"for", "prompt"}, p.t("Task")),
			element("textarea", attr{"id", "prompt"}, attr{"name", "prompt"}, attr{"rows", "2"}, attr{"required", ""},
				attr{"placeholder", p.t("Task")}),
			element("button", classAttr("primary"), p.t("Send"))),
		element("div", buttons...))
}

// renderModes renders the choice of mode; now is the current one.
func (p *page) renderModes(now string) markup {
	var all []markup
	for _, name := range p.Modes {
		all = append(all, element("option", attr{"value", name}, boolAttr("selected", name == now), name))
	}
	if now == "" {
		all = append([]markup{element("option", attr{"value", ""}, p.t("as configured"))}, all...)
	}
	return element("select", attr{"id", "mode"}, attr{"name", "mode"}, all)
}

// record shows one record completely.
func (p *page) record() (markup, error) {
	if err := p.findSession(); err != nil {
		return "", err
	}
	seq, err := parseNumber(p.r.PathValue("seq"))
	if err != nil {
		return "", err
	}
	p.tab, p.title = "Timeline", p.t("Record %d", seq)
	for r, err := range p.Records(p.r.Context(), p.ref, seq-min(seq, 1)) {
		if err != nil {
			return "", err
		}
		if r.Seq != seq {
			break
		}
		return joinParts(element("h1", p.title), element("ol", attr{"id", "one"}, entryItem(seq, p.renderEntry(r, true))),
			element("p", element("a", attr{"href", p.sessionURL("", "at", formatUint(seq))}, p.t("In the timeline")))), nil
	}
	return "", &UserError{http.StatusNotFound, "record not found"}
}
