package term

import (
	"slices"
	"strconv"
	"strings"

	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/sanitize"
	"coder/internal/core/uip"
	"coder/internal/ui/term/ink"
)

// joinKeys joins keys, each unbroken if it fits on a line; a key that does not fit is followed by a new
// line.
func (d cardDrawing) joinKeys(keys []string) string {
	apart := signFor(d.ASCII, " · ", d.t("; "))
	end := strings.TrimRight(apart, " ")
	width := d.width()
	var done, line string
	for i, key := range keys {
		folded := ink.FoldLine(line, width, choiceIndent)
		column, wide := ink.Width(folded[strings.LastIndexByte(folded, '\n')+1:]), ink.Width(key+end)
		whole := !strings.Contains(folded, "\n")
		switch {
		case i == 0:
			line = key
		case width <= 0 || whole && column+ink.Width(apart)+wide <= width:
			line += apart + key
		default:
			if column+ink.Width(end) <= width {
				line += end
			}
			done, line = done+line+"\n", key
		}
	}
	return done + line
}

// choiceIndent is the indent of a wrapped choice: below its words.
const choiceIndent = len("y = ")

// Choice is a possible answer to an approval.
type Choice struct {
	Key   string // the key that chooses it: a number, or a letter on the card of several calls
	Line  string // the typed line with the same meaning
	Label string
	Stop  bool // stops the turn, so that the user can say what to do instead
}

// IsDangerous reports whether q asks about something dangerous: it needs approval every time, has no
// numbers or highlight, and requires y and Enter.
func IsDangerous(q uip.Request) bool {
	if q.Kind == uip.KindComposite {
		return slices.ContainsFunc(q.Parts, IsDangerous)
	}
	remembers := slices.ContainsFunc(q.Options, func(o uip.Option) bool { return slices.Contains(rememberOptions, o.ID) })
	return q.Purpose == uip.PurposeConfirmRiskyAction && !remembers &&
		slices.ContainsFunc(strings.Split(q.Display.Description, "; "), isRisk)
}

// IsEdit reports whether q asks only about file changes.
func IsEdit(q uip.Request) bool {
	if q.Kind == uip.KindComposite {
		return !slices.ContainsFunc(q.Parts, func(part uip.Request) bool { return !IsEdit(part) })
	}
	_, diff := q.Display.Content.(display.Diff)
	return diff && q.Purpose == uip.PurposeConfirmRiskyAction
}

var rememberOptions = []string{uip.OptionSession, uip.OptionAlways, uip.OptionAlwaysBelow}

func isRisk(why string) bool { return strings.HasPrefix(why, "risk: ") }

// Choices returns the answers to q, an approval, in display order. A dangerous call has none: see
// [IsDangerous].
func (c Cards) Choices(q uip.Request) []Choice {
	if !isApproval(q) || IsDangerous(q) {
		return nil
	}
	d := c.newDrawing()
	several := q.Kind == uip.KindComposite
	all := d.approvalChoices(q, several)
	if d.OffersTrust(q) {
		all = append(all, Choice{Line: "t", Label: d.t("Yes, and trust this folder: checks run unasked")})
	}
	if d.OffersDirect(q) {
		all = append(all, Choice{Line: "b", Label: d.t("Yes, and never ask about commands I type after !")})
	}
	no := Choice{Line: "n", Label: d.t("No")}
	switch {
	case several:
		no.Label = d.t("No to all")
	case isCommentRead(q):
		no.Label, no.Stop = d.t("No, and tell coder what to do instead"), true
	}
	all = append(all, no)
	for i := range all {
		if all[i].Key = strconv.Itoa(i + 1); several {
			all[i].Key = all[i].Line
		}
	}
	return all
}

func isApproval(q uip.Request) bool {
	return q.Kind == uip.KindConfirm || q.Kind == uip.KindComposite && q.Purpose == uip.PurposeConfirmRiskyAction
}

// isCommentRead reports whether a model reads the user's comment on q: otherwise q is about the user's own
// command, or a check.
func isCommentRead(q uip.Request) bool {
	return q.Author != event.ActorUser && q.Author != event.ActorVerifier
}

// approvalChoices returns the choices that approve.
func (d cardDrawing) approvalChoices(q uip.Request, several bool) (all []Choice) {
	yes := Choice{Line: "y", Label: d.t("Yes")}
	if several {
		yes.Label = d.t("Yes to all")
	}
	all = append(all, yes)
	offers := func(id string) bool {
		return slices.ContainsFunc(q.Options, func(o uip.Option) bool { return o.ID == id })
	}
	switch {
	case offers(uip.OptionAlwaysBelow):
		all = append(all, d.rememberChoice(q, uip.OptionAlwaysBelow))
	case offers(uip.OptionSession):
		all = append(all, d.rememberChoice(q, uip.OptionSession))
	}
	if offers(uip.OptionAlways) {
		all = append(all, d.rememberChoice(q, uip.OptionAlways))
	}
	for _, o := range q.Options {
		if !slices.Contains([]string{uip.OptionApprove, uip.OptionSome, uip.OptionSession, uip.OptionAlways,
			uip.OptionAlwaysBelow, uip.OptionReject}, o.ID) {
			all = append(all, Choice{Line: o.ID, Label: revealLine(d.Translator.TranslateText(o.Label), titleRunes)})
		}
	}
	return all
}

// rememberChoice returns the choice for an option that is remembered.
func (d cardDrawing) rememberChoice(q uip.Request, option string) Choice {
	what := sanitize.Text(d.grantText(q, option))
	switch {
	case option == uip.OptionAlways && (what == "" || what == d.grantText(q, uip.OptionSession) && !hasOptionsBelow(q)):
		return Choice{Line: "a", Label: d.t("Always in this project")}
	case option == uip.OptionAlways:
		return Choice{Line: "a", Label: d.t("Always in this project: %s", what)}
	case option == uip.OptionAlwaysBelow:
		return Choice{Line: "d", Label: d.t("Yes, and allow %s in this session", what)}
	case what == "":
		return Choice{Line: "s", Label: d.t("Yes, and allow it in this session")}
	}
	return Choice{Line: "s", Label: d.t("Yes, and allow %s in this session", what)}
}

func hasOptionsBelow(q uip.Request) bool {
	return slices.ContainsFunc(q.Options, func(o uip.Option) bool { return o.ID == uip.OptionAlwaysBelow })
}

// Options returns rows that show how to answer q, an approval: its choices, one of which may be
// highlighted, and other possible input.
func (c Cards) Options(q uip.Request, chosen int) []string {
	d := c.newDrawing()
	d.HidesPart(q)
	d.drawOptions(q, chosen)
	if text := d.text(); text != "" {
		return strings.Split(text, "\n")
	}
	return nil
}

// drawCardOptions draws the options on the card, unless they are below it.
func (d cardDrawing) drawCardOptions(q uip.Request) {
	if d.OptionsBelow || !isApproval(q) {
		return
	}
	d.page.addBlankLine()
	d.drawOptions(q, -1)
}

// drawOptions draws the options.
func (d cardDrawing) drawOptions(q uip.Request, chosen int) {
	if !isApproval(q) {
		return
	}
	*d.hides = d.HidesPart(q)
	if IsDangerous(q) {
		d.page.writeHanging(d.width(), ink.Bad, "  "+d.t("Type y and Enter to allow it, n and Enter to refuse it."),
			hangIndent)
	}
	for i, choice := range d.Choices(q) {
		lead, role := "  ", ink.Plain
		if i == chosen {
			lead, role = signFor(d.ASCII, "❯", ">")+" ", ink.Good
		}
		d.page.writeHanging(d.width(), role, lead+choice.Key+" "+choice.Label, len("  1 "))
	}
	var more []string
	switch {
	case len(q.Parts) == 2:
		more = append(more, d.t("1 or 2: yes to this one only"))
	case q.Kind == uip.KindComposite:
		more = append(more, d.t("1 3: yes to these only"))
	}
	if i := slices.IndexFunc(q.Parts, hasHunks); i >= 0 {
		more = append(more, d.t("%d.1: yes to this hunk only", i+1))
	}
	if hasHunks(q) {
		more = append(more, d.t("h 1: yes to hunk 1 only"))
	}
	switch {
	case *d.hides && d.OptionsBelow:
		more = append(more, d.t("Ctrl+O: all of it"))
	case *d.hides:
		more = append(more, d.t("v: all of it"))
	}
	more = append(more, d.t("?: why"))
	d.page.writeHanging(d.width(), ink.Dim, "  "+strings.Join(more, signFor(d.ASCII, " · ", d.t("; "))), hangIndent)
}

func hasHunks(q uip.Request) bool { return q.Display.Metadata[uip.MetaHunks] != "" }

// ExplainApproval returns the explanation for a user who asks why approval is needed, and how else to answer.
func (c Cards) ExplainApproval(q uip.Request) string {
	d := c.newDrawing()
	d.NoFold = true
	for i, part := range q.Parts {
		d.page.writeHanging(d.width(), ink.Warn, strconv.Itoa(i+1)+" "+d.title(part), hangIndent)
		d.drawReasons(part)
	}
	if len(q.Parts) == 0 {
		d.drawReasons(q)
	}
	say := func(text string) { d.page.writeHanging(d.width(), ink.Dim, "  "+text, hangIndent) }
	for _, o := range q.Options {
		if o.ID == uip.OptionSession && hasOptionsBelow(q) {
			say("s " + d.rememberChoice(q, o.ID).Label)
		}
	}
	letters := []string{"y"}
	for _, choice := range d.Choices(q) {
		if choice.Line != "y" {
			letters = append(letters, choice.Line)
		}
	}
	if len(letters) == 1 {
		letters = append(letters, "n")
	}
	say(d.t("%s and Enter also answer; Esc stops the turn", strings.Join(letters, ", ")))
	if isCommentRead(q) {
		say(d.t("y and …, n …: say more to the model"))
	}
	return d.text()
}

// grantText returns what an answer would remember, in full and in the user's language: the user must
// not agree to anything cut off. For a card that is the text of each call.
func (d cardDrawing) grantText(q uip.Request, option string) string {
	var all []string
	add := func(what string) {
		parts := strings.Split(exactLine(what, 0), "…") // our own word for anything
		for i, part := range parts {
			parts[i] = sanitize.RevealCommand(part)
		}
		if what = d.Translator.TranslateText(strings.Join(parts, signFor(d.ASCII, "…", "..."))); what != "" &&
			!slices.Contains(all, what) {
			all = append(all, what)
		}
	}
	parts := q.Parts
	if len(parts) == 0 {
		parts = []uip.Request{q}
	}
	for _, part := range parts {
		what := part.Remembered(option)
		if len(what) == 0 && option == uip.OptionAlwaysBelow && len(q.Parts) > 0 {
			what = part.Remembered(uip.OptionSession) // without a folder the session is the limit
		}
		for _, one := range what {
			if showsGrant(part, one) {
				one = "this exact command, as shown above"
			}
			add(one)
		}
	}
	return strings.Join(all, d.t(", "))
}

// showsGrant reports whether a grant is for the exact command on the card, and too long to repeat among
// the keys.
func showsGrant(q uip.Request, what string) bool {
	line, exactly := strings.CutPrefix(what, "this exact command line: ")
	code, ok := q.Display.Content.(display.Code)
	return ok && exactly && strings.TrimSpace(line) == strings.TrimSpace(code.Source) &&
		(strings.Contains(line, "\n") || ink.Width(line) > titleRunes)
}
