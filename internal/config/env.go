package config

import (
	"cmp"
	"slices"
	"strings"

	"coder/internal/core/message"
)

// Environment variables, the strongest first. A row takes precedence over
// the rows below it for the same setting; an empty variable counts as unset.
//
//	CODER_PROFILE                        profile
//	CODER_PROVIDER                       provider.kind, or provider.preset if it names no wire
//	CODER_BASE_URL, AGENT_BASE_URL       provider.base_url
//	CODER_API_KEY, AGENT_API_KEY         provider.api_key
//	CODER_MODEL, AGENT_MODEL             provider.model
//	CODER_MAX_STEPS, AGENT_MAX_STEPS     runtime.max_steps
//	CODER_LOCAL_SERVERS                  discovery.local
//
// These are a separate layer, above files and below flags. Vendors' keys, addresses and models, in
// the variables that [Presets] name, are weaker than all layers: they only fill in unset settings.
//
// With neither provider.preset nor provider.base_url, the first vendor is chosen
// that has a key (or an address) and, if provider.kind is set, speaks that wire:
// its address, its kind, its key. With a provider.base_url, a vendor's key is used
// only if the address is that vendor's: a key is never sent to another server.

// envVar maps a variable to a setting.
type envVar struct{ name, key string }

var envVars = []envVar{
	{"CODER_PROFILE", "profile"},
	{"CODER_PROVIDER", "provider.preset"},
	{"CODER_BASE_URL", "provider.base_url"},
	{"AGENT_BASE_URL", "provider.base_url"},
	{"CODER_API_KEY", "provider.api_key"},
	{"AGENT_API_KEY", "provider.api_key"},
	{"CODER_MODEL", "provider.model"},
	{"AGENT_MODEL", "provider.model"},
	{"CODER_MAX_STEPS", "runtime.max_steps"},
	{"AGENT_MAX_STEPS", "runtime.max_steps"},
	{"CODER_LOCAL_SERVERS", "discovery.local"},
}

// KeyVariables returns the variables that hold providers' keys, so that commands do not get them.
func KeyVariables() []string {
	names := []string{"CODER_API_KEY", "AGENT_API_KEY"}
	for _, p := range presets {
		names = append(names, p.allKeyVars()...)
	}
	return names
}

// DefaultEndpoint returns the usual address of a kind of provider.
func DefaultEndpoint(kind string) string {
	for _, p := range presets {
		if slices.Contains(p.Kinds, kind) {
			return p.Addresses[0]
		}
	}
	return ""
}

func (l *loader) isEnvSet(key string) bool {
	_, ok := l.report.origins[key]
	return ok
}

// varRef is a variable in a text: ${NAME} or ${NAME:-default}.
type varRef struct {
	name         string
	defaultValue string
	hasDefault   bool
}

// splitReferences splits s at its variables: texts has one more element than refs. $${
// stands for ${, and text that is not in the form of a variable stays unchanged.
func splitReferences(s string) (texts []string, refs []varRef) {
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
		var ref varRef
		ref.name, ref.defaultValue, ref.hasDefault = strings.Cut(inside, ":-")
		if !closed || !isVarName(ref.name) {
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

func isVarName(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// hasVariable reports whether s contains a variable.
func hasVariable(s string) bool {
	_, refs := splitReferences(s)
	return len(refs) > 0
}

// expandVars replaces variables by their values. A default replaces a variable that
// is missing, empty or withheld. expand also returns the names of the variables.
func expandVars(s string, getenv func(string) string, withheld func(string) bool) (string, []string, error) {
	texts, refs := splitReferences(s)
	var (
		b    strings.Builder
		used []string
	)
	for i, ref := range refs {
		b.WriteString(texts[i])
		value := getenv(ref.name)
		if withheld != nil && withheld(ref.name) {
			if value = ""; !ref.hasDefault {
				return "", nil, message.Errorf("variable %s is withheld: a provider's key", ref.name)
			}
		}
		if value == "" && !ref.hasDefault {
			return "", nil, message.Errorf("variable %s is not set; set it, or write ${%s:-default}", ref.name,
				ref.name)
		}
		b.WriteString(cmp.Or(value, ref.defaultValue))
		used = append(used, ref.name)
	}
	b.WriteString(texts[len(refs)])
	return b.String(), used, nil
}
