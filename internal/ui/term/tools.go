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
	task         *taskView
	tool, title  string
	ascii        bool   // the terminal shows only ASCII
	runsCommand  bool   // it runs a command
	changesFile  bool   // it changes a file
	isCheck      bool   // it is coder's own check, not a model's call
	hasOwnTitle  bool   // coder wrote its title
	startShown   bool   // its first line was shown
	isQuestion   bool   // it asks the user a question, which names its subject
	todosShown   bool   // the list that it changed was shown
	approvedDiff string // the change that the user was shown before it was made
	output       outputBox
	startTime    time.Time
	recent       recentOutput // output that is shown at the end
	startsAgent  bool         // it started another agent
	agentCalls   []string     // what the calls of this agent came to, a line each
}

func (r *Renderer) findCall(task, id string) *callView {
	k := callKey{task, id}
	c := r.calls[k]
	if c == nil {
		c = &callView{task: r.findTask(task), ascii: r.options.ASCII}
		r.calls[k] = c
	}
	return c
}

// showToolEvent shows an event of a call.
func (r *Renderer) showToolEvent(rec event.Record) {
	switch e := rec.Event.(type) {
	case event.ToolCallRequested:
		c := r.findCall(rec.Task, e.CallID)
		c.hasOwnTitle = event.IsOwnTitle(e.Tool, e.Title, e.Effects)
		for _, effect := range e.Effects {
			c.runsCommand = c.runsCommand || effect.Kind == event.EffectExec
			c.changesFile = c.changesFile || effect.Kind == event.EffectWrite
			c.isQuestion = c.isQuestion || effect.Kind == event.EffectNote &&
				(effect.Target == "question" || effect.Target == "plan") && c.task.parent == ""
		}
	case event.ToolStarted:
		c := r.findCall(rec.Task, e.CallID)
		c.tool, c.title, c.isCheck = e.Tool, e.Title, rec.Actor == event.ActorVerifier
		c.hasOwnTitle = c.hasOwnTitle || event.IsOwnTitle(e.Tool, e.Title, nil)
		r.showStart(c)
	case event.ToolOutput:
		// Shown as it arrives if no other call is running, otherwise at the end
		c := r.findCall(rec.Task, e.CallID)
		b := &c.output
		if b.target == nil {
			b.ascii = r.options.ASCII
			b.target = func(l ink.Style, text string) { b.buffered = append(b.buffered, ink.Span{Style: l, Text: text}) }
			if len(r.status.calls) <= 1 && c.task.parent == "" && !c.task.isCommand {
				b.target = func(l ink.Style, text string) {
					if r.lastCall != c { // other output was written since its name
						r.writeCallName(c)
						text = strings.TrimPrefix(text, "\n")
					}
					r.page.write(l, text)
				}
			}
		}
		b.skipLines()
		text := b.cleaner.clean(e.Text)
		if c.task.showsOutput {
			r.addOutput(c, text)
			return
		}
		b.write(text)
		if b.owesNewline && r.lastCall == c {
			r.page.endLineEarly()
		}
		if c.recent.overwritten = ""; c.task.isCommand {
			c.recent.write(text)
		}
		r.status.changed = true
	case event.ToolProgress:
		c := r.findCall(rec.Task, e.CallID)
		c.recent.overwritten = sanitize.Text(e.Line)
		c.output.skipped = max(c.output.skipped, e.Lines)
		r.status.changed = true
	case event.ToolFinished:
		c := r.findCall(rec.Task, e.CallID)
		c.tool, c.title, c.isCheck = e.Tool, e.Title, c.isCheck || rec.Actor == event.ActorVerifier
		r.showEnd(c, e)
		delete(r.calls, callKey{rec.Task, e.CallID})
		r.status.endCall(c)
		r.status.set(r.t("working"))
	}
}

// showStart shows that c has started.
func (r *Renderer) showStart(c *callView) {
	c.startShown = true
	if r.options.Now != nil {
		c.startTime = r.options.Now()
	}
	r.status.calls, r.status.changed = append(r.status.calls, c), true
	if c.task.isCommand {
		if r.options.ShowImmediately { // nothing else could show its output before the end
			c.task.showsOutput = true
			r.enterSection(sectionNone)
			r.page.writeMasked(ink.Tool, "[COMMAND]")
			r.page.writeMasked(ink.Plain, "$ "+c.task.command)
			r.section = sectionInserted
		}
		return
	}
	if !r.isFolded(c) {
		r.writeCallName(c)
	}
}

// addOutput adds the complete lines of c's output and keeps the rest: only in a complete line is it certain
// whether it contains a key.
func (r *Renderer) addOutput(c *callView, text string) {
	lines := strings.SplitAfter(c.output.partialLine+text, "\n")
	c.output.partialLine = lines[len(lines)-1]
	for _, line := range lines[:len(lines)-1] {
		r.enterSection(sectionInserted)
		r.page.write(ink.Style{}, sanitize.Mask(strings.TrimSuffix(line, "\n"))+"\n")
	}
}

// writeCallName writes c's name on its own line, for the output below.
func (r *Renderer) writeCallName(c *callView) {
	r.enterSection(sectionTools)
	// For a tool that runs commands the name is in the brackets, unless another agent uses it.
	label, apart := "[tool] "+c.displayName(), "  "
	if c.runsCommand && c.task.parent == "" {
		label, apart = "["+c.displayName()+"]", " "
	}
	title := c.displayTitle()
	switch {
	case c.isQuestion:
		title = ""
	case c.hasOwnTitle:
		title = r.options.Translator.TranslateText(title)
	}
	if title != "" {
		title = apart + title
	}
	w := ink.Wrap{Put: r.page.write, Width: r.width(), Indent: hangIndent}
	w.WriteFixed(ink.Style{Role: ink.Tool}, label)
	w.Write(ink.Style{}, title)
	if c.isCheck {
		w.Write(ink.Style{Role: ink.Dim}, signFor(r.options.ASCII, " · ", ", ")+r.t("automatic check"))
	}
	w.End()
	r.page.endLine()
	r.lastCall = c
}

// plainName returns the call in a few words.
func (c *callView) plainName() string {
	return strings.TrimSpace(c.displayName() + " " + c.displayTitle())
}

// displayTitle returns the call's subject on one line, naming lookalike letters as its card does.
func (c *callView) displayTitle() string {
	title, cut := strings.CutSuffix(oneLine(c.title, titleRunes), "…")
	reveal := sanitize.Reveal
	if c.runsCommand {
		reveal = sanitize.RevealCommand
	}
	if title = reveal(title); cut {
		title += signFor(c.ascii, "…", "...")
	}
	return title
}

// displayName returns the tool's name, after the agent's if that is not the main one.
func (c *callView) displayName() string {
	name := ellipsis(c.ascii, oneLine(c.tool, titleRunes))
	if c.task.parent != "" && c.task.agent != "" {
		return ellipsis(c.ascii, oneLine(c.task.agent, titleRunes)) + " > " + name
	}
	return name
}

func (r *Renderer) linesText(n int) string {
	if n == 1 {
		return r.t("1 line")
	}
	return r.t("%d lines", n)
}

func (r *Renderer) omittedText(lines int) string {
	text := r.t("… %d lines omitted", lines)
	if lines == 1 {
		text = r.t("… 1 line omitted")
	}
	if r.options.OnActivity != nil {
		text += signFor(r.options.ASCII, " · ", r.t("; ")) + r.t("Ctrl+O: all of it")
	}
	return text
}

// keepOmitted keeps a text of which a part was not shown.
func (r *Renderer) keepOmitted(whole string) {
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

// showEnd shows how c ended.
func (r *Renderer) showEnd(c *callView, e event.ToolFinished) {
	if c.task.isCommand {
		if b := &c.output; c.task.showsOutput && !b.isEmpty() {
			r.addOutput(c, b.cleaner.flush()+"\n")
		}
		return
	}
	if r.isFolded(c) {
		r.foldCall(c, e)
		return
	}
	if !c.startShown {
		c.isQuestion = false // no question was asked
		r.showStart(c)
	}
	r.keepOmitted(c.output.finish(r.omittedText))
	named := r.lastCall != c
	switch {
	case len(c.output.buffered) > 0: // its output is between its name and its end, as always
		if named {
			r.writeCallName(c)
		}
		for _, span := range c.output.buffered {
			r.page.write(span.Style, span.Text)
		}
		r.page.endLine()
		c.output.buffered, named = nil, false
	case named:
		r.enterSection(sectionTools)
	}
	role, line, more := r.outcomeText(c, e, named)
	agentFolded := c.startsAgent && r.status.show != nil && role == ink.Good
	if agentFolded {
		line += r.foldAgent(c, e)
	}
	r.page.writeWrapped(r.width(), role, line)
	if more != "" {
		r.writeBounded("    "+strings.ReplaceAll(more, "\n", "\n    "), 0)
		r.page.endLine()
	}
	r.page.endLine()
	if text, ok := e.Content.(display.Text); (!ok || c.output.isEmpty() && string(text) != e.Summary) && !c.todosShown &&
		!agentFolded {
		// Tables are shown completely, diffs up to a readable length, text and code within the bounds of an
		// outputBox
		switch b := e.Content.(type) {
		case display.Text:
			width := r.width()
			if c.runsCommand { // a program's output, not prose
				width = 0
			}
			r.writeBounded(string(b), width)
		case display.Code:
			if b.Lang == display.LangMarkdown {
				r.writeBoundedProse(b.Source)
			} else {
				r.writeBounded(b.Source, 0)
			}
		case display.Diff:
			if r.page.endLine(); !isShown(c.approvedDiff, b) {
				r.writeDiff(below(c.title, diffLines(cleanText(b.Unified))), c.changesFile)
				if b.OmittedLines > 0 {
					r.page.writeLines(ink.Dim, r.omittedText(b.OmittedLines))
				}
			}
		case display.Table:
			r.page.endLine()
			drawTable(b, r.options.Translator.TranslateText, r.width(),
				ink.Grid{ASCII: r.options.ASCII, ScreenReader: r.options.ScreenReader}, r.page.write)
		}
		r.page.endLine()
	}
	r.lastCall = nil
}

// isShown reports whether a diff is the approved one, or the beginning of it.
func isShown(approved string, d display.Diff) bool {
	return d.Unified == approved || d.OmittedLines > 0 && d.Unified != "" && strings.HasPrefix(approved, d.Unified)
}

// Lines shown of a diff that changes nothing: the rest can be requested again.
const (
	maxAskedDiff = 80
	diffTail     = 20 // of them at the end
	diffSlack    = 40 // extra lines if that completes it: fewer are not worth asking again
)

// writeDiff shows a diff: completely if the change was made, otherwise at most a readable length.
func (r *Renderer) writeDiff(lines []diffLine, made bool) {
	if left := len(lines) - maxAskedDiff; !made && left > diffSlack {
		var whole strings.Builder
		drawDiff(lines, r.options.ASCII, func(_ ink.Style, text string) { whole.WriteString(text) })
		r.keepOmitted(whole.String())
		note := diffLine{text: r.omittedText(left)}
		lines = slices.Concat(lines[:maxAskedDiff-diffTail], []diffLine{note}, lines[len(lines)-diffTail:])
	}
	drawDiff(lines, r.options.ASCII, r.page.write)
}

// outcomeText returns the last line of a call, and the text below that line.
func (r *Renderer) outcomeText(c *callView, e event.ToolFinished, named bool) (role ink.Role, line, more string) {
	role, sign := ink.Good, signFor(r.options.ASCII, "✓ ", r.t("ok: "))
	if e.Failed || e.Denied {
		role, sign = ink.Bad, signFor(r.options.ASCII, "✗ ", r.t("failed: "))
	}
	line = "  " + sign
	switch {
	case named && c.isQuestion:
		line += c.displayName() + r.t(": ")
	case named:
		line += c.plainName() + r.t(": ")
	}
	said, more, _ := strings.Cut(strings.TrimSpace(r.resultText(e)), "\n")
	if !named && e.Summary != "" && e.Summary == e.Title { // the line above is the same
		said = r.t("done")
	}
	if named && c.title != "" {
		said = strings.TrimPrefix(said, c.title+r.t(": ")) // the line above has just named it
	}
	line += ellipsis(r.options.ASCII, oneLine(said, summaryRunes))
	if !e.Denied && more == "" && e.Duration >= 0 { // otherwise the sentence continues, or the time is unknown
		line += signFor(r.options.ASCII, " · ", r.t(", ")) + formatDuration(e.Duration)
	}
	return role, line, more
}

// resultText returns the essence of a call's result.
func (r *Renderer) resultText(e event.ToolFinished) string {
	said := e.Summary
	if said == "" && (e.Failed || e.Denied) {
		said = e.Result.ErrorText()
	}
	if e.Denied {
		said = strings.TrimPrefix(said, "denied: ")
	}
	switch {
	case e.Denied && !strings.HasPrefix(said, "refused"):
		return strings.TrimSuffix(r.t("refused: %s", display.TranslateResult(e.Title, said, r.t(": "),
			r.options.Translator.TranslateText)), ": ")
	case said == "" && e.Failed:
		return r.t("failed")
	case said == "":
		return r.t("done")
	}
	return display.TranslateResult(e.Title, said, r.t(": "), r.options.Translator.TranslateText)
}

// ellipsis returns a line that may have been cut, with the terminal's sign for that.
func ellipsis(ascii bool, line string) string {
	if head, cut := strings.CutSuffix(line, "…"); cut {
		return head + signFor(ascii, "…", "...")
	}
	return line
}

// oneLine returns text, cleaned, as one line of at most limit runes.
func oneLine(text string, limit int) string { return sanitize.Line(sanitize.Mask(text), limit) }

func cleanText(text string) string { return sanitize.Text(sanitize.Mask(text)) }
