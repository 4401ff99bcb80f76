package sanitize

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Mask blots out what looks like a key, a token or a password, so that it is
// not left on screens. The beginning stays, so that a person can tell which key
// it is.
func Mask(s string) string {
	if !mayHoldKey(s) {
		return s
	}
	s = keys().ReplaceAllStringFunc(s, func(key string) string { return key[:min(keptOfKey, len(key)/3)] + masked })
	return assignments().ReplaceAllString(s, "${1}"+masked)
}

// MaskWords blots out of what someone must decide about only words that can be
// nothing but keys: a sign that means something to a shell, a path or an address
// is never among what is hidden.
func MaskWords(s string) string {
	if !mayHoldKey(s) {
		return s
	}
	s = keys().ReplaceAllStringFunc(s, func(key string) string {
		if strings.ContainsFunc(key, func(r rune) bool { return !inWord(r) && r != '-' }) {
			return key
		}
		return key[:min(keptOfKey, len(key)/3)] + masked
	})
	return assignedWords().ReplaceAllString(s, "${1}"+masked+"${2}")
}

const (
	keptOfKey = 6
	masked    = "…[masked]"
)

// hints are cheap signs that a text may hold a key.
var hints = []string{
	"sk-", "sk_", "rk_", "pk_live", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "AKIA", "ASIA", "AIza", "npm_", "hf_", "eyJ",
	"PRIVATE KEY", "earer ", "oken", "OKEN", "ecret", "ECRET", "assword", "ASSWORD", "PASSWD", "passwd", "API_KEY", "api_key", "apikey", "apiKey", "ACCESS_KEY",
}

func mayHoldKey(s string) bool {
	return slices.ContainsFunc(hints, func(h string) bool { return strings.Contains(s, h) })
}

// keys are the shapes by which vendors' keys are known.
var keys = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(strings.Join([]string{
		`\b[sr]k[-_](?:ant-|proj-|or-v1-|live_|test_)?[A-Za-z0-9_-]{16,}`,
		`\bpk_live_[A-Za-z0-9]{16,}`,
		`\bgh[pousr]_[A-Za-z0-9]{20,}`,
		`\bgithub_pat_[A-Za-z0-9_]{20,}`,
		`\bglpat-[A-Za-z0-9_-]{16,}`,
		`\bxox[abeoprs]-[A-Za-z0-9-]{10,}`,
		`\bA[KS]IA[0-9A-Z]{16}\b`,
		`\bAIza[0-9A-Za-z_-]{30,}`,
		`\bnpm_[A-Za-z0-9]{30,}`,
		`\bhf_[A-Za-z0-9]{20,}`,
		`\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`,
		`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`,
	}, "|"))
})

// assignments are values given to names that say what they are.
var assignments = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`((?i:[a-z0-9_]*(?:secret|token|password|passwd|api_?key|access_?key)[a-z0-9_]*["']?\s*[:=]\s*["']?|\bbearer\s+))[A-Za-z0-9+/_.~!@#%^&*-]{12,}=*`)
})

// assignedWords are those of them that are one word, and nothing but that word.
var assignedWords = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`((?i:[a-z0-9_]*(?:secret|token|password|passwd|api_?key|access_?key)[a-z0-9_]*["']?\s*[:=]\s*["']?|\bbearer\s+))[A-Za-z0-9_-]{12,}=*((?m:["'\s]|$))`)
})
