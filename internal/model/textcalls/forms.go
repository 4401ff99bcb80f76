package textcalls

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// form is a notation for calls, as found in the text: how it ends and how to read its content.
type form struct {
	kind        kind
	tool        string // the tool named in the opening
	attrs       string // attributes of the opening, for arguments
	close       string
	findEnd     endFinder
	isAmbiguous bool // ordinary text may look the same: it is text if more text follows or if it does not fit
	mustFit     bool // the call must fit the schema
}

// kind is what a form contains.
type kind int

const (
	kindBody    kind = iota // calls in any notation
	kindArgs                // the arguments of the named tool
	kindPython              // calls in any notation, including Python's
	kindSteps               // a tool's name, with its arguments after "Action Input:"
	kindRemains             // nothing: the rest of a form whose other half was read or forgotten
	kindResult              // a result, which only coder may write: the model made it up
)

// openerBytes are the bytes that can begin a form.
const openerBytes = "<[{`AOf✿"

// callMarks are the marks that models put around calls and that their server should have parsed. A mark
// without a close ends at the bracket that closes the one it opened.
var callMarks = []struct{ open, close string }{
	{"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"}, {"<|tool_call_begin|>", "<|tool_call_end|>"}, // Kimi
	{"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"}, {"<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"}, // DeepSeek
	{"<|tool_call|>", "<|/tool_call|>"}, {"<|tool_call_start|>", "<|tool_call_end|>"}, // Phi and Granite, LFM
	{"<|START_ACTION|>", "<|END_ACTION|>"}, {"<|action_start|><|plugin|>", "<|action_end|>"}, // Command, InternLM
	{"<|tools_prefix|>", "<|tools_suffix|>"}, {"<start_function_call>", "<end_function_call>"}, // Apertus, FunctionGemma
	{"[TOOL_REQUEST]", "[END_TOOL_REQUEST]"}, {"<|channel|>commentary to=", "<|call|>"}, // LM Studio, GPT-OSS
	{"[TOOL_CALLS]", ""}, {"<|python_tag|>", ""}, {"functools[", ""}, // Mistral, Llama, Phi
	{"✿FUNCTION✿:", "✿RESULT✿"}, // Qwen-Agent
}

// callTags are the elements that contain calls. The ones in the second row have other meanings elsewhere.
var (
	callTags      = []string{"tool_use", "tool_call", "tool_code", "tool_calls", "tool_uses", "function_calls", "function_call", "toolcall", "invoke"}
	ambiguousTags = []string{"function", "tool", "call", "action", "use_tool", "execute_tool"}
)

// strayEnds are leftovers beside calls.
var strayEnds = []string{
	"<|im_end|>", "<|im_start|>assistant", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<|end|>", "<|call|>", "<|start|>assistant", "</s>",
	"<end_of_turn>", "<｜end▁of▁sentence｜>", "✿RESULT✿", "[/TOOL_CALLS]", "</function>", "</parameter>", "</arguments>",
}

// resultMarks are the marks of results that a model writes instead of waiting for them.
var resultMarks = []string{"<tool_result", "<tool_response", "<function_result", "<|tool_response", "<｜tool▁output", "[TOOL_RESULTS]", "Observation:"}

// leftoverMarks are the ends and the closes of forms.
var leftoverMarks = sync.OnceValue(func() []string {
	all := slices.Clone(strayEnds)
	for _, m := range callMarks {
		all = append(all, m.close)
	}
	for _, t := range callTags {
		all = append(all, "</"+t+">")
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
})

// matchForm returns the form that text begins with, and the length of its opening.
func (s *scanner) matchForm(text string) (f form, n int, is verdict) {
	if len(s.pendingBlocks) == 0 && s.fences.isQuoting() || text[0] == 'f' && !s.atLineStart() { // never hold back a letter within words
		return f, 0, verdictNo
	}
	unsure := false
	try := func(open string) bool {
		unsure = unsure || strings.HasPrefix(open, text)
		return strings.HasPrefix(text, open)
	}
	if len(s.pendingBlocks) > 0 {
		for _, l := range leftoverMarks() {
			if try(l) {
				return form{kind: kindRemains}, len(l), verdictYes
			}
		}
	}
	if len(s.pendingBlocks)+len(s.calls) > 0 && s.atLineStart() {
		for _, r := range resultMarks {
			if try(r) {
				return form{kind: kindResult}, len(r), verdictYes
			}
		}
	}
	for _, m := range callMarks {
		if !try(m.open) {
			continue
		}
		n = len(m.open)
		if strings.HasSuffix(m.open, "[") {
			n--
		}
		if m.close == "" {
			return form{kind: kindPython, findEnd: untilBalanced(n)}, n, verdictYes
		}
		return form{kind: kindPython, close: m.close, findEnd: untilMark(n, m.close)}, n, verdictYes
	}
	switch {
	case unsure:
		return f, 0, verdictMore
	case text[0] == '<':
		return s.matchTag(text)
	case !s.atLineStart() || s.isNative:
		return f, 0, verdictNo
	case text[0] == '`':
		return matchFence(text)
	case text[0] == 'A':
		const action = "Action:"
		if is := matchPrefix(text, action); is != verdictYes {
			return f, 0, is
		}
		return form{kind: kindSteps, findEnd: untilBalanced(len(action)), isAmbiguous: true, mustFit: true}, len(action),
			verdictYes
	}
	if is := matchJSON(text); is != verdictYes {
		return f, 0, is
	}
	return form{kind: kindPython, findEnd: untilBalanced(0), isAmbiguous: true, mustFit: true}, 0, verdictYes
}

func matchPrefix(text, with string) verdict {
	switch {
	case strings.HasPrefix(text, with):
		return verdictYes
	case strings.HasPrefix(with, text):
		return verdictMore
	}
	return verdictNo
}

// formPatterns match the beginnings of forms.
type formPatterns struct{ tag, partialTag, attr, fence, json, partialJSON *regexp.Regexp }

var compiledPatterns = sync.OnceValue(func() formPatterns {
	re := regexp.MustCompile
	key := `(?:name|tool|tool_name|function|function_name|type|id|tool_calls|action|recipient_name|arguments|parameters|input|args)`
	attr := `\s+[\w-]{1,64}\s*=\s*(?:"[^"]{0,500}"|'[^']{0,500}'|[\w.-]{1,64})`
	return formPatterns{
		tag: re(`^<((?:[a-z]+:)?)([A-Za-z_][\w.-]{0,63})(?:=["']?([\w.:/-]{1,128})["']?)?((?:` + attr +
			`)*)\s*(/?)>`),
		partialTag: re(`^<[A-Za-z_][\w.:/="'-]{0,200}(?:` + attr +
			`)*(?:\s+[\w-]{0,64}\s*(?:=\s*(?:"[^"]{0,500}|'[^']{0,500})?)?)?/?$`),
		attr:        re(`([\w-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([\w.-]+))`),
		fence:       re("^(`{3,})[ \t]*([\\w-]*)[ \t]*\r?\n\\s*([{<\\[]|\\w)"),
		json:        re(`^(\{\s*"` + key + `"\s*:|\[\s*\{\s*"` + key + `"\s*:|\[\s*[a-zA-Z_][\w.]*\()`),
		partialJSON: re(`^(\{\s*("\w{0,20}("\s*)?)?|\[\s*(\{\s*("\w{0,20}("\s*)?)?|[a-zA-Z_][\w.]{0,60})?)$`),
	}
})

// matchJSON reports whether text begins like a call in JSON, a list of calls, or a list of Python calls.
func matchJSON(text string) verdict {
	switch {
	case compiledPatterns().json.MatchString(text[:min(len(text), 200)]):
		return verdictYes
	case compiledPatterns().partialJSON.MatchString(text):
		return verdictMore
	}
	return verdictNo
}

// matchTag returns the form of an element that contains calls or is named after a tool.
func (s *scanner) matchTag(text string) (f form, n int, is verdict) {
	m := compiledPatterns().tag.FindStringSubmatch(text[:min(len(text), 1200)])
	if m == nil {
		if text == "<" || compiledPatterns().partialTag.MatchString(text) {
			return f, 0, verdictMore
		}
		return f, 0, verdictNo
	}
	n = len(m[0])
	named, attrs := m[3], m[4]
	rest := strings.TrimLeft(text[n:], spaceChars)
	f = form{close: "</" + m[1] + m[2] + ">"}
	f.findEnd = untilMark(n, f.close)
	if m[5] != "" { // self-closing
		f.close, f.findEnd = "", func(string, bool) (int, int, bool) { return n, n, true }
	}
	isLoose := slices.Contains(ambiguousTags, strings.ToLower(m[2]))
	switch {
	case slices.Contains(callTags, strings.ToLower(m[2])) || isLoose && (named != "" || attrs != ""):
		if f.tool = strings.TrimPrefix(named, "functions."); f.tool == "" {
			f.tool = findAttribute(attrs, "name", "tool", "function")
		}
		f.kind = kindPython
		if f.tool != "" {
			f.kind = kindArgs
		}
		return f, n, verdictYes
	case s.isNative || !s.atLineStart() || !isLoose && !s.isKnown(m[2]) || named != "":
		return f, 0, verdictNo
	case !isLoose:
		f.kind, f.tool, f.attrs = kindArgs, m[2], attrs
	}
	f.mustFit = true
	switch {
	case m[5] != "" || attrs != "" && strings.HasPrefix(rest, "</") || rest != "" && strings.ContainsRune("{<[`", rune(rest[0])):
		return f, n, verdictYes
	case rest == "":
		return f, 0, verdictMore
	}
	return f, 0, verdictNo
}

// findAttribute returns the value of the first attribute in names that is present.
func findAttribute(attrs string, names ...string) string {
	for _, name := range names {
		for _, m := range compiledPatterns().attr.FindAllStringSubmatch(attrs, -1) {
			if strings.EqualFold(m[1], name) {
				return m[2] + m[3] + m[4]
			}
		}
	}
	return ""
}

// fenceKinds are the info strings of code fences that may contain calls.
var fenceKinds = []string{"", "json", "jsonc", "json5", "xml", "text", "plaintext", "tool", "tool_code", "tool_call",
	"tool_calls", "tool_use", "function", "function_call", "action"}

// matchFence returns the form of a code fence that may contain calls.
func matchFence(text string) (f form, n int, is verdict) {
	m := compiledPatterns().fence.FindStringSubmatch(text[:min(len(text), 1000)])
	if m == nil {
		if line, rest, ended := strings.Cut(text, "\n"); strings.TrimSpace(rest) == "" && len(text) < 1000 &&
			(ended || len(line) < 100) && !strings.Contains(strings.Trim(line, "`"), "`") {
			return f, 0, verdictMore
		}
		return f, 0, verdictNo
	}
	isTool := strings.HasPrefix(m[2], "tool") || strings.HasPrefix(m[2], "function")
	if !slices.Contains(fenceKinds, strings.ToLower(m[2])) || !isTool && !strings.Contains("{<[", m[3]) {
		return f, 0, verdictNo
	}
	n = strings.IndexByte(text, '\n') + 1
	f = form{kind: kindBody, isAmbiguous: true, mustFit: true, findEnd: untilFence(n, m[1])}
	if isTool {
		f.kind = kindPython
	}
	return f, n, verdictYes
}

// endFinder finds the places where the open form may end, one after
// another: the end of its content, and the end of its close.
type endFinder func(text string, final bool) (end, after int, found bool)

// untilMark finds a close mark.
func untilMark(from int, close string) endFinder {
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
func untilFence(from int, mark string) endFinder {
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

// untilBalanced finds where opened brackets are closed again.
func untilBalanced(from int) endFinder {
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
