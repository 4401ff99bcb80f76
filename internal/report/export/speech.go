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

// Speech is the language of an export. It translates only coder's own texts: the session's content
// stays unchanged. The zero Speech is English.
type Speech struct {
	Words Words
	Lang  string           // its name
	Width func(string) int // of a text, in cells
}

// Words is a language.
type Words interface {
	// T translates one of the export's own sentences; the English form is the key.
	T(format string, args ...any) string
	// Said translates a sentence made elsewhere, such as a reason.
	Said(text string) string
}

func (s Speech) t(format string, args ...any) string {
	if s.Words == nil {
		return fmt.Sprintf(format, args...)
	}
	return s.Words.T(format, args...)
}

func (s Speech) said(text string) string {
	if s.Words == nil {
		return text
	}
	return s.Words.Said(text)
}

// detail returns the detail of a note.
func (s Speech) detail(n Noted) string {
	if n.Own {
		return s.said(n.Detail)
	}
	return n.Detail
}

// blocks returns the output of a command.
func (s Speech) blocks(all display.Blocks) string {
	width := s.Width
	if width == nil {
		width = utf8.RuneCountInString
	}
	return all.Translated(s.said, width)
}

// title returns the title of the session.
func (s Speech) title(t Transcript) string {
	return sanitize.Line(cmp.Or(t.Head.Meta.Title, s.t("Session %s", t.Head.ID)), 0)
}

// facts returns the lines at the top: names and values.
func (s Speech) facts(t Transcript) (list [][2]string) {
	add := func(name, value string) {
		if value != "" {
			list = append(list, [2]string{name, value})
		}
	}
	add(s.t("Session"), t.Head.ID)
	add(s.t("Model"), t.Head.Meta.Model)
	add(s.t("Folder"), t.Head.Meta.Dir)
	add(s.t("Started"), stamp(t.Head.Created))
	if u := t.Used; u.In+u.Out > 0 {
		add(s.t("Tokens"), s.t("%d in, %d out", u.In, u.Out))
	}
	return list
}

// who returns the name of a role.
func (s Speech) who(r chat.Role) string {
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

// name returns the displayed name of a call.
func (s Speech) name(c *Called) string {
	if c.Check {
		return s.t("Check of the edits")
	}
	return c.Name
}

// outcome says how a call ended.
func (s Speech) outcome(c *Called) string {
	switch {
	case !c.Answered:
		return s.t("no result")
	case c.Check && c.Failed:
		return s.t("did not pass")
	case c.Check:
		return s.t("passed")
	case c.Refused:
		return s.t("refused")
	case c.Failed:
		return s.t("failed")
	}
	return s.t("done")
}

// choices returns the options of a question that is not about a call, in Markdown.
func (s Speech) choices(q uip.Request) string {
	var b strings.Builder
	for _, part := range q.Parts {
		b.WriteString(strings.TrimSpace(part.Display.Title) + "\n\n" + s.choices(part))
	}
	if q.Purpose == uip.ConfirmRiskyAction {
		return ""
	}
	for i, o := range q.Options {
		label := o.Label
		if q.Worded() {
			label = s.said(label)
		}
		fmt.Fprintf(&b, "%d. %s\n", i+1, strings.ReplaceAll(label, "\n", " "))
	}
	return b.String() + "\n"
}

// question returns a question to the user, and its reason.
func (s Speech) question(a *Asked) (title, about string) {
	q := a.Request
	if q.Purpose != uip.ConfirmRiskyAction {
		if title = q.Display.Title; q.Worded() {
			title = s.said(title)
		}
		return title, s.said(q.Display.Description)
	}
	var why []string
	for reason := range strings.SplitSeq(q.Display.Description, "; ") {
		why = append(why, s.said(reason))
	}
	switch title = q.Display.Title; {
	case q.Kind == uip.Composite:
		title = s.t("%d calls need approval", len(q.Parts))
	case q.Worded():
		title = s.said(title)
	}
	return title, strings.Join(why, s.t("; "))
}

// answer returns the user's answer.
func (s Speech) answer(a *Asked) string {
	switch {
	case a.Answer != nil:
		return s.Response(a.Request, *a.Answer)
	case a.Over:
		return s.t("(none: stopped first)")
	}
	return s.t("(none yet)")
}

// option describes an option, including what it remembers.
func (s Speech) option(q uip.Request, o uip.Option) string {
	if q.Purpose != uip.ConfirmRiskyAction {
		return cmp.Or(s.said(o.Label), o.ID)
	}
	var what []string
	for _, one := range q.Remembered(o.ID) {
		what = append(what, s.said(one))
	}
	remembers := strings.Join(what, s.t(", "))
	switch {
	case o.Label == uip.Approve:
		return s.t("approved")
	case len(what) > 0 && o.ID == uip.Always:
		return s.t("Yes, and always in this project: %s", remembers)
	case len(what) > 0:
		return s.t("Yes, and always in this session: %s", remembers)
	}
	return cmp.Or(s.said(o.Label), o.ID)
}

// Response describes a response.
func (s Speech) Response(q uip.Request, r uip.Response) string {
	var words []string
	add := func(text string) {
		if text != "" {
			words = append(words, text)
		}
	}
	var labels []string
	for _, o := range q.Chosen(r) {
		labels = append(labels, s.option(q, o))
	}
	switch {
	case len(labels) == 0:
		add(r.Option)
		add(r.Input)
	case r.Option == uip.Some: // its input has the numbers of hunks
		add(s.t("%s: %s", labels[0], r.Input))
	case r.Option != "":
		add(labels[0])
		add(r.Input)
	default:
		add(strings.Join(labels, s.t(", ")))
	}
	if r.Unanswered() {
		add(s.said(r.Comment))
	} else {
		add(r.Comment)
	}
	for _, part := range q.Parts {
		title := part.Display.Title
		if part.Worded() {
			title = s.said(title)
		}
		add(s.answered(strings.ReplaceAll(title, "\n", " "), s.Response(part, r.Part(part))))
	}
	if len(words) == 0 {
		return s.t("(dismissed)")
	}
	return strings.Join(words, s.t("; "))
}

// answered joins a question and its answer. A question mark separates them like a colon.
func (s Speech) answered(question, answer string) string {
	switch {
	case strings.HasSuffix(question, "？"):
		return question + answer
	case strings.HasSuffix(question, "?"):
		return question + " " + answer
	}
	return s.t("%s: %s", question, answer)
}
