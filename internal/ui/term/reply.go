package term

import (
	"strings"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/sanitize"
	"coder/internal/ui/term/ink"
	"coder/internal/ui/term/markdown"
)

// reply is the model's reply, as far as it has arrived.
type reply struct {
	task                string
	thought, text       passage // arriving
	hadThought, hadText bool    // some of the thinking, or of the answer, arrived
}

// passage is one part of a reply: thinking or answer.
type passage struct {
	started    bool      // some of it arrived, even if nothing visible
	titleShown bool      // its title was shown
	startTime  time.Time // it began, where only a line tells of it
	// unseen is the thinking that only a line tells of.
	unseen     []byte
	skipPrefix string // prefix to omit from the rest: other output came between
	cleaner    pieceCleaner
	markdown   markdown.Stream // for the answer
	plain      plainFlow       // for the thinking
}

// restart continues the arriving line on a new line.
func (p *passage) restart() (indent int) {
	if p.markdown.Put != nil {
		return p.markdown.Restart()
	}
	return p.plain.wrap.Restart()
}

// openReply makes task's reply the arriving one.
func (r *Renderer) openReply(task string) *reply {
	if r.reply.task != task {
		r.endReply()
		r.reply.task = task
	}
	return &r.reply
}

func (r *Renderer) addThought(task, text string) {
	r.endText()
	p := &r.openReply(task).thought
	if r.options.ThoughtLine && !p.started && r.options.Now != nil {
		p.startTime = r.options.Now()
	}
	p.started, r.reply.hadThought = true, true
	if r.options.ThoughtLine {
		if len(p.unseen) < maxFullText {
			p.unseen = append(p.unseen, p.cleaner.clean(text)...)
		}
		r.status.set(r.t("thinking"))
		return
	}
	p.plain.wrap.Put = func(l ink.Style, text string) { r.showPassage(p, sectionThinking, "[THINKING]", l, text) }
	p.plain.width = r.width()
	for line := range strings.SplitAfterSeq(p.cleaner.clean(text), "\n") {
		p.plain.write(line)
		r.flushIfBetween()
	}
	if len(p.plain.wrap.Pending()) > 0 {
		p.plain.wrap.Put(ink.Style{}, "") // its title is above it
	}
	if p.plain.hasOutput && p.plain.pendingNewlines > 0 {
		r.page.endLineEarly()
	}
	r.status.set(r.t("thinking"))
}

func (r *Renderer) addText(task, text string) {
	r.endThought()
	p := &r.openReply(task).text
	if !p.started {
		p.markdown = markdown.Stream{Width: r.options.Width,
			KeepMarks: r.options.Palette.Level == None && !r.options.ScreenReader, ASCII: r.options.ASCII,
			ScreenReader: r.options.ScreenReader}
		p.markdown.Put = func(l ink.Style, text string) { r.showPassage(p, sectionAnswer, "[ANSWER]", l, text) }
	}
	p.started, r.reply.hadText = true, true
	for line := range strings.SplitAfterSeq(p.cleaner.clean(text), "\n") {
		p.markdown.Write(line)
		r.flushIfBetween()
	}
	if len(p.markdown.Pending()) > 0 {
		p.markdown.Put(ink.Style{}, "") // its title is above it
	}
	if p.markdown.OwesNewline() {
		r.page.endLineEarly()
	}
	r.status.set(r.t("writing"))
}

// pendingOutput returns the content that will be in the stream and can be shown before.
func (r *Renderer) pendingOutput() PendingOutput {
	a := PendingOutput{Word: r.unfinishedWord(), Waiting: r.waitingText, WaitingNewest: r.newest}
	rows := r.reply.text.markdown.Rows()
	if rows == nil {
		r.linesAbove = 0
		return a
	}
	// the begun text is below them
	a.Table, a.Word, a.LinesAbove = strings.TrimRight(r.drawPreview(rows)+"\n"+a.Word, "\n"), "", r.linesAbove
	return a
}

// drawPreview draws the arriving table with these rows.
func (r *Renderer) drawPreview(rows []string) string {
	now := tablePreview{head: rows[0], last: rows[len(rows)-1], rows: len(rows), width: r.width(),
		palette: r.options.Palette}
	if now.text = r.preview.text; now != r.preview {
		var p page
		p.palette = r.options.Palette
		r.reply.text.markdown.Preview(p.write)
		now.text = p.takeText()
		r.preview = now
	}
	return now.text
}

// tablePreview is an unfinished table as drawn, and its source.
type tablePreview struct {
	text        string
	head, last  string
	rows, width int
	palette     Palette
}

// unfinishedWord returns the unfinished word.
func (r *Renderer) unfinishedWord() string {
	spans, role := r.reply.text.markdown.Pending(), ink.Plain
	if len(spans) == 0 {
		spans, role = r.reply.thought.plain.wrap.Pending(), ink.Dim
	}
	var p page
	p.palette = r.options.Palette
	for i, s := range spans {
		if s.Style.Role == ink.Plain {
			s.Style.Role = role
		}
		if i == 0 && !r.page.midLine {
			s.Text = strings.TrimLeft(s.Text, " ")
		}
		p.write(s.Style, s.Text)
	}
	return p.takeText()
}

// showPassage adds a part of a passage, the first one below its title.
func (r *Renderer) showPassage(p *passage, s section, title string, l ink.Style, text string) {
	if !p.titleShown {
		p.titleShown = true
		r.enterSection(sectionNone)
		role := ink.Plain
		if s == sectionThinking {
			role = ink.Dim
		}
		r.page.writeMasked(role, title)
		r.section = s
	}
	if r.section != s { // other output came between, perhaps inside a line
		torn := r.inParagraph()
		if p.skipPrefix = "\n"; torn {
			p.skipPrefix = "\n "
		}
		r.enterSection(s)
		if torn {
			r.page.write(ink.Style{}, strings.Repeat(" ", p.restart()))
		}
	}
	if text = strings.TrimLeft(text, p.skipPrefix); text != "" {
		p.skipPrefix = ""
	}
	if s == sectionThinking {
		l.Role = ink.Dim
	}
	r.page.write(l, text)
}

func (r *Renderer) endThought() (shown bool) {
	p := &r.reply.thought
	if p.started && r.options.ThoughtLine {
		r.keepOmitted(sanitize.Mask(strings.TrimSpace(string(p.unseen) + p.cleaner.flush())))
		r.enterSection(sectionThinking)
		if took := r.thinkingTime(p); took >= time.Second {
			r.page.writeMasked(ink.Dim, r.t("thought for %s", formatDuration(took.Truncate(time.Second))))
		} else {
			r.page.writeMasked(ink.Dim, r.t("thought"))
		}
	} else if p.started {
		p.plain.write(p.cleaner.flush())
		p.plain.wrap.End()
		r.page.endLine()
	}
	shown = p.titleShown
	*p = passage{}
	return shown
}

// thinkingTime is how long the model thought, 0 if nobody knows.
func (r *Renderer) thinkingTime(p *passage) time.Duration {
	if p.startTime.IsZero() {
		return 0
	}
	return r.options.Now().Sub(p.startTime)
}

func (r *Renderer) endText() (shown bool) {
	p := &r.reply.text
	if p.started {
		p.markdown.Write(p.cleaner.flush())
		p.markdown.End()
		r.page.endLine()
	}
	shown = p.titleShown
	*p = passage{}
	return shown
}

// endReply shows what was held back and closes the reply. It reports which parts were shown.
func (r *Renderer) endReply() (thought, text bool) {
	thought, text = r.endThought(), r.endText()
	r.reply = reply{}
	return thought, text
}

// cutOffReply closes a reply that was cut off, and says so.
func (r *Renderer) cutOffReply() {
	if _, cut := r.endReply(); cut {
		r.page.writeMasked(ink.Warn, r.t("[interrupted]"))
	}
}

// showMessage closes the reply e and shows what was not shown of it.
func (r *Renderer) showMessage(t *taskView, e event.MessageAdded) {
	text := e.Message.Text()
	switch {
	case e.Message.Role == chat.User && !t.promptShown:
		t.promptShown = true
		t.command, t.isCommand = strings.CutPrefix(strings.TrimSpace(text), "!")
		t.command = strings.TrimSpace(strings.TrimPrefix(t.command, "!"))
	case e.Message.Role != chat.Assistant || t.parent != "":
	case t.isCommand:
		if t.showsOutput {
			r.enterSection(sectionInserted)
		} else {
			r.enterSection(sectionNone)
			r.page.writeMasked(ink.Tool, "[COMMAND]")
		}
		if e.Blocks == nil {
			r.writeBounded(text, 0)
		}
		for _, b := range e.Blocks {
			if ran, ok := b.(display.Shell); ok && t.showsOutput {
				r.writeOutcome(ran, ran.Stdout == "" && ran.Stderr == "")
			} else {
				r.writeBlocks(display.Blocks{b}, 0)
			}
		}
		r.section = sectionInserted
	default:
		here := r.reply.task == t.id
		if text := e.Message.Reasoning(); text != "" && !(here && (r.reply.hadThought || r.reply.hadText)) {
			r.addThought(t.id, text)
		}
		if text := e.Message.Text(); text != "" && !(here && r.reply.hadText) {
			r.addText(t.id, text)
		}
		r.endReply()
		if e.Interrupted && strings.TrimSpace(text) != "" {
			r.page.writeMasked(ink.Warn, r.t("[interrupted]"))
		}
		r.status.set(r.t("working"))
	}
}

// showWait shows the wait in the live line, and a long one in the stream too.
func (r *Renderer) showWait(e event.Waiting) {
	switch {
	case e.Reason == event.WaitLimit:
		line := r.t("waiting until %s, when the provider's limit resets", e.Until.Local().Format("2006-01-02 15:04:05"))
		r.status.set(line)
		r.writeRemark(ink.Warn, line)
	case e.Reason == event.WaitLoading:
		if e.Waited == 0 {
			r.writeRemark(ink.Warn, r.t("the server is loading the model; waiting for it"))
		}
		r.status.set(r.t("the server is loading the model"))
	case e.Reason == event.WaitSummary:
		r.status.set(r.t("summarizing the conversation"))
	case e.TotalTokens > 0:
		r.status.set(r.t("the model reads: %d of %d tokens", e.ReadTokens, e.TotalTokens))
	default:
		r.status.set(r.t("waiting for the model"))
	}
}

func (r *Renderer) showRetry(task string, e event.Retrying) {
	here := r.reply.task == task
	thought, text := r.endReply()
	void := here && (thought || text)
	why := r.options.Translator.TranslateText(e.Reason)
	if why == "" {
		why = r.t("no reply")
	}
	again := r.t("retrying (attempt %d of %d)", e.Attempt, e.MaxAttempts)
	if e.Wait > 0 {
		again = r.t("retrying in %s (attempt %d of %d)", formatDuration(e.Wait), e.Attempt, e.MaxAttempts)
	}
	line := r.t("%s; %s", why, again)
	r.status.set(strings.ReplaceAll(line, ink.NoBreakSpace, " "))
	if void {
		line = r.t("%s; %s", line, r.t("the reply above is discarded"))
	}
	r.writeRemark(ink.Warn, line)
}

// plainFlow draws plain text without blank lines at its ends.
type plainFlow struct {
	wrap            ink.Wrap
	width           int // of the terminal; 0 disables wrapping
	pendingNewlines int
	leadingSpace    string // leading white space, added when text follows
	hasOutput       bool
}

func (f *plainFlow) write(text string) {
	f.wrap.Resize(f.width)
	for text != "" {
		line, rest, ends := strings.Cut(text, "\n")
		f.addLine(line)
		if ends {
			f.wrap.End()
			f.pendingNewlines, f.leadingSpace = min(f.pendingNewlines+1, 2), ""
		}
		text = rest
	}
}

func (f *plainFlow) addLine(line string) {
	if strings.TrimSpace(line) == "" && (!f.hasOutput || f.pendingNewlines > 0) {
		f.leadingSpace += line
		return
	}
	line = f.leadingSpace + line
	if !f.hasOutput || f.pendingNewlines > 0 {
		if f.hasOutput {
			f.wrap.Put(ink.Style{}, strings.Repeat("\n", f.pendingNewlines))
		}
		f.wrap.Width, f.wrap.Indent = f.width, ink.HangIndent(line)
	}
	f.pendingNewlines, f.leadingSpace, f.hasOutput = 0, "", true
	f.wrap.Write(ink.Style{}, line)
}
