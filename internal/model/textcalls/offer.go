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

// offer is the context for judging calls: the tools and the earlier messages.
type offer struct {
	tools   []provider.ToolSpec
	said    []chat.Message
	anyName bool // calls of tools that were not offered count, too
	native  bool // the model calls tools by the API: only what cannot be ordinary text is a call
}

// spec returns the tool called name, also if name has a prefix.
func (o offer) spec(name string) (provider.ToolSpec, bool) {
	for _, n := range []string{name, dialect.Bare(name)} {
		for _, t := range o.tools {
			if n != "" && strings.EqualFold(t.Name, n) {
				return t, true
			}
		}
	}
	return provider.ToolSpec{}, false
}

func (o offer) offered(name string) bool {
	_, ok := o.spec(name)
	return ok
}

// knows reports whether name is an offered tool, or another agent's tool that corresponds to one.
func (o offer) knows(name string) bool {
	return name != "" && (o.offered(name) || slices.ContainsFunc(dialect.Ours(name), o.offered))
}

// schema is the relevant part of a tool's schema.
type schema struct {
	Required   []string `json:"required"`
	Properties map[string]struct {
		Type any `json:"type"` // a name or a list of names
	} `json:"properties"`
}

func (o offer) schema(name string) (s schema) {
	spec, _ := o.spec(name)
	if json.Unmarshal(spec.Schema, &s) != nil {
		return schema{}
	}
	return s
}

// fits reports whether a call's arguments are those of its tool, or mean the same in another agent.
func (o offer) fits(c call) bool {
	if o.fitsOurs(c) {
		return true
	}
	meant, is, err := dialect.Read(c.name, json.RawMessage(c.args))
	return is && err == nil && o.fitsOurs(call{name: meant.Tool, args: string(meant.Args)})
}

func (o offer) fitsOurs(c call) bool {
	args := []byte(c.args)
	var text string
	if json.Unmarshal(args, &text) == nil {
		args = []byte(text) // an object in a string
	}
	var given map[string]json.RawMessage
	if json.Unmarshal(args, &given) != nil || given == nil {
		return false
	}
	s := o.schema(c.name)
	ok := o.offered(c.name)
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

// arguments collects the arguments of one call.
type arguments struct {
	schema
	list []string
}

func (o offer) arguments(tool string) *arguments { return &arguments{schema: o.schema(tool)} }

func (a *arguments) String() string { return "{" + strings.Join(a.list, ", ") + "}" }

// add adds an argument written as text: as a string if the schema wants
// one or is silent, otherwise as the value in the text, if it has one.
func (a *arguments) add(key, text string) {
	text = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(text, "\r"), "\n"), "\n")
	if data, ok := strings.CutPrefix(strings.TrimSpace(text), "<![CDATA["); ok && strings.HasSuffix(data, "]]>") {
		text = strings.TrimSuffix(data, "]]>")
	}
	v := string(jsonx.Must(text))
	if typ, _ := a.Properties[key].Type.(string); typ != "" && typ != "string" {
		if trimmed := strings.TrimSpace(text); json.Valid([]byte(trimmed)) {
			v = trimmed
		}
	}
	a.list = append(a.list, string(jsonx.Must(key))+": "+v)
}

// python adds the arguments of a Python call. Arguments without a name are the required ones, in order.
func (a *arguments) python(text string) bool {
	r := reader{text: text}
	for n := 0; ; n++ {
		if r.skip(); r.text == "" {
			return true
		}
		named := reader{text: r.text}
		key, ok := named.key()
		if ok && named.is("=") {
			r = named
		} else if n < len(a.Required) {
			key = a.Required[n]
		} else {
			return false
		}
		v, ok := r.value(0)
		if !ok {
			return false
		}
		a.list = append(a.list, string(jsonx.Must(key))+": "+v)
		if !r.is(",") {
			r.skip()
			return r.text == ""
		}
	}
}

// example reports whether the open form is not a call although it could be read as one: it is in the middle
// of a sentence, is introduced as an example, was requested as one, or repeats the user or a tool.
func (s *scanner) example(final bool) verdict {
	o, text := s.open, s.all.String()[s.at:]
	if !s.fresh() && !strings.ContainsAny(lastRune(strings.TrimRight(string(s.fences.line), " \t")), ".!?。！？…") {
		rest := strings.TrimLeft(text[o.end:], " \t")
		switch {
		case rest == "" && !final:
			return more
		case rest != "" && !strings.ContainsAny(rest[:1], "\r\n<["):
			return yes
		}
	}
	if introduces().example.MatchString(s.lineBefore()) || s.asked(asks().example) || s.heard(text) {
		return yes
	}
	return no
}

// explained reports whether the open form may be part of an explanation; it is one if text follows.
func (s *scanner) explained() bool {
	return introduces().explanation.MatchString(s.lineBefore()) || s.asked(asks().explanation)
}

// lineBefore returns the last non-blank line before the open form, or "" if that is a call.
func (s *scanner) lineBefore() string {
	if len(s.run) > 0 {
		return ""
	}
	before := strings.TrimRight(s.all.String()[:s.at], space)
	return before[strings.LastIndexByte(before, '\n')+1:]
}

func lastRune(s string) string {
	r := []rune(s[max(0, len(s)-4):])
	return string(r[max(0, len(r)-1):])
}

// showing has the patterns that tell whether a call is only shown.
type showing struct{ call, example, explanation *regexp.Regexp }

// introduces matches lines that end by introducing an example or an explanation.
var introduces = sync.OnceValue(func() showing {
	const end = `[\s:：*_,，。.]*$`
	return showing{
		example: regexp.MustCompile(`(?i)(?:\bfor (?:example|instance)|\be\.g\.|\bsuch as|\blooks? like(?: this)?|\ban example(?: (?:of|for|tool|function|call)(?: [\w'-]+){0,6})?|` +
			`^\W*(?:an? )?(?:example|sample|syntax|format|template)(?: [\w'-]+){0,3}|\b(?:syntax|format) (?:is|for (?:[\w'-]+ ?){1,4}is)|例如|比如|示例|例子|(?:格式|语法)(?:为|是|如下)?)` + end),
		explanation: regexp.MustCompile(`(?i)(?:\bas follows|\blike (?:this|so)|\bfollowing(?: [\w'-]+){0,3}|\b(?:you|one|models?) (?:can |could |would |must )?(?:writes?|sends?|calls?)(?: [\w'-]+){0,4}|如下|这样)` + end),
	}
})

// asks matches requests about calls that ask for an example or an explanation.
var asks = sync.OnceValue(func() showing {
	return showing{
		call:        regexp.MustCompile(`(?i)(?:tool|function)[ _-]?(?:call|use|invocation)s?|工具调用|函数调用|调用工具`),
		example:     regexp.MustCompile(`(?i)\b(?:example|sample|format|syntax|looks? like|print|display|quote|show me (?:an?|the|what|how))\b|示例|例子|格式|语法|长什么样`),
		explanation: regexp.MustCompile(`(?i)\b(?:explain|describe|document|how|what)\b|解释|说明|怎么`),
	}
})

// asked reports whether the user's latest message is about calls and matches what.
func (o offer) asked(what *regexp.Regexp) bool {
	for _, m := range slices.Backward(o.said) {
		if m.Role == chat.User && m.Text() != "" {
			return asks().call.MatchString(m.Text()) && what.MatchString(m.Text())
		}
	}
	return false
}

// heard reports whether the user or a tool wrote the open form before, so
// that the model quotes it. An unreadable call is never a quotation.
func (s *scanner) heard(text string) bool {
	o := s.open
	if slices.ContainsFunc(o.calls, func(c call) bool { return !json.Valid([]byte(c.args)) }) {
		return false
	}
	quote := text[:o.end]
	if inner := strings.TrimSpace(o.inner); o.tool == "" && inner != "" && strings.ContainsAny(inner[:1], "{[<") {
		quote = inner
	}
	quote = oneSpaced(quote)
	for _, m := range s.said {
		words := []string{m.Text()}
		for r := range chat.Select[chat.ToolResult](m) {
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
			return strings.ContainsAny(w, "{<(") && strings.Contains(oneSpaced(w), quote)
		}) {
			return true
		}
	}
	return false
}

// oneSpaced returns text with every run of white space replaced by one space.
func oneSpaced(text string) string { return strings.Join(strings.Fields(text), " ") }
