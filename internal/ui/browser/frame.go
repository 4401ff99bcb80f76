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

// frame returns the whole page around main.
func (p *page) frame(main markup) markup {
	title := "coder"
	if p.title != "" {
		title = p.title + " · " + title
	}
	if p.waits > 0 {
		title = "(" + strconv.Itoa(p.waits) + ") " + title
	}
	head := join(
		el("meta", attr{"charset", "utf-8"}),
		el("meta", attr{"name", "viewport"}, attr{"content", "width=device-width, initial-scale=1"}),
		el("meta", attr{"name", "color-scheme"}, attr{"content", "light dark"}),
		el("title", title),
		el("link", attr{"rel", "icon"}, attr{"href", "data:,"}),
	)
	main = el("main", attr{"id", "main"}, attr{"tabindex", "-1"}, main)
	if p.outside {
		return p.whole(head, main)
	}
	base := p.guard.base()
	head = join(head, el("link", attr{"rel", "stylesheet"}, attr{"href", base + "/style.css"}), el("script", attr{"src", base + "/page.js"}, attr{"defer", ""}))
	return p.whole(head, join(el("a", class("skip"), attr{"href", "#main"}, p.t("Skip to the content")), p.header(), main, p.footer()))
}

func (p *page) whole(head, body markup) markup {
	return "<!doctype html>\n" + el("html", attr{"lang", p.lang}, attr{"data-theme", p.theme}, el("head", head), el("body", body))
}

// header renders the link home, the search and the session's pages.
func (p *page) header() markup {
	base := p.guard.base()
	query := p.r.URL.Query().Get("q")
	parts := []any{
		el("a", class("home"), attr{"href", base + "/"}, "coder"),
		el("form", attr{"role", "search"}, attr{"action", p.at("search")}, attr{"method", "get"},
			el("label", class("unseen"), attr{"for", "q"}, p.t("Search all sessions")),
			el("input", attr{"id", "q"}, attr{"type", "search"}, attr{"name", "q"}, attr{"value", query}, attr{"placeholder", p.t("Search all sessions")}, attr{"accesskey", "s"})),
	}
	if p.hasFleet() {
		parts = append(parts, el("a", class("home"), attr{"href", p.at("fleet")}, p.t("Fleet")))
	}
	if p.tab != "" {
		var tabs []markup
		for _, t := range []struct{ what, name string }{
			{"", "Timeline"}, {"changes", "Changes"}, {"window", "Window"}, {"cost", "Cost"}, {"replay", "Replay"}, {"audit", "Audit"},
		} {
			link := []any{attr{"href", p.of(t.what)}, p.words.Said(t.name)}
			if t.name == p.tab {
				link = append(link, attr{"aria-current", "page"})
			}
			tabs = append(tabs, el("li", el("a", link...)))
		}
		parts = append(parts, el("nav", attr{"aria-label", p.t("The session")}, el("ul", tabs)))
	}
	return el("header", parts...)
}

// footer renders the choice of language and colors.
func (p *page) footer() markup {
	var langs, looks []markup
	for _, l := range languages {
		langs = append(langs, el("button", attr{"name", "lang"}, attr{"value", l[0]}, attr{"lang", l[0]}, attr{"aria-pressed", yes(l[0] == p.lang)}, l[1]))
	}
	for _, t := range themes {
		looks = append(looks, el("button", attr{"name", "theme"}, attr{"value", t[0]}, attr{"aria-pressed", yes(t[0] == p.theme)}, p.words.Said(t[1])))
	}
	back := p.guard.base() + strings.TrimPrefix(p.r.URL.RequestURI(), p.guard.base())
	if p.r.Method != http.MethodGet {
		back = p.guard.base() + "/"
	}
	return el("footer", p.form(p.at("look"), class("look"),
		el("input", attr{"type", "hidden"}, attr{"name", "back"}, attr{"value", back}),
		el("span", attr{"role", "group"}, attr{"aria-label", p.t("Language")}, langs),
		el("span", attr{"role", "group"}, attr{"aria-label", p.t("Colors")}, looks),
		el("span", class("keys"), p.t("Keys: / search, p prompt, j and k next and previous, g home")),
	))
}

func yes(holds bool) string {
	if holds {
		return "true"
	}
	return "false"
}

// form returns a form that posts to one of our pages.
func (p *page) form(action string, parts ...any) markup {
	all := []any{attr{"method", "post"}, attr{"action", action}, el("input", attr{"type", "hidden"}, attr{"name", "form"}, attr{"value", p.guard.Form})}
	return el("form", append(all, parts...)...)
}

// look saves the choice of language and colors.
func (p *page) look() (markup, error) {
	form := p.r.PostForm
	choose := func(name, value string) {
		http.SetCookie(p.w, &http.Cookie{
			Name: name, Value: value, Path: p.guard.base() + "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: p.guard.secure,
		})
	}
	if lang := form.Get("lang"); p.Server.words[lang] != nil {
		choose(langCookie, lang)
	}
	if theme := form.Get("theme"); isTheme(theme) {
		choose(themeCookie, theme)
	}
	back := form.Get("back")
	if !strings.HasPrefix(back, p.guard.base()+"/") || strings.ContainsAny(back, "\r\n\\") {
		back = p.guard.base() + "/"
	}
	p.goTo(back)
	return "", nil
}

// when renders a time for machines and for people.
func (p *page) when(t time.Time) markup {
	if t.IsZero() {
		return ""
	}
	layout := "2006-01-02 15:04:05"
	if now := p.Now(); t.Local().Format(time.DateOnly) == now.Local().Format(time.DateOnly) {
		layout = "15:04:05"
	}
	return el("time", attr{"datetime", t.UTC().Format(time.RFC3339)}, t.Local().Format(layout))
}

// home shows projects and sessions, and the form for a new session.
func (p *page) home() (markup, error) {
	roots := p.Projects()
	var projects []markup
	for _, root := range roots {
		projects = append(projects, el("option", attr{"value", projectName(root)}, root))
	}
	begin := p.form(p.at("begin"), class("prompt"),
		el("label", attr{"for", "project"}, p.t("Project")),
		el("div", class("span"), el("select", attr{"id", "project"}, attr{"name", "project"}, projects),
			el("label", class("unseen"), attr{"for", "mode"}, p.t("Mode")), p.modes("")),
		el("label", class("unseen"), attr{"for", "prompt"}, p.t("Task")),
		el("textarea", attr{"id", "prompt"}, attr{"name", "prompt"}, attr{"rows", "3"}, attr{"required", ""}, attr{"placeholder", p.t("Task")}),
		el("button", class("primary"), p.t("Start a session")),
	)
	parts := []any{el("h1", p.t("Sessions")), el("section", attr{"aria-label", p.t("New session")}, begin)}
	var lists []any
	for _, root := range roots {
		lists = append(lists, p.project(root))
	}
	waiting := markup("")
	if p.waits > 0 {
		waiting = el("p", class("waiting"), attr{"role", "status"}, p.t("sessions waiting for your answer: %d", p.waits))
	}
	parts = append(parts, el("div", append([]any{attr{"id", "sessions"}, attr{"data-refresh", ""}, waiting}, lists...)...))
	return join(parts...), nil
}

// asked is how many questions were open in a session at a stamp, and whether a turn was running.
type asked struct {
	stamp string
	open  int // questions of tasks, which an answer continues
	own   int // questions of your own commands, which end with their terminal
	turn  bool
}

// pending returns a session's open questions, reading the log only if it has changed.
func (p *page) pending(place Place, stamp string) asked {
	p.mu.Lock()
	known := p.unanswered[place]
	p.mu.Unlock()
	if known.stamp == stamp {
		return known
	}
	var v view
	for r, err := range p.Records(p.r.Context(), place, 0, event.Domain) {
		if err != nil {
			break // count what can be read
		}
		v.add(r)
	}
	now := asked{stamp: stamp, turn: v.turn != ""}
	for _, q := range v.open {
		if q.TaskID == "" {
			now.own++
		} else {
			now.open++
		}
	}
	if p.r.Context().Err() == nil {
		p.mu.Lock()
		p.unanswered[place] = now
		p.mu.Unlock()
	}
	return now
}

// mostListed is the most sessions listed for a project.
const mostListed = 50

func (p *page) project(root string) any {
	heads, err := p.Heads(p.r.Context(), root)
	if err != nil {
		return el("section", el("h2", filepath.Base(root)), el("p", class("failed"), p.words.Said(err.Error())))
	}
	if len(heads) == 0 {
		return nil
	}
	var rows []markup
	for _, h := range heads[:min(len(heads), mostListed)] {
		place := Place{root, h.ID}
		state, look := "", "live"
		pulse := p.Pulse(place)
		now := p.pending(place, pulse.Stamp)
		held := pulse.Ours || pulse.Holder != ""
		switch {
		case now.open > 0, now.own > 0 && held:
			state, look = p.t("needs you"), "waiting"
			p.waits++
		case pulse.Ours && pulse.Busy, !pulse.Ours && held && now.turn:
			state = p.t("running")
		case pulse.Ours:
			state, look = p.t("idle here"), "dim"
		case held:
			state, look = p.t("idle in %s", p.words.Said(pulse.Holder)), "dim"
		}
		name := h.Meta.Title
		if name == "" {
			name = h.ID
		}
		rows = append(rows, el("li",
			el("a", attr{"href", p.at("s", projectName(root), h.ID)}, line(name)),
			el("span", class("dim"), p.when(h.Updated), " · ", p.t("turns: %d", h.Meta.Turns), " · ", line(h.Meta.Model)),
			el("span", class(look), state)))
	}
	more := ""
	if n := len(heads) - mostListed; n > 0 {
		more = p.t("and %d older", n)
	}
	name := "p-" + projectName(root)
	return el("section", attr{"aria-labelledby", name},
		el("h2", attr{"id", name}, filepath.Base(root), " ", el("span", class("dim"), root)), el("ul", class("sessions"), rows), el("p", class("dim"), more))
}

// search searches all sessions.
func (p *page) search() (markup, error) {
	query := strings.TrimSpace(p.r.URL.Query().Get("q"))
	p.title = p.t("Search")
	words := strings.Fields(query)
	if len(words) == 0 {
		return join(el("h1", p.title), el("p", p.t("Type words in the field above."))), nil
	}
	all, err := p.Search(p.r.Context(), words)
	if err != nil {
		return "", err
	}
	var rows []markup
	for _, f := range all[:min(len(all), mostListed)] {
		rows = append(rows, el("li",
			el("a", attr{"href", address(p.guard.base(), []string{"s", projectName(f.Root), f.Session}, "at", decimal(f.Record))}, line(f.Title)),
			el("span", class("dim"), p.when(f.Updated), " · ", filepath.Base(f.Root)),
			el("span", class("hit"), p.words.Said(f.Kind), ": ", marked(line(f.Line), words))))
	}
	what := p.t("sessions with all of these words: %d", len(all))
	if len(all) == 0 {
		what = p.t("no session contains all of these words")
	}
	return join(el("h1", p.title), el("p", attr{"role", "status"}, what), el("ul", class("sessions"), rows)), nil
}
