package lineedit

// A Key is one key pressed, as the terminal told it. Keys can be compared. The
// zero Key does nothing.
type Key struct {
	Name Name
	Rune rune // the character, when Name is [Char]
	Mod  Mod
}

// Name says which key it is.
type Name uint8

// The keys that have names; all others are a [Char].
const (
	Char Name = iota
	Enter
	Tab
	Escape
	Backspace
	Delete
	Insert
	Up
	Down
	Left
	Right
	Home
	End
	PageUp
	PageDown
)

// Mod is the set of keys held down with another. Shift is told only where it
// does not already show in the character.
type Mod uint8

// The keys that modify others. Their values are those terminals use.
const (
	Shift Mod = 1 << iota
	Alt
	Ctrl
)

// Typed is the key that types r.
func Typed(r rune) Key { return Key{Rune: r} }

// WithCtrl is the key of r, a small letter or a sign, with Ctrl held.
func WithCtrl(r rune) Key { return Key{Rune: r, Mod: Ctrl} }

// WithAlt is the key of r with Alt held.
func WithAlt(r rune) Key { return Key{Rune: r, Mod: Alt} }
