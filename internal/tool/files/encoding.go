package files

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"
)

// errEncoding is the error of a file in an encoding that is not known, and
// errUTF16 that of one in an encoding that is. Neither is ever written: what
// cannot be read for certain cannot be put back.
var (
	errEncoding = errors.New("the file is not UTF-8; change it with a command that knows its encoding")
	errUTF16    = errors.New("the file is UTF-16 text, which this tool does not handle; convert it to UTF-8 with iconv, or use a command that knows UTF-16")
)

// isBinary reports whether b, the beginning of a file, is not text in an
// encoding that keeps ASCII.
func isBinary(b []byte) bool { return bytes.IndexByte(b[:min(len(b), sniffLen)], 0) >= 0 }

// textOnly refuses to treat as text what is not.
func textOnly(path string, b []byte) error {
	switch {
	case isUTF16(b):
		return fmt.Errorf("%s: %w", path, errUTF16)
	case bytes.IndexByte(b, 0) >= 0:
		return fmt.Errorf("%s is a binary file", path)
	case !utf8.Valid(b):
		return fmt.Errorf("%s: %w", path, errEncoding)
	}
	return nil
}

// isUTF16 reports whether b, the beginning of a file or all of it, is UTF-16:
// by its mark, or because every other byte is zero, as in Latin text, and none
// of the rest.
func isUTF16(b []byte) bool {
	const least = 4 // bytes, to tell without a mark
	b = b[:min(len(b), sniffLen)]
	if bytes.HasPrefix(b, []byte("\xff\xfe")) && !bytes.HasPrefix(b, []byte("\xff\xfe\x00\x00")) || bytes.HasPrefix(b, []byte("\xfe\xff")) {
		return true
	}
	var zero [2]int
	for i, c := range b {
		if c == 0 {
			zero[i%2]++
		}
	}
	half := len(b) / 2
	return len(b) >= least && len(b)%2 == 0 && (zero[0] == half && zero[1] == 0 || zero[1] == half && zero[0] == 0)
}

// guessEncoding says what a text that is not UTF-8 may be: in Western European
// ones bytes beyond ASCII mostly stand alone among letters, in others not.
func guessEncoding(b []byte) string {
	alone, together, run := 0, 0, 0
	for i := 0; i <= len(b); i++ {
		switch {
		case i < len(b) && b[i] >= utf8.RuneSelf:
			run++
			continue
		case run == 1:
			alone++
		default:
			together += run
		}
		run = 0
	}
	if together > alone {
		return "GBK, Big5, Shift-JIS, EUC-JP, EUC-KR or an encoding of Cyrillic"
	}
	return "Latin-1 or another encoding of one byte to a character"
}

// unreadable is the note on text that was shown although not all of it could be
// read.
func unreadable(sample []byte) string {
	return "the file is not valid UTF-8 and its encoding is not supported; bytes that could not be read are shown as \ufffd. " +
		"It may be " + guessEncoding(sample) + ": iconv -f ENCODING -t UTF-8 shows it as it is"
}
