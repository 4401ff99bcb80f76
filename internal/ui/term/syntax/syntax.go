// Package syntax colors source code line by line: keywords, strings, comments and numbers, in the
// languages that models write most. It is a scanner with a table per language, not a parser: unknown
// text stays plain, and no byte is ever changed, added or dropped.
package syntax

import (
	"slices"
	"strings"

	"coder/internal/ui/term/ink"
)

// Scanner colors the lines of one text, in order. The zero Scanner has no language and leaves everything
// plain.
type Scanner struct {
	lang      *language
	openQuote *quote // what the last line left open
}

// For returns a Scanner for the language of that name, as written after a code fence or as a file
// extension.
func For(name string) Scanner {
	name = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(name), "."))
	if at := strings.IndexAny(name, " \t{,:"); at >= 0 {
		name = name[:at]
	}
	if name == "" {
		return Scanner{}
	}
	return Scanner{lang: languageByName()[name]}
}

// HasLanguage reports whether s has a language.
func (s *Scanner) HasLanguage() bool { return s.lang != nil }

// maxLineBytes is the longest line that is colored.
const maxLineBytes = 4096

// DrawLine draws the spans of the next line, which has no newline.
func (s *Scanner) DrawLine(line string, put ink.SpanFunc) {
	if s.lang == nil || len(line) > maxLineBytes {
		emit(put, ink.Plain, line)
		return
	}
	for i := 0; i < len(line); {
		n, role := s.nextToken(line, i)
		emit(put, role, line[i:i+n])
		i += n
	}
}

func emit(put ink.SpanFunc, r ink.Role, text string) {
	if text != "" {
		put(ink.Style{Role: r}, text)
	}
}

// nextToken returns the length and role of the token at i.
func (s *Scanner) nextToken(line string, i int) (int, ink.Role) {
	rest := line[i:]
	if s.openQuote != nil {
		return s.quotedLen(s.openQuote, rest, 0)
	}
	if q := s.findQuote(rest); q != nil {
		return s.quotedLen(q, rest, len(q.start))
	}
	if s.startsComment(line, i) {
		return len(rest), ink.Comment
	}
	switch c := rest[0]; {
	case c >= '0' && c <= '9':
		return spanLen(rest, isNumeral), ink.Number
	case isLetter(c):
		n := spanLen(rest, s.lang.isWordByte)
		return n, s.lang.wordRole(rest[:n], strings.TrimLeft(rest[n:], " "))
	}
	return s.plainLen(rest), ink.Plain
}

// plainLen returns the length of text before the next token, at least one byte.
func (s *Scanner) plainLen(rest string) int {
	for i := 1; i < len(rest); i++ {
		if c := rest[i]; c != ' ' && c != '\t' && c < 0x80 {
			return i
		}
	}
	return len(rest)
}

// startsComment reports whether a comment to the end of the line begins at i. A single sign must be at the
// start of a word.
func (s *Scanner) startsComment(line string, i int) bool {
	return slices.ContainsFunc(s.lang.comments, func(c string) bool {
		return strings.HasPrefix(line[i:], c) && (len(c) > 1 || i == 0 || strings.IndexByte(" \t;(", line[i-1]) >= 0)
	})
}

func (s *Scanner) findQuote(rest string) *quote {
	for i := range s.lang.quotes {
		if q := &s.lang.quotes[i]; strings.HasPrefix(rest, q.start) && (q.matches == nil || q.matches(rest)) {
			return q
		}
	}
	return nil
}

// quotedLen returns how much of rest belongs to q, searching for its end from skip on.
func (s *Scanner) quotedLen(q *quote, rest string, skip int) (int, ink.Role) {
	s.openQuote = nil
	for i := skip; i < len(rest); i++ {
		switch {
		case q.escape != 0 && rest[i] == q.escape && i+1 < len(rest):
			i++
		case strings.HasPrefix(rest[i:], q.end):
			return i + len(q.end), q.role
		}
	}
	if q.multiline {
		s.openQuote = q
	}
	return len(rest), q.role
}

func spanLen(s string, in func(byte) bool) int {
	for i := range len(s) {
		if !in(s[i]) {
			return i
		}
	}
	return len(s)
}

func isLetter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '@' || c == '$'
}

func isNumeral(c byte) bool { return isLetter(c) || c >= '0' && c <= '9' || c == '.' }
