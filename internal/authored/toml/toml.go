// Package toml reads settings in TOML, as other agents keep theirs. It reads the language but
// for dates, which stay text, and never writes it.
package toml

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"coder/internal/core/message"
)

var errInvalid = errors.New("not valid TOML")

// maxDepth bounds how deep values may be nested.
const maxDepth = 40

// Parse reads a document. Its values are map[string]any, []any, string, bool and float64.
func Parse(text string) (map[string]any, error) {
	p := &parser{rest: strings.ReplaceAll(text, "\r\n", "\n")}
	whole := len(p.rest)
	root := make(map[string]any)
	at := root
	for {
		p.skipBlanks(true)
		if p.rest == "" {
			return root, nil
		}
		err := p.parseLine(root, &at)
		if err != nil {
			line := 1 + strings.Count(strings.ReplaceAll(text, "\r\n", "\n")[:whole-len(p.rest)], "\n")
			return nil, message.Errorf("line %d: %w", line, err)
		}
	}
}

type parser struct{ rest string }

// parseLine reads a table's head, or a key and its value.
func (p *parser) parseLine(root map[string]any, at *map[string]any) error {
	close := "]"
	if strings.HasPrefix(p.rest, "[[") {
		close = "]]"
	}
	if !p.accept("[") {
		if err := p.parsePair(*at, 0); err != nil {
			return err
		}
		return p.expectLineEnd()
	}
	p.accept("[")
	p.skipBlanks(false)
	words, err := p.parseKey()
	if err != nil {
		return err
	}
	if p.skipBlanks(false); !p.accept(close) {
		return errInvalid
	}
	table, err := subtable(root, words[:len(words)-1])
	if err != nil {
		return err
	}
	last := words[len(words)-1]
	if close == "]]" {
		next := make(map[string]any)
		list, _ := table[last].([]any)
		table[last], *at = append(list, next), next
	} else if *at, err = subtable(table, []string{last}); err != nil {
		return err
	}
	return p.expectLineEnd()
}

// subtable is the table at words, made where there is none; of a list, its last.
func subtable(t map[string]any, words []string) (map[string]any, error) {
	for _, w := range words {
		switch v := t[w].(type) {
		case nil:
			next := make(map[string]any)
			t[w], t = next, next
		case map[string]any:
			t = v
		case []any:
			if len(v) == 0 {
				return nil, errInvalid
			}
			last, ok := v[len(v)-1].(map[string]any)
			if !ok {
				return nil, errInvalid
			}
			t = last
		default:
			return nil, errInvalid
		}
	}
	return t, nil
}

// parsePair reads key = value into a table.
func (p *parser) parsePair(t map[string]any, depth int) error {
	words, err := p.parseKey()
	if err != nil {
		return err
	}
	if p.skipBlanks(false); !p.accept("=") {
		return errInvalid
	}
	p.skipBlanks(false)
	v, err := p.parseValue(depth)
	if err != nil {
		return err
	}
	if t, err = subtable(t, words[:len(words)-1]); err == nil {
		t[words[len(words)-1]] = v
	}
	return err
}

// parseKey reads words with dots between them.
func (p *parser) parseKey() (words []string, err error) {
	for {
		var word string
		if strings.HasPrefix(p.rest, `"`) || strings.HasPrefix(p.rest, "'") {
			if word, err = p.parseString(); err != nil {
				return nil, err
			}
		} else {
			n := strings.IndexFunc(p.rest, func(r rune) bool {
				return !(r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z')
			})
			if n <= 0 {
				return nil, errInvalid
			}
			word, p.rest = p.rest[:n], p.rest[n:]
		}
		words = append(words, word)
		if p.skipBlanks(false); !p.accept(".") {
			return words, nil
		}
		p.skipBlanks(false)
	}
}

func (p *parser) parseValue(depth int) (any, error) {
	switch {
	case depth > maxDepth:
		return nil, errInvalid
	case strings.HasPrefix(p.rest, `"`), strings.HasPrefix(p.rest, "'"):
		return p.parseString()
	case p.accept("["):
		list := []any{}
		err := p.parseItems("]", func() error {
			v, err := p.parseValue(depth + 1)
			list = append(list, v)
			return err
		})
		return list, err
	case p.accept("{"):
		t := make(map[string]any)
		return t, p.parseItems("}", func() error { return p.parsePair(t, depth+1) })
	}
	n := strings.IndexAny(p.rest, ",]}#\n")
	if n < 0 {
		n = len(p.rest)
	}
	word := strings.TrimSpace(p.rest[:n])
	if p.rest = p.rest[n:]; word == "" || strings.ContainsAny(word, "=\"'[{") {
		return nil, errInvalid
	}
	if word == "true" || word == "false" {
		return word == "true", nil
	}
	if f, err := strconv.ParseFloat(strings.ReplaceAll(word, "_", ""), 64); err == nil {
		return f, nil
	}
	return word, nil
}

// parseItems reads what is separated by commas up to its end.
func (p *parser) parseItems(end string, one func() error) error {
	for {
		if p.skipBlanks(true); p.accept(end) {
			return nil
		}
		if err := one(); err != nil {
			return err
		}
		if p.skipBlanks(true); !p.accept(",") && !strings.HasPrefix(p.rest, end) {
			return errInvalid
		}
	}
}

// parseString reads a string of any kind.
func (p *parser) parseString() (string, error) {
	for _, mark := range []string{`"""`, "'''", `"`, "'"} {
		if !p.accept(mark) {
			continue
		}
		if len(mark) == 3 {
			p.accept("\n")
		}
		var b strings.Builder
		for p.rest != "" && !strings.HasPrefix(p.rest, mark) {
			if mark[0] == '"' && p.accept(`\`) {
				if err := p.parseEscape(&b); err != nil {
					return "", err
				}
				continue
			}
			if p.rest[0] == '\n' && len(mark) == 1 {
				break
			}
			b.WriteByte(p.rest[0])
			p.rest = p.rest[1:]
		}
		if !p.accept(mark) {
			return "", errInvalid
		}
		return b.String(), nil
	}
	return "", errInvalid
}

func (p *parser) parseEscape(b *strings.Builder) error {
	if p.rest == "" {
		return errInvalid
	}
	c := p.rest[0]
	p.rest = p.rest[1:]
	if i := strings.IndexByte(`btnfre"\`, c); i >= 0 {
		b.WriteByte("\b\t\n\f\r\x1b\"\\"[i])
		return nil
	}
	digits := map[byte]int{'u': 4, 'U': 8}[c]
	if digits == 0 { // a line that goes on
		p.rest = strings.TrimLeft(p.rest, " \t\n")
		return nil
	}
	if len(p.rest) < digits {
		return errInvalid
	}
	n, err := strconv.ParseUint(p.rest[:digits], 16, 32)
	if err != nil || !utf8.ValidRune(rune(n)) {
		return errInvalid
	}
	b.WriteRune(rune(n))
	p.rest = p.rest[digits:]
	return nil
}

// expectLineEnd makes sure that nothing but a comment stands in the rest of the line.
func (p *parser) expectLineEnd() error {
	if p.skipBlanks(false); p.rest != "" && p.rest[0] != '\n' && p.rest[0] != '#' {
		return errInvalid
	}
	return nil
}

// skipBlanks passes over blanks, and over comments and ends of lines if lines is set.
func (p *parser) skipBlanks(lines bool) {
	for {
		p.rest = strings.TrimLeft(p.rest, " \t")
		switch {
		case lines && strings.HasPrefix(p.rest, "\n"):
			p.rest = p.rest[1:]
		case lines && strings.HasPrefix(p.rest, "#"):
			_, p.rest, _ = strings.Cut(p.rest, "\n")
		default:
			return
		}
	}
}

func (p *parser) accept(s string) bool {
	rest, ok := strings.CutPrefix(p.rest, s)
	p.rest = rest
	return ok
}
