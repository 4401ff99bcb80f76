package config

import (
	"fmt"
	"strings"
)

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
		ref, rest, ok := parseReference(after)
		if !ok {
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

// parseReference reads what follows "${".
func parseReference(s string) (ref reference, rest string, ok bool) {
	inside, rest, ok := strings.Cut(s, "}")
	if !ok {
		return ref, s, false
	}
	ref.name, ref.def, ref.hasDefault = strings.Cut(inside, ":-")
	return ref, rest, isVariableName(ref.name)
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
