package search

import (
	"bytes"
	"context"
	"encoding/binary"
	"regexp/syntax"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"coder/internal/core/message"
)

// matcher finds the lines that match a pattern. If every match must contain something rare, it searches
// for that first, and tries the pattern only on lines with it, which is many times faster.
type matcher struct {
	prog          *syntax.Prog
	requirement   requirement
	finders       []*finder // for what a match must contain; none if that does not help
	foldsNonASCII bool      // they do not work for text with ſ or the Kelvin sign
	keepReturns   bool      // the carriage return before a line feed must be visible
	nonASCII      bool      // the pattern names non-ASCII characters
	dotAll        bool      // part of the pattern also matches line ends
	automatons    sync.Pool // automatons
}

// maxRegexp limits the size of a regular expression in bytes: its
// compiled form takes a thousand times as much memory, or more.
const maxRegexp = 4 << 10

func newMatcher(pattern string, ignoreCase bool) (*matcher, error) {
	if len(pattern) > maxRegexp {
		return nil, message.Errorf("pattern is too long (%d bytes)", len(pattern))
	}
	tree, err := parse(pattern, ignoreCase)
	if err != nil {
		return nil, err
	}
	m := &matcher{keepReturns: namesReturn(tree), nonASCII: namesNonASCII(tree), dotAll: hasMatchAll(tree)}
	if m.prog, err = syntax.Compile(tree); err != nil {
		return nil, message.Errorf("pattern: %w", err)
	}
	m.requirement, m.foldsNonASCII = findRequirement(tree)
	m.finders = newFinders(m.requirement)
	m.automatons.New = func() any { return newAutomaton(m.prog) }
	return m, nil
}

// findLines returns the matching lines of data, at most limit of them. It stops when ctx ends.
func (m *matcher) findLines(ctx context.Context, data []byte, limit int) []span {
	a := m.automatons.Get().(*automaton)
	defer m.automatons.Put(a)
	if len(m.finders) == 0 || m.foldsNonASCII && hasFoldingRunes(data) {
		return a.find(ctx, data, nil, limit)
	}
	return m.findByRequirement(ctx, a, data, limit)
}

// position returns the approximate position of the match in a matching line.
func (m *matcher) position(line []byte) int {
	a := m.automatons.Get().(*automaton)
	defer m.automatons.Put(a)
	return max(a.matchAt(line), 0)
}

// findByRequirement checks only lines that contain what a match needs.
func (m *matcher) findByRequirement(ctx context.Context, a *automaton, data []byte, limit int) (lines []span) {
	next := make([]int, len(m.finders)) // where each was last found, -1 for nowhere
	for i := range next {
		next[i] = -2 // not searched yet
	}
	for from := 0; from < len(data) && len(lines) < limit && ctx.Err() == nil; {
		at := -1
		for i, f := range m.finders {
			if next[i] != -1 && next[i] < from {
				if next[i] = f.find(data[from:]); next[i] >= 0 {
					next[i] += from
				}
			}
			if next[i] >= 0 && (at < 0 || next[i] < at) {
				at = next[i]
			}
		}
		if at < 0 {
			break
		}
		l := lineAt(data, at)
		if a.matchAt(data[l.from:l.to]) >= 0 {
			lines = append(lines, l)
		}
		from = l.to + 1
	}
	return lines
}

// hasFoldingRunes reports whether data has one of the two non-ASCII characters
// that are ASCII letters in another case: ſ and the Kelvin sign.
func hasFoldingRunes(data []byte) bool {
	return bytes.Contains(data, []byte(string(longS))) || bytes.Contains(data, []byte(string(kelvinSign)))
}

// decodeText returns a file's text in UTF-8, without a byte order mark. It treats a file as UTF-16 if it
// begins with that mark, or looks like UTF-16.
func decodeText(data []byte) []byte {
	switch head := data[:min(len(data), sniffLen)]; {
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		return decodeUTF16(data[2:], binary.LittleEndian)
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		return decodeUTF16(data[2:], binary.BigEndian)
	case bytes.IndexByte(head, 0) < 0:
	case isUTF16(head, binary.LittleEndian):
		return decodeUTF16(data, binary.LittleEndian)
	case isUTF16(head, binary.BigEndian):
		return decodeUTF16(data, binary.BigEndian)
	}
	return bytes.TrimPrefix(data, []byte("\ufeff"))
}

// isUTF16 reports whether the beginning of a file is UTF-16 text. Its zero bytes are then only among
// the high halves, and most high halves are zero if the text is Latin.
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

func decodeUTF16(data []byte, order binary.ByteOrder) []byte {
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
