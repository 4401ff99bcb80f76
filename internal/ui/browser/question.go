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

// renderSubject shows all of a question's subject: the user must not agree to anything cut off.
func (p *page) renderSubject(q uip.Request) markup {
	return p.renderQuestionFrame(q, p.renderQuestionContent(q))
}

// renderSubjectForm is asked for a question that can be answered: if its hunks can be chosen, they are fields of
// name.
func (p *page) renderSubjectForm(q uip.Request, name string) markup {
	if diff, ok := q.Display.Content.(display.Diff); ok && hasSelectableHunks(q) {
		return p.renderQuestionFrame(q, p.renderHunks(diff.Unified, name))
	}
	return p.renderSubject(q)
}

// hasSelectableHunks reports whether a change can be accepted in part.
func hasSelectableHunks(q uip.Request) bool {
	return q.Display.Metadata[uip.MetaHunks] != "" && slices.ContainsFunc(q.Options,
		func(o uip.Option) bool { return o.ID == uip.OptionSome })
}

func (p *page) renderQuestionFrame(q uip.Request, content markup) markup {
	parts := []any{element("p", classAttr("title"), p.questionTitle(q)), content}
	for why := range strings.SplitSeq(q.Display.Description, "; ") {
		if strings.TrimSpace(why) != "" {
			parts = append(parts, element("p", classAttr("dim"),
				p.translator.TranslateText(sanitize.Reveal(sanitize.MaskWords(why)))))
		}
	}
	for i, part := range q.Parts {
		parts = append(parts, element("div", classAttr("part"), element("strong", strconv.Itoa(i+1)+". "),
			p.renderSubject(part)))
	}
	return joinParts(parts...)
}

func (p *page) questionTitle(q uip.Request) string {
	title := sanitize.MaskWords(q.Display.Title)
	if q.Purpose != uip.PurposeConfirmRiskyAction {
		if q.HasOwnTitle() {
			return p.translator.TranslateText(title)
		}
		return title
	}
	if q.Kind == uip.KindComposite {
		return p.t("%d calls need approval", len(q.Parts))
	}
	return sanitize.RevealCommand(title)
}

// renderQuestionContent shows exactly what will run or change.
func (p *page) renderQuestionContent(q uip.Request) markup {
	switch b := q.Display.Content.(type) {
	case nil:
		return ""
	case display.Code:
		return element("pre", attr{"tabindex", "0"}, element("code", sanitize.RevealCommand(sanitize.MaskWords(b.Source))))
	case display.Text:
		if q.Purpose != uip.PurposeConfirmRiskyAction {
			return renderMarkdown(sanitize.MaskWords(string(b)))
		}
		return element("pre", attr{"tabindex", "0"}, sanitize.Reveal(sanitize.MaskWords(string(b))))
	case display.Diff:
		return renderDiffs(sanitize.MaskWords(b.Unified))
	default:
		return p.renderBlock(b)
	}
}

// answerText describes the answer to q and who gave it, if known.
func (p *page) answerText(q uip.Request, a uip.Response) string {
	what := p.choiceText(q, a)
	for i, part := range a.Parts {
		var to uip.Request
		if i < len(q.Parts) {
			to = q.Parts[i]
		}
		what = strings.TrimSpace(what + " " + strconv.Itoa(i+1) + ": " + p.choiceText(to, part))
	}
	switch {
	case a.Comment == "":
	case a.IsUnanswered():
		what += p.t(", ") + p.translator.TranslateText(a.Comment)
	default:
		what += p.t(", ") + a.Comment
	}
	by := a.Author
	if by == event.ActorUser {
		by = p.t("you")
	}
	by = strings.TrimSpace(by + " " + a.AnsweredBy)
	return p.t("Answer: %s (%s)", oneLine(what), oneLine(by))
}

// choiceText describes an answer, in our words if the option is ours.
func (p *page) choiceText(q uip.Request, a uip.Response) string {
	if i := slices.IndexFunc(q.Options, func(o uip.Option) bool { return o.ID == a.Option }); i >= 0 &&
		q.Purpose != uip.PurposeConfirmRiskyAction {
		return p.optionLabel(q, q.Options[i])
	}
	switch {
	case a.Dismissed:
		return p.t("(dismissed)")
	case a.Option == uip.OptionSome:
		return p.t("Yes to hunks %s only", oneLine(a.Input))
	case a.Option == uip.OptionSession:
		return p.t("Always in this session")
	case a.Option == uip.OptionAlways:
		return p.t("Always in this project")
	case a.Option == uip.OptionAlwaysBelow:
		return p.t("Always below a folder, in this session")
	case a.Option == uip.OptionApprove:
		return p.t("Yes, this once")
	case a.Option == uip.OptionReject:
		return p.t("No")
	}
	return cmp.Or(a.Option, a.Input)
}

// questionDigest distinguishes a question from any other with the same id.
func questionDigest(q uip.Request) string {
	sum := sha256.Sum256(q.Canonical())
	return hex.EncodeToString(sum[:])
}

// renderQuestions renders the open questions, each with its form.
func (p *page) renderQuestions(open []uip.Request) markup {
	var all []markup
	for _, q := range open {
		all = append(all, p.renderQuestion(q))
	}
	return joinParts(all)
}

// renderQuestion renders an open question with its answers.
func (p *page) renderQuestion(q uip.Request) markup {
	return p.renderQuestionForm(q, p.pageURL("s", p.projectSlug, p.ref.Session, "answer", q.ID))
}

// renderQuestionForm renders a question whose form posts to action.
func (p *page) renderQuestionForm(q uip.Request, action string) markup {
	parts := []any{classAttr("question"), attr{"data-question", q.ID + " " + questionDigest(q)},
		attr{"aria-label", p.t("Open question")},
		element("input", attr{"type", "hidden"}, attr{"name", "shown"}, attr{"value", questionDigest(q)}),
		element("button", attr{"disabled", ""}, attr{"hidden", ""})} // Enter presses this button, which answers nothing
	if len(q.Parts) == 0 {
		parts = append(parts, p.renderSubjectForm(q, "hunk"))
	} else {
		parts = append(parts, element("p", classAttr("title"), p.questionTitle(q)))
		for i, part := range q.Parts {
			parts = append(parts, p.renderPart(i, part))
		}
	}
	risky := q.Purpose == uip.PurposeConfirmRiskyAction
	if risky {
		parts = append(parts, p.renderComment(q))
	} else if len(q.Parts) == 0 && len(q.Options) == 0 {
		parts = append(parts, p.renderTextField(q, "input"))
	}
	return p.renderForm(action, append(parts, element("div", classAttr("buttons"), p.renderButtons(q, risky)))...)
}

// renderComment renders the field for a reason to the model.
func (p *page) renderComment(q uip.Request) markup {
	id := "c-" + q.ID
	return joinParts(element("label", attr{"for", id}, p.t("Note to the model")),
		element("input", attr{"id", id}, attr{"name", "comment"}, attr{"autocomplete", "off"}))
}

func (p *page) renderTextField(q uip.Request, name string) markup {
	id := name + "-" + q.ID
	return joinParts(element("label", attr{"for", id}, p.t("In your own words")),
		element("textarea", attr{"id", id}, attr{"name", name}, attr{"rows", "2"}))
}

// renderButtons renders the buttons that answer the whole question.
func (p *page) renderButtons(q uip.Request, risky bool) (all []markup) {
	options := q.Options
	if risky && len(q.Parts) > 0 {
		all = append(all, element("button", classAttr("each"), attr{"name", "option"}, attr{"value", ""},
			p.t("Answer as chosen above")))
		if len(options) == 0 {
			options = []uip.Option{{ID: uip.OptionApprove}, {ID: uip.OptionReject}}
		}
	}
	for _, o := range options {
		look := ""
		switch {
		case o.ID == uip.OptionApprove:
			look = "primary"
		case o.ID == uip.OptionReject || o.Style == uip.StyleDanger:
			look = "danger"
		}
		if acceptsAll(o.ID) {
			look += " whole"
		}
		all = append(all, element("button", classAttr(look), attr{"name", "option"}, attr{"value", o.ID},
			attr{"formnovalidate", ""}, p.optionLabel(q, o)))
	}
	if !risky {
		if len(q.Parts) == 0 && len(q.Options) > 0 { // follows the buttons
			all = append(all, element("div", classAttr("own"), p.renderTextField(q, "input")))
		}
		all = append(all, element("button", classAttr("primary"), attr{"name", "option"}, attr{"value", ""}, p.t("Answer")),
			element("button", attr{"name", "dismiss"}, attr{"value", "1"}, attr{"formnovalidate", ""}, p.t("Do not answer")))
	}
	return all
}

// optionLabel describes an option; for an approval that is remembered, what it covers.
func (p *page) optionLabel(q uip.Request, o uip.Option) string {
	if q.Purpose != uip.PurposeConfirmRiskyAction {
		if _, models := q.Display.Metadata["label"+o.ID]; models {
			return cmp.Or(oneLine(o.Label), o.ID) // with its description
		}
		return cmp.Or(p.translator.TranslateText(o.Label), o.ID)
	}
	what, several := p.grantScope(q, o.ID), len(q.Parts) > 0
	switch {
	case o.ID == uip.OptionApprove && several:
		return p.t("Yes to all, this once")
	case o.ID == uip.OptionApprove:
		return p.t("Yes, this once")
	case o.ID == uip.OptionReject && several:
		return p.t("No to all")
	case o.ID == uip.OptionReject:
		return p.t("No")
	case o.ID == uip.OptionSome:
		return p.t("Yes to the chosen hunks only")
	case o.ID == uip.OptionSession:
		return p.t("Always in this session: %s", what)
	case o.ID == uip.OptionAlways:
		return p.t("Always in this project: %s", what)
	case o.ID == uip.OptionAlwaysBelow:
		return p.t("Always in this session: %s", what)
	}
	return cmp.Or(p.translator.TranslateText(o.Label), o.ID)
}

// grantScope describes what an approval would remember; for several calls, for each.
func (p *page) grantScope(q uip.Request, option string) string {
	var all []string
	add := func(what string) {
		if what != "" && !slices.Contains(all, what) {
			all = append(all, what)
		}
	}
	if len(q.Parts) == 0 {
		for _, what := range q.Remembered(option) {
			add(p.translator.TranslateText(sanitize.RevealCommand(sanitize.MaskWords(what))))
		}
	}
	for _, part := range q.Parts {
		what := p.grantScope(part, option)
		if what == "" && option == uip.OptionAlwaysBelow {
			what = p.grantScope(part, uip.OptionSession) // without a folder the session is the limit
		}
		add(what)
	}
	return strings.Join(all, p.t(", "))
}

// renderPart renders one part of a question: each call, and so each file, is decided separately.
func (p *page) renderPart(i int, q uip.Request) markup {
	name := "part" + strconv.Itoa(i)
	var choices []markup
	for _, o := range q.Options {
		look := ""
		if acceptsAll(o.ID) {
			look = "whole"
		}
		need := boolAttr("required", q.Purpose == uip.PurposeConfirmRiskyAction)
		choices = append(choices, element("label", classAttr(look),
			element("input", attr{"type", "radio"}, attr{"name", name}, attr{"value", o.ID}, need), " ", p.optionLabel(q, o)))
	}
	own := markup("")
	if q.Purpose != uip.PurposeConfirmRiskyAction {
		own = p.renderTextField(q, name+"-input")
	}
	return element("fieldset", element("legend", strconv.Itoa(i+1)), p.renderSubjectForm(q, name+"-hunk"),
		element("div", classAttr("choices"), choices), own)
}

// acceptsAll reports whether an option accepts a change as a whole.
func acceptsAll(option string) bool {
	return option != uip.OptionSome && option != uip.OptionReject && option != ""
}

// hasUntickedHunks reports whether a form accepts a whole change but has unticked hunks. One of the two is a
// mistake, so coder must ask again.
func hasUntickedHunks(q uip.Request, form url.Values) bool {
	differs := func(name, option string) bool {
		n := form.Get(name + "s")
		return n != "" && acceptsAll(option) && n != strconv.Itoa(len(form[name]))
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

// parseAnswer reads the answer from a form.
func parseAnswer(q uip.Request, form url.Values, via string) uip.Response {
	a := uip.Response{ID: q.ID, TaskID: q.TaskID, Author: event.ActorUser, AnsweredBy: via,
		Comment: strings.TrimSpace(form.Get("comment"))}
	if form.Get("dismiss") != "" {
		a.Dismissed = true
		return a
	}
	a.Option, a.Input = form.Get("option"), strings.TrimSpace(form.Get("input"))
	if a.Option == uip.OptionSome {
		a.Input = strings.Join(form["hunk"], ",")
	}
	if a.Option != "" {
		return a
	}
	for i, part := range q.Parts {
		name := "part" + strconv.Itoa(i)
		so := uip.Response{ID: part.ID, Option: form.Get(name), Input: strings.TrimSpace(form.Get(name + "-input"))}
		if so.Option == uip.OptionSome {
			so.Input = strings.Join(form[name+"-hunk"], ",")
		}
		a.Parts = append(a.Parts, so)
	}
	return a
}

// saveAnswer saves the answer to a question. The first answer counts, from here or elsewhere.
func (p *page) saveAnswer() (markup, error) {
	if err := p.findSession(); err != nil {
		return "", err
	}
	id := p.r.PathValue("question")
	var open *uip.Request
	var closed *uip.Response
	for r, err := range p.Records(p.r.Context(), p.ref, 0, event.LogDomain) {
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
		return "", &UserError{http.StatusNotFound, "question not found"}
	case closed != nil:
		return "", &UserError{http.StatusConflict, p.t("the question was already answered; your answer changed nothing. %s",
			p.answerText(*open, *closed))}
	}
	a, err := p.parseFormAnswer(*open)
	if err != nil {
		return "", err
	}
	return p.redirectBack(p.Answer(p.r.Context(), p.ref, *open, a))
}

// parseFormAnswer returns the answer to q, if the form was about q as shown.
func (p *page) parseFormAnswer(q uip.Request) (uip.Response, error) {
	if questionDigest(q) != p.r.PostForm.Get("shown") {
		return uip.Response{}, &UserError{http.StatusConflict,
			"the question is not the one you saw; look at it again. Nothing was changed"}
	}
	if hasUntickedHunks(q, p.r.PostForm) {
		return uip.Response{}, &UserError{http.StatusBadRequest,
			"some hunks are not checked, but the answer accepts all of them; check them, or accept only the checked ones. Nothing was changed"}
	}
	a := parseAnswer(q, p.r.PostForm, p.answerSource())
	if err := uip.CheckResponse(q, a); err != nil {
		return a, &UserError{http.StatusBadRequest, p.t("not an answer to the question: %s",
			p.translator.TranslateError(err))}
	}
	return a, nil
}

// answerSource names this browser in records.
func (p *page) answerSource() string {
	host, _, err := net.SplitHostPort(p.r.RemoteAddr)
	if ip := net.ParseIP(host); err != nil || ip == nil || ip.IsLoopback() {
		return "web"
	}
	return "web " + host
}

// promptText returns the text that the user typed.
func (p *page) promptText() (string, error) {
	text := strings.ReplaceAll(p.r.PostForm.Get("prompt"), "\r\n", "\n")
	if strings.TrimSpace(text) == "" {
		return "", &UserError{http.StatusBadRequest, "nothing was sent; type something first"}
	}
	return text, nil
}

// startSession starts a session.
func (p *page) startSession() (markup, error) {
	prompt, err := p.promptText()
	if err != nil {
		return "", err
	}
	roots := p.Projects()
	i := slices.IndexFunc(roots, func(root string) bool { return projectName(root) == p.r.PostForm.Get("project") })
	if i < 0 {
		return "", &UserError{http.StatusNotFound, "project not found"}
	}
	mode := p.r.PostForm.Get("mode")
	if mode != "" && !slices.Contains(p.Modes, mode) {
		return "", &UserError{http.StatusBadRequest, "unknown mode"}
	}
	id, err := p.StartSession(p.r.Context(), roots[i], mode, prompt)
	if err != nil {
		return "", err
	}
	p.redirect(p.pageURL("s", projectName(roots[i]), id))
	return "", nil
}

// sendMessage sends the session a message.
func (p *page) sendMessage() (markup, error) {
	if err := p.findSession(); err != nil {
		return "", err
	}
	prompt, err := p.promptText()
	if err != nil {
		return "", err
	}
	if seen := p.r.PostForm.Get("seen"); seen != "" && seen != "0" && p.Activity(p.ref).Stamp == "" {
		return "", &UserError{http.StatusNotFound, "the records you saw no longer exist; nothing was sent"}
	}
	return p.redirectBack(p.SendMessage(p.r.Context(), p.ref, prompt))
}

// changeMode changes the session's mode.
func (p *page) changeMode() (markup, error) {
	if err := p.findSession(); err != nil {
		return "", err
	}
	name := p.r.PostForm.Get("mode")
	if !slices.Contains(p.Modes, name) {
		return "", &UserError{http.StatusBadRequest, "unknown mode"}
	}
	return p.redirectBack(p.SendMessage(p.r.Context(), p.ref, "/mode "+name))
}

// stopTurn stops the running turn.
func (p *page) stopTurn() (markup, error) {
	if err := p.findSession(); err != nil {
		return "", err
	}
	return p.redirectBack(p.Stop(p.r.Context(), p.ref))
}

// release closes the session so that another process can continue it.
func (p *page) release() (markup, error) {
	if err := p.findSession(); err != nil {
		return "", err
	}
	return p.redirectBack(p.Release(p.ref))
}

func (p *page) redirectBack(err error) (markup, error) {
	if err == nil {
		p.refresh(p.ref)
		p.redirect(p.sessionURL(""))
	}
	return "", err
}
