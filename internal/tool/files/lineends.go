package files

import "strings"

// ending is the kind of line ends in a text.
type ending string

const (
	mixed   ending = "" // more than one kind
	unix    ending = "\n"
	windows ending = "\r\n"
	oldMac  ending = "\r"
)

// endingOf returns the line ends of text; a text of one line has Unix line ends.
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

// write returns text that has plain line ends with the line ends e.
func (e ending) write(plain string) string {
	if e == windows || e == oldMac {
		return strings.ReplaceAll(plain, "\n", string(e))
	}
	return plain
}

// given returns a model's text, with any line ends, with plain ones.
func (e ending) given(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	if e == oldMac {
		s = strings.ReplaceAll(s, "\r", "\n")
	}
	return s
}

// substituteLines is substitute for a text with mixed line ends, where old and new have plain ones. It
// searches the text as a reader sees it and replaces in the original. It does not touch what old and
// new have in common at either end, and inserted lines get the line end at their position.
func substituteLines(text, old, new string, all bool) (string, int, error) {
	spots, err := spotsOf(strings.ReplaceAll(text, "\r\n", "\n"), old, all)
	if err != nil {
		return "", 0, err
	}
	head, tail := shared([]byte(old), []byte(new))
	middle := new[head : len(new)-tail]
	var b strings.Builder
	seen, raw, done := 0, 0, 0 // one position as read and in the original; end of the copied text
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

// shared returns how many elements old and new have in common at their beginnings, and then at their ends.
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

// width returns how many bytes of text correspond to n bytes as read.
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

// lineEnd returns the line end of the line at position at
// or, if it is the last and has none, of the line before.
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
