package browser_test

import (
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/uip"
)

// TestAttacks: each is refused with a page that says so, and nothing is done.
func TestAttacks(t *testing.T) {
	s := newSite(t)
	s.add(event.TaskCreated{TaskID: "t1", Title: "work"}, edit("q1"))
	stop, answer, mode := s.of("/stop"), s.of("/answer/q1"), s.of("/mode")
	good := url.Values{"form": {key.Form}, "option": {"approve"}, "shown": {s.digest()}, "prompt": {"x"}}
	with := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	host := func(name string) func(*http.Request) {
		return func(r *http.Request) {
			r.Host = strings.ReplaceAll(name, "PORT", r.URL.Port())
			r.Header.Set("Origin", "http://"+r.Host)
		}
	}
	none := func(*http.Request) {}
	for _, a := range []struct {
		name, method, path string
		form               url.Values
		change             func(*http.Request)
		status             int
	}{
		{"no cookie", "GET", "/place/", nil, func(r *http.Request) { r.Header.Del("Cookie") }, 403},
		{"a wrong cookie", "GET", "/place/", nil, with("Cookie", "coder-place=other"), 403},
		{"the cookie of another run", "GET", "/place/", nil, with("Cookie", "coder-other="+key.Cookie), 403},
		{"the token as a cookie", "GET", "/place/", nil, with("Cookie", "coder-place="+key.Token), 403},
		{"a wrong token", "GET", "/place/?token=guess", nil, none, 403},
		{"an empty token", "GET", "/place/?token=", nil, none, 403},
		{"two tokens", "GET", "/place/?token=guess&token=" + key.Token, nil, none, 403},
		{"a token in a form", "POST", "/place/?token=" + key.Token, good, none, 403},
		{"a query that is none", "GET", "/place/?%zz", nil, none, 400},

		{"CSRF: a form of a foreign origin", "POST", stop, good, with("Origin", "https://evil.example"), 403},
		{"CSRF: a form of a sandboxed page", "POST", stop, good, with("Origin", "null"), 403},
		{"CSRF: no origin", "POST", stop, good, func(r *http.Request) { r.Header.Del("Origin") }, 403},
		{"CSRF: two origins", "POST", stop, good, func(r *http.Request) { r.Header.Add("Origin", "https://evil.example") }, 403},
		{"CSRF: another port of this machine", "POST", stop, good, with("Origin", "http://127.0.0.1:1"), 403},
		{"CSRF: another scheme", "POST", stop, good, with("Origin", strings.Replace(s.URL, "http:", "https:", 1)), 403},
		{"CSRF: an origin that begins like ours", "POST", stop, good, with("Origin", s.URL+".evil.example"), 403},
		{"CSRF: the browser says cross-site", "POST", stop, good, with("Sec-Fetch-Site", "cross-site"), 403},
		{"CSRF: the browser says same-site", "POST", answer, good, with("Sec-Fetch-Site", "same-site"), 403},
		{"CSRF: a mode", "POST", mode, url.Values{"form": {key.Form}, "mode": {"plan"}}, with("Origin", "https://evil.example"), 403},
		{"CSRF: files brought back", "POST", s.of("/restore"), url.Values{"at": {"1"}, "sure": {"yes"}}, none, 403},
		{"CSRF: a fork", "POST", s.of("/fork"), url.Values{"form": {"guess"}, "at": {"1"}, "sure": {"yes"}}, none, 403},
		{"CSRF: a fork from elsewhere", "POST", s.of("/fork"), url.Values{"form": {key.Form}, "at": {"1"}, "sure": {"yes"}}, with("Origin", "https://evil.example"), 403},
		{"a fork by address alone", "GET", s.of("/fork?at=1&sure=yes&form=" + key.Form), nil, none, 404},
		{"CSRF: an answer to a fleet", "POST", "/place/fleet/answer/ui_1", good, with("Origin", "https://evil.example"), 403},
		{"CSRF: the end of a task of a fleet", "POST", "/place/fleet/cancel/task_1", url.Values{}, none, 403},
		{"a fleet without the cookie", "GET", "/place/fleet", nil, func(r *http.Request) { r.Header.Del("Cookie") }, 403},
		{"CSRF: no word of our form", "POST", stop, url.Values{}, none, 403},
		{"CSRF: a wrong word of our form", "POST", answer, url.Values{"form": {"guess"}, "option": {"approve"}}, none, 403},
		{"CSRF: the word in the address", "POST", stop + "?form=" + key.Form, url.Values{}, none, 403},
		{"CSRF: plain text", "POST", stop, good, with("Content-Type", "text/plain"), 415},
		{"CSRF: JSON", "POST", answer, good, with("Content-Type", "application/json"), 415},
		{"CSRF: a form in parts", "POST", answer, good, with("Content-Type", "multipart/form-data; boundary=x"), 415},
		{"CSRF: by address alone", "GET", answer + "?option=approve&form=" + key.Form, nil, none, 404},
		{"a form that is too long", "POST", s.of("/say"), url.Values{"form": {key.Form}, "prompt": {strings.Repeat("x", 5<<20)}}, none, 413},

		{"rebinding: a foreign name", "GET", "/place/", nil, host("evil.example:PORT"), 421},
		{"rebinding: a foreign name for a form", "POST", stop, good, host("evil.example:PORT"), 421},
		{"rebinding: a name that ends like ours", "GET", "/place/", nil, host("evil.localhost:PORT"), 421},
		{"rebinding: a name that begins like ours", "GET", "/place/", nil, host("127.0.0.1.evil.example:PORT"), 421},
		{"rebinding: localhost with a dot", "GET", "/place/", nil, host("localhost.:PORT"), 421},
		{"rebinding: another address of this machine", "GET", "/place/", nil, host("127.0.0.2:PORT"), 421},
		{"rebinding: another port", "GET", "/place/", nil, host("127.0.0.1:1"), 421},
		{"rebinding: no port", "GET", "/place/", nil, host("127.0.0.1"), 421},
		{"rebinding: an address written as a number", "GET", "/place/", nil, host("2130706433:PORT"), 421},

		{"a foreign page reads", "GET", s.of(""), nil, with("Origin", "https://evil.example"), 403},
		{"a foreign page frames", "GET", s.of(""), nil, func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Mode", "navigate")
			r.Header.Set("Sec-Fetch-Dest", "iframe")
		}, 403},
		{"a foreign page has it as a script", "GET", s.of("/events?after=0"), nil, func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "same-site")
			r.Header.Set("Sec-Fetch-Mode", "no-cors")
			r.Header.Set("Sec-Fetch-Dest", "script")
		}, 403},

		{"path: outside the place", "GET", "/", nil, none, 404},
		{"path: beside the place", "GET", "/placebo/", nil, none, 404},
		{"path: another place", "GET", "/other/", nil, none, 404},
		{"path: upwards", "GET", "/place/../etc/passwd", nil, none, 404},
		{"path: upwards within", "GET", "/place/s/../../etc/passwd", nil, none, 404},
		{"path: upwards, written otherwise", "GET", "/place/s/%2e%2e/%2e%2e/etc/passwd", nil, none, 404},
		{"path: a session upwards", "GET", strings.Replace(s.of(""), id, "..%2f..%2fs1", 1), nil, none, 404},
		{"path: a session that is a dot", "GET", strings.TrimSuffix(s.of(""), id) + ".", nil, none, 404},
		{"path: a session with a zero byte", "GET", s.of("") + "%00", nil, none, 404},
		{"path: a session with a backslash", "GET", s.of("") + "%5c..%5cs1", nil, none, 404},
		{"path: two slashes", "GET", "//place/", nil, none, 404},
		{"path: two slashes within", "GET", "/place//s/" + s.project() + "/s1", nil, none, 404},
		{"path: an unknown project", "GET", "/place/s/0000000000000000/s1", nil, none, 404},
		{"path: a project by its folder", "GET", "/place/s/" + url.PathEscape(root) + "/s1", nil, none, 404},
		{"path: an unknown session", "GET", s.of("x"), nil, none, 404},
		{"path: an unknown page", "GET", s.of("/secrets"), nil, none, 404},
		{"path: an unknown question", "POST", s.of("/answer/q2"), good, none, 404},
		{"path: a record that is no number", "GET", s.of("/record/1e3"), nil, none, 400},
		{"path: a record that is none", "GET", s.of("/record/99"), nil, none, 404},
		{"path: a record below none", "GET", s.of("/replay?at=-1"), nil, none, 400},
		{"path: a record far beyond", "GET", s.of("/replay?at=18446744073709551616"), nil, none, 400},
		{"path: events from nowhere", "GET", s.of("/events"), nil, none, 400},

		{"method: PUT", "PUT", s.of(""), nil, none, 405},
		{"method: DELETE", "DELETE", s.of(""), nil, none, 405},
		{"method: OPTIONS", "OPTIONS", stop, nil, none, 405},
		{"method: PATCH", "PATCH", answer, nil, none, 405},
	} {
		t.Run(a.name, func(t *testing.T) {
			r := s.request(a.method, a.path, a.form)
			a.change(r)
			status, page, head := s.do(r)
			if status != a.status || !strings.Contains(page, `role="alert"`) {
				t.Errorf("status %d, want %d:\n%s", status, a.status, page)
			}
			if head.Get("Set-Cookie") != "" || head.Get("Access-Control-Allow-Origin") != "" || head.Get("Location") != "" {
				t.Errorf("it was given %v", head)
			}
			if outside := a.status == 421 || a.status == 405 || strings.Contains(a.name, "cookie") || strings.HasPrefix(a.path, "/other") || a.path == "/"; outside && strings.Contains(page, "/place") {
				t.Errorf("it was told where the pages are:\n%s", page)
			}
			if done := s.done(); done != "" {
				t.Fatalf("it was done: %s", done)
			}
		})
	}
}

// TestTheTokenBecomesACookie that scripts cannot read and other sites cannot send,
// and is gone from the address.
func TestTheTokenBecomesACookie(t *testing.T) {
	s := newSite(t)
	r := s.request("GET", "/place/?token="+key.Token, nil)
	r.Header.Del("Cookie")
	status, _, head := s.do(r)
	const want = "coder-place=the-cookie; Path=/place/; HttpOnly; SameSite=Strict"
	if status != 303 || head.Get("Location") != "/place/" || head.Get("Set-Cookie") != want {
		t.Errorf("%d %v", status, head)
	}
	if status, page := s.get("/place/"); status != 200 || strings.Contains(page, key.Token) || strings.Contains(page, key.Cookie) {
		t.Errorf("%d:\n%s", status, page)
	}
}

// TestEveryAnswerIsGuarded: pages, refusals, styles and streams alike.
func TestEveryAnswerIsGuarded(t *testing.T) {
	s := newSite(t)
	for _, path := range []string{"/", "/place/", "/place/style.css", "/place/page.js", "/place/nothing", "/place/?token=" + key.Token, "/place/?token=no"} {
		_, _, head := s.do(s.request("GET", path, nil))
		policy := head.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: %s is missing in %s", path, want, policy)
			}
		}
		if strings.Contains(policy, "unsafe") || head.Get("Cache-Control") != "no-store" || head.Get("X-Content-Type-Options") != "nosniff" || head.Get("Referrer-Policy") != "same-origin" {
			t.Errorf("%s: %v", path, head)
		}
	}
}

// TestAChoiceLeadsBackHere and nowhere else.
func TestAChoiceLeadsBackHere(t *testing.T) {
	s := newSite(t)
	for back, want := range map[string]string{
		"/place/search?q=a": "/place/search?q=a", "//evil.example/": "/place/", "https://evil.example": "/place/", "/place": "/place/",
		"/place/\r\nSet-Cookie: a=b": "/place/", "/\\evil.example": "/place/", "": "/place/",
	} {
		_, _, head := s.do(s.request("POST", "/place/look", url.Values{"form": {key.Form}, "lang": {"zh-CN"}, "theme": {"dark"}, "back": {back}}))
		if head.Get("Location") != want {
			t.Errorf("%q leads to %q", back, head.Get("Location"))
		}
		if cookies := strings.Join(head.Values("Set-Cookie"), "; "); !strings.Contains(cookies, "lang=zh-CN") || !strings.Contains(cookies, "theme=dark") {
			t.Error(cookies)
		}
	}
	_, _, head := s.do(s.request("POST", "/place/look", url.Values{"form": {key.Form}, "lang": {"xx"}, "theme": {"\" onload=x"}}))
	if head.Get("Set-Cookie") != "" {
		t.Errorf("anything is chosen: %v", head)
	}
}

const poison = `</textarea></title></script><script>alert(1)</script><img src=x onerror=alert(1)>" onfocus="alert(1)' x='` + "`\u202e[l](javascript:alert(1))\r\nid: 99\r\nevent: gone\r\n"

// poisoned fills every text in v.
func poisoned(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() && v.String() == "" {
			v.SetString(poison)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				poisoned(v.Field(i), depth)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(`{"` + strings.NewReplacer("\"", `\"`, "\r\n", `\n`).Replace(poison) + `":"` + strings.NewReplacer("\"", `\"`, "\r\n", `\n`).Replace(poison) + `"}`))
		} else if v.CanSet() && depth > 0 && v.Len() == 0 && v.Type().Elem().Kind() != reflect.Interface {
			one := reflect.New(v.Type().Elem()).Elem()
			poisoned(one, depth-1)
			v.Set(reflect.Append(v, one))
		}
	case reflect.Map:
		if v.CanSet() && v.Type().Elem().Kind() == reflect.String {
			v.Set(reflect.MakeMap(v.Type()))
			for _, name := range []string{"remembers", "remembers.session", "label" + poison, "toolCallId"} {
				v.SetMapIndex(reflect.ValueOf(name), reflect.ValueOf(poison))
			}
		}
	}
}

// TestScriptInEveryField: whatever a record holds, in whatever field, is text on
// every page and in the stream.
func TestScriptInEveryField(t *testing.T) {
	s := newSite(t)
	blocks := display.Blocks{
		display.Text(poison), display.Code{Source: poison, Lang: poison}, display.NewDiff("--- a/" + poison + "\n+++ b/x\n@@ -1 +1 @@\n-" + poison),
		display.Table{Header: display.TextCells(poison), Rows: [][]display.Cell{display.DataCells(poison)}}, display.Checklist{{State: display.State(poison), Text: poison}}, display.Shell{Command: poison, HasRun: true, Stdout: poison},
	}
	message := chat.Message{Role: chat.Assistant, Parts: []chat.Part{chat.Text(poison), chat.Reasoning{Text: poison}, chat.ToolCall{ID: poison, Name: poison}}}
	for _, e := range []event.Event{
		&event.TaskCreated{}, &event.TaskFailed{TaskID: "other"}, &event.TaskCanceled{TaskID: "other"}, &event.ToolCallRequested{}, &event.ToolCallCompleted{},
		&event.MessageAdded{Message: message}, &event.LocalAdded{Blocks: blocks}, &event.TodosChanged{}, &event.ModeChanged{}, &event.ContextReplaced{}, &event.Spent{}, &event.Unknown{Log: event.LogDomain},
		&event.InteractionResponded{Response: uip.Response{ID: "another"}},
		&event.InteractionRequested{Request: uip.Request{ID: "q1", Kind: uip.KindConfirm, Purpose: uip.PurposeConfirmRiskyAction, Display: uip.Display{Content: blocks[2]}}},
		&event.InteractionRequested{Request: uip.Request{ID: "q2", Kind: uip.KindComposite, Purpose: uip.PurposeRequestInfo, Display: uip.Display{Content: blocks[0]}}},
		&event.InteractionRequested{Request: uip.Request{ID: "q3", Kind: uip.KindSelect, Display: uip.Display{Content: blocks[3]}}},
	} {
		v := reflect.ValueOf(e).Elem()
		poisoned(v, 3)
		s.add(v.Interface().(event.Event))
	}
	user := said(chat.User, poison)
	s.add(user)
	pages := map[string]string{"the stream": s.listen(0, s.last, "")}
	for _, path := range []string{
		"/place/", "/place/search?q=" + url.QueryEscape(poison), s.of(""), s.of("?at=1"), s.of("/record/1"), s.of("/record/4"), s.of("/record/6"), s.of("/record/14"),
		s.of("/changes"), s.of("/window"), s.of("/cost"), s.of("/replay?at=3"), s.of("/audit"), s.of("/replay?at=" + url.QueryEscape(poison)),
	} {
		_, pages[path] = s.get(path)
	}
	for path, page := range pages {
		text := strings.ToLower(page)
		if !strings.Contains(text, "alert(1)") && !strings.Contains(path, "/changes") && !strings.Contains(path, "/window") && !strings.Contains(path, "at=%3C") && path != "/place/" {
			t.Errorf("%s does not show it:\n%s", path, page)
		}
		bad := []string{"<script>", "<img", `" onfocus=`, `href="javascript:`, "\u202e"}
		if path == "the stream" {
			bad = append(bad, "\nevent: gone", "\nid: 99", "\r")
		}
		for _, bad := range bad {
			if at := strings.Index(text, bad); at >= 0 {
				t.Errorf("%s: %q got out:\n%s", path, bad, page[max(0, at-300):min(len(page), at+100)])
			}
		}
		if n := strings.Count(text, "<script "); n > 1 {
			t.Errorf("%s: %d scripts", path, n)
		}
		if strings.Contains(text, "http://") || strings.Contains(text, "https://") {
			t.Errorf("%s names an address elsewhere", path)
		}
	}
}
