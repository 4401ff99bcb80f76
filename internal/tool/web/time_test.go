package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"coder/internal/tool/web"
)

// slowNet is a net on which one server answers each connection as it likes,
// without a real network, so that time can be made to pass.
func slowNet(answer func(net.Conn)) web.Options {
	return web.Options{
		Lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
		},
		Connect: func(context.Context, netip.AddrPort) (net.Conn, error) {
			client, server := net.Pipe()
			go func() {
				defer server.Close()
				if _, err := http.ReadRequest(bufio.NewReader(server)); err == nil {
					answer(server)
				}
			}()
			return client, nil
		},
	}
}

// silent waits until the other side goes away.
func silent(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

// dripping never ends, and never pauses for long.
func dripping(c net.Conn) {
	if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"); err != nil {
		return
	}
	for {
		if _, err := io.WriteString(c, "x"); err != nil {
			return
		}
		time.Sleep(time.Second)
	}
}

// circling sends the client round and round, slowly.
func circling(c net.Conn) {
	time.Sleep(9 * time.Second)
	_, _ = io.WriteString(c, "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n")
}

func TestTimeIsUp(t *testing.T) {
	for name, answer := range map[string]func(net.Conn){"silent": silent, "dripping": dripping, "circling": circling} {
		for args, want := range map[string]time.Duration{
			`{"url":"http://site.example/x?secret"}`:                 30 * time.Second,
			`{"url":"http://site.example/x","timeout_sec":3}`:        3 * time.Second,
			`{"url":"http://site.example/x","timeout_sec":86400000}`: 30 * time.Second,
		} {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				_, err := fetch(t, slowNet(answer), args)
				if took := time.Since(began); err == nil || err.Error() != "fetch http://site.example/x: timed out after "+want.String() || took != want {
					t.Errorf("%s %s: %v after %v", name, args, err, took)
				}
				time.Sleep(time.Minute) // for the server to notice
			})
		}
	}
}

func TestCancelled(t *testing.T) {
	for name, answer := range map[string]func(net.Conn){"silent": silent, "dripping": dripping} {
		synctest.Test(t, func(t *testing.T) {
			call, err := web.Fetch(slowNet(answer)).Prepare(t.Context(), json.RawMessage(get("http://site.example/")))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if _, err := call.Run(ctx, io.Discard); err != context.DeadlineExceeded {
				t.Errorf("%s: %v", name, err)
			}
			time.Sleep(time.Minute) // for the server to notice
		})
	}
}

// TestDeafAddress: an address that does not answer does not use up the time of
// the next.
func TestDeafAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := slowNet(func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			silent(c) // the connection must not be kept for later
		})
		deaf, good := netip.MustParseAddr("2606:4700::1"), netip.MustParseAddr("93.184.216.34")
		o.Lookup = func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{deaf, good}, nil }
		answer := o.Connect
		o.Connect = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			if to.Addr() == deaf {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return answer(ctx, to)
		}
		v, err := fetch(t, o, get("http://site.example/"))
		if err != nil || !strings.Contains(v.Content, "ok") {
			t.Errorf("%+v %v", v, err)
		}
	})
}
