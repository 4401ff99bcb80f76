package browser_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/record/audit"
	"coder/internal/record/session"
	"coder/internal/record/store/mem"
	"coder/internal/ui/browser"
	"coder/internal/ui/i18n"
)

const root, id = "/home/me/project", "s1"

var (
	key  = browser.Key{Token: "the-token", Cookie: "the-cookie", Form: "the-form", Path: "place"}
	noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
)

// site is a server over a store in memory, with what was asked of the program.
type site struct {
	*httptest.Server
	t     *testing.T
	pages *browser.Server
	store *mem.Store

	mu     sync.Mutex // guards the fields below
	deeds  []string
	answer uip.Response
	fails  error // of what is asked for
	broken error // after the last record
	gone   bool
	pulse  browser.Activity
	fleet  browser.FleetBackend
	last   uint64
}

func newSite(t *testing.T) *site {
	s := &site{t: t, store: new(mem.Store)}
	release, err := s.store.Claim(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = release() })
	s.pages = browser.New(browser.Options{Backend: s.program(), Key: key, Lang: i18n.English, Translator: func(lang string) browser.Translator { return i18n.For(lang) }})
	s.Server = httptest.NewServer(s.pages)
	t.Cleanup(s.Server.Close)
	return s
}

func (s *site) did(what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deeds = append(s.deeds, what)
	return s.fails
}

func (s *site) done() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.deeds, ", ")
}

func (s *site) program() browser.Backend {
	return browser.Backend{
		Fleet: browser.FleetBackend{
			Configured: func() bool { return s.fleet.Configured != nil },
			State:      func(ctx context.Context) (browser.Fleet, error) { return s.fleet.State(ctx) },
			Answer:     func(ctx context.Context, a uip.Response) error { return s.fleet.Answer(ctx, a) },
			Cancel:     func(ctx context.Context, task string) error { return s.fleet.Cancel(ctx, task) },
		},
		Now: func() time.Time { return noon }, Projects: func() []string { return []string{root} },
		Heads: func(context.Context, string) ([]session.Head, error) {
			return []session.Head{{ID: id, Updated: noon, Meta: session.Meta{Title: "the title", Model: "m", Turns: 1}}}, nil
		},
		Search: func(_ context.Context, words []string) ([]browser.SearchResult, error) {
			return []browser.SearchResult{{SessionRef: browser.SessionRef{Root: root, Session: id}, Title: words[0], Kind: "prompt", Line: "a " + words[0], Record: 1}}, nil
		},
		CheckSession: func(_ context.Context, p browser.SessionRef) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			if p != (browser.SessionRef{Root: root, Session: id}) || s.gone {
				return session.ErrNotFound
			}
			return nil
		},
		Records: s.records, Modes: []string{"build", "plan"},
		Activity: func(browser.SessionRef) browser.Activity {
			s.mu.Lock()
			defer s.mu.Unlock()
			pulse := s.pulse
			pulse.Stamp, pulse.Deleted = string(rune('a'+s.last))+pulse.Stamp, s.gone
			if pulse.Stamp[1:] == "none" {
				pulse.Stamp = ""
			}
			return pulse
		},
		StateAt: func(_ context.Context, _ browser.SessionRef, at uint64) (browser.SessionState, error) {
			return browser.SessionState{Seq: at, Time: noon, Parts: []browser.Part{{Name: "tool calls", Tokens: 3}}}, nil
		},
		Diff: func(context.Context, browser.SessionRef, uint64, uint64) ([]browser.FileDiff, error) {
			return []browser.FileDiff{{Path: "a.txt", Unified: "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new\n", Added: 1, Deleted: 1}}, nil
		},
		Verify: func(browser.SessionRef) (audit.Report, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return audit.Report{Lines: 3}, s.broken
		},
		Ledger: func(context.Context, browser.SessionRef) (display.Blocks, error) {
			return display.Blocks{display.Text("the ledger")}, nil
		},
		WithCost: func(_, _ string, u chat.Usage) chat.Usage { return u },
		StartSession: func(_ context.Context, at, mode, prompt string) (string, error) {
			return id, s.did("begin " + at + mode + ": " + prompt)
		},
		SendMessage: func(_ context.Context, _ browser.SessionRef, prompt string) error { return s.did("say " + prompt) },
		Stop:        func(context.Context, browser.SessionRef) error { return s.did("stop") },
		Release:     func(browser.SessionRef) error { return s.did("release") },
		RestorePlan: func(_ context.Context, _ browser.SessionRef, at uint64) (display.Blocks, error) {
			return display.Blocks{display.Text(fmt.Sprintf("Files would match record %d.\nrestored: <b>.txt", at))}, nil
		},
		Fork: func(_ context.Context, at browser.SessionRef, seq uint64) (browser.SessionRef, error) {
			return at, s.did(fmt.Sprintf("fork %d", seq))
		},
		Answer: func(_ context.Context, _ browser.SessionRef, _ uip.Request, a uip.Response) error {
			s.mu.Lock()
			s.answer = a
			s.mu.Unlock()
			return s.did("answer")
		},
	}
}

func (s *site) records(ctx context.Context, _ browser.SessionRef, after uint64, logs ...event.Log) iter.Seq2[event.Record, error] {
	return func(yield func(event.Record, error) bool) {
		for r, err := range s.store.Read(ctx, id, after, logs...) {
			if !yield(r, err) {
				return
			}
		}
		s.mu.Lock()
		broken := s.broken
		s.mu.Unlock()
		if broken != nil {
			yield(event.Record{}, broken)
		}
	}
}

// add puts events on record.
func (s *site) add(events ...event.Event) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		actor := "agent"
		if m, ok := e.(event.MessageAdded); ok && m.Message.Role == chat.User {
			actor = event.ActorUser
		}
		r := event.Record{Seq: s.last + 1, Time: noon, Session: id, Task: "t1", Actor: actor, Event: e}
		if err := s.store.Append(context.Background(), s.last, r); err != nil {
			s.t.Fatal(err)
		}
		s.last++
	}
}

// request is one to the site, as a browser of the person makes it.
func (s *site) request(method, path string, form url.Values) *http.Request {
	s.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	r.AddCookie(&http.Cookie{Name: "coder-place", Value: key.Cookie})
	if method == http.MethodPost {
		r.Header.Set("Origin", s.URL)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return r
}

// do sends a request, follows nothing, and gives what came back.
func (s *site) do(r *http.Request) (status int, text string, head http.Header) {
	s.t.Helper()
	a, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if err != nil && !errors.Is(err, context.Canceled) {
		s.t.Fatal(err)
	}
	return a.StatusCode, string(body), a.Header
}

func (s *site) get(path string) (int, string) {
	s.t.Helper()
	status, text, _ := s.do(s.request(http.MethodGet, path, nil))
	return status, text
}

func (s *site) post(path string, form url.Values) (int, string) {
	s.t.Helper()
	form.Set("form", key.Form)
	status, text, _ := s.do(s.request(http.MethodPost, path, form))
	return status, text
}

// project is what the site calls its project.
func (s *site) project() string {
	s.t.Helper()
	_, home := s.get("/place/")
	m := regexp.MustCompile(`<option value="([0-9a-f]+)">`).FindStringSubmatch(home)
	if m == nil {
		s.t.Fatalf("no project:\n%s", home)
	}
	return m[1]
}

// of is the address of a page about the session.
func (s *site) of(what string) string { return "/place/s/" + s.project() + "/" + id + what }

func said(role chat.Role, text string) event.MessageAdded {
	return event.MessageAdded{Message: chat.Message{Role: role, Parts: []chat.Part{chat.Text(text)}}}
}

// edit is a question about a change.
func edit(id string) event.InteractionRequested {
	return event.InteractionRequested{Request: uip.Request{
		ID: id, TaskID: "t1", Author: "agent", Kind: uip.KindConfirm, Purpose: uip.PurposeConfirmRiskyAction, Display: uip.Display{Title: "edit a.txt"},
		Options: []uip.Option{{ID: uip.OptionApprove, Label: "yes"}, {ID: uip.OptionReject, Label: "no"}},
	}}
}

var shown = regexp.MustCompile(`name="shown" value="([0-9a-f]+)"`)

// digest is what the form about the open question says that it shows.
func (s *site) digest() string {
	s.t.Helper()
	_, page := s.get(s.of(""))
	m := shown.FindStringSubmatch(page)
	if m == nil {
		s.t.Fatalf("no form:\n%s", page)
	}
	return m[1]
}
