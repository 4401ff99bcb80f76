//go:build unix

package tty

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"coder/internal/ui/lineedit"
)

// The sequences of the keys, by last byte or number. Unlisted ones are dropped.
var (
	finalKeys = map[byte]lineedit.Name{
		'A': lineedit.Up, 'B': lineedit.Down, 'C': lineedit.Right, 'D': lineedit.Left,
		'H': lineedit.Home, 'F': lineedit.End, 'M': lineedit.Enter,
	}
	arrowKeys = map[byte]lineedit.Name{ // with Shift after ESC [, with Ctrl after ESC O
		'a': lineedit.Up, 'b': lineedit.Down, 'c': lineedit.Right, 'd': lineedit.Left,
	}
	numberKeys = map[int]lineedit.Name{
		1: lineedit.Home, 2: lineedit.Insert, 3: lineedit.Delete, 4: lineedit.End,
		5: lineedit.PageUp, 6: lineedit.PageDown, 7: lineedit.Home, 8: lineedit.End,
	}
	codeKeys = map[int]lineedit.Name{ // of the keyboard protocol that ends in u
		8: lineedit.Backspace, 9: lineedit.Tab, 13: lineedit.Enter, 27: lineedit.Escape, 127: lineedit.Backspace,
		57414: lineedit.Enter, 57417: lineedit.Left, 57418: lineedit.Right, 57419: lineedit.Up,
		57420: lineedit.Down, 57421: lineedit.PageUp, 57422: lineedit.PageDown, 57423: lineedit.Home,
		57424: lineedit.End, 57425: lineedit.Insert, 57426: lineedit.Delete,
	}
	rxvtMods = map[byte]lineedit.Mod{'$': lineedit.Shift, '^': lineedit.Ctrl, '@': lineedit.Ctrl | lineedit.Shift}
)

const (
	keypadFirst, keypad = 57399, "0123456789./*-+" // of the protocol that ends in u
	shiftedFirst        = 'j'                      // of a keypad that sends ESC O
	shifted             = "*+,-./0123456789"
)

func namedKey(n lineedit.Name) Key { return Key{Name: n} }

// controlKey returns the key for a control character.
func controlKey(b byte) Key {
	switch {
	case b == '\r':
		return namedKey(lineedit.Enter)
	case b == '\t':
		return namedKey(lineedit.Tab)
	case b == 0x7f:
		return namedKey(lineedit.Backspace)
	case b == 0:
		return Key(lineedit.CtrlKey(' '))
	case b <= 26:
		return Key(lineedit.CtrlKey(rune(b) + 'a' - 1))
	}
	return Key(lineedit.CtrlKey(rune(b) + '@'))
}

// decodeSequence returns the events of a complete escape sequence; none, for most.
func (d *Decoder) decodeSequence(seq []byte) []Event {
	if colour, ok := strings.CutPrefix(string(seq), "\x1b]11;"); ok {
		return parseBackground(strings.TrimSuffix(strings.TrimSuffix(colour, "\a"), "\x1b\\"))
	}
	if len(seq) < 3 || seq[len(seq)-1] < 0x20 {
		if len(seq) != 2 {
			return nil
		}
		return []Event{Key(lineedit.AltKey(rune(seq[1])))} // a control character aborted it
	}
	body, final := string(seq[2:len(seq)-1]), seq[len(seq)-1]
	switch {
	case seq[1] == 'O':
		p := parseParams(body)
		if name, ok := finalKeys[final]; ok {
			return keyEvents(lineedit.Key{Name: name}, p.modifiers(len(p)-1))
		}
		if name, ok := arrowKeys[final]; ok {
			return keyEvents(lineedit.Key{Name: name, Mod: lineedit.Ctrl}, p.modifiers(len(p)-1))
		}
		if i := int(final) - shiftedFirst; i >= 0 && i < len(shifted) {
			return keyEvents(lineedit.RuneKey(rune(shifted[i])), p.modifiers(len(p)-1))
		}
		return nil
	case seq[1] != '[' || strings.Trim(body, "0123456789;:") != "":
		return nil
	case body == "200" && final == '~':
		d.pasting = true
		return nil
	case body == "" && (final == 'I' || final == 'O'):
		return []Event{Focus{Gained: final == 'I'}}
	}
	p := parseParams(body)
	mods := p.modifiers(1)
	switch final {
	case 'Z':
		return keyEvents(lineedit.Key{Name: lineedit.Tab, Mod: lineedit.Shift}, mods)
	case 'u':
		return codeEvents(p.value(0, 0), p.value(0, 1), mods)
	case '~', '$', '^', '@':
		if final == '~' && p.value(0, 0) == 27 {
			return codeEvents(p.value(2, 0), 0, mods)
		}
		if name, ok := numberKeys[p.value(0, 0)]; ok {
			return keyEvents(lineedit.Key{Name: name, Mod: rxvtMods[final]}, mods)
		}
		return nil
	}
	if name, ok := arrowKeys[final]; ok {
		return keyEvents(lineedit.Key{Name: name, Mod: lineedit.Shift}, mods)
	}
	if name, ok := finalKeys[final]; ok && final != 'M' {
		return keyEvents(lineedit.Key{Name: name}, mods)
	}
	return nil
}

// modifiers is the modifiers held with a key, and whether the key is for us: keys for the window system, and
// key releases, are not.
type modifiers struct {
	mod    lineedit.Mod
	ignore bool
}

func keyEvents(k lineedit.Key, h modifiers) []Event {
	if h.ignore {
		return nil
	}
	k.Mod |= h.mod
	return []Event{Key(k)}
}

// codeEvents returns the key with the character code, which becomes shifted if that is known and Shift is
// held.
func codeEvents(code, shifted int, h modifiers) []Event {
	if name, ok := codeKeys[code]; ok {
		return keyEvents(lineedit.Key{Name: name}, h)
	}
	if i := code - keypadFirst; i >= 0 && i < len(keypad) {
		return keyEvents(lineedit.RuneKey(rune(keypad[i])), h)
	}
	r := rune(code)
	if !utf8.ValidRune(r) || !unicode.IsGraphic(r) {
		return nil
	}
	k := canonicalKey(applyShift(r, rune(shifted), h.mod))
	return keyEvents(k, modifiers{ignore: h.ignore})
}

// applyShift applies Shift to the character.
func applyShift(r, shifted rune, mod lineedit.Mod) lineedit.Key {
	if mod&lineedit.Ctrl != 0 && unicode.IsLetter(r) {
		return lineedit.Key{Rune: unicode.ToLower(r), Mod: mod}
	}
	if mod&lineedit.Shift != 0 {
		if shifted <= ' ' || !utf8.ValidRune(shifted) {
			shifted = unicode.ToUpper(r)
		}
		r = shifted
	}
	return lineedit.Key{Rune: r, Mod: mod &^ lineedit.Shift}
}

// canonicalKey returns the key that has always equaled Ctrl with a character.
func canonicalKey(k lineedit.Key) lineedit.Key {
	switch k {
	case lineedit.CtrlKey('m'):
		return lineedit.Key{Name: lineedit.Enter}
	case lineedit.CtrlKey('i'):
		return lineedit.Key{Name: lineedit.Tab}
	case lineedit.CtrlKey('['):
		return lineedit.Key{Name: lineedit.Escape}
	}
	return k
}

// params are the numbers of a sequence: separated by semicolons, with parts separated by colons.
type params []string

func parseParams(body string) params { return strings.Split(body, ";") }

// value returns part j of number i; 0 if absent.
func (p params) value(i, j int) int {
	if i < 0 || i >= len(p) {
		return 0
	}
	parts := strings.Split(p[i], ":")
	if j >= len(parts) {
		return 0
	}
	n, err := strconv.Atoi(parts[j])
	if err != nil {
		return 0
	}
	return n
}

// modifiers reads number i as the modifiers plus one, with the kind of key event.
func (p params) modifiers(i int) modifiers {
	const beyond, released = 8 | 16 | 32, 3
	bits := max(0, p.value(i, 0)-1)
	mod := lineedit.Mod(bits) & (lineedit.Shift | lineedit.Alt | lineedit.Ctrl) // the same bits
	return modifiers{mod: mod, ignore: bits&beyond != 0 || p.value(i, 1) == released}
}

// parseBackground parses the background color as terminals report it: rgb:R/G/B, each of one to four
// hexadecimal digits.
func parseBackground(colour string) []Event {
	kind, values, _ := strings.Cut(colour, ":")
	parts := strings.Split(values, "/")
	if kind != "rgb" && kind != "rgba" || len(parts) < 3 {
		return nil
	}
	var bright float64
	for i, weight := range []float64{0.299, 0.587, 0.114} { // perceived brightness
		n, err := strconv.ParseUint(parts[i], 16, 16)
		if err != nil || len(parts[i]) > 4 {
			return nil
		}
		bright += weight * float64(n) / float64(uint64(1)<<(4*len(parts[i]))-1)
	}
	return []Event{Background{Light: bright > 0.5}}
}
