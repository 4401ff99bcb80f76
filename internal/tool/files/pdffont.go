package files

import (
	"strconv"
	"strings"

	"golang.org/x/text/encoding/charmap"
)

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
	if s, ok := glyphs[name]; ok {
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
var glyphs = map[string]string{
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
