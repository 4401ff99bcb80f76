package term

import "fmt"

// Words translates sentences into the user's language.
type Words interface {
	// T translates the renderer's own sentence; its English form is the key.
	T(format string, args ...any) string
	// Said translates a sentence made elsewhere, such as a notice or a reason.
	Said(text string) string
}

// English is the Words that translates nothing.
type English struct{}

// T formats.
func (English) T(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// Said returns text.
func (English) Said(text string) string { return text }
