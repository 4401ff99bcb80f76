// Package clip shortens text at rune boundaries.
package clip

import "unicode/utf8"

// Truncate returns s, or its first n bytes and an ellipsis.
func Truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return Head(s, n) + "…"
}

// Head returns at most the first n bytes of s.
func Head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:max(n, 0)]
}

// Tail returns at most the last n bytes of s.
func Tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	at := len(s) - max(n, 0)
	for at < len(s) && !utf8.RuneStart(s[at]) {
		at++
	}
	return s[at:]
}
