package export

import (
	"cmp"
	entities "html"
	"strings"
	"unicode"
	"unicode/utf8"
)

// emphasisMarks are the marks around text, and their tags; longer marks first.
var emphasisMarks = []struct{ sign, begins, ends string }{
	{"***", "<strong><em>", "</em></strong>"}, {"**", "<strong>", "</strong>"}, {"__", "<strong>", "</strong>"},
	{"~~", "<del>", "</del>"}, {"*", "<em>", "</em>"}, {"_", "<em>", "</em>"},
}

// writeInline writes the inline text of a block.
func (p page) writeInline(text string, depth int) {
	plain, before := 0, ' '
	flush := func(to int) { p.writeRaw(escaper.Replace(text[plain:to])) }
	for i := 0; i < len(text); {
		n := 0
		if depth < maxNesting && strings.IndexByte("`*_~[!<h&\\", text[i]) >= 0 {
			flush(i)
			if n = p.writeSpan(text[i:], before, depth); n > 0 {
				plain = i + n
			} else {
				plain = i
			}
		}
		if n == 0 {
			_, n = utf8.DecodeRuneInString(text[i:])
		}
		before, _ = utf8.DecodeLastRuneInString(text[:i+n])
		i += n
	}
	flush(len(text))
}

// continuesWord reports whether text after a letter or digit continues a word. Chinese and similar scripts do
// not separate words, so there it does not.
func continuesWord(before rune) bool {
	return (unicode.IsLetter(before) || unicode.IsDigit(before)) && !unicode.In(before, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// writeSpan writes the inline element at the start of text, and
// returns its length. before is the character before it.
func (p page) writeSpan(text string, before rune, depth int) int {
	line, _, _ := strings.Cut(text[:min(len(text), maxCodeSpan)], "\n\n")
	switch {
	case line[0] == '`':
		if code, n := parseCodeSpan(text); n > 0 {
			p.writeRaw("<code>", escaper.Replace(code), "</code>")
			return n
		}
	case line[0] == '\\' && len(line) > 1 && strings.IndexByte("\\`*_~[]<>#|!()-+.", line[1]) >= 0:
		p.writeRaw(escaper.Replace(line[1:2]))
		return 2
	case line[0] == '&':
		name := entity().FindString(line)
		meant := strings.ReplaceAll(entities.UnescapeString(name), "\u00a0", " ")
		if meant != name && !strings.ContainsFunc(meant, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
			p.writeRaw(escaper.Replace(meant))
			return len(name)
		}
	case line[0] == '[', strings.HasPrefix(line, "!["):
		return p.writeLink(line, depth)
	case line[0] == '<' && breakTag().MatchString(line):
		p.writeRaw("<br>")
		return strings.IndexByte(line, '>') + 1
	case line[0] == '<':
		if address, _, ok := strings.Cut(line[1:], ">"); ok && isLinkable(address) {
			p.writeAnchor(address, address, depth)
			return len(address) + 2
		}
	case line[0] == 'h' && !continuesWord(before):
		if address := leadingAddress(line); address != "" {
			p.writeAnchor(address, address, maxNesting)
			return len(address)
		}
	}
	for _, e := range emphasisMarks {
		if n := emphasisLength(line, e.sign, before); n > 0 {
			p.writeRaw(e.begins)
			p.writeInline(line[len(e.sign):n-len(e.sign)], depth+1)
			p.writeRaw(e.ends)
			return n
		}
	}
	return 0
}

// emphasisLength returns the length of the emphasized text at the start of line, with
// both marks; 0 if there is none. Underscores and single stars within words, as in
// 2*3*4, and underscores around a name such as __init__, are text.
func emphasisLength(line, sign string, before rune) int {
	rest, ok := strings.CutPrefix(line, sign)
	word := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	ascii := before < utf8.RuneSelf && word(before) && rest != "" && rest[0] < utf8.RuneSelf && word(rune(rest[0]))
	if !ok || sign[0] == '_' && word(before) || sign == "*" && ascii || rest == "" || strings.HasPrefix(rest, sign[:1]) || unicode.IsSpace(rune(rest[0])) {
		return 0
	}
	for end := 0; ; {
		i := strings.Index(rest[end:], sign)
		if i < 0 {
			return 0
		}
		end += i
		after, size := utf8.DecodeRuneInString(rest[end+len(sign):])
		next, _ := utf8.DecodeRuneInString(rest[end+len(sign)+size:])
		inner := rest[:end]
		switch {
		case sign == "__" && !strings.Contains(inner, " "), sign[0] == '_' && (after == '(' || strings.ContainsRune("./", after) && word(next)):
			return 0
		case inner == "", unicode.IsSpace(rune(inner[len(inner)-1])), inner[len(inner)-1] == '\\', sign[0] == '_' && word(after),
			len(sign) == 1 && strings.HasPrefix(rest[end+1:], sign), strings.Count(inner, "`")%2 == 1:
			for end += len(sign); strings.HasPrefix(rest[end:], sign[:1]); end++ {
			}
			continue
		}
		return len(inner) + 2*len(sign)
	}
}

// writeLink writes a link, or an image as a link.
func (p page) writeLink(line string, depth int) int {
	start := strings.IndexByte(line, '[') + 1
	open := 1
	for i := start; i < len(line); i++ {
		switch line[i] {
		case '[':
			open++
		case ']':
			open--
		}
		if open > 0 {
			continue
		}
		rest, ok := strings.CutPrefix(line[i+1:], "(")
		address, _, closed := cutAddress(rest)
		if !ok || !closed {
			return p.writeReferenceLink(line, start, i, depth)
		}
		target, _, _ := strings.Cut(strings.TrimSpace(address), " ")
		if within, ok := strings.CutPrefix(strings.TrimSpace(address), "<"); ok { // it may contain spaces
			within, _, _ = strings.Cut(within, ">")
			target = strings.ReplaceAll(within, " ", "%20")
		}
		p.writeAnchor(target, line[start:i], depth)
		return i + 1 + len("()") + len(address)
	}
	return 0
}

// writeReferenceLink writes a link with its address elsewhere under a name: [text][callName], [callName][] or [callName].
func (p page) writeReferenceLink(line string, start, end, depth int) int {
	name, took := line[start:end], end+1
	if rest, ok := strings.CutPrefix(line[took:], "["); ok {
		if given, _, closed := strings.Cut(rest, "]"); closed {
			name, took = cmp.Or(given, name), took+len(given)+len("[]")
		}
	}
	address := p.linkTargets[strings.ToLower(name)]
	if address == "" {
		return 0
	}
	p.writeAnchor(address, line[start:end], depth)
	return took
}

// cutAddress returns the text before the closing parenthesis.
func cutAddress(text string) (address, rest string, ok bool) {
	open := 1
	for i, r := range text {
		switch r {
		case '(':
			open++
		case ')':
			open--
		case '\n':
			return "", "", false
		}
		if open == 0 {
			return text[:i], text[i+1:], true
		}
	}
	return "", "", false
}

// writeAnchor writes a link to a web address; it shows any other address next to the text.
func (p page) writeAnchor(address, text string, depth int) {
	if isLinkable(address) && !p.inLink {
		p.writeRaw(`<a href="`, escaper.Replace(address), `" rel="noopener noreferrer nofollow">`)
		p.inLink = true
		p.writeInline(text, depth+1)
		p.writeRaw("</a>")
		return
	}
	p.writeInline(text, depth+1)
	if address != "" && address != text && !p.inLink {
		p.writeRaw(" (<code>", escaper.Replace(address), "</code>)")
	}
}

// isLinkable reports whether the page may link to s.
func isLinkable(s string) bool {
	rest, ok := strings.CutPrefix(s, "https://")
	if !ok {
		rest, ok = strings.CutPrefix(s, "http://")
	}
	if !ok {
		rest, ok = strings.CutPrefix(s, "mailto:")
	}
	return ok && rest != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune("<>\"`", r)
	})
}

// leadingAddress returns the address at the start of text, or "". The address ends where prose continues.
func leadingAddress(text string) string {
	if !strings.HasPrefix(text, "http://") && !strings.HasPrefix(text, "https://") {
		return ""
	}
	end := strings.IndexFunc(text, func(r rune) bool {
		return r > unicode.MaxASCII || unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune("<>\"`|*", r)
	})
	if end < 0 {
		end = len(text)
	}
	address := strings.TrimRight(text[:end], ".,;:!?'")
	if strings.Count(address, "(") < strings.Count(address, ")") {
		address = strings.TrimSuffix(address, ")")
	}
	if !isLinkable(address) || strings.HasSuffix(address, "//") {
		return ""
	}
	return address
}
