//go:build unix

package lsp

import "unicode/utf16"

// UnitsAt is how many UTF-16 code units the first n characters of line take. A
// line that is shorter ends the count.
func UnitsAt(line string, n int) (units int) {
	for _, r := range line {
		if n--; n < 0 {
			break
		}
		units += utf16.RuneLen(r)
	}
	return units
}

// RunesAt is how many characters stand before the given UTF-16 code unit of
// line. A unit in the middle of a character counts as its beginning, one beyond
// the line as its end.
func RunesAt(line string, units int) (n int) {
	for _, r := range line {
		if units -= utf16.RuneLen(r); units < 0 {
			break
		}
		n++
	}
	return n
}
