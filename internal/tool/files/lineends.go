package files

import "strings"

// ending is how the lines of a text end.
type ending string

const (
	mixed   ending = "" // in more than one way
	unix    ending = "\n"
	windows ending = "\r\n"
	oldMac  ending = "\r"
)

// endingOf tells how the lines of text end; a text of one line ends like Unix.
func endingOf(text string) ending {
	lf, crlf := strings.Count(text, "\n"), strings.Count(text, "\r\n")
	switch {
	case lf == 0 && strings.Contains(text, "\r"):
		return oldMac
	case crlf == 0:
		return unix
	case crlf == lf:
		return windows
	}
	return mixed
}

// write is text with plain line ends in this way.
func (e ending) write(plain string) string {
	if e == windows || e == oldMac {
		return strings.ReplaceAll(plain, "\n", string(e))
	}
	return plain
}

// given is a text from a model, which may write line ends in any way, with
// plain ones.
func (e ending) given(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	if e == oldMac {
		s = strings.ReplaceAll(s, "\r", "\n")
	}
	return s
}

// substituteLines is substitute for a text whose lines end in both ways, and an
// old and new written with plain ends. It looks for old in the text as a reader
// sees it and replaces it in the text as it is. What old and new have in common
// at either end is not touched, and inserted lines end like the line they stand
// at.
func substituteLines(text, old, new string, all bool) (string, int, error) {
	spots, err := spotsOf(strings.ReplaceAll(text, "\r\n", "\n"), old, all)
	if err != nil {
		return "", 0, err
	}
	head, tail := shared([]byte(old), []byte(new))
	middle := new[head : len(new)-tail]
	var b strings.Builder
	seen, raw, done := 0, 0, 0 // the same place as read and as it is; what has been copied
	for _, at := range spots {
		raw += width(text[raw:], at+head-seen)
		end := raw + width(text[raw:], len(old)-head-tail)
		b.WriteString(text[done:raw])
		b.WriteString(strings.ReplaceAll(middle, "\n", lineEnd(text, raw)))
		seen, raw, done = at+len(old)-tail, end, end
	}
	b.WriteString(text[done:])
	return b.String(), len(spots), nil
}

// shared is how many elements old and new have in common at their beginnings,
// and then at their ends.
func shared[T comparable](old, new []T) (head, tail int) {
	short := min(len(old), len(new))
	for head < short && old[head] == new[head] {
		head++
	}
	for tail < short-head && old[len(old)-1-tail] == new[len(new)-1-tail] {
		tail++
	}
	return head, tail
}

// width is how many bytes of text make up n bytes as read.
func width(text string, n int) int {
	i := 0
	for ; n > 0; n-- {
		if strings.HasPrefix(text[i:], "\r\n") {
			i++
		}
		i++
	}
	return i
}

// lineEnd is how the line at position at ends or, if it is the last and has no
// end, the one before.
func lineEnd(text string, at int) string {
	i := strings.IndexByte(text[at:], '\n')
	if i >= 0 {
		i += at
	} else {
		i = strings.LastIndexByte(text, '\n')
	}
	if i > 0 && text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}
