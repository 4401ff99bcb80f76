package egress_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"

	"coder/internal/core/hosts"
	"coder/internal/host/egress"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait")) // half a second after what it refused
}

// world is a gate before a network in which every name is this machine.
type world struct {
	proxy  *url.URL
	gate   *egress.Gate
	lookup []string // names that were looked up
	mu     sync.Mutex
}

var loopback = netip.MustParseAddr("127.0.0.1")

// newWorld opens a gate that admits hosts whose name begins with "good", at any
// address but where the name holds "rebound".
func newWorld(t *testing.T, change func(*egress.Options)) *world {
	t.Helper()
	w := new(world)
	o := egress.Options{
		Admit: func(_ context.Context, to hosts.Target) error {
			if strings.HasPrefix(to.Host, "good") {
				return nil
			}
			return fmt.Errorf("%s is not named", to)
		},
		Dialer: egress.Dialer{
			Allow: func(host, _ string) bool {
				return !strings.Contains(host, "rebound") && !strings.Contains(host, "127.")
			},
			Lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.lookup = append(w.lookup, host)
				return []netip.Addr{loopback}, nil
			},
		},
	}
	if change != nil {
		change(&o)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.proxy = &url.URL{Scheme: "http", Host: l.Addr().String()}
	w.gate = egress.Open(t.Context(), l, o)
	t.Cleanup(func() { w.gate.Close() })
	return w
}

// say sends raw text to the gate and returns the first line of the answer.
func (w *world) say(t *testing.T, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", w.proxy.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, text)
	line, _ := bufio.NewReader(c).ReadString('\n')
	return strings.TrimSpace(line)
}

func portOf(t *testing.T, s *httptest.Server) string {
	t.Helper()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Port()
}

func TestAdmittedHostsAreReached(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %s", r.Host, r.Method, r.URL, body)
		if r.Header.Get("Proxy-Authorization") != "" || r.Header.Get("X-Forwarded-For") != "" {
			fmt.Fprint(w, " with what is the proxy's")
		}
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	w := newWorld(t, nil)
	pool := x509.NewCertPool()
	pool.AddCert(secure.Certificate())
	client := &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyURL(w.proxy), TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "example.com"}, DisableKeepAlives: true,
	}}
	for _, base := range []string{"http://good.example:" + portOf(t, plain), "https://good.example:" + portOf(t, secure)} {
		resp, err := client.Post(base+"/a?b", "text/plain", strings.NewReader("sent"))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if want := strings.Split(base, "//")[1] + " POST /a?b sent"; string(body) != want {
			t.Errorf("%s: %q, want %q", base, body, want)
		}
	}
	if refused := w.gate.Close(); len(refused) > 0 {
		t.Errorf("refused: %q", refused)
	}
}

func TestOtherHostsHearNothing(t *testing.T) {
	w := newWorld(t, nil)
	for request, want := range map[string]string{
		"CONNECT evil.example:443 HTTP/1.1\r\nHost: good.example\r\n\r\n":                     "HTTP/1.1 403 coder: evil.example is not named",
		"CONNECT evil.example:22 HTTP/1.0\r\n\r\n":                                            "HTTP/1.1 403 coder: evil.example:22 is not named",
		"GET http://evil.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n":                     "HTTP/1.1 403 Forbidden",
		"GET / HTTP/1.1\r\nHost: good.example\r\n\r\n":                                        "HTTP/1.1 400 Bad Request",
		"GET https://good.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n":                    "HTTP/1.1 400 Bad Request",
		"GET ftp://good.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n":                      "HTTP/1.1 400 Bad Request",
		"GET http://good.example@evil.example/ HTTP/1.1\r\nHost: x\r\n\r\n":                   "HTTP/1.1 400 Bad Request",
		"CONNECT good.example@evil.example:443 HTTP/1.1\r\nHost: x\r\n\r\n":                   "HTTP/1.1 400 coder: a proxy address cannot contain a user name",
		"CONNECT good.example HTTP/1.1\r\nHost: x\r\n\r\n":                                    "HTTP/1.1 400 coder: CONNECT needs a port",
		"CONNECT good.example:443/x HTTP/1.1\r\nHost: x\r\n\r\n":                              "HTTP/1.1 400 coder: CONNECT needs a host and a port",
		"CONNECT 2130706433:443 HTTP/1.1\r\nHost: x\r\n\r\n":                                  `HTTP/1.1 400 coder: "2130706433:443": write an address as four decimal numbers, such as 192.0.2.1`,
		"CONNECT 0x7f.1:443 HTTP/1.1\r\nHost: x\r\n\r\n":                                      `HTTP/1.1 400 coder: "0x7f.1:443": write an address as four decimal numbers, such as 192.0.2.1`,
		"CONNECT 127.0.0.1:443 HTTP/1.1\r\nHost: x\r\n\r\n":                                   "HTTP/1.1 403 coder: only public addresses can be fetched: 127.0.0.1 is an address of this machine; name it in safety.network to allow it",
		"CONNECT [::ffff:127.0.0.1]:443 HTTP/1.1\r\nHost: x\r\n\r\n":                          "HTTP/1.1 403 coder: only public addresses can be fetched: 127.0.0.1 is an address of this machine; name it in safety.network to allow it",
		"CONNECT good.rebound.example:443 HTTP/1.1\r\nHost: x\r\n\r\n":                        "HTTP/1.1 403 coder: only public addresses can be fetched: good.rebound.example=127.0.0.1 is an address of this machine; fetch\.allow_hosts can allow a host at such an address",
		"GET http://good.rebound.example/ HTTP/1.1\r\nHost: x\r\n\r\n":                        "HTTP/1.1 403 Forbidden",
		"GET http://good.example/ HTTP/1.1\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n": "HTTP/1.1 431 Request Header Fields Too Large",
		"\x05\x01\x00\r\n\r\n": "HTTP/1.1 400 Bad Request",
	} {
		got := w.say(t, request)
		if got != want {
			t.Errorf("%.80q: %q, want %q", request, got, want)
		}
	}
	for _, name := range w.lookup {
		if !strings.HasPrefix(name, "good") {
			t.Errorf("%s was looked up, and so told to a name server", name)
		}
	}
	said := strings.Join(w.gate.Close(), "\n")
	for _, host := range []string{"evil.example is not named", "evil.example:22 is not named", "good.rebound.example=127.0.0.1", "127.0.0.1 is an address"} {
		if !strings.Contains(said, host) {
			t.Errorf("%q does not name %s", said, host)
		}
	}
}

// What waits for an answer, or for either end of a tunnel, ends with the gate.
func TestAllEndsWithTheGate(t *testing.T) {
	quiet, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer quiet.Close()
	asked := make(chan struct{})
	w := newWorld(t, func(o *egress.Options) {
		o.Admit = func(ctx context.Context, to hosts.Target) error {
			if to.Host == "good.example" {
				return nil
			}
			close(asked)
			<-ctx.Done()
			return ctx.Err()
		}
	})
	open, err := net.Dial("tcp", w.proxy.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	fmt.Fprintf(open, "CONNECT good.example:%d HTTP/1.1\r\nHost: x\r\n\r\n", quiet.Addr().(*net.TCPAddr).Port)
	if line, err := bufio.NewReader(open).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Fatalf("%q, %v", line, err)
	}
	waiting, err := net.Dial("tcp", w.proxy.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	fmt.Fprint(waiting, "CONNECT undecided.example:443 HTTP/1.1\r\nHost: x\r\n\r\n")
	<-asked
	w.gate.Close()
	w.gate.Close()
	if _, err := open.Read(make([]byte, 1)); err == nil {
		t.Error("the tunnel is open")
	}
}

func TestTheUsersProxyIsGoneThrough(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "the site at ", r.Host) }))
	defer site.Close()
	var mu sync.Mutex
	var seen []string
	outer := newWorld(t, func(o *egress.Options) {
		o.Admit = func(_ context.Context, to hosts.Target) error {
			mu.Lock()
			defer mu.Unlock()
			if seen = append(seen, to.Host); strings.Contains(to.Host, "barred") {
				return errors.New("barred by the company")
			}
			return nil
		}
	})
	w := newWorld(t, func(o *egress.Options) {
		o.Upstream = func(r *http.Request) (*url.URL, error) {
			if strings.Contains(r.URL.Host, "near") {
				return nil, nil
			}
			return outer.proxy, nil
		}
		lookup := o.Dialer.Lookup
		o.Dialer.Lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			if strings.Contains(host, "inner") {
				return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
			}
			return lookup(ctx, host)
		}
	})
	port := portOf(t, site)
	get := func(host string) string {
		c, err := net.Dial("tcp", w.proxy.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		in := bufio.NewReader(c)
		fmt.Fprintf(c, "CONNECT %s:%s HTTP/1.1\r\nHost: x\r\n\r\n", host, port)
		line, _ := in.ReadString('\n')
		if !strings.Contains(line, "200") {
			return strings.TrimSpace(line)
		}
		_, _ = in.ReadString('\n')
		fmt.Fprintf(c, "GET / HTTP/1.0\r\nHost: %s\r\n\r\n", host)
		body, _ := io.ReadAll(in)
		return string(body[strings.LastIndex(string(body), "\n")+1:])
	}
	plain, err := (&http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(w.proxy), DisableKeepAlives: true}}).Get("http://good.plain.example:" + port)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(plain.Body)
	plain.Body.Close()
	if string(body) != "the site at good.plain.example:"+port {
		t.Errorf("plain: %q", body)
	}
	for host, want := range map[string]string{
		"good.example": "the site at good.example", "good.inner.example": "the site at good.inner.example", "good.near.example": "the site at good.near.example",
		"good.barred.example":  "HTTP/1.1 502 coder: the user's proxy answered 403 coder: barred by the company",
		"good.rebound.example": "HTTP/1.1 403 coder: only public addresses can be fetched: good.rebound.example=127.0.0.1 is an address of this machine; fetch.allow_hosts can allow a host at such an address",
		"evil.example":         "HTTP/1.1 403 coder: evil.example:" + port + " is not named",
	} {
		if got := get(host); got != want {
			t.Errorf("%s: %q, want %q", host, got, want)
		}
	}
	for _, host := range seen {
		if strings.Contains(host, "near") || strings.Contains(host, "rebound") || strings.Contains(host, "evil") {
			t.Errorf("the user's proxy heard of %s", host)
		}
	}
}
