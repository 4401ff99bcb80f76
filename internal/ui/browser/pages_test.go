package browser_test

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/ui/browser"
)

// listen reads the stream after a record until it has told of the one numbered
// until, or of the event named.
func (s *site) listen(after, until uint64, until2 string) string {
	s.t.Helper()
	r := s.request("GET", s.of("/events?after=0"), nil)
	if after > 0 {
		r.Header.Set("Last-Event-ID", strconv.FormatUint(after, 10))
	}
	a, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || a.StatusCode != 200 {
		s.t.Fatal(a, err)
	}
	defer a.Body.Close()
	var all, one strings.Builder
	reached := false
	for in := bufio.NewScanner(a.Body); in.Scan(); {
		line := in.Text()
		one.WriteString(line + "\n")
		if line != "" {
			continue
		}
		text := one.String()
		all.WriteString(text)
		one.Reset()
		reached = reached || until > 0 && strings.Contains(text, fmt.Sprintf("\nid: %d\n", until))
		if until2 != "" && strings.HasPrefix(text, "event: "+until2+"\n") || reached && until2 == "" && strings.HasPrefix(text, "event: questions\n") || reached && after > 0 && until2 == "" {
			return all.String()
		}
	}
	s.t.Fatalf("the stream ended:\n%s", all.String())
	return ""
}

// TestAStreamLosesNothing: a page that slept, for however long, gets what it
// missed, once, in order.
func TestAStreamLosesNothing(t *testing.T) {
	s := newSite(t)
	s.add(event.TaskCreated{TaskID: "t1", Title: "work"}, said(chat.User, "hello"))
	seen := uint64(0)
	for _, more := range []int{0, 1, 3, 700} {
		for range more {
			s.add(said(chat.Assistant, fmt.Sprintf("word %d.", s.last+1)))
		}
		var ids []uint64
		for line := range strings.Lines(s.listen(seen, s.last, "")) {
			if n, ok := strings.CutPrefix(line, "id: "); ok {
				n, _ := strconv.ParseUint(strings.TrimSpace(n), 10, 64)
				ids = append(ids, n)
			}
		}
		for i, n := range ids {
			if n != seen+1+uint64(i) {
				t.Fatalf("record %d came after %d", n, seen+uint64(i))
			}
		}
		if seen += uint64(len(ids)); seen != s.last {
			t.Fatalf("%d of %d records came", seen, s.last)
		}
		if more == 0 {
			s.add(said(chat.Assistant, "so that there is something to wait for"))
		}
	}
}

// stream is what a page is told, line by line.
type stream struct {
	*bufio.Scanner
	t     *testing.T
	close func() error
}

// stream opens one, which has told how things stand.
func (s *site) stream(after uint64) stream {
	s.t.Helper()
	a, err := http.DefaultTransport.RoundTrip(s.request("GET", s.of(fmt.Sprintf("/events?after=%d", after)), nil))
	if err != nil {
		s.t.Fatal(err)
	}
	st := stream{bufio.NewScanner(a.Body), s.t, a.Body.Close}
	s.t.Cleanup(func() { _ = st.close() })
	st.until("event: questions")
	return st
}

// until reads until a line has what is wanted.
func (st stream) until(want string) {
	st.t.Helper()
	for st.Scan() {
		if strings.Contains(st.Text(), want) {
			return
		}
	}
	st.t.Fatalf("%s did not come", want)
}

// TestManyPagesShareOneFeed and all are told.
func TestManyPagesShareOneFeed(t *testing.T) {
	s := newSite(t)
	s.add(event.TaskCreated{TaskID: "t1", Title: "work"})
	var all []stream
	for range 20 {
		all = append(all, s.stream(1))
	}
	s.pages.HandleEvent(t.Context(), browser.SessionRef{Root: root, Session: id}, event.Record{Event: event.TextDelta{Text: "a piece"}})
	s.add(edit("q1"))
	for _, st := range all {
		st.until("data: a piece")
		st.until("/answer/q1")
		_ = st.close()
	}
}

// TestWhoComesLateSeesTheDraft of the reply that is under way, and no older one.
func TestWhoComesLateSeesTheDraft(t *testing.T) {
	s := newSite(t)
	s.add(event.TaskCreated{TaskID: "t1", Title: "work"}, said(chat.Assistant, "before"))
	place := browser.SessionRef{Root: root, Session: id}
	see := func(e event.Event) { s.pages.HandleEvent(t.Context(), place, event.Record{Event: e}) }
	see(event.TextDelta{Text: "an old piece"})
	see(event.MessageAdded{})
	see(event.TextDelta{Text: "a new piece"})
	if text := s.listen(0, 0, "questions"); !strings.Contains(text, "data: a new piece\n") {
		t.Error(text)
	}
}

// TestTheFirstAnswerCounts and the second gets a page that says so.
func TestTheFirstAnswerCounts(t *testing.T) {
	s := newSite(t)
	s.add(event.TaskCreated{TaskID: "t1", Title: "work"}, edit("q1"))
	form := url.Values{"option": {"approve"}, "shown": {s.digest()}, "comment": {" go on "}}
	if status, page := s.post(s.of("/answer/q1"), form); status != 303 {
		t.Fatalf("%d:\n%s", status, page)
	}
	s.mu.Lock()
	a := s.answer
	s.mu.Unlock()
	if a.Option != "approve" || a.Comment != "go on" || a.Author != "user" || a.AnsweredBy != "web" || a.TaskID != "t1" || a.ID != "q1" {
		t.Errorf("the answer is %+v", a)
	}
	s.add(event.InteractionResponded{Response: uip.Response{ID: "q1", TaskID: "t1", Author: "user", Option: "reject", AnsweredBy: "elsewhere"}})
	if status, page := s.post(s.of("/answer/q1"), form); status != 409 || !strings.Contains(page, "already answered") || !strings.Contains(page, "No (you elsewhere)") {
		t.Errorf("%d:\n%s", status, page)
	}
	if s.done() != "answer" {
		t.Error(s.done())
	}
}

// TestAnswersThatAreNone change nothing.
func TestAnswersThatAreNone(t *testing.T) {
	s := newSite(t)
	s.add(event.TaskCreated{TaskID: "t1", Title: "work"}, edit("q1"))
	digest := s.digest()
	for name, form := range map[string]url.Values{
		"409 another question": {"option": {"approve"}, "shown": {strings.Repeat("0", 64)}},
		"409 nothing shown":    {"option": {"approve"}},
		"400 no option":        {"shown": {digest}},
		"400 an unknown one":   {"shown": {digest}, "option": {"always"}},
		"400 dismissed":        {"shown": {digest}, "dismiss": {"1"}},
	} {
		want, _, _ := strings.Cut(name, " ")
		if status, page := s.post(s.of("/answer/q1"), form); fmt.Sprint(status) != want || !strings.Contains(page, `role="alert"`) {
			t.Errorf("%s: %d\n%s", name, status, page)
		}
	}
	again := edit("q1")
	again.Display.Title = "edit b.txt"
	s.add(again)
	if status, _ := s.post(s.of("/answer/q1"), url.Values{"option": {"approve"}, "shown": {digest}}); status != 409 {
		t.Errorf("an answer to what was not shown: %d", status)
	}
	if s.done() != "" {
		t.Error(s.done())
	}
}

// TestEachFileOfACardIsDecided by itself.
func TestEachFileOfACardIsDecided(t *testing.T) {
	s := newSite(t)
	card := event.InteractionRequested{Request: uip.Request{ID: "q1", TaskID: "t1", Kind: uip.KindComposite, Purpose: uip.PurposeConfirmRiskyAction, Options: edit("").Options}}
	card.Parts = []uip.Request{edit("p1").Request, edit("p2").Request}
	s.add(event.TaskCreated{TaskID: "t1", Title: "work"}, card)
	shown := s.digest()
	if status, _ := s.post(s.of("/answer/q1"), url.Values{"shown": {shown}, "part0": {"approve"}}); status != 400 {
		t.Errorf("half an answer: %d", status)
	}
	if status, page := s.post(s.of("/answer/q1"), url.Values{"shown": {shown}, "part0": {"approve"}, "part1": {"reject"}}); status != 303 {
		t.Errorf("%d:\n%s", status, page)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.answer.Parts; len(p) != 2 || p[0].Option != "approve" || p[1].Option != "reject" || p[1].ID != "p2" {
		t.Errorf("%+v", p)
	}
}

// TestSomeHunksOfAChange are taken: those that are ticked.
func TestSomeHunksOfAChange(t *testing.T) {
	s := newSite(t)
	q := edit("q1")
	q.Options = append(q.Options, uip.Option{ID: uip.OptionSome})
	q.Display.Metadata = map[string]string{uip.MetaHunks: "3"}
	q.Display.Content = display.NewDiff("--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+ONE\n@@ -9 +9 @@\n-two\n+TWO\n--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-three\n+THREE\n")
	s.add(event.TaskCreated{TaskID: "t1", Title: "work"}, q)
	_, page := s.get(s.of(""))
	for _, before := range []string{`value="1" checked=""> hunk 1</label><pre class="diff" tabindex="0"><span class="h">@@ -1 +1 @@`, `value="2" checked=""> hunk 2</label><pre class="diff" tabindex="0"><span class="h">@@ -9`, `value="3" checked=""> hunk 3</label><pre class="diff" tabindex="0"><span class="h">@@ -1`} {
		if !strings.Contains(page, before) {
			t.Errorf("%s is missing:\n%s", before, page)
		}
	}
	form := url.Values{"option": {"some"}, "shown": {s.digest()}}
	if status, page := s.post(s.of("/answer/q1"), form); status != 400 || s.done() != "" {
		t.Errorf("none of them: %d\n%s", status, page)
	}
	form["hunk"] = []string{"4"}
	if status, _ := s.post(s.of("/answer/q1"), form); status != 400 || s.done() != "" {
		t.Errorf("one that is none: %d", status)
	}
	form["hunk"] = []string{"1", "3"}
	if status, page := s.post(s.of("/answer/q1"), form); status != 303 {
		t.Errorf("%d\n%s", status, page)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answer.Option != uip.OptionSome || s.answer.Input != "1,3" {
		t.Errorf("%+v", s.answer)
	}
}

// TestWhatIsSaidAndStopped reaches the program.
func TestWhatIsSaidAndStopped(t *testing.T) {
	s := newSite(t)
	project := s.project()
	for _, p := range []struct {
		path string
		form url.Values
	}{
		{"/place/begin", url.Values{"project": {project}, "prompt": {"one\r\ntwo"}}}, {s.of("/say"), url.Values{"prompt": {"more"}}},
		{s.of("/stop"), url.Values{}}, {s.of("/release"), url.Values{}},
	} {
		if status, page := s.post(p.path, p.form); status != 303 {
			t.Errorf("%s: %d\n%s", p.path, status, page)
		}
	}
	if want := "begin " + root + ": one\ntwo, say more, stop, release"; s.done() != want {
		t.Errorf("%q, want %q", s.done(), want)
	}
	for _, p := range []struct {
		path   string
		form   url.Values
		status int
	}{
		{"/place/begin", url.Values{"project": {project}, "prompt": {" \n"}}, 400}, {"/place/begin", url.Values{"project": {"x"}, "prompt": {"a"}}, 404},
		{s.of("/say"), url.Values{}, 400},
	} {
		if status, page := s.post(p.path, p.form); status != p.status || !strings.Contains(page, `role="alert"`) {
			t.Errorf("%s: %d\n%s", p.path, status, page)
		}
	}
	s.fails = &browser.UserError{Status: 409, Text: "the session is used by process 7 and can only be stopped there"}
	if status, page := s.post(s.of("/stop"), url.Values{}); status != 409 || !strings.Contains(page, "process 7") {
		t.Errorf("%d\n%s", status, page)
	}
}

// TestEverybodySaysWhatTheySaid: what a command of the person's wrote is not the
// model's, that they stopped it is not their words, and a question that was stopped
// with its turn says so.
func TestEverybodySaysWhatTheySaid(t *testing.T) {
	s := newSite(t)
	output := said(chat.Assistant, "$ ls\na.txt")
	output.Blocks = display.Blocks{display.Shell{Command: "ls", HasRun: true, Stdout: "a.txt"}}
	s.add(event.TaskCreated{TaskID: "t1", Title: "work"}, said(chat.User, "!ls"), output, edit("q1"),
		event.ToolCallRequested{CallID: "v", Tool: "bash", Author: event.ActorVerifier, Input: []byte(`{}`), Verdict: event.VerdictAllowed},
		said(chat.User, event.InterruptionPrefix+"]"), event.TaskCanceled{TaskID: "t1", Reason: "why"})
	for _, path := range []string{"", "/replay"} {
		_, page := s.get(s.of(path))
		for _, want := range []string{"<h3>Command", "a.txt", "(none: stopped first)", "Check of the edits"} {
			if !strings.Contains(page, want) {
				t.Errorf("%s lacks %q:\n%s", path, want, page)
			}
		}
		if strings.Contains(page, "The model <") || strings.Contains(page, "Request interrupted") {
			t.Errorf("%s:\n%s", path, page)
		}
	}
}

// TestWhatNoTurnSpentCounts, as that of /compact.
func TestWhatNoTurnSpentCounts(t *testing.T) {
	s := newSite(t)
	reply := said(chat.Assistant, "done")
	reply.Model, reply.Usage = "m", &chat.Usage{In: 1, Out: 10}
	s.add(event.Spent{Model: "m", Usage: chat.Usage{In: 2, Out: 20}, Reason: event.UsageForSummary}, event.TaskCreated{TaskID: "t1", Title: "work"}, reply)
	if _, page := s.get(s.of("/cost")); !strings.Contains(page, "3 tokens in, 30 out") {
		t.Errorf("another sum:\n%s", page)
	}
}

// TestADamagedLog is shown as far as it goes, and told of.
func TestADamagedLog(t *testing.T) {
	s := newSite(t)
	s.add(event.TaskCreated{TaskID: "t1", Title: "work"}, said(chat.User, "what was said"))
	s.mu.Lock()
	s.broken = errors.New("events log is damaged at byte 7")
	s.mu.Unlock()
	for path, want := range map[string]string{"": "what was said", "/audit": "The record is not intact.", "/replay": "what was said", "/cost": "work"} {
		if status, page := s.get(s.of(path)); status != 200 || !strings.Contains(page, want) || !strings.Contains(page, "damaged at byte 7") {
			t.Errorf("%s: %d\n%s", path, status, page)
		}
	}
	if text := s.listen(0, 0, "lost"); !strings.Contains(text, "damaged at byte 7") {
		t.Error(text)
	}
}

// TestASessionThatVanishes is told of, on open pages and new ones.
func TestASessionThatVanishes(t *testing.T) {
	s := newSite(t)
	s.add(event.TaskCreated{TaskID: "t1", Title: "work"})
	of := s.of
	path, stop := of(""), of("/stop")
	open := s.stream(1)
	s.mu.Lock()
	s.gone = true
	s.mu.Unlock()
	open.until("The session was removed.")
	if status, page := s.get(path); status != 404 || !strings.Contains(page, "may have been removed") {
		t.Errorf("%d\n%s", status, page)
	}
	if status, _ := s.post(stop, url.Values{}); status != 404 || s.done() != "" {
		t.Errorf("%d %s", status, s.done())
	}
}

// TestLandmarksAndLanguages: a screen reader finds its way, in both languages.
func TestLandmarksAndLanguages(t *testing.T) {
	s := newSite(t)
	s.add(event.TaskCreated{TaskID: "t1", Title: "work"}, event.TodosChanged{Todos: []event.Todo{{Content: "one", Status: event.TodoCompleted}, {Content: "two"}}}, edit("q1"))
	_, page := s.get(s.of(""))
	for _, want := range []string{"<header>", "<main ", "<footer>", "<nav aria-label=", `role="search"`, `<aside id="state" aria-label=`, `role="log"`, `aria-live="assertive"`, `href="#main"`, `lang="en"`, "Todos, 1 of 2 done", `aria-current="page"`} {
		if !strings.Contains(page, want) {
			t.Errorf("%s is missing:\n%s", want, page)
		}
	}
	r := s.request("GET", s.of(""), nil)
	r.AddCookie(&http.Cookie{Name: "lang", Value: "zh-CN"})
	r.AddCookie(&http.Cookie{Name: "theme", Value: "dark"})
	_, page, _ = s.do(r)
	for _, want := range []string{`lang="zh-CN"`, `data-theme="dark"`, "时间线", "仅此一次，同意", "待办，已完成 1 / 2"} {
		if !strings.Contains(page, want) {
			t.Errorf("%s is missing:\n%s", want, page)
		}
	}
}
