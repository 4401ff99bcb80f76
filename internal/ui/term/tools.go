package term

import (
	"slices"
	"strings"
	"time"

	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/sanitize"
	"coder/internal/ui/term/ink"
)

// Lengths in runes at which the parts of a line are cut.
const (
	titleRunes   = 200
	summaryRunes = 300
)

type callKey struct{ task, call string }

// callView is the state of a tool call.
type callView struct {
	task        *taskView
	tool, title string
	ascii       bool   // the terminal shows only ASCII
	exec        bool   // it runs a command
	writes      bool   // it changes a file
	own         bool   // it is coder's own check, not a model's call
	ownTitle    bool   // coder wrote its title
	begun       bool   // its first line was shown
	asks        bool   // it asks the user a question, which names its subject
	todos       bool   // the list that it changed was shown
	approved    string // the change that the user was shown before it was made
	output      outputBox
	since       time.Time
	recent      recent // output that is shown at the end
}

func (r *Renderer) call(task, id string) *callView {
	k := callKey{task, id}
	c := r.calls[k]
	if c == nil {
		c = &callView{task: r.view(task), ascii: r.o.ASCII}
		r.calls[k] = c
	}
	return c
}

// tool shows an event of a call.
func (r *Renderer) tool(rec event.Record) {
	switch e := rec.Event.(type) {
	case event.ToolCallRequested:
		c := r.call(rec.Task, e.CallID)
		c.ownTitle = event.OwnTitle(e.Tool, e.Title, e.Effects)
		for _, effect := range e.Effects {
			c.exec = c.exec || effect.Kind == event.EffectExec
			c.writes = c.writes || effect.Kind == event.EffectWrite
			c.asks = c.asks || effect.Kind == event.EffectNote && (effect.Target == "question" || effect.Target == "plan") && c.task.parent == ""
		}
	case event.ToolStarted:
		c := r.call(rec.Task, e.CallID)
		c.tool, c.title, c.own = e.Tool, e.Title, rec.Actor == event.ActorVerifier
		c.ownTitle = c.ownTitle || event.OwnTitle(e.Tool, e.Title, nil)
		r.begin(c)
	case event.ToolOutput:
		// Shown as it arrives if no other call is running, otherwise at the end
		c := r.call(rec.Task, e.CallID)
		b := &c.output
		if b.put == nil {
			b.ascii = r.o.ASCII
			b.put = func(l ink.Look, text string) { b.kept = append(b.kept, ink.Span{Look: l, Text: text}) }
			if len(r.status.calls) <= 1 && c.task.parent == "" && !c.task.bang {
				b.put = func(l ink.Look, text string) {
					if r.last != c { // other output was written since its name
						r.head(c)
						text = strings.TrimPrefix(text, "\n")
					}
					r.page.put(l, text)
				}
			}
		}
		b.skip()
		text := b.clean.next(e.Text)
		if c.task.live {
			r.flow(c, text)
			return
		}
		b.write(text)
		if b.owed && r.last == c {
			r.page.rest()
		}
		if c.recent.drawn = ""; c.task.bang {
			c.recent.write(text)
		}
		r.status.changed = true
	case event.ToolProgress:
		c := r.call(rec.Task, e.CallID)
		c.recent.drawn = sanitize.Text(e.Line)
		c.output.skipped = max(c.output.skipped, e.Lines)
		r.status.changed = true
	case event.ToolFinished:
		c := r.call(rec.Task, e.CallID)
		c.tool, c.title, c.own = e.Tool, e.Title, c.own || rec.Actor == event.ActorVerifier
		r.finish(c, e)
		delete(r.calls, callKey{rec.Task, e.CallID})
		r.status.end(c)
		r.status.set(r.t("working"))
	}
}

// begin shows that c has started.
func (r *Renderer) begin(c *callView) {
	c.begun = true
	if r.o.Now != nil {
		c.since = r.o.Now()
	}
	r.status.calls, r.status.changed = append(r.status.calls, c), true
	if c.task.bang {
		if r.o.AtOnce { // nothing else could show its output before the end
			c.task.live = true
			r.enter(nothing)
			r.page.say(ink.Tool, "[COMMAND]")
			r.page.say(ink.Plain, "$ "+c.task.command)
			r.section = inserted
		}
		return
	}
	r.head(c)
}

// flow adds the complete lines of c's output and keeps the rest: only in a complete line is it certain
// whether it contains a key.
func (r *Renderer) flow(c *callView, text string) {
	lines := strings.SplitAfter(c.output.part+text, "\n")
	c.output.part = lines[len(lines)-1]
	for _, line := range lines[:len(lines)-1] {
		r.enter(inserted)
		r.page.put(ink.Look{}, sanitize.Mask(strings.TrimSuffix(line, "\n"))+"\n")
	}
}

// head writes c's name on its own line, for the output below.
func (r *Renderer) head(c *callView) {
	r.enter(toolLines)
	// For a tool that runs commands the name is in the brackets, unless another agent uses it.
	label, apart := "[tool] "+c.name(), "  "
	if c.exec && c.task.parent == "" {
		label, apart = "["+c.name()+"]", " "
	}
	title := c.shownTitle()
	switch {
	case c.asks:
		title = ""
	case c.ownTitle:
		title = r.o.Words.Said(title)
	}
	if title != "" {
		title = apart + title
	}
	w := ink.Wrap{Put: r.page.put, Width: r.width(), Indent: setIn}
	w.Fixed(ink.Look{Role: ink.Tool}, label)
	w.Write(ink.Look{}, title)
	if c.own {
		w.Write(ink.Look{Role: ink.Dim}, mark(r.o.ASCII, " · ", ", ")+r.t("automatic check"))
	}
	w.End()
	r.page.fresh()
	r.last = c
}

// plainName returns the call in a few words.
func (c *callView) plainName() string {
	return strings.TrimSpace(c.name() + " " + c.shownTitle())
}

// shownTitle returns the call's subject on one line, naming lookalike letters as its card does.
func (c *callView) shownTitle() string {
	title, cut := strings.CutSuffix(oneLine(c.title, titleRunes), "…")
	reveal := sanitize.Reveal
	if c.exec {
		reveal = sanitize.RevealCommand
	}
	if title = reveal(title); cut {
		title += mark(c.ascii, "…", "...")
	}
	return title
}

// name returns the tool's name, after the agent's if that is not the main one.
func (c *callView) name() string {
	name := dots(c.ascii, oneLine(c.tool, titleRunes))
	if c.task.parent != "" && c.task.agent != "" {
		return dots(c.ascii, oneLine(c.task.agent, titleRunes)) + " > " + name
	}
	return name
}

func (r *Renderer) lines(n int) string {
	if n == 1 {
		return r.t("1 line")
	}
	return r.t("%d lines", n)
}

func (r *Renderer) leftOut(lines int) string {
	text := r.t("… %d lines omitted", lines)
	if lines == 1 {
		text = r.t("… 1 line omitted")
	}
	if r.o.Live != nil {
		text += mark(r.o.ASCII, " · ", r.t("; ")) + r.t("Ctrl+O: all of it")
	}
	return text
}

// omit keeps a text of which a part was not shown.
func (r *Renderer) omit(whole string) {
	if whole != "" {
		r.omitted = whole
	}
}

// Omitted is the last text of which a part was not shown, as a whole.
func (r *Renderer) Omitted() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.omitted
}

// finish shows how c ended.
func (r *Renderer) finish(c *callView, e event.ToolFinished) {
	if c.task.bang {
		if b := &c.output; c.task.live && !b.empty() {
			r.flow(c, b.clean.rest()+"\n")
		}
		return
	}
	if !c.begun {
		c.asks = false // no question was asked
		r.begin(c)
	}
	r.omit(c.output.end(r.leftOut))
	named := r.last != c
	switch {
	case len(c.output.kept) > 0: // its output is between its name and its end, as always
		if named {
			r.head(c)
		}
		for _, span := range c.output.kept {
			r.page.put(span.Look, span.Text)
		}
		r.page.fresh()
		c.output.kept, named = nil, false
	case named:
		r.enter(toolLines)
	}
	role, line, more := r.outcome(c, e, named)
	r.page.words(r.width(), role, line)
	if more != "" {
		r.bounded("    "+strings.ReplaceAll(more, "\n", "\n    "), 0)
		r.page.fresh()
	}
	r.page.fresh()
	if text, ok := e.Show.(display.Text); (!ok || c.output.empty() && string(text) != e.Summary) && !c.todos {
		// Tables are shown completely, diffs up to a readable length, text and code within the bounds of an
		// outputBox
		switch b := e.Show.(type) {
		case display.Text:
			width := r.width()
			if c.exec { // a program's output, not prose
				width = 0
			}
			r.bounded(string(b), width)
		case display.Code:
			if b.Lang == display.Markdown {
				r.boundedProse(b.Source)
			} else {
				r.bounded(b.Source, 0)
			}
		case display.Diff:
			if r.page.fresh(); !wasShown(c.approved, b) {
				r.diff(below(c.title, diffLines(cleaned(b.Unified))), c.writes)
				if b.More > 0 {
					r.page.tell(ink.Dim, r.leftOut(b.More))
				}
			}
		case display.Table:
			r.page.fresh()
			drawTable(b, r.o.Words.Said, r.width(), ink.Grid{ASCII: r.o.ASCII, Spoken: r.o.Spoken}, r.page.put)
		}
		r.page.fresh()
	}
	r.last = nil
}

// wasShown reports whether a diff is the approved one, or the beginning of it.
func wasShown(approved string, d display.Diff) bool {
	return d.Unified == approved || d.More > 0 && d.Unified != "" && strings.HasPrefix(approved, d.Unified)
}

// Lines shown of a diff that changes nothing: the rest can be requested again.
const (
	askedDiff = 80
	diffEnd   = 20 // of them at the end
	diffRest  = 40 // extra lines if that completes it: fewer are not worth asking again
)

// diff shows a diff: completely if the change was made, otherwise at most a readable length.
func (r *Renderer) diff(lines []diffLine, made bool) {
	if left := len(lines) - askedDiff; !made && left > diffRest {
		var whole strings.Builder
		drawDiff(lines, r.o.ASCII, func(_ ink.Look, text string) { whole.WriteString(text) })
		r.omit(whole.String())
		note := diffLine{text: r.leftOut(left)}
		lines = slices.Concat(lines[:askedDiff-diffEnd], []diffLine{note}, lines[len(lines)-diffEnd:])
	}
	drawDiff(lines, r.o.ASCII, r.page.put)
}

// outcome returns the last line of a call, and the text below that line.
func (r *Renderer) outcome(c *callView, e event.ToolFinished, named bool) (role ink.Role, line, more string) {
	role, sign := ink.Good, mark(r.o.ASCII, "✓ ", r.t("ok: "))
	if e.Failed || e.Denied {
		role, sign = ink.Bad, mark(r.o.ASCII, "✗ ", r.t("failed: "))
	}
	line = "  " + sign
	switch {
	case named && c.asks:
		line += c.name() + r.t(": ")
	case named:
		line += c.plainName() + r.t(": ")
	}
	said, more, _ := strings.Cut(strings.TrimSpace(r.result(e)), "\n")
	if !named && e.Summary != "" && e.Summary == e.Title { // the line above is the same
		said = r.t("done")
	}
	if named && c.title != "" {
		said = strings.TrimPrefix(said, c.title+r.t(": ")) // the line above has just named it
	}
	line += dots(r.o.ASCII, oneLine(said, summaryRunes))
	if !e.Denied && more == "" && e.Took >= 0 { // otherwise the sentence continues, or the time is unknown
		line += mark(r.o.ASCII, " · ", r.t(", ")) + lasted(e.Took)
	}
	return role, line, more
}

// result returns the essence of a call's result.
func (r *Renderer) result(e event.ToolFinished) string {
	said := e.Summary
	if said == "" && (e.Failed || e.Denied) {
		said = e.Result.Complaint()
	}
	if e.Denied {
		said = strings.TrimPrefix(said, "denied: ")
	}
	switch {
	case e.Denied && !strings.HasPrefix(said, "refused"):
		return strings.TrimSuffix(r.t("refused: %s", display.SayOf(e.Title, said, r.t(": "), r.o.Words.Said)), ": ")
	case said == "" && e.Failed:
		return r.t("failed")
	case said == "":
		return r.t("done")
	}
	return display.SayOf(e.Title, said, r.t(": "), r.o.Words.Said)
}

// dots returns a line that may have been cut, with the terminal's sign for that.
func dots(ascii bool, line string) string {
	if head, cut := strings.CutSuffix(line, "…"); cut {
		return head + mark(ascii, "…", "...")
	}
	return line
}

// oneLine returns text, cleaned, as one line of at most limit runes.
func oneLine(text string, limit int) string { return sanitize.Line(sanitize.Mask(text), limit) }

func cleaned(text string) string { return sanitize.Text(sanitize.Mask(text)) }
