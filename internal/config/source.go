package config

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

const (
	maxFileBytes = 1 << 20 // of a settings file
	maxDepth     = 64      // of brackets in it
)

// Error is a mistake in the settings.
type Error struct {
	Source string // a file, a variable or a flag
	Line   int    // from 1; zero where there are no lines
	Column int    // from 1, in bytes
	Key    string // the setting, with dots; may be empty
	Text   string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Source + ": " + e.Text
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.Source, e.Line, e.Column, e.Text)
}

// source is a parsed file.
type source struct {
	name   string
	root   hujson.Value
	starts []int // offset of each line's first byte
}

var bom = []byte("\xef\xbb\xbf")

// parse reads JSON with comments and trailing commas. A file of nothing is an
// empty object.
func parse(name string, data []byte) (*source, error) {
	data = bytes.TrimPrefix(data, bom)
	s := &source{name: name, starts: []int{0}}
	for i, c := range data {
		if c == '\n' {
			s.starts = append(s.starts, i+1)
		}
	}
	if len(data) > maxFileBytes {
		return nil, s.error(0, "", fmt.Sprintf("the file is larger than %d bytes", maxFileBytes))
	}
	if len(bytes.TrimSpace(data)) == 0 {
		s.root.Value = &hujson.Object{}
		return s, nil
	}
	if at := tooDeep(data); at >= 0 {
		return nil, s.error(at, "", fmt.Sprintf("brackets are nested more than %d deep", maxDepth))
	}
	root, err := hujson.Parse(data)
	if err == nil {
		s.root = root
		return s, nil
	}
	e := &Error{Source: s.name, Line: 1, Column: 1}
	place, what, _ := strings.Cut(err.Error(), ": line ") // the parser's complaint, in our form
	if _, err := fmt.Sscanf(what, "%d, column %d: ", &e.Line, &e.Column); err == nil {
		_, what, _ = strings.Cut(what, ": ")
		place = ""
	}
	e.Text = "not JSON: " + brief(place+what)
	return nil, e
}

// line is the number of the line that offset is on.
func (s *source) line(offset int) int {
	i, found := slices.BinarySearch(s.starts, offset)
	if found {
		return i + 1
	}
	return i
}

func (s *source) error(offset int, key, text string) *Error {
	line := s.line(offset)
	return &Error{Source: s.name, Line: line, Column: offset - s.starts[line-1] + 1, Key: key, Text: text}
}

// tooDeep returns the offset of the bracket that nests too deep, or -1.
func tooDeep(data []byte) int {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			if depth++; depth > maxDepth {
				return i
			}
		case '}', ']':
			depth--
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case '/':
			i = commentEnd(data, i)
		}
	}
	return -1
}

// commentEnd is the offset of the last byte of the comment that starts at i;
// i itself if none does.
func commentEnd(data []byte, i int) int {
	for open, end := range map[string]string{"//": "\n", "/*": "*/"} {
		if !bytes.HasPrefix(data[i:], []byte(open)) {
			continue
		}
		n := bytes.Index(data[i+2:], []byte(end))
		if n < 0 {
			return len(data)
		}
		return i + 2 + n + len(end) - 1
	}
	return i
}

// found describes a value for a person.
func found(v hujson.Value) string {
	switch lit := v.Value.(type) {
	case *hujson.Object:
		return "an object"
	case *hujson.Array:
		return "a list"
	case hujson.Literal:
		return brief(string(lit))
	}
	return "nothing"
}

// brief keeps a complaint to one line of bearable length.
func brief(s string) string {
	const most = 80
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// asObject returns the members of v, or an error if it is something else.
func asObject(v hujson.Value) (*hujson.Object, error) {
	if o, ok := v.Value.(*hujson.Object); ok {
		return o, nil
	}
	return nil, errors.New("want an object, found " + found(v))
}

func memberName(m hujson.ObjectMember) string {
	return m.Name.Value.(hujson.Literal).String()
}
