package files

import (
	"bytes"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/text/encoding/charmap"
)

// The values of a PDF: numbers are float64, strings []byte, and null is nil.
type (
	pdfName string
	pdfRef  int
	pdfDict map[pdfName]any
	pdfWord string // an operator or a keyword
)

// pdfDepth is how deep values may be nested.
const pdfDepth = 50

// pdfLexer reads values one after the other. It never fails: what it cannot
// read it passes over.
type pdfLexer struct {
	b  []byte
	at int
}

func (l *pdfLexer) done() bool { l.space(); return l.at >= len(l.b) }

// space passes over white space and comments.
func (l *pdfLexer) space() {
	for ; l.at < len(l.b); l.at++ {
		if l.b[l.at] == '%' {
			if i := bytes.IndexAny(l.b[l.at:], "\r\n"); i >= 0 {
				l.at += i
				continue
			}
			l.at = len(l.b)
			return
		}
		if !isPDFSpace(l.b[l.at]) {
			return
		}
	}
}

func isPDFSpace(c byte) bool { return c == ' ' || c >= 9 && c <= 13 || c == 0 }

func isPDFDelim(c byte) bool { return bytes.IndexByte([]byte("()<>[]{}/%"), c) >= 0 }

// value reads the next value; false at the end or at a closing bracket.
func (l *pdfLexer) value(depth int) (any, bool) {
	if l.done() || depth > pdfDepth {
		return nil, false
	}
	switch c := l.b[l.at]; {
	case c == '/':
		l.at++
		return pdfName(l.name()), true
	case c == '(':
		return l.text(), true
	case c == '<' && l.ahead("<<"):
		return l.dict(depth), true
	case c == '<':
		return l.hex(), true
	case c == '[':
		l.at++
		var list []any
		for v, ok := l.value(depth + 1); ok; v, ok = l.value(depth + 1) {
			list = append(list, v)
		}
		l.close("]")
		return list, true
	case c == ']', c == '>', c == ')', c == '}', c == '{':
		return nil, false
	}
	return l.word(), true
}

func (l *pdfLexer) ahead(s string) bool { return bytes.HasPrefix(l.b[l.at:], []byte(s)) }

// chars is what comes up to the next space or delimiter.
func (l *pdfLexer) chars() []byte {
	from := l.at
	for l.at < len(l.b) && !isPDFSpace(l.b[l.at]) && !isPDFDelim(l.b[l.at]) {
		l.at++
	}
	return l.b[from:l.at]
}

func (l *pdfLexer) name() string {
	raw := l.chars()
	if bytes.IndexByte(raw, '#') < 0 {
		return string(raw)
	}
	var out []byte
	for i := 0; i < len(raw); i++ {
		if raw[i] == '#' && i+2 < len(raw) {
			if n, err := strconv.ParseUint(string(raw[i+1:i+3]), 16, 8); err == nil {
				out, i = append(out, byte(n)), i+2
				continue
			}
		}
		out = append(out, raw[i])
	}
	return string(out)
}

// word reads a number, a reference or a keyword.
func (l *pdfLexer) word() any {
	raw := l.chars()
	if len(raw) == 0 {
		l.at++
		return pdfWord("")
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		switch string(raw) {
		case "true":
			return true
		case "false":
			return false
		case "null":
			return nil
		}
		return pdfWord(raw)
	}
	if n < 0 || n != float64(int(n)) {
		return n
	}
	back := l.at // is it a reference such as "12 0 R"?
	l.space()
	generation := l.chars()
	l.space()
	if _, err := strconv.Atoi(string(generation)); err == nil && l.ahead("R") {
		l.at++
		switch end := l.at >= len(l.b) || isPDFSpace(l.b[l.at]) || isPDFDelim(l.b[l.at]); {
		case end && n == 0: // there is no object 0
			return n
		case end:
			return pdfRef(n)
		}
	}
	l.at = back
	return n
}

// close passes the bracket that ends a value, or whatever stands there instead.
func (l *pdfLexer) close(bracket string) {
	if l.ahead(bracket) {
		l.at += len(bracket)
	} else if l.at < len(l.b) && bracket != "]" {
		l.at++
	}
}

func (l *pdfLexer) dict(depth int) pdfDict {
	l.at += 2
	d := make(pdfDict)
	for {
		key, ok := l.value(depth + 1)
		if !ok {
			l.close(">>")
			return d
		}
		name, isName := key.(pdfName)
		if !isName {
			continue
		}
		v, ok := l.value(depth + 1)
		if !ok {
			l.close(">>")
			return d
		}
		d[name] = v
	}
}

// text reads a string in brackets, which may hold others.
func (l *pdfLexer) text() (out []byte) {
	open := 0
	for ; l.at < len(l.b); l.at++ {
		switch c := l.b[l.at]; c {
		case '(':
			if open++; open > 1 {
				out = append(out, c)
			}
		case ')':
			if open--; open == 0 {
				l.at++
				return out
			}
			out = append(out, c)
		case '\\':
			out = l.escape(out)
		default:
			out = append(out, c)
		}
	}
	return out
}

// escape reads what follows a backslash, and stays on its last byte.
func (l *pdfLexer) escape(out []byte) []byte {
	l.at++
	if l.at >= len(l.b) {
		return out
	}
	c := l.b[l.at]
	if i := bytes.IndexByte([]byte("nrtbf"), c); i >= 0 {
		return append(out, "\n\r\t\b\f"[i])
	}
	switch {
	case c == '\r' && l.at+1 < len(l.b) && l.b[l.at+1] == '\n':
		l.at++
		return out
	case c == '\r' || c == '\n':
		return out
	case c < '0' || c > '7':
		return append(out, c)
	}
	n, digits := 0, 0
	for ; digits < 3 && l.at < len(l.b) && l.b[l.at] >= '0' && l.b[l.at] <= '7'; digits++ {
		n = n*8 + int(l.b[l.at]-'0')
		l.at++
	}
	l.at--
	return append(out, byte(n))
}

// hex reads a string written in hexadecimal.
func (l *pdfLexer) hex() (out []byte) {
	var digits []byte
	for l.at++; l.at < len(l.b); l.at++ {
		c := l.b[l.at]
		if c == '>' {
			l.at++
			break
		}
		if !isPDFSpace(c) {
			digits = append(digits, c)
		}
	}
	if len(digits)%2 == 1 {
		digits = append(digits, '0')
	}
	for i := 0; i < len(digits); i += 2 {
		n, err := strconv.ParseUint(string(digits[i:i+2]), 16, 8)
		if err != nil {
			return out
		}
		out = append(out, byte(n))
	}
	return out
}

// encoding is what the codes of a font of one byte stand for, as far as the
// font says something about them.
func (d *pdfDoc) encoding(v any) map[int]string {
	base, text := d.get(v), make(map[int]string)
	dict := dictOf(base)
	if dict != nil {
		base = d.get(dict["BaseEncoding"])
	}
	if base == pdfName("MacRomanEncoding") {
		for code := 0x80; code <= 0xff; code++ {
			text[code] = string(charmap.Macintosh.DecodeByte(byte(code)))
		}
	}
	code := 0
	for _, v := range d.list(dict["Differences"]) {
		switch v := d.get(v).(type) {
		case float64:
			code = int(v)
		case pdfName:
			s, ok := glyph(string(v))
			if !ok && v != ".notdef" {
				s = unknownText
			}
			text[code] = s
			code++
		}
	}
	return text
}

// glyph is the text that a glyph is named for.
func glyph(name string) (string, bool) {
	name, _, _ = strings.Cut(name, ".") // a variant looks different and means the same
	if len([]rune(name)) == 1 {
		return name, true
	}
	if s, ok := glyphs()[name]; ok {
		return s, true
	}
	for _, prefix := range []string{"uni", "u"} {
		hex, ok := strings.CutPrefix(name, prefix)
		if n, err := strconv.ParseUint(hex, 16, 32); ok && err == nil && len(hex) >= 4 && len(hex) <= 6 {
			return string(rune(n)), true
		}
	}
	return "", false
}

// glyphs are the names that fonts of Latin script use beside the letters.
var glyphs = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"space": " ", "exclam": "!", "quotedbl": "\"", "numbersign": "#", "dollar": "$", "percent": "%", "ampersand": "&",
		"quotesingle": "'", "parenleft": "(", "parenright": ")", "asterisk": "*", "plus": "+", "comma": ",", "hyphen": "-",
		"period": ".", "slash": "/", "zero": "0", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6",
		"seven": "7", "eight": "8", "nine": "9", "colon": ":", "semicolon": ";", "less": "<", "equal": "=", "greater": ">",
		"question": "?", "at": "@", "bracketleft": "[", "backslash": "\\", "bracketright": "]", "asciicircum": "^",
		"underscore": "_", "grave": "`", "braceleft": "{", "bar": "|", "braceright": "}", "asciitilde": "~", "minus": "−",
		"quoteleft": "‘", "quoteright": "’", "quotedblleft": "“", "quotedblright": "”", "quotesinglbase": "‚", "quotedblbase": "„",
		"endash": "–", "emdash": "—", "bullet": "•", "ellipsis": "…", "dagger": "†", "daggerdbl": "‡", "Euro": "€", "trademark": "™",
		"fi": "fi", "fl": "fl", "ff": "ff", "ffi": "ffi", "ffl": "ffl", "germandbls": "ß", "section": "§", "degree": "°",
		"copyright": "©", "registered": "®", "mu": "µ", "multiply": "×", "divide": "÷", "plusminus": "±", "periodcentered": "·",
		"guillemotleft": "«", "guillemotright": "»", "guilsinglleft": "‹", "guilsinglright": "›", "nbspace": "\u00a0",
		"Adieresis": "Ä", "Odieresis": "Ö", "Udieresis": "Ü", "adieresis": "ä", "odieresis": "ö", "udieresis": "ü",
		"eacute": "é", "egrave": "è", "ecircumflex": "ê", "edieresis": "ë", "aacute": "á", "agrave": "à", "acircumflex": "â",
		"aring": "å", "atilde": "ã", "iacute": "í", "igrave": "ì", "icircumflex": "î", "idieresis": "ï", "oacute": "ó", "ograve": "ò",
		"ocircumflex": "ô", "otilde": "õ", "uacute": "ú", "ugrave": "ù", "ucircumflex": "û", "ccedilla": "ç", "ntilde": "ñ",
		"Eacute": "É", "Aring": "Å", "Ccedilla": "Ç", "Ntilde": "Ñ", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "oslash": "ø", "Oslash": "Ø",
		"dotlessi": "ı", "lslash": "ł", "Lslash": "Ł", "scaron": "š", "Scaron": "Š", "zcaron": "ž", "Zcaron": "Ž",
	}
})
