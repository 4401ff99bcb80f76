package tool

import "strconv"

// Count says how many of a thing there are, for a summary: "1 line", "3 lines".
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
