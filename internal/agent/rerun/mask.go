package rerun

import (
	"slices"
	"strings"

	"coder/internal/core/lazy"
)

// What stands for that which two texts do not have in common: within a line, and some lines.
// Neither is a character.
const (
	gap   = "\uffff"
	lines = "\ufffe"
)

// common is what two texts from the same world have in common, in order, with a gap wherever
// they differ.
func common(a, b string) string {
	x, y := strings.SplitAfter(a, "\n"), strings.SplitAfter(b, "\n")
	if len(x) != len(y) {
		return between(x, y, lines)
	}
	var all strings.Builder
	for i := range x { // line by line, so that what varies stays in its line
		if x[i] == y[i] {
			all.WriteString(x[i])
		} else {
			all.WriteString(between(tokens(x[i]), tokens(y[i]), gap))
		}
	}
	return all.String()
}

// tokens are the words, numbers and signs of a line.
func tokens(line string) []string { return words().FindAllString(line, -1) }

var words = lazy.Regexp(`(?s)[\pL\pN_]+|\s+|.`)

// maxVaried bounds how many parts are compared with each other.
const maxVaried = 2000

// between is what two lists have in common, in order, with gaps.
func between(a, b []string, gap string) string {
	if len(a) > maxVaried || len(b) > maxVaried {
		return strings.Join(a, "")
	}
	longest := make([][]uint16, len(a)+1)
	for i := range longest {
		longest[i] = make([]uint16, len(b)+1)
	}
	for i, x := range slices.Backward(a) {
		for j, y := range slices.Backward(b) {
			if longest[i][j] = max(longest[i+1][j], longest[i][j+1]); x == y {
				longest[i][j] = longest[i+1][j+1] + 1
			}
		}
	}
	var all strings.Builder
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			all.WriteString(a[i])
			i, j = i+1, j+1
			continue
		case j == len(b) || i < len(a) && longest[i+1][j] >= longest[i][j+1]:
			i++
		default:
			j++
		}
		all.WriteString(gap)
	}
	return all.String()
}

// fits reports whether a text is what others have in common, with anything in the gaps. Where
// nothing varied no other text fits.
func fits(text, common string) bool {
	x, y := []string{text}, []string{strings.ReplaceAll(common, lines, gap)}
	if common == y[0] { // what varies stays in its line
		x, y = strings.SplitAfter(text, "\n"), strings.SplitAfter(common, "\n")
	}
	if len(x) != len(y) || !strings.ContainsAny(common, gap+lines) {
		return false
	}
	for i := range x {
		if x[i] != y[i] && !fills(x[i], strings.Split(y[i], gap)) {
			return false
		}
	}
	return true
}

// fills reports whether a text is these parts with anything between them.
func fills(text string, parts []string) bool {
	last := len(parts) - 1
	text, ok := strings.CutPrefix(text, parts[0])
	for _, part := range parts[1:max(last, 1)] {
		if ok {
			_, text, ok = strings.Cut(text, part)
		}
	}
	return ok && last > 0 && strings.HasSuffix(text, parts[last])
}
