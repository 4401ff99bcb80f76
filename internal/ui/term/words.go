package term

import "fmt"

// Translator translates sentences into the user's language.
type Translator interface {
	// T translates the renderer's own sentence; its English form is the key.
	T(format string, args ...any) string
	// TranslateText translates a sentence made elsewhere, such as a notice or a reason.
	TranslateText(text string) string
	// TranslateError translates an error.
	TranslateError(err error) string
}

// English is the Words that translates nothing.
type English struct{}

// T formats.
func (English) T(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// TranslateError returns the text of err.
func (English) TranslateError(err error) string { return err.Error() }

// TranslateText returns text.
func (English) TranslateText(text string) string { return text }
