package lineedit

// Key is one key press, as the terminal reports it. Keys are comparable. The zero Key does nothing.
type Key struct {
	Name Name
	Rune rune // the character, when Name is [Char]
	Mod  Mod
}

// Name is the name of a key.
type Name uint8

// Named keys; all others are a [Char].
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

// Mod is a set of modifier keys. Shift is only reported if it does not already show in the character.
type Mod uint8

// Modifier keys, with the values that terminals use.
const (
	Shift Mod = 1 << iota
	Alt
	Ctrl
)

// RuneKey returns the key that types r.
func RuneKey(r rune) Key { return Key{Rune: r} }

// CtrlKey returns the key of r, a lower-case letter or a sign, with Ctrl held.
func CtrlKey(r rune) Key { return Key{Rune: r, Mod: Ctrl} }

// AltKey returns the key of r with Alt held.
func AltKey(r rune) Key { return Key{Rune: r, Mod: Alt} }
