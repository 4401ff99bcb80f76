package browser

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"coder/internal/core/event"
)

// projectName returns a project's name in addresses, which does not reveal its folder.
func projectName(root string) string {
	sum := sha256.Sum256([]byte(root))
	return hex.EncodeToString(sum[:8])
}

// renderFrame returns the whole page around main.
func (p *page) renderFrame(main markup) markup {
	title := "coder"
	if p.title != "" {
		title = p.title + " · " + title
	}
	if p.questionCount > 0 {
		title = "(" + strconv.Itoa(p.questionCount) + ") " + title
	}
	head := joinParts(
		element("meta", attr{"charset", "utf-8"}),
		element("meta", attr{"name", "viewport"}, attr{"content", "width=device-width, initial-scale=1"}),
		element("meta", attr{"name", "color-scheme"}, attr{"content", "light dark"}),
		element("title", title),
		element("link", attr{"rel", "icon"}, attr{"href", "data:,"}),
	)
	main = element("main", attr{"id", "main"}, attr{"tabindex", "-1"}, main)
	if p.notAdmitted {
		return p.renderDocument(head, main)
	}
	base := p.guard.basePath()
	head = joinParts(head, element("link", attr{"rel", "stylesheet"}, attr{"href", base + "/style.css"}),
		element("script", attr{"src", base + "/page.js"}, attr{"defer", ""}))
	return p.renderDocument(head, joinParts(element("a", classAttr("skip"), attr{"href", "#main"},
		p.t("Skip to the content")), p.renderHeader(), main, p.renderFooter()))
}

func (p *page) renderDocument(head, body markup) markup {
	return "<!doctype html>\n" + element("html", attr{"lang", p.lang}, attr{"data-theme", p.theme}, element("head", head),
		element("body", body))
}

// renderHeader renders the link home, the search and the session's pages.
func (p *page) renderHeader() markup {
	base := p.guard.basePath()
	query := p.r.URL.Query().Get("q")
	parts := []any{
		element("a", classAttr("home"), attr{"href", base + "/"}, "coder"),
		element("form", attr{"role", "search"}, attr{"action", p.pageURL("search")}, attr{"method", "get"},
			element("label", classAttr("unseen"), attr{"for", "q"}, p.t("Search all sessions")),
			element("input", attr{"id", "q"}, attr{"type", "search"}, attr{"name", "q"}, attr{"value", query},
				attr{"placeholder", p.t("Search all sessions")}, attr{"accesskey", "s"})),
	}
	if p.hasFleet() {
		parts = append(parts, element("a", classAttr("home"), attr{"href", p.pageURL("fleet")}, p.t("Fleet")))
	}
	if p.tab != "" {
		var tabs []markup
		for _, t := range []struct{ what, name string }{
			{"", "Timeline"}, {"changes", "Changes"}, {"window", "Window"}, {"cost", "Cost"}, {"replay", "Replay"},
			{"audit", "Audit"},
		} {
			link := []any{attr{"href", p.sessionURL(t.what)}, p.translator.TranslateText(t.name)}
			if t.name == p.tab {
				link = append(link, attr{"aria-current", "page"})
			}
			tabs = append(tabs, element("li", element("a", link...)))
		}
		parts = append(parts, element("nav", attr{"aria-label", p.t("The session")}, element("ul", tabs)))
	}
	return element("header", parts...)
}

// renderFooter renders the choice of language and colors.
func (p *page) renderFooter() markup {
	var langs, looks []markup
	for _, l := range languages {
		langs = append(langs, element("button", attr{"name", "lang"}, attr{"value", l[0]}, attr{"lang", l[0]},
			attr{"aria-pressed", boolText(l[0] == p.lang)}, l[1]))
	}
	for _, t := range themes {
		looks = append(looks, element("button", attr{"name", "theme"}, attr{"value", t[0]},
			attr{"aria-pressed", boolText(t[0] == p.theme)}, p.translator.TranslateText(t[1])))
	}
	back := p.guard.basePath() + strings.TrimPrefix(p.r.URL.RequestURI(), p.guard.basePath())
	if p.r.Method != http.MethodGet {
		back = p.guard.basePath() + "/"
	}
	return element("footer", p.renderForm(p.pageURL("look"), classAttr("look"),
		element("input", attr{"type", "hidden"}, attr{"name", "back"}, attr{"value", back}),
		element("span", attr{"role", "group"}, attr{"aria-label", p.t("Language")}, langs),
		element("span", attr{"role", "group"}, attr{"aria-label", p.t("Colors")}, looks),
		element("span", classAttr("keys"), p.t("Keys: / search, p prompt, j and k next and previous, g home")),
	))
}

func boolText(holds bool) string {
	if holds {
		return "true"
	}
	return "false"
}

// renderForm returns a form that posts to one of our pages.
func (p *page) renderForm(action string, parts ...any) markup {
	all := []any{attr{"method", "post"}, attr{"action", action},
		element("input", attr{"type", "hidden"}, attr{"name", "form"}, attr{"value", p.guard.Form})}
	return element("form", append(all, parts...)...)
}

// saveAppearance saves the choice of language and colors.
func (p *page) saveAppearance() (markup, error) {
	form := p.r.PostForm
	choose := func(name, value string) {
		http.SetCookie(p.w, &http.Cookie{
			Name: name, Value: value, Path: p.guard.basePath() + "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
			Secure: p.guard.secure,
		})
	}
	if lang := form.Get("lang"); p.Server.translators[lang] != nil {
		choose(langCookie, lang)
	}
	if theme := form.Get("theme"); isTheme(theme) {
		choose(themeCookie, theme)
	}
	back := form.Get("back")
	if !strings.HasPrefix(back, p.guard.basePath()+"/") || strings.ContainsAny(back, "\r\n\\") {
		back = p.guard.basePath() + "/"
	}
	p.redirect(back)
	return "", nil
}

// renderTime renders a time for machines and for people.
func (p *page) renderTime(t time.Time) markup {
	if t.IsZero() {
		return ""
	}
	layout := "2006-01-02 15:04:05"
	if now := p.Now(); t.Local().Format(time.DateOnly) == now.Local().Format(time.DateOnly) {
		layout = "15:04:05"
	}
	return element("time", attr{"datetime", t.UTC().Format(time.RFC3339)}, t.Local().Format(layout))
}

// home shows projects and sessions, and the form for a new session.
func (p *page) home() (markup, error) {
	roots := p.Projects()
	var projects []markup
	for _, root := range roots {
		projects = append(projects, element("option", attr{"value", projectName(root)}, root))
	}
	begin := p.renderForm(p.pageURL("begin"), classAttr("prompt"),
		element("label", attr{"for", "project"}, p.t("Project")),
		element("div", classAttr("span"), element("select", attr{"id", "project"}, attr{"name", "project"}, projects),
			element("label", classAttr("unseen"), attr{"for", "mode"}, p.t("Mode")), p.renderModes("")),
		element("label", classAttr("unseen"), attr{"for", "prompt"}, p.t("Task")),
		element("textarea", attr{"id", "prompt"}, attr{"name", "prompt"}, attr{"rows", "3"}, attr{"required", ""},
			attr{"placeholder", p.t("Task")}),
		element("button", classAttr("primary"), p.t("Start a session")),
	)
	parts := []any{element("h1", p.t("Sessions")), element("section", attr{"aria-label", p.t("New session")}, begin)}
	var lists []any
	for _, root := range roots {
		lists = append(lists, p.renderProject(root))
	}
	waiting := markup("")
	if p.questionCount > 0 {
		waiting = element("p", classAttr("waiting"), attr{"role", "status"},
			p.t("sessions waiting for your answer: %d", p.questionCount))
	}
	parts = append(parts, element("div", append([]any{attr{"id", "sessions"}, attr{"data-refresh", ""}, waiting},
		lists...)...))
	return joinParts(parts...), nil
}

// questionCounts is how many questions were open in a session at a stamp, and whether a turn was running.
type questionCounts struct {
	stamp            string
	taskQuestions    int // questions of tasks, which an answer continues
	commandQuestions int // questions of your own commands, which end with their terminal
	turnRunning      bool
}

// countQuestions returns a session's open questions, reading the log only if it has changed.
func (p *page) countQuestions(place SessionRef, stamp string) questionCounts {
	p.mu.Lock()
	known := p.questionCounts[place]
	p.mu.Unlock()
	if known.stamp == stamp {
		return known
	}
	var v view
	for r, err := range p.Records(p.r.Context(), place, 0, event.LogDomain) {
		if err != nil {
			break // count what can be read
		}
		v.addRecord(r)
	}
	now := questionCounts{stamp: stamp, turnRunning: v.task != ""}
	for _, q := range v.questions {
		if q.TaskID == "" {
			now.commandQuestions++
		} else {
			now.taskQuestions++
		}
	}
	if p.r.Context().Err() == nil {
		p.mu.Lock()
		p.questionCounts[place] = now
		p.mu.Unlock()
	}
	return now
}

// maxListed is the most sessions listed for a project.
const maxListed = 50

func (p *page) renderProject(root string) any {
	heads, err := p.Heads(p.r.Context(), root)
	if err != nil {
		return element("section", element("h2", filepath.Base(root)),
			element("p", classAttr("failed"), p.translator.TranslateError(err)))
	}
	if len(heads) == 0 {
		return nil
	}
	var rows []markup
	for _, h := range heads[:min(len(heads), maxListed)] {
		place := SessionRef{root, h.ID}
		state, look := "", "live"
		pulse := p.Activity(place)
		now := p.countQuestions(place, pulse.Stamp)
		held := pulse.HeldHere || pulse.Holder != ""
		switch {
		case now.taskQuestions > 0, now.commandQuestions > 0 && held:
			state, look = p.t("needs you"), "waiting"
			p.questionCount++
		case pulse.HeldHere && pulse.Busy, !pulse.HeldHere && held && now.turnRunning:
			state = p.t("running")
		case pulse.HeldHere:
			state, look = p.t("idle here"), "dim"
		case held:
			state, look = p.t("idle in %s", p.translator.TranslateText(pulse.Holder)), "dim"
		}
		name := h.Meta.Title
		if name == "" {
			name = h.ID
		}
		rows = append(rows, element("li",
			element("a", attr{"href", p.pageURL("s", projectName(root), h.ID)}, oneLine(name)),
			element("span", classAttr("dim"), p.renderTime(h.Updated), " · ", p.t("turns: %d", h.Meta.Turns), " · ",
				oneLine(h.Meta.Model)),
			element("span", classAttr(look), state)))
	}
	more := ""
	if n := len(heads) - maxListed; n > 0 {
		more = p.t("and %d older", n)
	}
	name := "p-" + projectName(root)
	return element("section", attr{"aria-labelledby", name},
		element("h2", attr{"id", name}, filepath.Base(root), " ", element("span", classAttr("dim"), root)),
		element("ul", classAttr("sessions"), rows), element("p", classAttr("dim"), more))
}

// search searches all sessions.
func (p *page) search() (markup, error) {
	query := strings.TrimSpace(p.r.URL.Query().Get("q"))
	p.title = p.t("Search")
	words := strings.Fields(query)
	if len(words) == 0 {
		return joinParts(element("h1", p.title), element("p", p.t("Type words in the field above."))), nil
	}
	all, err := p.Search(p.r.Context(), words)
	if err != nil {
		return "", err
	}
	var rows []markup
	for _, f := range all[:min(len(all), maxListed)] {
		rows = append(rows, element("li",
			element("a", attr{"href", buildPath(p.guard.basePath(), []string{"s", projectName(f.Root), f.Session}, "at",
				formatUint(f.Record))}, oneLine(f.Title)),
			element("span", classAttr("dim"), p.renderTime(f.Updated), " · ", filepath.Base(f.Root)),
			element("span", classAttr("hit"), p.translator.TranslateText(f.Kind), ": ", highlight(oneLine(f.Line), words))))
	}
	what := p.t("sessions with all of these words: %d", len(all))
	if len(all) == 0 {
		what = p.t("no session contains all of these words")
	}
	return joinParts(element("h1", p.title), element("p", attr{"role", "status"}, what),
		element("ul", classAttr("sessions"), rows)), nil
}
