package usercommand

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"coder/internal/authored/frontmatter"
)

// Kind is what a segment asks for.
type Kind uint8

// The kinds. The zero Kind is text, which asks for nothing.
const (
	Text  Kind = iota
	Shell      // run Text as a command and put its output in
	File       // read the file Text names, perhaps with :12 or :12-20, and put it in
)

// Segment is a piece of an expanded command. Raw is how it was written, with
// the arguments put in: what stands there if nobody fills it.
type Segment struct {
	Kind Kind
	Text string
	Raw  string
}

// Expand puts args into the body of a command and takes it apart. A shell
// command is written as an exclamation mark before backticks, a file as @path;
// inside code neither is special. Arguments go where the body says $ARGUMENTS,
// $1, $2 … (\$ is a plain dollar sign), or to the end if it says nothing.
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

// Fill joins segments into the text for the model. results holds what segments
// asked for, by their index; one without a result stands as it was written.
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

// parse takes a body apart, placeholders as they are.
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
	before rune // what stands before the place we are at
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

// line reads one line outside blocks of code.
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

// fileAt reads @path or @"path with blanks" at the start of s.
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

// joined reports whether a sign after before is part of a word, as in an
// address of mail, or is written with a backslash to mean nothing. Chinese
// needs no blank before the sign.
func joined(before rune) bool {
	return before == '\\' || before < utf8.RuneSelf && word(before)
}

func word(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

// arguments are what stands after the name of a command.
type arguments struct {
	all  string
	each []string
	used bool // a placeholder was found
}

// put replaces the placeholders in s. What it puts in is not looked at again.
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

// at reads a placeholder at the start of s: its value and its length. A sum of
// money such as $100 is none.
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

// fields cuts s at blanks, except inside quotes. Quotes that do not close are
// ordinary characters.
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
