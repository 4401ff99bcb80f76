package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Variables of the environment, the strongest first. A row wins over the rows
// below it that give the same setting; a variable that is empty is not set.
//
//	CODER_PROVIDER                       provider.kind
//	CODER_BASE_URL, AGENT_BASE_URL       provider.base_url
//	CODER_API_KEY, AGENT_API_KEY         provider.api_key
//	CODER_MODEL, AGENT_MODEL             provider.model
//	CODER_MAX_STEPS, AGENT_MAX_STEPS     runtime.max_steps
//
// These are a layer of their own, over files and under flags. The keys of
// vendors are weaker than all layers: they fill in what is still open.
//
//	OPENAI_API_KEY, OPENAI_BASE_URL         OpenAI
//	OPENROUTER_API_KEY                      OpenRouter
//	DEEPSEEK_API_KEY                        DeepSeek
//	DASHSCOPE_API_KEY                       DashScope
//	ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL   Anthropic
//	GEMINI_API_KEY                          Gemini
//
// With no provider.base_url the first vendor in this list that has a key (or
// an address) and speaks provider.kind, if that was given, is chosen: its
// address, its kind, its key. With a provider.base_url a vendor's key is used
// only if the address is that vendor's: a key is never sent to a stranger.

// variables stand for one setting each.
var variables = []struct{ name, key string }{
	{"CODER_PROVIDER", "provider.kind"},
	{"CODER_BASE_URL", "provider.base_url"},
	{"AGENT_BASE_URL", "provider.base_url"},
	{"CODER_API_KEY", "provider.api_key"},
	{"AGENT_API_KEY", "provider.api_key"},
	{"CODER_MODEL", "provider.model"},
	{"AGENT_MODEL", "provider.model"},
	{"CODER_MAX_STEPS", "runtime.max_steps"},
	{"AGENT_MAX_STEPS", "runtime.max_steps"},
}

// vendor is who sells a model: the variables for its key and address, the
// addresses it is known by, the first being the usual one, and the wires it
// speaks, likewise.
type vendor struct {
	key, base string
	addresses []string
	kinds     []string
}

var vendors = []vendor{
	{"OPENAI_API_KEY", "OPENAI_BASE_URL", []string{"https://api.openai.com/v1"}, []string{"openai", "responses"}},
	{"OPENROUTER_API_KEY", "", []string{"https://openrouter.ai/api/v1"}, []string{"openai", "responses"}},
	{"DEEPSEEK_API_KEY", "", []string{"https://api.deepseek.com/v1"}, []string{"openai"}},
	{"DASHSCOPE_API_KEY", "", []string{"https://dashscope.aliyuncs.com/compatible-mode/v1", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1"}, []string{"openai"}},
	{"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", []string{"https://api.anthropic.com"}, []string{"anthropic"}},
	{"GEMINI_API_KEY", "", []string{"https://generativelanguage.googleapis.com/v1beta"}, []string{"gemini"}},
}

// KeyVariables names the variables that hold keys of providers, so that they
// can be kept from commands.
func KeyVariables() []string {
	names := []string{"CODER_API_KEY", "AGENT_API_KEY"}
	for _, v := range vendors {
		names = append(names, v.key)
	}
	return names
}

// Endpoint is the usual address of a kind of provider.
func Endpoint(kind string) string {
	for _, v := range vendors {
		if slices.Contains(v.kinds, kind) {
			return v.addresses[0]
		}
	}
	return ""
}

// chooseEndpoint fills in what is still open about the provider.
func (l *loader) chooseEndpoint() {
	if l.cfg.Provider.BaseURL != "" {
		for _, v := range vendors { // whose address is it?
			known := v.addresses
			if v.base != "" {
				known = append(slices.Clip(known), l.getenv(v.base))
			}
			if slices.ContainsFunc(known, func(k string) bool { return sameServer(k, l.cfg.Provider.BaseURL) }) {
				l.useVendor(v)
				return
			}
		}
		return
	}
	for _, v := range vendors { // the first one we have a key or an address of; a key given otherwise belongs to none
		fits := !l.given("provider.kind") || slices.Contains(v.kinds, l.cfg.Provider.Kind)
		hasBase := v.base != "" && isAddress(l.getenv(v.base))
		hasKey := l.cfg.Provider.APIKey == "" && l.getenv(v.key) != ""
		if !fits || !hasBase && !hasKey {
			continue
		}
		address, from := l.getenv(v.base), v.base
		if v.base == "" || address == "" {
			address, from = v.addresses[0], v.key
		}
		l.cfg.Provider.BaseURL = address
		l.report.origins["provider.base_url"] = Origin{Source: "env " + from}
		l.useVendor(v)
		return
	}
	if l.given("provider.kind") || l.cfg.Provider.APIKey != "" {
		l.cfg.Provider.BaseURL = Endpoint(l.cfg.Provider.Kind)
		l.report.origins["provider.base_url"] = Origin{Source: "the usual one of provider.kind"}
	}
}

func sameServer(a, b string) bool {
	ua, err := url.Parse(a)
	if err != nil || ua.Host == "" {
		return false
	}
	ub, err := url.Parse(b)
	return err == nil && ua.Scheme == ub.Scheme && strings.EqualFold(ua.Host, ub.Host)
}

func (l *loader) given(key string) bool {
	_, ok := l.report.origins[key]
	return ok
}

// useVendor takes v's kind and key where none is given.
func (l *loader) useVendor(v vendor) {
	p := &l.cfg.Provider
	if !l.given("provider.kind") && p.Kind != v.kinds[0] {
		p.Kind = v.kinds[0]
		l.report.origins["provider.kind"] = Origin{Source: "the usual one of provider.base_url"}
	}
	if key := l.getenv(v.key); p.APIKey == "" && key != "" {
		p.APIKey = key
		l.report.origins["provider.api_key"] = Origin{Source: "env " + v.key}
	}
}

// reference is a variable that a text names: ${NAME} or ${NAME:-default}.
type reference struct {
	name       string
	def        string
	hasDefault bool
}

// references cuts s at its variables: texts has one more element than refs.
// $${ is ${ itself, and so is what does not have the form of a variable.
func references(s string) (texts []string, refs []reference) {
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(s, "${")
		if !ok {
			break
		}
		if plain, escaped := strings.CutSuffix(before, "$"); escaped {
			b.WriteString(plain + "${")
			s = after
			continue
		}
		b.WriteString(before)
		inside, rest, closed := strings.Cut(after, "}")
		var ref reference
		ref.name, ref.def, ref.hasDefault = strings.Cut(inside, ":-")
		if !closed || !isVariableName(ref.name) {
			b.WriteString("${")
			s = after
			continue
		}
		texts, refs = append(texts, b.String()), append(refs, ref)
		b.Reset()
		s = rest
	}
	b.WriteString(s)
	return append(texts, b.String()), refs
}

func isVariableName(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// hasVariable reports whether expanding s would look at a variable.
func hasVariable(s string) bool {
	_, refs := references(s)
	return len(refs) > 0
}

// expand puts the values of variables in their place. A default stands in for
// a variable that is missing or empty. It also returns the names it used.
func expand(s string, getenv func(string) string) (string, []string, error) {
	texts, refs := references(s)
	var (
		b    strings.Builder
		used []string
	)
	for i, ref := range refs {
		b.WriteString(texts[i])
		value := getenv(ref.name)
		if value == "" && !ref.hasDefault {
			return "", nil, fmt.Errorf("variable %s is not set; set it, or write ${%s:-default}", ref.name, ref.name)
		}
		if value == "" {
			value = ref.def
		}
		b.WriteString(value)
		used = append(used, ref.name)
	}
	b.WriteString(texts[len(refs)])
	return b.String(), used, nil
}
