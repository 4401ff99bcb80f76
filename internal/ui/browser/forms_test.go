package browser_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/ui/browser"
)

const twoHunks = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+A\n@@ -9 +9 @@\n-b\n+B\n"

// change is a question about a change of two hunks.
func change(id string) uip.Request {
	q := edit(id).Request
	q.Options = []uip.Option{{ID: uip.OptionApprove}, {ID: uip.OptionSome}, {ID: uip.OptionSession}, {ID: uip.OptionAlways}, {ID: uip.OptionReject}}
	q.Display.Content, q.Display.Metadata = display.Diff{Unified: twoHunks}, map[string]string{uip.MetaHunks: "2"}
	return q
}

// TestATickThatIsTakenAwayCountsForEveryButton: no answer takes a hunk that the page
// shows without its tick.
func TestATickThatIsTakenAwayCountsForEveryButton(t *testing.T) {
	both := change("q2")
	both.Kind, both.Parts = uip.KindComposite, []uip.Request{change("p1"), change("p2")}
	both.Display = uip.Display{Title: "2 calls"}
	for name, tt := range map[string]struct {
		question uip.Request
		form     url.Values
		status   int
		answer   string
	}{
		"yes with a tick less":             {change("q"), url.Values{"option": {"approve"}, "hunks": {"2"}, "hunk": {"1"}}, 400, ""},
		"always with a tick less":          {change("q"), url.Values{"option": {"always"}, "hunks": {"2"}, "hunk": {"2"}}, 400, ""},
		"the session with none":            {change("q"), url.Values{"option": {"session"}, "hunks": {"2"}}, 400, ""},
		"yes with all":                     {change("q"), url.Values{"option": {"approve"}, "hunks": {"2"}, "hunk": {"1", "2"}}, 303, "answer"},
		"no with a tick less":              {change("q"), url.Values{"option": {"reject"}, "hunks": {"2"}, "hunk": {"1"}}, 303, "answer"},
		"the chosen ones":                  {change("q"), url.Values{"option": {"some"}, "hunks": {"2"}, "hunk": {"1"}}, 303, "answer"},
		"yes to all calls, a tick less":    {both, url.Values{"option": {"approve"}, "part1-hunks": {"2"}, "part1-hunk": {"1"}}, 400, ""},
		"yes to one call, a tick less":     {both, url.Values{"part0": {"reject"}, "part1": {"approve"}, "part1-hunks": {"2"}, "part1-hunk": {"1"}}, 400, ""},
		"some of one call, no to the next": {both, url.Values{"part0": {"reject"}, "part1": {"some"}, "part1-hunks": {"2"}, "part1-hunk": {"1"}}, 303, "answer"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.add(event.TaskCreated{TaskID: "t1", Title: "work"}, event.InteractionRequested{Request: tt.question})
			tt.form.Set("shown", s.digest())
			if status, page := s.post(s.of("/answer/"+tt.question.ID), tt.form); status != tt.status || s.done() != tt.answer {
				t.Errorf("%d, %q\n%s", status, s.done(), page)
			}
		})
	}
	s := newSite(t)
	s.add(event.TaskCreated{TaskID: "t1", Title: "work"}, event.InteractionRequested{Request: change("q")})
	if _, page := s.get(s.of("")); !strings.Contains(page, `name="hunks" value="2"`) {
		t.Errorf("the form does not say how many hunks it has:\n%s", page)
	}
}

// TestWhatIsRememberedIsNamedAsItIs also where several calls are asked about at once,
// and the sign for anything is ours.
func TestWhatIsRememberedIsNamedAsItIs(t *testing.T) {
	part := func(id, what string) uip.Request {
		q := edit(id).Request
		q.Options = append(q.Options, uip.Option{ID: uip.OptionAlways})
		q.Display.Metadata = map[string]string{"remembers": what}
		return q
	}
	q := part("q", "commands like touch …, changes to a.txt")
	q.Kind, q.Parts = uip.KindComposite, []uip.Request{part("p1", "commands like touch …"), part("p2", "commands like touch …"), part("p3", "changes to \u202etxt.a")}
	s := newSite(t)
	s.add(event.TaskCreated{TaskID: "t1", Title: "work"}, event.InteractionRequested{Request: q})
	_, page := s.get(s.of(""))
	if !strings.Contains(page, "Always in this project: commands like touch …, changes to &lt;U+202E&gt;txt.a<") || strings.Contains(page, "U+2026") {
		t.Errorf("%s", page)
	}
}

// TestAPageFollowsWhoWorks: where it can be said what is to be done, and what stops,
// changes with who works in the session, on an open page too.
func TestAPageFollowsWhoWorks(t *testing.T) {
	s := newSite(t)
	s.add(event.TaskCreated{TaskID: "t1", Title: "work"})
	open := s.stream(1)
	for _, tt := range []struct {
		pulse     browser.Activity
		want, not []string
	}{
		{browser.Activity{Holder: "process 7"}, []string{"accepts no messages from here"}, []string{"/say\"", "/stop\"", "/mode\"", "/release\""}},
		{browser.Activity{Holder: "process 7", CanStop: true}, []string{"accepts no messages from here", "/stop\""}, []string{"/say\"", "/release\""}},
		{browser.Activity{Holder: "process 7", AcceptsMessages: true, CanStop: true}, []string{"messages you send here go there", "/say\"", "/stop\"", "/mode\""}, []string{"/release\""}},
		{browser.Activity{}, []string{"/say\"", "/mode\""}, []string{"/stop\"", "/release\""}},
		{browser.Activity{Holder: "coder web", HeldHere: true}, []string{"/say\"", "/release\""}, []string{"/stop\""}},
		{browser.Activity{Holder: "coder web", HeldHere: true, Busy: true}, []string{"/say\"", "/stop\"", "/release\""}, nil},
	} {
		s.mu.Lock()
		s.pulse = tt.pulse
		s.mu.Unlock()
		open.until("event: say")
		open.Scan()
		_, page := s.get(s.of(""))
		for _, text := range []string{open.Text(), page} {
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("%+v: no %s in\n%s", tt.pulse, want, text)
				}
			}
			for _, not := range tt.not {
				if strings.Contains(text, not) {
					t.Errorf("%+v: %s in\n%s", tt.pulse, not, text)
				}
			}
		}
	}
}

// TestWhoIsThereIsToldFromWhoWorks: a terminal that waits for its person does not work.
func TestWhoIsThereIsToldFromWhoWorks(t *testing.T) {
	s := newSite(t)
	s.pulse = browser.Activity{Holder: "process 7"}
	for _, tt := range []struct {
		event event.Event
		want  string
	}{
		{event.TaskCreated{TaskID: "t1", Title: "work"}, "working in process 7"}, {event.TaskCompleted{TaskID: "t1"}, ">open in process 7"},
		{event.TaskCreated{TaskID: "t2"}, "working in process 7"}, {event.TaskFailed{TaskID: "t2"}, ">open in process 7"},
		{event.TaskCreated{TaskID: "t3"}, "working in process 7"}, {edit("q1"), "waiting for your answer, here or in process 7"},
	} {
		s.add(tt.event)
		if _, page := s.get(s.of("")); !strings.Contains(page, tt.want) {
			t.Errorf("%+v: not %q:\n%s", tt.event, tt.want, page)
		}
	}
}

// TestRecordsThatVanish: open pages are told, and nothing is said to what is left.
func TestRecordsThatVanish(t *testing.T) {
	s := newSite(t)
	s.add(event.TaskCreated{TaskID: "t1", Title: "work"})
	say, open := s.of("/say"), s.stream(1)
	s.mu.Lock()
	s.pulse.Stamp = "none" // while the session is known by what else is kept of it
	s.mu.Unlock()
	open.until("event: gone")
	if status, _ := s.post(say, url.Values{"prompt": {"go on"}, "seen": {"1"}}); status != 404 || s.done() != "" {
		t.Errorf("%d, %s", status, s.done())
	}
}

// TestHomeTellsWhatWaits for the person, and stops telling when it is answered.
func TestHomeTellsWhatWaits(t *testing.T) {
	s := newSite(t)
	home := func(want bool) {
		t.Helper()
		if _, page := s.get("/place/"); strings.Contains(page, "needs you") != want || strings.Contains(page, "<title>(1) ") != want {
			t.Errorf("%v:\n%s", want, page)
		}
	}
	s.add(event.TaskCreated{TaskID: "t1", Title: "work"})
	home(false)
	s.add(edit("q1"))
	home(true)
	home(true) // as known
	s.add(event.InteractionResponded{Response: uip.Response{ID: "q1", TaskID: "t1", Option: "reject"}})
	home(false)
	s.add(edit("q2"), event.TaskCanceled{TaskID: "t1"})
	home(false)
}

// TestAModeIsChosen for a session, and for one that is begun; there are no others.
func TestAModeIsChosen(t *testing.T) {
	s := newSite(t)
	s.add(event.TaskCreated{TaskID: "t1", Title: "work"}, event.ModeChanged{Mode: "plan"})
	if _, page := s.get(s.of("")); !strings.Contains(page, `<option value="plan" selected="">`) {
		t.Errorf("the mode is not shown:\n%s", page)
	}
	for path, form := range map[string]url.Values{
		s.of("/mode"): {"mode": {"build\n!rm x"}}, s.of("/mode") + "?": {}, "/place/begin": {"mode": {"other"}, "prompt": {"x"}, "project": {s.project()}},
	} {
		if status, page := s.post(path, form); status != 400 || s.done() != "" {
			t.Errorf("%s: %d %s\n%s", path, status, s.done(), page)
		}
	}
	s.post(s.of("/mode"), url.Values{"mode": {"build"}})
	s.post("/place/begin", url.Values{"mode": {"plan"}, "prompt": {"x"}, "project": {s.project()}})
	if want := "say /mode build, begin " + root + "plan: x"; s.done() != want {
		t.Errorf("%q, not %q", s.done(), want)
	}
}

// TestThePageSpeaksAsTheBrowserAsks unless something was chosen.
func TestThePageSpeaksAsTheBrowserAsks(t *testing.T) {
	s := newSite(t)
	for ask, want := range map[string]string{"": "en", "zh-CN,zh;q=0.9,en;q=0.8": "zh-CN", "zh-TW": "zh-CN", "de-DE,en;q=0.5": "en", "fr, zh": "zh-CN", "<script>": "en"} {
		r := s.request(http.MethodGet, "/place/", nil)
		r.Header.Set("Accept-Language", ask)
		if _, page, _ := s.do(r); !strings.Contains(page, `<html lang="`+want+`"`) {
			t.Errorf("%q: not %s", ask, want)
		}
	}
	r := s.request(http.MethodGet, "/place/", nil)
	r.Header.Set("Accept-Language", "zh")
	r.AddCookie(&http.Cookie{Name: "lang", Value: "en"})
	if _, page, _ := s.do(r); !strings.Contains(page, `<html lang="en"`) {
		t.Error("what was chosen does not count")
	}
}

// TestAnAnswerIsToldInTheWordsOfItsQuestion on a page and to one that is open.
func TestAnAnswerIsToldInTheWordsOfItsQuestion(t *testing.T) {
	s := newSite(t)
	choice := uip.Request{ID: "q1", TaskID: "t1", Kind: uip.KindSelect, Purpose: uip.PurposeChooseStrategy, Display: uip.Display{Title: "Which?", Metadata: map[string]string{"label2": "blue"}},
		Options: []uip.Option{{ID: "1", Label: "red"}, {ID: "2", Label: "blue — as the <sea>"}}}
	s.add(event.TaskCreated{TaskID: "t1", Title: "work"}, event.InteractionRequested{Request: choice})
	if _, page := s.get(s.of("")); !strings.Contains(page, "blue — as the &lt;sea&gt;</button>") {
		t.Errorf("what the option means is not said:\n%s", page)
	}
	open := s.stream(2)
	s.add(event.InteractionResponded{Response: uip.Response{ID: "q1", TaskID: "t1", Author: "user", AnsweredBy: "web", Option: "2"}})
	open.until("Answer: blue — as the &lt;sea&gt; (you web)")
	for answer, want := range map[string]string{"approve": "Yes, this once", "reject": "No", "some": "Yes to hunks 1,3 only", "always": "Always in this project"} {
		s := newSite(t)
		s.add(event.TaskCreated{TaskID: "t1", Title: "work"}, edit("q1"), event.InteractionResponded{Response: uip.Response{ID: "q1", TaskID: "t1", Author: "user", Option: answer, Input: map[string]string{"some": "1,3"}[answer]}})
		if _, page := s.get(s.of("")); !strings.Contains(page, "Answer: "+want+" (you)") {
			t.Errorf("%s is not %q:\n%s", answer, want, page)
		}
	}
}

// TestTheWaysToARecordShowFirstWhatTheyWouldDo: nothing happens before the page that
// shows it was agreed to.
func TestTheWaysToARecordShowFirstWhatTheyWouldDo(t *testing.T) {
	s := newSite(t)
	s.add(event.TaskCreated{TaskID: "t1", Title: "work"}, event.TaskCompleted{TaskID: "t1"})
	_, page := s.get(s.of("/replay?at=1"))
	for _, want := range []string{`action="` + s.of("/restore") + `"`, `action="` + s.of("/fork") + `"`, `name="at" value="1"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of a record lacks %s:\n%s", want, page)
		}
	}
	for _, tt := range []struct {
		path         string
		form         url.Values
		status       int
		does, prints string
	}{
		{"/restore", url.Values{"at": {"1"}}, 200, "", "restored: &lt;b&gt;.txt"},
		{"/restore", url.Values{"at": {"1"}, "sure": {"yes"}}, 303, "say /restore 1", ""},
		{"/fork", url.Values{"at": {"2"}}, 200, "", "A new session begins at record 2"},
		{"/fork", url.Values{"at": {"2"}, "sure": {"yes"}}, 303, "fork 2", ""},
		{"/restore", url.Values{"at": {"0"}, "sure": {"yes"}}, 400, "", ""},
		{"/restore", url.Values{"at": {"1 force"}, "sure": {"yes"}}, 400, "", ""},
		{"/fork", url.Values{"sure": {"yes"}}, 400, "", ""},
	} {
		s := newSite(t)
		s.add(event.TaskCreated{TaskID: "t1", Title: "work"}, event.TaskCompleted{TaskID: "t1"})
		status, page := s.post(s.of(tt.path), tt.form)
		if status != tt.status || s.done() != tt.does || !strings.Contains(page, tt.prints) {
			t.Errorf("%s %v: %d, did %q\n%s", tt.path, tt.form, status, s.done(), page)
		}
	}
}
