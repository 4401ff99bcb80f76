package faultserver_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"coder/internal/model/provider"
	"coder/testkit/faultserver"

	"go.uber.org/goleak"
)

// post asks the server and returns what it says.
func post(t *testing.T, c *http.Client, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer k")
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func newClient(t *testing.T) *http.Client {
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func TestScript(t *testing.T) {
	s := faultserver.Start(t, faultserver.Options{Key: "k"})
	s.Script(
		faultserver.Stream(faultserver.Think("reasoning", "hm"), faultserver.Text("a <b>"), faultserver.Call("x", "read", `{"p":1}`), faultserver.Call("y", "read", `{}`), faultserver.Usage(3, 4)),
		faultserver.Stream(faultserver.Text("b"), faultserver.Finish("length")),
		faultserver.Status(http.StatusTeapot, `{"error":"tea"}`),
		faultserver.Raw("data: raw\n\n"),
	)
	c := newClient(t)
	for _, want := range []struct {
		status int
		parts  []string
	}{
		{200, []string{`"reasoning":"hm"`, `"content":"a <b>"`, `"arguments":"{\"p\":1}"`, `"id":"x","index":0`, `"id":"y","index":1`, `"finish_reason":"tool_calls"`, `"prompt_tokens":3,"completion_tokens":4`, "data: [DONE]"}},
		{200, []string{`"content":"b"`, `"finish_reason":"length"`}},
		{http.StatusTeapot, []string{"tea"}},
		{200, []string{"data: raw\n\n"}},
		{http.StatusBadRequest, []string{"no reply left"}},
	} {
		status, text := post(t, c, s.Base(""), `{"messages":[{"role":"user","content":"q"}]}`)
		if status != want.status {
			t.Errorf("status %d, want %d", status, want.status)
		}
		for _, p := range want.parts {
			i := strings.Index(text, p)
			if i < 0 {
				t.Fatalf("%q is missing or out of order in %s", p, text)
			}
			text = text[i+len(p):]
		}
	}
	if n := s.Count(""); n != 5 {
		t.Errorf("%d requests were logged", n)
	}
	r := s.Requests()[0]
	if ms := r.Messages(); !r.Authorised || r.Path != "/v1/chat/completions" || len(ms) != 1 || ms[0].Role != "user" {
		t.Errorf("logged %+v", r)
	}
}

func TestKey(t *testing.T) {
	s := faultserver.Start(t, faultserver.Options{Key: "another"})
	post(t, newClient(t), s.Base("ok"), `{}`)
	if s.Requests()[0].Authorised {
		t.Error("the wrong key counts as authorised")
	}
}

func TestRecovery(t *testing.T) {
	s := faultserver.Start(t, faultserver.Options{Name: "http-500"})
	c := newClient(t)
	if status, _ := post(t, c, s.Base(""), `{}`); status != 500 {
		t.Errorf("first: %d", status)
	}
	if status, text := post(t, c, s.Base(""), `{}`); status != 200 || !strings.Contains(text, "[DONE]") {
		t.Errorf("second: %d %s", status, text)
	}
	if status, _ := post(t, c, s.Base("no-such-fault"), `{}`); status != 404 {
		t.Errorf("unknown: %d", status)
	}
}

func TestDeltas(t *testing.T) {
	r := faultserver.Deltas([]provider.Delta{provider.TextDelta("a"), provider.CallDelta{ID: "x", Name: "f", Args: "{"}, provider.CallDelta{Args: "}"}, provider.Done{Stop: provider.StopTools}})
	if r.Cut || !strings.Contains(r.Body, `"finish_reason":"tool_calls"`) || !strings.HasSuffix(r.Body, "data: [DONE]\n\n") {
		t.Errorf("%+v", r)
	}
	if r := faultserver.Deltas([]provider.Delta{provider.TextDelta("a")}); !r.Cut || strings.Contains(r.Body, "[DONE]") {
		t.Errorf("%+v", r)
	}
}

func TestTLS(t *testing.T) {
	s := faultserver.Start(t, faultserver.Options{TLS: true})
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(s.CA()) {
		t.Fatal("no certificate")
	}
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	defer tr.CloseIdleConnections()
	if status, _ := post(t, &http.Client{Transport: tr}, s.Base("ok"), `{}`); status != 200 {
		t.Errorf("status %d", status)
	}
	if p := s.Requests()[0].Proto; p != "HTTP/2.0" {
		t.Errorf("spoke %s", p)
	}
}

// A server closes at once, whatever it is doing, and leaves nothing behind.
func TestClose(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for _, name := range []string{"stall-headers", "stall-mid-stream", "keepalive-only", "done-open"} {
		s, err := faultserver.New(faultserver.Options{})
		if err != nil {
			t.Fatal(err)
		}
		tr := &http.Transport{}
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			resp, err := (&http.Client{Transport: tr}).Post(s.Base(name)+"/chat/completions", "application/json", strings.NewReader(`{}`))
			if err == nil {
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		}()
		for s.Count(name) == 0 {
			time.Sleep(time.Millisecond)
		}
		s.Close()
		s.Close()
		<-gone
		tr.CloseIdleConnections()
	}
}
