package i18n

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// shape recognizes sentences made from one format.
type shape struct {
	format         string
	literalBytes   int      // bytes of fixed text: the more, the surer
	literalLetters int      // letters in it
	verbs          []byte   // by argument
	groups         []int    // argument of each group of expr
	pieces         []string // fixed text between the verbs
	expr           func() *regexp.Regexp
}

// shapeIndex indexes a catalogue's shapes by a word that all their sentences contain.
type shapeIndex struct {
	byWord map[string][]*shape
	others []*shape
}

// candidates returns the shapes that text may have, surest first.
func (all shapeIndex) candidates(text string) []*shape {
	var found []*shape
	consider := func(list []*shape) {
		for _, s := range list {
			if s.mayMatch(text) {
				found = append(found, s)
			}
		}
	}
	consider(all.others)
	for word := range strings.FieldsFuncSeq(text, isNotLetter) {
		consider(all.byWord[word])
	}
	slices.SortFunc(found, func(a, b *shape) int {
		return cmp.Or(cmp.Compare(b.literalBytes, a.literalBytes), strings.Compare(a.format, b.format))
	})
	return slices.Compact(found)
}

func isNotLetter(c rune) bool { return !unicode.IsLetter(c) }

// cutVerb splits a format at its first verb. "%%" counts as one.
func cutVerb(format string) (before, verb, after string, ok bool) {
	i := strings.IndexByte(format, '%')
	if i < 0 {
		return format, "", "", false
	}
	for n := i + 1; n < len(format); n++ {
		switch c := format[n]; {
		case c == '%' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z':
			return format[:i], format[i : n+1], format[n+1:], true
		case !strings.ContainsRune("[]-+ #.*0123456789", rune(c)):
			return format, "", "", false
		}
	}
	return format, "", "", false
}

// parseShape returns the shape of a format with verbs. A format with too little text would match anything
// and has no shape.
func parseShape(format string) (*shape, bool) {
	s := &shape{format: format, pieces: []string{""}}
	next := 0
	for rest := format; ; {
		before, verb, after, ok := cutVerb(rest)
		if verb == "%%" {
			before += "%"
		}
		s.pieces[len(s.pieces)-1] += before
		if !ok {
			break
		}
		if rest = after; verb == "%%" {
			continue
		}
		next = argIndex(verb, next)
		s.groups = append(s.groups, next)
		for len(s.verbs) <= next {
			s.verbs = append(s.verbs, 0)
		}
		s.verbs[next] = verb[len(verb)-1]
		s.pieces = append(s.pieces, "")
		next++
	}
	for _, piece := range s.pieces {
		s.literalBytes += len(piece)
		for word := range strings.FieldsFuncSeq(piece, isNotLetter) {
			s.literalLetters += len(word)
		}
	}
	s.expr = sync.OnceValue(s.compile)
	return s, len(s.groups) > 0 && (s.literalLetters >= minLettersBehind || s.literalLetters >= minLetters && !s.isOpen())
}

func (s *shape) compile() *regexp.Regexp {
	var b strings.Builder
	b.WriteString("^" + regexp.QuoteMeta(s.pieces[0]))
	for i, arg := range s.groups {
		b.WriteString(verbPattern(s.verbs[arg]) + regexp.QuoteMeta(s.pieces[i+1]))
	}
	return regexp.MustCompile(b.String() + "$")
}

// verbPattern returns the expression for the output of a verb.
func verbPattern(verb byte) string {
	switch verb {
	case 'd':
		return `([-+]?\d+)`
	case 'q':
		return "(\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`)"
	}
	return `(.+?)`
}

// argIndex returns the index of the argument that a verb formats; next is the index for a verb without
// its own.
func argIndex(verb string, next int) int {
	if _, rest, ok := strings.Cut(verb, "["); ok {
		digits, _, _ := strings.Cut(rest, "]")
		if n, err := strconv.Atoi(digits); err == nil && n > 0 && n < 100 {
			return n - 1
		}
	}
	return next
}

// Letters that a format needs to have a shape; more if anything may precede them.
const (
	minLetters       = 4
	minLettersBehind = 6
	minLettersWords  = 10 // for values of several words
)

// isOpen reports whether anything may precede the first piece.
func (s *shape) isOpen() bool {
	first := s.verbs[s.groups[0]]
	return s.pieces[0] == "" && first != 'd' && first != 'q'
}

// indexWord returns the longest word that all sentences of the shape contain. A word next to a verb may be
// the end of a longer one and does not count.
func (s *shape) indexWord() (longest string) {
	for i, piece := range s.pieces {
		if i > 0 {
			piece = strings.TrimLeftFunc(piece, unicode.IsLetter)
		}
		if i < len(s.pieces)-1 {
			piece = strings.TrimRightFunc(piece, unicode.IsLetter)
		}
		for word := range strings.FieldsFuncSeq(piece, isNotLetter) {
			if len(word) > len(longest) {
				longest = word
			}
		}
	}
	return longest
}

// mayMatch reports whether text contains the format's pieces in order. This avoids most regular expression
// matches.
func (s *shape) mayMatch(text string) bool {
	last := len(s.pieces) - 1
	if !strings.HasPrefix(text, s.pieces[0]) || !strings.HasSuffix(text, s.pieces[last]) {
		return false
	}
	text = text[len(s.pieces[0]):]
	for _, piece := range s.pieces[1:last] {
		i := strings.Index(text, piece)
		if i < 0 {
			return false
		}
		text = text[i+len(piece):]
	}
	return true
}

// match returns the value of each argument.
func (s *shape) match(text string) ([]string, bool) {
	m := s.expr().FindStringSubmatch(text)
	if m == nil {
		return nil, false
	}
	values := make([]string, len(s.verbs))
	for i, arg := range s.groups {
		if values[arg] != "" && values[arg] != m[i+1] {
			return nil, false
		}
		values[arg] = m[i+1]
	}
	return values, true
}

// valueKind is the kind of value that a verb formats.
type valueKind uint8

const (
	kindNumber valueKind = iota // or quoted text
	kindSentence
	kindEither // a sentence, a command or a name
	kindName
	kindNames // our own names, separated by commas
	kindData  // user data: stays exactly
)

// argKind returns the kind of an argument. %s is a name, unless it is where sentences are: after a colon,
// for example. A translation can be specific: %v for a sentence, %+s for names, %-s for data.
func (s *shape) argKind(arg int, told string) valueKind {
	switch s.verbs[arg] {
	case 'w', 'v':
		return kindSentence
	case 's':
	default:
		return kindNumber
	}
	next := 0
	for rest := told; ; {
		_, verb, after, ok := cutVerb(rest)
		if !ok {
			break
		}
		if rest = after; verb == "%%" {
			continue
		}
		next = argIndex(verb, next)
		switch {
		case next != arg:
		case strings.HasPrefix(verb, "%-"):
			return kindData
		case isList(verb):
			return kindNames
		case strings.HasSuffix(verb, "v"):
			return kindSentence
		}
		next++
	}
	group := slices.Index(s.groups, arg)
	before, after := s.pieces[group], s.pieces[group+1]
	begins := strings.HasSuffix(before, ": ") || strings.HasSuffix(before, "; ") || strings.HasSuffix(before, ", ") || strings.HasSuffix(before, "(") || strings.HasSuffix(before, "\n")
	if before == "" {
		begins = after != "" && strings.ContainsAny(after[:1], ",;\n") || s.format == "%s: %s"
	}
	if begins {
		return kindEither
	}
	return kindName
}

// isList reports whether a verb stands for names separated by commas.
func isList(verb string) bool {
	return strings.HasPrefix(verb, "%+") && strings.HasSuffix(verb, "s")
}

// spansSentences reports whether a match extends from one sentence into the next, which is possible if the
// format begins or ends with a verb.
func (s *shape) spansSentences(values []string, told string) bool {
	first, last := s.groups[0], s.groups[len(s.groups)-1]
	if s.isOpen() && (s.literalLetters < minLettersWords && strings.Contains(values[first], " ") || strings.Contains(values[first], ": ") && s.argKind(first, told) == kindName) {
		return true
	}
	if s.pieces[0] == "" && strings.Contains(values[first], "; ") {
		return true
	}
	end := s.argKind(last, told)
	return s.pieces[len(s.pieces)-1] == "" && strings.Contains(values[last], "; ") && end != kindSentence && end != kindData
}

// fillFormat replaces a format's verbs with values, unchanged. own marks values that are words of the
// sentence, which in Chinese need no space before or after other words.
func fillFormat(format string, values []string, own []bool) string {
	text, next := "", 0
	for {
		before, verb, after, ok := cutVerb(format)
		text += before
		switch i := argIndex(verb, next); {
		case !ok:
			return text
		case verb == "%%":
			text += "%"
		case i < len(values):
			if own[i] && isHan(before, false) && isHan(values[i], true) {
				text = strings.TrimSuffix(text, " ")
			}
			if own[i] && isHan(values[i], false) && isHan(after, true) {
				after = strings.TrimPrefix(after, " ")
			}
			text += values[i]
			next = i + 1
		default:
			text += verb
		}
		format = after
	}
}

// isHan reports whether text begins, or ends, with a Chinese character, ignoring a space.
func isHan(text string, begins bool) bool {
	r, _ := utf8.DecodeLastRuneInString(strings.TrimSuffix(text, " "))
	if begins {
		r, _ = utf8.DecodeRuneInString(strings.TrimPrefix(text, " "))
	}
	return unicode.Is(unicode.Han, r)
}
