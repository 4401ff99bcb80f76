//go:build unix

package tty

import "coder/internal/ui/lineedit"

// An Event is one of [Key], [Paste], [Resize], [Focus], [Background] or [Resumed].
type Event interface{ isEvent() }

// Key is a key pressed.
type Key lineedit.Key

// Paste is text the person pasted, as one piece, as it came.
type Paste struct {
	Text string
	Cut  bool // it was longer than can be taken; the rest is lost
}

// Resize tells that the terminal has another size now; [Terminal.Size] knows.
type Resize struct{}

// Focus tells that the terminal's window got or lost the keyboard.
type Focus struct{ In bool }

// Background tells what is behind the text, in answer to having been asked.
type Background struct{ Light bool }

// Resumed tells that the process was stopped and goes on. The terminal is in
// raw mode again if it was before; whatever was shown must be drawn again.
type Resumed struct{}

func (Key) isEvent()     {}
func (Paste) isEvent()   {}
func (Resize) isEvent()  {}
func (Focus) isEvent()   {}
func (Resumed) isEvent() {}

func (Background) isEvent() {}
