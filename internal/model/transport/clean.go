package transport

import (
	"bytes"
	"html"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// longestText is how many bytes of what a server says about a failure are kept.
const longestText = 500

// CleanLine makes one line of a server's words: no control characters, nothing
// invisible, and not too long.
func CleanLine(s string) string {
	s = strings.ToValidUTF8(s[:min(len(s), 20*longestText)], "\uFFFD")
	if strings.Contains(s, "\x1b") {
		s = textPatterns().escape.ReplaceAllString(s, "")
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Co, unicode.Cs):
			return -1
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= longestText {
		return s
	}
	cut := longestText
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strings.TrimSpace(s[:cut]) + "…"
}

// isMarkup reports whether body is a web page rather than an answer.
func isMarkup(body []byte) bool {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, bom))
	return len(body) > 0 && body[0] == '<'
}

// words returns the readable text of a web page.
func words(page []byte) string {
	m := textPatterns()
	text := m.unread.ReplaceAll(page, []byte(" "))
	text = m.tag.ReplaceAll(text, []byte(" "))
	return CleanLine(html.UnescapeString(string(text)))
}

type patterns struct{ unread, tag, escape *regexp.Regexp }

// textPatterns finds what is not for reading: in a page, where an element or
// tag that never ends goes on to the end, and in text meant for a terminal.
var textPatterns = sync.OnceValue(func() patterns {
	return patterns{
		unread: regexp.MustCompile(`(?is)<!--.*?(-->|$)|<script\b.*?(</script\s*>|$)|<style\b.*?(</style\s*>|$)`),
		tag:    regexp.MustCompile(`(?s)<[^>]*(>|$)`),
		escape: regexp.MustCompile(`\x1b(\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?)`),
	}
})

// shortestSecret is the length from which a secret can be told from a word. One
// shorter than plainSecret is only known where it stands by itself.
const (
	shortestSecret = 8
	plainSecret    = 16
)

// secrets are the values no error may show.
func secrets(o Options) []string {
	var s []string
	if key := strings.TrimSpace(o.APIKey); len(key) >= shortestSecret {
		s = append(s, key)
	}
	for name, v := range o.Headers {
		name = strings.ToLower(name)
		_, bare, _ := strings.Cut(v, " ")
		for _, v := range []string{v, bare} {
			if len(v) >= shortestSecret && (strings.Contains(name, "auth") || strings.Contains(name, "key") || strings.Contains(name, "token")) {
				s = append(s, v)
			}
		}
	}
	return s
}

// hide removes secrets from text about to be shown, also one that was cut off
// with the end of the text.
func hide(text string, secrets []string) string {
	for _, s := range secrets {
		text = blot(text, s)
		head, wasCut := strings.CutSuffix(text, "…")
		for n := len(s) - 1; wasCut && n >= telling; n-- {
			if strings.HasSuffix(head, s[:n]) {
				text = head[:len(head)-n] + mask + "…"
				break
			}
		}
	}
	return text
}

// blot masks a secret wherever it stands; a short one not within a longer word.
func blot(text, secret string) string {
	if len(secret) >= plainSecret {
		return strings.ReplaceAll(text, secret, mask)
	}
	var b strings.Builder
	for {
		i := strings.Index(text, secret)
		if i < 0 {
			return b.String() + text
		}
		end := i + len(secret)
		before := b.String() + text[:i]
		inside := before != "" && wordByte(before[len(before)-1]) && wordByte(secret[0]) ||
			wordByte(secret[len(secret)-1]) && end < len(text) && wordByte(text[end])
		b.WriteString(text[:i])
		if inside {
			b.WriteString(secret)
		} else {
			b.WriteString(mask)
		}
		text = text[end:]
	}
}

func wordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}

const (
	mask    = "[key]"
	telling = 4 // bytes of a secret that give it away
)
