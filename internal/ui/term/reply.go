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
	task          string
	thought, text passage // arriving
	mused, spoke  bool    // some of the thinking, or of the answer, arrived
}

// passage is one part of a reply: thinking or answer.
type passage struct {
	came  bool      // some of it arrived, even if nothing visible
	shown bool      // its title was shown
	since time.Time // it began, where only a line tells of it
	// unseen is the thinking that only a line tells of.
	unseen []byte
	skip   string // prefix to omit from the rest: other output came between
	clean  pieces
	md     markdown.Stream // for the answer
	plain  flow            // for the thinking
}

// anew continues the arriving line on a new line.
func (p *passage) anew() (indent int) {
	if p.md.Put != nil {
		return p.md.Anew()
	}
	return p.plain.wrap.Anew()
}

// open makes task's reply the arriving one.
func (r *Renderer) open(task string) *reply {
	if r.reply.task != task {
		r.endReply()
		r.reply.task = task
	}
	return &r.reply
}

func (r *Renderer) think(task, text string) {
	r.endText()
	p := &r.open(task).thought
	if r.o.ThoughtLine && !p.came && r.o.Now != nil {
		p.since = r.o.Now()
	}
	p.came, r.reply.mused = true, true
	if r.o.ThoughtLine {
		if len(p.unseen) < maxWhole {
			p.unseen = append(p.unseen, p.clean.next(text)...)
		}
		r.status.set(r.t("thinking"))
		return
	}
	p.plain.wrap.Put = func(l ink.Look, text string) { r.show(p, thinking, "[THINKING]", l, text) }
	p.plain.width = r.width()
	for line := range strings.SplitAfterSeq(p.clean.next(text), "\n") {
		p.plain.write(line)
		r.putIfBetween()
	}
	if len(p.plain.wrap.Held()) > 0 {
		p.plain.wrap.Put(ink.Look{}, "") // its title is above it
	}
	if p.plain.wrote && p.plain.ends > 0 {
		r.page.rest()
	}
	r.status.set(r.t("thinking"))
}

func (r *Renderer) answer(task, text string) {
	r.endThought()
	p := &r.open(task).text
	if !p.came {
		p.md = markdown.Stream{Width: r.o.Width, Source: r.o.Palette.Level == None && !r.o.Spoken, ASCII: r.o.ASCII, Spoken: r.o.Spoken}
		p.md.Put = func(l ink.Look, text string) { r.show(p, answer, "[ANSWER]", l, text) }
	}
	p.came, r.reply.spoke = true, true
	for line := range strings.SplitAfterSeq(p.clean.next(text), "\n") {
		p.md.Write(line)
		r.putIfBetween()
	}
	if len(p.md.Held()) > 0 {
		p.md.Put(ink.Look{}, "") // its title is above it
	}
	if p.md.Owes() {
		r.page.rest()
	}
	r.status.set(r.t("writing"))
}

// ahead returns the content that will be in the stream and can be shown before.
func (r *Renderer) ahead() Ahead {
	a := Ahead{Begun: r.begun(), Aside: r.aside, Newest: r.newest}
	rows := r.reply.text.md.Rows()
	if rows == nil {
		r.above = 0
		return a
	}
	a.Table, a.Begun, a.Above = strings.TrimRight(r.table(rows)+"\n"+a.Begun, "\n"), "", r.above // the begun text is below them
	return a
}

// table draws the arriving table with these rows.
func (r *Renderer) table(rows []string) string {
	now := preview{head: rows[0], last: rows[len(rows)-1], rows: len(rows), width: r.width(), palette: r.o.Palette}
	if now.text = r.preview.text; now != r.preview {
		var p page
		p.palette = r.o.Palette
		r.reply.text.md.Preview(p.put)
		now.text = p.take()
		r.preview = now
	}
	return now.text
}

// preview is an unfinished table as drawn, and its source.
type preview struct {
	text        string
	head, last  string
	rows, width int
	palette     Palette
}

// begun returns the unfinished word.
func (r *Renderer) begun() string {
	spans, role := r.reply.text.md.Held(), ink.Plain
	if len(spans) == 0 {
		spans, role = r.reply.thought.plain.wrap.Held(), ink.Dim
	}
	var p page
	p.palette = r.o.Palette
	for i, s := range spans {
		if s.Look.Role == ink.Plain {
			s.Look.Role = role
		}
		if i == 0 && !r.page.mid {
			s.Text = strings.TrimLeft(s.Text, " ")
		}
		p.put(s.Look, s.Text)
	}
	return p.take()
}

// show adds a part of a passage, the first one below its title.
func (r *Renderer) show(p *passage, s section, title string, l ink.Look, text string) {
	if !p.shown {
		p.shown = true
		r.enter(nothing)
		role := ink.Plain
		if s == thinking {
			role = ink.Dim
		}
		r.page.say(role, title)
		r.section = s
	}
	if r.section != s { // other output came between, perhaps inside a line
		torn := r.arriving()
		if p.skip = "\n"; torn {
			p.skip = "\n "
		}
		r.enter(s)
		if torn {
			r.page.put(ink.Look{}, strings.Repeat(" ", p.anew()))
		}
	}
	if text = strings.TrimLeft(text, p.skip); text != "" {
		p.skip = ""
	}
	if s == thinking {
		l.Role = ink.Dim
	}
	r.page.put(l, text)
}

func (r *Renderer) endThought() (shown bool) {
	p := &r.reply.thought
	if p.came && r.o.ThoughtLine {
		r.omit(sanitize.Mask(strings.TrimSpace(string(p.unseen) + p.clean.rest())))
		r.enter(thinking)
		if took := r.thoughtFor(p); took >= time.Second {
			r.page.say(ink.Dim, r.t("thought for %s", lasted(took.Truncate(time.Second))))
		} else {
			r.page.say(ink.Dim, r.t("thought"))
		}
	} else if p.came {
		p.plain.write(p.clean.rest())
		p.plain.wrap.End()
		r.page.fresh()
	}
	shown = p.shown
	*p = passage{}
	return shown
}

// thoughtFor is how long the model thought, 0 if nobody knows.
func (r *Renderer) thoughtFor(p *passage) time.Duration {
	if p.since.IsZero() {
		return 0
	}
	return r.o.Now().Sub(p.since)
}

func (r *Renderer) endText() (shown bool) {
	p := &r.reply.text
	if p.came {
		p.md.Write(p.clean.rest())
		p.md.End()
		r.page.fresh()
	}
	shown = p.shown
	*p = passage{}
	return shown
}

// endReply shows what was held back and closes the reply. It reports which parts were shown.
func (r *Renderer) endReply() (thought, text bool) {
	thought, text = r.endThought(), r.endText()
	r.reply = reply{}
	return thought, text
}

// breakOff closes a reply that was cut off, and says so.
func (r *Renderer) breakOff() {
	if _, cut := r.endReply(); cut {
		r.page.say(ink.Warn, r.t("[interrupted]"))
	}
}

// message closes the reply e and shows what was not shown of it.
func (r *Renderer) message(t *taskView, e event.MessageAdded) {
	text := e.Message.Text()
	switch {
	case e.Message.Role == chat.User && !t.prompted:
		t.prompted = true
		t.command, t.bang = strings.CutPrefix(strings.TrimSpace(text), "!")
		t.command = strings.TrimSpace(strings.TrimPrefix(t.command, "!"))
	case e.Message.Role != chat.Assistant || t.parent != "":
	case t.bang:
		if t.live {
			r.enter(inserted)
		} else {
			r.enter(nothing)
			r.page.say(ink.Tool, "[COMMAND]")
		}
		if e.Blocks == nil {
			r.bounded(text, 0)
		}
		for _, b := range e.Blocks {
			if ran, ok := b.(display.Shell); ok && t.live {
				r.outcomeOf(ran, ran.Stdout == "" && ran.Stderr == "")
			} else {
				r.own(display.Blocks{b}, 0)
			}
		}
		r.section = inserted
	default:
		here := r.reply.task == t.id
		if text := e.Message.Reasoning(); text != "" && !(here && (r.reply.mused || r.reply.spoke)) {
			r.think(t.id, text)
		}
		if text := e.Message.Text(); text != "" && !(here && r.reply.spoke) {
			r.answer(t.id, text)
		}
		r.endReply()
		if e.Interrupted && strings.TrimSpace(text) != "" {
			r.page.say(ink.Warn, r.t("[interrupted]"))
		}
		r.status.set(r.t("working"))
	}
}

// waiting shows the wait in the live line, and a long one in the stream too.
func (r *Renderer) waiting(e event.Waiting) {
	switch {
	case e.Why == event.WaitLimit:
		line := r.t("waiting until %s, when the provider's limit resets", e.Until.Local().Format("2006-01-02 15:04:05"))
		r.status.set(line)
		r.remark(ink.Warn, line)
	case e.Why == event.WaitLoading:
		if e.Waited == 0 {
			r.remark(ink.Warn, r.t("the server is loading the model; waiting for it"))
		}
		r.status.set(r.t("the server is loading the model"))
	case e.Why == event.WaitSummary:
		r.status.set(r.t("summarizing the conversation"))
	case e.Of > 0:
		r.status.set(r.t("the model reads: %d of %d tokens", e.Read, e.Of))
	default:
		r.status.set(r.t("waiting for the model"))
	}
}

func (r *Renderer) retrying(task string, e event.Retrying) {
	here := r.reply.task == task
	thought, text := r.endReply()
	void := here && (thought || text)
	why := r.o.Words.Said(e.Why)
	if why == "" {
		why = r.t("no reply")
	}
	again := r.t("retrying (attempt %d of %d)", e.Attempt, e.Of)
	if e.Wait > 0 {
		again = r.t("retrying in %s (attempt %d of %d)", lasted(e.Wait), e.Attempt, e.Of)
	}
	line := r.t("%s; %s", why, again)
	r.status.set(strings.ReplaceAll(line, ink.HardBlank, " "))
	if void {
		line = r.t("%s; %s", line, r.t("the reply above is discarded"))
	}
	r.remark(ink.Warn, line)
}

// flow draws plain text without blank lines at its ends.
type flow struct {
	wrap  ink.Wrap
	width int // of the terminal; 0 disables wrapping
	ends  int
	blank string // leading white space, added when text follows
	wrote bool
}

func (f *flow) write(text string) {
	f.wrap.Resize(f.width)
	for text != "" {
		line, rest, ends := strings.Cut(text, "\n")
		f.add(line)
		if ends {
			f.wrap.End()
			f.ends, f.blank = min(f.ends+1, 2), ""
		}
		text = rest
	}
}

func (f *flow) add(line string) {
	if strings.TrimSpace(line) == "" && (!f.wrote || f.ends > 0) {
		f.blank += line
		return
	}
	line = f.blank + line
	if !f.wrote || f.ends > 0 {
		if f.wrote {
			f.wrap.Put(ink.Look{}, strings.Repeat("\n", f.ends))
		}
		f.wrap.Width, f.wrap.Indent = f.width, ink.Hanging(line)
	}
	f.ends, f.blank, f.wrote = 0, "", true
	f.wrap.Write(ink.Look{}, line)
}
