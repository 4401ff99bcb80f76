package textcalls

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// form is a notation for calls, as found in the text: how it ends and how to read its content.
type form struct {
	kind  kind
	tool  string // the tool named in the opening
	attrs string // attributes of the opening, for arguments
	close string
	ends  ender
	loose bool // ordinary text may look the same: it is text if more text follows or if it does not fit
	fits  bool // the call must fit the schema
}

// kind is what a form contains.
type kind int

const (
	body    kind = iota // calls in any notation
	args                // the arguments of the named tool
	python              // calls in any notation, including Python's
	steps               // a tool's name, with its arguments after "Action Input:"
	remains             // nothing: the rest of a form whose other half was read or forgotten
	result              // a result, which only coder may write: the model made it up
)

// openers are the bytes that can begin a form.
const openers = "<[{`AOf✿"

// marks are the marks that models put around calls and that their server should have parsed. A mark
// without a close ends at the bracket that closes the one it opened.
var marks = []struct{ open, close string }{
	{"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"}, {"<|tool_call_begin|>", "<|tool_call_end|>"}, // Kimi
	{"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"}, {"<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"}, // DeepSeek
	{"<|tool_call|>", "<|/tool_call|>"}, {"<|tool_call_start|>", "<|tool_call_end|>"}, // Phi and Granite, LFM
	{"<|START_ACTION|>", "<|END_ACTION|>"}, {"<|action_start|><|plugin|>", "<|action_end|>"}, // Command, InternLM
	{"<|tools_prefix|>", "<|tools_suffix|>"}, {"<start_function_call>", "<end_function_call>"}, // Apertus, FunctionGemma
	{"[TOOL_REQUEST]", "[END_TOOL_REQUEST]"}, {"<|channel|>commentary to=", "<|call|>"}, // LM Studio, GPT-OSS
	{"[TOOL_CALLS]", ""}, {"<|python_tag|>", ""}, {"functools[", ""}, // Mistral, Llama, Phi
	{"✿FUNCTION✿:", "✿RESULT✿"}, // Qwen-Agent
}

// tags are the elements that contain calls. The ones in the second row have other meanings elsewhere.
var (
	tags      = []string{"tool_use", "tool_call", "tool_code", "tool_calls", "tool_uses", "function_calls", "function_call", "toolcall", "invoke"}
	looseTags = []string{"function", "tool", "call", "action", "use_tool", "execute_tool"}
)

// ends are leftovers beside calls.
var ends = []string{
	"<|im_end|>", "<|im_start|>assistant", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<|end|>", "<|call|>", "<|start|>assistant", "</s>",
	"<end_of_turn>", "<｜end▁of▁sentence｜>", "✿RESULT✿", "[/TOOL_CALLS]", "</function>", "</parameter>", "</arguments>",
}

// results are the marks of results that a model writes instead of waiting for them.
var results = []string{"<tool_result", "<tool_response", "<function_result", "<|tool_response", "<｜tool▁output", "[TOOL_RESULTS]", "Observation:"}

// leftovers are the ends and the closes of forms.
var leftovers = sync.OnceValue(func() []string {
	all := slices.Clone(ends)
	for _, m := range marks {
		all = append(all, m.close)
	}
	for _, t := range tags {
		all = append(all, "</"+t+">")
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
})

// match returns the form that text begins with, and the length of its opening.
func (s *scanner) match(text string) (f form, n int, is verdict) {
	if len(s.run) == 0 && s.fences.quoted() || text[0] == 'f' && !s.fresh() { // never hold back a letter within words
		return f, 0, no
	}
	unsure := false
	try := func(open string) bool {
		unsure = unsure || strings.HasPrefix(open, text)
		return strings.HasPrefix(text, open)
	}
	if len(s.run) > 0 {
		for _, l := range leftovers() {
			if try(l) {
				return form{kind: remains}, len(l), yes
			}
		}
	}
	if len(s.run)+len(s.calls) > 0 && s.fresh() {
		for _, r := range results {
			if try(r) {
				return form{kind: result}, len(r), yes
			}
		}
	}
	for _, m := range marks {
		if !try(m.open) {
			continue
		}
		n = len(m.open)
		if strings.HasSuffix(m.open, "[") {
			n--
		}
		if m.close == "" {
			return form{kind: python, ends: balanced(n)}, n, yes
		}
		return form{kind: python, close: m.close, ends: until(n, m.close)}, n, yes
	}
	switch {
	case unsure:
		return f, 0, more
	case text[0] == '<':
		return s.matchTag(text)
	case !s.fresh() || s.native:
		return f, 0, no
	case text[0] == '`':
		return matchFence(text)
	case text[0] == 'A':
		const action = "Action:"
		if is := begins(text, action); is != yes {
			return f, 0, is
		}
		return form{kind: steps, ends: balanced(len(action)), loose: true, fits: true}, len(action), yes
	}
	if is := beginsJSON(text); is != yes {
		return f, 0, is
	}
	return form{kind: python, ends: balanced(0), loose: true, fits: true}, 0, yes
}

func begins(text, with string) verdict {
	switch {
	case strings.HasPrefix(text, with):
		return yes
	case strings.HasPrefix(with, text):
		return more
	}
	return no
}

// patterns match the beginnings of forms.
type patterns struct{ tag, half, attr, fence, json, halfJSON *regexp.Regexp }

var pattern = sync.OnceValue(func() patterns {
	re := regexp.MustCompile
	key := `(?:name|tool|tool_name|function|function_name|type|id|tool_calls|action|recipient_name|arguments|parameters|input|args)`
	attr := `\s+[\w-]{1,64}\s*=\s*(?:"[^"]{0,500}"|'[^']{0,500}'|[\w.-]{1,64})`
	return patterns{
		tag:      re(`^<((?:[a-z]+:)?)([A-Za-z_][\w.-]{0,63})(?:=["']?([\w.:/-]{1,128})["']?)?((?:` + attr + `)*)\s*(/?)>`),
		half:     re(`^<[A-Za-z_][\w.:/="'-]{0,200}(?:` + attr + `)*(?:\s+[\w-]{0,64}\s*(?:=\s*(?:"[^"]{0,500}|'[^']{0,500})?)?)?/?$`),
		attr:     re(`([\w-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([\w.-]+))`),
		fence:    re("^(`{3,})[ \t]*([\\w-]*)[ \t]*\r?\n\\s*([{<\\[]|\\w)"),
		json:     re(`^(\{\s*"` + key + `"\s*:|\[\s*\{\s*"` + key + `"\s*:|\[\s*[a-zA-Z_][\w.]*\()`),
		halfJSON: re(`^(\{\s*("\w{0,20}("\s*)?)?|\[\s*(\{\s*("\w{0,20}("\s*)?)?|[a-zA-Z_][\w.]{0,60})?)$`),
	}
})

// beginsJSON reports whether text begins like a call in JSON, a list of calls, or a list of Python calls.
func beginsJSON(text string) verdict {
	switch {
	case pattern().json.MatchString(text[:min(len(text), 200)]):
		return yes
	case pattern().halfJSON.MatchString(text):
		return more
	}
	return no
}

// matchTag returns the form of an element that contains calls or is named after a tool.
func (s *scanner) matchTag(text string) (f form, n int, is verdict) {
	m := pattern().tag.FindStringSubmatch(text[:min(len(text), 1200)])
	if m == nil {
		if text == "<" || pattern().half.MatchString(text) {
			return f, 0, more
		}
		return f, 0, no
	}
	n = len(m[0])
	named, attrs := m[3], m[4]
	rest := strings.TrimLeft(text[n:], space)
	f = form{close: "</" + m[1] + m[2] + ">"}
	f.ends = until(n, f.close)
	if m[5] != "" { // self-closing
		f.close, f.ends = "", func(string, bool) (int, int, bool) { return n, n, true }
	}
	isLoose := slices.Contains(looseTags, strings.ToLower(m[2]))
	switch {
	case slices.Contains(tags, strings.ToLower(m[2])) || isLoose && (named != "" || attrs != ""):
		if f.tool = strings.TrimPrefix(named, "functions."); f.tool == "" {
			f.tool = attribute(attrs, "name", "tool", "function")
		}
		f.kind = python
		if f.tool != "" {
			f.kind = args
		}
		return f, n, yes
	case s.native || !s.fresh() || !isLoose && !s.knows(m[2]) || named != "":
		return f, 0, no
	case !isLoose:
		f.kind, f.tool, f.attrs = args, m[2], attrs
	}
	f.fits = true
	switch {
	case m[5] != "" || attrs != "" && strings.HasPrefix(rest, "</") || rest != "" && strings.ContainsRune("{<[`", rune(rest[0])):
		return f, n, yes
	case rest == "":
		return f, 0, more
	}
	return f, 0, no
}

// attribute returns the value of the first attribute in names that is present.
func attribute(attrs string, names ...string) string {
	for _, name := range names {
		for _, m := range pattern().attr.FindAllStringSubmatch(attrs, -1) {
			if strings.EqualFold(m[1], name) {
				return m[2] + m[3] + m[4]
			}
		}
	}
	return ""
}

// fenceKinds are the info strings of code fences that may contain calls.
var fenceKinds = []string{"", "json", "jsonc", "json5", "xml", "text", "plaintext", "tool", "tool_code", "tool_call", "tool_calls", "tool_use", "function", "function_call", "action"}

// matchFence returns the form of a code fence that may contain calls.
func matchFence(text string) (f form, n int, is verdict) {
	m := pattern().fence.FindStringSubmatch(text[:min(len(text), 1000)])
	if m == nil {
		if line, rest, ended := strings.Cut(text, "\n"); strings.TrimSpace(rest) == "" && len(text) < 1000 && (ended || len(line) < 100) && !strings.Contains(strings.Trim(line, "`"), "`") {
			return f, 0, more
		}
		return f, 0, no
	}
	isTool := strings.HasPrefix(m[2], "tool") || strings.HasPrefix(m[2], "function")
	if !slices.Contains(fenceKinds, strings.ToLower(m[2])) || !isTool && !strings.Contains("{<[", m[3]) {
		return f, 0, no
	}
	n = strings.IndexByte(text, '\n') + 1
	f = form{kind: body, loose: true, fits: true, ends: untilFence(n, m[1])}
	if isTool {
		f.kind = python
	}
	return f, n, yes
}

// ender finds the places where the open form may end, one after
// another: the end of its content, and the end of its close.
type ender func(text string, final bool) (end, after int, found bool)

// until finds a close mark.
func until(from int, close string) ender {
	return func(text string, _ bool) (end, after int, found bool) {
		i := strings.Index(text[from:], close)
		if i < 0 {
			from = max(from, len(text)-len(close)+1)
			return 0, 0, false
		}
		end = from + i
		from = end + len(close)
		return end, from, true
	}
}

// untilFence finds the line that closes a code fence.
func untilFence(from int, mark string) ender {
	return func(text string, final bool) (end, after int, found bool) {
		for from < len(text) {
			line, _, ended := strings.Cut(text[from:], "\n")
			if !ended && !final {
				return 0, 0, false
			}
			end, after = from, from+len(line)
			from = min(after+1, len(text))
			if rest := strings.TrimLeft(strings.TrimSpace(line), mark[:1]); rest == "" && strings.Contains(line, mark) {
				return end, after, true
			}
		}
		return 0, 0, false
	}
}

// balanced finds where opened brackets are closed again.
func balanced(from int) ender {
	depth, quote := 0, ""
	return func(text string, final bool) (end, after int, found bool) {
		for from < len(text) {
			rest := text[from:]
			if quote != "" {
				switch {
				case rest[0] == '\\' && len(rest) > 1:
					from += 2
				case strings.HasPrefix(rest, quote):
					from += len(quote)
					quote = ""
				case !final && (rest[0] == '\\' || strings.HasPrefix(quote, rest)):
					return 0, 0, false
				default:
					from++
				}
				continue
			}
			switch c := rest[0]; c {
			case '"':
				if quote = `"`; strings.HasPrefix(rest, `"""`) {
					quote = `"""`
				} else if !final && strings.HasPrefix(`"""`, rest) {
					quote = ""
					return 0, 0, false
				}
				from += len(quote)
				continue
			case '\'':
				if depth > 0 {
					quote = "'"
				}
			case '{', '[', '(':
				depth++
			case '}', ']', ')':
				if depth--; depth == 0 {
					from++
					return from, from, true
				}
				depth = max(depth, 0)
			}
			from++
		}
		return 0, 0, false
	}
}
