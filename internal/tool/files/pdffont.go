package files

import (
	"strings"
	"unicode/utf16"

	"golang.org/x/text/encoding/charmap"
)

// cmap turns the codes of a font into text.
type cmap struct {
	wide bool // codes have two bytes
	ucs  bool // which are the text in UTF-16
	text map[int]string
}

// maxRange is how many codes one line of a cmap may speak of.
const maxRange = 1 << 16

// readCMap reads the lines "<code> <text>" and "<from> <to> <text>".
func readCMap(b []byte, wide bool) *cmap {
	m := &cmap{wide: wide, text: make(map[int]string)}
	for word, args := range pdfOperators(b) {
		switch word {
		case "endbfchar":
			for i := 0; i+1 < len(args); i += 2 {
				m.add(args[i], args[i], args[i+1])
			}
		case "endbfrange":
			for i := 0; i+2 < len(args); i += 3 {
				m.add(args[i], args[i+1], args[i+2])
			}
		}
	}
	return m
}

func (m *cmap) add(from, to, text any) {
	a, okA := from.([]byte)
	b, okB := to.([]byte)
	if !okA || !okB {
		return
	}
	first, last := codeOf(a), codeOf(b)
	for i := 0; i <= last-first && i < maxRange; i++ {
		switch t := text.(type) {
		case []byte:
			u := utf16Of(t)
			if len(u) > 0 {
				u[len(u)-1] += uint16(i)
			}
			m.text[first+i] = string(utf16.Decode(u))
		case []any:
			if i >= len(t) {
				return
			}
			s, _ := t[i].([]byte)
			m.text[first+i] = string(utf16.Decode(utf16Of(s)))
		}
	}
}

func codeOf(b []byte) (n int) {
	for _, c := range b[:min(len(b), 3)] {
		n = n<<8 | int(c)
	}
	return n
}

func utf16Of(b []byte) (u []uint16) {
	for i := 0; i+1 < len(b); i += 2 {
		u = append(u, uint16(b[i])<<8|uint16(b[i+1]))
	}
	return u
}

// unknownText stands for what cannot be read.
const unknownText = "\ufffd"

// decode is the text of a string in this font. Without a map, codes of one byte
// are taken as windows-1252, and wide ones cannot be read.
func (m *cmap) decode(b []byte) string {
	if m != nil && m.ucs {
		return string(utf16.Decode(utf16Of(b)))
	}
	var out strings.Builder
	step := 1
	if m != nil && m.wide {
		step = 2
	}
	for i := 0; i+step <= len(b); i += step {
		code := codeOf(b[i : i+step])
		if m != nil && m.text != nil {
			if s, ok := m.text[code]; ok {
				out.WriteString(s)
				continue
			}
		}
		switch {
		case step > 1:
			out.WriteString(unknownText)
		case code >= ' ' && code != 0x7f:
			out.WriteRune(charmap.Windows1252.DecodeByte(byte(code)))
		}
	}
	return out.String()
}
