package files

import (
	"fmt"
	"strings"
)

const (
	nearLines  = 8      // lines of old_string that are compared, and most shown
	nearWidth  = 200    // characters of a line that are compared and shown
	nearSearch = 50_000 // lines of a file that are looked at
	nearEnough = 0.5    // how alike lines must be to be worth showing
)

// absent is the error of a text that is not in the file.
type absent string

func (a absent) Error() string { return string(a) }

// notFound says that old is not in text and shows what comes nearest.
func notFound(text, old string) error {
	lines := strings.SplitN(text, "\n", nearSearch)
	wanted := strings.Split(strings.Trim(old, "\n"), "\n")
	wanted = wanted[:min(len(wanted), nearLines)]
	at, score := nearest(lines, wanted)
	if score < nearEnough*float64(len(wanted)) {
		return absent("old_string is not in the file; read it again")
	}
	var b strings.Builder
	b.WriteString("old_string is not in the file; the nearest lines are")
	for i := at; i < min(at+len(wanted), len(lines)); i++ {
		fmt.Fprintf(&b, "\n%d: %s", i+1, clip(strings.TrimRight(lines[i], "\r")))
	}
	why := ""
	for i, w := range wanted {
		if why == "" && at+i < len(lines) {
			why = differs(lines[at+i], w)
		}
	}
	switch {
	case why != "":
		b.WriteString("\n(" + why + ")")
	case score == float64(len(wanted)):
		b.WriteString("\n(only white space differs)")
	}
	return absent(b.String())
}

// nearest is where in lines the wanted ones match best, and how well: one
// point for each line that is equal but for the space around it.
func nearest(lines, wanted []string) (at int, best float64) {
	want := make([]string, len(wanted))
	for i, w := range wanted {
		want[i] = clip(folded(strings.TrimSpace(w)))
	}
	for i := range lines {
		score := 0.0
		for j, w := range want {
			if i+j < len(lines) {
				score += alike(clip(folded(strings.TrimSpace(lines[i+j]))), w)
			}
		}
		if score > best {
			at, best = i, score
		}
	}
	return at, best
}

// alike compares two lines by what they have in common at both ends, from 0 to
// 1.
func alike(a, b string) float64 {
	if a == b {
		return 1
	}
	head, tail := shared(a, b)
	return 0.99 * float64(head+tail) / float64(max(len(a), len(b)))
}

// clip shortens a line to what is compared and shown.
func clip(s string) string {
	if len(s) <= nearWidth {
		return s
	}
	return strings.ToValidUTF8(s[:nearWidth], "")
}
