// Package ink says what text is to look like before anyone knows which colours
// the terminal has: a [Span] is text with a role, and a [Grid] lays spans out
// in columns. Nothing here writes escape sequences.
package ink

// Role is why a text looks as it does. Which colour that is, is up to the
// palette.
type Role uint8

// The roles. The zero Role is the terminal's own colour.
const (
	Plain   Role = iota
	Dim          // thinking, and what only frames other text
	Tool         // the name of a tool
	Good         // success, added lines
	Bad          // failure, deleted lines
	Warn         // notices, questions, what is being done
	Done         // what has been done
	Code         // code within prose
	Link         // the address of a link
	Keyword      // and the rest are parts of source code
	String
	Comment
	Number
	Name
)

// Look is a role and what is done to the letters.
type Look struct {
	Role                    Role
	Bold, Italic, Underline bool
	Strike                  bool
	Link                    string // the address that the text leads to
}

// Span is a piece of text in one look.
type Span struct {
	Look Look
	Text string
}

// Put takes spans as they come. Texts that follow one another are one text.
type Put func(Look, string)
