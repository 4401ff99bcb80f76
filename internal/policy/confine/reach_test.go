package confine_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"coder/internal/core/hosts"
	"coder/internal/core/uip"
	"coder/internal/host/egress"
	"coder/internal/host/program"
	"coder/internal/host/sandbox"
	"coder/internal/host/shell"
	"coder/internal/policy"
	"coder/internal/policy/confine"
)

// site is a server of the outside, and commands that reach for it.
type site struct {
	c     *confine.Confiner
	root  string
	reach *confine.HostPolicy
	port  string

	mu         sync.Mutex
	asked      []string
	remembered []string
}

// newSite has commands reach what the patterns name. PORT in them is the port of
// the server, under which every name and 127.0.0.2 leads to it.
func newSite(t *testing.T, backend string, patterns ...string) *site {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl here")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "hello from %s\n", r.Host) }))
	t.Cleanup(server.Close)
	s := &site{port: server.URL[strings.LastIndex(server.URL, ":")+1:]}
	s.reach = &confine.HostPolicy{
		Dialer: egress.Dialer{
			Allow: func(host, _ string) bool { return strings.HasSuffix(host, ".test") },
			Lookup: func(context.Context, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
			},
			Connect: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "tcp", "127.0.0.1:"+s.port) // whatever the port
			},
		},
		IsRemembered: func(host string) bool { s.mu.Lock(); defer s.mu.Unlock(); return slices.Contains(s.remembered, host) },
		Remember: func(host string, scope policy.Scope, why string) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.remembered = append(s.remembered, host)
			return nil
		},
	}
	for _, text := range patterns {
		p, err := hosts.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		s.reach.Allowed = append(s.reach.Allowed, p)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o, _ := helpless(t, confine.Auto)
	o.Exe, o.HostPolicy, o.Backend, s.root = exe, func() *confine.HostPolicy { return s.reach }, backend, o.Root
	o.Launcher = program.NewOutside(os.Environ(), "/nowhere")
	s.c = confine.New(o)
	t.Cleanup(func() { s.c.Close() })
	return s
}

// run runs a command as the tool does, and returns its output and what was said of hosts.
func (s *site) run(t *testing.T, ctx context.Context, command string) (out, refused string) {
	t.Helper()
	got, err := s.c.Command(ctx, read("true; "+command))
	if err != nil {
		t.Fatal(err)
	}
	if got.Wrapper == nil {
		t.Skip("commands cannot be confined on this machine")
	}
	spec := shell.Spec{Command: command, Dir: s.root, Prefix: got.Wrapper, Attr: got.Attr, Init: got.Init, OutputLimit: 1 << 16, Env: append(os.Environ(), "PORT="+s.port)}
	end := func() string { return "" }
	if got.OpenNetwork != nil {
		way, err := got.OpenNetwork(ctx)
		if err != nil {
			t.Fatal(err)
		}
		spec.Outlet, spec.Env, end = way.Outlet, append(spec.Env, way.Env...), way.Close
	}
	o, err := shell.Run(ctx, spec)
	refused = end()
	if err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
	return o.Stdout.Text() + o.Stderr.Text(), refused
}

// person answers every question with an option, and keeps what was asked.
func (s *site) person(ctx context.Context, option string) context.Context {
	return uip.WithInteractor(ctx, uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked = append(s.asked, q.Display.Title)
		return uip.Response{ID: q.ID, Author: "user", Option: option}, nil
	}))
}

func TestCommandsReachNamedHostsAndNothingElse(t *testing.T) {
	for _, backend := range []string{sandbox.Namespaces, sandbox.Bubblewrap, sandbox.Landlock} {
		t.Run(backend, func(t *testing.T) {
			s := newSite(t, backend, "registry.test", "*.mirror.test:8081", "127.0.0.2:8082", "inside.example")
			if !strings.HasPrefix(s.c.Summary(t.Context()), backend+":") {
				t.Skip("it does not work here: " + s.c.Summary(t.Context()))
			}
			reached := backend != sandbox.Landlock
			for command, hello := range map[string]string{
				"curl -sS http://registry.test/":                                                    "hello from registry.test",
				"curl -sSp http://REGISTRY.test.:80/":                                               "hello from",
				"curl -sS http://a.mirror.test:8081/":                                               "hello from a.mirror.test:8081",
				"curl -sS http://127.0.0.2:8082/":                                                   "hello from 127.0.0.2:8082",
				"curl -sS http://a.mirror.test/":                                                    "",
				"curl -sSp http://registry.test:22/":                                                "",
				"curl -sS http://other.test/":                                                       "",
				"curl -sSp http://other.test/":                                                      "",
				"curl -sS http://inside.example/":                                                   "", // resolves to a private address
				"curl -sS http://127.0.0.3:8082/":                                                   "",
				"curl -sS --noproxy '*' http://127.0.0.1:$PORT/":                                    "",
				"curl -sS --noproxy '*' http://127.0.0.2:$PORT/":                                    "",
				"curl -sS -H 'Host: registry.test' http://other.test/":                              "",
				"curl -sS --resolve registry.test:80:127.0.0.1 --noproxy '*' http://registry.test/": "",
			} {
				out, refused := s.run(t, t.Context(), command)
				if strings.Contains(out, "hello") != (reached && hello != "") || reached && !strings.Contains(out, hello) {
					t.Errorf("%s: %q, %q", command, out, refused)
				}
				if reached && (hello != "") != (refused == "") && !strings.Contains(command, "noproxy") {
					t.Errorf("%s: said %q", command, refused)
				}
			}
			if out, _ := s.run(t, t.Context(), `python3 -m http.server --bind 127.0.0.1 18099 >/dev/null 2>&1 & for i in $(seq 100); do curl -s http://127.0.0.1:18099/ >/dev/null && echo own; sleep .05; done | head -1`); reached && !strings.Contains(out, "own") {
				if _, err := exec.LookPath("python3"); err == nil {
					t.Errorf("a server of its own is not reached: %q", out)
				}
			}
		})
	}
}

// A line that only reads, and a mode that does, have no network at all.
func TestWhatOnlyReadsReachesNoHost(t *testing.T) {
	s := newSite(t, "", "registry.test")
	got, err := s.c.Command(t.Context(), read("ls"))
	if err != nil || got.OpenNetwork != nil || strings.Contains(strings.Join(got.Wrapper, " "), "--outlet") {
		t.Errorf("a line that only reads: %v, %v", got.Wrapper, err)
	}
	all := s.reach
	s.reach = nil
	if got, err := s.c.Command(t.Context(), read("make")); err != nil || got.OpenNetwork != nil || strings.Contains(got.Summary, "registry.test") {
		t.Errorf("a mode that only reads: %s, %v", got.Summary, err)
	}
	s.reach = all
	if got, err := s.c.Command(t.Context(), read("make")); err != nil || got.Wrapper != nil && (got.OpenNetwork == nil || !strings.Contains(got.Summary, "network only to registry.test")) {
		t.Errorf("make: %s, %v", got.Summary, err)
	}
}

func TestAPersonIsAskedOnceAboutAHost(t *testing.T) {
	const twice = "curl -sS http://a.test/ & curl -sS http://a.test/ & curl -sS http://a.test/; wait; curl -sS http://a.test/"
	for option, again := range map[string]int{uip.OptionApprove: 2, uip.OptionSession: 1, uip.OptionAlways: 1, uip.OptionReject: 1} {
		t.Run(option, func(t *testing.T) {
			s := newSite(t, "", "registry.test")
			ctx := s.person(t.Context(), option)
			out, refused := s.run(t, ctx, twice)
			if !strings.Contains(s.c.Summary(ctx), "network only to") {
				t.Skip("hosts cannot be reached on this machine")
			}
			want := 4
			if option == uip.OptionReject {
				want = 0
			}
			if n := strings.Count(out, "hello"); n != want || len(s.asked) != 1 || (refused == "") != (want > 0) {
				t.Errorf("%d answers, asked %q, refused %q: %s", n, s.asked, refused, out)
			}
			if _, refused := s.run(t, ctx, "curl -sS http://a.test/"); len(s.asked) != again || (refused == "") != (want > 0) {
				t.Errorf("again: asked %q, refused %q", s.asked, refused)
			}
			if _, err := s.run(t, ctx, "curl -sS http://b.test/ http://a.test:8080/"); len(s.asked) != again+2 {
				t.Errorf("others: asked %q, %v", s.asked, err)
			}
			if kept := len(s.remembered) > 0; kept != (option == uip.OptionSession || option == uip.OptionAlways) {
				t.Errorf("remembered %q", s.remembered)
			}
		})
	}
}

func TestNobodyToAskIsARefusal(t *testing.T) {
	for name, who := range map[string]uip.Interactor{"nobody": uip.NoInteractor, "parked": uip.PendingInteractor} {
		s := newSite(t, "", "registry.test")
		out, refused := s.run(t, uip.WithInteractor(t.Context(), who), "curl -sS http://a.test/; curl -sSp http://b.test/")
		if !strings.Contains(s.c.Summary(t.Context()), "network only to") {
			t.Skip("hosts cannot be reached on this machine")
		}
		if !strings.Contains(out, "coder: a.test is not in safety.network; add it") || !strings.Contains(refused, "b.test is not in safety.network") {
			t.Errorf("%s: %q, %q", name, out, refused)
		}
	}
}

// A question ends with the command that it is about, and no command has a person
// asked without end.
func TestAQuestionEndsWithItsCommand(t *testing.T) {
	s := newSite(t, "", "registry.test")
	var ends []error
	ctx := uip.WithInteractor(t.Context(), uip.InteractorFunc(func(ctx context.Context, q uip.Request) (uip.Response, error) {
		<-ctx.Done()
		ends = append(ends, ctx.Err())
		return uip.Response{}, ctx.Err()
	}))
	if s.run(t, ctx, "curl -sS -m 0.3 http://a.test/"); len(ends) != 1 || !errors.Is(ends[0], context.Canceled) {
		if strings.Contains(s.c.Summary(ctx), "network only to") {
			t.Errorf("questions ended with %v", ends)
		}
	}
	s.run(t, s.person(t.Context(), uip.OptionApprove), "for i in $(seq 30); do curl -s http://h$i.test/; done")
	if len(s.asked) > 20 {
		t.Errorf("asked %d times", len(s.asked))
	}
}

// Where nothing confines commands a list cannot be kept, which is known and said.
func TestHostsThatCannotBeEnforced(t *testing.T) {
	p, _ := hosts.Parse("registry.test")
	for demand, bounds := range map[string]bool{confine.Auto: false, confine.Off: false} {
		o, warned := helpless(t, demand)
		o.HostPolicy = func() *confine.HostPolicy { return &confine.HostPolicy{Allowed: []hosts.Pattern{p}} }
		c := confine.New(o)
		if got, err := c.Command(t.Context(), read("make")); err != nil || got.OpenNetwork != nil || c.LimitsHosts(t.Context()) != bounds {
			t.Errorf("%s: %+v, %v", demand, got, err)
		}
		if demand == confine.Auto && (len(*warned) != 1 || !strings.Contains((*warned)[0], "network only to registry.test")) {
			t.Errorf("warned %q", *warned)
		}
	}
	o, _ := helpless(t, confine.Require)
	o.HostPolicy = func() *confine.HostPolicy { return &confine.HostPolicy{Allowed: []hosts.Pattern{p}} }
	if _, err := confine.New(o).Command(t.Context(), read("make")); !errors.Is(err, confine.ErrUnavailable) {
		t.Errorf("it runs although hosts cannot be enforced: %v", err)
	}
}
