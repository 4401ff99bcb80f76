package frontmatter

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// parser reads a header line by line.
type parser struct {
	lines    []string
	next     int // the next line to read
	fields   map[string]Value
	problems []string
}

func (p *parser) addProblem(line int, format string, args ...any) {
	// The header begins on the file's second line; lines are counted from 1.
	p.problems = append(p.problems, fmt.Sprintf("line %d: ", line+2)+fmt.Sprintf(format, args...))
}

// splitKey splits "name: value".
func splitKey(line string) (key, rest string, ok bool) {
	line = strings.TrimSpace(line)
	if q := quotedLen(line); q > 0 && strings.HasPrefix(line[q:], ":") {
		return unquote(line[:q]), strings.TrimSpace(line[q+1:]), true
	}
	key, rest, ok = strings.Cut(line, ":")
	if !ok || rest != "" && rest[0] != ' ' && rest[0] != '\t' || strings.HasPrefix(key, "- ") {
		return "", "", false
	}
	key = strings.TrimSpace(key)
	return key, strings.TrimSpace(rest), key != ""
}

// parseValue reads the value after a name, including the lines below that belong to it.
func (p *parser) parseValue(at int, rest string) Value {
	first := p.next
	for p.next < len(p.lines) {
		line := p.lines[p.next]
		if strings.TrimSpace(line) != "" && indentWidth(line) == 0 && !isItem(line) {
			break
		}
		p.next++
	}
	below := p.lines[first:p.next]
	if style, ok := parseBlockStyle(rest); ok {
		return Value{Text: joinBlock(below, style)}
	}
	rest = strings.TrimSpace(dropComment(rest))
	switch {
	case strings.HasPrefix(rest, "[") && strings.HasSuffix(rest, "]"):
		list := []string{}
		for _, part := range splitUnquoted(rest[1:len(rest)-1], ',') {
			if quotedLen(part) == len(part) {
				part = unquote(part)
			}
			list = append(list, part)
		}
		return Value{List: list}
	case strings.HasPrefix(rest, "{") && strings.HasSuffix(rest, "}"):
		m := make(map[string]string)
		for _, pair := range splitUnquoted(rest[1:len(rest)-1], ',') {
			key, rest, ok := splitKey(pair)
			if !ok {
				p.addProblem(at, "%q is not of the form name: value", pair)
				continue
			}
			m[key] = p.parseText(at, rest)
		}
		return Value{Map: m}
	case rest != "":
		return Value{Text: p.parseText(at, foldLines(append([]string{rest}, below...)))}
	}
	var v Value
	var text []string
	for i, line := range below {
		trimmed := strings.TrimSpace(line)
		if isBlank(line) {
			continue
		}
		if isItem(line) {
			v.List = append(v.List, p.parseText(at+1+i, dropComment(strings.TrimSpace(trimmed[1:]))))
			continue
		}
		key, rest, ok := splitKey(line)
		switch {
		case len(v.List) > 0:
			v.List[len(v.List)-1] += " " + trimmed
		case ok && len(text) == 0:
			if v.Map == nil {
				v.Map = make(map[string]string)
			}
			v.Map[key] = p.parseText(at+1+i, dropComment(rest))
		case v.Map != nil:
			p.addProblem(at+1+i, "not of the form name: value")
		default:
			text = append(text, trimmed)
		}
	}
	if v.List == nil && v.Map == nil {
		v.Text = p.parseText(at, foldLines(text))
	}
	return v
}

// parseText removes the quotes, if there are any.
func (p *parser) parseText(at int, s string) string {
	s = strings.TrimSpace(s)
	if s == "" || s[0] != '"' && s[0] != '\'' {
		return s
	}
	if quotedLen(s) != len(s) {
		p.addProblem(at, "the quotes are not closed")
		return s
	}
	return unquote(s)
}

// splitUnquoted splits s at each sep outside quotes and brackets, and omits empty parts.
func splitUnquoted(s string, sep byte) []string {
	var parts []string
	depth, from := 0, 0
	add := func(part string) {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case (c == '"' || c == '\'') && isQuoteStart(s[from:i]):
			if n := quotedLen(s[i:]); n > 0 {
				i += n - 1
			}
		case c == '(' || c == '[' || c == '{':
			depth++
		case c == ')' || c == ']' || c == '}':
			depth = max(0, depth-1)
		case c == sep && depth == 0:
			add(s[from:i])
			from = i + 1
		}
	}
	add(s[from:])
	return parts
}

// isQuoteStart reports whether a quote after before begins a quoted text; elsewhere it is an apostrophe.
func isQuoteStart(before string) bool {
	before = strings.TrimSpace(before)
	return before == "" || strings.HasSuffix(before, ":")
}

// A parseBlockStyle is the style of a block: its sign, and how its last line ends are treated.
type blockStyle struct{ indicator, chomp byte }

func parseBlockStyle(s string) (blockStyle, bool) {
	s = strings.TrimSpace(dropComment(s))
	if s == "" || s[0] != '|' && s[0] != '>' || len(s) > 3 {
		return blockStyle{}, false
	}
	st := blockStyle{indicator: s[0]}
	for _, c := range []byte(s[1:]) {
		switch {
		case c == '+' || c == '-':
			st.chomp = c
		case c < '1' || c > '9':
			return blockStyle{}, false
		}
	}
	return st, true
}

// joinBlock joins the lines of a block without their common indentation. It
// drops line ends at the end, which are never meant in a header.
func joinBlock(lines []string, st blockStyle) string {
	margin := -1
	for _, line := range lines {
		if strings.TrimSpace(line) != "" && (margin < 0 || indentWidth(line) < margin) {
			margin = indentWidth(line)
		}
	}
	kept := make([]string, len(lines))
	for i, line := range lines {
		kept[i] = strings.TrimRight(line[min(len(line), max(margin, 0)):], " \t\r")
	}
	if st.indicator == '|' {
		return strings.Trim(strings.Join(kept, "\n"), "\n")
	}
	return foldLines(kept)
}

// foldLines joins lines with spaces; an empty line becomes a line end.
func foldLines(lines []string) string {
	var b strings.Builder
	gap := false
	for _, line := range lines {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
			gap = b.Len() > 0
			continue
		case gap:
			b.WriteByte('\n')
		case b.Len() > 0:
			b.WriteByte(' ')
		}
		gap = false
		b.WriteString(line)
	}
	return b.String()
}

// quotedLen returns the length of the quoted text at the start of s, or 0.
func quotedLen(s string) int {
	if s == "" || s[0] != '"' && s[0] != '\'' {
		return 0
	}
	for i := 1; i < len(s); i++ {
		switch {
		case s[0] == '"' && s[i] == '\\':
			i++
		case s[i] != s[0]:
		case s[0] == '\'' && i+1 < len(s) && s[i+1] == '\'':
			i++
		default:
			return i + 1
		}
	}
	return 0
}

// escapeChars are the meanings of letters after a backslash.
var escapeChars = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", '0': "\x00", '"': `"`, '\\': `\`, '/': "/", ' ': " "}

// unquote decodes a quoted text.
func unquote(s string) string {
	inner := s[1 : len(s)-1]
	if s[0] == '\'' {
		return strings.ReplaceAll(inner, "''", "'")
	}
	var b strings.Builder
	for i := 0; i < len(inner); i++ {
		if inner[i] != '\\' || i+1 == len(inner) {
			b.WriteByte(inner[i])
			continue
		}
		i++
		if n := escapeHexLen[inner[i]]; n > 0 && i+n < len(inner) {
			if r, err := strconv.ParseUint(inner[i+1:i+1+n], 16, 32); err == nil && utf8.ValidRune(rune(r)) {
				b.WriteRune(rune(r))
				i += n
				continue
			}
		}
		if e, ok := escapeChars[inner[i]]; ok {
			b.WriteString(e)
		} else {
			b.WriteString(inner[i-1 : i+1])
		}
	}
	return b.String()
}

// escapeHexLen is how many digits follow the letter of a numeric escape.
var escapeHexLen = map[byte]int{'x': 2, 'u': 4, 'U': 8}

// dropComment removes a comment: a number sign between spaces. In "issue #5" the sign belongs to the text.
func dropComment(s string) string {
	if n := quotedLen(s); n > 0 {
		if rest := strings.TrimSpace(s[n:]); strings.HasPrefix(rest, "#") {
			return s[:n]
		}
		return s
	}
	if s == "#" || strings.HasPrefix(s, "# ") {
		return ""
	}
	if i := strings.Index(s, " # "); i >= 0 {
		return s[:i]
	}
	return s
}

func isBlank(line string) bool {
	line = strings.TrimSpace(line)
	return line == "" || line[0] == '#'
}

func indentWidth(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

func isItem(line string) bool {
	line = strings.TrimSpace(line)
	return line == "-" || strings.HasPrefix(line, "- ")
}
