package event

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"coder/internal/core/jsonx"
)

// File names are bytes, and JSON is text. On record, a byte of a name that is not valid UTF-8 is NUL and
// two digits; no name contains NUL.

// MarshalJSON encodes the state with its names byte for byte.
func (s FileState) MarshalJSON() ([]byte, error) {
	type plain FileState
	s.Path, s.Link = RecordedName(s.Path), RecordedName(s.Link)
	return jsonx.Marshal(plain(s))
}

// UnmarshalJSON decodes the output of MarshalJSON.
func (s *FileState) UnmarshalJSON(data []byte) error {
	type plain FileState
	if err := json.Unmarshal(data, (*plain)(s)); err != nil {
		return err
	}
	s.Path, s.Link = unescapeName(s.Path), unescapeName(s.Link)
	return nil
}

// RecordedName returns a name as it is on record.
func RecordedName(name string) string {
	return replaceBytes(name, func(b byte) string { return "\x00" + hex.EncodeToString([]byte{b}) })
}

// DisplayName returns a file's name on one line, for people and JSON: invalid UTF-8 and control characters
// become \x and two digits.
func DisplayName(name string) string {
	shown := func(b byte) string { return fmt.Sprintf(`\x%02x`, b) }
	name = replaceBytes(name, shown)
	if !strings.ContainsFunc(name, isControl) {
		return name
	}
	var b strings.Builder
	for _, r := range name {
		if isControl(r) {
			b.WriteString(shown(byte(r)))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// replaceBytes replaces bytes of a name that are not valid UTF-8.
func replaceBytes(name string, by func(byte) string) string {
	if utf8.ValidString(name) {
		return name
	}
	var b strings.Builder
	for i := 0; i < len(name); {
		r, size := utf8.DecodeRuneInString(name[i:])
		if r == utf8.RuneError && size == 1 {
			b.WriteString(by(name[i]))
		} else {
			b.WriteString(name[i : i+size])
		}
		i += size
	}
	return b.String()
}

func unescapeName(text string) string {
	if !strings.Contains(text, "\x00") {
		return text
	}
	parts := strings.Split(text, "\x00")
	for i, part := range parts[1:] {
		if len(part) < 2 {
			return text
		}
		raw, err := hex.DecodeString(part[:2])
		if err != nil {
			return text // not written by coder
		}
		parts[i+1] = string(raw) + part[2:]
	}
	return strings.Join(parts, "")
}
