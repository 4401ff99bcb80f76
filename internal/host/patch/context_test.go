package patch_test

import (
	"fmt"
	"strings"
	"testing"

	"coder/internal/host/patch"
)

// A hunk without context goes where the hunks before it say that the numbers
// have moved to.
func TestHunksWithoutContextMoveWithTheOthers(t *testing.T) {
	const file = "new 1\nnew 2\na\nb\nc\nd\ne\nf\n" // two lines more than the patch knows of
	for _, tc := range []struct{ name, hunks, want string }{
		{"an insertion", "@@ -2 +2 @@\n-b\n+B\n@@ -4,0 +5 @@\n+x\n", "new 1\nnew 2\na\nB\nc\nd\nx\ne\nf\n"},
		{"two insertions", "@@ -1 +1 @@\n-a\n+A\n@@ -3,0 +4,2 @@\n+x\n+y\n@@ -5,0 +8 @@\n+z\n", "new 1\nnew 2\nA\nb\nc\nx\ny\nd\ne\nz\nf\n"},
		{"at the end", "@@ -2 +1,0 @@\n-b\n@@ -6,0 +6 @@\n+x\n", "new 1\nnew 2\na\nc\nd\ne\nf\nx\n"},
		{"before any that moved", "@@ -0,0 +1 @@\n+x\n@@ -2 +3 @@\n-b\n+B\n", "x\nnew 1\nnew 2\na\nB\nc\nd\ne\nf\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := patch.Parse("--- a/f\n+++ b/f\n" + tc.hunks)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Apply(map[string][]byte{"f": []byte(file)})
			if err != nil || string(got[0].New) != tc.want {
				t.Errorf("%v: got %q\nwant %q", err, got[0].New, tc.want)
			}
		})
	}
}

// Every hunk has three lines of context on both sides, unless the file ends.
func TestContextIsWholeUnlessTheFileEnds(t *testing.T) {
	same := strings.Repeat("\tx()\n", 40)
	for _, tc := range []struct{ name, old, new string }{
		{"the run slides down to its end", "a\n" + same + "b\nc\nd\ne\nf\n", "a\n" + same + "\tx()\nb\nc\nd\ne\nf\n"},
		{"the run slides up to its beginning", "a\nb\nc\nd\n}\n\n" + same + "e\n", "a\nb\nc\nd\n}\n\n\tx()\n" + same + "e\n"},
		{"a block less", strings.Repeat("if {\n}\n\n", 9) + "z\ny\nx\nw\n", strings.Repeat("if {\n}\n\n", 7) + "z\ny\nx\nw\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text, _, _ := patch.Unified("f", []byte(tc.old), []byte(tc.new))
			lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
			var from, oldN, to, newN, after int
			if _, err := fmt.Sscanf(lines[2], "@@ -%d,%d +%d,%d @@", &from, &oldN, &to, &newN); err != nil {
				t.Fatal(err)
			}
			for i := len(lines) - 1; strings.HasPrefix(lines[i], " "); i-- {
				after++
			}
			if total := strings.Count(tc.old, "\n"); after < 3 && from+oldN-1 < total {
				t.Errorf("%d lines of context behind, though the file goes on:\n%s", after, text)
			}
			if !strings.HasPrefix(lines[3], " ") && from > 1 {
				t.Errorf("no context before:\n%s", text)
			}
		})
	}
}
