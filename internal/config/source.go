package config

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"coder/internal/core/jsonx"
	"coder/internal/core/message"

	"github.com/tailscale/hujson"
)

const (
	maxFileBytes = 1 << 20 // of a settings file
	maxDepth     = 64      // of nested brackets
)

// Error is an error in the settings.
type Error struct {
	Source string // a file, a variable or a flag
	Line   int    // from 1; zero if there are no lines
	Column int    // from 1, in bytes
	Key    string // the setting's key; may be empty
	Text   string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Source + ": " + e.Text
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.Source, e.Line, e.Column, e.Text)
}

// source is a parsed config file.
type source struct {
	name       string
	root       hujson.Value
	lineStarts []int // offset of each line's first byte
}

var utf8BOM = []byte("\xef\xbb\xbf")

// parseConfig parses a config file: JSON with comments and trailing commas. An empty file is an empty object.
func parseConfig(name string, data []byte) (*source, error) {
	data = bytes.TrimPrefix(data, utf8BOM)
	s := &source{name: name, lineStarts: []int{0}}
	for i, c := range data {
		if c == '\n' {
			s.lineStarts = append(s.lineStarts, i+1)
		}
	}
	if len(data) > maxFileBytes {
		return nil, s.errorAt(0, "", fmt.Sprintf("the file is larger than %d bytes", maxFileBytes))
	}
	if len(bytes.TrimSpace(data)) == 0 {
		s.root.Value = &hujson.Object{}
		return s, nil
	}
	if at := findTooDeep(data); at >= 0 {
		return nil, s.errorAt(at, "", fmt.Sprintf("brackets are nested more than %d levels deep", maxDepth))
	}
	root, err := hujson.Parse(data)
	if err == nil {
		s.root = root
		return s, nil
	}
	e := &Error{Source: s.name, Line: 1, Column: 1}
	place, what, _ := strings.Cut(err.Error(), ": line ") // the parser's error in coder's form
	if _, err := fmt.Sscanf(what, "%d, column %d: ", &e.Line, &e.Column); err == nil {
		_, what, _ = strings.Cut(what, ": ")
		place = ""
	}
	e.Text = "not JSON: " + shorten(place+what)
	return nil, e
}

// lineAt returns the number of the line at offset.
func (s *source) lineAt(offset int) int {
	i, found := slices.BinarySearch(s.lineStarts, offset)
	if found {
		return i + 1
	}
	return i
}

func (s *source) errorAt(offset int, key, text string) *Error {
	line := s.lineAt(offset)
	return &Error{Source: s.name, Line: line, Column: offset - s.lineStarts[line-1] + 1, Key: key, Text: text}
}

// findTooDeep returns the offset of the bracket that is nested too deep, or -1.
func findTooDeep(data []byte) int {
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

// commentEnd returns the offset of the last byte of the comment that starts at i; i itself if there is none.
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

// describeFound describes a value for messages.
func describeFound(v hujson.Value) string {
	switch lit := v.Value.(type) {
	case *hujson.Object:
		return "an object"
	case *hujson.Array:
		return "a list"
	case hujson.Literal:
		return shorten(string(lit))
	}
	return "nothing"
}

// shorten shortens a message to one line.
func shorten(s string) string {
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

// toObject returns the members of v, or an error if it is something else.
func toObject(v hujson.Value) (*hujson.Object, error) {
	if o, ok := v.Value.(*hujson.Object); ok {
		return o, nil
	}
	return nil, errors.New("expected an object, found " + describeFound(v))
}

func memberName(m hujson.ObjectMember) string {
	return m.Name.Value.(hujson.Literal).String()
}

// SetValue changes one key in the text of a settings file and leaves the rest of it,
// including comments, byte for byte unchanged. Empty content becomes a file.
func SetValue(content []byte, key string, value any) (out []byte, err error) {
	defer func() {
		if err != nil {
			out, err = nil, message.Errorf("set %s: %w", key, err)
		}
	}()
	text, err := jsonx.Marshal(value)
	if err != nil {
		return nil, err
	}
	l := newLoader(Options{}) // check that the value is valid
	f, words, ok := l.root.find(key)
	if !ok {
		return nil, errors.New(unknownKeyMessage(l.root, f, words, key))
	}
	src, err := parseConfig("value", text)
	if err != nil {
		return nil, err
	}
	y := layer{loader: l, name: "value"}
	if y.applyAt(key, src.root); len(l.errs) > 0 {
		return nil, errors.Join(l.errs...)
	}
	content, hadBOM := bytes.CutPrefix(content, utf8BOM)
	if len(bytes.TrimSpace(content)) == 0 {
		content = []byte("{}\n")
	}
	if src, err = parseConfig("settings", content); err != nil {
		return nil, err
	}
	e := &editor{content: content, newline: "\n", unit: "  "}
	if bytes.Contains(content, []byte("\r\n")) {
		e.newline = "\r\n"
	}
	for line := range bytes.Lines(content) {
		if in := indentation(line); in != "" && line[len(in)] == '"' {
			e.unit = in
			break
		}
	}
	out, err = e.setMember(src.root, splitKey(key), string(text))
	if hadBOM && err == nil {
		out = append(bytes.Clone(utf8BOM), out...)
	}
	return out, err
}

// editor changes a text in its own style.
type editor struct {
	content []byte
	newline string
	unit    string // one level of indentation
}

func indentation(line []byte) string {
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// setMember replaces the value at words below v.
func (e *editor) setMember(v hujson.Value, words []string, text string) ([]byte, error) {
	o, err := toObject(v)
	if err != nil {
		return nil, err
	}
	for _, m := range o.Members {
		if memberName(m) != words[0] {
			continue
		}
		if len(words) == 1 {
			return e.splice(m.Value.StartOffset, m.Value.EndOffset, text), nil
		}
		return e.setMember(m.Value, words[1:], text)
	}
	return e.addMember(v, o, words, text), nil
}

func (e *editor) splice(from, to int, text string) []byte {
	return slices.Concat(e.content[:from], []byte(text), e.content[to:])
}

// addMember adds a member at the end of o, which is the value of v.
func (e *editor) addMember(v hujson.Value, o *hujson.Object, words []string, text string) []byte {
	brace := v.EndOffset - 1 // the brace that closes o
	outer := e.lineIndent(v.StartOffset)
	if len(o.Members) == 0 {
		inner := outer + e.unit
		body := e.newline + inner + e.renderMember(words, text, inner) + e.newline + outer
		return e.splice(e.trimSpaceBefore(brace), brace, body)
	}
	last := o.Members[len(o.Members)-1]
	comma := last.Value.EndOffset + len(last.Value.AfterExtra)
	trailing := e.content[comma] == ','
	lead, inner := " ", outer
	if bytes.Contains(last.Name.BeforeExtra, []byte("\n")) || bytes.Contains(o.AfterExtra, []byte("\n")) {
		inner = e.lineIndent(last.Name.StartOffset)
		lead = e.newline + inner
	}
	member := lead + e.renderMember(words, text, inner)
	at := e.trimSpaceBefore(brace)
	if trailing {
		return e.splice(at, at, member+",")
	}
	out := e.splice(at, at, member)
	return (&editor{content: out}).splice(last.Value.EndOffset, last.Value.EndOffset, ",")
}

// renderMember writes "key": text, within as many objects as words require.
func (e *editor) renderMember(words []string, text, indent string) string {
	name := hujson.String(words[0])
	if len(words) == 1 {
		return string(name) + ": " + text
	}
	inner := indent + e.unit
	return string(name) + ": {" + e.newline + inner + e.renderMember(words[1:], text, inner) + e.newline + indent + "}"
}

// lineIndent returns the indentation of the line at offset.
func (e *editor) lineIndent(offset int) string {
	start := bytes.LastIndexByte(e.content[:offset], '\n') + 1
	return indentation(e.content[start:offset])
}

// trimSpaceBefore returns the offset after the last byte before offset that is not white space.
func (e *editor) trimSpaceBefore(offset int) int {
	return len(bytes.TrimRight(e.content[:offset], " \t\r\n"))
}
