package sanitize_test

import (
	"testing"

	"coder/internal/core/sanitize"
)

// What another program said is quoted where it could be taken for words of our own.
func TestWhatOthersSaidIsNotTakenForOurs(t *testing.T) {
	for text, want := range map[string]string{
		"canceled": `"canceled"`, "permission denied": `"permission denied"`, "link-local": `"link-local"`,
		"": "", "Slow down.": "Slow down.", "error 5": "error 5", "no: way": "no: way", "无": "无",
	} {
		if got := sanitize.ForeignText(text); got != want {
			t.Errorf("%q is told as %s, want %s", text, got, want)
		}
	}
}
