package files

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"coder/internal/core/message"
	"coder/internal/host/patch"
)

// These are the accepted differences between a text and the lines it matches.
const (
	typographyDiffers = "the file has other quotes, dashes or spaces there; text that new_string shares with the file was kept as in the file"
	trailingDiffers   = "white space at the end of lines differs"
	indentDiffers     = "its indentation differs; new_string was indented like the file"
	oldIndentDiffers  = "its indentation differs; new_string was already indented like the file and was used unchanged"
)

// looseMatch is the result of a loose replacement.
type looseMatch struct {
	text       string
	count      int    // replaced places; 0 if there is no match
	difference string // the ignored difference
}

// substituteLoosely replaces old by new where text differs from old only in the forms of quotes, dashes and
// spaces, in white space at the end of lines, or in the indentation of all of it: in one place or, with all,
// wherever text differs in the same way. Line ends are plain everywhere, unless the text has both kinds.
func substituteLoosely(text, old, new string, all bool) (looseMatch, error) {
	if !strings.ContainsFunc(old, func(r rune) bool { return r > ' ' }) {
		return looseMatch{}, nil
	}
	if l, err := substituteFolded(text, old, new, all); l.count > 0 || err != nil {
		return l, err
	}
	b := &lineBlock{lines: strings.SplitAfter(text, "\n"), want: strings.Split(strings.TrimSuffix(old, "\n"), "\n"),
		hasEnd: strings.HasSuffix(old, "\n")}
	if at := b.find(func(have, want string) bool { return trimEnd(have) == trimEnd(want) }, all); len(at) > 0 {
		if len(at) > 1 && !all {
			return looseMatch{}, b.ambiguousError(at)
		}
		return b.replace(at, trailingDiffers, func(int) string { return new }), nil
	}
	at := b.find(func(have, want string) bool { return strings.TrimSpace(have) == strings.TrimSpace(want) }, all)
	if len(at) > 1 && !all {
		return looseMatch{}, b.ambiguousError(at)
	}
	how, written := indentDiffers, make(map[int]string)
	for _, i := range at {
		indented, as, ok := b.indentLike(i, new)
		if !ok {
			return looseMatch{}, nil
		}
		written[i], how = indented, as
	}
	return b.replace(at, how, func(i int) string { return written[i] }), nil
}

func trimEnd(s string) string { return strings.TrimRight(s, " \t\r\n") }

// lineBlock is a text in lines and the lines to find in it.
type lineBlock struct {
	lines  []string // with line ends
	want   []string // without line ends
	hasEnd bool     // the last wanted line has a line end
}

// find returns the places where all wanted lines match; with apart, only places that share no line.
func (b *lineBlock) find(equal func(have, want string) bool, apart bool) (places []int) {
	for at := 0; at+len(b.want) <= len(b.lines); at++ {
		if !slices.EqualFunc(b.lines[at:at+len(b.want)], b.want, equal) {
			continue
		}
		places = append(places, at)
		if apart {
			at += len(b.want) - 1
		}
	}
	return places
}

// replace replaces the wanted lines at places by the result of written.
func (b *lineBlock) replace(places []int, how string, written func(at int) string) looseMatch {
	text := strings.Join(b.lines, "")
	var out strings.Builder
	done, line := 0, 0 // one position in bytes and in lines
	begin := 0
	for _, at := range places {
		begin += len(strings.Join(b.lines[line:at], ""))
		found := strings.Join(b.lines[at:at+len(b.want)], "")
		end := begin + len(found)
		out.WriteString(text[done:begin])
		out.WriteString(strings.ReplaceAll(written(at), "\n", lineEndAt(text, begin)))
		if done = end; !b.hasEnd {
			done = begin + len(strings.TrimRight(found, "\r\n"))
		}
		begin, line = end, at+len(b.want)
	}
	out.WriteString(text[done:])
	return looseMatch{out.String(), len(places), how}
}

// ambiguousError returns the error for wanted lines that match in several places.
func (b *lineBlock) ambiguousError(places []int) error {
	lines := make([]int, len(places))
	for i, at := range places {
		lines[i] = at + 1
	}
	return message.Errorf("old_string is not exactly in the file; with other whitespace it is in %s; give it exactly, with lines around it to pick one", describePlaces(lines))
}

// indentLike gives the lines of new the indentation that the wanted lines have in the file, unless new
// already has it. This works if each indentation in old corresponds to one in the file, and those in
// new are all known or all differ from old by the same amount.
func (b *lineBlock) indentLike(at int, new string) (indented, how string, ok bool) {
	stands := make(map[string]string)
	for i, w := range b.want {
		if strings.TrimSpace(w) == "" {
			continue
		}
		have := indent(b.lines[at+i])
		if other, ok := stands[indent(w)]; ok && other != have {
			return "", "", false
		}
		stands[indent(w)] = have
	}
	if least := commonIndent(strings.Split(new, "\n")); least != "" &&
		least == commonIndent(b.lines[at:at+len(b.want)]) && least != commonIndent(b.want) {
		return new, oldIndentDiffers, true
	}
	var out strings.Builder
	for line := range strings.Lines(new) {
		if strings.TrimSpace(line) == "" {
			out.WriteString(line)
			continue
		}
		in, ok := reindent(indent(line), stands)
		if !ok {
			return "", "", false
		}
		out.WriteString(in + line[len(indent(line)):])
	}
	return out.String(), indentDiffers, true
}

// commonIndent returns the common indentation of the non-blank lines.
func commonIndent(lines []string) string {
	least, found := "", false
	for _, l := range lines {
		if strings.TrimSpace(l) == "" {
			continue
		}
		if in := indent(l); !found || len(in) < len(least) {
			least, found = in, true
		}
	}
	return least
}

// reindent returns the indentation that corresponds to in. It derives an unknown one from the known
// ones if those all differ by the same prefix.
func reindent(in string, stands map[string]string) (string, bool) {
	if have, ok := stands[in]; ok {
		return have, true
	}
	add, strip, first := "", "", true
	for want, have := range stands {
		a, s, ok := strings.TrimSuffix(have, want), strings.TrimSuffix(want, have), true
		switch {
		case strings.HasSuffix(have, want):
			s = ""
		case strings.HasSuffix(want, have):
			a = ""
		default:
			ok = false
		}
		if !ok || !first && (a != add || s != strip) {
			return "", false
		}
		add, strip, first = a, s, false
	}
	if !strings.HasPrefix(in, strip) {
		return "", false
	}
	return add + in[len(strip):], true
}

func indent(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " \t"))] }

// foldTypography returns a text in the characters that models write.
func foldTypography(s string) string { return strings.Map(patch.PlainForm, s) }

// substituteFolded replaces old where text differs only in the forms of quotes, dashes and spaces. What
// old and new have in common at either end stays as in the file.
func substituteFolded(text, old, new string, all bool) (looseMatch, error) {
	plain, want := foldTypography(text), foldTypography(old)
	if plain == text && want == old || !strings.Contains(plain, want) {
		return looseMatch{}, nil
	}
	spots, err := findReplacements(plain, want, all)
	if err != nil {
		return looseMatch{},
			message.Errorf("old_string is not exactly in the file; with other quotes, dashes or spaces %w", err)
	}
	head, tail := commonEnds([]rune(old), []rune(new))
	var out strings.Builder
	done, seen, at := 0, 0, 0 // end of the copied text; one position in plain and in text
	for _, spot := range spots {
		at += prefixSize(text[at:], utf8.RuneCountInString(plain[seen:spot]))
		seen = spot
		found := text[at : at+prefixSize(text[at:], utf8.RuneCountInString(want))]
		keepHead := prefixSize(found, head)
		keepTail := len(found) - prefixSize(found, utf8.RuneCountInString(found)-tail)
		out.WriteString(text[done : at+keepHead])
		out.WriteString(new[prefixSize(new, head):prefixSize(new, utf8.RuneCountInString(new)-tail)])
		done = at + len(found) - keepTail
	}
	out.WriteString(text[done:])
	return looseMatch{out.String(), len(spots), typographyDiffers}, nil
}

// prefixSize returns the size in bytes of the first n characters of s.
func prefixSize(s string, n int) (size int) {
	for ; n > 0 && size < len(s); n-- {
		_, w := utf8.DecodeRuneInString(s[size:])
		size += w
	}
	return size
}

// maxSimilarLine is how many bytes of a similar line are shown.
const maxSimilarLine = 200

// textNotFoundError is the error for text that is not in the file.
type textNotFoundError string

func (a textNotFoundError) Error() string { return string(a) }

// notFound returns the error that old is not in text, with the most similar line.
func notFound(text, old string) error {
	if len(text) > maxChanged {
		return textNotFoundError("old_string is not in the file; re-read the file")
	}
	lines := strings.Split(text, "\n")
	at, n, why := patch.Nearest(lines, strings.Split(strings.Trim(old, "\n"), "\n"))
	if n == 0 {
		return textNotFoundError("old_string is not in the file; re-read the file")
	}
	var b strings.Builder
	b.WriteString("old_string is not in the file; the nearest lines are")
	for i := at; i < at+n; i++ {
		line := strings.TrimRight(lines[i], "\r")
		if len(line) > maxSimilarLine {
			line = strings.ToValidUTF8(line[:maxSimilarLine], "")
		}
		fmt.Fprintf(&b, "\n%d: %s", i+1, line)
	}
	if why != "" {
		b.WriteString("\n(" + why + ")")
	}
	return textNotFoundError(b.String())
}
