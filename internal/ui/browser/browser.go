// Package browser is coder's face in a browser: pages that show the records of sessions, and forms for
// the user's messages and decisions.
//
// It shows everything in the records as text. Actions go to the [Backend], which works as with any other
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

// SessionRef identifies a session in a project.
type SessionRef struct {
	Root    string // the project's folder
	Session string
}

// Backend provides what the pages show and do. All functions are safe for concurrent use.
type Backend struct {
	Now func() time.Time

	// Projects returns the folders that have sessions, the program's own first.
	Projects func() []string
	Heads    func(ctx context.Context, root string) ([]session.Head, error)
	Search   func(ctx context.Context, words []string) ([]SearchResult, error)

	CheckSession func(ctx context.Context, p SessionRef) error
	Records      func(ctx context.Context, p SessionRef, after uint64, logs ...event.Log) iter.Seq2[event.Record, error]
	Activity     func(p SessionRef) Activity
	Modes        []string // available modes
	// StateAt returns the session's state at a record; 0 means the last.
	StateAt func(ctx context.Context, p SessionRef, at uint64) (SessionState, error)
	Diff    func(ctx context.Context, p SessionRef, from, to uint64) ([]FileDiff, error)
	Verify  func(p SessionRef) (audit.Report, error)
	// Ledger reports what filled the window, by source, and its cost.
	Ledger   func(ctx context.Context, p SessionRef) (display.Blocks, error)
	WithCost func(root, model string, u chat.Usage) chat.Usage

	// StartSession starts a session, in mode unless that is empty.
	StartSession func(ctx context.Context, root, mode, prompt string) (id string, err error)
	SendMessage  func(ctx context.Context, p SessionRef, prompt string) error
	Answer       func(ctx context.Context, p SessionRef, q uip.Request, a uip.Response) error
	Stop         func(ctx context.Context, p SessionRef) error
	Release      func(p SessionRef) error
	// RestorePlan shows what restoring the files to a record would change.
	RestorePlan func(ctx context.Context, p SessionRef, at uint64) (display.Blocks, error)
	// Fork starts a new session from a record.
	Fork func(ctx context.Context, p SessionRef, at uint64) (SessionRef, error)

	Fleet FleetBackend
}

// SearchResult is a session that matches a search.
type SearchResult struct {
	SessionRef
	Title   string
	Updated time.Time
	Record  uint64
	Kind    string
	Line    string
}

// Activity is the state of a session that is known without reading its logs.
type Activity struct {
	Stamp           string // changes when records are added
	Deleted         bool
	Holder          string // who works in it; "" if nobody does
	HeldHere        bool   // this process is the holder
	Busy            bool   // a turn is running
	AcceptsMessages bool   // another process is the holder and accepts messages from here
	CanStop         bool   // it can be stopped from here
	Queued          int    // waiting messages
}

// SessionState is a session's state at a record.
type SessionState struct {
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
	NotSaved       bool // its earlier content was not saved
}

// UserError is why a request was not carried out, in words for the user.
type UserError struct {
	Status int
	Text   string
}

func (p *UserError) Error() string { return p.Text }

// Translator translates for one language.
type Translator interface {
	T(format string, args ...any) string
	TranslateText(text string) string
	TranslateError(err error) string
}

// Options configures a [Server].
type Options struct {
	Backend
	Key        Key
	Secure     bool     // served over TLS
	Names      []string // host names accepted besides addresses
	Lang       string   // language if the browser has chosen none
	Translator func(lang string) Translator
}

// Server serves the pages. Use [New].
type Server struct {
	Backend
	guard       guard
	lang        string
	translators map[string]Translator
	mux         *http.ServeMux
	slots       chan struct{} // limits concurrent log readers

	mu             sync.Mutex // guards the fields below
	questionCounts map[SessionRef]questionCounts
	feeds          map[SessionRef]*feed
	drafts         map[SessionRef]draft // for sessions held by this process
	openStreams    int                  // open streams
}

// languages are the available languages, each with its own name.
var languages = [][2]string{{"en", "English"}, {"zh-CN", "中文"}}

// themes are the available color themes.
var themes = [][2]string{{"auto", "Auto"}, {"light", "Light"}, {"dark", "Dark"}}

// maxReaders is the number of concurrent log readers: each may read a whole log.
const maxReaders = 2

//go:embed style.css
var stylesheet []byte

//go:embed page.js
var script []byte

// New returns a Server.
func New(o Options) *Server {
	s := &Server{
		Backend: o.Backend, guard: guard{Key: o.Key, secure: o.Secure, names: o.Names}, lang: o.Lang,
		translators: make(map[string]Translator), slots: make(chan struct{}, maxReaders),
		questionCounts: make(map[SessionRef]questionCounts), feeds: make(map[SessionRef]*feed),
		drafts: make(map[SessionRef]draft),
	}
	for _, l := range languages {
		s.translators[l[0]] = o.Translator(l[0])
	}
	s.mux = s.routes()
	return s
}

// routes registers the pages. A request names its project by a name that is looked up; no path in a
// request leads to a file.
func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	in := func(pattern string, show func(*page) (markup, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.servePage(w, r, show) })
	}
	in("GET /{$}", (*page).home)
	in("GET /search", (*page).search)
	in("POST /begin", (*page).startSession)
	in("POST /look", (*page).saveAppearance)
	in("GET /fleet", (*page).fleet)
	in("POST /fleet/answer/{question}", (*page).fleetAnswer)
	in("POST /fleet/cancel/{task}", (*page).fleetCancel)
	const one = "/s/{project}/{session}"
	in("GET "+one, (*page).session)
	in("GET "+one+"/record/{seq}", (*page).record)
	in("GET "+one+"/changes", (*page).renderChanges)
	in("GET "+one+"/window", (*page).window)
	in("GET "+one+"/cost", (*page).cost)
	in("GET "+one+"/replay", (*page).replay)
	in("GET "+one+"/audit", (*page).audit)
	in("POST "+one+"/say", (*page).sendMessage)
	in("POST "+one+"/stop", (*page).stopTurn)
	in("POST "+one+"/mode", (*page).changeMode)
	in("POST "+one+"/release", (*page).release)
	in("POST "+one+"/restore", (*page).restore)
	in("POST "+one+"/fork", (*page).fork)
	in("POST "+one+"/answer/{question}", (*page).saveAnswer)
	mux.HandleFunc("GET "+one+"/events", s.stream)
	return mux
}

// ServeHTTP serves one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	no := s.guard.check(r)
	if no == nil {
		switch r.URL.Path {
		case s.guard.basePath() + "/style.css":
			serveAsset(w, "text/css; charset=utf-8", stylesheet)
			return
		case s.guard.basePath() + "/page.js":
			serveAsset(w, "text/javascript; charset=utf-8", script)
			return
		}
		var done bool
		if done, no = s.guard.exchangeToken(w, r); done {
			return
		}
	}
	if no == nil {
		no = s.guard.admit(w, r)
	}
	p := s.newPage(w, r)
	p.notAdmitted = no != nil
	switch {
	case no != nil:
		p.renderRefusal(no.status, no.reason)
	case s.hasNoPage(r):
		p.renderRefusal(http.StatusNotFound, "page not found")
	default:
		http.StripPrefix(s.guard.basePath(), s.mux).ServeHTTP(w, r)
	}
}

// hasNoPage reports whether r's path has no page. The path must be in canonical form.
func (s *Server) hasNoPage(r *http.Request) bool {
	if inner := strings.TrimSuffix(r.URL.Path, "/"); r.URL.RawPath != "" || path.Clean(inner) != inner {
		return true
	}
	inner := r.Clone(r.Context())
	inner.URL.Path = inner.URL.Path[len(s.guard.basePath()):]
	_, pattern := s.mux.Handler(inner)
	return pattern == "" || pattern[0] == '/'
}

func serveAsset(w http.ResponseWriter, kind string, data []byte) {
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(data) // the client is gone
}

// HandleEvent receives the events of sessions that this process works in and forwards them to open pages,
// without waiting for them.
func (s *Server) HandleEvent(_ context.Context, p SessionRef, r event.Record) {
	s.mu.Lock()
	f, d := s.feeds[p], s.drafts[p]
	if d.applyEvent(r.Event); d.text == "" {
		delete(s.drafts, p)
	} else {
		s.drafts[p] = d
	}
	s.mu.Unlock()
	if f != nil {
		f.applyEvent(r)
	}
}

// servePage renders one page with show.
func (s *Server) servePage(w http.ResponseWriter, r *http.Request, show func(*page) (markup, error)) {
	p := s.newPage(w, r)
	if r.Method != http.MethodPost { // a POST waits for others
		if !s.acquireSlot(r.Context()) {
			return
		}
		defer s.releaseSlot()
	}
	main, err := show(p)
	var problem *UserError
	switch {
	case errors.As(err, &problem):
		p.renderRefusal(problem.Status, problem.Text)
	case errors.Is(err, session.ErrNotFound):
		p.renderRefusal(http.StatusNotFound, "session not found; it may have been removed")
	case err != nil:
		p.renderRefusal(http.StatusInternalServerError, err.Error())
	case main != "":
		p.writePage(http.StatusOK, main)
	}
}

// acquireSlot waits for a slot to read logs, released by leave. It reports false if ctx ended first.
func (s *Server) acquireSlot(ctx context.Context) bool {
	select {
	case s.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *Server) releaseSlot() { <-s.slots }

// page is one page being rendered.
type page struct {
	*Server
	w          http.ResponseWriter
	r          *http.Request
	lang       string
	theme      string
	translator Translator
	// notAdmitted is set if the browser was not admitted: such a page reveals nothing, not even where the pages
	// are.
	notAdmitted bool

	title         string
	questionCount int // open questions
	questionsByID map[string]uip.Request
	ref           SessionRef // the page's session, if any
	projectSlug   string     // the project's name in addresses
	tab           string
}

const (
	langCookie  = "lang"
	themeCookie = "theme"
)

func (s *Server) newPage(w http.ResponseWriter, r *http.Request) *page {
	p := &page{Server: s, w: w, r: r, lang: s.preferredLanguage(r), theme: themes[0][0]}
	if c, err := r.Cookie(langCookie); err == nil && s.translators[c.Value] != nil {
		p.lang = c.Value
	}
	if c, err := r.Cookie(themeCookie); err == nil && isTheme(c.Value) {
		p.theme = c.Value
	}
	p.translator = s.translators[p.lang]
	return p
}

// preferredLanguage returns the browser's preferred language, if available.
func (s *Server) preferredLanguage(r *http.Request) string {
	for want := range strings.SplitSeq(r.Header.Get("Accept-Language"), ",") {
		want, _, _ = strings.Cut(strings.TrimSpace(want), ";")
		for _, l := range languages {
			if ours, _, _ := strings.Cut(l[0], "-"); strings.EqualFold(want, l[0]) ||
				strings.EqualFold(strings.SplitN(want, "-", 2)[0], ours) {
				return l[0]
			}
		}
	}
	return s.lang
}

func isTheme(name string) bool {
	return slices.ContainsFunc(themes, func(t [2]string) bool { return t[0] == name })
}

func (p *page) t(format string, args ...any) string { return p.translator.T(format, args...) }

// pageURL returns the address of a page.
func (p *page) pageURL(segments ...string) string {
	return buildPath(p.guard.basePath(), segments)
}

// sessionURL returns the address of one of the session's pages.
func (p *page) sessionURL(what string, query ...string) string {
	segments := []string{"s", p.projectSlug, p.ref.Session}
	if what != "" {
		segments = append(segments, what)
	}
	return buildPath(p.guard.basePath(), segments, query...)
}

// redirect redirects the browser to another page.
func (p *page) redirect(address string) { http.Redirect(p.w, p.r, address, http.StatusSeeOther) }

// renderRefusal shows why the request failed.
func (p *page) renderRefusal(status int, why string) {
	p.title, p.tab = p.translator.T("Request failed"), ""
	if status == http.StatusAccepted {
		p.title = p.translator.T("Your answer is saved")
	}
	back := markup("")
	switch {
	case p.notAdmitted: // following a link sends the cookie, which a request from another site does not
		back = element("p", element("a", attr{"href", ""}, p.t("Try again")))
	case p.ref.Session != "":
		back = element("p", element("a", attr{"href", p.sessionURL("")}, p.t("Back to the session")))
	default:
		back = element("p", element("a", attr{"href", p.guard.basePath() + "/"}, p.t("Back")))
	}
	p.writePage(status, joinParts(element("h1", p.title),
		element("p", classAttr("refusal"), attr{"role", "alert"}, p.translator.TranslateText(why)), back))
}

func (p *page) writePage(status int, main markup) {
	p.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	p.w.WriteHeader(status)
	_, _ = io.WriteString(p.w, string(p.renderFrame(main))) // the client is gone
}

// findSession sets the session that the request is about.
func (p *page) findSession() error {
	id := p.r.PathValue("session")
	for _, root := range p.Projects() {
		if projectName(root) != p.r.PathValue("project") {
			continue
		}
		place := SessionRef{root, id}
		if err := p.CheckSession(p.r.Context(), place); err != nil {
			return err
		}
		p.ref, p.projectSlug = place, projectName(root)
		return nil
	}
	return &UserError{http.StatusNotFound, "project not found"}
}

// queryNumber parses a number from the query; absent means 0.
func (p *page) queryNumber(name string) (uint64, error) {
	text := p.r.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	return parseNumber(text)
}

func parseNumber(text string) (n uint64, err error) {
	if _, err := fmt.Sscanf(text, "%d", &n); err != nil || fmt.Sprint(n) != text {
		return 0, &UserError{http.StatusBadRequest, "not a record number"}
	}
	return n, nil
}
