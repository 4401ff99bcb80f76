package term

import (
	"strings"
	"time"

	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/sanitize"
	"coder/internal/ui/term/ink"
)

// Lengths in runes beyond which the parts of a line are cut.
const (
	titleRunes   = 200
	summaryRunes = 300
)

type callKey struct{ task, call string }

// callView is what is known of a call of a tool.
type callView struct {
	task        *taskView
	tool, title string
	ascii       bool   // the terminal shows no more
	exec        bool   // it runs a command
	writes      bool   // it changes a file
	own         bool   // it is the program's own check, not the model's call
	ownTitle    bool   // its title is the program's own words
	begun       bool   // its first line was shown
	asks        bool   // it asks the person, whose question says what it is about
	todos       bool   // the list it changed was shown
	approved    string // the change that the person was shown before it was made
	output      outputBox
	since       time.Time
	recent      recent // of output that is shown when it is over
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

// tool shows a step in the life of a call.
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
		// As it comes if no other call runs beside it, else when the call is over
		c := r.call(rec.Task, e.CallID)
		b := &c.output
		if b.put == nil {
			b.ascii = r.o.ASCII
			b.put = func(l ink.Look, text string) { b.kept = append(b.kept, ink.Span{Look: l, Text: text}) }
			if len(r.status.calls) <= 1 && c.task.parent == "" && !c.task.bang {
				b.put = func(l ink.Look, text string) {
					if r.last != c { // something else was written since its name was
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

// begin shows that c has begun.
func (r *Renderer) begin(c *callView) {
	c.begun = true
	if r.o.Now != nil {
		c.since = r.o.Now()
	}
	r.status.calls, r.status.changed = append(r.status.calls, c), true
	if c.task.bang {
		if r.o.AtOnce { // there is nothing that could show what it prints until it ends
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

// flow puts the lines of text, which c printed, and keeps what has no end yet: only of a
// whole line can be told whether it holds a key.
func (r *Renderer) flow(c *callView, text string) {
	lines := strings.SplitAfter(c.output.part+text, "\n")
	c.output.part = lines[len(lines)-1]
	for _, line := range lines[:len(lines)-1] {
		r.enter(inserted)
		r.page.put(ink.Look{}, sanitize.Mask(strings.TrimSuffix(line, "\n"))+"\n")
	}
}

// head names c on a line of its own, below which what it prints belongs.
func (r *Renderer) head(c *callView) {
	r.enter(toolLines)
	// A tool that runs commands has its name in the brackets, unless another
	// agent uses it.
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

// plainName is the call in a few words.
func (c *callView) plainName() string {
	return strings.TrimSpace(c.name() + " " + c.shownTitle())
}

// shownTitle is what the call is about in a line, with letters that pass for others
// named as its card names them.
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

// name is the tool, and before it the agent if that is not the main one.
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
		c.asks = false // nobody was asked
		r.begin(c)
	}
	r.omit(c.output.end(r.leftOut))
	named := r.last != c
	switch {
	case len(c.output.kept) > 0: // what it printed stands between its name and its end, as always
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
		// Tables are shown whole, diffs up to what a person reads, text and code up to the bounds of an outputBox
		switch b := e.Show.(type) {
		case display.Text:
			width := r.width()
			if c.exec { // what a program printed, not words
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
				r.diff(cleaned(b.Unified), c.writes)
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

// wasShown reports whether a diff is the one that was approved, or the beginning of that.
func wasShown(approved string, d display.Diff) bool {
	return d.Unified == approved || d.More > 0 && d.Unified != "" && strings.HasPrefix(approved, d.Unified)
}

// Lines of a diff that was only looked at: where there are more it can be had again.
const (
	askedDiff = 80
	diffEnd   = 20 // of which so many are the last
	diffRest  = 40 // or so many more, if that is all of it: less is not worth a second look
)

// diff shows one: of a change that was made all of it, else no more than a person reads.
func (r *Renderer) diff(unified string, made bool) {
	const most = askedDiff
	all := strings.Count(strings.TrimSuffix(unified, "\n"), "\n") + 1
	if made || all <= most+diffRest {
		drawDiff(unified, r.page.put)
		return
	}
	r.omit(unified)
	n := 0
	for sign, line := range display.DiffLines(unified) {
		switch {
		case n < most-diffEnd || n >= all-diffEnd:
			r.page.put(ink.Look{Role: diffInk[sign]}, line)
		case n == most-diffEnd:
			r.page.tell(ink.Dim, r.leftOut(all-most))
		}
		n++
	}
}

// outcome is the last line of a call, and what is said beyond that line.
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
	if named && c.title != "" {
		said = strings.TrimPrefix(said, c.title+r.t(": ")) // it has just been named
	}
	line += dots(r.o.ASCII, oneLine(said, summaryRunes))
	if !e.Denied && more == "" && e.Took >= 0 { // else the sentence goes on, or nobody knows
		line += mark(r.o.ASCII, " · ", r.t(", ")) + lasted(e.Took)
	}
	return role, line, more
}

// result is the core of what came of a call.
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

// dots is a line that may have been cut, with the mark of that as the terminal shows it.
func dots(ascii bool, line string) string {
	if head, cut := strings.CutSuffix(line, "…"); cut {
		return head + mark(ascii, "…", "...")
	}
	return line
}

// oneLine is text, cleaned, as one line of at most limit runes.
func oneLine(text string, limit int) string { return sanitize.Line(sanitize.Mask(text), limit) }

func cleaned(text string) string { return sanitize.Text(sanitize.Mask(text)) }
