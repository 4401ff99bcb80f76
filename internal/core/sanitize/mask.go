package sanitize

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"coder/internal/core/secret"
)

// Mask blots out what looks like a key, a token or a password, so that it is
// not left on screens. The beginning stays, so that a person can tell which key
// it is.
func Mask(s string) string {
	s = secret.Each(s, secret.Masked)
	if !mayHoldKey(s) {
		return s
	}
	return assignments().ReplaceAllString(s, "${1}"+masked)
}

// MaskWords blots out of what someone must decide about only words that can be
// nothing but keys: a sign that means something to a shell, a path or an address
// is never among what is hidden.
func MaskWords(s string) string {
	s = secret.Each(s, func(key string) string {
		if strings.ContainsFunc(key, func(r rune) bool { return !inWord(r) && r != '-' }) {
			return key
		}
		return secret.Masked(key)
	})
	if !mayHoldKey(s) {
		return s
	}
	return assignedWords().ReplaceAllString(s, "${1}"+masked+"${2}")
}

const masked = "…[masked]"

// hints are cheap signs that a text may hold a value that is named as a secret.
var hints = []string{
	"earer ", "oken", "OKEN", "ecret", "ECRET", "assword", "ASSWORD", "PASSWD", "passwd", "API_KEY", "api_key", "apikey", "apiKey", "ACCESS_KEY",
}

func mayHoldKey(s string) bool {
	return slices.ContainsFunc(hints, func(h string) bool { return strings.Contains(s, h) })
}

// assignments are values given to names that say what they are.
var assignments = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`((?i:[a-z0-9_]*(?:secret|token|password|passwd|api_?key|access_?key)[a-z0-9_]*["']?\s*[:=]\s*["']?|\bbearer\s+))[A-Za-z0-9+/_.~!@#%^&*-]{12,}=*`)
})

// assignedWords are those of them that are one word, and nothing but that word.
var assignedWords = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`((?i:[a-z0-9_]*(?:secret|token|password|passwd|api_?key|access_?key)[a-z0-9_]*["']?\s*[:=]\s*["']?|\bbearer\s+))[A-Za-z0-9_-]{12,}=*((?m:["'\s]|$))`)
})
