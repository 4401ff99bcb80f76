package secret

import (
	_ "embed"
	"net/url"
	"slices"
	"strings"
	"sync"

	"coder/internal/core/lists"
)

//go:embed data/variables.txt
var variableListText string

// secretVariableWords are the lists of words that mark a variable as secret.
var secretVariableWords = sync.OnceValue(func() (l struct {
	words, last, lastWithText, withAddress, harmless, keys map[string]bool

	ends, otherWords, beginnings, within []string
}) {
	text := lists.Sections(variableListText)
	l.words, l.last, l.lastWithText = nameSet(text["words"]), nameSet(text["last"]), nameSet(text["last, with a text"])
	l.withAddress, l.harmless, l.keys = nameSet(text["with an address"]), nameSet(text["harmless"]),
		nameSet(text["keys of values"])
	l.ends, l.otherWords, l.beginnings, l.within = text["ends"], text["other words"], text["beginnings"], text["in values"]
	return l
})

// IsSecretVariable reports whether an environment variable likely contains a key, by its name or the shape of
// its value.
func IsSecretVariable(name, value string) bool {
	upper := strings.ToUpper(name)
	if value == "" || secretVariableWords().harmless[upper] {
		return false
	}
	return hasAnyPrefix(upper, secretVariableWords().beginnings) || isSecretName(upper, value) || isSecretValue(value)
}

func hasAnyPrefix(s string, beginnings []string) bool {
	return slices.ContainsFunc(beginnings, func(p string) bool { return strings.HasPrefix(s, p) })
}

// isSecretName reports whether a name in capitals, with its value, suggests a secret.
func isSecretName(upper, value string) bool {
	if strings.HasPrefix(upper, "OTEL_") && strings.HasSuffix(upper, "_HEADERS") {
		return true // the key sent to a collector
	}
	parts := strings.FieldsFunc(upper, func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '0' || r > '9') })
	for len(parts) > 0 && strings.Trim(parts[len(parts)-1], "0123456789") == "" {
		parts = parts[:len(parts)-1] // API_KEY_2
	}
	l, before := secretVariableWords(), ""
	for i, part := range parts {
		part = strings.TrimRight(part, "0123456789")
		last := i == len(parts)-1
		switch {
		case l.words[part], l.words[before+part], last && (l.last[part] || hasSecretEnding(part)):
			return true
		case last && l.lastWithText[part] && !strings.Contains(value, "://") && strings.Trim(value, "0123456789.-") != "":
			return true
		case l.withAddress[part] && strings.Contains(value, "://"):
			return true
		}
		before = part
	}
	return false
}

// isSecretValue reports whether a value is shaped like a key, or is an address with a password.
func isSecretValue(value string) bool {
	if len(value) < minKeyLen {
		return false
	}
	if strings.HasPrefix(value, "eyJ") {
		return strings.Count(value, ".") == 2
	}
	if hasKeyPrefix(value) || strings.HasPrefix(value, "Bearer ") || strings.HasPrefix(value, "Basic ") ||
		containsKey(value) {
		return true
	}
	if !strings.Contains(value, "://") || !strings.Contains(value, "@") {
		return false
	}
	u, err := url.Parse(value)
	if err != nil {
		return true // the part before the @ cannot be parsed
	}
	_, has := u.User.Password()
	return has
}

// containsKey reports whether a value contains a key: in a list of key=value, or in JSON.
func containsKey(value string) bool {
	l := secretVariableWords()
	if slices.ContainsFunc(l.within, func(part string) bool { return strings.Contains(value, part) }) {
		return true
	}
	if !strings.Contains(value, "=") {
		return false
	}
	for field := range strings.FieldsFuncSeq(value, func(r rune) bool { return strings.ContainsRune(";&? \t\n", r) }) {
		key, held, _ := strings.Cut(field, "=")
		if l.keys[strings.ToLower(key)] && held != "" {
			return true
		}
	}
	return false
}

// hasSecretEnding reports whether a word ends like names of secrets written as one word: OPENAIKEY, githubToken.
func hasSecretEnding(word string) bool {
	l := secretVariableWords()
	return slices.ContainsFunc(l.ends, func(end string) bool {
		return len(word) > len(end)+1 && strings.HasSuffix(word, end)
	}) && !slices.Contains(l.otherWords, word)
}

// minKeyLen is the minimum length of a value that may be a key.
const minKeyLen = 12

// EnvSecrets returns the values of an environment (NAME=value each) that must never be saved: values named
// or shaped like secrets, and passwords in addresses. It omits paths, and common words and numbers.
func EnvSecrets(environ []string) (values []string) {
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		value = strings.TrimSpace(value)
		upper := strings.ToUpper(name)
		if secretVariableWords().harmless[upper] || !isSecretName(upper, value) && !isSecretValue(value) {
			continue
		}
		if strings.Contains(value, "://") {
			if u, err := url.Parse(value); err == nil {
				value, _ = u.User.Password()
			}
		}
		value = value[strings.LastIndexByte(value, ' ')+1:] // Bearer …
		if !strings.ContainsRune("/~.", rune((value + "/")[0])) && isDistinctive(value) {
			values = append(values, value)
		}
	}
	return values
}

// isDistinctive reports whether a value is long and mixed enough not to be an ordinary word or number.
func isDistinctive(value string) bool {
	if len(value) < 8 {
		return false
	}
	kinds := 0
	for _, of := range []*byteSet{newByteSet("az"), newByteSet("AZ"), newByteSet("09")} {
		if strings.ContainsFunc(value, func(r rune) bool { return r < 128 && of[r] }) {
			kinds++
		}
	}
	return kinds > 1 || len(value) >= 20 && kinds > 0
}
