package sanitize

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"coder/internal/core/secret"
)

// Mask masks text that looks like a key, a token or a password, so that it does not stay on screens. The
// first characters remain, so that the user can tell which key it is.
func Mask(s string) string {
	s = secret.Each(s, secret.Masked)
	if !mayHoldKey(s) {
		return s
	}
	return assignments().ReplaceAllString(s, "${1}"+masked)
}

// MaskWords masks, in text that the user must decide on, only words that can be nothing but keys. It
// never hides a character with a meaning to a shell, a path or an address.
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

// hints are cheap signs that a text may contain an assignment to a secret name.
var hints = []string{
	"earer ", "oken", "OKEN", "ecret", "ECRET", "assword", "ASSWORD", "PASSWD", "passwd", "API_KEY", "api_key", "apikey", "apiKey", "ACCESS_KEY",
}

func mayHoldKey(s string) bool {
	return slices.ContainsFunc(hints, func(h string) bool { return strings.Contains(s, h) })
}

// assignments matches values assigned to names of secrets.
var assignments = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`((?i:[a-z0-9_]*(?:secret|token|password|passwd|api_?key|access_?key)[a-z0-9_]*["']?\s*[:=]\s*["']?|\bbearer\s+))[A-Za-z0-9+/_.~!@#%^&*-]{12,}=*`)
})

// assignedWords matches those assignments whose value is a single word, and only that word.
var assignedWords = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`((?i:[a-z0-9_]*(?:secret|token|password|passwd|api_?key|access_?key)[a-z0-9_]*["']?\s*[:=]\s*["']?|\bbearer\s+))[A-Za-z0-9_-]{12,}=*((?m:["'\s]|$))`)
})
