package rerun

import (
	"slices"
	"strings"

	"coder/internal/core/lazy"
)

// gap stands for what two texts do not have in common. It is no character.
const gap = "\uffff"

// common is what two texts from the same world have in common, in order, with a gap wherever
// they differ.
func common(a, b string) string {
	x, y := strings.SplitAfter(a, "\n"), strings.SplitAfter(b, "\n")
	if len(x) != len(y) {
		return between(x, y)
	}
	var all strings.Builder
	for i := range x { // line by line, so that what varies stays in its line
		if x[i] == y[i] {
			all.WriteString(x[i])
		} else {
			all.WriteString(between(tokens(x[i]), tokens(y[i])))
		}
	}
	return all.String()
}

// tokens are the words, numbers and signs of a line.
func tokens(line string) []string { return words().FindAllString(line, -1) }

var words = lazy.Regexp(`(?s)[\pL\pN_]+|\s+|.`)

// maxVaried bounds how many parts are compared with each other.
const maxVaried = 2000

// between is what two lists have in common, in order.
func between(a, b []string) string {
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
	parts := strings.Split(common, gap)
	last := len(parts) - 1
	text, ok := strings.CutPrefix(text, parts[0])
	for _, part := range parts[1:max(last, 1)] {
		if !ok {
			return false
		}
		_, text, ok = strings.Cut(text, part)
	}
	return ok && last > 0 && strings.HasSuffix(text, parts[last])
}
