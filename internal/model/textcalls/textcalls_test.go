package textcalls_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/model/openai"
	"coder/internal/model/provider"
	"coder/internal/model/textcalls"
	"coder/internal/model/transport"
	"coder/internal/tool/dialect"
	"coder/testkit/faultserver"
	"coder/testkit/providertest"
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
		Messages: []chat.Message{chat.TextMessage(chat.User, "hello")},
		Tools: []provider.ToolSpec{
			{Name: "read", Doc: "Reads a file.", Schema: []byte(`{"type": "object", "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}, "all": {"type": "boolean"}, "tags": {"type": "array"}}, "required": ["path"]}`)},
			{Name: "bash", Doc: "Runs a command.", Schema: []byte(`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`)},
			{Name: "write", Doc: "Writes a file.", Schema: []byte(`{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}`)},
			{Name: "search", Doc: "Searches.", Schema: []byte(`{"type":"object","properties":{"pattern":{"type":"string"}},"required":["pattern"]}`)},
			{Name: "git_status", Doc: "Shows what changed.", Schema: []byte(`{"type":"object","properties":{}}`)},
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
	r, err := collect(textcalls.Wrap(p, mode, nil), request())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// example is a reply and what is made of it.
type example struct {
	name, text   string
	person, tool string // what was said before
	want         string
}

// examples reads a file of them.
func examples(t testing.TB, path string) (all []example) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split("\n"+string(data), "\n### ")[1:] {
		name, body, _ := strings.Cut(part, "\n")
		e := example{name: name}
		if line, rest, _ := strings.Cut(body, "\n"); strings.HasPrefix(line, "person: ") {
			e.person, body = line[len("person: "):], rest
		} else if strings.HasPrefix(line, "tool: ") {
			e.tool, body = line[len("tool: "):], rest
		}
		e.text, e.want, _ = strings.Cut("\n"+strings.TrimRight(body, "\n"), "\n=> ")
		e.text, e.want = strings.TrimPrefix(e.text, "\n"), strings.ReplaceAll(e.want, "\n=> ", "\n")
		all = append(all, e)
	}
	return all
}

func (e example) request() provider.Request {
	req := request()
	if e.person != "" {
		req.Messages = []chat.Message{chat.TextMessage(chat.User, e.person)}
	}
	if e.tool != "" {
		req.Messages = append(req.Messages, chat.ToolMessage(chat.ToolResult{CallID: "1", Name: "read", Text: e.tool}))
	}
	return req
}

// renderMessages writes a reply as the file of examples does.
func renderMessages(r provider.Reply) string {
	var lines []string
	if text := r.Message.Text(); text != "" {
		lines = append(lines, fmt.Sprintf("say %q", text))
	}
	for _, c := range r.Message.Calls() {
		if c.Broken != "" {
			lines = append(lines, fmt.Sprintf("broken %s %q", c.Name, c.Broken))
		} else {
			lines = append(lines, fmt.Sprintf("%s %s", c.Name, c.Args))
		}
	}
	return strings.Join(lines, "\n")
}

// every way to cut text in two, and into runes, and not at all.
func cuts(text string) (all [][]provider.Delta) {
	all = append(all, said(text, 1<<20), said(text, 1), said(text, 3))
	for i := range text {
		all = append(all, []provider.Delta{provider.TextDelta(text[:i]), provider.TextDelta(text[i:])})
	}
	return all
}

func check(t *testing.T, e example, mode textcalls.Mode, want string) {
	t.Helper()
	for _, send := range cuts(e.text) {
		shown := ""
		w := textcalls.Wrap(deltas{send: append(send, end(provider.StopEnd))}, mode, nil)
		r, err := provider.Collect(w.Stream(t.Context(), e.request()), func(d provider.Delta) error {
			if text, ok := d.(provider.TextDelta); ok {
				shown += string(text)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := renderMessages(r); got != want || shown != r.Message.Text() {
			t.Fatalf("%s, cut as %q:\n got %s\nwant %s", mode, send, got, want)
		}
		stop := provider.StopEnd
		if len(r.Message.Calls()) > 0 {
			stop = provider.StopTools
		}
		if r.Stop != stop || r.Usage == nil || r.Usage.Out != 2 {
			t.Fatalf("%s: stop %s, usage %v", mode, r.Stop, r.Usage)
		}
	}
}

func TestCallsAreUnderstood(t *testing.T) {
	for _, e := range examples(t, "testdata/calls.txt") {
		t.Run(e.name, func(t *testing.T) {
			check(t, e, textcalls.Auto, e.want)
			check(t, e, textcalls.XML, e.want)
		})
	}
}

func TestTextsStayTexts(t *testing.T) {
	for _, e := range examples(t, "testdata/texts.txt") {
		t.Run(e.name, func(t *testing.T) { check(t, e, textcalls.Auto, fmt.Sprintf("say %q", e.text)) })
	}
}

// A model that is asked in text and calls a tool that is not there must be told.
func TestAModelThatWritesIsToldOfToolsThatAreNotThere(t *testing.T) {
	for text, want := range map[string]string{
		`<tool_use>{"name": "fly"}</tool_use>`:                                      "fly {}",
		`<tool_use>{"name": "fly"}</tool_use><tool_use>{"name": "read"}</tool_use>`: "fly {}\nread {}",
		`{"name": "fly", "arguments": {}}`:                                          `say "{\"name\": \"fly\", \"arguments\": {}}"`,
	} {
		check(t, example{text: text}, textcalls.XML, want)
	}
}

func TestSameReplyAsNative(t *testing.T) {
	native := deltas{send: []provider.Delta{
		provider.TextDelta("I look."),
		provider.CallDelta{Index: 0, ID: "x", Name: "read", Args: `{"path": "a"}`},
		end(provider.StopTools),
	}}
	want, err := collect(textcalls.Wrap(native, textcalls.Native, nil), request())
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
		through, err := collect(textcalls.Wrap(native, mode, nil), request())
		if err != nil || !reflect.DeepEqual(through, want) {
			t.Errorf("%s: a native call becomes %+v, %v", mode, through, err)
		}
	}
}

func TestNoToolsNoCalls(t *testing.T) {
	text := `<tool_use>{"name": "read"}</tool_use>`
	req := request()
	req.Tools = nil
	for _, mode := range []textcalls.Mode{textcalls.Auto, textcalls.XML, textcalls.Native, "other"} {
		r, err := collect(textcalls.Wrap(deltas{send: append(said(text, 5), end(provider.StopEnd))}, mode, nil), req)
		if err != nil || r.Message.Text() != text || r.Message.Calls() != nil {
			t.Errorf("%s: %s, %v", mode, renderMessages(r), err)
		}
	}
}

func TestOrdinaryTextArrivesAtOnce(t *testing.T) {
	w := textcalls.Wrap(deltas{send: append(said("one two <b> three <tool_x> <tool_use>{}", 1), end(provider.StopEnd))}, textcalls.Auto, nil)
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
			if len([]rune(string(text))) > len(" <tool_x>") {
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
		"text <tool_use>{\"name\": \"read\"}</tool_use>":           "text",
		"text. <tool_use>{\"name\": \"read\"}</tool_use> and more": "text.\nand more",
	} {
		r, err := collect(textcalls.Wrap(deltas{send: said(text, 3), err: cut}, textcalls.XML, nil), request())
		if !errors.Is(err, provider.ErrCutOff) || r.Message.Text() != want || r.Message.Calls() != nil {
			t.Errorf("%q: %s, %v", text, renderMessages(r), err)
		}
	}
	text := `<tool_use>{"name": "read"}</tool_use>`
	r, err := collect(textcalls.Wrap(deltas{send: append(said(text, 3), end(provider.StopLength))}, textcalls.XML, nil), request())
	if calls := r.Message.Calls(); err != nil || len(calls) != 1 || calls[0].Broken == "" || r.Stop != provider.StopLength {
		t.Errorf("at the length limit: %s, %v", renderMessages(r), err)
	}
}

func TestRestartStartsAgain(t *testing.T) {
	send := append(said("```\nold <tool_use>{\"name\": \"bash\"}</tool_use>", 5), provider.Restart{Attempt: 2, MaxAttempts: 3})
	send = append(append(send, said("new <tool_use>{\"name\": \"read\"}</tool_use>", 5)...), end(provider.StopEnd))
	r, err := collect(textcalls.Wrap(deltas{send: send}, textcalls.Auto, nil), request())
	if want := "say \"new\"\nread {}"; err != nil || renderMessages(r) != want {
		t.Errorf("got %s, %v; want %s", renderMessages(r), err, want)
	}
}

func TestIDsDiffer(t *testing.T) {
	text := `<tool_use>{"name": "read"}</tool_use><tool_use>{"name": "bash"}</tool_use>`
	w := textcalls.Wrap(deltas{send: append(said(text, 9), end(provider.StopEnd))}, textcalls.XML, nil)
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
			req.Messages = append(req.Messages, chat.ToolMessage(chat.ToolResult{CallID: c.ID, Name: c.Name, Text: "same"}))
		}
	}
	if len(ids) != 10 {
		t.Errorf("ten calls have the ids %v", ids)
	}
}

func TestTheRequestInXML(t *testing.T) {
	req := request()
	req.Messages = []chat.Message{
		chat.TextMessage(chat.User, "hello"),
		{Role: chat.Assistant, Parts: []chat.Part{
			chat.Reasoning{Text: "hm"}, chat.Text("I look."),
			chat.ToolCall{ID: "1", Name: "read", Args: []byte(`{"path":"a"}`)},
			chat.ToolCall{ID: "2", Name: "bash", Args: []byte(`{}`), Broken: `{"command`},
		}},
		chat.ToolMessage(chat.ToolResult{CallID: "1", Name: "read", Text: "text </tool_result> more"}),
		chat.ToolMessage(chat.ToolResult{CallID: "2", Name: "bash", Text: "bad arguments", Failed: true}),
		chat.TextMessage(chat.User, "go on"),
		chat.TextMessage(chat.Assistant, "done"),
		chat.TextMessage(chat.User, "thanks"),
		chat.TextMessage(chat.User, "bye"),
	}
	before := fmt.Sprintf("%+v", req)
	var seen provider.Request
	if _, err := collect(textcalls.Wrap(deltas{send: []provider.Delta{end(provider.StopEnd)}, seen: &seen}, textcalls.XML, nil), req); err != nil {
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
	if seen.Messages[1].Reasoning() != "hm" || !chat.IsSame(seen.Messages[0], req.Messages[0]) {
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
	if _, err := collect(textcalls.Wrap(deltas{send: []provider.Delta{end(provider.StopEnd)}, seen: &seen}, textcalls.XML, nil), req); err != nil {
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
	if _, err := collect(textcalls.Wrap(deltas{send: []provider.Delta{end(provider.StopEnd)}, seen: &seen}, textcalls.Auto, nil), req); err != nil || !reflect.DeepEqual(seen, req) {
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
				s := faultserver.Start(t, faultserver.Options{})
				for _, r := range replies {
					s.Script(faultserver.Deltas(r))
				}
				c := openai.New(transport.Options{BaseURL: s.Base("")})
				t.Cleanup(c.CloseIdle)
				return textcalls.Wrap(c, mode, nil)
			})
		})
	}
}

func FuzzChunking(f *testing.F) {
	for _, e := range append(examples(f, "testdata/calls.txt"), examples(f, "testdata/texts.txt")...) {
		f.Add(e.text, uint64(0xdeadbeef))
	}
	f.Fuzz(holds)
}

// Replies made up of pieces of all examples, shuffled and damaged.
func TestMadeUpReplies(t *testing.T) {
	var parts []string
	for _, e := range append(examples(t, "testdata/calls.txt"), examples(t, "testdata/texts.txt")...) {
		parts = append(parts, e.text)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var b strings.Builder
		for range 1 + rnd.IntN(4) {
			p := []rune(parts[rnd.IntN(len(parts))])
			from, to := rnd.IntN(len(p)), len(p)
			if rnd.IntN(3) > 0 {
				from = 0
			}
			if rnd.IntN(4) == 0 {
				to = from + rnd.IntN(len(p)-from)
			}
			b.WriteString(string(p[from:to]) + []string{"", "\n", "\n\n", " ", ". ", "\n```\n", "`", "\n> "}[rnd.IntN(8)])
		}
		holds(t, b.String(), rnd.Uint64())
	}
}

// holds reports what is promised of every text and does not hold for this one:
// that it does not matter how it is cut, that text without calls arrives as it is,
// and that only tools that are there are called.
func holds(t *testing.T, text string, seed uint64) {
	text = strings.ToValidUTF8(text, "?")
	for _, mode := range []textcalls.Mode{textcalls.Auto, textcalls.XML} {
		whole := reply(t, mode, text, 1<<20)
		cut := deltas{send: append(pieces(text, seed), end(provider.StopEnd))}
		got, err := collect(textcalls.Wrap(cut, mode, nil), request())
		if err != nil || renderMessages(got) != renderMessages(whole) {
			t.Fatalf("%s: %q cut by %d gives %s, %v; whole it gives %s", mode, text, seed, renderMessages(got), err, renderMessages(whole))
		}
		if len(whole.Message.Calls()) == 0 && whole.Message.Text() != text {
			t.Fatalf("%s: %q has no call and became %q", mode, text, whole.Message.Text())
		}
		for _, c := range whole.Message.Calls() {
			name := cmp.Or(dialect.BareName(c.Name), c.Name)
			offered := slices.ContainsFunc(request().Tools, func(s provider.ToolSpec) bool { return strings.EqualFold(s.Name, name) })
			if mode == textcalls.Auto && !offered && !dialect.IsKnown(name) {
				t.Fatalf("%q calls %q", text, c.Name)
			}
		}
	}
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
