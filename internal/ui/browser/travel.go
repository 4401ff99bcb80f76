package browser

import (
	"fmt"
	"net/http"
)

// travel renders the two ways to go to a record: restore its files, or fork a new session from it. Each
// first shows what it would do.
func (p *page) travel(at uint64) markup {
	return el("p", class("span"),
		p.travelForm("restore", at, el("button", p.t("Restore files…"))),
		p.travelForm("fork", at, el("button", p.t("Fork…"))))
}

func (p *page) travelForm(what string, at uint64, parts ...any) markup {
	number := el("input", attr{"type", "hidden"}, attr{"name", "at"}, attr{"value", decimal(at)})
	return p.form(p.of(what), append([]any{number}, parts...)...)
}

// restore shows what would change in the files, and restores them after the user agrees.
func (p *page) restore() (markup, error) {
	at, sure, err := p.goal()
	if err != nil {
		return "", err
	}
	if sure {
		return p.done(p.Say(p.r.Context(), p.place, fmt.Sprintf("/restore %d", at)))
	}
	plan, err := p.RestorePlan(p.r.Context(), p.place, at)
	if err != nil {
		return "", err
	}
	return p.agree("restore", at, p.t("Restore files"), join(p.blocks(plan))), nil
}

// fork describes a fork, and starts it after the user agrees.
func (p *page) fork() (markup, error) {
	at, sure, err := p.goal()
	if err != nil {
		return "", err
	}
	if !sure {
		about := el("p", p.t("A new session begins at record %d, with the conversation, todos, mode and files of that record. It has its own folder beside the project; this session and its files stay unchanged.", at))
		return p.agree("fork", at, p.t("Fork"), about), nil
	}
	to, err := p.Fork(p.r.Context(), p.place, at)
	if err != nil {
		return "", err
	}
	p.goTo(p.at("s", projectName(to.Root), to.Session))
	return "", nil
}

// goal reads the record from the form, and whether the user agreed to the plan.
func (p *page) goal() (at uint64, sure bool, err error) {
	if err := p.find(); err != nil {
		return 0, false, err
	}
	if at, err = readNumber(p.r.PostForm.Get("at")); err == nil && at == 0 {
		err = &Problem{http.StatusBadRequest, "record not found"}
	}
	return at, p.r.PostForm.Get("sure") == "yes", err
}

// agree shows a plan with the button that carries it out.
func (p *page) agree(what string, at uint64, name string, plan markup) markup {
	p.tab, p.title = "Replay", name
	return join(p.heading(), el("p", class("dim"), p.t("as of record %d", at)), el("section", attr{"id", "plan"}, plan),
		p.travelForm(what, at, el("input", attr{"type", "hidden"}, attr{"name", "sure"}, attr{"value", "yes"}), el("button", class("primary"), name)),
		el("p", el("a", attr{"href", p.of("replay", "at", decimal(at))}, p.t("Back"))))
}
