package export

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/sanitize"
	"coder/internal/core/uip"
)

// Locale is the language of an export. It translates only coder's own texts: the session's content
// stays unchanged. The zero Speech is English.
type Locale struct {
	Translator Translator
	Lang       string           // its name
	Width      func(string) int // of a text, in cells
}

// Translator is a language.
type Translator interface {
	// T translates one of the export's own sentences; the English form is the key.
	T(format string, args ...any) string
	// TranslateText translates a sentence made elsewhere, such as a reason.
	TranslateText(text string) string
}

func (s Locale) t(format string, args ...any) string {
	if s.Translator == nil {
		return fmt.Sprintf(format, args...)
	}
	return s.Translator.T(format, args...)
}

func (s Locale) translateText(text string) string {
	if s.Translator == nil {
		return text
	}
	return s.Translator.TranslateText(text)
}

// noteDetail returns the detail of a note.
func (s Locale) noteDetail(n Note) string {
	if n.TranslateDetail {
		return s.translateText(n.Detail)
	}
	return n.Detail
}

// blocksText returns the output of a command.
func (s Locale) blocksText(all display.Blocks) string {
	width := s.Width
	if width == nil {
		width = utf8.RuneCountInString
	}
	return all.Translate(s.translateText, width)
}

// sessionTitle returns the title of the session.
func (s Locale) sessionTitle(t Transcript) string {
	return sanitize.Line(cmp.Or(t.Head.Meta.Title, s.t("Session %s", t.Head.ID)), 0)
}

// headerRows returns the lines at the top: names and values.
func (s Locale) headerRows(t Transcript) (list [][2]string) {
	add := func(name, value string) {
		if value != "" {
			list = append(list, [2]string{name, value})
		}
	}
	add(s.t("Session"), t.Head.ID)
	add(s.t("Model"), t.Head.Meta.Model)
	add(s.t("Folder"), t.Head.Meta.Dir)
	add(s.t("Started"), formatTime(t.Head.Created))
	if u := t.Usage; u.In+u.Out > 0 {
		add(s.t("Tokens"), s.t("%d in, %d out", u.In, u.Out))
	}
	return list
}

// roleName returns the name of a role.
func (s Locale) roleName(r chat.Role) string {
	switch r {
	case chat.User:
		return s.t("User")
	case chat.Assistant:
		return s.t("Assistant")
	case chat.System:
		return s.t("System")
	}
	return s.t("Tool")
}

// callName returns the displayed name of a call.
func (s Locale) callName(c *Call) string {
	if c.IsCheck {
		return s.t("Check of the edits")
	}
	return c.Name
}

// outcome says how a call ended.
func (s Locale) outcome(c *Call) string {
	switch {
	case !c.Answered:
		return s.t("no result")
	case c.IsCheck && c.Failed:
		return s.t("did not pass")
	case c.IsCheck:
		return s.t("passed")
	case c.Refused:
		return s.t("refused")
	case c.Failed:
		return s.t("failed")
	}
	return s.t("done")
}

// optionList returns the options of a question that is not about a call, in Markdown.
func (s Locale) optionList(q uip.Request) string {
	var b strings.Builder
	for _, part := range q.Parts {
		b.WriteString(strings.TrimSpace(part.Display.Title) + "\n\n" + s.optionList(part))
	}
	if q.Purpose == uip.PurposeConfirmRiskyAction {
		return ""
	}
	for i, o := range q.Options {
		label := o.Label
		if q.HasOwnTitle() {
			label = s.translateText(label)
		}
		fmt.Fprintf(&b, "%d. %s\n", i+1, strings.ReplaceAll(label, "\n", " "))
	}
	return b.String() + "\n"
}

// questionText returns a question to the user, and its reason.
func (s Locale) questionText(a *Question) (title, about string) {
	q := a.Request
	if q.Purpose != uip.PurposeConfirmRiskyAction {
		if title = q.Display.Title; q.HasOwnTitle() {
			title = s.translateText(title)
		}
		return title, s.translateText(q.Display.Description)
	}
	var why []string
	for reason := range strings.SplitSeq(q.Display.Description, "; ") {
		why = append(why, s.translateText(reason))
	}
	switch title = q.Display.Title; {
	case q.Kind == uip.KindComposite:
		title = s.t("%d calls need approval", len(q.Parts))
	case q.HasOwnTitle():
		title = s.translateText(title)
	}
	return title, strings.Join(why, s.t("; "))
}

// answerText returns the user's answer.
func (s Locale) answerText(a *Question) string {
	switch {
	case a.Answer != nil:
		return s.Response(a.Request, *a.Answer)
	case a.Closed:
		return s.t("(none: stopped first)")
	}
	return s.t("(none yet)")
}

// optionText describes an option, including what it remembers.
func (s Locale) optionText(q uip.Request, o uip.Option) string {
	if q.Purpose != uip.PurposeConfirmRiskyAction {
		return cmp.Or(s.translateText(o.Label), o.ID)
	}
	var what []string
	for _, one := range q.Remembered(o.ID) {
		what = append(what, s.translateText(one))
	}
	remembers := strings.Join(what, s.t(", "))
	switch {
	case o.Label == uip.OptionApprove:
		return s.t("approved")
	case len(what) > 0 && o.ID == uip.OptionAlways:
		return s.t("Yes, and always in this project: %s", remembers)
	case len(what) > 0:
		return s.t("Yes, and always in this session: %s", remembers)
	}
	return cmp.Or(s.translateText(o.Label), o.ID)
}

// Response describes a response.
func (s Locale) Response(q uip.Request, r uip.Response) string {
	var words []string
	add := func(text string) {
		if text != "" {
			words = append(words, text)
		}
	}
	var labels []string
	for _, o := range q.ChosenOptions(r) {
		labels = append(labels, s.optionText(q, o))
	}
	switch {
	case len(labels) == 0:
		add(r.Option)
		add(r.Input)
	case r.Option == uip.OptionSome: // its input has the numbers of hunks
		add(s.t("%s: %s", labels[0], r.Input))
	case r.Option != "":
		add(labels[0])
		add(r.Input)
	default:
		add(strings.Join(labels, s.t(", ")))
	}
	if r.IsUnanswered() {
		add(s.translateText(r.Comment))
	} else {
		add(r.Comment)
	}
	for _, part := range q.Parts {
		title := part.Display.Title
		if part.HasOwnTitle() {
			title = s.translateText(title)
		}
		add(s.joinAnswer(strings.ReplaceAll(title, "\n", " "), s.Response(part, r.PartAnswer(part))))
	}
	if len(words) == 0 {
		return s.t("(dismissed)")
	}
	return strings.Join(words, s.t("; "))
}

// joinAnswer joins a question and its answer. A question mark separates them like a colon.
func (s Locale) joinAnswer(question, answer string) string {
	switch {
	case strings.HasSuffix(question, "？"):
		return question + answer
	case strings.HasSuffix(question, "?"):
		return question + " " + answer
	}
	return s.t("%s: %s", question, answer)
}
