package web_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"coder/internal/tool/web"
)

func TestOnlyPublicAddresses(t *testing.T) {
	n := newInternet(t)
	for name, addresses := range map[string][]string{
		"inside.example":  {"10.0.0.7"},
		"meta.example":    {"169.254.169.254"},
		"mixed.example":   {"93.184.216.34", "192.168.0.1"},
		"mapped.example":  {"::ffff:127.0.0.1"},
		"nat.example":     {"64:ff9b::a00:1"},
		"six.example":     {"fd00::1"},
		"127.1":           {"127.0.0.1"}, // as some resolvers read it
		"2130706433":      {"127.0.0.1"},
		"good.com.evil":   {"127.0.0.1"},
		"localhost.evil":  {"127.0.0.1"},
		"0x7f.0.0.1":      {"127.0.0.1"},
		"xn--1xa.example": {"0.0.0.0"},
	} {
		n.hosts[name] = addresses
	}
	o := n.options()
	o.AllowHosts = []string{"good.com", "localhost:1"}
	hosts := []string{"127.0.0.1", "[::1]", "[::ffff:10.0.0.1]", "169.254.169.254", "0.0.0.0", "localhost", "LOCALHOST.", "x.localhost", "[fe80::1%25eth0]", "192.168.1.1:8080", "１２７.0.0.1"}
	for name := range n.hosts {
		hosts = append(hosts, name)
	}
	for _, host := range hosts {
		if v, err := fetch(t, o, get("http://"+host+"/")); !errors.Is(err, web.ErrAddress) && err == nil {
			t.Errorf("%s: %+v %v", host, v, err)
		} else if !errors.Is(err, web.ErrAddress) {
			t.Errorf("%s: refused for another reason: %v", host, err)
		}
	}
	if len(n.reached) > 0 {
		t.Errorf("reached %v", n.reached)
	}
}

func TestRedirectsAreCheckedLikeRequests(t *testing.T) {
	n := newInternet(t)
	n.hosts["inside.example"] = []string{"10.0.0.7"}
	n.serve("site.example", "93.184.216.34", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", r.URL.Query().Get("to"))
		w.WriteHeader(http.StatusFound)
	})
	for _, to := range []string{
		"http://127.0.0.1/", "http://169.254.169.254/latest/meta-data", "http://inside.example/", "//10.0.0.7/x", "http://localhost:8080/", "http://[::1]/",
		"file:///etc/passwd", "ftp://site.example/", "javascript:alert(1)", "http://good.com@site.example/", "http://x:y@127.0.0.1/", "http:///", "http://%zz/", "gopher://site.example",
	} {
		if v, err := fetch(t, n.options(), get("http://site.example/?to="+url.QueryEscape(to))); err == nil && (v.OK || v.RedirectTo != "http://inside.example/") {
			t.Errorf("%s: %+v", to, v)
		}
	}
	for _, at := range n.reached {
		if at != "93.184.216.34:80" {
			t.Errorf("reached %s", at)
		}
	}
	if _, err := fetch(t, n.options(), get("http://site.example/?to=http://site.example/"+url.QueryEscape("?to=http://127.0.0.1/"))); !errors.Is(err, web.ErrAddress) {
		t.Errorf("on the second hop: %v", err)
	}
}

func TestANameThatChangesItsMeaning(t *testing.T) {
	n := newInternet(t)
	n.serve("site.example", "93.184.216.34", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/again", http.StatusFound) })
	n.servers["127.0.0.1:80"] = n.servers["93.184.216.34:80"]
	n.hosts["site.example"] = []string{"then", "93.184.216.34", "127.0.0.1"}
	if v, err := fetch(t, n.options(), get("http://site.example/")); !errors.Is(err, web.ErrAddress) {
		t.Errorf("%+v %v", v, err)
	}
	if !slices.Equal(n.reached, []string{"93.184.216.34:80"}) {
		t.Errorf("reached %v", n.reached)
	}
}

func TestAllowances(t *testing.T) {
	n := newInternet(t)
	s := n.serve("inside.example", "10.0.0.7", page("text/plain", "inside"))
	allow := n.options()
	allow.AllowPrivate = true
	some := n.options()
	some.AllowHosts = []string{"inside.example"}
	for _, o := range []web.Options{allow, some} {
		if v := must(t, o, get("http://inside.example/")); v.Content != "inside" {
			t.Errorf("%+v", v)
		}
	}
	// The same over the network that there really is.
	if _, err := fetch(t, web.Options{}, get(s.URL)); !errors.Is(err, web.ErrAddress) {
		t.Errorf("loopback: %v", err)
	}
	for _, o := range []web.Options{{AllowPrivate: true}, {AllowHosts: []string{s.Listener.Addr().String()}}} {
		if v := must(t, o, get(s.URL)); v.Content != "inside" {
			t.Errorf("%+v", v)
		}
	}
}

func TestTheNextAddressIsTried(t *testing.T) {
	n := newInternet(t)
	n.serve("site.example", "93.184.216.34", page("text/plain", "ok"))
	n.hosts["site.example"] = []string{"2606:4700::1", "93.184.216.34"}
	if v := must(t, n.options(), get("http://site.example/")); v.Content != "ok" {
		t.Errorf("%+v", v)
	}
	n.hosts["site.example"] = []string{"8.8.8.8", "2606:4700::1"}
	if _, err := fetch(t, n.options(), get("http://site.example/")); err == nil || !strings.Contains(err.Error(), "8.8.8.8:80") || !strings.Contains(err.Error(), "[2606:4700::1]:80") {
		t.Errorf("%v", err)
	}
	if _, err := fetch(t, n.options(), get("http://nowhere.example/")); err == nil || !strings.Contains(err.Error(), "no such host") {
		t.Errorf("%v", err)
	}
}

// TestRedirects: what the caller added stays with the host it was meant for.
func TestRedirects(t *testing.T) {
	n := newInternet(t)
	echo := func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			status := http.StatusFound
			fmt.Sscan(r.URL.Query().Get("status"), &status)
			w.Header().Set("Location", to)
			w.WriteHeader(status)
			return
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s auth=%s cookie=%s key=%s type=%s body=%s", r.Method, r.Host, r.Header.Get("Authorization"), r.Header.Get("Cookie"), r.Header.Get("X-Api-Key"), r.Header.Get("Content-Type"), body)
	}
	n.serve("a.example", "93.184.216.34", echo)
	n.serve("b.example", "93.184.216.35", echo)
	n.servers["93.184.216.34:81"] = n.servers["93.184.216.34:80"]
	n.hosts["www.a.example"] = n.hosts["a.example"]
	o := n.options()
	o.AllowHosts = []string{"b.example", "a.example:81"}
	const secrets = `"headers":{"Authorization":"A","Cookie":"C","x-api-key":"K"}`
	for _, tc := range []struct{ name, to, more, want, fails string }{
		{"same host", "/y", secrets, "GET a.example auth=A cookie=C key=K type= body=", ""},
		{"another host", "http://b.example/y", secrets, "GET b.example auth= cookie= key= type= body=", ""},
		{"another port", "http://a.example:81/y", secrets, "GET a.example:81 auth= cookie= key= type= body=", ""},
		{"www before it", "http://www.a.example/y", secrets, "GET www.a.example auth= cookie= key= type= body=", ""},
		{"www, a form again", "http://www.a.example/y&status=308", `"method":"POST","body":"B"`, "", "meant for another host"},
		{"back again", "http://b.example/?to=http://a.example/y", secrets, "GET a.example auth= cookie= key= type= body=", ""},
		{"a form", "/y", `"method":"POST","body":"B","headers":{"content-type":"t/t","x-api-key":"K"}`, "GET a.example auth= cookie= key=K type= body=", ""},
		{"a form, again", "/y&status=307", `"method":"POST","body":"B","headers":{"content-type":"t/t"}`, "POST a.example auth= cookie= key= type=t/t body=B", ""},
		{"a form, to another host", "http://b.example/y", `"method":"POST","body":"B","auth":"A"`, "GET b.example auth= cookie= key= type= body=", ""},
		{"a form, again, to another host", "http://b.example/y&status=308", `"method":"POST","body":"B"`, "", "meant for another host"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n.reached = nil
			v, err := fetch(t, o, fmt.Sprintf(`{"url":"http://a.example/?to=%s",%s}`, tc.to, tc.more))
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) || slices.Contains(n.reached, "93.184.216.35:80") {
					t.Errorf("%+v %v, reached %v", v, err, n.reached)
				}
				return
			}
			if err != nil || v.Content != tc.want || len(v.Redirects) == 0 || v.URL != v.Redirects[len(v.Redirects)-1] {
				t.Errorf("%+v %v\nwant %s", v, err, tc.want)
			}
			if other := strings.HasPrefix(tc.want, "GET b."); other != strings.Contains(v.Note, "another host, b.example") {
				t.Errorf("note %q", v.Note)
			}
		})
	}
}

// A redirect to a host that nobody was asked about is told, not followed.
func TestRedirectsToAnotherHostAreNotFollowed(t *testing.T) {
	n := newInternet(t)
	to, status := "", http.StatusFound
	n.serve("a.example", "93.184.216.34", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/here" {
			page("text/plain", "here")(w, r)
			return
		}
		w.Header().Set("Location", to)
		w.WriteHeader(status)
	})
	n.serve("b.example", "93.184.216.35", page("text/plain", "there"))
	n.hosts["www.a.example"], n.hosts["sub.a.example"], n.hosts["a.example.evil"] = n.hosts["a.example"], n.hosts["b.example"], n.hosts["b.example"]
	n.servers["93.184.216.34:81"] = n.servers["93.184.216.35:80"]
	private, listed, allowed := n.options(), n.options(), n.options()
	allowed.IsApproved = func(address string) bool { return strings.HasPrefix(address, "http://b.example/") }
	private.AllowPrivate = true
	listed.AllowHosts = []string{"*.example"}
	for _, tc := range []struct {
		name, url, to string
		status        int
		o             web.Options
		content       string // "" if it stops
	}{
		{"same host", "http://a.example/", "/here", 302, n.options(), "here"},
		{"same host, other case", "http://a.example/", "http://A.EXAMPLE/here", 301, n.options(), "here"},
		{"www comes", "http://a.example/", "http://www.a.example/here", 302, n.options(), "here"},
		{"www goes", "http://www.a.example/", "http://a.example/here", 302, n.options(), "here"},
		{"another host", "http://a.example/", "http://b.example/here", 302, n.options(), ""},
		{"another host, for good", "http://a.example/", "http://b.example/here", 308, n.options(), ""},
		{"another host, without a scheme", "http://a.example/", "//b.example/here", 302, n.options(), ""},
		{"a host below", "http://a.example/", "http://sub.a.example/here", 302, n.options(), ""},
		{"a host that looks like it", "http://a.example/", "http://a.example.evil/here", 302, n.options(), ""},
		{"another port", "http://a.example/", "http://a.example:81/here", 302, n.options(), ""},
		{"private addresses allowed, which is something else", "http://a.example/", "http://b.example/here", 302, private, ""},
		{"a host the user named", "http://a.example/", "http://b.example/here", 302, listed, "there"},
		{"a host that was allowed", "http://a.example/", "http://b.example/here", 302, allowed, "there"},
		{"one that was not", "http://a.example/", "http://sub.a.example/here", 302, allowed, ""},
		{"an address that carries data to one that was", "http://a.example/", "http://b.example/?" + strings.Repeat("x", 129), 302, allowed, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n.reached, to, status = nil, tc.to, tc.status
			v := must(t, tc.o, get(tc.url))
			if tc.content != "" {
				if !v.OK || v.Content != tc.content || v.RedirectTo != "" {
					t.Errorf("%+v", v)
				}
				return
			}
			want, _ := url.Parse(tc.url)
			want, _ = want.Parse(tc.to)
			if v.OK || v.Content != "" || v.RedirectTo != want.String() || v.Status != tc.status || v.URL != tc.url || !strings.Contains(v.Error, "another host") {
				t.Errorf("%+v", v)
			}
			if !slices.Equal(n.reached, []string{"93.184.216.34:80"}) {
				t.Errorf("reached %v", n.reached)
			}
			if len(tc.o.AllowHosts) == 0 && strings.Contains(tc.name, "another host, for good") { // asked for by name, it is fetched
				if again := must(t, tc.o, get(v.RedirectTo)); again.Content != "there" {
					t.Errorf("%+v", again)
				}
			}
		})
	}
	status, to = http.StatusFound, "https://a.example/here" // nobody listens there, but that is where it goes
	if v, err := fetch(t, n.options(), get("http://a.example/")); err == nil || !slices.Contains(n.reached, "93.184.216.34:443") {
		t.Errorf("now over TLS: %+v, %v, reached %v", v, err, n.reached)
	}
}

func TestRedirectsEnd(t *testing.T) {
	n := newInternet(t)
	requests := 0
	n.serve("site.example", "93.184.216.34", func(w http.ResponseWriter, r *http.Request) {
		requests++
		http.Redirect(w, r, "/", http.StatusFound)
	})
	if _, err := fetch(t, n.options(), get("http://site.example/")); err == nil || !strings.Contains(err.Error(), "more than 5 times") || requests != 6 {
		t.Errorf("%d requests, %v", requests, err)
	}
}

// TestProxy: a proxy would look names up itself, so they are checked before it
// is asked. It may itself be inside.
func TestProxy(t *testing.T) {
	n := newInternet(t)
	var asked []string
	n.serve("proxy.corp", "10.1.1.1", func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.String())
		if strings.HasSuffix(r.URL.Path, "/inside") {
			http.Redirect(w, r, "http://10.0.0.1/", http.StatusFound)
			return
		}
		page("text/plain", "through the proxy")(w, r)
	})
	n.hosts["site.example"] = []string{"93.184.216.34"}
	n.hosts["inside.example"] = []string{"10.0.0.1"}
	o := n.options()
	o.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse("http://proxy.corp:80") }
	if v := must(t, o, get("http://site.example/x")); v.Content != "through the proxy" {
		t.Errorf("%+v", v)
	}
	for _, address := range []string{"http://inside.example/", "http://127.0.0.1/", "http://site.example/inside"} {
		if v, err := fetch(t, o, get(address)); !errors.Is(err, web.ErrAddress) {
			t.Errorf("%s: %+v %v", address, v, err)
		}
	}
	if v, err := fetch(t, o, get("http://unknown.example/")); err == nil {
		t.Errorf("a host that cannot be checked: %+v", v)
	}
	if !slices.Equal(asked, []string{"http://site.example/x", "http://site.example/inside"}) {
		t.Errorf("the proxy was asked for %v", asked)
	}
}

// Whatever could carry data away is told before it is sent.
func TestWhatAFetchSendsAlong(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{`{"url":"https://x.org/a?b=c"}`, ""},
		{`{"url":"https://x.org/a/0123456789abcdef0123456789abcdef01234567/some-long-title-of-a-page-with-many-words-in-it-as-people-write-them"}`, ""},
		{`{"url":"https://x.org/blob/e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}`, ""},
		{`{"url":"https://x.org/","method":"POST"}`, "a POST request"},
		{`{"url":"https://x.org/","method":"POST","body":"abc"}`, "a POST request, a body of 3 bytes"},
		{`{"url":"https://x.org/","headers":{"X-A":"b"}}`, "custom headers"},
		{`{"url":"https://x.org/","auth":"Bearer x"}`, "custom headers"},
		{`{"url":"https://x.org/?q=` + strings.Repeat("a", 130) + `"}`, "a query of 132 bytes"},
		{`{"url":"https://x.org/` + strings.Repeat("QUJD", 20) + `"}`, "a path of 81 bytes"},
		{`{"url":"https://x.org/` + strings.Repeat("ab%20", 20) + `"}`, "a path of 101 bytes"},
		{`{"url":"https://x.org/` + strings.Repeat("ab/", 90) + `"}`, "a path of 271 bytes"},
	} {
		c, err := web.Fetch(web.Options{}).Prepare(t.Context(), []byte(tt.args))
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Plan().Sends; got != tt.want {
			t.Errorf("%s: sends %q, want %q", tt.args, got, tt.want)
		}
	}
}

// However an address is written in which a redirect leads elsewhere, nobody else
// is reached: not by another scheme, a name before the host, odd separators, a
// chain through a host that is allowed, or other ways to write an address.
func TestRedirectsInDisguiseReachNobodyElse(t *testing.T) {
	n := newInternet(t)
	var to []string
	hop := func(w http.ResponseWriter, _ *http.Request) {
		if len(to) == 0 {
			return
		}
		next := to[0]
		to = to[1:]
		w.Header()["Location"] = []string{next}
		w.WriteHeader(http.StatusFound)
	}
	n.serve("a.example", "93.184.216.34", hop)
	n.serve("ok.example", "93.184.216.36", hop)
	n.serve("b.example", "93.184.216.35", page("text/plain", "there"))
	n.hosts["a.example.b.example"], n.hosts["xn--a-0da.example"] = n.hosts["b.example"], n.hosts["b.example"]
	n.hosts["inside.example"], n.hosts["turns.example"] = []string{"10.0.0.7"}, []string{"::ffff:169.254.169.254"}
	o := n.options()
	o.IsApproved = func(address string) bool { return strings.HasPrefix(address, "http://ok.example/") }
	for _, chain := range [][]string{
		{"file:///etc/passwd"}, {"gopher://a.example/"}, {"ftp://a.example/"}, {"javascript:alert(1)"}, {"data:text/plain,x"}, {"unix:///var/run/docker.sock"}, {"HTTP+UNIX://a.example/"},
		{"http://a.example@b.example/"}, {"http://a.example:80@b.example/"}, {"http://a.example%40b.example/"}, {"http://b.example#@a.example/"}, {"http://b.example?@a.example/"},
		{`http://b.example\@a.example/`}, {`http:\\b.example/`}, {`/\b.example/`}, {`\\b.example/`}, {"///b.example/"}, {"http:///b.example/"}, {"http:b.example"}, {"\thttp://b.example/"}, {"http://b.exa\tmple/"},
		{"http://a.example.b.example/"}, {"http://b.example./"}, {"http://B.EXAMPLE/"}, {"http://b.example:80/"}, {"http://a\u3002example.b.example/"}, {"http://\u0430.example/"},
		{"http://127.0.0.1/"}, {"http://127.1/"}, {"http://2130706433/"}, {"http://0x7f000001/"}, {"http://0177.0.0.1/"}, {"http://[::1]/"}, {"http://[::ffff:7f00:1]/"}, {"http://[64:ff9b::7f00:1]/"}, {"http://[fe80::1%25lo]/"}, {"http://0/"},
		{"http://169.254.169.254/latest/"}, {"http://inside.example/"}, {"http://turns.example/"}, {"http://localhost/"}, {"http://metadata.google.internal/"},
		{"http://ok.example/", "http://b.example/"}, {"http://ok.example/", "http://127.0.0.1/"}, {"http://ok.example/", "http://ok.example/2", "//b.example/"}, {"http://ok.example/", "file:///etc/passwd"},
		{"http://user:pw@b.example/"}, {"http://user:pw@ok.example/", "http://b.example/"},
	} {
		n.reached, to = nil, chain
		v, err := fetch(t, o, get("http://a.example/"))
		for _, at := range n.reached {
			if at != "93.184.216.34:80" && at != "93.184.216.36:80" {
				t.Errorf("%q reached %s: %+v, %v", chain, at, v, err)
			}
		}
		if strings.Contains(v.Content, "there") || strings.Contains(v.Content, "root:") {
			t.Errorf("%q: %+v", chain, v)
		}
	}
}
