//go:build unix

package tty

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"coder/internal/ui/lineedit"
)

// Limits of one item from a terminal.
const (
	maxPaste    = 64 << 20
	maxSequence = 1 << 20
)

const (
	esc      = 0x1b
	pasteEnd = "\x1b[201~"
	ctrlC    = 0x03
)

// Decoder turns the bytes from a terminal into events. How the bytes are split into reads changes
// nothing. An escape sequence is consumed whole: an unknown one is dropped, never typed. A control
// character inside one aborts it, so that no garbage can lock the keyboard. The zero Decoder is ready to
// use.
type Decoder struct {
	buf       []byte // start of an incomplete item
	paste     []byte
	pasting   bool
	truncated bool // the open paste is too long
}

// Feed decodes p, after the bytes left from before.
func (d *Decoder) Feed(p []byte) (events []Event) {
	in := append(d.buf, p...)
	for len(in) > 0 {
		take := d.decodeItem
		if d.pasting {
			take = d.decodePaste
		}
		n, event := take(in)
		if n == 0 {
			break
		}
		in = in[n:]
		events = append(events, event...)
	}
	d.buf = append(d.buf[:0], in...)
	return events
}

// HasPending reports whether the input ends with something that may be complete, such as a lone escape
// character. After a while without more input, [Decoder.Flush] treats it as complete.
func (d *Decoder) HasPending() bool {
	if d.pasting {
		return len(d.paste) > 0 && d.paste[len(d.paste)-1] == ctrlC
	}
	_, ok := d.decodeAsKeys()
	return ok
}

// Flush decodes the remaining bytes as complete. It still waits for the rest of a longer sequence: no
// user types half of one. A Ctrl+C at the end of a paste that does not continue is a key: the end of the
// paste was lost.
func (d *Decoder) Flush() []Event {
	if d.pasting {
		if !d.HasPending() {
			return nil
		}
		d.paste = d.paste[:len(d.paste)-1]
		return append(d.endPaste(), Key(lineedit.CtrlKey('c')))
	}
	events, ok := d.decodeAsKeys()
	if ok {
		d.buf = d.buf[:0]
	}
	return events
}

// decodeAsKeys reads the remaining bytes as keys, if possible.
func (d *Decoder) decodeAsKeys() ([]Event, bool) {
	buf := d.buf
	switch {
	case len(buf) == 0:
		return nil, false
	case buf[0] != esc:
		return []Event{Key(lineedit.RuneKey(utf8.RuneError))}, true
	case len(buf) == 1:
		return []Event{namedKey(lineedit.Escape)}, true
	case buf[1] == esc && len(buf) == 2:
		return []Event{namedKey(lineedit.Escape), namedKey(lineedit.Escape)}, true
	case buf[1] == esc && len(buf) == 3:
		return []Event{namedKey(lineedit.Escape), Key(lineedit.AltKey(rune(buf[2])))}, true
	case buf[1] >= utf8.RuneSelf:
		return []Event{Key(lineedit.AltKey(utf8.RuneError))}, true
	case len(buf) == 2:
		return []Event{Key(lineedit.AltKey(rune(buf[1])))}, true
	}
	return nil, false
}

// decodeItem decodes the first item of in, which is not empty, and returns its length and meaning; length 0 if
// more bytes are needed.
func (d *Decoder) decodeItem(in []byte) (int, []Event) {
	switch b := in[0]; {
	case b == esc:
		// A sequence, or a key with Alt
		if len(in) < 2 {
			return 0, nil
		}
		switch in[1] {
		case esc:
			// Any other two escape characters are an Esc before something else
			if len(in) < 3 {
				return 0, nil
			}
			if in[2] != '[' && in[2] != 'O' {
				return 1, []Event{namedKey(lineedit.Escape)}
			}
			n := sequenceLen(in[1:])
			if n == 0 {
				return 0, nil
			}
			events := d.decodeSequence(in[1 : n+1])
			if len(events) == 1 {
				if _, ok := events[0].(Key); ok {
					return n + 1, addAlt(events)
				}
			}
			return n + 1, append([]Event{namedKey(lineedit.Escape)}, events...)
		case '[', 'O', 'P', ']', 'X', '^', '_':
			n := sequenceLen(in)
			return n, d.decodeSequence(in[:n])
		}
		n, events := d.decodeItem(in[1:])
		if n == 0 {
			return 0, nil
		}
		return n + 1, addAlt(events)
	case b < 0x20 || b == 0x7f:
		return 1, []Event{controlKey(b)}
	case !utf8.FullRune(in):
		return 0, nil
	}
	r, n := utf8.DecodeRune(in)
	if r >= 0x80 && r < 0xa0 {
		return n, nil
	}
	return n, []Event{Key(lineedit.RuneKey(r))}
}

func addAlt(events []Event) []Event {
	for i, e := range events {
		if k, ok := e.(Key); ok {
			k.Mod |= lineedit.Alt
			events[i] = k
		}
	}
	return events
}

// sequenceLen returns the length of the escape sequence at the start of in, 0 if more is needed to tell.
func sequenceLen(in []byte) int {
	n := 0
	switch in[1] {
	case '[':
		n = controlSequenceLen(in)
	case 'O':
		n = singleShiftLen(in)
	default:
		n = controlStringLen(in)
	}
	if n == 0 && len(in) > maxSequence {
		return maxSequence
	}
	return n
}

// controlSequenceLen measures ESC [ parameters final, and the few nonstandard forms of some terminals: ESC
// [ [ A, ESC [ M with three bytes of a mouse, and ESC [ 3 $.
func controlSequenceLen(in []byte) int {
	for i := 2; i < len(in); i++ {
		switch b := in[i]; {
		case i == 2 && b == '[':
			return fixedLen(in, 4)
		case i == 2 && b == 'M':
			return fixedLen(in, 6)
		case b == '$' && len(bytes.Trim(in[2:i], "0123456789")) == 0 && i > 2:
			return i + 1
		case b < 0x20 || b >= 0x7f:
			return i
		case b >= 0x40:
			return i + 1
		}
	}
	return 0
}

// singleShiftLen measures ESC O final; a few terminals put modifiers before final.
func singleShiftLen(in []byte) int {
	for i := 2; i < len(in); i++ {
		switch b := in[i]; {
		case b < 0x20 || b >= 0x7f:
			return i
		case b >= '0' && b <= '9' || b == ';':
		default:
			return i + 1
		}
	}
	return 0
}

// fixedLen measures a sequence of n bytes, unless a control character aborts it.
func fixedLen(in []byte, n int) int {
	for i := 3; i < n && i < len(in); i++ {
		if in[i] < 0x20 {
			return i
		}
	}
	if len(in) < n {
		return 0
	}
	return n
}

// controlStringLen measures a string up to BEL or ESC \.
func controlStringLen(in []byte) int {
	for i := 2; i < len(in); i++ {
		switch b := in[i]; {
		case b == '\a':
			return i + 1
		case b == esc && i+1 == len(in):
			return 0
		case b == esc && in[i+1] == '\\':
			return i + 2
		case b < 0x20:
			return i
		}
	}
	return 0
}

// decodePaste adds to the open paste, up to its end. A possible start of the end is left for later.
func (d *Decoder) decodePaste(in []byte) (int, []Event) {
	if i := bytes.Index(in, []byte(pasteEnd)); i >= 0 {
		d.addPaste(in[:i])
		return i + len(pasteEnd), d.endPaste()
	}
	n := len(in)
	for k := min(n, len(pasteEnd)-1); k > 0; k-- {
		if bytes.HasSuffix(in, []byte(pasteEnd[:k])) {
			n -= k
			break
		}
	}
	d.addPaste(in[:n])
	return n, nil
}

func (d *Decoder) addPaste(b []byte) {
	if room := maxPaste - len(d.paste); len(b) > room {
		b, d.truncated = b[:room], true
	}
	d.paste = append(d.paste, b...)
}

func (d *Decoder) endPaste() []Event {
	p := Paste{Text: strings.ToValidUTF8(string(d.paste), string(utf8.RuneError)), Truncated: d.truncated}
	d.paste, d.pasting, d.truncated = nil, false, false
	return []Event{p}
}
