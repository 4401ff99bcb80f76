package textcalls_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/model/provider"
	"coder/internal/model/providertest"
	"coder/internal/model/scripted"
	"coder/internal/model/textcalls"
)

// deltas is a provider that sends its deltas, then its error, whatever it is
// asked.
type deltas struct {
	send []provider.Delta
	err  error
	seen *provider.Request
}

func (p deltas) Stream(_ context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		if p.seen != nil {
			*p.seen = req
		}
		for _, d := range p.send {
			if !yield(d, nil) {
				return
			}
		}
		if p.err != nil {
			yield(nil, p.err)
		}
	}
}

// said cuts text into deltas of size runes.
func said(text string, size int) []provider.Delta {
	var ds []provider.Delta
	for r := []rune(text); len(r) > 0; {
		n := min(size, len(r))
		ds = append(ds, provider.TextDelta(string(r[:n])))
		r = r[n:]
	}
	return ds
}

func end(stop provider.Stop) provider.Delta {
	return provider.Done{Stop: stop, Usage: &chat.Usage{In: 1, Out: 2}}
}

func request() provider.Request {
	return provider.Request{
		Model: "m", System: "Be brief.",
		Messages: []chat.Message{chat.Say(chat.User, "hello")},
		Tools: []provider.ToolSpec{
			{Name: "read", Doc: "Reads a file.", Schema: []byte(`{"type": "object", "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}, "all": {"type": "boolean"}, "tags": {"type": "array"}}}`)},
			{Name: "bash", Doc: "Runs a command.", Schema: []byte(`{"type":"object"}`)},
		},
	}
}

func collect(p provider.Provider, req provider.Request) (provider.Reply, error) {
	return provider.Collect(p.Stream(context.Background(), req), func(provider.Delta) error { return nil })
}

// reply is what comes of text sent by a model, in deltas of size runes.
func reply(t *testing.T, mode textcalls.Mode, text string, size int) provider.Reply {
	t.Helper()
	p := deltas{send: append(said(text, size), end(provider.StopEnd))}
	r, err := collect(textcalls.Wrap(p, mode), request())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// show writes a reply as text, ids left out.
func show(r provider.Reply) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q", r.Message.Text())
	for _, c := range r.Message.Calls() {
		fmt.Fprintf(&b, " %s%s", c.Name, c.Args)
		if c.Broken != "" {
			fmt.Fprintf(&b, " broken:%q", c.Broken)
		}
	}
	return b.String()
}

var forms = []struct {
	name, text string
	auto       string // what Auto makes of it
	xml        string // what XML makes of it; "" for the same
}{
	{"plain text", " Hello, <b>world</b>.\n", `" Hello, <b>world</b>.\n"`, ""},
	{"JSON", `<tool_use>{"name": "read", "arguments": {"path": "a.go"}}</tool_use>`, `"" read{"path": "a.go"}`, ""},
	{"text before", "Let me see.\n\n<tool_use>\n{\"name\": \"read\", \"arguments\": {}}\n</tool_use>\n", `"Let me see." read{}`, ""},
	{"text around", "A\n<tool_use>{\"name\":\"read\"}</tool_use>\n\nB <tool_use>{\"name\":\"bash\"}</tool_use> C ", `"A\nB\nC" read{} bash{}`, ""},
	{"text after", `<tool_call>{"name":"read"}</tool_call> then more`, `"then more" read{}`, ""},
	{"tool_call", `<tool_call>{"name": "read", "input": {"path": "a"}}</tool_call>`, `"" read{"path": "a"}`, ""},
	{"tool_code", `<tool_code>{"name": "read", "parameters": {"path": "a"}}</tool_code>`, `"" read{"path": "a"}`, ""},
	{"args", `<tool_code>{"tool": "read", "args": {"path": "a"}}</tool_code>`, `"" read{"path": "a"}`, ""},
	{"as the API would", `<tool_call>{"type":"function","function":{"name":"read","arguments":"{\"path\":\"a\"}"}}</tool_call>`, `"" read{"path":"a"}`, ""},
	{"a list", `<tool_call>[{"name":"read"},{"name":"bash","arguments":{"command":"ls"}}]</tool_call>`, `"" read{} bash{"command":"ls"}`, ""},
	{"one after the other", "<tool_call>{\"name\":\"read\"}\n{\"name\":\"bash\"}</tool_call>", `"" read{} bash{}`, ""},
	{"a fence inside", "<tool_use>\n```json\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n```\n</tool_use>", `"" read{"path": "a"}`, ""},
	{"elements", "<tool_use>\n<name>read</name>\n<arguments>{\"path\": \"a\"}</arguments>\n</tool_use>", `"" read{"path": "a"}`, ""},
	{"elements within the arguments", "<tool_use>\n<name>read</name>\n<arguments>\n<path>a</path>\n<limit>3</limit>\n</arguments>\n</tool_use>", `"" read{"path": "a", "limit": 3}`, ""},
	{"elements behind the name", "<tool_use><tool_name>read</tool_name><path>a <b> c</path></tool_use>", `"" read{"path": "a <b> c"}`, ""},
	{"elements with several lines", "<tool_use><name>read</name><parameters><path>\na\n  b\n</path></parameters></tool_use>", `"" read{"path": "a\n  b"}`, ""},
	{"elements, one not closed", "<tool_use><name>read</name><input><path>a</input></tool_use>", `"" read{} broken:"<path>a"`, ""},
	{"elements, no arguments", "<tool_use><name>read</name></tool_use>", `"" read{}`, ""},
	{"elements, not JSON", "<tool_use><name>read</name><input>path a</input></tool_use>", `"" read{} broken:"path a"`, ""},
	{"invoked", "Look:\n<function_calls>\n<invoke name=\"read\">\n<parameter name=\"path\">a \"b\".go</parameter>\n<parameter name=\"limit\">5</parameter>\n</invoke>\n<invoke name=\"bash\"></invoke>\n</function_calls>", "\"Look:\" read{\"path\": \"a \\\"b\\\".go\", \"limit\": 5} bash{}", ""},
	{"invoked by itself", "<invoke name=\"read\"><parameter name=\"path\">a</parameter></invoke>", "\"\" read{\"path\": \"a\"}", ""},
	{"invoked with a prefix", "<" + "ant" + "ml:" + "function_calls><" + "ant" + "ml:" + "invoke name=\"read\"><" + "ant" + "ml:" + "parameter name=\"path\">a</" + "ant" + "ml:" + "parameter></" + "ant" + "ml:" + "invoke></" + "ant" + "ml:" + "function_calls>", "\"\" read{\"path\": \"a\"}", ""},
	{"invoked in a call of another", "<minimax:tool_call>\n<invoke name=\"read\">\n<parameter name=\"path\">a</parameter>\n</invoke>\n</minimax:tool_call>", "\"\" read{\"path\": \"a\"}", ""},
	{"a function with a name", "<function name=\"read\"><parameter name=\"path\">a</parameter></function>", "\"\" read{\"path\": \"a\"}", ""},
	{"a call with a name", "<tool_call name=\"read\">{\"path\": \"a\"}</tool_call>", "\"\" read{\"path\": \"a\"}", ""},
	{"keys and values", "<tool_call>read\n<arg_key>path</arg_key>\n<arg_value>a b</arg_value>\n<arg_key>limit</arg_key>\n<arg_value>3</arg_value>\n</tool_call>", "\"\" read{\"path\": \"a b\", \"limit\": 3}", ""},
	{"a name alone", "<tool_call>read</tool_call>", "\"\" read{}", ""},
	{"between marks", "Hm.<|tool_calls_section_begin|><|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>{\"path\":\"a\"}<|tool_call_end|><|tool_call_begin|>functions.bash:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>", "\"Hm.\" read{\"path\":\"a\"} bash{}", ""},
	{"between wide marks", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read\n```json\n{\"path\":\"a\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "\"\" read{\"path\":\"a\"}", ""},
	{"between wide marks, shorter", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read<｜tool▁sep｜>{\"path\":\"a\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "\"\" read{\"path\":\"a\"}", ""},
	{"invoked, quoted", "Write `<invoke name=\"read\"></invoke>` to read.", "\"Write `<invoke name=\\\"read\\\"></invoke>` to read.\"", ""},
	{"words in a call", "<tool_call>some words</tool_call>", "\"<tool_call>some words</tool_call>\"", ""},
	{"a function", "<function=read>\n<parameter=path>\na \"b\".go\n</parameter>\n<parameter=limit>\n5\n</parameter>\n</function>", `"" read{"path": "a \"b\".go", "limit": 5}`, ""},
	{"types of parameters", "<function=read><parameter=path>5</parameter><parameter=all>true</parameter><parameter=tags>[1]</parameter><parameter=x>7</parameter><parameter=limit>five</parameter></function>",
		`"" read{"path": "5", "all": true, "tags": [1], "x": "7", "limit": "five"}`, ""},
	{"a function in a call", "<tool_call>\n<function=read>\n<parameter=path>a</parameter>\n</function>\n</tool_call>", `"" read{"path": "a"}`, ""},
	{"functions in a call", "<tool_call><function=read></function><function=bash></function></tool_call>", `"" read{} bash{}`, ""},
	{"a function whose call was not opened", "Hm.\n<function=read>\n</function>\n</tool_call>", `"Hm." read{}`, ""},
	{"a function with JSON", `<function=read>{"path": "a"}</function>`, `"" read{"path": "a"}`, ""},
	{"quotes around names", `<function="read"><parameter="path">a</parameter></function>`, `"" read{"path": "a"}`, ""},
	{"a close in a string", `<tool_use>{"name": "read", "arguments": {"path": "</tool_use> <tool_use>"}}</tool_use>`, `"" read{"path": "</tool_use> <tool_use>"}`, ""},
	{"a function's close in a value", "<function=bash><parameter=command>echo '</function>'</parameter></function>", `"" bash{"command": "echo '</function>'"}`, ""},
	{"broken JSON", `<tool_use>{"name": "read", "arguments": {"path": "a}}</tool_use> ok`, `"ok" read{} broken:"{\"name\": \"read\", \"arguments\": {\"path\": \"a}}"`, ""},
	{"arguments that are none", `<tool_use>{"name": "read", "arguments": 5}</tool_use>`, `"" read{} broken:"5"`, ""},
	{"no name", `<tool_use>{"path": "a"}</tool_use>`, `"<tool_use>{\"path\": \"a\"}</tool_use>"`, ""},
	{"a name elsewhere", `<tool_use>{"x": {"name": "read"}}</tool_use>`, `"<tool_use>{\"x\": {\"name\": \"read\"}}</tool_use>"`, ""},
	{"a broken function", "<function=read><parameter=path>a</function>", `"" read{} broken:"<parameter=path>a"`, ""},
	{"a broken function in a call", "<tool_call><function=read><parameter=path>a</tool_call>", `"" read{} broken:"<function=read><parameter=path>a"`, ""},
	{"a tool nobody offered", `a <tool_use>{"name": "fly"}</tool_use> b`, `"a <tool_use>{\"name\": \"fly\"}</tool_use> b"`, `"a\nb" fly{}`},
	{"one offered, one not", `<tool_use>{"name": "fly"}</tool_use><tool_use>{"name": "read"}</tool_use>`, `"<tool_use>{\"name\": \"fly\"}</tool_use>" read{}`, `"" fly{} read{}`},
	{"names in capitals", `<tool_use>{"name": "Read"}</tool_use>`, `"" Read{}`, ""},
	{"a fence around", "Like this:\n```xml\n<tool_use>{\"name\":\"read\"}</tool_use>\n```\nSee?", "\"Like this:\\n```xml\\n<tool_use>{\\\"name\\\":\\\"read\\\"}</tool_use>\\n```\\nSee?\"", ""},
	{"a longer fence", "````\n```\n<tool_use>{\"name\":\"read\"}</tool_use>\n````\n<tool_use>{\"name\":\"bash\"}</tool_use>", "\"````\\n```\\n<tool_use>{\\\"name\\\":\\\"read\\\"}</tool_use>\\n````\" bash{}", ""},
	{"a fence of tildes", "~~~\n<tool_use>{\"name\":\"read\"}</tool_use>\n```\n<tool_use>{\"name\":\"read\"}</tool_use>", "\"~~~\\n<tool_use>{\\\"name\\\":\\\"read\\\"}</tool_use>\\n```\\n<tool_use>{\\\"name\\\":\\\"read\\\"}</tool_use>\"", ""},
	{"after a fence", "```\nx\n```\n<tool_use>{\"name\":\"read\"}</tool_use>", "\"```\\nx\\n```\" read{}", ""},
	{"on the line of a fence", "```<tool_use>{\"name\":\"read\"}</tool_use>```", "\"```<tool_use>{\\\"name\\\":\\\"read\\\"}</tool_use>```\"", ""},
	{"code that only looks like a fence", "```x``` is code\n<tool_use>{\"name\":\"read\"}</tool_use>", "\"```x``` is code\" read{}", ""},
	{"between backquotes", "Write `<tool_use>{\"name\":\"read\"}</tool_use>` to read.", "\"Write `<tool_use>{\\\"name\\\":\\\"read\\\"}</tool_use>` to read.\"", ""},
	{"a tag that is only mentioned", "The <tool_use> tag, or <function=x y> and <tool_", `"The <tool_use> tag, or <function=x y> and <tool_"`, ""},
	{"a close forgotten", `<tool_call>{"name": "read", "arguments": {"path": "a"}}`, `"" read{"path": "a"}`, ""},
	{"half a call", `Hm. <tool_call>{"name": "read", "arguments": {"path": "a`, `"Hm." read{} broken:"{\"name\": \"read\", \"arguments\": {\"path\": \"a"`, ""},
	{"a result made up", "<tool_use>{\"name\":\"read\"}</tool_use>\n<tool_result>yes</tool_result>\n<tool_use>{\"name\":\"bash\"}</tool_use> done", `"" read{}`, ""},
	{"a result mentioned", "A <tool_result> comes. <tool_use>{\"name\":\"read\"}</tool_use>", `"A <tool_result> comes." read{}`, ""},
	{"runes", "世界 <tool_use>{\"name\":\"read\",\"arguments\":{\"path\":\"世\"}}</tool_use> 界", `"世界\n界" read{"path":"世"}`, ""},
}

func TestForms(t *testing.T) {
	for _, tt := range forms {
		t.Run(tt.name, func(t *testing.T) {
			for mode, want := range map[textcalls.Mode]string{textcalls.Auto: tt.auto, textcalls.XML: tt.xml} {
				if want == "" {
					want = tt.auto
				}
				for _, size := range []int{1, 2, 7, 1 << 20} {
					r := reply(t, mode, tt.text, size)
					if got := show(r); got != want {
						t.Errorf("%s by %d: got  %s\nwant %s", mode, size, got, want)
					}
					stop := provider.StopEnd
					if len(r.Message.Calls()) > 0 {
						stop = provider.StopTools
					}
					if r.Stop != stop || r.Usage == nil || r.Usage.Out != 2 {
						t.Errorf("%s: stop %s, usage %v", mode, r.Stop, r.Usage)
					}
				}
			}
		})
	}
}

func TestSameReplyAsNative(t *testing.T) {
	native := deltas{send: []provider.Delta{
		provider.TextDelta("I look."),
		provider.CallDelta{Index: 0, ID: "x", Name: "read", Args: `{"path": "a"}`},
		end(provider.StopTools),
	}}
	want, err := collect(textcalls.Wrap(native, textcalls.Native), request())
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []textcalls.Mode{textcalls.Auto, textcalls.XML} {
		got := reply(t, mode, "I look.\n<tool_use>{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}</tool_use>", 3)
		for i, p := range got.Message.Parts {
			if c, ok := p.(chat.ToolCall); ok {
				c.ID = "x"
				got.Message.Parts[i] = c
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", mode, got, want)
		}
		through, err := collect(textcalls.Wrap(native, mode), request())
		if err != nil || !reflect.DeepEqual(through, want) {
			t.Errorf("%s: a native call becomes %+v, %v", mode, through, err)
		}
	}
}

func TestNativeCallsMakeTextOfText(t *testing.T) {
	text := "a <tool_use>{\"name\": \"read\"}</tool_use> b"
	send := append(said(text, 4), provider.CallDelta{Index: 0, ID: "x", Name: "bash", Args: "{}"}, provider.TextDelta(" <tool_use>c"), end(provider.StopTools))
	r, err := collect(textcalls.Wrap(deltas{send: send}, textcalls.Auto), request())
	if want := fmt.Sprintf("%q bash{}", text+" <tool_use>c"); err != nil || show(r) != want {
		t.Errorf("got %s, %v; want %s", show(r), err, want)
	}
}

func TestNoToolsNoCalls(t *testing.T) {
	text := `<tool_use>{"name": "read"}</tool_use>`
	req := request()
	req.Tools = nil
	for _, mode := range []textcalls.Mode{textcalls.Auto, textcalls.XML, textcalls.Native, "other"} {
		r, err := collect(textcalls.Wrap(deltas{send: append(said(text, 5), end(provider.StopEnd))}, mode), req)
		if err != nil || r.Message.Text() != text || r.Message.Calls() != nil {
			t.Errorf("%s: %s, %v", mode, show(r), err)
		}
	}
}

func TestOrdinaryTextArrivesAtOnce(t *testing.T) {
	w := textcalls.Wrap(deltas{send: append(said("one two <b> three <tool_x> <tool_use>{}", 1), end(provider.StopEnd))}, textcalls.Auto)
	var first string
	for d, err := range w.Stream(t.Context(), request()) {
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := d.(provider.TextDelta); ok {
			first += string(text)
			if len(text) > 1 && strings.Contains(first, "<tool_use>") {
				break
			}
			if len([]rune(string(text))) > len(" <tool_x") {
				t.Fatalf("%q came late, in one piece", text)
			}
		}
	}
	if !strings.HasPrefix(first, "one two <b> three <tool_x>") {
		t.Errorf("got %q", first)
	}
}

func TestACallThatIsCutOffNeverRuns(t *testing.T) {
	cut := &provider.Error{Kind: provider.ErrCutOff}
	for text, want := range map[string]string{
		"text ":                              "text ",
		"text <tool_u":                       "text <tool_u",
		"text <tool_use>{\"name\": \"read\"": "text",
		"text <tool_use>{\"name\": \"read\"}</tool_use>":          "text",
		"text <tool_use>{\"name\": \"read\"}</tool_use> and more": "text\nand more",
	} {
		r, err := collect(textcalls.Wrap(deltas{send: said(text, 3), err: cut}, textcalls.XML), request())
		if !errors.Is(err, provider.ErrCutOff) || r.Message.Text() != want || r.Message.Calls() != nil {
			t.Errorf("%q: %s, %v", text, show(r), err)
		}
	}
	text := `<tool_use>{"name": "read"}</tool_use>`
	r, err := collect(textcalls.Wrap(deltas{send: append(said(text, 3), end(provider.StopLength))}, textcalls.XML), request())
	if calls := r.Message.Calls(); err != nil || len(calls) != 1 || calls[0].Broken == "" || r.Stop != provider.StopLength {
		t.Errorf("at the length limit: %s, %v", show(r), err)
	}
}

func TestRestartStartsAgain(t *testing.T) {
	send := append(said("```\nold <tool_use>{\"name\": \"bash\"}</tool_use>", 5), provider.Restart{Attempt: 2, Of: 3})
	send = append(append(send, said("new <tool_use>{\"name\": \"read\"}</tool_use>", 5)...), end(provider.StopEnd))
	r, err := collect(textcalls.Wrap(deltas{send: send}, textcalls.Auto), request())
	if want := `"new" read{}`; err != nil || show(r) != want {
		t.Errorf("got %s, %v; want %s", show(r), err, want)
	}
}

func TestIDsDiffer(t *testing.T) {
	text := `<tool_use>{"name": "read"}</tool_use><tool_use>{"name": "read"}</tool_use>`
	w := textcalls.Wrap(deltas{send: append(said(text, 9), end(provider.StopEnd))}, textcalls.XML)
	ids, req := map[string]bool{}, request()
	for i := range 5 {
		if i > 2 { // the same conversation as before, once more
			req = request()
		}
		r, err := collect(w, req)
		if err != nil {
			t.Fatal(err)
		}
		req.Messages = append(req.Messages, r.Message)
		for _, c := range r.Message.Calls() {
			ids[c.ID] = true
			req.Messages = append(req.Messages, chat.Answer(chat.ToolResult{CallID: c.ID, Name: c.Name, Text: "same"}))
		}
	}
	if len(ids) != 10 {
		t.Errorf("ten calls have the ids %v", ids)
	}
}

func TestTheRequestInXML(t *testing.T) {
	req := request()
	req.Messages = []chat.Message{
		chat.Say(chat.User, "hello"),
		{Role: chat.Assistant, Parts: []chat.Part{
			chat.Reasoning{Text: "hm"}, chat.Text("I look."),
			chat.ToolCall{ID: "1", Name: "read", Args: []byte(`{"path":"a"}`)},
			chat.ToolCall{ID: "2", Name: "bash", Args: []byte(`{}`), Broken: `{"command`},
		}},
		chat.Answer(chat.ToolResult{CallID: "1", Name: "read", Text: "text </tool_result> more"}),
		chat.Answer(chat.ToolResult{CallID: "2", Name: "bash", Text: "bad arguments", Failed: true}),
		chat.Say(chat.User, "go on"),
		chat.Say(chat.Assistant, "done"),
		chat.Say(chat.User, "thanks"),
		chat.Say(chat.User, "bye"),
	}
	before := fmt.Sprintf("%+v", req)
	var seen provider.Request
	if _, err := collect(textcalls.Wrap(deltas{send: []provider.Delta{end(provider.StopEnd)}, seen: &seen}, textcalls.XML), req); err != nil {
		t.Fatal(err)
	}
	if seen.Tools != nil || seen.Model != "m" {
		t.Errorf("tools %v, model %s", seen.Tools, seen.Model)
	}
	for _, want := range []string{"Be brief.\n\n# Tools", "<tool_use>\n{\"name\"", "## read\n\nReads a file.", `{"type":"object","properties":{"path":{"type":"string"}`, "## bash"} {
		if !strings.Contains(seen.System, want) {
			t.Errorf("the system text does not say %q:\n%s", want, seen.System)
		}
	}
	var got []string
	for _, m := range seen.Messages {
		if m.Calls() != nil {
			t.Errorf("a call is left in %+v", m)
		}
		got = append(got, string(m.Role)+": "+m.Text())
	}
	want := []string{
		"user: hello",
		"assistant: I look.\n\n<tool_use>\n{\"name\": \"read\", \"arguments\": {\"path\":\"a\"}}\n</tool_use>\n<tool_use>\n{\"name\": \"bash\", \"arguments\": {\"command}\n</tool_use>",
		"user: <tool_result name=\"read\">\ntext < /tool_result> more\n</tool_result>\n\n<tool_result name=\"bash\" status=\"failed\">\nbad arguments\n</tool_result>\n\ngo on",
		"assistant: done", "user: thanks", "user: bye",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if seen.Messages[1].Reasoning() != "hm" || !chat.Same(seen.Messages[0], req.Messages[0]) {
		t.Error("what need not change was changed")
	}
	if after := fmt.Sprintf("%+v", req); after != before {
		t.Error("the caller's request was changed")
	}
}

func TestWhatIsWrittenIsUnderstood(t *testing.T) {
	call := chat.ToolCall{ID: "1", Name: "read", Args: []byte(`{"path":"</tool_use>\n<x>"}`)}
	req := request()
	req.Messages = append(req.Messages, chat.Message{Role: chat.Assistant, Parts: []chat.Part{call}})
	var seen provider.Request
	if _, err := collect(textcalls.Wrap(deltas{send: []provider.Delta{end(provider.StopEnd)}, seen: &seen}, textcalls.XML), req); err != nil {
		t.Fatal(err)
	}
	got := reply(t, textcalls.XML, seen.Messages[1].Text(), 4).Message.Calls()
	if len(got) != 1 || got[0].Name != call.Name || string(got[0].Args) != string(call.Args) {
		t.Errorf("%s reads back as %+v", seen.Messages[1].Text(), got)
	}
}

func TestAutoLeavesTheRequestAlone(t *testing.T) {
	var seen provider.Request
	req := request()
	if _, err := collect(textcalls.Wrap(deltas{send: []provider.Delta{end(provider.StopEnd)}, seen: &seen}, textcalls.Auto), req); err != nil || !reflect.DeepEqual(seen, req) {
		t.Errorf("got %+v, %v", seen, err)
	}
}

func TestLongCallsCostWhatTheirBytesCost(t *testing.T) {
	const size = 100_000
	text := `<tool_use>{"name": "read", "arguments": {"path": "` + strings.Repeat("</tool_use> <", size/12) + `"}}</tool_use>` + strings.Repeat(" word", size/5)
	r := reply(t, textcalls.Auto, text, 8)
	if len(r.Message.Text()) == 0 {
		t.Error("nothing came")
	}
	text = `<tool_use>{"name": "read", "arguments": {"path": "` + strings.Repeat("x", 2*size) + `"}}</tool_use>` + strings.Repeat(" word", size/5)
	for _, deep := range []string{strings.Repeat(" ", size), strings.Repeat("<", size), strings.Repeat("<function=", size/10)} {
		if r := reply(t, textcalls.Auto, deep, 1); r.Message.Text() != deep {
			t.Errorf("%.20q… became %.20q…", deep, r.Message.Text())
		}
	}
	if r := reply(t, textcalls.Auto, text, 8); len(r.Message.Calls()) != 1 || len(r.Message.Calls()[0].Args) < 2*size {
		t.Error("the call is not whole")
	}
}

func TestContract(t *testing.T) {
	for _, mode := range []textcalls.Mode{textcalls.Native, textcalls.Auto, textcalls.XML} {
		t.Run(string(mode), func(t *testing.T) {
			providertest.TestProvider(t, func(t *testing.T, replies ...[]provider.Delta) provider.Provider {
				return textcalls.Wrap(scripted.New(scripted.FromDeltas(replies...), scripted.Options{}), mode)
			})
		})
	}
}

func FuzzChunking(f *testing.F) {
	for _, tt := range forms {
		f.Add(tt.text, uint64(1))
		f.Add(tt.text, uint64(0xdeadbeef))
	}
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		text = strings.ToValidUTF8(text, "?")
		for _, mode := range []textcalls.Mode{textcalls.Auto, textcalls.XML} {
			whole := reply(t, mode, text, 1<<20)
			cut := deltas{send: append(pieces(text, seed), end(provider.StopEnd))}
			got, err := collect(textcalls.Wrap(cut, mode), request())
			if err != nil || !reflect.DeepEqual(got, whole) {
				t.Fatalf("%s: %q cut by %d gives %s, %v; whole it gives %s", mode, text, seed, show(got), err, show(whole))
			}
			if len(whole.Message.Calls()) == 0 && whole.Message.Text() != text {
				t.Fatalf("%s: %q has no call and became %q", mode, text, whole.Message.Text())
			}
			for _, c := range whole.Message.Calls() {
				if mode == textcalls.Auto && !strings.EqualFold(c.Name, "read") && !strings.EqualFold(c.Name, "bash") {
					t.Fatalf("%q calls %q", text, c.Name)
				}
			}
		}
	})
}

// pieces cuts text where the bits of seed say.
func pieces(text string, seed uint64) []provider.Delta {
	var (
		ds  []provider.Delta
		cur []rune
	)
	for i, r := range []rune(text) {
		cur = append(cur, r)
		if seed>>(i%64)&1 == 1 {
			ds, cur = append(ds, provider.TextDelta(string(cur))), nil
		}
	}
	if len(cur) > 0 {
		ds = append(ds, provider.TextDelta(string(cur)))
	}
	return ds
}
