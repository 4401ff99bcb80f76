// Package browser is the face of the program in a browser: pages over the records
// of sessions, and forms for what a person says and decides.
//
// It reads records and shows them as text, whatever they hold. What is to be done
// goes to the [Program], which works as at any other face. Nothing of it runs
// before [New], and nothing while no page is open.
package browser

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/record/audit"
	"coder/internal/record/session"
)

// Place is a session in a project.
type Place struct {
	Root    string // of the project
	Session string
}

// Program is what the pages show and have done. All of it may be called by
// several goroutines.
type Program struct {
	Now func() time.Time

	// Projects are the folders that have sessions, that of the program first.
	Projects func() []string
	Heads    func(ctx context.Context, root string) ([]session.Head, error)
	Search   func(ctx context.Context, words []string) ([]Found, error)

	Known   func(ctx context.Context, p Place) error
	Records func(ctx context.Context, p Place, after uint64, logs ...event.Log) iter.Seq2[event.Record, error]
	Pulse   func(p Place) Pulse
	Modes   []string // there are to work in
	// Stand tells how a session stood at a record; zero is its end.
	Stand  func(ctx context.Context, p Place, at uint64) (Standing, error)
	Diff   func(ctx context.Context, p Place, from, to uint64) ([]FileDiff, error)
	Verify func(p Place) (audit.Report, error)
	// Ledger tells what filled the window, by source, and what that cost.
	Ledger func(ctx context.Context, p Place) (display.Blocks, error)
	Priced func(root, model string, u chat.Usage) chat.Usage

	// Begin begins a session, in a mode if one is named.
	Begin   func(ctx context.Context, root, mode, prompt string) (id string, err error)
	Say     func(ctx context.Context, p Place, prompt string) error
	Answer  func(ctx context.Context, p Place, q uip.Request, a uip.Response) error
	Stop    func(ctx context.Context, p Place) error
	Release func(p Place) error
	// RestorePlan tells what would become of files if they were brought back to a record.
	RestorePlan func(ctx context.Context, p Place, at uint64) (display.Blocks, error)
	// Fork begins a new session from a record.
	Fork func(ctx context.Context, p Place, at uint64) (Place, error)

	Fleet FleetProgram
}

// Found is a session in which words were found.
type Found struct {
	Place
	Title   string
	Updated time.Time
	Record  uint64
	Kind    string
	Line    string
}

// Pulse is what can be told of a session without reading it.
type Pulse struct {
	Stamp  string // another one when there are more records
	Gone   bool
	Holder string // who works in it; "" if nobody does
	Ours   bool   // this process does
	Busy   bool   // a turn of it runs
	Hears  bool   // another process works in it, and takes what is said here
	Stops  bool   // it can be stopped from here
	Queued int    // what waits for its turn
}

// Standing is how a session stood at a record.
type Standing struct {
	Seq    uint64
	Time   time.Time
	Blocks display.Blocks
	Parts  []Part // of what the model sees
}

// Part is how much there is of something.
type Part struct {
	Name   string // of our own
	Tokens int
}

// FileDiff is what became of a file.
type FileDiff struct {
	Path           string
	Unified        string
	Added, Deleted int
	Lost           bool // what it held was not kept
}

// Problem is why something that was asked for is not done, for the person.
type Problem struct {
	Status int
	Text   string
}

func (p *Problem) Error() string { return p.Text }

// Words is a language.
type Words interface {
	T(format string, args ...any) string
	Said(text string) string
}

// Options are what a [Server] is made of.
type Options struct {
	Program
	Key    Key
	Secure bool     // it is spoken to by TLS
	Names  []string // of this host, beside its addresses
	Lang   string   // to speak where the browser has not chosen
	Speak  func(lang string) Words
}

// Server answers browsers. Use [New].
type Server struct {
	Program
	guard guard
	lang  string
	words map[string]Words
	mux   *http.ServeMux
	slots chan struct{} // hold those who read logs at a time

	mu         sync.Mutex // guards the fields below
	unanswered map[Place]asked
	feeds      map[Place]*feed
	drafts     map[Place]draft // of sessions that this process works in
	open       int             // streams
}

// languages are those there are to choose from, with what they call themselves.
var languages = [][2]string{{"en", "English"}, {"zh-CN", "中文"}}

// themes are the colours there are to choose from.
var themes = [][2]string{{"auto", "Auto"}, {"light", "Light"}, {"dark", "Dark"}}

// atOnce is how many read logs at a time: each may need a pass over one.
const atOnce = 2

//go:embed style.css
var style []byte

//go:embed page.js
var script []byte

// New returns a Server.
func New(o Options) *Server {
	s := &Server{
		Program: o.Program, guard: guard{Key: o.Key, secure: o.Secure, names: o.Names}, lang: o.Lang,
		words: make(map[string]Words), slots: make(chan struct{}, atOnce), unanswered: make(map[Place]asked), feeds: make(map[Place]*feed), drafts: make(map[Place]draft),
	}
	for _, l := range languages {
		s.words[l[0]] = o.Speak(l[0])
	}
	s.mux = s.routes()
	return s
}

// routes are the pages. Which project is meant is said by a name that is looked
// up; no path of a request leads to a file.
func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	in := func(pattern string, show func(*page) (markup, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, show) })
	}
	in("GET /{$}", (*page).home)
	in("GET /search", (*page).search)
	in("POST /begin", (*page).begin)
	in("POST /look", (*page).look)
	in("GET /fleet", (*page).fleet)
	in("POST /fleet/answer/{question}", (*page).fleetAnswer)
	in("POST /fleet/cancel/{task}", (*page).fleetCancel)
	const one = "/s/{project}/{session}"
	in("GET "+one, (*page).session)
	in("GET "+one+"/record/{seq}", (*page).record)
	in("GET "+one+"/changes", (*page).changes)
	in("GET "+one+"/window", (*page).window)
	in("GET "+one+"/cost", (*page).cost)
	in("GET "+one+"/replay", (*page).replay)
	in("GET "+one+"/audit", (*page).audit)
	in("POST "+one+"/say", (*page).say)
	in("POST "+one+"/stop", (*page).stop)
	in("POST "+one+"/mode", (*page).mode)
	in("POST "+one+"/release", (*page).release)
	in("POST "+one+"/restore", (*page).restore)
	in("POST "+one+"/fork", (*page).fork)
	in("POST "+one+"/answer/{question}", (*page).answer)
	mux.HandleFunc("GET "+one+"/events", s.stream)
	return mux
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	headers(w.Header())
	no := s.guard.check(r)
	if no == nil {
		switch r.URL.Path {
		case s.guard.base() + "/style.css":
			asset(w, "text/css; charset=utf-8", style)
			return
		case s.guard.base() + "/page.js":
			asset(w, "text/javascript; charset=utf-8", script)
			return
		}
		var done bool
		if done, no = s.guard.enter(w, r); done {
			return
		}
	}
	if no == nil {
		no = s.guard.admit(w, r)
	}
	p := s.page(w, r)
	p.outside = no != nil
	switch {
	case no != nil:
		p.refuse(no.status, no.why)
	case s.unknown(r):
		p.refuse(http.StatusNotFound, "page not found")
	default:
		http.StripPrefix(s.guard.base(), s.mux).ServeHTTP(w, r)
	}
}

// unknown reports whether there is no page under the path of r, which has to be
// written as it is meant.
func (s *Server) unknown(r *http.Request) bool {
	if inner := strings.TrimSuffix(r.URL.Path, "/"); r.URL.RawPath != "" || path.Clean(inner) != inner {
		return true
	}
	inner := r.Clone(r.Context())
	inner.URL.Path = inner.URL.Path[len(s.guard.base()):]
	_, pattern := s.mux.Handler(inner)
	return pattern == "" || pattern[0] == '/'
}

func asset(w http.ResponseWriter, kind string, data []byte) {
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(data) // who does not take it has gone
}

// Seen is a sink for what happens in a session that this process works in: open
// pages are told, and nobody waits for them.
func (s *Server) Seen(_ context.Context, p Place, r event.Record) {
	s.mu.Lock()
	f, d := s.feeds[p], s.drafts[p]
	if d.see(r.Event); d.text == "" {
		delete(s.drafts, p)
	} else {
		s.drafts[p] = d
	}
	s.mu.Unlock()
	if f != nil {
		f.see(r)
	}
}

// serve shows one page.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, show func(*page) (markup, error)) {
	p := s.page(w, r)
	if r.Method != http.MethodPost { // which waits for others
		if !s.enter(r.Context()) {
			return
		}
		defer s.leave()
	}
	main, err := show(p)
	var problem *Problem
	switch {
	case errors.As(err, &problem):
		p.refuse(problem.Status, problem.Text)
	case errors.Is(err, session.ErrNotFound):
		p.refuse(http.StatusNotFound, "session not found; it may have been removed")
	case err != nil:
		p.refuse(http.StatusInternalServerError, err.Error())
	case main != "":
		p.write(http.StatusOK, main)
	}
}

// enter waits for its turn to read logs, until leave; it reports false if nobody
// waits for it any more.
func (s *Server) enter(ctx context.Context) bool {
	select {
	case s.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *Server) leave() { <-s.slots }

// page is one page that is being made.
type page struct {
	*Server
	w     http.ResponseWriter
	r     *http.Request
	lang  string
	theme string
	words Words
	// outside says that the browser was not let in: it is told nothing, nor where
	// the pages are.
	outside bool

	title string
	waits int // open questions
	asks  map[string]uip.Request
	place Place  // of the session it is about, if it is about one
	name  string // of its project, in addresses
	tab   string
}

const (
	langCookie  = "lang"
	themeCookie = "theme"
)

func (s *Server) page(w http.ResponseWriter, r *http.Request) *page {
	p := &page{Server: s, w: w, r: r, lang: s.preferred(r), theme: themes[0][0]}
	if c, err := r.Cookie(langCookie); err == nil && s.words[c.Value] != nil {
		p.lang = c.Value
	}
	if c, err := r.Cookie(themeCookie); err == nil && isTheme(c.Value) {
		p.theme = c.Value
	}
	p.words = s.words[p.lang]
	return p
}

// preferred is the language that a browser asks for, if we speak it.
func (s *Server) preferred(r *http.Request) string {
	for want := range strings.SplitSeq(r.Header.Get("Accept-Language"), ",") {
		want, _, _ = strings.Cut(strings.TrimSpace(want), ";")
		for _, l := range languages {
			if ours, _, _ := strings.Cut(l[0], "-"); strings.EqualFold(want, l[0]) || strings.EqualFold(strings.SplitN(want, "-", 2)[0], ours) {
				return l[0]
			}
		}
	}
	return s.lang
}

func isTheme(name string) bool {
	return slices.ContainsFunc(themes, func(t [2]string) bool { return t[0] == name })
}

func (p *page) t(format string, args ...any) string { return p.words.T(format, args...) }

// at is the address of a page.
func (p *page) at(segments ...string) string {
	return address(p.guard.base(), segments)
}

// of is the address of a page about the session.
func (p *page) of(what string, query ...string) string {
	segments := []string{"s", p.name, p.place.Session}
	if what != "" {
		segments = append(segments, what)
	}
	return address(p.guard.base(), segments, query...)
}

// goTo has the browser ask for another page.
func (p *page) goTo(address string) { http.Redirect(p.w, p.r, address, http.StatusSeeOther) }

// refuse says why there is nothing else to see.
func (p *page) refuse(status int, why string) {
	p.title, p.tab = p.words.T("Request failed"), ""
	if status == http.StatusAccepted {
		p.title = p.words.T("Your answer is saved")
	}
	back := markup("")
	switch {
	case p.outside: // by way of a link the cookie comes along, which it does not from another site
		back = el("p", el("a", attr{"href", ""}, p.t("Try again")))
	case p.place.Session != "":
		back = el("p", el("a", attr{"href", p.of("")}, p.t("Back to the session")))
	default:
		back = el("p", el("a", attr{"href", p.guard.base() + "/"}, p.t("Back")))
	}
	p.write(status, join(el("h1", p.title), el("p", class("refusal"), attr{"role", "alert"}, p.words.Said(why)), back))
}

func (p *page) write(status int, main markup) {
	p.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	p.w.WriteHeader(status)
	_, _ = io.WriteString(p.w, string(p.frame(main))) // who does not take it has gone
}

// find reads which session a request is about.
func (p *page) find() error {
	id := p.r.PathValue("session")
	for _, root := range p.Projects() {
		if projectName(root) != p.r.PathValue("project") {
			continue
		}
		place := Place{root, id}
		if err := p.Known(p.r.Context(), place); err != nil {
			return err
		}
		p.place, p.name = place, projectName(root)
		return nil
	}
	return &Problem{http.StatusNotFound, "project not found"}
}

// number reads a number of the query; missing it is zero.
func (p *page) number(name string) (uint64, error) {
	text := p.r.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	return readNumber(text)
}

func readNumber(text string) (n uint64, err error) {
	if _, err := fmt.Sscanf(text, "%d", &n); err != nil || fmt.Sprint(n) != text {
		return 0, &Problem{http.StatusBadRequest, "not a record number"}
	}
	return n, nil
}
