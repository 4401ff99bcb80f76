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
	KindText  Kind = iota
	KindShell      // run Text as a command and insert its output
	KindFile       // insert the file named in Text, perhaps with :12 or :12-20
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
	a := commandArgs{all: strings.TrimSpace(args)}
	a.each = splitFields(a.all)
	var segments []Segment
	for _, s := range parseSegments(strings.TrimSpace(body)) {
		s.Text, s.Raw = a.replacePlaceholders(s.Text), a.replacePlaceholders(s.Raw)
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

// Join joins segments into the text for the model. results has the results of segments by index; a
// segment without a result stays as written.
func Join(segments []Segment, results map[int]string) string {
	var b strings.Builder
	for i, s := range segments {
		if r, ok := results[i]; ok && s.Kind != KindText {
			b.WriteString(r)
			continue
		}
		b.WriteString(s.Raw)
	}
	return b.String()
}

// parseSegments splits a body into segments and leaves placeholders unchanged.
func parseSegments(body string) []Segment {
	p := parser{before: ' '}
	for line, code := range frontmatter.Lines(body) {
		if code {
			p.pendingText.WriteString(line)
		} else {
			p.parseLine(line)
		}
		p.before = ' '
	}
	p.flush()
	return p.segments
}

type parser struct {
	segments    []Segment
	pendingText strings.Builder
	before      rune // the previous character
}

func (p *parser) flush() {
	if p.pendingText.Len() > 0 {
		p.segments = append(p.segments, Segment{Text: p.pendingText.String(), Raw: p.pendingText.String()})
		p.pendingText.Reset()
	}
}

func (p *parser) addSegment(s Segment) {
	p.flush()
	p.segments = append(p.segments, s)
}

// parseLine parses one line outside code blocks.
func (p *parser) parseLine(line string) {
	for i := 0; i < len(line); {
		r, size := utf8.DecodeRuneInString(line[i:])
		n := size
		switch {
		case r == '!' && !isJoined(p.before):
			inner, opens := strings.CutPrefix(line[i:], "!`")
			if command, _, closes := strings.Cut(inner, "`"); opens && closes && strings.TrimSpace(command) != "" {
				n = len("!``") + len(command)
				p.addSegment(Segment{KindShell, command, line[i : i+n]})
				break
			}
			p.pendingText.WriteByte('!')
		case r == '@' && !isJoined(p.before):
			if name, length := parseFile(line[i:]); name != "" {
				n = length
				p.addSegment(Segment{KindFile, name, line[i : i+n]})
				break
			}
			p.pendingText.WriteByte('@')
		case r == '`':
			n = frontmatter.CodeSpanLen(line[i:])
			p.pendingText.WriteString(line[i : i+n])
		default:
			p.pendingText.WriteString(line[i : i+size])
		}
		p.before, _ = utf8.DecodeLastRuneInString(line[:i+n])
		i += n
	}
}

// parseFile parses @path or @"path with blanks" at the start of s.
func parseFile(s string) (name string, length int) {
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
	if strings.IndexFunc(name, func(r rune) bool { return isWordRune(r) || r == '$' }) < 0 {
		return "", 0
	}
	return name, 1 + len(name)
}

// isJoined reports whether a sign after before is part of a word, as in an email address, or is escaped
// by a backslash. Chinese needs no space before the sign.
func isJoined(before rune) bool {
	return before == '\\' || before < utf8.RuneSelf && isWordRune(before)
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

// commandArgs are the arguments of a command.
type commandArgs struct {
	all  string
	each []string
	used bool // a placeholder was found
}

// replacePlaceholders replaces the placeholders in s, but not in the inserted text.
func (a *commandArgs) replacePlaceholders(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		rest := s[i:]
		if strings.HasPrefix(rest, `\$`) {
			b.WriteByte('$')
			i += 2
			continue
		}
		if value, n := a.parsePlaceholder(rest); n > 0 {
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

// argsPlaceholder stands for all arguments.
const argsPlaceholder = "$ARGUMENTS"

// parsePlaceholder parses a placeholder at the start of s and returns its value
// and length. An amount of money such as $100 is not one.
func (a *commandArgs) parsePlaceholder(s string) (value string, n int) {
	if after, ok := strings.CutPrefix(s, argsPlaceholder); ok {
		if next, _ := utf8.DecodeRuneInString(after); next != '_' && !(next < utf8.RuneSelf && isWordRune(next)) {
			return a.all, len(argsPlaceholder)
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

// splitFields splits s at spaces, except inside quotes. Unclosed quotes are ordinary characters.
func splitFields(s string) []string {
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
