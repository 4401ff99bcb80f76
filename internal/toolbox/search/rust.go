package search

import (
	"fmt"
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"
)

// rustPattern writes a pattern in the syntax of rg so that it matches at least
// the lines it matches here. What the two take differently is spelt out:
// classes and word boundaries are those of ASCII, and a line is a text of its
// own. A byte that is not UTF-8 counts as one unknown character here; patterns
// that such a character fits would have to be spelt out at such length that
// they are matched sooner here.
func rustPattern(pattern string) (string, bool) {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", false
	}
	tree = tree.Simplify()
	if !anchoredOutside(tree, true, true) {
		return "", false
	}
	var b strings.Builder
	ok := rust(&b, tree)
	return b.String(), ok
}

// anchoredOutside reports whether the beginning of a line is only asked for
// where nothing is asked for before it, and the end where nothing is after it.
// At the end of a line that ends in CR LF, and at a byte order mark, ripgrep
// stands elsewhere than we do, and what lies there is not what we see.
func anchoredOutside(re *syntax.Regexp, first, last bool) bool {
	switch re.Op {
	case syntax.OpConcat:
		for i, sub := range re.Sub {
			if !anchoredOutside(sub, first && i == 0, last && i == len(re.Sub)-1) {
				return false
			}
		}
		return true
	case syntax.OpBeginLine, syntax.OpBeginText:
		return first
	case syntax.OpEndLine, syntax.OpEndText:
		return last
	case syntax.OpAlternate, syntax.OpCapture:
	default: // a repetition may stand before and after itself
		first, last = false, false
	}
	for _, sub := range re.Sub {
		if !anchoredOutside(sub, first, last) {
			return false
		}
	}
	return true
}

// rust writes one node. It is false if there is no way to say it.
func rust(b *strings.Builder, re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpEmptyMatch:
		b.WriteString("(?:)")
	case syntax.OpLiteral:
		return rustLiteral(b, re)
	case syntax.OpCharClass:
		return rustClass(b, re.Rune)
	case syntax.OpBeginLine, syntax.OpBeginText:
		b.WriteString("(?m:^)")
	case syntax.OpEndLine, syntax.OpEndText:
		b.WriteString("(?m:$)")
	case syntax.OpWordBoundary:
		b.WriteString(`(?-u:\b)`)
	case syntax.OpNoWordBoundary:
		b.WriteString(`(?-u:\B)`)
	case syntax.OpCapture, syntax.OpConcat:
		return rustAll(b, re.Sub, "")
	case syntax.OpAlternate:
		return rustAll(b, re.Sub, "|")
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		ok := rustAll(b, re.Sub, "")
		b.WriteByte("*+?"[re.Op-syntax.OpStar])
		return ok
	default: // repetitions are simplified away; any character and what can match nothing is left to us
		return false
	}
	return true
}

func rustAll(b *strings.Builder, subs []*syntax.Regexp, between string) bool {
	b.WriteString("(?:")
	for i, sub := range subs {
		if i > 0 {
			b.WriteString(between)
		}
		if !rust(b, sub) {
			return false
		}
	}
	b.WriteString(")")
	return true
}

func rustLiteral(b *strings.Builder, re *syntax.Regexp) bool {
	b.WriteString("(?:")
	for _, r := range re.Rune {
		switch {
		case r == utf8.RuneError:
			return false
		case re.Flags&syntax.FoldCase != 0:
			b.WriteString("(?:" + rustRune(r))
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				b.WriteString("|" + rustRune(f))
			}
			b.WriteString(")")
		default:
			b.WriteString(rustRune(r))
		}
	}
	b.WriteString(")")
	return true
}

// rustClass writes a class given as pairs of first and last.
func rustClass(b *strings.Builder, pairs []rune) bool {
	b.WriteString("[")
	for i := 0; i+1 < len(pairs); i += 2 {
		lo, hi := pairs[i], pairs[i+1]
		if lo <= utf8.RuneError && utf8.RuneError <= hi {
			return false
		}
		if isSurrogate(lo) {
			lo = 0xe000
		}
		if isSurrogate(hi) {
			hi = 0xd7ff
		}
		if lo <= hi {
			b.WriteString(rustRune(lo) + "-" + rustRune(hi))
		}
	}
	b.WriteString("]")
	return true
}

func isSurrogate(r rune) bool { return r >= 0xd800 && r <= 0xdfff }

func rustRune(r rune) string {
	if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
		return string(r)
	}
	return fmt.Sprintf(`\x{%x}`, r)
}
