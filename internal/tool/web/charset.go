package web

import (
	"bytes"
	"encoding/binary"
	"regexp"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/simplifiedchinese"

	"coder/internal/core/sanitize"
)

// declared finds the encoding that a document names itself, near its beginning.
// It is made when first needed: compiling it is dear, and most sessions never
// fetch anything.
var declared = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:<meta[^>]{0,200}charset\s*=|<\?xml[^>]{0,100}encoding\s*=)\s*["']?\s*([a-z0-9_:.-]{1,40})`)
})

// declaredWithin is how far into a document its encoding is looked for.
const declaredWithin = 2048

// decode makes text of a body, and remarks on what it had to guess or give up.
// A byte order mark counts more than what the server says, and that more than
// what the document says.
func decode(body []byte, charset string, markup bool) (text, remark string) {
	switch {
	case bytes.HasPrefix(body, []byte("\xef\xbb\xbf")):
		return string(body[3:]), ""
	case bytes.HasPrefix(body, []byte("\xff\xfe")):
		return decodeUTF16(body[2:], binary.LittleEndian), ""
	case bytes.HasPrefix(body, []byte("\xfe\xff")):
		return decodeUTF16(body[2:], binary.BigEndian), ""
	}
	if charset == "" && markup {
		if m := declared().FindSubmatch(body[:min(len(body), declaredWithin)]); m != nil {
			charset = string(m[1])
		}
	}
	return decodeAs(body, strings.ToLower(strings.TrimSpace(charset)))
}

func decodeAs(body []byte, charset string) (text, remark string) {
	switch charset {
	case "utf-8", "utf8", "us-ascii", "ascii":
		if charset[0] == 'u' && charset[1] == 't' || utf8.Valid(body) {
			return string(body), ""
		}
		return decodeLatin(body), ""
	case "":
		if utf8.Valid(body) {
			return string(body), ""
		}
		return decodeLatin(body), "its encoding is not named; it was read as windows-1252"
	case "iso-8859-1", "iso8859-1", "latin1", "latin-1", "l1", "windows-1252", "cp1252":
		return decodeLatin(body), ""
	case "utf-16", "utf-16le":
		return decodeUTF16(body, binary.LittleEndian), ""
	case "utf-16be":
		return decodeUTF16(body, binary.BigEndian), ""
	}
	shifts := strings.HasPrefix(charset, "iso-2022-") || charset == "csiso2022jp" || strings.HasPrefix(charset, "hz") // and is ASCII all the same
	if utf8.Valid(body) && !shifts {                                                                                  // as happens to be so more often than not
		return string(body), ""
	}
	known, err := htmlindex.Get(charset)
	if charset == "hz-gb-2312" {
		known = simplifiedchinese.HZGB2312 // which browsers do not read any more
	}
	if name, _ := htmlindex.Name(known); err == nil && name != "replacement" {
		if text, err := known.NewDecoder().Bytes(body); err == nil {
			return string(text), ""
		}
	}
	return asciiOnly(body), "its encoding, " + sanitize.Line(charset, 40) + ", is not known here; all but ASCII was replaced"
}

// wholeRunes is body without the beginning of a rune that was cut off.
func wholeRunes(body []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(body); i++ {
		if end := body[len(body)-i:]; utf8.RuneStart(end[0]) {
			if !utf8.FullRune(end) {
				body = body[:len(body)-i]
			}
			break
		}
	}
	return body
}

// windows1252 are the runes of the bytes from 0x80 to 0x9f; all others are as in
// Unicode.
var windows1252 = []rune("€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ")

func decodeLatin(body []byte) string {
	var b strings.Builder
	b.Grow(len(body) + len(body)/8)
	for _, c := range body {
		if c >= 0x80 && c < 0xa0 {
			b.WriteRune(windows1252[c-0x80])
			continue
		}
		b.WriteRune(rune(c))
	}
	return b.String()
}

func decodeUTF16(body []byte, order binary.ByteOrder) string {
	units := make([]uint16, len(body)/2)
	for i := range units {
		units[i] = order.Uint16(body[2*i:])
	}
	return string(utf16.Decode(units))
}

// asciiOnly replaces every run of other bytes by one mark.
func asciiOnly(body []byte) string {
	var b strings.Builder
	b.Grow(len(body))
	other := false
	for _, c := range body {
		if c < utf8.RuneSelf {
			b.WriteByte(c)
		} else if !other {
			b.WriteRune(utf8.RuneError)
		}
		other = c >= utf8.RuneSelf
	}
	return b.String()
}
