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
	lang *language
	open *quote // what the last line left open
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
	return Scanner{lang: index()[name]}
}

// Known reports whether s has a language.
func (s *Scanner) Known() bool { return s.lang != nil }

// lineBytes is the longest line that is colored.
const lineBytes = 4096

// Line draws the spans of the next line, which has no newline.
func (s *Scanner) Line(line string, put ink.Put) {
	if s.lang == nil || len(line) > lineBytes {
		emit(put, ink.Plain, line)
		return
	}
	for i := 0; i < len(line); {
		n, role := s.next(line, i)
		emit(put, role, line[i:i+n])
		i += n
	}
}

func emit(put ink.Put, r ink.Role, text string) {
	if text != "" {
		put(ink.Look{Role: r}, text)
	}
}

// next returns the length and role of the token at i.
func (s *Scanner) next(line string, i int) (int, ink.Role) {
	rest := line[i:]
	if s.open != nil {
		return s.inside(s.open, rest, 0)
	}
	if q := s.quote(rest); q != nil {
		return s.inside(q, rest, len(q.from))
	}
	if s.comment(line, i) {
		return len(rest), ink.Comment
	}
	switch c := rest[0]; {
	case c >= '0' && c <= '9':
		return span(rest, numeral), ink.Number
	case letter(c):
		n := span(rest, s.lang.letters)
		return n, s.lang.word(rest[:n], strings.TrimLeft(rest[n:], " "))
	}
	return s.other(rest), ink.Plain
}

// other returns the length of text before the next token, at least one byte.
func (s *Scanner) other(rest string) int {
	for i := 1; i < len(rest); i++ {
		if c := rest[i]; c != ' ' && c != '\t' && c < 0x80 {
			return i
		}
	}
	return len(rest)
}

// comment reports whether a comment to the end of the line begins at i. A single sign must be at the
// start of a word.
func (s *Scanner) comment(line string, i int) bool {
	return slices.ContainsFunc(s.lang.comments, func(c string) bool {
		return strings.HasPrefix(line[i:], c) && (len(c) > 1 || i == 0 || strings.IndexByte(" \t;(", line[i-1]) >= 0)
	})
}

func (s *Scanner) quote(rest string) *quote {
	for i := range s.lang.quotes {
		if q := &s.lang.quotes[i]; strings.HasPrefix(rest, q.from) && (q.fits == nil || q.fits(rest)) {
			return q
		}
	}
	return nil
}

// inside returns how much of rest belongs to q, searching for its end from skip on.
func (s *Scanner) inside(q *quote, rest string, skip int) (int, ink.Role) {
	s.open = nil
	for i := skip; i < len(rest); i++ {
		switch {
		case q.escape != 0 && rest[i] == q.escape && i+1 < len(rest):
			i++
		case strings.HasPrefix(rest[i:], q.to):
			return i + len(q.to), q.role
		}
	}
	if q.lines {
		s.open = q
	}
	return len(rest), q.role
}

func span(s string, in func(byte) bool) int {
	for i := range len(s) {
		if !in(s[i]) {
			return i
		}
	}
	return len(s)
}

func letter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '@' || c == '$'
}

func numeral(c byte) bool { return letter(c) || c >= '0' && c <= '9' || c == '.' }
