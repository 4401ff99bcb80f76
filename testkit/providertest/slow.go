package providertest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"coder/internal/model/provider"
)

// Pipes is a network inside the process, so that time can be made to pass at
// once.
type Pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

// NewPipes returns a network without connections.
func NewPipes() *Pipes { return &Pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

// Accept, Close and Addr make it what a server listens to.
func (p *Pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// Close ends it.
func (p *Pipes) Close() error { p.once.Do(func() { close(p.done) }); return nil }

// Addr is where it listens.
func (p *Pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// Dial connects to whoever listens.
func (p *Pipes) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Opener makes a client of a server. The client dials through a transport, or by itself if that is nil.
type Opener func(t testing.TB, url string, through http.RoundTripper) provider.Provider

// TestSlow holds a wire to what a slow server may expect: whoever waits is told
// so, and one that is left sees it at once.
func TestSlow(t *testing.T, wire string, open Opener) {
	answer := Exchanges(t, wire)[0].Responses[0]
	events := bytes.SplitAfter(bytes.ReplaceAll(answer.Body, []byte("\r\n"), []byte("\n")), []byte("\n\n"))
	half := bytes.Join(events[:len(events)*2/3], nil)
	for _, tc := range []struct {
		name string
		sent []byte // before the server falls silent
		left bool   // the consumer leaves; else it cancels
	}{
		{"cancelled before the headers", nil, false},
		{"cancelled in the middle", half, false},
		{"left in the middle", half, true},
	} {
		t.Run(tc.name, func(t *testing.T) { testLeftServer(t, open, answer.ContentType, tc.sent, tc.left) })
	}
	t.Run("whoever waits is told", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { testWaits(t, open, answer.ContentType, half, answer.Body[len(half):]) })
	})
}

// testLeftServer has a server send something and then nothing, until the client leaves or cancels.
func testLeftServer(t *testing.T, open Opener, kind string, sent []byte, leave bool) {
	asked, seen := make(chan struct{}), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if sent != nil {
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write(sent)
			_ = http.NewResponseController(w).Flush()
		}
		close(asked)
		<-r.Context().Done() // the server sees that nobody is there any more
		close(seen)
	}))
	t.Cleanup(s.Close)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if sent == nil {
		go func() { <-asked; cancel() }()
	}
	var err error
	for d, failure := range open(t, s.URL, nil).Stream(ctx, ask()) {
		err = failure
		if d != nil && leave {
			break
		}
		cancel()
	}
	if !leave && !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	<-seen
}

// testWaits has a server send two halves slowly, and signs of life, which change nothing, between them.
func testWaits(t *testing.T, open Opener, kind string, first, second []byte) {
	network := NewPipes()
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(25 * time.Second)
		w.Header().Set("Content-Type", kind)
		for range 4 {
			_, _ = io.WriteString(w, ": a sign of life\n\n")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(6 * time.Second)
		}
		_, _ = w.Write(first)
		for range 4 {
			_ = http.NewResponseController(w).Flush()
			time.Sleep(6 * time.Second)
			_, _ = io.WriteString(w, ": a sign of life\n\n")
		}
		_, _ = w.Write(second)
	})}
	go func() { _ = srv.Serve(network) }()
	defer srv.Close()
	through := &http.Transport{DialContext: network.Dial}
	defer through.CloseIdleConnections()
	var waited []time.Duration
	_, err := provider.Collect(open(t, "http://server", through).Stream(t.Context(), ask()),
		func(d provider.Delta) error {
			if w, ok := d.(provider.Waiting); ok {
				waited = append(waited, w.Elapsed)
			}
			return nil
		})
	if want := []time.Duration{1e10, 2e10, 3e10, 4e10, 1e10, 2e10}; err != nil || !reflect.DeepEqual(waited, want) {
		t.Errorf("told of %v, want %v: %v", waited, want, err)
	}
}
