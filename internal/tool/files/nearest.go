package files

import (
	"fmt"
	"strings"

	"coder/internal/host/patch"
)

// nearWidth is how many bytes of a line that comes near are shown.
const nearWidth = 200

// absent is the error of a text that is not in the file.
type absent string

func (a absent) Error() string { return string(a) }

// notFound says that old is not in text and shows what comes nearest.
func notFound(text, old string) error {
	lines := strings.Split(text, "\n")
	at, n, why := patch.Nearest(lines, strings.Split(strings.Trim(old, "\n"), "\n"))
	if n == 0 {
		return absent("old_string is not in the file; read it again")
	}
	var b strings.Builder
	b.WriteString("old_string is not in the file; the nearest lines are")
	for i := at; i < at+n; i++ {
		fmt.Fprintf(&b, "\n%d: %s", i+1, clip(strings.TrimRight(lines[i], "\r")))
	}
	if why != "" {
		b.WriteString("\n(" + why + ")")
	}
	return absent(b.String())
}

// clip shortens a line to what is shown.
func clip(s string) string {
	if len(s) <= nearWidth {
		return s
	}
	return strings.ToValidUTF8(s[:nearWidth], "")
}
