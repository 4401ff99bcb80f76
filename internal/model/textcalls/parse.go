package textcalls

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"coder/internal/core/jsonx"
	"coder/internal/model/provider"
)

// call is a call as the model wrote it. args need not be JSON.
type call struct{ name, args string }

// parseCalls reads what stands between an opening tag and its close.
func parseCalls(tag, inner string, tools []provider.ToolSpec) ([]call, bool) {
	inner = strings.TrimSpace(inner)
	if calls, known, ok := parseNative(tag, inner, tools); known {
		return calls, ok
	}
	if name, ok := functionName(tag); ok {
		c, ok := parseFunction(name, inner, tools)
		return []call{c}, ok
	}
	inner = withoutFence(inner)
	switch {
	case strings.HasPrefix(inner, functionTag):
		return parseFunctions(inner, tools)
	case strings.HasPrefix(inner, "<"):
		if c, ok := parseElements(inner, tools); ok {
			return []call{c}, true
		}
		return parseSeveral(inner, tools)
	case inner != "" && !strings.ContainsRune("{[", rune(inner[0])):
		if c, ok := parseKeyed(inner, tools); ok {
			return []call{c}, true
		}
	}
	return parseJSON(inner)
}

// functionName is the name in a tag such as <function=read>.
func functionName(tag string) (string, bool) {
	name, ok := strings.CutPrefix(tag, functionTag)
	return strings.Trim(strings.TrimSuffix(name, ">"), `"'`), ok
}

// withoutFence takes text out of the code fence around all of it.
func withoutFence(text string) string {
	if !strings.HasPrefix(text, "```") || !strings.HasSuffix(text, "```") {
		return text
	}
	_, body, ok := strings.Cut(text, "\n")
	if !ok {
		return text
	}
	return strings.TrimSpace(strings.TrimSuffix(body, "```"))
}

// wireCall is a call in JSON, in the spellings that models use.
type wireCall struct {
	Name       string          `json:"name"`
	Tool       string          `json:"tool"`
	Arguments  json.RawMessage `json:"arguments"`
	Input      json.RawMessage `json:"input"`
	Parameters json.RawMessage `json:"parameters"`
	Args       json.RawMessage `json:"args"`
	Function   *wireCall       `json:"function"`
}

func (w wireCall) call() (call, bool) {
	if w.Name == "" && w.Function != nil {
		return w.Function.call()
	}
	name := cmp.Or(w.Name, w.Tool)
	args := cmp.Or(string(w.Arguments), string(w.Input), string(w.Parameters), string(w.Args), "{}")
	return call{name, args}, name != ""
}

// parseJSON reads one call, a list of calls, or calls one after the other.
func parseJSON(text string) ([]call, bool) {
	var calls []call
	dec := json.NewDecoder(strings.NewReader(text))
	for {
		var raw json.RawMessage
		err := dec.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return calls, len(calls) > 0
		}
		if err != nil {
			return nil, false
		}
		list := []json.RawMessage{raw}
		if raw[0] == '[' && json.Unmarshal(raw, &list) != nil {
			return nil, false
		}
		for _, one := range list {
			var w wireCall
			if json.Unmarshal(one, &w) != nil {
				return nil, false
			}
			c, ok := w.call()
			if !ok {
				return nil, false
			}
			calls = append(calls, c)
		}
	}
}

// parseElements reads <name>read</name><arguments>{…}</arguments>. The arguments
// may be elements themselves, also right behind the name.
func parseElements(text string, tools []provider.ToolSpec) (call, bool) {
	var name, rest string
	for _, spelling := range []string{"name", "tool_name", "tool"} {
		if n, r, ok := element(text, spelling); ok {
			name, rest = n, strings.TrimSpace(r)
			break
		}
	}
	if name == "" {
		return call{}, false
	}
	c := call{name: name, args: "{}"}
	if rest == "" {
		return c, true
	}
	for _, spelling := range []string{"arguments", "input", "parameters", "args"} {
		if args, rest, ok := element(rest, spelling); ok && strings.TrimSpace(rest) == "" {
			c.args = withoutFence(args)
			if children, ok := parseChildren(name, c.args, tools); ok {
				c.args = children
			}
			return c, true
		}
	}
	args, ok := parseChildren(name, rest, tools)
	return call{name, args}, ok
}

// parseChildren reads <path>a</path><limit>3</limit> as a JSON object.
func parseChildren(tool, text string, tools []provider.ToolSpec) (string, bool) {
	types := typesOf(tools, tool)
	var args []string
	for text = strings.TrimSpace(text); text != ""; {
		key, _, ok := strings.Cut(strings.TrimPrefix(text, "<"), ">")
		if !ok || !strings.HasPrefix(text, "<") || key == "" || strings.ContainsAny(key, " \t\r\n</=") {
			return "", false
		}
		value, rest, ok := strings.Cut(text[len(key)+2:], "</"+key+">")
		if !ok {
			return "", false
		}
		value = strings.TrimSuffix(strings.TrimPrefix(value, "\n"), "\n")
		args = append(args, quote(key)+": "+types.literal(key, value))
		text = strings.TrimSpace(rest)
	}
	return "{" + strings.Join(args, ", ") + "}", len(args) > 0
}

// element cuts <name>…</name> off the start of text. The last close counts, so
// that the body may talk about tags.
func element(text, name string) (body, rest string, ok bool) {
	body, ok = strings.CutPrefix(text, "<"+name+">")
	if !ok {
		return "", text, false
	}
	close := "</" + name + ">"
	i := strings.LastIndex(body, close)
	if strings.Contains(name, "name") || name == "tool" {
		i = strings.Index(body, close)
	}
	if i < 0 {
		return "", text, false
	}
	return strings.TrimSpace(body[:i]), body[i+len(close):], true
}

// parseFunctions reads functions, one after the other.
func parseFunctions(text string, tools []provider.ToolSpec) ([]call, bool) {
	var calls []call
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		tag, close, _ := matchOpening(text)
		name, ok := functionName(tag)
		if !ok {
			return nil, false
		}
		c, rest, ok := cutFunction(name, text[len(tag):], close, tools)
		if !ok {
			return nil, false
		}
		calls, text = append(calls, c), rest
	}
	return calls, len(calls) > 0
}

// cutFunction tries each close until what is before it makes sense.
func cutFunction(name, text, close string, tools []provider.ToolSpec) (c call, rest string, ok bool) {
	end := 0
	for range maxTries {
		i := strings.Index(text[end:], close)
		if i < 0 {
			return call{}, "", false
		}
		inner := end + i
		end = inner + len(close)
		if c, ok := parseFunction(name, strings.TrimSpace(text[:inner]), tools); ok {
			return c, text[end:], true
		}
	}
	return call{}, "", false
}

// parseFunction reads the parameters of a function, or a JSON object of them.
func parseFunction(name, inner string, tools []provider.ToolSpec) (call, bool) {
	inner = withoutFence(inner)
	if strings.HasPrefix(inner, "{") {
		return call{name, inner}, json.Valid([]byte(inner))
	}
	types := typesOf(tools, name)
	args := []string{}
	for inner != "" {
		head, tagged := strings.CutPrefix(inner, "<parameter=")
		key, value, named := strings.Cut(head, ">")
		value, rest, closed := strings.Cut(value, "</parameter>")
		if !tagged || !named || key == "" || !closed {
			return call{}, false
		}
		key, value = strings.Trim(key, `"'`), strings.TrimSuffix(strings.TrimPrefix(value, "\n"), "\n")
		args = append(args, quote(key)+": "+types.literal(key, value))
		inner = strings.TrimSpace(rest)
	}
	return call{name, "{" + strings.Join(args, ", ") + "}"}, true
}

// types are the JSON types of a tool's arguments.
type types map[string]struct {
	Type any `json:"type"` // a name or a list of names
}

// typesOf are those of the tool called name; none if it was not offered.
func typesOf(tools []provider.ToolSpec, name string) types {
	spec, _ := specOf(tools, name)
	var s struct {
		Properties types `json:"properties"`
	}
	if json.Unmarshal(spec.Schema, &s) != nil {
		return nil
	}
	return s.Properties
}

// literal is value as JSON: a string where the schema wants one or does not
// say, else what the text says, if it says something.
func (t types) literal(key, value string) string {
	typ, _ := t[key].Type.(string)
	trimmed := strings.TrimSpace(value)
	if typ == "" || typ == "string" || !json.Valid([]byte(trimmed)) {
		return quote(value)
	}
	return trimmed
}

func quote(s string) string { return string(jsonx.Must(s)) }

// brokenCall makes what it can of a call that cannot be read: its name, if it
// has one, with all of the text for arguments. JSON that can be read is none:
// it lacks what makes a call.
func brokenCall(tag, inner string) ([]call, bool) {
	inner = strings.TrimSpace(inner)
	name, ok := functionName(tag)
	if !ok {
		name = nameIn(inner)
	}
	if name == "" || inner == "" || !ok && json.Valid([]byte(inner)) {
		return nil, false
	}
	return []call{{name, inner}}, true
}

// nameIn finds the name in JSON that is broken elsewhere, or in a function tag.
func nameIn(text string) string {
	if tag, _, _ := matchOpening(text); strings.HasPrefix(tag, functionTag) {
		name, _ := functionName(tag)
		return name
	}
	_, after, found := strings.Cut(text, `"name"`)
	after, follows := strings.CutPrefix(strings.TrimSpace(after), ":")
	var name string
	if !found || !follows || json.NewDecoder(strings.NewReader(after)).Decode(&name) != nil {
		return ""
	}
	return name
}
