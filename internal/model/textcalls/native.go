package textcalls

import (
	"encoding/json"
	"regexp"
	"strings"
	"sync"

	"coder/internal/model/provider"
)

// Models that call tools natively do so in texts of their own, which the server
// in front of them should have read. Where it did not they arrive here.

// pair is an opening and the close that belongs to it.
type pair struct{ open, close string }

// prefixed is what some models put before the names of their tags.
const prefixed = "ant" + "ml:"

// wrappers are what stands around several calls.
var wrappers = []pair{
	{"<function_calls>", "</function_calls>"}, {"<" + prefixed + "function_calls>", "</" + prefixed + "function_calls>"},
	{"<tool_calls>", "</tool_calls>"}, {"<minimax:tool_call>", "</minimax:tool_call>"},
	{"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"},
	{"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"},
}

// marked are the marks around one call, and those between its name and its
// arguments.
var marked = []struct {
	pair
	between string
}{
	{pair{"<|tool_call_begin|>", "<|tool_call_end|>"}, "<|tool_call_argument_begin|>"},
	{pair{"<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"}, "<｜tool▁sep｜>"},
}

// invokes are the beginnings of tags that name a tool in an attribute.
var invokes = []pair{
	{"<invoke name=", "</invoke>"}, {"<" + prefixed + "invoke name=", "</" + prefixed + "invoke>"},
	{"<function name=", "</function>"}, {"<tool_call name=", "</tool_call>"},
}

// matchNative is [matchOpening] for these forms.
func matchNative(text string) (tag, close string, more bool) {
	for _, w := range wrappers {
		if strings.HasPrefix(text, w.open) {
			return w.open, w.close, false
		}
		more = more || strings.HasPrefix(w.open, text)
	}
	for _, m := range marked {
		if strings.HasPrefix(text, m.open) {
			return m.open, m.close, false
		}
		more = more || strings.HasPrefix(m.open, text)
	}
	for _, v := range invokes {
		more = more || strings.HasPrefix(v.open, text)
		if !strings.HasPrefix(text, v.open) {
			continue
		}
		name, _, ended := strings.Cut(text[len(v.open):], ">")
		switch {
		case len(name) > maxName || strings.ContainsAny(name, "\r\n<"):
			return "", "", false
		case !ended:
			return "", "", true
		case strings.Trim(name, `"' `) != "":
			return v.open + name + ">", v.close, false
		}
	}
	return "", "", more
}

// parseNative reads what stands between an opening of one of these forms and
// its close. It reports false for known if the opening is none of them.
func parseNative(tag, inner string, tools []provider.ToolSpec) (calls []call, known, ok bool) {
	for _, w := range wrappers {
		if tag == w.open {
			calls, ok = parseSeveral(inner, tools)
			return calls, true, ok
		}
	}
	for _, m := range marked {
		if tag == m.open {
			c, ok := parseMarked(inner, m.between)
			return []call{c}, true, ok
		}
	}
	for _, v := range invokes {
		if name, is := strings.CutPrefix(tag, v.open); is {
			inner = attributed().ReplaceAllStringFunc(inner, func(tag string) string { // in the one form that is read
				m := attributed().FindStringSubmatch(tag)
				switch {
				case m[1] != "":
					return "</parameter>"
				case m[2] == "":
					return tag
				}
				return "<parameter=" + m[2] + ">"
			})
			c, ok := parseFunction(strings.Trim(strings.TrimSuffix(name, ">"), `"' `), inner, tools)
			return []call{c}, true, ok
		}
	}
	return nil, false, false
}

// attributed is a parameter whose name is an attribute, or the close of one with
// a prefix.
var attributed = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`<(/?)(?:` + prefixed + `)?parameter(?: name=("[^"<>]*"|'[^'<>]*'|[\w-]+)[^>]*)?>`)
})

// parseSeveral reads calls one after the other.
func parseSeveral(text string, tools []provider.ToolSpec) (calls []call, ok bool) {
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		if strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
			more, ok := parseJSON(text)
			return append(calls, more...), ok
		}
		tag, close, _ := matchOpening(text)
		if tag == "" || close == "" {
			return nil, false
		}
		found := false
		for end, tries := len(tag), 0; !found && tries < maxTries; tries++ {
			i := strings.Index(text[end:], close)
			if i < 0 {
				return nil, false
			}
			inner := text[len(tag) : end+i]
			end += i + len(close)
			if more, ok := parseCalls(tag, inner, tools); ok {
				calls, text, found = append(calls, more...), text[end:], true
			}
		}
		if !found {
			return nil, false
		}
	}
	return calls, len(calls) > 0
}

// parseMarked reads "functions.read:0<|…|>{…}" and "function<…>read\n{…}".
func parseMarked(inner, between string) (call, bool) {
	name, args, ok := strings.Cut(strings.TrimSpace(inner), between)
	if name == "function" {
		name, args, ok = strings.Cut(strings.TrimSpace(args), "\n")
	}
	name = strings.TrimPrefix(strings.TrimSpace(name), "functions.")
	if i := strings.LastIndexByte(name, ':'); i > 0 && strings.Trim(name[i+1:], "0123456789") == "" {
		name = name[:i] // its number in the reply
	}
	args = withoutFence(strings.TrimSpace(args))
	return call{name, args}, ok && name != "" && json.Valid([]byte(args))
}

// parseKeyed reads read<arg_key>path</arg_key><arg_value>a</arg_value>.
func parseKeyed(inner string, tools []provider.ToolSpec) (call, bool) {
	name, rest := inner, ""
	if i := strings.IndexAny(inner, "<"+space); i >= 0 {
		name, rest = inner[:i], strings.TrimSpace(inner[i:])
	}
	_, offered := specOf(tools, name)
	types := typesOf(tools, name)
	var args []string
	for rest != "" {
		key, value, found := cutElement(rest, "arg_key")
		value, after, also := cutElement(strings.TrimSpace(value), "arg_value")
		if !found || !also {
			break
		}
		args = append(args, quote(strings.TrimSpace(key))+": "+types.literal(strings.TrimSpace(key), value))
		rest = strings.TrimSpace(after)
	}
	ok := name != "" && rest == "" && (len(args) > 0 || offered)
	return call{name, "{" + strings.Join(args, ", ") + "}"}, ok
}

// cutElement cuts <name>…</name> off the start of text.
func cutElement(text, name string) (body, rest string, ok bool) {
	if body, ok = strings.CutPrefix(text, "<"+name+">"); !ok {
		return "", text, false
	}
	return strings.Cut(body, "</"+name+">")
}
