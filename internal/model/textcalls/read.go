package textcalls

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"coder/internal/core/jsonx"
	"coder/internal/core/lazy"
)

// call is a call as the model wrote it. args may be invalid JSON.
type call struct {
	name, args string
	// isCertain means that the text can only be a call: if its arguments do not
	// fit, the model gets an error, and the user does not see the text.
	isCertain bool
}

func (c call) equal(o call) bool { return c == o }

// readForm reads the content of a form. Calls of unknown tools do not
// count, nor do calls that must fit the schema and do not.
func (s *scanner) readForm(f form, inner string) (calls []call, ok bool) {
	switch inner = strings.TrimSpace(inner); f.kind {
	case kindArgs:
		var c call
		c, ok = s.readArgs(f, inner)
		calls = []call{c}
	case kindSteps:
		name, input, found := strings.Cut(inner, "\n")
		input, also := strings.CutPrefix(strings.TrimSpace(input), "Action Input:")
		calls, ok = []call{{name: strings.TrimSpace(name), args: strings.TrimSpace(input)}}, found && also
	case kindBody, kindPython:
		calls, ok = s.readBody(inner, f)
	case kindRemains, kindResult:
	}
	return calls, ok && !slices.ContainsFunc(calls, func(c call) bool {
		return f.mustFit && !s.fitsSchema(c) && !(c.isCertain && s.isOffered(c.name)) || !f.mustFit && !s.acceptsAnyTool &&
			!s.isKnown(c.name)
	})
}

// readBody reads calls in any notation, one after another.
func (s *scanner) readBody(text string, f form) (calls []call, ok bool) {
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimLeft(text, jointChars) {
		var (
			some []call
			rest string
		)
		switch first, _, _ := strings.Cut(text, "\n"); {
		case strings.HasPrefix(text, "```"):
			some, rest, ok = s.readFence(text, f)
		case text[0] == '{' || text[0] == '[' && !strings.HasPrefix(text, "[TOOL"):
			some, rest, ok = s.readJSON(text, f)
		case text[0] == '<':
			some, rest, ok = s.readElement(text, f)
		case strings.HasPrefix(text, "[TOOL"):
			some, rest, ok = s.readNested(text)
		default:
			if some, rest, ok = readNamed(text); !ok && f.kind == kindPython {
				some, rest, ok = s.readPython(text)
			}
			if !ok && !f.isAmbiguous && s.isKnown(strings.TrimSpace(first)) { // a name alone, or arguments in GLM's notation
				some, rest, ok = s.readKeyed(text)
			}
			if !ok && strings.Contains(first, "<") {
				some, rest, ok = s.readKeyed(text)
			}
		}
		if !ok {
			return nil, false
		}
		calls, text = append(calls, some...), rest
	}
	return calls, len(calls) > 0
}

// readFence reads the code fence that text begins with.
func (s *scanner) readFence(text string, f form) (calls []call, rest string, ok bool) {
	_, inner, found := strings.Cut(text, "\n")
	inner, rest, closed := strings.Cut(inner, "\n```")
	if !closed {
		inner, closed = strings.CutSuffix(inner, "```")
	}
	if !found || !closed {
		return nil, "", false
	}
	calls, ok = s.readBody(inner, f)
	return calls, rest, ok
}

// trimFence removes a code fence around all of text.
func trimFence(text string) string {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "```") || !strings.HasSuffix(text, "```") {
		return text
	}
	_, body, ok := strings.Cut(text, "\n")
	if !ok {
		return text
	}
	return strings.TrimSpace(strings.TrimSuffix(body, "```"))
}

// These are the JSON names for the parts of a call.
var (
	nameKeys = []string{"name", "tool", "tool_name", "function_name", "function", "action", "recipient_name"}
	argsKeys = []string{"arguments", "input", "parameters", "args", "params", "tool_input", "action_input", "kwargs"}
	moreKeys = []string{"type", "id", "tool_call_id", "index", "thought", "reasoning"}
)

// readJSON reads one call in JSON, or a list of calls in JSON or Python.
func (s *scanner) readJSON(text string, f form) (calls []call, rest string, ok bool) {
	v, rest, ok := parseValue(text)
	if !ok && f.kind == kindPython && text[0] == '[' {
		end, _, closed := untilBalanced(0)(text, true)
		if !closed {
			return nil, "", false
		}
		calls, _, ok = s.readPython(text[1 : end-1])
		return calls, text[end:], ok
	}
	if !ok {
		return nil, "", false
	}
	calls, ok = s.parseCalls(v, f)
	return calls, rest, ok
}

func (s *scanner) parseCalls(v string, f form) (calls []call, ok bool) {
	list := []json.RawMessage{json.RawMessage(v)}
	if v[0] == '[' && json.Unmarshal([]byte(v), &list) != nil {
		return nil, false
	}
	for _, one := range list {
		var o map[string]json.RawMessage
		if json.Unmarshal(one, &o) != nil {
			return nil, false
		}
		if several, is := o["tool_calls"]; is && len(several) > 0 && several[0] == '[' {
			more, ok := s.parseCalls(string(several), f)
			if !ok {
				return nil, false
			}
			calls = append(calls, more...)
			continue
		}
		c, ok := s.parseCall(o, f)
		if !ok {
			return nil, false
		}
		calls = append(calls, c)
	}
	return calls, len(calls) > 0
}

// parseCall returns the call that an object describes. In a loose form the object must be a call and
// nothing else; elsewhere the arguments may also be next to the name, or the name may be the key.
func (s *scanner) parseCall(o map[string]json.RawMessage, f form) (call, bool) {
	if inner := o["function"]; len(inner) > 0 && inner[0] == '{' {
		var fn map[string]json.RawMessage
		if json.Unmarshal(inner, &fn) != nil {
			return call{}, false
		}
		return s.parseCall(fn, f)
	}
	var c call
	o = maps.Clone(o)
	for _, k := range nameKeys {
		if json.Unmarshal(o[k], &c.name) == nil && c.name != "" {
			delete(o, k)
			break
		}
	}
	if c.name == "" {
		for k, v := range o {
			c = call{name: k, args: string(v)}
		}
		return c, len(o) == 1 && !f.isAmbiguous && s.isKnown(c.name)
	}
	for _, k := range argsKeys {
		if v, is := o[k]; is {
			c.args = string(v)
			delete(o, k)
			break
		}
	}
	flat := maps.Clone(o)
	for _, k := range moreKeys {
		delete(o, k)
	}
	switch {
	case c.args != "":
		c.isCertain = len(o) == 0 && c.args[0] == '{'
		return c, !f.isAmbiguous || len(o) == 0
	case len(o) == 0:
		c.args = "{}"
		return c, !f.isAmbiguous
	}
	c.args = string(jsonx.MustMarshal(flat))
	return c, s.fitsSchema(c)
}

// readElement reads <name>read</name><arguments>{…}</arguments>, or another form.
func (s *scanner) readElement(text string, f form) (calls []call, rest string, ok bool) {
	for _, k := range nameKeys {
		name, after, found := cutElement(text, k)
		if !found || strings.ContainsAny(name, "<{") {
			continue
		}
		c, ok := s.readArgs(form{tool: strings.TrimSpace(name)}, strings.TrimSpace(after))
		return []call{c}, "", ok
	}
	if calls, rest, ok = s.readNested(text); ok {
		return calls, rest, ok
	}
	return nil, "", false
}

// readNested reads a form inside another form.
func (s *scanner) readNested(text string) (calls []call, rest string, ok bool) {
	inner := &scanner{callContext: s.callContext}
	f, n, is := inner.matchForm(text)
	if is != verdictYes || f.findEnd == nil {
		return nil, "", false
	}
	for range maxTries {
		end, after, found := f.findEnd(text, true)
		if !found {
			return nil, "", false
		}
		if calls, ok = s.readForm(f, text[n:end]); ok {
			return calls, text[after:], true
		}
	}
	return nil, "", false
}

// nameSeparators separate the name of a tool from its arguments.
var nameSeparators = sync.OnceValue(func() *strings.Replacer {
	return strings.NewReplacer("<|tool_call_argument_begin|>", "\n", "<｜tool▁sep｜>", "\n", "<tool_sep>", "\n",
		"[ARGS]", "\n",
		"<|constrain|>json", "\n", "<|message|>", "\n", "✿ARGS✿:", "\n")
})

var namedPattern = lazy.Regexp("^(?:function\\s+)?(?:call:|functions\\.|to=functions\\.)?([A-Za-z_][\\w.-]*)(?::\\d+)?(?:\\[CALL_ID\\]\\w+)?\\s*(?:json\\s*)?(?:```(?:json)?)?\\s*\\{")

// readNamed reads a name and an object, with or without a separator between them.
func readNamed(text string) (calls []call, rest string, ok bool) {
	text = nameSeparators().Replace(text)
	m := namedPattern().FindStringSubmatchIndex(text)
	if m == nil {
		return nil, "", false
	}
	v, rest, ok := parseValue(text[m[1]-1:])
	rest = strings.TrimPrefix(strings.TrimSpace(rest), "```")
	return []call{{name: text[m[2]:m[3]], args: v}}, rest, ok
}

// readKeyed reads read<arg_key>path</arg_key><arg_value>a</arg_value>.
func (s *scanner) readKeyed(text string) (calls []call, rest string, ok bool) {
	text = nameSeparators().Replace(text)
	name, rest := text, ""
	if i := strings.IndexAny(text, "<"+spaceChars); i >= 0 {
		name, rest = text[:i], strings.TrimSpace(text[i:])
	}
	a := s.newArgCollector(name)
	for rest != "" {
		key, after, found := cutElement(rest, "arg_key")
		v, after, also := cutElement(strings.TrimSpace(after), "arg_value")
		if !found || !also {
			break
		}
		a.add(strings.TrimSpace(key), v)
		rest = strings.TrimSpace(after)
	}
	return []call{{name: name, args: a.String()}}, rest, rest == "" && (len(a.list) > 0 || s.isKnown(name))
}

// readArgs reads the arguments of a named tool: an object, elements, or nothing.
func (s *scanner) readArgs(f form, inner string) (call, bool) {
	inner = trimFence(inner)
	for _, k := range argsKeys {
		if in, rest, ok := lastElement(inner, k); ok && strings.TrimSpace(rest) == "" {
			if c, ok := s.readArgs(f, strings.TrimSpace(in)); ok {
				return c, true
			}
			return call{name: f.tool, args: strings.TrimSpace(in)}, true
		}
	}
	if strings.HasPrefix(inner, "{") {
		v, rest, ok := parseValue(inner)
		if !ok || strings.TrimSpace(rest) != "" {
			return call{name: f.tool, args: inner}, false
		}
		if calls, is := s.parseCalls(v, form{isAmbiguous: true}); is && len(calls) == 1 &&
			strings.EqualFold(calls[0].name, f.tool) {
			return calls[0], true
		}
		return call{name: f.tool, args: v}, true
	}
	a := s.newArgCollector(f.tool)
	for _, m := range compiledPatterns().attr.FindAllStringSubmatch(f.attrs, -1) {
		a.add(m[1], m[2]+m[3]+m[4])
	}
	for inner != "" {
		m := compiledPatterns().tag.FindStringSubmatch(inner)
		if m == nil {
			return call{}, false
		}
		key := m[3]
		if key == "" {
			key = findAttribute(m[4], "name", "key")
		}
		if key == "" {
			key = m[2]
		}
		v, rest, ok := strings.Cut(inner[len(m[0]):], "</"+m[1]+m[2]+">")
		if !ok {
			return call{}, false
		}
		a.add(key, v)
		inner = strings.TrimSpace(rest)
	}
	return call{name: f.tool, args: a.String()}, true
}

// cutElement cuts <name>…</name> from the start of text.
func cutElement(text, name string) (body, rest string, ok bool) {
	if body, ok = strings.CutPrefix(text, "<"+name+">"); !ok {
		return "", text, false
	}
	return strings.Cut(body, "</"+name+">")
}

// lastElement is cutElement up to the last close, so that the body may mention tags.
func lastElement(text, name string) (body, rest string, ok bool) {
	close := "</" + name + ">"
	body, ok = strings.CutPrefix(text, "<"+name+">")
	i := strings.LastIndex(body, close)
	if !ok || i < 0 {
		return "", text, false
	}
	return body[:i], body[i+len(close):], true
}

var pythonPattern = lazy.Regexp(`^(?:print\()?(?:[A-Za-z_]\w*\s*=\s*)?([A-Za-z_][\w.]*)\(`)

// readPython reads read(path="a", limit=3), or several calls separated by commas or line breaks.
func (s *scanner) readPython(text string) (calls []call, rest string, ok bool) {
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimLeft(text, jointChars) {
		if strings.HasPrefix(text, "#") || strings.HasPrefix(text, "import ") {
			_, text, _ = strings.Cut(text, "\n")
			continue
		}
		m := pythonPattern().FindStringSubmatchIndex(text)
		if m == nil {
			break
		}
		name := strings.TrimSuffix(text[m[2]:m[3]], ".call")
		end, _, closed := untilBalanced(m[1]-1)(text, true)
		if !closed {
			return nil, "", false
		}
		a := s.newArgCollector(name)
		if !a.addPython(text[m[1] : end-1]) {
			return nil, "", false
		}
		calls, text = append(calls, call{name: name, args: a.String()}), text[end:]
		text = strings.TrimPrefix(text, ")") // the close of print
	}
	return calls, text, len(calls) > 0
}

// salvage salvages an unreadable call: its name, if it has one, with the whole text as arguments.
// Readable JSON does not count: it lacks the parts of a call.
func (s *scanner) salvage(f form, inner string) ([]call, bool) {
	inner = strings.TrimSpace(inner)
	name := f.tool
	if name == "" {
		name = findName(inner)
		if _, _, whole := parseValue(trimFence(inner)); whole {
			return nil, false
		}
	}
	if name == "" || inner == "" || f.mustFit && (f.tool != "" || !s.isOffered(name)) || !s.acceptsAnyTool &&
		!s.isKnown(name) {
		return nil, false
	}
	return []call{{name: name, args: inner}}, true
}

var namePattern = lazy.Regexp("^\\s*(?:```\\w*\\s*)?\\[?\\s*(?:<function=\"?([\\w.-]+)|\\{\\s*\"(?:name|tool|tool_name)\"\\s*:\\s*\"([\\w.-]+)\"\\s*,)")

// findName finds the name in otherwise broken JSON, or in a function tag.
func findName(text string) string {
	m := namePattern().FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return m[1] + m[2]
}
