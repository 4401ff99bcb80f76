package files

import "strings"

// lineEnding is the kind of line ends in a text.
type lineEnding string

const (
	mixedEnds   lineEnding = "" // more than one kind
	unixEnds    lineEnding = "\n"
	windowsEnds lineEnding = "\r\n"
	oldMacEnds  lineEnding = "\r"
)

// detectEnding returns the line ends of text; a text of one line has Unix line ends.
func detectEnding(text string) lineEnding {
	lf, crlf := strings.Count(text, "\n"), strings.Count(text, "\r\n")
	switch {
	case lf == 0 && strings.Contains(text, "\r"):
		return oldMacEnds
	case crlf == 0:
		return unixEnds
	case crlf == lf:
		return windowsEnds
	}
	return mixedEnds
}

// convert returns text that has plain line ends with the line ends e.
func (e lineEnding) convert(plain string) string {
	if e == windowsEnds || e == oldMacEnds {
		return strings.ReplaceAll(plain, "\n", string(e))
	}
	return plain
}

// normalize returns a model's text, with any line ends, with plain ones.
func (e lineEnding) normalize(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	if e == oldMacEnds {
		s = strings.ReplaceAll(s, "\r", "\n")
	}
	return s
}

// substituteLines is substitute for a text with mixed line ends, where old and new have plain ones. It
// searches the text as a reader sees it and replaces in the original. It does not touch what old and
// new have in common at either end, and inserted lines get the line end at their position.
func substituteLines(text, old, new string, all bool) (string, int, error) {
	spots, err := findReplacements(strings.ReplaceAll(text, "\r\n", "\n"), old, all)
	if err != nil {
		return "", 0, err
	}
	head, tail := commonEnds([]byte(old), []byte(new))
	middle := new[head : len(new)-tail]
	var b strings.Builder
	seen, raw, done := 0, 0, 0 // one position as read and in the original; end of the copied text
	for _, at := range spots {
		raw += rawLength(text[raw:], at+head-seen)
		end := raw + rawLength(text[raw:], len(old)-head-tail)
		b.WriteString(text[done:raw])
		b.WriteString(strings.ReplaceAll(middle, "\n", lineEndAt(text, raw)))
		seen, raw, done = at+len(old)-tail, end, end
	}
	b.WriteString(text[done:])
	return b.String(), len(spots), nil
}

// commonEnds returns how many elements old and new have in common at their beginnings, and then at their ends.
func commonEnds[T comparable](old, new []T) (head, tail int) {
	short := min(len(old), len(new))
	for head < short && old[head] == new[head] {
		head++
	}
	for tail < short-head && old[len(old)-1-tail] == new[len(new)-1-tail] {
		tail++
	}
	return head, tail
}

// rawLength returns how many bytes of text correspond to n bytes as read.
func rawLength(text string, n int) int {
	i := 0
	for ; n > 0; n-- {
		if strings.HasPrefix(text[i:], "\r\n") {
			i++
		}
		i++
	}
	return i
}

// lineEndAt returns the line end of the line at position at
// or, if it is the last and has none, of the line before.
func lineEndAt(text string, at int) string {
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
