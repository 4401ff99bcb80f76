package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"coder/internal/model/provider"
)

// TestRefusalsTellTheWindow has the words of servers for a request that is too
// long, and what they say of how long it may be.
func TestRefusalsTellTheWindow(t *testing.T) {
	for body, want := range map[string]int{
		`{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":6843,"n_ctx":4096}}`: 4096,
		`{"error":{"message":"request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it","type":"invalid_request_error"}}`:                            8192,
		`{"error":{"message":"This model's maximum context length is 4096 tokens. However, your messages resulted in 9001 tokens.","code":"context_length_exceeded"}}`:                4096,
		`{"error":{"message":"This endpoint's maximum context length is 131,072 tokens. However, you requested about 200,001 tokens"}}`:                                               131072,
		`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}`:                                                    200000,
		`[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]`:                    1048576,
		`{"error":{"message":"Range of input length should be [1, 30720]","code":"invalid_parameter_error"}}`:                                                                         30720,
		`{"message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length"}`:                                                        32768,
		`{"error":"This model's maximum prompt length is 131072 but the request contains 200000 tokens."}`:                                                                            131072,
		"{\"error\":\"`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000\"}":                                                                                             4096,
		`{"error":{"message":"prompt token count of 150000 exceeds the limit of 128000"}}`:                                                                                            128000,
		`{"error":{"message":"Invalid request: Your request exceeded model token limit: 131072"}}`:                                                                                    131072,
		`{"error":"Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}`:     4096,
		`{"object":"error","message":"The decoder prompt (length 9000) is longer than the maximum model length of 4096. Exceeds the context length."}`:                                4096,
		`{"error":{"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"the request exceeds the available context size\",\"n_ctx\":2048}}"}}}`:            2048,
		`{"error":{"message":"Your input exceeds the context window of this model.","code":"context_length_exceeded"}}`:                                                               0,
		`{"error":{"message":"input is too long; max context length is 99999999999999999999"}}`:                                                                                       0,
		`{"error":{"message":"maximum context length is minus one","n_ctx":-1}}`:                                                                                                      0,
	} {
		e := classify(http.StatusBadRequest, readFault([]byte(body)))
		if !errors.Is(e, provider.ErrContextTooLong) || e.Window != want {
			t.Errorf("%s\nis %v with a window of %d, want %d", body, e, e.Window, want)
		}
	}
	if e := classify(http.StatusTooManyRequests, readFault([]byte(`{"error":{"message":"over the limit of 500 requests"}}`))); e.Window != 0 {
		t.Errorf("a limit of another kind was taken for a window: %d", e.Window)
	}
}

// served is a server that answers as its table says, and says 404 to the rest.
func served(t *testing.T, answers map[string]string) (Listing, *[]string) {
	t.Helper()
	asked := new([]string)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		what := strings.TrimSpace(r.Method + " " + r.URL.Path + " " + string(body))
		*asked = append(*asked, what)
		if r.Header.Get("Authorization") != "Bearer k" {
			t.Errorf("%s without the key", what)
		}
		answer, ok := answers[what]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(s.Close)
	return Listing{Client: New(Options{}), Endpoint: func() (*url.URL, http.Header, error) {
		u, err := url.Parse(s.URL + "/v1/models")
		return u, http.Header{"Authorization": {"Bearer k"}}, err
	}}, asked
}

// TestServersTellTheWindow has what each kind of server answers, after its
// documentation.
func TestServersTellTheWindow(t *testing.T) {
	const ollamaList = `{"object":"list","data":[{"id":"qwen2.5-coder:7b","object":"model","owned_by":"library"},{"id":"me/own:latest","object":"model","owned_by":"me"}]}`
	for name, tt := range map[string]struct {
		answers map[string]string
		model   string
		want    int
		most    int // questions
	}{
		"llama.cpp":                      {map[string]string{"GET /v1/models": `{"models":[{"name":"a.gguf","model":"a.gguf"}],"object":"list","data":[{"id":"a.gguf","owned_by":"llamacpp","meta":{"n_vocab":1,"n_ctx_train":131072,"n_ctx":8192}}]}`}, "a.gguf", 8192, 1},
		"llama.cpp, whatever the name":   {map[string]string{"GET /v1/models": `{"data":[{"id":"a.gguf","owned_by":"llamacpp","meta":{"n_ctx":8192}}]}`}, "gpt-4", 8192, 1},
		"an older llama.cpp":             {map[string]string{"GET /v1/models": `{"data":[{"id":"a","owned_by":"llamacpp","meta":{"n_ctx_train":131072}}]}`, "GET /props": `{"default_generation_settings":{"id":0,"n_ctx":4096},"total_slots":1}`}, "a", 4096, 2},
		"a model that Ollama has loaded": {map[string]string{"GET /v1/models": ollamaList, "GET /api/ps": `{"models":[{"name":"qwen2.5-coder:7b","model":"qwen2.5-coder:7b","size":1,"context_length":4096}]}`}, "qwen2.5-coder:7b", 4096, 2},
		"one that Ollama would load": {map[string]string{"GET /v1/models": ollamaList, "GET /api/ps": `{"models":[]}`,
			`POST /api/show {"model":"qwen2.5-coder:7b"}`: `{"parameters":"num_ctx                        16384\nstop                           \"<|im_end|>\"","model_info":{"qwen2.context_length":32768}}`}, "qwen2.5-coder:7b", 16384, 3},
		"one that Ollama says nothing of": {map[string]string{"GET /v1/models": ollamaList, "GET /api/ps": `{"models":[]}`,
			`POST /api/show {"model":"qwen2.5-coder:7b"}`: `{"parameters":"stop \"x\"","model_info":{"qwen2.context_length":32768}}`}, "qwen2.5-coder:7b", 0, 3},
		"one's own at Ollama":      {map[string]string{"GET /v1/models": ollamaList, "GET /api/ps": `{"models":[{"model":"me/own:latest","context_length":2048}]}`}, "me/own", 2048, 5},
		"vLLM":                     {map[string]string{"GET /v1/models": `{"data":[{"id":"Qwen/Qwen3-8B","owned_by":"vllm","root":"Qwen/Qwen3-8B","max_model_len":40960}]}`}, "Qwen/Qwen3-8B", 40960, 1},
		"LM Studio":                {map[string]string{"GET /v1/models": `{"data":[{"id":"qwen3-4b","owned_by":"organization_owner"}]}`, "GET /api/v0/models": `{"data":[{"id":"qwen3-4b","type":"llm","state":"loaded","max_context_length":32768,"loaded_context_length":4096}]}`}, "qwen3-4b", 4096, 2},
		"LM Studio, not loaded":    {map[string]string{"GET /v1/models": `{"data":[{"id":"qwen3-4b","owned_by":"organization_owner"}]}`, "GET /api/v0/models": `{"data":[{"id":"qwen3-4b","type":"llm","state":"not-loaded","max_context_length":32768}]}`}, "qwen3-4b", 0, 2},
		"OpenRouter":               {map[string]string{"GET /v1/models": `{"data":[{"id":"x/y","context_length":65536,"top_provider":{"max_completion_tokens":8192}}]}`}, "x/y", 65536, 1},
		"Anthropic":                {map[string]string{"GET /v1/models": `{"data":[{"type":"model","id":"claude-x","display_name":"X","max_input_tokens":200000,"max_tokens":64000}],"has_more":false}`}, "claude-x", 200000, 1},
		"Gemini":                   {map[string]string{"GET /v1/models": `{"models":[{"name":"models/gemini-x","inputTokenLimit":1048576,"outputTokenLimit":65536}]}`}, "gemini-x", 1048576, 1},
		"Groq":                     {map[string]string{"GET /v1/models": `{"data":[{"id":"g","owned_by":"Groq","context_window":131072,"max_completion_tokens":32768}]}`}, "g", 131072, 1},
		"Mistral":                  {map[string]string{"GET /v1/models": `{"data":[{"id":"m","owned_by":"mistralai","max_context_length":32768}]}`}, "m", 32768, 1},
		"a server without a list":  {map[string]string{"GET /props": `{"n_ctx":1234}`}, "m", 1234, 5},
		"a page instead of a list": {map[string]string{"GET /v1/models": `<html>hello</html>`}, "m", 0, 5},
		"nonsense everywhere":      {map[string]string{"GET /v1/models": `{"data":[{"id":"m","context_length":"lots","meta":[]}]}`, "GET /props": `[]`, "GET /api/ps": `{"models":7}`, "GET /api/v0/models": `"x"`}, "m", 0, 5},
		"figures that cannot be":   {map[string]string{"GET /v1/models": `{"data":[{"id":"m","context_length":-5}]}`, "GET /props": `{"n_ctx":1e300}`}, "m", 0, 5},
	} {
		t.Run(name, func(t *testing.T) {
			l, asked := served(t, tt.answers)
			if got := l.Window(t.Context(), tt.model); got != tt.want || len(*asked) > tt.most {
				t.Errorf("%d, want %d; asked %q", got, tt.want, *asked)
			}
		})
	}
}

func TestALookUpCanBeEnded(t *testing.T) {
	reached := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(reached)
		<-r.Context().Done()
	}))
	defer s.Close()
	l := Listing{Client: New(Options{}), Endpoint: func() (*url.URL, http.Header, error) {
		u, err := url.Parse(s.URL + "/v1/models")
		return u, http.Header{}, err
	}}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-reached; cancel() }()
	if n := l.Window(ctx, "m"); n != 0 {
		t.Error(n)
	}
}

func TestListsTellPrices(t *testing.T) {
	list := readModels([]byte(`{"data":[{"id":"a","pricing":{"prompt":"0.0000025","completion":"0.00001","input_cache_read":"0.00000025","input_cache_write":"0.000003125"},"top_provider":{"max_completion_tokens":16384}},
		{"id":"b","pricing":{"prompt":"-1","completion":"-1"}},{"id":"c","pricing":{"prompt":"0","completion":"0"}},{"id":"d","pricing":{"prompt":"cheap"}}, {"id":7}, "bare"]}`))
	if len(list) != 5 || list[0].Price == nil || *list[0].Price != (ListedPrice{2.5, 10, 0.25, 3.125}) || list[0].Output != 16384 {
		t.Fatalf("%+v", list)
	}
	if list[1].Name != "b" || list[1].Price != nil || list[3].Price == nil || *list[3].Price != (ListedPrice{}) || list[4].Price != nil {
		t.Errorf("%+v", list)
	}
}

func TestLocalAddresses(t *testing.T) {
	for address, want := range map[string]bool{
		"http://127.0.0.1:1/v1": true, "http://[::1]:1": true, "http://localhost:8080": true, "http://10.1.2.3": true, "http://192.168.0.5": true, "http://box:1": true, "http://box.local": true,
		"https://api.openai.com": false, "http://8.8.8.8": false, "http://localhost.evil.example": false,
	} {
		u, err := url.Parse(address)
		if err != nil || IsLocal(u) != want {
			t.Errorf("%s: %v", address, !want)
		}
	}
}
