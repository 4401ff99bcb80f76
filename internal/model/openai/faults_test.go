package openai_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"coder/internal/core/chat"
	"coder/internal/model/provider"
	"coder/internal/model/transport"
	"coder/testkit/faultserver"
)

// row is what must come of one behaviour of the server.
type row struct {
	text      string        // the answer; faultserver.Answer if empty and there is no error and no call
	reasoning string        // the thinking
	calls     string        // "id name args; …"
	broken    string        // what the last call's arguments were, if not JSON
	stop      provider.Stop // StopEnd, or StopTools with calls, if empty
	usage     *chat.Usage

	kind     error         // the error that stays after all retries
	status   int           // its HTTP status
	says     []string      // what its text must hold
	requests int           // how many were sent; 1 if zero
	atLeast  bool          // requests may be more: time was involved
	wait     time.Duration // what was waited before the second attempt, if not our own choice
	tls      bool
}

const oneCall = `call_a read {"path":"a.txt"}`

func rows() map[string]row {
	again := row{requests: 2}
	return map[string]row{
		// framing
		"ok": {}, "sse-crlf": {}, "sse-no-space": {}, "sse-bom": {}, "sse-one-write": {}, "sse-no-blank": {}, "sse-no-newline": {},
		"sse-comments": {}, "sse-multiline-data": {}, "sse-byte-by-byte": {}, "empty-choices": {}, "null-fields": {}, "content-parts": {},
		"gzip": {}, "refusal": {},
		"sse-many-deltas":  {text: faultserver.ManyText()},
		"giant-line":       {text: faultserver.GiantText()},
		"usage-only-final": {usage: &chat.Usage{In: 100, Out: 20, Cached: 64, Reasoning: 7, Cost: 0.5}},
		"lone-surrogate":   {text: "wave 👋 and half \uFFFD end"},
		"reasoning":        {reasoning: faultserver.Thought},
		"think-tags":       {reasoning: "\n" + faultserver.Thought},
		"json-not-sse":     {usage: &chat.Usage{In: 100, Out: 20}},

		// endings
		"no-done": {}, "no-done-open": {}, "no-finish-reason": {}, "done-open": {}, "data-after-done": {},
		"eof-early": again, "empty-message": again, "reasoning-only": again, "done-only": again, "empty-200": again,
		"finish-length": {stop: provider.StopLength},
		"finish-filter": {stop: provider.StopFilter},

		// broken streams and transport
		"cut-mid-chunk": again, "cut-reset": again, "cut-mid-rune": again, "cut-no-response": again, "cut-after-headers": again,
		"short-length": again, "bad-json-line": again, "error-in-stream": again, "error-event": again, "error-choice": again,
		"error-in-stream-fatal": {kind: provider.ErrBadRequest, says: []string{"Your prompt is not acceptable"}},
		"error-json-200":        {kind: provider.ErrBadRequest, says: []string{"Your prompt is not acceptable"}},
		"html-200":              {kind: provider.ErrNotAnAPI, requests: 5, says: []string{"Sign in", "Please sign in to the guest network & enjoy."}},
		"stall-mid-stream":      {requests: 2, atLeast: true},
		"stall-headers":         {requests: 2, atLeast: true},
		"keepalive-only":        {requests: 2, atLeast: true},
		"slow-stream":           {},
		"not-http":              {kind: provider.ErrNotAnAPI, says: []string{"127.0.0.1:", "does not speak HTTP"}},
		"redirect-307":          {requests: 2},
		"redirect-302":          {kind: provider.ErrNotAnAPI, says: []string{"redirects to http://127.0.0.1:", "/elsewhere"}},
		"redirect-other-host":   {kind: provider.ErrNotAnAPI, says: []string{"redirects to http://127.0.0.1:"}},
		"h2-reset":              {requests: 2, tls: true},
		"h2-goaway":             {tls: true},

		// tool calls
		"tool": {calls: oneCall}, "tool-no-index": {calls: oneCall}, "tool-id-repeated": {calls: oneCall}, "tool-name-split": {calls: oneCall},
		"tool-args-object": {calls: oneCall}, "tool-finish-stop": {calls: oneCall},
		"tool-parallel":       {calls: oneCall + "; " + strings.Replace(oneCall, "_a", "_b", 1)},
		"tool-no-index-two":   {calls: oneCall + "; " + strings.Replace(oneCall, "_a", "_b", 1)},
		"tool-same-index":     {calls: oneCall + "; " + strings.Replace(oneCall, "_a", "_b", 1)},
		"tool-no-id":          {calls: `call_0 read {"path":"a.txt"}`},
		"tool-no-id-two":      {calls: `call_0 read {"path":"a.txt"}; call_1 read {"path":"a.txt"}`},
		"tool-no-label-two":   {calls: `call_0 read {"path":"a.txt"}; call_1 read {"path":"a.txt"}`},
		"tool-id-shared":      {calls: oneCall + "; " + strings.Replace(oneCall, "_a", "_a_1", 1)},
		"tool-args-null":      {calls: "call_a read {}"},
		"tool-args-empty":     {calls: "call_a read {}"},
		"tool-args-invalid":   {calls: "call_a read {}", broken: `{"path": a.txt`},
		"tool-args-truncated": {text: none, calls: "call_a read {}", broken: `{"path":`, stop: provider.StopLength},
		"tool-cut-mid-args":   again,
		"tool-interleaved":    {calls: oneCall + "; " + strings.Replace(oneCall, "_a", "_b", 1) + "; " + strings.Replace(oneCall, "_a", "_c", 1)},
		"tool-index-gap":      {calls: oneCall + "; " + strings.Replace(oneCall, "_a", "_b", 1) + "; " + strings.Replace(oneCall, "_a", "_c", 1)},
		"tool-many":           {calls: manyCalls()},
		"tool-unknown":        {calls: "call_a no_such_tool {}"},
		"tool-loop":           {calls: `call_1 read {"path":"a.txt"}`},
		"tool-legacy":         {calls: `call_0 read {"path":"a.txt"}`},
		"tool-extra":          {calls: oneCall},

		// statuses
		"http-400":          {kind: provider.ErrBadRequest, status: 400, says: []string{"Invalid value for 'temperature'"}},
		"http-401":          {kind: provider.ErrAuth, status: 401, says: []string{"Incorrect API key provided: Bearer [key]"}},
		"http-403":          {kind: provider.ErrAuth, status: 403, says: []string{"territory not supported"}},
		"http-404-model":    {kind: provider.ErrUnknownModel, status: 404, says: []string{"`nope` does not exist"}},
		"http-404-page":     {kind: provider.ErrNotAnAPI, status: 404, says: []string{"127.0.0.1:", "404 page not found"}},
		"http-error-string": {kind: provider.ErrBadRequest, status: 400, says: []string{"something is wrong with this request"}},
		"http-error-empty":  {kind: provider.ErrBadRequest, status: 400, says: []string{"Bad Request"}},
		"http-error-list":   {kind: provider.ErrBadRequest, status: 400, says: []string{"listed"}},
		"http-error-detail": {kind: provider.ErrBadRequest, status: 422, says: []string{"field required"}},
		"http-408":          again, "http-409": again, "http-425": again, "http-500": again, "http-529": again,
		"http-500-always":  {kind: errAny, status: 500, says: []string{"provider answered 500: something broke"}, requests: 5},
		"http-429-bare":    again,
		"http-429-seconds": {requests: 2, wait: 7 * time.Second},
		"http-429-ms":      {requests: 2, wait: 1500 * time.Millisecond},
		"http-429-date":    {requests: 2, wait: 9 * time.Second},
		"http-429-day":     {kind: provider.ErrRateLimited, status: 429, says: []string{"Rate limit reached", "wait 24h0m0s"}},
		"http-429-quota":   {kind: provider.ErrQuota, status: 429, says: []string{"exceeded your current quota"}},
		"http-402":         {kind: provider.ErrQuota, status: 402, says: []string{"Insufficient Balance"}},
		"http-502-html":    again,
		"http-503":         {requests: 2, wait: 3 * time.Second},

		"no-stream-options": {requests: 2}, "no-max-tokens": {requests: 2}, "no-reasoning": {requests: 2},

		"ctx-openai": full(400), "ctx-vllm": full(400), "ctx-llamacpp": full(400), "ctx-anthropic": full(400), "ctx-gemini": full(400),
		"ctx-openrouter": full(400), "ctx-kimi": full(400), "ctx-413-empty": full(413), "ctx-in-stream": full(0),
	}
}

// none stands for no text where a row would otherwise mean the usual answer.
const none = "\x00"

var errAny = errors.New("any")

func full(status int) row { return row{kind: provider.ErrContextTooLong, status: status} }

func manyCalls() string {
	var calls []string
	for i := range faultserver.ManyCalls {
		calls = append(calls, fmt.Sprintf(`call_%d read {"path":"a.txt"}`, i))
	}
	return strings.Join(calls, "; ")
}

func TestFaults(t *testing.T) {
	table := rows()
	for _, name := range faultserver.Names() {
		want, ok := table[name]
		if !ok {
			t.Errorf("no row for %s", name)
		}
		delete(table, name)
		t.Run(name, func(t *testing.T) { t.Parallel(); check(t, name, want) })
	}
	for name := range table {
		t.Errorf("no behaviour for %s", name)
	}
}

func check(t *testing.T, name string, want row) {
	s := faultserver.Start(t, faultserver.Options{Key: key, TLS: want.tls, Tick: 20 * time.Millisecond})
	o := transport.Options{SendReasoning: true}
	if want.atLeast {
		o.IdleTimeout, o.ProgressTimeout = 300*time.Millisecond, 400*time.Millisecond
	}
	got := run(t, open(t, s, name, o))

	want.requests = max(want.requests, 1)
	if n := s.Count(name); n != want.requests && !(want.atLeast && n > want.requests) {
		t.Errorf("%d requests, want %d", n, want.requests)
	}
	if want.wait > 0 && (len(got.waits) == 0 || got.waits[0] != want.wait) {
		t.Errorf("waited %v, want %v", got.waits, want.wait)
	}
	for _, r := range s.Requests() {
		if r.Other || !r.Authorised {
			t.Errorf("request to another origin: %v, authorised: %v", r.Other, r.Authorised)
		}
	}
	if want.kind != nil {
		checkError(t, got.err, want)
		return
	}
	if got.err != nil {
		t.Fatal(got.err)
	}
	checkReply(t, got.reply, want)
}

var markup = regexp.MustCompile(`<[a-zA-Z/!]`)

func checkError(t *testing.T, err error, want row) {
	t.Helper()
	var e *provider.Error
	if !errors.As(err, &e) {
		t.Fatalf("error is %v", err)
	}
	if want.kind != errAny && !errors.Is(err, want.kind) {
		t.Errorf("error is %v, want %v", err, want.kind)
	}
	if e.Status != want.status {
		t.Errorf("status is %d, want %d", e.Status, want.status)
	}
	text := err.Error()
	for _, part := range want.says {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not say %q", text, part)
		}
	}
	if strings.Contains(text, key) || markup.MatchString(text) || strings.ContainsFunc(text, unicode.IsControl) || len(text) > 700 {
		t.Errorf("text is not clean: %q", text)
	}
}

func checkReply(t *testing.T, r provider.Reply, want row) {
	t.Helper()
	if want.text == "" && want.calls == "" {
		want.text = faultserver.Answer
	}
	if got := r.Message.Text(); got != strings.Trim(want.text, none) {
		t.Errorf("text is %.200q (%d bytes), want %.200q", got, len(got), want.text)
	}
	if got := r.Message.Reasoning(); got != want.reasoning {
		t.Errorf("reasoning is %q, want %q", got, want.reasoning)
	}
	if got := callList(r); got != want.calls {
		t.Errorf("calls are\n%s, want\n%s", got, want.calls)
	}
	for c := range chat.PartsOf[chat.ToolCall](r.Message) {
		if c.Broken != want.broken {
			t.Errorf("broken is %q, want %q", c.Broken, want.broken)
		}
	}
	if want.stop == "" {
		want.stop = provider.StopEnd
		if want.calls != "" {
			want.stop = provider.StopTools
		}
	}
	if r.Stop != want.stop {
		t.Errorf("stop is %q, want %q", r.Stop, want.stop)
	}
	if want.usage != nil && (r.Usage == nil || *r.Usage != *want.usage) {
		t.Errorf("usage is %+v, want %+v", r.Usage, want.usage)
	}
}

func callList(r provider.Reply) string {
	var calls []string
	for _, c := range r.Message.Calls() {
		calls = append(calls, fmt.Sprintf("%s %s %s", c.ID, c.Name, c.Args))
	}
	return strings.Join(calls, "; ")
}

// outcome is what came of a request with its retries.
type outcome struct {
	reply provider.Reply
	waits []time.Duration
	err   error
}

// run asks p with retries that take no time, and checks every delta.
func run(t *testing.T, p provider.Provider) outcome {
	t.Helper()
	var o outcome
	retry := provider.Retry(p, provider.Backoff{Retries: 4, Sleep: func(ctx context.Context, d time.Duration) error {
		o.waits = append(o.waits, d)
		return ctx.Err()
	}})
	o.reply, o.err = provider.Collect(retry.Stream(t.Context(), question()), func(d provider.Delta) error {
		if s := fmt.Sprint(d); !utf8.ValidString(s) {
			t.Errorf("delta %T is not valid UTF-8: %q", d, s)
		}
		return nil
	})
	return o
}

// question is a request with a little of everything.
func question() provider.Request {
	return provider.Request{
		Model: "m", System: "be brief", MaxTokens: 1000,
		Messages: []chat.Message{
			chat.TextMessage(chat.User, "hello"),
			{Role: chat.Assistant, Parts: []chat.Part{chat.Reasoning{Text: "hm", Field: "reasoning_content"}, chat.Text("hi")}},
			chat.TextMessage(chat.User, "what is the answer?"),
		},
		Tools: []provider.ToolSpec{{Name: "read", Doc: "reads a file", Schema: []byte(`{"type":"object"}`)}},
	}
}

func TestDialectIsRemembered(t *testing.T) {
	for _, name := range []string{"no-stream-options", "no-max-tokens", "no-reasoning"} {
		s := faultserver.Start(t, faultserver.Options{})
		c := open(t, s, name, transport.Options{SendReasoning: true})
		for range 3 {
			if o := run(t, c); o.err != nil {
				t.Errorf("%s: %v", name, o.err)
			}
		}
		if n := s.Count(name); n != 4 {
			t.Errorf("%s: %d requests for three replies, want 4", name, n)
		}
	}
}

func TestExtraContentGoesBack(t *testing.T) {
	s := faultserver.Start(t, faultserver.Options{})
	c := open(t, s, "tool-extra", transport.Options{})
	o := run(t, c)
	if o.err != nil {
		t.Fatal(o.err)
	}
	req := question()
	req.Messages = append(req.Messages, o.reply.Message, chat.ToolMessage(chat.ToolResult{CallID: "call_a", Text: "42"}))
	if _, err := provider.Collect(c.Stream(t.Context(), req), func(provider.Delta) error { return nil }); err != nil {
		t.Fatal(err)
	}
	sent := s.Requests()
	last := string(sent[len(sent)-1].Body)
	if !strings.Contains(last, `"extra_content":{"google":{"thought_signature":"c2ln"}}`) {
		t.Errorf("the signature did not go back: %s", last)
	}
}

func TestFewRequestsForTheSameContext(t *testing.T) {
	s := faultserver.Start(t, faultserver.Options{})
	c := open(t, s, "ctx-openai", transport.Options{})
	if o := run(t, c); !errors.Is(o.err, provider.ErrContextTooLong) {
		t.Fatal(o.err)
	}
	small := question()
	small.Messages = small.Messages[2:]
	r, err := provider.Collect(c.Stream(t.Context(), small), func(provider.Delta) error { return nil })
	if err != nil || r.Message.Text() != faultserver.Answer {
		t.Errorf("the smaller request: %q, %v", r.Message.Text(), err)
	}
	bodies := s.Requests()
	if len(bodies) != 2 || slices.Equal(bodies[0].Body, bodies[1].Body) {
		t.Errorf("%d requests", len(bodies))
	}
}
