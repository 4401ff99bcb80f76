package textcalls

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	"coder/internal/core/chat"
	"coder/internal/core/jsonx"
	"coder/internal/model/provider"
	"coder/internal/tool/dialect"
)

// callContext is the context for judging calls: the tools and the earlier messages.
type callContext struct {
	tools          []provider.ToolSpec
	messages       []chat.Message
	acceptsAnyTool bool // calls of tools that were not offered count, too
	isNative       bool // the model calls tools by the API: only what cannot be ordinary text is a call
}

// findSpec returns the tool called name, also if name has a prefix.
func (o callContext) findSpec(name string) (provider.ToolSpec, bool) {
	for _, n := range []string{name, dialect.BareName(name)} {
		for _, t := range o.tools {
			if n != "" && strings.EqualFold(t.Name, n) {
				return t, true
			}
		}
	}
	return provider.ToolSpec{}, false
}

func (o callContext) isOffered(name string) bool {
	_, ok := o.findSpec(name)
	return ok
}

// isKnown reports whether name is an offered tool, or another agent's tool that corresponds to one.
func (o callContext) isKnown(name string) bool {
	return name != "" && (o.isOffered(name) || slices.ContainsFunc(dialect.Equivalents(name), o.isOffered))
}

// schema is the relevant part of a tool's schema.
type schema struct {
	Required   []string `json:"required"`
	Properties map[string]struct {
		Type any `json:"type"` // a name or a list of names
	} `json:"properties"`
}

func (o callContext) toolSchema(name string) (s schema) {
	spec, _ := o.findSpec(name)
	if json.Unmarshal(spec.Schema, &s) != nil {
		return schema{}
	}
	return s
}

// fitsSchema reports whether a call's arguments are those of its tool, or mean the same in another agent.
func (o callContext) fitsSchema(c call) bool {
	if o.fitsOwnSchema(c) {
		return true
	}
	meant, is, err := dialect.Convert(c.name, json.RawMessage(c.args))
	return is && err == nil && o.fitsOwnSchema(call{name: meant.Tool, args: string(meant.Args)})
}

func (o callContext) fitsOwnSchema(c call) bool {
	args := []byte(c.args)
	var text string
	if json.Unmarshal(args, &text) == nil {
		args = []byte(text) // an object in a string
	}
	var given map[string]json.RawMessage
	if json.Unmarshal(args, &given) != nil || given == nil {
		return false
	}
	s := o.toolSchema(c.name)
	ok := o.isOffered(c.name)
	for _, k := range s.Required {
		_, is := given[k]
		ok = ok && is
	}
	for k := range given {
		_, is := s.Properties[k]
		ok = ok && (is || len(s.Properties) == 0)
	}
	return ok
}

// argCollector collects the arguments of one call.
type argCollector struct {
	schema
	list []string
}

func (o callContext) newArgCollector(tool string) *argCollector {
	return &argCollector{schema: o.toolSchema(tool)}
}

func (a *argCollector) String() string { return "{" + strings.Join(a.list, ", ") + "}" }

// add adds an argument written as text: as a string if the schema wants
// one or is silent, otherwise as the value in the text, if it has one.
func (a *argCollector) add(key, text string) {
	text = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(text, "\r"), "\n"), "\n")
	if data, ok := strings.CutPrefix(strings.TrimSpace(text), "<![CDATA["); ok && strings.HasSuffix(data, "]]>") {
		text = strings.TrimSuffix(data, "]]>")
	}
	v := string(jsonx.MustMarshal(text))
	if typ, _ := a.Properties[key].Type.(string); typ != "" && typ != "string" {
		if trimmed := strings.TrimSpace(text); json.Valid([]byte(trimmed)) {
			v = trimmed
		}
	}
	a.list = append(a.list, string(jsonx.MustMarshal(key))+": "+v)
}

// addPython adds the arguments of a Python call. Arguments without a name are the required ones, in order.
func (a *argCollector) addPython(text string) bool {
	r := looseReader{text: text}
	for n := 0; ; n++ {
		if r.skipSpace(); r.text == "" {
			return true
		}
		named := looseReader{text: r.text}
		key, ok := named.readKey()
		if ok && named.consume("=") {
			r = named
		} else if n < len(a.Required) {
			key = a.Required[n]
		} else {
			return false
		}
		v, ok := r.readValue(0)
		if !ok {
			return false
		}
		a.list = append(a.list, string(jsonx.MustMarshal(key))+": "+v)
		if !r.consume(",") {
			r.skipSpace()
			return r.text == ""
		}
	}
}

// isExample reports whether the open form is not a call although it could be read as one: it is in the middle
// of a sentence, is introduced as an example, was requested as one, or repeats the user or a tool.
func (s *scanner) isExample(final bool) verdict {
	o, text := s.open, s.buffer.String()[s.pos:]
	if !s.atLineStart() && !strings.ContainsAny(lastRune(strings.TrimRight(string(s.fences.line), " \t")), ".!?。！？…") {
		rest := strings.TrimLeft(text[o.end:], " \t")
		switch {
		case rest == "" && !final:
			return verdictMore
		case rest != "" && !strings.ContainsAny(rest[:1], "\r\n<["):
			return verdictYes
		}
	}
	if introPatterns().example.MatchString(s.lineBefore()) || s.userAskedFor(requestPatterns().example) ||
		s.isQuoted(text) {
		return verdictYes
	}
	return verdictNo
}

// isExplained reports whether the open form may be part of an explanation; it is one if text follows.
func (s *scanner) isExplained() bool {
	return introPatterns().explanation.MatchString(s.lineBefore()) || s.userAskedFor(requestPatterns().explanation)
}

// lineBefore returns the last non-blank line before the open form, or "" if that is a call.
func (s *scanner) lineBefore() string {
	if len(s.pendingBlocks) > 0 {
		return ""
	}
	before := strings.TrimRight(s.buffer.String()[:s.pos], spaceChars)
	return before[strings.LastIndexByte(before, '\n')+1:]
}

func lastRune(s string) string {
	r := []rune(s[max(0, len(s)-4):])
	return string(r[max(0, len(r)-1):])
}

// examplePatterns has the patterns that tell whether a call is only shown.
type examplePatterns struct{ call, example, explanation *regexp.Regexp }

// introPatterns matches lines that end by introducing an example or an explanation.
var introPatterns = sync.OnceValue(func() examplePatterns {
	const end = `[\s:：*_,，。.]*$`
	return examplePatterns{
		example: regexp.MustCompile(`(?i)(?:\bfor (?:example|instance)|\be\.g\.|\bsuch as|\blooks? like(?: this)?|\ban example(?: (?:of|for|tool|function|call)(?: [\w'-]+){0,6})?|` +
			`^\W*(?:an? )?(?:example|sample|syntax|format|template)(?: [\w'-]+){0,3}|\b(?:syntax|format) (?:is|for (?:[\w'-]+ ?){1,4}is)|例如|比如|示例|例子|(?:格式|语法)(?:为|是|如下)?)` + end),
		explanation: regexp.MustCompile(`(?i)(?:\bas follows|\blike (?:this|so)|\bfollowing(?: [\w'-]+){0,3}|\b(?:you|one|models?) (?:can |could |would |must )?(?:writes?|sends?|calls?)(?: [\w'-]+){0,4}|如下|这样)` + end),
	}
})

// requestPatterns matches requests about calls that ask for an example or an explanation.
var requestPatterns = sync.OnceValue(func() examplePatterns {
	return examplePatterns{
		call:        regexp.MustCompile(`(?i)(?:tool|function)[ _-]?(?:call|use|invocation)s?|工具调用|函数调用|调用工具`),
		example:     regexp.MustCompile(`(?i)\b(?:example|sample|format|syntax|looks? like|print|display|quote|show me (?:an?|the|what|how))\b|示例|例子|格式|语法|长什么样`),
		explanation: regexp.MustCompile(`(?i)\b(?:explain|describe|document|how|what)\b|解释|说明|怎么`),
	}
})

// userAskedFor reports whether the user's latest message is about calls and matches what.
func (o callContext) userAskedFor(what *regexp.Regexp) bool {
	for _, m := range slices.Backward(o.messages) {
		if m.Role == chat.User && m.Text() != "" {
			return requestPatterns().call.MatchString(m.Text()) && what.MatchString(m.Text())
		}
	}
	return false
}

// isQuoted reports whether the user or a tool wrote the open form before, so
// that the model quotes it. An unreadable call is never a quotation.
func (s *scanner) isQuoted(text string) bool {
	o := s.open
	if slices.ContainsFunc(o.calls, func(c call) bool { return !json.Valid([]byte(c.args)) }) {
		return false
	}
	quote := text[:o.end]
	if inner := strings.TrimSpace(o.inner); o.tool == "" && inner != "" && strings.ContainsAny(inner[:1], "{[<") {
		quote = inner
	}
	quote = collapseSpace(quote)
	for _, m := range s.messages {
		words := []string{m.Text()}
		for r := range chat.PartsOf[chat.ToolResult](m) {
			words = append(words, r.Text)
			var object map[string]any // the model read the strings of a result
			if json.Unmarshal([]byte(r.Text), &object) == nil {
				for _, v := range object {
					s, _ := v.(string)
					words = append(words, s)
				}
			}
		}
		if m.Role != chat.Assistant && slices.ContainsFunc(words, func(w string) bool {
			return strings.ContainsAny(w, "{<(") && strings.Contains(collapseSpace(w), quote)
		}) {
			return true
		}
	}
	return false
}

// collapseSpace returns text with every run of white space replaced by one space.
func collapseSpace(text string) string { return strings.Join(strings.Fields(text), " ") }
