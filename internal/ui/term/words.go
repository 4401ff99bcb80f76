package term

import "fmt"

// Words puts sentences into the person's language.
type Words interface {
	// T is a sentence of the renderer's own; its English form is the key.
	T(format string, args ...any) string
	// Said is a sentence made elsewhere, such as a notice or a reason.
	Said(text string) string
}

// English is the Words that changes nothing.
type English struct{}

// T formats.
func (English) T(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// Said returns text.
func (English) Said(text string) string { return text }
