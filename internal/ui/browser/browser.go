// Package browser is coder's face in a browser: pages that show the records of sessions, and forms for
// the user's messages and decisions.
//
// It shows everything in the records as text. Actions go to the [Program], which works as with any other
// face. Nothing runs before [New], or while no page is open.
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

// Place identifies a session in a project.
type Place struct {
	Root    string // the project's folder
	Session string
}

// Program provides what the pages show and do. All functions are safe for concurrent use.
type Program struct {
	Now func() time.Time

	// Projects returns the folders that have sessions, the program's own first.
	Projects func() []string
	Heads    func(ctx context.Context, root string) ([]session.Head, error)
	Search   func(ctx context.Context, words []string) ([]Found, error)

	Known   func(ctx context.Context, p Place) error
	Records func(ctx context.Context, p Place, after uint64, logs ...event.Log) iter.Seq2[event.Record, error]
	Pulse   func(p Place) Pulse
	Modes   []string // available modes
	// Stand returns the session's state at a record; 0 means the last.
	Stand  func(ctx context.Context, p Place, at uint64) (Standing, error)
	Diff   func(ctx context.Context, p Place, from, to uint64) ([]FileDiff, error)
	Verify func(p Place) (audit.Report, error)
	// Ledger reports what filled the window, by source, and its cost.
	Ledger func(ctx context.Context, p Place) (display.Blocks, error)
	Priced func(root, model string, u chat.Usage) chat.Usage

	// Begin starts a session, in mode unless that is empty.
	Begin   func(ctx context.Context, root, mode, prompt string) (id string, err error)
	Say     func(ctx context.Context, p Place, prompt string) error
	Answer  func(ctx context.Context, p Place, q uip.Request, a uip.Response) error
	Stop    func(ctx context.Context, p Place) error
	Release func(p Place) error
	// RestorePlan shows what restoring the files to a record would change.
	RestorePlan func(ctx context.Context, p Place, at uint64) (display.Blocks, error)
	// Fork starts a new session from a record.
	Fork func(ctx context.Context, p Place, at uint64) (Place, error)

	Fleet FleetProgram
}

// Found is a session that matches a search.
type Found struct {
	Place
	Title   string
	Updated time.Time
	Record  uint64
	Kind    string
	Line    string
}

// Pulse is the state of a session that is known without reading its logs.
type Pulse struct {
	Stamp  string // changes when records are added
	Gone   bool
	Holder string // who works in it; "" if nobody does
	Ours   bool   // this process is the holder
	Busy   bool   // a turn is running
	Hears  bool   // another process is the holder and accepts messages from here
	Stops  bool   // it can be stopped from here
	Queued int    // waiting messages
}

// Standing is a session's state at a record.
type Standing struct {
	Seq    uint64
	Time   time.Time
	Blocks display.Blocks
	Parts  []Part // of the model's window
}

// Part is the size of one source in the window.
type Part struct {
	Name   string // one of coder's own names
	Tokens int
}

// FileDiff is the change to one file.
type FileDiff struct {
	Path           string
	Unified        string
	Added, Deleted int
	Lost           bool // its earlier content was not saved
}

// Problem is why a request was not carried out, in words for the user.
type Problem struct {
	Status int
	Text   string
}

func (p *Problem) Error() string { return p.Text }

// Words translates for one language.
type Words interface {
	T(format string, args ...any) string
	Said(text string) string
}

// Options configures a [Server].
type Options struct {
	Program
	Key    Key
	Secure bool     // served over TLS
	Names  []string // host names accepted besides addresses
	Lang   string   // language if the browser has chosen none
	Speak  func(lang string) Words
}

// Server serves the pages. Use [New].
type Server struct {
	Program
	guard guard
	lang  string
	words map[string]Words
	mux   *http.ServeMux
	slots chan struct{} // limits concurrent log readers

	mu         sync.Mutex // guards the fields below
	unanswered map[Place]asked
	feeds      map[Place]*feed
	drafts     map[Place]draft // for sessions held by this process
	open       int             // open streams
}

// languages are the available languages, each with its own name.
var languages = [][2]string{{"en", "English"}, {"zh-CN", "中文"}}

// themes are the available color themes.
var themes = [][2]string{{"auto", "Auto"}, {"light", "Light"}, {"dark", "Dark"}}

// atOnce is the number of concurrent log readers: each may read a whole log.
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

// routes registers the pages. A request names its project by a name that is looked up; no path in a
// request leads to a file.
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

// ServeHTTP serves one request.
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

// unknown reports whether r's path has no page. The path must be in canonical form.
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
	_, _ = w.Write(data) // the client is gone
}

// Seen receives the events of sessions that this process works in and forwards them to open pages,
// without waiting for them.
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

// serve renders one page with show.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, show func(*page) (markup, error)) {
	p := s.page(w, r)
	if r.Method != http.MethodPost { // a POST waits for others
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

// enter waits for a slot to read logs, released by leave. It reports false if ctx ended first.
func (s *Server) enter(ctx context.Context) bool {
	select {
	case s.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *Server) leave() { <-s.slots }

// page is one page being rendered.
type page struct {
	*Server
	w     http.ResponseWriter
	r     *http.Request
	lang  string
	theme string
	words Words
	// outside is set if the browser was not admitted: such a page reveals nothing, not even where the pages
	// are.
	outside bool

	title string
	waits int // open questions
	asks  map[string]uip.Request
	place Place  // the page's session, if any
	name  string // the project's name in addresses
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

// preferred returns the browser's preferred language, if available.
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

// at returns the address of a page.
func (p *page) at(segments ...string) string {
	return address(p.guard.base(), segments)
}

// of returns the address of one of the session's pages.
func (p *page) of(what string, query ...string) string {
	segments := []string{"s", p.name, p.place.Session}
	if what != "" {
		segments = append(segments, what)
	}
	return address(p.guard.base(), segments, query...)
}

// goTo redirects the browser to another page.
func (p *page) goTo(address string) { http.Redirect(p.w, p.r, address, http.StatusSeeOther) }

// refuse shows why the request failed.
func (p *page) refuse(status int, why string) {
	p.title, p.tab = p.words.T("Request failed"), ""
	if status == http.StatusAccepted {
		p.title = p.words.T("Your answer is saved")
	}
	back := markup("")
	switch {
	case p.outside: // following a link sends the cookie, which a request from another site does not
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
	_, _ = io.WriteString(p.w, string(p.frame(main))) // the client is gone
}

// find sets the session that the request is about.
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

// number parses a number from the query; absent means 0.
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
