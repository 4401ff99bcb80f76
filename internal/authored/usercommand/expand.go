package usercommand

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"coder/internal/authored/frontmatter"
)

// Kind is what a segment requests.
type Kind uint8

// The kinds. The zero Kind is text, which requests nothing.
const (
	Text  Kind = iota
	Shell      // run Text as a command and insert its output
	File       // insert the file named in Text, perhaps with :12 or :12-20
)

// Segment is a part of an expanded command. Raw is its source
// with the arguments inserted, used if there is no result.
type Segment struct {
	Kind Kind
	Text string
	Raw  string
}

// Expand inserts args into the body of a command and splits it into segments. A shell command is an
// exclamation mark before backticks, a file is @path; inside code neither is special. Arguments replace
// $ARGUMENTS, $1, $2 … (\$ is a plain dollar sign), or follow the body if it has no placeholder.
func Expand(body, args string) []Segment {
	a := arguments{all: strings.TrimSpace(args)}
	a.each = fields(a.all)
	var segments []Segment
	for _, s := range parse(strings.TrimSpace(body)) {
		s.Text, s.Raw = a.put(s.Text), a.put(s.Raw)
		segments = append(segments, s)
	}
	if !a.used && a.all != "" {
		text := a.all
		if len(segments) > 0 {
			text = "\n\n" + text
		}
		segments = append(segments, Segment{Text: text, Raw: text})
	}
	return segments
}

// Fill joins segments into the text for the model. results has the results of segments by index; a
// segment without a result stays as written.
func Fill(segments []Segment, results map[int]string) string {
	var b strings.Builder
	for i, s := range segments {
		if r, ok := results[i]; ok && s.Kind != Text {
			b.WriteString(r)
			continue
		}
		b.WriteString(s.Raw)
	}
	return b.String()
}

// parse splits a body into segments and leaves placeholders unchanged.
func parse(body string) []Segment {
	p := parser{before: ' '}
	for line, code := range frontmatter.Lines(body) {
		if code {
			p.plain.WriteString(line)
		} else {
			p.line(line)
		}
		p.before = ' '
	}
	p.flush()
	return p.out
}

type parser struct {
	out    []Segment
	plain  strings.Builder
	before rune // the previous character
}

func (p *parser) flush() {
	if p.plain.Len() > 0 {
		p.out = append(p.out, Segment{Text: p.plain.String(), Raw: p.plain.String()})
		p.plain.Reset()
	}
}

func (p *parser) take(s Segment) {
	p.flush()
	p.out = append(p.out, s)
}

// line parses one line outside code blocks.
func (p *parser) line(line string) {
	for i := 0; i < len(line); {
		r, size := utf8.DecodeRuneInString(line[i:])
		n := size
		switch {
		case r == '!' && !joined(p.before):
			inner, opens := strings.CutPrefix(line[i:], "!`")
			if command, _, closes := strings.Cut(inner, "`"); opens && closes && strings.TrimSpace(command) != "" {
				n = len("!``") + len(command)
				p.take(Segment{Shell, command, line[i : i+n]})
				break
			}
			p.plain.WriteByte('!')
		case r == '@' && !joined(p.before):
			if name, length := fileAt(line[i:]); name != "" {
				n = length
				p.take(Segment{File, name, line[i : i+n]})
				break
			}
			p.plain.WriteByte('@')
		case r == '`':
			n = frontmatter.CodeSpan(line[i:])
			p.plain.WriteString(line[i : i+n])
		default:
			p.plain.WriteString(line[i : i+size])
		}
		p.before, _ = utf8.DecodeLastRuneInString(line[:i+n])
		i += n
	}
}

// fileAt parses @path or @"path with blanks" at the start of s.
func fileAt(s string) (name string, length int) {
	rest := s[1:]
	if inner, ok := strings.CutPrefix(rest, `"`); ok {
		if name, _, ok = strings.Cut(inner, `"`); ok && strings.TrimSpace(name) != "" {
			return name, len(`@""`) + len(name)
		}
		return "", 0
	}
	end := strings.IndexFunc(rest, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("`,;\"'<>()[]{}|，。；：、！？（）《》“”", r)
	})
	if end >= 0 {
		rest = rest[:end]
	}
	name = strings.TrimRight(rest, ".:!?*")
	if strings.IndexFunc(name, func(r rune) bool { return word(r) || r == '$' }) < 0 {
		return "", 0
	}
	return name, 1 + len(name)
}

// joined reports whether a sign after before is part of a word, as in an email address, or is escaped
// by a backslash. Chinese needs no space before the sign.
func joined(before rune) bool {
	return before == '\\' || before < utf8.RuneSelf && word(before)
}

func word(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

// arguments are the arguments of a command.
type arguments struct {
	all  string
	each []string
	used bool // a placeholder was found
}

// put replaces the placeholders in s, but not in the inserted text.
func (a *arguments) put(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		rest := s[i:]
		if strings.HasPrefix(rest, `\$`) {
			b.WriteByte('$')
			i += 2
			continue
		}
		if value, n := a.at(rest); n > 0 {
			b.WriteString(value)
			a.used = true
			i += n
			continue
		}
		b.WriteByte(s[i])
		i++
	}
	return b.String()
}

// placeholder stands for all arguments.
const placeholder = "$ARGUMENTS"

// at parses a placeholder at the start of s and returns its value
// and length. An amount of money such as $100 is not one.
func (a *arguments) at(s string) (value string, n int) {
	if after, ok := strings.CutPrefix(s, placeholder); ok {
		if next, _ := utf8.DecodeRuneInString(after); next != '_' && !(next < utf8.RuneSelf && word(next)) {
			return a.all, len(placeholder)
		}
	}
	if s == "" || s[0] != '$' {
		return "", 0
	}
	for n = 1; n < len(s) && s[n] >= '0' && s[n] <= '9'; n++ {
	}
	number, err := strconv.Atoi(s[1:n])
	if err != nil || n > 3 || s[1] == '0' {
		return "", 0
	}
	if number <= len(a.each) {
		value = a.each[number-1]
	}
	return value, n
}

// fields splits s at spaces, except inside quotes. Unclosed quotes are ordinary characters.
func fields(s string) []string {
	var list []string
	var b strings.Builder
	open := false // b is a field, perhaps an empty one
	for i := 0; i < len(s); i++ {
		c := s[i]
		if (c == '"' || c == '\'') && (b.Len() == 0 || s[i-1] == '=') {
			if end := strings.IndexByte(s[i+1:], c); end >= 0 {
				b.WriteString(s[i+1 : i+1+end])
				i += end + 1
				open = true
				continue
			}
		}
		if c == ' ' || c == '\t' || c == '\n' || c == '\r' {
			if open {
				list = append(list, b.String())
				b.Reset()
				open = false
			}
			continue
		}
		b.WriteByte(c)
		open = true
	}
	if open {
		list = append(list, b.String())
	}
	return list
}
