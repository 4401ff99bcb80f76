package mcp

//lint:file-ignore SA1019 roots and sampling are on their way out, and the servers that people have use them

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/uip"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// linked is a host with one server in this process.
func linked(t *testing.T, s *sdk.Server, o Options, how ...*sdk.StreamableHTTPOptions) *Host {
	t.Helper()
	var by *sdk.StreamableHTTPOptions
	if len(how) > 0 {
		by = how[0]
	}
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, by))
	o.Servers = []Server{{Name: "near", Type: HTTP, URL: web.URL}}
	o.Root, o.Now = t.TempDir(), time.Now
	o.Warn = func(text string) { t.Log(text) }
	h := New(o)
	h.WaitReady(t.Context(), time.Minute)
	t.Cleanup(func() { _ = h.Close(); web.CloseClientConnections(); web.Close() })
	return h
}

func TestWhatAServerHasFollowsWhatItSays(t *testing.T) {
	s := sdk.NewServer(&sdk.Implementation{Name: "near"}, nil)
	write := func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{
			{Role: "user", Content: &sdk.TextContent{Text: "do \x1b[1mit"}}, {Role: "assistant", Content: &sdk.TextContent{Text: "gladly"}},
			{Role: "user", Content: &sdk.ImageContent{Data: onePixel, MIMEType: "image/png"}},
		}}, nil
	}
	read := func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{
			{URI: r.Params.URI, Text: "of " + r.Params.URI}, {URI: "x", Blob: onePixel}, {URI: "y", Blob: []byte{0, 1}, MIMEType: "a/\x1bb"},
		}}, nil
	}
	s.AddPrompt(&sdk.Prompt{Name: "first thing", Description: "one"}, write)
	s.AddPrompt(&sdk.Prompt{Name: "first.thing"}, write) // the same name here
	s.AddResource(&sdk.Resource{URI: "mem://1", Name: "one"}, read)
	s.AddResource(&sdk.Resource{URI: "mem://" + strings.Repeat("x", 400), Name: "odd"}, read)
	h := linked(t, s, Options{Vision: true})
	p, ok := h.FindPrompt(t.Context(), "MCP__near__first_thing")
	if !ok || len(h.Prompts()) != 1 || len(h.Resources()) != 1 || h.Resources()[0].URI != "mem://1" {
		t.Fatalf("%v, %v, %v", ok, h.Prompts(), h.Resources())
	}
	if text, err := p.Render(t.Context(), ""); err != nil || !strings.Contains(text, "do ^[[1mit\n\n(as the assistant would say:)\ngladly\n\n(a picture that is left out") {
		t.Errorf("%q, %v", text, err)
	}
	s.RemovePrompts("first thing", "first.thing")
	s.AddPrompt(&sdk.Prompt{Name: "second", Arguments: []*sdk.PromptArgument{{Name: "a"}, {Name: "odd one"}}}, write)
	s.AddResource(&sdk.Resource{URI: "mem://2"}, read)
	for len(h.Resources()) != 2 || len(h.Prompts()) != 1 || h.Prompts()[0].Name != "mcp__near__second" {
		if t.Context().Err() != nil {
			t.Fatal("the lists did not follow")
		}
		time.Sleep(time.Millisecond)
	}
	if use := h.Prompts()[0].Usage(); use != "[A]" {
		t.Errorf("it takes %s", use)
	}
	args, ok := h.ParseResource("near:mem://2")
	if _, other := h.ParseResource("far:mem://2"); !ok || other {
		t.Fatal("names are not told apart")
	}
	raw, _ := json.Marshal(args)
	call, err := h.ResourceReader().Prepare(t.Context(), raw)
	if err != nil {
		t.Fatal(err)
	}
	res, err := call.Run(t.Context(), io.Discard)
	got, _ := json.Marshal(res.Value)
	if err != nil || len(res.Images) != 1 || string(got) != `{"ok":true,"content":"of mem://2","start_line":1,"note":"the picture is shown with this message; there is something that cannot be shown: a/^[b, 2 bytes"}` {
		t.Errorf("%s, %d images, %v", got, len(res.Images), err)
	}
}

func TestArgumentsOfPrompts(t *testing.T) {
	p := Prompt{Name: "p", Arguments: []Argument{{"file", true}, {"depth", false}}}
	for _, tt := range []struct {
		typed string
		want  map[string]string // nil: refused
	}{
		{"main.go", map[string]string{"file": "main.go"}},
		{"main.go as deep as it goes", map[string]string{"file": "main.go", "depth": "as deep as it goes"}},
		{`depth=2 "a b.go"`, map[string]string{"file": "a b.go", "depth": "2"}},
		{`file='it is' x=y`, map[string]string{"file": "it is", "depth": "x=y"}},
		{`depth="" it's`, map[string]string{"file": "it's", "depth": ""}},
		{"", nil},
		{"depth=3", nil},
		{"file=a depth=b c", nil},
	} {
		got, err := p.parseArguments(tt.typed)
		if (err != nil) != (tt.want == nil) || err == nil && !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%q: %v, %v", tt.typed, got, err)
		}
	}
}

// asking is a server whose tool asks for a form, in the way of a protocol.
func asking(version, schema string, url bool) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "near"}, &sdk.ServerOptions{SupportedProtocolVersions: []string{version}})
	s.AddTool(&sdk.Tool{Name: "ask", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		want := &sdk.ElicitParams{Message: "tell me", RequestedSchema: json.RawMessage(schema)}
		if url {
			want = &sdk.ElicitParams{Mode: "url", Message: "go there", URL: schema, ElicitationID: "1"}
		}
		var got *sdk.ElicitResult
		var err error
		if version == greetingVersion {
			got, err = r.Session.Elicit(ctx, want)
		} else if r.Params.InputResponses == nil {
			return &sdk.CallToolResult{RequestState: "s", InputRequests: sdk.InputRequestMap{"q": want}}, nil
		} else {
			got = r.Params.InputResponses["q"].(*sdk.ElicitResult)
		}
		if err != nil {
			return nil, err
		}
		content, _ := json.Marshal(got.Content)
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: got.Action + " " + string(content)}}}, nil
	})
	return s
}

// answers answers the parts of a form with options, or with words after a =.
func answers(t *testing.T, list ...string) uip.Interactor {
	return uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
		q.ID = "q"
		parts := q.Parts
		if parts == nil {
			parts = []uip.Request{q}
		}
		if !strings.Contains(parts[0].Display.Title, "The MCP server near asks: ") {
			t.Errorf("asked: %s", parts[0].Display.Title)
		}
		a := uip.Response{ID: q.ID, Author: "user"}
		for i := range parts {
			if q.Parts != nil {
				q.Parts[i].ID = string(rune('a' + i))
			}
			one := uip.Response{ID: parts[i].ID, Option: list[i]}
			if words, ok := strings.CutPrefix(list[i], "="); ok {
				one = uip.Response{ID: parts[i].ID, Input: words}
			}
			a.Parts = append(a.Parts, one)
		}
		if q.Parts == nil {
			a, a.Parts = a.Parts[0], nil
			a.Author = "user"
		}
		if err := uip.CheckResponse(q, a); err != nil {
			t.Errorf("%v: %v", list, err)
		}
		return a, nil
	})
}

func TestServersAskThePerson(t *testing.T) {
	const form = `{"type":"object","required":["n","who"],"properties":{
		"who":{"type":"string"},"n":{"type":"integer"},"sure":{"type":"boolean"},
		"tint":{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"b","title":"Blue"}]},
		"tags":{"type":"array","items":{"type":"string","enum":["x","y","z"]}},"left":{"type":"number","default":1.5},"out":{"type":"string"}}}`
	dismiss := uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
		return uip.Response{ID: q.ID, Author: "user", Dismissed: true}, nil
	})
	for _, version := range []string{greetingVersion, "2026-07-28"} {
		for _, tt := range []struct {
			name, schema string
			url          bool
			who          uip.Interactor
			want         string
		}{
			{"a form", form, false, answers(t, "=7", "=Ada", "leave", "leave", "1", "=z, X", "=blue", "accept"), `accept {"left":1.5,"n":7,"sure":true,"tags":["z","x"],"tint":"b","who":"Ada"}`},
			{"declined at the end", form, false, answers(t, "=7", "=Ada", "leave", "leave", "leave", "leave", "leave", "decline"), `decline null`},
			{"nothing to fill in", `{"type":"object"}`, false, answers(t, "accept"), `accept {}`},
			{"an address", "https://example.com/pay", true, answers(t, "accept"), `accept {}`},
			{"an address refused", "https://example.com/pay", true, answers(t, "decline"), `decline null`},
			{"dismissed", form, false, dismiss, `cancel null`},
			{"nobody", form, false, uip.NoInteractor, `cancel null`},
			{"would be parked", form, false, uip.PendingInteractor, `cancel null`},
		} {
			t.Run(version+" "+tt.name, func(t *testing.T) {
				w := &world{Host: linked(t, asking(version, tt.schema, tt.url), Options{}, &sdk.StreamableHTTPOptions{Stateless: version != greetingVersion})}
				res, text, err := w.call(t, uip.WithInteractor(t.Context(), tt.who), "mcp__near__ask", "{}")
				if err != nil || res.Failed || !strings.Contains(text, string(mustQuote(tt.want))) && !strings.Contains(text, string(mustQuote(strings.Replace(tt.want, "{}", "null", 1)))) {
					t.Errorf("%s, %v", text, err)
				}
			})
		}
	}
}

// mustQuote is a text as it stands within JSON.
func mustQuote(s string) []byte {
	b, _ := json.Marshal(s)
	return b[1 : len(b)-1]
}

func TestAServerThatIsAskedNothingMayAskNothing(t *testing.T) {
	s := asking(greetingVersion, `{}`, false)
	h := linked(t, s, Options{})
	for session := range s.Sessions() {
		got, err := session.Elicit(t.Context(), &sdk.ElicitParams{Message: "psst", RequestedSchema: json.RawMessage(`{"type":"object"}`)})
		if err != nil || got.Action != cancelAction {
			t.Errorf("%+v, %v", got, err)
		}
	}
	_ = h
}

func TestTheModelAnswersForAServerIfThePersonLetsIt(t *testing.T) {
	s := sdk.NewServer(&sdk.Implementation{Name: "near"}, &sdk.ServerOptions{SupportedProtocolVersions: []string{greetingVersion}})
	s.AddTool(&sdk.Tool{Name: "think", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		m, err := r.Session.CreateMessage(ctx, &sdk.CreateMessageParams{MaxTokens: 1 << 20, Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: "what \x1b[1mnow?"}}}})
		if err != nil {
			return nil, err
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: m.Model + " says " + m.Content.(*sdk.TextContent).Text + ", " + m.StopReason}}}, nil
	})
	var seen SampleRequest
	fail := false
	h := linked(t, s, Options{Sample: func(_ context.Context, s SampleRequest) (SampleResult, error) {
		seen = s
		out := SampleResult{Text: "this", Model: "m", Truncated: true, Costs: []event.Event{event.Spent{Model: "m", Usage: chat.Usage{In: 3}, Reason: event.UsageForMCPServer}}}
		if fail {
			return out, errors.New("overloaded")
		}
		return out, nil
	}})
	w := &world{Host: h}
	say := func(option string) uip.Interactor {
		return uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
			if text := q.Display.Title + (display.Blocks{q.Display.Content}).PlainText(); q.Purpose != uip.PurposeConfirmRiskyAction || !strings.Contains(text, "near") || !strings.Contains(text, "what ^[[1mnow?") {
				t.Errorf("asked %q", text)
			}
			return uip.Response{ID: q.ID, Author: "user", Option: option}, nil
		})
	}
	res, text, err := w.call(t, uip.WithInteractor(t.Context(), say(uip.OptionApprove)), "mcp__near__think", "{}")
	if err != nil || !strings.Contains(text, "m says this, maxTokens") || len(res.Events) != 1 || seen.MaxTokens != maxSampleTokens || len(seen.Messages) != 1 {
		t.Errorf("%s, %v, %v, %+v", text, err, res.Events, seen)
	}
	seen = SampleRequest{}
	for name, who := range map[string]uip.Interactor{"no": say(uip.OptionReject), "nobody": uip.NoInteractor, "later": uip.PendingInteractor} {
		if res, _, err := w.call(t, uip.WithInteractor(t.Context(), who), "mcp__near__think", "{}"); len(seen.Messages) > 0 || len(res.Events) > 0 || err == nil || !strings.Contains(err.Error(), map[bool]string{true: "did not allow it", false: "no user could answer"}[name == "no"]) {
			t.Errorf("%s: %v, the model was asked %v", name, err, seen)
		}
	}
	fail = true
	if res, _, err := w.call(t, uip.WithInteractor(t.Context(), say(uip.OptionApprove)), "mcp__near__think", "{}"); len(res.Events) != 1 || err == nil || !strings.Contains(err.Error(), "overloaded") {
		t.Errorf("%v, cost %v", err, res.Events)
	}
}
