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

// Cards draws questions to the user as text for the stream. It shows what will run or change, cleaned,
// with invisible characters named; it folds content too long for a screen and says so, so that nothing
// scrolls away unseen.
type Cards struct {
	Width   func() int
	Room    func() int // lines of a card visible at once; nil: many
	Height  func() int // of the screen; nil: nothing scrolls away
	Palette Palette
	Words   Words // nil means English
	ASCII   bool
	Spoken  bool // for a screen reader
	Whole   bool // fold nothing
	Trust   bool // the card of a check offers to trust the folder
	Direct  bool // the card of the user's own command offers to allow all of them
	Live    bool // an approval's options are below the card: see [Cards.Options]

	brief brevity
}

// brevity is how much of a repeated card is left out.
type brevity int

const (
	whole brevity = iota
	withoutLong
	withoutContent
	titlesAlone
)

// Again returns a repeated question, drawn by show, below output that the user asked for: short enough
// to keep that output in view.
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

// How much of a question's content is shown before it is folded.
const (
	foldLines  = 60   // lines of a command or text
	foldHead   = 40   // of them at the beginning
	foldTail   = 15   // of a diff's lines at the end
	foldRunes  = 1000 // runes of one line
	foldEnds   = 400  // kept at each end
	foldBlanks = 20   // consecutive spaces
	longDiff   = 16   // lines of a diff below which its title is repeated
)

// Draw returns q as lines of text, the last without a newline: the question, its subject, its reasons
// and how to answer. Several approvals are one card with numbers; several questions are drawn one below
// the other.
func (c Cards) Draw(q uip.Request) string {
	d := c.drawing()
	switch {
	case d.brief == titlesAlone && q.Purpose == uip.ConfirmRiskyAction:
		d.page.hung(d.width(), roleOf(q), "[APPROVAL] "+d.titles(q), setIn)
		d.page.words(d.width(), ink.Dim, d.t("the action and the choices are above"))
	case q.Kind == uip.Composite && q.Purpose == uip.ConfirmRiskyAction:
		d.page.tell(ink.Warn, "[APPROVAL] "+d.t("%d calls need approval", len(q.Parts)))
		above := d.lines()
		for i, part := range q.Parts {
			d.page.hung(d.width(), roleOf(part), fmt.Sprintf("%d. %s", i+1, d.sized(part)), setIn)
			d.hunk = fmt.Sprintf("%d.", i+1)
			d.content(part)
			d.reasons(part)
		}
		d.putOptions(q)
		d.atLast(q, above)
	case q.Kind == uip.Composite:
		for i, part := range q.Parts {
			d.question(part, i+1, len(q.Parts))
		}
	case q.Kind == uip.Confirm:
		d.page.hung(d.width(), roleOf(q), "[APPROVAL] "+d.sized(q), setIn)
		above := d.lines()
		d.content(q)
		if d.again(q) {
			above = d.lines()
		}
		d.reasons(q)
		d.putOptions(q)
		d.atLast(q, above)
	default:
		d.question(q, 1, 1)
	}
	return d.text()
}

// roleOf returns the role of an approval's title.
func roleOf(q uip.Request) ink.Role {
	if Dangerous(q) {
		return ink.Bad
	}
	return ink.Warn
}

// Unasks reports whether q is about a command that the user typed, and offers to allow all such
// commands.
func (c Cards) Unasks(q uip.Request) bool {
	return c.Direct && q.Kind == uip.Confirm && q.Author == event.ActorUser && !Dangerous(q)
}

// Trusts reports whether q is about coder's own check and offers trust.
func (c Cards) Trusts(q uip.Request) bool {
	return c.Trust && q.Kind == uip.Confirm && q.Author == event.ActorVerifier
}

// Hides reports whether Draw leaves out part of what needs approval.
func (c Cards) Hides(q uip.Request) bool {
	hides, _ := c.omits(q)
	return hides
}

// Conceals reports whether Draw leaves out something that the user must see before approving. The middle
// of a long diff does not count: its size is shown, and it is printed once applied.
func (c Cards) Conceals(q uip.Request) bool {
	_, conceals := c.omits(q)
	return conceals
}

func (c Cards) omits(q uip.Request) (hides, conceals bool) {
	if c.Whole || q.Purpose != uip.ConfirmRiskyAction {
		return false, false
	}
	c.brief = whole
	d := c.drawing()
	for _, part := range append([]uip.Request{q}, q.Parts...) {
		d.title(part)
		d.content(part)
	}
	return *d.hides || *d.cuts, *d.hides
}

// Saw records that the user was shown all that q asks approval for: a change then made exactly as shown
// is not shown again.
func (r *Renderer) Saw(q uip.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, part := range append([]uip.Request{q}, q.Parts...) {
		if diff, ok := part.Display.Content.(display.Diff); ok {
			r.call(q.TaskID, part.Display.Metadata["toolCallId"]).approved = diff.Unified
		}
	}
}

// Question draws the m-th of n questions asked one by one.
func (c Cards) Question(q uip.Request, m, n int) string {
	d := c.drawing()
	d.question(q, m, n)
	return d.text()
}

func (c Cards) drawing() drawing {
	if c.Words == nil {
		c.Words = English{}
	}
	return drawing{Cards: c, page: &page{palette: c.Palette}, hides: new(bool), cuts: new(bool)}
}

func (d drawing) text() string { return strings.TrimRight(d.page.take(), "\n") }

// drawing is a card being drawn.
type drawing struct {
	Cards
	page  *page
	hides *bool  // something was left out
	cuts  *bool  // the middle of a long diff was left out
	hunk  string // prefix of the hunk numbers
}

func (d drawing) t(format string, args ...any) string { return d.Words.T(format, args...) }

// title returns a call's title on one line. If nothing else shows what the call would do, a cut title
// counts as hidden.
func (d drawing) title(q uip.Request) string {
	line := sanitize.RevealCommand
	if _, ok := q.Display.Content.(display.Text); ok {
		line = sanitize.Reveal // text as the user would write it: a message, a plan
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

// sized returns a call's title with the size of its change.
func (d drawing) sized(q uip.Request) string {
	diff, ok := q.Display.Content.(display.Diff)
	if !ok || diff.Added+diff.Deleted == 0 {
		return d.title(q)
	}
	size := fmt.Sprintf("+%d%s-%d", diff.Added, ink.HardBlank, diff.Deleted)
	if strings.HasPrefix(diff.Unified, "--- "+noFile+"\n") && strings.Count(diff.Unified, "\n--- ") == 0 {
		size = d.t("new file") + " " + size
	}
	return d.title(q) + "  " + size
}

// revealedLine returns one line of text that the user must decide about.
func revealedLine(text string, limit int) string { return sanitize.Reveal(decidedLine(text, limit)) }

// decidedLine is [oneLine] for text in which a guess must hide nothing.
func decidedLine(text string, limit int) string {
	return sanitize.Line(sanitize.MaskWords(text), limit)
}

// again repeats the subject below a long diff, with its size, so that subject and reasons are visible
// together on a small screen.
func (d drawing) again(q uip.Request) bool {
	diff, ok := q.Display.Content.(display.Diff)
	long := longDiff
	if d.Room != nil {
		long = min(long, d.Room())
	}
	if !ok || strings.Count(diff.Unified, "\n") <= long {
		return false
	}
	d.page.words(d.width(), ink.Warn, d.sized(q))
	return true
}

// lines returns the number of lines so far.
func (d drawing) lines() int { return strings.Count(d.page.b.String(), "\n") }

// atLast repeats the subject at the end if the screen is too small to show it above, that many lines
// from the beginning. The title and the answer line need room too.
func (d drawing) atLast(q uip.Request, above int) {
	below := 2
	if d.Live {
		below += len(d.Options(q, 0))
	}
	if d.Height == nil || d.lines()-above+below <= d.Height() {
		return
	}
	d.page.hung(d.width(), ink.Warn, d.titles(q), setIn)
}

// titles returns the titles of all parts of q.
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

// mainAgent is the agent that the user talks to.
const mainAgent = "main"

// reasons shows which agent asks, if it is not the main one, and why approval is needed, one reason a
// line; a risk has the color of failures.
func (d drawing) reasons(q uip.Request) {
	if by := q.Author; !slices.Contains([]string{"", mainAgent, event.ActorUser, event.ActorVerifier, event.ActorRecovery}, by) {
		d.page.words(d.width(), ink.Warn, "  "+mark(d.ASCII, "•", "-")+" "+d.t("asked by the agent %s", revealedLine(by, titleRunes)))
	}
	for why := range strings.SplitSeq(q.Display.Description, "; ") {
		role := ink.Dim
		if isRisk(why) {
			role = ink.Bad
		} else if !d.Whole && d.known(q, why) {
			continue
		}
		if why = dots(d.ASCII, revealedLine(why, noticeRunes)); why != "" {
			d.page.words(d.width(), role, "  "+mark(d.ASCII, "•", "-")+" "+d.Words.Said(why))
		}
	}
}

// known reports whether the card itself shows a reason: that the mode asks about such calls, or what one
// of the options is for.
func (d drawing) known(q uip.Request, why string) bool {
	return strings.HasPrefix(why, "rule: ") && strings.HasSuffix(why, " policy requires approval") ||
		d.Trusts(q) && why == uip.TrustAside || d.Unasks(q) && why == uip.BangAside
}

const noticeRunes = 1000

// question asks for a choice or for text. Its subject, such as a plan, is shown completely above it.
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
		// A model recommends the first of its own options
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

// metaLabel, followed by an option's id, is the metadata key of the option's label without its
// description.
const metaLabel = "label"

const recommended = " (Recommended)"

// content shows exactly what will run or change. Commands and text are indented, so that none of their
// lines can pass for ours.
func (d drawing) content(q uip.Request) {
	long := strings.Count(display.Blocks{q.Display.Content}.Plain(), "\n") > longDiff
	if q.Display.Content != nil && (d.brief >= withoutContent || d.brief == withoutLong && long) {
		d.page.tell(ink.Dim, d.t("the action is shown above"))
		*d.hides = true
		return
	}
	switch b := q.Display.Content.(type) {
	case display.Code:
		if d.inTitle(q, b.Source) {
			return
		}
		drawCode(display.Code{Lang: b.Lang, Source: d.fold(sanitize.RevealCommand(sanitize.MaskWords(b.Source)))}, d.indented())
	case display.Text:
		drawCode(display.Code{Source: d.fold(revealed(string(b)))}, d.indented())
	case display.Diff:
		if b.Unified == "" {
			d.page.tell(ink.Dim, d.t("nothing would change"))
			return
		}
		text := b.Unified
		if hasHunks(q) {
			text = display.Numbered(text, func(n int) string { return d.t("[hunk %s]", d.hunk+strconv.Itoa(n)) })
		}
		drawDiff(below(q.Display.Title, d.foldDiff(text)), d.ASCII, d.page.put)
	case display.Table:
		drawTable(b, d.Words.Said, d.width(), ink.Grid{ASCII: d.ASCII, Spoken: d.Spoken}, d.page.put)
	}
	d.page.fresh()
}

// inTitle reports whether the approval's title shows the whole command.
func (d drawing) inTitle(q uip.Request, source string) bool {
	_, line, ok := strings.Cut(d.title(q), " ")
	return ok && q.Kind == uip.Confirm && line == d.fold(sanitize.RevealCommand(sanitize.MaskWords(source)))
}

// indented indents each line of the spans. A line that is too long continues below, unchanged, after a
// sign that no other line has there.
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

// fold returns revealed text; a note with the size replaces what does not fit on a screen.
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

// foldDiff is fold for a diff: a long one keeps its first and last lines, and between them every line
// with something invisible.
func (d drawing) foldDiff(unified string) (shown []diffLine) {
	plain := strings.Split(strings.TrimRight(unified, "\n"), "\n")
	lines := diffLines(strings.TrimRight(revealed(unified), "\n"))
	for i, l := range lines {
		if strings.HasPrefix(l.text, "--- ") || strings.HasPrefix(l.text, "+++ ") {
			lines[i].text = sanitize.RevealCommand(l.text) // it names a file
		}
	}
	if d.Whole {
		return lines
	}
	odd := func(i int) bool {
		return len(plain) != len(lines) || lines[i].text != strings.ReplaceAll(plain[i], "\r", "")
	}
	left := 0
	tell := func() {
		if left > 0 {
			shown = append(shown, diffLine{text: d.t("<%d lines not shown>", left)})
		}
		left = 0
	}
	for i, l := range lines {
		if len(lines) > foldLines && i >= foldHead && i < len(lines)-foldTail && !(odd(i) && len(shown) < 2*foldLines) {
			left++
			*d.cuts, *d.hides = true, *d.hides || odd(i)
			continue
		}
		tell()
		l.text = d.foldLine(l.text)
		shown = append(shown, l)
	}
	return shown
}

// foldLine shortens a long line and long runs of spaces in it.
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

// revealed returns text that the user must decide about: cleaned, with invisible characters named.
func revealed(text string) string { return sanitize.Reveal(sanitize.MaskWords(text)) }
