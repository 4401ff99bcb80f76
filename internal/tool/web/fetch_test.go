package web_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"coder/internal/core/display"
	"coder/internal/tool"
	"coder/internal/tool/web"
	"coder/testkit/tooltest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// internet is a small one: names have addresses, and what listens at an address
// is a server of the test. The tool's own checks are as they are outside.
type internet struct {
	t       *testing.T
	hosts   map[string][]string
	servers map[string]string // address and port to where the server really is

	mu      sync.Mutex // guards the fields below
	reached []string
	asked   map[string]int
}

func newInternet(t *testing.T) *internet {
	return &internet{t: t, hosts: map[string][]string{}, servers: map[string]string{}, asked: map[string]int{}}
}

// serve puts a server on the net under a name and a public address.
func (n *internet) serve(name, address string, h http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(h)
	n.t.Cleanup(s.Close)
	n.hosts[name] = []string{address}
	n.servers[address+":80"] = s.Listener.Addr().String()
	return s
}

func (n *internet) lookup(_ context.Context, host string) (list []netip.Addr, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked[host]++
	answers := n.hosts[strings.ToLower(host)]
	if len(answers) > 0 && answers[0] == "then" { // a name that changes its meaning
		answers = answers[min(n.asked[host], len(answers)-1):][:1]
	}
	for _, a := range answers {
		list = append(list, netip.MustParseAddr(a))
	}
	if list == nil {
		return nil, errors.New("no such host")
	}
	return list, nil
}

func (n *internet) connect(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	n.mu.Lock()
	n.reached = append(n.reached, to.String())
	at, ok := n.servers[to.String()]
	n.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("nobody listens at %v", to)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", at)
}

func (n *internet) options() web.Options {
	return web.Options{Lookup: n.lookup, Connect: n.connect}
}

type value struct {
	OK                bool
	URL, Error, Title string
	Status, Size      int
	ContentType       string `json:"content_type"`
	Content, Note     string
	Truncated         bool
	NextOffset        int `json:"next_offset"`
	Redirects         []string
	RedirectTo        string `json:"redirect_to"`
}

func fetch(t *testing.T, o web.Options, args string) (value, error) {
	t.Helper()
	call, err := web.Fetch(o).Prepare(t.Context(), json.RawMessage(args))
	if err != nil {
		return value{}, err
	}
	r, err := call.Run(t.Context(), io.Discard)
	if err != nil {
		return value{}, err
	}
	b, err := json.Marshal(r.Value)
	if err != nil {
		t.Fatal(err)
	}
	var v value
	if err := json.Unmarshal(b, &v); err != nil || v.OK == r.Failed || !utf8.Valid(b) {
		t.Errorf("result %s, failed %v, %v", b, r.Failed, err)
	}
	if strings.ContainsFunc(v.Content, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' }) {
		t.Errorf("content %.200q", v.Content)
	}
	return v, nil
}

func must(t *testing.T, o web.Options, args string) value {
	t.Helper()
	v, err := fetch(t, o, args)
	if err != nil {
		t.Fatalf("%s: %v", args, err)
	}
	return v
}

func get(url string) string { return fmt.Sprintf(`{"url":%q}`, url) }

// page answers every request with the same body.
func page(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		io.WriteString(w, body)
	}
}

func TestContract(t *testing.T) {
	tooltest.TestTool(t, func(t *testing.T) tooltest.Fixture {
		n := newInternet(t)
		n.serve("site.example", "93.184.216.34", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/gone" {
				http.NotFound(w, r)
				return
			}
			page("text/html", "<title>T</title><p>hello")(w, r)
		})
		return tooltest.Fixture{
			Tool: web.Fetch(n.options()), Dir: t.TempDir(),
			Good: []string{get("http://site.example/"), get("http://site.example/gone"), `{"uri":"http://site.example","method":"POST","body":"x","headers":{"X-A":"b"},"timeout":"5"}`},
			Bad: []string{
				get(""), get("site.example"), get("file:///etc/passwd"), get("ftp://x/"), get("javascript:alert(1)"), get("http://"), get("http:site.example"),
				get("http://good.com@site.example/"), get("http://a:b@site.example/"), get("http://site.example\\@evil"), get("http://x/" + strings.Repeat("x", 10_000)),
				`{"url":"http://x/","method":"PUT"}`, `{"url":"http://x/","body":"x"}`, `{"url":"http://x/","timeout_sec":-1}`, `{"url":"http://x/","format":"pdf"}`,
				`{"url":"http://x/","headers":{"Host":"y"}}`, `{"url":"http://x/","headers":{"X-A":"b\r\nHost: y"}}`, `{"url":"http://x/","headers":{"X A":"b"}}`,
				`{"url":"http://x/","headers":{"a":"1","A":"2"}}`, `{"url":"http://x/","headers":{"Authorization":"a"},"auth":"b"}`,
				`{"url":"http://x/","method":"POST","body":"` + strings.Repeat("x", 2<<20) + `"}`,
			},
		}
	})
}

func TestPlan(t *testing.T) {
	call, err := web.Fetch(web.Options{}).Prepare(t.Context(), json.RawMessage(
		`{"url":" https://api.example/v1/x?key=secret#top ","method":"POST","headers":{"x-b":"2","X-A":"1"},"auth":"Bearer t","body":"{\"a\":1}"}`))
	if err != nil {
		t.Fatal(err)
	}
	p := call.Plan()
	want := "POST https://api.example/v1/x?key=secret\nAuthorization: Bearer t\nX-A: 1\nX-B: 2\n\n{\"a\":1}"
	if p.Preview != display.Block(display.Code{Lang: "http", Source: want}) || p.Title != "POST https://api.example/v1/x?key=secret" {
		t.Errorf("title %q, preview %q", p.Title, p.Preview)
	}
	if !slices.Equal(p.Effects, []tool.Effect{{Kind: tool.Net, Target: "https://api.example/v1/x"}}) {
		t.Errorf("effects %v", p.Effects)
	}
}

func TestFormats(t *testing.T) {
	n := newInternet(t)
	n.serve("site.example", "93.184.216.34", page("text/html; charset=utf-8", "<title>A &amp; B</title><h1>Hi</h1><p>see <a href='/x'>this</a>\x1b[2J</p><script>no</script>"))
	for format, want := range map[string]string{
		"markdown": "# Hi\n\nsee [this](http://site.example/x)^[[2J",
		"text":     "Hi\n\nsee this^[[2J",
		"html":     "<title>A &amp; B</title><h1>Hi</h1><p>see <a href='/x'>this</a>^[[2J</p><script>no</script>",
	} {
		v := must(t, n.options(), `{"url":"http://site.example/","format":"`+format+`"}`)
		if v.Content != want || v.Status != 200 || v.ContentType != "text/html" || v.Truncated || format != "html" && v.Title != "A & B" {
			t.Errorf("%s: %+v", format, v)
		}
	}
	if v := must(t, n.options(), get("http://site.example")); !strings.HasPrefix(v.Content, "# Hi") {
		t.Errorf("not Markdown: %+v", v)
	}
}

func TestWhatIsSent(t *testing.T) {
	n := newInternet(t)
	n.serve("site.example", "93.184.216.34", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s host=%s agent=%s auth=%s type=%s length=%d body=%s", r.Method, r.URL, r.Host, r.UserAgent(), r.Header.Get("Authorization"), r.Header.Get("Content-Type"), r.ContentLength, body)
	})
	o := n.options()
	o.UserAgent = "test/1"
	for args, want := range map[string]string{
		`{"url":"http://site.example/a b?q=1#f"}`: "GET /a%20b?q=1 host=site.example agent=test/1 auth= type= length=0 body=",
		`{"url":"http://site.example/","method":"POST","headers":{"content-type":"text/x"},"auth":"Basic x","body":"hello"}`: "POST / host=site.example agent=test/1 auth=Basic x type=text/x length=5 body=hello",
		`{"url":"http://site.example/","headers":{"User-Agent":"mine"}}`:                                                     "GET / host=site.example agent=mine auth= type= length=0 body=",
	} {
		if v := must(t, o, args); v.Content != want {
			t.Errorf("%s: sent %s", args, v.Content)
		}
	}
}

func TestSizes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	n := newInternet(t)
	endless := func(w io.Writer) {
		chunk := strings.Repeat("<p>abcdefgh ", 1000)
		for range 20_000 { // 240 MB, if anybody wanted them
			if _, err := io.WriteString(w, chunk); err != nil {
				return
			}
		}
	}
	n.serve("site.example", "93.184.216.34", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/"+strings.Trim(r.URL.Path, "/"))
		if r.URL.RawQuery == "" {
			endless(w)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		endless(z)
	})
	o := n.options()
	for target, limit := range map[string]int{"/html": 1 << 19, "/plain": 1 << 19, "/html?z": 1 << 19, "/plain?z": 5 << 20} {
		o.MaxText = limit % (5 << 20) // the default is this
		v := must(t, o, get("http://site.example"+target))
		if v.Size != limit || !v.Truncated || v.NextOffset != 50_000 || utf8.RuneCountInString(v.Content) != 50_000 || !strings.Contains(v.Note, fmt.Sprintf("first %d bytes", limit)) {
			t.Errorf("%s: %d bytes, truncated %v, next %d, note %q", target, v.Size, v.Truncated, v.NextOffset, v.Note)
		}
		if v := must(t, n.options(), `{"url":"http://site.example`+target+`","max_size_kb":1}`); v.Size != 1024 || !v.Truncated || v.NextOffset != 0 {
			t.Errorf("%s: %+v", target, v)
		}
	}
	o.MaxText = 3000
	if v := must(t, o, `{"url":"http://site.example/plain","max_size_kb":100}`); v.Size != 3000 {
		t.Errorf("%d bytes", v.Size)
	}
}

func TestOffsets(t *testing.T) {
	n := newInternet(t)
	whole := strings.Repeat("世界ab", 30_000) // 120,000 characters
	n.serve("site.example", "93.184.216.34", page("text/plain; charset=utf-8", whole))
	got, offset := "", 0
	for range 3 {
		v := must(t, n.options(), fmt.Sprintf(`{"url":"http://site.example/","offset":%d}`, offset))
		got += v.Content
		if offset = v.NextOffset; v.Truncated != (offset > 0) {
			t.Errorf("truncated %v, next %d", v.Truncated, offset)
		}
	}
	if got != whole || offset != 0 {
		t.Errorf("got %d bytes of %d", len(got), len(whole))
	}
	if v := must(t, n.options(), `{"url":"http://site.example/","offset":1000000}`); v.Content != "" || v.Truncated {
		t.Errorf("beyond the end: %+v", v)
	}
}

func TestKindsOfContent(t *testing.T) {
	n := newInternet(t)
	var kind, body string
	n.serve("site.example", "93.184.216.34", func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		if kind != "" {
			w.Header().Set("Content-Type", kind)
		}
		io.WriteString(w, body)
	})
	png := "\x89PNG\r\n\x1a\n" + strings.Repeat("\x00", 3000)
	for _, tc := range []struct{ kind, body, want, note, fails string }{
		{"application/json", `{"a":"<b>"}`, `{"a":"<b>"}`, "", ""},
		{"application/vnd.api+json; charset=utf-8", `[]`, `[]`, "", ""},
		{"text/markdown", "# a\r\nb", "# a\nb", "", ""},
		{"image/svg+xml", "<svg/>", "<svg/>", "", ""},
		{"", "<html><p>a", "a", "", ""},
		{"nonsense/////", "plain", "plain", "", ""},
		{"application/octet-stream", "plain after all", "plain after all", "", ""},
		{"text/plain", "", "", "", ""},
		{"image/png", png, "", "this is an image", ""},
		{"", png, "", "this is an image", ""},
		{"application/zip", "PK\x03\x04xxxx", "", "", "not text, but application/zip of 8 bytes"},
		{"application/octet-stream", "\x00\x01\x02", "", "", "not text, but application/octet-stream"},
		{"video/mp4", "x", "", "", "not text, but video/mp4"},
		{"text/plain", "a\x00\x01b", "", "", "the type is text/plain, but the content is binary of 4 bytes"},
		{"image/png", strings.Repeat("x", 2<<20), "", "", "larger than 1048576 bytes"},
	} {
		kind, body = tc.kind, tc.body
		v, err := fetch(t, n.options(), get("http://site.example/"))
		switch {
		case tc.fails != "":
			if err == nil || !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("%s: %+v %v, want %s", tc.kind, v, err, tc.fails)
			}
		case err != nil || v.Content != tc.want || !strings.HasPrefix(v.Note, tc.note) || v.Size != len(tc.body):
			t.Errorf("%s: %+v %v", tc.kind, v, err)
		}
	}
}

func TestImagesAreShownToModelsThatSee(t *testing.T) {
	n := newInternet(t)
	png := "\x89PNG\r\n\x1a\n" + strings.Repeat("\x00", 3000)
	n.serve("site.example", "93.184.216.34", func(w http.ResponseWriter, r *http.Request) {
		page("image/jpeg", strings.Repeat(png, len(r.URL.Path)))(w, r)
	})
	o := n.options()
	for _, tc := range []struct {
		vision bool
		limit  int
		images int
	}{{false, 0, 0}, {true, 0, 1}, {true, len(png), 1}, {true, len(png) - 1, -1}} {
		o.Vision, o.MaxImage = tc.vision, tc.limit
		call, err := web.Fetch(o).Prepare(t.Context(), json.RawMessage(get("http://site.example/")))
		if err != nil {
			t.Fatal(err)
		}
		r, err := call.Run(t.Context(), io.Discard)
		if tc.images < 0 {
			if err == nil {
				t.Errorf("%+v: %+v", tc, r)
			}
			continue
		}
		if err != nil || len(r.Images) != tc.images {
			t.Fatalf("%+v: %d images, %v", tc, len(r.Images), err)
		}
		if tc.images > 0 && (r.Images[0].MediaType != "image/png" || string(r.Images[0].Data) != png) {
			t.Errorf("%+v: %s", tc, r.Images[0].MediaType)
		}
	}
}

func TestEncodings(t *testing.T) {
	n := newInternet(t)
	var kind, body string
	n.serve("site.example", "93.184.216.34", func(w http.ResponseWriter, _ *http.Request) { page(kind, body)(w, nil) })
	for _, tc := range []struct{ kind, body, want, note string }{
		{"text/plain", "caf\xc3\xa9", "café", ""},
		{"text/plain; charset=utf-8", "caf\xe9", "caf\ufffd", ""},
		{"text/plain; charset=ISO-8859-1", "caf\xe9 \x80\x93", "café €“", ""},
		{"text/plain; charset=windows-1252", "\xc3\xa9", "Ã©", ""},
		{"text/plain", "caf\xe9", "café", "windows-1252"},
		{"text/plain; charset=utf-16", "a\x00\x16\x4e", "a世", ""},
		{"text/plain; charset=utf-16be", "\x00a\x4e\x16\xd8\x3d\xde\x00", "a世😀", ""},
		{"text/plain; charset=latin1", "\xff\xfea\x00", "a", ""}, // a byte order mark counts more
		{"text/plain; charset=latin1", "\xef\xbb\xbfcaf\xc3\xa9", "café", ""},
		{"text/html", "<meta charset='latin1'>caf\xe9", "café", ""},
		{"text/html", `<meta http-equiv=x content="text/html; charset=windows-1252">caf` + "\xe9", "café", ""},
		{"text/html; charset=utf-8", "<meta charset=latin1>caf\xc3\xa9", "café", ""},
		{"application/xml", `<?xml version="1.0" encoding="ISO-8859-1"?>` + "caf\xe9", `<?xml version="1.0" encoding="ISO-8859-1"?>café`, ""},
		{"text/plain; charset=gbk", "a\xc4\xe3\xba\xc3b", "a你好b", ""},
		{"text/html", "<meta charset=gb2312><p>\xc4\xe3\xba\xc3", "你好", ""},
		{"text/plain; charset=GB18030", "\xc4\xe3\x94\x39\xda\x33", "你💩", ""},
		{"text/plain; charset=Big5", "\xa7A\xa6n", "你好", ""},
		{"text/html; charset=Shift_JIS", "<p>\x93\xfa\x96{x", "日本x", ""},
		{"text/plain; charset=EUC-JP", "\xc6\xfc\xcb\xdc", "日本", ""},
		{"text/plain; charset=iso-2022-jp", "\x1b$BF|K\\\x1b(B \xe9", "日本 \ufffd", ""},
		{"text/plain; charset=iso-2022-jp", "\x1b$BF|K\\8l\x1b(B", "日本語", ""}, // without a byte beyond ASCII
		{"text/html", "<meta charset=iso-2022-jp><p>\x1b$BF|K\\8l\x1b(B", "日本語", ""},
		{"text/plain; charset=hz-gb-2312", "~{Dc:C~} x", "你好 x", ""},
		{"text/plain; charset=iso-2022-kr", "x", "x", "is unknown"},
		{"text/plain; charset=EUC-KR", "\xc7\xd1\xb1\xdb", "한글", ""},
		{"text/plain; charset=windows-1251", "\xcf\xf0\xe8\xe2\xe5\xf2", "Привет", ""},
		{"text/plain; charset=koi8-r", "\xf0\xd2\xc9\xd7\xc5\xd4", "Привет", ""},
		{"text/plain; charset=x-klingon", "a\xf8\xd0b", "a\ufffdb", "x-klingon, is unknown"},
		{"text/plain; charset=gb2312", "你好", "你好", ""}, // not what it says
		{"text/plain; charset=us-ascii", "caf\xe9", "café", ""},
	} {
		kind, body = tc.kind, tc.body
		v := must(t, n.options(), get("http://site.example/"))
		if v.Content != tc.want || !strings.Contains(v.Note, tc.note) || tc.note == "" && v.Note != "" {
			t.Errorf("%s %q: %q, note %q", tc.kind, tc.body, v.Content, v.Note)
		}
	}
}

func TestARuneThatIsCutInTwo(t *testing.T) {
	n := newInternet(t)
	n.serve("site.example", "93.184.216.34", page("text/plain", strings.Repeat("x", 1023)+"é"))
	v := must(t, n.options(), `{"url":"http://site.example/","max_size_kb":1}`)
	if v.Content != strings.Repeat("x", 1023) || v.Note != "only the first 1024 bytes were read" {
		t.Errorf("%q, note %q", v.Content[1000:], v.Note)
	}
}

func TestFailures(t *testing.T) {
	n := newInternet(t)
	n.serve("site.example", "93.184.216.34", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/gone":
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, "<h1>Nothing here")
		case "/packed":
			w.Header().Set("Content-Encoding", "br")
			io.WriteString(w, "x")
		case "/broken":
			w.Header().Set("Content-Encoding", "gzip")
			io.WriteString(w, "not gzip at all")
		case "/head":
			w.Header().Set("X-Long", strings.Repeat("x", 1<<20))
		case "/short":
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, "short")
		case "/away":
			panic(http.ErrAbortHandler)
		}
	})
	if v := must(t, n.options(), get("http://site.example/gone")); v.OK || v.Status != 404 || v.Error != "404 Not Found" || v.Content != "# Nothing here" {
		t.Errorf("%+v", v)
	}
	for path, want := range map[string]string{"/packed": `the page as "br"`, "/broken": "gzip", "/head": "", "/short": "unexpected EOF", "/away": "EOF"} {
		if v, err := fetch(t, n.options(), get("http://site.example"+path)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v %v", path, v, err)
		}
	}
}

func TestCertificates(t *testing.T) {
	s := httptest.NewUnstartedServer(page("text/plain", "secure"))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	if _, err := fetch(t, web.Options{AllowPrivate: true}, get(s.URL)); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown certificate: %v", err)
	}
	if v := must(t, web.Options{AllowPrivate: true, SkipTLSVerify: true}, get(s.URL)); v.Content != "secure" {
		t.Errorf("%+v", v)
	}
}
