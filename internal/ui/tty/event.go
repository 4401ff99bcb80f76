//go:build unix

package tty

import "coder/internal/ui/lineedit"

// Event is one of [Key], [Paste], [Resize], [Focus], [Background] or [Resumed].
type Event interface{ isEvent() }

// Key is a key press.
type Key lineedit.Key

// Paste is pasted text, in one piece, unchanged.
type Paste struct {
	Text      string
	Truncated bool // it exceeded the limit; the rest is lost
}

// Resize means that the terminal's size has changed; see [Terminal.Size].
type Resize struct{}

// Focus means that the terminal's window got or lost the focus.
type Focus struct{ Gained bool }

// Background is the reply to a query for the background color.
type Background struct{ Light bool }

// Resumed means that the process was stopped and continues. The terminal is in raw mode again if it was
// before; everything shown must be redrawn.
type Resumed struct{}

func (Key) isEvent()     {}
func (Paste) isEvent()   {}
func (Resize) isEvent()  {}
func (Focus) isEvent()   {}
func (Resumed) isEvent() {}

func (Background) isEvent() {}
