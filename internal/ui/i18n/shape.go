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

// shape recognises the sentences that one format makes.
type shape struct {
	format  string
	literal int      // what is always there: the more, the surer
	letters int      // of it
	verbs   []byte   // by argument
	groups  []int    // the argument that each group of expr holds
	pieces  []string // what stands between the verbs
	expr    func() *regexp.Regexp
}

// shapes are those of a catalogue, to be found by a word that all their
// sentences have.
type shapes struct {
	byWord map[string][]*shape
	others []*shape
}

// of yields the shapes that text may have, the surest first.
func (all shapes) of(text string) []*shape {
	var found []*shape
	consider := func(list []*shape) {
		for _, s := range list {
			if s.likely(text) {
				found = append(found, s)
			}
		}
	}
	consider(all.others)
	for word := range strings.FieldsFuncSeq(text, notLetter) {
		consider(all.byWord[word])
	}
	slices.SortFunc(found, func(a, b *shape) int {
		return cmp.Or(cmp.Compare(b.literal, a.literal), strings.Compare(a.format, b.format))
	})
	return slices.Compact(found)
}

func notLetter(c rune) bool { return !unicode.IsLetter(c) }

// cutVerb parts a format at its first verb. "%%" is one.
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

// shapeOf makes a shape of a format with verbs. A format of little else would
// recognise anything and is none.
func shapeOf(format string) (*shape, bool) {
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
		next = argument(verb, next)
		s.groups = append(s.groups, next)
		for len(s.verbs) <= next {
			s.verbs = append(s.verbs, 0)
		}
		s.verbs[next] = verb[len(verb)-1]
		s.pieces = append(s.pieces, "")
		next++
	}
	for _, piece := range s.pieces {
		s.literal += len(piece)
		for word := range strings.FieldsFuncSeq(piece, notLetter) {
			s.letters += len(word)
		}
	}
	s.expr = sync.OnceValue(s.compile)
	return s, len(s.groups) > 0 && (s.letters >= sureBehind || s.letters >= sureLetters && !s.isOpen())
}

func (s *shape) compile() *regexp.Regexp {
	var b strings.Builder
	b.WriteString("^" + regexp.QuoteMeta(s.pieces[0]))
	for i, arg := range s.groups {
		b.WriteString(hole(s.verbs[arg]) + regexp.QuoteMeta(s.pieces[i+1]))
	}
	return regexp.MustCompile(b.String() + "$")
}

// hole matches what a verb writes.
func hole(verb byte) string {
	switch verb {
	case 'd':
		return `([-+]?\d+)`
	case 'q':
		return "(\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`)"
	}
	return `(.+?)`
}

// argument is the number of the argument that a verb shows, where next is the
// one whose turn it is.
func argument(verb string, next int) int {
	if _, rest, ok := strings.Cut(verb, "["); ok {
		digits, _, _ := strings.Cut(rest, "]")
		if n, err := strconv.Atoi(digits); err == nil && n > 0 && n < 100 {
			return n - 1
		}
	}
	return next
}

// Letters that a format must have to be known by its shape; more if anything
// may stand before them.
const (
	sureLetters = 4
	sureBehind  = 6
	sureOfWords = 10 // if it may be several words
)

// isOpen reports whether anything may stand before the first piece.
func (s *shape) isOpen() bool {
	first := s.verbs[s.groups[0]]
	return s.pieces[0] == "" && first != 'd' && first != 'q'
}

// word is the longest word that every sentence of the shape has. A word beside
// a verb may be the end of a longer one and does not count.
func (s *shape) word() (longest string) {
	for i, piece := range s.pieces {
		if i > 0 {
			piece = strings.TrimLeftFunc(piece, unicode.IsLetter)
		}
		if i < len(s.pieces)-1 {
			piece = strings.TrimRightFunc(piece, unicode.IsLetter)
		}
		for word := range strings.FieldsFuncSeq(piece, notLetter) {
			if len(word) > len(longest) {
				longest = word
			}
		}
	}
	return longest
}

// likely reports whether the pieces of the format stand in text, in order. It
// keeps most sentences from most expressions.
func (s *shape) likely(text string) bool {
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

// match is what was put in for each argument.
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

// kind is what may stand in the place of a verb.
type kind uint8

const (
	number kind = iota // or what was quoted
	sentence
	either // a sentence, a command or a name
	name
	names // of the program's own, with commas between
	data  // whatever somebody wrote: it stays to the letter
)

// holds is what may stand for an argument. A %s holds a name, unless it stands where
// sentences do: after a colon, say. A translation knows better where it has %v for a
// sentence, %+s for names or %-s for data.
func (s *shape) holds(arg int, told string) kind {
	switch s.verbs[arg] {
	case 'w', 'v':
		return sentence
	case 's':
	default:
		return number
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
		next = argument(verb, next)
		switch {
		case next != arg:
		case strings.HasPrefix(verb, "%-"):
			return data
		case isList(verb):
			return names
		case strings.HasSuffix(verb, "v"):
			return sentence
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
		return either
	}
	return name
}

// isList reports whether a verb stands for names with commas between.
func isList(verb string) bool {
	return strings.HasPrefix(verb, "%+") && strings.HasSuffix(verb, "s")
}

// reachesOut reports whether a match reaches from one sentence into the next,
// as a format that begins or ends with a verb may.
func (s *shape) reachesOut(values []string, told string) bool {
	first, last := s.groups[0], s.groups[len(s.groups)-1]
	if s.isOpen() && (s.letters < sureOfWords && strings.Contains(values[first], " ") || strings.Contains(values[first], ": ") && s.holds(first, told) == name) {
		return true
	}
	if s.pieces[0] == "" && strings.Contains(values[first], "; ") {
		return true
	}
	end := s.holds(last, told)
	return s.pieces[len(s.pieces)-1] == "" && strings.Contains(values[last], "; ") && end != sentence && end != data
}

// fill puts values in the places of a format's verbs, as they are. Own are those that are
// words of the sentence: as between other words of Chinese, there is no blank.
func fill(format string, values []string, own []bool) string {
	text, next := "", 0
	for {
		before, verb, after, ok := cutVerb(format)
		text += before
		switch i := argument(verb, next); {
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

// isHan reports whether text begins, or else ends, with a Chinese character, but for a
// blank.
func isHan(text string, begins bool) bool {
	r, _ := utf8.DecodeLastRuneInString(strings.TrimSuffix(text, " "))
	if begins {
		r, _ = utf8.DecodeRuneInString(strings.TrimPrefix(text, " "))
	}
	return unicode.Is(unicode.Han, r)
}
