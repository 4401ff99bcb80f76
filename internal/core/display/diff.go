package display

import (
	"iter"
	"strconv"
	"strings"

	"coder/internal/core/lazy"
)

// Counted is a unified diff with how much it adds and deletes.
func Counted(unified string) Diff {
	d := Diff{Unified: unified}
	for sign := range DiffLines(unified) {
		switch sign {
		case '+':
			d.Added++
		case '-':
			d.Deleted++
		}
	}
	return d
}

var hunkHead = lazy.Regexp(`^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@`)

// DiffLines yields the lines of a unified diff: those added with '+', deleted
// with '-', kept with ' ', and what is said about them with 0. It goes by the
// lengths that the hunks give, since a deleted line may look like a file name.
func DiffLines(unified string) iter.Seq2[byte, string] {
	return func(yield func(byte, string) bool) {
		before, after := 0, 0 // lines left in the hunk
		for line := range strings.Lines(unified) {
			var sign byte
			switch {
			case before <= 0 && after <= 0:
				if m := hunkHead().FindStringSubmatch(line); m != nil {
					before, after = length(m[1]), length(m[2])
				}
			case line[0] == '+':
				sign, after = '+', after-1
			case line[0] == '-':
				sign, before = '-', before-1
			case line[0] != '\\':
				sign, before, after = ' ', before-1, after-1
			}
			if !yield(sign, line) {
				return
			}
		}
	}
}

// length of a hunk; one left out is 1.
func length(s string) int {
	if s == "" {
		return 1
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}
