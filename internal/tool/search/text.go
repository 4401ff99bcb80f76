package search

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// decoded is the text of a file in UTF-8, without a byte order mark: those that
// begin with the one of UTF-16, or look like it without, are in that.
func decoded(data []byte) []byte {
	switch head := data[:min(len(data), sniffLen)]; {
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		return fromUTF16(data[2:], binary.LittleEndian)
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		return fromUTF16(data[2:], binary.BigEndian)
	case bytes.IndexByte(head, 0) < 0:
	case isUTF16(head, binary.LittleEndian):
		return fromUTF16(data, binary.LittleEndian)
	case isUTF16(head, binary.BigEndian):
		return fromUTF16(data, binary.BigEndian)
	}
	return bytes.TrimPrefix(data, []byte("\ufeff"))
}

// isUTF16 reports whether the beginning of a file is text in UTF-16, whose zero
// bytes are then on one side only: on that of the higher halves, and most of
// those where the text is Latin.
func isUTF16(head []byte, order binary.ByteOrder) bool {
	high := 0
	if order == binary.ByteOrder(binary.LittleEndian) {
		high = 1
	}
	var zero [2]int
	for i, c := range head {
		if c == 0 {
			zero[i%2]++
		}
	}
	return len(head)%2 == 0 && zero[1-high] == 0 && zero[high] >= len(head)/2*9/10
}

func fromUTF16(data []byte, order binary.ByteOrder) []byte {
	text := make([]byte, 0, len(data))
	for i := 0; i+1 < len(data); i += 2 {
		r := rune(order.Uint16(data[i:]))
		if utf16.IsSurrogate(r) {
			low := rune(0)
			if i+3 < len(data) {
				low = rune(order.Uint16(data[i+2:]))
			}
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				i += 2
			}
		}
		text = utf8.AppendRune(text, r)
	}
	return text
}
