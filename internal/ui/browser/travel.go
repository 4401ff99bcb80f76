package browser

import (
	"fmt"
	"net/http"
)

// renderTravel renders the two ways to go to a record: restore its files, or fork a new session from it. Each
// first shows what it would do.
func (p *page) renderTravel(at uint64) markup {
	return element("p", classAttr("span"),
		p.renderTravelForm("restore", at, element("button", p.t("Restore files…"))),
		p.renderTravelForm("fork", at, element("button", p.t("Fork…"))))
}

func (p *page) renderTravelForm(what string, at uint64, parts ...any) markup {
	number := element("input", attr{"type", "hidden"}, attr{"name", "at"}, attr{"value", formatUint(at)})
	return p.renderForm(p.sessionURL(what), append([]any{number}, parts...)...)
}

// restore shows what would change in the files, and restores them after the user agrees.
func (p *page) restore() (markup, error) {
	at, sure, err := p.travelTarget()
	if err != nil {
		return "", err
	}
	if sure {
		return p.redirectBack(p.SendMessage(p.r.Context(), p.ref, fmt.Sprintf("/restore %d", at)))
	}
	plan, err := p.RestorePlan(p.r.Context(), p.ref, at)
	if err != nil {
		return "", err
	}
	return p.renderConfirmation("restore", at, p.t("Restore files"), joinParts(p.renderBlocks(plan))), nil
}

// fork describes a fork, and starts it after the user agrees.
func (p *page) fork() (markup, error) {
	at, sure, err := p.travelTarget()
	if err != nil {
		return "", err
	}
	if !sure {
		about := element("p",
			p.t("A new session begins at record %d, with the conversation, todos, mode and files of that record. It has its own folder beside the project; this session and its files stay unchanged.", at))
		return p.renderConfirmation("fork", at, p.t("Fork"), about), nil
	}
	to, err := p.Fork(p.r.Context(), p.ref, at)
	if err != nil {
		return "", err
	}
	p.redirect(p.pageURL("s", projectName(to.Root), to.Session))
	return "", nil
}

// travelTarget reads the record from the form, and whether the user agreed to the plan.
func (p *page) travelTarget() (at uint64, sure bool, err error) {
	if err := p.findSession(); err != nil {
		return 0, false, err
	}
	if at, err = parseNumber(p.r.PostForm.Get("at")); err == nil && at == 0 {
		err = &UserError{http.StatusBadRequest, "record not found"}
	}
	return at, p.r.PostForm.Get("sure") == "yes", err
}

// renderConfirmation shows a plan with the button that carries it out.
func (p *page) renderConfirmation(what string, at uint64, name string, plan markup) markup {
	p.tab, p.title = "Replay", name
	return joinParts(p.renderHeading(), element("p", classAttr("dim"), p.t("as of record %d", at)),
		element("section", attr{"id", "plan"}, plan),
		p.renderTravelForm(what, at, element("input", attr{"type", "hidden"}, attr{"name", "sure"}, attr{"value", "yes"}),
			element("button", classAttr("primary"), name)),
		element("p", element("a", attr{"href", p.sessionURL("replay", "at", formatUint(at))}, p.t("Back"))))
}
