package codeindex

import (
	"bytes"
	"strings"
)

// declaration tells what line declares, if anything. group is the kind of the
// names in the parentheses that the line stands in, if it does.
func (l *language) declaration(line []byte, indent int, group Kind) (d declaration, ok bool) {
	rest := line[indent:]
	switch {
	case group != "" && indent == 1:
		d.kind, d.name = group, first(rest)
		return d, d.name != ""
	case l.has(topOnly) && indent > 0:
		return d, false
	}
	for {
		word, after := cutWord(rest)
		if kind, known := l.keywords[string(word)]; known {
			return l.named(line, indent, declaration{kind: kind, name: string(word)}, after)
		}
		if len(word) == 0 || !l.modifiers[string(word)] {
			break
		}
		rest = bytes.TrimLeft(skipPair(after, '(', ')'), " \t")
	}
	if l.has(calls) {
		return l.called(bytes.TrimSpace(line), indent)
	}
	return d, false
}

// named reads the name that follows a keyword; d has the keyword for a name.
func (l *language) named(line []byte, indent int, d declaration, rest []byte) (declaration, bool) {
	keyword := d.name
	rest = bytes.TrimLeft(skipPair(rest, '<', '>'), " \t*&!")
	next, after := cutWord(rest)
	if kind, known := l.keywords[string(next)]; known { // enum class, const fn
		return l.named(line, indent, declaration{kind: kind, name: string(next)}, after)
	}
	switch {
	case keyword == "impl":
		if _, of, ok := bytes.Cut(rest, []byte(" for ")); ok {
			rest = of
		}
		d.name = name(bytes.TrimLeft(rest, " &"))
	case l.has(groups) && d.kind == Function:
		if inside, after, ok := bytes.Cut(rest, []byte(")")); ok && rest[0] == '(' { // its receiver
			inside, _, _ = bytes.Cut(inside[1:], []byte("["))
			d.parent = first(inside[bytes.LastIndexAny(inside, " *\t")+1:])
			rest = bytes.TrimLeft(after, " \t")
		}
		d.name = first(rest)
	case l.has(groups) && len(rest) > 0 && rest[0] == '(':
		d.name = ""
		return d, d.kind == Value
	case d.kind == Value && indent > 0:
		if !l.has(arrows) || !isArrow(rest) {
			return d, false
		}
		d.kind, d.name = Function, first(rest)
	case keyword == "init" || keyword == "subscript":
	case l.has(extends) && d.kind == Function:
		before, _, _ := bytes.Cut(rest, []byte("("))
		if i := bytes.LastIndexByte(before, '.'); i > 0 {
			d.parent, before = first(before), before[i+1:]
		}
		d.name = first(before)
	default:
		d.name = name(rest)
	}
	if d.kind == Value && l.has(arrows) && isArrow(rest) {
		d.kind = Function
	}
	if l.has(tags) && d.kind == Type && !bytes.ContainsAny(line, "{") && bytes.ContainsAny(line, ";()=*") {
		return l.called(bytes.TrimSpace(line), indent) // struct foo *bar(void)
	}
	return d, d.name != ""
}

// isArrow reports whether a JavaScript value is a function.
func isArrow(rest []byte) bool {
	_, value, ok := bytes.Cut(rest, []byte("="))
	if !ok {
		return false
	}
	value = bytes.TrimSpace(value)
	value = bytes.TrimSpace(bytes.TrimPrefix(value, []byte("async")))
	return bytes.Contains(value, []byte("=>")) || bytes.HasPrefix(value, []byte("function")) || bytes.Equal(value, []byte("("))
}

// control are words that stand before parentheses without declaring anything.
var control = words(`if for while switch catch return else do throw new case await yield delete goto using lock foreach
	sizeof typeof synchronized assert super this when with function not and or until elif then in echo exec eval test
	try finally import require defined static_assert alignas decltype operator print include from`)

// called recognises a function that has no keyword: words, the last of them a
// name, then parentheses and no semicolon. The line has no space around it.
func (l *language) called(line []byte, indent int) (d declaration, ok bool) {
	open := bytes.IndexByte(line, '(')
	if open <= 0 || line[0] == '@' || line[0] == '#' || line[len(line)-1] == ';' || bytes.ContainsAny(line[:open], "=.\"'`,;{}!?+|/") {
		return d, false
	}
	before := bytes.TrimRight(line[:open], " \t")
	from := len(before)
	for from > 0 && (isNameByte(before[from-1]) || before[from-1] == ':' || before[from-1] == '~') {
		from--
	}
	word, _ := cutWord(line)
	d.kind, d.name = Function, clip(strings.Trim(string(before[from:]), ":"))
	if d.name == "" || isDigits(d.name) || control().has(d.name) || control().has(string(word)) {
		return d, false
	}
	if i := strings.LastIndex(d.name, "::"); i > 0 { // Type::name
		d.parent, d.name = d.name[:i], d.name[i+2:]
		if j := strings.LastIndex(d.parent, "::"); j >= 0 {
			d.parent = d.parent[j+2:]
		}
	}
	if from == 0 && (indent > 0 || !l.has(tags)) { // the name stands alone
		// It must begin a body, and not that of a function that is handed to it, and be no macro.
		handed := bytes.Contains(line, []byte("=>")) || bytes.Contains(line, []byte("function"))
		closed := bytes.Count(line, []byte("(")) == bytes.Count(line, []byte(")"))
		last := line[len(line)-1]
		opens := last == '{' || last == '}' || bytes.HasSuffix(line, []byte("()"))
		return d, !handed && closed && opens && (indent == 0 || strings.ToUpper(d.name) != d.name)
	}
	return d, indent == 0 || line[len(line)-1] != ')' || l.has(lowBrace)
}

func isNameByte(b byte) bool { return wordByte[b] || b == '$' }

// cutWord takes the first word off a line, with a sign that belongs to it, and
// the space behind.
func cutWord(line []byte) (word, rest []byte) {
	n := 0
	for n < len(line) && (isNameByte(line[n]) || n == 0 && (line[n] == '@' || line[n] == '#')) {
		n++
	}
	return line[:n], bytes.TrimLeft(line[n:], " \t")
}

// first is the identifier that rest begins with.
func first(rest []byte) string {
	n := 0
	for n < len(rest) && isNameByte(rest[n]) {
		n++
	}
	return clip(string(rest[:n]))
}

// name is the identifier that rest begins with, qualified if it is.
func name(rest []byte) string {
	n := 0
	for n < len(rest) && (isNameByte(rest[n]) || n > 0 && strings.IndexByte(".:?!", rest[n]) >= 0) {
		n++
	}
	return clip(strings.TrimRight(strings.TrimPrefix(string(rest[:n]), "self."), ".:"))
}

func skipPair(rest []byte, open, shut byte) []byte {
	if len(rest) == 0 || rest[0] != open {
		return rest
	}
	depth := 0
	for i, b := range rest {
		switch b {
		case open:
			depth++
		case shut:
			if depth--; depth == 0 {
				return rest[i+1:]
			}
		}
	}
	return rest
}
