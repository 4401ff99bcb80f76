package patch

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// However soon the search gives up, what it found leads from old to new; only
// not by the shortest way.
func TestEditsMakeTheNewFile(t *testing.T) {
	lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a\n", "b\n", "\n", "\tc\n", "d"}), 0, 40)
	rapid.Check(t, func(t *rapid.T) {
		old, new := lines.Draw(t, "old"), lines.Draw(t, "new")
		shortest := -1
		for _, patience := range []int{maxPatience, 3, 2, 1} {
			var got []string
			at, size := 0, 0
			for _, e := range editsWith(patience, old, new) {
				if e.a < at || e.a == e.aEnd && e.b == e.bEnd {
					t.Fatalf("edit %v after line %d", e, at)
				}
				got = append(append(got, old[at:e.a]...), new[e.b:e.bEnd]...)
				at, size = e.aEnd, size+e.aEnd-e.a+e.bEnd-e.b
			}
			if got = append(got, old[at:]...); !slices.Equal(got, new) {
				t.Fatalf("with patience %d: %q", patience, got)
			}
			if shortest < 0 {
				shortest = longestCommon(old, new)
				if want := len(old) + len(new) - 2*shortest; size != want {
					t.Fatalf("%d lines changed, %d would do", size, want)
				}
			}
		}
	})
}

// longestCommon is how many lines two files have in common, the slow way.
func longestCommon(a, b []string) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		before := 0 // row[j] of the row before
		for j, y := range b {
			was := row[j+1]
			if row[j+1] = max(row[j], was); x == y {
				row[j+1] = before + 1
			}
			before = was
		}
	}
	return row[len(b)]
}
