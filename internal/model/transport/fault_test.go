package transport

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode"

	"coder/internal/model/provider"
)

const secret = "sk-secret-0123456789"

// Vendors say the same thing in many ways.
func TestClassify(t *testing.T) {
	tooLong, quota, auth, noModel := provider.ErrContextTooLong, provider.ErrQuota, provider.ErrAuth, provider.ErrUnknownModel
	noTools := provider.ErrNoTools
	bad, rate, over, noAPI := provider.ErrBadRequest, provider.ErrRateLimited, provider.ErrOverloaded, provider.ErrNotAnAPI
	loading := provider.ErrLoading
	for _, tc := range []struct {
		name   string
		status int
		body   string
		kind   error
		retry  bool
	}{
		{"xai", 400, `{"code":"invalid","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}`, tooLong, false},
		{"groq", 400, `{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error","code":"context_length_exceeded"}}`, tooLong, false},
		{"groq by the minute", 413, `{"error":{"message":"Request too large for model x on tokens per minute (TPM): Limit 6000, Requested 9000","code":"rate_limit_exceeded"}}`, tooLong, false},
		{"openai by the minute", 429, `{"error":{"message":"Request too large for gpt-x on tokens per min (TPM): Limit 30000, Requested 50000.","type":"tokens","code":"rate_limit_exceeded"}}`, tooLong, false},
		{"mistral", 400, `{"object":"error","message":"Prompt contains 40000 tokens, too large for model with 32768 maximum context length","code":3051}`, tooLong, false},
		{"bedrock", 400, `{"message":"Input is too long for requested model."}`, tooLong, false},
		{"zhipu", 400, `{"error":{"code":"1261","message":"Prompt exceeds max length"}}`, tooLong, false},
		{"dashscope", 400, `{"error":{"message":"Range of input length should be [1, 129024]","type":"invalid_request_error","code":"invalid_parameter_error"}}`, tooLong, false},
		{"minimax", 400, `{"error":{"message":"invalid params, context window exceeds limit (2013)"}}`, tooLong, false},
		{"copilot", 400, `{"error":{"message":"prompt token count of 140000 exceeds the limit of 128000","code":"model_max_prompt_tokens_exceeded"}}`, tooLong, false},
		{"together", 422, "{\"error\":{\"message\":\"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097\"}}", tooLong, false},
		{"lm studio", 400, `{"error":"The number of tokens to keep from the initial prompt is greater than the context length."}`, tooLong, false},
		{"llama.cpp as a 500", 500, `{"error":{"code":500,"message":"the request exceeds the available context size. try increasing the context size","type":"server_error"}}`, tooLong, false},
		{"anthropic with output", 400, "{\"error\":{\"message\":\"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000\"}}", tooLong, false},

		{"deepseek balance", 402, `{"error":{"message":"Insufficient Balance","type":"unknown_error","code":"invalid_request_error"}}`, quota, false},
		{"anthropic credit", 400, `{"error":{"message":"Your credit balance is too low to access the API"}}`, quota, false},
		{"openrouter credit", 402, `{"error":{"message":"This request requires more credits, or fewer max_tokens","code":402}}`, quota, false},
		{"kimi quota", 429, `{"error":{"message":"Your account is suspended, please check your plan","type":"exceeded_current_quota_error"}}`, quota, false},
		{"google by the minute", 429, `[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"x/RetryInfo","retryDelay":"17s"}]}}]`, rate, true},

		{"quota that comes back", 429, `{"error":{"message":"You exceeded your current quota.","details":[{"retryDelay":"5s"}]}}`, rate, true},
		{"quota without a word about when", 429, `{"error":{"message":"You exceeded your current quota."}}`, quota, false},
		{"google key", 400, `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`, auth, false},
		{"no key", 401, `{"error":{"message":"No auth credentials found","code":401}}`, auth, false},

		{"openrouter model", 400, `{"error":{"message":"foo/bar is not a valid model ID","code":400}}`, noModel, false},
		{"deepseek model", 400, `{"error":{"message":"Model Not Exist","type":"invalid_request_error"}}`, noModel, false},
		{"ollama model", 404, `{"error":"model 'foo' not found, try pulling it first"}`, noModel, false},
		{"anthropic model", 404, `{"type":"error","error":{"type":"not_found_error","message":"model: foo-1"}}`, noModel, false},
		{"parameter of a model", 400, `{"error":{"message":"Unsupported parameter: 'temperature' is not supported with this model."}}`, bad, false},

		{"llama.cpp without a template", 500, `{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}`, noTools, false},
		{"ollama tools", 400, `{"error":{"message":"gemma:2b does not support tools","type":"api_error"}}`, noTools, false},
		{"vllm tools", 400, `{"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","code":400}`, noTools, false},
		{"openrouter tools", 404, `{"error":{"message":"No endpoints found that support tool use. To learn more about provider routing, visit: https://openrouter.ai/docs","code":404}}`, noTools, false},
		{"google tools", 400, `{"error":{"code":400,"message":"Function calling is not enabled for models/gemma-3-27b-it","status":"INVALID_ARGUMENT"}}`, noTools, false},
		{"groq tools", 400, "{\"error\":{\"message\":\"`tools` is not supported with this model\",\"type\":\"invalid_request_error\"}}", noTools, false},
		{"deepseek tools", 400, `{"error":{"message":"deepseek-reasoner does not support Function Calling","type":"invalid_request_error"}}`, noTools, false},
		{"bedrock tools", 400, `{"message":"This model doesn't support tool use."}`, noTools, false},
		{"a strict server", 422, `{"detail":"Unrecognized request argument supplied: tools"}`, noTools, false},
		{"a server's parameter", 400, `{"error":{"message":"Unsupported parameter: 'tools' is not supported with this model."}}`, noTools, false},
		{"dashscope tools", 400, `{"error":{"message":"该模型不支持工具调用"}}`, noTools, false},
		{"not implemented", 501, `{"error":"tools are not supported"}`, noTools, false},
		{"too many tools", 400, `{"error":{"message":"Invalid 'tools': array too long. Expected an array with maximum length 128"}}`, bad, false},
		{"a tool's schema", 400, `{"error":{"message":"Invalid schema for function 'read': unknown keyword"}}`, bad, false},

		{"no such page", 404, "404 page not found\n", noAPI, false},
		{"blocked by a proxy, in markup", 403, "<html>Blocked by the proxy</html>", noAPI, false},
		{"a refused key, in markup", 403, "<html>Invalid API key</html>", auth, false},
		{"no such page, in markup", 404, "<html><title>Not Found</title></html>", noAPI, false},
		{"no such route", 404, `{"detail":"Not Found"}`, bad, false},
		{"overloaded", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, over, true},
		{"unavailable", 503, ``, over, true},
		{"bad gateway", 502, `<h1>Bad gateway</h1>`, nil, true},
		{"gateway timeout", 504, ``, nil, true},
		{"strange status", 418, `{"error":{"message":"I am a teapot"}}`, bad, false},
		{"too fast", 429, `{"message":"slow down"}`, rate, true},
		{"too early", 425, ``, nil, true},

		{"llama.cpp loads", 503, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`, loading, true},
		{"a hub loads", 503, `{"error":"Model acme/coder is currently loading","estimated_time":20.5}`, loading, true},
		{"a router loads", 500, `{"error":{"message":"model coder is still loading, please wait"}}`, loading, true},
		{"ollama's runner starts", 500, `{"error":"timed out waiting for llama runner to start - progress 0.31"}`, loading, true},
		{"not loading but busy", 503, `{"error":{"message":"The server is overloaded or not ready yet."}}`, over, true},
		{"loading as a word of the person's", 400, `{"error":{"message":"invalid tool: loading model weights"}}`, bad, false},
	} {
		f := readFault([]byte(tc.body))
		e := classify(tc.status, f)
		if e.Kind != tc.kind || e.Retryable != tc.retry || e.Status != tc.status {
			t.Errorf("%s: kind %v, retryable %v, status %d: %v", tc.name, e.Kind, e.Retryable, e.Status, e)
		}
		if strings.TrimSpace(e.Err.Error()) == "" {
			t.Errorf("%s: no words", tc.name)
		}
	}
}

func TestFaultTexts(t *testing.T) {
	for _, tc := range []struct{ name, body, want string }{
		{"object", `{"error":{"message":"m","type":"t"}}`, "m"},
		{"string", `{"error":"m"}`, "m"},
		{"bare", `{"message":"m","code":1}`, "m"},
		{"detail", `{"detail":"m"}`, "m"},
		{"list of details", `{"detail":[{"loc":["body"],"msg":"m"}]}`, "m"},
		{"list of errors", `{"errors":[{"message":"m"},{"message":"n"}]}`, "m"},
		{"old baidu", `{"error_code":17,"error_msg":"m"}`, "m"},
		{"wrapped twice", `{"error":{"error":{"message":"m"}}}`, "m"},
		{"behind another", `{"error":{"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"m\"}}"}}}`, "Provider returned error: m"},
		{"behind another, in words", `{"error":{"message":"Provider returned error","metadata":{"raw":"m"}}}`, "Provider returned error: m"},
		{"control characters", `{"error":"a\u001b[31mb\u0007\r\n\tc\u202ed\u001b]0;title\u0007\u001b!"}`, "ab cd!"},
		{"entities", "<p>a &lt;b&gt; &amp;\n c</p>", "a <b> & c"},
		{"scripts", "<script>x<y</script>a<!-- b --><style>p{}</style>c<br", "a c"},
		{"plain", "  a\n\n b ", "a b"},
		{"not UTF-8", "a\xffb", "a\uFFFDb"},
		{"nothing", "", ""},
		{"null", "null", ""},
	} {
		if got := readFault([]byte(tc.body)).text; got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
	long := readFault([]byte(strings.Repeat("世界 ", 1000))).text
	if len(long) > maxErrorText+len("…") || !strings.HasSuffix(long, "…") {
		t.Errorf("%d bytes: %q", len(long), long)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	clock := func() time.Time { return now }
	date := now.Add(90 * time.Second).Format(http.TimeFormat)
	for _, tc := range []struct {
		name   string
		header http.Header
		now    func() time.Time
		want   time.Duration
	}{
		{"none", http.Header{}, clock, 0},
		{"seconds", http.Header{"Retry-After": {"7"}}, clock, 7 * time.Second},
		{"parts of a second", http.Header{"Retry-After": {"0.5"}}, clock, 500 * time.Millisecond},
		{"milliseconds first", http.Header{"Retry-After-Ms": {"250"}, "Retry-After": {"9"}}, clock, 250 * time.Millisecond},
		{"date", http.Header{"Retry-After": {date}}, clock, 90 * time.Second},
		{"date by the server's clock", http.Header{"Retry-After": {date}, "Date": {now.Add(time.Minute).Format(http.TimeFormat)}}, clock, 30 * time.Second},
		{"date without any clock", http.Header{"Retry-After": {date}}, nil, 0},
		{"past date", http.Header{"Retry-After": {now.Add(-time.Hour).Format(http.TimeFormat)}}, clock, 0},
		{"negative", http.Header{"Retry-After": {"-5"}}, clock, 0},
		{"nonsense", http.Header{"Retry-After": {"soon"}}, clock, 0},
		{"absurd", http.Header{"Retry-After": {"1e300"}}, clock, maxWait},
		{"not a number", http.Header{"Retry-After": {"NaN"}}, clock, 0},
	} {
		if got := retryAfter(tc.header, tc.now); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
	if f := readFault([]byte(`{"error":{"details":[{"retryDelay":"17s"}]}}`)); f.wait != 17*time.Second {
		t.Errorf("hint in the body: %v", f.wait)
	}
}

// A key is masked where it is one: not a letter that happens to be the key, and
// not a part of a word.
func TestOnlyKeysAreMasked(t *testing.T) {
	for _, tt := range []struct{ key, text, want string }{
		{"k", "fake-1 is unknown", "fake-1 is unknown"},
		{"ke", "fake-1: bad key", "fake-1: bad key"},
		{"local", "localhost: local model", "localhost: local model"},
		{"changeme", "changeme is no key, changeme2 neither", "[key] is no key, changeme2 neither"},
		{"password", "bad passwords: password=password", "bad passwords: [key]=[key]"},
		{"sk-0123456789abcdef", "xsk-0123456789abcdefx", "x[key]x"},
		{"sk-01234", "Bearer sk-01234.", "Bearer [key]."},
	} {
		if got := maskSecrets(tt.text, collectSecrets(Options{APIKey: tt.key})); got != tt.want {
			t.Errorf("key %q: %q, want %q", tt.key, got, tt.want)
		}
	}
}

// Whatever a server says, the error is fit to be shown.
func FuzzFault(f *testing.F) {
	f.Add([]byte(`{"error":{"message":"m","code":400,"metadata":{"raw":"{}"}}}`), 400)
	f.Add([]byte("<script>"+secret), 502)
	f.Add([]byte("\x1b[2J\xff"), 200)
	f.Fuzz(func(t *testing.T, body []byte, status int) {
		e := classify(status, readFault(body))
		err := New(Options{APIKey: secret}).maskError(e)
		text := err.Error()
		if strings.Contains(text, secret) || strings.ContainsFunc(text, unicode.IsControl) || len(text) > maxErrorText+200 {
			t.Errorf("%q", text)
		}
		if !errors.Is(err, provider.ErrContextTooLong) && status == http.StatusRequestEntityTooLarge {
			t.Errorf("status 413 is %v", err)
		}
	})
}

// Whatever way a server says when its limit ends, we know how long that is.
func TestEndsOfLimits(t *testing.T) {
	at := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	now := func() time.Time { return at }
	for _, tc := range []struct {
		name   string
		header map[string]string
		body   string
		want   time.Duration
	}{
		{"seconds", map[string]string{"Retry-After": "11520"}, ``, 192 * time.Minute},
		{"a date", map[string]string{"Retry-After": "Mon, 16 Nov 2026 14:00:00 GMT"}, ``, 2 * time.Hour},
		{"a date and the server's own clock", map[string]string{"Retry-After": "Mon, 16 Nov 2026 14:00:00 GMT", "Date": "Mon, 16 Nov 2026 13:00:00 GMT"}, ``, time.Hour},
		{"openai", map[string]string{"X-Ratelimit-Reset-Requests": "1m30s", "X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Tokens": "6s", "X-Ratelimit-Remaining-Tokens": "4000"}, ``, 90 * time.Second},
		{"two limits used up", map[string]string{"X-Ratelimit-Reset-Requests": "1m30s", "X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Tokens": "6m0s", "X-Ratelimit-Remaining-Tokens": "0"}, ``, 6 * time.Minute},
		{"none used up", map[string]string{"X-Ratelimit-Reset-Requests": "24h0m0s", "X-Ratelimit-Remaining-Requests": "9", "X-Ratelimit-Reset-Tokens": "7.66s", "X-Ratelimit-Remaining-Tokens": "40"}, ``, 7660 * time.Millisecond},
		{"anthropic", map[string]string{"Anthropic-Ratelimit-Tokens-Reset": "2026-11-16T12:07:00Z", "Anthropic-Ratelimit-Tokens-Remaining": "0"}, ``, 7 * time.Minute},
		{"a subscription", map[string]string{"Anthropic-Ratelimit-Unified-Reset": "1794841200"}, ``, 3 * time.Hour},
		{"openrouter, in milliseconds", map[string]string{"X-Ratelimit-Reset": "1794837600000", "X-Ratelimit-Remaining": "0"}, ``, 2 * time.Hour},
		{"seconds to the reset", map[string]string{"Ratelimit-Reset": "300"}, ``, 5 * time.Minute},
		{"past", map[string]string{"X-Ratelimit-Reset": "1700000000"}, ``, 0},
		{"nonsense", map[string]string{"X-Ratelimit-Reset": "soon", "Retry-After": "later"}, ``, 0},
		{"for ever", map[string]string{"X-Ratelimit-Reset": "1e300"}, ``, maxWait},

		{"in words", nil, `{"error":{"message":"Rate limit reached. Please try again in 3h12m."}}`, 192 * time.Minute},
		{"in words, with parts of seconds", nil, `{"error":{"message":"Limit 100, Used 100. Please try again in 6m0.5s."}}`, 360500 * time.Millisecond},
		{"in long words", nil, `{"error":{"message":"Too many requests. Please retry after 1 hour and 30 minutes."}}`, 90 * time.Minute},
		{"in seconds", nil, `{"message":"quota exceeded, please wait 45 seconds before retrying"}`, 45 * time.Second},
		{"in milliseconds", nil, `{"error":{"message":"Please try again in 120ms."}}`, 120 * time.Millisecond},
		{"in days", nil, `{"error":{"message":"Your plan resets in 2 days"}}`, 48 * time.Hour},
		{"a field", nil, `{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","resets_in_seconds":5400}}`, 90 * time.Minute},
		{"headers come first", map[string]string{"Retry-After": "90"}, `{"error":{"message":"try again in 3h"}}`, 90 * time.Second},
		{"no time", nil, `{"error":{"message":"Please try again in a while"}}`, 0},
		{"figures that are no time", nil, `{"error":{"message":"retry with 3 messages"}}`, 0},
	} {
		resp := &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(tc.body))}
		for k, v := range tc.header {
			resp.Header.Set(k, v)
		}
		x := &exchange{client: New(Options{Now: now}), ctx: t.Context()}
		e, ok := errors.AsType[*provider.Error](x.statusError(resp))
		if !ok || e.RetryAfter != tc.want || tc.name != "no time" && tc.name != "in seconds" && !errors.Is(e, provider.ErrRateLimited) {
			t.Errorf("%s: %v, want %v: %v", tc.name, e.RetryAfter, tc.want, e)
		}
	}
}

func TestAModelMayTakeLongToReadARequest(t *testing.T) {
	c := New(Options{IdleTimeout: 2 * time.Minute})
	ask := func(base string, length int64) time.Duration {
		u, err := Endpoint(base, "/x")
		if err != nil {
			t.Fatal(err)
		}
		return c.prefill(Request{URL: u, Length: length})
	}
	for _, tc := range []struct {
		base   string
		length int64
		want   time.Duration
	}{
		{"http://127.0.0.1:8080", 5000, 0},
		{"http://127.0.0.1:8080", 8192 + 30000, 5 * time.Minute},
		{"http://192.168.1.7/v1", 8192 + 30000, 5 * time.Minute},
		{"http://[::1]:8080/v1", 8192 + 30000, 5 * time.Minute},
		{"http://bigbox:8080/v1", 8192 + 30000, 5 * time.Minute},
		{"http://bigbox.local/v1", 8192 + 30000, 5 * time.Minute},
		{"https://api.example.com/v1", 8192 + 240000, time.Minute},
		{"https://8.8.8.8/v1", 8192 + 240000, time.Minute},
	} {
		if got := ask(tc.base, tc.length); got != tc.want {
			t.Errorf("%s, %d bytes: %v, want %v", tc.base, tc.length, got, tc.want)
		}
	}
	// One that was given up may still be read: the next waits behind it.
	c.slowReplies.Store(1)
	if got := ask("http://127.0.0.1:8080", 8192+30000); got != 12*time.Minute { // of 2+5 minutes twice, beside the usual 2
		t.Errorf("after a silence: %v", got)
	}
	c.slowReplies.Store(9)
	if got := ask("http://127.0.0.1:8080", 8192+30000); got != 26*time.Minute {
		t.Errorf("after many: %v", got)
	}
	if got := ask("https://api.example.com/v1", 8192+240000); got != time.Minute {
		t.Errorf("elsewhere: %v", got)
	}
}

// TestTheLastUsedUpLimitCounts, or else the first limit to end.
func TestTheLastUsedUpLimitCounts(t *testing.T) {
	for name, tt := range map[string]struct {
		headers map[string]string
		want    time.Duration
	}{
		"none": {nil, 0},
		"several used up": {map[string]string{
			"X-Ratelimit-Reset-Requests": "5s", "X-Ratelimit-Remaining-Requests": "0",
			"X-Ratelimit-Reset-Tokens": "20s", "X-Ratelimit-Remaining-Tokens": "0",
		}, 20 * time.Second},
		"one used up": {map[string]string{
			"X-Ratelimit-Reset-Requests": "1s", "X-Ratelimit-Remaining-Requests": "7",
			"X-Ratelimit-Reset-Tokens": "20s", "X-Ratelimit-Remaining-Tokens": "0",
		}, 20 * time.Second},
		"none used up": {map[string]string{
			"X-Ratelimit-Reset-Requests": "30", "X-Ratelimit-Reset-Tokens": "20s",
		}, 20 * time.Second},
		"over already": {map[string]string{"X-Ratelimit-Reset": "0", "X-Ratelimit-Reset-Tokens": "3s"}, 3 * time.Second},
	} {
		h := make(http.Header)
		for name, value := range tt.headers {
			h.Set(name, value)
		}
		for range 20 { // the headers come in any order
			if got := limitReset(h, nil); got != tt.want {
				t.Errorf("%s: %v, want %v", name, got, tt.want)
			}
		}
	}
}
