package telemetry_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/report/telemetry"
)

func TestTheEnvironmentSaysWhereTo(t *testing.T) {
	type env = map[string]string
	const all = "OTEL_EXPORTER_OTLP_ENDPOINT"
	for name, tt := range map[string]struct {
		env             env
		traces, metrics string
		headers         string
		timeout         time.Duration
		says            string
	}{
		"nothing":                   {},
		"nothing by other names":    {env: env{"OTEL_SERVICE_NAME": "x", "OTEL_EXPORTER_OTLP_HEADERS": "a=b", "OTEL_TRACES_EXPORTER": "otlp"}},
		"one address for all":       {env: env{all: "http://h:4318"}, traces: "http://h:4318/v1/traces", metrics: "http://h:4318/v1/metrics"},
		"with a path":               {env: env{all: "https://h/otlp/"}, traces: "https://h/otlp/v1/traces", metrics: "https://h/otlp/v1/metrics"},
		"traces alone, as written":  {env: env{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://h/t"}, traces: "http://h/t"},
		"metrics elsewhere":         {env: env{all: "http://h", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://m/x"}, traces: "http://h/v1/traces", metrics: "http://m/x"},
		"disabled":                  {env: env{all: "http://h", "OTEL_SDK_DISABLED": "TRUE"}},
		"none are sampled":          {env: env{all: "http://h", "OTEL_TRACES_SAMPLER": "always_off"}, metrics: "http://h/v1/metrics"},
		"none, having no parent":    {env: env{all: "http://h", "OTEL_TRACES_SAMPLER": "parentbased_always_off"}, metrics: "http://h/v1/metrics"},
		"all are sampled":           {env: env{all: "http://h", "OTEL_TRACES_SAMPLER": "always_on"}, traces: "http://h/v1/traces", metrics: "http://h/v1/metrics"},
		"no traces":                 {env: env{all: "http://h", "OTEL_TRACES_EXPORTER": "none"}, metrics: "http://h/v1/metrics"},
		"another exporter":          {env: env{all: "http://h", "OTEL_METRICS_EXPORTER": "console"}, traces: "http://h/v1/traces", says: "OTEL_METRICS_EXPORTER=console"},
		"another protocol":          {env: env{all: "http://h", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, says: "OTEL_EXPORTER_OTLP_PROTOCOL is grpc"},
		"another for one":           {env: env{all: "http://h", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, metrics: "http://h/v1/metrics", says: "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL is http/protobuf"},
		"no address":                {env: env{all: "h:4317"}, says: all + " is not a web address"},
		"headers, written as usual": {env: env{all: "http://h", "OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20b, authorization=Bearer t,,=x,y"}, traces: "http://h/v1/traces", metrics: "http://h/v1/metrics", headers: "map[authorization:Bearer t x-key:a b]"},
		"a time limit":              {env: env{all: "http://h", "OTEL_EXPORTER_OTLP_TIMEOUT": "250"}, traces: "http://h/v1/traces", metrics: "http://h/v1/metrics", timeout: 250 * time.Millisecond},
		"one that is none":          {env: env{all: "http://h", "OTEL_EXPORTER_OTLP_TIMEOUT": "soon"}, traces: "http://h/v1/traces", metrics: "http://h/v1/metrics"},
	} {
		t.Run(name, func(t *testing.T) {
			s, says := telemetry.FromEnv(func(name string) string { return tt.env[name] }, "1")
			for want, got := range map[string]*telemetry.Target{tt.traces: s.Traces, tt.metrics: s.Metrics} {
				switch {
				case got == nil && want == "" || tt.traces == tt.metrics && got == nil:
				case got == nil || got.URL != want:
					t.Errorf("got %+v, want %q", got, want)
				case got.Timeout != max(tt.timeout, 0) && (tt.timeout != 0 || got.Timeout != 10*time.Second):
					t.Errorf("waits %v", got.Timeout)
				case tt.headers != "" && fmt.Sprint(got.Headers) != tt.headers:
					t.Errorf("headers %v", got.Headers)
				}
			}
			if s.Enabled() != (tt.traces+tt.metrics != "") || len(says) > 1 || !strings.Contains(strings.Join(says, ""), tt.says) || tt.says == "" && len(says) > 0 {
				t.Errorf("%+v says %q", s, says)
			}
		})
	}
}

func TestWhoSends(t *testing.T) {
	for attributes, want := range map[string]string{
		"":                              "[{service.name coder} {service.version 1}]",
		"team=blue,service.version=9":   "[{team blue} {service.version 9} {service.name coder}]",
		"service.name=mine,a=%E4%BD%A0": "[{service.name mine} {a 你} {service.version 1}]",
	} {
		s, _ := telemetry.FromEnv(func(name string) string {
			return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h", "OTEL_RESOURCE_ATTRIBUTES": attributes}[name]
		}, "1")
		if got := fmt.Sprint(s.Resource); got != want {
			t.Errorf("%q: %s, want %s", attributes, got, want)
		}
	}
	s, _ := telemetry.FromEnv(func(name string) string {
		return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h", "OTEL_RESOURCE_ATTRIBUTES": "service.name=a", "OTEL_SERVICE_NAME": "b"}[name]
	}, "1")
	if got := fmt.Sprint(s.Resource); got != "[{service.version 1} {service.name b}]" && got != "[{service.name b} {service.version 1}]" {
		t.Error(got)
	}
}

// collector takes what is sent.
type collector struct {
	mu     sync.Mutex
	bodies map[string][]string // by path
	answer func(r *http.Request) (*http.Response, error)
}

func (c *collector) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if c.answer != nil {
		if resp, err := c.answer(r); resp != nil || err != nil {
			return resp, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bodies == nil {
		c.bodies = make(map[string][]string)
	}
	c.bodies[r.URL.Path] = append(c.bodies[r.URL.Path], string(body))
	return status(200), nil
}

func status(code int) *http.Response {
	return &http.Response{StatusCode: code, Body: io.NopCloser(strings.NewReader("{}")), Header: http.Header{}}
}

// exporter sends to c. What it says is in told.
func exporter(c *collector) (e *telemetry.Exporter, told *[]string) {
	told = new([]string)
	n := byte(0)
	to := func(path string) *telemetry.Target {
		return &telemetry.Target{URL: "http://user:pw@h/" + path, Timeout: time.Minute}
	}
	return telemetry.New(telemetry.Options{
		Settings: telemetry.Settings{Traces: to("v1/traces"), Metrics: to("v1/metrics")}, Version: "1", Transport: c, Now: time.Now,
		Provider: func() (string, string) { return "openai", "api.example" },
		Random: func(b []byte) {
			n++
			for i := range b {
				b[i] = n
			}
		},
		Warn: func(text string) { *told = append(*told, text) },
	}), told
}

const words = "WORDS-OF-PEOPLE"

// turn is a turn with a step, two calls, one of them refused, work handed over, and
// a last step.
func turn(e *telemetry.Exporter) {
	at := time.Date(2026, 11, 16, 10, 0, 0, 0, time.UTC)
	add := func(after time.Duration, task string, ev event.Event) {
		at = at.Add(after)
		e.Add(event.Record{Seq: 1, Time: at, Session: "s1", Task: task, Event: ev})
	}
	say := func(role chat.Role, usage *chat.Usage, model string) event.MessageAdded {
		return event.MessageAdded{Message: chat.Message{Role: role, Parts: []chat.Part{chat.Text(words)}}, Model: model, Usage: usage, StopReason: "end", Reminders: words}
	}
	secret := json.RawMessage(`{"x": "` + words + `"}`)
	add(0, "t1", event.TaskCreated{TaskID: "t1", AgentID: "main", Title: words, Intent: words})
	add(0, "t1", say(chat.User, nil, ""))
	add(2*time.Second, "t1", say(chat.Assistant, &chat.Usage{In: 100, Out: 20, Cached: 60, Cost: 0.5}, "m"))
	add(0, "t1", event.ToolCallRequested{CallID: "c1", Tool: "task", TaskID: "t1", Input: secret, Verdict: event.VerdictAllowed, Reasons: []string{words}})
	add(0, "t1", event.ToolCallRequested{CallID: "c2", Tool: words, TaskID: "t1", Input: secret, Verdict: event.VerdictInvalid})
	add(0, "t2", event.TaskCreated{TaskID: "t2", AgentID: "explore", ParentID: "t1", CallID: "c1", Title: words})
	add(time.Second, "t2", event.TaskFailed{TaskID: "t2", Reason: words, Code: "rate_limit"})
	add(time.Second, "t1", event.ToolCallCompleted{CallID: "c1", Tool: "task", TaskID: "t1", Output: secret, DurationMs: 2000})
	add(0, "t1", event.ToolCallCompleted{CallID: "c2", Tool: words, TaskID: "t1", Output: secret, IsError: true})
	add(time.Second, "t1", say(chat.Assistant, nil, "m"))
	add(0, "t1", event.Spent{Model: "m", Usage: chat.Usage{In: 7, Out: 3}, Reason: event.UsageForSummary})
	add(0, "t1", event.TaskCompleted{TaskID: "t1", Summary: words})
}

type sent struct {
	ResourceSpans []struct {
		Resource   struct{ Attributes []any }
		ScopeSpans []struct {
			Spans []struct {
				TraceID, SpanID, ParentSpanID, Name, StartTimeUnixNano, EndTimeUnixNano string
				Kind                                                                    int
				Attributes                                                              []struct {
					Key   string
					Value map[string]any
				}
				Status struct{ Code int }
			}
		}
	}
}

func TestATurnIsTold(t *testing.T) {
	c := &collector{}
	e, told := exporter(c)
	turn(e)
	if err := e.Close(); err != nil || len(*told) > 0 {
		t.Fatal(err, *told)
	}
	traces, metrics := c.bodies["/v1/traces"], c.bodies["/v1/metrics"]
	if len(traces) != 1 || len(metrics) != 1 {
		t.Fatalf("%d and %d requests", len(traces), len(metrics))
	}
	if strings.Contains(traces[0]+metrics[0], words) {
		t.Errorf("words of people were sent:\n%s\n%s", traces[0], metrics[0])
	}
	var got sent
	if err := json.Unmarshal([]byte(traces[0]), &got); err != nil {
		t.Fatal(err)
	}
	spans := got.ResourceSpans[0].ScopeSpans[0].Spans
	names := map[string]string{"": ""}
	for _, s := range spans {
		names[s.SpanID] = s.Name
		if len(s.TraceID) != 32 || len(s.SpanID) != 16 || s.TraceID != spans[0].TraceID {
			t.Errorf("%+v", s)
		}
	}
	var told2 []string
	for _, s := range spans {
		var start, end int64
		_, err := fmt.Sscan(s.StartTimeUnixNano+" "+s.EndTimeUnixNano, &start, &end)
		facts := map[string]any{}
		for _, a := range s.Attributes {
			for _, v := range a.Value {
				facts[a.Key] = v
			}
		}
		delete(facts, "gen_ai.conversation.id")
		told2 = append(told2, fmt.Sprintf("%s < %s, %d s, kind %d, status %d, %v, %v", s.Name, names[s.ParentSpanID], (end-start)/1e9, s.Kind, s.Status.Code, facts, err))
	}
	want := []string{
		"chat m < invoke_agent main, 2 s, kind 3, status 0, map[coder.cost_usd:0.5 gen_ai.operation.name:chat gen_ai.provider.name:openai gen_ai.request.model:m gen_ai.response.finish_reasons:map[values:[map[stringValue:end]]] gen_ai.usage.cache_creation.input_tokens:0 gen_ai.usage.cache_read.input_tokens:60 gen_ai.usage.input_tokens:100 gen_ai.usage.output_tokens:20 server.address:api.example], <nil>",
		"chat < invoke_agent explore, 1 s, kind 3, status 2, map[error.type:rate_limit gen_ai.operation.name:chat gen_ai.provider.name:openai server.address:api.example], <nil>",
		"invoke_agent explore < execute_tool task, 1 s, kind 1, status 2, map[error.type:rate_limit gen_ai.agent.name:explore gen_ai.operation.name:invoke_agent], <nil>",
		"execute_tool task < invoke_agent main, 2 s, kind 1, status 0, map[coder.tool.verdict:allow gen_ai.operation.name:execute_tool gen_ai.tool.name:task], <nil>",
		"execute_tool (invalid) < invoke_agent main, 2 s, kind 1, status 2, map[coder.tool.verdict:invalid error.type:invalid gen_ai.operation.name:execute_tool gen_ai.tool.name:(invalid)], <nil>",
		"chat m < invoke_agent main, 1 s, kind 3, status 0, map[gen_ai.operation.name:chat gen_ai.provider.name:openai gen_ai.request.model:m gen_ai.response.finish_reasons:map[values:[map[stringValue:end]]] server.address:api.example], <nil>",
		"invoke_agent main < , 5 s, kind 1, status 0, map[gen_ai.agent.name:main gen_ai.operation.name:invoke_agent], <nil>",
	}
	if !reflect.DeepEqual(told2, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(told2, "\n"), strings.Join(want, "\n"))
	}
	for _, want := range []string{
		`"name":"gen_ai.client.token.usage"`, `"bucketCounts":["0","0","1","0","1","0","0","0","0","0","0","0","0"]`, // 7 and 100 tokens asked
		`"count":"2","explicitBounds"`, `"sum":107`, `"sum":23`, `"name":"coder.cost"`, `"asDouble":0.5`, `"isMonotonic":true`,
		`"value":{"stringValue":"rate_limit"}`, `"name":"coder.tool.calls"`, `"aggregationTemporality":2`, `"service.instance.id"`,
	} {
		if !strings.Contains(metrics[0], want) {
			t.Errorf("no %s in %s", want, metrics[0])
		}
	}
}

func TestACollectorThatHangsHoldsNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{answer: func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() }}
		e, told := exporter(c)
		began := time.Now()
		for range 2000 { // far more than is kept
			turn(e)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("telling it took %v", took)
		}
		time.Sleep(20 * time.Second) // it is tried meanwhile
		began = time.Now()
		_ = e.Close()
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("closing took %v", took)
		}
		if len(*told) != 1 || !strings.HasPrefix((*told)[0], "telemetry cannot be sent to h: no answer in time") || strings.Contains((*told)[0], "pw") {
			t.Errorf("it said %q", *told)
		}
	})
}

func TestWhatCouldNotBeTakenIsSentAgainAndWhatIsRefusedIsNot(t *testing.T) {
	for name, tt := range map[string]struct {
		code int
		err  error
		want int // spans in the end
	}{"busy": {503, nil, 7}, "too many": {429, nil, 7}, "gone for a while": {0, errors.New("no route"), 7}, "refused": {400, nil, 0}, "sent elsewhere": {302, nil, 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				c := &collector{}
				c.answer = func(r *http.Request) (*http.Response, error) {
					if strings.HasSuffix(r.URL.Path, "traces") {
						if tries++; tries == 1 {
							if tt.err != nil {
								return nil, tt.err
							}
							return status(tt.code), nil
						}
					}
					return nil, nil
				}
				e, told := exporter(c)
				turn(e)
				time.Sleep(12 * time.Second)
				_ = e.Close()
				if got := strings.Count(strings.Join(c.bodies["/v1/traces"], ""), `"spanId"`); got != tt.want {
					t.Errorf("%d spans arrived, want %d", got, tt.want)
				}
				if len(*told) != 1 {
					t.Errorf("it said %q", *told)
				}
			})
		})
	}
}

func TestManyBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{}
		e, told := exporter(c)
		for range 200 {
			turn(e)
		}
		time.Sleep(61 * time.Second)
		c.mu.Lock()
		counted := len(c.bodies["/v1/metrics"])
		c.mu.Unlock()
		_ = e.Close()
		if n := len(c.bodies["/v1/traces"]); n != 3 || counted != 1 || len(*told) > 0 {
			t.Errorf("%d requests of spans, %d of counts, said %q", n, counted, *told)
		}
	})
}

func TestNothingIsSentWhereNothingHappened(t *testing.T) {
	c := &collector{}
	e, _ := exporter(c)
	_ = e.Close()
	e = telemetry.New(telemetry.Options{})
	turn(e)
	if err := e.Close(); e != nil || err != nil || len(slices.Collect(maps.Keys(c.bodies))) > 0 {
		t.Errorf("%v, %v", e, c.bodies)
	}
}
