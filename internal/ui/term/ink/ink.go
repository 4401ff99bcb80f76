// Package ink describes styled text independently of the terminal's colors: a [Span] is text with a
// role, and a [Grid] lays spans out in columns. Nothing here writes escape sequences.
package ink

// Role is the reason for a text's style. The palette maps it to a color.
type Role uint8

// Roles. The zero Role is the terminal's own color.
const (
	Plain   Role = iota
	Dim          // thinking, and framing text
	Tool         // the name of a tool
	Good         // success, added lines
	Bad          // failure, deleted lines
	Warn         // notices, questions, current work
	Done         // finished work
	Code         // code within prose
	Link         // the address of a link
	Keyword      // this and the rest are parts of source code
	String
	Comment
	Number
	Name
)

// Style is a role with text attributes.
type Style struct {
	Role                    Role
	Bold, Italic, Underline bool
	Strike                  bool
	Link                    string // the target of the link
}

// Span is a piece of text in one style.
type Span struct {
	Style Style
	Text  string
}

// SpanFunc receives spans one after the other. Consecutive texts are one text.
type SpanFunc func(Style, string)
