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
	Width        func() int
	VisibleLines func() int // lines of a card visible at once; nil: many
	Height       func() int // of the screen; nil: nothing scrolls away
	Palette      Palette
	Translator   Translator // nil means English
	ASCII        bool
	ScreenReader bool // for a screen reader
	NoFold       bool // fold nothing
	Trust        bool // the card of a check offers to trust the folder
	Direct       bool // the card of the user's own command offers to allow all of them
	OptionsBelow bool // an approval's options are below the card: see [Cards.Options]

	brief brevity
}

// brevity is how much of a repeated card is left out.
type brevity int

const (
	briefNone brevity = iota
	briefNoLong
	briefNoContent
	briefTitles
)

// DrawAgain returns a repeated question, drawn by show, below output that the user asked for: short enough
// to keep that output in view.
func (c Cards) DrawAgain(show func(Cards) string) string {
	text := ""
	for c.brief = briefNoLong; c.brief <= briefTitles; c.brief++ {
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
	d := c.newDrawing()
	switch {
	case d.brief == briefTitles && q.Purpose == uip.PurposeConfirmRiskyAction:
		d.page.writeHanging(d.width(), titleRole(q), "[APPROVAL] "+d.partTitles(q), hangIndent)
		d.page.writeWrapped(d.width(), ink.Dim, d.t("the action and the choices are above"))
	case q.Kind == uip.KindComposite && q.Purpose == uip.PurposeConfirmRiskyAction:
		d.page.writeLines(ink.Warn, "[APPROVAL] "+d.t("%d calls need approval", len(q.Parts)))
		above := d.lineCount()
		for i, part := range q.Parts {
			d.page.writeHanging(d.width(), titleRole(part), fmt.Sprintf("%d. %s", i+1, d.sized(part)), hangIndent)
			d.hunkPrefix = fmt.Sprintf("%d.", i+1)
			d.drawContent(part)
			d.drawReasons(part)
		}
		d.drawCardOptions(q)
		d.repeatAtEnd(q, above)
	case q.Kind == uip.KindComposite:
		for i, part := range q.Parts {
			d.drawQuestion(part, i+1, len(q.Parts))
		}
	case q.Kind == uip.KindConfirm:
		d.page.writeHanging(d.width(), titleRole(q), "[APPROVAL] "+d.sized(q), hangIndent)
		above := d.lineCount()
		d.drawContent(q)
		if d.repeatSubject(q) {
			above = d.lineCount()
		}
		d.drawReasons(q)
		d.drawCardOptions(q)
		d.repeatAtEnd(q, above)
	default:
		d.drawQuestion(q, 1, 1)
	}
	return d.text()
}

// titleRole returns the role of an approval's title.
func titleRole(q uip.Request) ink.Role {
	if IsDangerous(q) {
		return ink.Bad
	}
	return ink.Warn
}

// OffersDirect reports whether q is about a command that the user typed, and offers to allow all such
// commands.
func (c Cards) OffersDirect(q uip.Request) bool {
	return c.Direct && q.Kind == uip.KindConfirm && q.Author == event.ActorUser && !IsDangerous(q)
}

// OffersTrust reports whether q is about coder's own check and offers trust.
func (c Cards) OffersTrust(q uip.Request) bool {
	return c.Trust && q.Kind == uip.KindConfirm && q.Author == event.ActorVerifier
}

// HidesPart reports whether Draw leaves out part of what needs approval.
func (c Cards) HidesPart(q uip.Request) bool {
	hides, _ := c.hiddenParts(q)
	return hides
}

// HidesRequired reports whether Draw leaves out something that the user must see before approving. The middle
// of a long diff does not count: its size is shown, and it is printed once applied.
func (c Cards) HidesRequired(q uip.Request) bool {
	_, conceals := c.hiddenParts(q)
	return conceals
}

func (c Cards) hiddenParts(q uip.Request) (hides, conceals bool) {
	if c.NoFold || q.Purpose != uip.PurposeConfirmRiskyAction {
		return false, false
	}
	c.brief = briefNone
	d := c.newDrawing()
	for _, part := range append([]uip.Request{q}, q.Parts...) {
		d.title(part)
		d.drawContent(part)
	}
	return *d.hides || *d.cutsDiff, *d.hides
}

// MarkSeen records that the user was shown all that q asks approval for: a change then made exactly as shown
// is not shown again.
func (r *Renderer) MarkSeen(q uip.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, part := range append([]uip.Request{q}, q.Parts...) {
		if diff, ok := part.Display.Content.(display.Diff); ok {
			r.findCall(q.TaskID, part.Display.Metadata["toolCallId"]).approvedDiff = diff.Unified
		}
	}
}

// DrawQuestion draws the m-th of n questions asked one by one.
func (c Cards) DrawQuestion(q uip.Request, m, n int) string {
	d := c.newDrawing()
	d.drawQuestion(q, m, n)
	return d.text()
}

func (c Cards) newDrawing() cardDrawing {
	if c.Translator == nil {
		c.Translator = English{}
	}
	return cardDrawing{Cards: c, page: &page{palette: c.Palette}, hides: new(bool), cutsDiff: new(bool)}
}

func (d cardDrawing) text() string { return strings.TrimRight(d.page.takeText(), "\n") }

// cardDrawing is a card being drawn.
type cardDrawing struct {
	Cards
	page       *page
	hides      *bool  // something was left out
	cutsDiff   *bool  // the middle of a long diff was left out
	hunkPrefix string // prefix of the hunk numbers
}

func (d cardDrawing) t(format string, args ...any) string { return d.Translator.T(format, args...) }

// title returns a call's title on one line. If nothing else shows what the call would do, a cut title
// counts as hidden.
func (d cardDrawing) title(q uip.Request) string {
	line := sanitize.RevealCommand
	if _, ok := q.Display.Content.(display.Text); ok {
		line = sanitize.Reveal // text as the user would write it: a message, a plan
	}
	whole := line(exactLine(q.Display.Title, 0))
	if q.Kind == uip.KindConfirm && q.HasOwnTitle() {
		return d.Translator.TranslateText(whole)
	}
	if d.NoFold {
		return whole
	}
	short := line(exactLine(q.Display.Title, titleRunes))
	if short == whole {
		return whole
	}
	*d.hides = *d.hides || q.Display.Content == nil
	return ellipsis(d.ASCII, short)
}

// sized returns a call's title with the size of its change.
func (d cardDrawing) sized(q uip.Request) string {
	diff, ok := q.Display.Content.(display.Diff)
	if !ok || diff.Added+diff.Deleted == 0 {
		return d.title(q)
	}
	size := fmt.Sprintf("+%d%s-%d", diff.Added, ink.NoBreakSpace, diff.Deleted)
	if strings.HasPrefix(diff.Unified, "--- "+noFile+"\n") && strings.Count(diff.Unified, "\n--- ") == 0 {
		size = d.t("new file") + " " + size
	}
	return d.title(q) + "  " + size
}

// revealLine returns one line of text that the user must decide about.
func revealLine(text string, limit int) string { return sanitize.Reveal(exactLine(text, limit)) }

// exactLine is [oneLine] for text in which a guess must hide nothing.
func exactLine(text string, limit int) string {
	return sanitize.Line(sanitize.MaskWords(text), limit)
}

// repeatSubject repeats the subject below a long diff, with its size, so that subject and reasons are visible
// together on a small screen.
func (d cardDrawing) repeatSubject(q uip.Request) bool {
	diff, ok := q.Display.Content.(display.Diff)
	long := longDiff
	if d.VisibleLines != nil {
		long = min(long, d.VisibleLines())
	}
	if !ok || strings.Count(diff.Unified, "\n") <= long {
		return false
	}
	d.page.writeWrapped(d.width(), ink.Warn, d.sized(q))
	return true
}

// lineCount returns the number of lines so far.
func (d cardDrawing) lineCount() int { return strings.Count(d.page.text.String(), "\n") }

// repeatAtEnd repeats the subject at the end if the screen is too small to show it above, that many lines
// from the beginning. The title and the answer line need room too.
func (d cardDrawing) repeatAtEnd(q uip.Request, above int) {
	below := 2
	if d.OptionsBelow {
		below += len(d.Options(q, 0))
	}
	if d.Height == nil || d.lineCount()-above+below <= d.Height() {
		return
	}
	d.page.writeHanging(d.width(), ink.Warn, d.partTitles(q), hangIndent)
}

// partTitles returns the titles of all parts of q.
func (d cardDrawing) partTitles(q uip.Request) string {
	if len(q.Parts) == 0 {
		return d.title(q)
	}
	var all []string
	for i, part := range q.Parts {
		all = append(all, fmt.Sprintf("%d.%s%s", i+1, ink.NoBreakSpace, d.title(part)))
	}
	return strings.Join(all, signFor(d.ASCII, " · ", d.t("; ")))
}

// mainAgent is the agent that the user talks to.
const mainAgent = "main"

// drawReasons shows which agent asks, if it is not the main one, and why approval is needed, one reason a
// line; a risk has the color of failures.
func (d cardDrawing) drawReasons(q uip.Request) {
	if by := q.Author; !slices.Contains([]string{"", mainAgent, event.ActorUser, event.ActorVerifier,
		event.ActorRecovery}, by) {
		d.page.writeWrapped(d.width(), ink.Warn, "  "+signFor(d.ASCII, "•", "-")+" "+
			d.t("asked by the agent %s", revealLine(by, titleRunes)))
	}
	for why := range strings.SplitSeq(q.Display.Description, "; ") {
		role := ink.Dim
		if isRisk(why) {
			role = ink.Bad
		} else if !d.NoFold && d.showsReason(q, why) {
			continue
		}
		if why = ellipsis(d.ASCII, revealLine(why, noticeRunes)); why != "" {
			d.page.writeWrapped(d.width(), role, "  "+signFor(d.ASCII, "•", "-")+" "+d.Translator.TranslateText(why))
		}
	}
}

// showsReason reports whether the card itself shows a reason: that the mode asks about such calls, or what one
// of the options is for.
func (d cardDrawing) showsReason(q uip.Request, why string) bool {
	return strings.HasPrefix(why, "rule: ") && strings.HasSuffix(why, " policy requires approval") ||
		d.OffersTrust(q) && why == uip.TrustHint || d.OffersDirect(q) && why == uip.BangHint
}

const noticeRunes = 1000

// drawQuestion asks for a choice or for text. Its subject, such as a plan, is shown completely above it.
func (d cardDrawing) drawQuestion(q uip.Request, m, n int) {
	d.NoFold = true
	text, isText := q.Display.Content.(display.Text)
	if isText && d.brief < briefNoContent {
		md := markdown.Stream{Put: d.page.write, Width: d.Width, KeepMarks: d.Palette.Level == None && !d.ScreenReader,
			ASCII: d.ASCII, ScreenReader: d.ScreenReader}
		md.Write(d.foldText(revealText(string(text))))
		md.End()
		d.page.addBlankLine()
	} else if q.Display.Content != nil {
		d.drawContent(q)
		d.page.addBlankLine()
	}
	title := "[Question]"
	if n > 1 {
		title = fmt.Sprintf("[Question %d/%d]", m, n)
	}
	asks := q.Display.Title
	if q.Display.Metadata[uip.MetaQuotedTitle] == "" {
		asks = d.Translator.TranslateText(asks)
	}
	for i, line := range strings.Split(strings.TrimSpace(cleanText(asks)), "\n") {
		w := ink.Wrap{Put: d.page.write, Width: d.width(), Indent: ink.HangIndent(line)}
		if i == 0 {
			w.Indent = 0
			w.Write(ink.Style{Role: ink.Warn}, title)
			w.Write(ink.Style{}, " ")
		}
		w.Write(ink.Style{}, line)
		w.End()
		d.page.write(ink.Style{}, "\n")
	}
	if d.brief == briefTitles {
		d.page.writeWrapped(d.width(), ink.Dim, d.t("the choices are above"))
		return
	}
	if text := strings.TrimSpace(cleanText(d.Translator.TranslateText(q.Display.Description))); text != "" {
		d.page.writeWrapped(d.width(), ink.Dim, text)
	}
	for i, o := range q.Options {
		// A model recommends the first of its own options
		label, models := q.Display.Metadata[metaOptionLabel+o.ID]
		about := strings.TrimPrefix(strings.TrimPrefix(o.Label, label), " — ")
		if !models {
			label, about, _ = strings.Cut(d.Translator.TranslateText(o.Label), " — ")
		}
		line := fmt.Sprintf("  %d. %s", i+1, ellipsis(d.ASCII, oneLine(label, noticeRunes)))
		if models && i == 0 && !strings.HasSuffix(line, recommendedMark) {
			line += recommendedMark
		}
		if q.Display.Metadata[uip.MetaOnEnter] == o.ID {
			line += " [Enter]"
		}
		if about = ellipsis(d.ASCII, oneLine(about, noticeRunes)); about != "" {
			line += signFor(d.ASCII, " — ", " - ") + about
		}
		d.page.writeWrapped(d.width(), ink.Plain, line)
	}
	if i := slices.IndexFunc(q.Options,
		func(o uip.Option) bool { return o.ID == q.Display.Metadata[uip.MetaOnText] }); i >= 0 {
		d.page.writeWrapped(d.width(), ink.Dim, d.joinKeys([]string{
			d.t("1 and … = add a note"), d.t("other text = %s, and tell the model",
				d.Translator.TranslateText(q.Options[i].Label)),
		}))
	} else if len(q.Options) > 0 && q.Display.Metadata[uip.MetaQuotedTitle] != "" && q.Display.Description == "" {
		d.page.writeWrapped(d.width(), ink.Dim, d.t("a number, or your own words"))
	}
}

// metaOptionLabel, followed by an option's id, is the metadata key of the option's label without its
// description.
const metaOptionLabel = "label"

const recommendedMark = " (Recommended)"

// drawContent shows exactly what will run or change. Commands and text are indented, so that none of their
// lines can pass for ours.
func (d cardDrawing) drawContent(q uip.Request) {
	long := strings.Count(display.Blocks{q.Display.Content}.PlainText(), "\n") > longDiff
	if q.Display.Content != nil && (d.brief >= briefNoContent || d.brief == briefNoLong && long) {
		d.page.writeLines(ink.Dim, d.t("the action is shown above"))
		*d.hides = true
		return
	}
	switch b := q.Display.Content.(type) {
	case display.Code:
		if d.titleShows(q, b.Source) {
			return
		}
		drawCode(display.Code{Lang: b.Lang, Source: d.foldText(sanitize.RevealCommand(sanitize.MaskWords(b.Source)))},
			d.indentedPut())
	case display.Text:
		drawCode(display.Code{Source: d.foldText(revealText(string(b)))}, d.indentedPut())
	case display.Diff:
		if b.Unified == "" {
			d.page.writeLines(ink.Dim, d.t("nothing would change"))
			return
		}
		text := b.Unified
		if hasHunks(q) {
			text = display.LabelHunks(text, func(n int) string { return d.t("[hunk %s]", d.hunkPrefix+strconv.Itoa(n)) })
		}
		drawDiff(below(q.Display.Title, d.foldDiff(text)), d.ASCII, d.page.write)
	case display.Table:
		drawTable(b, d.Translator.TranslateText, d.width(), ink.Grid{ASCII: d.ASCII, ScreenReader: d.ScreenReader},
			d.page.write)
	}
	d.page.endLine()
}

// titleShows reports whether the approval's title shows the whole command.
func (d cardDrawing) titleShows(q uip.Request, source string) bool {
	_, line, ok := strings.Cut(d.title(q), " ")
	return ok && q.Kind == uip.KindConfirm && line == d.foldText(sanitize.RevealCommand(sanitize.MaskWords(source)))
}

// indentedPut indents each line of the spans. A line that is too long continues below, unchanged, after a
// sign that no other line has there.
func (d cardDrawing) indentedPut() ink.SpanFunc {
	var line []ink.Span
	return func(l ink.Style, text string) {
		if text != "\n" {
			line = append(line, ink.Span{Style: l, Text: text})
			return
		}
		if len(line) > 0 {
			d.page.write(ink.Style{}, "    ")
		}
		for i, row := range ink.WrapRows(line, d.width()-4) {
			if i > 0 {
				d.page.write(ink.Style{Role: ink.Dim}, "\n  "+signFor(d.ASCII, "↳", "+"))
			}
			for _, s := range row {
				d.page.write(s.Style, s.Text)
			}
		}
		d.page.write(ink.Style{}, "\n")
		line = nil
	}
}

func (d cardDrawing) width() int {
	if d.Width == nil {
		return 0
	}
	return d.Width()
}

// foldText returns revealed text; a note with the size replaces what does not fit on a screen.
func (d cardDrawing) foldText(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if d.NoFold {
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
func (d cardDrawing) foldDiff(unified string) (shown []diffLine) {
	plain := strings.Split(strings.TrimRight(unified, "\n"), "\n")
	lines := diffLines(strings.TrimRight(revealText(unified), "\n"))
	for i, l := range lines {
		if strings.HasPrefix(l.text, "--- ") || strings.HasPrefix(l.text, "+++ ") {
			lines[i].text = sanitize.RevealCommand(l.text) // it names a file
		}
	}
	if d.NoFold {
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
			*d.cutsDiff, *d.hides = true, *d.hides || odd(i)
			continue
		}
		tell()
		l.text = d.foldLine(l.text)
		shown = append(shown, l)
	}
	return shown
}

// foldLine shortens a long line and long runs of spaces in it.
func (d cardDrawing) foldLine(line string) string {
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

// revealText returns text that the user must decide about: cleaned, with invisible characters named.
func revealText(text string) string { return sanitize.Reveal(sanitize.MaskWords(text)) }
