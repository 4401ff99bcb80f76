package openai

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/model/provider"
)

// summary puts a reply in one line: thoughts, text, calls, stop.
func summary(r provider.Reply) string {
	var b strings.Builder
	for p := range chat.PartsOf[chat.Reasoning](r.Message) {
		fmt.Fprintf(&b, "(%s:%s%s) ", p.Field, p.Text, p.Details)
	}
	fmt.Fprintf(&b, "%q", r.Message.Text())
	for _, c := range r.Message.Calls() {
		fmt.Fprintf(&b, " %s=%s%s", c.ID, c.Name, c.Args)
		if c.Broken != "" {
			fmt.Fprintf(&b, "!%s", c.Broken)
		}
	}
	return b.String() + " " + string(r.Stop)
}

func stream(deltas ...string) string {
	var b strings.Builder
	for _, d := range deltas {
		b.WriteString(`data: {"choices":[{"index":0,"delta":` + d + `}]}` + "\n\n")
	}
	return b.String() + "data: [DONE]\n\n"
}

func toolDeltas(calls ...string) string {
	var ds []string
	for _, c := range calls {
		ds = append(ds, `{"tool_calls":[`+c+`]}`)
	}
	return stream(ds...)
}

func TestReplies(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		// thinking
		{"reasoning_content", stream(`{"reasoning_content":"a"}`, `{"reasoning_content":"b","content":null}`, `{"content":"c"}`), `(reasoning_content:ab) "c" end`},
		{"reasoning", stream(`{"reasoning":"a"}`, `{"content":"c"}`), `(reasoning:a) "c" end`},
		{"reasoning_text", stream(`{"reasoning_text":"a"}`, `{"content":"c"}`), `(reasoning_text:a) "c" end`},
		{"thinking", stream(`{"thinking":"a"}`, `{"content":"c"}`), `(thinking:a) "c" end`},
		{"the same thought under two names", stream(`{"reasoning":"a","reasoning_content":"a"}`, `{"reasoning_content":"b","reasoning":"b"}`, `{"content":"c"}`), `(reasoning:ab) "c" end`},
		{"thinking as a part", stream(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]}]}`, `{"content":[{"type":"text","text":"c"}]}`), `(:a) "c" end`},
		{"thinking in tags", stream(`{"content":"<thi"}`, `{"content":"nk>a</think>"}`, `{"content":"\n\nc"}`), `(:a) "c" end`},
		{"tags where thoughts come apart", stream(`{"reasoning":"a"}`, `{"content":"<think>b</think>c"}`), `(reasoning:a) "<think>b</think>c" end`},
		{"tags later on", stream(`{"content":"c "}`, `{"content":"<think>b</think>"}`), `"c <think>b</think>" end`},
		{"half a tag and no more", stream(`{"content":"<thi"}`), `"<thi" end`},
		{"half a tag before a call", toolDeltas(`{"id":"a","function":{"name":"f","arguments":"{}"}}`), `"" a=f{} tools`},
		{"thought cut in a pair", stream(`{"reasoning":"\ud83d"}`, `{"reasoning":"\udc4b"}`, `{"content":"c"}`), `(reasoning:👋) "c" end`},

		// details
		{"details beside the text", stream(
			`{"reasoning":"a","reasoning_details":[{"type":"reasoning.text","text":"a","format":"f","index":0}]}`,
			`{"reasoning":"b","reasoning_details":[{"type":"reasoning.text","text":"b","format":"f","index":0}]}`,
			`{"reasoning_details":[{"type":"reasoning.text","signature":"s","format":"f","index":0}]}`, `{"content":"c"}`),
			`(reasoning:ab[{"type":"reasoning.text","text":"ab","format":"f","index":0,"signature":"s"}]) "c" end`},
		{"details alone", stream(
			`{"reasoning_details":[{"type":"reasoning.summary","summary":"a\ud83d","index":0,"id":null}]}`,
			`{"reasoning_details":[{"type":"reasoning.summary","summary":"\udc4b","index":0,"id":"x"}]}`, `{"content":"c"}`),
			`(reasoning_details:a👋[{"type":"reasoning.summary","summary":"a\ud83d\udc4b","index":0,"id":"x"}]) "c" end`},
		{"details of several kinds and blocks", stream(
			`{"reasoning_details":[{"type":"reasoning.text","text":"a","index":0},{"type":"reasoning.text","text":"b","index":1}]}`,
			`{"reasoning_details":[{"type":"reasoning.encrypted","data":"x","id":"1","index":0},{"type":"reasoning.encrypted","data":"y","id":"2","index":0}]}`,
			`{"reasoning_details":[{"type":"reasoning.text","text":"c","index":1}]}`, `{"content":"d"}`),
			`(reasoning_details:abc[{"type":"reasoning.text","text":"a","index":0},{"type":"reasoning.text","text":"bc","index":1},` +
				`{"type":"reasoning.encrypted","data":"x","id":"1","index":0},{"type":"reasoning.encrypted","data":"y","id":"2","index":0}]) "d" end`},
		{"details with nulls", stream(
			`{"reasoning_details":[{"type":"reasoning.text","text":"a","signature":null,"index":0}]}`,
			`{"reasoning_details":[{"type":"reasoning.text","text":null,"signature":"s","index":0}]}`,
			`{"reasoning_details":[{"type":"reasoning.text","text":"b","signature":null,"index":0}]}`, `{"content":"c"}`),
			`(reasoning_details:ab[{"type":"reasoning.text","text":"ab","signature":"s","index":0}]) "c" end`},
		{"empty details", stream(`{"reasoning_details":[],"content":"c"}`), `"c" end`},

		// calls
		{"interleaved", toolDeltas(
			`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}`, `{"index":1,"id":"b","function":{"name":"g","arguments":"{\"y\":"}}`,
			`{"index":0,"function":{"arguments":"1}"}}`, `{"index":1,"function":{"arguments":"2}"}}`), `"" a=f{"x":1} b=g{"y":2} tools`},
		{"two in one delta without labels", stream(`{"tool_calls":[{"function":{"name":"f","arguments":"{}"}},{"function":{"name":"g","arguments":"{}"}}]}`), `"" call_0=f{} call_1=g{} tools`},
		{"one after another without labels", toolDeltas(`{"function":{"name":"f","arguments":"{\"x\""}}`, `{"function":{"arguments":":1}"}}`, `{"function":{"name":"g","arguments":"{}"}}`), `"" call_0=f{"x":1} call_1=g{} tools`},
		{"id without index", toolDeltas(`{"id":"a","function":{"name":"f"}}`, `{"id":"b","function":{"name":"g"}}`, `{"id":"a","function":{"arguments":"{\"x\":1}"}}`, `{"id":"b","function":{"arguments":"{}"}}`), `"" a=f{"x":1} b=g{} tools`},
		{"new id at the same index", toolDeltas(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`, `{"index":0,"id":"b","function":{"name":"f","arguments":"{\"x\""}}`, `{"index":0,"function":{"arguments":":1}"}}`), `"" a=f{} b=f{"x":1} tools`},
		{"new name at the same index, no ids", toolDeltas(`{"index":0,"function":{"name":"f","arguments":"{}"}}`, `{"index":0,"function":{"name":"g","arguments":"{}"}}`), `"" call_0=f{} call_1=g{} tools`},
		{"same name at the same index, no ids", toolDeltas(`{"index":0,"function":{"name":"f","arguments":"{\"x\":1}"}}`, `{"index":0,"function":{"name":"f","arguments":"{\"x\":2}"}}`), `"" call_0=f{"x":1} call_1=f{"x":2} tools`},
		{"index that moves with the pieces", toolDeltas(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`, `{"index":1,"function":{"arguments":":1}"}}`), `"" a=f{"x":1} tools`},
		{"index in quotes", toolDeltas(`{"index":"0","id":"a","function":{"name":"f","arguments":"{"}}`, `{"index":"0","function":{"arguments":"}"}}`), `"" a=f{} tools`},
		{"id and name again with every piece", toolDeltas(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`, `{"index":0,"id":"a","function":{"name":"f","arguments":":{}"}}`, `{"index":0,"id":"a","function":{"name":"f","arguments":"}"}}`, `{"index":0,"id":"a","function":{"name":"f","arguments":""}}`), `"" a=f{"x":{}} tools`},
		{"name again before the arguments", toolDeltas(`{"index":0,"id":"a","function":{"name":"f","arguments":""}}`, `{"index":0,"id":"a","function":{"name":"f","arguments":""}}`, `{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), `"" a=f{} tools`},
		{"all of it again at the end", toolDeltas(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}`, `{"index":0,"function":{"arguments":"1}"}}`, `{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`), `"" a=f{"x":1} tools`},
		{"name in three pieces", toolDeltas(`{"index":0,"id":"a","function":{"name":"re"}}`, `{"index":0,"function":{"name":"ad_","arguments":""}}`, `{"index":0,"function":{"name":"file","arguments":"{}"}}`), `"" a=read_file{} tools`},
		{"id that comes late", toolDeltas(`{"index":0,"function":{"name":"f","arguments":"{"}}`, `{"index":0,"id":"a","function":{"arguments":"}"}}`), `"" a=f{} tools`},
		{"name that comes late", toolDeltas(`{"index":0,"id":"a","function":{"arguments":"{"}}`, `{"index":0,"function":{"name":"f","arguments":"}"}}`), `"" a=f{} tools`},
		{"no arguments at all", toolDeltas(`{"index":0,"id":"a","function":{"name":"f"}}`), `"" a=f{} tools`},
		{"arguments are an object", toolDeltas(`{"index":0,"id":"a","function":{"name":"f","arguments":{"x":[1]}}}`), `"" a=f{"x":[1]} tools`},
		{"arguments are a list", toolDeltas(`{"index":0,"id":"a","function":{"name":"f","arguments":[1]}}`), `"" a=f{}![1] tools`},
		{"rune cut in the arguments", toolDeltas(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":\"\ud83d"}}`, `{"index":0,"function":{"arguments":"\udc4b\"}"}}`), `"" a=f{"x":"👋"} tools`},
		{"empty pieces", toolDeltas(`{}`, `null`, `{"index":3}`, `{"index":0,"function":{"arguments":""}}`, `{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), `"" a=f{} tools`},
		{"old form", stream(`{"function_call":{"name":"f","arguments":""}}`, `{"function_call":{"arguments":"{}"}}`), `"" call_0=f{} tools`},
		{"text and calls", stream(`{"content":"first"}`, `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`), `"first" a=f{} tools`},

		// forms
		{"whole message", `{"choices":[{"message":{"content":"c","reasoning":"r","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}]}`, `(reasoning:r) "c" a=f{} a_1=f{} tools`},
		{"whole message without a reason to stop", `{"choices":[{"message":{"content":"c"}}]}`, `"c" end`},
		{"message in an event", "data: " + `{"choices":[{"message":{"content":"c"},"finish_reason":"stop"}]}` + "\n\n", `"c" end`},
		{"message beside a null delta", "data: " + `{"choices":[{"delta":null,"message":{"content":"c"},"finish_reason":"stop"}]}` + "\n\n", `"c" end`},
		{"message after deltas", "data: " + `{"choices":[{"delta":{"content":"c"}}]}` + "\n\ndata: " + `{"choices":[{"message":{"content":"c"},"finish_reason":"stop"}]}` + "\n\n", `"c" end`},
		{"chunks line by line", `{"choices":[{"delta":{"content":"a"}}]}` + "\n" + `{"choices":[{"delta":{"content":"b"},"finish_reason":"stop"}]}` + "\n", `"ab" end`},
		{"other choices", `data: {"choices":[{"index":1,"delta":{"content":"x"}},{"index":0,"delta":{"content":"a"}},{"index":2,"delta":{"content":"y"}}]}` + "\n\ndata: [DONE]\n\n", `"a" end`},
		{"one answer numbered by its parts", `data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}` + "\n\n" + `data: {"choices":[{"index":1,"delta":{"content":"I look"}}]}` + "\n\n" +
			`data: {"choices":[{"index":2,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}` + "\n\n" +
			`data: {"choices":[{"index":3,"delta":{"content":""},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n", `(reasoning_content:hm) "I look" a=f{} tools`},
		{"one answer numbered by its parts, a call first", `data: {"choices":[{"index":0,"delta":{"content":""}}]}` + "\n\n" + `data: {"choices":[{"index":1,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]}}]}` + "\n\n" +
			`data: {"choices":[{"index":1,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}}]}` + "\n\n" + `data: {"choices":[{"index":2,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n", `"" a=f{"x":1} tools`},
		{"two answers in turn", `data: {"choices":[{"index":0,"delta":{"content":"a"}}]}` + "\n\n" + `data: {"choices":[{"index":1,"delta":{"content":"x"}}]}` + "\n\n" +
			`data: {"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}]}` + "\n\n" + `data: {"choices":[{"index":1,"delta":{"content":"y"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n", `"ab" end`},
		{"refusal", stream(`{"refusal":"I "}`, `{"refusal":"will not"}`), `"I will not" end`},
		{"odd types", `data: {"choices":[{"index":"0","delta":{"content":7,"tool_calls":{},"reasoning":{},"refusal":[]},"finish_reason":0,"usage":[]}],"usage":"none","x_groq":[]}` + "\n\n" + stream(`{"content":"c"}`), `"c" end`},
		{"values that are no objects", "data: 1\n\ndata: \"x\"\n\ndata: []\n\ndata: null\n\n" + stream(`{"content":"c"}`), `"c" end`},
	} {
		r, err := read(strings.NewReader(tc.in))
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if got := summary(r); got != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", tc.name, got, tc.want)
		}
	}
}

func finishing(reason string, more ...string) string {
	return `data: {"choices":[{"delta":{"content":"c"}}]}` + "\n\n" + `data: {"choices":[{"delta":{},"finish_reason":"` + reason + `"}]}` + "\n\n" + strings.Join(more, "")
}

func TestStops(t *testing.T) {
	call := `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}` + "\n\n"
	for _, tc := range []struct {
		name, in string
		want     provider.Stop
	}{
		{"stop", finishing("stop"), provider.StopEnd},
		{"end_turn", finishing("end_turn"), provider.StopEnd},
		{"unknown", finishing("whatever"), provider.StopEnd},
		{"length", finishing("length"), provider.StopLength},
		{"MAX_TOKENS", finishing("MAX_TOKENS"), provider.StopLength},
		{"content_filter", finishing("content_filter"), provider.StopFilter},
		{"SAFETY", finishing("SAFETY"), provider.StopFilter},
		{"tool_calls without calls", finishing("tool_calls"), provider.StopEnd},
		{"stop with calls", call + finishing("stop"), provider.StopTools},
		{"calls after the stop", finishing("stop", call), provider.StopTools},
		{"length with calls", call + finishing("length"), provider.StopLength},
		{"length, then stop", finishing("length", `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}`+"\n\n"), provider.StopLength},
		{"empty reasons on the way", `data: {"choices":[{"delta":{"content":"c"},"finish_reason":""}]}` + "\n\n" + finishing("stop"), provider.StopEnd},
		{"nothing but a length", `data: {"choices":[{"delta":{"reasoning":"r"},"finish_reason":"length"}]}` + "\n\n", provider.StopLength},
		{"nothing but a filter", `data: {"choices":[{"delta":{},"finish_reason":"content_filter"}]}` + "\n\n", provider.StopFilter},
	} {
		r, err := read(strings.NewReader(tc.in))
		if err != nil || r.Stop != tc.want {
			t.Errorf("%s: %q, %v; want %q", tc.name, r.Stop, err, tc.want)
		}
		if calls := r.Message.Calls(); tc.want != provider.StopTools && len(calls) > 0 && calls[len(calls)-1].Broken == "" {
			t.Errorf("%s: there are calls", tc.name)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     *chat.Usage
	}{
		{"none", finishing("stop"), nil},
		{"null", finishing("stop", `data: {"choices":[],"usage":null}`+"\n\n"), nil},
		{"in a chunk of its own", finishing("stop", `data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2}}`+"\n\n"), &chat.Usage{In: 10, Out: 2}},
		{"the last counts", finishing("stop", `data: {"usage":{"prompt_tokens":1}}`+"\n\n", `data: {"usage":{"prompt_tokens":10,"completion_tokens":2}}`+"\n\n", `data: {"usage":{"prompt_tokens":0}}`+"\n\n"), &chat.Usage{In: 10, Out: 2}},
		{"groq", finishing("stop", `data: {"choices":[],"x_groq":{"id":"r","usage":{"prompt_tokens":10,"completion_tokens":2}}}`+"\n\n"), &chat.Usage{In: 10, Out: 2}},
		{"in the choice", finishing("stop", `data: {"choices":[{"delta":{},"usage":{"prompt_tokens":10,"completion_tokens":2,"cached_tokens":4}}]}`+"\n\n"), &chat.Usage{In: 10, Out: 2, Cached: 4}},
		{"cache and thinking", finishing("stop", `data: {"usage":{"prompt_tokens":10,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":1},"cost":0.25}}`+"\n\n"), &chat.Usage{In: 10, Out: 2, Cached: 4, Reasoning: 1, Cost: 0.25}},
		{"cache of another vendor", finishing("stop", `data: {"usage":{"prompt_tokens":10,"completion_tokens":2,"prompt_cache_hit_tokens":6,"prompt_cache_miss_tokens":4}}`+"\n\n"), &chat.Usage{In: 10, Out: 2, Cached: 6}},
		{"odd figures", finishing("stop", `data: {"usage":{"prompt_tokens":"10","completion_tokens":2.0,"cost":"0.5","prompt_tokens_details":7,"total_tokens":-1}}`+"\n\n"), &chat.Usage{In: 10, Out: 2, Cost: 0.5}},
		{"absurd figures", finishing("stop", `data: {"usage":{"prompt_tokens":1e300,"completion_tokens":2}}`+"\n\n"), &chat.Usage{Out: 2}},
		{"other names", finishing("stop", `data: {"usage":{"input_tokens":10,"output_tokens":2}}`+"\n\n"), &chat.Usage{In: 10, Out: 2}},
	} {
		r, err := read(strings.NewReader(tc.in))
		if err != nil || (r.Usage == nil) != (tc.want == nil) || r.Usage != nil && *r.Usage != *tc.want {
			t.Errorf("%s: %+v, %v; want %+v", tc.name, r.Usage, err, tc.want)
		}
	}
}

func TestErrorsInsideAReply(t *testing.T) {
	chunk := `data: {"choices":[{"delta":{"content":"half"}}]}` + "\n\n"
	for _, tc := range []struct {
		name, in  string
		kind      error
		status    int
		retryable bool
		says      string
	}{
		{"server error", chunk + `data: {"error":{"message":"broke","type":"server_error"}}` + "\n\n", nil, 0, true, "broke"},
		{"with a status", chunk + `data: {"error":{"message":"slow down","code":429}}` + "\n\n", provider.ErrRateLimited, 429, true, "slow down"},
		{"with a status in words", `data: {"error":{"message":"no","code":"401"}}` + "\n\n", provider.ErrAuth, 401, false, "no"},
		{"string", `data: {"error":"out of memory"}` + "\n\n", nil, 0, true, "out of memory"},
		{"overloaded", "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n", provider.ErrOverloaded, 0, true, "busy"},
		{"event of plain text", chunk + "event: error\ndata: all is lost\n\n", nil, 0, true, "all is lost"},
		{"quota", `data: {"error":{"message":"pay","code":"insufficient_quota"}}` + "\n\n", provider.ErrQuota, 0, false, "pay"},
		{"in the choice", `data: {"choices":[{"delta":{},"finish_reason":"error","error":{"code":502,"message":"upstream"}}]}` + "\n\n", nil, 502, true, "upstream"},
		{"a reason to stop that is an error", finishing("error", "data: [DONE]\n\n"), provider.ErrCutOff, 0, true, "stopped with error"},
		{"resources", finishing("insufficient_system_resource"), provider.ErrCutOff, 0, true, "insufficient_system_resource"},
		{"bare object of vLLM", `data: {"object":"error","message":"bad","type":"BadRequestError","code":400}` + "\n\n", provider.ErrBadRequest, 400, false, "bad"},
		{"JSON body", `{"error":{"message":"bad","type":"invalid_request_error"}}`, provider.ErrBadRequest, 0, false, "bad"},
		{"JSON body in a list", `[{"error":{"code":503,"message":"try later","status":"UNAVAILABLE"}}]`, provider.ErrOverloaded, 503, true, "try later"},
		{"JSON body cut off", `{"choices":[{"message":{"content":"c`, provider.ErrCutOff, 0, true, "incomplete JSON"},
		{"JSON body with nothing", `{}`, nil, 0, true, "empty"},
		{"page", "\n <html><body>Hello <b>there</b></body>", provider.ErrNotAnAPI, 0, true, "Hello there"},
		{"nested too deep", chunk + `data: {"choices":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "}\n\n", provider.ErrCutOff, 0, false, "nested too deep"},
		{"nested too deep without a stream", `{"choices":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "}", provider.ErrCutOff, 0, false, "nested too deep"},
		{"plain text", "upstream said no\n", provider.ErrNotAnAPI, 0, false, "upstream said no"},
		{"nothing", "", provider.ErrCutOff, 0, true, "empty"},
		{"comments only", ": a\n\n: b\n\n", provider.ErrCutOff, 0, true, "empty"},
		{"cut", chunk, provider.ErrCutOff, 0, true, "before it was complete"},
		{"not JSON", chunk + "data: <oops>\n\n", provider.ErrCutOff, 0, true, "not JSON: <oops>"},
		{"white space only", stream(`{"content":" \n"}`), nil, 0, true, "empty"},
		{"thoughts only", stream(`{"reasoning":"hm"}`), nil, 0, true, "empty"},
		{"no error at all", `data: {"error":null,"choices":[]}` + "\n\n" + `data: {"error":{},"choices":[]}` + "\n\ndata: [DONE]\n\n", nil, 0, true, "empty"},
	} {
		_, err := read(strings.NewReader(tc.in))
		var e *provider.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: error is %v", tc.name, err)
			continue
		}
		if e.Kind != tc.kind || e.Status != tc.status || e.Retryable != tc.retryable || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: kind %v, status %d, retryable %v: %v", tc.name, e.Kind, e.Status, e.Retryable, err)
		}
	}
}
