package lsp

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"coder/testkit/lsptest"
)

// took is how long f takes in a bubble's time.
func took(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

func TestServerThatNeverAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts := 0
		p := inside(t, func() string { starts++; return "mute" })
		defer p.Close()
		d := took(func() {
			_, err := p.Hover(t.Context(), "a.fake", nil, Position{})
			if !errors.Is(err, errTimeout) || !strings.Contains(err.Error(), "fakels did not answer within 30s") {
				t.Errorf("error %v", err)
			}
		})
		if d != requestTimeout || starts != 1 {
			t.Errorf("took %v, %d starts", d, starts)
		}
		// It said nothing at all, so the next one is another.
		_, _ = p.Hover(t.Context(), "a.fake", nil, Position{})
		if starts != 2 {
			t.Errorf("%d starts", starts)
		}
	})
}

func TestServerThatNeverBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := inside(t, always("never begins"))
		defer p.Close()
		d := took(func() {
			if _, err := p.Diagnose(t.Context(), "a.fake", nil); err == nil || !strings.Contains(err.Error(), "did not answer") {
				t.Errorf("error %v", err)
			}
		})
		if d != startTimeout {
			t.Errorf("took %v", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if d := took(func() { _, _ = p.Diagnose(ctx, "a.fake", nil) }); d != time.Second {
			t.Errorf("with less time took %v", d)
		}
	})
}

func TestServerThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours := &blocked{closed: make(chan struct{})}
		s := newServer(Kind{Name: "deaf"}, "/", t.TempDir(), ours)
		go s.conn.run()
		defer s.conn.closeWith(errors.New("test is over"))
		d := took(func() {
			err := s.request(t.Context(), time.Hour, "x", nil, nil)
			if !errors.Is(err, errServerExited) || !strings.Contains(err.Error(), "does not read") {
				t.Errorf("error %v", err)
			}
		})
		if d != writeTimeout {
			t.Errorf("took %v", d)
		}
		if err := s.conn.notify("x", nil); !errors.Is(err, errServerExited) {
			t.Errorf("notify: %v", err)
		}
	})
}

func TestOutboxIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(Kind{Name: "deaf"}, "/", t.TempDir(), &blocked{closed: make(chan struct{})})
		s.conn.outboxLimit = 1 << 20
		go s.conn.run()
		text := strings.Repeat("x", 10_000)
		sent := 0
		for s.conn.notify("x", text) == nil {
			sent += len(text)
		}
		if sent > s.conn.outboxLimit+2*len(text) || sent < s.conn.outboxLimit/2 {
			t.Errorf("%d bytes were taken", sent)
		}
	})
}

// blocked is a line on which nothing moves.
type blocked struct{ closed chan struct{} }

func (b *blocked) Read([]byte) (int, error)  { <-b.closed; return 0, errors.New("closed") }
func (b *blocked) Write([]byte) (int, error) { <-b.closed; return 0, errors.New("closed") }
func (b *blocked) Close() error              { close(b.closed); return nil }
func (*blocked) Wait()                       {}
func (*blocked) ExitReport() string          { return "" }

func TestDiagnosticsAreWaitedFor(t *testing.T) {
	for _, tc := range []struct {
		how   string
		first time.Duration
		want  string
	}{
		{"normal", settleTime, "a.fake:0:0 error bad"},
		{"unversioned", settleTime, "a.fake:0:0 error bad"},
		{"empty first", lsptest.Pause + settleTime, "a.fake:0:0 error bad"},
		{"busy", 8*lsptest.Pause + settleTime, "a.fake:0:0 error bad"},
		{"pull", 0, "a.fake:0:0 error bad"},
		{"pull breaks off", 2 * retryPause, "a.fake:0:0 error bad"},
		{"pull then busy", 2 * lsptest.Pause, "a.fake:0:0 error bad"},
		{"silent", diagnoseTimeout, "pending"},
	} {
		t.Run(tc.how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := inside(t, always(tc.how))
				defer p.Close()
				if _, err := p.Hover(t.Context(), "other.fake", nil, Position{}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				var r Report
				var err error
				ask := func() { r, err = p.Diagnose(t.Context(), "a.fake", []byte("BAD")) }
				if d := took(ask); err != nil || said(r) != tc.want || d != tc.first {
					t.Errorf("%s after %v, %v, want %s after %v", said(r), d, err, tc.want, tc.first)
				}
				if d := took(ask); tc.how != "silent" && (d != 0 || said(r) != tc.want) {
					t.Errorf("again: %s after %v", said(r), d)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				ask = func() { r, err = p.Diagnose(ctx, "a.fake", []byte("BAD two")) }
				if d := took(ask); err != nil || d > time.Second || tc.how == "silent" && said(r) != "pending" {
					t.Errorf("in a second: %s after %v, %v", said(r), d, err)
				}
			})
		})
	}
}

func TestSilenceIsNotGoodNews(t *testing.T) {
	for _, tc := range []struct {
		how   string
		whole bool
		want  string        // about code that is fine
		took  time.Duration // the first time
		again time.Duration // and for the same text
	}{
		{how: "normal", want: "pending", took: longSettleTime, again: longSettleTime},
		{how: "unversioned", want: "pending", took: longSettleTime, again: longSettleTime},
		{how: "busy", want: "pending", took: 8*lsptest.Pause + longSettleTime, again: longSettleTime},
		{how: "silent", want: "pending", took: diagnoseTimeout, again: diagnoseTimeout},
		{how: "normal", whole: true, want: "", took: settleTime},
		{how: "pull", want: ""},
		{how: "pull then busy", want: "", took: 2 * lsptest.Pause},
	} {
		t.Run(fmt.Sprint(tc.how, tc.whole), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := inside(t, always(tc.how))
				defer p.Close()
				p.options.Servers[0].publishesComplete = tc.whole
				if _, err := p.Hover(t.Context(), "other.fake", nil, Position{}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				var r Report
				var err error
				ask := func() { r, err = p.Diagnose(t.Context(), "a.fake", []byte("fine")) }
				for _, want := range []time.Duration{tc.took, tc.again} {
					if d := took(ask); err != nil || said(r) != tc.want || d != want {
						t.Errorf("%q after %v, %v, want %q after %v", said(r), d, err, tc.want, want)
					}
				}
			})
		})
	}
}

// TestAFirstEmptyListIsNotAllThereIs has a server that says at first that
// nothing is wrong, and what is long after anybody waits.
func TestAFirstEmptyListIsNotAllThereIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := inside(t, always("empty for long"))
		defer p.Close()
		for _, want := range []string{"pending", "pending"} {
			r, err := p.Diagnose(t.Context(), "a.fake", []byte("BAD"))
			if err != nil || said(r) != want {
				t.Errorf("%q, %v, want %q", said(r), err, want)
			}
		}
		time.Sleep(time.Minute)
		if r, err := p.Diagnose(t.Context(), "a.fake", []byte("BAD")); err != nil || said(r) != "a.fake:0:0 error bad" {
			t.Errorf("in the end: %q, %v", said(r), err)
		}
	})
}

// TestServersThatTellWhenTheyRest are not believed before they do, nor when
// they say that they are not well.
func TestServersThatTellWhenTheyRest(t *testing.T) {
	for how, want := range map[string]string{"rests late": "a.fake:0:0 error bad", "never rests": "pending", "rests ill": "pending"} {
		synctest.Test(t, func(t *testing.T) {
			p := inside(t, always(how))
			defer p.Close()
			p.options.Servers[0].announcesIdle = true
			r, err := p.Diagnose(t.Context(), "a.fake", []byte("BAD"))
			if err != nil || said(r) != want || how == "rests ill" && r.Note != "no project" {
				t.Errorf("%s: %q (%s), %v, want %q", how, said(r), r.Note, err, want)
			}
		})
	}
}

func TestOldDiagnosticsAreNotTakenForNew(t *testing.T) {
	s := newServer(Kind{Name: "x"}, "/", "/", &recording{})
	s.onPublish([]byte(`{"uri":"file:///a","version":1,"diagnostics":[{"message":"old"}]}`))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	items, pending, err := s.awaitDiagnostics(ctx, "/a", document{version: 2, serial: 1}, true)
	if len(items) != 0 || !pending || err != nil {
		t.Errorf("%v, %v, %v", items, pending, err)
	}
	s.onPublish([]byte(`{"uri":"file:///a","diagnostics":[{"message":"new"}]}`))
	if items, _, _ = s.awaitDiagnostics(ctx, "/a", document{version: 2, serial: 1}, true); len(items) != 1 || items[0].Message != "new" {
		t.Errorf("%v", items)
	}
}

func TestDyingServersAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts := 0
		p := inside(t, func() string { starts++; return "half" })
		defer p.Close()
		for i, want := range restartDelays {
			d := took(func() {
				if _, err := p.Diagnose(t.Context(), "a.fake", nil); err == nil {
					t.Error("half a message is an answer")
				}
			})
			if d != want || starts != i+1 {
				t.Errorf("start %d after %v, want %v", starts, d, want)
			}
		}
		_, err := p.Diagnose(t.Context(), "a.fake", nil)
		if starts != len(restartDelays) || err == nil || !strings.Contains(err.Error(), "will not restart") || !strings.Contains(err.Error(), "unexpected EOF") {
			t.Errorf("%d starts, %v", starts, err)
		}
		time.Sleep(crashPause)
		_, _ = p.Diagnose(t.Context(), "a.fake", nil)
		if starts != len(restartDelays)+1 {
			t.Errorf("%d starts after a rest", starts)
		}
	})
}

func TestDeathsAfterALongLifeAreForgiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts := 0
		p := inside(t, func() string { starts++; return "always dies" })
		defer p.Close()
		for range 3 * len(restartDelays) {
			if _, err := p.Hover(t.Context(), "a.fake", []byte("live"), Position{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(stableTime)
			if _, err := p.Hover(t.Context(), "a.fake", []byte("die"), Position{}); !errors.Is(err, errServerExited) {
				t.Errorf("error %v", err)
			}
		}
	})
}

func TestIdleServersAreEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts := 0
		p := inside(t, func() string { starts++; return "normal" })
		defer p.Close()
		ask := func() {
			if _, err := p.Hover(t.Context(), "a.fake", nil, Position{}); err != nil {
				t.Fatal(err)
			}
		}
		ask()
		for range 3 {
			time.Sleep(idleTimeout - time.Second)
			ask()
		}
		if !p.IsRunning("a.fake") || starts != 1 {
			t.Errorf("running %v, %d starts", p.IsRunning("a.fake"), starts)
		}
		time.Sleep(idleTimeout + time.Second)
		if p.IsRunning("a.fake") {
			t.Error("an idle server runs on")
		}
		ask()
		if starts != 2 {
			t.Errorf("%d starts", starts)
		}
	})
}

func TestServersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := inside(t, always("normal"))
		defer p.Close()
		for i := range 2 * maxServers {
			put(t, filepath.Join(p.options.Root, fmt.Sprint(i), "fake.project"), "")
		}
		for i := range 2 * maxServers {
			if _, err := p.Hover(t.Context(), fmt.Sprintf("%d/a.fake", i), nil, Position{}); err != nil {
				t.Fatal(err)
			}
			if i > 0 && !p.IsRunning(fmt.Sprintf("%d/a.fake", i-1)) {
				t.Error("the one used last had to go")
			}
			synctest.Wait()
			running := 0
			for _, h := range p.histories {
				if h.current != nil {
					running++
				}
			}
			if running != min(i+1, maxServers) {
				t.Errorf("%d servers run", running)
			}
		}
	})
}

func TestStoppingServerIsGivenTime(t *testing.T) {
	for how, want := range map[string]time.Duration{"normal": 0, "mute": stopTimeout} {
		synctest.Test(t, func(t *testing.T) {
			p := inside(t, always(how))
			if _, err := p.ensureServer(t.Context(), p.options.Servers[0], nil, p.options.Root); err != nil {
				t.Fatal(err)
			}
			if d := took(func() { p.Close() }); d != want {
				t.Errorf("%s: Close took %v, want %v", how, d, want)
			}
		})
	}
}

func TestSurvey(t *testing.T) {
	synctest.Test(t, testSurvey)
}

func testSurvey(t *testing.T) {
	p := inside(t, always("normal"))
	defer p.Close()
	if _, err := p.Survey(t.Context()); err == nil || !strings.Contains(err.Error(), "ask about a file") {
		t.Errorf("with nothing there: %v", err)
	}
	put(t, filepath.Join(p.options.Root, "fake.project"), "")
	if r, err := p.Survey(t.Context()); err != nil || said(r) != "" || r.Server != "fakels" {
		t.Errorf("at first: %s, %v", said(r), err)
	}
	for _, name := range []string{"b.fake", "a.fake"} {
		if _, err := p.Diagnose(t.Context(), name, []byte("BAD "+name)); err != nil {
			t.Fatal(err)
		}
	}
	r, err := p.Survey(t.Context())
	if want := "a.fake:0:0 error bad a.fake, b.fake:0:0 error bad b.fake"; err != nil || said(r) != want {
		t.Errorf("survey: %s, %v, want %s", said(r), err, want)
	}
}
