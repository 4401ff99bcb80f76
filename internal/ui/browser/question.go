package browser

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/sanitize"
	"coder/internal/core/uip"
)

// asked shows all of a question's subject: the user must not agree to anything cut off.
func (p *page) asked(q uip.Request) markup { return p.about(q, p.content(q)) }

// asking is asked for a question that can be answered: if its hunks can be chosen, they are fields of
// name.
func (p *page) asking(q uip.Request, name string) markup {
	if diff, ok := q.Display.Content.(display.Diff); ok && offersHunks(q) {
		return p.about(q, p.hunks(diff.Unified, name))
	}
	return p.asked(q)
}

// offersHunks reports whether a change can be accepted in part.
func offersHunks(q uip.Request) bool {
	return q.Display.Metadata[uip.Hunks] != "" && slices.ContainsFunc(q.Options, func(o uip.Option) bool { return o.ID == uip.Some })
}

func (p *page) about(q uip.Request, content markup) markup {
	parts := []any{el("p", class("title"), p.questionTitle(q)), content}
	for why := range strings.SplitSeq(q.Display.Description, "; ") {
		if strings.TrimSpace(why) != "" {
			parts = append(parts, el("p", class("dim"), p.words.Said(sanitize.Reveal(sanitize.MaskWords(why)))))
		}
	}
	for i, part := range q.Parts {
		parts = append(parts, el("div", class("part"), el("strong", strconv.Itoa(i+1)+". "), p.asked(part)))
	}
	return join(parts...)
}

func (p *page) questionTitle(q uip.Request) string {
	title := sanitize.MaskWords(q.Display.Title)
	if q.Purpose != uip.ConfirmRiskyAction {
		if q.Worded() {
			return p.words.Said(title)
		}
		return title
	}
	if q.Kind == uip.Composite {
		return p.t("%d calls need approval", len(q.Parts))
	}
	return sanitize.RevealCommand(title)
}

// content shows exactly what will run or change.
func (p *page) content(q uip.Request) markup {
	switch b := q.Display.Content.(type) {
	case nil:
		return ""
	case display.Code:
		return el("pre", attr{"tabindex", "0"}, el("code", sanitize.RevealCommand(sanitize.MaskWords(b.Source))))
	case display.Text:
		if q.Purpose != uip.ConfirmRiskyAction {
			return prose(sanitize.MaskWords(string(b)))
		}
		return el("pre", attr{"tabindex", "0"}, sanitize.Reveal(sanitize.MaskWords(string(b))))
	case display.Diff:
		return diffs(sanitize.MaskWords(b.Unified))
	default:
		return p.block(b)
	}
}

// given describes the answer to q and who gave it, if known.
func (p *page) given(q uip.Request, a uip.Response) string {
	what := p.chosen(q, a)
	for i, part := range a.Parts {
		var to uip.Request
		if i < len(q.Parts) {
			to = q.Parts[i]
		}
		what = strings.TrimSpace(what + " " + strconv.Itoa(i+1) + ": " + p.chosen(to, part))
	}
	switch {
	case a.Comment == "":
	case a.Unanswered():
		what += p.t(", ") + p.words.Said(a.Comment)
	default:
		what += p.t(", ") + a.Comment
	}
	by := a.Author
	if by == event.ActorUser {
		by = p.t("you")
	}
	by = strings.TrimSpace(by + " " + a.Via)
	return p.t("Answer: %s (%s)", line(what), line(by))
}

// chosen describes an answer, in our words if the option is ours.
func (p *page) chosen(q uip.Request, a uip.Response) string {
	if i := slices.IndexFunc(q.Options, func(o uip.Option) bool { return o.ID == a.Option }); i >= 0 && q.Purpose != uip.ConfirmRiskyAction {
		return p.label(q, q.Options[i])
	}
	switch {
	case a.Dismissed:
		return p.t("(dismissed)")
	case a.Option == uip.Some:
		return p.t("Yes to hunks %s only", line(a.Input))
	case a.Option == uip.Session:
		return p.t("Always in this session")
	case a.Option == uip.Always:
		return p.t("Always in this project")
	case a.Option == uip.Below:
		return p.t("Always below a folder, in this session")
	case a.Option == uip.Approve:
		return p.t("Yes, this once")
	case a.Option == uip.Reject:
		return p.t("No")
	}
	return cmp.Or(a.Option, a.Input)
}

// digest distinguishes a question from any other with the same id.
func digest(q uip.Request) string {
	sum := sha256.Sum256(q.Canonical())
	return hex.EncodeToString(sum[:])
}

// questions renders the open questions, each with its form.
func (p *page) questions(open []uip.Request) markup {
	var all []markup
	for _, q := range open {
		all = append(all, p.question(q))
	}
	return join(all)
}

// question renders an open question with its answers.
func (p *page) question(q uip.Request) markup {
	return p.questionAt(q, p.at("s", p.name, p.place.Session, "answer", q.ID))
}

// questionAt renders a question whose form posts to action.
func (p *page) questionAt(q uip.Request, action string) markup {
	parts := []any{class("question"), attr{"data-question", q.ID + " " + digest(q)}, attr{"aria-label", p.t("Open question")},
		el("input", attr{"type", "hidden"}, attr{"name", "shown"}, attr{"value", digest(q)}),
		el("button", attr{"disabled", ""}, attr{"hidden", ""})} // Enter presses this button, which answers nothing
	if len(q.Parts) == 0 {
		parts = append(parts, p.asking(q, "hunk"))
	} else {
		parts = append(parts, el("p", class("title"), p.questionTitle(q)))
		for i, part := range q.Parts {
			parts = append(parts, p.part(i, part))
		}
	}
	risky := q.Purpose == uip.ConfirmRiskyAction
	if risky {
		parts = append(parts, p.comment(q))
	} else if len(q.Parts) == 0 && len(q.Options) == 0 {
		parts = append(parts, p.typed(q, "input"))
	}
	return p.form(action, append(parts, el("div", class("buttons"), p.buttons(q, risky)))...)
}

// comment renders the field for a reason to the model.
func (p *page) comment(q uip.Request) markup {
	id := "c-" + q.ID
	return join(el("label", attr{"for", id}, p.t("Note to the model")), el("input", attr{"id", id}, attr{"name", "comment"}, attr{"autocomplete", "off"}))
}

func (p *page) typed(q uip.Request, name string) markup {
	id := name + "-" + q.ID
	return join(el("label", attr{"for", id}, p.t("In your own words")), el("textarea", attr{"id", id}, attr{"name", name}, attr{"rows", "2"}))
}

// buttons renders the buttons that answer the whole question.
func (p *page) buttons(q uip.Request, risky bool) (all []markup) {
	options := q.Options
	if risky && len(q.Parts) > 0 {
		all = append(all, el("button", class("each"), attr{"name", "option"}, attr{"value", ""}, p.t("Answer as chosen above")))
		if len(options) == 0 {
			options = []uip.Option{{ID: uip.Approve}, {ID: uip.Reject}}
		}
	}
	for _, o := range options {
		look := ""
		switch {
		case o.ID == uip.Approve:
			look = "primary"
		case o.ID == uip.Reject || o.Style == uip.Danger:
			look = "danger"
		}
		if takesAll(o.ID) {
			look += " whole"
		}
		all = append(all, el("button", class(look), attr{"name", "option"}, attr{"value", o.ID}, attr{"formnovalidate", ""}, p.label(q, o)))
	}
	if !risky {
		if len(q.Parts) == 0 && len(q.Options) > 0 { // follows the buttons
			all = append(all, el("div", class("own"), p.typed(q, "input")))
		}
		all = append(all, el("button", class("primary"), attr{"name", "option"}, attr{"value", ""}, p.t("Answer")),
			el("button", attr{"name", "dismiss"}, attr{"value", "1"}, attr{"formnovalidate", ""}, p.t("Do not answer")))
	}
	return all
}

// label describes an option; for an approval that is remembered, what it covers.
func (p *page) label(q uip.Request, o uip.Option) string {
	if q.Purpose != uip.ConfirmRiskyAction {
		if _, models := q.Display.Metadata["label"+o.ID]; models {
			return cmp.Or(line(o.Label), o.ID) // with its description
		}
		return cmp.Or(p.words.Said(o.Label), o.ID)
	}
	what, several := p.remembers(q, o.ID), len(q.Parts) > 0
	switch {
	case o.ID == uip.Approve && several:
		return p.t("Yes to all, this once")
	case o.ID == uip.Approve:
		return p.t("Yes, this once")
	case o.ID == uip.Reject && several:
		return p.t("No to all")
	case o.ID == uip.Reject:
		return p.t("No")
	case o.ID == uip.Some:
		return p.t("Yes to the chosen hunks only")
	case o.ID == uip.Session:
		return p.t("Always in this session: %s", what)
	case o.ID == uip.Always:
		return p.t("Always in this project: %s", what)
	case o.ID == uip.Below:
		return p.t("Always in this session: %s", what)
	}
	return cmp.Or(p.words.Said(o.Label), o.ID)
}

// remembers describes what an approval would remember; for several calls, for each.
func (p *page) remembers(q uip.Request, option string) string {
	var all []string
	add := func(what string) {
		if what != "" && !slices.Contains(all, what) {
			all = append(all, what)
		}
	}
	if len(q.Parts) == 0 {
		for _, what := range q.Remembered(option) {
			add(p.words.Said(sanitize.RevealCommand(sanitize.MaskWords(what))))
		}
	}
	for _, part := range q.Parts {
		what := p.remembers(part, option)
		if what == "" && option == uip.Below {
			what = p.remembers(part, uip.Session) // without a folder the session is the limit
		}
		add(what)
	}
	return strings.Join(all, p.t(", "))
}

// part renders one part of a question: each call, and so each file, is decided separately.
func (p *page) part(i int, q uip.Request) markup {
	name := "part" + strconv.Itoa(i)
	var choices []markup
	for _, o := range q.Options {
		look := ""
		if takesAll(o.ID) {
			look = "whole"
		}
		need := set("required", q.Purpose == uip.ConfirmRiskyAction)
		choices = append(choices, el("label", class(look), el("input", attr{"type", "radio"}, attr{"name", name}, attr{"value", o.ID}, need), " ", p.label(q, o)))
	}
	own := markup("")
	if q.Purpose != uip.ConfirmRiskyAction {
		own = p.typed(q, name+"-input")
	}
	return el("fieldset", el("legend", strconv.Itoa(i+1)), p.asking(q, name+"-hunk"), el("div", class("choices"), choices), own)
}

// takesAll reports whether an option accepts a change as a whole.
func takesAll(option string) bool { return option != uip.Some && option != uip.Reject && option != "" }

// lessThanAll reports whether a form accepts a whole change but has unticked hunks. One of the two is a
// mistake, so coder must ask again.
func lessThanAll(q uip.Request, form url.Values) bool {
	differs := func(name, option string) bool {
		n := form.Get(name + "s")
		return n != "" && takesAll(option) && n != strconv.Itoa(len(form[name]))
	}
	all := form.Get("option")
	if form.Get("dismiss") == "" && differs("hunk", all) {
		return true
	}
	for i := range q.Parts {
		name := "part" + strconv.Itoa(i)
		if differs(name+"-hunk", cmp.Or(all, form.Get(name))) {
			return true
		}
	}
	return false
}

// readAnswer reads the answer from a form.
func readAnswer(q uip.Request, form url.Values, via string) uip.Response {
	a := uip.Response{ID: q.ID, TaskID: q.TaskID, Author: event.ActorUser, Via: via, Comment: strings.TrimSpace(form.Get("comment"))}
	if form.Get("dismiss") != "" {
		a.Dismissed = true
		return a
	}
	a.Option, a.Input = form.Get("option"), strings.TrimSpace(form.Get("input"))
	if a.Option == uip.Some {
		a.Input = strings.Join(form["hunk"], ",")
	}
	if a.Option != "" {
		return a
	}
	for i, part := range q.Parts {
		name := "part" + strconv.Itoa(i)
		so := uip.Response{ID: part.ID, Option: form.Get(name), Input: strings.TrimSpace(form.Get(name + "-input"))}
		if so.Option == uip.Some {
			so.Input = strings.Join(form[name+"-hunk"], ",")
		}
		a.Parts = append(a.Parts, so)
	}
	return a
}

// answer saves the answer to a question. The first answer counts, from here or elsewhere.
func (p *page) answer() (markup, error) {
	if err := p.find(); err != nil {
		return "", err
	}
	id := p.r.PathValue("question")
	var open *uip.Request
	var closed *uip.Response
	for r, err := range p.Records(p.r.Context(), p.place, 0, event.Domain) {
		if err != nil {
			return "", err
		}
		switch e := r.Event.(type) {
		case event.InteractionRequested:
			if e.ID == id {
				open, closed = &e.Request, nil
			}
		case event.InteractionResponded:
			if e.ID == id {
				closed = &e.Response
			}
		}
	}
	switch {
	case open == nil:
		return "", &Problem{http.StatusNotFound, "question not found"}
	case closed != nil:
		return "", &Problem{http.StatusConflict, p.t("the question was already answered; your answer changed nothing. %s", p.given(*open, *closed))}
	}
	a, err := p.answerTo(*open)
	if err != nil {
		return "", err
	}
	return p.done(p.Answer(p.r.Context(), p.place, *open, a))
}

// answerTo returns the answer to q, if the form was about q as shown.
func (p *page) answerTo(q uip.Request) (uip.Response, error) {
	if digest(q) != p.r.PostForm.Get("shown") {
		return uip.Response{}, &Problem{http.StatusConflict, "the question is not the one you saw; look at it again. Nothing was changed"}
	}
	if lessThanAll(q, p.r.PostForm) {
		return uip.Response{}, &Problem{http.StatusBadRequest, "some hunks are not checked, but the answer accepts all of them; check them, or accept only the checked ones. Nothing was changed"}
	}
	a := readAnswer(q, p.r.PostForm, p.via())
	if err := uip.Check(q, a); err != nil {
		return a, &Problem{http.StatusBadRequest, p.t("not an answer to the question: %s", p.words.Said(err.Error()))}
	}
	return a, nil
}

// via names this browser in records.
func (p *page) via() string {
	host, _, err := net.SplitHostPort(p.r.RemoteAddr)
	if ip := net.ParseIP(host); err != nil || ip == nil || ip.IsLoopback() {
		return "web"
	}
	return "web " + host
}

// prompted returns the text that the user typed.
func (p *page) prompted() (string, error) {
	text := strings.ReplaceAll(p.r.PostForm.Get("prompt"), "\r\n", "\n")
	if strings.TrimSpace(text) == "" {
		return "", &Problem{http.StatusBadRequest, "nothing was sent; type something first"}
	}
	return text, nil
}

// begin starts a session.
func (p *page) begin() (markup, error) {
	prompt, err := p.prompted()
	if err != nil {
		return "", err
	}
	roots := p.Projects()
	i := slices.IndexFunc(roots, func(root string) bool { return projectName(root) == p.r.PostForm.Get("project") })
	if i < 0 {
		return "", &Problem{http.StatusNotFound, "project not found"}
	}
	mode := p.r.PostForm.Get("mode")
	if mode != "" && !slices.Contains(p.Modes, mode) {
		return "", &Problem{http.StatusBadRequest, "unknown mode"}
	}
	id, err := p.Begin(p.r.Context(), roots[i], mode, prompt)
	if err != nil {
		return "", err
	}
	p.goTo(p.at("s", projectName(roots[i]), id))
	return "", nil
}

// say sends the session a message.
func (p *page) say() (markup, error) {
	if err := p.find(); err != nil {
		return "", err
	}
	prompt, err := p.prompted()
	if err != nil {
		return "", err
	}
	if seen := p.r.PostForm.Get("seen"); seen != "" && seen != "0" && p.Pulse(p.place).Stamp == "" {
		return "", &Problem{http.StatusNotFound, "the records you saw no longer exist; nothing was sent"}
	}
	return p.done(p.Say(p.r.Context(), p.place, prompt))
}

// mode changes the session's mode.
func (p *page) mode() (markup, error) {
	if err := p.find(); err != nil {
		return "", err
	}
	name := p.r.PostForm.Get("mode")
	if !slices.Contains(p.Modes, name) {
		return "", &Problem{http.StatusBadRequest, "unknown mode"}
	}
	return p.done(p.Say(p.r.Context(), p.place, "/mode "+name))
}

// stop stops the running turn.
func (p *page) stop() (markup, error) {
	if err := p.find(); err != nil {
		return "", err
	}
	return p.done(p.Stop(p.r.Context(), p.place))
}

// release closes the session so that another process can continue it.
func (p *page) release() (markup, error) {
	if err := p.find(); err != nil {
		return "", err
	}
	return p.done(p.Release(p.place))
}

func (p *page) done(err error) (markup, error) {
	if err == nil {
		p.lookAgain(p.place)
		p.goTo(p.of(""))
	}
	return "", err
}
