package term

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/sanitize"
	"coder/internal/core/uip"
	"coder/internal/ui/term/ink"
	"coder/internal/ui/term/markdown"
)

// Cards draws questions to the person as text for the stream. What will run or
// change is shown cleaned, and what cannot be seen in it is named; what is too
// long for a screen is folded and says so, so that nothing scrolls away unseen.
type Cards struct {
	Width   func() int
	Room    func() int // lines of a card that are seen at once; nil: many
	Height  func() int // of the screen; nil: no line goes out of sight
	Palette Palette
	Words   Words // nil: English
	ASCII   bool
	Spoken  bool // a screen reader reads it
	Whole   bool // fold nothing
	Rest    bool // of a long diff show only what was folded before
	Trust   bool // the card of a check offers trust in the folder

	brief brevity
}

// brevity is how much of a card that was shown before is left out.
type brevity int

const (
	whole brevity = iota
	withoutLong
	withoutContent
	titlesAlone
)

// Again is a question that was shown before, as show draws it, below something that the
// person wanted to see meanwhile: so short that this stays in sight.
func (c Cards) Again(show func(Cards) string) string {
	text := ""
	for c.brief = withoutLong; c.brief <= titlesAlone; c.brief++ {
		text = show(c)
		if c.Height == nil || strings.Count(text, "\n") < c.Height()/2 {
			break
		}
	}
	return text
}

// What of a question's content is shown before it is folded.
const (
	foldLines  = 60   // lines of a command or text
	foldHead   = 40   // of which so many are the first
	foldDiff   = 400  // lines of a diff
	foldRest   = 40   // or so many more, if that is all of it: less is not worth a second look
	foldRunes  = 1000 // runes of one line
	foldEnds   = 400  // of which so many are kept at each end
	foldBlanks = 20   // blanks in a row
	longDiff   = 16   // lines of a diff below which its title stands again
)

// Draw is q as lines of text, the last without a line end: the question, what
// it is about, why it is asked and how to answer. Several approvals are one
// card with numbers; several questions are drawn one below the other.
func (c Cards) Draw(q uip.Request) string {
	d := c.drawing()
	switch {
	case d.brief == titlesAlone && q.Purpose == uip.ConfirmRiskyAction:
		d.page.hung(d.width(), ink.Warn, "[APPROVAL] "+d.titles(q), setIn)
		d.page.words(d.width(), ink.Dim, d.t("the action and the choices are above"))
	case q.Kind == uip.Composite && q.Purpose == uip.ConfirmRiskyAction:
		d.page.tell(ink.Warn, "[APPROVAL] "+d.t("%d calls need approval", len(q.Parts)))
		above := d.lines()
		for i, part := range q.Parts {
			d.page.hung(d.width(), ink.Warn, fmt.Sprintf("%d. %s", i+1, d.title(part)), setIn)
			d.hunk = fmt.Sprintf("%d.", i+1)
			d.content(part)
			d.reasons(part)
		}
		d.putChoices(q)
		d.atLast(q, above)
	case q.Kind == uip.Composite:
		for i, part := range q.Parts {
			d.question(part, i+1, len(q.Parts))
		}
	case q.Kind == uip.Confirm:
		d.page.hung(d.width(), ink.Warn, "[APPROVAL] "+d.title(q), setIn)
		above := d.lines()
		d.content(q)
		if d.again(q) {
			above = d.lines()
		}
		d.reasons(q)
		d.putChoices(q)
		d.atLast(q, above)
	default:
		d.question(q, 1, 1)
	}
	return d.text()
}

// Trusts reports whether q is about a check of the program's own and offers trust.
func (c Cards) Trusts(q uip.Request) bool {
	return c.Trust && q.Kind == uip.Confirm && q.Author == event.ActorVerifier
}

// Hides reports whether Draw leaves out part of what is to be approved.
func (c Cards) Hides(q uip.Request) bool {
	if c.Whole || q.Purpose != uip.ConfirmRiskyAction {
		return false
	}
	d := c.drawing()
	for _, part := range append([]uip.Request{q}, q.Parts...) {
		d.title(part)
		d.content(part)
	}
	return *d.hides
}

// Saw notes that all that q asks approval of was shown to the person: a change
// that is then made as it was shown is not shown again.
func (r *Renderer) Saw(q uip.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, part := range append([]uip.Request{q}, q.Parts...) {
		if diff, ok := part.Display.Content.(display.Diff); ok {
			r.call(q.TaskID, part.Display.Metadata["toolCallId"]).approved = diff.Unified
		}
	}
}

// Question is the m-th of n questions that are put one after the other.
func (c Cards) Question(q uip.Request, m, n int) string {
	d := c.drawing()
	d.question(q, m, n)
	return d.text()
}

func (c Cards) drawing() drawing {
	if c.Words == nil {
		c.Words = English{}
	}
	return drawing{Cards: c, page: &page{palette: c.Palette}, hides: new(bool)}
}

func (d drawing) text() string { return strings.TrimRight(d.page.take(), "\n") }

// drawing is a card that is being drawn.
type drawing struct {
	Cards
	page  *page
	hides *bool  // something was left out
	hunk  string // what stands before the numbers of hunks
}

func (d drawing) t(format string, args ...any) string { return d.Words.T(format, args...) }

// title is what a call is called in a line. Where nothing else shows what it
// would do, cutting it short hides that.
func (d drawing) title(q uip.Request) string {
	line := sanitize.RevealCommand
	if _, ok := q.Display.Content.(display.Text); ok {
		line = sanitize.Reveal // what a person would write: a message, a plan
	}
	whole := line(decidedLine(q.Display.Title, 0))
	if q.Kind == uip.Confirm && q.Worded() {
		return d.Words.Said(whole)
	}
	if d.Whole {
		return whole
	}
	short := line(decidedLine(q.Display.Title, titleRunes))
	if short == whole {
		return whole
	}
	*d.hides = *d.hides || q.Display.Content == nil
	return dots(d.ASCII, short)
}

// revealedLine is a line of text for someone who must decide about it.
func revealedLine(text string, limit int) string { return sanitize.Reveal(decidedLine(text, limit)) }

// decidedLine is [oneLine] of what must not be hidden by a guess.
func decidedLine(text string, limit int) string {
	return sanitize.Line(sanitize.MaskWords(text), limit)
}

// again names what is asked about once more below a long diff, with its size: what it
// is about and why it is asked can be seen together, however small the screen is.
func (d drawing) again(q uip.Request) bool {
	diff, ok := q.Display.Content.(display.Diff)
	long := longDiff
	if d.Room != nil {
		long = min(long, d.Room())
	}
	if !ok || strings.Count(diff.Unified, "\n") <= long {
		return false
	}
	d.page.words(d.width(), ink.Warn, fmt.Sprintf("%s  +%d -%d", d.title(q), diff.Added, diff.Deleted))
	return true
}

// lines is how many there are so far.
func (d drawing) lines() int { return strings.Count(d.page.b.String(), "\n") }

// atLast names what is asked about below all else where the screen is too small for that to
// be seen above it, so many lines from the beginning. Besides there are the title and the
// line of the answer.
func (d drawing) atLast(q uip.Request, above int) {
	if d.Height == nil || d.lines()-above+2 <= d.Height() {
		return
	}
	d.page.hung(d.width(), ink.Warn, d.titles(q), setIn)
}

// titles name all that q asks about.
func (d drawing) titles(q uip.Request) string {
	if len(q.Parts) == 0 {
		return d.title(q)
	}
	var all []string
	for i, part := range q.Parts {
		all = append(all, fmt.Sprintf("%d.%s%s", i+1, ink.HardBlank, d.title(part)))
	}
	return strings.Join(all, mark(d.ASCII, " · ", d.t("; ")))
}

// mainAgent is the one that a person talks to.
const mainAgent = "main"

// reasons are which agent asks, if it is another than usual, and why it is asked, each on a line; a risk in the colour of what went wrong.
func (d drawing) reasons(q uip.Request) {
	if by := q.Author; !slices.Contains([]string{"", mainAgent, event.ActorUser, event.ActorVerifier, event.ActorRecovery}, by) {
		d.page.words(d.width(), ink.Warn, "  "+mark(d.ASCII, "•", "-")+" "+d.t("asked by the agent %s", revealedLine(by, titleRunes)))
	}
	for why := range strings.SplitSeq(q.Display.Description, "; ") {
		role := ink.Warn
		if strings.HasPrefix(why, "risk: ") {
			role = ink.Bad
		}
		if why = dots(d.ASCII, revealedLine(why, noticeRunes)); why != "" {
			d.page.words(d.width(), role, "  "+mark(d.ASCII, "•", "-")+" "+d.Words.Said(why))
		}
	}
}

const noticeRunes = 1000

// question asks for a choice or for words. What it is about, such as a plan,
// stands whole above it.
func (d drawing) question(q uip.Request, m, n int) {
	d.Whole = true
	text, isText := q.Display.Content.(display.Text)
	if isText && d.brief < withoutContent {
		md := markdown.Stream{Put: d.page.put, Width: d.Width, Source: d.Palette.Level == None && !d.Spoken, ASCII: d.ASCII, Spoken: d.Spoken}
		md.Write(d.fold(revealed(string(text))))
		md.End()
		d.page.gap()
	} else if q.Display.Content != nil {
		d.content(q)
		d.page.gap()
	}
	title := "[Question]"
	if n > 1 {
		title = fmt.Sprintf("[Question %d/%d]", m, n)
	}
	asks := q.Display.Title
	if q.Display.Metadata[uip.Quoted] == "" {
		asks = d.Words.Said(asks)
	}
	for i, line := range strings.Split(strings.TrimSpace(cleaned(asks)), "\n") {
		w := ink.Wrap{Put: d.page.put, Width: d.width(), Indent: ink.Hanging(line)}
		if i == 0 {
			w.Indent = 0
			w.Write(ink.Look{Role: ink.Warn}, title)
			w.Write(ink.Look{}, " ")
		}
		w.Write(ink.Look{}, line)
		w.End()
		d.page.put(ink.Look{}, "\n")
	}
	if d.brief == titlesAlone {
		d.page.words(d.width(), ink.Dim, d.t("the choices are above"))
		return
	}
	if text := strings.TrimSpace(cleaned(d.Words.Said(q.Display.Description))); text != "" {
		d.page.words(d.width(), ink.Dim, text)
	}
	for i, o := range q.Options {
		// The first one of those that a model offers is the one it recommends
		label, models := q.Display.Metadata[metaLabel+o.ID]
		about := strings.TrimPrefix(strings.TrimPrefix(o.Label, label), " — ")
		if !models {
			label, about, _ = strings.Cut(d.Words.Said(o.Label), " — ")
		}
		line := fmt.Sprintf("  %d. %s", i+1, dots(d.ASCII, oneLine(label, noticeRunes)))
		if models && i == 0 && !strings.HasSuffix(line, recommended) {
			line += recommended
		}
		if q.Display.Metadata[uip.OnEnter] == o.ID {
			line += " [Enter]"
		}
		if about = dots(d.ASCII, oneLine(about, noticeRunes)); about != "" {
			line += mark(d.ASCII, " — ", " - ") + about
		}
		d.page.words(d.width(), ink.Plain, line)
	}
	if i := slices.IndexFunc(q.Options, func(o uip.Option) bool { return o.ID == q.Display.Metadata[uip.OnWords] }); i >= 0 {
		d.page.words(d.width(), ink.Dim, d.fill([]string{
			d.t("1 and … = add a note"), d.t("other text = %s, and tell the model", d.Words.Said(q.Options[i].Label)),
		}))
	} else if len(q.Options) > 0 && q.Display.Metadata[uip.Quoted] != "" && q.Display.Description == "" {
		d.page.words(d.width(), ink.Dim, d.t("a number, or your own words"))
	}
}

// metaLabel, followed by the id of an option, is where a request has the
// option's label without its description.
const metaLabel = "label"

const recommended = " (Recommended)"

// content shows what will run or change, to the letter. Commands and texts are
// indented, so that no line of them can pass for one of ours.
func (d drawing) content(q uip.Request) {
	long := strings.Count(display.Blocks{q.Display.Content}.Plain(), "\n") > longDiff
	if q.Display.Content != nil && (d.brief >= withoutContent || d.brief == withoutLong && long) {
		d.page.tell(ink.Dim, d.t("the action is shown above"))
		*d.hides = true
		return
	}
	switch b := q.Display.Content.(type) {
	case display.Code:
		drawCode(display.Code{Lang: b.Lang, Source: d.fold(sanitize.RevealCommand(sanitize.MaskWords(b.Source)))}, d.indented())
	case display.Text:
		drawCode(display.Code{Source: d.fold(revealed(string(b)))}, d.indented())
	case display.Diff:
		if b.Unified == "" {
			d.page.tell(ink.Dim, d.t("nothing would change"))
			return
		}
		text := d.foldDiff(b.Unified, q.Display.Metadata[uip.Hunks] != "")
		if q.Display.Metadata[uip.Hunks] != "" {
			text = display.Numbered(text, func(n int) string { return d.t("[hunk %s]", d.hunk+strconv.Itoa(n)) })
		}
		drawDiff(text, d.page.put)
	case display.Table:
		drawTable(b, d.Words.Said, d.width(), ink.Grid{ASCII: d.ASCII, Spoken: d.Spoken}, d.page.put)
	}
	d.page.fresh()
}

// indented puts spans with blanks before each line. One that is too long goes on below,
// to the letter, behind a sign that no line has in that place.
func (d drawing) indented() ink.Put {
	var line []ink.Span
	return func(l ink.Look, text string) {
		if text != "\n" {
			line = append(line, ink.Span{Look: l, Text: text})
			return
		}
		if len(line) > 0 {
			d.page.put(ink.Look{}, "    ")
		}
		for i, row := range ink.Rows(line, d.width()-4) {
			if i > 0 {
				d.page.put(ink.Look{Role: ink.Dim}, "\n  "+mark(d.ASCII, "↳", "+"))
			}
			for _, s := range row {
				d.page.put(s.Look, s.Text)
			}
		}
		d.page.put(ink.Look{}, "\n")
		line = nil
	}
}

func (d drawing) width() int {
	if d.Width == nil {
		return 0
	}
	return d.Width()
}

// fold is text that was revealed, with what would not fit on a screen replaced by a
// word on how much that is.
func (d drawing) fold(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if d.Whole {
		return strings.Join(lines, "\n")
	}
	for i, line := range lines {
		lines[i] = d.foldLine(line)
	}
	if hidden := len(lines) - foldLines; hidden > 0 {
		*d.hides = true
		lines = slices.Concat(lines[:foldHead], []string{d.t("<%d lines not shown>", hidden)}, lines[foldHead+hidden:])
	}
	return strings.Join(lines, "\n")
}

// foldDiff is fold for a diff. The hunks of one that has numbers are all shown again.
func (d drawing) foldDiff(unified string, numbered bool) string {
	lines := strings.Split(strings.TrimRight(revealed(unified), "\n"), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "+++ ") {
			lines[i] = sanitize.RevealCommand(line) // it names a file
		}
	}
	long := len(lines) > foldDiff+foldRest
	if d.Whole && d.Rest && long && !numbered && !slices.ContainsFunc(lines[:foldDiff], folded) {
		return strings.Join(append([]string{d.t("<the first %d lines are above>", foldDiff)}, lines[foldDiff:]...), "\n")
	}
	if d.Whole {
		return strings.Join(lines, "\n")
	}
	for i, line := range lines {
		lines[i] = d.foldLine(line)
	}
	if long {
		*d.hides = true
		lines = append(lines[:foldDiff:foldDiff], d.t("<%d more lines not shown>", len(lines)-foldDiff))
	}
	return strings.Join(lines, "\n")
}

// folded reports whether foldLine would shorten a line.
func folded(line string) bool {
	hides := false
	return drawing{hides: &hides, Cards: Cards{Words: English{}}}.foldLine(line) != line
}

// foldLine shortens a long line and long rows of blanks in it.
func (d drawing) foldLine(line string) string {
	text := strings.TrimLeft(line, " \t")
	indent := line[:len(line)-len(text)]
	if len(indent) > 2*foldBlanks {
		indent = d.t("<%d blanks>", len(indent))
	}
	var b strings.Builder
	b.WriteString(indent)
	for text != "" {
		at := strings.IndexAny(text, " \t")
		if at < 0 {
			at = len(text)
		}
		b.WriteString(text[:at])
		rest := strings.TrimLeft(text[at:], " \t")
		blanks := text[at : len(text)-len(rest)]
		if len(blanks) > foldBlanks {
			blanks = d.t("<%d blanks>", len(blanks))
		}
		b.WriteString(blanks)
		text = rest
	}
	line = b.String()
	n := utf8.RuneCountInString(line)
	if n <= foldRunes {
		return line
	}
	*d.hides = true
	runes := []rune(line)
	return string(runes[:foldEnds]) + d.t("<%d characters not shown>", n-2*foldEnds) + string(runes[n-foldEnds:])
}

// revealed is text for someone who must decide about it: cleaned, and what
// cannot be seen in it named.
func revealed(text string) string { return sanitize.Reveal(sanitize.MaskWords(text)) }
