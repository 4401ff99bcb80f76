package search

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode"

	"coder/internal/core/message"
)

// A pattern has the syntax of regexp/syntax, except that \w, \d, \s
// and \b cover all scripts, not only ASCII: \bGröße\b is a word.

// wordTable has the characters of words: letters, marks, digits, connectors, and circled letters.
var wordTable = runePairs([]*unicode.RangeTable{
	unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic, unicode.Join_Control,
})

var (
	digitTable = runePairs([]*unicode.RangeTable{unicode.Nd})
	spaceTable = runePairs([]*unicode.RangeTable{unicode.White_Space})
)

// runePairs returns the content of tables as pairs of first and last character.
func runePairs(tables []*unicode.RangeTable) func() []rune {
	return sync.OnceValue(func() (pairs []rune) {
		type span struct{ lo, hi, stride rune }
		var all []span
		for _, t := range tables {
			for _, r := range t.R16 {
				all = append(all, span{rune(r.Lo), rune(r.Hi), rune(r.Stride)})
			}
			for _, r := range t.R32 {
				all = append(all, span{rune(r.Lo), rune(r.Hi), rune(r.Stride)})
			}
		}
		var flat []span
		for _, s := range all {
			if s.stride == 1 {
				flat = append(flat, s)
				continue
			}
			for r := s.lo; r <= s.hi; r += s.stride {
				flat = append(flat, span{r, r, 1})
			}
		}
		slices.SortFunc(flat, func(a, b span) int { return int(a.lo - b.lo) })
		for _, s := range flat {
			if n := len(pairs); n > 0 && s.lo <= pairs[n-1]+1 {
				pairs[n-1] = max(pairs[n-1], s.hi)
			} else {
				pairs = append(pairs, s.lo, s.hi)
			}
		}
		return pairs
	})
}

// isWordRune reports whether a character is part of a word.
func isWordRune(r rune) bool {
	if r < 0x80 {
		return syntax.IsWordChar(r)
	}
	pairs := wordTable()
	i, found := slices.BinarySearch(pairs, r)
	return found || i%2 == 1
}

// classChars returns the characters of a class, or all others, for use in brackets.
func classChars(pairs []rune, negated bool) string {
	var b strings.Builder
	write := func(lo, hi rune) {
		if lo <= hi {
			fmt.Fprintf(&b, `\x{%x}-\x{%x}`, lo, hi)
		}
	}
	next := rune(0)
	for i := 0; i < len(pairs); i += 2 {
		if negated {
			write(next, pairs[i]-1)
		} else {
			write(pairs[i], pairs[i+1])
		}
		next = pairs[i+1] + 1
	}
	if negated {
		write(next, unicode.MaxRune)
	}
	return b.String()
}

// perlClass returns the class that replaces an ASCII-only class of regexp/syntax.
func perlClass(c byte) (class string, ok bool) {
	switch c {
	case 'w', 'W':
		return classChars(wordTable(), c == 'W'), true
	case 'd', 'D':
		return classChars(digitTable(), c == 'D'), true
	case 's', 'S':
		return classChars(spaceTable(), c == 'S'), true
	}
	return "", false
}

// expandClasses expands the classes of a pattern for all scripts, and rejects
// syntax that would silently mean something else than in other dialects.
func expandClasses(pattern string) (string, error) {
	e := classExpander{pattern: pattern}
	for e.at < len(pattern) {
		if err := e.expandNext(); err != nil {
			return "", err
		}
	}
	return e.out.String(), nil
}

// classExpander reads a pattern and writes the same pattern with the classes spelled out.
type classExpander struct {
	pattern string
	at      int // the next byte
	class   int // start of the current class, or 0
	out     strings.Builder
}

// copy writes the next n bytes as they are.
func (e *classExpander) copy(n int) {
	e.out.WriteString(e.pattern[e.at : e.at+n])
	e.at += n
}

// expandNext expands the next byte and what belongs to it.
func (e *classExpander) expandNext() error {
	c, rest := e.pattern[e.at], e.pattern[e.at+1:]
	switch {
	case c == '\\' && rest != "":
		return e.expandEscape(rest[0])
	case e.class > 0:
		return e.expandInClass(c, rest)
	case c == '[' && strings.HasPrefix(rest, "^"):
		e.class = e.at + 2
		e.copy(1)
	case c == '[':
		e.class = e.at + 1
	case c == '{' && len(rest) > 1 && rest[0] == ',' && isDigit(rest[1]):
		return errors.New("{,n} means up to n in some dialects and itself in others: write {0,n}")
	}
	e.copy(1)
	return nil
}

// expandInClass expands the next byte, c, of a class.
func (e *classExpander) expandInClass(c byte, rest string) error {
	switch {
	case c == '[' && strings.HasPrefix(rest, ":"):
		if end := strings.Index(rest, ":]"); end >= 0 {
			e.copy(end + 2)
		}
	case c == '&' && strings.HasPrefix(rest, "&"):
		return errors.New("&& in brackets means the intersection of two classes in some dialects and itself in others: write the class out, or & once")
	case c == ']' && e.at > e.class:
		e.class = 0
	}
	e.copy(1)
	return nil
}

// expandEscape expands a backslash and the byte n after it.
func (e *classExpander) expandEscape(n byte) error {
	if n == 'Q' && e.class == 0 {
		quoted := e.pattern[e.at+1:]
		if end := strings.Index(quoted, `\E`); end >= 0 {
			quoted = quoted[:end]
		}
		e.copy(1 + len(quoted))
		return nil
	}
	set, ok := perlClass(n)
	switch {
	case !ok && e.class == 0 && (n == '<' || n == '>'):
		return message.Errorf(`\%c means a word boundary in some dialects and a plain %c in others: write \b or %c`, n, n, n)
	case !ok:
		e.copy(2)
		return nil
	case e.class > 0:
		e.out.WriteString(set)
	default:
		e.out.WriteString("(?-i:[" + set + "])") // these characters have no case
	}
	e.at += 2
	return nil
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// parse parses a pattern that is matched with one line at a time.
func parse(pattern string, ignoreCase bool) (*syntax.Regexp, error) {
	flags := syntax.Perl &^ syntax.OneLine
	if ignoreCase {
		flags |= syntax.FoldCase
	}
	if _, err := syntax.Parse(pattern, flags); err != nil {
		return nil, explainSyntax(err) // in the terms of the pattern's author
	}
	wide, err := expandClasses(pattern)
	if err != nil {
		return nil, message.Errorf("pattern: %w", err)
	}
	tree, err := syntax.Parse(wide, flags)
	if err != nil {
		return nil, explainSyntax(err)
	}
	tree = tree.Simplify()
	if namesLineBreak(tree) {
		return nil, errors.New(`pattern: \n is not supported: search works line by line, and no line contains a line break. Search for one of the lines, with context for the others`)
	}
	return tree, nil
}

// explainSyntax names the unsupported part of a pattern, if it is known from other dialects.
func explainSyntax(err error) error {
	s := (*syntax.Error)(nil)
	if !errors.As(err, &s) {
		return message.Errorf("pattern: %w", err)
	}
	what := ""
	switch {
	case slices.Contains([]string{"(?=", "(?!", "(?<=", "(?<!", "(?<"}, s.Expr) || strings.HasPrefix(s.Expr, "(?<=") ||
		strings.HasPrefix(s.Expr, "(?<!"):
		what = "lookaround"
	case s.Code == syntax.ErrInvalidEscape && len(s.Expr) == 2 && isDigit(s.Expr[1]):
		what = "a backreference"
	case s.Expr == "(?>" || s.Code == syntax.ErrInvalidRepeatOp && strings.HasSuffix(s.Expr, "+"):
		what = "an atomic or possessive part"
	case s.Code == syntax.ErrMissingParen || s.Code == syntax.ErrUnexpectedParen:
		return message.Errorf(`pattern: %w (a plain ( or ) is written \( or \))`, err)
	case s.Code == syntax.ErrMissingBracket:
		return message.Errorf(`pattern: %w (a plain [ is written \[)`, err)
	case s.Code == syntax.ErrInvalidEscape && dialectHints()[s.Expr] != "":
		return message.Errorf("pattern: %w (write %s)", err, dialectHints()[s.Expr])
	case s.Code == syntax.ErrInvalidCharRange && strings.HasPrefix(s.Expr, `\p{`):
		return message.Errorf(`pattern: %w (classes look like \p{L}, \p{Lu} or \p{Han})`, err)
	case s.Code == syntax.ErrInvalidPerlOp && strings.HasPrefix(s.Expr, "(?"):
		return message.Errorf("pattern: %w (the flags are i, m, s and U; comments and free spacing are not supported)",
			err)
	case s.Code == syntax.ErrMissingRepeatArgument:
		return message.Errorf(`pattern: %w (a plain %s is written \%s)`, err, s.Expr, s.Expr)
	default:
		return message.Errorf("pattern: %w", err)
	}
	return message.Errorf("pattern: %s (%s) is not supported: the syntax is RE2", what, s.Expr)
}

// dialectHints has replacements for the escapes of other dialects.
var dialectHints = sync.OnceValue(func() map[string]string {
	return map[string]string{
		`\u`: `\x{1F600} with the number of the character, or the character itself`,
		`\U`: `\x{1F600} with the number of the character, or the character itself`,
		`\h`: `[ \t]`, `\R`: "one of the lines; a search goes line by line", `\Z`: "$", `\e`: `\x1b`,
		`\K`: "the whole pattern without it", `\G`: "^",
		`\X`: ".", `\N`: ".", `\y`: `\b`, `\m`: `\b`, `\M`: `\b`, `\l`: "[a-z]", `\i`: `\w`,
		`\k`: "the text of the group again; there are no backreferences",
		`\g`: "the text of the group again; there are no backreferences",
	}
})

// hasMatchAll reports whether part of a pattern matches
// every character including line ends: (?s:.) or [\s\S].
func hasMatchAll(re *syntax.Regexp) bool {
	all := re.Op == syntax.OpCharClass && len(re.Rune) == 2 && re.Rune[0] == 0 && re.Rune[1] == unicode.MaxRune
	return all || re.Op == syntax.OpAnyChar || slices.ContainsFunc(re.Sub, hasMatchAll)
}

// namesNonASCII reports whether a pattern names individual non-ASCII characters.
func namesNonASCII(re *syntax.Regexp) bool {
	return re.Op == syntax.OpLiteral && slices.ContainsFunc(re.Rune, func(r rune) bool { return r >= 0x80 }) ||
		slices.ContainsFunc(re.Sub, namesNonASCII)
}

// namesLineBreak reports whether a pattern explicitly names a line break.
func namesLineBreak(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return slices.Contains(re.Rune, '\n')
	case syntax.OpCharClass:
		return len(re.Rune) > 0 && !slices.ContainsFunc(re.Rune, func(r rune) bool { return r != '\n' && r != '\r' })
	}
	return slices.ContainsFunc(re.Sub, namesLineBreak)
}

// namesReturn reports whether a pattern explicitly names a
// carriage return, so that those at line ends must be visible.
func namesReturn(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return slices.Contains(re.Rune, '\r')
	case syntax.OpCharClass:
		for i := 0; i+1 < len(re.Rune); i += 2 {
			if re.Rune[i] == '\r' {
				return true
			}
		}
	}
	return slices.ContainsFunc(re.Sub, namesReturn)
}
