package faultserver

import (
	"bytes"
	"io"
	"net/http"
	"time"
)

// statuses are refusals by HTTP status. What may pass has passed at the second
// request.
var statuses = map[string]behaviour{
	"http-400": func(t *turn) {
		t.fail(http.StatusBadRequest, "Invalid value for 'temperature'", "invalid_request_error", "")
	},
	"http-401": func(t *turn) {
		t.fail(http.StatusUnauthorized, "Incorrect API key provided: "+t.r.Header.Get("Authorization"),
			"invalid_request_error", "invalid_api_key")
	},
	"http-403": func(t *turn) {
		t.fail(http.StatusForbidden, "Country, region, or territory not supported", "request_forbidden", "")
	},
	"http-404-model": func(t *turn) {
		t.fail(http.StatusNotFound, "The model `nope` does not exist or you do not have access to it.",
			"invalid_request_error", "model_not_found")
	},
	"http-404-page": func(t *turn) { http.NotFound(t.w, t.r) },
	"http-error-string": func(t *turn) {
		t.json(http.StatusBadRequest, `{"error":"something is wrong with \u001b[31mthis\u001b[0m request"}`)
	},
	"http-error-empty": func(t *turn) { t.w.WriteHeader(http.StatusBadRequest) },
	"http-error-list": func(t *turn) {
		t.json(http.StatusBadRequest, `[{"error":{"code":400,"message":"listed","status":"INVALID_ARGUMENT"}}]`)
	},
	"http-error-detail": func(t *turn) {
		t.json(http.StatusUnprocessableEntity,
			`{"detail":[{"loc":["body","messages"],"msg":"field required","type":"value_error.missing"}]}`)
	},
	"http-408":         once(failing(http.StatusRequestTimeout)),
	"http-409":         once(failing(http.StatusConflict)),
	"http-425":         once(failing(http.StatusTooEarly)),
	"http-500":         once(failing(http.StatusInternalServerError)),
	"http-500-always":  failing(http.StatusInternalServerError),
	"http-529":         once(failing(529)),
	"http-429-bare":    once(func(t *turn) { t.w.WriteHeader(http.StatusTooManyRequests) }),
	"http-429-seconds": once(limited("Retry-After", "7")),
	"http-429-ms":      once(limited("Retry-After-Ms", "1500")),
	"http-429-day":     limited("Retry-After", "86400"),
	"http-429-date": once(func(t *turn) {
		now := time.Now().UTC()
		t.w.Header().Set("Date", now.Format(http.TimeFormat))
		limited("Retry-After", now.Add(9*time.Second).Format(http.TimeFormat))(t)
	}),
	"http-429-quota": func(t *turn) {
		t.fail(http.StatusTooManyRequests, "You exceeded your current quota, please check your plan and billing details.",
			"insufficient_quota", "insufficient_quota")
	},
	"http-402": func(t *turn) { t.fail(http.StatusPaymentRequired, "Insufficient Balance", "unknown_error", "") },
	"http-502-html": once(func(t *turn) {
		t.w.Header().Set("Content-Type", "text/html")
		t.w.WriteHeader(http.StatusBadGateway)
		io.WriteString(t.w, "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body><center><h1>502 Bad Gateway</h1></center><hr></body></html>")
	}),
	"http-503": once(func(t *turn) {
		t.w.Header().Set("Retry-After", "3")
		t.fail(http.StatusServiceUnavailable, "The engine is currently overloaded, please try again later",
			"overloaded_error", "")
	}),
	"no-stream-options": refusing(`"stream_options"`, "Unrecognized request argument supplied: stream_options"),
	"no-max-tokens": refusing(`"max_tokens"`,
		"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."),
	"no-reasoning": refusing(`"reasoning_content"`, "property 'messages.1.reasoning_content' is unsupported"),

	"ctx-openai": full(http.StatusBadRequest,
		errorObject("This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens. Please reduce the length of the messages.", "invalid_request_error", "context_length_exceeded")),
	"ctx-vllm": full(http.StatusBadRequest,
		`{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens in the messages.","type":"BadRequestError","param":null,"code":400}`),
	"ctx-llamacpp": full(http.StatusBadRequest,
		`{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}}`),
	"ctx-anthropic": full(http.StatusBadRequest,
		`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`),
	"ctx-gemini": full(http.StatusBadRequest,
		`[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]`),
	"ctx-openrouter": full(http.StatusBadRequest,
		`{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"This endpoint's maximum context length is 32768 tokens.\",\"code\":400}}","provider_name":"Someone"}}}`),
	"ctx-kimi": full(http.StatusBadRequest,
		errorObject("Invalid request: Your request exceeded model token limit: 131072", "invalid_request_error", "")),
	"ctx-413-empty": full(http.StatusRequestEntityTooLarge, ""),
	"ctx-in-stream": func(t *turn) {
		if t.smaller() {
			t.ok()
			return
		}
		t.send(data(errorObject("Your input exceeds the context window of this model. Please adjust your input and try again.", "invalid_request_error", "context_length_exceeded")))
	},
}

func failing(status int) behaviour {
	return func(t *turn) { t.fail(status, "something broke, try again", "server_error", "") }
}

func limited(header, value string) behaviour {
	return func(t *turn) {
		t.w.Header().Set(header, value)
		t.fail(http.StatusTooManyRequests, "Rate limit reached for requests", "requests", "rate_limit_exceeded")
	}
}

// refusing refuses requests that hold a word.
func refusing(word, message string) behaviour {
	return func(t *turn) {
		if !bytes.Contains(t.body, []byte(word)) {
			t.ok()
			return
		}
		t.fail(http.StatusBadRequest, message, "invalid_request_error", "")
	}
}

// full refuses until the request is smaller than the first.
func full(status int, body string) behaviour {
	return func(t *turn) {
		if t.smaller() {
			t.ok()
			return
		}
		t.json(status, body)
	}
}

func (t *turn) smaller() bool { return len(t.body) < t.first }
