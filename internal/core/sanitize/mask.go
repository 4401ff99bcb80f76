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
	s = secret.ReplaceShaped(s, secret.MaskKey)
	if !mayHoldKey(s) {
		return s
	}
	return assignmentPattern().ReplaceAllString(s, "${1}"+maskText)
}

// MaskWords masks, in text that the user must decide on, only words that can be nothing but keys. It
// never hides a character with a meaning to a shell, a path or an address.
func MaskWords(s string) string {
	s = secret.ReplaceShaped(s, func(key string) string {
		if strings.ContainsFunc(key, func(r rune) bool { return !isWordRune(r) && r != '-' }) {
			return key
		}
		return secret.MaskKey(key)
	})
	if !mayHoldKey(s) {
		return s
	}
	return assignedWordPattern().ReplaceAllString(s, "${1}"+maskText+"${2}")
}

const maskText = "…[masked]"

// secretHints are cheap signs that a text may contain an assignment to a secret name.
var secretHints = []string{
	"earer ", "oken", "OKEN", "ecret", "ECRET", "assword", "ASSWORD", "PASSWD", "passwd", "API_KEY", "api_key", "apikey",
	"apiKey", "ACCESS_KEY",
}

func mayHoldKey(s string) bool {
	return slices.ContainsFunc(secretHints, func(h string) bool { return strings.Contains(s, h) })
}

// assignmentPattern matches values assigned to names of secrets.
var assignmentPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`((?i:[a-z0-9_]*(?:secret|token|password|passwd|api_?key|access_?key)[a-z0-9_]*["']?\s*[:=]\s*["']?|\bbearer\s+))[A-Za-z0-9+/_.~!@#%^&*-]{12,}=*`)
})

// assignedWordPattern matches those assignments whose value is a single word, and only that word.
var assignedWordPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`((?i:[a-z0-9_]*(?:secret|token|password|passwd|api_?key|access_?key)[a-z0-9_]*["']?\s*[:=]\s*["']?|\bbearer\s+))[A-Za-z0-9_-]{12,}=*((?m:["'\s]|$))`)
})
