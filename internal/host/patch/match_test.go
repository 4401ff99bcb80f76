package patch_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"coder/internal/host/patch"
)

// Lines that match are the same, in the same order, and as many as stayed.
func TestMatch(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for round := range 300 {
		var old, new []string
		stayed := 0
		for i := range random.IntN(40) {
			line := fmt.Sprintf("%d\n", i)
			switch random.IntN(4) {
			case 0:
				old = append(old, line)
			case 1:
				new = append(new, line)
			default:
				old, new = append(old, line), append(new, line)
				stayed++
			}
		}
		from, last, n := patch.MatchLines(old, new), -1, 0
		if len(from) != len(new) {
			t.Fatalf("round %d: %d lines, want %d", round, len(from), len(new))
		}
		for i, at := range from {
			if at < 0 {
				continue
			}
			if at <= last || old[at] != new[i] {
				t.Fatalf("round %d: line %d is said to be line %d", round, i, at)
			}
			last, n = at, n+1
		}
		if n != stayed {
			t.Errorf("round %d: %d lines stayed, want %d", round, n, stayed)
		}
	}
}
