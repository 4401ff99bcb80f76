package config

import (
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

// variable is a variable that stands for one setting.
type variable struct{ name, key string }

func variables() []variable {
	return []variable{
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
}

// vendor is who sells a model: the variables for its key and address, the
// addresses it is known by, the first being the usual one, and the wires it
// speaks, likewise.
type vendor struct {
	key, base string
	addresses []string
	kinds     []string
}

func vendors() []vendor {
	return []vendor{
		{"OPENAI_API_KEY", "OPENAI_BASE_URL", []string{"https://api.openai.com/v1"}, []string{"openai", "responses"}},
		{"OPENROUTER_API_KEY", "", []string{"https://openrouter.ai/api/v1"}, []string{"openai", "responses"}},
		{"DEEPSEEK_API_KEY", "", []string{"https://api.deepseek.com/v1"}, []string{"openai"}},
		{"DASHSCOPE_API_KEY", "", []string{"https://dashscope.aliyuncs.com/compatible-mode/v1", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1"}, []string{"openai"}},
		{"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", []string{"https://api.anthropic.com"}, []string{"anthropic"}},
		{"GEMINI_API_KEY", "", []string{"https://generativelanguage.googleapis.com/v1beta"}, []string{"gemini"}},
	}
}

// KeyVariables names the variables that hold keys of providers, so that they
// can be kept from commands.
func KeyVariables() []string {
	names := []string{"CODER_API_KEY", "AGENT_API_KEY"}
	for _, v := range vendors() {
		names = append(names, v.key)
	}
	return names
}

// Endpoint is the usual address of a kind of provider.
func Endpoint(kind string) string {
	for _, v := range vendors() {
		if slices.Contains(v.kinds, kind) {
			return v.addresses[0]
		}
	}
	return ""
}

// chooseEndpoint fills in what is still open about the provider.
func (l *loader) chooseEndpoint() {
	if l.cfg.Provider.BaseURL != "" {
		if v, ok := l.owner(l.cfg.Provider.BaseURL); ok {
			l.useVendor(v)
		}
		return
	}
	if v, ok := l.firstVendor(); ok {
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

func (l *loader) given(key string) bool {
	_, ok := l.report.origins[key]
	return ok
}

// owner finds the vendor whose address it is.
func (l *loader) owner(address string) (vendor, bool) {
	for _, v := range vendors() {
		known := v.addresses
		if v.base != "" {
			known = append(known, l.getenv(v.base))
		}
		if slices.ContainsFunc(known, func(k string) bool { return sameServer(k, address) }) {
			return v, true
		}
	}
	return vendor{}, false
}

func sameServer(a, b string) bool {
	ua, err := url.Parse(a)
	if err != nil || ua.Host == "" {
		return false
	}
	ub, err := url.Parse(b)
	return err == nil && ua.Scheme == ub.Scheme && strings.EqualFold(ua.Host, ub.Host)
}

// firstVendor finds the first vendor we have a key or an address of. A key
// that was given otherwise belongs to none of them.
func (l *loader) firstVendor() (vendor, bool) {
	for _, v := range vendors() {
		if l.given("provider.kind") && !slices.Contains(v.kinds, l.cfg.Provider.Kind) {
			continue
		}
		if v.base != "" && isAddress(l.getenv(v.base)) {
			return v, true
		}
		if l.cfg.Provider.APIKey == "" && l.getenv(v.key) != "" {
			return v, true
		}
	}
	return vendor{}, false
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
